"""The last step of object detectors: predictions decoded, and the best boxes of each class.

Source: the pages DetectionOutput-1, -8 and RegionYolo-1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.boxes import refined, surviving
from stepper.ops.operands import ensure_allocatable, normalize_axis, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel

CodeType = Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"]


class _DetectionSettings(Struct, frozen=True, kw_only=True):
    """The attributes of DetectionOutput."""

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: bool = False
    keep_top_k: tuple[int, ...]
    code_type: CodeType = "caffe.PriorBoxParameter.CORNER"
    share_location: bool = True
    nms_threshold: float = 0.0
    confidence_threshold: float = 0.0
    clip_after_nms: bool = False
    clip_before_nms: bool = False
    decrease_label_id: bool = False
    normalized: bool = False
    input_height: int = 1
    input_width: int = 1
    objectness_score: float = 0.0

    @property
    def most_kept(self) -> int:
        """Number of boxes of an image that are kept; not positive: all."""
        if not self.keep_top_k:
            raise KernelError("the attribute 'keep_top_k' is empty")
        return self.keep_top_k[0]


class _Predictions(Struct, frozen=True):
    """Boxes [images, location classes, priors, 4] and scores [images, classes, priors]."""

    boxes: Array
    scores: Array


@kernel("DetectionOutput", 1)
@attributes_of(_DetectionSettings)
def detection_output_1(
    box_logits: Array,
    class_preds: Array,
    proposals: Array,
    aux_class_preds: Array | None = None,
    aux_box_preds: Array | None = None,
    *,
    num_classes: int,
    **attributes: Any,
) -> Array:
    """Return [image, class, score, x1, y1, x2, y2] of the best boxes of each class; image -1 ends a short list."""
    inputs = (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)
    return _detection_output(inputs, num_classes, _DetectionSettings(**attributes))


@kernel("DetectionOutput", 8)
@attributes_of(_DetectionSettings)
def detection_output(
    box_logits: Array,
    class_preds: Array,
    proposals: Array,
    aux_class_preds: Array | None = None,
    aux_box_preds: Array | None = None,
    **attributes: Any,
) -> Array:
    """DetectionOutput-1 with the number of classes told by the shapes."""
    inputs = (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)
    return _detection_output(inputs, None, _DetectionSettings(**attributes))


@kernel("RegionYolo", 1)
def region_yolo(
    data: Array,
    *,
    anchors: tuple[float, ...] = (),
    axis: int = 0,
    coords: int = 0,
    classes: int = 0,
    end_axis: int = 0,
    num: int = 0,
    do_softmax: bool = False,
    mask: tuple[int, ...] = (),
) -> Array:
    """Return the logistic function of position and objectness of each region, of its classes too or their softmax."""
    regions, entries = num if do_softmax else len(mask), coords + classes + 1
    if data.ndim != 4 or min(coords, classes, regions) < 0 or data.shape[1] < regions * entries:
        expected = f"{regions} regions of {coords} coordinates, {classes} classes and 1"
        raise KernelError(f"a tensor of shape {shape_text(data.shape)} does not hold {expected}")
    images, channels, height, width = data.shape
    used = regions * entries
    region = widened(data[:, :used]).reshape(images, regions, entries, height, width).copy()
    logistic = np.r_[0 : min(2, coords), coords : coords + 1 if do_softmax else entries]
    region[:, :, logistic] = 1 / (1 + np.exp(-region[:, :, logistic]))
    if do_softmax:
        scores = region[:, :, coords + 1 :]
        powers = np.exp(scores - scores.max(axis=2, keepdims=True, initial=-np.inf))
        region[:, :, coords + 1 :] = powers / powers.sum(axis=2, keepdims=True)
    result = narrowed(region.reshape(images, used, height, width), data.dtype)
    if not do_softmax:
        return result
    result = np.concatenate([result, data[:, used:channels]], axis=1)
    first, last = normalize_axis(axis, 4), normalize_axis(end_axis, 4)
    if first > last:
        raise KernelError(f"the axes {axis} to {end_axis} are not a range to flatten")
    return result.reshape(*data.shape[:first], math.prod(data.shape[first : last + 1]), *data.shape[last + 1 :])


def _detection_output(inputs: Sequence[Array | None], num_classes: int | None, settings: _DetectionSettings) -> Array:
    box_logits, class_preds, proposals, aux_scores, aux_boxes = inputs
    assert box_logits is not None and class_preds is not None and proposals is not None
    size = 4 if settings.normalized else 5
    priors = proposals.shape[-1] // size if proposals.ndim == 3 else 0
    classes = sum(class_preds.shape[-1:]) // max(priors, 1) if num_classes is None else num_classes
    _check(box_logits, class_preds, proposals, priors, classes, settings)
    predictions = _decoded(box_logits, class_preds, proposals, (priors, classes), aux_scores, aux_boxes, settings)
    images = len(box_logits)
    limit = (
        settings.most_kept if settings.most_kept > 0 else classes * (settings.top_k if settings.top_k > 0 else priors)
    )
    ensure_allocatable((images * limit, 7), np.float32)
    output, count = np.zeros((images * limit, 7), np.float32), 0
    for image in range(images):
        found = _of_image(predictions.boxes[image], predictions.scores[image], settings)[: len(output) - count]
        output[count : count + len(found), 0], output[count : count + len(found), 1:] = image, found
        count += len(found)
    output[count : count + 1, 0] = -1
    return narrowed(output[None, None], box_logits.dtype)


def _check(
    box_logits: Array, class_preds: Array, proposals: Array, priors: int, classes: int, settings: _DetectionSettings
) -> None:
    """Raise KernelError where the shapes do not tell of the same images, priors and classes."""
    images = box_logits.shape[0] if box_logits.ndim else 0
    located = 1 if settings.share_location else classes
    rows = 1 if settings.variance_encoded_in_target else 2
    expected = [(images, priors * located * 4), (images, priors * classes)]
    fits = [box_logits.shape, class_preds.shape] == expected and proposals.shape[1:2] == (rows,)
    if not fits or classes < 1 or proposals.ndim != 3 or proposals.shape[0] not in (1, images):
        shapes = ", ".join(shape_text(value.shape) for value in (box_logits, class_preds, proposals))
        raise KernelError(f"the shapes {shapes} do not fit each other with {priors} priors and {classes} classes")


def _decoded(
    box_logits: Array,
    class_preds: Array,
    proposals: Array,
    counts: tuple[int, int],
    aux_scores: Array | None,
    aux_boxes: Array | None,
    settings: _DetectionSettings,
) -> _Predictions:
    """Return boxes and scores as the network means them; with auxiliary inputs the priors are decoded by them first."""
    priors, classes = counts
    images, located = len(box_logits), 1 if settings.share_location else classes
    prior = widened(proposals[:, 0]).reshape(-1, 1, priors, 4 if settings.normalized else 5)[..., -4:]
    if not settings.normalized:
        prior = prior / np.array([settings.input_width, settings.input_height] * 2, np.float32)
    variance = np.ones((1, 1, 1, 4), np.float32)
    if not settings.variance_encoded_in_target:
        variance = widened(proposals[:, 1, : priors * 4]).reshape(-1, 1, priors, 4)
    scores = widened(class_preds).reshape(images, priors, classes).swapaxes(1, 2)
    if aux_scores is not None and aux_boxes is not None:
        if aux_scores.shape != (images, priors * 2) or aux_boxes.shape != box_logits.shape:
            shapes = f"{shape_text(aux_scores.shape)} and {shape_text(aux_boxes.shape)}"
            raise KernelError(f"the auxiliary predictions of shapes {shapes} do not fit the others")
        unlikely = widened(aux_scores).reshape(images, 1, priors, 2)[..., 1] < np.float32(settings.objectness_score)
        background = np.arange(classes)[:, None] == settings.background_label_id
        scores = np.where(unlikely, background, scores)
        prior = _boxes(_by_class(aux_boxes, located, priors), prior, variance, settings)
    return _Predictions(_boxes(_by_class(box_logits, located, priors), prior, variance, settings), scores)


def _by_class(logits: Array, located: int, priors: int) -> Array:
    """Box logits [images, priors * classes * 4] as [images, classes, priors, 4]."""
    return widened(logits).reshape(len(logits), priors, located, 4).swapaxes(1, 2)


def _boxes(logits: Array, prior: Array, variance: Array, settings: _DetectionSettings) -> Array:
    """Return the priors corrected by the predictions: their corners, or their centres and sizes."""
    corrections = logits * variance
    boxes = prior + corrections if settings.code_type.endswith("CORNER") else refined(prior, corrections)
    return np.clip(boxes, 0, 1) if settings.clip_before_nms else boxes


def _of_image(boxes: Array, scores: Array, settings: _DetectionSettings) -> Array:
    """Return [class, score, x1, y1, x2, y2] of the boxes of one image, class by class, in each the best first."""
    found = (
        _best_class_only(boxes, scores, settings)
        if settings.decrease_label_id
        else _every_class(boxes, scores, settings)
    )
    labels = np.concatenate([np.full(len(kept), label) for label, kept in found.items()] or [np.zeros(0, np.int64)])
    kept = np.concatenate([*found.values(), np.zeros(0, np.int64)])
    if 0 <= settings.most_kept < len(kept):
        order = np.lexsort((kept, -scores[labels, kept]))[: settings.most_kept]
        order = order[np.argsort(labels[order], kind="stable")]
        labels, kept = labels[order], kept[order]
    coordinates = boxes[np.zeros_like(labels) if settings.share_location else labels, kept]
    if settings.clip_after_nms:
        coordinates = np.clip(coordinates, 0, 1)
    shown = labels - 1 if settings.decrease_label_id else labels
    return np.concatenate([np.stack([shown, scores[labels, kept]], axis=1), coordinates], axis=1)


def _every_class(boxes: Array, scores: Array, settings: _DetectionSettings) -> dict[int, Array]:
    """Return positions that the suppression leaves of each class (Caffe's way)."""
    found = {}
    for label, of_class in enumerate(scores):
        if label != settings.background_label_id:
            best = np.flatnonzero(of_class > np.float32(settings.confidence_threshold))
            best = _top(best[np.argsort(-of_class[best], kind="stable")], settings)
            own = boxes[0 if settings.share_location else label]
            found[label] = best[surviving(own[best], settings.nms_threshold, len(best))]
    return found


def _best_class_only(boxes: Array, scores: Array, settings: _DetectionSettings) -> dict[int, Array]:
    """Return positions that the suppression leaves of each class if a prior counts for its best only (MXNet's way)."""
    allowed = np.arange(len(scores)) > 0
    allowed &= np.arange(len(scores)) != settings.background_label_id
    counted = np.where(allowed[:, None], scores, -1)
    label, best_score = counted.argmax(axis=0), counted.max(axis=0)
    best = np.flatnonzero((label > 0) & (best_score >= np.float32(settings.confidence_threshold)))
    best = _top(best[np.argsort(-best_score[best], kind="stable")], settings)
    found = {}
    for one in np.unique(label[best]).tolist():
        of_class = best[label[best] == one]
        own = boxes[0 if settings.share_location else one]
        found[one] = of_class[surviving(own[of_class], settings.nms_threshold, len(of_class))]
    return found


def _top(best: Array, settings: _DetectionSettings) -> Array:
    return best[: settings.top_k] if settings.top_k >= 0 else best
