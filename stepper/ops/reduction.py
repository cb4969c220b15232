"""Reductions over axes, and the cumulative sum.

Source: the operation sets' pages of each operation (category Reduction, CumSum). No axes reduce nothing; integers wrap.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import normalize_axes, normalize_axis, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

# typed loosely: numpy's stubs know `keepdims` as a literal only
_sum: Final[Any] = np.add.reduce
_product: Final[Any] = np.multiply.reduce
_all: Final[Any] = np.logical_and.reduce
_any: Final[Any] = np.logical_or.reduce


def _axes(x: Array, axes: Array) -> tuple[int, ...]:
    if axes.size == 1:  # by far the most frequent
        return (normalize_axis(axes.item(), x.ndim),)
    return normalize_axes(axes, x.ndim)


def _extent(x: Array, axes: tuple[int, ...]) -> int:
    """Return the number of elements that make one of the result."""
    extent = 1
    for axis in axes:
        extent *= x.shape[axis]
    return extent


def _total(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Any:
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


def _extremum(reduce: Any, x: Array, axes: tuple[int, ...], keep_dims: bool, real: float, limit: str) -> Array:
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
