"""The operations of Detectron's two-stage detectors.

Source: the pages ExperimentalDetectronDetectionOutput-6, ExperimentalDetectronROIFeatureExtractor-6 and
ExperimentalDetectronTopKROIs-6.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.boxes import refined, surviving
from stepper.ops.operands import check_positive, ensure_allocatable, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel
from stepper.ops.roi_sampling import bin_means, check_feature_maps, sample_positions, samples_in_map

_CANONICAL_SIZE: Final = np.float32(224)
_CANONICAL_LEVEL: Final = 2


@kernel("ExperimentalDetectronDetectionOutput", 6)
def detectron_detection_output(
    rois: Array,
    deltas: Array,
    scores: Array,
    im_info: Array,
    *,
    score_threshold: float = 0.0,
    nms_threshold: float = 0.0,
    num_classes: int,
    post_nms_count: int = 0,
    max_detections_per_image: int = 0,
    class_agnostic_box_regression: bool = False,
    max_delta_log_wh: float = 0.0,
    deltas_weights: tuple[float, ...] = (),
) -> tuple[Array, Array, Array]:
    """Return the best boxes of all classes but the background (first), classes and scores; zeros after the last."""
    _check_detection(rois, deltas, scores, num_classes, deltas_weights)
    ensure_allocatable((max(max_detections_per_image, 0), 4), np.float32)
    weights, anchors = np.array(deltas_weights, np.float32), widened(rois)[:, None]
    corrections = widened(deltas).reshape(len(rois), num_classes, 4) / weights
    boxes = refined(anchors, corrections, 1.0, max_delta_log_wh)
    boxes[..., 2:] -= np.float32(1)
    # OpenVINO cuts the boxes at the origin only, not at the far sides of the image.
    boxes = np.maximum(boxes, 0)
    usable, probability = (rois[:, 2:] > rois[:, :2]).all(axis=1), widened(scores)
    found: list[tuple[int, int]] = []
    for label in range(1, num_classes):
        best = np.flatnonzero(usable & (probability[:, label] > np.float32(score_threshold)))
        best = best[np.argsort(-probability[best, label], kind="stable")]
        limit = post_nms_count if post_nms_count >= 0 else len(best)
        kept = best[surviving(boxes[best, label], nms_threshold, limit, 1.0, must_touch=True)]
        found += [(label, number) for number in kept.tolist()]
    labels, numbers = np.array(found, np.int64).reshape(-1, 2).T
    if len(labels) > max_detections_per_image:
        order = np.lexsort((numbers, -probability[numbers, labels]))[: max(max_detections_per_image, 0)]
        labels, numbers = labels[order], numbers[order]
    missing = (0, max(max_detections_per_image, 0) - len(labels))
    coordinates = np.pad(boxes[numbers, labels], (missing, (0, 0)))
    best_scores = np.pad(probability[numbers, labels], missing)
    classes = np.pad(labels, missing).astype(np.int32)
    return narrowed(coordinates, rois.dtype), classes, narrowed(best_scores, rois.dtype)


@kernel("ExperimentalDetectronROIFeatureExtractor", 6)
def roi_feature_extractor(
    rois: Array,
    *pyramid: Array,
    output_size: int = 0,
    sampling_ratio: int = 0,
    pyramid_scales: tuple[int, ...] = (),
    aligned: bool = False,
) -> tuple[Array, Array]:
    """ROIAlign of each region on the level of a feature pyramid that fits its size, and the regions as they are."""
    channels = _check_pyramid(rois, pyramid, pyramid_scales)
    check_positive(output_size=output_size)
    ensure_allocatable((len(rois), channels, output_size, output_size, max(sampling_ratio, 1) ** 2), np.float32)
    features = np.zeros((len(rois), channels, output_size, output_size), np.float32)
    offset = np.float32(0.5 if aligned else 0)
    sides = rois[:, 2:].astype(np.float32) - rois[:, :2].astype(np.float32)
    area = sides[:, 0] * sides[:, 1]
    levels = np.floor(np.log2(np.sqrt(area) / _CANONICAL_SIZE + np.float32(1e-6)) + _CANONICAL_LEVEL)
    for number in np.flatnonzero(area > 0):
        level = int(np.clip(levels[number], 0, len(pyramid) - 1))
        box = rois[number].astype(np.float32) / np.float32(pyramid_scales[level]) - offset
        extent = np.maximum(box[2:] - box[:2], 1)
        x = sample_positions(box[0], extent[0], output_size, max(sampling_ratio, 0))
        y = sample_positions(box[1], extent[1], output_size, max(sampling_ratio, 0))[..., None, None]
        features[number] = bin_means(samples_in_map(widened(pyramid[level][0]), y, x))
    return narrowed(features, rois.dtype), rois


@kernel("ExperimentalDetectronTopKROIs", 6)
def top_k_rois(rois: Array, scores: Array, *, max_rois: int = 0) -> Array:
    """Return the `max_rois` regions with the highest scores, best first; zeros after the last."""
    if rois.ndim != 2 or scores.shape != rois.shape[:1] or max_rois < 0:
        shapes = f"{shape_text(rois.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{max_rois} cannot be chosen of regions {shapes}")
    ensure_allocatable((max_rois, rois.shape[1]), rois.dtype)
    best = np.argsort(-widened(scores), kind="stable")[:max_rois]
    return np.pad(rois[best], ((0, max_rois - len(best)), (0, 0)))


def _check_detection(
    rois: Array, deltas: Array, scores: Array, num_classes: int, deltas_weights: tuple[float, ...]
) -> None:
    count = sum(rois.shape[:1])
    if [rois.shape, deltas.shape, scores.shape] != [(count, 4), (count, num_classes * 4), (count, num_classes)]:
        shapes = ", ".join(shape_text(value.shape) for value in (rois, deltas, scores))
        raise KernelError(f"regions, deltas and scores of shapes {shapes} do not fit {num_classes} classes")
    if len(deltas_weights) != 4:
        raise KernelError(f"the attribute 'deltas_weights' has {len(deltas_weights)} numbers, expected 4")


def _check_pyramid(rois: Array, pyramid: tuple[Array, ...], scales: tuple[int, ...]) -> int:
    """Return the number of channels, which all levels share."""
    if rois.ndim != 2 or rois.shape[1] != 4 or not pyramid or len(scales) < len(pyramid):
        shape = shape_text(rois.shape)
        raise KernelError(f"regions {shape}, {len(pyramid)} feature maps and {len(scales)} scales do not fit")
    check_positive(pyramid_scales=scales)
    for level in pyramid:
        check_feature_maps(level)
        if level.shape[:2] != (1, pyramid[0].shape[1]):
            raise KernelError(f"a feature map of shape {shape_text(level.shape)} does not fit the first level")
    return int(pyramid[0].shape[1])
