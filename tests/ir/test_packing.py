"""Types narrower than a byte: what is packed is unpacked again, and to the bytes that OpenVINO reads."""

from __future__ import annotations

import numpy as np

from stepper.element_types import ELEMENT_TYPES
from stepper.ir.weights import content, pack, packed_size, unpack
from tests.tables import each_row

NARROW = [name for name, element_type in ELEMENT_TYPES.items() if 0 < element_type.bits < 8]


@each_row("name", NARROW)
@each_row("count", [1, 2, 7, 8, 33])
def test_packing_undoes_unpacking(name: str, count: int) -> None:
    element_type = ELEMENT_TYPES[name]
    raw = np.random.default_rng(3).integers(0, 256, packed_size(element_type, count), np.uint8)
    values = unpack(raw, element_type, count)
    packed = pack(values, element_type)
    assert packed.size == packed_size(element_type, count)
    assert unpack(packed, element_type, count).tobytes() == values.tobytes()
    whole = unpack(raw, element_type, raw.size * 8 // element_type.bits)
    np.testing.assert_array_equal(pack(whole, element_type)[: raw.size], raw)


@each_row(
    "name, codes, packed",
    [
        ("u1", [1, 0, 0, 1], [0b10010000]),
        ("u4", [2, 1, 4], [0x12, 0x04]),
        ("u2", [3, 0, 2, 1], [0b01100011]),
        ("i4", [-1, 2], [0x2F]),
        ("u3", [1, 0, 0, 0, 0, 0, 0, 4], [0b01000000, 0, 0b00000001]),
        ("u6", [0b100001, 2, 0, 0], [0x12, 0, 0b10000000]),
    ],
)
def test_codes_lie_in_the_bytes_as_the_format_says(name: str, codes: list[int], packed: list[int]) -> None:
    element_type = ELEMENT_TYPES[name]
    values = np.array(codes, np.uint8).view(element_type.dtype) if element_type.dtype.names else np.array(codes)
    assert pack(values.astype(element_type.dtype), element_type).tolist() == packed


def test_the_bytes_of_wider_types_are_those_in_memory() -> None:
    assert content(np.array([[1, 2]], np.int16)) == bytes([1, 0, 2, 0])
