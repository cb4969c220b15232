"""Cases of detections, proposals and prior boxes, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

_random = np.random.default_rng(9)


def uniform(*shape: int) -> np.ndarray:
    return _random.random(shape).astype(np.float32)


def normal(*shape: int) -> np.ndarray:
    return (_random.standard_normal(shape) * 0.4).astype(np.float32)


def boxes(*shape: int, extent: float) -> np.ndarray:
    corner = _random.random((*shape, 2)) * extent * 0.6
    return np.concatenate([corner, corner + _random.random((*shape, 2)) * extent / 2 + 0.1], axis=-1).astype(np.float32)


PRIORS = np.stack([boxes(6, extent=1).ravel(), np.full(24, 0.3, np.float32)])[None]
NUMBERED = np.concatenate([np.zeros((6, 1), np.float32), boxes(6, extent=1) * np.float32(20)], axis=1).reshape(1, 1, 30)
LOGITS, OWN_LOGITS, SCORES = normal(2, 24), normal(2, 72), uniform(2, 18)
AUXILIARY = [uniform(2, 12), normal(2, 24)]
CENTERED, CORNERS = "caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"


def output(name: str, version: int, inputs: list[np.ndarray], **more: str) -> Case:
    attributes = {"keep_top_k": "5", "top_k": "10", "nms_threshold": "0.4", "confidence_threshold": "0.1"}
    attributes |= {"normalized": "true", "code_type": CENTERED} | ({"num_classes": "3"} if version == 1 else {})
    return Case(name, "DetectionOutput", version, inputs, attributes | more)


SHARED = [LOGITS, SCORES, PRIORS]
OWN = [OWN_LOGITS, SCORES, PRIORS]
OUTPUTS = [
    output("output_1", 1, SHARED),
    output("output_8", 8, SHARED),
    output("output_8_corners", 8, SHARED, code_type=CORNERS, clip_before_nms="true"),
    output("output_8_mxnet", 8, SHARED, decrease_label_id="true", clip_after_nms="true"),
    output("output_8_own_boxes", 8, OWN, share_location="false", background_label_id="1", keep_top_k="-1"),
    output("output_8_everything", 8, SHARED, keep_top_k="-1", top_k="-1", background_label_id="-1"),
    output(
        "output_8_pixels",
        8,
        [LOGITS, SCORES, NUMBERED],
        variance_encoded_in_target="true",
        normalized="false",
        input_height="20",
        input_width="25",
    ),
    output("output_8_auxiliary", 8, [LOGITS, SCORES, np.tile(PRIORS, (2, 1, 1)), *AUXILIARY], objectness_score="0.3"),
]

ANCHORS = boxes(4, 5, 2, extent=20)
DELTAS, MAPS = normal(2, 8, 4, 5), uniform(2, 2, 4, 5)
IMAGES = np.array([[20, 22, 1, 1.5], [18, 21, 1, 1]], np.float32)
SIZE = np.array([20, 22, 1.5], np.float32)


def proposal(name: str, version: int, **more: str) -> Case:
    attributes = {"base_size": "6", "feat_stride": "4", "min_size": "1", "ratio": "0.5,2", "scale": "1.5"}
    attributes |= {"pre_nms_topn": "15", "post_nms_topn": "5", "nms_thresh": "0.4"} | more
    return Case(name, "Proposal", version, [uniform(2, 4, 4, 5), DELTAS, SIZE], attributes, 1 if version == 1 else 2)


def generated(name: str, **more: str) -> Case:
    attributes = {"min_size": "3", "nms_threshold": "0.3", "pre_nms_count": "18", "post_nms_count": "6"} | more
    return Case(name, "GenerateProposals", 9, [IMAGES, ANCHORS, DELTAS, MAPS], attributes, 3)


SINGLE = {"min_size": "0", "nms_threshold": "0.4", "pre_nms_count": "15", "post_nms_count": "6"}
PROPOSALS = [
    proposal("proposal_1", 1),
    proposal("proposal_4_normalized", 4, normalize="true", clip_before_nms="false", clip_after_nms="true"),
    proposal("proposal_4_tensorflow", 4, framework="tensorflow", box_size_scale="5", box_coordinate_scale="10"),
    generated("generated"),
    generated("generated_pixels", normalized="false", roi_num_type="i32"),
    Case(
        "generated_single_image",
        "ExperimentalDetectronGenerateProposalsSingleImage",
        6,
        [IMAGES[0, :3], ANCHORS.reshape(-1, 4), DELTAS[0], MAPS[0]],
        SINGLE,
        2,
    ),
]

GRID, IMAGE = np.array([2, 3], np.int64), np.array([30, 44], np.int64)


def prior(name: str, version: int, **attributes: str) -> Case:
    return Case(name, "PriorBox", version, [GRID, IMAGE], attributes, constant={0, 1})


def clustered(name: str, **attributes: str) -> Case:
    sizes = {"width": "8,16", "height": "12,6", "offset": "0.5"}
    return Case(name, "PriorBoxClustered", 1, [GRID, IMAGE], sizes | attributes, constant={0, 1})


SIZES = {"min_size": "8,16.5", "max_size": "20,30", "aspect_ratio": "2,3,2", "offset": "0.5"}
PRIOR_BOXES = [
    prior("prior_1", 1, **SIZES, step="8", flip="true", variance="0.1,0.1,0.2,0.2"),
    prior("prior_1_in_parts", 1, min_size="0.2,0.4", aspect_ratio="2", scale_all_sizes="false", step="0.3"),
    prior("prior_8_other_order", 8, **SIZES, clip="true", min_max_aspect_ratios_order="false", variance="0.3"),
    prior("prior_8_dense", 8, fixed_size="8,12.5", density="1,2", aspect_ratio="2", flip="true", step="7.5"),
    prior("prior_8_dense_one_ratio", 8, fixed_size="8,12.5", density="1,3", fixed_ratio="2", step="7.5"),
    clustered("clustered", step="8", variance="0.1"),
    clustered("clustered_own_steps", step_w="6", step_h="5", clip="false", variance="0.1,0.1,0.2,0.2"),
    clustered("clustered_over_image", clip="false"),
    Case(
        "grid",
        "ExperimentalDetectronPriorGridGenerator",
        6,
        [boxes(3, extent=9), np.zeros((1, 2, 2, 3), np.float32), np.zeros((1, 3, 8, 12), np.float32)],
        {"flatten": "false", "stride_y": "3"},
    ),
    Case(
        "grid_flat",
        "ExperimentalDetectronPriorGridGenerator",
        6,
        [boxes(3, extent=9), np.zeros((1, 2, 2, 3), np.float32), np.zeros((1, 3, 8, 12), np.float32)],
        {"flatten": "true", "stride_x": "5"},
    ),
]


def region(name: str, **more: str) -> Case:
    attributes = {"axis": "1", "coords": "4", "classes": "2", "num": "2", "anchors": "1,2,3,4"}
    return Case(name, "RegionYolo", 1, [normal(2, 14, 2, 3) * 4], attributes | more)


ROIS = boxes(7, extent=20)
WIDE = np.concatenate([ROIS[:, :2], ROIS[:, 2:] * np.array([[1], [2], [9], [30], [1], [0], [15]], np.float32)], axis=1)
PYRAMID = [uniform(1, 2, 12, 12), uniform(1, 2, 6, 6), uniform(1, 2, 3, 3)]
LEVELS = {"output_size": "2", "pyramid_scales": "4,8,16"}
REFINED = {"num_classes": "3", "deltas_weights": "10,10,5,5", "max_delta_log_wh": "0.5", "score_threshold": "0.1"}
REFINED |= {"nms_threshold": "0.4", "post_nms_count": "4"}
REFINED_INPUTS = [ROIS, normal(7, 12) * 5, uniform(7, 3), np.array([[20, 22, 1]], np.float32)]
DETECTRON = [
    Case(
        f"refined_{count}",
        "ExperimentalDetectronDetectionOutput",
        6,
        REFINED_INPUTS,
        REFINED | {"max_detections_per_image": str(count)},
        3,
    )
    for count in (3, 12)
] + [
    Case(
        f"pyramid_{aligned}",
        "ExperimentalDetectronROIFeatureExtractor",
        6,
        [WIDE, *PYRAMID],
        LEVELS | {"aligned": aligned, "sampling_ratio": ratio},
        2,
    )
    for aligned, ratio in (("false", "2"), ("true", "0"))
]

CASES = [
    *OUTPUTS,
    *PROPOSALS,
    *PRIOR_BOXES,
    *DETECTRON,
    region("region_softmax", do_softmax="true", end_axis="3"),
    region("region_softmax_partly_flat", do_softmax="true", end_axis="2"),
    region("region_mask", do_softmax="false", end_axis="3", mask="0,1"),
    Case("top_rois", "ExperimentalDetectronTopKROIs", 6, [ROIS, uniform(7)], {"max_rois": "4"}),
]
