"""How far two tensors are apart: quick answers, and one measure in chunks, whose memory stays bounded.

A `Difference` says what became of a value between two moments; a `Distance` how far a value is from a reference's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from stepper.element_types import STRING_DTYPE, Array, Indices, Shape, have_same_bits, is_floating, name_of
from stepper.plain_values import storable
from stepper.records import Record
from stepper.tensors.statistics import chunks
from stepper.tensors.tolerances import Tolerance, Tolerances

_QUICK = (np.dtype(np.float32), np.dtype(np.float64))
_QUICK_PART = 2**14
"""Elements: what is computed of them on the way stays in the cache of a core, and in memory that is there already."""
_PART = 2**20
"""Elements measured together, so that what is computed on the way takes no multiple of a large tensor."""
_LARGEST_RATIO = 1e30
_LARGEST_F32 = float(np.finfo(np.float32).max)
_TOLERANCES = Tolerances()


# --- quick answers --------------------------------------------------------------------------------------------------


def agree_exactly(ours: Any, theirs: Any) -> bool:
    """Return True if nothing needs to be measured: the same array, or the same numbers without NaN."""
    if ours is theirs or ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return ours is theirs
    with np.errstate(invalid="ignore"):  # a comparison of NaN of bf16 warns
        return bool((ours == theirs).all())


def rough_ratio(ours: Any, theirs: Any, tolerance: Tolerance) -> float | None:
    """Return how often the tolerance is exceeded, quickly; None if only measuring can tell (NaN, types, ulp)."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape or not _is_quick(ours, tolerance):
        return None
    ratio = float(_ratios(ours, theirs, tolerance).max()) if ours.size else 0.0
    return ratio if math.isfinite(ratio) else None


def agreeing(ours: Array, theirs: Array, tolerance: Tolerance) -> Array:
    """Return for each part on the first axis if it is within the tolerance for certain, as `rough_ratio` finds it."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return np.zeros(len(ours), np.bool_)
    is_within = ours == theirs
    if _is_quick(ours, tolerance) and not is_within.all():
        is_within |= _ratios(ours, theirs, tolerance) <= 1
    return np.asarray(is_within.reshape(len(ours), -1).all(axis=1))


def is_within(ours: Any, theirs: Any, tolerance: Tolerance) -> bool:
    """Return True if a value is within the tolerance for certain. It is looked at in parts, up to one that is not."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    parts = (slice(begin, begin + _QUICK_PART) for begin in range(0, ours.size, _QUICK_PART))
    return all(_part_is_within(ours[part], theirs[part], tolerance) for part in parts)


def _part_is_within(ours: Array, theirs: Array, tolerance: Tolerance) -> bool:
    if _is_quick(ours, tolerance):
        with np.errstate(all="ignore"):
            gap = np.subtract(ours, theirs)
            if np.abs(gap, out=gap).max() <= tolerance.absolute:  # most are, and that is soon known
                return True
    if agree_exactly(ours, theirs):
        return True
    ratio = rough_ratio(ours, theirs, tolerance)
    return ratio is not None and ratio <= 1


def _is_quick(ours: Any, tolerance: Tolerance) -> bool:
    return ours.dtype in _QUICK and not tolerance.ulp


def _ratios(ours: Any, theirs: Any, tolerance: Tolerance) -> Any:
    with np.errstate(all="ignore"):
        return np.abs(ours - theirs) / (np.abs(theirs) * tolerance.relative + tolerance.absolute)


# --- gaps -----------------------------------------------------------------------------------------------------------


class _Chunk(NamedTuple):
    """Elements of two tensors from the flat index `begin` on, as they are and (`a`, `b`) as f64.

    `same` are the same number or both NaN. `gap` is |a - b|: 0 where they are the same, infinite where one is not
    finite.
    """

    begin: int
    ours: Array
    theirs: Array
    a: Array
    b: Array
    same: Array
    finite: Array
    gap: Array

    def allowed(self, tolerance: Tolerance) -> Array:
        """Return the distance that a tolerance allows of each element."""
        return np.asarray(tolerance.absolute + tolerance.relative * np.where(self.finite, np.abs(self.b), 0.0))


def _chunks(ours: Array, theirs: Array, *, saturates: bool = False) -> Iterator[_Chunk]:
    """Yield two tensors of one shape in parts."""
    begin = 0
    for mine, other in zip(chunks(ours, _PART), chunks(theirs, _PART), strict=True):
        with np.errstate(all="ignore"):  # a cast of a NaN of bf16 warns
            left, right = storable(mine), storable(other)
            a, b = left.astype(np.float64), right.astype(np.float64)
        if saturates and ours.dtype == theirs.dtype == np.float32:
            a, b = (np.where(np.abs(value) >= _LARGEST_F32, np.copysign(np.inf, value), value) for value in (a, b))
        is_integer = left.dtype == right.dtype and left.dtype.kind in "iu"
        with np.errstate(all="ignore"):
            # As they are: a 64-bit integer is more exact than a float.
            equal = left == right if is_integer else (a == b) | ((a != a) & (b != b))
            finite = np.isfinite(a) & np.isfinite(b)
            gap = _integer_gap(left, right).astype(np.float64) if is_integer else np.abs(a - b)
            gap = np.where(equal, 0.0, np.where(finite, gap, np.inf))
        yield _Chunk(begin, mine, other, a, b, equal, finite, gap)
        begin += mine.size


def _integer_gap(a: Array, b: Array) -> Any:
    """Return |a - b| of integers, exact as u64 whatever their types."""
    with np.errstate(over="ignore"):
        return np.where(a > b, a.astype(np.uint64) - b.astype(np.uint64), b.astype(np.uint64) - a.astype(np.uint64))


def signed_differences(a: Array, b: Array) -> Array:
    """Return `a - b` element by element, as f64; of integers (bool, i8 to u64) rounded once, from the exact difference.

    Where both are NaN, or both the same infinity, it is 0. Packed and short types are made readable before.
    """
    if a.dtype.kind in "biu":
        found = _integer_gap(a, b).astype(np.float64)
        return np.asarray(np.where(a > b, found, -found + 0.0))
    with np.errstate(all="ignore"):
        found = a.astype(np.float64) - b.astype(np.float64)
    return np.asarray(np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, found))


def largest_gap(a: Any, b: Any) -> float | None:
    """Return the largest |a - b| of two elements; NaN where one side alone has a NaN.

    None where shapes differ, and of texts.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or any(one.dtype.kind in "SUOT" for one in (a, b)):
        return None
    largest = 0.0
    for chunk in _chunks(a, b):
        if (np.isnan(chunk.a) != np.isnan(chunk.b)).any():
            return math.nan
        largest = max(largest, float(chunk.gap.max()))
    return largest


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


# --- between two moments --------------------------------------------------------------------------------------------


class Change(StrEnum):
    """Classify how a value differs from its baseline.

    MENDED: an element that was NaN or infinite in the baseline is finite now. BROKEN: the reverse, which counts before.
    TRUTH: a boolean became true or false, which is no number. ADDED: the baseline has no such value, because its loop
    runs fewer iterations.
    """

    SAME = "same"  # from here on the more severe
    ADDED = "only now"
    NUMBER = "number"
    TRUTH = "truth"
    SHAPE = "shape"
    MENDED = "mended"
    BROKEN = "broken"


class Difference(Record):
    """Hold the difference of a value now (b) from its baseline (a).

    `different` of `size` elements have other bits, and `beyond` of these are outside the tolerance: two facts. `rms`
    and `largest` refer to b - a over the pairs of finite elements. `relative` is the largest difference of one pair by
    the larger magnitude of the two (0 to 2). `at` is the index of the largest difference, or of the first element whose
    NaN or Inf is fixed or new. For texts, and for other shapes or types, nothing is counted. For booleans `became_true`
    and `became_false` are counts, and `rms`, `largest` and `relative` are None; for everything else the two counts are
    None.
    """

    change: Change
    size: int = 0
    different: int = 0
    beyond: int = 0
    rms: float | None = 0.0
    largest: float | None = 0.0
    relative: float | None = 0.0
    at: Indices = ()
    mended: int = 0
    broken: int = 0
    became_true: int | None = None
    became_false: int | None = None

    @property
    def is_within(self) -> bool:
        """True if bits differ, but nothing leaves the tolerance."""
        return self.change is Change.NUMBER and not self.beyond


_SAME = Difference(Change.SAME)
_OTHER = Difference(Change.SHAPE)


def difference(a: Any, b: Any, tolerance: Tolerance | None = None) -> Difference:
    """Return the difference of the current value `b` from its baseline.

    The default tolerance fits two runs with the same kernels, by the element type.
    """
    if a is b:
        return _SAME
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return _OTHER
    if have_same_bits(a, b):
        return _SAME
    if a.dtype.kind in "SUOT":
        many = int((a != b).sum())
        return Difference(Change.NUMBER, int(a.size), many, many, math.nan, math.nan)
    if a.dtype == np.bool_:
        up, down = int((b & ~a).sum()), int((a & ~b).sum())
        at = index_of(int((a != b).argmax()), a.shape)
        return Difference(Change.TRUTH, int(a.size), up + down, up + down, None, None, None, at, 0, 0, up, down)
    return _of_numbers(a, b, _TOLERANCES.of(None, a) if tolerance is None else tolerance)


def _of_numbers(a: Array, b: Array, tolerance: Tolerance) -> Difference:
    different = beyond = mended = broken = pairs = 0
    largest = relative = squares = 0.0
    at = odd_at = -1
    for chunk in _chunks(b, a):
        now, then, finite = chunk.a, chunk.b, chunk.finite
        differs = ~chunk.same | ((now == 0) & (then == 0) & (np.signbit(now) != np.signbit(then)))
        size = np.where(finite, chunk.gap, 0.0)
        different += int(differs.sum())
        beyond += int((chunk.gap > chunk.allowed(tolerance)).sum())
        pairs += int(finite.sum())
        squares += float(size.dot(size))
        fixed, spoilt = np.isfinite(now) & ~finite, np.isfinite(then) & ~finite
        mended, broken = mended + int(fixed.sum()), broken + int(spoilt.sum())
        if odd_at < 0 and (fixed | spoilt).any():
            odd_at = chunk.begin + int((fixed | spoilt).argmax())
        place = int(size.argmax())
        if size[place] > largest:
            largest, at = float(size[place]), chunk.begin + place
        greater = np.where(finite, np.maximum(np.abs(now), np.abs(then)), 1.0)
        relative = max(relative, float((size / np.where(greater == 0, 1.0, greater)).max()))
    if not different:  # a NaN with other bits is a NaN
        return Difference(Change.SAME, int(a.size))
    return Difference(
        Change.BROKEN if broken else Change.MENDED if mended else Change.NUMBER,
        int(a.size),
        different,
        beyond,
        math.sqrt(squares / pairs) if pairs else math.nan,
        largest,
        relative,
        () if max(at, odd_at) < 0 else index_of(odd_at if odd_at >= 0 else at, a.shape),
        mended,
        broken,
    )


def index_of(flat: int, shape: Shape) -> Indices:
    """Return the index of an element by its place in row-major order."""
    return tuple(int(one) for one in np.unravel_index(flat, shape))


# --- from a reference -----------------------------------------------------------------------------------------------


class Distance(Record):
    """Hold the distance of our value from the reference's value.

    `problem` describes what makes them incomparable (shapes, text), else it is empty. `ours` and `theirs` are the two
    numbers that are furthest outside the tolerance, at `index`. `absolute` and `relative` are the largest distances
    (relative to the reference's own number). `ulp` is the largest number of the type's steps between two finite numbers
    (None: not a float). `cosine` is the cosine of the angle between the two as vectors (None if one is zero or not
    finite). `outside` counts elements outside the tolerance, of `size`; `ratio` is how many times the tolerance is
    exceeded. `ours_special` counts NaN and infinities where the reference has a number.
    """

    absolute: float
    relative: float
    ulp: int | None
    cosine: float | None
    outside: int
    size: int
    ratio: float
    index: Indices
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
        from stepper.ops.operands import shape_text  # the process of OpenVINO needs no kernels

        return _incomparable(ours, theirs, f"shape {shape_text(ours.shape)} against {shape_text(theirs.shape)}")
    if agree_exactly(ours, theirs):
        return None
    if STRING_DTYPE in (ours.dtype, theirs.dtype):
        return _incomparable(ours, theirs, "has other texts")
    return _of_reference(np.asarray(ours), np.asarray(theirs), tolerance, extra)


def _as_text(value: Any) -> Any:
    """Return texts as the runtime has them, even if a file keeps a length; else unchanged."""
    return value.astype(STRING_DTYPE) if value.dtype.kind in "US" else value


def _incomparable(ours: Any, theirs: Any, problem: str) -> Distance:
    if ours.dtype != theirs.dtype:
        problem += f", {name_of(ours.dtype)} against {name_of(theirs.dtype)}"
    size = int(ours.size)
    return Distance(math.inf, math.inf, None, None, size, size, _LARGEST_RATIO, (), None, None, problem=problem)


def _of_reference(ours: Array, theirs: Array, tolerance: Tolerance, extra: Array | None) -> Distance | None:
    each = None if extra is None else np.broadcast_to(extra, ours.shape).reshape(-1)
    absolute = relative = ratio = 0.0
    outside = special = place = 0
    ulp: int | None = None
    dots: list[tuple[float, float, float]] | None = []
    worst, is_same = (False, -1.0), True
    for chunk in _chunks(ours, theirs, saturates=tolerance.saturates):
        a, b, finite, gap = chunk.a, chunk.b, chunk.finite, chunk.gap
        allowed = chunk.allowed(tolerance)
        if each is not None:
            allowed = allowed + each[chunk.begin : chunk.begin + a.size]
        with np.errstate(all="ignore"):
            is_outside, steps = gap > allowed, _steps(chunk.ours, chunk.theirs)
            if steps is not None:
                ulp = max(ulp or 0, int(np.max(np.where(finite, steps, 0))))
                if tolerance.ulp:
                    is_outside &= ~finite | (steps > tolerance.ulp)
            excess = np.where(allowed > 0, gap / np.where(allowed > 0, allowed, 1.0), gap * _LARGEST_RATIO)
            away = gap / np.maximum(np.abs(np.where(finite, b, 1.0)), np.finfo(np.float64).tiny)
            known = dots is not None and np.isfinite(a).all() and np.isfinite(b).all()
            dots = [*(dots or ()), (float(a @ b), float(a @ a), float(b @ b))] if known else None
        absolute, relative = max(absolute, float(gap.max())), max(relative, float(away.max()))
        ratio, many = max(ratio, float(excess.max())), int(is_outside.sum())
        index = int(np.argmax(np.where(is_outside, excess, 0.0) if many else excess))
        if (many > 0, float(excess[index])) > worst:
            worst, place = (many > 0, float(excess[index])), chunk.begin + index
        outside, special = outside + many, special + int((~np.isfinite(a) & np.isfinite(b)).sum())
        is_same = is_same and bool(chunk.same.all())
    if is_same:
        return None
    at = index_of(place, ours.shape)
    return Distance(
        absolute,
        min(relative, _LARGEST_RATIO),
        ulp,
        None if dots is None else _cosine(*(math.fsum(column) for column in zip(*dots, strict=True))),
        outside,
        int(ours.size),
        min(ratio, _LARGEST_RATIO),
        at,
        ours[at],
        theirs[at],
        special,
    )


def _steps(a: Array, b: Array) -> Any:
    """Return the steps of the type between elements; None if it is not a float of 16, 32 or 64 bits."""
    if a.dtype != b.dtype or not is_floating(a.dtype) or a.dtype.itemsize not in (2, 4, 8):
        return None
    integers = np.dtype(f"i{a.dtype.itemsize}")
    low = np.int64(np.iinfo(integers).min)
    bits = (np.ascontiguousarray(value).view(integers).astype(np.int64) for value in (a, b))
    return _integer_gap(*(np.where(one < 0, low - one, one) for one in bits))


def _cosine(product: float, a: float, b: float) -> float | None:
    norm = math.sqrt(a) * math.sqrt(b)
    return max(-1.0, min(1.0, product / norm)) if 0 < norm < math.inf else None
