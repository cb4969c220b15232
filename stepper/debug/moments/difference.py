"""Difference of one value between two moments, as facts: the same bits, by how much, mended, broken, another shape."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import STRING_DTYPE, Array
from stepper.tensors.closeness import same
from stepper.tensors.differences import flips_of, signed_differences
from stepper.tensors.statistics import chunks
from stepper.tensors.tolerances import Tolerance, Tolerances

_TOLERANCES: Final = Tolerances()


class Change(StrEnum):
    """Way in which a value of one moment is another in the other one.

    MENDED: an element is finite now that was NaN or infinite in A; BROKEN: the reverse, which counts before. TRUTH: a
    boolean became true or false, which is no number. ADDED: A has no such value at all, for its loop runs fewer
    iterations.
    """

    SAME = "same"
    NUMBER = "number"
    TRUTH = "truth"
    MENDED = "mended"
    BROKEN = "broken"
    SHAPE = "shape"
    ADDED = "only now"


class Difference(Struct, frozen=True):
    """A value now (b) beside what it is in A (a).

    `different` of `size` elements have other bits, and `beyond` of these are outside of the tolerance: two facts.
    `rms` and `largest` are of b - a over the pairs of finite elements, `relative` the largest difference of one pair by
    the larger magnitude of the two (0 to 2). `at` is the index of the largest, or of the first element that was mended
    or broken. Of texts, and of other shapes or types, nothing is counted. Of booleans `became_true` and `became_false`
    are how many did, and `rms`, `largest` and `relative` are None; of everything else these two are.
    """

    change: Change
    size: int = 0
    different: int = 0
    beyond: int = 0
    rms: float | None = 0.0
    largest: float | None = 0.0
    relative: float | None = 0.0
    at: tuple[int, ...] = ()
    mended: int = 0
    broken: int = 0
    became_true: int | None = None
    became_false: int | None = None

    @property
    def is_within(self) -> bool:
        """True if bits differ, but nothing leaves the tolerance."""
        return self.change is Change.NUMBER and not self.beyond


_SAME: Final = Difference(Change.SAME)
_OTHER: Final = Difference(Change.SHAPE)


def difference(a: Any, b: Any, tolerance: Tolerance | None = None) -> Difference:
    """Return the difference of what a value is now, `b`, from what it is in A.

    The tolerance is by default that of two runs with the same kernels, by the element type.
    """
    if a is b:
        return _SAME
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return _OTHER
    if same(a, b):
        return _SAME
    if a.dtype == STRING_DTYPE or a.dtype.kind in "SUO":
        return Difference(Change.NUMBER, int(a.size), int((a != b).sum()), int((a != b).sum()), math.nan, math.nan)
    if a.dtype == np.bool_:
        return _of_truths(a, b)
    sums = _DifferenceOfParts(a.shape, _TOLERANCES.of(None, a.dtype) if tolerance is None else tolerance)
    with np.errstate(all="ignore"):
        for left, right in zip(chunks(a), chunks(b), strict=True):
            sums.add(left, right)
    return sums.found()


def _of_truths(a: Array, b: Array) -> Difference:
    """Return the difference of booleans of one shape, of which one at least differs."""
    flips = flips_of(a, b)
    at = tuple(int(one) for one in np.unravel_index(int((a != b).argmax()), a.shape))
    return Difference(
        Change.TRUTH,
        int(a.size),
        flips.different,
        flips.different,
        None,
        None,
        None,
        at,
        became_true=flips.became_true,
        became_false=flips.became_false,
    )


class _DifferenceOfParts:
    """The difference over the parts so far."""

    def __init__(self, shape: tuple[int, ...], tolerance: Tolerance) -> None:
        self._shape, self._tolerance = shape, tolerance
        self._seen = self._different = self._beyond = self._mended = self._broken = 0
        self._largest = self._relative = self._squares = 0.0
        self._pairs = 0
        self._at = self._odd_at = -1

    def add(self, a: Array, b: Array) -> None:
        """Add two parts of one size."""
        begin, self._seen = self._seen, self._seen + int(a.size)
        if a.dtype.kind in "iu":
            differs, finite = a != b, np.ones(a.shape, bool)
            gap, wide_a, wide_b = signed_differences(b, a), a.astype(np.float64), b.astype(np.float64)
        else:
            wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
            finite_a, finite_b = np.isfinite(wide_a), np.isfinite(wide_b)
            finite = finite_a & finite_b
            differs = (wide_a != wide_b) & ~(np.isnan(wide_a) & np.isnan(wide_b))
            differs |= (wide_a == 0) & (wide_b == 0) & (np.signbit(wide_a) != np.signbit(wide_b))
            gap = np.where(finite, wide_b - wide_a, 0.0)
            self._count_odd(begin, ~finite_a & finite_b, finite_a & ~finite_b)
        self._different += int(differs.sum())
        self._pairs += int(finite.sum())
        self._squares += float(gap.dot(gap))
        size = np.abs(gap)
        allowed = self._tolerance.absolute + self._tolerance.relative * np.abs(wide_a)
        self._beyond += int((differs & ~(finite & (size <= allowed))).sum())
        place = int(size.argmax())
        if size[place] > self._largest:
            self._largest, self._at = float(size[place]), begin + place
        magnitude = np.where(finite, np.maximum(np.abs(wide_a), np.abs(wide_b)), 1.0)
        self._relative = max(self._relative, float((size / np.where(magnitude == 0, 1.0, magnitude)).max()))

    def _count_odd(self, begin: int, mended: Array, broken: Array) -> None:
        self._mended += int(mended.sum())
        self._broken += int(broken.sum())
        if self._odd_at < 0 and (mended.any() or broken.any()):
            self._odd_at = begin + int((mended | broken).argmax())

    def found(self) -> Difference:
        """Return the result."""
        change = Change.BROKEN if self._broken else Change.MENDED if self._mended else Change.NUMBER
        at = self._odd_at if self._odd_at >= 0 else self._at
        if not self._different:  # a NaN with other bits is a NaN
            return Difference(Change.SAME, self._seen)
        return Difference(
            change,
            self._seen,
            self._different,
            self._beyond,
            math.sqrt(self._squares / self._pairs) if self._pairs else math.nan,
            self._largest,
            self._relative,
            () if at < 0 else tuple(int(one) for one in np.unravel_index(at, self._shape)),
            self._mended,
            self._broken,
        )
