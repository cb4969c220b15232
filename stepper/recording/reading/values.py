"""Tensors as bytes and back, exactly: `.npy` where numpy's format knows the element type, else a form of our own.

Our own form is a line of JSON after a magic word (`{"type": "bf16", "shape": [2, 3]}`) and then the bytes of the
elements in row-major order; texts are their lengths in bytes (64 bits each, little-endian) and then their UTF-8.

Bytes are not the whole of a tensor: a sum may depend on the order in which its elements lie in memory. So a value of a
machine is stored with its `Layout`, and a run that goes on from it computes the same bits.
"""

from __future__ import annotations

import io
import json
import math
from typing import Any, Final, NamedTuple

import numpy as np

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array, is_of_numpy

_MAGIC: Final = b"STEPPER VALUE 1\n"
_LONGEST_HEADER: Final = 4096
_MOST_DIMENSIONS: Final = 64
_WIDEST: Final = 16
_SMALL_SPAN: Final = 1024


def encoded(array: Array) -> bytes:
    """The bytes of a tensor, in row-major order whatever its layout."""
    if array.dtype.kind in "biuf" and is_of_numpy(array.dtype):
        buffer = io.BytesIO()
        header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(buffer, header)
        return b"".join((buffer.getvalue(), np.ascontiguousarray(array).data))
    header = {"type": element_types.of_dtype(array.dtype).name, "shape": list(array.shape)}
    content = _encoded_texts(array) if array.dtype == STRING_DTYPE else np.ascontiguousarray(array).tobytes()
    return _MAGIC + json.dumps(header).encode() + b"\n" + content


def decoded(content: bytes) -> Array:
    """The tensor in bytes that nobody vouches for. ValueError for anything but what `encoded` gives."""
    if content.startswith(_MAGIC):
        return _decoded_own(content[len(_MAGIC) :])
    buffer = io.BytesIO(content)
    if np.lib.format.read_magic(buffer) != (1, 0):
        raise ValueError("a .npy of another version than 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer, max_header_size=_LONGEST_HEADER)
    if fortran or dtype.kind not in "biuf":
        raise ValueError(f"a .npy of type {dtype}, or not in row-major order")
    return _from_bytes(memoryview(content)[buffer.tell() :], _checked_shape(shape), dtype)


def _decoded_own(content: bytes) -> Array:
    end = content.index(b"\n", 0, _LONGEST_HEADER)
    header = json.loads(content[:end])
    element_type = element_types.by_name(header["type"])
    if element_type is None:
        raise ValueError("a value of an unknown element type")
    shape, rest = _checked_shape(header["shape"]), memoryview(content)[end + 1 :]
    if element_type.dtype == STRING_DTYPE:
        return _decoded_texts(rest, shape)
    return _from_bytes(rest, shape, element_type.dtype)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (list, tuple)) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError("a value whose shape is no short list of sizes")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ValueError("a value whose shape is no list of sizes")
    return tuple(shape)


def _from_bytes(content: memoryview, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("a value whose shape does not fit the number of its bytes")
    # Not a view of the bytes: a tensor's memory is aligned, and belongs to it.
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = np.frombuffer(content, np.uint8)
    return array


def _encoded_texts(array: Array) -> bytes:
    texts = [str(text).encode() for text in array.ravel().tolist()]
    return np.array([len(text) for text in texts], "<i8").tobytes() + b"".join(texts)


def _decoded_texts(content: memoryview, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    if count * 8 > len(content):
        raise ValueError("a value whose shape does not fit the number of its bytes")
    lengths = np.frombuffer(content[: count * 8], "<i8").tolist()
    if any(length < 0 for length in lengths) or count * 8 + sum(lengths) != len(content):
        raise ValueError("texts whose lengths do not fit the number of bytes")
    texts, begin = [], count * 8
    for length in lengths:
        texts.append(bytes(content[begin : begin + length]).decode())
        begin += length
    return np.array(texts, STRING_DTYPE).reshape(shape)


class Layout(NamedTuple):
    """How a machine's value lies in memory: a numpy scalar or an array, and the array's strides in elements.

    `strides` is None for an array in row-major order.
    """

    scalar: bool
    strides: tuple[int, ...] | None


def layout_of(value: Any) -> Layout:
    """The layout of a value. Strides that leave most of the memory unused are closed up, in the same order."""
    if isinstance(value, np.generic):
        return Layout(True, None)
    if value.size == 0 or value.dtype == STRING_DTYPE or is_row_major(value):
        return Layout(False, None)
    item = value.dtype.itemsize
    strides = tuple(stride // item for stride in value.strides)
    if any(stride % item for stride in value.strides) or not _is_near(value.shape, strides):
        strides = _closed_up(value.shape, strides)
    return Layout(False, strides)


def is_row_major(array: Array) -> bool:
    """Whether the strides are those of a new array; dimensions of 1 count too, for a concatenation may stretch them."""
    step = array.dtype.itemsize
    for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if stride != step:
            return False
        step *= size
    return True


def laid_out(array: Array, layout: Layout) -> Any:
    """A tensor in row-major order as the value of this layout. ValueError for a layout that does not fit."""
    if layout.scalar:
        if array.ndim:
            raise ValueError("a scalar that has dimensions")
        return array[()]
    if layout.strides is None:
        return array
    if len(layout.strides) != array.ndim or not array.size or array.dtype == STRING_DTYPE:
        raise ValueError("strides that do not fit the shape")
    if not _is_near(array.shape, layout.strides):
        raise ValueError("strides that reach too far")
    return _strided(array, layout.strides)


def _strided(array: Array, strides: tuple[int, ...]) -> Array:
    item = array.dtype.itemsize
    before = sum(-stride * (size - 1) for size, stride in zip(array.shape, strides, strict=True) if stride < 0)
    memory = np.zeros(_span(array.shape, strides), array.dtype)
    steps = tuple(stride * item for stride in strides)
    view: Array = np.ndarray(array.shape, array.dtype, memory, before * item, steps)
    view[...] = array
    if len(memory) == array.size and min(strides) > 0:
        # Without gaps: a tensor that owns its memory, as most that are not views of others do.
        return np.array(view, order="K", copy=True)
    return view


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 1 + sum(abs(stride) * (size - 1) for size, stride in zip(shape, strides, strict=True))


def _is_near(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return _span(shape, strides) <= _WIDEST * math.prod(shape) + _SMALL_SPAN


def _closed_up(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    found, step = [0] * len(shape), 1
    for axis in sorted(range(len(shape)), key=lambda axis: (abs(strides[axis]), -axis)):
        if strides[axis]:
            found[axis] = step if strides[axis] > 0 else -step
            step *= shape[axis]
    return tuple(found)
