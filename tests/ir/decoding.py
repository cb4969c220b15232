"""How the bytes of a .bin read, element type by element type, in plain Python: an independent second opinion."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator

Number = float | int | bool


def minifloat(code: int, exponent_bits: int, mantissa_bits: int) -> float:
    """The number that sign, exponent and mantissa make under the usual bias, without infinities and NaNs."""
    bias = 2 ** (exponent_bits - 1) - 1
    sign = -1 if code >> (exponent_bits + mantissa_bits) else 1
    exponent = (code >> mantissa_bits) % 2**exponent_bits
    fraction = (code % 2**mantissa_bits) / 2**mantissa_bits
    return sign * (fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias))


def f8e4m3(code: int) -> float:
    return math.nan if code % 128 == 127 else minifloat(code, 4, 3)


def f8e5m2(code: int) -> float:
    if code % 128 >= 124:
        infinity = -math.inf if code >= 128 else math.inf
        return infinity if code % 128 == 124 else math.nan
    return minifloat(code, 5, 2)


def f8e8m0(code: int) -> float:
    return math.nan if code == 255 else 2.0 ** (code - 127)


def f4e2m1(code: int) -> float:
    return (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)[code % 8] * (-1 if code >= 8 else 1)


def nibbles(content: bytes) -> Iterator[int]:
    for byte in content:
        yield byte % 16
        yield byte // 16


def bits(byte: int, widths: tuple[int, ...]) -> list[int]:
    """The fields of one byte, that in the highest bits first."""
    text = f"{byte:08b}"
    starts = [sum(widths[:index]) for index in range(len(widths))]
    return [int(text[start : start + width], 2) for start, width in zip(starts, widths, strict=True)]


def u3(content: bytes) -> Iterator[int]:
    for index in range(0, len(content), 3):
        first, second, high = content[index : index + 3]
        low = bits(first, (2,) * 4) + bits(second, (2,) * 4)
        yield from (a + 4 * b for a, b in zip(low, bits(high, (1,) * 8), strict=True))


def u6(content: bytes) -> Iterator[int]:
    for index in range(0, len(content), 3):
        first, second, high = content[index : index + 3]
        low = bits(first, (4, 4)) + bits(second, (4, 4))
        yield from (a + 16 * b for a, b in zip(low, bits(high, (2,) * 4), strict=True))


def each(size: int, decode: Callable[[bytes], Number]) -> Callable[[bytes], list[Number]]:
    return lambda content: [decode(content[index : index + size]) for index in range(0, len(content), size)]


def integer(size: int, *, signed: bool) -> Callable[[bytes], list[Number]]:
    return each(size, lambda part: int.from_bytes(part, "little", signed=signed))


def floating(letter: str) -> Callable[[bytes], list[Number]]:
    return each(struct.calcsize(letter), lambda part: float(struct.unpack(f"<{letter}", part)[0]))


DECODERS: dict[str, Callable[[bytes], list[Number]]] = {
    "boolean": lambda content: [byte != 0 for byte in content],
    "bf16": each(2, lambda part: float(struct.unpack("<f", b"\0\0" + part)[0])),
    "f16": floating("e"),
    "f32": floating("f"),
    "f64": floating("d"),
    "i4": lambda content: [code - 16 if code >= 8 else code for code in nibbles(content)],
    "i8": integer(1, signed=True),
    "i16": integer(2, signed=True),
    "i32": integer(4, signed=True),
    "i64": integer(8, signed=True),
    "u1": lambda content: [bit for byte in content for bit in bits(byte, (1,) * 8)],
    "u2": lambda content: [field for byte in content for field in reversed(bits(byte, (2,) * 4))],
    "u3": lambda content: list(u3(content)),
    "u4": lambda content: list(nibbles(content)),
    "u6": lambda content: list(u6(content)),
    "u8": list,
    "u16": integer(2, signed=False),
    "u32": integer(4, signed=False),
    "u64": integer(8, signed=False),
    "nf4": lambda content: list(nibbles(content)),  # the codes, which only a Convert looks up
    "f8e4m3": lambda content: [f8e4m3(code) for code in content],
    "f8e5m2": lambda content: [f8e5m2(code) for code in content],
    "f8e8m0": lambda content: [f8e8m0(code) for code in content],
    "f4e2m1": lambda content: [f4e2m1(code) for code in nibbles(content)],
}
"""For each element type but string: the values in some bytes, all of them used."""
