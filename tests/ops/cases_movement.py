"""Cases of the movement operations, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.bound import i64
from tests.ops.recording import Case

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.float32)
I32 = np.array([1, 0], np.int32)


def f32(value: float) -> np.ndarray:
    return np.array(value, np.float32)


AXIS_1, DEPTH = np.array(1, np.int64), np.array(3, np.int64)
INDICES = np.array([[0, 2], [-1, 5]], np.int64)
ONE_HOT = [INDICES, DEPTH, f32(5), f32(-1)]
PADS = [i64(1, 2), i64(0, 3)]
MODES = ("constant", "edge", "reflect", "symmetric")
LENGTHS = np.array([2, 3], np.int32)

CASES = [
    Case("concat", "Concat", 1, [M, M[:, :2], M[:, :0]], {"axis": "-1"}),
    Case("concat_bool", "Concat", 1, [M > 4, M > 7], {"axis": "0"}),
    Case("split", "Split", 1, [X, AXIS_1], {"num_splits": "3"}, outputs=3, constant={1}),
    Case("variadic_split", "VariadicSplit", 1, [X, AXIS_1, i64(1, 0, -1)], outputs=3, constant={1, 2}),
    Case("broadcast_1", "Broadcast", 1, [M, i64(2, 3, 4)], {"mode": "numpy"}, constant={1}),
    Case("broadcast_1_missing_mode", "Broadcast", 1, [V, i64(5, 2), i64(0)], constant={1, 2}),
    Case("broadcast_1_explicit", "Broadcast", 1, [M, i64(3, 2, 4), i64(0, 2)], {"mode": "explicit"}, constant={1, 2}),
    Case("broadcast_3", "Broadcast", 3, [M[:, :1], i64(2, 3, 4)], constant={1}),
    Case("broadcast_3_empty", "Broadcast", 3, [M[:1], i64(0, 4)], constant={1}),
    Case(
        "broadcast_3_explicit", "Broadcast", 3, [M[:1], i64(2, 5, 4), i64(1, 2)], {"mode": "explicit"}, constant={1, 2}
    ),
    Case("broadcast_3_both_ways", "Broadcast", 3, [M[:, :1], i64(2, 1, 4)], {"mode": "bidirectional"}, constant={1}),
    Case("tile", "Tile", 1, [M, i64(2, 1, 3)], constant={1}),
    Case("tile_fewer_repeats", "Tile", 1, [M, i64(2)], constant={1}),
    Case("tile_negative", "Tile", 1, [M, i64(-1, 2)], constant={1}),
    *(Case(f"pad_{mode}", "Pad", 1, [M, *PADS], {"pad_mode": mode}, constant={1, 2}) for mode in MODES),
    *(Case(f"pad_crop_{mode}", "Pad", 12, [V, i64(-2), i64(4)], {"pad_mode": mode}, constant={1, 2}) for mode in MODES),
    Case("pad_value", "Pad", 12, [M, i64(1, -1), i64(0, 2), f32(7)], {"pad_mode": "constant"}, constant={1, 2, 3}),
    Case("reverse_index", "Reverse", 1, [X, i64(0, -1)], {"mode": "index"}, constant={1}),
    Case("reverse_mask", "Reverse", 1, [M, np.array([False, True])], {"mode": "mask"}, constant={1}),
    Case("roll", "Roll", 7, [M, i64(-1, 6), i64(0, 1)], constant={1, 2}),
    Case("roll_axis_twice", "Roll", 7, [M, i64(1, 2, 3), i64(1, 0, 1)], constant={1, 2}),
    Case("reverse_sequence", "ReverseSequence", 1, [X, LENGTHS], {"batch_axis": "0", "seq_axis": "1"}),
    Case("reverse_sequence_behind", "ReverseSequence", 1, [X, i64(0, 1, 4)], {"batch_axis": "1", "seq_axis": "-1"}),
    Case("one_hot", "OneHot", 1, ONE_HOT, {"axis": "-1"}, constant={1, 2, 3}),
    Case("one_hot_first_axis", "OneHot", 1, ONE_HOT, {"axis": "0"}, constant={1, 2, 3}),
    Case("one_hot_16", "OneHot", 16, ONE_HOT, {"axis": "1"}, constant={1, 2, 3}),
    Case(
        "one_hot_from_behind",
        "OneHot",
        16,
        ONE_HOT,
        {"axis": "-1", "negative_indices_mode": "normalize"},
        constant={1, 2, 3},
    ),
]
