"""Reasons for a difference of the runtime's own run, found by running it once more, otherwise.

Two kinds of trial: the model changed without a change of its meaning, where it has what a known fault of the runtime
needs; and the model compiled with a property that switches a part of the plugin off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from stepper.compare.file_differences import graph_paths
from stepper.compare.observations import OutputComparison
from stepper.compare.references.protocol import RepeatableRun
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.errors import KernelError, StepperError
from stepper.ir.model import Graph, Layer, Model, Source
from stepper.plain_values import storable
from stepper.records import Record
from stepper.tensors.difference import measure
from stepper.tensors.tolerances import Tolerance, Tolerances

if TYPE_CHECKING:
    from stepper.openvino.runtime import NativeText


# --- The first iteration that another runtime computes otherwise, found by running a loop less often -----------------
#
# Nothing is changed in the body, so that the runtime fuses what it fuses in the whole model; both sides run the model
# up to the loop with the smaller count, and that number of iterations is halved in.


_JUMP: Final = 100.0
"""How many times further apart one iteration more takes the outputs where it is the one to blame."""

_MOST_RUNS: Final = 24


class LoopBisection(Record):
    """A loop's outputs agree where it runs `iteration` iterations, and differ where it runs one more.

    `before` and `after` are the largest distances of an element then, relative to the largest element of its output;
    `runs` is how often each side was run.
    """

    loop: Layer
    iteration: int
    before: float
    after: float
    runs: int

    @property
    def is_gradual(self) -> bool:
        """True if the distance grows from iteration to iteration, so that no single one is to blame."""
        return self.before > 0 and self.after < _JUMP * self.before


def bisect(
    compiled: CompiledModel,
    inputs: Sequence[Array],
    loop: Layer,
    iterations: int,
    reference: RepeatableRun,
    tolerances: Tolerances,
    states: Mapping[str, Any] | None = None,
) -> LoopBisection | None:
    """Return the first iteration of a loop of the main graph that the reference computes otherwise.

    The loop ran `iterations`; `states` are what variables begin with, on both sides.
    None where all agree, where a side cannot run the loop less often, or where the first differs already in nothing
    that a loop gives out.
    """
    with tempfile.TemporaryDirectory(prefix="stepper-") as folder:
        trial = _LoopTrial(compiled, inputs, loop, reference, tolerances, Path(folder), states)
        try:
            low, high, before = 0, iterations, 0.0
            after = trial.distance(high)
            if after is None:
                return None
            while high - low > 1 and trial.runs < _MOST_RUNS:
                middle = (low + high) // 2
                found = trial.distance(middle)
                if found is None:
                    low, before = middle, trial.last
                else:
                    high, after = middle, found
        except (StepperError, KernelError):
            return None
    return LoopBisection(loop, high - 1, before, after, trial.runs) if high - low == 1 else None


class _LoopTrial:
    def __init__(
        self,
        compiled: CompiledModel,
        inputs: Sequence[Array],
        loop: Layer,
        reference: RepeatableRun,
        tolerances: Tolerances,
        folder: Path,
        states: Mapping[str, Any] | None,
    ) -> None:
        self._compiled, self._inputs, self._loop, self._reference = compiled, inputs, loop, reference
        self._tolerances, self._folder, self._states = tolerances, folder, states
        self.runs, self.last = 0, 0.0

    def distance(self, count: int) -> float | None:
        """Return the outputs' distance after so many iterations; None within the tolerance (then `last` has it)."""
        from stepper.openvino import native_text

        self.runs += 1
        model = native_text.shortened(self._compiled.model, self._loop, count, self._folder)
        given = list(self._inputs)
        if len(model.graph.parameters) > len(given):
            given.append(np.zeros(count, np.uint8))
        theirs = self._reference.run_changed(native_text.whole(model), given)
        machine = Machine(
            compile_model(model, self._compiled.rules),
            bind_inputs(model, dict(enumerate(given))),
            states=self._states,
            keep_values=False,
        )
        while not machine.finished:
            machine.advance(Every.END)
        differs, self.last = False, 0.0
        for ours, other in zip(machine.outputs or (), theirs, strict=True):
            is_off, apart = _apart(np.asarray(ours), other, self._tolerances.of(None, other))
            differs, self.last = differs or is_off, max(self.last, apart)
        return self.last if differs else None


def _apart(ours: Array, theirs: Array, tolerance: Tolerance) -> tuple[bool, float]:
    """Return True if two outputs differ, and how far they are apart relative to the largest element."""
    with np.errstate(all="ignore"):
        wide = np.abs(storable(theirs).astype(np.float64))
        largest = float(np.max(wide, initial=0.0, where=np.isfinite(wide)))
    found = measure(ours, theirs, tolerance, np.asarray(largest * tolerance.relative / 10))
    if found is None:
        return False, 0.0
    return found.differs, found.absolute / largest if largest else found.absolute


# ---------------------------------------------------------------------------------------------------------------------


T = TypeVar("T")

OPENVINO_VERSION: Final = "2026.4.1"
"""The release with which each fault was seen."""


class ExplanationKind(StrEnum):
    """Which part of the runtime makes the difference."""

    SHARED_CONSTANT = "shared square constant"
    UNUSED_SLICES = "unused sliced inputs"
    DYNAMIC_QUANTIZATION = "dynamic quantisation"
    LOW_PRECISION = "low-precision transformations"
    BOTH_QUANTISATIONS = "dynamic quantisation and low-precision transformations"
    SNIPPETS = "generated kernels"


class RuntimeExplanation(Record):
    """Change that makes the runtime's outputs agree with ours, or come closer to them.

    `path` are the loops and Ifs around `layers`, the operations concerned: of SHARED_CONSTANT the two MatMuls and the
    Constant, of UNUSED_SLICES the loop; else there are none. `properties` are those of the compilation. `outputs` are
    how far those of the trial are from ours, `agrees` whether all are within the tolerance. `iterations` are those that
    the runtime made of UNUSED_SLICES, and those of ours.
    """

    reason: ExplanationKind
    agrees: bool
    outputs: tuple[OutputComparison, ...]
    properties: Mapping[str, str] = {}
    path: tuple[Layer, ...] = ()
    layers: tuple[Layer, ...] = ()

    @property
    def is_fault(self) -> bool:
        """True if it is a fault of the runtime rather than a loss of precision that it is asked for."""
        return self.reason in (ExplanationKind.SHARED_CONSTANT, ExplanationKind.UNUSED_SLICES, ExplanationKind.SNIPPETS)


_DYNAMIC: Final = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_LOW: Final = {"LP_TRANSFORMS_MODE": "OFF"}
QUANTISED_TRIALS: Final = (
    (ExplanationKind.DYNAMIC_QUANTIZATION, _DYNAMIC),
    (ExplanationKind.LOW_PRECISION, _LOW),
    (ExplanationKind.BOTH_QUANTISATIONS, {**_DYNAMIC, **_LOW}),
)
USUAL_TRIALS: Final = ((ExplanationKind.SNIPPETS, {"SNIPPETS_MODE": "DISABLE"}),)
_NARROW: Final = frozenset(
    {"i4", "u4", "i8", "u8", "u1", "u2", "u3", "u6", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0"}
)
_CLOSER: Final = 0.1
"""A trial that does not agree explains something where it leaves at most so much of the distance."""


def explain(
    model: Model,
    reference: RepeatableRun,
    before: Sequence[OutputComparison],
    compared: Callable[[Mapping[int, Array]], Sequence[OutputComparison]],
) -> RuntimeExplanation | None:
    """Return why the runtime's outputs are not ours; None where no trial tells.

    `before` is how far they are, `compared` measures those of a trial.
    """
    closest: RuntimeExplanation | None = None
    for (reason, path, layers, _text, properties), outputs in _one_ahead(_begun(model, reference)):
        try:
            found = tuple(compared(dict(enumerate(outputs()))))
        except (StepperError, KernelError):
            continue
        agrees = not any(one.differs for one in found)
        explanation = RuntimeExplanation(reason, agrees, found, properties, path, layers)
        if agrees:
            return explanation
        if _is_closer(found, before if closest is None else closest.outputs):
            closest = explanation
    return closest


def _is_closer(outputs: Sequence[OutputComparison], before: Sequence[OutputComparison]) -> bool:
    """True if little is left of the largest distance, or of the elements that are outside of the tolerance."""
    pairs = [[one.measure for one in found if one.measure is not None] for found in (outputs, before)]
    distances = [max((one.absolute for one in found), default=0.0) for found in pairs]
    counts = [sum(one.outside for one in found) for found in pairs]
    return distances[0] < _CLOSER * distances[1] or counts[0] < _CLOSER * counts[1]


_Trial = tuple[ExplanationKind, tuple[Layer, ...], tuple[Layer, ...], "NativeText | None", Mapping[str, str]]


def _begun(model: Model, reference: RepeatableRun) -> Iterator[tuple[_Trial, Callable[[], Sequence[Array]]]]:
    """Yield the trials, each when it has begun."""
    for trial in _trials(model):
        _reason, _path, _layers, text, properties = trial
        try:
            outputs = reference.begin_again(text, properties)
        except (StepperError, KernelError):
            continue
        yield trial, outputs


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield each when the next one is known."""
    for item, _next in pairwise(chain(items, (None,))):
        assert item is not None
        yield item


def _trials(model: Model) -> Iterator[_Trial]:
    from stepper.openvino import native_text

    for path, graph in graph_paths(model):
        if any(step.layer.opened_from is not None for step in path):
            continue  # the file has no such graph
        loops, place = tuple(step.layer for step in path), [(step.layer.id, str(step.role)) for step in path]
        for layers in shared_constants(graph):
            yield ExplanationKind.SHARED_CONSTANT, loops, layers, native_text.unshared(model, place, layers[1].id), {}
        for layer in unused_slices(graph):
            text = native_text.with_used_slices(model, [*place, (layer.id, "body")])
            yield ExplanationKind.UNUSED_SLICES, loops, (layer,), text, {}
    for reason, properties in (*(QUANTISED_TRIALS if is_quantised(model) else ()), *USUAL_TRIALS):
        yield reason, (), (), None, properties


def shared_constants(graph: Graph) -> list[tuple[Layer, ...]]:
    """Return pairs of MatMuls that share one square constant, which one of them transposes; with the Constant.

    OpenVINO 2026.4.1 packs a constant once for all that read it, and tells packed ones apart by type and size alone:
    of a square matrix the transposed one has the same.
    """
    by_source: dict[Source, list[Layer]] = {}
    for layer in graph.layers:
        sources = graph.sources[layer.id]
        if layer.type == "MatMul" and len(sources) == 2 and sources[1] is not None:
            by_source.setdefault(sources[1], []).append(layer)
    found: list[tuple[Layer, ...]] = []
    for source, layers in by_source.items():
        constant = _constant_behind(graph, graph.by_id[source.layer])
        dims = graph.by_id[source.layer].outputs[source.output].dims
        if constant is None or len(dims) < 2 or dims[-1] != dims[-2]:
            continue
        for index, layer in enumerate(layers):
            other = next((one for one in layers[:index] if _transposes(one) != _transposes(layer)), None)
            if other is not None:
                found.append((other, layer, constant))
    return found


def _transposes(layer: Layer) -> bool:
    return layer.is_set("transpose_b")


def _constant_behind(graph: Graph, layer: Layer) -> Layer | None:
    """Return the Constant that a layer is, or converts."""
    if layer.type == "Convert" and (source := graph.sources[layer.id][0]) is not None:
        layer = graph.by_id[source.layer]
    return layer if layer.type == "Constant" else None


def unused_slices(graph: Graph) -> list[Layer]:
    """Return the loops that have sliced inputs, of which their bodies use none.

    OpenVINO's pass EliminateLoopInputsOutputs drops such inputs, and with the last one what gives a TensorIterator its
    number of iterations.
    """
    found = []
    for layer in graph.layers:
        if not layer.is_loop or layer.opened_from is not None:
            continue
        body = layer.bodies[0]
        sliced = [entry.parameter for entry in body.inputs if entry.slicing is not None]
        read = {source.layer for sources in body.graph.sources.values() for source in sources if source is not None}
        if sliced and not any(parameter in read for parameter in sliced):
            found.append(layer)
    return found


def is_quantised(model: Model) -> bool:
    """True if the model quantises values as it runs, or keeps weights in a narrow type."""
    for _path, graph in model.graphs():
        for layer in graph.layers:
            if layer.type in ("FakeQuantize", "FakeConvert"):
                return True
            if layer.type == "Convert" and (constant := _constant_behind(graph, layer)) is not None:
                type = constant.outputs[0].element_type
                if type is not None and type.name in _NARROW:
                    return True
    return False
