"""Values that change their shape are laid into one, with what is not there told apart from zeros."""

from __future__ import annotations

import numpy as np

from stepper.tensors.changing_shapes import changing_shape
from stepper.tensors.histories import KeptStatistic


def test_few_elements_keep_their_indices() -> None:
    values = [np.arange(2 * n, dtype=np.float32).reshape(2, n) + 1 for n in (0, 1, 3)]
    found = changing_shape([4, 5, 6], values)
    assert found is not None and found.axis is None and found.history.shape == (2, 3)
    numbers = found.history.numbers[0].reshape(3, 2, 3)
    for column, value in enumerate(values):
        padded = np.pad(value, ((0, 0), (0, 3 - value.shape[1])))
        assert np.array_equal(numbers[column], padded)
        assert np.array_equal(found.there[column].reshape(2, 3), np.arange(3) < np.full((2, 1), value.shape[1]))
    assert found.history.spans.tolist() == [[4, 5], [5, 6], [6, 7]]


def test_of_many_elements_the_axis_that_changes_most_is_told_by_statistics() -> None:
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(4, n, 8)) for n in (2, 5, 9)]
    values[1][3, 4, 7] = np.nan
    found = changing_shape([0, 1, 2], values)
    assert found is not None and found.axis == 1 and found.history.shape == (9,)
    for column, value in enumerate(values):
        count = value.shape[1]
        assert found.there[column].tolist() == [True] * count + [False] * (9 - count)
        numbers = found.history.numbers[:, column]
        assert np.allclose(numbers[KeptStatistic.MEAN, :count], value.mean(axis=(0, 2)), equal_nan=True)
        rms = np.sqrt((value**2).mean(axis=(0, 2)))
        assert np.allclose(numbers[KeptStatistic.RMS, :count], rms, equal_nan=True)
        largest = np.abs(value).max(axis=(0, 2))
        assert np.allclose(np.abs(numbers[KeptStatistic.LARGEST, :count]), largest, equal_nan=True)
        assert not numbers[:, count:].any()


def test_one_shape_other_ranks_and_texts_are_no_such_value() -> None:
    assert changing_shape([0, 1], [np.zeros(3), np.ones(3)]) is None
    assert changing_shape([0, 1], [np.zeros(3), np.ones((3, 1))]) is None
    assert changing_shape([0, 1], [np.array(["a"]), np.array(["a", "b"])]) is None
