"""What is said to be within a tolerance is so by its definition, element by element, whatever the size."""

from __future__ import annotations

import numpy as np

from stepper.tensors.difference import _QUICK_PART, is_within, measure
from stepper.tensors.tolerances import EXACT, Tolerance
from tests.tables import each_row

TOLERANCE = Tolerance(1e-3, 1e-4)
SIZES = [0, 1, 7, _QUICK_PART - 1, _QUICK_PART, _QUICK_PART + 1, 3 * _QUICK_PART + 5]


def within(ours: np.ndarray, theirs: np.ndarray) -> bool:
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    return bool((np.abs(a - b) <= TOLERANCE.absolute + TOLERANCE.relative * np.abs(b)).all())


@each_row("dtype", [np.float32, np.float64])
@each_row("size", SIZES)
def test_floats_are_within_as_the_tolerance_is_defined(size: int, dtype: type) -> None:
    random = np.random.default_rng(size)
    theirs = random.normal(0, 100, size).astype(dtype)
    for part in (0.0, 0.5, 0.9):
        ours = (theirs + part * (1e-4 + 1e-3 * np.abs(theirs)) * random.choice([-1, 1], size)).astype(dtype)
        assert is_within(ours, theirs, TOLERANCE) and within(ours, theirs)
    for place in {0, size // 2, size - 1} if size else ():
        ours = theirs.copy()
        ours[place] += 1.5 * (1e-4 + 1e-3 * abs(theirs[place]))
        assert not is_within(ours, theirs, TOLERANCE) and not within(ours, theirs)


@each_row("size", SIZES[1:])
@each_row("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_within_only_where_both_are_the_same_infinity(size: int, special: float) -> None:
    plain = np.linspace(1, 2, size, dtype=np.float32)
    other = plain.copy()
    other[-1] = special
    assert not is_within(plain, other, TOLERANCE) and not is_within(other, plain, TOLERANCE)
    assert is_within(other, other.copy(), TOLERANCE) != np.isnan(special), "NaN is for measuring"


@each_row("dtype", [np.int32, np.uint8, np.bool_, np.float16])
def test_other_types_are_within_where_they_are_equal(dtype: type) -> None:
    ours = np.arange(3 * _QUICK_PART).astype(dtype).reshape(3, -1)
    assert is_within(ours, ours.copy(), EXACT)
    other = ours.copy()
    other[2, -1] = not other[2, -1]
    assert not is_within(ours, other, EXACT)
    assert measure(ours, other, EXACT) is not None


def test_steps_of_a_type_are_for_measuring() -> None:
    ours = np.float32([1.0])
    assert not is_within(ours, np.nextafter(ours, np.float32(2)), Tolerance(1.0, 1.0, ulp=1))


@each_row("other", [np.zeros((2, 3), np.float64), np.zeros((3, 2), np.float32), np.zeros(6, np.float32), np.float32(0)])
def test_other_types_and_shapes_are_never_within(other: np.ndarray) -> None:
    assert not is_within(np.zeros((2, 3), np.float32), np.asarray(other), Tolerance(1.0, 1.0))


def test_arrays_that_do_not_lie_in_one_piece_are_compared_element_by_element() -> None:
    whole = np.random.default_rng(1).normal(0, 1, (300, 200)).astype(np.float32)
    assert is_within(whole.T, whole.T.copy(), EXACT)
    changed = whole.T.copy()
    changed[100, 250] += 1
    assert not is_within(whole.T, changed, TOLERANCE)
