"""Detection: prior boxes, proposals, outputs of SSD, YOLO and Detectron."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from stepper.element_types import I64, Array, ElementType, Ints
from stepper.errors import KernelError
from stepper.ops.operands import check_positive, ensure_allocatable, integers, normalize_axis, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import attributes_of, kernel
from stepper.ops.roi import (
    best_first,
    bin_means,
    check_feature_maps,
    refined,
    round_half_away,
    sample_positions,
    samples_in_map,
    surviving,
)
from stepper.records import Record

CodeType = Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"]


class _DetectionSettings(Record, kw_only=True):
    """The attributes of DetectionOutput."""

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: bool = False
    keep_top_k: Ints
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


class _Predictions(Record):
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
    mask: Ints = (),
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
            best = best_first(of_class, of_class > np.float32(settings.confidence_threshold), settings.top_k)
            own = boxes[0 if settings.share_location else label]
            found[label] = best[surviving(own[best], settings.nms_threshold, len(best))]
    return found


def _best_class_only(boxes: Array, scores: Array, settings: _DetectionSettings) -> dict[int, Array]:
    """Return positions that the suppression leaves of each class if a prior counts for its best only (MXNet's way)."""
    allowed = np.arange(len(scores)) > 0
    allowed &= np.arange(len(scores)) != settings.background_label_id
    counted = np.where(allowed[:, None], scores, -1)
    label, best_score = counted.argmax(axis=0), counted.max(axis=0)
    usable = (label > 0) & (best_score >= np.float32(settings.confidence_threshold))
    best = best_first(best_score, usable, settings.top_k)
    found = {}
    for one in np.unique(label[best]).tolist():
        of_class = best[label[best] == one]
        own = boxes[0 if settings.share_location else one]
        found[one] = of_class[surviving(own[of_class], settings.nms_threshold, len(of_class))]
    return found


# The operations of Detectron's two-stage detectors.
#
# Source: the pages ExperimentalDetectronDetectionOutput-6, ExperimentalDetectronROIFeatureExtractor-6 and
# ExperimentalDetectronTopKROIs-6.

_CANONICAL_SIZE = np.float32(224)
_CANONICAL_LEVEL = 2


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
    most = max(max_detections_per_image, 0)
    ensure_allocatable((most, 4), np.float32)
    weights, anchors = np.array(deltas_weights, np.float32), widened(rois)[:, None]
    corrections = widened(deltas).reshape(len(rois), num_classes, 4) / weights
    boxes = refined(anchors, corrections, 1.0, max_delta_log_wh)
    boxes[..., 2:] -= np.float32(1)
    # OpenVINO cuts the boxes at the origin only, not at the far sides of the image.
    boxes = np.maximum(boxes, 0)
    usable, probability = (rois[:, 2:] > rois[:, :2]).all(axis=1), widened(scores)
    found: list[tuple[int, int]] = []
    for label in range(1, num_classes):
        of_class = probability[:, label]
        best = best_first(of_class, usable & (of_class > np.float32(score_threshold)))
        limit = post_nms_count if post_nms_count >= 0 else len(best)
        kept = best[surviving(boxes[best, label], nms_threshold, limit, 1.0, must_touch=True)]
        found += [(label, number) for number in kept.tolist()]
    labels, numbers = np.array(found, np.int64).reshape(-1, 2).T
    if len(labels) > max_detections_per_image:
        order = np.lexsort((numbers, -probability[numbers, labels]))[:most]
        labels, numbers = labels[order], numbers[order]
    coordinates, best_scores = _first(boxes[numbers, labels], most), _first(probability[numbers, labels], most)
    return narrowed(coordinates, rois.dtype), _first(labels.astype(np.int32), most), narrowed(best_scores, rois.dtype)


@kernel("ExperimentalDetectronROIFeatureExtractor", 6)
def roi_feature_extractor(
    rois: Array,
    *pyramid: Array,
    output_size: int = 0,
    sampling_ratio: int = 0,
    pyramid_scales: Ints = (),
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
    return _first(rois[np.argsort(-widened(scores), kind="stable")], max_rois)


def _check_detection(
    rois: Array, deltas: Array, scores: Array, num_classes: int, deltas_weights: tuple[float, ...]
) -> None:
    count = sum(rois.shape[:1])
    if [rois.shape, deltas.shape, scores.shape] != [(count, 4), (count, num_classes * 4), (count, num_classes)]:
        shapes = ", ".join(shape_text(value.shape) for value in (rois, deltas, scores))
        raise KernelError(f"regions, deltas and scores of shapes {shapes} do not fit {num_classes} classes")
    if len(deltas_weights) != 4:
        raise KernelError(f"the attribute 'deltas_weights' has {len(deltas_weights)} numbers, expected 4")


def _check_pyramid(rois: Array, pyramid: tuple[Array, ...], scales: Ints) -> int:
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


# Prior boxes: boxes of given sizes about every position of a feature map.
#
# Source: the pages PriorBox-1, -8, PriorBoxClustered-1 and ExperimentalDetectronPriorGridGenerator-6.

Floats = tuple[float, ...]


@kernel("PriorBox", 1, 8)
def prior_box(
    output_size: Array,
    image_size: Array,
    *,
    min_size: Floats = (),
    max_size: Floats = (),
    aspect_ratio: Floats = (),
    flip: bool = False,
    clip: bool = False,
    step: float = 0.0,
    offset: float = 0.0,
    variance: Floats = (),
    scale_all_sizes: bool = True,
    fixed_ratio: Floats = (),
    fixed_size: Floats = (),
    density: Floats = (),
    min_max_aspect_ratios_order: bool = True,
) -> Array:
    """Return the boxes [x1, y1, x2, y2] in parts of the image, and in a second row their variances.

    The order (an attribute of PriorBox-8): least, greatest, ratios, or least, ratios, greatest.
    """
    ratios = _ratios(aspect_ratio, flip)
    (rows, columns), (height, width) = _pair(output_size), _pair(image_size)
    down, across = step, step
    if not scale_all_sizes:
        min_size = tuple(size * height for size in min_size)
        down = across = height / max(rows, 1) if step == -1 else step * height
    check_positive(min_size=min_size, max_size=max_size, fixed_ratio=fixed_ratio, density=density)
    around = _fixed_template(fixed_size, fixed_ratio, density, ratios)
    others = _template(min_size, max_size, ratios, scale_all_sizes, min_max_aspect_ratios_order)
    if down == 0:
        down, across, offset = height / max(rows, 1), width / max(columns, 1), 0.5
    boxes = _grid_boxes(np.concatenate([around, others]), _centers(rows, columns, down, across, offset), height, width)
    # Boxes of a fixed size never reach over the image, whatever `clip` says.
    inner = boxes[:, : len(around)]
    np.maximum(inner[..., :2], 0, out=inner[..., :2])
    np.minimum(inner[..., 2:], 1, out=inner[..., 2:])
    shapes = len(ratios) + 1
    count = shapes * len(min_size) + len(max_size) if scale_all_sizes else shapes + len(min_size) - 1
    if fixed_size:
        count = shapes * len(fixed_size)
    count += sum((len(fixed_ratio) or shapes) * (int(times) ** 2 - 1) for times in density)
    # The list is cut, or filled with zeros, to what the shape allows for, as the runtime does it; the numbers differ
    # only with several fixed ratios and with sizes that do not pair up.
    ensure_allocatable((2, len(boxes), max(count, 0), 4), np.float32)
    flat = _first(boxes.reshape(-1, 4), len(boxes) * max(count, 0))
    return _with_variances(np.clip(flat, 0, 1) if clip else flat, variance)


@kernel("PriorBoxClustered", 1)
def prior_box_clustered(
    output_size: Array,
    image_size: Array,
    *,
    width: Floats,
    height: Floats,
    clip: bool = True,
    step: float = 0.0,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float = 0.0,
    variance: Floats = (),
) -> Array:
    """PriorBox with the widths and heights of the boxes given one by one."""
    if len(width) != len(height):
        raise KernelError(f"{len(width)} widths and {len(height)} heights do not make boxes")
    (rows, columns), (image_height, image_width) = _pair(output_size), _pair(image_size)
    across, down = step_w or step, step_h or step
    if across == down == 0:
        across, down = image_width / max(columns, 1), image_height / max(rows, 1)
    sizes = np.array([width, height], np.float32).T.reshape(-1, 2)
    template = np.concatenate([np.zeros_like(sizes), sizes / 2], axis=1)
    boxes = _grid_boxes(template, _centers(rows, columns, down, across, offset), image_height, image_width)
    return _with_variances(np.clip(boxes, 0, 1) if clip else boxes, variance)


@kernel("ExperimentalDetectronPriorGridGenerator", 6)
def prior_grid_generator(
    priors: Array,
    feature_map: Array,
    image: Array,
    *,
    flatten: bool = False,
    h: int = 0,
    w: int = 0,
    stride_x: float = 0.0,
    stride_y: float = 0.0,
) -> Array:
    """Return each prior box [x1, y1, x2, y2] moved to the centre of each cell of the map: [h, w, priors, 4]."""
    if priors.ndim != 2 or priors.shape[1] != 4 or feature_map.ndim != 4 or image.ndim != 4:
        shapes = ", ".join(shape_text(value.shape) for value in (priors, feature_map, image))
        raise KernelError(f"the shapes {shapes} do not fit: expected [priors,4] and two tensors of rank 4")
    rows, columns = h or feature_map.shape[2], w or feature_map.shape[3]
    ensure_allocatable((rows, columns, len(priors), 4), np.float32)
    check_positive(h=rows, w=columns)
    centers = _centers(rows, columns, stride_y or image.shape[2] / rows, stride_x or image.shape[3] / columns, 0.5)
    boxes = narrowed(widened(priors) + np.tile(centers, 2).reshape(rows, columns, 1, 4), priors.dtype)
    return boxes.reshape(-1, 4) if flatten else boxes


def _first(rows: Array, count: int) -> Array:
    """Return so many rows: the first, and zeros after the last."""
    found = np.zeros((count, *rows.shape[1:]), rows.dtype)
    found[: len(rows)] = rows[:count]
    return found


def _pair(size: Array) -> tuple[int, int]:
    """Height and width."""
    numbers = integers(size)
    if len(numbers) != 2 or min(numbers) < 0:
        raise KernelError(f"a size must be a height and a width, it is {numbers}")
    return numbers[0], numbers[1]


def _ratios(aspect_ratio: Floats, flip: bool) -> list[float]:
    """Return the different aspect ratios besides 1, each followed by its inverse where they are to be flipped."""
    check_positive(aspect_ratio=aspect_ratio)
    ratios = [1.0]
    for ratio in aspect_ratio:
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    return [ratio for ratio in ratios if abs(ratio - 1) >= 1e-6]


def _template(
    least: Floats, greatest: Floats, ratios: list[float], scale_all_sizes: bool, greatest_before_ratios: bool
) -> Array:
    """Return [0, 0, half width, half height] of the boxes of each size, in their order."""
    halves: list[tuple[float, float]] = []
    for number, size in enumerate(least):
        mean = [(math.sqrt(size * greatest[number]) / 2,) * 2] if number < len(greatest) else []
        of_ratios: list[tuple[float, float]] = []
        if scale_all_sizes or number == len(least) - 1:
            base = size if scale_all_sizes else least[0]
            of_ratios = [(base / 2 * math.sqrt(ratio), base / 2 / math.sqrt(ratio)) for ratio in ratios]
        halves += [(size / 2, size / 2), *((*mean, *of_ratios) if greatest_before_ratios else (*of_ratios, *mean))]
    sizes = np.array(halves, np.float32).reshape(-1, 2)
    return np.concatenate([np.zeros_like(sizes), sizes], axis=1)


def _fixed_template(fixed_size: Floats, fixed_ratio: Floats, density: Floats, ratios: list[float]) -> Array:
    """Return [x, y, half width, half height] of the boxes of fixed sizes, `density` squared each, in a grid."""
    if fixed_size and len(density) < len(fixed_size) and (density or fixed_ratio or ratios):
        raise KernelError(f"{len(density)} densities do not fit {len(fixed_size)} fixed sizes")
    found = [np.zeros((0, 4), np.float32)]
    for size, count in zip(fixed_size, density, strict=False):
        check_positive(fixed_size=size, density=int(count))
        whole, times = int(size), int(count)
        ensure_allocatable((times, times, 4), np.float32)
        shift = int(size / times)
        line = np.arange(times, dtype=np.float64) * shift + shift / 2 - whole // 2
        halves = [] if fixed_ratio else [(whole / 2, whole / 2)]
        halves += [(size / 2 * math.sqrt(ratio), size / 2 / math.sqrt(ratio)) for ratio in fixed_ratio or ratios]
        for half in halves:
            y, x = np.meshgrid(line, line, indexing="ij")
            grid = np.stack([x, y, np.full_like(x, half[0]), np.full_like(x, half[1])], axis=-1)
            found.append(grid.reshape(-1, 4).astype(np.float32))
    return np.concatenate(found)


def _centers(rows: int, columns: int, down: float, across: float, offset: float) -> Array:
    """Return the points [rows * columns, 2] (x, y) in the middle of each cell."""
    ensure_allocatable((rows, columns, 2), np.float32)
    x = (np.arange(columns, dtype=np.float32) + np.float32(offset)) * np.float32(across)
    y = (np.arange(rows, dtype=np.float32) + np.float32(offset)) * np.float32(down)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _grid_boxes(template: Array, centers: Array, height: int, width: int) -> Array:
    """Return the boxes [cells, template, 4] about each centre, in parts of the image."""
    ensure_allocatable((2, len(centers), len(template), 4), np.float32)
    middle, half = centers[:, None] + template[:, :2], template[:, 2:]
    size: Any = np.array([width, height] * 2, np.float32)
    return np.asarray(np.concatenate([middle - half, middle + half], axis=-1) / size, np.float32)


def _with_variances(boxes: Array, variance: Floats) -> Array:
    """Return the boxes as one row, and a row with their variances (one for all coordinates, or four)."""
    if len(variance) not in (0, 1, 4):
        raise KernelError(f"the attribute 'variance' has {len(variance)} numbers, expected none, one or four")
    variances = np.broadcast_to(np.array(variance or (0.1,), np.float32), boxes.shape)
    return np.stack([boxes.ravel(), variances.ravel()])


# Region proposals: anchors moved by predicted deltas, the best of those that overlap kept.
#
# Source: the pages Proposal-1, -4, GenerateProposals-9 and ExperimentalDetectronGenerateProposalsSingleImage-6.

_GREATEST_LOG = math.log(1000 / 16)
"""The predicted logarithm of a size is cut here in the operations that come from Detectron."""


class _ProposalRules(Record, kw_only=True):
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
    return proposal(class_probs, bbox_deltas, image_shape, **attributes)[0]


@kernel("Proposal", 4)
@attributes_of(_ProposalRules)
def proposal(class_probs: Array, bbox_deltas: Array, image_shape: Array, **attributes: Any) -> tuple[Array, Array]:
    """Proposal-1 and the score of each box."""
    settings = _ProposalRules(**attributes)
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
    best = best_first(values, enough, pre_nms_count)
    kept = best[surviving(boxes[best], nms_threshold, post_nms_count)]
    found, found_scores = _first(boxes[kept], post_nms_count), _first(values[kept], post_nms_count)
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
    best = best_first(scores, enough, settings.pre_nms_topn)
    kept = surviving(boxes[best], settings.nms_thresh, settings.post_nms_topn, settings.pixel, must_touch=True)
    boxes, scores = boxes[best[kept]], scores[best[kept]]
    if settings.clip_after_nms:
        boxes = np.clip(boxes, 0, corner)
    return boxes / corner if settings.normalize else boxes, scores
