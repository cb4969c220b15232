"""The semantics of TensorIterator-1 and Loop-5: pure functions over the port map, for both operations alike.

How many slices an input gives and which one an iteration gets, what a trip count and a condition must be, what an
output becomes when the loop ends. Executor, diagrams and explanations all ask here.
Source: the two specifications; where they are silent or the runtime departs, semantics sections 1 to 4 and 11.
"""

from __future__ import annotations

import bisect
import copy
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from stepper.element_types import LARGEST_RANK, Array, DType, Indices, Ints, Shape, name_of
from stepper.engine.rules import Rules
from stepper.errors import KernelError, ModelError
from stepper.ir.constants import constant_type, constant_value
from stepper.ir.model import (
    CURRENT_ITERATION,
    EXECUTION_CONDITION,
    BackEdge,
    Body,
    Graph,
    InputMapping,
    Layer,
    LayerSite,
    Model,
    OutputMapping,
    layer_site,
    parameter_shape,
    parameter_type,
)
from stepper.ops.operands import LARGEST_TENSOR, ensure_allocatable, normalize_axis, shape_text
from stepper.plain_values import storable
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.ir.model import Slicing


class EndReason(StrEnum):
    """Reason for which a loop ran no further iteration."""

    TRIP_COUNT = "trip count reached"
    CONDITION = "condition became false"
    INITIAL_CONDITION = "condition was false at the start"
    SLICES = "every slice was used"
    NO_ITERATIONS = "trip count is 0"


class SlicedInput(NamedTuple):
    """Each iteration gets its slice of the outer input along the axis."""

    input: int
    parameter: int
    slicing: Slicing
    line: int


class MergedInput(NamedTuple):
    """The first iteration gets the outer input, every later one what the back edge's Result was before."""

    input: int
    parameter: int
    result: int
    line: int


class InvariantInput(NamedTuple):
    """Every iteration gets the same outer input."""

    input: int
    parameter: int
    line: int


class LastValueOutput(NamedTuple):
    """The outer output is the Result of the last iteration; `merged` is the Parameter that it feeds, if any."""

    output: int
    result: int
    merged: int | None
    line: int


class ConcatenatedOutput(NamedTuple):
    """The outer output is the Results of all iterations, joined along the axis."""

    output: int
    result: int
    slicing: Slicing
    line: int


class SliceWalk(Record):
    """Places of the slices of one input: slice i begins at `first + i * step` and is `size` long, for i < `count`."""

    axis: int
    first: int
    step: int
    size: int
    count: int

    def range(self, iteration: int) -> tuple[int, int]:
        """Return the elements [begin, end) along the axis that the iteration gets."""
        begin = self.first + iteration * self.step
        return begin, begin + self.size

    def span(self, iterations: int) -> tuple[int, int]:
        """Return the elements [begin, end) that the first so many iterations get together."""
        if not iterations:
            return self.first, self.first
        (begin, end), (last_begin, last_end) = self.range(0), self.range(iterations - 1)
        return min(begin, last_begin), max(end, last_end)


Pieces = TypeVar("Pieces", range, list[Array], Array)


def is_backward(slicing: Slicing) -> bool:
    """Return True if the iterations go from the end of the axis to its beginning (a negative stride)."""
    return slicing.stride < 0


def whole_axis(slicing: Slicing) -> tuple[int, int]:
    """Return the `start` and `end` with which a slicing of this direction covers the whole axis."""
    return (-1, 0) if is_backward(slicing) else (0, -1)


def in_axis_order(pieces: Pieces, slicing: Slicing) -> Pieces:
    """Return the pieces of a concatenated output, one for each iteration, in their order along its axis.

    `pieces` may be the iterations themselves: of `range(n)`, element k is the iteration whose piece lies at place k
    (TensorIterator-1, port_map).
    """
    return pieces[::-1] if is_backward(slicing) else pieces


def boundary(value: int, extent: int) -> int:
    """Return the boundary that a `start` or `end` names: 0 to the extent, -1 for the last one (port_map)."""
    return value if value >= 0 else extent + 1 + value


def slice_walk(slicing: Slicing, shape: Shape, rules: Rules, *, is_loop: bool) -> SliceWalk:
    """Return the slices that an input of this shape gives (TensorIterator-1, port_map).

    `is_loop`: the layer is a Loop, else a TensorIterator. OpenVINO ignores start and end of a Loop. Raises KernelError
    if start, end and stride do not describe slices of this tensor.
    """
    axis = _axis(slicing, len(shape), rules)
    size = check_stride(slicing, rules)
    extent, forward = shape[axis], not is_backward(slicing)
    whole = SliceWalk(axis, 0 if forward else (extent // size - 1) * size, size if forward else -size, size, 0)
    if is_loop and rules is Rules.OPENVINO:
        return SliceWalk(axis, whole.first, whole.step, size, extent // size)
    count = _slice_count(slicing, extent, size, rules)
    if rules is Rules.OPENVINO:
        return SliceWalk(axis, whole.first, whole.step, size, count)
    start = boundary(slicing.start, extent)
    return SliceWalk(axis, start if forward else start - size, whole.step, size, count)


def _axis(slicing: Slicing, rank: int, rules: Rules) -> int:
    if slicing.axis < 0 and rules is Rules.OPENVINO:
        raise KernelError(
            f"axis {slicing.axis} is negative, which OpenVINO refuses (the specification counts from the end)"
        )
    return normalize_axis(slicing.axis, rank)


def check_stride(slicing: Slicing, rules: Rules) -> int:
    """Return the length of a chunk: the absolute stride. KernelError for 0, and for a part_size that says otherwise."""
    size = abs(slicing.stride)
    if size == 0:
        raise KernelError("stride is 0, so the loop would never advance")
    if slicing.part_size is not None and slicing.part_size != size and rules is Rules.SPEC:
        raise KernelError(f"part_size is {slicing.part_size}, but the stride is {slicing.stride}: they must agree")
    return size


def _slice_count(slicing: Slicing, extent: int, size: int, rules: Rules) -> int:
    start, end = boundary(slicing.start, extent), boundary(slicing.end, extent)
    low, high = (end, start) if is_backward(slicing) else (start, end)
    if extent == 0 and low == high == 0 and rules is Rules.SPEC:
        return 0
    if not 0 <= low < high <= extent:
        direction = "backward" if is_backward(slicing) else "forward"
        hint = "; to go backward over everything, start is -1 and end is 0" if is_backward(slicing) else ""
        raise KernelError(
            f"start {slicing.start} and end {slicing.end} are not a {direction} range of {extent} elements{hint}"
        )
    if (high - low) % size:
        raise KernelError(f"the length {high - low} is not divisible by the stride {slicing.stride}")
    return (high - low) // size


def count_without_slices(outputs: Sequence[ConcatenatedOutput]) -> int:
    """Return the iterations of a TensorIterator without sliced inputs: 1, or as its outputs say (port_map).

    The first tells how many parts there are, which fixes the length of each output; then all must agree on the count.
    """
    if not outputs:
        return 1
    first = min(outputs, key=lambda output: output.output).slicing
    parts = abs(first.end - first.start) // (first.part_size or check_stride(first, Rules.OPENVINO))
    counts = []
    for output in outputs:
        size = check_stride(output.slicing, Rules.OPENVINO)
        counts.append(_slice_count(output.slicing, parts * (output.slicing.part_size or size), size, Rules.OPENVINO))
    if len(set(counts)) > 1:
        raise KernelError(
            f"nothing is sliced, and its concatenated outputs ask for different iteration counts: {counts}"
        )
    return counts[0]


def common_count(counts: list[tuple[str, int]]) -> int:
    """Return the iteration count on which all sliced inputs of a TensorIterator agree (TensorIterator-1, port_map)."""
    (first, count), *others = counts
    for name, other in others:
        if other != count:
            raise KernelError(
                f"sliced inputs differ in their number of slices: {first} gives {count}, {name} gives {other}"
            )
    return count


_TRIP_COUNT_TYPES = {np.dtype(name) for name in ("int16", "int32", "int64", "uint16", "uint32", "uint64")}


def trip_count(value: Any) -> int | None:
    """Return the maximum of iterations that a trip count says; None (unlimited) if negative (Loop-5)."""
    if value.dtype not in _TRIP_COUNT_TYPES:
        raise KernelError(f"the trip count is of type {name_of(value.dtype)}, expected i64 or i32")
    count = int(_single(value, "trip count"))
    return None if count < 0 else count


def condition(value: Any, what: str = "condition") -> bool:
    """Return the truth of an execution condition (Loop-5)."""
    if value.dtype != np.bool_:
        raise KernelError(f"the {what} is of type {name_of(value.dtype)}, expected boolean")
    return bool(_single(value, what))


def is_single(value: Any) -> bool:
    """Return True if a value is a scalar or one element, as trip counts and conditions must be."""
    return bool(value.size == 1 and value.ndim <= 1)


def _single(value: Any, what: str) -> Any:
    if not is_single(value):
        raise KernelError(f"the {what} has shape {shape_text(value.shape)}, expected a scalar or one element")
    return value.reshape(())[()]


def undefined_last_value(shape: Shape, dtype: DType) -> Array:
    """Return a last-value output that nothing gave after no iteration: zeros, unknown dimensions 0 (measured)."""
    dims = [max(size, 0) for size in shape]
    ensure_allocatable(dims, dtype)
    return np.zeros(dims, dtype)


def empty_concatenation(axis: int, shape: Shape, dtype: DType) -> Array:
    """Return a concatenated output after no iteration: size 0 along its axis (measured).

    `shape` is the shape of one piece, with unknown dimensions negative. For a scalar piece the result has rank 1.
    """
    dims = [max(size, 0) for size in shape] or [0]
    dims[axis if -len(dims) <= axis < len(dims) else 0] = 0
    return np.zeros(dims, dtype)


# Roles of the inputs of a loop's port map (sliced, merged, invariant, the iteration number), and what controls a
# loop.
#
# Its trip count, initial condition and the body's condition decide when it begins and ends. All is read off the file
# alone, so that it can be shown for a model that cannot run.
#
# Which of several claims to one Parameter counts was measured on OpenVINO, and so were the marks of the first draft.


class RoleError(ValueError):
    """A port map entry that cannot play its role; `line` is its line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Role(StrEnum):
    """Role of an input in a loop's port map; NOT_USED where another entry for the same Parameter counts.

    BRANCH is an input of an If.
    """

    SLICED = "sliced"
    MERGED = "merged"
    INVARIANT = "invariant"
    CURRENT_ITERATION = "current iteration"
    NOT_CONNECTED = "not connected"
    NOT_USED = "not used"
    BRANCH = "input"


class OutputRole(StrEnum):
    """Role of an output in the port map of a loop or an If; the condition may go out of the loop as well."""

    LAST_VALUE = "last value"
    CONCATENATED = "concatenated"
    CONDITION = "execution condition"
    CONDITION_LAST_VALUE = "execution condition, last value"
    CONDITION_CONCATENATED = "execution condition, concatenated"
    NOT_CONNECTED = "not connected"
    BRANCH = "output"

    @property
    def is_condition(self) -> bool:
        """True if it says whether there is another iteration."""
        return self in (self.CONDITION, self.CONDITION_LAST_VALUE, self.CONDITION_CONCATENATED)


class Roles(Record):
    """The inputs of a loop's port map by role; `merged_from` is Parameter id -> Result id of the back edge that counts.

    `current_iteration` are ids of Parameters; `unfed` are Parameters that nothing feeds.
    """

    sliced: tuple[InputMapping, ...]
    merged: tuple[InputMapping, ...]
    invariant: tuple[InputMapping, ...]
    merged_from: dict[int, int]
    current_iteration: Indices
    unfed: tuple[Layer, ...]

    @property
    def fed(self) -> tuple[InputMapping, ...]:
        """Every entry that brings an outer value in."""
        return (*self.sliced, *self.merged, *self.invariant)

    def role_of(self, entry: InputMapping) -> Role:
        """Return the role of one entry of the port map."""
        if entry.parameter in self.current_iteration:
            return Role.CURRENT_ITERATION
        groups = ((Role.SLICED, self.sliced), (Role.MERGED, self.merged), (Role.INVARIANT, self.invariant))
        for role, group in groups:
            if entry in group:
                return role
        return Role.NOT_CONNECTED if entry.input is None else Role.NOT_USED


class NoEffect(StrEnum):
    """Reason for which a back edge has no effect."""

    EARLIER = "another back edge to the same Parameter comes first"
    SLICED = "the Parameter is sliced, so each iteration gets its slice"
    NUMBER = "the Parameter is the iteration number"
    NOT_FED = "no input is led to the Parameter"


def without_effect(body: Body, roles: Roles, edge: BackEdge) -> NoEffect | None:
    """Return why a back edge of a loop's body has no effect; None where it has one."""
    first = next(other for other in body.back_edges if other.to_layer == edge.to_layer)
    if first is not edge:
        return NoEffect.EARLIER
    if any(entry.parameter == edge.to_layer for entry in roles.sliced):
        return NoEffect.SLICED
    if edge.to_layer in roles.current_iteration:
        return NoEffect.NUMBER
    return None if edge.to_layer in roles.merged_from else NoEffect.NOT_FED


def output_role(entry: OutputMapping) -> OutputRole:
    """Return the role of an output of a port map."""
    is_joined = entry.slicing is not None
    if entry.purpose == EXECUTION_CONDITION:
        if entry.output is None:
            return OutputRole.CONDITION
        return OutputRole.CONDITION_CONCATENATED if is_joined else OutputRole.CONDITION_LAST_VALUE
    if entry.output is None:
        return OutputRole.NOT_CONNECTED
    return OutputRole.CONCATENATED if is_joined else OutputRole.LAST_VALUE


def roles_of(layer: Layer) -> Roles:
    """Return the roles of all inputs of a TensorIterator or Loop. RoleError for an unfitting iteration number."""
    body = layer.bodies[0]
    iterations = _iteration_parameters(body) if layer.type == "Loop" else ()
    entries: dict[int, InputMapping] = {}
    for entry in body.inputs:
        if entry.input is not None and entry.parameter not in iterations:
            entries.setdefault(entry.parameter, entry)
    merged_from: dict[int, int] = {}
    for edge in body.back_edges:
        target = entries.get(edge.to_layer)
        if target is not None and target.slicing is None:
            merged_from.setdefault(edge.to_layer, edge.from_layer)
    rest = [entry for entry in entries.values() if entry.slicing is None]
    return Roles(
        sliced=tuple(entry for entry in entries.values() if entry.slicing is not None),
        merged=tuple(entry for entry in rest if entry.parameter in merged_from),
        invariant=tuple(entry for entry in rest if entry.parameter not in merged_from),
        merged_from=merged_from,
        current_iteration=iterations,
        unfed=tuple(p for p in body.graph.parameters if p.id not in entries and p.id not in iterations),
    )


def _iteration_parameters(body: Body) -> Ints:
    """Return the Parameters that get the iteration number: those marked, or (Loop-5, item 5) the one not mapped."""
    marked = [entry for entry in body.inputs if entry.purpose == CURRENT_ITERATION]
    for entry in marked:
        parameter = body.graph.by_id[entry.parameter]
        if not _fits_iteration_number(parameter):
            message = f"the current iteration goes into {parameter}, which must be i64 or i32, a scalar or of shape [1]"
            raise RoleError(message, entry.line)
    if marked:
        return tuple(entry.parameter for entry in marked)
    mapped = {entry.parameter for entry in body.inputs if entry.input is not None}
    free = [parameter for parameter in body.graph.parameters if parameter.id not in mapped]
    return (free[0].id,) if len(free) == 1 and _fits_iteration_number(free[0]) else ()


def _fits_iteration_number(parameter: Layer) -> bool:
    element_type = parameter_type(parameter)
    is_integer = element_type is None or element_type.name in ("i32", "i64")
    shape = parameter_shape(parameter)
    return is_integer and (shape.accepts(()) or shape.accepts((1,)))


def control_inputs(layer: Layer, body: Body, outer: Graph) -> tuple[int | None, int | None]:
    """Return the indices of a Loop's inputs that carry trip count and execution condition; None for one that is absent.

    Both are mandatory today; in the first draft ports 0 and 1 may be missing, and the condition is the marked entry.
    """
    if not body.first_draft:
        return 0, 1
    connected = [source is not None for source in outer.sources[layer.id]]
    by_port = {port.id: index for index, port in enumerate(layer.inputs) if connected[index]}
    mapped = {entry.input: entry for entry in body.inputs if entry.input is not None}
    condition = next((index for index, entry in mapped.items() if entry.condition), None)
    if condition is None and 1 in by_port and by_port[1] not in mapped and _is(layer, by_port[1], outer, "boolean"):
        condition = by_port[1]
    trip_count = by_port.get(0)
    if trip_count == condition:
        return None, condition
    if trip_count is not None and trip_count in mapped and not _is(layer, trip_count, outer, "i64", "i32"):
        return None, condition
    return trip_count, condition


def _is(layer: Layer, index: int, outer: Graph, *names: str) -> bool:
    """Return True if the input is a single element of one of these types, as far as the file says."""
    source = outer.sources[layer.id][index]
    assert source is not None, "only connected inputs are asked about"
    producer = outer.by_id[source.layer]
    port = producer.outputs[source.output]
    element_type = constant_type(producer) if producer.type == "Constant" else port.element_type
    if producer.type == "Parameter":
        element_type = parameter_type(producer)
    return element_type is not None and element_type.name in names and all(dim == 1 for dim in port.dims)


class ControlOrigin(Record):
    """The layer that computes a value, and the value if it is a Constant whose content is known.

    `output` is the index of the layer's output, None if it has only one. `value` is the value of a single element;
    `shape` replaces it if there are more.
    """

    layer: LayerSite
    output: int | None
    value: bool | int | float | None = None
    shape: Shape | None = None


class Control(Record):
    """Control of a loop's begin and end, or of the side of an If.

    `trip_count` None: no limit. `condition` is the initial condition of a Loop (None: the first iteration runs), or the
    condition of an If. `goes_on` is the condition that the body of a Loop computes in each iteration. `slices_of` are
    the inputs whose slices a TensorIterator counts.
    """

    trip_count: ControlOrigin | None = None
    condition: ControlOrigin | None = None
    goes_on: ControlOrigin | None = None
    slices_of: Ints = ()


def control(model: Model, graph: Graph, layer: Layer) -> Control:
    """Return what controls a layer of `graph` that has bodies, as far as the file says."""
    if layer.type == "If":
        return Control(condition=_origin(model, graph, layer, 0))
    body = layer.bodies[0]
    if layer.type == "TensorIterator":
        sliced = dict.fromkeys(entry.input for entry in body.inputs if entry.slicing is not None)
        return Control(slices_of=tuple(index for index in sliced if index is not None))
    trip_count, condition = control_inputs(layer, body, graph)
    return Control(
        trip_count=_origin(model, graph, layer, trip_count),
        condition=_origin(model, graph, layer, condition),
        goes_on=_goes_on(model, body),
    )


def _goes_on(model: Model, body: Body) -> ControlOrigin | None:
    layer = None if body.condition is None else body.graph.by_id.get(body.condition)
    return None if layer is None else _origin(model, body.graph, layer, 0)


def _origin(model: Model, graph: Graph, layer: Layer, index: int | None) -> ControlOrigin | None:
    source = graph.source(layer.id, index)
    if source is None:
        return None
    producer = graph.by_id[source.layer]
    value, shape = _content(model, producer)
    output = source.output if len(producer.outputs) > 1 else None
    return ControlOrigin(layer_site(producer, str(model.path)), output, value, shape)


def _content(model: Model, layer: Layer) -> tuple[bool | int | float | None, Shape | None]:
    if layer.type != "Constant":
        return None, None
    try:
        value = storable(constant_value(model, layer))
    except ModelError:
        return None, None
    return (value.item(), None) if value.size == 1 else (None, value.shape)


# The pieces of a concatenated (scan) output: appended in constant time, copied with a frame without being copied.

Note = Callable[[str], None]

_SHAPE_OF = attrgetter("shape")
_MOST_WAITING, _BYTES_WAITING = 256, 2**20
_SMALL_PIECE = 4096


class Scan:
    """Collect the Results of the iterations so far; `result` is the body's slot that gives them.

    The newest pieces wait in a list. When the list is long enough, it becomes one block, in which small pieces take no
    more memory than their numbers. Copies share the blocks, and each copy knows how many blocks are its own. A run may
    go back in time and then continue differently. A copy that must grow after another copy has grown takes its own list
    first.
    """

    __slots__ = ("_batch", "_block_count", "_blocks", "_bytes", "_ends", "_first", "_limit", "_waiting", "result")

    def __init__(self, result: int) -> None:
        self.result = result
        self._waiting: list[Any] = []
        self._batch = 1
        self._blocks: list[Any] = []
        self._ends: list[int] = []
        self._block_count = 0
        self._bytes = 0
        self._first: Shape | None = None
        self._limit = LARGEST_TENSOR.get()

    def copy(self) -> Scan:
        """Return the same pieces; growing one of the two does not change the other."""
        twin = copy.copy(self)
        twin._waiting = self._waiting.copy()
        return twin

    @property
    def length(self) -> int:
        """The number of pieces."""
        return self._closed + len(self._waiting)

    @property
    def _closed(self) -> int:
        return self._ends[self._block_count - 1] if self._block_count else 0

    @property
    def identity(self) -> int:
        """Tells the shared blocks apart: copies that share them have the same."""
        return id(self._blocks)

    @property
    def nbytes(self) -> int:
        """The size of the blocks, in bytes."""
        return self._bytes

    def append(self, piece: Any) -> None:
        """Add the Result of one more iteration. TensorTooLarge where all together pass the limit."""
        waiting = self._waiting
        base = piece.base
        # A view would keep all of the tensor alive of which it shows a part.
        waiting.append(piece if base is None or getattr(base, "size", 0) == piece.size else piece.copy())
        if len(waiting) >= self._batch:
            self._close_block()

    @property
    def first_shape(self) -> Shape | None:
        """Return the shape of the first piece; None where there is none."""
        if self._first is None and self.length:
            self._first = self.piece(0).shape
        return self._first

    def ensure_joins(self, piece: Any, slicing: Slicing) -> None:
        """Raise KernelError for a piece that cannot be joined to the others, in the iteration that gives it."""
        first = self.first_shape
        if first is None or piece.shape == first:
            return
        shape, first = piece.shape or (1,), first or (1,)
        if -len(first) <= slicing.axis < len(first):
            _ensure_joins(shape, first, slicing.axis % len(first), abs(slicing.stride), self.length)

    def _close_block(self) -> None:
        """Make a block of all pieces that wait."""
        pieces = self._waiting
        stack, count = _stack(pieces), len(pieces)
        size = sum(piece.nbytes for piece in pieces) if stack is None else stack.nbytes
        if self._bytes + size > self._limit:
            pieces.pop()  # the one that is too much was not added
            ensure_allocatable((self._bytes + size,))
        if len(self._blocks) != self._block_count:
            self._blocks = self._blocks[: self._block_count]
            self._ends = self._ends[: self._block_count]
        self._ends.append(self._closed + count)
        self._blocks.append(pieces if stack is None else stack)
        self._block_count += 1
        self._bytes += size
        self._waiting = []
        each = 1 + size // count
        self._batch = max(1, min(_MOST_WAITING, _BYTES_WAITING // each, 1 + (self._limit - self._bytes) // each))

    def piece(self, iteration: int) -> Array:
        """Return the piece of one iteration, a read-only view."""
        if not 0 <= iteration < self.length:
            raise IndexError(f"iteration {iteration} has no piece, there are {self.length}")
        if iteration >= self._closed:
            piece = self._waiting[iteration - self._closed]
        else:
            index = bisect.bisect_right(self._ends, iteration, hi=self._block_count)
            piece = self._blocks[index][iteration - (self._ends[index - 1] if index else 0)]
        view = np.asarray(piece).view()
        view.flags.writeable = False
        return view

    def _parts(self) -> list[Any]:
        """Return the blocks of this copy, the pieces that still wait as the last one."""
        return [*self._blocks[: self._block_count], *([self._waiting] if self._waiting else [])]

    def shape(self, axis: int) -> Shape | None:
        """Return the shape of the pieces joined along the axis; None where there is none, or they cannot be joined.

        Nothing is joined for it, and of a block of like pieces only one is looked at.
        """
        if not self.length:
            return None
        first = self.piece(0).shape or (1,)
        if not -len(first) <= axis < len(first):
            return None
        axis %= len(first)
        total = 0
        for count, shape in self._shapes():
            if len(shape) != len(first) or _beside(shape, axis) != _beside(first, axis):
                return None
            total += count * shape[axis]
        return (*first[:axis], total, *first[axis + 1 :])

    def _shapes(self) -> Iterator[tuple[int, Shape]]:
        """Yield how many pieces in a row have which shape; a scalar counts as [1]."""
        for part in self._parts():
            if type(part) is list:
                yield from ((1, piece.shape or (1,)) for piece in part)
            else:
                yield len(part), part.shape[1:] or (1,)

    def parts(self, begin: int, end: int | None = None) -> Iterator[Any]:
        """Yield the pieces of the iterations [begin, end), several at a time: lists, or stacks on a leading axis."""
        end = self.length if end is None else min(end, self.length)
        index = bisect.bisect_right(self._ends, begin, hi=self._block_count)
        first = self._ends[index - 1] if index else 0
        while max(begin, first) < end:
            part = self._blocks[index] if index < self._block_count else self._waiting
            yield part[max(begin - first, 0) : end - first]
            first += len(part)
            index += 1

    def stacks(self, begin: int, end: int) -> Iterator[Array]:
        """Yield the pieces of the iterations [begin, end), a new axis first: as many together as are alike."""
        parts: list[Array] = []
        for part in self.parts(begin, end):
            whole = _stack(part) if type(part) is list else part
            parts += [_alone(piece) for piece in part] if whole is None else [whole]
        for _, alike in groupby(parts, key=lambda one: (one.shape[1:], one.dtype)):
            together = list(alike)
            yield together[0] if len(together) == 1 else np.concatenate(together)

    def concatenated(self, slicing: Slicing, rules: Rules, note: Note) -> Array:
        """Return all pieces joined along the axis, in iteration order or reversed.

        Source: TensorIterator-1, port_map. A scalar piece counts as a piece of shape [1]. Raises KernelError for shapes
        that cannot be joined, and for an axis out of range. OpenVINO leaves pieces of the right length that differ
        elsewhere undefined; this method fills them up with zeros and calls `note`. It also calls `note` for pieces of
        another length, which only OpenVINO refuses.
        """
        first = self.piece(0)
        axis = normalize_axis(slicing.axis, max(first.ndim, 1))
        if len({shape for _, shape in self._shapes()}) > 1:
            pieces = [np.atleast_1d(piece) for part in self._parts() for piece in part]
            return np.concatenate(_joinable(pieces, axis, slicing, rules, note), axis=axis)
        _check_lengths([first], axis, abs(slicing.stride), rules, note)
        parts = [stack(part) if type(part) is list else part for part in self._parts()]
        stacked = in_axis_order(np.concatenate(parts), slicing)
        if first.ndim == 0:
            return np.ascontiguousarray(stacked)
        shape = (*first.shape[:axis], len(stacked) * first.shape[axis], *first.shape[axis + 1 :])
        return np.ascontiguousarray(np.moveaxis(stacked, 0, axis).reshape(shape))


def _stack(pieces: list[Any]) -> Array | None:
    """Small pieces of one shape as one tensor, a new axis first; None for others."""
    first = pieces[0]
    if first.nbytes > _SMALL_PIECE:
        return None
    try:
        if len(set(map(len if first.ndim else _SHAPE_OF, pieces))) > 1:
            return None
        return stack(pieces)  # which looks at all dimensions but the first, and faster than can be done here
    except (TypeError, ValueError):
        return None


def stack(pieces: list[Any]) -> Array:
    """Pieces of one shape as one tensor, a new axis first; concatenate is several times as fast as stack."""
    first = pieces[0]
    if first.ndim == 0:
        return np.array(pieces, first.dtype)
    return np.concatenate(pieces).reshape(len(pieces), *first.shape)


def _check_lengths(pieces: list[Array], axis: int, size: int, rules: Rules, note: Note) -> None:
    """Each piece as long as the stride: the plugin refuses others, the specification does not say."""
    lengths = (piece.shape[axis] for piece in pieces if piece.ndim > axis)
    odd = next((length for length in lengths if length != size), size)
    if odd != size:
        text = f"a piece is {odd} long along axis {axis}, OpenVINO expects the stride, {size}"
        if rules is Rules.OPENVINO:
            raise KernelError(text)
        note(text)


def _joinable(pieces: list[Array], axis: int, slicing: Slicing, rules: Rules, note: Note) -> list[Array]:
    """Return the pieces in the order of joining, filled up to one shape where they differ beside the axis."""
    first, size = pieces[0].shape, abs(slicing.stride)
    _check_lengths(pieces, axis, size, rules, note)
    for iteration, piece in enumerate(pieces):
        _ensure_joins(piece.shape, first, axis, size, iteration)
    if len({_beside(piece.shape, axis) for piece in pieces}) == 1:
        return in_axis_order(pieces, slicing)
    note("its pieces differ in shape and cannot be joined: the output is undefined, shorter ones are filled with zeros")
    largest = np.max([piece.shape for piece in pieces], axis=0)
    ensure_allocatable((len(pieces), *largest.tolist()), pieces[0].dtype)
    return [_filled_up(piece, axis, largest) for piece in in_axis_order(pieces, slicing)]


def _alone(piece: Any) -> Array:
    """Return a piece with a new axis first. Of 64 dimensions the last two become one: numpy has no 65th."""
    if np.ndim(piece) == LARGEST_RANK:
        piece = piece.reshape(*piece.shape[:-2], -1)
    found: Array = piece[np.newaxis]
    return found


def _ensure_joins(shape: Shape, first: Shape, axis: int, size: int, iteration: int) -> None:
    """Raise KernelError for a piece that can neither be joined to the first one nor be filled up."""
    if len(shape) == len(first) and (_beside(shape, axis) == _beside(first, axis) or shape[axis] == size):
        return
    text = f"the piece of iteration {iteration} has the shape {shape_text(shape)}"
    raise KernelError(f"{text}, the piece of iteration 0 {shape_text(first)}: they cannot be joined")


def _beside(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _filled_up(piece: Array, axis: int, largest: Array) -> Array:
    shape = [int(size) for size in largest]
    shape[axis] = piece.shape[axis]
    whole = np.zeros(shape, piece.dtype)
    whole[tuple(slice(size) for size in piece.shape)] = piece
    return whole


def truth(value: Any) -> bool | None:
    """Return what a value says as a condition; None where it cannot be one, on which the run will stop."""
    try:
        return condition(value)
    except KernelError:
        return None
