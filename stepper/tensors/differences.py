"""Distance of two tensors: the largest absolute, relative and ulp difference, the angle, and where it begins."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.element_types import ELEMENT_TYPES, STRING_DTYPE, Array
from stepper.errors import UsageError
from stepper.ops.operands import shape_text
from stepper.tensors.statistics import chunks


class Differences(Struct, frozen=True):
    """Two tensors of one shape compared element by element; NaN equals NaN, and -0 equals 0.

    `max_abs` and `max_rel` are over all pairs without a NaN, `max_abs` an exact int for integers; `max_rel` is of |b|,
    infinite where b is 0 or just one of the two is infinite. `max_ulp` is how many steps of the type lie between the
    two, None unless both are of the same floating-point type. `cosine` is over pairs of finite elements, None where one
    side is all zeros. `first` is the flat index of the first pair that differs, `different` counts them, and
    `nan_on_one_side` those of them where just one is a NaN. Of strings there are only these counts.
    """

    size: int
    different: int
    nan_on_one_side: int
    first: int | None
    max_abs: int | float | None
    max_rel: float | None
    max_ulp: int | None
    cosine: float | None

    @property
    def equal(self) -> bool:
        """True if no pair differs."""
        return self.different == 0


class Flips(NamedTuple):
    """Elements of booleans that were false and are true, and the reverse."""

    became_true: int
    became_false: int

    @property
    def different(self) -> int:
        """Return how many elements differ."""
        return self.became_true + self.became_false


def flips_of(before: Array, now: Array) -> Flips:
    """Return how many elements of booleans of one shape became true and false."""
    return Flips(int((now & ~before).sum()), int((before & ~now).sum()))


def differences(a: Any, b: Any) -> Differences:
    """Return the differences of `a` from `b`, of one shape. Raise UsageError if shapes or kinds do not fit."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        raise UsageError(
            f"a tensor of shape {shape_text(a.shape)} cannot be compared with one of {shape_text(b.shape)}"
        )
    texts = [array.dtype == STRING_DTYPE or array.dtype.kind in "SUO" for array in (a, b)]
    if any(texts) and not all(texts):
        names = [element_types.name_of(array.dtype) for array in (a, b)]
        raise UsageError(f"a tensor of {names[0]} cannot be compared with one of {names[1]}")
    collected = _DifferenceSums(a.dtype if a.dtype == b.dtype else None)
    with np.errstate(all="ignore"):
        for left, right in zip(chunks(a), chunks(b), strict=True):
            collected.add(left, right, numbers=not any(texts))
    return collected.differences(numbers=not any(texts))


def signed_differences(a: Array, b: Array) -> Array:
    """Return `a - b` element by element, as f64; of integers (bool, i8 to u64) rounded once, from the exact difference.

    Where both are NaN, or both the same infinity, it is 0. Packed and short types are made readable before.
    """
    if a.dtype.kind in "biu":
        above = np.where(a > b, _integer_distance(a, b), np.uint64(0)).astype(np.float64)
        return np.asarray(above - np.where(a > b, np.uint64(0), _integer_distance(a, b)).astype(np.float64))
    with np.errstate(all="ignore"):
        found = a.astype(np.float64) - b.astype(np.float64)
    return np.asarray(np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, found))


class _DifferenceSums:
    """The differences of the chunks so far."""

    def __init__(self, dtype: np.dtype[Any] | None) -> None:
        self.in_ulps = dtype is not None and element_types.is_floating(dtype)
        self.seen = self.different = self.one_sided = 0
        self.first: int | None = None
        self.max_abs: int | float = 0
        self.max_rel = 0.0
        self.max_ulp = 0
        self.dots = (0.0, 0.0, 0.0)

    def add(self, a: Array, b: Array, *, numbers: bool) -> None:
        """Add two chunks of one size."""
        begin, self.seen = self.seen, self.seen + a.size
        differs = _differs(a, b, numbers=numbers)
        if numbers:
            self._add_angle(a, b)
        places = np.flatnonzero(differs)
        if not places.size:
            return
        if self.first is None:
            self.first = begin + int(places[0])
        self.different += places.size
        if numbers:
            self._add_distances(a[places], b[places])

    def _add_distances(self, a: Array, b: Array) -> None:
        if _is_integer(a) and _is_integer(b):
            distance = _integer_distance(a, b)
            self.max_abs = max(self.max_abs, int(distance.max()))
            self.max_rel = max(self.max_rel, float((distance.astype(np.float64) / np.abs(b.astype(np.float64))).max()))
            return
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        known = ~(np.isnan(wide_a) | np.isnan(wide_b))
        self.one_sided += int(known.size - np.count_nonzero(known))
        if not known.any():
            return
        wide_a, wide_b = wide_a[known], wide_b[known]
        distance = np.abs(wide_a - wide_b)
        relative = distance / np.abs(wide_b)
        relative[np.isinf(distance)] = math.inf
        self.max_abs = max(self.max_abs, float(distance.max()))
        self.max_rel = max(self.max_rel, float(relative.max()))
        if self.in_ulps:
            self.max_ulp = max(self.max_ulp, int(_integer_distance(_ordered(a[known]), _ordered(b[known])).max()))

    def _add_angle(self, a: Array, b: Array) -> None:
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        dots = [float(np.dot(x, y)) for x, y in ((wide_a, wide_b), (wide_a, wide_a), (wide_b, wide_b))]
        if not all(map(math.isfinite, dots)):
            finite = np.isfinite(wide_a) & np.isfinite(wide_b)
            wide_a, wide_b = wide_a[finite], wide_b[finite]
            dots = [float(np.dot(x, y)) for x, y in ((wide_a, wide_b), (wide_a, wide_a), (wide_b, wide_b))]
        self.dots = tuple(map(float.__add__, self.dots, dots))  # type: ignore[assignment]

    def differences(self, *, numbers: bool) -> Differences:
        """Return the result."""
        if not numbers:
            return Differences(self.seen, self.different, 0, self.first, None, None, None, None)
        product, a, b = self.dots
        length = math.sqrt(a) * math.sqrt(b)
        known = length > 0 and math.isfinite(length)
        return Differences(
            size=self.seen,
            different=self.different,
            nan_on_one_side=self.one_sided,
            first=self.first,
            max_abs=self.max_abs,
            max_rel=self.max_rel,
            max_ulp=self.max_ulp if self.in_ulps else None,
            cosine=max(-1.0, min(1.0, product / length)) if known else None,
        )


def _differs(a: Array, b: Array, *, numbers: bool) -> Array:
    if numbers and not (_is_integer(a) and _is_integer(b)):
        a, b = a.astype(np.float64), b.astype(np.float64)
        return np.asarray((a != b) & ~(np.isnan(a) & np.isnan(b)))
    return np.asarray(a != b)


def _is_integer(array: Array) -> bool:
    return array.dtype.kind in "biu"


def _integer_distance(a: Array, b: Array) -> Array:
    """|a - b| of integers, exact as u64 whatever their types."""
    larger = a > b
    high, low = np.where(larger, _bits(a), _bits(b)), np.where(larger, _bits(b), _bits(a))
    return np.asarray(high - low)


def _bits(array: Array) -> Array:
    """Integers modulo 2**64."""
    return array.astype(np.uint64)


def _ordered(array: Array) -> Array:
    """Return floats as integers in the same order: the bits, those of negative ones counted down."""
    if array.dtype.itemsize == 8:
        bits = array.view(np.int64)
        return np.asarray(np.where(bits < 0, np.iinfo(np.int64).min - bits, bits))
    signs = element_types.of(array).bits - 1
    codes = array.view(f"u{array.dtype.itemsize}").astype(np.int64)
    if array.dtype == ELEMENT_TYPES["f8e8m0"].dtype:  # has no sign
        return np.asarray(codes)
    sizes = codes & (2**signs - 1)
    return np.asarray(np.where(codes >> signs & 1, -sizes, sizes))
