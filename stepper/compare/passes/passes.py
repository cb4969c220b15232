"""Which of OpenVINO's transformations changes what a model computes: `first_change`.

The model is run by our own engine before any pass and after each one, on the same inputs; outputs, loops' outputs,
shapes and iterations are held against those of the model before any pass. Passes after which nothing changed in the
file are not run; those after which the model has operations of the plugin's own, which nobody but it can run, are told.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from stepper.compare.passes.plugin_operations import PluginOperations, make_readable
from stepper.compare.run.metrics import measure
from stepper.element_types import Array, is_floating
from stepper.engine.compilation.compiler import compile_model
from stepper.engine.events import Every, LoopEndObserver
from stepper.engine.frames import Activation, Frame
from stepper.engine.inputs.binding import bind_inputs
from stepper.engine.inputs.variables import bind_states, variables_alone, variables_of
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, output_names
from stepper.errors import LimitReached, StepperError
from stepper.ir.model import Model, parameter_type
from stepper.ir.reader import read
from stepper.openvino.pass_trace import TracedPass, traced_passes
from stepper.ops.operands import shape_text
from stepper.tensors.number_text import number_text
from stepper.tensors.tolerances import EXACT, OTHER_KERNELS, Tolerance

_CHUNK: Final = 2**20


class PassEffect(StrEnum):
    """Effect of a pass on the model."""

    SAME_FILE = "unchanged"
    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_RUN = "cannot be run"


class PassReport(Struct, frozen=True):
    """One pass: its number and name as the runtime has them, the verdict, and what is to be said about it.

    `distance` is the largest difference of an output from that of the model before any pass.
    """

    number: int
    name: str
    verdict: PassEffect
    details: tuple[str, ...] = ()
    distance: float = 0.0


class PassRun(Struct):
    """Results of one run of the model: outputs by name; loops' iterations and their outputs by path."""

    outputs: dict[str, Array]
    iterations: dict[str, int]
    loop_values: dict[tuple[str, str], Array] = field(default_factory=dict)


def pass_reports(
    model: Model,
    inputs: Sequence[Array],
    device: str = "CPU",
    precision: str = "f32",
    rules: Rules = Rules.SPEC,
    tolerance: Tolerance | None = None,
    max_iterations: int | None = None,
    timeout: float | None = None,
    states: Mapping[str, Any] | None = None,
) -> Iterator[PassReport]:
    """Yield a report for each pass over the model, in order, while OpenVINO compiles it in another process.

    `inputs` are arrays in the order of the model's Parameters, `states` what variables begin with. Raises what running
    the model itself raises, ExecutionError where OpenVINO refuses the model or crashes, LimitReached where no pass
    comes within `timeout` seconds.
    """
    judge = PassJudge(model, inputs, rules, tolerance, max_iterations, states)
    content, report = b"", PassReport(0, "", PassEffect.EQUAL)
    for traced in traced_passes(model.path, device, precision, timeout):
        seen = _hash(traced.path)
        if seen == content:
            same = report.verdict if report.verdict is PassEffect.NOT_RUN else PassEffect.SAME_FILE
            report = PassReport(traced.number, traced.name, same, report.details, report.distance)
            yield report
            continue
        judged = judge.report(traced)
        if judged is None:
            continue  # a pass over a body, or over a piece of the model
        content, report = seen, judged
        yield report


class PassJudge:
    """Runs the model as it is after a pass, and says what the pass has done to its results.

    Raises what running the model before any pass raises.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[Array],
        rules: Rules = Rules.SPEC,
        tolerance: Tolerance | None = None,
        max_iterations: int | None = None,
        states: Mapping[str, Any] | None = None,
    ) -> None:
        self._inputs, self._states, self._interface = inputs, states, _interface(model)
        self._tolerance = tolerance or OTHER_KERNELS["f32"]
        self._baseline = _run(model, inputs, _Limits(rules, max_iterations), states)
        self._limits = _Limits(rules, _enough(self._baseline) if max_iterations is None else max_iterations)

    def report(self, traced: TracedPass) -> PassReport | None:
        """Return the effect of a pass; None where it is over another model."""
        judged = self._judged(traced.path)
        return None if judged is None else PassReport(traced.number, traced.name, *judged)

    def _judged(self, path: Path) -> Judged | None:
        try:
            make_readable(path)
            model = read(path)
            if _interface(model) != self._interface:
                return None
            found = _run(model, _retyped(model, self._inputs), self._limits, _retyped_states(model, self._states))
        except LimitReached as error:
            return PassEffect.DIFFERENT, (f"it goes on where the model had ended: {error}",), 0.0
        except StepperError as error:
            return PassEffect.NOT_RUN, (str(error).removeprefix(f"{path}:"),), 0.0
        details, distance = differences(self._baseline, found, self._tolerance)
        return (PassEffect.DIFFERENT if details else PassEffect.EQUAL), tuple(details), distance


def runtime_difference(
    model: Model,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    rules: Rules = Rules.SPEC,
    tolerance: Tolerance | None = None,
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Return in which outputs the runtime's own run of the whole model differs from ours, in words."""
    ours = _run(model, inputs, _Limits(rules, max_iterations), states)
    theirs = PassRun(dict(zip(ours.outputs, outputs, strict=True)), {})
    return tuple(differences(ours, theirs, tolerance or OTHER_KERNELS["f32"])[0])


class _Limits(Struct, frozen=True):
    rules: Rules
    max_iterations: int | None


def _enough(baseline: PassRun) -> int:
    """Return the iterations that a loop is let run after a pass: a pass may have lost what ends it."""
    return 1000 + 10 * max(baseline.iterations.values(), default=0)


Interface = tuple[list[str], int]
Judged = tuple[PassEffect, tuple[str, ...], float]


def _interface(model: Model) -> Interface:
    """Return what tells the model from a body of it: the names of its inputs, the number of its outputs."""
    return [parameter.name for parameter in model.graph.parameters], len(model.graph.results)


def _retyped(model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Return the inputs in the element types that a pass gave the Parameters; values that it loses are its doing."""
    found = []
    for parameter, array in zip(model.graph.parameters, inputs, strict=True):
        element_type = parameter_type(parameter)
        found.append(array if element_type is None else np.asarray(array).astype(element_type.dtype))
    return found


def _retyped_states(model: Model, states: Mapping[str, Any] | None) -> dict[str, Array]:
    """Return the variables that a pass left in the model, in the element types that it gave them."""
    types = {variable.name: variable.element_type for variable in variables_of(model)}
    values = variables_alone(model, states)
    return {
        name: value if (kind := types[name]) is None else value.astype(kind.dtype) for name, value in values.items()
    }


def _run(model: Model, inputs: Sequence[Array], limits: _Limits, states: Mapping[str, Any] | None) -> PassRun:
    compiled = compile_model(model, limits.rules, PluginOperations())
    machine = Machine(
        compiled,
        bind_inputs(model, dict(enumerate(inputs))),
        states=bind_states(compiled, states),
        max_iterations=limits.max_iterations,
        keep_values=False,
    )
    log, ran = LoopLog(), PassRun({}, {})

    def ended(stack: Sequence[Frame], activation: Activation) -> None:
        log.loop_left(stack, activation)
        ran.loop_values.update(_loop_values(stack[-1], activation))

    machine.observers = (LoopEndObserver(ended),)
    for _event in machine.run(Every.END):
        pass
    assert machine.outputs is not None, "the machine has finished"
    ran.outputs = dict(zip(output_names(model), machine.outputs, strict=True))
    ran.iterations = {summary.path: summary.iterations for summary in log.summaries}
    return ran


def _loop_values(outer: Frame, activation: Activation) -> dict[tuple[str, str], Array]:
    """Return the outputs of a loop's last execution, by the loop's path and the Results of the body."""
    plan, operation = activation.plan, activation.operation
    assert isinstance(plan, LoopPlan), "only loops are told of"
    program = plan.program
    path = f"{outer.program.name} > {operation.layer.type} '{operation.layer.name}'"
    found = {}
    for entry, kind in [(e, "last") for e in plan.last_values] + [(e, "all") for e in plan.concatenated]:
        if entry.output is not None:
            result = program.graph.results[program.results.index(entry.result)]
            value = outer.values[operation.outputs[entry.output]]
            found[path, f"{kind} of '{result.name}'"] = np.asarray(value)
    return found


def differences(before: PassRun, after: PassRun, tolerance: Tolerance) -> tuple[list[str], float]:
    """Return in which outputs, loops and iterations two runs differ, and the largest difference of an output."""
    found, largest = [], 0.0
    for path, count in before.iterations.items():
        if path in after.iterations and after.iterations[path] != count:
            found.append(f"{path.removeprefix('model > ')}: {after.iterations[path]} iterations instead of {count}")
    for (path, what), value in before.loop_values.items():
        if (path, what) in after.loop_values:
            text, _distance = _difference(value, after.loop_values[path, what], tolerance)
            found += [f"{path.removeprefix('model > ')}, {what}: {text}"] if text else []
    pairs = zip(before.outputs.items(), after.outputs.values(), strict=False)
    for (name, value), other in pairs:
        text, distance = _difference(value, other, tolerance)
        largest = max(largest, distance)
        found += [f"output '{name}': {text}"] if text else []
    if len(before.outputs) != len(after.outputs):
        found.append(f"{len(after.outputs)} outputs instead of {len(before.outputs)}")
    return found, largest


def _difference(before: Array, after: Array, tolerance: Tolerance) -> tuple[str, float]:
    """Return what is wrong with `after` and the largest difference. A scalar and one of shape [1] are alike."""
    if before.shape != after.shape and (before.size != 1 or after.size != 1):
        return f"shape {shape_text(after.shape)} instead of {shape_text(before.shape)}", 0.0
    found = measure(after.reshape(before.shape), before, tolerance if is_floating(before.dtype) else EXACT)
    if found is None or found.problem:
        return "" if found is None else found.problem, 0.0
    distance = found.absolute if math.isfinite(found.absolute) else 0.0
    if not found.differs:
        return "", distance
    worst = f"{number_text(found.ours, 7)} instead of {number_text(found.theirs, 7)}"
    where = f", the worst at {list(found.index)}" if found.size > 1 else ""
    return f"{found.outside} of {found.size} elements differ{where}: {worst}", distance


def _hash(path: Path) -> bytes:
    digest = hashlib.blake2b()
    for file in (path, path.with_suffix(".bin")):
        if file.is_file():
            with file.open("rb") as content:
                while chunk := content.read(_CHUNK):
                    digest.update(chunk)
    return digest.digest()


def counts(reports: Sequence[PassReport]) -> Mapping[str, int]:
    """Return how many passes have each verdict."""
    found: dict[str, Any] = {str(verdict): 0 for verdict in PassEffect}
    for report in reports:
        found[str(report.verdict)] += 1
    return found
