"""Ways to compute in fewer bits, and the partner that computes so.

`check --as`: what fewer bits do to a run, the rules of that, and what has to stay in f32.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import repeat
from pathlib import Path
from threading import Timer
from typing import Any, Final, NamedTuple, TypeVar

import ml_dtypes
import numpy as np
from lxml import etree

from stepper.debug.debugger import Debugger
from stepper.diagnosis.check.subject import RunFinding, RunFindings, RunPlace, finding_of, shown
from stepper.diagnosis.rule import FINDERS, Finding, SubjectKind, found_by
from stepper.element_types import Array, is_floating, limits
from stepper.engine.compiler import compile_model, partner_in
from stepper.engine.frames import Event, EventKind, Every
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Partner, Program
from stepper.engine.run import output_names
from stepper.errors import StepperError, UsageError
from stepper.files.file_kinds import IR, IR_SUFFIX, IR_WEIGHTS, WEIGHTS_SUFFIX
from stepper.files.output import OutputFile, ProtectedFiles, writing_all
from stepper.ir.model import Graph, Layer, LayerSite, Model, layer_site
from stepper.ir.xml import line_of, parse
from stepper.openvino.partner import NUMPY_BF16, NUMPY_F16, OpenVINOPartner
from stepper.ops import registry
from stepper.ops.precision import EMULATED, rounded
from stepper.records import Record

# --- How far the outputs of a run are from those of the plain one ----------------------------------------------------


class Loss(Record):
    """Hold the loss of one output.

    `error` is the norm of the difference over the norm of the plain output.

    `error` is Inf if a finite float became non-finite, if integers, booleans or strings differ, or if shapes differ.
    """

    output: str
    error: float


def losses(names: Sequence[str], plain: Sequence[Array], narrow: Sequence[Array]) -> tuple[Loss, ...]:
    """Return what became of each output."""
    return tuple(
        Loss(name, math.inf if one.shape != other.shape else relative_error(one, other))
        for name, one, other in zip(names, plain, narrow, strict=True)
    )


def relative_error(plain: Array, narrow: Array) -> float:
    """Return the norm of the difference over the norm of the first array; 0 for empty arrays.

    Both arrays have one shape.
    """
    if not is_floating(plain.dtype):
        return 0.0 if np.array_equal(plain, narrow) else math.inf
    exact, rounded = plain.astype(np.float64), narrow.astype(np.float64)
    finite = np.isfinite(exact)
    if not np.isfinite(rounded[finite]).all() or not np.array_equal(exact[~finite], rounded[~finite], equal_nan=True):
        return math.inf
    size, distance = (float(np.linalg.norm(one)) for one in (exact[finite], rounded[finite] - exact[finite]))
    return 0.0 if distance == 0 else distance / size if size else math.inf


# ---------------------------------------------------------------------------------------------------------------------
# The smallest set with which something holds (delta debugging: A. Zeller and R. Hildebrandt, Simplifying and Isolating
#
# Failure-Inducing Input, IEEE Trans. Softw. Eng. 28(2), 2002, algorithm ddmin).


T = TypeVar("T")


def smallest(
    members: Sequence[T], holds: Callable[[Sequence[T]], bool], go_on: Callable[[], bool]
) -> tuple[tuple[T, ...], bool]:
    """Return a subset for which `holds` is true, and True if no member can be left out of it.

    `holds` must be true for all members; this is not checked. Ends early with the smallest subset so far if `go_on`
    returns False.
    """
    kept, parts = tuple(members), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        for index, chunk in enumerate(chunks):
            rest = tuple(one for other in (*chunks[:index], *chunks[index + 1 :]) for one in other)
            tried = ((chunk, 2), (rest, max(parts - 1, 2))) if len(chunks) > 2 else ((chunk, 2),)
            found = None
            for candidate, wanted in tried:
                if not go_on():
                    return kept, False
                if holds(candidate):
                    found = candidate, wanted
                    break
            if found is not None:
                kept, parts = found
                break
        else:
            if parts >= len(kept):
                return kept, True
            parts = min(len(kept), 2 * parts)
    return kept, True


# ---------------------------------------------------------------------------------------------------------------------


class Narrowing(StrEnum):
    """List the ways to compute in fewer bits.

    F16 and BF16: inputs and results are rounded; products are summed in f32. I8_WEIGHTS: the weights have 8 bits,
    everything else is unchanged.
    """

    F16 = "f16"
    BF16 = "bf16"
    I8_WEIGHTS = "i8-weights"

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type of each result; None where results stay as they are."""
        return _DTYPES.get(self)


_DTYPES: Final[Mapping[Narrowing, np.dtype[Any]]] = {
    Narrowing.F16: np.dtype(np.float16),
    Narrowing.BF16: np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
_ENGINES = {Narrowing.F16: NUMPY_F16, Narrowing.BF16: NUMPY_BF16}

LOSSES = {Narrowing.F16: 0.01, Narrowing.BF16: 0.05, Narrowing.I8_WEIGHTS: 0.05}
"""How far an output may be off, relative to its norm, unless another number is asked for."""

LayerKey = tuple[int, int, str]
"""A layer: its line, its id and its name. Of a sequence that was opened for both directions, both have the same."""


def layer_key(layer: Layer) -> LayerKey:
    """Return the key of a layer; the same for a copy with other attributes."""
    return layer.line, layer.id, layer.name


class NarrowPartner:
    """Computes all operations but the `kept` ones in fewer bits, and those as the `plain` partner does.

    What comes out of a Parameter, a loop or an If is in fewer bits for those as well: OpenVINO converts each port of a
    body, whatever is marked.
    """

    def __init__(self, model: Model, narrowing: Narrowing, kept: Collection[LayerKey], plain: Partner | None) -> None:
        self._dtype = EMULATED[narrowing]
        self._narrow = OpenVINOPartner(_ENGINES[narrowing])
        self._plain: Partner = plain or OpenVINOPartner()
        graphs = [graph for _path, graph in model.graphs()]
        self._kept = {
            layer_key(layer): crossing_inputs(graph, layer)
            for graph in graphs
            for layer in graph.layers
            if layer_key(layer) in kept
        }

    @property
    def description(self) -> str:
        """The engine, in words."""
        return self._narrow.description

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """Return True for what is narrowed or reads what is, and for what the plain partner computes."""
        crossing = self._kept.get(layer_key(layer))
        partner = self._narrow if crossing is None else self._plain
        return bool(crossing) or partner.computes(layer, has_kernel=has_kernel)

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Callable[..., tuple[Any, ...]], str]:
        """Return the function of a layer, and who computes it."""
        crossing = self._kept.get(layer_key(layer))
        if crossing is None:
            return self._narrow.bind(layer, constants)
        kernel = None if layer.definition is None else registry.find(layer.type, layer.definition)
        if self._plain.computes(layer, has_kernel=kernel is not None) or kernel is None:
            function, who = self._plain.bind(layer, constants)
        else:
            function, who = in_tuple(kernel.bind(layer.attributes), several=kernel.several_outputs), KEPT
        dtype = self._dtype

        def compute(*inputs: Any) -> tuple[Any, ...]:
            given = (rounded(one, dtype) if index in crossing else one for index, one in enumerate(inputs))
            return function(*given)

        return compute, who


KEPT = "numpy, of ports in fewer bits"
"""Who computes an operation that is left in f32 and reads a Parameter or a loop."""

_PORTS = frozenset({"Parameter", "Loop", "TensorIterator", "If"})


def crossing_inputs(graph: Graph, layer: Layer) -> frozenset[int]:
    """Return the indices of the inputs that come out of a Parameter, a loop or an If."""
    sources = enumerate(graph.sources[layer.id])
    return frozenset(index for index, one in sources if one is not None and graph.by_id[one.layer].type in _PORTS)


def in_tuple(function: Callable[..., Any], *, several: bool) -> Callable[..., tuple[Any, ...]]:
    """Return a kernel's function that gives a tuple, also of one output."""
    return function if several else lambda *inputs: (function(*inputs),)


def narrowed_operations(compiled: CompiledModel) -> list[Operation]:
    """Return the operations, in their order, that fewer bits may change: those that take or give floats."""
    found: dict[LayerKey, Operation] = {}
    for program in compiled.programs:
        for operation in (*program.folded, *program.operations):
            ports = (*operation.layer.inputs, *operation.layer.outputs)
            types = [port.element_type for port in ports]  # None: the file does not say it
            if not operation.plans and any(one is None or is_floating(one.dtype) for one in types):
                found.setdefault(layer_key(operation.layer), operation)
    return list(found.values())


# --- Constants that are weights, and what 8 bits make of them --------------------------------------------------------
#
# Asymmetric, with a scale and a zero point for each output channel: 256 levels between its least and its largest
# weight, 0 among them. That is what NNCF's `compress_weights` does by default (mode INT8_ASYM), for which it takes
# MatMul and Gather; here convolutions and recurrent cells count as well.


_LEVELS = 255
_LEAST = 16
"""Elements from which on a constant counts as weights."""

_CHANNELS: Final[Mapping[tuple[str, int], tuple[int, ...]]] = {
    ("Gather", 0): (0,),
    ("Convolution", 1): (0,),
    ("ConvolutionBackpropData", 1): (1,),
    ("GroupConvolution", 1): (0, 1),
    ("GroupConvolutionBackpropData", 1): (0, 2),
    ("GroupedMatMul", 1): (0, 1),
    **{(cell, port): (0,) for cell, first in (("LSTMCell", 3), ("GRUCell", 2), ("RNNCell", 2), ("AUGRUCell", 2))
       for port in (first, first + 1)},
    **{(kind, port): (0, 1) for kind, first in (("LSTMSequence", 4), ("GRUSequence", 3), ("RNNSequence", 3),
                                                ("AUGRUSequence", 3)) for port in (first, first + 1)},
}  # fmt: skip
"""Axes of the output channels, by the type of the operation and the index of its input."""


class Weight(NamedTuple):
    """A constant that is weights: its program and slot, its layer, and the operation that multiplies with it."""

    program: Program
    slot: int
    layer: Layer
    read_by: Operation
    channels: tuple[int, ...]

    @property
    def value(self) -> Array:
        """The weights as they are in the file."""
        return np.asarray(self.program.template[self.slot])


def weights_of(compiled: CompiledModel) -> list[Weight]:
    """Return the constants that are weights, also those that come into a loop from outside."""
    found: dict[tuple[int, int], Weight] = {}
    for weight in _read(compiled.main, {}):
        found.setdefault((id(weight.program), weight.slot), weight)
    return list(found.values())


_Held = tuple[Program, int, Layer]


def _read(program: Program, given: Mapping[int, _Held]) -> Iterator[Weight]:
    """Yield the weights that a program's operations read; `given` are constants in slots of its Parameters."""
    held = dict(given)
    for layer in program.graph.layers:
        slot = program.slots.get((layer.id, 0))
        if layer.type == "Constant" and slot is not None and program.template[slot] is not None:
            held[slot] = program, slot, layer
    for operation in (*program.folded, *program.operations):
        kind = operation.layer.type
        if kind == "Convert" and operation.inputs[0] in held:
            held[operation.outputs[0]] = held[operation.inputs[0]]
        for port, slot in enumerate(operation.inputs):
            if slot in held and (channels := _channels(operation.layer, port)) is not None:
                weight = Weight(*held[slot], operation, channels)
                value = weight.value
                if is_floating(value.dtype) and value.ndim > 1 and value.size >= _LEAST:
                    yield weight
        for plan in operation.plans:
            fed = [(one.input, one.parameter) for one in plan.invariant] if isinstance(plan, LoopPlan) else plan.inputs
            inner = {slot: held[operation.inputs[port]] for port, slot in fed if operation.inputs[port] in held}
            yield from _read(plan.program, inner)


def _channels(layer: Layer, port: int) -> tuple[int, ...] | None:
    """Return the axes of the output channels of an operation's input; None for one that takes no weights."""
    if layer.type == "MatMul":
        transposed = layer.is_set("transpose_a" if port == 0 else "transpose_b")
        return (-2,) if transposed == (port == 1) else (-1,)
    return _CHANNELS.get((layer.type, port))


def in_eight_bits(weight: Weight) -> Array:
    """Return the weights, each the nearest of its channel's 256 levels; what is not finite stays."""
    value = weight.value
    exact: Any = value.astype(np.float64)
    channels = {axis % value.ndim for axis in weight.channels}
    axes = tuple(axis for axis in range(value.ndim) if axis not in channels)
    with np.errstate(all="ignore"):
        least = np.minimum(exact.min(axes, keepdims=True), 0)
        largest = np.maximum(exact.max(axes, keepdims=True), 0)
        scale = (largest - least) / _LEVELS
        scale = np.where(scale > 0, scale, 1)
        zero = np.rint(-least / scale)
        level = np.clip(np.rint(exact / scale) + zero, 0, _LEVELS)
        rounded = ((level - zero) * scale).astype(value.dtype)
    return np.where(np.isfinite(exact) & np.isfinite(rounded.astype(np.float64)), rounded, value)


# ---------------------------------------------------------------------------------------------------------------------
# Runs in fewer bits, each with another set of operations (or weights) left in f32, held against the plain run


_MOVES = 1_000
"""How many moves more than twice those of the plain run a run in fewer bits may make."""


class Outcome(NamedTuple):
    """Result of a run in fewer bits: the loss of each output; none where it failed, or did not end in time."""

    losses: tuple[Loss, ...] | None

    @property
    def error(self) -> float:
        """The largest error of an output; Inf where there are none."""
        return float("inf") if self.losses is None else max((one.error for one in self.losses), default=0.0)


class Trials:
    """A model on given inputs, run plainly once, and in fewer bits as often as asked for, within so many seconds.

    `allowed` is how far an output may be off, relative to its norm.
    """

    def __init__(self, debugger: Debugger, narrowing: Narrowing, seconds: float, allowed: float) -> None:
        self.narrowing, self.allowed, self.runs = narrowing, allowed, 0
        self._start = debugger.machine
        self._inputs: Sequence[Array] = debugger.inputs
        self.compiled = self._start.compiled
        self._deadline = time.monotonic() + seconds
        self._moves = 0
        self._outcomes: dict[frozenset[LayerKey], Outcome] = {}

    @property
    def in_time(self) -> bool:
        """True while there is time for another run."""
        return time.monotonic() < self._deadline

    @cached_property
    def plain(self) -> tuple[Array, ...] | None:
        """The outputs of the plain run; None where it does not come to its end, or not in time."""
        machine = self.machine()
        timer = Timer(max(self._deadline - time.monotonic(), 0.0), machine.request_pause)
        timer.start()
        try:
            machine.advance(Every.END)
        except StepperError:
            return None
        finally:
            timer.cancel()
        self._moves = machine.tick
        return machine.outputs

    @cached_property
    def candidates(self) -> dict[LayerKey, Layer]:
        """The layers that may be left in f32: operations that are narrowed, or weights."""
        if self.narrowing is Narrowing.I8_WEIGHTS:
            return {layer_key(one.layer): one.layer for one in self._weights}
        return {layer_key(one.layer): one.layer for one in narrowed_operations(self.compiled)}

    def readers(self, key: LayerKey) -> Layer:
        """Return the operation that computes with a candidate: itself, or the one that reads the weights."""
        found = (one.read_by.layer for one in self._weights if layer_key(one.layer) == key)
        return next(found, self.candidates[key])

    @cached_property
    def _weights(self) -> Sequence[Weight]:
        return weights_of(self.compiled) if self.narrowing is Narrowing.I8_WEIGHTS else ()

    def machine(self, compiled: CompiledModel | None = None) -> Machine:
        """Return a machine at its start, of the plain model or of another one with its inputs."""
        start = self._start
        return Machine(
            compiled or self.compiled,
            self._inputs,
            max_iterations=start.max_iterations,
            states=start.initial_states,
            keep_values=False,
        )

    def narrowed(self, kept: Collection[LayerKey]) -> Machine:
        """Return a machine at its start that computes all but these in fewer bits."""
        if self.narrowing is not Narrowing.I8_WEIGHTS:
            partner = NarrowPartner(self.compiled.model, self.narrowing, kept, partner_in(self.compiled))
            return self.machine(compile_model(self.compiled.model, self.compiled.rules, partner))
        machine = self.machine()
        for weight in self._weights:
            if layer_key(weight.layer) not in kept:
                machine.set_constant(weight.program, weight.slot, in_eight_bits(weight))
        return machine

    def run(self, kept: Collection[LayerKey]) -> Outcome:
        """Return what comes of a run with these left in f32."""
        key = frozenset(kept)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(key)
        return self._outcomes[key]

    def _run(self, kept: frozenset[LayerKey]) -> Outcome:
        assert self.plain is not None
        self.runs += 1
        machine = self.narrowed(kept)
        try:
            machine.advance(Every.END, until=2 * self._moves + _MOVES)
        except StepperError:
            return Outcome(None)
        if machine.outputs is None:
            return Outcome(None)
        return Outcome(losses(output_names(self.compiled.model), self.plain, self._given_out(machine.outputs)))

    def _given_out(self, outputs: Sequence[Array]) -> list[Array]:
        """Return the model's outputs, with what comes straight out of a loop or an If in fewer bits, as its ports."""
        dtype, graph = self.narrowing.dtype, self.compiled.model.graph
        if dtype is None:
            return list(outputs)
        crossing = [bool(crossing_inputs(graph, result)) for result in graph.results]
        return [rounded(one, dtype) if crosses else one for one, crosses in zip(outputs, crossing, strict=True)]


# --- The plain run and one in fewer bits, operation by operation, on the same way: where they part, and how far ------


class Harm(StrEnum):
    """List the ways in which fewer bits harm a result, most severe first."""

    OVERFLOW = "overflow"
    """A number that is finite in the plain run is not."""
    UNDERFLOW = "underflow"
    """A number other than 0 is 0."""
    LOSS = "loss"
    """The result is further off than is allowed."""
    OTHER = "other value"
    """An integer or a boolean is another one."""


class Parting(Record):
    """Hold the first element of an operation's result that was harmed.

    `error` is the norm of the difference over the norm of the plain result.
    """

    harm: Harm
    layer: Layer
    place: RunPlace
    element: tuple[int, ...]
    plain: float
    narrow: float
    error: float


class SideBySide(Record):
    """The first harm of each kind to each operation, in the order of time.

    `other_way` is the loop or If from which on the two runs do not do the same things any more; None: to the end alike.
    """

    partings: tuple[Parting, ...]
    other_way: RunPlace | None

    def first(self, key: LayerKey, harm: Harm) -> Parting | None:
        """Return the first harm of a kind to an operation."""
        return next((one for one in self.partings if one.harm is harm and layer_key(one.layer) == key), None)


def walk(
    plain: Machine,
    narrow: Machine,
    allowed: float,
    go_on: Callable[[], bool],
    ported: np.dtype[Any] | None = None,
) -> SideBySide:
    """Run both to the end, or as long as `go_on` is true; `allowed` is how far a result may be off.

    `ported` is the type in which values come into a body: Parameters are looked at as well then.
    """
    found: dict[tuple[LayerKey, Harm], Parting] = {}
    while plain.stack and narrow.stack and go_on():
        try:
            ours, theirs = plain.advance(Every.OPERATION), narrow.advance(Every.OPERATION)
        except StepperError:
            break
        if not _same(ours, theirs):
            return SideBySide(tuple(found.values()), _other_way(plain, narrow, ours))
        for layer, exact, lost in _pairs(ours, theirs, ported):
            if exact is lost or exact.shape != lost.shape or exact.dtype != lost.dtype:
                continue
            if np.array_equal(exact, lost, equal_nan=is_floating(exact.dtype)):
                continue
            for harm, places in _harms(exact, lost, allowed):
                key = layer_key(layer), harm
                if key not in found:
                    found[key] = _parting(plain, layer, harm, places, exact, lost)
    return SideBySide(tuple(found.values()), None)


def _same(ours: Event, theirs: Event) -> bool:
    """Return True if both have made the same move."""
    one, other = ours.frame, theirs.frame
    if ours.kind is not theirs.kind or one.program.graph is not other.program.graph or one.pc != other.pc:
        return False
    return one.phase is other.phase


def _pairs(ours: Event, theirs: Event, ported: np.dtype[Any] | None) -> Iterator[tuple[Layer, Array, Array]]:
    """Yield what an operation gives on both sides, or, rounded to `ported`, what a body begins with."""
    one, other = ours.frame, theirs.frame
    if ours.kind is EventKind.OPERATION:
        (mine, yours), ported = (frame.program.operations[frame.pc - 1] for frame in (one, other)), None
        places = zip(repeat(mine.layer), mine.outputs, yours.outputs, strict=False)
    elif ours.kind is EventKind.BEGUN and ported is not None:
        program = one.program
        places = zip(program.graph.parameters, program.parameters, other.program.parameters, strict=True)
    else:
        return
    for layer, slot, their_slot in places:
        exact, lost = one.values[slot], other.values[their_slot]
        if exact is not None and lost is not None:
            yield layer, np.asarray(exact), np.asarray(lost) if ported is None else rounded(np.asarray(lost), ported)


def _harms(exact: Any, narrow: Any, allowed: float) -> list[tuple[Harm, Any]]:
    """Return how a result was harmed, each with the elements that were (True), the most of them first."""
    if not is_floating(exact.dtype):
        return [(Harm.OTHER, exact != narrow)] if exact.dtype.kind in "biu" else []
    harms = []
    broken = np.isfinite(exact) & ~np.isfinite(narrow)
    if broken.any():
        harms.append((Harm.OVERFLOW, broken))
    gone = (exact != 0) & (narrow == 0)
    if gone.any():
        harms.append((Harm.UNDERFLOW, gone))
    if relative_error(exact, narrow) > allowed:
        with np.errstate(all="ignore"):
            distance = np.abs(narrow.astype(np.float64) - exact.astype(np.float64))
        distance = np.where(np.isfinite(distance), distance, 0)
        harms.append((Harm.LOSS, (distance == distance.max()) & (distance > 0)))
    return harms


def _parting(machine: Machine, layer: Layer, harm: Harm, places: Any, exact: Any, narrow: Any) -> Parting:
    flat = int(np.argmax(places))
    path, iterations = _around(machine)
    loops = [site for site in path if site.type in ("Loop", "TensorIterator")]
    site = layer_site(layer, str(machine.compiled.model.path))
    address = f"{layer.name}{''.join(f'@{number}' for number in iterations[-1:])}"
    return Parting(
        harm,
        layer,
        RunPlace(site, path, iterations, address, machine.tick, loops[-1] if loops else None),
        tuple(int(one) for one in np.unravel_index(flat, exact.shape)),
        float(exact.reshape(-1)[flat]),
        float(narrow.reshape(-1)[flat]),
        relative_error(exact, narrow),
    )


def _around(machine: Machine) -> tuple[tuple[LayerSite, ...], tuple[int, ...]]:
    """Return the loops and Ifs around where a machine stands, and the iterations of the loops."""
    activations = [frame.activation for frame in machine.stack if frame.activation is not None]
    path = tuple(layer_site(one.operation.layer, str(machine.compiled.model.path)) for one in activations)
    return path, tuple(max(one.iteration, 0) for one in activations if one.operation.layer.is_loop)


def _other_way(plain: Machine, narrow: Machine, ours: Event) -> RunPlace | None:
    """Return the innermost loop or If that both have been in, and did not go on with alike."""
    path, iterations = _around(plain if len(plain.stack) >= len(narrow.stack) else narrow)
    return RunPlace(path[-1], path[:-1], iterations, "", ours.tick, path[-1]) if path else None


# Rules of a run in fewer bits.


class NarrowRun(Trials):
    """A model in fewer bits: what becomes of its outputs, and what has to stay in f32 for them to be as they were."""

    @cached_property
    def outcome(self) -> Outcome:
        """Result with everything in fewer bits."""
        return self.run(())

    @property
    def is_broken(self) -> bool:
        """True if the plain run has outputs, and some are off by more than is allowed."""
        return self.plain is not None and self.outcome.error > self.allowed

    @cached_property
    def lockstep(self) -> SideBySide:
        """Both runs side by side."""
        return walk(self.machine(), self.narrowed(()), self.allowed, lambda: self.in_time)

    @cached_property
    def is_mended(self) -> bool:
        """True if it is not broken with all that can stay in f32 in f32: OpenVINO converts the ports of bodies."""
        return self.run(self.candidates).error <= self.allowed

    @cached_property
    def port(self) -> Parting | None:
        """The first value that comes into a body and is harmed by that alone."""
        narrow = self.narrowed(frozenset(self.candidates))
        found = walk(self.machine(), narrow, self.allowed, lambda: self.in_time, self.narrowing.dtype)
        ports = [one for one in found.partings if one.layer.type == "Parameter"]
        grave = [one for one in ports if one.harm in (Harm.OVERFLOW, Harm.LOSS)]
        return next(iter(grave or ports or found.partings), None)

    @cached_property
    def kept(self) -> tuple[tuple[LayerKey, ...], bool]:
        """The smallest set to leave in f32, in the order of the file, and True if each of its members is needed.

        It is empty where no set mends it.
        """
        if not self.is_mended:
            return (), True
        return smallest(
            tuple(self.candidates),
            lambda some: self.run(some).error <= self.allowed,
            lambda: self.in_time,
        )

    @cached_property
    def culprit(self) -> Parting | None:
        """The first result among those to leave in f32 that fewer bits harm."""
        found = []
        for key in self.kept[0]:
            reader = layer_key(self.readers(key))
            harms = [self.lockstep.first(reader, harm) for harm in (Harm.OVERFLOW, Harm.LOSS, Harm.OTHER)]
            if not any(harms):
                harms.append(self.lockstep.first(reader, Harm.UNDERFLOW))
            found += [one for one in harms if one is not None]
        return min(found, key=lambda one: (one.place.tick, list(Harm).index(one.harm)), default=None)

    def sites(self) -> tuple[LayerSite, ...]:
        """Return the layers to leave in f32."""
        file = str(self.compiled.model.path)
        return tuple(layer_site(self.candidates[key], file) for key in self.kept[0])


def _parted(run: NarrowRun, one: Parting, **details: Any) -> RunFinding:
    return shown(
        one.place,
        **details,
        precision=str(run.narrowing),
        index=one.element,
        plain=one.plain,
        narrow=one.narrow,
        error=one.error,
        **_worst(run.outcome),
    )


def _worst(outcome: Outcome) -> dict[str, Any]:
    """Return the output with the largest loss; a failed run has no worst output."""
    worst = max(outcome.losses or (Loss("", math.inf),), key=lambda one: one.error)
    return {"output": worst.output, "loss": worst.error}


def _of_culprit(run: NarrowRun, *harms: Harm) -> Iterator[Parting]:
    if run.is_broken and run.is_mended and run.culprit is not None and run.culprit.harm in harms:
        yield run.culprit


@found_by
def leaves_range(run: NarrowRun) -> RunFindings:
    """The first number that is needed and too large."""
    for one in _of_culprit(run, Harm.OVERFLOW):
        dtype = run.narrowing.dtype
        largest = math.inf if dtype is None else limits(dtype).largest
        yield _parted(run, one, largest=largest)


@found_by
def becomes_zero(run: NarrowRun) -> RunFindings:
    """The first number that is needed and too small."""
    for one in _of_culprit(run, Harm.UNDERFLOW, Harm.LOSS):
        dtype = run.narrowing.dtype
        if one.narrow == 0 and one.plain != 0 and dtype is not None:
            yield _parted(run, one, least=limits(dtype).least)


@found_by
def loses_digits(run: NarrowRun) -> RunFindings:
    """The first result that is needed and further off than is allowed, or another whole number."""
    for one in _of_culprit(run, Harm.LOSS, Harm.OTHER):
        if run.narrowing.dtype is None or not (one.narrow == 0 and one.plain != 0):
            yield _parted(run, one)


@found_by
def goes_another_way(run: NarrowRun) -> RunFindings:
    """A loop of another number of iterations, or another side of an If."""
    other = run.lockstep.other_way if run.is_broken else None
    if other is not None:
        yield shown(other, precision=str(run.narrowing), loop=other.layer, **_worst(run.outcome))


@found_by
def keep_in_f32(run: NarrowRun) -> RunFindings:
    """The smallest set of operations, or of weights, that mends it."""
    if run.is_broken and run.is_mended:
        members, is_least = run.kept
        yield shown(
            RunPlace(None),
            precision=str(run.narrowing),
            count=len(members),
            total=len(run.candidates),
            things="operations" if run.narrowing.dtype is not None else "weights",
            most=run.run(members).error,
            layers=run.sites(),
            doubt="; without any one of them it does not hold" if is_least else ", and a smaller set may do",
        )


@found_by
def no_set_in_f32_mends_it(run: NarrowRun) -> RunFindings:
    """A value that goes into a body, or round a back edge, and is not what it was."""
    if run.is_broken and not run.is_mended and run.port is not None:
        yield _parted(run, run.port)


@found_by
def holds_in_fewer_bits(run: NarrowRun) -> RunFindings:
    """Nothing is lost."""
    if run.plain is not None and not run.is_broken:
        yield shown(RunPlace(None), precision=str(run.narrowing), most=run.outcome.error)


# `check --as`: what fewer bits do to a run, and what has to stay in f32.


# --- A model with marks for OpenVINO: operations that it leaves in f32 when it computes in fewer bits ----------------
#
# The mark is the attribute `precise` of a layer's rt_info, as OpenVINO writes it for its `DisableFP16Compression`; seen
# to be heeded by the CPU of 2026.4 with INFERENCE_PRECISION_HINT f16 and bf16, in bodies of loops, too.


_MARK = "precise"


def marked(path: Path, kept: Iterable[LayerSite]) -> bytes:
    """Return the XML of a model with these layers marked; marked layers stay unchanged.

    Raises ModelError.
    """
    net = parse(path)
    wanted = {(layer.line, str(layer.id)) for layer in kept}
    for layer in list(net.iter("layer")):
        if (line_of(layer), layer.get("id")) in wanted:
            found = layer.find("rt_info")
            info = etree.Element("rt_info") if found is None else found
            if found is None:
                layer.insert(0, info)
            if all(one.get("name") != _MARK for one in info.iter("attribute")):
                etree.SubElement(info, "attribute", name=_MARK, version="0")
    return etree.tostring(net, xml_declaration=True, encoding="utf-8")


def marked_files(target: str, protected: ProtectedFiles, option: str) -> tuple[OutputFile, OutputFile]:
    """Return the two files that a model is written to. OutputError where that cannot be."""
    path = Path(target)
    if path.suffix.lower() != IR_SUFFIX:
        raise UsageError(f"{option} {target}: the name of a model ends in {IR_SUFFIX}")
    files = (
        OutputFile(path, IR, protected, option),
        OutputFile(path.with_suffix(WEIGHTS_SUFFIX), IR_WEIGHTS, protected, option),
    )
    for one in files:
        one.check()
    return files


def write_marked(model: Model, kept: Iterable[LayerSite], files: tuple[OutputFile, OutputFile]) -> None:
    """Write a model with these layers marked, and its weights. UsageError for one that is not an IR; OutputError."""
    if model.path.suffix.lower() != IR_SUFFIX:
        raise UsageError(f"{model.path} is not an IR, so that nothing can be marked in it; convert it first")
    content = marked(model.path, kept)
    with writing_all(files) as (graph, weights):
        graph.write(content)
        if model.weights is not None:
            with model.weights.path.open("rb") as source:
                shutil.copyfileobj(source, weights)


# ---------------------------------------------------------------------------------------------------------------------


class CheckedPrecision(Record):
    """Findings, the layers to leave in f32 (none where it holds, or no set of them mends it), and how often it was run.

    `mends`: with these in f32 it holds.
    """

    findings: tuple[Finding, ...]
    keep_in_f32: tuple[LayerSite, ...]
    mends: bool
    runs: int


def check_precision(
    debugger: Debugger, narrowing: Narrowing, *, allowed: float | None = None, seconds: float = 60.0
) -> CheckedPrecision:
    """Run the model plainly and in fewer bits, and search what has to stay in f32, within so many seconds.

    `allowed` is how far an output may be off, relative to its norm (see `LOSSES`). The debugger stays where it is.
    """
    run = NarrowRun(debugger, narrowing, seconds, LOSSES[narrowing] if allowed is None else allowed)
    file = str(debugger.model.path)
    found = [finding_of(one.rule, file, hit) for one in FINDERS[SubjectKind.NARROW_RUN] for hit in one.find(run)]
    sites = run.sites() if run.is_broken else ()
    return CheckedPrecision(tuple(found), sites, not run.is_broken or bool(sites), run.runs)
