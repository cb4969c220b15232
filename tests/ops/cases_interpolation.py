"""Cases of Interpolate and GridSample, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(5)
X = _random.standard_normal((1, 2, 5, 4)).astype(np.float32)
GRID = _random.uniform(-1.6, 1.6, (1, 3, 4, 2)).astype(np.float32)
AXES = np.array([2, 3])
UP, DOWN = np.array([7, 9]), np.array([3, 2])
COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")

_SIZES = {"shape_calculation_mode": "sizes"}


def resized(name: str, size: np.ndarray, **attributes: str) -> Case:
    return Case(name, "Interpolate", 11, [X, size, AXES], _SIZES | attributes, constant={1, 2})


CASES = [
    *(
        resized(f"{mode}_{coordinates}_{size[0]}", size, mode=mode, coordinate_transformation_mode=coordinates)
        for mode in ("linear", "linear_onnx", "cubic")
        for coordinates in COORDINATES
        for size in (UP, DOWN)
    ),
    *(
        resized(f"nearest_{rounding}_{size[0]}", size, mode="nearest", nearest_mode=rounding)
        for rounding in NEAREST
        for size in (UP, DOWN)
    ),
    *(
        resized(f"{mode}_{size[0]}", size, mode=mode, cube_coeff="-0.5")
        for mode in ("bilinear_pillow", "bicubic_pillow")
        for size in (UP, DOWN)
    ),
    Case(
        "scales_and_pads",
        "Interpolate",
        11,
        [X, np.array([1.7, 0.6], np.float32), AXES],
        {"mode": "linear_onnx", "shape_calculation_mode": "scales", "pads_begin": "0,0,1,0", "pads_end": "0,0,0,2"},
        constant={1, 2},
    ),
    Case(
        "version_4_scales",
        "Interpolate",
        4,
        [X, UP, np.array([1.7, 0.6], np.float32), AXES],
        {"mode": "cubic", "shape_calculation_mode": "scales", "cube_coeff": "-0.6"},
        constant={1, 2, 3},
    ),
    Case(
        "version_4_sizes",
        "Interpolate",
        4,
        [X, UP, np.array([1.7, 0.6], np.float32), AXES],
        {"mode": "nearest", "shape_calculation_mode": "sizes"},
        constant={1, 2, 3},
    ),
    *(
        Case(
            f"version_1_{mode}_{corners}",
            "Interpolate",
            1,
            [X, size],
            {"mode": mode, "axes": "2,3", "align_corners": corners, "antialias": "false"},
            constant={1},
        )
        for mode in ("nearest", "linear", "cubic")
        for corners, size in (("true", UP), ("false", DOWN))
    ),
    *(
        Case(
            f"grid_{mode}_{padding}_{corners}",
            "GridSample",
            9,
            [X, GRID],
            {"mode": mode, "padding_mode": padding, "align_corners": corners},
        )
        for mode in ("bilinear", "bicubic", "nearest")
        for padding in ("zeros", "border", "reflection")
        for corners in ("true", "false")
    ),
]
