"""Elements picked from a tensor by index (gather) and written into a copy of it by index (scatter).

Source: the operation sets' pages of each operation (category Data movement). Negative indices count from the end.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

import numpy as np

from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.errors import KernelError
from stepper.ops.operands import normalize_axis, shape_text, single_integer
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
_START: Final = {"sum": 0, "mean": 0, "prod": 1}
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
