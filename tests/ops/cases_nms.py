"""Cases of the non-maximum suppressions, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(7)


def numbers(*values: float) -> list[np.ndarray]:
    """Limit, thresholds and sigma as the inputs come: an integer, then floats."""
    limit, *thresholds = values
    return [np.array(limit, np.int64), *(np.array(value, np.float32) for value in thresholds)]


def ascending(shape: tuple[int, ...]) -> np.ndarray:
    """Boxes [..., x1, y1, x2, y2] with x1 < x2 and y1 < y2."""
    corner = _random.random((*shape, 2)) * 4
    return np.concatenate([corner, corner + _random.random((*shape, 2)) * 3 + 0.1], axis=-1).astype(np.float32)


ANY = (_random.random((2, 12, 4)) * 4).astype(np.float32)
BOXES = ascending((2, 12))
SCORES = _random.random((2, 3, 12)).astype(np.float32)
CLASS_BOXES, CLASS_SCORES = ascending((3, 12)), SCORES[0]
TURNED = np.concatenate([ANY[..., :2], ANY[..., 2:] + 0.1, ANY[..., :1] * 2 - 4], axis=-1)
HALF = [ANY.astype(np.float16), SCORES.astype(np.float16)]


def suppression(name: str, version: int, *values: float, **attributes: str) -> Case:
    inputs = [ANY, SCORES, *numbers(*values)]
    constant = set(range(2, len(inputs)))
    return Case(name, "NonMaxSuppression", version, inputs, attributes, 1 if version < 5 else 3, constant)


def turned(name: str, *values: float, **attributes: str) -> Case:
    return Case(name, "NMSRotated", 13, [TURNED, SCORES, *numbers(*values)], attributes, 3, {2, 3, 4})


def whole(name: str, type: str, version: int, **attributes: str) -> Case:
    return Case(name, type, version, [BOXES, SCORES], attributes, 3)


CASES = [
    suppression("one", 1, 3, 0.4, 0.2),
    suppression("one_without_thresholds", 1, 2),
    suppression("one_by_class", 1, 3, 0.4, 0.2, sort_result_descending="false"),
    suppression("three", 3, 3, 0.4, 0.2, output_type="i32"),
    suppression("four_of_centers", 4, 3, 0.4, 0.2, box_encoding="center"),
    suppression("five_soft", 5, 5, 0.4, 0.2, 0.3),
    suppression("nine", 9, 4, 0.3, 0.1, output_type="i32"),
    suppression("nine_soft_of_centers", 9, 4, 0.3, 0.1, 0.5, box_encoding="center", sort_result_descending="false"),
    suppression("nine_nothing_scores_enough", 9, 4, 0.3, 2.0),
    Case("nine_half", "NonMaxSuppression", 9, [*HALF, *numbers(4, 0.3, 0.1)], {}, 3, {2, 3, 4}),
    turned("turned_clockwise", 4, 0.3, 0.1),
    turned("turned_back", 4, 0.3, 0.1, clockwise="false", output_type="i32", sort_result_descending="false"),
    whole("multiclass_8", "MulticlassNms", 8, iou_threshold="0.3", keep_top_k="5", sort_result_type="score"),
    whole("multiclass_9", "MulticlassNms", 9, iou_threshold="0.3", nms_top_k="6", sort_result_type="classid"),
    whole(
        "multiclass_across",
        "MulticlassNms",
        9,
        iou_threshold="0.9",
        score_threshold="0.2",
        nms_eta="0.7",
        background_class="1",
        normalized="false",
        sort_result_type="classid",
        sort_result_across_batch="true",
        output_type="i32",
    ),
    Case(
        "multiclass_own_boxes",
        "MulticlassNms",
        9,
        [CLASS_BOXES, CLASS_SCORES, np.array([5, 0, 7], np.int32)],
        {"iou_threshold": "0.3", "sort_result_type": "score"},
        3,
    ),
    whole("matrix", "MatrixNms", 8, post_threshold="0.2", keep_top_k="7", sort_result_type="score"),
    whole(
        "matrix_gaussian",
        "MatrixNms",
        8,
        decay_function="gaussian",
        gaussian_sigma="1.5",
        score_threshold="0.3",
        nms_top_k="5",
        background_class="0",
        normalized="false",
        sort_result_type="classid",
        sort_result_across_batch="true",
        output_type="i32",
    ),
]
