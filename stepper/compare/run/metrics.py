"""Distance of two values: absolute, relative, in units of the last place, by direction (cosine)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.element_types import STRING_DTYPE, Array, is_floating, name_of
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.tensors.closeness import agree_exactly
from stepper.tensors.tolerances import Tolerance

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
