"""Non-maximum suppression of all classes of an image together, the best boxes of any class kept.

Source: the pages MulticlassNonMaxSuppression-8, -9 and MatrixNonMaxSuppression-8 (in an IR MulticlassNms, MatrixNms).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from stepper.element_types import I64, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.boxes import overlaps, surviving
from stepper.ops.operands import integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

SortResult = Literal["none", "score", "classid"]
Selection = tuple[Array, Array, Array]
OfClass = Callable[[Array, Array], tuple[Array, Array]]
"""Boxes and scores of one class in, positions and scores of those that it keeps out."""


class _Images(Struct, frozen=True):
    """Boxes to select from: for each image boxes [classes, n, 4], scores [classes, n] and the boxes' numbers."""

    boxes: list[Array]
    scores: list[Array]
    numbers: list[Array]


class _Result(Struct, frozen=True):
    """Layout of the result."""

    sort_by: str
    across_batch: bool
    keep_top_k: int
    index_type: ElementType


@kernel("MulticlassNms", 8, 9)
def multiclass_nms(
    boxes: Array,
    scores: Array,
    roisnum: Any = None,
    *,
    sort_result_type: SortResult = "none",
    sort_result_across_batch: bool = False,
    output_type: ElementType = I64,
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    nms_eta: float = 1.0,
    normalized: bool = True,
) -> tuple[Array, Array, Array]:
    """Return [class, score, box] and number of each box kept, and how many each image has."""
    pixel = 0.0 if normalized else 1.0

    def of_class(boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = _best(scores, scores >= np.float32(score_threshold), nms_top_k)
        kept = order[surviving(boxes[order], iou_threshold, len(order), pixel, nms_eta)]
        return kept, scores[kept]

    layout = _Result(sort_result_type, sort_result_across_batch, keep_top_k, output_type)
    images = _shared_boxes(boxes, scores) if roisnum is None else _boxes_of_classes(boxes, scores, roisnum)
    return _search(images, of_class, background_class, layout, boxes.dtype)


@kernel("MatrixNms", 8)
def matrix_nms(
    boxes: Array,
    scores: Array,
    *,
    sort_result_type: SortResult = "none",
    sort_result_across_batch: bool = False,
    output_type: ElementType = I64,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    decay_function: Literal["linear", "gaussian"] = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
    normalized: bool = True,
) -> tuple[Array, Array, Array]:
    """Return [class, score, box] and number of each box kept, scores lowered by the overlap with better boxes."""
    pixel = 0.0 if normalized else 1.0
    sigma = gaussian_sigma if decay_function == "gaussian" else None

    def of_class(boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = _best(scores, scores > np.float32(score_threshold), nms_top_k)
        decayed = scores[order] * _decay(boxes[order], pixel, sigma)
        enough = decayed > np.float32(post_threshold)
        return order[enough], decayed[enough]

    # The runtime sorts by class only across the batch, within each image by score.
    sort_by = sort_result_type if sort_result_across_batch else "score"
    layout = _Result(sort_by, sort_result_across_batch, keep_top_k, output_type)
    return _search(_shared_boxes(boxes, scores), of_class, background_class, layout, boxes.dtype)


def _best(scores: Array, candidate: Array, limit: int) -> Array:
    """Return positions of the candidates by descending score, at most `limit` of them (-1: all)."""
    positions = np.flatnonzero(candidate)
    order = positions[np.argsort(-scores[positions], kind="stable")]
    return order[:limit] if limit >= 0 else order


def _decay(boxes: Array, pixel: float, sigma: float | None) -> Array:
    """Return the factor of each box's score (boxes best first): the least over the better boxes."""
    if not len(boxes):
        return np.ones(0, boxes.dtype)
    better = np.stack([overlaps(box, boxes, pixel, must_touch=True) for box in boxes])
    better = np.triu(better, 1)
    worst = better.max(axis=0)[:, None]
    factor = (1 - better) / (1 - worst) if sigma is None else np.exp((worst**2 - better**2) * np.float32(sigma))
    factor[np.tri(len(boxes), dtype=np.bool_)] = 1
    least: Array = factor.min(axis=0)
    return least


def _shared_boxes(boxes: Array, scores: Array) -> _Images:
    if not (boxes.ndim == scores.ndim == 3 and boxes.shape == (scores.shape[0], scores.shape[2], 4)):
        shapes = f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{shapes} do not fit: expected [batches,boxes,4] and [batches,classes,boxes]")
    batches, classes, count = scores.shape
    wide = np.broadcast_to(widened(boxes)[:, None], (batches, classes, count, 4))
    numbers = np.arange(batches * count).reshape(batches, 1, count)
    return _Images(list(wide), list(widened(scores)), list(np.broadcast_to(numbers, scores.shape)))


def _boxes_of_classes(boxes: Array, scores: Array, roisnum: Any) -> _Images:
    counts = integers(roisnum)
    if boxes.ndim != 3 or boxes.shape != (*scores.shape, 4):
        shapes = f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)}"
        raise KernelError(f"{shapes} do not fit: expected [classes,boxes,4] and [classes,boxes]")
    if min(counts, default=0) < 0 or sum(counts) > scores.shape[1]:
        raise KernelError(f"roisnum {shape_text(counts)} does not fit the {scores.shape[1]} boxes of each class")
    ends = np.cumsum(counts)[:-1]
    numbers = np.arange(scores.size).reshape(scores.shape[::-1]).T
    parts = [np.split(part[:, : sum(counts)], ends, axis=1) for part in (widened(boxes), widened(scores), numbers)]
    return _Images(*parts)


def _search(images: _Images, of_class: OfClass, background: int, layout: _Result, dtype: np.dtype[Any]) -> Selection:
    """Return the boxes that each class of each image keeps, cut to keep_top_k, in the order asked for."""
    rows, numbers = [np.zeros((0, 7), np.float64)], [np.zeros(0, np.int64)]
    for image, (boxes, scores, own_numbers) in enumerate(zip(images.boxes, images.scores, images.numbers, strict=True)):
        found, found_numbers = [np.zeros((0, 7), np.float64)], [np.zeros(0, np.int64)]
        for label in set(range(len(scores))) - {background}:
            kept, final = of_class(boxes[label], scores[label])
            prefix = np.broadcast_to([float(image), float(label)], (len(kept), 2))
            found.append(np.concatenate([prefix, final[:, None], boxes[label, kept]], axis=1))
            found_numbers.append(own_numbers[label, kept])
        of_image, of_numbers = np.concatenate(found), np.concatenate(found_numbers)
        order = np.argsort(-of_image[:, 2], kind="stable")
        order = order[: layout.keep_top_k] if layout.keep_top_k >= 0 else order
        rows.append(of_image[order])
        numbers.append(of_numbers[order])
    table, number = np.concatenate(rows), np.concatenate(numbers)
    counts = np.bincount(table[:, 0].astype(np.int64), minlength=len(images.boxes))
    order = _order(table[:, 0], table[:, 1], table[:, 2], layout)
    index_dtype = layout.index_type.dtype
    return narrowed(table[order, 1:], dtype), number[order, None].astype(index_dtype), counts.astype(index_dtype)


def _order(image: Array, label: Array, score: Array, layout: _Result) -> Array:
    """Return positions in the order of the result, starting from descending scores image by image."""
    keys = {"score": [-score], "classid": [-score, label], "none": []}[layout.sort_by]
    if not keys:
        return np.arange(len(image))
    if layout.across_batch:
        return np.lexsort([image, *keys] if layout.sort_by == "score" else [-score, image, label])
    return np.lexsort([*keys, image])
