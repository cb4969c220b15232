"""Non-maximum suppression against plain loops, and what the runtime refuses or leaves open."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from stepper.element_types import STRING_DTYPE
from stepper.errors import KernelError
from stepper.ops.roi import (
    corners,
    matrix_nms,
    multiclass_nms,
    nms_rotated,
    non_max_suppression,
    non_max_suppression_1,
    overlaps,
    rotated_overlaps,
    surviving,
)
from tests.tables import each_row

Box = tuple[float, float, float, float]
ROW: list[Box] = [(0, 0, 1, 1), (0.1, 0, 1.1, 1), (0.6, 0, 1.6, 1), (5, 5, 5, 9), (3, 3, 4, 4)]
ROW_BOXES = np.array([ROW], np.float32)
ROW_SCORES = np.array([[[0.5, 0.9, 0.7, 0.8, 0.2], [0.3, 0.3, 0.3, 0.3, 0.3]]], np.float32)


def shared(a: Box, b: Box) -> float:
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return wide * high / (sum(area) - wide * high) if min(area) > 0 else 0.0


def chosen(scores: list[float], limit: int, overlap: float, least: float, sigma: float) -> list[tuple[int, float]]:
    left, found = dict(enumerate(scores)), []
    while left and len(found) < limit:
        best = max(left, key=lambda number: (left[number], -number))
        score = left.pop(best)
        if score <= least:
            break
        found.append((best, score))
        for other in list(left):
            common = shared(ROW[best], ROW[other])
            if sigma > 0:
                left[other] *= math.exp(-common * common / (2 * sigma))
            elif common >= overlap:
                del left[other]
    return found


@each_row("sigma", [0.0, 0.05, 0.5])
@each_row("least", [-1.0, 0.25, 0.3])
@each_row("overlap", [0.2, 0.5, 1.0])
@each_row("limit", [1, 3, 9])
def test_each_class_is_suppressed_by_itself(limit: int, overlap: float, least: float, sigma: float) -> None:
    expected = [
        (0, label, box, score)
        for label, scores in enumerate(ROW_SCORES[0].tolist())
        for box, score in chosen(scores, limit, overlap, np.float32(least), sigma)
    ]
    thresholds = [np.float32(value) for value in (overlap, least, sigma)]
    with np.errstate(all="ignore"):
        indices, scores, count = non_max_suppression(
            ROW_BOXES, ROW_SCORES, np.int64(limit), *thresholds, sort_result_descending=False
        )
    assert indices.tolist() == [list(row[:3]) for row in expected]
    assert scores[:, 2] == pytest.approx([row[3] for row in expected], rel=1e-5)
    assert count.tolist() == [len(expected)]
    assert indices.dtype == np.int64


def test_without_a_limit_nothing_is_selected() -> None:
    assert non_max_suppression_1(ROW_BOXES, ROW_SCORES).shape == (0, 3)
    assert [output.shape for output in non_max_suppression(ROW_BOXES, ROW_SCORES)] == [(0, 3), (0, 3), (1,)]


@each_row("dtype", [np.float16, ml_dtypes.bfloat16])
def test_scores_come_out_in_f32(dtype: type) -> None:
    boxes, scores = ROW_BOXES.astype(dtype), ROW_SCORES.astype(dtype)
    with np.errstate(all="ignore"):
        outputs = non_max_suppression(boxes, scores, np.array([2]), np.array(0.4, dtype), np.array(0.1, dtype))
    assert [str(output.dtype) for output in outputs] == ["int64", "float32", "int64"]
    assert outputs[0][:2].tolist() == [[0, 0, 1], [0, 0, 3]]


@each_row(
    ("boxes", "scores", "limit"),
    [((1, 5), (1, 2, 5), 1), ((1, 5, 4), (1, 2, 6), 1), ((2, 5, 4), (1, 2, 5), 1), ((1, 5, 4), (1, 2, 5), [1, 2])],
)
def test_inputs_that_do_not_fit_are_refused(boxes: tuple[int, ...], scores: tuple[int, ...], limit: object) -> None:
    with pytest.raises(KernelError, match=r"expected|one number"):
        non_max_suppression(np.zeros(boxes, np.float32), np.zeros(scores, np.float32), np.array(limit))


def test_a_threshold_that_is_a_text_is_refused() -> None:
    with pytest.raises(KernelError, match=r"must be one number, it is string\[1\]"):
        non_max_suppression(ROW_BOXES, ROW_SCORES, np.array([2]), np.array(["a"], STRING_DTYPE))


def test_a_square_turned_by_an_eighth_shares_an_octagon() -> None:
    square = np.array([[1, 2, 1, 1, 0], [1, 2, 1, 1, math.pi / 4], [1.5, 2, 1, 1, math.pi / 2], [9, 9, 1, 1, 1]])
    outlines = corners(square.astype(np.float32), True)
    octagon = 2 * (math.sqrt(2) - 1)
    expected = [1, octagon / (2 - octagon), 0.5 / 1.5, 0]
    with np.errstate(all="ignore"):
        assert rotated_overlaps(outlines[0], outlines) == pytest.approx(expected, abs=1e-5)
        assert rotated_overlaps(outlines[1], outlines)[0] == pytest.approx(expected[1], abs=1e-5)


@each_row(("clockwise", "overlapping"), [(True, True), (False, False)])
def test_an_angle_turns_to_the_side_asked_for(clockwise: bool, overlapping: bool) -> None:
    bars = np.array([[[0, 0, 10, 0.5, math.pi / 4], [3, 3, 0.5, 0.5, 0]]], np.float32)
    scores = np.array([[[0.9, 0.8]]], np.float32)
    thresholds = [np.float32(value) for value in (0.01, 0)]
    with np.errstate(all="ignore"):
        indices = nms_rotated(bars, scores, np.int64(2), *thresholds, clockwise=clockwise)[0]
    assert len(indices) == (1 if overlapping else 2)


def test_an_adaptive_threshold_falls_after_each_survivor() -> None:
    boxes = np.array([(0, 0, 10, 1), (2, 0, 12, 1), (4, 0, 14, 1), (20, 0, 21, 1), (20, 0, 21, 2)], np.float32)
    assert overlaps(boxes[0], boxes)[1:3] == pytest.approx([8 / 12, 6 / 14])
    assert surviving(boxes, 0.7, 9) == [0, 1, 2, 3, 4]
    assert surviving(boxes, 0.7, 9, eta=0.9) == [0, 2, 3, 4]
    assert surviving(boxes, 0.7, 9, eta=0.5) == [0, 3]
    assert surviving(boxes, 0.7, 2) == [0, 1]


def test_classes_of_nothing_keep_nothing() -> None:
    for kernel in (multiclass_nms, matrix_nms):
        outputs = kernel(np.zeros((2, 0, 4), np.float32), np.zeros((2, 3, 0), np.float32))
        assert [output.shape for output in outputs] == [(0, 6), (0, 1), (2,)]


def test_matrix_suppression_lowers_a_score_by_its_overlap() -> None:
    with np.errstate(all="ignore"):
        rows, numbers, counts = matrix_nms(ROW_BOXES[:, :3], ROW_SCORES[:, :1, :3], sort_result_type="score")
    common = [shared(ROW[1], ROW[0]), shared(ROW[1], ROW[2]), shared(ROW[2], ROW[0])]
    lowered = {1: 0.9, 2: 0.7 * (1 - common[1]), 0: 0.5 * min(1 - common[0], (1 - common[2]) / (1 - common[1]))}
    expected = sorted(lowered, key=lambda number: -lowered[number])
    assert numbers[:, 0].tolist() == expected
    assert rows[:, 1] == pytest.approx([lowered[number] for number in expected], rel=1e-5)
    assert counts.tolist() == [3]


def test_boxes_of_each_class_must_be_counted_image_by_image() -> None:
    with pytest.raises(KernelError, match="roisnum"):
        multiclass_nms(np.zeros((2, 5, 4), np.float32), np.zeros((2, 5), np.float32), np.array([4, 2]))
