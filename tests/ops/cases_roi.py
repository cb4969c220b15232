"""Cases of the poolings of regions of interest, recorded from the runtime."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(8)
MAPS = (_random.random((2, 8, 6, 7)) * 6 - 3).astype(np.float32)
BATCHES = np.array([0, 1, 1], np.int32)
BOXES = np.array([[0.5, 1.0, 5.2, 4.9], [-2.0, -1.5, 9.0, 8.0], [3.0, 2.0, 3.2, 2.1]], np.float32)
TURNED = np.array([[3, 2.5, 4, 3, 0.4], [1, 1, 6, 2, -2.0], [6, 5, 3, 3, 3.0]], np.float32)
LISTED = np.concatenate([BATCHES[:, None], BOXES], axis=1).astype(np.float32)
ENDED = np.where([[True], [False], [True]], LISTED, [-1, 0, 0, 0, 0]).astype(np.float32)
PARTS = np.array([[0, 0.1, 0.2, 0.9, 0.8], [1, 0.0, 0.0, 1.0, 1.0], [0, 0.5, 0.3, 0.6, 0.4]], np.float32)
OFFSETS = (_random.random((3, 4, 2, 2)) - 0.4).astype(np.float32)
WITHIN = np.array([[0, 0, 0, 5, 5], [1, 1.5, 1, 4, 3.2], [0, 2, 2, 2, 2]], np.float32)


def align(name: str, version: int, ratio: int, mode: str, **more: str) -> Case:
    attributes = {"pooled_h": "2", "pooled_w": "3", "sampling_ratio": str(ratio), "spatial_scale": "0.75", "mode": mode}
    return Case(name, "ROIAlign", version, [MAPS[:, :2], BOXES, BATCHES], attributes | more)


def turned(name: str, ratio: int, clockwise: str) -> Case:
    attributes = {"pooled_h": "2", "pooled_w": "3", "sampling_ratio": str(ratio), "spatial_scale": "0.75"}
    inputs = [MAPS[:, :2], TURNED, BATCHES]
    return Case(name, "ROIAlignRotated", 15, inputs, attributes | {"clockwise_mode": clockwise})


def pooling(name: str, rois: np.ndarray, method: str, size: tuple[int, int]) -> Case:
    attributes = {"pooled_h": str(size[0]), "pooled_w": str(size[1]), "spatial_scale": "0.8", "method": method}
    return Case(name, "ROIPooling", 2, [MAPS[:, :2], rois], attributes)


def sensitive(name: str, rois: np.ndarray, scale: str, **more: str) -> Case:
    return Case(name, "PSROIPooling", 1, [MAPS, rois], {"spatial_scale": scale, "output_dim": "2"} | more)


def deformable(name: str, *offsets: np.ndarray, **more: str) -> Case:
    attributes = {"spatial_scale": "0.8", "output_dim": "2", "group_size": "2", "part_size": "2"} | more
    return Case(name, "DeformablePSROIPooling", 1, [MAPS, LISTED, *offsets], attributes)


CASES = [
    *(align(f"align_3_{mode}_{ratio}", 3, ratio, mode) for mode, ratio in itertools.product(("avg", "max"), (0, 2))),
    *(
        align(f"align_9_{mode}_{aligned}", 9, 2, mode, aligned_mode=aligned)
        for mode, aligned in itertools.product(("avg", "max"), ("half_pixel", "half_pixel_for_nn", "asymmetric"))
    ),
    turned("turned_clockwise", 2, "true"),
    turned("turned_back_adaptive", 0, "false"),
    pooling("pooling_max", LISTED, "max", (2, 3)),
    pooling("pooling_max_list_with_an_end", ENDED, "max", (2, 2)),
    pooling("pooling_bilinear", PARTS, "bilinear", (3, 2)),
    pooling("pooling_bilinear_one_point", PARTS, "bilinear", (1, 1)),
    sensitive("sensitive_average", WITHIN, "1", group_size="2", mode="average", spatial_bins_x="1", spatial_bins_y="1"),
    sensitive(
        "sensitive_bilinear", PARTS, "1", group_size="3", mode="bilinear", spatial_bins_x="2", spatial_bins_y="2"
    ),
    deformable("deformable_at_rest", spatial_bins_x="2", spatial_bins_y="3"),
    deformable("deformable", OFFSETS, spatial_bins_x="3", spatial_bins_y="2", trans_std="0.3"),
]
