"""An operation at a moment of a run: its inputs, outputs and place, what rules say of it, what its shape depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from stepper import element_types
from stepper.debug.causes.cause import (
    Carried,
    Element,
    Enclosure,
    LinkForm,
    Location,
    PartRole,
    TensorBrief,
    ValueChange,
)
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.loops import MergedInput
from stepper.engine.program import CompiledModel, Operation, OpKind, Program, Value
from stepper.ir.model import Body, Layer, layer_site
from stepper.ops.operands import normalize_axis
from stepper.query.address_resolution import SIDE_NAMES, Atlas, unique_name
from stepper.query.address_syntax import Address, Level, Name, NameKind
from stepper.tensors.difference import index_of
from stepper.tensors.number_text import array_text


class ValueNotKept(Exception):
    """A value is gone: a recorded run that was resumed keeps only what is still read."""


class OperationAt(NamedTuple):
    """An operation, what its inputs and outputs hold, and the output that is asked about."""

    operation: Operation
    values: tuple[Array | None, ...]
    results: tuple[Array, ...]
    output: int

    @staticmethod
    def in_frame(frame: Frame, operation: Operation, slot: int) -> OperationAt:
        """Return an operation that has run in a frame; `slot` is the slot of the output."""
        values = inputs_of(frame, operation)
        results = tuple(np.asarray(frame.values[one]) for one in operation.outputs)
        arrays = tuple(None if value is None else np.asarray(value) for value in values)
        return OperationAt(operation, arrays, results, operation.outputs.index(slot))

    @property
    def type(self) -> str:
        """Return the type of the operation."""
        return self.operation.layer.type

    @property
    def result(self) -> Array:
        """Return what the output holds."""
        return self.results[self.output]

    @property
    def given(self) -> list[int]:
        """Return the inputs that are connected."""
        return [index for index, value in enumerate(self.values) if value is not None]

    @property
    def size(self) -> int:
        """Return how many elements all inputs have."""
        return sum(value.size for value in self.values if value is not None)

    def attribute(self, name: str, default: str = "") -> str:
        """Return an attribute as the file has it."""
        return self.operation.layer.attributes.get(name, default)

    def is_set(self, name: str) -> bool:
        """True if an attribute is."""
        return self.attribute(name, "false").lower() in ("true", "1")

    def axis(self, default: int = -1) -> int:
        """Return the axis of the output that the attribute of this name says."""
        return normalize_axis(int(self.attribute("axis", str(default))), self.result.ndim)

    def axes(self, index: int, rank: int) -> list[int]:
        """Return the axes of a rank that an input names."""
        return [normalize_axis(int(axis), rank) for axis in np.ravel(self.value(index))]

    def value(self, index: int) -> Array:
        """Return what an input holds. Raise IndexError for one that is not connected."""
        found = self.values[index] if index < len(self.values) else None
        if found is None:
            raise IndexError(index)
        return found

    def factor(self, index: int, element: Element | None = None) -> Factor:
        """Return an input's element; without one, the only element, or the whole."""
        value = self.value(index)
        if element is None and value.size == 1:
            element = (0,) * value.ndim
        return Factor(index, element, None if element is None else value[element])

    def aligned(self, index: int, element: Element) -> Element | None:
        """Return the element of an input that is broadcast to one of the output; None where shapes forbid it."""
        shape, result = self.value(index).shape, self.result.shape
        skipped = 0 if index and self.attribute("auto_broadcast") == "pdpd" else len(result) - len(shape)
        if skipped < 0 or any(size not in (1, extent) for size, extent in zip(shape, result[skipped:], strict=False)):
            return None
        return tuple(0 if size == 1 else at for size, at in zip(shape, element[skipped:], strict=False))

    def mask(self, element: Element) -> Array:
        """Return a mask of the output that is True for one element."""
        found = np.zeros(self.result.shape, bool)
        found[element] = True
        return found

    def run(self, *inputs: Any) -> Array:
        """Return what the output is with other inputs. Raise what the kernel raises."""
        function = self.operation.function
        assert function is not None, "it has a kernel"
        with np.errstate(all="ignore"):
            results = function(*inputs)
        return np.asarray(results[self.output] if self.operation.several_outputs else results)


def differing(a: Any, b: Any) -> Array:
    """Return in which elements two tensors differ, a NaN equalling a NaN: in all where their shapes do."""
    if a.shape != b.shape:
        return np.ones(a.shape, bool)
    with np.errstate(all="ignore"):
        return np.asarray(~((a == b) | ((a != a) & (b != b))))


def inputs_of(frame: Frame, operation: Operation) -> list[Value | None]:
    """Return what the inputs of an operation hold, None of those not connected or no longer kept."""
    return [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]


def ensure_kept(frame: Frame, operation: Operation) -> None:
    """Raise ValueNotKept where what an input of an operation held is gone."""
    if any(slot >= 0 and frame.values[slot] is None for slot in operation.inputs):
        raise ValueNotKept


# --- what elements depend on ------------------------------------------------------------------------------------------


class Method(StrEnum):
    """How the elements that matter were found."""

    RULE = "rule"
    PERTURBED = "perturbation"
    WHOLE = "whole tensors"


class Dependence(NamedTuple):
    """Elements of an input that matter. `is_index`: they say where from, not how much."""

    input: int
    mask: Array
    is_index: bool = False


class Dependences(NamedTuple):
    """All elements that matter, how that was found, and how often the kernel ran for it."""

    found: list[Dependence]
    method: Method
    kernel_runs: int = 0


# --- what an element is made of ---------------------------------------------------------------------------------------


class Factor(NamedTuple):
    """An element of an input: its number, which element (None: the whole tensor), and what it is.

    `is_shape`: it is an extent, and `element` says along which axis.
    """

    input: int
    element: Element | None
    value: Any
    is_shape: bool = False


class Contribution(NamedTuple):
    """A factor in its role. `amount` is the term that it stands for.

    `share` is the share of the term in the result (None: no meaning). `beside` is the other factor of the term.
    """

    factor: Factor
    role: PartRole = PartRole.ARGUMENT
    amount: float | None = None
    share: float | None = None
    beside: Factor | None = None

    @property
    def is_value(self) -> bool:
        """True for what says how much, False for what says where from, or was only compared."""
        return self.role not in (PartRole.INDEX, PartRole.CONDITION, PartRole.COMPARED)


class Contributions(NamedTuple):
    """The parts of an element, the largest first; `total` is how many there are in all.

    `weights` are what each of the parts of a sum is of all magnitudes together; `terms` are the amounts of all, in the
    order in which `factor_at` knows them (None: it is no sum).
    """

    form: LinkForm
    parts: tuple[Contribution, ...]
    total: int
    weights: tuple[float, ...] = ()
    terms: Array | None = None
    factor_at: Callable[[int], tuple[Factor, Factor | None]] | None = None


# --- what an extent depends on ----------------------------------------------------------------------------------------


class ExtentPart(NamedTuple):
    """An extent of an input (`is_shape`), or an element of it, that an extent depends on.

    `is_index`: it says which one, not how much.
    """

    input: int
    element: Element
    is_shape: bool = True
    is_index: bool = False


class ExtentParts(NamedTuple):
    """All that an extent depends on; `form` says how it is made of several parts."""

    parts: list[ExtentPart]
    form: LinkForm = LinkForm.FUNCTION
    has_rule: bool = True


_MOST_ELEMENTS = 4096
"""Elements of an input that are named one by one as what says a shape."""

ExtentRule = Callable[[OperationAt, int], list[ExtentPart] | ExtentParts | None]


def _extent(at: OperationAt, index: int, axis: int) -> ExtentPart:
    """Return an extent of an input. Raise IndexError where it has no such axis."""
    rank = at.value(index).ndim
    if not -rank <= axis < rank:
        raise IndexError(axis)
    return ExtentPart(index, (axis % rank,))


def _element(at: OperationAt, index: int, place: int, *, is_index: bool = False) -> ExtentPart:
    """Return an element of an input by its place in the flat tensor. Raise IndexError for none."""
    value = at.value(index)
    if not 0 <= place < value.size:
        raise IndexError(place)
    return ExtentPart(index, index_of(place, value.shape), is_shape=False, is_index=is_index)


def _elements(at: OperationAt, index: int, *, is_index: bool = False) -> list[ExtentPart]:
    """Return all elements of an input that is connected."""
    size = min(at.value(index).size, _MOST_ELEMENTS) if index in at.given else 0
    return [_element(at, index, place, is_index=is_index) for place in range(size)]


def any_extent(at: OperationAt, _axis: int) -> ExtentParts:
    """Return all extents of an operation without a rule, and the elements that can say a shape."""
    wanted = _OF_VALUES.get(at.type, ()) if at.operation.kind is OpKind.KERNEL else None
    found = [ExtentPart(index, (axis,)) for index in at.given for axis in range(at.value(index).ndim)]
    for index in at.given:
        if wanted is None or index in wanted:
            found += _elements(at, index)
    return ExtentParts(found, has_rule=False)


_OF_VALUES = {
    **dict.fromkeys(("NonZero", "Unique", "NonMaxSuppression", "MulticlassNms", "MatrixNms", "NMSRotated"), None),
    **dict.fromkeys(("VariadicSplit", "Interpolate", "Pad", "Slice", "StridedSlice"), (1, 2, 3, 4)),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Broadcast", "Tile", "Transpose", "TopK", "OneHot"), (1,)),
    "Range": None,
}
"""Inputs whose values settle the shape of an output where no rule does (None: all)."""


# --- extents that are handed on ---------------------------------------------------------------------------------------


def same(at: OperationAt, axis: int, index: int = 0) -> list[ExtentPart]:
    """Return the extent of the input whose shape the operation keeps."""
    return [_extent(at, index, axis)]


def normalized(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Return the extent of BatchNormInference's data, the third input in opset 1."""
    return same(at, axis, 2 if at.operation.layer.definition == 1 else 0)


def _meeting(at: OperationAt, inputs: Sequence[int], rank: int, axis: int) -> ExtentParts:
    """Return the extents of inputs that meet at an axis of a broadcast of this rank: those that make its extent."""
    found = []
    for index in inputs:
        value = at.value(index)
        own = axis - (rank - value.ndim)
        if own >= 0 and value.shape[own] == at.result.shape[axis]:
            found.append(ExtentPart(index, (own,)))
    return ExtentParts(found, LinkForm.BROADCAST)


def broadcast(at: OperationAt, axis: int) -> list[ExtentPart] | ExtentParts:
    """Return the extents behind an axis of an operation that works element by element."""
    if at.attribute("auto_broadcast") == "pdpd" and len({at.value(index).shape for index in at.given}) > 1:
        return same(at, axis)
    return _meeting(at, at.given, at.result.ndim, axis)


def matmul(at: OperationAt, axis: int) -> list[ExtentPart] | ExtentParts:
    """Return the extents behind an axis of MatMul: rows, columns, and broadcast batches."""
    a, b = at.value(0), at.value(1)
    rank, columns, rows = at.result.ndim, int(b.ndim > 1), int(a.ndim > 1)
    from_end = rank - axis
    if columns and from_end == 1:
        return [_extent(at, 1, -2 if at.is_set("transpose_b") else -1)]
    if rows and from_end == columns + 1:
        return [_extent(at, 0, -1 if at.is_set("transpose_a") else -2)]
    batches = [index for index, value in enumerate((a, b)) if value.ndim > 2]
    return _meeting(at, batches, rank - columns - rows + 2, axis)


def transposed(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Transpose."""
    order = np.ravel(at.value(1))
    if not order.size:
        return same(at, at.result.ndim - 1 - axis)
    return [_extent(at, 0, int(order[axis])), _element(at, 1, axis, is_index=True)]


def reduced(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of all reductions."""
    rank = at.value(0).ndim
    axes = at.axes(1, rank)
    if at.is_set("keep_dims"):
        return [_element(at, 1, axes.index(axis), is_index=True)] if axis in axes else same(at, axis)
    kept = [one for one in range(rank) if one not in axes]
    return [_extent(at, 0, kept[axis]), *_elements(at, 1, is_index=True)]


def concatenated(at: OperationAt, axis: int) -> ExtentParts:
    """Of Concat."""
    found = [_extent(at, index, axis) for index in at.given]
    return ExtentParts(found, LinkForm.SUM if at.axis(0) == axis else LinkForm.FUNCTION)


def batch_dims(at: OperationAt) -> int:
    """Return how many axes of Gather's data and indices go together; a negative number counts those of the indices."""
    batch = int(at.attribute("batch_dims", "0"))
    return batch + at.value(1).ndim if batch < 0 else batch


def gathered(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Return the extents behind an axis of Gather: data axes around the axes of the indices."""
    data, indices = at.value(0), at.value(1)
    begin = at.axes(2, data.ndim)[0]
    batch = batch_dims(at)
    inner = indices.ndim - batch
    if axis < begin:
        return same(at, axis)
    return same(at, axis - begin + batch, 1) if axis < begin + inner else same(at, axis - inner + 1)


# --- extents that are said --------------------------------------------------------------------------------------------


def reshaped(at: OperationAt, axis: int) -> list[ExtentPart] | ExtentParts:
    """Return the source of an extent of Reshape: an element, a copied extent, or the rest of all."""
    said = int(np.ravel(at.value(1))[axis])
    own = _element(at, 1, axis)
    if said > 0:
        return [own]
    if said == 0 and at.is_set("special_zero"):
        return [_extent(at, 0, axis), own._replace(is_index=True)]
    extents = [ExtentPart(0, (one,)) for one in range(at.value(0).ndim)]
    others = [part for part in _elements(at, 1) if part != own]
    return ExtentParts([*extents, *(part._replace(is_index=True) for part in (own, *others))], LinkForm.PRODUCT)


def unsqueezed(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Unsqueeze."""
    rank = at.result.ndim
    axes = at.axes(1, rank)
    if axis in axes:
        return [_element(at, 1, axes.index(axis), is_index=True)]
    kept = [one for one in range(rank) if one not in axes]
    return [_extent(at, 0, kept.index(axis)), *_elements(at, 1, is_index=True)]


def squeezed(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Squeeze."""
    shape = at.value(0).shape
    named = at.axes(1, len(shape)) if 1 in at.given and at.value(1).size else range(len(shape))
    kept = [one for one, size in enumerate(shape) if size != 1 or one not in named]
    return [_extent(at, 0, kept[axis]), *_elements(at, 1, is_index=True)]


def broadcast_to(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Broadcast."""
    target = _element(at, 1, axis + at.value(1).size - at.result.ndim)
    own = axis - (at.result.ndim - at.value(0).ndim)
    is_given = at.attribute("mode", "numpy") == "bidirectional" and own >= 0 and at.value(0).shape[own] > 1
    return same(at, own) if is_given else [target]


def tiled(at: OperationAt, axis: int) -> ExtentParts:
    """Return the extents behind an axis of Tile: an extent times a repeat, if there are both."""
    own, place = (axis - (at.result.ndim - rank) for rank in (at.value(0).ndim, at.value(1).size))
    found = same(at, own) if own >= 0 else []
    return ExtentParts([*found, *([_element(at, 1, place)] if place >= 0 else [])], LinkForm.PRODUCT)


def sliced(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Slice."""
    axes = at.axes(4, at.value(0).ndim) if len(at.values) > 4 else list(range(at.value(1).size))
    said = [_element(at, index, axes.index(axis)) for index in (1, 2, 3)] if axis in axes else []
    return [*said, _extent(at, 0, axis)]


def strided(at: OperationAt, axis: int) -> list[ExtentPart] | None:
    """Return the extent behind an axis of a StridedSlice that keeps the rank."""
    if any("1" in at.attribute(name) for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")):
        return None
    said = []
    for index, name in enumerate(("begin_mask", "end_mask", ""), 1):
        mask = at.attribute(name).replace(" ", "").split(",")
        is_said = axis < at.value(1).size and index < len(at.values)
        if is_said and (not name or axis >= len(mask) or mask[axis] != "0"):
            said.append(_element(at, index, axis))
    return [*said, _extent(at, 0, axis)]


def split(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Return the extents behind an axis of Split or VariadicSplit."""
    if axis != at.axes(1, at.result.ndim)[0]:
        return same(at, axis)
    if at.type == "VariadicSplit" and int(np.ravel(at.value(2))[at.output]) >= 0:
        return [_element(at, 2, at.output)]
    return [_extent(at, 0, axis), *(_elements(at, 2, is_index=True) if at.type == "VariadicSplit" else [])]


def top(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of TopK."""
    return [_element(at, 1, 0)] if axis == at.axis() else same(at, axis)


def one_hot(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of OneHot."""
    new = at.axis()
    return [_element(at, 1, 0)] if axis == new else same(at, axis - int(axis > new))


def padded(at: OperationAt, axis: int) -> ExtentParts:
    """Of Pad."""
    return ExtentParts([_extent(at, 0, axis), *(_element(at, index, axis) for index in (1, 2))], LinkForm.SUM)


def ranged(at: OperationAt, _axis: int) -> list[ExtentPart]:
    """Of Range."""
    return [part for index in (1, 0, 2) for part in _elements(at, index)]


def counted_elements(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Return the source of an extent of NonZero: the elements counted; the row count is the rank."""
    return _elements(at, 0) if axis else []


# --- windows and cells ------------------------------------------------------------------------------------------------


def convolved(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of all convolutions."""
    if axis == 0:
        return same(at, 0)
    is_grouped, is_backward = at.type.startswith("Group"), at.type.endswith("BackpropData")
    if axis > 1:
        return [_extent(at, 0, axis), _extent(at, 1, axis + is_grouped)]
    groups = [_extent(at, 1, 0)] if is_grouped else []
    return [*groups, _extent(at, 1, is_grouped + is_backward)]


def cell(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Return the extents behind an axis of a cell of a recurrent network."""
    return [_extent(at, *((0, 0) if axis == 0 else (1, 1)))]


def file_of(compiled: CompiledModel) -> str:
    """Return the XML file of a model, as causes name it."""
    return str(compiled.model.path)


def location_of(frames: Sequence[Frame], file: str, layer: Layer | None = None, output: int | None = None) -> Location:
    """Return the place of a layer in the innermost of these frames.

    The first frame is the model's own graph.
    """
    site = None if layer is None else layer_site(layer, file)
    return Location(site, output, tuple(_enclosure(frame, file) for frame in frames[1:]))


def _enclosure(frame: Frame, file: str) -> Enclosure:
    activation = frame.active
    layer = activation.operation.layer
    iteration = activation.iteration if layer.is_loop and activation.iteration >= 0 else None
    return Enclosure(layer_site(layer, file), body_of_frame(frame).role, iteration)


def address_at(location: Location, compiled: CompiledModel, atlas: Atlas | None = None) -> Address | None:
    """Return the address of the place of a value, with the iterations of the loops around it; None for no operation.

    Whoever asks for many gives the atlas of the model.
    """
    if location.operation is None:
        return None
    levels: list[Level] = []
    program = compiled.main
    for inside, inner in zip(location.path, _programs_around(location, atlas or Atlas(compiled)), strict=True):
        levels.append(Level(unique_name(program.graph.by_id[inside.layer.id], program), inside.iteration))
        if inner.path[-1].type == "If":
            levels.append(Level(Name(NameKind.PLAIN, SIDE_NAMES[inside.body])))
        program = inner
    return Address(tuple(levels), unique_name(program.graph.by_id[location.operation.id], program), location.output)


def program_of(location: Location, compiled: CompiledModel) -> Program:
    """Return the program of the graph of a place."""
    return next(reversed(list(_programs_around(location, Atlas(compiled)))), compiled.main)


def _programs_around(location: Location, atlas: Atlas) -> Iterator[Program]:
    """Yield the programs of the bodies around a place, from the outside inwards."""
    program = atlas.compiled.main
    for inside in location.path:
        layer = program.graph.by_id[inside.layer.id]
        sides = [body.graph for body in layer.bodies if body.role == inside.body]
        program = next(inner for inner in atlas.bodies(layer) if inner.graph in sides)
        yield program


def body_of_frame(frame: Frame) -> Body:
    """Return the body of a loop or If that runs in a frame."""
    activation = frame.active
    return next(body for body in activation.operation.layer.bodies if body.graph is frame.program.graph)


def operation_location(frames: Sequence[Frame], file: str, operation: Operation, slot: int) -> Location:
    """Return the place of the value in a slot that an operation computes; its output is named where it has several."""
    output = output_named(operation.layer, operation.outputs.index(slot))
    return location_of(frames, file, operation.layer, output)


def output_named(layer: Layer, output: int) -> int | None:
    """Return an output where a layer has several."""
    return output if len(layer.outputs) > 1 else None


def carried_of(program: Program, entry: MergedInput, file: str) -> Carried:
    """Return the back edge of an entry of a body's port map."""
    result = program.graph.results[program.results.index(entry.result)]
    return Carried(layer_site(result, file), layer_site(program.parameter(entry.parameter), file), entry.line)


def shown(value: Value) -> str:
    """Return a value in few words: its number alone where it is one of rank 0, else with type and shape."""
    return str(value.item()) if value.ndim == 0 and value.dtype.names is None else array_text(value)


def brief_of(value: Value) -> TensorBrief:
    """Return type, shape and, where they are few, the numbers of a value."""
    return TensorBrief(element_types.name_of(value.dtype), tuple(value.shape), shown(value))


def change_of(before: Value, now: Value) -> ValueChange:
    """Return how a value differs from what it was."""
    old, new = brief_of(before), brief_of(now)
    if now.size == 1 or now.shape != before.shape or now.dtype != before.dtype:
        return ValueChange(old, new)
    a, b = np.asarray(before), np.asarray(now)
    places = np.flatnonzero(differing(a, b))
    if not places.size:
        return ValueChange(old, new, 0, int(now.size))
    first = index_of(int(places[0]), now.shape)
    return ValueChange(old, new, int(places.size), int(now.size), first, str(a[first]), str(b[first]))
