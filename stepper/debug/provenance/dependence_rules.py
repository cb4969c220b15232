"""The table of operations: on what an element or an extent of an output depends, and what it is made of.

`dependences` gives the elements of the inputs that matter, as masks. An operation has a rule, which follows from its
definition and the values at hand (a factor 0 hides the other one, a Select passes one side on), or is perturbed: its
kernel runs again with elements of an input changed, in groups that are halved. What is too large for that, or has no
kernel, depends on all elements. A rule never leaves out what matters.

`contributions` gives the parts of one element. Where the operation is a sum, the parts are its exact terms; a minimum,
maximum, TopK or Select is decided by one element, with which others were compared; indices, shapes and conditions say
where from, not how much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element, LinkForm, PartRole
from stepper.debug.provenance import operation_at as extents
from stepper.debug.provenance.operation_at import (
    Contribution,
    Contributions,
    Dependence,
    Dependences,
    ExtentPart,
    ExtentParts,
    Factor,
    Method,
    OperationAt,
    differing,
)
from stepper.element_types import FLOATING, Array, Indices, Shape, is_number
from stepper.engine.program import OpKind
from stepper.operation_types import FAMILY_OF
from stepper.ops.convolution import WindowedAxis, Windows, padded, under_windows
from stepper.ops.operands import broadcast_shape
from stepper.tensors.difference import index_of

MOST_RUNS = 4_000
"""Kernel runs for which the perturbation of one operation is continued; groups that are left count as a whole."""
LARGEST_RUN = 2**20
"""Elements of all inputs of an operation up to which it is perturbed."""
LARGEST_TRIED = 2**22
"""Elements of all inputs of an operation up to which it is looked at element by element."""
_MOST_TERMS = 512
"""Terms of a sum that are found by running the kernel for each."""
MOST_PARTS = 8
"""Parts that are kept of an element, the largest first."""
_UNFIT = (ValueError, IndexError, TypeError, ArithmeticError)
"""Errors of rules for attributes, types or ranks that none of them provides for."""


def dependences(at: OperationAt, mask: Array, most_runs: int = MOST_RUNS) -> Dependences:
    """Return on what the elements of the output depend that are True in the mask.

    Where there is no rule the kernel runs again, at most so often.
    """
    rule = _rule(at).depends
    found = None if rule is None else _of_rule(rule, at, mask)
    if found is not None:
        return Dependences([one for one in found if one.mask.any()], Method.RULE, int(rule is _moved))
    operation = at.operation
    is_known = operation.kind is OpKind.KERNEL and operation.function is not None and not operation.computed_by
    if not is_known or at.size > LARGEST_RUN or not most_runs:
        return Dependences(whole(at, range(len(at.values)), is_index=False), Method.WHOLE)
    return _perturbed(at, mask, min(most_runs, MOST_RUNS))


def contributions(at: OperationAt, element: Element) -> Contributions:
    """Return what an element of the output is made of.

    Where no rule here says more, it is made of the elements that matter, or of whole tensors where these are unknown.
    """
    found = None
    if at.operation.kind is OpKind.KERNEL and at.size <= LARGEST_TRIED:
        rule = _rule(at).terms
        found = (None if rule is None else _of_rule(rule, at, element)) or _by_elements(at, element)
    if found is not None:
        return found
    parts = tuple(Contribution(at.factor(index)) for index in at.given)
    return Contributions(LinkForm.WHOLE, parts, len(parts))


def extent_parts(at: OperationAt, axis: int) -> ExtentParts:
    """Return on what the extent of the output along an axis depends."""
    rule = _rule(at).extents
    found = None if rule is None else _of_rule(rule, at, axis)
    if found is None:
        return extents.any_extent(at, axis)
    return found if isinstance(found, ExtentParts) else ExtentParts(found)


def extent_contributions(at: OperationAt, axis: int) -> Contributions:
    """Return what the extent of the output along an axis is made of: extents of inputs, or elements that say it."""
    found = extent_parts(at, axis)
    own = {LinkForm.SUM: PartRole.TERM, LinkForm.PRODUCT: PartRole.FACTOR}.get(found.form, PartRole.ARGUMENT)

    def part_of(part: ExtentPart) -> Contribution:
        value = at.value(part.input)
        said: Any = value.shape[part.element[0]] if part.is_shape else value[part.element]
        role = PartRole.INDEX if part.is_index else own
        return Contribution(Factor(part.input, part.element, said, part.is_shape), role, float(said))

    parts = list(map(part_of, found.parts))
    counted = [part for part in parts if part.is_value]
    weights: tuple[float, ...] = ()
    if found.form is LinkForm.SUM:
        parts.sort(key=lambda part: -_magnitude(part.factor.value))
        total = sum(abs(part.amount or 0.0) for part in counted)
        weights = tuple(abs(part.amount or 0.0) / total for part in parts[:MOST_PARTS]) if total else ()
    form = LinkForm.MOVE if len(counted) == 1 else found.form
    return Contributions(form, tuple(parts[:MOST_PARTS]), len(parts), weights)


def _of_rule(rule: Callable[[OperationAt, Any], Any], at: OperationAt, asked: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return rule(at, asked)
    except _UNFIT:
        return None


# --- element by element: what matters ---------------------------------------------------------------------------------


def _any(mask: Array, axis: Indices, *, keepdims: bool = False) -> Array:
    return np.asarray(np.any(mask, axis=axis, keepdims=keepdims))


def whole(at: OperationAt, inputs: Iterable[int], *, is_index: bool = True) -> list[Dependence]:
    """Return all elements of inputs, of those that are connected."""
    return [Dependence(k, np.ones(at.value(k).shape, bool), is_index) for k in inputs if k in at.given]


def _unbroadcast(mask: Array, shape: Shape) -> Array:
    """Return the elements of a tensor of this shape that are broadcast to any of the mask. ValueError if it is not."""
    extra = mask.ndim - len(shape)
    if extra < 0 or broadcast_shape(shape, mask.shape) != mask.shape:
        raise ValueError(shape)
    found = _any(mask, tuple(range(extra))) if extra else mask
    kept = tuple(axis for axis, size in enumerate(shape) if size == 1 and found.shape[axis] != 1)
    return _any(found, kept, keepdims=True) if kept else found


def _spread(at: OperationAt, masks: Sequence[Array]) -> list[Dependence]:
    """Return of each input the elements that are broadcast to those of its mask."""
    if at.attribute("auto_broadcast") == "pdpd" and len({at.value(k).shape for k in at.given}) > 1:
        raise ValueError("pdpd")
    return [Dependence(k, _unbroadcast(masks[k], at.value(k).shape)) for k in at.given]


def _elementwise(at: OperationAt, mask: Array) -> list[Dependence]:
    return _spread(at, [mask] * len(at.values))


def _first_elementwise(at: OperationAt, mask: Array) -> list[Dependence]:
    """Return dependences for a function of the first input; the other inputs are its settings."""
    return [Dependence(0, _unbroadcast(mask, at.value(0).shape)), *whole(at, range(1, len(at.values)))]


def _decided(at: OperationAt, mask: Array, *, by: Callable[[Any], Any]) -> list[Dependence]:
    """Leave out what does not decide, beside one that does: a factor beside 0, True beside False in a conjunction.

    NaN and Inf matter beside 0, too.
    """
    a, b = at.value(0), at.value(1)
    first, second = np.asarray(by(a)), np.asarray(by(b))
    bad, other = ~np.isfinite(a), ~np.isfinite(b)
    return _spread(at, (mask & (first | bad | ~second), mask & (second | other | ~first)))


def _selected(at: OperationAt, mask: Array) -> list[Dependence]:
    chosen = at.value(0).astype(bool)
    condition, *sides = _spread(at, (mask, mask & chosen, mask & ~chosen))
    return [*sides, condition._replace(is_index=True)]


def _by_channel(at: OperationAt, mask: Array) -> list[Dependence]:
    """Return dependences for BatchNormInference: data by element, the other inputs by channel.

    The data are the first input, or the third input in opset 1.
    """
    data = 2 if at.operation.layer.definition == 1 else 0
    channels = _any(mask, tuple(axis for axis in range(mask.ndim) if axis != 1))
    return [Dependence(k, mask if k == data else channels) for k in range(len(at.values))]


# --- lines: what matters ----------------------------------------------------------------------------------------------


def _over(mask: Array, axes: Indices, shape: Shape) -> Array:
    return np.broadcast_to(_any(mask, axes, keepdims=True), shape)


def _axes(at: OperationAt) -> Indices:
    """Return the axes that the second input names."""
    return tuple(sorted({*at.axes(1, at.value(0).ndim)}))


def _reduced(at: OperationAt, mask: Array) -> list[Dependence]:
    data, axes = at.value(0), _axes(at)
    kept = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
    return [Dependence(0, np.broadcast_to(mask.reshape(kept), data.shape)), *whole(at, (1,))]


def _along(at: OperationAt, mask: Array, *, default: int) -> list[Dependence]:
    """All elements along the axis of an attribute."""
    data = at.value(0)
    if mask.ndim != data.ndim:
        return []
    found = _over(mask, (at.axis(default),), data.shape)
    return [Dependence(0, found), *whole(at, range(1, len(at.values)))]


def _normalized(at: OperationAt, mask: Array) -> list[Dependence]:
    """All elements along the axes that the second input names (MVN, NormalizeL2)."""
    return [Dependence(0, _over(mask, _axes(at), at.value(0).shape)), *whole(at, (1,))]


def _cumulated(at: OperationAt, mask: Array) -> list[Dependence]:
    axis, is_reversed = at.axes(1, mask.ndim)[0], at.is_set("reverse")
    found = np.logical_or.accumulate(mask if is_reversed else np.flip(mask, axis), axis=axis)
    if at.is_set("exclusive"):
        found = np.roll(found, 1, axis)
        found[(slice(None),) * axis + (0,)] = False
    return [Dependence(0, found if is_reversed else np.flip(found, axis)), *whole(at, (1,))]


def _matmul(at: OperationAt, mask: Array) -> list[Dependence] | None:
    """Terms with a factor 0 matter through that factor alone, unless the other one is NaN or Inf."""
    a, b = at.value(0), at.value(1)
    if a.ndim < 1 or b.ndim < 1:
        return None
    left = a[None, :] if a.ndim == 1 else np.swapaxes(a, -1, -2) if at.is_set("transpose_a") else a
    right = b[:, None] if b.ndim == 1 else np.swapaxes(b, -1, -2) if at.is_set("transpose_b") else b
    if a.ndim == 1:
        mask = np.expand_dims(mask, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        mask = np.expand_dims(mask, -1)
    zero_left, zero_right = left == 0, right == 0

    def product(x: Array, y: Array) -> Array:
        return np.asarray(np.matmul(x.astype(np.float32), y.astype(np.float32)) > 0)

    of_left, of_right = product(mask, np.swapaxes(~zero_right, -1, -2)), product(np.swapaxes(~zero_left, -1, -2), mask)
    of_left |= (zero_left | ~np.isfinite(left)) & _any(mask, (-1,), keepdims=True)
    of_right |= (zero_right | ~np.isfinite(right)) & _any(mask, (-2,), keepdims=True)
    of_left, of_right = _unbroadcast(of_left, left.shape), _unbroadcast(of_right, right.shape)
    if a.ndim > 1 and at.is_set("transpose_a"):
        of_left = np.swapaxes(of_left, -1, -2)
    if b.ndim > 1 and at.is_set("transpose_b"):
        of_right = np.swapaxes(of_right, -1, -2)
    return [Dependence(0, of_left.reshape(a.shape)), Dependence(1, of_right.reshape(b.shape))]


def _leading(at: OperationAt, mask: Array, inputs: Iterable[int]) -> list[Dependence]:
    """Return of each input the elements whose first indices are True in a mask."""
    shapes = {k: at.value(k).shape for k in inputs}
    wide = {k: mask.reshape(mask.shape + (1,) * (len(shape) - mask.ndim)) for k, shape in shapes.items()}
    return [Dependence(k, np.broadcast_to(wide[k], shape)) for k, shape in shapes.items()]


def _lstm(at: OperationAt, mask: Array) -> list[Dependence] | None:
    """An element of a state depends on its row of input and state, its own cell, and the rows of its gates."""
    rows, columns, count = _any(mask, (1,)), _any(mask, (0,)), len(at.values)
    if count < 5 or columns.size != int(at.attribute("hidden_size", "0")):
        return None
    weights = range(3, count if count == 5 else 6)  # of five inputs W and R are one
    gates = _leading(at, np.tile(columns, 4), weights)
    others = whole(at, range(weights.stop, count), is_index=False)
    return [*_leading(at, rows, (0, 1)), Dependence(2, mask), *gates, *others]


def _gru_or_rnn(at: OperationAt, mask: Array) -> list[Dependence]:
    """An element of a state depends on its row of the input and of the state before, and on the weights."""
    return [*_leading(at, _any(mask, (1,)), (0, 1)), *whole(at, range(2, len(at.values)), is_index=False)]


def _sequence(at: OperationAt, mask: Array) -> list[Dependence] | None:
    """An element of a state depends on its row of the input, up to its step if it goes forward, and on the weights."""
    initial = 2 if at.type == "LSTMSequence" else 1
    if mask.ndim not in (3, 4) or len(at.values) < initial + 5:
        return None
    rows, directions = _any(mask, (1, *range(2, mask.ndim))), _any(mask, (0, *range(2, mask.ndim)))
    (data,) = _leading(at, rows, (0,))
    if mask.ndim == 4 and at.attribute("direction", "forward") == "forward":
        steps = np.flip(np.logical_or.accumulate(np.flip(_any(mask, (1, 3)), 1), axis=1), 1)
        data = data._replace(mask=data.mask & steps[:, :, None])
    states = _leading(at, rows[:, None] & directions, range(1, initial + 1))
    return [
        data,
        *states,
        *whole(at, (initial + 1,)),
        *_leading(at, directions, range(initial + 2, initial + 5)),
    ]


def _by_group(at: OperationAt, mask: Array) -> list[Dependence]:
    """Return dependences for GroupNormalization: whole groups, scale and bias by channel.

    A group is a group of channels.
    """
    data = at.value(0)
    split = mask.reshape(data.shape[0], int(at.attribute("num_groups", "1")), -1)
    channels = _any(mask, tuple(axis for axis in range(data.ndim) if axis != 1))
    found = _over(split, (2,), split.shape).reshape(data.shape)
    return [Dependence(0, found), Dependence(1, channels), Dependence(2, channels)]


def _nothing(_at: OperationAt, _asked: object) -> list[Any]:
    """Return nothing, for ShapeOf: no element matters, and its extent is a rank, which is fixed."""
    return []


def _bucket(at: OperationAt, mask: Array) -> list[Dependence]:
    return [Dependence(0, mask), *whole(at, (1,), is_index=False)]


def _one_hot(at: OperationAt, mask: Array) -> list[Dependence]:
    found = _any(mask, (at.axis(),)).reshape(at.value(0).shape)
    return [Dependence(0, found), *whole(at, (1,)), *whole(at, (2, 3), is_index=False)]


# --- windows: what matters --------------------------------------------------------------------------------------------


def _numbers(at: OperationAt, name: str) -> list[int]:
    return [int(one) for one in at.attribute(name).split(",") if one]


def _axes_of_windows(at: OperationAt, fine: Sequence[int], kernel: Sequence[int]) -> Sequence[WindowedAxis]:
    lists = {name: tuple(_numbers(at, name)) for name in ("strides", "dilations", "pads_begin", "pads_end")}
    kind: Any = at.attribute("auto_pad", "explicit").lower()
    return Windows(**lists, auto_pad=kind).over(fine, kernel, at.attribute("rounding_type", "floor"))


def _windows(at: OperationAt, mask: Array, kernel: Sequence[int]) -> Array:
    """Return the elements of the first input under the windows of a mask over (batch, channel, ...)."""
    spatial = at.value(0).shape[2:]
    axes, labels = _axes_of_windows(at, spatial, kernel), np.arange(1, prod(spatial) + 1).reshape(spatial)
    under = under_windows(padded(labels, axes, 0), axes).reshape(-1, *mask.shape[2:])
    found = np.zeros((*mask.shape[:2], labels.size + 1), bool)
    for image in np.ndindex(mask.shape[:2]):
        found[image][under[:, mask[image]]] = True
    return found[..., 1:].reshape(*mask.shape[:2], *spatial)


def _convolution(at: OperationAt, mask: Array) -> list[Dependence]:
    """An element depends on its window in the channels of its group, and on the filters of its channel."""
    filters, is_grouped = at.value(1), at.type == "GroupConvolution"
    groups = filters.shape[0] if is_grouped else 1
    split = mask.reshape(mask.shape[0], groups, -1, *mask.shape[2:])
    by_group = _windows(at, _any(split, (2,)), filters.shape[3 if is_grouped else 2 :])
    channels = _any(mask, (0, *range(2, mask.ndim))).reshape(filters.shape[: 1 + is_grouped])
    return [Dependence(0, np.repeat(by_group, at.value(0).shape[1] // groups, axis=1)), *_leading(at, channels, (1,))]


def _convolution_backwards(at: OperationAt, mask: Array) -> list[Dependence] | None:
    """An element depends on what is spread to it, in all channels, and on the filters of its channel."""
    data, filters = at.value(0), at.value(1)
    spatial = data.shape[2:]
    if at.attribute("auto_pad", "explicit").lower() not in ("explicit", "valid") or len(at.values) > 2:
        return None
    reached = _any(mask, (1,), keepdims=True)
    axes = _axes_of_windows(at, mask.shape[2:], filters.shape[2:])
    found = _any(under_windows(padded(reached, axes, False), axes), tuple(range(2, mask.ndim)))
    channels = _any(mask, (0, *range(2, mask.ndim))).reshape(1, -1, *[1] * len(spatial))
    return [
        Dependence(0, np.broadcast_to(found, data.shape)),
        Dependence(1, np.broadcast_to(channels, filters.shape)),
    ]


def _pooling(at: OperationAt, mask: Array) -> list[Dependence]:
    return [Dependence(0, _windows(at, mask, _numbers(at, "kernel")))]


# --- moves: what matters ----------------------------------------------------------------------------------------------

_MOVED_INPUTS: dict[str, Indices] = {
    "Pad": (0, 3),
    "SliceScatter": (0, 1),
    "ScatterUpdate": (0, 2),
    "ScatterElementsUpdate": (0, 2),
    "ScatterNDUpdate": (0, 2),
}
"""Operations that move elements of other inputs than the first, or of several; those of Concat are of all."""


class _MovedLabels(NamedTuple):
    """Labels in the place of the elements that an operation moves: where each input's begin, and what came out."""

    starts: dict[int, int]
    moved: Array


def _moved_labels(at: OperationAt) -> _MovedLabels | None:
    """Return where the elements of an output are from, by moving labels (0: from nowhere). None where it reduces."""
    if at.operation.function is None or at.attribute("reduction", "none") != "none":
        return None
    taken = at.given if at.type == "Concat" else _MOVED_INPUTS.get(at.type, (0,))
    labels: list[Any] = list(at.values)
    starts: dict[int, int] = {}
    total = 1
    for index in [one for one in at.given if one in taken]:
        starts[index], size = total, at.value(index).size
        labels[index] = np.arange(total, total + size, dtype=np.int64).reshape(at.value(index).shape)
        total += size
    found = at.run(*labels)
    return _MovedLabels(starts, found) if found.shape == at.result.shape else None


def _moved(at: OperationAt, mask: Array) -> list[Dependence] | None:
    found = _moved_labels(at)
    if found is None:
        return None
    wanted = found.moved[mask]
    parts = []
    for index, start in found.starts.items():
        value = at.value(index)
        own = np.zeros(value.size, bool)
        own[wanted[(wanted >= start) & (wanted < start + value.size)] - start] = True
        parts.append(Dependence(index, own.reshape(value.shape)))
    return [*parts, *(part for k in at.given if k not in found.starts for part in _index_part(at, k, mask))]


def _resized(at: OperationAt, mask: Array) -> list[Dependence] | None:
    """Return dependences for an Interpolate of nearest elements; labels are numbers within f32."""
    data = at.value(0)
    if at.attribute("mode") != "nearest" or data.size >= 2**24 or at.operation.function is None:
        return None
    labels = np.arange(1, data.size + 1, dtype=np.float32).reshape(data.shape)
    moved = at.run(labels, *at.values[1:])
    if moved.shape != mask.shape:
        return None
    found = np.zeros(data.size + 1, bool)
    found[moved[mask].astype(np.int64)] = True
    return [Dependence(0, found[1:].reshape(data.shape)), *whole(at, range(1, len(at.values)))]


def _index_part(at: OperationAt, index: int, mask: Array) -> list[Dependence]:
    """Return the elements of an index input that say where the elements of the mask are from; else the whole."""
    value = at.value(index)
    if index == 1 and at.type == "Gather":
        axis = at.axes(2, at.value(0).ndim)[0]
        batch = extents.batch_dims(at)
        over = (*range(batch, axis), *range(axis + value.ndim - batch, mask.ndim))
        return [Dependence(1, _any(mask, over).reshape(value.shape), is_index=True)]
    return [Dependence(1, mask, is_index=True)] if index == 1 and at.type == "GatherElements" else whole(at, (index,))


# --- by perturbation --------------------------------------------------------------------------------------------------


def _perturbed(at: OperationAt, mask: Array, most: int) -> Dependences:
    """Run the kernel with changed elements of inputs, in groups that are halved."""
    base, runs = at.result[mask], 0

    def differs(index: int, changed: Array) -> bool:
        nonlocal runs
        runs += 1
        try:
            result = at.run(*at.values[:index], changed, *at.values[index + 1 :])
        except Exception:  # with other numbers a kernel may refuse what it has accepted
            return True
        return result.shape != mask.shape or not same_values(result[mask], base)

    def matters(index: int, group: Array) -> bool:
        shape, changes = at.value(index).shape, changes_of(at.value(index), group)
        return not changes or any(differs(index, one.reshape(shape)) for one in changes)

    found = []
    for index in at.given:
        shape = at.value(index).shape
        places = np.arange(at.value(index).size)
        kept, _ = mattering(places, places.size, partial(matters, index), lambda: runs < most)
        if kept.any():
            found.append(Dependence(index, kept.reshape(shape)))
    return Dependences(found, Method.PERTURBED, runs)


def mattering(
    places: Array, size: int, matters: Callable[[Array], bool], has_room: Callable[[], bool]
) -> tuple[Array, int]:
    """Return a mask of the places that matter, of groups that are halved where they do, and how many were tried.

    Groups for which there is no room matter as a whole.
    """
    kept, tried, groups = np.zeros(size, bool), 0, [places] if places.size else []
    while groups:
        group = groups.pop()
        half = group.size // 2
        if not has_room():
            kept[group] = True
        elif not matters(group):
            tried += group.size
        elif half:
            groups += [group[half:], group[:half]]
        else:
            kept[group], tried = True, tried + 1
    return kept, tried


def changes_of(
    values: Array,
    places: Array,
    *,
    poisons: bool = True,
    compared: Sequence[float] | None = None,
    is_wide: bool = False,
) -> list[Array]:
    """Return a flat tensor with the elements at these places changed, in several ways; `poisons`: with NaN first.

    With `compared`, numbers that the model compares values with, whole numbers are tried as these, too, and others
    change in more ways; `is_wide`: also to numbers above and below all of these and of the tensor: decisions turn.
    """
    flat = np.array(values).reshape(-1)
    old: Any = flat[places]
    others: list[Any] = []
    dtype = flat.dtype
    with np.errstate(all="ignore"):
        if dtype == np.bool_:
            others = [~old]
        elif dtype in FLOATING:
            uneven = (1 + 0.25 * (np.arange(old.size) % 3)).astype(dtype)
            one, half, two, bit = map(dtype.type, (1, 1.5, 2, 1.01))
            if compared is None:
                others = [np.full_like(old, np.nan)] if poisons else []
                others += [old * uneven * half + one, -old * uneven - one, old * 0, old * bit]
            else:
                others = [old * half * uneven + uneven / two, -old * uneven - two * uneven, old * 0 - one]
                others += [old * bit + (bit - one) * uneven, old * 0, -old * uneven, old + uneven, old - uneven]
                others += [old * two + one]
            if is_wide and compared is not None:
                known = np.append(flat[np.isfinite(flat)], np.array([0, *compared], dtype))
                beyond = known.max() - known.min() + one
                others += [np.full_like(old, known.max() + beyond), np.full_like(old, known.min() - beyond)]
        elif dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            others = [old + 1, old - 1]
            others += (
                [old * 0]
                if compared is None
                else [np.full_like(old, one) for one in compared if one == int(one) and bounds.min <= one <= bounds.max]
            )
        return [replaced(flat, places, other.astype(dtype)) for other in others]


def replaced(flat: Array, places: Array, new: Array) -> Array:
    """Return a flat tensor with other elements at these places."""
    changed = flat.copy()
    changed[places] = new
    return changed


def same_values(a: Any, b: Any) -> bool:
    """True if two tensors are equal, a NaN equalling a NaN."""
    return a.shape == b.shape and not differing(a, b).any()


# --- element by element: parts ----------------------------------------------------------------------------------------


def _by_elements(at: OperationAt, element: Element) -> Contributions | None:
    """Return the elements that matter; None where these are whole tensors."""
    found = dependences(at, at.mask(element))
    if found.method is Method.WHOLE:
        return None
    parts: list[Contribution] = []
    total = 0
    for one in found.found:
        value = at.value(one.input)
        places = np.flatnonzero(one.mask)
        total += places.size
        role = PartRole.INDEX if one.is_index else PartRole.ARGUMENT
        if not is_number(value.dtype):
            continue
        sizes = np.abs(value.reshape(-1)[places].astype(np.float64))
        largest = places[np.argsort(-np.nan_to_num(sizes, nan=np.inf), kind="stable")[:MOST_PARTS]].tolist()
        factors = (at.factor(one.input, index_of(place, value.shape)) for place in largest)
        parts += [Contribution(factor, role) for factor in factors]
    parts.sort(key=lambda part: (not part.is_value, -_magnitude(part.factor.value)))
    return Contributions(LinkForm.FUNCTION, tuple(parts[:MOST_PARTS]), total)


def _aligned(at: OperationAt, element: Element, index: int) -> Factor:
    """Return the element of an input that broadcasting puts into an element of the output.

    Raise IndexError for none.
    """
    place = at.aligned(index, element)
    if place is None:
        raise IndexError(index)
    return at.factor(index, place)


def _operands(at: OperationAt, element: Element) -> list[Factor]:
    return [_aligned(at, element, index) for index in at.given]


def _sum_of_two(at: OperationAt, element: Element) -> Contributions:
    factors = _operands(at, element)
    sign = -1.0 if at.type == "Subtract" else 1.0
    amounts = np.array([float(factors[0].value), sign * float(factors[1].value)])
    return _summed(amounts, lambda k: (factors[k], None))


def _product(at: OperationAt, element: Element) -> Contributions:
    factors = _operands(at, element)
    is_finite = bool(np.isfinite([float(one.value) for one in factors]).all())
    parts = [Contribution(one, _decides(is_finite and one.value == 0, PartRole.FACTOR)) for one in factors]
    parts.sort(key=lambda part: (part.role is not PartRole.DECIDES, -_magnitude(part.factor.value)))
    return _multiplied(parts, len(parts))


def _decides(holds: object, other: PartRole = PartRole.COMPARED) -> PartRole:
    return PartRole.DECIDES if holds else other


def _multiplied(parts: Sequence[Contribution], total: int, sizes: Array | None = None) -> Contributions:
    """Return a product, each factor weighed by its part of all logarithms together, where none of them is 0.

    `sizes` are all factors, where the parts are the largest of more.
    """
    own = np.abs(np.log2(np.abs(np.array([float(part.factor.value) for part in parts]))))
    everything = own.sum() if sizes is None else np.abs(np.log2(np.abs(sizes))).sum()
    is_known = bool(np.isfinite(everything)) and everything > 0
    weights = tuple((own / everything).tolist()) if is_known else ()
    return Contributions(LinkForm.PRODUCT, tuple(parts), total, weights)


def _magnitude(value: Any) -> float:
    size = abs(float(value))
    return size if size == size else np.inf


def _quotient(at: OperationAt, element: Element) -> Contributions:
    first, second = _operands(at, element)
    parts = Contribution(first, PartRole.FACTOR), Contribution(second, PartRole.DIVISOR)
    return Contributions(LinkForm.QUOTIENT, parts, 2)


def _arguments(at: OperationAt, element: Element, *, form: LinkForm = LinkForm.FUNCTION) -> Contributions:
    parts = tuple(map(Contribution, _operands(at, element)))
    return Contributions(form, parts, len(parts))


def _argument(at: OperationAt, element: Element) -> Contributions:
    """Return contributions to a function of the first input; the other inputs are its settings."""
    return Contributions(LinkForm.FUNCTION, (Contribution(_aligned(at, element, 0)),), 1)


def _choice(parts: Iterable[Contribution], total: int | None = None) -> Contributions:
    """Return a choice, what decides it first."""
    ordered = tuple(sorted(parts, key=lambda part: part.role is not PartRole.DECIDES))
    return Contributions(LinkForm.CHOICE, ordered, len(ordered) if total is None else total)


def _extreme_of_two(at: OperationAt, element: Element) -> Contributions:
    factors = _operands(at, element)
    winner = next((one for one in factors if same_values(one.value, at.result[element])), factors[0])
    return _choice(Contribution(one, _decides(one is winner)) for one in factors)


def _logic(at: OperationAt, element: Element, *, deciding: bool) -> Contributions:
    """Return the contributions to a conjunction (False decides) or disjunction (True does)."""
    factors = _operands(at, element)
    decisive = [one for one in factors if bool(one.value) is deciding] or factors
    return _choice(Contribution(one, _decides(one in decisive)) for one in factors)


def _select(at: OperationAt, element: Element) -> Contributions:
    condition, then, otherwise = _operands(at, element)
    chosen = then if bool(condition.value) else otherwise
    return _choice((Contribution(chosen, PartRole.DECIDES), Contribution(condition, PartRole.CONDITION)))


def _of_shape(at: OperationAt, element: Element) -> Contributions:
    """Return the contribution to ShapeOf: the extent of its input."""
    extent = Factor(0, element, at.value(0).shape[element[0]], is_shape=True)
    return Contributions(LinkForm.MOVE, (Contribution(extent),), 1)


# --- lines: parts -----------------------------------------------------------------------------------------------------


class _Line:
    """The elements of the first input on which an element depends, in order."""

    def __init__(self, at: OperationAt, element: Element) -> None:
        masks = {one.input: one.mask for one in dependences(at, at.mask(element)).found}
        self.data = at.value(0)
        self.places = np.flatnonzero(masks.get(0, np.zeros(0, bool)))
        self.elements = self.data.reshape(-1)[self.places]
        self.size = int(self.places.size)

    def factor(self, k: int) -> Factor:
        """Return the element at a place of the line."""
        return Factor(0, index_of(int(self.places[k]), self.data.shape), self.elements[k])

    def parts(self, places: Iterable[Any], role: PartRole) -> list[Contribution]:
        """Return elements in a role."""
        return [Contribution(self.factor(int(k)), role) for k in places]

    def summed(self, amounts: Array) -> Contributions:
        """Return a sum of a term of each element."""
        return _summed(amounts, lambda k: (self.factor(k), None))


def _summed(amounts: Array, factors: Callable[[int], tuple[Factor, Factor | None]]) -> Contributions:
    """Return a sum of terms; only the largest terms are looked at closely."""
    total, sizes = float(amounts.sum()), np.abs(amounts)
    everything = float(sizes.sum())
    is_finite = bool(np.isfinite(amounts).all())
    order = np.argsort(np.where(np.isfinite(sizes), -sizes, -np.inf), kind="stable")[:MOST_PARTS].tolist()
    parts = []
    for place in order:
        first, second = factors(place)
        amount = float(amounts[place])
        parts.append(
            Contribution(first, PartRole.TERM, amount, amount / total if is_finite and total else None, second)
        )
    weights = tuple(float(sizes[place]) / everything for place in order) if is_finite and everything else ()
    return Contributions(LinkForm.SUM, tuple(parts), len(amounts), weights, amounts, factors)


def _matrix_product(at: OperationAt, element: Element) -> Contributions:
    sides = []
    outer = list(element)
    for index, is_transposed in ((1, at.is_set("transpose_b")), (0, not at.is_set("transpose_a"))):
        value = at.value(index)
        inner: tuple[Any, ...] = (slice(None),)
        if value.ndim > 1:
            own = (outer.pop(),)
            inner = (*own, *inner) if is_transposed else (*inner, *own)
        sides.append((index, value, inner))

    def at_term(value: Array, inner: tuple[Any, ...], k: int | None) -> tuple[Any, ...]:
        batch = value.shape[:-2]
        head = (0 if size == 1 else one for size, one in zip(batch, outer[len(outer) - len(batch) :], strict=True))
        return (*head, *(k if k is not None and isinstance(one, slice) else one for one in inner))

    second, first = (np.asarray(value[at_term(value, inner, None)], np.float64) for _, value, inner in sides)

    def factors(k: int) -> tuple[Factor, Factor]:
        b, a = (Factor(index, place := at_term(value, inner, k), value[place]) for index, value, inner in sides)
        return a, b

    return _summed(first * second, factors)


def _reduced_sum(at: OperationAt, element: Element, *, of: Callable[[Array], Array]) -> Contributions:
    line = _Line(at, element)
    return line.summed(of(np.asarray(line.elements, np.float64)))


def _share_of_mean(elements: Array) -> Array:
    return elements / max(elements.size, 1)


def _reduced_product(at: OperationAt, element: Element) -> Contributions:
    """Return the factors that move the product most; a factor that is 0 decides the product."""
    line = _Line(at, element)
    sizes = np.asarray(line.elements, np.float64)
    zeros = np.flatnonzero(sizes == 0)
    order = zeros if zeros.size else np.argsort(-np.abs(np.log2(np.abs(sizes))), kind="stable")
    return _multiplied(line.parts(order[:MOST_PARTS], _decides(zeros.size, PartRole.FACTOR)), line.size, sizes)


def _linear(at: OperationAt, element: Element) -> Contributions | None:
    """Return the terms of an operation that sums its first input's elements, each scaled.

    Each term is computed by itself.
    """
    operation, data = at.operation, at.value(0)
    if operation.function is None or operation.several_outputs or data.dtype not in FLOATING:
        return None
    line = _Line(at, element)
    if not 0 < line.size <= _MOST_TERMS:
        return None
    alone, amounts = np.zeros(data.size, data.dtype), np.zeros(line.size)
    for k, place in enumerate(line.places):
        alone[place] = line.elements[k]
        amounts[k] = at.run(alone.reshape(data.shape), *at.values[1:])[element]
        alone[place] = 0
    if not np.isclose(amounts.sum(), float(at.result[element]), rtol=1e-3, atol=1e-3 * np.abs(amounts).sum()):
        return None  # it adds something else, too
    return line.summed(amounts)


def _chosen(line: _Line, winner: int, *, is_largest: bool) -> Contributions:
    """Return a choice of one of several elements, with those that came nearest to it."""
    values = np.asarray(line.elements, np.float64)
    order = np.argsort(-values if is_largest else values, kind="stable").tolist()
    rivals = [place for place in order if place != winner][: MOST_PARTS - 1]
    parts = [*line.parts((winner,), PartRole.DECIDES), *line.parts(rivals, PartRole.COMPARED)]
    return _choice(parts, line.size)


def _extreme(at: OperationAt, element: Element) -> Contributions | None:
    line, result = _Line(at, element), at.result[element]
    same = np.flatnonzero(~differing(line.elements, np.broadcast_to(result, line.elements.shape)))
    return _chosen(line, int(same[0]), is_largest=at.type == "ReduceMax") if same.size else None


def _all_or_any(at: OperationAt, element: Element, *, deciding: bool) -> Contributions:
    line = _Line(at, element)
    places = np.flatnonzero(line.elements.astype(bool) == deciding)
    decisive = places if places.size else np.arange(line.size)
    return _choice(line.parts(decisive[:MOST_PARTS], PartRole.DECIDES), line.size)


def _top(at: OperationAt, element: Element) -> Contributions | None:
    if len(at.results) < 2:
        return None
    return _chosen(_Line(at, element), int(at.results[1][element]), is_largest=at.attribute("mode") == "max")


def _softmax(at: OperationAt, element: Element) -> Contributions | None:
    line = _Line(at, element)
    if line.data.dtype not in FLOATING:
        return None
    own = element[at.axis(1)]
    values = np.asarray(line.elements, np.float64)
    order = [k for k in np.argsort(-values, kind="stable").tolist() if k != own][: MOST_PARTS - 1]
    # one that is not finite makes all of the line so
    role = PartRole.COMPARED if np.isfinite(values).all() else PartRole.ARGUMENT
    parts = [*line.parts((own,), PartRole.ARGUMENT), *line.parts(order, role)]
    return Contributions(LinkForm.FUNCTION, tuple(parts), line.size)


# --- moves: parts -----------------------------------------------------------------------------------------------------


def _origin(at: OperationAt, element: Element) -> Contributions | None:
    """Return the element that was moved here, by moving labels in the place of the elements."""
    found = _moved_labels(at)
    if found is None:
        return None
    label = int(found.moved[element])
    source = next((index for index, start in reversed(found.starts.items()) if label >= start), None)
    if source is None:
        return Contributions(LinkForm.MOVE, (), 0)
    moved = at.factor(source, index_of(label - found.starts[source], at.value(source).shape))
    if not same_values(moved.value, at.result[element]):  # an operation that reduces what it scatters
        return None
    parts = [Contribution(moved)]
    for index in at.given:
        if index not in found.starts:
            place = _index_at(at, element, moved) if index == 1 and at.value(index).size > 1 else None
            shape = at.value(index).shape
            is_inside = place is not None and len(place) == len(shape) and all(map(int.__lt__, place, shape))
            parts.append(Contribution(at.factor(index, place if is_inside else None), PartRole.INDEX))
    return Contributions(LinkForm.MOVE, tuple(parts), len(parts))


def _index_at(at: OperationAt, element: Element, moved: Factor) -> Element | None:
    """Return the place in the indices that says where an element came from or went to; None for the whole of them."""
    assert moved.element is not None
    inner = at.value(1).ndim
    if at.type in ("Gather", "GatherElements"):
        (part,) = _index_part(at, 1, at.mask(element))
        return index_of(int(np.argmax(part.mask)), part.mask.shape)
    if at.type == "GatherND":
        return (*element[: inner - 1], 0)
    if moved.input != 2:  # of what is scattered into, no index says where it came from
        return None
    if at.type == "ScatterElementsUpdate":
        return moved.element
    if at.type == "ScatterNDUpdate":
        return (*moved.element[: inner - 1], 0)
    if at.type == "ScatterUpdate":
        axis = at.axes(3, at.value(0).ndim)[0]
        return moved.element[axis : axis + inner]
    return None


# --- the table --------------------------------------------------------------------------------------------------------


class OperationRule(NamedTuple):
    """Rules of a type: the elements that matter, what an element is made of, what an extent depends on."""

    depends: Callable[[OperationAt, Array], list[Dependence] | None] | None = None
    terms: Callable[[OperationAt, Element], Contributions | None] | None = None
    extents: extents.ExtentRule | None = None


def _of_families(families: Sequence[str], *rules: Any) -> dict[str, OperationRule]:
    return {type: OperationRule(*rules) for type, family in FAMILY_OF.items() if family in families}


_COMPARISON = partial(_arguments, form=LinkForm.COMPARISON)
_SUM = partial(_reduced_sum, of=np.positive)
_BY_TYPE: dict[str, tuple[Any, ...]] = {
    "ConvertPromoteTypes": (_first_elementwise, _argument),
    "FakeConvert": (None, _argument, extents.same),
    "FakeQuantize": (_elementwise, _argument, extents.same),
    "PRelu": (_elementwise, _arguments, extents.same),
    "IsFinite IsInf IsNaN LogicalNot": (_elementwise, _argument, extents.broadcast),
    "Add Subtract": (_elementwise, _sum_of_two, extents.broadcast),
    "Multiply": (partial(_decided, by=lambda value: value == 0), _product, extents.broadcast),
    "Divide": (_elementwise, _quotient, extents.broadcast),
    "Maximum Minimum": (_elementwise, _extreme_of_two, extents.broadcast),
    "LogicalAnd": (partial(_decided, by=np.logical_not), partial(_logic, deciding=False), extents.broadcast),
    "LogicalOr": (partial(_decided, by=np.bool_), partial(_logic, deciding=True), extents.broadcast),
    "Select": (_selected, _select, extents.broadcast),
    "MatMul": (_matmul, _matrix_product, extents.matmul),
    "ReduceSum": (_reduced, _SUM, extents.reduced),
    "ReduceMean": (_reduced, partial(_reduced_sum, of=_share_of_mean), extents.reduced),
    "ReduceL1": (_reduced, partial(_reduced_sum, of=np.abs), extents.reduced),
    "ReduceL2": (_reduced, None, extents.reduced),
    "ReduceProd": (_reduced, _reduced_product, extents.reduced),
    "ReduceMax ReduceMin": (_reduced, _extreme, extents.reduced),
    "ReduceLogicalAnd": (_reduced, partial(_all_or_any, deciding=False), extents.reduced),
    "ReduceLogicalOr": (_reduced, partial(_all_or_any, deciding=True), extents.reduced),
    "CumSum": (_cumulated, _SUM, extents.same),
    "TopK": (partial(_along, default=-1), _top, extents.top),
    "Softmax LogSoftmax": (partial(_along, default=1), _softmax, extents.same),
    "MVN NormalizeL2": (_normalized, None, extents.same),
    "BatchNormInference": (_by_channel, None, extents.normalized),
    "GroupNormalization": (_by_group, None, extents.same),
    "LSTMCell": (_lstm, None, extents.cell),
    "GRUCell RNNCell": (_gru_or_rnn, None, extents.cell),
    "LSTMSequence GRUSequence RNNSequence": (_sequence,),
    "Convolution GroupConvolution": (_convolution, _linear, extents.convolved),
    "ConvolutionBackpropData": (_convolution_backwards, _linear, extents.convolved),
    "GroupConvolutionBackpropData": (None, _linear, extents.convolved),
    "AvgPool": (_pooling, _linear, extents.same),
    "MaxPool": (_pooling, None, extents.same),
    "AdaptiveAvgPool Einsum": (None, _linear),
    "EmbeddingBagOffsetsSum EmbeddingBagPackedSum EmbeddingSegmentsSum": (None, _linear),
    "Interpolate": (_resized,),
    "Bucketize": (_bucket, None, extents.same),
    "OneHot": (_one_hot, None, extents.one_hot),
    "ShapeOf": (_nothing, _of_shape, _nothing),
    "NonZero": (None, None, extents.counted_elements),
    "Range": (None, None, extents.ranged),
}
_MOVES: dict[str, extents.ExtentRule | None] = {
    "BatchToSpace DepthToSpace GatherND ShuffleChannels SpaceToBatch SpaceToDepth": None,
    "Identity Reverse ReverseSequence Roll SliceScatter": extents.same,
    "ScatterUpdate ScatterElementsUpdate ScatterNDUpdate": extents.same,
    "Transpose": extents.transposed,
    "Concat": extents.concatenated,
    "Gather": extents.gathered,
    "GatherElements": partial(extents.same, index=1),
    "Reshape": extents.reshaped,
    "Unsqueeze": extents.unsqueezed,
    "Squeeze": extents.squeezed,
    "Broadcast": extents.broadcast_to,
    "Tile": extents.tiled,
    "Slice": extents.sliced,
    "StridedSlice": extents.strided,
    "Split VariadicSplit": extents.split,
    "Pad": extents.padded,
}
RULES: dict[str, OperationRule] = {
    **_of_families(("elementwise", "bitwise"), _elementwise, _arguments, extents.broadcast),
    **_of_families(("comparison",), _elementwise, _COMPARISON, extents.broadcast),
    **_of_families(("unary",), _elementwise, _argument, extents.same),
    **_of_families(("activation", "convert"), _first_elementwise, _argument, extents.same),
    **{type: OperationRule(_moved, _origin, rule) for types, rule in _MOVES.items() for type in types.split()},
    **{type: OperationRule(*rules) for types, rules in _BY_TYPE.items() for type in types.split()},
}


def _rule(at: OperationAt) -> OperationRule:
    is_kernel = at.operation.kind is OpKind.KERNEL
    return RULES.get(at.type, OperationRule()) if is_kernel else OperationRule()
