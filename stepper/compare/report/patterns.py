"""Patterns of two values that differ, in words: shifted, reversed, scaled, rounded ..."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import ml_dtypes
import numpy as np

from stepper.compare.run.metrics import measure
from stepper.element_types import STRING_DTYPE, Array, is_floating
from stepper.plain_values import storable
from stepper.tensors.tolerances import Tolerance

_LARGEST: Final = 2**22
"""Elements; of larger values only the beginning would be worth the time."""

_NARROW: Final = (("f16", np.float16), ("bf16", ml_dtypes.bfloat16))


def is_telling(value: Any) -> bool:
    """True if a value can be recognised in another place: its finite numbers are not one and the same throughout."""
    flat = np.asarray(value).reshape(-1)
    if flat.dtype == STRING_DTYPE:
        return False
    flat = flat[np.isfinite(storable(flat).astype(np.float64))] if is_floating(flat.dtype) else flat
    if flat.size == 0:
        return False
    return bool((flat != flat[0]).any()) or (flat.size == 1 and bool(flat[0] != 0) and is_floating(flat.dtype))


def of_values(ours: Any, theirs: Any, earlier: Any, tolerance: Tolerance) -> tuple[str, ...]:
    """Return the patterns of a value inside a body; `earlier` is the reference's one iteration before."""
    found: list[str] = []
    if earlier is not None and is_telling(ours) and _same(ours, earlier, tolerance):
        found.append(
            "is what the reference has one iteration earlier (shifted by one: the old value, before the update)"
        )
    return (*found, *of_sequences(ours, theirs, tolerance))


def of_sequences(ours: Any, theirs: Any, tolerance: Tolerance) -> tuple[str, ...]:
    """Return the patterns of two values in themselves."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if STRING_DTYPE in (a.dtype, b.dtype) or max(a.size, b.size) > _LARGEST or not a.size or not b.size:
        return ()
    if a.shape != b.shape:
        return tuple(_of_shapes(a, b, tolerance))
    special = tuple(_of_specials(a, b))
    if special:
        return special
    return tuple(dict.fromkeys([*_of_order(a, b, tolerance), *_of_numbers(a, b, tolerance)]))


def _same(ours: Any, theirs: Any, tolerance: Tolerance) -> bool:
    distance = measure(ours, theirs, tolerance)
    return distance is None or not distance.differs


# --- shapes ---------------------------------------------------------------------------------------------------------


def _of_shapes(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    if a.ndim == b.ndim:
        axes = [axis for axis in range(a.ndim) if a.shape[axis] != b.shape[axis]]
        if len(axes) == 1:
            yield from _of_length(a, b, axes[0], tolerance)
        if sorted(a.shape) == sorted(b.shape):
            yield from _of_axes(a, b, tolerance)
    if a.size == b.size and _same(a.reshape(-1), b.reshape(-1), tolerance):
        yield "has the same numbers in another shape"


def _of_length(a: Array, b: Array, axis: int, tolerance: Tolerance) -> Iterator[str]:
    short = min(a.shape[axis], b.shape[axis])
    difference = a.shape[axis] - b.shape[axis]
    words = f"is {abs(difference)} {'longer' if difference > 0 else 'shorter'} along axis {axis}"
    first = _cut(a, axis, 0, short), _cut(b, axis, 0, short)
    if _same(*first, tolerance):
        yield f"{words}, the first {short} agree ({'too many' if difference > 0 else 'too few'} iterations)"
    elif _same(_cut(a, axis, -short, None), _cut(b, axis, -short, None), tolerance):
        yield f"{words}, the last {short} agree (it begins elsewhere)"
    else:
        yield words


def _of_axes(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    for i in range(a.ndim):
        for j in range(i + 1, a.ndim):
            if np.swapaxes(a, i, j).shape == b.shape and _same(np.swapaxes(a, i, j), b, tolerance):
                yield f"is the reference's transposed: axes {i} and {j} are exchanged (wrong axis)"


# --- NaN and infinities ---------------------------------------------------------------------------------------------


def _of_specials(a: Array, b: Array) -> Iterator[str]:
    if not (is_floating(a.dtype) and is_floating(b.dtype)):
        return
    x, y = storable(a), storable(b)
    for what, test in (("NaN (not a number)", np.isnan), ("Inf", np.isinf)):
        mine, others = int(test(x).sum()), int(test(y).sum())
        if mine and not others:
            yield f"has {what} in {mine} of {a.size} elements where the reference has finite numbers"
        elif others and not mine:
            yield f"is finite where the reference has {what} in {others} of {a.size} elements"


# --- order ----------------------------------------------------------------------------------------------------------


def _of_order(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    if a.size < 2 or not is_telling(a):
        return
    for axis in range(a.ndim):
        if a.shape[axis] > 1 and not _same(np.flip(b, axis), b, tolerance) and _same(a, np.flip(b, axis), tolerance):
            yield f"is the reference's in reversed order along axis {axis}"
        yield from _of_shift(a, b, axis, tolerance)
    if a.ndim > 1:
        yield from _of_axes(a, b, tolerance)


def _of_shift(a: Array, b: Array, axis: int, tolerance: Tolerance) -> Iterator[str]:
    size = a.shape[axis]
    if size < 3:
        return
    late = _cut(a, axis, 1, None), _cut(b, axis, 0, size - 1)
    early = _cut(a, axis, 0, size - 1), _cut(b, axis, 1, None)
    if is_telling(late[0]) and _same(*late, tolerance):
        yield f"lags by one along axis {axis}: element t is the reference's t-1 (shifted by one, the old value)"
    elif is_telling(early[0]) and _same(*early, tolerance):
        yield f"is ahead by one along axis {axis}: element t is the reference's t+1 (shifted by one iteration)"


def _cut(value: Array, axis: int, begin: int, end: int | None) -> Array:
    cut: Array = value[(slice(None),) * axis + (slice(begin, end),)]
    return cut


# --- numbers --------------------------------------------------------------------------------------------------------


def _of_numbers(a: Array, b: Array, tolerance: Tolerance) -> Iterator[str]:
    if a.dtype == np.bool_ or b.dtype == np.bool_:
        if a.dtype == b.dtype and bool((a != b).all()):
            yield "is inverted: true where the reference has false"
        return
    x, y = storable(a).astype(np.float64), storable(b).astype(np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    with np.errstate(all="ignore"):
        for rule in (_zero, _sign, _offset, _factor, _clipped, _rounded):
            text = rule(x, y, _near(tolerance), a)
            if text:
                yield text
                return


Near = Callable[[Any, Any], bool]


def _near(tolerance: Tolerance) -> Near:
    """Return a test for agreement a little wider than the tolerance."""
    relative = 4 * min(max(tolerance.relative, 1e-12), 1e-4)
    return lambda a, b: bool((np.abs(a - b) <= tolerance.absolute + relative * np.abs(b)).all())


def _zero(x: Any, y: Any, _near: Near, ours: Array) -> str:
    if ours.size == 1 and not is_floating(ours.dtype):
        return ""  # by how much it is off says more
    if not x.any():
        return "is zero throughout"
    return "is not zero, but the reference is zero throughout" if not y.any() else ""


def _sign(x: Any, y: Any, near: Near, _ours: Array) -> str:
    return "has the sign flipped" if near(-x, y) and y.any() else ""


def _offset(x: Any, y: Any, near: Near, ours: Array) -> str:
    gap = float(np.median(x - y))
    if gap == 0 or not near(x - gap, y) or near(x, y):
        return ""
    if abs(gap) < 1e-3 * float(np.abs(x - y).max()):
        return ""
    if ours.size == 1:
        whole = float(x.reshape(-1)[0] - y.reshape(-1)[0])
        return f"is off by {whole:+g} (an offset)" if not is_floating(ours.dtype) else ""
    return f"is off by {gap:+.6g} everywhere (constant offset)"


def _factor(x: Any, y: Any, near: Near, ours: Array) -> str:
    nonzero = y != 0
    if ours.size < 2 or not nonzero.any() or not is_floating(ours.dtype):
        return ""
    factor = float(np.median(x[nonzero] / y[nonzero]))
    if abs(factor - 1) < 1e-3 or not near(x, factor * y):
        return ""
    return f"is {factor:.6g} times the reference's everywhere (constant scale)"


def _clipped(x: Any, y: Any, near: Near, ours: Array) -> str:
    """Return that ours is the reference's, limited from above or below; empty if it is not."""
    if ours.size < 2 or not is_floating(ours.dtype):
        return ""
    low, high = float(x.min()), float(x.max())
    if low < high and near(np.clip(y, low, high), x):
        # What is cut off must be more than what agreement leaves open.
        limits = [f"at {high:.6g} from above"] if y.max() > high and not near(high, y.max()) else []
        limits += [f"at {low:.6g} from below"] if y.min() < low and not near(low, y.min()) else []
        if limits:
            return f"is the reference's clipped (saturated) {' and '.join(limits)}"
    return ""


def _rounded(_x: Any, y: Any, _near: Near, ours: Array) -> str:
    if ours.dtype != np.float32 or ours.size < 2 or not ours.any():
        return ""
    theirs = y.astype(np.float32)
    for name, narrow in _NARROW:
        rounded = theirs.astype(narrow).astype(np.float32)
        if bool((rounded == ours).all()) and bool((rounded != theirs).any()):
            return f"has only numbers of {name}: it was rounded to lower precision"
    return ""
