"""Reductions, cumulative sums, sorting and searching.

Normalisations: by mean and variance, by the length of a vector, by the neighbours, by given statistics.

Source: the operation sets' pages of each operation (category Normalization). Narrow floats are computed in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stepper.element_types import I32, I64, Array, ElementType, Ints, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import normalize_axes, normalize_axis, shape_text, single_integer
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

# typed loosely: numpy's stubs know `keepdims` as a literal only
_sum: Final[Any] = np.add.reduce
_product: Final[Any] = np.multiply.reduce
_all: Final[Any] = np.logical_and.reduce
_any: Final[Any] = np.logical_or.reduce


def _axes(x: Array, axes: Array) -> Ints:
    if axes.size == 1:  # by far the most frequent
        return (normalize_axis(axes.item(), x.ndim),)
    return normalize_axes(axes, x.ndim)


def _extent(x: Array, axes: Ints) -> int:
    """Return the number of elements that make one of the result."""
    extent = 1
    for axis in axes:
        extent *= x.shape[axis]
    return extent


def _total(x: Array, axes: Ints, keep_dims: bool) -> Any:
    """Return the sum in the type of `x`; without `dtype` numpy would widen integers."""
    return _sum(x, axes, x.dtype, keepdims=keep_dims)


@kernel("ReduceSum", 1)
def reduce_sum(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the sum."""
    return narrowed(_total(widened(x), _axes(x, axes), keep_dims), x.dtype)


@kernel("ReduceMean", 1)
def reduce_mean(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the mean, of integers without its fraction; 0 of nothing."""
    reduced = _axes(x, axes)
    extent = max(_extent(x, reduced), 1)
    if x.dtype.kind in "iu":
        total = _sum(x, reduced, keepdims=keep_dims)
        return np.asarray(np.sign(total) * (np.absolute(total) // total.dtype.type(extent)), x.dtype)
    return narrowed(_total(widened(x), reduced, keep_dims) / np.float32(extent), x.dtype)


@kernel("ReduceProd", 1)
def reduce_prod(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the product."""
    wide = widened(x)
    return narrowed(_product(wide, _axes(x, axes), wide.dtype, keepdims=keep_dims), x.dtype)


@kernel("ReduceMax", 1)
def reduce_max(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the maximum, NaN only where there is nothing else; of nothing -inf or the lowest integer."""
    return _extremum(np.fmax.reduce, x, _axes(x, axes), keep_dims, -np.inf, "min")


@kernel("ReduceMin", 1)
def reduce_min(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the minimum, NaN only where there is nothing else; of nothing +inf or the greatest integer."""
    return _extremum(np.fmin.reduce, x, _axes(x, axes), keep_dims, np.inf, "max")


def _extremum(reduce: Any, x: Array, axes: Ints, keep_dims: bool, real: float, limit: str) -> Array:
    extremum: Array
    if x.size or _extent(x, axes):
        extremum = reduce(x, axes, keepdims=keep_dims)
    else:
        of_nothing = real if is_floating(x.dtype) else getattr(np.iinfo(x.dtype), limit)
        extremum = reduce(x, axes, keepdims=keep_dims, initial=x.dtype.type(of_nothing))
    return extremum


@kernel("ReduceL1", 4)
def reduce_l1(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the sum of magnitudes."""
    return narrowed(_total(np.absolute(widened(x)), _axes(x, axes), keep_dims), x.dtype)


@kernel("ReduceL2", 4)
def reduce_l2(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return the root of the sum of squares; of integers without its fraction."""
    wide = x.astype(np.float64) if x.dtype.kind in "iu" else widened(x)
    return narrowed(np.sqrt(_total(wide * wide, _axes(x, axes), keep_dims)), x.dtype)


@kernel("ReduceLogicalAnd", 1)
def reduce_logical_and(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return True if all hold."""
    holds: Array = _all(x, _axes(x, axes), keepdims=keep_dims)
    return holds


@kernel("ReduceLogicalOr", 1)
def reduce_logical_or(x: Array, axes: Array, *, keep_dims: bool = False) -> Array:
    """Return True if any holds."""
    holds: Array = _any(x, _axes(x, axes), keepdims=keep_dims)
    return holds


@kernel("CumSum", 3)
def cum_sum(x: Array, axis: Array, *, exclusive: bool = False, reverse: bool = False) -> Array:
    """Return the sums of all up to each element (without itself if exclusive), from the end if reverse."""
    if axis.size != 1:
        raise KernelError(f"the axis of CumSum has shape {shape_text(axis.shape)}, one number is expected")
    along = normalize_axis(axis.item(), x.ndim)
    wide = widened(x)
    run = np.flip(wide, along) if reverse else wide
    sums = np.add.accumulate(run, along, wide.dtype)
    if exclusive:
        sums = _moved_by_one(sums, along)
    return narrowed(np.flip(sums, along) if reverse else sums, x.dtype)


def _moved_by_one(sums: Array, axis: int) -> Array:
    """Return each element in the place after it, the first place 0."""
    moved = np.zeros_like(sums)
    at = [slice(None)] * sums.ndim
    before, after = at.copy(), at.copy()
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    moved[tuple(after)] = sums[tuple(before)]
    return moved


# Order among elements: the largest ones, the distinct ones, those that are not zero, and places in a sorted sequence.
#
# Source: the operation sets' pages of TopK, Unique, NonZero, SearchSorted and Bucketize.


@kernel("TopK", 1, 3, without=("stable",))
@kernel("TopK", 11)
def top_k(
    data: Array,
    k: Array,
    *,
    axis: int = 0,
    mode: Literal["max", "min"] = "max",
    sort: Literal["none", "value", "index"] = "none",
    index_element_type: ElementType = I32,
    stable: bool = False,
) -> tuple[Array, Array]:
    """Return the `k` largest (or smallest) elements along `axis` and their indices, by value unless sort is index.

    Of equal elements always the one with the lower index counts as the larger.
    """
    position, count = normalize_axis(axis, data.ndim), single_integer(k, "k")
    if not 0 <= count <= data.shape[position]:
        raise KernelError(f"k is {count} for a dimension of {data.shape[position]}")
    if count == 1:
        best = np.argmax if mode == "max" else np.argmin
        indices: Array = best(widened(data), position, keepdims=True)
    else:
        ranking = _descending(data, position) if mode == "max" else np.argsort(widened(data), position, kind="stable")
        indices = ranking[(*(slice(None),) * position, slice(count))]
    if sort == "index":
        indices = np.sort(indices, position)
    return np.take_along_axis(data, indices, position), indices.astype(index_element_type.dtype, copy=False)


def _descending(data: Array, axis: int) -> Array:
    """Return the indices from the largest element to the smallest, equal ones in their order."""
    if is_floating(data.dtype):
        return np.argsort(np.negative(widened(data)), axis, kind="stable")
    from_behind: Array = np.argsort(np.flip(data, axis), axis, kind="stable")  # integers cannot all be negated
    indices: Array = data.shape[axis] - 1 - np.flip(from_behind, axis)
    return indices


@kernel("NonZero", 3)
def non_zero(data: Array, *, output_type: ElementType = I64) -> Array:
    """Return the coordinates of the elements other than zero, a column each, row-major; a NaN is not zero."""
    if data.ndim == 0:
        return np.zeros((int(bool(data)),) * 2, output_type.dtype)
    return np.array(data.nonzero(), output_type.dtype)


@kernel("Unique", 10)
def unique(
    data: Array,
    axis: Array | None = None,
    *,
    sorted: bool = True,
    index_element_type: ElementType = I64,
    count_element_type: ElementType = I64,
) -> tuple[Array, Array, Array, Array]:
    """Return the distinct elements (slices along `axis`), their first indices, which one each input is, their counts.

    In ascending order, else (sorted is false) in the order of their first occurrence.
    """
    if axis is None:
        data, position = data.reshape(-1), 0
    else:
        position = normalize_axis(single_integer(axis, "the axis"), data.ndim)
    first, which, counts = _distinct(widened(data), position)
    if not sorted:
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, which, counts = first[order], place[which], counts[order]
    index, count = index_element_type.dtype, count_element_type.dtype
    return data.take(first, position), first.astype(index), which.astype(index), counts.astype(count)


def _distinct(data: Array, axis: int) -> tuple[Array, Array, Array]:
    """First indices of the distinct slices, for each slice which one it is, and counts, in ascending order."""
    if not data.size:
        one = min(1, data.shape[axis])
        return np.zeros(one, np.int64), np.zeros(data.shape[axis], np.int64), np.full(one, data.shape[axis])
    along = axis if data.ndim > 1 else None
    _, first, which, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=along, equal_nan=False
    )
    return first, which.reshape(-1), counts


@kernel("SearchSorted", 15)
def search_sorted(
    sorted_sequence: Array, values: Array, *, right_mode: bool = False, output_type: ElementType = I64
) -> Array:
    """Return for each value before which element of its ascending sequence it belongs; right_mode: after equal ones."""
    sequence, wanted = widened(sorted_sequence), widened(values)
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, wanted, "right" if right_mode else "left"), output_type.dtype)
    if not sequence.ndim or sequence.shape[:-1] != wanted.shape[:-1]:
        shapes = f"{shape_text(sequence.shape)} and {shape_text(wanted.shape)}"
        raise KernelError(f"sequences and values of the shapes {shapes} do not belong together")
    return _places(sequence, wanted, right_mode).astype(output_type.dtype, copy=False)


def _places(sequences: Array, values: Array, right: bool) -> Array:
    """Binary search of each value in the sequence of its own row (the last axis), all at the same time."""
    length = sequences.shape[-1]
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, length)
    for _ in range(length.bit_length()):
        middle = (low + high) // 2
        element = np.take_along_axis(sequences, np.minimum(middle, length - 1), -1)
        beyond = (element <= values if right else element < values) & (low < high)
        low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
    return low


@kernel("Bucketize", 3)
def bucketize(data: Array, buckets: Array, *, output_type: ElementType, with_right_bound: bool = True) -> Array:
    """Return for each element the number of boundaries below it (with_right_bound), or not above it; a NaN is in 0."""
    if buckets.ndim != 1:
        raise KernelError(f"the buckets must be a tensor of rank 1, they have the shape {shape_text(buckets.shape)}")
    elements = widened(data)
    places = np.searchsorted(widened(buckets), elements, "left" if with_right_bound else "right")
    return np.where(elements == elements, places, 0).astype(output_type.dtype)


def _ensure_per_channel(x: Array, *parameters: Array) -> None:
    """Refuse parameters that are not one number for each channel (axis 1)."""
    if x.ndim < 2:
        raise KernelError(f"a tensor of shape {shape_text(x.shape)} has no axis of channels")
    for parameter in parameters:
        if parameter.size != x.shape[1]:
            shapes = f"{shape_text(parameter.shape)} does not fit the channels of {shape_text(x.shape)}"
            raise KernelError(f"a parameter of shape {shapes}")


def _by_channel(parameter: Array, rank: int) -> Array:
    """Return a number for each channel, shaped to be broadcast over a tensor [N, C, ...]."""
    return widened(parameter).reshape((-1,) + (1,) * (rank - 2))


def _centred(x: Array, axes: Ints) -> Array:
    """Return `x` less its mean over the axes."""
    centred: Array = x - np.mean(x, axes, keepdims=True)
    return centred


def _variance(centred: Array, axes: Ints) -> Array:
    """Return the variance over the axes of what has been centred."""
    variance: Array = np.mean(np.square(centred), axes, keepdims=True)
    return variance


@kernel("MVN", 2)
def mvn_of_opset2(
    x: Array, *, across_channels: bool = False, normalize_variance: bool = False, eps: float = 0.0
) -> Array:
    """Return (x - mean) / √(variance + eps) over all axes from 1 or 2 on; undivided without normalize_variance."""
    axes = tuple(range(1 if across_channels else 2, x.ndim))
    return _mvn(x, axes, normalize_variance, eps, inside=True)


@kernel("MVN", 6)
def mvn(
    x: Array,
    axes: Array,
    *,
    normalize_variance: bool = False,
    eps: float = 0.0,
    eps_mode: Literal["inside_sqrt", "outside_sqrt"] = "inside_sqrt",
) -> Array:
    """Return (x - mean) / √(variance + eps), or / (√variance + eps); undivided without normalize_variance."""
    return _mvn(x, normalize_axes(axes, x.ndim), normalize_variance, eps, inside=eps_mode == "inside_sqrt")


def _mvn(x: Array, axes: Ints, normalize_variance: bool, eps: float, *, inside: bool) -> Array:
    if not x.size:
        return x
    centred = _centred(widened(x), axes)
    if normalize_variance:
        variance = _variance(centred, axes)
        centred = centred / (np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps)
    return narrowed(centred, x.dtype)


@kernel("GroupNormalization", 12)
def group_normalization(x: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 0.0) -> Array:
    """Return (x - mean) / √(variance + epsilon) within each group of channels, times scale, plus bias."""
    _ensure_per_channel(x, scale, bias)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise KernelError(f"{x.shape[1]} channels cannot be divided into {num_groups} groups")
    if not x.size:
        return x
    groups = widened(x).reshape(x.shape[0], num_groups, -1)
    centred = _centred(groups, (2,))
    normal = (centred / np.sqrt(_variance(centred, (2,)) + epsilon)).reshape(x.shape)
    return narrowed(normal * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim), x.dtype)


@kernel("BatchNormInference", 1)
def batch_norm_inference_of_opset1(
    gamma: Array, beta: Array, x: Array, mean: Array, variance: Array, *, epsilon: float = 0.0
) -> Array:
    """Return gamma (x - mean) / √(variance + epsilon) + beta, each given for every channel."""
    return batch_norm_inference(x, gamma, beta, mean, variance, epsilon=epsilon)


@kernel("BatchNormInference", 5)
def batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, *, epsilon: float = 0.0
) -> Array:
    """Return gamma (x - mean) / √(variance + epsilon) + beta, each given for every channel."""
    _ensure_per_channel(x, gamma, beta, mean, variance)
    scale = widened(gamma) / np.sqrt(widened(variance) + epsilon)
    centred = widened(x) - _by_channel(mean, x.ndim)
    return narrowed(centred * _by_channel(scale, x.ndim) + _by_channel(beta, x.ndim), x.dtype)


@kernel("NormalizeL2", 1)
def normalize_l2(x: Array, axes: Array, *, eps: float = 0.0, eps_mode: Literal["add", "max"] = "add") -> Array:
    """Return x / √(Σ x² + eps) or / √max(Σ x², eps) over the axes; without axes 1 for whatever is not 0."""
    if not axes.size:
        return np.not_equal(x, 0).astype(x.dtype)
    wide = widened(x)
    squares = np.add.reduce(np.square(wide), normalize_axes(axes, x.ndim), keepdims=True)
    return narrowed(wide / np.sqrt(squares + eps if eps_mode == "add" else np.maximum(squares, eps)), x.dtype)


@kernel("GRN", 1)
def grn(x: Array, *, bias: float = 1.0) -> Array:
    """Return x / √(Σ x² + bias), the sum over the channels."""
    _ensure_per_channel(x)
    wide = widened(x)
    return narrowed(wide / np.sqrt(np.add.reduce(np.square(wide), 1, keepdims=True) + bias), x.dtype)


@kernel("LRN", 1)
def lrn(x: Array, axes: Array, *, alpha: float = 0.0, beta: float = 0.0, bias: float = 0.0, size: int = 0) -> Array:
    """Return x / (bias + alpha / size^n Σ x²)^beta, the sum over a window of `size` elements along each of n axes."""
    if size < 1:
        raise KernelError(f"the size of LRN is {size}, a window has at least one element")
    along = normalize_axes(axes, x.ndim)
    if not x.size:
        return x
    wide = widened(x)
    squares = _window_sums(np.square(wide), along, size // 2)
    return narrowed(wide / np.power(bias + alpha / float(size) ** len(along) * squares, beta), x.dtype)


def _window_sums(x: Array, axes: Sequence[int], reach: int) -> Array:
    """Return the sum of the elements at most `reach` away along each of the axes in turn."""
    for axis in axes:
        near = min(reach, x.shape[axis])
        pads = [(near, near) if other == axis else (0, 0) for other in range(x.ndim)]
        x = np.add.reduce(sliding_window_view(np.pad(x, pads), 2 * near + 1, axis), -1)
    return x
