"""Boxes as [x1, y1, x2, y2]: how much they overlap, and which of them survive the stronger ones.

Source: the pages of the non-maximum suppressions and of the detection operations, which share these two steps.
`pixel` is 1 where a coordinate names a whole pixel, so that a box from 3 to 3 is one wide, and 0 otherwise.
Rotated boxes are [x_center, y_center, width, height, angle] (NMSRotated-13): the angle is in radians, y points down, so
that a turn from x to y is clockwise.
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
    intersection = _intersection_areas(box, others)
    own, theirs = _enclosed(box), _enclosed(others)
    union = own + theirs - intersection
    return np.where((own > 0) & (theirs > 0), intersection / union, 0).astype(np.float32)


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
