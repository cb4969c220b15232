"""On what an extent of an operation's output depends: on extents of its inputs, or on elements that say a shape.

Each function is the rule of types in the table of rules.py. Without one all extents of all inputs matter, and the
elements of those inputs that can say a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from stepper.debug.causes.cause import LinkForm
from stepper.debug.provenance.operation_at import ExtentPart, ExtentParts, OperationAt
from stepper.engine.program import OpKind
from stepper.ops.operands import normalize_axis
from stepper.tensors.difference import index_of

_MOST_ELEMENTS: Final = 4096
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


_OF_VALUES: Final = {
    **dict.fromkeys(("NonZero", "Unique", "NonMaxSuppression", "MulticlassNms", "MatrixNms", "NMSRotated"), None),
    **dict.fromkeys(("VariadicSplit", "Interpolate", "Pad", "Slice", "StridedSlice"), (1, 2, 3, 4)),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Broadcast", "Tile", "Transpose", "TopK", "OneHot"), (1,)),
    "Range": None,
}
"""Inputs whose values settle the shape of an output where no rule does (None: all)."""


# --- extents that are handed on ---------------------------------------------------------------------------------------


def same(at: OperationAt, axis: int, index: int = 0) -> list[ExtentPart]:
    """Of what keeps the shape of an input."""
    return [_extent(at, index, axis)]


def normalized(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of BatchNormInference, whose data is the third input as of opset 1."""
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
    """Of what works element by element."""
    if at.attribute("auto_broadcast") == "pdpd" and len({at.value(index).shape for index in at.given}) > 1:
        return same(at, axis)
    return _meeting(at, at.given, at.result.ndim, axis)


def matmul(at: OperationAt, axis: int) -> list[ExtentPart] | ExtentParts:
    """Of MatMul: its rows, its columns, and batches that are broadcast."""
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


def gathered(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Gather: those of the data around those of the indices."""
    data, indices = at.value(0), at.value(1)
    begin = at.axes(2, data.ndim)[0]
    batch = normalize_axis(int(at.attribute("batch_dims", "0")), indices.ndim + 1) if indices.ndim else 0
    inner = indices.ndim - batch
    if axis < begin:
        return same(at, axis)
    return same(at, axis - begin + batch, 1) if axis < begin + inner else same(at, axis - inner + 1)


# --- extents that are said --------------------------------------------------------------------------------------------


def reshaped(at: OperationAt, axis: int) -> list[ExtentPart] | ExtentParts:
    """Of Reshape: said by an element, copied, or what is left of all."""
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
    """Of Tile: an extent times a repeat, where there are both."""
    own, place = (axis - (at.result.ndim - rank) for rank in (at.value(0).ndim, at.value(1).size))
    found = same(at, own) if own >= 0 else []
    return ExtentParts([*found, *([_element(at, 1, place)] if place >= 0 else [])], LinkForm.PRODUCT)


def sliced(at: OperationAt, axis: int) -> list[ExtentPart]:
    """Of Slice."""
    axes = at.axes(4, at.value(0).ndim) if len(at.values) > 4 else list(range(at.value(1).size))
    said = [_element(at, index, axes.index(axis)) for index in (1, 2, 3)] if axis in axes else []
    return [*said, _extent(at, 0, axis)]


def strided(at: OperationAt, axis: int) -> list[ExtentPart] | None:
    """Of a StridedSlice that keeps the rank."""
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
    """Of Split and VariadicSplit."""
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
    """Of NonZero: how many there are; how many rows is the rank."""
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
    """Of cells of recurrent networks."""
    return [_extent(at, *((0, 0) if axis == 0 else (1, 1)))]
