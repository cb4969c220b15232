"""Tensors as bytes: what goes in comes out, of every element type and in every layout; what is broken is refused."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, Array, ElementType
from stepper.recording.blobs import MemoryLayout, decoded, encoded, laid_out, layout_of
from tests.tables import each_row

SHAPES = [(), (1,), (0,), (3,), (2, 0, 3), (2, 3, 4)]


def tensor_of(element_type: ElementType, shape: tuple[int, ...]) -> Array:
    source = np.random.default_rng(1)
    count = int(np.prod(shape))
    if element_type.name == "string":
        texts = [["", "a", "löss \0 x", "𝄞" * 40][index % 4] for index in range(count)]
        return np.array(texts, element_type.dtype).reshape(shape)
    codes = source.integers(0, 1 << min(element_type.bits, 8), count * element_type.dtype.itemsize).astype(np.uint8)
    array: Array = (codes & 1 if element_type.name == "boolean" else codes).view(element_type.dtype).reshape(shape)
    return array


@each_row("shape", SHAPES, ids=str)
@each_row("element_type", ELEMENT_TYPES.values(), ids=str)
def test_every_element_type_comes_back_to_the_bit(element_type: ElementType, shape: tuple[int, ...]) -> None:
    tensor = tensor_of(element_type, shape)
    again = decoded(encoded(tensor))
    assert again.dtype == tensor.dtype and again.shape == tensor.shape
    assert again.tolist() == tensor.tolist() if element_type.name == "string" else again.tobytes() == tensor.tobytes()


def test_ordinary_tensors_are_npy_files_that_numpy_reads() -> None:
    tensor = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(np.load(io.BytesIO(encoded(tensor)), allow_pickle=False), tensor, strict=True)


def layouts() -> dict[str, Array]:
    whole = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    return {
        "row-major": whole,
        "column-major": np.asfortranarray(whole),
        "transposed": whole.transpose(2, 0, 3, 1),
        "a computed transposition": np.negative(whole.transpose(2, 0, 3, 1)),
        "a slice": whole[:, 1:2],
        "every second": whole[..., ::2],
        "backwards": whole[:, ::-1, :, ::-1],
        "broadcast": np.broadcast_to(whole[:, :1], whole.shape),
        "a column of a wide one": np.arange(100_000, dtype=np.float32).reshape(10, -1)[:, 7],
        "columns of a wide one": np.arange(100_000, dtype=np.float32).reshape(10, -1)[:, :2].T,
        "a scalar": np.array(3.0)[()],
        "rank 0": np.array(3.0),
    }


@each_row("name", layouts())
def test_a_value_comes_back_as_it_lay_in_memory(name: str) -> None:
    value: Any = layouts()[name]
    layout = layout_of(value)
    again = laid_out(decoded(encoded(np.asarray(value))), layout)
    assert type(again) is type(value) and again.dtype == value.dtype
    np.testing.assert_array_equal(again, value, strict=True)
    assert np.argsort(again.strides, kind="stable").tolist() == np.argsort(value.strides, kind="stable").tolist()
    if "of a wide one" not in name:
        assert again.strides == value.strides
    assert np.sum(again) == np.sum(value)


BROKEN = {
    "nothing": b"",
    "no magic": b"hello" * 100,
    "a magic alone": b"\x93NUMPY",
    "our magic alone": b"STEPPER VALUE 1\n",
    "no JSON": b"STEPPER VALUE 1\n{\n",
    "nested JSON": b"STEPPER VALUE 1\n" + b"[" * 4000 + b"\n",
    "an unknown type": b'STEPPER VALUE 1\n{"type": "x", "shape": []}\n',
    "a shape that is none": b'STEPPER VALUE 1\n{"type": "bf16", "shape": "12"}\n',
    "a negative shape": b'STEPPER VALUE 1\n{"type": "bf16", "shape": [-1]}\n',
    "a huge shape": b'STEPPER VALUE 1\n{"type": "bf16", "shape": [4611686018427387903, 0]}\n\0\0',
    "too many dimensions": b'STEPPER VALUE 1\n{"type": "bf16", "shape": [' + b"1," * 70 + b"1]}\n\0\0",
    "texts without end": b'STEPPER VALUE 1\n{"type": "string", "shape": [1]}\n' + struct.pack("<q", 2**62),
    "texts of negative length": b'STEPPER VALUE 1\n{"type": "string", "shape": [1]}\n' + struct.pack("<q", -1),
    "no UTF-8": b'STEPPER VALUE 1\n{"type": "string", "shape": [1]}\n' + struct.pack("<q", 1) + b"\xff",
}


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


BROKEN |= {
    "a .npy larger than it is": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "a .npy of objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n."),
    "a .npy of records": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", b"\0" * 4),
    "a .npy with code": npy("__import__('os').abort()"),
    "a .npy that is deep": npy("(" * 1000 + ")" * 1000),
    "a .npy without end": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", b"\0" * 7),
    "a .npy of booleans for sizes": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (True,), }", b"\0" * 4),
}


@each_row("content", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, RecursionError)):
        decoded(content)


@each_row(
    "layout",
    [
        MemoryLayout(True, None),
        MemoryLayout(False, (1,)),
        MemoryLayout(False, (2**39, 1)),
        MemoryLayout(False, (-(2**39), 1)),
    ],
    ids=str,
)
def test_a_layout_that_does_not_fit_is_refused(layout: MemoryLayout) -> None:
    with pytest.raises(ValueError, match=r"scalar|strides"):
        laid_out(np.zeros((2, 3), np.float32), layout)
