"""Statistics of tensors: exact arithmetic and plain loops are the oracle."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, FLOATING
from stepper.tensors.statistics import CHUNK, Statistics, number_of, statistics
from tests.tables import each_row

FLOATS = sorted((name for name, each in ELEMENT_TYPES.items() if each.dtype in FLOATING), key=str)
INTEGERS = ["boolean", "i4", "i8", "i16", "i32", "i64", "u1", "u2", "u4", "u8", "u16", "u32", "u64"]


def random_bits(name: str, shape: tuple[int, ...], seed: int) -> Any:
    """Every bit pattern of the type is as likely, so NaN, infinities and subnormals come by themselves."""
    element_type = ELEMENT_TYPES[name]
    generator = np.random.default_rng(seed)
    if element_type.bits < 8:
        return generator.integers(0, 2**element_type.bits, shape).astype(np.uint8).view(element_type.dtype)
    size = math.prod(shape) * element_type.dtype.itemsize
    return np.frombuffer(generator.bytes(size), element_type.dtype).reshape(shape)


def by_hand(tensor: Any, name: str) -> Statistics:
    """One element after the other, in exact fractions."""
    values = [float(value) for value in tensor.reshape(-1)]
    tiny = float(ml_dtypes.finfo(ELEMENT_TYPES[name].dtype).smallest_normal)
    finite = [(Fraction(value), place) for place, value in enumerate(values) if math.isfinite(value)]
    counts = {
        "nan": sum(math.isnan(value) for value in values),
        "positive_infinity": values.count(math.inf),
        "negative_infinity": values.count(-math.inf),
        "zeros": values.count(0.0),
        "subnormals": sum(0 < abs(value) < tiny for value in values),
    }
    if not finite:
        return Statistics(name, tensor.shape, len(values), **counts)
    mean = sum(value for value, _ in finite) / len(finite)
    spread = sum((value - mean) ** 2 for value, _ in finite) / len(finite)
    low, high = min(finite), max(finite, key=lambda pair: (pair[0], -pair[1]))
    return Statistics(
        name,
        tensor.shape,
        len(values),
        float(low[0]),
        float(high[0]),
        float(mean),
        root(spread),
        root(sum(value**2 for value, _ in finite)),
        low[1],
        high[1],
        **counts,
    )


def root(square: Fraction) -> float:
    """The square root, also of what no float can hold."""
    shift = 2 * ((square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    try:
        return math.ldexp(math.sqrt(square / Fraction(2) ** shift), shift // 2)
    except OverflowError:
        return math.inf


def assert_same(actual: Statistics, expected: Statistics) -> None:
    for field in Statistics.__slots__:
        one, other = getattr(actual, field), getattr(expected, field)
        if field in ("mean", "std", "norm") and one is not None and other is not None:
            largest = max(abs(expected.min or 0), abs(expected.max or 0))
            assert one == pytest.approx(other, rel=1e-9, abs=1e-13 * largest), field
        else:
            assert one == other, field


@each_row("name", FLOATS)
@each_row("shape", [(), (1,), (7,), (3, 5), (2000,)], quick=4)
def test_floats_of_every_bit_pattern(name: str, shape: tuple[int, ...]) -> None:
    for seed in range(4):
        tensor = random_bits(name, shape, seed)
        assert_same(statistics(tensor), by_hand(tensor, name))


@each_row("scale", [1e-320, 1e-300, 1e-160, 1.0, 1e160, 1.7e308])
def test_f64_over_its_whole_range(scale: float) -> None:
    tensor = np.random.default_rng(9).uniform(-1, 1, 500) * scale
    assert_same(statistics(tensor), by_hand(tensor, "f64"))
    tensor[:3] = [math.nan, math.inf, 0]
    assert_same(statistics(tensor), by_hand(tensor, "f64"))


@each_row("name", INTEGERS)
def test_integers_are_exact(name: str) -> None:
    generator = np.random.default_rng(10)
    bits, signed = ELEMENT_TYPES[name].bits, name.startswith("i")
    low, high = (
        (0, 1) if name == "boolean" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    )
    for size in (1, 5, CHUNK + 3):
        numbers = generator.integers(low, high, size, np.uint64 if low == 0 else np.int64, endpoint=True)
        numbers[:2] = [high, low][:size]
        tensor = numbers.astype(ELEMENT_TYPES[name].dtype)
        exact = [int(number) for number in numbers]
        actual = statistics(tensor)
        assert (actual.min, actual.max) == (min(exact), max(exact))
        assert type(actual.min) is int
        assert (actual.argmin, actual.argmax) == (exact.index(min(exact)), exact.index(max(exact)))
        assert actual.zeros == exact.count(0)
        mean = Fraction(sum(exact), size)
        assert actual.mean == float(mean)
        assert actual.std == pytest.approx(root(sum((number - mean) ** 2 for number in exact) / size), rel=1e-9)
        assert actual.norm == pytest.approx(root(Fraction(sum(number**2 for number in exact))), rel=1e-9)


def test_a_small_spread_far_from_zero_is_seen() -> None:
    far = np.array([2**63 - 1, 2**63 - 3] * CHUNK, np.int64)
    assert statistics(far).std == 1
    assert statistics(np.array([2**51, 2**51 + 1])).mean == 2**51 + 0.5
    floats = np.tile(np.array([1e8, 1e8 + 8], np.float32), CHUNK)
    assert statistics(floats).std == 4


def test_packed_codes_and_texts() -> None:
    assert statistics(np.arange(8, dtype=np.uint8).view(ELEMENT_TYPES["u3"].dtype)).max == 7
    assert statistics(np.arange(64, dtype=np.uint8).view(ELEMENT_TYPES["u6"].dtype)).mean == 31.5
    nf4 = statistics(np.arange(16, dtype=np.uint8).view(ELEMENT_TYPES["nf4"].dtype))
    assert (nf4.type, nf4.min, nf4.max, nf4.zeros) == ("nf4", -1, 1, 1)
    texts = np.array([["a", "b"]], ELEMENT_TYPES["string"].dtype)
    assert statistics(texts) == Statistics("string", (1, 2), 2)


def test_nothing_and_nothing_finite() -> None:
    assert statistics(np.zeros((0, 3), np.float32)) == Statistics("f32", (0, 3), 0)
    assert statistics(np.array([np.nan, -np.inf], np.float16)) == Statistics("f16", (2,), 2, nan=1, negative_infinity=1)
    assert statistics(np.float32(3)).finite == 1


@each_row("places", [[0], [CHUNK - 1, CHUNK], [5, 2 * CHUNK + 7], range(CHUNK, 2 * CHUNK)])
def test_chunks_are_put_together(places: Any) -> None:
    tensor = np.random.default_rng(11).normal(3, 2, 3 * CHUNK - 11).astype(np.float32)
    tensor[places] = np.nan
    known = tensor[~np.isnan(tensor)].astype(np.float64)
    actual = statistics(tensor)
    assert actual.nan == len(places)
    assert actual.mean == pytest.approx(known.mean(), rel=1e-12)
    assert actual.std == pytest.approx(known.std(), rel=1e-12)
    assert actual.argmax == np.nanargmax(tensor)
    assert actual.argmin == np.nanargmin(tensor)


def test_views_count_in_row_major_order() -> None:
    base = np.random.default_rng(12).normal(size=(70, 300)).astype(np.float32)
    for view in (base.T, base[::-2, 3:], np.broadcast_to(base[0], (40, 300)), base > 0, (base > 0).T):
        assert_same(statistics(view), statistics(np.ascontiguousarray(view)))


def test_large_tensors_take_little_memory() -> None:
    tensor = np.ones(2_000_000, np.float16)
    tracemalloc.start()
    statistics(tensor)
    statistics(tensor[::-1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


def test_the_fitting_statistic_is_chosen_by_the_kind_of_the_tensor() -> None:
    assert number_of(np.array([3.0, -4.0], np.float32), "auto") == pytest.approx(math.sqrt(12.5))
    assert number_of(np.array([[7, 1], [0, 12]], np.int64), "auto") == 12
    assert number_of(np.array([True, False, True, True]), "auto") == 0.75
    assert number_of(np.array([np.nan, 1.0]), "auto") != number_of(np.array([np.nan, 1.0]), "auto")
    assert number_of(np.array([np.inf, 1.0]), "last") == np.inf
