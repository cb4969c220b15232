"""Conversions that the runtime does otherwise than the element types say, or not at all."""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, Array
from stepper.errors import KernelError
from stepper.ops.convert import convert_promote_types, converted
from tests.tables import each_row

NUMERIC = [name for name in ELEMENT_TYPES if name != "string"]
INTEGER_BITS = {name: element_type.bits for name, element_type in ELEMENT_TYPES.items() if name[0] in "iu"}


def to(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return converted(x, ELEMENT_TYPES[name].dtype)


def of(name: str, *values: float) -> Array:
    return to(name, np.array(values))


def wrapped(value: int, name: str) -> int:
    bits, signed = INTEGER_BITS[name], name.startswith("i")
    low = -(2 ** (bits - 1)) if signed else 0
    return (value - low) % 2**bits + low


@each_row(("source", "target"), list(itertools.product(NUMERIC, NUMERIC)))
def test_every_type_converts_to_every_other_in_every_shape(source: str, target: str) -> None:
    x = to(source, np.array([[0, 1], [1, 0]], np.int32))
    for part in (x, x[0, 1], x[:0]):
        result = to(target, part)
        assert (result.dtype, result.shape) == (ELEMENT_TYPES[target].dtype, part.shape)
    if "f8e8m0" not in (source, target):
        assert to("f32", to(target, x)).tolist() == [[0, 1], [1, 0]]


@each_row("name", INTEGER_BITS)
def test_integers_wrap_and_floats_lose_their_fraction(name: str) -> None:
    widest = "u64" if name == "u64" else "i64"
    whole = np.arange(-300, 300, 7)
    assert to(widest, to(name, whole)).tolist() == [wrapped(value, name) for value in whole.tolist()]
    reals = np.array([-9.9, -1.5, -0.5, 0.5, 1.9, 3.99, 100.6])
    assert to(widest, to(name, reals)).tolist() == [wrapped(int(value), name) for value in reals.tolist()]


def test_64_bit_integers_are_exact() -> None:
    assert to("u64", np.array([-1])).tolist() == [2**64 - 1]
    assert to("i64", np.array([2**53 + 1], np.uint64)).tolist() == [2**53 + 1]
    assert to("u64", np.array([2.0**63, 2.0**63 + 2.0**40, 5.0])).tolist() == [2**63, 2**63 + 2**40, 5]


def test_everything_but_zero_is_true() -> None:
    assert of("boolean", 0.0, -0.0, 1e-40, np.nan, -3).tolist() == [False, False, True, True, True]
    assert to("boolean", np.array([0, 2**40])).tolist() == [False, True]


@each_row("name", ["f16", "bf16", "f8e4m3", "f8e5m2"])
def test_a_float_is_rounded_once_however_wide_its_source(name: str) -> None:
    dtype = ELEMENT_TYPES[name].dtype
    one, two = np.array([1.0]).astype(dtype), np.array([2.0]).astype(dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    neighbours = np.arange(one.view(bits)[0], two.view(bits)[0], dtype=bits).view(dtype).astype(np.float64)
    middles = (neighbours[1:] + neighbours[:-1]) / 2
    for offset, expected in ((-1e-12, neighbours[:-1]), (1e-12, neighbours[1:])):
        np.testing.assert_array_equal(to(name, middles + offset).astype(np.float64), expected)
        np.testing.assert_array_equal(to(name, -middles - offset).astype(np.float64), -expected)


def test_an_integer_is_rounded_to_half_precision_once() -> None:
    assert to("f16", np.array([2049 + 2**0, 4098, 65519, 65520])).tolist() == [2050, 4096, 65504, np.inf]


def test_nf4_takes_the_nearest_of_its_sixteen_values() -> None:
    table = to("f32", np.arange(16, dtype=np.uint8).view(ELEMENT_TYPES["nf4"].dtype))
    assert (table[0], table[7], table[15]) == (-1, 0, 1)
    values = np.linspace(-1.3, 1.3, 53, dtype=np.float32)
    nearest = [
        min(table.tolist(), key=lambda entry: abs(Fraction(entry) - Fraction(value))) for value in values.tolist()
    ]
    assert to("f32", to("nf4", values)).tolist() == nearest


def test_f4_goes_to_the_even_neighbour_and_stops_at_its_greatest() -> None:
    assert to("f32", of("f4e2m1", 0.25, 0.26, 0.75, 2.5, 5.0, 100, -100)).tolist() == [0, 0.5, 1, 2, 4, 6, -6]


def test_f8e8m0_is_the_nearest_power_of_two() -> None:
    assert to("f64", of("f8e8m0", 1, 2.9, 3, 3.1, 6, 0.7, 0, -5, np.inf)).tolist() == (
        [1, 2, 2, 4, 8, 0.5, 2.0**-127, 2.0**-127, 2.0**127]
    )
    assert np.isnan(to("f32", of("f8e8m0", np.nan))).all()


def test_no_conversion_copies_a_tensor_that_has_the_type_already() -> None:
    x = np.ones(2, np.float32)
    assert to("f32", x) is x


def test_strings_are_refused() -> None:
    with pytest.raises(KernelError, match="string"):
        to("f32", np.array(["1"], np.dtypes.StringDType()))


def promoted(a: str, b: str, *, scalar: bool = False, **attributes: bool) -> str:
    first = to(a, np.array(1)) if scalar else to(a, np.ones(2))
    results = convert_promote_types(first, to(b, np.ones(2)), **attributes)
    assert results[0].dtype == results[1].dtype
    return next(name for name in NUMERIC if ELEMENT_TYPES[name].dtype == results[0].dtype)


@each_row(
    ("a", "b", "safe", "unsafe"),
    [
        ("f32", "f32", "f32", "f32"),
        ("boolean", "u8", "u8", "u8"),
        ("i8", "f32", "f32", "f32"),
        ("i32", "u8", "i32", "i32"),
        ("f16", "i64", None, "f16"),
        ("i8", "u8", None, "i16"),
        ("i16", "u32", None, "i64"),
        ("f16", "bf16", None, "f32"),
        ("f8e4m3", "f8e5m2", None, "f16"),
        ("u64", "i8", None, "f32"),
        ("u8", "u16", "u16", "u16"),
        ("i4", "u1", "i4", "i4"),
    ],
)
def test_two_types_are_promoted_to_their_common_one(a: str, b: str, safe: str | None, unsafe: str) -> None:
    assert promoted(a, b, promote_unsafe=True) == promoted(b, a, promote_unsafe=True) == unsafe
    if safe:
        assert promoted(a, b) == promoted(b, a) == safe
    else:
        with pytest.raises(KernelError, match="no common type"):
            promoted(a, b)


def test_a_scalar_gives_way_to_a_tensor_of_its_kind_only() -> None:
    assert promoted("i64", "u8", scalar=True, pytorch_scalar_promotion=True, promote_unsafe=True) == "u8"
    assert promoted("f16", "i8", scalar=True, pytorch_scalar_promotion=True) == "f16"
    assert promoted("i8", "i64", scalar=True, pytorch_scalar_promotion=True) == "i64"
    with pytest.raises(KernelError, match="no common type"):
        promoted("i64", "u8", scalar=True, pytorch_scalar_promotion=True)


def test_the_promotion_beyond_64_bits_can_be_chosen() -> None:
    first, _ = convert_promote_types(
        np.ones(1, np.uint64),
        np.ones(1, np.int32),
        promote_unsafe=True,
        u64_integer_promotion_target=ELEMENT_TYPES["bf16"],
    )
    assert first.dtype == ml_dtypes.bfloat16
