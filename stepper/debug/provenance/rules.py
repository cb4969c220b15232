"""On which elements of its inputs an element of an operation's output depends, as masks.

An operation has a rule, which follows from its definition and the values at hand (a factor 0 hides the other one, a
Select passes one side on), or is perturbed: its kernel runs again with elements of an input changed, in groups that are
halved. What is too large for that, or has no kernel, depends on all elements. A rule never leaves out what matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.element_types import FLOATING, Array
from stepper.engine.program import Operation, OpKind, Value
from stepper.ops.operands import broadcast_shape, normalize_axis
from stepper.ops.registry import FAMILY_OF

MOST_RUNS: Final = 4_000
"""Kernel runs for which the perturbation of one operation is continued; groups that are left count as a whole."""
_LARGEST_RUN: Final = 2**20
"""Elements of all inputs of an operation up to which it is perturbed."""


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


class _OperationRun(NamedTuple):
    operation: Operation
    values: Sequence[Array | None]
    results: Sequence[Array]
    output: int
    mask: Array

    @property
    def type(self) -> str:
        return self.operation.layer.type

    def attribute(self, name: str, default: str = "") -> str:
        return self.operation.layer.attributes.get(name, default)

    def is_set(self, name: str) -> bool:
        return self.attribute(name, "false").lower() in ("true", "1")

    def value(self, index: int) -> Array:
        """Return what an input holds. Raise IndexError for one that is not connected."""
        found = self.values[index] if index < len(self.values) else None
        if found is None:
            raise IndexError(index)
        return found

    def whole(self, *inputs: int, is_index: bool = True) -> list[Dependence]:
        """Return all elements of inputs, of those that are connected."""
        found = []
        for index in inputs:
            value = self.values[index] if index < len(self.values) else None
            if value is not None:
                found.append(Dependence(index, np.ones(value.shape, bool), is_index))
        return found


def dependences(
    operation: Operation,
    values: Sequence[Value | None],
    results: Sequence[Value],
    output: int,
    mask: Array,
    most_runs: int = MOST_RUNS,
) -> Dependences:
    """Return on what the elements of an output depend that are True in the mask, given what in- and outputs hold.

    Where there is no rule the kernel runs again, at most so often.
    """
    arrays = tuple(None if value is None else np.asarray(value) for value in values)
    asked = _OperationRun(operation, arrays, tuple(np.asarray(one) for one in results), output, mask)
    is_kernel = operation.kind is OpKind.KERNEL
    rule = _RULES.get(asked.type) if is_kernel else None
    if rule is not None:
        try:
            with np.errstate(all="ignore"):
                found = rule(asked)
        except (ValueError, IndexError, TypeError, ArithmeticError):  # attributes or types no rule here provides for
            found = None
        if found is not None:
            runs = int(asked.type in _MOVES)
            return Dependences([one for one in found if one.mask.any()], Method.RULE, runs)
    size = sum(0 if one is None else one.size for one in arrays)
    is_known = is_kernel and operation.function is not None and not operation.computed_by
    if not is_known or size > _LARGEST_RUN or not most_runs:
        return Dependences(asked.whole(*range(len(arrays)), is_index=False), Method.WHOLE)
    return _perturbed(asked, min(most_runs, MOST_RUNS))


# --- element by element ---------------------------------------------------------------------------------------------


def _any(mask: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
    return np.asarray(np.any(mask, axis=axis, keepdims=keepdims))


def unbroadcast(mask: Array, shape: tuple[int, ...]) -> Array:
    """Return the elements of a tensor of this shape that are broadcast to any of the mask. ValueError if it is not."""
    extra = mask.ndim - len(shape)
    if extra < 0 or broadcast_shape(shape, mask.shape) != mask.shape:
        raise ValueError(shape)
    found = _any(mask, tuple(range(extra))) if extra else mask
    kept = tuple(axis for axis, size in enumerate(shape) if size == 1 and found.shape[axis] != 1)
    return _any(found, kept, keepdims=True) if kept else found


def _is_pdpd(asked: _OperationRun) -> bool:
    return asked.attribute("auto_broadcast") == "pdpd"


def _elementwise(asked: _OperationRun) -> list[Dependence]:
    _refuse_pdpd(asked)
    return [
        Dependence(index, unbroadcast(asked.mask, value.shape))
        for index, value in enumerate(asked.values)
        if value is not None
    ]


def _refuse_pdpd(asked: _OperationRun) -> None:
    if _is_pdpd(asked) and len({value.shape for value in asked.values if value is not None}) > 1:
        raise ValueError("pdpd")


def _first_elementwise(asked: _OperationRun) -> list[Dependence]:
    """Of a function of the first input; others are its settings."""
    mask = unbroadcast(asked.mask, asked.value(0).shape)
    return [Dependence(0, mask), *asked.whole(*range(1, len(asked.values)))]


def _product(asked: _OperationRun) -> list[Dependence]:
    """A factor that is not 0 does not matter beside one that is."""
    _refuse_pdpd(asked)
    first, second = asked.value(0), asked.value(1)
    both = (first == 0) & (second == 0)
    masks = (asked.mask & ((second != 0) | both), asked.mask & ((first != 0) | both))
    return [
        Dependence(index, unbroadcast(mask, value.shape))
        for index, (mask, value) in enumerate(zip(masks, (first, second), strict=True))
    ]


def _logic(deciding: bool) -> Rule:
    def rule(asked: _OperationRun) -> list[Dependence]:
        """Leave out what does not decide, beside one that does."""
        _refuse_pdpd(asked)
        first, second = (asked.value(k).astype(bool) == deciding for k in (0, 1))
        masks = (asked.mask & (first | ~second), asked.mask & (second | ~first))
        return [Dependence(index, unbroadcast(mask, asked.value(index).shape)) for index, mask in enumerate(masks)]

    return rule


def _select(asked: _OperationRun) -> list[Dependence]:
    _refuse_pdpd(asked)
    condition = asked.value(0).astype(bool)
    masks = (asked.mask & condition, asked.mask & ~condition)
    sides = [Dependence(k, unbroadcast(mask, asked.value(k).shape)) for k, mask in enumerate(masks, 1)]
    return [*sides, Dependence(0, unbroadcast(asked.mask, asked.value(0).shape), is_index=True)]


def _by_channel(asked: _OperationRun) -> list[Dependence]:
    """Of BatchNormInference: the data (first, or third as of opset 1) element by element, the others by channel."""
    at = 2 if asked.operation.layer.definition == 1 else 0
    channels = _any(asked.mask, tuple(axis for axis in range(asked.mask.ndim) if axis != 1))
    masks = (asked.mask if k == at else channels for k in range(len(asked.values)))
    return [Dependence(k, mask) for k, mask in enumerate(masks)]


# --- lines ----------------------------------------------------------------------------------------------------------


def _over(mask: Array, axes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(_any(mask, axes, keepdims=True), shape).copy()


def _axes(asked: _OperationRun, index: int) -> tuple[int, ...]:
    rank = asked.value(0).ndim
    return tuple(sorted({normalize_axis(int(axis), rank) for axis in np.ravel(asked.value(index))}))


def _reduced(asked: _OperationRun) -> list[Dependence]:
    data, axes = asked.value(0), _axes(asked, 1)
    kept = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
    mask = np.broadcast_to(asked.mask.reshape(kept), data.shape).copy()
    return [Dependence(0, mask), *asked.whole(1)]


def _of_line(default: int) -> Rule:
    def rule(asked: _OperationRun) -> list[Dependence]:
        """All elements along the axis of an attribute."""
        data = asked.value(0)
        axis = normalize_axis(int(asked.attribute("axis", str(default))), data.ndim)
        if asked.mask.ndim != data.ndim:
            return []
        return [Dependence(0, _over(asked.mask, (axis,), data.shape)), *asked.whole(*range(1, len(asked.values)))]

    return rule


def _of_lines(asked: _OperationRun) -> list[Dependence]:
    """All elements along the axes that the second input names (MVN, NormalizeL2)."""
    return [Dependence(0, _over(asked.mask, _axes(asked, 1), asked.value(0).shape)), *asked.whole(1)]


def _cumulated(asked: _OperationRun) -> list[Dependence]:
    data = asked.value(0)
    axis = normalize_axis(int(np.ravel(asked.value(1))[0]), data.ndim)
    mask = asked.mask if asked.is_set("reverse") else np.flip(asked.mask, axis)
    found = np.logical_or.accumulate(mask, axis=axis)
    if asked.is_set("exclusive"):
        found = np.roll(found, 1, axis)
        found[(slice(None),) * axis + (0,)] = False
    return [Dependence(0, found if asked.is_set("reverse") else np.flip(found, axis)), *asked.whole(1)]


def _matmul(asked: _OperationRun) -> list[Dependence] | None:
    """Terms with a factor 0 matter through that factor alone."""
    a, b = asked.value(0), asked.value(1)
    if a.ndim < 1 or b.ndim < 1:
        return None
    left = a[None, :] if a.ndim == 1 else np.swapaxes(a, -1, -2) if asked.is_set("transpose_a") else a
    right = b[:, None] if b.ndim == 1 else np.swapaxes(b, -1, -2) if asked.is_set("transpose_b") else b
    mask = asked.mask
    if a.ndim == 1:
        mask = np.expand_dims(mask, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        mask = np.expand_dims(mask, -1)
    wanted = mask.astype(np.float32)
    zero_left, zero_right = left == 0, right == 0

    def product(x: Array, y: Array) -> Array:
        return np.asarray(np.matmul(x.astype(np.float32), y.astype(np.float32)) > 0)

    across = np.swapaxes(~zero_right, -1, -2), np.swapaxes(zero_right, -1, -2)
    of_left = product(wanted, across[0]) | (zero_left & product(wanted, across[1]))
    down = np.swapaxes(~zero_left, -1, -2), np.swapaxes(zero_left, -1, -2)
    of_right = product(down[0], wanted) | (zero_right & product(down[1], wanted))
    of_left, of_right = unbroadcast(of_left, left.shape), unbroadcast(of_right, right.shape)
    if a.ndim > 1 and asked.is_set("transpose_a"):
        of_left = np.swapaxes(of_left, -1, -2)
    if b.ndim > 1 and asked.is_set("transpose_b"):
        of_right = np.swapaxes(of_right, -1, -2)
    return [Dependence(0, of_left.reshape(a.shape)), Dependence(1, of_right.reshape(b.shape))]


def _lstm(asked: _OperationRun) -> list[Dependence] | None:
    """An element of a state depends on its row of input and state, its own cell, and the rows of its gates."""
    size, mask = int(asked.attribute("hidden_size", "0")), asked.mask
    rows, columns = _any(mask, (1,)), _any(mask, (0,))
    if len(asked.values) < 5 or columns.size != size:
        return None
    gates = np.tile(columns, 4)
    weights = range(3, len(asked.values) if len(asked.values) == 5 else 6)  # of five inputs W and R are one
    found = [
        Dependence(0, np.broadcast_to(rows[:, None], asked.value(0).shape)),
        Dependence(1, np.broadcast_to(rows[:, None], asked.value(1).shape)),
        Dependence(2, mask),
    ]
    for index in weights:
        shape = asked.value(index).shape
        found.append(Dependence(index, np.broadcast_to(gates.reshape(-1, *(1 for _ in shape[1:])), shape)))
    return [*found, *asked.whole(*range(weights.stop, len(asked.values)), is_index=False)]


def _gru_or_rnn(asked: _OperationRun) -> list[Dependence]:
    """An element of a state depends on its row of the input and of the state before, and on the weights."""
    rows = _any(asked.mask, (1,))[:, None]
    found = [Dependence(k, np.broadcast_to(rows, asked.value(k).shape)) for k in (0, 1)]
    return [*found, *asked.whole(*range(2, len(asked.values)), is_index=False)]


def _sequence(asked: _OperationRun) -> list[Dependence] | None:
    """An element of a state depends on its row of the input, up to its step if it goes forward, and on the weights."""
    data, initial, mask = asked.value(0), 2 if asked.type == "LSTMSequence" else 1, asked.mask
    if mask.ndim not in (3, 4) or len(asked.values) < initial + 5:
        return None
    rows, directions = _any(mask, (1, *range(2, mask.ndim))), _any(mask, (0, *range(2, mask.ndim)))
    found = np.broadcast_to(rows[:, None, None], data.shape).copy()
    if mask.ndim == 4 and asked.attribute("direction", "forward") == "forward":
        steps = _any(mask, (1, 3))
        found &= np.flip(np.logical_or.accumulate(np.flip(steps, 1), axis=1), 1)[:, :, None]
    states = [
        Dependence(k, np.broadcast_to((rows[:, None] & directions)[:, :, None], asked.value(k).shape).copy())
        for k in range(1, initial + 1)
    ]
    weights = [
        Dependence(k, np.broadcast_to(directions.reshape(-1, *[1] * (asked.value(k).ndim - 1)), asked.value(k).shape))
        for k in range(initial + 2, initial + 5)
    ]
    return [Dependence(0, found), *states, *asked.whole(initial + 1), *weights]


def _by_group(asked: _OperationRun) -> list[Dependence]:
    """Of GroupNormalization: all of the groups of channels, and the scale and bias of each channel."""
    data, mask = asked.value(0), asked.mask
    groups = int(asked.attribute("num_groups", "1"))
    split = mask.reshape(data.shape[0], groups, -1)
    found = np.broadcast_to(_any(split, (2,), keepdims=True), split.shape).reshape(data.shape)
    channels = _any(mask, tuple(axis for axis in range(data.ndim) if axis != 1))
    return [Dependence(0, found), Dependence(1, channels), Dependence(2, channels)]


def _shape_alone(_asked: _OperationRun) -> list[Dependence]:
    """No element matters: what is computed is of the shape."""
    return []


def _bucket(asked: _OperationRun) -> list[Dependence]:
    return [Dependence(0, asked.mask), *asked.whole(1, is_index=False)]


def _one_hot(asked: _OperationRun) -> list[Dependence]:
    indices = asked.value(0)
    axis = normalize_axis(int(asked.attribute("axis", "-1")), asked.mask.ndim)
    found = _any(asked.mask, (axis,)).reshape(indices.shape)
    return [Dependence(0, found), *asked.whole(1), *asked.whole(2, 3, is_index=False)]


# --- windows --------------------------------------------------------------------------------------------------------


def _numbers(text: str, count: int, default: int) -> list[int]:
    return [int(one) for one in text.split(",")] if text else [default] * count


def _windows(asked: _OperationRun, mask: Array, kernel: Sequence[int]) -> Array:
    """Return the elements of the first input under the windows of a mask over (batch, channel, ...)."""
    data = asked.value(0)
    spatial = data.shape[2:]
    count = len(spatial)
    strides = _numbers(asked.attribute("strides"), count, 1)
    dilations = _numbers(asked.attribute("dilations"), count, 1)
    begins = _numbers(asked.attribute("pads_begin"), count, 0)
    padding = asked.attribute("auto_pad", "explicit").lower()
    if padding in ("same_upper", "same_lower"):
        spans = [(k - 1) * dilation + 1 for k, dilation in zip(kernel, dilations, strict=True)]
        pads = [
            max((out - 1) * stride + span - size, 0)
            for out, stride, span, size in zip(mask.shape[2:], strides, spans, spatial, strict=True)
        ]
        begins = [(pad + (padding == "same_lower")) // 2 for pad in pads]
    elif padding == "valid":
        begins = [0] * count
    found = np.zeros((*mask.shape[:2], *spatial), bool)
    for offset in np.ndindex(*kernel):
        source: list[Any] = [slice(None), slice(None)]
        target: list[Any] = [slice(None), slice(None)]
        for axis, place in enumerate(offset):
            out = np.arange(mask.shape[2 + axis])
            at = out * strides[axis] + place * dilations[axis] - begins[axis]
            inside = (at >= 0) & (at < spatial[axis])
            source.append(out[inside])
            target.append(at[inside])
        places = np.ix_(*(np.arange(size) for size in mask.shape[:2]), *target[2:])
        found[places] |= mask[np.ix_(*(np.arange(size) for size in mask.shape[:2]), *source[2:])]
    return found


def _convolution(asked: _OperationRun) -> list[Dependence]:
    """An element depends on its window in the channels of its group, and on the filters of its channel."""
    data, filters = asked.value(0), asked.value(1)
    is_grouped = asked.type == "GroupConvolution"
    groups = filters.shape[0] if is_grouped else 1
    kernel = filters.shape[3 if is_grouped else 2 :]
    split = asked.mask.reshape(asked.mask.shape[0], groups, -1, *asked.mask.shape[2:])
    by_group = _windows(asked, _any(split, (2,)), kernel)
    found = np.repeat(by_group, data.shape[1] // groups, axis=1)
    channels = _any(asked.mask, (0, *range(2, asked.mask.ndim)))
    kept = channels.reshape(filters.shape[:2] if is_grouped else filters.shape[:1])
    wide = kept.reshape(kept.shape + (1,) * (filters.ndim - kept.ndim))
    return [Dependence(0, found), Dependence(1, np.broadcast_to(wide, filters.shape).copy())]


def _convolution_backwards(asked: _OperationRun) -> list[Dependence] | None:
    """An element depends on what is spread to it, in all channels, and on the filters of its channel."""
    data, filters, mask = asked.value(0), asked.value(1), asked.mask
    spatial, kernel = data.shape[2:], filters.shape[2:]
    count = len(spatial)
    if asked.attribute("auto_pad", "explicit").lower() not in ("explicit", "valid") or len(asked.values) > 2:
        return None
    strides, dilations = (_numbers(asked.attribute(name), count, 1) for name in ("strides", "dilations"))
    begins = _numbers(asked.attribute("pads_begin"), count, 0)
    reached = _any(mask, (1,), keepdims=True)
    found = np.zeros((data.shape[0], 1, *spatial), bool)
    for offset in np.ndindex(*kernel):
        source, target = [], []
        for axis, place in enumerate(offset):
            at = np.arange(spatial[axis])
            out = at * strides[axis] + place * dilations[axis] - begins[axis]
            inside = (out >= 0) & (out < mask.shape[2 + axis])
            source.append(out[inside])
            target.append(at[inside])
        heads = (np.arange(data.shape[0]), np.arange(1))
        found[np.ix_(*heads, *target)] |= reached[np.ix_(*heads, *source)]
    channels = _any(mask, (0, *range(2, mask.ndim))).reshape(1, -1, *[1] * count)
    return [
        Dependence(0, np.broadcast_to(found, data.shape).copy()),
        Dependence(1, np.broadcast_to(channels, filters.shape).copy()),
    ]


def _pooling(asked: _OperationRun) -> list[Dependence]:
    return [Dependence(0, _windows(asked, asked.mask, _numbers(asked.attribute("kernel"), 0, 1)))]


# --- moves ----------------------------------------------------------------------------------------------------------

MOVED_INPUTS: Final[dict[str, tuple[int, ...] | None]] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity"), (0,)),
    **dict.fromkeys(("Slice", "StridedSlice", "Split", "VariadicSplit", "Broadcast", "Tile"), (0,)),
    **dict.fromkeys(("Reverse", "ReverseSequence", "Roll", "Gather", "GatherElements", "GatherND"), (0,)),
    **dict.fromkeys(("ShuffleChannels", "DepthToSpace", "SpaceToDepth", "SpaceToBatch", "BatchToSpace"), (0,)),
    "Concat": None,
    "Pad": (0, 3),
    "SliceScatter": (0, 1),
    "ScatterUpdate": (0, 2),
    "ScatterElementsUpdate": (0, 2),
    "ScatterNDUpdate": (0, 2),
}
"""Operations that only move elements, and which of their inputs these are from (None: all)."""
_MOVES: Final = frozenset(MOVED_INPUTS)


class MovedLabels(NamedTuple):
    """Labels in the place of the elements that an operation moves: where each input's begin, and what came out."""

    starts: dict[int, int]
    moved: Array


def moved_labels(operation: Operation, values: Sequence[Array | None], output: int) -> MovedLabels | None:
    """Return where the elements of an output are from, by moving labels (0: from nowhere). None where it reduces."""
    kind, function = operation.layer.type, operation.function
    if function is None or operation.layer.attributes.get("reduction", "none") != "none":
        return None
    taken = MOVED_INPUTS[kind]
    labels: list[Any] = []
    starts: dict[int, int] = {}
    total = 1
    for index, value in enumerate(values):
        if value is None or (taken is not None and index not in taken):
            labels.append(value)
            continue
        starts[index] = total
        labels.append(np.arange(total, total + value.size, dtype=np.int64).reshape(value.shape))
        total += value.size
    found = function(*labels)
    return MovedLabels(starts, np.asarray(found[output] if operation.several_outputs else found))


def _moved(asked: _OperationRun) -> list[Dependence] | None:
    found = moved_labels(asked.operation, asked.values, asked.output)
    if found is None or found.moved.shape != asked.mask.shape:
        return None
    wanted = found.moved[asked.mask]
    parts = []
    for index, start in found.starts.items():
        value = asked.value(index)
        own = wanted[(wanted >= start) & (wanted < start + value.size)] - start
        mask = np.zeros(value.size, bool)
        mask[own] = True
        parts.append(Dependence(index, mask.reshape(value.shape)))
    others = [k for k, one in enumerate(asked.values) if one is not None and k not in found.starts]
    return [*parts, *(part for k in others for part in _index_part(asked, k))]


def _resized(asked: _OperationRun) -> list[Dependence] | None:
    """Of an Interpolate that takes the nearest element; labels are numbers that f32 holds."""
    data, function = asked.value(0), asked.operation.function
    if asked.attribute("mode") != "nearest" or data.size >= 2**24 or function is None:
        return None
    labels = np.arange(1, data.size + 1, dtype=np.float32).reshape(data.shape)
    moved = np.asarray(function(labels, *asked.values[1:]))
    if moved.shape != asked.mask.shape:
        return None
    found = np.zeros(data.size + 1, bool)
    found[moved[asked.mask].astype(np.int64)] = True
    return [Dependence(0, found[1:].reshape(data.shape)), *asked.whole(*range(1, len(asked.values)))]


def _index_part(asked: _OperationRun, index: int) -> list[Dependence]:
    """Return the elements of an index input that say where the elements of the mask are from; else the whole."""
    value, kind, mask = asked.value(index), asked.type, asked.mask
    if index == 1 and kind == "Gather":
        rank = asked.value(0).ndim
        axis = normalize_axis(int(np.ravel(asked.value(2))[0]), rank)
        batch = int(asked.attribute("batch_dims", "0"))
        batch += value.ndim if batch < 0 else 0
        inner = axis + value.ndim - batch
        over = (*range(batch, axis), *range(inner, mask.ndim))
        return [Dependence(1, _any(mask, over).reshape(value.shape), is_index=True)]
    if index == 1 and kind == "GatherElements":
        return [Dependence(1, mask, is_index=True)]
    return asked.whole(index)


# --- by perturbation ------------------------------------------------------------------------------------------------


def _perturbed(asked: _OperationRun, most: int) -> Dependences:
    runner = _Perturbation(asked, most)
    found = [Dependence(index, runner.elements(index)) for index, value in enumerate(asked.values) if value is not None]
    return Dependences([one for one in found if one.mask.any()], Method.PERTURBED, runner.runs)


def changes_of(values: Array, places: Array, *, poisons: bool = True) -> list[Array]:
    """Return a flat tensor with the elements at these places changed, in several ways; `poisons`: with NaN first."""
    flat = np.array(values).reshape(-1)
    old = flat[places]
    if flat.dtype == bool:
        return [_put(flat, places, ~old)]
    if flat.dtype in FLOATING:
        uneven = (1 + 0.25 * (np.arange(old.size) % 3)).astype(flat.dtype)
        one, half, bit = (flat.dtype.type(number) for number in (1, 1.5, 1.01))
        with np.errstate(all="ignore"):
            others = [old * uneven * half + one, -old * uneven - one, old * 0, old * bit]
        poisoned = [np.full(old.shape, np.nan, flat.dtype)] if poisons else []
        return [_put(flat, places, other) for other in (*poisoned, *others)]
    if flat.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            return [_put(flat, places, other.astype(flat.dtype)) for other in (old + 1, old - 1, old * 0)]
    return []


def _put(flat: Array, places: Array, new: Array) -> Array:
    changed = flat.copy()
    changed[places] = new
    return changed


class _Perturbation:
    """Kernel runs with changed elements of inputs."""

    def __init__(self, asked: _OperationRun, most: int) -> None:
        self._asked, self._most, self.runs = asked, most, 0
        self._base = asked.results[asked.output][asked.mask]

    def elements(self, index: int) -> Array:
        """Return the elements of an input that matter."""
        value = self._asked.value(index)
        found = np.zeros(value.size, bool)
        groups = [np.arange(value.size)]
        while groups:
            group = groups.pop()
            if not group.size:
                continue
            if self.runs >= self._most:
                found[group] = True
            elif self._matters(index, group):
                if group.size == 1:
                    found[group] = True
                else:
                    half = group.size // 2
                    groups += [group[half:], group[:half]]
        return found.reshape(value.shape)

    def _matters(self, index: int, group: Array) -> bool:
        value = self._asked.value(index)
        changes = changes_of(value, group)
        return not changes or any(self._differs(index, one.reshape(value.shape)) for one in changes)

    def _differs(self, index: int, changed: Array) -> bool:
        asked = self._asked
        function = asked.operation.function
        assert function is not None
        self.runs += 1
        inputs = [*asked.values[:index], changed, *asked.values[index + 1 :]]
        try:
            with np.errstate(all="ignore"):
                results = function(*inputs)
        except Exception:  # with other numbers a kernel may refuse what it has accepted
            return True
        result = np.asarray(results[asked.output] if asked.operation.several_outputs else results)
        if result.shape != asked.mask.shape:
            return True
        return not same_values(result[asked.mask], self._base)


def same_values(a: Array, b: Array) -> bool:
    """True if two tensors are equal, a NaN equalling a NaN."""
    if a.shape != b.shape:
        return False
    equal = a == b
    return bool(equal.all()) or (a.dtype in FLOATING and bool((equal | ((a != a) & (b != b))).all()))


# --- the rules ------------------------------------------------------------------------------------------------------

Rule = Callable[[_OperationRun], list[Dependence] | None]

_RULES: Final[dict[str, Rule]] = {
    **{
        type: _elementwise
        for type, family in FAMILY_OF.items()
        if family in ("elementwise", "comparison", "bitwise", "unary", "error_function")
    },
    **{type: _first_elementwise for type, family in FAMILY_OF.items() if family in ("activation", "convert")},
    **dict.fromkeys((type for type, family in FAMILY_OF.items() if type.startswith("Reduce")), _reduced),
    **dict.fromkeys(_MOVES, _moved),
    "FakeQuantize": _elementwise,
    "PRelu": _elementwise,
    "BatchNormInference": _by_channel,
    "Multiply": _product,
    "LogicalAnd": _logic(deciding=False),
    "LogicalOr": _logic(deciding=True),
    "Select": _select,
    "MatMul": _matmul,
    "CumSum": _cumulated,
    "TopK": _of_line(-1),
    "Softmax": _of_line(1),
    "LogSoftmax": _of_line(1),
    "MVN": _of_lines,
    "NormalizeL2": _of_lines,
    "LSTMCell": _lstm,
    "GRUCell": _gru_or_rnn,
    "RNNCell": _gru_or_rnn,
    **dict.fromkeys(("Convolution", "GroupConvolution"), _convolution),
    **dict.fromkeys(("AvgPool", "MaxPool"), _pooling),
    **dict.fromkeys(("LSTMSequence", "GRUSequence", "RNNSequence"), _sequence),
    "ConvolutionBackpropData": _convolution_backwards,
    "GroupNormalization": _by_group,
    "Interpolate": _resized,
    "ShapeOf": _shape_alone,
    "Bucketize": _bucket,
    "OneHot": _one_hot,
}
