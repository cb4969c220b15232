"""Cases of rows reduced by segment, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

TABLE = np.array([[1, -2], [0.5, 4], [-3, 7], [2, 2], [9, -1]], np.float32)
IDS = np.array([0, 0, 2, 3, 3], np.int32)
INDICES = np.array([4, 2, 0, 1], np.int32)
OFFSETS = np.array([0, 2, 2], np.int32)
SEGMENTS = np.array([0, 0, 2, 2], np.int32)
WEIGHTS = np.array([0.5, 2, -1, 3], np.float32)
SPARSE = [TABLE[:3, 0], np.array([4, 3], np.int32), np.array([[0, 1], [2, 0], [2, 2]], np.int32)]


def i32(value: int) -> np.ndarray:
    return np.array(value, np.int32)


CASES = [
    *(
        Case(
            f"segment_max_{mode}_{count}",
            "SegmentMax",
            16,
            [TABLE, IDS, i32(count)],
            {"fill_mode": mode},
            constant={1, 2},
        )
        for mode in ("ZERO", "LOWEST")
        for count in (2, 6)
    ),
    Case("segment_max", "SegmentMax", 16, [TABLE, IDS], {"fill_mode": "ZERO"}, constant={1}),
    Case("sparse_fill", "SparseFillEmptyRows", 16, [*SPARSE, np.array(9, np.float32)], outputs=3, constant={1}),
    Case("offsets_sum", "EmbeddingBagOffsetsSum", 3, [TABLE, INDICES, OFFSETS]),
    Case("offsets_sum_weighted", "EmbeddingBagOffsetsSum", 3, [TABLE, INDICES, OFFSETS, i32(1), WEIGHTS], constant={3}),
    Case("offsets_mean", "EmbeddingBagOffsets", 15, [TABLE, INDICES, OFFSETS, i32(2)], {"reduction": "mean"}),
    Case("offsets_no_default", "EmbeddingBagOffsets", 15, [TABLE, INDICES, OFFSETS, i32(-1), WEIGHTS], constant={3}),
    Case("packed_sum", "EmbeddingBagPackedSum", 3, [TABLE, INDICES.reshape(2, 2), WEIGHTS.reshape(2, 2)]),
    Case("packed_mean", "EmbeddingBagPacked", 15, [TABLE, INDICES.reshape(2, 2)], {"reduction": "mean"}),
    Case("segments_sum", "EmbeddingSegmentsSum", 3, [TABLE, INDICES, SEGMENTS, i32(4)], constant={3}),
    Case(
        "segments_sum_weighted",
        "EmbeddingSegmentsSum",
        3,
        [TABLE, INDICES, SEGMENTS, i32(3), i32(4), WEIGHTS],
        constant={3, 4},
    ),
]
