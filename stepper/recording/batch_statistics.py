"""The statistics of one value in many iterations, computed at once along the iterations' axis where that is exact."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stepper.element_types import Array, is_of_numpy
from stepper.tensors.statistics import statistics

Row = tuple[Any, ...]
"""min, max, mean, std, nan, inf, zero; what they mean is in stepper.tensors.statistics."""

_LARGEST_INTEGER: Final = 2**63 - 1


def batch_statistics(stack: Array) -> list[Row]:
    """One row for each tensor of the stack, which has a leading dimension of iterations."""
    plain = stack.view(np.uint8) if stack.dtype == np.bool_ else stack
    if plain.dtype.kind not in "iuf" or not is_of_numpy(plain.dtype) or plain.size == 0:
        return [single_statistics(value) for value in stack]
    rows = _of_finite(plain.reshape(len(plain), -1))
    return [single_statistics(value) if row is None else row for value, row in zip(stack, rows, strict=True)]


def single_statistics(value: Array) -> Row:
    """The row of one tensor of any element type."""
    found = statistics(value)
    infinite = found.positive_infinity + found.negative_infinity
    return (
        as_sql(found.min), as_sql(found.max), found.mean, found.std, found.nan, infinite, found.zeros,
    )  # fmt: skip


def _of_finite(flat: Array) -> list[Row | None]:
    """The rows of the tensors that are finite and stay within f64 when squared; None for the others."""
    size = flat.shape[1]
    with np.errstate(all="ignore"):
        low, high = flat.min(axis=1), flat.max(axis=1)  # NaN spreads to both, an infinity is the one or the other
        wide = flat.astype(np.float64)
        mean = wide.sum(axis=1) / size
        wide -= mean[:, None]
        deviation = np.sqrt(np.vecdot(wide, wide) / size)
        simple = np.isfinite(deviation) & (low <= high) & ((deviation > 1e-140) | (low == high))
    is_zero = flat == 0
    zeros = is_zero.sum(axis=1) if is_zero.any() else np.zeros(len(flat), np.int64)
    columns = [column.tolist() for column in (low, high, mean, deviation, zeros)]
    rows: list[Row | None] = [(*row[:4], 0, 0, row[4]) for row in zip(*columns, strict=True)]
    if flat.dtype == np.uint64:
        rows = [row and (as_sql(row[0]), as_sql(row[1]), *row[2:]) for row in rows]
    if not simple.all():
        for index in np.flatnonzero(~simple).tolist():
            rows[index] = None
    return rows


def as_sql(number: int | float | None) -> int | float | None:
    """The number as SQLite takes it: an integer of 64 bits without a sign as a float where it must be."""
    return float(number) if type(number) is int and number > _LARGEST_INTEGER else number
