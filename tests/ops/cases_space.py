"""Cases of movement between batch, channels and space, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.bound import i64
from tests.ops.recording import Case


def counting(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


ALL = {1, 2, 3}
IMAGE = counting(1, 2, 7, 5)
PATCHES = {"sizes": "2,3", "strides": "2,1", "rates": "2,1"}
BLOCKS = [i64(1, 1, 2, 3), i64(0, 0, 1, 0), i64(0, 0, 0, 1)]
COLUMNS = {"strides": "2,1", "dilations": "1,2", "pads_begin": "1,0", "pads_end": "0,1"}

CASES = [
    *(
        Case(f"{name}_{mode}_{len(shape)}", type, 1, [counting(*shape)], {"block_size": "2", "mode": mode})
        for mode in ("blocks_first", "depth_first")
        for name, type, shape in (
            ("depth_to_space", "DepthToSpace", (2, 8, 1, 3)),
            ("depth_to_space", "DepthToSpace", (1, 8, 1, 2, 2)),
            ("space_to_depth", "SpaceToDepth", (2, 3, 4, 6)),
            ("space_to_depth", "SpaceToDepth", (1, 2, 4)),
        )
    ),
    Case("shuffle_channels", "ShuffleChannels", 1, [counting(2, 6, 2, 1)], {"axis": "1", "group": "3"}),
    Case("shuffle_channels_3", "ShuffleChannels", 3, [counting(2, 3, 4)], {"axis": "-1", "group": "2"}),
    Case("batch_to_space", "BatchToSpace", 2, [counting(12, 2, 3, 2), *BLOCKS], constant=ALL),
    Case("space_to_batch", "SpaceToBatch", 2, [counting(2, 2, 3, 5), *BLOCKS], constant=ALL),
    *(
        Case(f"patches_{pad}", "ExtractImagePatches", 3, [IMAGE], PATCHES | {"auto_pad": pad})
        for pad in ("valid", "same_upper", "same_lower")
    ),
    Case("col2im", "Col2Im", 15, [counting(2, 12, 6), i64(4, 4), i64(2, 2)], COLUMNS, constant={1, 2}),
    Case("col2im_no_batch", "Col2Im", 15, [counting(12, 6), i64(4, 4), i64(2, 2)], COLUMNS, constant={1, 2}),
    Case("reorg_yolo", "ReorgYolo", 2, [counting(2, 8, 4, 6)], {"stride": "2"}),
]
