"""Cases of pooling, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(4)
X = _random.standard_normal((2, 2, 5, 6)).astype(np.float32)
LINE = _random.standard_normal((1, 2, 7)).astype(np.float32)
CUBE = _random.standard_normal((1, 1, 4, 5, 3)).astype(np.float32)
I = _random.integers(-9, 9, (1, 2, 4, 4), np.int32)  # noqa: E741 - an integer twin of X

SQUARE = X[:, :, :3, :3].copy()
EDGES = {"kernel": "2,2", "begin": "1,1", "end": "1,1", "rounding_type": "ceil_torch"}


def windows(
    kernel: str = "3,2", strides: str = "2,2", begin: str = "1,0", end: str = "0,1", **more: str
) -> dict[str, str]:
    return {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end, **more}


def mean(exclude_pad: str = "true", **more: str) -> dict[str, str]:
    return windows(**more) | {"exclude-pad": exclude_pad}


def maximum(dilations: str = "1,1", axis: str = "0", **more: str) -> dict[str, str]:
    return windows(**more) | {"dilations": dilations, "axis": axis, "index_element_type": "i32"}


CASES = [
    Case("mean_1", "AvgPool", 1, [X], mean()),
    Case("mean_1_with_pads", "AvgPool", 1, [X], mean("false")),
    Case("mean_1_ceil", "AvgPool", 1, [X], mean(rounding_type="ceil")),
    Case("mean_1_same_lower", "AvgPool", 1, [X], mean(auto_pad="same_lower")),
    Case("mean_1_whole", "AvgPool", 1, [X], mean(kernel="5,6", begin="0,0", end="0,0")),
    Case("mean_1_of_integers", "AvgPool", 1, [I], mean(kernel="2,2")),
    Case("mean_14_ceil_torch", "AvgPool", 14, [X], mean(begin="1,1", end="1,1", rounding_type="ceil_torch")),
    Case("mean_14_line", "AvgPool", 14, [LINE], mean(kernel="3", strides="2", begin="1", end="1")),
    Case("mean_16_dilations", "AvgPool", 16, [X], mean(dilations="2,3")),
    Case(
        "mean_16_cube",
        "AvgPool",
        16,
        [CUBE],
        mean(kernel="2,2,2", strides="1,2,1", begin="0,1,0", end="1,0,0", dilations="1,1,1"),
    ),
    Case("max_1", "MaxPool", 1, [X], windows()),
    Case("max_1_same_upper", "MaxPool", 1, [X], windows(auto_pad="same_upper")),
    Case("max_8", "MaxPool", 8, [X], maximum(), outputs=2),
    Case("max_8_channel_indices", "MaxPool", 8, [X], maximum(axis="-2"), outputs=2),
    Case("max_8_dilations", "MaxPool", 8, [X], maximum("2,3", strides="1,1"), outputs=2),
    Case("max_8_of_integers", "MaxPool", 8, [I], maximum(), outputs=2),
    Case("max_8_ties", "MaxPool", 8, [np.round(X)], maximum(strides="1,1"), outputs=2),
    Case("mean_14_ceil_torch_drops", "AvgPool", 14, [SQUARE], mean(**EDGES)),
    Case("max_14_ceil_torch_drops", "MaxPool", 14, [SQUARE], maximum(**EDGES), outputs=2),
    Case(
        "max_14_ceil_torch", "MaxPool", 14, [X], maximum(begin="1,1", end="1,1", rounding_type="ceil_torch"), outputs=2
    ),
    Case("max_14_valid_ceil", "MaxPool", 14, [X], maximum(auto_pad="valid", rounding_type="ceil"), outputs=2),
    Case("max_14_same_lower", "MaxPool", 14, [X], maximum(auto_pad="same_lower"), outputs=2),
    Case("adaptive_mean", "AdaptiveAvgPool", 8, [X, np.array([3, 4])], constant={1}),
    Case("adaptive_mean_line", "AdaptiveAvgPool", 8, [LINE, np.array([10])], constant={1}),
    Case(
        "adaptive_max",
        "AdaptiveMaxPool",
        8,
        [X, np.array([3, 4])],
        {"index_element_type": "i32"},
        outputs=2,
        constant={1},
    ),
    Case(
        "adaptive_max_cube",
        "AdaptiveMaxPool",
        8,
        [CUBE, np.array([3, 2, 2])],
        {"index_element_type": "i32"},
        outputs=2,
        constant={1},
    ),
]
