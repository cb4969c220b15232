"""Gaps and distances of tensors, with plain loops as the oracle."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, FLOATING, have_same_bits
from stepper.tensors import difference as module
from stepper.tensors.difference import Change, difference, largest_gap, measure, signed_differences
from stepper.tensors.tolerances import EXACT
from tests.tables import each_row
from tests.tensors.test_statistics import random_bits

FLOATS = sorted((name for name, each in ELEMENT_TYPES.items() if each.dtype in FLOATING), key=str)


def steps(dtype: np.dtype[Any]) -> dict[float, int]:
    """Every number of a type of at most 16 bits with its place in their order; both zeros have one place."""
    bits = {ELEMENT_TYPES[name].dtype: ELEMENT_TYPES[name].bits for name in FLOATS}[dtype]
    codes = np.arange(2**bits, dtype=np.uint8 if bits <= 8 else np.uint16).view(dtype)
    numbers = sorted({float(code) for code in codes if not math.isnan(float(code))})
    return {number: place for place, number in enumerate(numbers)}


@each_row("name", [name for name in FLOATS if ELEMENT_TYPES[name].bits <= 16])
def test_narrow_floats_of_every_bit_pattern(name: str) -> None:
    a, b = random_bits(name, (3, 500), 1), random_bits(name, (3, 500), 2)
    place = steps(a.dtype)
    pairs = [(float(x), float(y)) for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)]
    finite = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    known = [(x, y) for x, y in pairs if not math.isnan(x) and not math.isnan(y)]
    one_sided = sum(math.isnan(x) != math.isnan(y) for x, y in pairs)
    gap = largest_gap(a, b)
    assert gap is not None
    assert math.isnan(gap) if one_sided else gap == max(abs(x - y) for x, y in known if x != y)
    actual, moments = measure(a, b, EXACT), difference(b, a)
    assert actual is not None
    assert actual.outside == sum(not (x == y or (math.isnan(x) and math.isnan(y))) for x, y in pairs)
    assert moments.largest == max(abs(x - y) for x, y in finite)
    assert moments.broken == sum(not math.isfinite(x) and math.isfinite(y) for x, y in pairs)
    assert moments.mended == sum(math.isfinite(x) and not math.isfinite(y) for x, y in pairs)
    if a.dtype.itemsize == 2:
        assert actual.ulp == max(abs(place[x] - place[y]) for x, y in finite)


def test_nan_equals_nan_and_infinity_itself() -> None:
    a = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    assert largest_gap(a, a.copy()) == 0 and measure(a, a.copy(), EXACT) is None and have_same_bits(a, a.copy())
    apart = np.array([np.nan, np.inf, np.inf, 1], np.float32)
    assert largest_gap(a, apart) == math.inf
    assert math.isnan(largest_gap(a, np.ones(4, np.float32)) or 0)


def test_integers_are_exact() -> None:
    low, high = np.array([-(2**63), 5]), np.array([2**63 - 1, 5])
    assert largest_gap(low, high) == float(2**64 - 1)
    assert largest_gap(np.array([2**60 + 1]), np.array([2**60])) == 1
    assert largest_gap(np.array([-1], np.int8), np.array([255], np.uint8)) == 256
    assert largest_gap(np.array([True, False]), np.array([True, True])) == 1
    assert signed_differences(np.array([2**60]), np.array([2**60 + 1])).tolist() == [-1]
    assert difference(np.array([2**60 + 1]), np.array([2**60])).different == 1


def test_tensors_of_different_types_are_compared_as_numbers() -> None:
    assert largest_gap(np.array([1, 2], np.float32), np.array([1, 2.5], ml_dtypes.bfloat16)) == 0.5
    packed = np.arange(8, dtype=np.uint8).view(ELEMENT_TYPES["u3"].dtype)
    assert largest_gap(packed, np.arange(8, dtype=np.int32)) == 0


def test_texts_and_other_shapes_have_no_gap() -> None:
    a, b = (np.array(["x", last], ELEMENT_TYPES["string"].dtype) for last in ("y", "z"))
    assert largest_gap(a, b) is None and largest_gap(a, np.zeros(2)) is None
    assert largest_gap(np.zeros(2), np.zeros(3)) is None
    assert (difference(a, b).change, difference(a, b).different) == (Change.NUMBER, 1)


def test_a_difference_is_that_of_the_whole_and_not_of_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(13)
    a, b = generator.normal(size=(2, 30, 50))
    whole = difference(a, b)
    monkeypatch.setattr(module, "_PART", 64)
    parts = difference(a, b)
    assert (parts.at, parts.largest, parts.different, parts.beyond) == (
        whole.at,
        whole.largest,
        whole.different,
        whole.beyond,
    )
    assert parts.rms == pytest.approx(whole.rms) and parts.relative == whole.relative


def test_nothing_differs_in_nothing() -> None:
    assert largest_gap(np.zeros(0), np.zeros(0)) == 0
    assert difference(np.zeros(0), np.zeros(0)).change is Change.SAME
