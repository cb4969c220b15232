"""Differences of tensors, with plain loops as the oracle."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, FLOATING
from stepper.errors import UsageError
from stepper.tensors.difference import Differences, differences
from stepper.tensors.statistics import CHUNK
from tests.tensors.test_statistics import random_bits

FLOATS = sorted((name for name, each in ELEMENT_TYPES.items() if each.dtype in FLOATING), key=str)


def steps(dtype: np.dtype[Any]) -> dict[float, int]:
    """Every number of a type of at most 16 bits with its place in their order; both zeros have one place."""
    bits = {ELEMENT_TYPES[name].dtype: ELEMENT_TYPES[name].bits for name in FLOATS}[dtype]
    codes = np.arange(2**bits, dtype=np.uint8 if bits <= 8 else np.uint16).view(dtype)
    numbers = sorted({float(code) for code in codes if not math.isnan(float(code))})
    return {number: place for place, number in enumerate(numbers)}


@pytest.mark.parametrize("name", [name for name in FLOATS if ELEMENT_TYPES[name].bits <= 16])
def test_narrow_floats_of_every_bit_pattern(name: str) -> None:
    a, b = random_bits(name, (3, 500), 1), random_bits(name, (3, 500), 2)
    place = steps(a.dtype)
    pairs = [(float(x), float(y)) for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)]
    different = [not (x == y or (math.isnan(x) and math.isnan(y))) for x, y in pairs]
    known = [(x, y) for x, y in pairs if not math.isnan(x) and not math.isnan(y)]
    apart = [(x, y) for x, y in known if x != y]
    actual = differences(a, b)
    assert actual.different == sum(different)
    assert actual.first == different.index(True)
    assert actual.nan_on_one_side == sum(math.isnan(x) != math.isnan(y) for x, y in pairs)
    assert actual.max_abs == max(abs(x - y) for x, y in apart)
    infinite = any(y == 0 or math.isinf(x - y) for x, y in apart)
    assert actual.max_rel == (math.inf if infinite else max(abs(x - y) / abs(y) for x, y in apart))
    assert actual.max_ulp == max(abs(place[x] - place[y]) for x, y in known)


@pytest.mark.parametrize(("name", "unsigned"), [("f32", np.uint32), ("f64", np.uint64)])
def test_ulps_are_counted_over_zero_and_to_infinity(name: str, unsigned: type) -> None:
    dtype = ELEMENT_TYPES[name].dtype
    one = np.array([1], dtype)
    assert differences(one, np.nextafter(one, dtype.type(2))).max_ulp == 1
    tiny = np.array([1], unsigned).view(dtype)
    assert differences(tiny, -tiny).max_ulp == 2
    assert differences(np.array([0.0], dtype), np.array([-0.0], dtype)).equal
    largest = np.array([np.finfo(dtype).max], dtype)
    assert differences(largest, np.array([np.inf], dtype)).max_ulp == 1
    assert differences(np.array([-np.inf], dtype), np.array([np.inf], dtype)).max_ulp == 2 * int(
        np.array([np.inf], dtype).view(unsigned)[0]
    )


def test_nan_equals_nan_and_infinity_itself() -> None:
    a = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    actual = differences(a, a.copy())
    assert actual.equal
    assert (actual.max_abs, actual.max_rel, actual.max_ulp, actual.first) == (0, 0, 0, None)
    assert actual.cosine == 1
    apart = differences(a, np.array([1, np.inf, np.inf, 1], np.float32))
    assert (apart.different, apart.nan_on_one_side, apart.first) == (2, 1, 0)
    assert apart.max_abs == apart.max_rel == math.inf


def test_integers_are_exact() -> None:
    low, high = np.array([-(2**63), 5]), np.array([2**63 - 1, 5])
    assert differences(low, high).max_abs == 2**64 - 1
    assert differences(np.array([2**64 - 1], np.uint64), np.array([0], np.uint64)).max_abs == 2**64 - 1
    assert differences(np.array([2**60 + 1]), np.array([2**60])).different == 1
    signed, unsigned = np.array([-1], np.int8), np.array([255], np.uint8)
    assert differences(signed, unsigned).max_abs == 256
    assert differences(np.array([True, False]), np.array([True, True])) == Differences(
        2, 1, 0, 1, 1, 1.0, None, pytest.approx(math.sqrt(0.5))
    )


def test_tensors_of_different_types_are_compared_as_numbers() -> None:
    actual = differences(np.array([1, 2], np.float32), np.array([1, 2.5], ml_dtypes.bfloat16))
    assert (actual.max_abs, actual.max_rel, actual.max_ulp) == (0.5, 0.2, None)
    packed = np.arange(8, dtype=np.uint8).view(ELEMENT_TYPES["u3"].dtype)
    assert differences(packed, np.arange(8, dtype=np.int32)).equal


def test_texts_are_equal_or_not() -> None:
    a, b = (np.array(["x", last], ELEMENT_TYPES["string"].dtype) for last in ("y", "z"))
    assert differences(a, b) == Differences(2, 1, 0, 1, None, None, None, None)
    with pytest.raises(UsageError, match="string cannot be compared with one of f32"):
        differences(a, np.zeros(2, np.float32))


def test_shapes_that_differ_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match=r"shape \[2\] cannot be compared with one of \[3\]"):
        differences(np.zeros(2), np.zeros(3))


def test_the_angle_is_that_of_the_whole_and_not_of_its_chunks() -> None:
    generator = np.random.default_rng(13)
    a, b = generator.normal(size=(2, 2 * CHUNK + 5))
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert differences(a, b).cosine == pytest.approx(expected, rel=1e-9)
    assert differences(a, np.zeros_like(a)).cosine is None
    b[:] = a
    b[CHUNK + 1] += 1
    assert differences(a, b).first == CHUNK + 1


def test_nothing_differs_in_nothing() -> None:
    assert differences(np.zeros(0), np.zeros(0)) == Differences(0, 0, 0, None, 0, 0.0, 0, None)
