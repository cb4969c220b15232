"""Normalisations where the runtime departs from the specification: LRN against its formula, element by element."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stepper.errors import KernelError
from stepper.ops.reduction import batch_norm_inference, group_normalization, lrn, mvn
from tests.tables import each_row

X = np.cos(np.arange(48, dtype=np.float32)).reshape(2, 4, 2, 3)


def lrn_by_element(
    x: np.ndarray, axes: tuple[int, ...], alpha: float, beta: float, bias: float, size: int
) -> np.ndarray:
    result = np.empty_like(x)
    for place in itertools.product(*map(range, x.shape)):
        total = 0.0
        for other in itertools.product(*map(range, x.shape)):
            near = all(
                abs(p - o) <= size // 2 if axis in axes else p == o
                for axis, (p, o) in enumerate(zip(place, other, strict=True))
            )
            total += float(x[other]) ** 2 * near
        result[place] = x[place] / (bias + alpha / size ** len(axes) * total) ** beta
    return result


@each_row("axes", [(1,), (2, 3), (1, 3), (0,)])
@each_row("size", [1, 2, 3, 5, 1_000_001])
def test_lrn_sums_over_the_window_of_each_axis(axes: tuple[int, ...], size: int) -> None:
    expected = lrn_by_element(X, axes, 0.5, 0.75, 1.5, size)
    result = lrn(X, np.array(axes), alpha=0.5, beta=0.75, bias=1.5, size=size)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_half_precision_is_rounded_once() -> None:
    x = (X * 100).astype(np.float16)
    exact = mvn(x.astype(np.float64), np.array([2, 3]), normalize_variance=True, eps=0.1)
    result = mvn(x, np.array([2, 3]), normalize_variance=True, eps=0.1)
    np.testing.assert_allclose(result.astype(float), exact, rtol=2**-10)


def test_parameters_must_fit_the_channels() -> None:
    with pytest.raises(KernelError, match=r"\[3\] does not fit the channels of \[2,4,2,3\]"):
        batch_norm_inference(X, *[np.ones(3, np.float32)] * 4)


@each_row("groups", [0, 3, -2])
def test_channels_must_divide_into_groups(groups: int) -> None:
    with pytest.raises(KernelError, match="cannot be divided"):
        group_normalization(X, np.ones(4, np.float32), np.ones(4, np.float32), num_groups=groups)


def test_a_window_has_at_least_one_element() -> None:
    with pytest.raises(KernelError, match="size of LRN is 0"):
        lrn(X, np.array([1]), alpha=1.0, beta=1.0, bias=1.0, size=0)
