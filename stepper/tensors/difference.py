"""Distance of two tensors: the largest absolute, relative and ulp difference, the angle, and where it begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.element_types import ELEMENT_TYPES, STRING_DTYPE, Array, is_floating, name_of
from stepper.errors import UsageError
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.tensors.statistics import chunks
from stepper.tensors.tolerances import Tolerance, Tolerances

# --- Quick answers to whether two values are within a tolerance; how far they are apart is another matter ------------


_QUICK: Final = (np.dtype(np.float32), np.dtype(np.float64))
_QUICK_PART: Final = 2**14
"""Elements: what is computed of them on the way stays in the cache of a core, and in memory that is there already."""


def agree_exactly(ours: Any, theirs: Any) -> bool:
    """True if nothing needs to be measured: the same array, or the same numbers without NaN."""
    return ours is theirs or (
        ours.shape == theirs.shape and ours.dtype == theirs.dtype and bool((ours == theirs).all())
    )


def rough_ratio(ours: Any, theirs: Any, tolerance: Tolerance) -> float | None:
    """Return how often the tolerance is exceeded, quickly; None if only measuring can tell (NaN, types, ulp)."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape or ours.dtype not in _QUICK or tolerance.ulp:
        return None
    with np.errstate(all="ignore"):
        allowed = np.abs(theirs) * tolerance.relative + tolerance.absolute
        ratio = float((np.abs(ours - theirs) / allowed).max()) if ours.size else 0.0
    return ratio if math.isfinite(ratio) else None


def agreeing(ours: Array, theirs: Array, tolerance: Tolerance) -> Array:
    """Return for each part on the first axis if it is within the tolerance for certain, as `rough_ratio` finds it."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return np.zeros(len(ours), np.bool_)
    is_within = ours == theirs
    if ours.dtype in _QUICK and not tolerance.ulp and not is_within.all():
        with np.errstate(all="ignore"):
            ratio = np.abs(ours - theirs) / (np.abs(theirs) * tolerance.relative + tolerance.absolute)
        is_within |= ratio <= 1
    return np.asarray(is_within.reshape(len(ours), -1).all(axis=1))


def is_within(ours: Any, theirs: Any, tolerance: Tolerance) -> bool:
    """Return True if a value is within the tolerance for certain. It is looked at in parts, up to one that is not."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    parts = (slice(begin, begin + _QUICK_PART) for begin in range(0, ours.size, _QUICK_PART))
    return all(_part_is_within(ours[part], theirs[part], tolerance) for part in parts)


def _part_is_within(ours: Array, theirs: Array, tolerance: Tolerance) -> bool:
    if ours.dtype in _QUICK and not tolerance.ulp:
        with np.errstate(all="ignore"):
            gap = np.subtract(ours, theirs)
            if np.abs(gap, out=gap).max() <= tolerance.absolute:  # most are, and that is soon known
                return True
    if agree_exactly(ours, theirs):
        return True
    ratio = rough_ratio(ours, theirs, tolerance)
    return ratio is not None and ratio <= 1


# ---------------------------------------------------------------------------------------------------------------------


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


# --- Distance of two values: absolute, relative, in units of the last place, by direction (cosine) -------------------


_LARGEST_RATIO: Final = 1e30
_PART: Final = 2**20
"""Elements measured together, so that what is computed on the way takes no multiple of a large tensor."""
_LARGEST_F32: Final = float(np.finfo(np.float32).max)


class Distance(Struct, frozen=True):
    """The distance of a value of ours from the reference's.

    `problem` says in words what makes them incomparable (shapes, text), else it is empty. `ours` and `theirs` are the
    two numbers that are furthest outside of the tolerance, at `index`; `absolute` and `relative` are the largest of all
    (relative to the reference's own number), `ulp` the most steps of the type between two finite numbers (None: not a
    float), `cosine` that of the angle between the two as vectors (None where one is zero or not finite). `outside`
    counts elements outside of the tolerance, of `size`; `ratio` is how many times the tolerance is exceeded.
    `ours_special` counts NaN and infinities where the other side has a number.
    """

    absolute: float
    relative: float
    ulp: int | None
    cosine: float | None
    outside: int
    size: int
    ratio: float
    index: tuple[int, ...]
    ours: Any
    theirs: Any
    ours_special: int = 0
    problem: str = ""

    @property
    def differs(self) -> bool:
        """True if the tolerance is left."""
        return bool(self.problem) or self.outside > 0


def measure(ours: Any, theirs: Any, tolerance: Tolerance, extra: Array | None = None) -> Distance | None:
    """Return the distance between two values; None where they are the same, NaN at the same places included.

    `extra` is a distance that is allowed on top of the tolerance, of each element or of all.
    """
    ours, theirs = _as_text(ours), _as_text(theirs)
    if ours.shape != theirs.shape:
        return _incomparable(ours, theirs, f"shape {shape_text(ours.shape)} against {shape_text(theirs.shape)}")
    if agree_exactly(ours, theirs):
        return None
    if STRING_DTYPE in (ours.dtype, theirs.dtype):
        return _incomparable(ours, theirs, "has other texts")
    return _numbers(np.asarray(ours), np.asarray(theirs), tolerance, extra)


def _as_text(value: Any) -> Any:
    """Return texts as the runtime has them, also those that a file keeps with a length; all else as it is."""
    return value.astype(STRING_DTYPE) if value.dtype.kind in "US" else value


def _incomparable(ours: Any, theirs: Any, problem: str) -> Distance:
    if ours.dtype != theirs.dtype:
        problem += f", {name_of(ours.dtype)} against {name_of(theirs.dtype)}"
    size = int(ours.size)
    return Distance(math.inf, math.inf, None, None, size, size, _LARGEST_RATIO, (), None, None, problem=problem)


def _numbers(ours: Array, theirs: Array, tolerance: Tolerance, extra: Array | None) -> Distance | None:
    flat, other = ours.reshape(-1), theirs.reshape(-1)
    each = None if extra is None else np.broadcast_to(extra, ours.shape).reshape(-1)
    found = [
        _part(begin, flat[begin:end], other[begin:end], tolerance, None if each is None else each[begin:end])
        for begin, end in ((begin, begin + _PART) for begin in range(0, flat.size, _PART))
    ]
    if not any(part.differs for part in found):
        return None
    is_outside = any(part.outside for part in found)
    worst = max((part for part in found if part.outside or not is_outside), key=lambda part: part.worst)
    steps = [part.steps for part in found if part.steps is not None]
    return Distance(
        absolute=max(part.absolute for part in found),
        relative=min(max(part.relative for part in found), _LARGEST_RATIO),
        ulp=max(steps) if steps else None,
        cosine=_cosine([part.dots for part in found]),
        outside=sum(part.outside for part in found),
        size=int(ours.size),
        ratio=min(max(part.ratio for part in found), _LARGEST_RATIO),
        index=tuple(int(place) for place in np.unravel_index(worst.place, ours.shape)),
        ours=flat[worst.place],
        theirs=other[worst.place],
        ours_special=sum(part.ours_special for part in found),
    )


class _PartDistance(NamedTuple):
    """The distance of some elements; `worst` is the ratio of the one at `place`, of those outside if there are any."""

    differs: bool
    absolute: float
    relative: float
    steps: int | None
    dots: tuple[float, float, float] | None
    outside: int
    ratio: float
    worst: float
    place: int
    ours_special: int


def _part(begin: int, ours: Array, theirs: Array, tolerance: Tolerance, extra: Array | None) -> _PartDistance:
    a, b = _wide(ours), _wide(theirs)
    if tolerance.saturates and ours.dtype == theirs.dtype == np.float32:
        a, b = _saturated(a), _saturated(b)
    with np.errstate(all="ignore"):
        # As they are: a 64-bit integer is more exact than a float.
        plain = (storable(ours) == storable(theirs)) if ours.dtype == theirs.dtype else a == b
        same = plain | (a == b) & (ours.dtype.kind not in "iu") | ((a != a) & (b != b))
        finite = np.isfinite(a) & np.isfinite(b)
        gap = np.where(same, 0.0, np.where(finite, _gap(ours, theirs, a, b), np.inf))
        allowed = tolerance.absolute + tolerance.relative * np.where(finite, np.abs(b), 0.0)
        if extra is not None:
            allowed = allowed + extra
        steps = _steps(ours, theirs)
        outside = gap > allowed
        if tolerance.ulp and steps is not None:
            outside &= ~finite | (steps > tolerance.ulp)
        excess = np.where(same, 0.0, np.where(allowed > 0, gap / np.where(allowed > 0, allowed, 1.0), gap * 1e30))
        index = int(np.argmax(np.where(outside, excess, 0.0) if outside.any() else excess))
        relative = np.where(same, 0.0, gap / np.maximum(np.abs(np.where(finite, b, 1.0)), np.finfo(np.float64).tiny))
        return _PartDistance(
            differs=not same.all(),
            absolute=float(gap.max()),
            relative=float(relative.max()),
            steps=None if steps is None else int(np.max(np.where(finite, steps, 0))),
            dots=(float(a @ b), float(a @ a), float(b @ b)) if np.isfinite(a).all() and np.isfinite(b).all() else None,
            outside=int(outside.sum()),
            ratio=float(excess.max()),
            worst=float(excess[index]),
            place=begin + index,
            ours_special=int((~np.isfinite(a) & np.isfinite(b)).sum()),
        )


def _saturated(value: Array) -> Array:
    return np.where(np.abs(value) >= _LARGEST_F32, np.copysign(np.inf, value), value)


def _wide(value: Array) -> Array:
    return storable(value).astype(np.float64)


def _steps(a: Array, b: Array) -> Any:
    """Return the steps of the type between elements; None if it is not a float of 16, 32 or 64 bits."""
    if a.dtype != b.dtype or not is_floating(a.dtype) or a.dtype.itemsize not in (2, 4, 8):
        return None
    integers = np.dtype(f"i{a.dtype.itemsize}")
    ranks = []
    for value in (a, b):
        bits = np.ascontiguousarray(value).view(integers).astype(np.int64)
        low = np.int64(np.iinfo(integers).min)
        ranks.append(np.where(bits < 0, low - bits, bits).reshape(value.shape))
    return _distance(*ranks)


def _distance(a: Array, b: Array) -> Any:
    """Return |a - b| of 64-bit integers, which unsigned ones always hold."""
    with np.errstate(over="ignore"):
        return np.where(a > b, a.astype(np.uint64) - b.astype(np.uint64), b.astype(np.uint64) - a.astype(np.uint64))


def _gap(ours: Array, theirs: Array, a: Array, b: Array) -> Any:
    """Return |a - b|; of integers from the integers themselves, which floats do not hold beyond 2^53."""
    if ours.dtype == theirs.dtype and ours.dtype.kind in "iu":
        return _distance(ours, theirs).astype(np.float64)
    return np.abs(a - b)


def _cosine(dots: Sequence[tuple[float, float, float] | None]) -> float | None:
    """Return the cosine from the dot products of the parts: a b, a a, b b; None for zeros and what is not finite."""
    known = [part for part in dots if part is not None]
    if len(known) < len(dots):
        return None
    product, a, b = (math.fsum(column) for column in zip(*known, strict=True))
    norm = math.sqrt(a) * math.sqrt(b)
    return max(-1.0, min(1.0, product / norm)) if 0 < norm < math.inf else None


# ---------------------------------------------------------------------------------------------------------------------
# Difference of one value between two moments, as facts: the same bits, by how much, mended, broken, another shape


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


def same(a: Any, b: Any) -> bool:
    """True if two values are the same bit for bit (NaN is the same as itself)."""
    if a is b:
        return True
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "TO":
        return bool(np.array_equal(a, b))
    a, b = np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)
    if a.size and a[:1].tobytes() != b[:1].tobytes():
        return False
    return bool(np.array_equal(a.view(np.uint8), b.view(np.uint8)))


def magnitude(value: Any) -> float:
    """Return the largest absolute value of an element; NaN where one is NaN, and of texts."""
    if value.size == 1 and value.dtype.kind in "fiu":
        return abs(float(value.item()))
    if value.size == 0:
        return 0.0
    if value.dtype.kind in "TOUS" or value.dtype.names is not None:
        return float("nan")
    wide = value if value.dtype.kind == "f" else np.asarray(value).astype(np.float64)
    return float(np.abs(wide).max())


def distance(a: Any, b: Any) -> float:
    """Return the largest absolute difference of two elements; NaN where the shapes differ, and of texts."""
    if a.shape != b.shape or any(one.dtype.kind in "TOUS" or one.dtype.names is not None for one in (a, b)):
        return float("nan")
    return magnitude(np.subtract(np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)))
