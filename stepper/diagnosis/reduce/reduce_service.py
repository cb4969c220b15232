"""Serve trials in another process: run a candidate here, and with OpenVINO if asked.

Both run in one process, apart from the user's process. So a crash or a hang ends a trial and nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepper.debug.breakpoints.kinds.non_finite import holds_any
from stepper.debug.causes.cause import NonFinite, NonFiniteKind
from stepper.debug.causes.cause_texts import sentences
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from stepper.diagnosis.reduce.reductions import is_finite
from stepper.diagnosis.reduce.trials import (
    OPENVINO,
    STEPPING,
    WITH_OPENVINO,
    AnyFault,
    ChosenKernel,
    DisagreesWith,
    EndsInError,
    FaultCondition,
    FaultKind,
    FoundFault,
    KernelFacts,
    NameKernels,
    ObservedFacts,
    ObserveValues,
    RunSettings,
    StopsAt,
    TrialAct,
    TrialFacts,
    TryModel,
    log_values,
)
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog
from stepper.errors import KernelError, LimitReached, StepperError
from stepper.ir.model import Model
from stepper.ir.reader import read
from stepper.openvino import native_text, runtime
from stepper.openvino.layers import CompiledText
from stepper.openvino.partner import NUMPY, OpenVINOPartner
from stepper.openvino.program import is_installed
from stepper.openvino.runtime import Runtime, complaint
from stepper.ops.operands import LARGEST_TENSOR
from stepper.processes.server import Announce, Service, is_out_of_memory, serve
from stepper.tensors.difference import measure
from stepper.tensors.tolerances import Tolerances

_PLACE = re.compile(r"([\w./-]+\.(?:cpp|hpp|h)):\d+")
_TIMES_LONGER = 10
_FURTHER_MOVES = 10_000
"""Moves that a run may make after a stop, in all ten times as many as before it and these, to come to its end."""

Arrays = Sequence[Array]
Found = tuple[FoundFault | None, Arrays, Arrays]
"""The fault, the outputs that were expected, and those that were given."""


class TrialService(Service):
    """Runs candidates."""

    acts = TrialAct

    def __init__(self, announce: Announce) -> None:
        self._announce, self._moves, self._skips = announce, 0, False
        runtime.announce = announce

    def perform(self, act: TrialAct, arrays: list[Array]) -> tuple[Any, Arrays]:
        """Return what a trial finds, or the values of a run."""
        LARGEST_TENSOR.set(2**28)
        if isinstance(act, ObserveValues):
            self._announce(STEPPING)
            return _observed(act, arrays)
        if isinstance(act, NameKernels):
            return KernelFacts(tuple(_kernels(act))), ()
        fault, expected, given = self._tried(act, arrays)
        if fault is not None:
            fault = replace(fault, skips_a_loop=self._skips)
        if not act.wants_outputs:
            return TrialFacts(fault, moves=self._moves), ()
        return TrialFacts(fault, len(expected), self._moves), [*expected, *given]

    def _tried(self, act: TryModel, arrays: Arrays) -> Found:
        self._announce(STEPPING)
        self._moves, self._skips = 0, False
        condition: FaultCondition = act.condition
        model = read(act.path)
        if isinstance(condition, StopsAt):
            found, self._moves = _stopped(model, arrays, act.settings, condition.spec)
            return found, (), ()
        try:
            expected, self._moves, self._skips = _outputs(model, arrays, act.settings)
        except StepperError as error:
            has_fault = isinstance(condition, EndsInError | AnyFault) or self._runs(act, arrays)
            if condition == DisagreesWith() and not isinstance(error, LimitReached):
                has_fault = is_installed() and not isinstance(_from_openvino(model, arrays, act.settings), Exception)
            return (_error(error, act.path) if has_fault else None), (), ()
        if isinstance(condition, DisagreesWith) and condition.reference != OPENVINO:
            return self._beside_a_model(act, condition.reference, arrays, expected)
        beside = _beside_openvino(model, arrays, expected, act.settings) if is_installed() else (None, expected, ())
        if isinstance(condition, EndsInError) and beside[0] is not None and beside[0].kind is not FaultKind.REFUSED:
            return None, *beside[1:]
        if (
            beside[0] is None
            and isinstance(condition, AnyFault)
            and any(holds_any(NonFiniteKind.NAN, one) for one in expected)
        ):
            stopped, self._moves = _stopped(model, arrays, act.settings, "nan")
            return stopped, (), ()
        return beside

    def _runs(self, act: TryModel, arrays: Arrays) -> bool:
        """Return True if there is a healthy twin, which comes to its end."""
        if not act.twin:
            return False
        try:
            _outputs(read(act.twin), arrays, act.settings)
        except StepperError:
            return False
        return True

    def _beside_a_model(self, act: TryModel, name: str, arrays: Arrays, given: Arrays) -> Found:
        """Hold the model against its healthy twin, whose outputs are those that are expected."""
        try:
            expected, _moves, _skips = _outputs(read(act.twin), arrays, act.settings)
        except StepperError:
            return None, (), given
        return _difference(expected, given, name, act.settings.tolerances(exact=True)), expected, given


def _compiled(model: Model, settings: RunSettings) -> CompiledModel:
    return compile_model(model, Rules(settings.rules), _partner(settings))


@cache
def _partner(settings: RunSettings) -> OpenVINOPartner | None:
    """Return who computes; None for the usual."""
    if settings.engine == NUMPY and not settings.choices and not settings.extensions:
        return None
    return OpenVINOPartner(settings.engine, dict(settings.choices), _runtime(settings))


def _outputs(model: Model, arrays: Arrays, settings: RunSettings) -> tuple[Arrays, int, bool]:
    """Return the outputs of our engine, the moves that it made, and whether a loop ran no iteration."""
    machine = Machine(
        _compiled(model, settings),
        bind_inputs(model, dict(enumerate(arrays))),
        max_iterations=settings.max_iterations,
        keep_values=False,
    )
    log = LoopLog()
    machine.observers = (log,)
    machine.advance(Every.END, until=settings.most_moves)
    if machine.outputs is None:
        raise LimitReached("the run takes longer than the run of the whole model")
    return machine.outputs, machine.tick, any(loop.fewest == 0 for loop in log.summaries)


def _stopped(model: Model, arrays: Arrays, settings: RunSettings, spec: str) -> tuple[FoundFault | None, int]:
    """Return where a breakpoint stops the run, and the moves up to there."""
    try:
        debugger = Debugger(
            model,
            dict(enumerate(arrays)),
            settings.rules,
            max_iterations=settings.max_iterations,
            partner=_partner(settings),
        )
        debugger.break_when(spec) if spec in ("nan", "inf") else _add_break(debugger, spec)
        stop = debugger.continue_(until=settings.most_moves)
    except StepperError:
        return None, 0
    if stop.reason is not Reason.BREAK:
        return None, stop.tick
    layer_type = "" if stop.done is None else stop.done.layer.type
    what = "" if stop.cause is None else type(stop.cause).__name__
    if isinstance(stop.cause, NonFinite):
        # One that an operation bears is not to become one that a Constant has.
        what = f"{stop.cause.kind}: {'given' if stop.cause.given else stop.cause.arithmetic}"
    said = "" if stop.cause is None else sentences(stop.cause)[0]
    is_seen, moves = False, stop.tick
    if spec in ("nan", "inf"):
        is_seen, moves = _seen(model, arrays, settings, stop.tick)
    return FoundFault(FaultKind.STOP, "stepper", what, layer_type, said, is_seen=is_seen), moves


def _seen(model: Model, arrays: Arrays, settings: RunSettings, tick: int) -> tuple[bool, int]:
    """Return whether outputs of the run are not finite, and its moves; those to the stop where it does not end."""
    longest = min(settings.most_moves, _TIMES_LONGER * tick + _FURTHER_MOVES)
    try:
        outputs, moves, _skips = _outputs(model, arrays, replace(settings, most_moves=longest))
    except StepperError:
        return False, tick
    return not all(map(is_finite, outputs)), moves


def _add_break(debugger: Debugger, spec: str) -> None:
    from stepper.debug.breakpoints.data_breakpoints import break_description

    debugger.breakpoints.add(break_description(spec))


def _error(error: StepperError, path: str) -> FoundFault:
    """Return the fault of an error of ours, with the name that the file will have."""
    text = str(error).replace(path, "model.xml")
    layer = None if error.place is None else error.place.layer
    return FoundFault(FaultKind.ERROR, "stepper", type(error).__name__, "" if layer is None else layer.type, text)


def _beside_openvino(model: Model, arrays: Arrays, expected: Arrays, settings: RunSettings) -> Found:
    given = _from_openvino(model, arrays, settings)
    if isinstance(given, Exception):
        places = _PLACE.findall(str(given))  # from the outside inwards: the first are the same for every refusal
        what = places[-1] if places else complaint(given)[:60]
        return FoundFault(FaultKind.REFUSED, "OpenVINO", what, message=complaint(given)), expected, ()
    return _difference(expected, given, "OpenVINO", settings.tolerances(exact=False)), expected, given


def _from_openvino(model: Model, arrays: Arrays, settings: RunSettings) -> Arrays | RuntimeError | KernelError:
    """Return what OpenVINO computes, or its refusal. MemoryError where it needs more than a trial may use."""
    try:
        return CompiledText(_runtime(settings), native_text.whole(model))(*arrays)
    except (RuntimeError, KernelError) as error:
        if is_out_of_memory(error):  # the limit is ours
            raise MemoryError from None
        return error


@cache
def _runtime(settings: RunSettings) -> Runtime:
    return Runtime(settings.device, settings.precision, settings.extensions)


_NO_KERNEL = ("Input", "Output", "Const", "Parameter", "Result", "Constant")


def _kernels(act: NameKernels) -> Iterator[ChosenKernel]:
    """Yield the nodes of the model as OpenVINO has compiled it, but for those that compute nothing."""
    runtime = _runtime(act.settings)
    try:
        found = runtime.core.compile_model(act.path, runtime.device, {"INFERENCE_PRECISION_HINT": runtime.precision})
        nodes = found.get_runtime_model().get_ordered_ops()
    except RuntimeError:
        return
    for node in nodes:
        said = {name: str(node.get_rt_info()[name].value) for name in _FACTS if name in node.get_rt_info()}
        kind = said.get("layerType", "")
        if kind and kind not in _NO_KERNEL:
            yield ChosenKernel(kind, said.get("primitiveType", ""), said.get("originalLayersNames", ""))


_FACTS = ("layerType", "primitiveType", "originalLayersNames")


def _difference(expected: Arrays, given: Arrays, program: str, tolerances: Tolerances) -> FoundFault | None:
    """Return the largest disagreement; numbers of ours that are not finite count as none."""
    worst: FoundFault | None = None
    for index, (ours, theirs) in enumerate(zip(expected, given, strict=False)):
        distance = measure(np.asarray(ours), np.asarray(theirs), tolerances.of(None, ours))
        if distance is None or not distance.differs:
            continue
        if distance.problem:
            found = FoundFault(FaultKind.SHAPES, program, "", message=distance.problem, output=index)
        else:
            what = "not finite" if not is_finite(ours) else "numbers" if is_finite(theirs) else "not a number"
            text = f"{distance.outside} of {distance.size} elements differ, by up to {distance.absolute:.6g}"
            found = FoundFault(FaultKind.VALUES, program, what, "", text, float(distance.ratio), index)
        if worst is None or (worst.what == "not finite", -worst.ratio) > (found.what == "not finite", -found.ratio):
            worst = found
    if len(expected) != len(given):
        return FoundFault(FaultKind.SHAPES, program, "", message=f"{len(given)} outputs against {len(expected)}")
    return worst


def _observed(act: ObserveValues, arrays: Arrays) -> tuple[ObservedFacts, Arrays]:
    """Return the values of all operations; as far as the run comes where it fails."""
    model = read(act.path)
    compiled = _compiled(model, act.settings)
    log = log_values(compiled, bind_inputs(model, dict(enumerate(arrays))), act.settings)[0]
    others = {key: value for key, value in log.last.items() if value is not log.first[key]}
    keys = [*log.first, *(replace(key, is_last=True) for key in others)]
    return ObservedFacts(tuple(keys)), [*log.first.values(), *others.values()]


def main() -> None:
    """Serve until the other side is gone; a child for each crash has what is loaded here."""
    if WITH_OPENVINO in os.environ and is_installed():
        import openvino

        assert openvino
    serve(TrialService, in_children=True)
