"""Non-maximum suppression of scored boxes, class by class.

Source: the pages NonMaxSuppression-1, -3, -4, -5, -9 and NMSRotated-13. Where they leave it open or OpenVINO decides
otherwise it is as there: a box is selected only with a score strictly greater than score_threshold, an overlap of just
iou_threshold is one too many (not so of rotated boxes), and the outputs hold the selected boxes and no padding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from stepper.element_types import I64, Array, DType, ElementType
from stepper.errors import KernelError
from stepper.ops.operands import form_text, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.records import Record

# Boxes as [x1, y1, x2, y2]: how much they overlap, and which of them survive the stronger ones.
#
# Source: the pages of the non-maximum suppressions and of the detection operations, which share these two steps.
# `pixel` is 1 where a coordinate names a whole pixel, so that a box from 3 to 3 is one wide, and 0 otherwise. Rotated
# boxes are [x_center, y_center, width, height, angle] (NMSRotated-13): the angle is in radians, y points down, so that
# a turn from x to y is clockwise.


def areas(boxes: Array, pixel: float = 0.0) -> Array:
    """Width times height of each box, the last axis being its four coordinates."""
    return (boxes[..., 2] - boxes[..., 0] + pixel) * (boxes[..., 3] - boxes[..., 1] + pixel)


def overlaps(box: Array, others: Array, pixel: float = 0.0, must_touch: bool = False) -> Array:
    """Return intersection over union of one box with each of the others; 0 where either has no area.

    With `must_touch` boxes that lie less than a pixel apart do not count as overlapping.
    """
    sides = np.minimum(box[2:], others[..., 2:]) - np.maximum(box[:2], others[..., :2])
    sides = np.where(sides >= 0, sides + pixel, 0) if must_touch else np.maximum(sides + pixel, 0)
    found = _over_union(sides[..., 0] * sides[..., 1], areas(box, pixel), areas(others, pixel))
    return found.astype(others.dtype)


def _over_union(intersection: Array, own: Array, theirs: Array) -> Array:
    """Return the part of what two areas cover together that they share; 0 where either is none."""
    return np.where((own > 0) & (theirs > 0), intersection / (own + theirs - intersection), 0)


def refined(boxes: Array, deltas: Array, pixel: float = 0.0, greatest_log: float = np.inf) -> Array:
    """Return boxes moved and resized by deltas [dx, dy, log of width, log of height] in parts of their own size.

    The result runs from edge to edge: where a coordinate names a pixel, the last one lies `pixel` before its end.
    """
    size = boxes[..., 2:] - boxes[..., :2] + pixel
    center = boxes[..., :2] + size / 2 + deltas[..., :2] * size
    half = np.exp(np.minimum(deltas[..., 2:], boxes.dtype.type(greatest_log))) * size / 2
    return np.concatenate([center - half, center + half], axis=-1)


def surviving(
    boxes: Array, threshold: float, limit: int, pixel: float = 0.0, eta: float = 1.0, must_touch: bool = False
) -> list[int]:
    """Return positions of the boxes (best first) that overlap no better survivor beyond the threshold, `limit` at most.

    With eta < 1 the threshold shrinks by that factor after each survivor for as long as it is above 0.5.
    """
    worst, threshold = np.zeros(len(boxes), boxes.dtype), boxes.dtype.type(threshold)
    kept: list[int] = []
    position = 0
    while position < len(boxes) and len(kept) < limit:
        kept.append(position)
        worst = np.maximum(worst, overlaps(boxes[position], boxes, pixel, must_touch))
        if eta < 1 and threshold > 0.5:
            threshold *= boxes.dtype.type(eta)
        free = np.flatnonzero(worst[position + 1 :] <= threshold)
        position = position + 1 + int(free[0]) if free.size else len(boxes)
    return kept


_TOUCHING = 1e-9
_SIGNS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])


def corners(boxes: Array, clockwise: bool) -> Array:
    """Return the four corners [..., 4, 2] of each box in order around it, in f64."""
    boxes = boxes.astype(np.float64)
    center, size, angle = boxes[..., None, :2], boxes[..., None, 2:4], boxes[..., 4, None]
    angle = angle if clockwise else -angle
    x, y = np.moveaxis(_SIGNS * size, -1, 0)
    turned = [x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)]
    around: Array = center + np.stack(turned, axis=-1)
    return around


def rotated_overlaps(box: Array, others: Array) -> Array:
    """Return intersection over union of one box with each of the others [n, 4, 2], both given by their corners."""
    found = _over_union(_intersection_areas(box, others), _enclosed(box), _enclosed(others))
    return found.astype(np.float32)


def _intersection_areas(box: Array, others: Array) -> Array:
    """Return the area of the convex polygon between the crossings of the edges and corners in the other box."""
    edge, edges = np.roll(box, -1, axis=-2) - box, np.roll(others, -1, axis=-2) - others
    between = others[:, None] - box[:, None]
    turn = _cross(edge[:, None], edges[:, None])
    along, across = _cross(between, edges[:, None]) / turn, _cross(between, edge[:, None]) / turn
    crossing = (np.abs(turn) > _TOUCHING) & (along >= 0) & (along <= 1) & (across >= 0) & (across <= 1)
    points = box[:, None] + np.where(crossing, along, 0)[..., None] * edge[:, None]
    count = len(others)
    vertices = [points.reshape(count, 16, 2), np.broadcast_to(box, others.shape), others]
    valid = [crossing.reshape(count, 16), _inside(box, others, edges), _inside(others, box[None], edge[None])]
    return _hull_areas(np.concatenate(vertices, axis=1), np.concatenate(valid, axis=1))


def _inside(points: Array, corner: Array, edge: Array) -> Array:
    """Return True if each point lies in the convex polygon of these corners and edges, its outline included."""
    sides = _cross(edge[:, None], points[..., :, None, :] - corner[:, None])
    return np.logical_or((sides >= -_TOUCHING).all(axis=-1), (sides <= _TOUCHING).all(axis=-1))


def _hull_areas(points: Array, valid: Array) -> Array:
    """Return area of the convex polygon with the valid points [n, k, 2] as vertices, whatever their order."""
    first = np.take_along_axis(points, valid.argmax(axis=1)[:, None, None], axis=1)
    points = np.where(valid[..., None], points, first)
    offsets = points - points.mean(axis=1, keepdims=True)
    order = np.argsort(np.arctan2(offsets[..., 1], offsets[..., 0]), axis=1)
    ring = np.take_along_axis(offsets, order[..., None], axis=1)
    return np.where(valid.any(axis=1), _enclosed(ring), 0)


def _enclosed(ring: Array) -> Array:
    """Return area within a polygon [..., k, 2] (the shoelace formula)."""
    area: Array = np.abs(_cross(ring, np.roll(ring, -1, axis=-2)).sum(axis=-1)) / 2
    return area


def _cross(a: Array, b: Array) -> Array:
    product: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


BoxEncoding = Literal["corner", "center"]
Selection = tuple[Array, Array, Array]


class _Rules(Record):
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
    _check(boxes, scores, 4)
    boxes = boxes.astype(np.float32, copy=False)
    first, second = boxes[..., :2], boxes[..., 2:]
    if box_encoding == "center":
        first, second = first - second / 2, first + second / 2
    ordered = np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)

    def overlap_with(batch: int, best: int) -> Array:
        return overlaps(ordered[batch, best], ordered[batch])

    return _select(scores, overlap_with, rules, sort_result_descending, output_type)


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

    def overlap_with(batch: int, best: int) -> Array:
        return rotated_overlaps(outlines[batch, best], outlines[batch])

    return _select(scores, overlap_with, rules, sort_result_descending, output_type)


def _select(
    scores: Array,
    overlap_with: Callable[[int, int], Array],
    rules: _Rules,
    descending: bool,
    output_type: ElementType,
) -> Selection:
    """Return the selection of every batch and class, put together."""
    indices: list[tuple[int, int, int]] = []
    chosen: list[float] = []
    for batch, classes in enumerate(scores):
        for label, of_class in enumerate(classes):
            boxes, final = _selected(of_class, partial(overlap_with, batch), rules)
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


# Non-maximum suppression of all classes of an image together, the best boxes of any class kept.
#
# Source: the pages MulticlassNonMaxSuppression-8, -9 and MatrixNonMaxSuppression-8 (in an IR MulticlassNms, MatrixNms).

SortResult = Literal["none", "score", "classid"]
OfClass = Callable[[Array, Array], tuple[Array, Array]]
"""Boxes and scores of one class in, positions and scores of those that it keeps out."""


class _Images(Record):
    """Boxes to select from: for each image boxes [classes, n, 4], scores [classes, n] and the boxes' numbers."""

    boxes: list[Array]
    scores: list[Array]
    numbers: list[Array]


class _Wanted(Record, kw_only=True):
    """The attributes that both operations have."""

    sort_result_type: SortResult = "none"
    sort_result_across_batch: bool = False
    output_type: ElementType = I64
    score_threshold: float = 0.0
    nms_top_k: int = -1
    keep_top_k: int = -1
    background_class: int = -1
    normalized: bool = True

    @property
    def pixel(self) -> float:
        """1 where a coordinate names a pixel."""
        return 0.0 if self.normalized else 1.0


@kernel("MulticlassNms", 8, 9)
@attributes_of(_Wanted)
def multiclass_nms(
    boxes: Array,
    scores: Array,
    roisnum: Any = None,
    *,
    iou_threshold: float = 0.0,
    nms_eta: float = 1.0,
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Return [class, score, box] and number of each box kept, and how many each image has."""
    wanted = _Wanted(**attributes)

    def of_class(boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = best_first(scores, scores >= np.float32(wanted.score_threshold), wanted.nms_top_k)
        kept = order[surviving(boxes[order], iou_threshold, len(order), wanted.pixel, nms_eta)]
        return kept, scores[kept]

    images = _shared_boxes(boxes, scores) if roisnum is None else _boxes_of_classes(boxes, scores, roisnum)
    return _search(images, of_class, wanted, wanted.sort_result_type, boxes.dtype)


@kernel("MatrixNms", 8)
@attributes_of(_Wanted)
def matrix_nms(
    boxes: Array,
    scores: Array,
    *,
    decay_function: Literal["linear", "gaussian"] = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
    **attributes: Any,
) -> tuple[Array, Array, Array]:
    """Return [class, score, box] and number of each box kept, scores lowered by the overlap with better boxes."""
    wanted = _Wanted(**attributes)
    sigma = gaussian_sigma if decay_function == "gaussian" else None

    def of_class(boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = best_first(scores, scores > np.float32(wanted.score_threshold), wanted.nms_top_k)
        decayed = scores[order] * _decay(boxes[order], wanted.pixel, sigma)
        enough = decayed > np.float32(post_threshold)
        return order[enough], decayed[enough]

    # The runtime sorts by class only across the batch, within each image by score.
    sort_by = wanted.sort_result_type if wanted.sort_result_across_batch else "score"
    return _search(_shared_boxes(boxes, scores), of_class, wanted, sort_by, boxes.dtype)


def best_first(scores: Array, candidate: Array, limit: int = -1) -> Array:
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
    _check(boxes, scores, 4)
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


def _search(images: _Images, of_class: OfClass, wanted: _Wanted, sort_by: str, dtype: DType) -> Selection:
    """Return the boxes that each class of each image keeps, cut to keep_top_k, in the order asked for."""
    rows, numbers = [np.zeros((0, 7), np.float64)], [np.zeros(0, np.int64)]
    for image, (boxes, scores, own_numbers) in enumerate(zip(images.boxes, images.scores, images.numbers, strict=True)):
        found, found_numbers = [np.zeros((0, 7), np.float64)], [np.zeros(0, np.int64)]
        for label in set(range(len(scores))) - {wanted.background_class}:
            kept, final = of_class(boxes[label], scores[label])
            prefix = np.broadcast_to([float(image), float(label)], (len(kept), 2))
            found.append(np.concatenate([prefix, final[:, None], boxes[label, kept]], axis=1))
            found_numbers.append(own_numbers[label, kept])
        of_image, of_numbers = np.concatenate(found), np.concatenate(found_numbers)
        order = best_first(of_image[:, 2], np.ones(len(of_image)), wanted.keep_top_k)
        rows.append(of_image[order])
        numbers.append(of_numbers[order])
    table, number = np.concatenate(rows), np.concatenate(numbers)
    counts = np.bincount(table[:, 0].astype(np.int64), minlength=len(images.boxes))
    order = _order(table[:, 0], table[:, 1], table[:, 2], sort_by, wanted.sort_result_across_batch)
    index_dtype = wanted.output_type.dtype
    return narrowed(table[order, 1:], dtype), number[order, None].astype(index_dtype), counts.astype(index_dtype)


def _order(image: Array, label: Array, score: Array, sort_by: str, across_batch: bool) -> Array:
    """Return positions in the order of the result, starting from descending scores image by image."""
    keys = {"score": [-score], "classid": [-score, label], "none": []}[sort_by]
    if not keys:
        return np.arange(len(image))
    if across_batch:
        return np.lexsort([image, *keys] if sort_by == "score" else [-score, image, label])
    return np.lexsort([*keys, image])
