"""When two arrays agree: the one measure by which the stepper is compared with the runtime."""

from __future__ import annotations

import numpy as np

TOLERANCES = {"float16": (1e-2, 1e-2), "bfloat16": (1e-2, 1e-2)}
"""Relative and absolute tolerance of the narrow float types."""

USUAL_TOLERANCE = (1e-4, 1e-5)


def tolerance_of(dtype: np.dtype) -> tuple[float, float]:
    """Relative and absolute tolerance for floats of this type."""
    return TOLERANCES.get(dtype.name, USUAL_TOLERANCE)


def is_exact(dtype: np.dtype) -> bool:
    """Whether elements of this type must be equal."""
    return dtype.kind in "biu"


def disagreement(actual: np.ndarray, expected: np.ndarray, strictness: float = 1.0) -> str | None:
    """What is wrong with `actual`, or nothing; a strictness above 1 narrows the tolerances."""
    if actual.dtype != expected.dtype:
        return f"element type {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if is_exact(expected.dtype):
        wrong = actual != expected
        distance = wrong.astype(np.float64)
    else:
        got, wanted = actual.astype(np.float64), expected.astype(np.float64)
        relative, absolute = (limit / strictness for limit in tolerance_of(expected.dtype))
        wrong = ~np.isclose(got, wanted, relative, absolute, equal_nan=True)
        with np.errstate(invalid="ignore"):
            distance = np.where(wrong, np.nan_to_num(np.abs(got - wanted), nan=np.inf), 0.0)
    if not wrong.any():
        return None
    worst = tuple(int(place) for place in np.unravel_index(int(distance.argmax()), distance.shape))
    share = f"{int(wrong.sum())} of {wrong.size} elements differ"
    return f"{share}, worst at {list(worst)}: {actual[worst]}, expected {expected[worst]}"


def assert_agrees(actual: np.ndarray, expected: np.ndarray, where: str) -> None:
    """Fail with the place and the worst element unless both arrays agree."""
    problem = disagreement(np.asarray(actual), np.asarray(expected))
    assert problem is None, f"{where}: {problem}"
