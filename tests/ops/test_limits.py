"""A tensor of a size that a file names is refused before it is allocated."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.errors import TensorTooLarge
from stepper.ops.operands import LARGEST_TENSOR, ensure_allocatable
from tests.ops.bound import i64, kernel
from tests.tables import each_row


@each_row("shape", [[2**62], [2**31, 2**31], [0, 2**62], [2**62, 0, 4]])
def test_a_shape_is_refused_also_where_a_dimension_is_0(shape: list[int]) -> None:
    with pytest.raises(TensorTooLarge, match=r"[KMGTPE]B, the limit is 200 MB"):
        ensure_allocatable(shape, np.float32)


def test_the_element_type_counts() -> None:
    token = LARGEST_TENSOR.set(1000)
    try:
        ensure_allocatable([1000], np.uint8)
        with pytest.raises(TensorTooLarge):
            ensure_allocatable([1000], np.float16)
    finally:
        LARGEST_TENSOR.reset(token)


@each_row(
    ("type", "version", "inputs", "attributes"),
    [
        ("Broadcast", 3, [np.float32(1), i64(2**40)], {}),
        ("Broadcast", 3, [np.zeros((0, 1), np.float32), i64(0, 2**62)], {}),
        ("Tile", 1, [np.ones(3, np.float32), i64(2**40)], {}),
        ("Range", 4, [np.int64(0), np.int64(2**40), np.int64(1)], {"output_type": "i64"}),
        ("OneHot", 1, [i64(0), np.int64(2**40), np.float32(1), np.float32(0)], {"axis": "0"}),
        ("Pad", 1, [np.ones(3, np.float32), i64(2**40), i64(0)], {"pad_mode": "constant"}),
        ("Eye", 9, [i64(0), i64(2**62), i64(0)], {"output_type": "f32"}),
    ],
)
def test_a_number_in_an_input_does_not_exhaust_the_memory(
    type: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str]
) -> None:
    with pytest.raises(TensorTooLarge):
        kernel(type, version, **attributes)(*inputs)
