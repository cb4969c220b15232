"""Boxes as [x1, y1, x2, y2]: how much they overlap, and which of them survive the stronger ones.

Source: the pages of the non-maximum suppressions and of the detection operations, which share these two steps.
`pixel` is 1 where a coordinate names a whole pixel, so that a box from 3 to 3 is one wide, and 0 otherwise.
"""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array


def areas(boxes: Array, pixel: float = 0.0) -> Array:
    """Width times height of each box, the last axis being its four coordinates."""
    return (boxes[..., 2] - boxes[..., 0] + pixel) * (boxes[..., 3] - boxes[..., 1] + pixel)


def overlaps(box: Array, others: Array, pixel: float = 0.0, must_touch: bool = False) -> Array:
    """Return intersection over union of one box with each of the others; 0 where either has no area.

    With `must_touch` boxes that lie less than a pixel apart do not count as overlapping.
    """
    sides = np.minimum(box[2:], others[..., 2:]) - np.maximum(box[:2], others[..., :2])
    sides = np.where(sides >= 0, sides + pixel, 0) if must_touch else np.maximum(sides + pixel, 0)
    intersection = sides[..., 0] * sides[..., 1]
    own, theirs = areas(box, pixel), areas(others, pixel)
    union = own + theirs - intersection
    return np.where((own > 0) & (theirs > 0), intersection / union, 0).astype(others.dtype)


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
