"""String tensors: packed, unpacked, and through the operations on shapes."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.element_types import STRING_DTYPE
from stepper.errors import KernelError
from tests.ops.bound import kernel
from tests.tables import each_row

TEXTS = np.array([["ab", "", "héé"], ["x", "日本", "q"]], STRING_DTYPE)


def test_unpacked_strings_are_bytes_between_begins_and_ends() -> None:
    begins, ends, symbols = kernel("StringTensorUnpack", 15)(TEXTS)
    assert begins.tolist() == [[0, 2, 2], [7, 8, 14]]
    assert ends.tolist() == [[2, 2, 7], [8, 14, 15]]
    assert (begins.dtype, ends.dtype, symbols.dtype) == (np.int32, np.int32, np.uint8)
    assert symbols.tobytes().decode() == "abhééx日本q"


@each_row("texts", [TEXTS, TEXTS[0, 0, ...], TEXTS[:0]], ids=["matrix", "scalar", "empty"])
def test_packing_undoes_unpacking(texts: np.ndarray) -> None:
    packed = kernel("StringTensorPack", 15)(*kernel("StringTensorUnpack", 15)(texts))
    assert packed.dtype == STRING_DTYPE
    np.testing.assert_array_equal(packed, texts)


def test_the_shape_of_strings() -> None:
    assert kernel("ShapeOf", 3, output_type="i64")(TEXTS).tolist() == [2, 3]


def test_a_gathered_string_outside_is_empty() -> None:
    gathered = kernel("Gather", 8)(TEXTS, np.array([1, 5]), np.array(0))
    assert gathered.tolist() == [["x", "日本", "q"], ["", "", ""]]


@each_row(
    ("begins", "ends", "symbols"),
    [([0], [9], b"abc"), ([-1], [2], b"abc"), ([0], [-1], b"abc"), ([0, 1], [1], b"abc"), ([0], [1], b"\xff")],
)
def test_strings_outside_the_symbols_are_refused(begins: list[int], ends: list[int], symbols: bytes) -> None:
    with pytest.raises(KernelError):
        kernel("StringTensorPack", 15)(np.array(begins), np.array(ends), np.frombuffer(symbols, np.uint8))


def test_strings_that_repeat_their_symbols_without_measure_are_refused() -> None:
    many = np.zeros(2**12, np.int64)
    with pytest.raises(KernelError, match="limit"):
        kernel("StringTensorPack", 15)(many, many + 2**18, np.zeros(2**18, np.uint8))
