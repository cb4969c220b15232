"""The Gauss error function and its inverse, which numpy lacks.

Source: the operation sets' pages Erf and Erfinv. In f32 a rational approximation fitted to a relative error of 3e-8; in
f64 the two classical expansions of Abramowitz and Stegun: the series of positive terms (7.1.6) near zero, the continued
fraction (7.1.14) farther out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.ops.precision import in_blocks, of_reals
from stepper.ops.registry import kernel

# erf(x) / x as a quotient of two polynomials of x², lowest power first, on [0, 4]; beyond it erf is 1 in f32
_NUMERATOR: Final = (1.12837914, 0.193532204, 0.0530997509, 0.00388270991, 0.000284538407, 1.98671234e-06)
_DENOMINATOR: Final = (1.0, 0.50484601, 0.115344419, 0.0152059935, 0.00118539245, 3.74179981e-05)

_NEAR: Final = 2.0  # where the series hands over to the continued fraction
_SERIES: Final = tuple(float(c) for c in 1 / np.cumprod(np.arange(1.0, 95.0, 2.0)))  # 1 / (2n + 1)!!
_FRACTION_DEPTH: Final = 64
_TWO_OVER_ROOT_PI: Final = 2 / math.sqrt(math.pi)


@kernel("Erf", 1)
@of_reals
@in_blocks
def erf(x: Array) -> Array:
    """Return the Gauss error function, odd and between -1 and 1."""
    if x.dtype == np.float64:
        return np.where(np.absolute(x) < _NEAR, _series(x), np.copysign(1 - _erfc_far(np.absolute(x)), x))
    inside = x.clip(-4, 4)
    squared = inside * inside
    inside = inside * _polynomial(squared, _NUMERATOR)
    inside /= _polynomial(squared, _DENOMINATOR)
    odd: Array = inside.clip(-1, 1)
    return odd


@kernel("Erfinv", 17)
@of_reals
@in_blocks
def erfinv(x: Array) -> Array:
    """Return the y with erf(y) = x, ±∞ of ±1, NaN outside: a closed approximation, then Halley's method in f64."""
    wanted = np.absolute(x, dtype=np.float64)
    y = _erfinv_guess(wanted)
    for _ in range(3):
        slope = _TWO_OVER_ROOT_PI * np.exp(-y * y)
        error = np.where(y < _NEAR, _series(y) - wanted, (1 - wanted) - _erfc_far(y)) / slope
        y = y - error / (1 + y * error)
    y = np.where(wanted == 1, np.inf, np.where(wanted > 1, np.nan, y))
    return np.copysign(y, x).astype(x.dtype)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Any:
    """Σ coefficients[k] x^k by Horner's rule, in the type of x."""
    total = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= x
    total += coefficients[0]
    return total


def _series(x: Array) -> Array:
    """Return erf for |x| < 2: 2/√π x exp(-x²) Σ (2x²)^n / (2n + 1)!!."""
    squared = np.minimum(x * x, _NEAR * _NEAR)
    total: Array = _TWO_OVER_ROOT_PI * x * np.exp(-squared) * _polynomial(2 * squared, _SERIES)
    return total


def _erfc_far(x: Array) -> Array:
    """Return 1 - erf for x ≥ 2: exp(-x²)/√π · 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …))))."""
    x = np.maximum(x, _NEAR)
    tail: Array = x
    for k in range(_FRACTION_DEPTH, 0, -1):
        tail = x + k / 2 / tail
    outside: Array = np.exp(-x * x) / math.sqrt(math.pi) / tail
    return outside


def _erfinv_guess(x: Array) -> Array:
    """Return erfinv of 0 ≤ x < 1 to some thousandths, from a closed form for erf that can be inverted (Winitzki)."""
    a = 0.147
    logarithm = np.log1p(-np.minimum(x * x, 1 - 1e-17))
    half = 2 / (math.pi * a) + logarithm / 2
    guess: Array = np.sqrt(np.sqrt(half * half - logarithm / a) - half)
    return guess
