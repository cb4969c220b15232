"""Cases of the convolutions, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from tests.ops.recording import Case

_random = np.random.default_rng(3)


def f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def windows(
    strides: str = "1,1", begin: str = "0,0", end: str = "0,0", dilations: str = "1,1", **more: str
) -> dict[str, str]:
    return {"strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations, **more}


X = f(1, 2, 5, 6)
FILTERS = f(3, 2, 3, 2)
TRANSPOSED = f(2, 3, 3, 2)
DEFORMABLE = {"group": "2", "deformable_group": "2"}
DEFORMABLE_X, OFFSETS, MASK = f(1, 4, 6, 6), f(1, 16, 6, 6), f(1, 8, 6, 6)
DEFORMABLE_INPUTS = [DEFORMABLE_X, OFFSETS, f(2, 2, 2, 2)]
END = "0,1"

CASES = [
    Case("plain", "Convolution", 1, [X, FILTERS], windows()),
    Case("strides_pads", "Convolution", 1, [X, FILTERS], windows("2,1", "1,0", "2,1")),
    Case("dilations", "Convolution", 1, [X, FILTERS], windows(dilations="2,3")),
    Case("same_upper", "Convolution", 1, [X, FILTERS], windows("2,2", auto_pad="same_upper")),
    Case("same_lower", "Convolution", 1, [X, FILTERS], windows("2,2", auto_pad="same_lower")),
    Case("valid", "Convolution", 1, [X, FILTERS], windows(begin="1,1", auto_pad="valid")),
    Case("one_axis", "Convolution", 1, [f(2, 2, 7), f(3, 2, 3)], windows("2", "1", "0", "1")),
    Case(
        "three_axes",
        "Convolution",
        1,
        [f(1, 2, 3, 4, 3), f(2, 2, 2, 2, 2)],
        windows("1,2,1", "0,1,0", "0,0,0", "1,1,1"),
    ),
    Case("f16", "Convolution", 1, [X.astype(np.float16), FILTERS.astype(np.float16)], windows(), rtol=1e-3),
    Case("groups", "GroupConvolution", 1, [f(1, 4, 5, 5), f(2, 3, 2, 3, 3)], windows(begin="1,1")),
    Case("depthwise", "GroupConvolution", 1, [f(2, 3, 5, 5), f(3, 1, 1, 3, 3)], windows("2,2")),
    Case("transposed", "ConvolutionBackpropData", 1, [X, TRANSPOSED], windows("2,3"), constant={1}),
    Case(
        "transposed_pads",
        "ConvolutionBackpropData",
        1,
        [X, TRANSPOSED],
        windows("2,2", "1,0", END, "2,1", output_padding="1,1"),
        constant={1},
    ),
    *(
        Case(
            f"transposed_shape_{auto_pad}",
            "ConvolutionBackpropData",
            1,
            [X, TRANSPOSED, np.array([9, 11])],
            windows("2,2", auto_pad=auto_pad),
            constant={1, 2},
        )
        for auto_pad in ("same_upper", "same_lower")
    ),
    Case(
        "transposed_groups",
        "GroupConvolutionBackpropData",
        1,
        [f(1, 4, 3, 3), f(2, 2, 3, 2, 2)],
        windows("2,1", "1,0"),
        constant={1},
    ),
    Case(
        "deformable",
        "DeformableConvolution",
        1,
        DEFORMABLE_INPUTS,
        windows(begin="1,0", end=END) | DEFORMABLE,
        constant={2},
    ),
    *(
        Case(
            f"deformable_mask_{pad}",
            "DeformableConvolution",
            8,
            [*DEFORMABLE_INPUTS, MASK],
            windows(begin="1,0", end=END) | DEFORMABLE | {"bilinear_interpolation_pad": pad},
            constant={2},
        )
        for pad in ("true", "false")
    ),
]
