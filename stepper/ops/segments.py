"""Rows reduced by segment: maxima, sums of embedding vectors in bags, and a sparse tensor's empty rows.

Source: the operation sets' pages of SegmentMax, SparseFillEmptyRows and the EmbeddingBag and EmbeddingSegments types.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from stepper.element_types import Array, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, shape_text, single_integer
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel


@kernel("SegmentMax", 16)
def segment_max(
    data: Array,
    segment_ids: Array,
    num_segments: Array | None = None,
    *,
    fill_mode: Literal["zero", "lowest"] = "zero",
) -> Array:
    """Row s is the maximum of the rows of `data` whose segment id is s; an empty segment is 0 or the type's lowest."""
    if data.ndim < 1 or segment_ids.shape != data.shape[:1]:
        shapes = f"{shape_text(segment_ids.shape)} for data of shape {shape_text(data.shape)}"
        raise KernelError(f"there must be one segment id for each row, their shape is {shapes}")
    _check_ascending(segment_ids, "segment ids")
    default = int(segment_ids[-1]) + 1 if segment_ids.size else 0
    count = default if num_segments is None else single_integer(num_segments, "num_segments")
    starts, ends = _extents(segment_ids, count, data)
    fill = 0 if fill_mode == "zero" else _lowest(data.dtype)
    return _reduced(np.maximum, data, starts, ends, fill)


def _lowest(dtype: np.dtype[Any]) -> Any:
    if is_floating(dtype):
        # The neighbour of -infinity, whatever the type's width.
        return np.nextafter(np.array(-np.inf, dtype), np.array(0, dtype))
    return np.iinfo(dtype).min


def _check_ascending(numbers: Array, name: str) -> None:
    if numbers.ndim != 1 or (numbers.size and (numbers[0] < 0 or (numbers[1:] < numbers[:-1]).any())):
        raise KernelError(f"the {name} must be a list of ascending numbers from 0")


def _extents(segment_ids: Array, count: int, rows: Array) -> tuple[Array, Array]:
    """Return the begin and the end of each of `count` segments of such rows."""
    if count < 0:
        raise KernelError(f"there cannot be {count} segments")
    ensure_allocatable((count, *rows.shape[1:]), rows.dtype)
    segments = np.arange(count)
    return np.searchsorted(segment_ids, segments), np.searchsorted(segment_ids, segments, "right")


def _reduced(ufunc: np.ufunc, rows: Array, starts: Array, ends: Array, fill: Any) -> Array:
    """Return for each segment the rows from its start to before its end reduced to one, `fill` where there is none.

    The segments follow one another without overlap, so an end is the next start that has rows, or past the last row.
    """
    result = np.full((len(starts), *rows.shape[1:]), fill, rows.dtype)
    filled = starts < ends
    if filled.any():
        used = rows[: ends[filled][-1]]
        result[filled] = ufunc.reduceat(used, starts[filled], axis=0)
    return result


@kernel("SparseFillEmptyRows", 16)
def sparse_fill_empty_rows(
    values: Array, dense_shape: Array, indices: Array, default_value: Array
) -> tuple[Array, Array, Array]:
    """Return indices and values, with (row, 0) and `default_value` for each row that had none, and which those were."""
    if dense_shape.shape != (2,) or values.ndim != 1 or indices.shape != (*values.shape, 2):
        shapes = ", ".join(shape_text(x.shape) for x in (values, dense_shape, indices))
        raise KernelError(f"values, dense_shape and indices have the shapes {shapes}, which do not belong together")
    rows = int(dense_shape[0])
    ensure_allocatable((max(0, rows), 2), np.int64)
    if rows < 0 or (indices.size and not 0 <= indices[:, 0].min() <= indices[:, 0].max() < rows):
        raise KernelError(f"an index lies outside the {rows} rows")
    empty = np.ones(rows, np.bool_)
    empty[indices[:, 0]] = False
    added = np.zeros((int(empty.sum()), 2), indices.dtype)
    added[:, 0] = np.flatnonzero(empty)
    all_indices = np.concatenate([indices, added])
    all_values = np.concatenate([values, np.full(len(added), default_value, values.dtype)])
    order = np.argsort(all_indices[:, 0], kind="stable")
    return all_indices[order], all_values[order], empty


@kernel("EmbeddingBagOffsetsSum", 3, without=("reduction",))
@kernel("EmbeddingBagOffsets", 15)
def embedding_bag_offsets(
    emb_table: Array,
    indices: Array,
    offsets: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
    *,
    reduction: Literal["sum", "mean"] = "sum",
) -> Array:
    """Return per bag, which begins at its offset in `indices`, the (weighted) sum or the mean of the table's rows."""
    _check_ascending(offsets, "offsets")
    if offsets.size and offsets[-1] > indices.size:
        raise KernelError(f"an offset is {offsets[-1]}, there are {indices.size} indices")
    ends = np.append(offsets[1:], indices.size)
    return _bags(emb_table, indices, offsets, ends, default_index, per_sample_weights, reduction)


@kernel("EmbeddingBagPackedSum", 3, without=("reduction",))
@kernel("EmbeddingBagPacked", 15)
def embedding_bag_packed(
    emb_table: Array,
    indices: Array,
    per_sample_weights: Array | None = None,
    *,
    reduction: Literal["sum", "mean"] = "sum",
) -> Array:
    """Return for each row of `indices` the (weighted) sum or the mean of the table's rows that it names."""
    if indices.ndim != 2 or (per_sample_weights is not None and per_sample_weights.shape != indices.shape):
        raise KernelError(
            f"indices of shape {shape_text(indices.shape)} are not one row for each bag, or the weights not"
        )
    bags, length = indices.shape
    starts = np.arange(bags) * length
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    return _bags(emb_table, indices.reshape(-1), starts, starts + length, None, weights, reduction)


@kernel("EmbeddingSegmentsSum", 3)
def embedding_segments_sum(
    emb_table: Array,
    indices: Array,
    segment_ids: Array,
    num_segments: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
) -> Array:
    """Return for each segment the (weighted) sum of the table's rows at the indices that have its segment id."""
    _check_ascending(segment_ids, "segment ids")
    count = single_integer(num_segments, "num_segments")
    if segment_ids.shape != indices.shape or (segment_ids.size and segment_ids[-1] >= count):
        raise KernelError(f"segment ids of shape {shape_text(segment_ids.shape)} do not fit {count} segments")
    starts, ends = _extents(segment_ids, count, emb_table)
    return _bags(emb_table, indices, starts, ends, default_index, per_sample_weights, "sum")


def _bags(
    table: Array,
    indices: Array,
    starts: Array,
    ends: Array,
    default_index: Array | None,
    weights: Array | None,
    reduction: str,
) -> Array:
    """Return the rows of each bag reduced; an empty bag is row default_index, unweighted, or 0 (no index, or -1)."""
    if weights is not None and (reduction == "mean" or weights.shape != indices.shape):
        raise KernelError("weights must be as many as the indices, and only a sum can be weighted")
    rows = widened(_rows(table, indices))
    if weights is not None:
        rows = rows * widened(weights).reshape((-1,) + (1,) * (rows.ndim - 1))
    result = _reduced(np.add, rows, starts, ends, 0)
    counts = (ends - starts).reshape((-1,) + (1,) * (rows.ndim - 1))
    if reduction == "mean":
        divisor = np.maximum(counts, 1).astype(result.dtype)
        result = result / divisor if is_floating(table.dtype) else result // divisor
    default = -1 if default_index is None else single_integer(default_index, "default_index")
    if default != -1:
        result[starts >= ends] = _rows(table, np.array([default]))
    return narrowed(result, table.dtype)


def _rows(table: Array, indices: Array) -> Array:
    if not table.ndim or indices.ndim != 1 or indices.dtype.kind not in "iu":
        shapes = f"{shape_text(indices.shape)} for a table of {shape_text(table.shape)}"
        raise KernelError(f"the indices must be a list of integers, their shape is {shapes}")
    if indices.size and not 0 <= indices.min() <= indices.max() < table.shape[0]:
        raise KernelError(f"indices {indices.min()} to {indices.max()} point outside the {table.shape[0]} rows")
    return table.take(indices, 0)
