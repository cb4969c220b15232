"""Planes: each element of a tensor stands in one place, and the place leads back to it."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES
from stepper.errors import UsageError
from stepper.ir.weights import unpack
from stepper.tensors.element_forms import bits_of, smaller_forms
from stepper.tensors.planes import FOLD, plane_of
from tests.tables import each_row


@each_row("shape", [(), (1,), (5,), (200,), (1, 200, 1), (3, 4), (2, 3, 4), (1, 3, 1, 4), (2, 2, 70, 3)])
def test_what_stands_somewhere_is_found_there_again(shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    plane = plane_of(shape)
    block = plane.block(array, range(plane.height), range(plane.width))
    assert block.shape == (plane.height, plane.width)
    there = 0
    for row in range(plane.height):
        for column in range(plane.width):
            if plane.is_there(row, column):
                element = plane.element(row, column)
                assert array[element] == block[row, column] and plane.place(element) == (row, column)
                there += 1
    assert there == plane.size
    assert plane.width <= FOLD or len([size for size in shape if size > 1]) > 1


def test_axes_are_picked_and_exchanged() -> None:
    array = np.arange(120).reshape(2, 3, 4, 5)
    plane = plane_of(array.shape).at(0, 1).at(1, 2)
    np.testing.assert_array_equal(plane.block(array, range(4), range(5)), array[1, 2])
    turned = plane.with_rows(3)
    np.testing.assert_array_equal(turned.block(array, range(5), range(4)), array[1, 2].T)
    other = plane.with_rows(0)
    np.testing.assert_array_equal(other.block(array, range(2), range(5)), array[:, 2, 0])


@each_row(
    ("wanted", "expected"),
    [
        ((0, slice(None), slice(3, 8)), np.s_[0, :, 3:8]),
        ((..., 1), np.s_[:, :, 1]),
        ((-1,), np.s_[-1]),
        ((slice(None), 2, slice(None, None, 3)), np.s_[:, 2, ::3]),
        ((1, 2, slice(-4, None)), np.s_[1, 2, -4:]),
    ],
)
def test_a_slice_shows_what_numpy_gives(wanted: tuple[object, ...], expected: tuple[object, ...]) -> None:
    array = np.arange(2 * 5 * 10).reshape(2, 5, 10)
    plane = plane_of(array.shape).sliced(wanted)  # type: ignore[arg-type]
    block = plane.block(array, range(plane.height), range(plane.width))
    np.testing.assert_array_equal(block, np.atleast_2d(array[expected]))  # type: ignore[index]
    assert array[plane.element(0, 0)] == block[0, 0]


@each_row("wanted", [(2,), (0, 0, 0, 0), (slice(5, 5),), (..., ...)], ids=str)
def test_a_slice_that_does_not_fit_is_refused(wanted: tuple[object, ...]) -> None:
    with pytest.raises(UsageError):
        plane_of((2, 5, 10)).sliced(wanted)  # type: ignore[arg-type]


@each_row(("name", "code"), [("i4", 0xB), ("u4", 0xB), ("u1", 1), ("u2", 2), ("nf4", 9), ("f4e2m1", 0b1101)], ids=str)
def test_bits_of_packed_types_are_the_codes(name: str, code: int) -> None:
    bits = ELEMENT_TYPES[name].bits
    # A .bin begins with the highest bit of u1, with the lowest bits of the others.
    raw = np.array([code << 7 if bits == 1 else code], np.uint8)
    found = bits_of(unpack(raw, ELEMENT_TYPES[name], 1))
    assert found is not None and int("".join(found.parts), 2) == code


@each_row("value", [2.1070356, -0.0, 1e-41, 65519.9, np.inf, np.nan])
def test_sign_exponent_and_fraction_are_those_of_ieee_754(value: float) -> None:
    array = np.array([value], np.float32)
    found = bits_of(array)
    assert found is not None
    assert [len(part) for part in found.parts] == [1, 8, 23]
    assert int("".join(found.parts), 2) == int(array.view(np.uint32)[0]) == int(found.hexadecimal, 16)


def test_smaller_types_say_how_far_they_are_off() -> None:
    forms = {form.type: form for form in smaller_forms(np.float32(2.1070356))}
    half = float(np.float16(2.1070356))
    assert forms["f16"].value == half and forms["f16"].off == abs(half - float(np.float32(2.1070356)))
    # bfloat16 keeps 8 bits of 2.1070356 = 1.0535178 * 2: rounded to 2 * 135/128.
    assert forms["bf16"].value == 2 * 135 / 128
    assert smaller_forms(np.int32(3)) == ()
