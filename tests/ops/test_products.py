"""Products of matrices: the same numbers in either order, threads where they are worth it, and no copy of a matrix."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

from stepper.element_types import Array
from stepper.ops import matmul
from stepper.ops.matmul import einsum, matrix_product
from tests.tables import each_row

ROWS = (1, 2, 8, 48, 49)


def reals(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@each_row("rows", ROWS)
@each_row("transposed", [False, True])
def test_products_of_few_rows_are_those_of_the_definition(rows: int, transposed: bool) -> None:
    a, b = reals(rows, 256), reals(1024, 256).T if transposed else reals(256, 1024)
    found = matrix_product(a, b)
    expected = np.einsum("mk,kn->mn", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert found.dtype == np.float32 and found.flags.c_contiguous


@each_row("rows", ROWS)
def test_a_product_with_a_transposed_matrix_copies_nothing_of_it(rows: int) -> None:
    a, matrix = reals(rows, 512), reals(2048, 512)
    matrix_product(a, matrix.T)
    tracemalloc.start()
    try:
        matrix_product(a, matrix.T)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * rows * 2048 * 4 + 4096 < matrix.nbytes / 2


@each_row(
    ("a", "b", "expected"),
    [
        (reals(1, 64), reals(64, 128), []),
        (reals(1, 512), reals(512, 1024), [1, 4]),
        (reals(8, 256), reals(1024, 256).T, [1, 4]),
        (reals(1000, 400), reals(400), [1, 4]),
        (reals(256, 512), reals(512, 512), []),
    ],
)
def test_products_between_the_smallest_and_the_largest_are_held_to_one_thread(
    a: Array, b: Array, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(matmul, "_threads", lambda: (lambda: 4, told.append))
    monkeypatch.setattr(matmul, "WORTH_THREADS", 2**24)
    np.testing.assert_allclose(matrix_product(a, b), np.matmul(a, b), rtol=1e-3, atol=1e-4)
    assert told == expected


def test_a_product_that_fails_gives_the_threads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(matmul, "_threads", lambda: (lambda: 4, told.append))
    with pytest.raises(ValueError, match="matmul"):
        matrix_product(reals(8, 300), reals(256, 1024))
    assert told == [1, 4]


@each_row(("rows", "expected"), [(2, []), (256, [1, 4]), (512, [])])
def test_einsum_is_held_to_one_thread_as_the_product_is_that_it_names(
    rows: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(matmul, "_threads", lambda: (lambda: 4, told.append))
    monkeypatch.setattr(matmul, "WORTH_THREADS", 2**20)
    a, b = reals(rows, 16, 16), reals(8, 16, 16)
    found = einsum(a, b, equation="rij,nij->rn")
    np.testing.assert_allclose(found, np.tensordot(a, b, ((1, 2), (1, 2))), rtol=1e-3, atol=1e-3)
    assert told == expected


def test_the_threads_of_numpys_own_blas_are_found_and_given_back() -> None:
    if sys.platform != "linux" or "openblas" not in np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]:
        pytest.skip("numpy multiplies by another library")
    ask, limit = matmul._threads()
    before = ask()
    try:
        limit(3)
        assert ask() == 3
        matrix_product(reals(1, 512), reals(512, 1024))
        assert ask() == 3
    finally:
        limit(before)


def integers(dtype: type, low: int, high: int, *shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(low, high, shape, dtype=dtype, endpoint=True)


@each_row(
    ("a", "b", "floating"),
    [
        (integers(np.int32, -128, 127, 64, 256), integers(np.int32, -128, 127, 256, 64), "float32"),
        (integers(np.int32, -255, 255, 64, 259), integers(np.int32, -255, 255, 259, 64), "float64"),
        (integers(np.uint8, 0, 255, 64, 256), integers(np.uint8, 0, 255, 256, 64), "float32"),
        (integers(np.int8, -128, 127, 2, 64, 256), integers(np.int8, -128, 127, 256, 64), "float32"),
        (integers(np.uint32, 0, 2**20, 64, 256), integers(np.uint32, 0, 2**20, 256, 64), "float64"),
        (integers(np.int32, -(2**31), 2**31 - 1, 64, 256), integers(np.int32, -1, 1, 256, 64), "float64"),
        (integers(np.int32, -(2**31), 2**31 - 1, 64, 256), integers(np.int32, -99999, 99999, 256, 64), "int32"),
        (integers(np.int64, -(2**63), 2**63 - 1, 64, 256), integers(np.int64, -1, 1, 256, 64), "int64"),
        (integers(np.int64, -(2**40), 2**40, 64, 256), integers(np.int64, 0, 0, 256, 64), "float32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_products_of_integers_are_exact_and_wrap(
    a: Array, b: Array, floating: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = np.matmul(a, b)
    multiply, types = np.matmul, []
    monkeypatch.setattr(np, "matmul", lambda left, right: types.append(left.dtype.name) or multiply(left, right))
    found = matrix_product(a, b)
    assert types == [floating], "integers go without BLAS"
    assert found.dtype == expected.dtype and np.array_equal(found, expected)
