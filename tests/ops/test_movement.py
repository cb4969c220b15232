"""Movement operations pass every element type through and refuse sizes that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepper.element_types import ELEMENT_TYPES, ElementType
from stepper.errors import KernelError
from tests.ops.bound import i64, kernel
from tests.tables import each_row

HUGE = 2**62


def tensor(element_type: ElementType) -> np.ndarray:
    """Four distinct elements (two where the type has no more) in a square."""
    dtype = element_type.dtype
    if element_type.name == "string":
        return np.array([["a", "bc"], ["", "é"]], dtype)
    if dtype.names:
        return np.array([[1, 2], [3, 0]], np.uint8).view(dtype)
    return np.array([[1, 4], [2, 8]] if element_type.name == "f8e8m0" else [[1, 0], [2, 3]]).astype(dtype)


AXIS, TWO = np.array(1, np.int64), np.array(2, np.int64)
# The operation, its attributes, its inputs of the tensor x, and which of x's elements must come out where.
MOVES: list[tuple[str, int, dict[str, str], Callable[[Any], list[Any]], Any]] = [
    ("Reshape", 1, {}, lambda x: [x, i64(4, -1)], [[0], [1], [2], [3]]),
    ("Squeeze", 1, {}, lambda x: [x[:, :1], i64(1)], [0, 2]),
    ("Squeeze", 15, {}, lambda x: [x[:1]], [0, 1]),
    ("Unsqueeze", 1, {}, lambda x: [x, i64(1)], [[[0, 1]], [[2, 3]]]),
    ("Transpose", 1, {}, lambda x: [x, i64(1, 0)], [[0, 2], [1, 3]]),
    ("Concat", 1, {"axis": "1"}, lambda x: [x, x[:, :1]], [[0, 1, 0], [2, 3, 2]]),
    ("Broadcast", 3, {}, lambda x: [x[0], i64(2, 2)], [[0, 1], [0, 1]]),
    ("Tile", 1, {}, lambda x: [x[0], i64(2)], [0, 1, 0, 1]),
    ("Pad", 12, {}, lambda x: [x[0], i64(1), i64(-1), x[1, 1, ...]], [3, 0]),
    ("Pad", 1, {"pad_mode": "edge"}, lambda x: [x[0], i64(1), i64(0)], [0, 0, 1]),
    ("Reverse", 1, {"mode": "index"}, lambda x: [x, i64(0)], [[2, 3], [0, 1]]),
    ("Roll", 7, {}, lambda x: [x, i64(1), i64(0, 1)], [[3, 2], [1, 0]]),
    ("ReverseSequence", 1, {}, lambda x: [x, i64(2, 1)], [[1, 0], [2, 3]]),
    ("OneHot", 1, {}, lambda x: [i64(0), TWO, x[1, 1, ...], x[0, 0, ...]], [[3], [0]]),
    ("Slice", 8, {}, lambda x: [x, i64(1), i64(2), i64(1), i64(1)], [[1], [3]]),
    ("SliceScatter", 15, {}, lambda x: [x, x[1:], i64(0), i64(1), i64(1)], [[2, 3], [2, 3]]),
    ("StridedSlice", 1, {"shrink_axis_mask": "1,1"}, lambda x: [x, i64(1, 0), i64(2, 1)], 2),
    ("Gather", 8, {}, lambda x: [x, i64(-1, 0), AXIS], [[1, 0], [3, 2]]),
    ("Gather", 8, {}, lambda x: [x[0], AXIS, np.array(0, np.int32)], 1),
    ("GatherElements", 6, {"axis": "0"}, lambda x: [x, i64(1, 0).reshape(1, 2)], [[2, 1]]),
    ("GatherND", 8, {}, lambda x: [x, i64(1, 0)], 2),
    ("ScatterUpdate", 3, {}, lambda x: [x, i64(0), x[1:], np.array(0)], [[2, 3], [2, 3]]),
    ("ScatterElementsUpdate", 12, {}, lambda x: [x, i64(1).reshape(1, 1), x[:1, 1:], AXIS], [[0, 1], [2, 3]]),
    ("ScatterNDUpdate", 15, {}, lambda x: [x, i64(0, 1).reshape(1, 2), x[1, :1]], [[0, 2], [2, 3]]),
    ("ShuffleChannels", 3, {"group": "2", "axis": "0"}, lambda x: [x.reshape(4)], [0, 2, 1, 3]),
    ("DepthToSpace", 1, {"block_size": "2"}, lambda x: [x.reshape(1, 4, 1, 1)], [[[[0, 1], [2, 3]]]]),
    ("SpaceToDepth", 1, {"block_size": "2"}, lambda x: [x[None, None]], [[[[0]], [[1]], [[2]], [[3]]]]),
]


@each_row("element_type", ELEMENT_TYPES.values(), ids=str)
@each_row(("type", "version", "attributes", "inputs", "places"), MOVES, ids=[move[0] for move in MOVES])
def test_every_element_type_is_moved_bit_by_bit(
    element_type: ElementType,
    type: str,
    version: int,
    attributes: dict[str, str],
    inputs: Callable[[Any], list[Any]],
    places: Any,
) -> None:
    x = tensor(element_type)
    result = kernel(type, version, **attributes)(*inputs(x))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), x.reshape(-1)[np.array(places)])
    np.testing.assert_array_equal(x, tensor(element_type))


@each_row("element_type", ELEMENT_TYPES.values(), ids=str)
def test_split_passes_every_element_type(element_type: ElementType) -> None:
    x = tensor(element_type)
    for parts in (kernel("Split", 1, num_splits="2")(x, AXIS), kernel("VariadicSplit", 1)(x, AXIS, i64(1, -1))):
        np.testing.assert_array_equal(np.concatenate(parts, 1), x)


@each_row(
    ("type", "version", "attributes", "inputs"),
    [
        ("Broadcast", 3, {}, [np.ones(1), i64(HUGE, 2)]),
        ("Broadcast", 3, {}, [np.ones(3), i64(2)]),
        ("Broadcast", 3, {}, [np.ones(3), i64(-3)]),
        ("Broadcast", 3, {"mode": "explicit"}, [np.ones((2, 3)), i64(3, 2), i64(1, 0)]),
        ("Tile", 1, {}, [np.ones(2), i64(HUGE)]),
        ("Pad", 12, {}, [np.ones(2), i64(HUGE), i64(0)]),
        ("Pad", 12, {"pad_mode": "edge"}, [np.ones((2, 0)), i64(HUGE, 0), i64(0, 0)]),
        ("Pad", 12, {"pad_mode": "edge"}, [np.ones(0), i64(1), i64(0)]),
        ("Pad", 12, {"pad_mode": "reflect"}, [np.ones(3), i64(3), i64(0)]),
        ("Pad", 12, {"pad_mode": "symmetric"}, [np.ones(3), i64(4), i64(0)]),
        ("Pad", 12, {}, [np.ones(3), i64(-2), i64(-2)]),
        ("Pad", 1, {}, [np.ones(3), i64(1, 1), i64(1)]),
        ("Concat", 1, {"axis": "0"}, [np.ones((2, 3)), np.ones((2, 2))]),
        ("Concat", 1, {"axis": str(HUGE)}, [np.ones(2), np.ones(2)]),
        ("Split", 1, {"num_splits": "2"}, [np.ones(3), np.array(0)]),
        ("Split", 1, {"num_splits": str(HUGE)}, [np.ones(0), np.array(0)]),
        ("VariadicSplit", 1, {}, [np.ones(3), np.array(0), i64(-1, -1)]),
        ("VariadicSplit", 1, {}, [np.ones(3), np.array(0), i64(1, 1)]),
        ("OneHot", 1, {}, [i64(0), np.array(HUGE), np.array(1.0), np.array(0.0)]),
        ("OneHot", 1, {"axis": "3"}, [i64(0), np.array(2), np.array(1.0), np.array(0.0)]),
        ("Roll", 7, {}, [np.ones((2, 2)), i64(1, 1, 1), i64(0, 1)]),
        ("Reverse", 1, {"mode": "mask"}, [np.ones((2, 2)), np.array([True])]),
        ("ReverseSequence", 1, {}, [np.ones((2, 2)), i64(1, 3)]),
        ("ReverseSequence", 1, {"seq_axis": "0"}, [np.ones((2, 2)), i64(1, 1)]),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    type: str, version: int, attributes: dict[str, str], inputs: list[Any]
) -> None:
    with pytest.raises(KernelError):
        kernel(type, version, **attributes)(*inputs)


@each_row(("before", "after"), [(b, a) for b in range(-4, 4) for a in range(-4, 4) if a + b >= -5])
@each_row("mode", ["constant", "edge", "reflect", "symmetric"])
def test_pad_takes_each_element_from_where_the_mode_says(mode: str, before: int, after: int) -> None:
    data = np.arange(5.0)

    def element(i: int) -> float:
        if mode == "edge":
            return data[min(max(i, 0), 4)]
        if mode == "constant":
            return data[i] if 0 <= i < 5 else 7.0
        behind = -1 if mode == "symmetric" else 0
        i = behind - i if i < 0 else i
        return data[8 - behind - i if i > 4 else i]

    expected = [element(i) for i in range(-before, 5 + after)]
    actual = kernel("Pad", 12, pad_mode=mode)(data, i64(before), i64(after), np.array(7.0))
    assert actual.tolist() == expected
