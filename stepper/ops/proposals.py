"""Region proposals: anchors moved by predicted deltas, the best of those that overlap kept.

Source: the pages Proposal-1, -4, GenerateProposals-9 and ExperimentalDetectronGenerateProposalsSingleImage-6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.element_types import I64, Array, ElementType
from stepper.errors import KernelError
from stepper.ops.boxes import refined, surviving
from stepper.ops.operands import check_positive, ensure_allocatable, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.ops.roi_sampling import round_half_away

_GREATEST_LOG: Final = math.log(1000 / 16)
"""The predicted logarithm of a size is cut here in the operations that come from Detectron."""


class _ProposalRules(Struct, frozen=True, kw_only=True):
    """The attributes of Proposal."""

    base_size: int = 0
    pre_nms_topn: int = 0
    post_nms_topn: int = 0
    nms_thresh: float = 0.0
    feat_stride: int = 1
    min_size: int = 1
    ratio: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    clip_before_nms: bool = True
    clip_after_nms: bool = False
    normalize: bool = False
    box_size_scale: float = 1.0
    box_coordinate_scale: float = 1.0
    framework: str = ""

    @property
    def pixel(self) -> float:
        """1 where a coordinate names a pixel, as in Caffe."""
        return 0.0 if self.tensorflow else 1.0

    @property
    def tensorflow(self) -> bool:
        """True if boxes are [y1, x1, y2, x2], anchors lie about their position and are cut to the image."""
        return self.framework == "tensorflow"

    def corner(self, info: Array) -> Array:
        """Return the image size [height, width, ...] as the greatest coordinates of a box."""
        return info[[0, 1, 0, 1]] if self.tensorflow else info[[1, 0, 1, 0]]


@kernel("Proposal", 1)
@attributes_of(_ProposalRules)
def proposal_1(class_probs: Array, bbox_deltas: Array, image_shape: Array, **attributes: Any) -> Array:
    """Return [batch, x1, y1, x2, y2] of the best anchors; -1 as the batch ends a shorter list."""
    return _proposals(class_probs, bbox_deltas, image_shape, _ProposalRules(**attributes))[0]


@kernel("Proposal", 4)
@attributes_of(_ProposalRules)
def proposal(class_probs: Array, bbox_deltas: Array, image_shape: Array, **attributes: Any) -> tuple[Array, Array]:
    """Proposal-1 and the score of each box."""
    return _proposals(class_probs, bbox_deltas, image_shape, _ProposalRules(**attributes))


@kernel("GenerateProposals", 9)
def generate_proposals(
    im_info: Array,
    anchors: Array,
    boxesdeltas: Array,
    scores: Array,
    *,
    min_size: float = 0.0,
    nms_threshold: float = 0.0,
    pre_nms_count: int,
    post_nms_count: int,
    normalized: bool = True,
    nms_eta: float = 1.0,
    roi_num_type: ElementType = I64,
) -> tuple[Array, Array, Array]:
    """Return the best boxes of all images one after the other, their scores, and how many each image has."""
    check_positive(pre_nms_count=pre_nms_count, post_nms_count=post_nms_count)
    fits = im_info.ndim == 2 and im_info.shape[1] in (3, 4) and scores.ndim == 4 and len(im_info) == len(scores)
    if not fits or boxesdeltas.ndim != 4 or len(boxesdeltas) != len(scores):
        shapes = f"{shape_text(im_info.shape)}, {shape_text(boxesdeltas.shape)} and {shape_text(scores.shape)}"
        raise KernelError(f"image sizes, deltas and scores of shapes {shapes} are not of the same images")
    pixel = 0.0 if normalized else 1.0
    flat, found, found_scores = _boxes_in_rows(anchors), [np.zeros((0, 4), np.float32)], [np.zeros(0, np.float32)]
    for info, deltas, of_image in zip(widened(im_info), boxesdeltas, scores, strict=True):
        boxes = _refined_in_image(flat, _by_anchor(deltas, of_image.shape), info, pixel)
        values = widened(np.moveaxis(of_image, 0, -1).ravel())
        best = np.argsort(-values, kind="stable")[:pre_nms_count]
        best = best[_large_enough(boxes[best], pixel, np.float32(min_size) * info[[-1, 2]])]
        kept = best[surviving(boxes[best], nms_threshold, post_nms_count, pixel, nms_eta, must_touch=True)]
        found.append(boxes[kept])
        found_scores.append(values[kept])
    counts = np.array([len(boxes) for boxes in found[1:]], roi_num_type.dtype)
    return narrowed(np.concatenate(found), scores.dtype), narrowed(np.concatenate(found_scores), scores.dtype), counts


@kernel("ExperimentalDetectronGenerateProposalsSingleImage", 6)
def generate_proposals_single_image(
    im_info: Array,
    anchors: Array,
    deltas: Array,
    scores: Array,
    *,
    min_size: float = 0.0,
    nms_threshold: float = 0.0,
    pre_nms_count: int = 0,
    post_nms_count: int = 0,
) -> tuple[Array, Array]:
    """Return the `post_nms_count` best boxes of one image and their scores, zeros after the last."""
    if scores.ndim != 3 or im_info.shape != (3,):
        shapes = f"{shape_text(im_info.shape)} and {shape_text(scores.shape)}"
        raise KernelError(f"image size and scores of shapes {shapes} do not fit: expected [3] and [anchors,h,w]")
    _check_counts(pre_nms_count, post_nms_count)
    boxes = _refined_in_image(_boxes_in_rows(anchors), _by_anchor(deltas, scores.shape), widened(im_info), 1.0)
    enough = _large_enough(boxes, 1.0, np.float32(min_size))
    values = widened(np.moveaxis(scores, 0, -1).ravel())
    best = np.argsort(-values, kind="stable")
    best = best[enough[best]][:pre_nms_count]
    kept = best[surviving(boxes[best], nms_threshold, post_nms_count)]
    found = np.zeros((post_nms_count, 4), np.float32)
    found_scores = np.zeros(post_nms_count, np.float32)
    found[: len(kept)], found_scores[: len(kept)] = boxes[kept], values[kept]
    return narrowed(found, scores.dtype), narrowed(found_scores, scores.dtype)


def _boxes_in_rows(anchors: Array) -> Array:
    if not anchors.ndim or anchors.shape[-1] != 4:
        raise KernelError(f"anchors of shape {shape_text(anchors.shape)} do not have 4 coordinates each")
    return anchors.reshape(-1, 4)


def _by_anchor(deltas: Array, shape: Sequence[int]) -> Array:
    """Deltas [anchors * 4, h, w] as [h * w * anchors, 4], for scores of shape [anchors, h, w]."""
    anchors, height, width = shape
    if deltas.shape != (4 * anchors, height, width):
        raise KernelError(f"deltas {shape_text(deltas.shape)} and scores {shape_text(shape)} of one image do not fit")
    return widened(deltas).reshape(anchors, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)


def _refined_in_image(anchors: Array, deltas: Array, info: Array, pixel: float) -> Array:
    """Return each anchor moved by its deltas and cut to the image [height, width, ...]."""
    if anchors.shape != deltas.shape:
        raise KernelError(f"{len(anchors)} anchors do not fit {len(deltas)} positions of the feature map")
    boxes = refined(widened(anchors), deltas, pixel, _GREATEST_LOG)
    boxes[:, 2:] -= np.float32(pixel)
    return np.clip(boxes, 0, np.tile(info[[1, 0]] - np.float32(pixel), 2))


def _large_enough(boxes: Array, pixel: float, least: Any) -> Array:
    """Return True if width and height of each box are at least so large."""
    size = boxes[:, 2:] - boxes[:, :2] + np.float32(pixel)
    return np.asarray((size >= least).all(axis=1))


def _check_counts(before: int, after: int) -> None:
    if before < 0 or after < 0:
        raise KernelError(f"{before} boxes before and {after} after the suppression are not counts")
    ensure_allocatable((after, 5), np.float32)


def _proposals(
    class_probs: Array, bbox_deltas: Array, image_shape: Array, settings: _ProposalRules
) -> tuple[Array, Array]:
    """Return the boxes of every image and their scores."""
    anchors = _anchors(settings)
    count = len(anchors)
    fits = class_probs.ndim == bbox_deltas.ndim == 4 and class_probs.shape[1] == 2 * count
    if not fits or bbox_deltas.shape != (len(class_probs), 4 * count, *class_probs.shape[2:]):
        shapes = f"{shape_text(class_probs.shape)} and {shape_text(bbox_deltas.shape)}"
        raise KernelError(f"scores and deltas of shapes {shapes} do not fit each other and {count} anchors")
    if image_shape.shape not in ((3,), (4,)):
        raise KernelError(f"the image size must have 3 or 4 elements, not the shape {shape_text(image_shape.shape)}")
    images, limit = len(class_probs), settings.post_nms_topn
    _check_counts(settings.pre_nms_topn, images * limit)
    info = widened(image_shape)
    anchors = _placed(anchors, class_probs.shape[2], class_probs.shape[3], info, settings)
    found, scores = np.zeros((images, limit, 5), np.float32), np.zeros((images, limit), np.float32)
    for image in range(images):
        deltas = _by_anchor(bbox_deltas[image], (count, *class_probs.shape[2:]))
        values = widened(np.moveaxis(class_probs[image, count:], 0, -1).ravel())
        boxes, best = _best_of_image(anchors, deltas, values, info, settings)
        found[image, : len(boxes), 0], found[image, : len(boxes), 1:] = image, boxes
        scores[image, : len(boxes)] = best
        found[image, len(boxes) : len(boxes) + 1, 0] = -1
    return narrowed(found.reshape(-1, 5), class_probs.dtype), narrowed(scores.ravel(), class_probs.dtype)


def _anchors(settings: _ProposalRules) -> Array:
    """Return the boxes [ratios * scales, 4] of each shape about one common centre."""
    check_positive(base_size=settings.base_size, feat_stride=settings.feat_stride)
    ratios, scales = np.array(settings.ratio, np.float32)[:, None], np.array(settings.scale, np.float32)
    width = np.sqrt(np.float32(settings.base_size) ** 2 / ratios)
    pixel = np.float32(settings.pixel)
    if pixel:
        width = round_half_away(width)
    height = round_half_away(width * ratios) if pixel else width * ratios
    half = np.stack([width * scales - pixel, height * scales - pixel], axis=-1).reshape(-1, 2) / 2
    center = np.float32((settings.base_size - pixel) / 2 if pixel else 0)
    return np.concatenate([center - half, center + half], axis=1).astype(np.float32)


def _placed(anchors: Array, height: int, width: int, info: Array, settings: _ProposalRules) -> Array:
    """Return the anchors at every position of the feature map [h * w * anchors, 4]."""
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    if settings.tensorflow:
        rows, columns = columns, rows
    offsets = np.stack([columns, rows] * 2, axis=-1)[:, :, None].astype(np.float32) * np.float32(settings.feat_stride)
    placed: Array = (anchors + offsets).reshape(-1, 4)
    return np.clip(placed, 0, settings.corner(info)) if settings.tensorflow else placed


def _best_of_image(
    anchors: Array, deltas: Array, scores: Array, info: Array, settings: _ProposalRules
) -> tuple[Array, Array]:
    """Return boxes and scores of one image, best first."""
    scales = np.array([settings.box_coordinate_scale] * 2 + [settings.box_size_scale] * 2, np.float32)
    boxes, corner = refined(anchors, deltas / scales, settings.pixel), settings.corner(info)
    if settings.clip_before_nms:
        boxes = np.clip(boxes, 0, corner - np.float32(settings.pixel))
    enough = _large_enough(boxes, settings.pixel, np.float32(settings.min_size) * info[[-1, 2]])
    best = np.argsort(-scores, kind="stable")
    best = best[enough[best]][: settings.pre_nms_topn]
    kept = surviving(boxes[best], settings.nms_thresh, settings.post_nms_topn, settings.pixel, must_touch=True)
    boxes, scores = boxes[best[kept]], scores[best[kept]]
    if settings.clip_after_nms:
        boxes = np.clip(boxes, 0, corner)
    return boxes / corner if settings.normalize else boxes, scores
