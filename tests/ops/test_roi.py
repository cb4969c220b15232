"""Poolings of regions of interest against plain loops over points, and faulty regions and attributes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from stepper.ops.roi import deformable_psroi_pooling, psroi_pooling, roi_align, roi_align_rotated, roi_pooling
from tests.tables import each_row

MAPS = (np.random.default_rng(1).random((2, 2, 5, 6)) * 4 - 2).astype(np.float32)
FIRST = np.array([0], np.int32)
ONE = {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1.0}


def read(plane: np.ndarray, y: float, x: float) -> float:
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = min(int(y), height - 2), min(int(x), width - 2)
    down, along = y - top, x - left
    above = plane[top, left] * (1 - along) + plane[top, left + 1] * along
    below = plane[top + 1, left] * (1 - along) + plane[top + 1, left + 1] * along
    return float(above * (1 - down) + below * down)


@each_row("ratio", [0, 1, 3])
@each_row("aligned", ["asymmetric", "half_pixel", "half_pixel_for_nn"])
@each_row("mode", ["avg", "max"])
def test_a_region_is_read_at_evenly_spread_points(mode: str, aligned: str, ratio: int) -> None:
    box, scale, size = (1.0, 0.5, 8.0, 11.0), 0.6, (2, 3)
    shift = {"asymmetric": 0.0, "half_pixel": 0.5 * scale - 0.5, "half_pixel_for_nn": -0.5}[aligned]
    x1, y1, x2, y2 = (side * scale + shift for side in box)
    steps = [(y2 - y1) / size[0], (x2 - x1) / size[1]]
    counts = [ratio or math.ceil(step) for step in steps]
    actual = roi_align(
        MAPS,
        np.array([box], np.float32),
        np.array([1]),
        pooled_h=size[0],
        pooled_w=size[1],
        sampling_ratio=ratio,
        spatial_scale=scale,
        mode=mode,
        aligned_mode=aligned,
    )
    for channel, row, column in np.ndindex(2, *size):
        samples = [
            read(
                MAPS[1, channel],
                y1 + (row + (i + 0.5) / counts[0]) * steps[0],
                x1 + (column + (j + 0.5) / counts[1]) * steps[1],
            )
            for i, j in np.ndindex(*counts)
        ]
        expected = max(0.0, *samples) if mode == "max" else sum(samples) / len(samples)
        assert actual[0, channel, row, column] == pytest.approx(expected, abs=1e-4)


def test_an_adaptive_region_of_negative_size_gives_zeros() -> None:
    box = np.array([[4, 4, 1, 1]], np.float32)
    assert (roi_align(MAPS, box, FIRST, **ONE, aligned_mode="half_pixel") == 0).all()


@each_row("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once(dtype: type) -> None:
    box = np.array([[0.5, 1, 4, 3.5]], dtype)
    wide = roi_align(MAPS.astype(dtype).astype(np.float32), box.astype(np.float32), FIRST, **ONE, sampling_ratio=2)
    narrow = roi_align(MAPS.astype(dtype), box, FIRST, **ONE, sampling_ratio=2)
    assert narrow.dtype == dtype
    assert narrow.tolist() == wide.astype(dtype).tolist()


def test_a_quarter_turn_swaps_the_axes() -> None:
    plain = np.array([[3, 2, 4, 4, 0]], np.float32)
    turned = np.array([[3, 2, 4, 4, math.pi / 2]], np.float32)
    size = {"pooled_h": 3, "pooled_w": 3, "sampling_ratio": 2, "spatial_scale": 1.0}
    upright = roi_align_rotated(MAPS, plain, FIRST, **size)
    back = roi_align_rotated(MAPS, turned, FIRST, **size)
    clockwise = roi_align_rotated(MAPS, turned, FIRST, **size, clockwise_mode=True)
    np.testing.assert_allclose(back, np.rot90(upright, -1, axes=(2, 3)), atol=1e-5)
    np.testing.assert_allclose(clockwise, np.rot90(upright, 1, axes=(2, 3)), atol=1e-5)


def test_each_bin_takes_its_greatest_element() -> None:
    box = np.array([[1, 1, 0, 4, 3]], np.float32)
    pooled = roi_pooling(MAPS, box, pooled_h=3, pooled_w=2, spatial_scale=1.0)
    rows, columns = [(0, 2), (1, 3), (2, 4)], [(1, 3), (3, 5)]
    for channel, (row, (y1, y2)), (column, (x1, x2)) in (
        (c, r, k) for c in range(2) for r in enumerate(rows) for k in enumerate(columns)
    ):
        assert pooled[0, channel, row, column] == MAPS[1, channel, y1:y2, x1:x2].max()


def test_regions_after_the_end_of_the_list_are_zeros() -> None:
    rois = np.array([[0, 0, 0, 3, 3], [-1, 0, 0, 3, 3], [0, 0, 0, 3, 3]], np.float32)
    pooled = roi_pooling(MAPS, rois, pooled_h=1, pooled_w=1, spatial_scale=1.0)
    assert pooled[0].any()
    assert not pooled[1:].any()


def test_bins_outside_the_map_are_empty() -> None:
    rois = np.array([[0, -9, -9, -7, -7], [0, 20, 20, 22, 22]], np.float32)
    assert not roi_pooling(MAPS, rois, pooled_h=2, pooled_w=2, spatial_scale=1.0).any()
    assert not psroi_pooling(MAPS, rois, output_dim=2, spatial_scale=1.0).any()
    assert not deformable_psroi_pooling(MAPS, rois, output_dim=2, spatial_scale=1.0).any()


def test_a_position_sensitive_bin_is_the_mean_of_its_own_channel() -> None:
    maps = np.random.default_rng(2).random((1, 4, 4, 4)).astype(np.float32)
    pooled = psroi_pooling(maps, np.array([[0, 0, 0, 3, 3]], np.float32), output_dim=1, group_size=2, spatial_scale=1.0)
    expected = [[maps[0, 2 * i + j, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for j in (0, 1)] for i in (0, 1)]
    np.testing.assert_allclose(pooled[0, 0], expected, rtol=1e-5)


@each_row(
    ("attributes", "message"),
    [
        ({"pooled_h": 0}, "pooled_h"),
        ({"sampling_ratio": -1}, "sampling_ratio"),
        ({"pooled_w": 10**12}, "MB"),
        ({"sampling_ratio": 10**9}, "MB"),
    ],
)
def test_sizes_out_of_proportion_are_refused(attributes: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        roi_align(MAPS, np.array([[0, 0, 3, 3]], np.float32), FIRST, **(ONE | attributes))


@each_row("side", [1e30, math.inf, math.nan])
def test_a_region_without_bounds_is_not_sampled(side: float) -> None:
    with np.errstate(all="ignore"), pytest.raises((KernelError, TensorTooLarge)):
        roi_align(MAPS, np.array([[0, 0, side, 3]], np.float32), FIRST, **ONE)


def test_a_region_of_a_missing_batch_is_refused() -> None:
    box = np.array([[0, 0, 3, 3]], np.float32)
    with pytest.raises(KernelError, match="batch 2"):
        roi_align(MAPS, box, np.array([2]), **ONE)
    with pytest.raises(KernelError, match="batch 7"):
        roi_pooling(MAPS, np.array([[7, 0, 0, 3, 3]], np.float32), **ONE)


def test_channels_must_fit_the_groups() -> None:
    with pytest.raises(KernelError, match="channels"):
        psroi_pooling(MAPS, np.zeros((1, 5), np.float32), output_dim=2, group_size=2, spatial_scale=1.0)
    with pytest.raises(KernelError, match="offsets"):
        offsets = np.zeros((1, 3, 1, 1), np.float32)
        deformable_psroi_pooling(MAPS, np.zeros((1, 5), np.float32), offsets, output_dim=2, spatial_scale=1.0)
