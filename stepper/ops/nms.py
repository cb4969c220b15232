"""Non-maximum suppression of scored boxes, class by class.

Source: the pages NonMaxSuppression-1, -3, -4, -5, -9 and NMSRotated-13. Where they leave it open or OpenVINO decides
otherwise it is as there: a box is selected only with a score strictly greater than score_threshold, an overlap of just
iou_threshold is one too many (not so of rotated boxes), and the outputs hold the selected boxes and no padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from stepper.element_types import I64, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.boxes import corners, overlaps, rotated_overlaps
from stepper.ops.operands import form_text, shape_text
from stepper.ops.registry import attributes_of, kernel

BoxEncoding = Literal["corner", "center"]
Selection = tuple[Array, Array, Array]


class _Rules(Struct, frozen=True):
    """Limits of the selection: boxes of a class, least score, and the effect of an overlap on the others.

    `silences` tells of overlaps and the threshold which are too large; with sigma > 0 no overlap is, but the score
    falls by the factor exp(-overlap² / (2 sigma)).
    """

    limit: int
    iou_threshold: float
    score_threshold: float
    sigma: float
    silences: Callable[[Array, float], Array]


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
    """Return [batch, class, box] and [batch, class, score] of each selected box, and how many there are."""
    rules = _rules(max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma)
    return _non_max_suppression(boxes, scores, rules, box_encoding, sort_result_descending, output_type)


@kernel("NonMaxSuppression", 1, without=("output_type",))
@kernel("NonMaxSuppression", 3, 4)
@attributes_of(non_max_suppression)
def non_max_suppression_1(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = 0.0,
    **attributes: Any,
) -> Array:
    """Return [batch, class, box] of each selected box, in `output_type`."""
    limits = (max_output_boxes_per_class, iou_threshold, score_threshold)
    return non_max_suppression(boxes, scores, *limits, **attributes)[0]


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
    rules = _rules(max_output_boxes_per_class, iou_threshold, score_threshold, silences=np.greater)

    def overlap_with(batch: int) -> Callable[[int], Array]:
        return lambda best: rotated_overlaps(outlines[batch, best], outlines[batch])

    return _select(scores, overlap_with, rules, sort_result_descending, output_type)


def _non_max_suppression(
    boxes: Array,
    scores: Array,
    rules: _Rules,
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

    return _select(scores, overlap_with, rules, descending, output_type)


def _select(
    scores: Array,
    overlap_with: Callable[[int], Callable[[int], Array]],
    rules: _Rules,
    descending: bool,
    output_type: ElementType,
) -> Selection:
    """Return the selection of every batch and class, put together."""
    indices: list[tuple[int, int, int]] = []
    chosen: list[float] = []
    for batch, classes in enumerate(scores):
        for label, of_class in enumerate(classes):
            boxes, final = _selected(of_class, overlap_with(batch), rules)
            indices += [(batch, label, box) for box in boxes]
            chosen += final
    table, best = np.array(indices, np.int64).reshape(-1, 3), np.array(chosen, np.float32)
    if descending:
        order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], -best))
        table, best = table[order], best[order]
    score_table = np.concatenate([table[:, :2].astype(np.float32), best[:, None]], axis=1)
    return table.astype(output_type.dtype), score_table, np.array([len(table)], output_type.dtype)


def _selected(scores: Array, overlap_with: Callable[[int], Array], rules: _Rules) -> tuple[list[int], list[float]]:
    """Return positions and scores of the boxes of one class that are selected, the best first."""
    above = rules.score_threshold
    remaining = np.where(scores > above, scores, -np.inf).astype(np.float32)
    positions: list[int] = []
    final: list[float] = []
    while len(positions) < min(rules.limit, scores.size):
        best = int(remaining.argmax())
        if not remaining[best] > above:
            break
        positions.append(best)
        final.append(float(remaining[best]))
        overlap = overlap_with(best)
        if rules.sigma > 0:
            lowered = remaining * np.exp(overlap * overlap * np.float32(-0.5 / rules.sigma))
            remaining = np.where(remaining > above, lowered, -np.inf)
        else:
            remaining[rules.silences(overlap, rules.iou_threshold)] = -np.inf
        remaining[best] = -np.inf
    return positions, final


def _rules(
    limit: Any, iou: Any, score: Any, sigma: Any = 0.0, silences: Callable[[Array, float], Array] = np.greater_equal
) -> _Rules:
    """Return the rules that the inputs give."""
    return _Rules(int(_single(limit)), _single(iou), _single(score), _single(sigma), silences)


def _single(value: Any) -> Any:
    """Return the number in a rank-0 or one-element tensor, thresholds of whatever float type as f32."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind == "T":
        raise KernelError(f"a limit or threshold must be one number, it is {form_text(array)}")
    number = array.reshape(-1)[0]
    return int(number) if number.dtype.kind in "iu" else np.float32(number)


def _check(boxes: Array, scores: Array, size: int) -> None:
    fits = boxes.ndim == scores.ndim == 3 and boxes.shape[2] == size
    if not fits or boxes.shape[0] != scores.shape[0] or boxes.shape[1] != scores.shape[2]:
        shapes = f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{shapes} do not fit: expected [batches,boxes,{size}] and [batches,classes,boxes]")
