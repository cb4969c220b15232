"""What is found out of large tensors in steps, against plain formulas over the whole of it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, Array
from stepper.ops.convert import converted
from stepper.tensors import surveys as tensor_surveys
from stepper.tensors.planes import plane_of
from stepper.tensors.statistics import finish
from stepper.tensors.surveys import CellStatistic, edges, in_cells, next_where, previous_where, survey
from tests.tables import few


@pytest.fixture(autouse=True, params=[2**18, 50], ids=["one step", "many steps"])
def _steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_surveys, "STEP", request.param)


def loudest(values: list[float]) -> float:
    """By the definition, one element after the other."""
    if any(math.isnan(value) for value in values):
        return math.nan
    return max(values, key=lambda value: (abs(value), value))


def reduced(array: Array, rows: Array, columns: Array, statistic: CellStatistic = CellStatistic.LARGEST) -> Array:
    plane = plane_of(array.shape)
    return finish(in_cells(lambda down, across: plane.block(array, down, across), rows, columns, statistic))


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16", "f8e5m2", "i8", "u8", "i64", "boolean"])
@pytest.mark.parametrize("shape", [(37, 53), (1, 40), (40, 1), (3, 700), (700, 3)], ids=str)
def test_a_cell_is_the_largest_magnitude_in_it(name: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    wide = (rng.normal(0, 40, shape) if name != "u8" else rng.integers(0, 200, shape)).astype(np.float32)
    if name in ("f32", "f64", "f16", "bf16", "f8e5m2"):
        wide.flat[7], wide.flat[-3], wide.flat[len(wide.flat) // 2] = np.nan, -np.inf, np.inf
    array = wide != 0 if name == "boolean" else converted(wide, ELEMENT_TYPES[name].dtype)
    plain = array.astype(np.float64)
    plane = plane_of(shape)
    rows, columns = edges(0, plane.height, 7), edges(0, plane.width, 11)
    found = reduced(array, rows, columns)
    picture = finish(
        in_cells(
            lambda down, across: plane.block(plain, down, across),
            edges(0, plane.height, 10**6),
            edges(0, plane.width, 10**6),
            CellStatistic.LARGEST,
        )
    )
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            wanted = loudest(picture[rows[i] : rows[i + 1], columns[j] : columns[j + 1]].reshape(-1).tolist())
            assert found[i, j] == wanted or (math.isnan(found[i, j]) and math.isnan(wanted)), (i, j)
    assert np.isnan(found).any() == np.isnan(plain).any()
    # The finest picture is the elements themselves.
    np.testing.assert_array_equal(np.sort(np.abs(picture), axis=None)[-plain.size :], np.sort(np.abs(plain), axis=None))


@pytest.mark.parametrize("statistic", [CellStatistic.MEAN, CellStatistic.RMS])
@pytest.mark.parametrize("shape", few(3, [(37, 53), (1, 40), (3, 700), (1000, 600)]), ids=str)
def test_a_cell_is_the_mean_or_the_rms_of_its_elements(shape: tuple[int, int], statistic: CellStatistic) -> None:
    array = np.random.default_rng(3).normal(1, 5, shape).astype(np.float32)
    rows, columns = edges(0, shape[0], 7), edges(0, shape[1], 11)
    wide = array.astype(np.float64)
    parts = [
        [wide[top:bottom, left:right] for left, right in itertools.pairwise(columns.tolist())]
        for top, bottom in itertools.pairwise(rows.tolist())
    ]
    is_mean = statistic is CellStatistic.MEAN
    expected = [[part.mean() if is_mean else np.sqrt(np.square(part).mean()) for part in row] for row in parts]
    np.testing.assert_allclose(reduced(array, rows, columns, statistic), expected, rtol=1e-9)
    array[0, 0], array[-1, -1] = np.nan, -np.inf
    odd = reduced(array, rows, columns, statistic)
    assert np.isnan(odd[0, 0]) and np.isinf(odd[-1, -1]) and int((~np.isfinite(odd)).sum()) == 2


def test_one_nan_in_ten_million_elements_is_seen() -> None:
    array = np.zeros((2000, 5000), np.float32)
    array[1234, 4321] = np.nan
    rows, columns = edges(0, 2000, 40), edges(0, 5000, 150)
    found = np.argwhere(np.isnan(reduced(array, rows, columns))) if tensor_surveys.STEP > 50 else None
    if found is not None:
        ((row, column),) = found.tolist()
        assert rows[row] <= 1234 < rows[row + 1] and columns[column] <= 4321 < columns[column + 1]


@pytest.mark.parametrize("name", ["f32", "f16", "i32", "u8", "boolean", "nf4"])
def test_a_survey_counts_every_finite_element_once(name: str) -> None:
    rng = np.random.default_rng(2)
    wide = rng.normal(0, 3, (13, 41)).astype(np.float32)
    array: Array
    if name == "nf4":
        array = rng.integers(0, 16, (13, 41)).astype(np.uint8).view(ELEMENT_TYPES["nf4"].dtype)
    elif name == "boolean":
        array = wide > 0
    else:
        array = converted(np.abs(wide) if name == "u8" else wide, ELEMENT_TYPES[name].dtype)
    if name in ("f32", "f16"):
        array[3, 5], array[9, 9], array[1, 40] = np.nan, np.nan, -np.inf
    found = finish(survey(array, 12))
    plain = converted(array, ELEMENT_TYPES["f32"].dtype).astype(np.float64)
    finite = plain[np.isfinite(plain)]
    assert found.counts.sum() == finite.size == found.statistics.finite
    np.testing.assert_array_equal(found.counts, np.histogram(finite, found.edges)[0])
    assert found.first_nan == (3 * 41 + 5 if name in ("f32", "f16") else None)
    assert found.first_infinity == (1 * 41 + 40 if name in ("f32", "f16") else None)


ONE = np.float64(1)


@pytest.mark.parametrize(
    "values",
    [
        np.full(5, 1e30, np.float32),
        np.full(3, -np.finfo(np.float64).max),
        np.full(2, np.finfo(np.float64).max),
        np.array([2**64 - 1, 2**64 - 3], np.uint64),
        np.full(2, 2**63 - 1, np.int64),
        np.array([1e17]),
        np.array([ONE, np.nextafter(ONE, 2)]),
        np.full(4, 5e-324),
        np.zeros(3, np.float16),
    ],
    ids=str,
)
def test_numbers_that_are_large_and_the_same_or_nearly_have_a_histogram(values: Array) -> None:
    found = finish(survey(values, 40))
    assert found.counts.sum() == values.size and (np.diff(found.edges) > 0).all()
    assert found.edges[0] <= float(values.min()) <= float(values.max()) <= found.edges[-1]


def test_searching_goes_both_ways() -> None:
    array = np.ones(400, np.float32)
    array[[20, 210, 399]] = np.nan
    assert [finish(next_where(array, np.isnan, at)) for at in (0, 20, 21, 211, 400)] == [20, 20, 210, 399, None]
    assert [finish(previous_where(array, np.isnan, at)) for at in (400, 399, 210, 20)] == [399, 210, 20, None]
    assert finish(next_where(np.ones(3, np.int32), np.isnan, 0)) is None
