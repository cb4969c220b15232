from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from stepper.ops.matmul import einsum, grouped_matmul, inverse, matmul, scaled_dot_product_attention
from tests.tables import each_row

RANDOM = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_products_of_large_integers_are_exact() -> None:
    a = np.array([[2**40 + 1, 3]], np.int64)
    assert matmul(a, a, transpose_b=True)[0, 0] == ((2**40 + 1) ** 2 + 9) % 2**64


def test_products_of_bytes_wrap() -> None:
    a = np.array([[20, 20]], np.uint8)
    assert matmul(a, a.T)[0, 0] == 800 % 256


@each_row("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_product_of_half_precision_rounds_once(dtype: type) -> None:
    a, b = f(3, 200).astype(dtype), f(200, 2).astype(dtype)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    result = matmul(a, b)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float32), exact.astype(dtype).astype(np.float32), rtol=1e-2, atol=1e-4)


def test_a_sum_over_nothing_is_zero() -> None:
    assert (matmul(np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)) == np.zeros((2, 3))).all()


def test_matrices_that_do_not_fit_are_named_by_their_shapes() -> None:
    with pytest.raises(KernelError, match=r"shapes \[2,3\] and \[2,3\]"):
        matmul(f(2, 3), f(2, 3))


def test_an_implicit_equation_keeps_the_labels_that_occur_once() -> None:
    a, b = f(2, 3, 3, 4), f(4, 5)
    expected = np.einsum("dbbc,ca->ad", a, b)
    np.testing.assert_allclose(einsum(a, b, equation="d b b c, c a"), expected, rtol=1e-5)


@each_row("equation", ["ij,jk,kl->il", "ij->ij", "i-j,jk", "ijk,jk->i", "", "i......,jk"])
def test_an_equation_that_does_not_fit_is_refused(equation: str) -> None:
    with pytest.raises(KernelError, match="equation"):
        einsum(f(2, 3), f(3, 4), equation=equation)


def test_an_outer_product_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TensorTooLarge):
        einsum(f(40000), f(40000), equation="i,j->ij")


def test_groups_of_rows_have_their_own_weights_in_either_layout() -> None:
    tokens, weights, offsets = f(6, 3), f(3, 3, 2), np.array([2, 2, 6])
    expected = np.concatenate([tokens[:2] @ weights[0], tokens[2:] @ weights[2]])
    np.testing.assert_allclose(grouped_matmul(tokens, weights, offsets), expected, rtol=1e-5)
    np.testing.assert_allclose(grouped_matmul(tokens, weights.swapaxes(1, 2), offsets), expected, rtol=1e-5)


def test_whole_matrices_and_parts_of_the_inner_axis_are_groups_too() -> None:
    a, b = f(2, 3, 4), f(2, 5, 4)
    np.testing.assert_allclose(grouped_matmul(a, b), a @ b.swapaxes(1, 2), rtol=1e-5)
    c, d = f(3, 6), f(6, 2)
    parts = np.stack([c[:, :4] @ d[:4], c[:, 4:] @ d[4:]])
    np.testing.assert_allclose(grouped_matmul(c, d, np.array([4, 6])), parts, rtol=1e-5)


@each_row("offsets", [[3, 2, 6], [1, 2, 7], [6]])
def test_offsets_ascend_within_the_rows(offsets: list[int]) -> None:
    with pytest.raises(KernelError):
        grouped_matmul(f(6, 3), f(3, 3, 2), np.array(offsets))


def test_a_singular_matrix_gives_nan_and_spares_its_batch() -> None:
    result = inverse(np.stack([np.ones((2, 2), np.float32), 2 * np.eye(2, dtype=np.float32)]))
    assert np.isnan(result[0]).all()
    assert (result[1] == np.eye(2) / 2).all()


def test_a_query_that_may_look_nowhere_is_nan() -> None:
    mask = np.array([[[False, False], [True, False]]])
    query, value = f(1, 2, 3), f(1, 2, 3)
    with np.errstate(invalid="ignore"):
        result = scaled_dot_product_attention(query, f(1, 2, 3), value, mask)
    assert np.isnan(result[0, 0]).all()
    np.testing.assert_allclose(result[0, 1], value[0, 0], rtol=1e-6)


def test_a_scalar_mask_of_zero_is_none() -> None:
    inputs = f(2, 3, 4), f(2, 5, 4), f(2, 5, 2)
    masked = scaled_dot_product_attention(*inputs, np.float32(0))
    np.testing.assert_array_equal(masked, scaled_dot_product_attention(*inputs))
