"""Elements picked from a tensor by index (gather) and written into a copy of it by index (scatter).

Source: the operation sets' pages of each operation (category Data movement). Negative indices count from the end.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import STRING_DTYPE, Array, DType, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, normalize_axis, shape_text, single_integer
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

Index = tuple[Any, ...]


@kernel("Gather", 1, 7, 8)
def gather(data: Array, indices: Array, axis: Array, *, batch_dims: int = 0) -> Array:
    """Return the slices of `data` at `indices` along `axis`, after `batch_dims` axes; zeros for an index outside."""
    if not batch_dims:
        try:
            taken: Any = data.take(indices, axis.item())
            return np.array(taken, STRING_DTYPE) if type(taken) is str else taken
        except (IndexError, TypeError, ValueError, OverflowError):
            pass
    return _gathered_with_zeros(data, indices, single_integer(axis, "the axis"), batch_dims)


def _gathered_with_zeros(data: Array, indices: Array, axis: int, batch_dims: int) -> Array:
    axis, batch = normalize_axis(axis, data.ndim), batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(axis, indices.ndim) or data.shape[:batch] != indices.shape[:batch]:
        shapes = f"{shape_text(data.shape)} and {shape_text(indices.shape)}"
        raise KernelError(f"batch_dims {batch_dims} with axis {axis} does not fit the shapes {shapes}")
    rows = np.moveaxis(data, axis, batch)
    after_axis = rows.shape[batch + 1 :]
    blocks = math.prod(data.shape[:batch])
    rows = rows.reshape((blocks, data.shape[axis], *after_axis))
    index = indices.reshape((blocks, math.prod(indices.shape[batch:]))).astype(np.int64)
    inside = (index >= -data.shape[axis]) & (index < data.shape[axis])
    result = np.zeros((*index.shape, *after_axis), data.dtype)
    result[inside] = rows[np.nonzero(inside)[0], index[inside]]
    picked = result.reshape((*indices.shape, *after_axis))
    return np.moveaxis(picked, range(batch, indices.ndim), range(axis, axis + indices.ndim - batch))


@kernel("GatherElements", 6)
def gather_elements(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Return for each position the element of `data` whose coordinate along `axis` is the index there."""
    axis = normalize_axis(axis, data.ndim)
    return _picked(data, _elementwise_index(data, indices, axis))


def _picked(data: Array, index: Index) -> Array:
    """Return data[index], an array also where it is a single element; KernelError for an index outside."""
    try:
        picked: Array = data[(*index, ...)]
        return picked
    except IndexError as error:
        raise KernelError(f"an index points outside the shape {shape_text(data.shape)}: {error}") from None


def _elementwise_index(data: Array, indices: Array, axis: int) -> Index:
    """Return the coordinates of each index: its own position, except along `axis` the index itself."""
    if data.ndim != indices.ndim:
        raise KernelError(f"indices of rank {indices.ndim} for a tensor of rank {data.ndim}")
    coordinates: list[Array] = list(np.indices(indices.shape, sparse=True))
    coordinates[axis] = indices
    return tuple(coordinates)


@kernel("GatherND", 5)
def gather_nd_flat(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """Return the result of GatherND-8, the batch dimensions of the output flattened into one."""
    result = gather_nd(data, indices, batch_dims=batch_dims)
    if batch_dims <= 1:
        return result
    return result.reshape((math.prod(result.shape[:batch_dims]), *result.shape[batch_dims:]))


@kernel("GatherND", 8)
def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """Return for each row along the last axis of `indices` the slice of `data` that begins with these coordinates."""
    if (
        not 0 <= batch_dims < max(1, min(data.ndim, indices.ndim))
        or data.shape[:batch_dims] != indices.shape[:batch_dims]
    ):
        shapes = f"{shape_text(data.shape)} and {shape_text(indices.shape)}"
        raise KernelError(f"batch_dims {batch_dims} does not fit the shapes {shapes}")
    batch = np.indices(indices.shape[:-1], sparse=True)[:batch_dims]
    return _picked(data, (*batch, *_coordinates(data, indices, batch_dims)))


def _coordinates(data: Array, indices: Array, first_axis: int) -> Index:
    """Return the columns of `indices`, each the coordinates along one axis of `data` from `first_axis` on."""
    if not indices.ndim or not 0 < indices.shape[-1] <= data.ndim - first_axis:
        raise KernelError(f"indices of shape {shape_text(indices.shape)} for data of shape {shape_text(data.shape)}")
    return tuple([indices[..., i] for i in range(indices.shape[-1])])


@kernel("GatherTree", 1)
def gather_tree(step_ids: Array, parent_idx: Array, max_seq_len: Array, end_token: Array) -> Array:
    """Return the beams [time, batch, beam] followed back through their parents; end_token from its first on."""
    times, batches, beams = _tree_shape(step_ids, parent_idx, max_seq_len, end_token)
    token = end_token.reshape(())
    result = np.full((times, batches, beams), token, step_ids.dtype)
    length = np.minimum(max_seq_len.astype(np.int64), times)[:, None]
    batch = np.arange(batches)[:, None]
    beam = np.broadcast_to(np.arange(beams), (batches, beams))
    parents = parent_idx.astype(np.int64)
    if parents.size and not 0 <= parents.min() <= parents.max() < beams:
        raise KernelError(f"a parent index lies outside the {beams} beams")
    for time in range(times - 1, -1, -1):
        reached = time < length
        result[time] = np.where(reached, step_ids[time, batch, beam], result[time])
        beam = np.where(reached, parents[time, batch, beam], beam)
    ended = np.logical_or.accumulate(result == token, axis=0)
    result[ended] = token
    return result


def _tree_shape(step_ids: Array, parent_idx: Array, max_seq_len: Array, end_token: Array) -> tuple[int, int, int]:
    shapes = [x.shape for x in (step_ids, parent_idx, max_seq_len, end_token)]
    if step_ids.ndim != 3 or end_token.size != 1 or shapes[1:3] != [step_ids.shape, step_ids.shape[1:2]]:
        texts = ", ".join(map(shape_text, shapes))
        raise KernelError(f"step_ids, parent_idx, max_seq_len, end_token have the shapes {texts}, which do not fit")
    times, batches, beams = step_ids.shape
    return times, batches, beams


@kernel("ScatterUpdate", 3)
def scatter_update(data: Array, indices: Array, updates: Array, axis: Array) -> Array:
    """Return a copy of `data` in which `updates` stand at `indices` along `axis`; of several for one index the last."""
    position = normalize_axis(single_integer(axis, "the axis"), data.ndim)
    expected = (*data.shape[:position], *indices.shape, *data.shape[position + 1 :])
    if updates.size == 1:
        updates = updates.reshape(())
    elif updates.shape != expected:
        raise KernelError(f"updates of shape {shape_text(updates.shape)}, expected {shape_text(expected)}")
    return _scattered(data, (*(slice(None),) * position, indices), updates, "none", True)


Reduction = Literal["none", "sum", "prod", "min", "max", "mean"]

_STEP: Final[dict[str, np.ufunc]] = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": np.add,
}
_START = {"sum": 0, "mean": 0, "prod": 1}
"""Start of a reduction without the initial value; min and max start with any one of the updates."""


@kernel("ScatterElementsUpdate", 3, 12)
def scatter_elements_update(
    data: Array,
    indices: Array,
    updates: Array,
    axis: Array,
    *,
    reduction: Reduction = "none",
    use_init_val: bool = True,
) -> Array:
    """Return a copy of `data` with each update reduced into the element whose coordinate along `axis` is its index.

    use_init_val: whether the element's own value takes part in the reduction. A mean of integers is rounded down.
    """
    if indices.shape != updates.shape:
        raise KernelError(
            f"indices {shape_text(indices.shape)} and updates {shape_text(updates.shape)} differ in shape"
        )
    position = normalize_axis(single_integer(axis, "the axis"), data.ndim)
    index = _elementwise_index(data, indices, position)
    return _scattered(data, index, updates, reduction, use_init_val)


@kernel("ScatterNDUpdate", 4, 15)
def scatter_nd_update(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = "none",
) -> Array:
    """Return a copy of `data` with each update reduced into the slice that begins with the coordinates in `indices`."""
    index = _coordinates(data, indices, 0)
    expected = (*indices.shape[:-1], *data.shape[len(index) :])
    if updates.shape != expected:
        raise KernelError(f"updates of shape {shape_text(updates.shape)}, expected {shape_text(expected)}")
    return _scattered(data, index, updates, reduction, True)


def _scattered(data: Array, index: Index, updates: Array, reduction: str, use_init_val: bool) -> Array:
    """Return a copy of `data` with `updates` reduced into data[index]."""
    try:
        if reduction != "none":
            return _reduced(data, index, updates, reduction, use_init_val)
        result: Array = np.array(data)
        result[index] = updates
        return result
    except IndexError as error:
        raise KernelError(f"an index points outside the shape {shape_text(data.shape)}: {error}") from None
    except TypeError:
        raise KernelError(f"the reduction {reduction} cannot be computed in {data.dtype}") from None


def _reduced(data: Array, index: Index, updates: Array, reduction: str, use_init_val: bool) -> Array:
    """Return the reduction rounded once, at the end of its steps."""
    if data.dtype == np.bool_:
        reduction = {"sum": "max", "prod": "min"}.get(reduction, reduction)
    result = np.array(widened(data))
    if not use_init_val:
        result[index] = _START.get(reduction, updates)
    if reduction == "mean" and result.dtype.itemsize < 4:
        result = result.astype(np.int64)
    _STEP[reduction].at(result, index, updates.astype(result.dtype, copy=False))
    if reduction == "mean":
        counts = np.full(data.shape, int(use_init_val))
        np.add.at(counts, index, 1)
        counts = np.maximum(counts, 1).astype(result.dtype)
        result = result / counts if is_floating(data.dtype) else result // counts
    return narrowed(result, data.dtype)


# Rows reduced by segment: maxima, sums of embedding vectors in bags, and a sparse tensor's empty rows.
#
# Source: the operation sets' pages of SegmentMax, SparseFillEmptyRows and the EmbeddingBag and EmbeddingSegments types.


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
    return _reduced_segments(np.maximum, data, starts, ends, fill)


def _lowest(dtype: DType) -> Any:
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


def _reduced_segments(ufunc: np.ufunc, rows: Array, starts: Array, ends: Array, fill: Any) -> Array:
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
    result = _reduced_segments(np.add, rows, starts, ends, 0)
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
