"""Non-maximum suppression of scored boxes, class by class.

Source: the pages NonMaxSuppression-1, -3, -4, -5, -9 and NMSRotated-13. As in OpenVINO a box is selected only with a
score strictly greater than score_threshold, and the outputs hold the selected boxes and no padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from stepper.element_types import I64, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.axes import shape_text
from stepper.ops.boxes import overlaps, selected
from stepper.ops.registry import kernel
from stepper.ops.rotated_boxes import corners, rotated_overlaps

BoxEncoding = Literal["corner", "center"]
Selection = tuple[Array, Array, Array]


@kernel("NonMaxSuppression", 1)
def non_max_suppression_1(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = 0.0,
    *,
    box_encoding: BoxEncoding = "corner",
    sort_result_descending: bool = True,
) -> Array:
    """[batch, class, box] of each selected box."""
    thresholds = (max_output_boxes_per_class, iou_threshold, score_threshold, 0.0)
    return _non_max_suppression(boxes, scores, thresholds, box_encoding, sort_result_descending, I64)[0]


@kernel("NonMaxSuppression", 3, 4)
def non_max_suppression_3(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = 0.0,
    *,
    box_encoding: BoxEncoding = "corner",
    sort_result_descending: bool = True,
    output_type: ElementType = I64,
) -> Array:
    """[batch, class, box] of each selected box, in `output_type`."""
    thresholds = (max_output_boxes_per_class, iou_threshold, score_threshold, 0.0)
    return _non_max_suppression(boxes, scores, thresholds, box_encoding, sort_result_descending, output_type)[0]


@kernel("NonMaxSuppression", 5, 9)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = 0.0,
    soft_nms_sigma: Any = 0.0,
    *,
    box_encoding: BoxEncoding = "corner",
    sort_result_descending: bool = True,
    output_type: ElementType = I64,
) -> tuple[Array, Array, Array]:
    """[batch, class, box] and [batch, class, score] of each selected box, and how many there are."""
    thresholds = (max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma)
    return _non_max_suppression(boxes, scores, thresholds, box_encoding, sort_result_descending, output_type)


@kernel("NMSRotated", 13)
def nms_rotated(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    *,
    sort_result_descending: bool = True,
    output_type: ElementType = I64,
    clockwise: bool = True,
) -> tuple[Array, Array, Array]:
    """NonMaxSuppression of boxes [x_center, y_center, width, height, angle in radians]."""
    _check(boxes, scores, 5)
    outlines = corners(boxes, clockwise)
    thresholds = (max_output_boxes_per_class, iou_threshold, score_threshold, 0.0)

    def overlap_with(batch: int) -> Callable[[int], Array]:
        return lambda best: rotated_overlaps(outlines[batch, best], outlines[batch])

    return _select(scores, overlap_with, thresholds, sort_result_descending, output_type)


def _non_max_suppression(
    boxes: Array,
    scores: Array,
    thresholds: tuple[Any, Any, Any, Any],
    box_encoding: str,
    descending: bool,
    output_type: ElementType,
) -> Selection:
    _check(boxes, scores, 4)
    boxes = boxes.astype(np.float32, copy=False)
    first, second = boxes[..., :2], boxes[..., 2:]
    if box_encoding == "center":
        first, second = first - second / 2, first + second / 2
    ordered = np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)

    def overlap_with(batch: int) -> Callable[[int], Array]:
        return lambda best: overlaps(ordered[batch, best], ordered[batch])

    return _select(scores, overlap_with, thresholds, descending, output_type)


def _select(
    scores: Array,
    overlap_with: Callable[[int], Callable[[int], Array]],
    thresholds: tuple[Any, Any, Any, Any],
    descending: bool,
    output_type: ElementType,
) -> Selection:
    """The selection of every batch and class, put together."""
    limit, iou_threshold, score_threshold, sigma = (_single(value) for value in thresholds)
    indices: list[tuple[int, int, int]] = []
    chosen: list[float] = []
    for batch, classes in enumerate(scores):
        for label, of_class in enumerate(classes):
            found = selected(of_class, overlap_with(batch), int(limit), iou_threshold, score_threshold, sigma)
            indices += [(batch, label, box) for box in found[0]]
            chosen += found[1]
    table, best = np.array(indices, np.int64).reshape(-1, 3), np.array(chosen, np.float32)
    if descending:
        order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], -best))
        table, best = table[order], best[order]
    score_table = np.concatenate([table[:, :2].astype(np.float32), best[:, None]], axis=1)
    return table.astype(output_type.dtype), score_table, np.array([len(table)], output_type.dtype)


def _single(value: Any) -> Any:
    """The number in a rank-0 or one-element tensor, thresholds of whatever float type as f32."""
    if np.size(value) != 1:
        raise KernelError(f"a limit or threshold must be one number, it has shape {shape_text(np.shape(value))}")
    number = np.ravel(value)[0]
    return int(number) if number.dtype.kind in "iu" else np.float32(number)


def _check(boxes: Array, scores: Array, size: int) -> None:
    fits = boxes.ndim == scores.ndim == 3 and boxes.shape[2] == size
    if not fits or boxes.shape[0] != scores.shape[0] or boxes.shape[1] != scores.shape[2]:
        shapes = f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{shapes} do not fit: expected [batches,boxes,{size}] and [batches,classes,boxes]")
