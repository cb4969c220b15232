"""Values of iterations that are seen in any order, against the formula applied to all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stepper.tensors.histories import KeptStatistic, bucket_begins, numbers_of
from stepper.tensors.known_values import BLOCK, KnownValues


@pytest.mark.parametrize("shape", [(), (3,), (4, 16)])
def test_each_element_of_small_values_is_kept_in_whatever_order_they_come(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    values = {at: random.standard_normal(shape).astype(np.float32) for at in (7, 3, 200, 4, 64, 63)}
    known = KnownValues()
    known.enter(np.zeros(shape, np.float32))
    for at, value in values.items():
        known.see(at, value)
        known.see(at, value + 1)  # what is known stays
    history = known.view()
    assert history is not None and history.is_whole and history.shape == shape and history.type == "f32"
    assert history.spans[:, 0].tolist() == sorted(values) and history.count == 201
    for column, at in enumerate(sorted(values)):
        np.testing.assert_array_equal(history.numbers[0, column], values[at].reshape(-1))
    assert history.over(5, 63) is not None and history.over(65, 200) is None
    assert history.entered is not None and not history.entered.any()
    earlier = history.before(64)
    assert earlier is not None and earlier.spans[:, 0].tolist() == [3, 4, 7, 63]


@pytest.mark.parametrize("size", [65, 1000, 2**20 + 7, 2**21])
def test_large_values_are_kept_in_64_buckets(size: int) -> None:
    value = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    found = numbers_of(value)
    assert found is not None and found.shape == (3, 64)
    parts = np.split(value.astype(np.float64), bucket_begins(size)[1:])
    for bucket, part in enumerate(parts):
        assert found[KeptStatistic.LARGEST, bucket] == part[np.abs(part).argmax()]
        assert found[KeptStatistic.MEAN, bucket] == pytest.approx(part.mean(), rel=1e-3, abs=1e-5)
        assert found[KeptStatistic.RMS, bucket] == pytest.approx(math.sqrt(np.square(part).mean()), rel=1e-5)


def test_values_of_several_sizes_are_three_numbers_each() -> None:
    known = KnownValues()
    known.see(0, np.array([3.0, -4.0]))
    known.see(1, np.array([1.0, 2.0, 2.0]))
    history = known.view()
    assert history is not None and history.shape_changes == 1 and not history.is_whole
    assert history.numbers[KeptStatistic.LARGEST, :, 0].tolist() == [-4.0, 2.0]
    assert history.numbers[KeptStatistic.RMS, :, 0].tolist() == pytest.approx([math.sqrt(12.5), math.sqrt(3)])
    assert history.number(1) == pytest.approx(math.sqrt(3))


def test_the_first_iterations_with_nan_and_inf_are_told() -> None:
    known = KnownValues()
    for at, value in ((9, math.nan), (4, math.inf), (2, 1.0)):
        known.see(at, np.array([0.0, value]))
    history = known.view()
    assert history is not None and (history.first_nan, history.first_infinite) == (9, 4)


def test_memory_is_bounded_and_what_was_seen_last_stays() -> None:
    known = KnownValues(2**16)
    for at in range(100_000):
        known.see(at, np.full(64, at, np.float32))
    history = known.view()
    assert history is not None and history.numbers.nbytes <= 2**19
    assert history.spans[-1].tolist() == [99_999, 100_000] and len(history.spans) % BLOCK == 100_000 % BLOCK


def test_a_history_is_filled_up_with_columns_of_another_where_it_knows_nothing() -> None:
    first, second = KnownValues(), KnownValues()
    for at in (0, 1, 5):
        first.see(at, np.float32(at))
    for at in (1, 3, 9):
        second.see(at, np.float32(-at))
    left, right = first.view(), second.view()
    assert left is not None and right is not None
    both = left.filled_up(right)
    assert both.spans[:, 0].tolist() == [0, 1, 3, 5, 9] and both.count == 10
    assert both.numbers[0, :, 0].tolist() == [0, 1, -3, 5, -9]
    assert left.filled_up(left) is left
