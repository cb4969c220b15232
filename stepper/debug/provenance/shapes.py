"""On what an extent of an operation's output depends: on extents of its inputs, or on elements that say a shape.

An operation has a rule, which follows from its definition; without one all extents of all inputs matter, and the
elements of those inputs that can say a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from stepper.element_types import Array
from stepper.engine.program import Operation, OpKind, Value
from stepper.ops.operands import normalize_axis
from stepper.ops.registry import FAMILY_OF

_MOST_ELEMENTS: Final = 4096
"""Elements of an input that are named one by one as what says a shape."""


class ExtentPart(NamedTuple):
    """An extent of an input (`is_shape`), or an element of it, that an extent depends on.

    `is_index`: it says which one, not how much.
    """

    input: int
    element: tuple[int, ...]
    is_shape: bool = True
    is_index: bool = False


class ExtentParts(NamedTuple):
    """All that an extent depends on; `is_sum`, `is_product`: it is that of these, `is_broadcast`: it is each."""

    parts: list[ExtentPart]
    is_sum: bool = False
    is_product: bool = False
    has_rule: bool = True
    is_broadcast: bool = False


class _ExtentAsked(NamedTuple):
    operation: Operation
    values: Sequence[Array | None]
    shape: tuple[int, ...]
    output: int
    axis: int

    def value(self, index: int) -> Array:
        """Return what an input holds. Raise IndexError for one that is not connected."""
        found = self.values[index] if index < len(self.values) else None
        if found is None:
            raise IndexError(index)
        return found

    def attribute(self, name: str, default: str = "") -> str:
        return self.operation.layer.attributes.get(name, default)

    def is_set(self, name: str) -> bool:
        return self.attribute(name, "false").lower() in ("true", "1")

    def extent(self, index: int, axis: int) -> ExtentPart:
        """Return an extent of an input. Raise IndexError where it has no such axis."""
        rank = self.value(index).ndim
        if not -rank <= axis < rank:
            raise IndexError(axis)
        return ExtentPart(index, (axis % rank,))

    def element(self, index: int, place: int, *, is_index: bool = False) -> ExtentPart:
        """Return an element of an input by its place in the flat tensor. Raise IndexError for none."""
        value = self.value(index)
        if not 0 <= place < value.size:
            raise IndexError(place)
        element = tuple(int(at) for at in np.unravel_index(place, value.shape)) if value.ndim else ()
        return ExtentPart(index, element, is_shape=False, is_index=is_index)

    def elements(self, index: int, *, is_index: bool = False) -> list[ExtentPart]:
        """Return all elements of an input that is connected."""
        value = self.values[index] if index < len(self.values) else None
        size = 0 if value is None else min(value.size, _MOST_ELEMENTS)
        return [self.element(index, place, is_index=is_index) for place in range(size)]


def shape_parts(
    operation: Operation, values: Sequence[Value | None], output: int, shape: tuple[int, ...], axis: int
) -> ExtentParts:
    """Return on what the extent of an output along an axis depends, given what the inputs hold."""
    arrays = tuple(None if value is None else np.asarray(value) for value in values)
    asked = _ExtentAsked(operation, arrays, shape, output, axis)
    rule = _RULES.get(operation.layer.type) if operation.kind is OpKind.KERNEL else None
    if rule is not None:
        try:
            found = rule(asked)
        except (ValueError, IndexError, TypeError):  # attributes or ranks that no rule here provides for
            found = None
        if found is not None:
            return found if isinstance(found, ExtentParts) else ExtentParts(found)
    return ExtentParts(_anything(asked), has_rule=False)


def _anything(asked: _ExtentAsked) -> list[ExtentPart]:
    wanted = _OF_VALUES.get(asked.operation.layer.type, ()) if asked.operation.kind is OpKind.KERNEL else None
    found: list[ExtentPart] = []
    for index, value in enumerate(asked.values):
        if value is not None:
            found += [ExtentPart(index, (axis,)) for axis in range(value.ndim)]
    for index, value in enumerate(asked.values):
        if value is not None and (wanted is None or index in wanted):
            found += asked.elements(index)
    return found


_OF_VALUES: Final = {
    **dict.fromkeys(("NonZero", "Unique", "NonMaxSuppression", "MulticlassNms", "MatrixNms", "NMSRotated"), None),
    **dict.fromkeys(("VariadicSplit", "Interpolate", "Pad", "Slice", "StridedSlice"), (1, 2, 3, 4)),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Broadcast", "Tile", "Transpose", "TopK", "OneHot"), (1,)),
    "Range": None,
}
"""Inputs whose values settle the shape of an output where no rule does (None: all)."""


# --- extents that are handed on ---------------------------------------------------------------------------------------


def _same(asked: _ExtentAsked) -> list[ExtentPart]:
    return [asked.extent(0, asked.axis)]


def _normalized(asked: _ExtentAsked) -> list[ExtentPart]:
    """Of BatchNormInference, whose data is the third input as of opset 1."""
    return [asked.extent(2 if asked.operation.layer.definition == 1 else 0, asked.axis)]


def _broadcast_of(asked: _ExtentAsked, inputs: Sequence[int], rank: int, axis: int, extent: int) -> ExtentParts:
    """Return the extents of inputs that meet at an axis of a broadcast of this rank: those that make its extent."""
    found = []
    for index in inputs:
        own = axis - (rank - asked.value(index).ndim)
        if own >= 0 and (extent == asked.value(index).shape[own]):
            found.append(asked.extent(index, own))
    return ExtentParts(found, is_broadcast=True)


def _broadcast(asked: _ExtentAsked) -> list[ExtentPart] | ExtentParts:
    given = [index for index, value in enumerate(asked.values) if value is not None]
    if asked.attribute("auto_broadcast") == "pdpd" and len({asked.value(index).shape for index in given}) > 1:
        return [asked.extent(0, asked.axis)]
    return _broadcast_of(asked, given, len(asked.shape), asked.axis, asked.shape[asked.axis])


def _matmul(asked: _ExtentAsked) -> list[ExtentPart] | ExtentParts:
    a, b = asked.value(0), asked.value(1)
    rank, from_end = len(asked.shape), len(asked.shape) - asked.axis
    columns = int(b.ndim > 1)
    if columns and from_end == 1:
        return [asked.extent(1, -2 if asked.is_set("transpose_b") else -1)]
    if a.ndim > 1 and from_end == columns + 1:
        return [asked.extent(0, -1 if asked.is_set("transpose_a") else -2)]
    matrix = columns + int(a.ndim > 1)
    batches = [index for index, value in enumerate((a, b)) if value.ndim > 2]
    found = []
    for index in batches:
        own = asked.axis - (rank - matrix) + asked.value(index).ndim - 2
        if own >= 0 and asked.value(index).shape[own] == asked.shape[asked.axis]:
            found.append(asked.extent(index, own))
    return ExtentParts(found, is_broadcast=True)


def _transpose(asked: _ExtentAsked) -> list[ExtentPart]:
    order = np.ravel(asked.value(1))
    if not order.size:
        return [asked.extent(0, len(asked.shape) - 1 - asked.axis)]
    return [asked.extent(0, int(order[asked.axis])), asked.element(1, asked.axis, is_index=True)]


def _axes_of(asked: _ExtentAsked, index: int, rank: int) -> list[int]:
    return [normalize_axis(int(axis), rank) for axis in np.ravel(asked.value(index))]


def _reduced(asked: _ExtentAsked) -> list[ExtentPart]:
    rank = asked.value(0).ndim
    axes = _axes_of(asked, 1, rank)
    if asked.is_set("keep_dims"):
        if asked.axis in axes:
            return [asked.element(1, axes.index(asked.axis), is_index=True)]
        return [asked.extent(0, asked.axis)]
    kept = [axis for axis in range(rank) if axis not in axes]
    return [asked.extent(0, kept[asked.axis]), *asked.elements(1, is_index=True)]


def _concatenated(asked: _ExtentAsked) -> ExtentParts:
    given = [index for index, value in enumerate(asked.values) if value is not None]
    axis = normalize_axis(int(asked.attribute("axis", "0")), len(asked.shape))
    return ExtentParts([asked.extent(index, asked.axis) for index in given], is_sum=axis == asked.axis)


def _gathered(asked: _ExtentAsked) -> list[ExtentPart]:
    data, indices = asked.value(0), asked.value(1)
    axis = normalize_axis(int(np.ravel(asked.value(2))[0]), data.ndim)
    batch = normalize_axis(int(asked.attribute("batch_dims", "0")), indices.ndim + 1) if indices.ndim else 0
    inner = indices.ndim - batch
    if asked.axis < axis:
        return [asked.extent(0, asked.axis)]
    if asked.axis < axis + inner:
        return [asked.extent(1, asked.axis - axis + batch)]
    return [asked.extent(0, asked.axis - inner + 1)]


def _like_indices(asked: _ExtentAsked) -> list[ExtentPart]:
    return [asked.extent(1, asked.axis)]


# --- extents that are said --------------------------------------------------------------------------------------------


def _reshaped(asked: _ExtentAsked) -> ExtentParts:
    said = int(np.ravel(asked.value(1))[asked.axis])
    own = asked.element(1, asked.axis)
    if said > 0:
        return ExtentParts([own])
    if said == 0 and asked.is_set("special_zero"):
        return ExtentParts([asked.extent(0, asked.axis), own._replace(is_index=True)])
    data = asked.value(0)
    extents = [asked.extent(0, axis) for axis in range(data.ndim)]
    others = [part for part in asked.elements(1) if part != own]
    return ExtentParts([*extents, *(part._replace(is_index=True) for part in (own, *others))], is_product=True)


def _unsqueezed(asked: _ExtentAsked) -> list[ExtentPart]:
    rank = len(asked.shape)
    axes = _axes_of(asked, 1, rank)
    if asked.axis in axes:
        return [asked.element(1, axes.index(asked.axis), is_index=True)]
    kept = [axis for axis in range(rank) if axis not in axes]
    return [asked.extent(0, kept.index(asked.axis)), *asked.elements(1, is_index=True)]


def _squeezed(asked: _ExtentAsked) -> list[ExtentPart]:
    data = asked.value(0)
    has_axes = len(asked.values) > 1 and asked.values[1] is not None and asked.value(1).size > 0
    named = _axes_of(asked, 1, data.ndim) if has_axes else range(data.ndim)
    gone = [axis for axis in named if data.shape[axis] == 1]
    kept = [axis for axis in range(data.ndim) if axis not in gone]
    return [asked.extent(0, kept[asked.axis]), *asked.elements(1, is_index=True)]


def _broadcast_to(asked: _ExtentAsked) -> list[ExtentPart]:
    target = asked.element(1, asked.axis + asked.value(1).size - len(asked.shape))
    own = asked.axis - (len(asked.shape) - asked.value(0).ndim)
    if asked.attribute("mode", "numpy") == "bidirectional" and own >= 0 and asked.value(0).shape[own] > 1:
        return [asked.extent(0, own)]
    return [target]


def _tiled(asked: _ExtentAsked) -> ExtentParts:
    rank, repeats = len(asked.shape), asked.value(1)
    found = []
    own, place = asked.axis - (rank - asked.value(0).ndim), asked.axis - (rank - repeats.size)
    if own >= 0:
        found.append(asked.extent(0, own))
    if place >= 0:
        found.append(asked.element(1, place))
    return ExtentParts(found, is_product=True)


def _sliced(asked: _ExtentAsked) -> list[ExtentPart]:
    rank = asked.value(0).ndim
    axes = _axes_of(asked, 4, rank) if len(asked.values) > 4 else list(range(asked.value(1).size))
    if asked.axis not in axes:
        return [asked.extent(0, asked.axis)]
    place = axes.index(asked.axis)
    return [*(asked.element(index, place) for index in (1, 2, 3)), asked.extent(0, asked.axis)]


def _strided(asked: _ExtentAsked) -> list[ExtentPart] | None:
    masks = ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    if any("1" in asked.attribute(name) for name in masks):
        return None
    count = asked.value(1).size
    if asked.axis >= count:
        return [asked.extent(0, asked.axis)]
    given = (1, 2, 3) if len(asked.values) > 3 else (1, 2)
    skipped = {1: "begin_mask", 2: "end_mask"}
    said = []
    for index in given:
        mask = asked.attribute(skipped.get(index, ""), "").replace(" ", "").split(",")
        if index == 3 or asked.axis >= len(mask) or mask[asked.axis] != "0":
            said.append(asked.element(index, asked.axis))
    return [*said, asked.extent(0, asked.axis)]


def _split(asked: _ExtentAsked) -> list[ExtentPart]:
    axis = normalize_axis(int(np.ravel(asked.value(1))[0]), len(asked.shape))
    if asked.axis != axis:
        return [asked.extent(0, asked.axis)]
    if asked.operation.layer.type == "VariadicSplit" and int(np.ravel(asked.value(2))[asked.output]) >= 0:
        return [asked.element(2, asked.output)]
    others = asked.elements(2, is_index=True) if asked.operation.layer.type == "VariadicSplit" else []
    return [asked.extent(0, asked.axis), *others]


def _top(asked: _ExtentAsked) -> list[ExtentPart]:
    axis = normalize_axis(int(asked.attribute("axis", "-1")), len(asked.shape))
    return [asked.element(1, 0)] if asked.axis == axis else [asked.extent(0, asked.axis)]


def _one_hot(asked: _ExtentAsked) -> list[ExtentPart]:
    axis = normalize_axis(int(asked.attribute("axis", "-1")), len(asked.shape))
    if asked.axis == axis:
        return [asked.element(1, 0)]
    return [asked.extent(0, asked.axis - int(asked.axis > axis))]


def _padded(asked: _ExtentAsked) -> ExtentParts:
    pads = [asked.element(1, asked.axis), asked.element(2, asked.axis)]
    return ExtentParts([asked.extent(0, asked.axis), *pads], is_sum=True)


def _ranged(asked: _ExtentAsked) -> list[ExtentPart]:
    return [part for index in (1, 0, 2) for part in asked.elements(index)]


def _counted(asked: _ExtentAsked) -> list[ExtentPart]:
    """Of NonZero: how many there are; how many rows is the rank."""
    return asked.elements(0) if asked.axis else []


def _nothing(_asked: _ExtentAsked) -> list[ExtentPart]:
    """Of ShapeOf: its extent is a rank, which never changes."""
    return []


# --- windows and cells ------------------------------------------------------------------------------------------------


def _convolved(asked: _ExtentAsked) -> list[ExtentPart]:
    kind = asked.operation.layer.type
    if asked.axis == 0:
        return [asked.extent(0, 0)]
    if kind.startswith("Group"):
        if asked.axis == 1:
            return [asked.extent(1, 0), asked.extent(1, 2 if kind.endswith("BackpropData") else 1)]
        return [asked.extent(0, asked.axis), asked.extent(1, asked.axis + 1)]
    if asked.axis == 1:
        return [asked.extent(1, 1 if kind.endswith("BackpropData") else 0)]
    return [asked.extent(0, asked.axis), asked.extent(1, asked.axis)]


def _cell(asked: _ExtentAsked) -> list[ExtentPart]:
    return [asked.extent(0, 0)] if asked.axis == 0 else [asked.extent(1, 1)]


Rule = Callable[[_ExtentAsked], "list[ExtentPart] | ExtentParts | None"]

_RULES: Final[dict[str, Rule]] = {
    **{type: _broadcast for type, family in FAMILY_OF.items() if family in ("elementwise", "comparison", "bitwise")},
    **{
        type: _same
        for type, family in FAMILY_OF.items()
        if family in ("unary", "error_function", "activation", "convert", "quantize") and type != "ConvertPromoteTypes"
    },
    **dict.fromkeys(("Softmax", "LogSoftmax", "MVN", "NormalizeL2", "CumSum"), _same),
    **dict.fromkeys(("GroupNormalization", "PRelu", "FakeQuantize", "ReverseSequence", "Bucketize", "Roll"), _same),
    **dict.fromkeys(("Reverse", "SliceScatter"), _same),
    **dict.fromkeys((type for type in FAMILY_OF if type.startswith("Scatter")), _same),
    **dict.fromkeys((type for type in FAMILY_OF if type.startswith("Reduce")), _reduced),
    **dict.fromkeys(("AvgPool", "MaxPool"), _same),
    **dict.fromkeys(("Convolution", "GroupConvolution"), _convolved),
    **dict.fromkeys(("ConvolutionBackpropData", "GroupConvolutionBackpropData"), _convolved),
    **dict.fromkeys(("LSTMCell", "GRUCell", "RNNCell"), _cell),
    **dict.fromkeys(("Split", "VariadicSplit"), _split),
    "BatchNormInference": _normalized,
    "MatMul": _matmul,
    "Transpose": _transpose,
    "Concat": _concatenated,
    "Gather": _gathered,
    "GatherElements": _like_indices,
    "Reshape": _reshaped,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "Broadcast": _broadcast_to,
    "Tile": _tiled,
    "Slice": _sliced,
    "StridedSlice": _strided,
    "TopK": _top,
    "OneHot": _one_hot,
    "Pad": _padded,
    "Range": _ranged,
    "NonZero": _counted,
    "ShapeOf": _nothing,
}
