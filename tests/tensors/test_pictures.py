"""Scales and shades of pictures, against the formulas that a reader of them relies on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stepper.tensors.tensor_pictures import (
    BarScale,
    Form,
    Scale,
    ScaleKind,
    bar_scale,
    digits,
    form_of,
    heights,
    letters,
    scale_of,
    shades,
    share_text,
)
from tests.tables import each_row

RANDOM = np.random.default_rng(3)


def test_the_kind_of_a_picture_follows_from_type_and_size() -> None:
    assert form_of("boolean", 1) is Form.TRUTH
    assert form_of("i64", 1) is form_of("u8", 1) is Form.NUMBERS
    assert form_of("f32", 1) is Form.BARS
    assert form_of("f32", 64) is form_of("boolean", 2) is form_of("i64", 65) is Form.PICTURE
    assert form_of("f32", 0) is Form.WORDS


def test_full_shade_is_at_the_98th_percentile_and_zero_is_the_ground() -> None:
    numbers = RANDOM.standard_normal((100, 10))
    scale = scale_of(numbers)
    ordered = np.sort(np.abs(numbers).reshape(-1))
    assert scale.kind is ScaleKind.ROBUST and scale.signed and scale.full == ordered[979]
    found = shades(numbers, scale)
    expected = [max(-1.0, min(1.0, number / ordered[979])) for number in numbers.reshape(-1).tolist()]
    assert found.shape == numbers.shape and np.allclose(found.reshape(-1), expected)
    assert shades(np.array([0.0, -0.0]), scale).tolist() == [0, 0]


@each_row("count", [3, 4, 12, 30, 49, 50, 51, 52, 100, 1000])
@each_row("outlier", [1e3, 1e30, -1e9, math.inf, math.nan])
def test_one_outlier_never_hides_the_rest(count: int, outlier: float) -> None:
    numbers = np.linspace(2.0, 4.0, count)
    numbers[count // 2] = outlier
    scale = scale_of(numbers)
    found = shades(numbers, scale)
    rest = np.delete(found, count // 2)
    assert rest.min() >= 0.45 and np.delete(np.diff(found), [count // 2 - 1, count // 2]).min(initial=1) >= 0
    assert scale.full <= 4
    bars = np.delete(heights(numbers, bar_scale(numbers)), count // 2)
    assert bars.max() - bars.min() > 0.4 or count == 3


def test_a_wide_range_is_logarithmic_from_the_tenth_percentile() -> None:
    numbers = np.concatenate([np.logspace(-3, 3, 200), [0.0]])
    scale = scale_of(numbers)
    magnitudes = numbers[:-1]
    assert scale.kind is ScaleKind.LOG and not scale.signed
    assert scale.low == np.percentile(magnitudes, 10) and scale.full == np.sort(magnitudes)[195]
    found = shades(numbers, scale)
    for number, shade in zip(numbers.tolist(), found.tolist(), strict=True):
        if number == 0:
            assert shade == 0
        else:
            part = 0.15 + 0.85 * math.log(number / scale.low) / math.log(scale.full / scale.low)
            assert shade == pytest.approx(min(1.0, max(0.06, part)))
    assert np.all(np.diff(found[:-1]) >= 0)
    mirrored = shades(-numbers, scale_of(-numbers))
    assert np.allclose(mirrored, -found)


def test_shares_of_one_are_always_linear() -> None:
    numbers = np.concatenate([np.full(200, 1e-6), [0.9, 0.8, 0.7, 0.6, 0.95]])
    scale = scale_of(numbers)
    assert scale == Scale(ScaleKind.UNIT, 1.0, scale.low, signed=False)
    assert np.allclose(shades(numbers, scale), numbers)
    small = scale_of(numbers / 10)
    assert small.kind is ScaleKind.UNIT and small.full == pytest.approx(0.095)
    assert scale_of(np.array([-0.1, 0.5])).kind is not ScaleKind.UNIT
    assert scale_of(np.array([0.5, 1.5])).kind is not ScaleKind.UNIT


def test_numbers_that_are_none_keep_their_letters() -> None:
    numbers = np.array([[1.0, math.nan], [math.inf, -math.inf]])
    found = shades(numbers, scale_of(numbers))
    assert np.array_equal(found[0], [1.0, math.nan], equal_nan=True)
    assert letters(numbers).tolist() == [["", "N"], ["I", "I"]]
    assert digits(found).tolist() == [[9, 0], [0, 0]]


def test_nothing_but_zeros_and_nothing_at_all() -> None:
    for numbers in (np.zeros(5), np.zeros((0, 3)), np.full(3, math.nan)):
        scale, bars = scale_of(numbers), bar_scale(numbers)
        assert scale.full == 1 and not scale.signed
        assert np.isfinite(shades(np.zeros(2), scale)).all() and heights(np.zeros(2), bars).shape == (2,)
    assert heights(np.full(4, 7.0), bar_scale(np.full(4, 7.0))).tolist() == [0.5] * 4


def test_extremes_of_the_types() -> None:
    for numbers in (
        np.array([np.finfo(np.float64).max, -np.finfo(np.float64).max, 1.0]),
        np.array([5e-324, 1e-320, 1e-310]),
        np.array([-(2**63), 2**63 - 1, 0], np.int64),
        np.array([True, False]),
        np.array([65504, 1, 2], np.float16),
    ):
        found = shades(numbers, scale_of(numbers))
        assert np.isfinite(found).all() and np.abs(found).max() <= 1
        bars = heights(numbers, bar_scale(numbers))
        assert np.isfinite(bars).all() and bars.min() >= 0 and bars.max() <= 1


def test_bars_are_from_the_least_to_the_largest() -> None:
    numbers = np.array([0.5, 1.0, 2.0, 1.5])
    assert bar_scale(numbers) == BarScale(0.5, 2.0, log=False)
    assert np.allclose(heights(numbers, bar_scale(numbers)), (numbers - 0.5) / 1.5)
    wide = np.logspace(-4, 2, 7)
    assert bar_scale(wide).log and np.allclose(heights(wide, bar_scale(wide)), np.arange(7) / 6)
    assert not bar_scale(wide, may_be_log=False).log


SWING = np.array([-1e6, -30.0, -2.0, -0.5, 0.0, 0.25, 1.0, 4.0, 500.0, 2e4])


def test_a_logarithmic_scale_of_both_signs_has_zero_in_its_place_and_drops_none() -> None:
    scale = bar_scale(SWING)
    unit = float(np.percentile(np.abs(SWING[SWING != 0]), 10))
    assert scale.log and scale.unit == pytest.approx(unit), "wide, as scale_of says of vectors"
    assert scale_of(SWING).kind is ScaleKind.LOG
    placed = [math.copysign(math.log1p(abs(one) / unit), one) for one in SWING.tolist()]
    expected = [(one - placed[0]) / (placed[-1] - placed[0]) for one in placed]
    assert (scale.low, scale.high) == (pytest.approx(-1e6), pytest.approx(2e4)) and scale.share == 1
    assert np.allclose(heights(SWING, scale), expected) and min(np.diff(heights(SWING, scale))) > 0.01
    assert not bar_scale(np.zeros(4)).log, "there is no magnitude"
    extremes = np.array([-1.7e308, 5e-324, 1e-300, 1e-310, 1.7e308])
    assert bar_scale(extremes).log and np.isfinite(heights(extremes, bar_scale(extremes))).all()


def test_a_scale_tells_how_many_numbers_are_beyond_it() -> None:
    numbers = np.array([*np.linspace(2.0, 4.0, 199), -1e6])
    robust = bar_scale(numbers)
    assert (robust.low, robust.high, robust.share) == (2, 4, pytest.approx(0.995))
    assert heights(numbers, robust)[-1] == 0 and share_text(robust.share) == "99 %" and share_text(1) == ""
    scale = scale_of(numbers)
    assert scale.full <= 4 and scale.share == pytest.approx(0.995) and shades(numbers, scale)[-1] == -1


@each_row("count", [5, 50, 51, 400])
def test_the_ends_of_bars_are_those_of_all_numbers_but_of_outliers(count: int) -> None:
    even = np.linspace(-3.0, 7.0, count)
    for numbers in (even, RANDOM.permutation(even), np.append(even, even[-1])):
        scale = bar_scale(numbers)
        assert (scale.low, scale.high, scale.share) == (-3, 7, 1)
    both = bar_scale(np.concatenate([even, [-1e9] * (count > 50), [1e9]]))
    assert (both.low, both.high) == (-3, 7) and both.share < 1, "of many at both ends"


def test_the_ends_of_logarithmic_bars_are_the_numbers_themselves() -> None:
    for numbers in (np.array([1.0, 10, 2500, 9232, 27, 3000, 3]), np.array([-9232.0, 0, 10, -3, 27, 9231])):
        scale = bar_scale(numbers)
        assert scale.log and (scale.low, scale.high) == (numbers.min(), numbers.max()), "not 9232.000000000002"


def test_no_finite_number_and_nothing_but_zeros_are_no_range() -> None:
    for numbers in (np.full(3, math.nan), np.array([math.inf, -math.inf]), np.zeros(0)):
        assert scale_of(numbers).share == bar_scale(numbers).share == 0
    assert scale_of(np.zeros(3)).share == 1 and scale_of(np.zeros(3)).low == 0


def test_digits_stand_for_shades_without_colours() -> None:
    found = digits(np.array([0, 0.04, 0.05, 0.5, 1, -1, -0.3, -0.04]))
    assert found.tolist() == [0, 0, 1, 4, 9, -9, -3, 0]


def test_one_outlier_of_a_row_does_not_hide_the_rest_of_it() -> None:
    rng = np.random.default_rng(5)
    for count in (5, 12, 50, 51, 400):
        numbers = rng.uniform(1, 2, count)
        plain = bar_scale(numbers, may_be_log=False)
        assert (plain.low, plain.high) == (numbers.min(), numbers.max())
        for outlier in (1e9, -1e9):
            numbers[count // 2] = outlier
            scale = bar_scale(numbers, may_be_log=False)
            assert 1 <= scale.low <= scale.high <= 2
    two = bar_scale(np.array([1.0, 1e9]), may_be_log=False)
    assert (two.low, two.high) == (1.0, 1e9)
