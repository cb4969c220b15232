"""Reasons for a difference of the runtime's own run, found by running it once more, otherwise.

Two kinds of trial: the model changed without a change of its meaning, where it has what a known fault of the runtime
needs; and the model compiled with a property that switches a part of the plugin off.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from msgspec import json

from stepper.compare.file_differences import graph_paths
from stepper.compare.observations import LoopRecord, OutputComparison
from stepper.compare.references.openvino import OpenVINOReference
from stepper.element_types import Array, is_floating
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner, default_partner
from stepper.errors import KernelError, StepperError
from stepper.ir.model import CURRENT_ITERATION, Graph, Layer, Model, Source
from stepper.ops.registry import find
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


_JUMP = 100.0
"""How many times further apart one iteration more takes the outputs where it is the one to blame."""

_MOST_RUNS = 24


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
    reference: OpenVINOReference,
    tolerances: Tolerances,
    states: Mapping[str, Any] | None = None,
) -> LoopBisection | None:
    """Return the first iteration of a loop of the main graph that the reference computes otherwise.

    The loop ran `iterations`; `states` are what variables begin with, on both sides.
    None where all agree, where a side cannot run the loop less often, or where the first differs already in nothing
    that a loop gives out.
    """
    from stepper.openvino import native_text

    runs, last = 0, 0.0

    def distance(count: int, folder: Path) -> float | None:
        """Return the outputs' distance after so many iterations; None within the tolerance (then `last` has it)."""
        nonlocal runs, last
        runs += 1
        model = native_text.shortened(compiled.model, loop, count, folder)
        given = list(inputs)
        if len(model.graph.parameters) > len(given):
            given.append(np.zeros(count, np.uint8))
        theirs = reference.run_changed(native_text.whole(model), given)
        bound = bind_inputs(model, dict(enumerate(given)))
        machine = Machine(compile_model(model, compiled.rules), bound, states=states, keep_values=False)
        machine.advance(Every.END)
        pairs = zip(machine.outputs or (), theirs, strict=True)
        found = [_apart(np.asarray(ours), other, tolerances.of(None, other)) for ours, other in pairs]
        last = max((apart for _is_off, apart in found), default=0.0)
        return last if any(is_off for is_off, _apart in found) else None

    low, high, before = 0, iterations, 0.0
    with tempfile.TemporaryDirectory(prefix="stepper-") as name:
        try:
            after = distance(high, Path(name))
            if after is None:
                return None
            while high - low > 1 and runs < _MOST_RUNS:
                middle = (low + high) // 2
                found = distance(middle, Path(name))
                if found is None:
                    low, before = middle, last
                else:
                    high, after = middle, found
        except (StepperError, KernelError):
            return None
    return LoopBisection(loop, high - 1, before, after, runs) if high - low == 1 else None


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


class ExplanationKind(StrEnum):
    """Part of the runtime that makes the difference."""

    SHARED_CONSTANT = "shared square constant"
    UNUSED_SLICES = "unused sliced inputs"
    UNREAD_OUTPUT = "unread output of a shared Result"
    COUNTER_AFTER_CONSTANT = "counter after a Constant"
    COUNTER_AFTER_OTHERS = "counter after other Parameters"
    NO_ITERATION = "loop of no iteration"
    DYNAMIC_QUANTIZATION = "dynamic quantisation"
    LOW_PRECISION = "low-precision transformations"
    BOTH_QUANTISATIONS = "dynamic quantisation and low-precision transformations"
    CACHE_IN_EIGHT_BITS = "key-value cache in eight bits"
    SNIPPETS = "generated kernels"


class DescribedFault(Record):
    """A known fault of the runtime: what is wrong, where in the runtime, and the version in which it was seen."""

    id: str
    what: str
    where: str
    versions: str = "2026.4.1"


CATALOGUE = Path(__file__).with_name("runtime_faults.json")
"""The known faults, each with the signatures by which a hunt recognises it."""


@cache
def described_fault(id: str) -> DescribedFault:
    """Return a fault of the catalogue."""
    faults = json.decode(CATALOGUE.read_bytes(), type=tuple[DescribedFault, ...])
    return next(one for one in faults if one.id == id)


class FaultTrial(NamedTuple):
    """A fault that a trial shows: its id in the catalogue, and what the trial changes."""

    fault: str
    change: str


FAULT_TRIALS: Mapping[ExplanationKind, FaultTrial] = {
    ExplanationKind.SHARED_CONSTANT: FaultTrial("square-constant-shared", "a copy of the constant"),
    ExplanationKind.UNUSED_SLICES: FaultTrial("sliced-inputs-unread", "the slices used"),
    ExplanationKind.UNREAD_OUTPUT: FaultTrial("dangling-results", "all outputs read"),
    ExplanationKind.COUNTER_AFTER_CONSTANT: FaultTrial("counter-after-a-constant", "the counter first"),
    ExplanationKind.COUNTER_AFTER_OTHERS: FaultTrial("counter-after-an-unneeded-parameter", "the counter first"),
    ExplanationKind.NO_ITERATION: FaultTrial("no-iteration", "the states read by the body"),
}


class RuntimeExplanation(Record):
    """Change that makes the runtime's outputs agree with ours, or come closer to them.

    `path` are the loops and Ifs around `layers`, the operations concerned: of SHARED_CONSTANT the two MatMuls and the
    Constant, of faults of a loop that loop; else there are none. `properties` are those of the compilation. `outputs`
    are how far those of the trial are from ours (none: there was no trial), `agrees` whether all are within the
    tolerance.
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
        return bool(self.layers) or self.reason is ExplanationKind.SNIPPETS


_DYNAMIC = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_LOW = {"LP_TRANSFORMS_MODE": "OFF"}
QUANTISED_TRIALS = (
    (ExplanationKind.DYNAMIC_QUANTIZATION, _DYNAMIC),
    (ExplanationKind.LOW_PRECISION, _LOW),
    (ExplanationKind.BOTH_QUANTISATIONS, {**_DYNAMIC, **_LOW}),
)
CACHE_TRIALS = ((ExplanationKind.CACHE_IN_EIGHT_BITS, {"KV_CACHE_PRECISION": "f32"}),)
USUAL_TRIALS = ((ExplanationKind.SNIPPETS, {"SNIPPETS_MODE": "DISABLE"}),)
_CLOSER = 0.1
"""A trial that does not agree explains something where it leaves at most so much of the distance."""


def explain(
    model: Model,
    reference: OpenVINOReference,
    before: Sequence[OutputComparison],
    compared: Callable[[Mapping[int, Array]], Sequence[OutputComparison]],
    loops: Mapping[int, LoopRecord],
) -> RuntimeExplanation | None:
    """Return why the runtime's outputs are not ours; None where no trial tells.

    `before` is how far they are, `compared` measures those of a trial; `loops` are the runs of loops, by id().
    """
    empty = {key for key, record in loops.items() if any(not ours.iterations for ours, _theirs, _count in record.runs)}
    closest: RuntimeExplanation | None = None
    trials = (one for one in _trials(model, empty) if before or one[2])  # of a model that it refuses, faults alone
    for (reason, path, layers, _text, properties), outputs in _one_ahead(_begun(trials, reference)):
        try:
            found = tuple(compared(dict(enumerate(outputs()))))
        except (StepperError, KernelError):
            continue
        agrees = bool(found) and not any(one.differs for one in found)
        explanation = RuntimeExplanation(reason, agrees, found, properties, path, layers)
        if agrees:
            return explanation
        if _is_closer(found, before if closest is None else closest.outputs):
            closest = explanation
    return closest or _seen_without_a_trial(model, before, empty)


def _seen_without_a_trial(
    model: Model, outputs: Sequence[OutputComparison], empty: Set[int]
) -> RuntimeExplanation | None:
    """Return the fault of a loop of no iteration whose state is an output of the model: it is the initial value.

    With the states read OpenVINO may refuse such a loop.
    """
    for one, result in zip(outputs, model.graph.results, strict=False):
        source = model.graph.source(result.id)
        layer = model.graph.layer_of(source)
        if source is not None and one.differs and id(layer) in empty and _is_state(layer, source.output):
            return RuntimeExplanation(ExplanationKind.NO_ITERATION, False, (), layers=(layer,))
    return None


def _is_state(loop: Layer, output: int) -> bool:
    """Return True if an output of a loop is the last value of what a back edge carries."""
    (body,) = loop.bodies
    carried = {edge.from_layer for edge in body.back_edges}
    return any(one.output == output and one.slicing is None and one.result in carried for one in body.outputs)


def _is_closer(outputs: Sequence[OutputComparison], before: Sequence[OutputComparison]) -> bool:
    """True if little is left of the largest distance, or of the elements that are outside of the tolerance."""
    pairs = [[one.measure for one in found if one.measure is not None] for found in (outputs, before)]
    distances = [max((one.absolute for one in found), default=0.0) for found in pairs]
    counts = [sum(one.outside for one in found) for found in pairs]
    return distances[0] < _CLOSER * distances[1] or counts[0] < _CLOSER * counts[1]


_Trial = tuple[ExplanationKind, tuple[Layer, ...], tuple[Layer, ...], "NativeText | None", Mapping[str, str]]


def _begun(
    trials: Iterator[_Trial], reference: OpenVINOReference
) -> Iterator[tuple[_Trial, Callable[[], Sequence[Array]]]]:
    """Yield the trials, each when it has begun."""
    for trial in trials:
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


def _trials(model: Model, empty: Set[int]) -> Iterator[_Trial]:
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
        for layer in graph.layers:
            if not layer.is_loop or layer.opened_from is not None:
                continue
            for reason, is_due, change in (
                (ExplanationKind.UNREAD_OUTPUT, _has_half_read_result(graph, layer), native_text.with_read_outputs),
                (_counter_fault(graph, layer), _has_counter_behind(layer), native_text.with_first_counter),
                (ExplanationKind.NO_ITERATION, id(layer) in empty, native_text.with_read_states),
            ):
                if is_due:
                    yield reason, loops, (layer,), change(model, [*place, (layer.id, "body")]), {}
    has_cache = any(layer.type == "ScaledDotProductAttention" for _, graph in model.graphs() for layer in graph.layers)
    of_cache, of_weights = CACHE_TRIALS if has_cache else (), QUANTISED_TRIALS if is_quantised(model) else ()
    for reason, properties in (*of_cache, *of_weights, *USUAL_TRIALS):
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
            transposes = layer.is_set("transpose_b")
            other = next((one for one in layers[:index] if one.is_set("transpose_b") != transposes), None)
            if other is not None:
                found.append((other, layer, constant))
    return found


def _constant_behind(graph: Graph, layer: Layer) -> Layer | None:
    """Return the Constant that a layer is, or converts."""
    layer = graph.maker(layer) if layer.type == "Convert" else layer
    return layer if layer.type == "Constant" else None


def unused_slices(graph: Graph) -> list[Layer]:
    """Return the loops with sliced inputs whose bodies use none of the sliced inputs.

    OpenVINO's pass EliminateLoopInputsOutputs drops such inputs. With the last input the pass also drops the source of
    a TensorIterator's number of iterations.
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


def _has_half_read_result(graph: Graph, loop: Layer) -> bool:
    """Return True if a Result feeds several outputs of a loop, and one of them has no reader."""
    fed = Counter(entry.result for entry in loop.bodies[0].outputs if entry.output is not None)
    read = {source for sources in graph.sources.values() for source in sources}
    shared = [entry.output for entry in loop.bodies[0].outputs if fed[entry.result] > 1]
    return any(output is not None and Source(loop.id, output) not in read for output in shared)


def _has_counter_behind(loop: Layer) -> bool:
    """Return True if another Parameter of the body comes before current_iteration."""
    body = loop.bodies[0]
    return any(
        entry.purpose == CURRENT_ITERATION and entry.parameter != body.graph.parameters[0].id for entry in body.inputs
    )


def _counter_fault(graph: Graph, loop: Layer) -> ExplanationKind:
    """Return which fault a counter has that is not the first Parameter: a Constant may go into the body before it."""
    given = (entry.input for entry in loop.bodies[0].inputs if entry.input is not None and entry.slicing is None)
    is_constant = any(graph.layer_of(graph.sources[loop.id][place]).type == "Constant" for place in given)
    return ExplanationKind.COUNTER_AFTER_CONSTANT if is_constant else ExplanationKind.COUNTER_AFTER_OTHERS


def is_quantised(model: Model) -> bool:
    """True if the model quantises values as it runs, or keeps weights in a narrow type."""
    for _path, graph in model.graphs():
        for layer in graph.layers:
            if layer.type in ("FakeQuantize", "FakeConvert"):
                return True
            if layer.type == "Convert" and (constant := _constant_behind(graph, layer)) is not None:
                type = constant.outputs[0].element_type
                if type is not None and 0 < type.bits <= 8 and type.name != "boolean":
                    return True
    return False


# --- Steps: operations that make a last digit large, found by running our side again with other last digits -----------


_STEPS = frozenset(
    {
        *("Round", "Floor", "Ceiling", "Sign", "FakeQuantize", "TopK", "Bucketize", "Mod", "FloorMod", "Convert"),
        *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
    }
)
"""Types whose result jumps where an input passes a number; of Convert those from a float to an integer or a boolean."""
_LAST_DIGITS = 1e-5
"""How far an input is moved, of its largest number: a tenth of the tolerance of f32 between two kernels."""
_SHAKES = 3
_EXPLAINED = 0.3
"""Share of a difference that other last digits must make in our own run to be its reason."""


class FlippedStep(Record):
    """Describe an operation with elements that jumped when the last digits of its inputs changed.

    `flipped` of `size` elements jumped.
    """

    layer: Layer
    flipped: int
    size: int


class _Shaken:
    """A partner under which steps read floats with other last digits; all else is computed as before."""

    def __init__(self, before: Partner | None, seed: int) -> None:
        self._before, self._random = before, np.random.default_rng(seed)
        self.flipped: dict[int, FlippedStep] = {}

    @property
    def description(self) -> str:
        return "" if self._before is None else self._before.description

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        claimed = self._before is not None and self._before.computes(layer, has_kernel=has_kernel)
        return claimed or (has_kernel and layer.type in _STEPS)

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Callable[..., Any], str]:
        kernel = None if layer.definition is None else find(layer.type, layer.definition)
        if self._before is not None and self._before.computes(layer, has_kernel=kernel is not None):
            function, words = self._before.bind(layer, constants)
        else:
            assert kernel is not None, "it was claimed as a step"
            bound, words = kernel.bind(layer.attributes), ""
            function = bound if kernel.several_outputs else lambda *inputs: (bound(*inputs),)
        return (partial(self._stepped, layer, function), words) if layer.type in _STEPS else (function, words)

    def _stepped(self, layer: Layer, function: Callable[..., Any], *inputs: Any) -> Any:
        if not is_floating(inputs[0].dtype):
            return function(*inputs)
        exact = function(*inputs)
        if layer.type == "Convert" and is_floating(exact[0].dtype):
            return exact
        moved = function(self._moved(inputs[0]), *inputs[1:])
        pairs = zip(exact[-1:], moved[-1:], strict=True)  # of TopK the indices
        flipped = sum(int((a != b).sum()) if a.shape == b.shape else max(a.size, b.size) for a, b in pairs)
        before = self.flipped.get(id(layer), FlippedStep(layer, 0, 0))
        self.flipped[id(layer)] = FlippedStep(layer, before.flipped + flipped, before.size + exact[-1].size)
        return moved

    def _moved(self, value: Any) -> Any:
        with np.errstate(all="ignore"):
            wide = storable(value).astype(np.float64)
            largest = float(np.max(np.abs(wide), initial=0.0, where=np.isfinite(wide)))
            shift = self._random.uniform(-1, 1, value.shape) * largest * _LAST_DIGITS
            return np.asarray(wide + shift).astype(value.dtype)


def steps_to_blame(
    compiled: CompiledModel,
    inputs: Sequence[Array],
    states: Mapping[str, Any] | None,
    outputs: Sequence[OutputComparison],
    compared: Callable[[Mapping[int, Array]], Sequence[OutputComparison]],
    iterations: int,
) -> tuple[FlippedStep, ...]:
    """Return the steps by which other last digits move our own outputs about as far as they are from the reference's.

    The one that flips most stands first; none where `outputs` are further apart than that, or no step flips.
    `compared` measures other outputs beside ours, of a run in which each loop makes at most so many `iterations`.
    """
    layers = (layer for program in compiled.programs for layer in program.graph.layers)
    if not any(layer.type in _STEPS for layer in layers):
        return ()
    flipped: dict[int, FlippedStep] = {}
    moved = [0.0] * len(outputs)
    for seed in range(_SHAKES):
        shaken = _Shaken(default_partner(), seed)
        moving = compile_model(compiled.model, compiled.rules, shaken)
        machine = Machine(moving, inputs, max_iterations=iterations, states=states, keep_values=False)
        try:
            machine.advance(Every.END)
        except (StepperError, KernelError):
            return ()
        flipped = max(flipped, shaken.flipped, key=lambda one: sum(step.flipped for step in one.values()))
        distances = [one.measure for one in compared(dict(enumerate(machine.outputs or ())))]
        far = [0.0 if one is None else math.inf if one.problem else one.absolute for one in distances]
        moved = [max(pair) for pair in zip(moved, far, strict=True)]
    wanted = [(one.measure, how_far) for one, how_far in zip(outputs, moved, strict=True) if one.differs]
    if not all(one is not None and how_far >= _EXPLAINED * one.absolute > 0 for one, how_far in wanted):
        return ()
    return tuple(sorted((one for one in flipped.values() if one.flipped), key=lambda one: -one.flipped))
