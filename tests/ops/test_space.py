"""Movement between batch, channels and space: inverses, loops as oracle, and blocks that do not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError
from tests.ops.bound import i64, kernel
from tests.tables import each_row

HUGE = 2**62


@each_row("mode", ["blocks_first", "depth_first"])
@each_row("shape", [(2, 3, 4), (2, 3, 4, 6), (1, 2, 2, 4, 6), (0, 1, 2, 2), (1, 0, 2, 2)])
def test_depth_to_space_undoes_space_to_depth(mode: str, shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape)).reshape(shape)
    attributes = {"block_size": "2", "mode": mode}
    deep = kernel("SpaceToDepth", 1, **attributes)(data)
    np.testing.assert_array_equal(kernel("DepthToSpace", 1, **attributes)(deep), data)


@each_row("shape", [(2, 3), (2, 3, 4), (1, 2, 5, 4), (0, 2, 3)])
def test_batch_to_space_undoes_space_to_batch(shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape)).reshape(shape)
    ends = [0] + [-dim % 2 for dim in shape[1:]]
    arguments = i64(1, *[2] * (len(shape) - 1)), i64(*[0] * len(shape)), i64(*ends)
    batches = kernel("SpaceToBatch", 2)(data, *arguments)
    np.testing.assert_array_equal(kernel("BatchToSpace", 2)(batches, *arguments), data)


def test_overlapping_columns_add_up_and_round_once() -> None:
    columns = np.full((1, 4, 4), 65, ml_dtypes.bfloat16)
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    image = kernel("Col2Im", 15, **attributes)(columns, i64(3, 3), i64(2, 2))
    assert image.tolist() == [[[[65, 130, 65], [130, 260, 130], [65, 130, 65]]]]


def test_reorganised_elements_come_from_where_the_layer_reads_them() -> None:
    data = np.arange(8 * 4 * 6).reshape(1, 8, 4, 6)
    flat, expected = data.reshape(2, 8, 12), np.zeros(data.size, data.dtype)
    for place, (c, h, w) in enumerate(np.ndindex(8, 4, 6)):
        expected[place] = flat[c % 2, h * 2 + c // 2 // 2, w * 2 + c // 2 % 2]
    result = kernel("ReorgYolo", 2, stride="2")(data)
    assert result.shape == (1, 32, 2, 3)
    np.testing.assert_array_equal(result.reshape(-1), expected)


def test_an_image_smaller_than_a_patch_has_no_patches() -> None:
    attributes = {"sizes": "3,3", "strides": "1,1", "rates": "1,1", "auto_pad": "valid"}
    assert kernel("ExtractImagePatches", 3, **attributes)(np.ones((1, 2, 2, 5))).shape == (1, 18, 0, 0)


IMAGE = np.ones((1, 4, 2, 2))
PATCHES = {"sizes": "1,1", "strides": "1,1", "rates": "1,1", "auto_pad": "valid"}


@each_row(
    ("type", "version", "attributes", "inputs"),
    [
        ("DepthToSpace", 1, {"block_size": "3"}, [IMAGE]),
        ("DepthToSpace", 1, {"block_size": "0"}, [IMAGE]),
        ("DepthToSpace", 1, {"block_size": str(HUGE)}, [IMAGE[:, :0]]),
        ("SpaceToDepth", 1, {"block_size": "-1"}, [IMAGE]),
        ("SpaceToDepth", 1, {"block_size": str(HUGE)}, [IMAGE[:, :, :0, :0]]),
        ("ShuffleChannels", 3, {"group": "3"}, [IMAGE]),
        ("ShuffleChannels", 3, {"group": str(HUGE)}, [IMAGE[:, :0]]),
        ("BatchToSpace", 2, {}, [IMAGE, i64(1, 1, 2, 2), *[i64(0, 0, 0, 0)] * 2]),
        ("BatchToSpace", 2, {}, [IMAGE, i64(1, 1, 1, 1), i64(0, 0, 3, 0), i64(0, 0, 0, 0)]),
        ("SpaceToBatch", 2, {}, [IMAGE, i64(1, 1, 1, 1), i64(0, 0, HUGE, 0), i64(0, 0, 0, 0)]),
        ("SpaceToBatch", 2, {}, [IMAGE, i64(1, 1, 3, 1), *[i64(0, 0, 0, 0)] * 2]),
        ("SpaceToBatch", 2, {}, [IMAGE, i64(2, 1, 1, 1), *[i64(0, 0, 0, 0)] * 2]),
        ("ExtractImagePatches", 3, PATCHES | {"sizes": "1"}, [IMAGE]),
        ("ExtractImagePatches", 3, PATCHES | {"sizes": f"1,{HUGE}"}, [IMAGE]),
        ("ExtractImagePatches", 3, PATCHES | {"rates": f"1,{HUGE}", "sizes": "1,2", "auto_pad": "same_upper"}, [IMAGE]),
        ("Col2Im", 15, {}, [np.ones((1, 4, 3)), i64(3, 3), i64(2, 2)]),
        ("Col2Im", 15, {}, [np.ones((1, 0, 1)), i64(HUGE, HUGE), i64(HUGE, HUGE)]),
        ("Col2Im", 15, {"strides": "0,1"}, [np.ones((1, 4, 4)), i64(3, 3), i64(2, 2)]),
        ("ReorgYolo", 2, {"stride": "0"}, [IMAGE]),
        ("ReorgYolo", 2, {"stride": "3"}, [IMAGE]),
    ],
)
def test_blocks_that_do_not_fit_are_refused(
    type: str, version: int, attributes: dict[str, str], inputs: list[Any]
) -> None:
    with pytest.raises(KernelError):
        kernel(type, version, **attributes)(*inputs)
