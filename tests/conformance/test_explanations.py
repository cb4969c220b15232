"""Where the runtime's own run differs: the part of it that makes the difference, and the iteration, are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openvino")

import openvino as ov

import stepper
from stepper.compare.comparison import as_json, compare_with, text_lines
from stepper.compare.references.reference_opening import open_reference
from stepper.plain_values import answer_json
from tests.conformance import runtime_faults
from tests.conformance.runtime import has_vnni
from tests.json_answers import checked


def report_of(model: ov.Model, folder: Path) -> tuple[bool, dict[str, Any], str]:
    """Whether the runtime differs, the JSON and the text of a comparison with it on inputs drawn at random."""
    ov.serialize(model, folder / "model.xml")
    x, *trip = model.inputs
    drawn = np.random.default_rng(2).standard_normal(list(x.get_shape())).astype(x.get_element_type().to_dtype())
    read = stepper.read_model(folder / "model.xml")
    inputs = stepper.bind_inputs(read, {"x": drawn} | {one.any_name: np.int64(0) for one in trip})
    compiled = stepper.compile_model(read)
    found = compare_with(stepper.Machine(compiled, inputs), open_reference("openvino", compiled, inputs))
    answer = json.dumps(answer_json({**as_json(found), "model": "model.xml"}))
    return found.differs, checked("compare", answer), " ".join(" ".join(text_lines(found)).split())


@pytest.mark.parametrize(
    ("make", "reason", "properties", "words"),
    [
        (
            runtime_faults.compressed_weights,
            "dynamic quantisation",
            {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"},
            "compiled with DYNAMIC_QUANTIZATION_GROUP_SIZE=0 the runtime agrees: otherwise it quantises",
        ),
        (
            runtime_faults.fake_quantised,
            "low-precision transformations",
            {"LP_TRANSFORMS_MODE": "OFF"},
            "compiled with LP_TRANSFORMS_MODE=OFF the runtime comes closer (absolute",  # it rounds ties otherwise
        ),
    ],
)
def test_the_quantisation_that_matters_is_named_with_how_far_the_output_is(
    make: Callable[[], ov.Model],
    reason: str,
    properties: dict[str, str],
    words: str,
    tmp_path: Path,
) -> None:
    differs, found, text = report_of(make(), tmp_path)
    if reason == "dynamic quantisation" and not has_vnni():
        assert not differs, "only a processor with products in 8 bits has it"
        return
    explanation = found["verdict"]["explanation"]
    assert differs and (explanation["reason"], explanation["properties"]) == (reason, properties)
    before, after = (found["outputs"][0]["measure"], explanation["outputs"][0]["measure"])
    assert after["outside"] < 0.1 * before["outside"] and explanation["agrees"] is (after["outside"] == 0)
    assert words in text and "first difference from OpenVINO (CPU, f32): the outputs" in text
    assert 0.99 < before["cosine"] < 1 and f"cosine {before['cosine']:.6g})" in text
    assert "loop" not in text, "there is none"


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_square_constant_that_two_products_share_is_a_known_fault(in_a_loop: bool, tmp_path: Path) -> None:
    differs, found, text = report_of(runtime_faults.shared_square(in_a_loop=in_a_loop), tmp_path)
    explanation = found["verdict"]["explanation"]
    assert differs and explanation["known_fault"] and explanation["agrees"]
    assert {one["name"] for one in explanation["layers"]} == {"straight", "turned", "weights"}
    assert "a known fault of OpenVINO 2026.4.1 (square-constant-shared) in MatMul" in text and "Const 'weights'" in text
    assert explanation["path"] == (["rounds"] if in_a_loop else [])


def test_slices_that_the_body_does_not_use_are_a_known_fault(tmp_path: Path) -> None:
    differs, found, text = report_of(runtime_faults.unused_slices(), tmp_path)
    explanation = found["verdict"]["explanation"]
    assert differs and explanation["known_fault"] and explanation["agrees"]
    assert [one["name"] for one in explanation["layers"]] == ["cell"]
    assert "(sliced-inputs-unread) in TensorIterator 'cell'" in text and "EliminateLoopInputsOutputs" in text
    assert "runs 5 iterations (every slice was used), the reference runs 1 iteration" in text


@pytest.mark.parametrize(
    ("make", "reason", "agrees", "words"),
    [
        (runtime_faults.no_iteration, "loop of no iteration", True, "With the states read by the body the runtime"),
        (
            partial(runtime_faults.no_iteration, handed_on=True),
            "loop of no iteration",
            None,
            "(no-iteration) in Loop 'never'",
        ),
        (runtime_faults.unread_output, "unread output of a shared Result", True, "With all outputs read the runtime"),
        (runtime_faults.counter_behind, "counter after a Constant", True, "With the counter first the runtime"),
    ],
)
def test_a_known_fault_of_a_loop_is_named(
    make: Callable[[], ov.Model], reason: str, agrees: bool | None, words: str, tmp_path: Path
) -> None:
    differs, found, text = report_of(make(), tmp_path)
    explanation = found["verdict"]["explanation"]
    assert differs and explanation["known_fault"] and explanation["reason"] == reason
    assert explanation["agrees"] is agrees or agrees is None
    assert found["verdict"]["layer"]["type"] == "Loop" and words in text


def test_the_first_iteration_of_a_kernel_that_is_wrong_from_a_size_on_is_found(tmp_path: Path) -> None:
    differs, found, text = report_of(runtime_faults.attention(24), tmp_path)
    verdict = found["verdict"]
    assert differs and verdict["iteration"] == runtime_faults.KEYS - 1 and verdict["loop"]["name"] == "decoder"
    assert verdict["explanation"]["properties"] == {"SNIPPETS_MODE": "DISABLE"} and verdict["explanation"]["agrees"]
    assert "how the loop is run as a whole" not in text
    assert "compiled with SNIPPETS_MODE=DISABLE the runtime agrees: a kernel" in text


def test_a_loop_that_stays_below_that_size_has_no_difference(tmp_path: Path) -> None:
    differs, _found, text = report_of(runtime_faults.attention(runtime_faults.KEYS - 1), tmp_path)
    assert not differs and text.startswith("no difference from")
