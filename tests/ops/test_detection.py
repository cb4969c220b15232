"""Detections, proposals and prior boxes where the runtime refuses, errs or leaves something open."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stepper.errors import KernelError, TensorTooLarge
from stepper.ops.detection import (
    detection_output,
    generate_proposals,
    generate_proposals_single_image,
    prior_box,
    prior_box_clustered,
    prior_grid_generator,
    proposal,
    region_yolo,
    roi_feature_extractor,
    top_k_rois,
)
from tests.ops.bound import i64
from tests.tables import each_row

SIDE_BY_SIDE = np.array([[0, 0, 9, 1], [1, 0, 10, 1], [3, 0, 12, 1], [0, 5, 1, 6]], np.float32)
SCORES = np.array([0.9, 0.8, 0.7, 0.6], np.float32)
IMAGE = np.array([[20, 20, 1]], np.float32)
NO_DELTAS = np.zeros((1, 16, 1, 1), np.float32)


def boxes_of(row: np.ndarray) -> np.ndarray:
    return row.reshape(-1, 4)


def test_proposals_suppress_with_a_falling_threshold() -> None:
    inputs = (IMAGE, SIDE_BY_SIDE.reshape(1, 1, 4, 4), NO_DELTAS, SCORES.reshape(1, 4, 1, 1))
    counts = {"pre_nms_count": 9, "post_nms_count": 9, "nms_threshold": 0.85}
    assert generate_proposals(*inputs, **counts)[1].tolist() == SCORES.tolist()
    boxes, scores, count = generate_proposals(*inputs, **counts, nms_eta=0.75)
    assert scores.tolist() == SCORES[[0, 2, 3]].tolist()
    assert boxes.tolist() == SIDE_BY_SIDE[[0, 2, 3]].tolist()
    assert count.tolist() == [3]


def test_too_small_boxes_are_no_proposals() -> None:
    inputs = (SIDE_BY_SIDE, NO_DELTAS[0], SCORES.reshape(4, 1, 1))
    counts = {"pre_nms_count": 9, "post_nms_count": 3, "nms_threshold": 1.0}
    boxes, scores = generate_proposals_single_image(IMAGE[0], *inputs, **counts, min_size=11.0)
    assert not boxes.any()
    assert not scores.any()
    boxes, scores = generate_proposals_single_image(IMAGE[0], *inputs, **counts, min_size=3.0)
    assert scores.tolist() == [0, 0, 0]
    boxes, scores = generate_proposals_single_image(IMAGE[0], *inputs, **counts, min_size=2.0)
    assert boxes.tolist() == SIDE_BY_SIDE[:3].tolist()


def test_a_short_list_of_proposals_ends_with_minus_one() -> None:
    scores = np.array([[[[0.5]], [[0.7]]]], np.float32)
    attributes = {"base_size": 4, "pre_nms_topn": 5, "post_nms_topn": 3, "nms_thresh": 0.5, "ratio": (1.0,)}
    inputs = (scores, np.zeros((1, 4, 1, 1), np.float32), IMAGE[0])
    boxes, probabilities = proposal(*inputs, **attributes, scale=(1.0,))
    assert boxes.tolist() == [[0, 0, 0, 4, 4], [-1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert probabilities.tolist() == [np.float32(0.7), 0, 0]
    assert proposal(*inputs, **attributes, scale=(1.0,), min_size=9)[0][0].tolist() == [-1, 0, 0, 0, 0]


def test_auxiliary_predictions_move_priors_in_pixels_only_once_into_parts() -> None:
    logits, scores = np.zeros((1, 4), np.float32), np.array([[0.2, 0.8]], np.float32)
    attributes = {"keep_top_k": (1,), "variance_encoded_in_target": True, "nms_threshold": 0.5}
    attributes |= {"input_height": 10, "input_width": 20}
    auxiliary = (np.array([[0.1, 0.9]], np.float32), np.zeros((1, 4), np.float32))
    found = detection_output(logits, scores, np.array([[[0, 2, 1, 6, 5]]], np.float32), *auxiliary, **attributes)
    np.testing.assert_allclose(found, [[[[0, 1, 0.8, 0.1, 0.1, 0.3, 0.5]]]], rtol=1e-6)


def test_the_order_of_detections_is_by_class_and_then_by_score() -> None:
    logits, priors = np.zeros((1, 8), np.float32), np.array([[[0, 0, 1, 1, 5, 5, 6, 6]]], np.float32)
    scores = np.array([[0.1, 0.4, 0.5, 0.2, 0.8, 0.3]], np.float32)
    found = detection_output(logits, scores, priors, keep_top_k=(3,), variance_encoded_in_target=True, normalized=True)
    assert found[0, 0, :, 1].tolist() == [1, 1, 2]
    assert found[0, 0, :, 2].tolist() == [np.float32(score) for score in (0.8, 0.4, 0.5)]


@each_row("keep_top_k", [(), (10**12,)])
def test_detections_without_bounds_are_refused(keep_top_k: tuple[int, ...]) -> None:
    with pytest.raises(KernelError, match=r"keep_top_k|MB"):
        zeros = [np.zeros(shape, np.float32) for shape in ((1, 4), (1, 2), (1, 2, 4))]
        detection_output(*zeros, keep_top_k=keep_top_k, normalized=True)


def test_prior_boxes_stand_about_every_cell() -> None:
    grid, image = (2, 3), (30, 60)
    row, variances = prior_box(i64(*grid), i64(*image), min_size=(6.0,), max_size=(24.0,), aspect_ratio=(4.0,))
    expected = []
    for y, x in itertools.product(range(2), range(3)):
        for wide, high in ((6, 6), (12, 12), (12, 3)):
            middle = ((x + 0.5) * 20, (y + 0.5) * 15)
            low, high_end = ((middle[0] - wide / 2) / 60, (middle[1] - high / 2) / 30), (middle[0] + wide / 2) / 60
            expected.append([*low, high_end, (middle[1] + high / 2) / 30])
    np.testing.assert_allclose(boxes_of(row), expected, rtol=1e-5)
    assert set(variances.tolist()) == {np.float32(0.1)}


def test_several_fixed_ratios_are_cut_to_the_shape_of_the_output() -> None:
    attributes = {"fixed_size": (8.0, 16.0), "density": (1.0, 2.0), "offset": 0.5, "step": 16.0}
    one = prior_box(i64(2, 2), i64(32, 32), **attributes, fixed_ratio=(1.0,))
    two = prior_box(i64(2, 2), i64(32, 32), **attributes, fixed_ratio=(1.0, 2.0))
    assert (one.shape, two.shape) == ((2, 80), (2, 128))
    np.testing.assert_array_equal(two[0, :4], one[0, :4])


@each_row(
    "attributes",
    [
        {"min_size": (0.0,)},
        {"min_size": (1.0,), "aspect_ratio": (-2.0,)},
        {"min_size": (1.0,), "variance": (0.1, 0.2)},
        {"fixed_size": (4.0,), "fixed_ratio": (2.0,)},
        {"fixed_size": (4.0,), "density": (0.0,)},
        {"fixed_size": (4.0,), "density": (1e6,)},
    ],
)
def test_prior_boxes_of_no_size_are_refused(attributes: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(KernelError):
        prior_box(i64(2, 2), i64(20, 20), **attributes)


def test_grids_out_of_proportion_are_refused() -> None:
    with pytest.raises(TensorTooLarge):
        prior_box_clustered(i64(10**6, 10**6), i64(9, 9), width=(1.0,), height=(1.0,))
    with pytest.raises(KernelError, match="widths"):
        prior_box_clustered(i64(1, 1), i64(9, 9), width=(1.0,), height=())


def test_a_grid_smaller_than_the_feature_map_has_its_own_size() -> None:
    maps = (np.zeros((1, 1, 4, 5), np.float32), np.zeros((1, 3, 12, 10), np.float32))
    prior = np.array([[-1, -2, 1, 2]], np.float32)
    grid = prior_grid_generator(prior, *maps, h=2, w=1, flatten=True)
    assert grid.tolist() == [[4, 1, 6, 5], [4, 7, 6, 11]]


def test_regions_that_lack_are_zeros() -> None:
    rois = np.arange(8, dtype=np.float32).reshape(2, 4)
    best = top_k_rois(rois, np.array([0.1, 0.9], np.float32), max_rois=3)
    assert best.tolist() == [[4, 5, 6, 7], [0, 1, 2, 3], [0, 0, 0, 0]]


def test_a_region_without_area_has_no_level_and_no_features() -> None:
    rois = np.array([[0, 0, 9, 9], [5, 5, 5, 9]], np.float32)
    with np.errstate(all="ignore"):
        features, same = roi_feature_extractor(
            rois, np.ones((1, 2, 4, 4), np.float32), output_size=2, pyramid_scales=(4,)
        )
    assert features[0].min() == 1
    assert not features[1].any()
    assert same.tolist() == rois.tolist()


def test_a_tensor_without_room_for_its_regions_is_refused() -> None:
    with pytest.raises(KernelError, match="classes"):
        region_yolo(np.zeros((1, 7, 2, 2), np.float32), coords=4, classes=2, num=2, do_softmax=True)
    with pytest.raises(KernelError, match="flatten"):
        region_yolo(np.zeros((1, 7, 2, 2), np.float32), coords=4, classes=2, num=1, do_softmax=True, axis=2, end_axis=1)
