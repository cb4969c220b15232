"""Quick answers to whether two values are within a tolerance; how far they are apart is another matter."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.engine.program import Value
from stepper.tensors.tolerances import Tolerance

_QUICK: Final = (np.dtype(np.float32), np.dtype(np.float64))
_PART: Final = 2**14
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
    parts = (slice(begin, begin + _PART) for begin in range(0, ours.size, _PART))
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


def same(a: Value, b: Value) -> bool:
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
