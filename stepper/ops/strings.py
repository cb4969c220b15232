"""String tensors as three numeric ones and back: where each string begins and ends among the bytes of all, in UTF-8.

Source: the operation sets' pages of StringTensorPack and StringTensorUnpack.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.registry import kernel


@kernel("StringTensorPack", 15)
def string_tensor_pack(begins: Array, ends: Array, symbols: Array) -> Array:
    """Return the strings symbols[begins[i]:ends[i]]."""
    text, starts, stops = symbols.tobytes(), integers(begins), integers(ends)
    if begins.shape != ends.shape:
        raise KernelError(f"begins {shape_text(begins.shape)} and ends {shape_text(ends.shape)} differ in shape")
    if starts and not 0 <= min(starts + stops) <= max(starts + stops) <= len(text):
        raise KernelError(f"a string begins or ends outside the {len(text)} symbols")
    ensure_allocatable((sum(max(0, stop - start) for start, stop in zip(starts, stops, strict=True)),))
    try:
        strings = [text[start:stop].decode() for start, stop in zip(starts, stops, strict=True)]
    except UnicodeDecodeError as error:
        raise KernelError(f"a string is not UTF-8: {error}") from None
    return np.array(strings, STRING_DTYPE).reshape(begins.shape)


@kernel("StringTensorUnpack", 15)
def string_tensor_unpack(data: Array) -> tuple[Array, Array, Array]:
    """Begins, ends (i32) and the bytes of all strings, in order."""
    encoded = [str(string).encode() for string in data.reshape(-1)]
    ends = np.cumsum([len(string) for string in encoded], dtype=np.int32)
    begins = np.concatenate([np.zeros(1, np.int32), ends])[:-1]
    symbols = np.frombuffer(b"".join(encoded), np.uint8)
    return begins.reshape(data.shape), ends.reshape(data.shape), symbols
