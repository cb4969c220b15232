"""ONNX's own tests of single nodes (`onnx.backend.test`), opened through OpenVINO's converter and run here.

Whoever wrote them did not know this program. Where an answer is not theirs, the reason is listed with the case.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("openvino")
pytest.importorskip("onnx")

import stepper
from stepper.errors import StepperError
from tests.conformance.onnx_node_tests import Case, convert, difference

BATCHES = 2
ALL_OF_1_23 = 1500
"""Fewer cases than these that could be compared are a fault of the harness."""

KNOWN = {
    "IR's Convert knows neither saturation nor a direction of rounding; the converter drops both": """
        cast_FLOAT_to_FLOAT8E4M3FN cast_FLOAT16_to_FLOAT8E4M3FN cast_FLOAT_to_FLOAT8E5M2 cast_FLOAT16_to_FLOAT8E5M2
        castlike_FLOAT_to_FLOAT8E4M3FN castlike_FLOAT16_to_FLOAT8E4M3FN castlike_FLOAT_to_FLOAT8E5M2
        castlike_FLOAT16_to_FLOAT8E5M2 castlike_FLOAT_to_FLOAT8E4M3FN_expanded castlike_FLOAT16_to_FLOAT8E4M3FN_expanded
        castlike_FLOAT_to_FLOAT8E5M2_expanded castlike_FLOAT16_to_FLOAT8E5M2_expanded
        cast_e8m0_FLOAT_to_FLOAT8E8M0 cast_e8m0_FLOAT16_to_FLOAT8E8M0
    """,
    "the converter writes a shift as a product or quotient with a power of 2, which overflows or is a fraction": """
        bitshift_right_int8_shift_ge_width bitshift_right_int32_shift_ge_width bitshift_left_int32_shift_ge_width
        bitshift_right_int8_negative_shift bitshift_right_int32_negative_shift
    """,
    "the converter ignores the window of an Attention (opset 25), and adds its past to what it gives of QK": """
        attention_local_window attention_bidirectional_window attention_local_window_rank1_boolean_mask
        attention_local_window_with_past attention_local_window_ext_cache_rank3_head_mask
        attention_local_window_ext_cache_rank4_batch_mask attention_local_window_ext_cache_rank2_mask
        attention_3d_local_window attention_local_window_gqa_rank4_mask
        attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal
        attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal
    """,
    "the converter writes rounding_type=ceil, where a window may lie wholly in the padding": """
        maxpool_2d_ceil_output_size_reduce_by_one
    """,
    "the converter takes the last axis for the complex one, or the default axis for the one given": """
        dft_rfft dft_irfft dft_rfft_opset19 dft_irfft_opset19 dft_axis
    """,
    "the converter takes the batch for the sequence (layout 1), or drops the peepholes": """
        gru_batchwise lstm_batchwise simple_rnn_batchwise lstm_with_peepholes
    """,
    "the converter ignores antialias, exclude_outside, the scales beside align_corners, keep_aspect_ratio_policy": """
        resize_downsample_scales_linear_align_corners resize_downsample_scales_cubic_align_corners
        resize_upsample_scales_cubic_A_n0p5_exclude_outside resize_downsample_scales_cubic_A_n0p5_exclude_outside
        resize_downsample_scales_linear_antialias resize_downsample_sizes_linear_antialias
        resize_downsample_scales_cubic_antialias resize_downsample_sizes_cubic_antialias
        resize_upsample_sizes_nearest_not_larger resize_upsample_sizes_nearest_not_smaller
        resize_downsample_sizes_nearest_not_larger resize_downsample_sizes_nearest_not_smaller
    """,
    "the converter writes another operation: an ROI's mean of maxima, DCR for CRD, a suppression at equality": """
        roialign_mode_max spacetodepth_crd_mode_example nonmaxsuppression_iou_threshold_boundary
    """,
    "a quotient in the middle between two integers is rounded otherwise in ONNX's f32": """
        dynamicquantizelinear dynamicquantizelinear_expanded
    """,
    "random numbers of another generator": "bernoulli_double_expanded bernoulli_seed_expanded",
    "an optional input is converted to a tensor of another shape": "identity_opt",
}
REASONS = {f"test_{name}": reason for reason, names in KNOWN.items() for name in names.split()}


def differences(case: Case) -> Iterator[str]:
    model = stepper.read_model(case.model)
    names = [{parameter.name, *parameter.outputs[0].names} for parameter in model.graph.parameters]
    for given, expected in case.data_sets:
        try:
            inputs = [
                next((value for name, value in given.items() if name in known), list(given.values())[index])
                for index, known in enumerate(names)  # an input that is an output, too, has lost its name
            ]
            outputs = list(stepper.run(model, dict(enumerate(inputs))).values())
        except StepperError as error:
            yield f"{type(error).__name__}: {error}"
            continue
        yield from ("another number of outputs",) if len(outputs) != len(expected) else ()
        found = (difference(*pair, case.rtol, case.atol) for pair in zip(outputs, expected, strict=True))
        yield from (text for text in found if text)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_what_onnx_expects_is_computed_but_for_what_is_known(batch: int, tmp_path: Path) -> None:
    converted = convert(tmp_path, batch, BATCHES)
    assert len(converted.cases) > ALL_OF_1_23 / BATCHES
    found = {case.name: text for case in converted.cases for text in differences(case)}
    assert {name: text for name, text in found.items() if name not in REASONS} == {}
    assert {case.name for case in converted.cases if case.name in REASONS} == set(found), "some are right by now"
