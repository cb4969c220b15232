"""Why a model is not converted: the operation is named, and what can be done; by what OpenVINO really says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepper.openvino import onnx_file
from stepper.openvino.onnx_file import OnnxFile, OnnxGraph, OnnxNode, OnnxTensor, read_onnx
from stepper.openvino.onnx_rewriting import OtherReader
from stepper.openvino.refusals import Refusal, conversion_complaint, file_fault
from tests.tables import each_row

BEGIN = "Exception from src/inference/src/cpp/core.cpp:84:\nCheck 'false' failed at src/frontends/report.cpp:151:\n"
REPORT = BEGIN + "FrontEnd API failed with OpConversionFailure:\nModel wasn't fully converted."
RESHAPE = """ Failed operations detailed log:
-- Reshape-17 with a message:
While validating ONNX node '<Node(Reshape): y>': Check 'compatible' failed at src/core/reshape.hpp:360:
While validating node 'opset1::Reshape Reshape_3 (opset1::Parameter x[0]:f32[2]) -> (dynamic[...])' with 'Reshape_3':
Shape inference input shapes {[2],[2]}
Requested output shape [3,5] is incompatible with input shape

Summary:
-- Conversion is failed for: Reshape-17

"""


@pytest.mark.parametrize(
    "said, sentence",
    [
        (
            f"{REPORT}\nSummary:\n-- No conversion rule found for operations: my.ops.Frobnicate, Other-17\n\n",
            "OpenVINO cannot convert it: it has no rule for my.ops.Frobnicate, Other-17; put other operations in their "
            "place before, or convert it with an extension that has them (openvino.convert_model) and open the .xml",
        ),
        (
            REPORT + RESHAPE,
            "OpenVINO cannot convert Reshape 'y': Requested output shape [3,5] is incompatible with input shape; "
            "correct that operation in the model, or convert it where it was made and open the .xml",
        ),
        (
            'Exception from src/inference/src/model_reader.cpp:148:\nUnable to read the model: "broken.onnx" Please '
            'check that model format: ".onnx" is supported and the model is correct.',
            "is not a model that OpenVINO can read: the file is damaged, or of another format than its suffix says",
        ),
        (f"{BEGIN}It is too large.", "OpenVINO cannot convert it: It is too large."),
    ],
)
def test_the_operation_and_the_way_out_are_named(said: str, sentence: str) -> None:
    assert conversion_complaint(RuntimeError(said)) == sentence


BRANCH = """ Failed operations detailed log:
-- ReduceMean-16 with a message:
While validating ONNX node '<Node(ReduceMean): mean>':
Unsupported input type dynamic

-- Conv-16 with a message:
While validating ONNX node '<Node(Conv): filtered>': Check 'rank().is_static()' failed at src/op/conv.cpp:38:
FrontEnd API failed with GeneralFailure:
The input data tensor's rank has to be known (static)

Summary:
-- Conversion is failed for: Conv-16, ReduceMean-16
"""


def node(type: str, name: str, inputs: str = "", output: str = "", **graphs: OnnxGraph) -> OnnxNode:
    return OnnxNode(type, "", name, tuple(inputs.split()), (output or name,), graphs, {}, ())


def graph(*nodes: OnnxNode, **inputs: bool) -> OnnxGraph:
    return OnnxGraph(nodes, inputs, ())


def in_a_branch() -> OnnxFile:
    body = graph(node("If", "/squeeze", output="squeezed"), node("Conv", "/decoder/conv", "squeezed", "filtered"))
    rate = graph(node("Loop", "frames", body=body))
    return OnnxFile(graph(node("If", "rate", then_branch=rate), input=True, size=False, state=True))


WHERE = (
    "OpenVINO cannot convert Conv '/decoder/conv' in body of Loop 'frames' in then_branch of If 'rate': "
    "The input data tensor's rank has to be known (static)"
)


@pytest.mark.parametrize(
    "known, end",
    [
        (
            Refusal(in_a_branch()),
            " (it comes from If '/squeeze'); give the inputs, or the sizes that the file leaves open, as `stepper run` "
            "takes them (--shape 'input=...' --shape 'state=...'; in Python: open_model with shapes)",
        ),
        (
            Refusal(in_a_branch(), OtherReader("onnxruntime", None), are_fixed=True),
            "; onnxruntime opens the model: this is most likely a limit of OpenVINO's converter; put other operations "
            "in its place, or convert it where it was made and open the .xml",
        ),
        (
            Refusal(in_a_branch(), OtherReader("onnx", "no\n  such axis"), are_fixed=True),
            "; onnx refuses it too (no such axis); correct that operation in the model, or convert it where it was "
            "made and open the .xml",
        ),
    ],
)
def test_the_node_that_fails_first_is_told_with_its_branch_and_whose_fault_it_is(known: Refusal, end: str) -> None:
    assert conversion_complaint(RuntimeError(REPORT + BRANCH), known) == WHERE + end


def test_a_reason_behind_a_place_in_the_sources_is_passed_on() -> None:
    said = """-- Loop-17 with a message:
While validating ONNX node '<Node(Loop): sN>': Input tensor isn't found for node "bias"
Summary:
-- Conversion is failed for: Loop-17
"""
    assert "Loop 'sN': Input tensor isn't found for node \"bias\"; correct" in conversion_complaint(RuntimeError(said))


def test_without_the_package_for_onnx_files_it_is_said_what_would_tell_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepper.openvino.refusals.find_spec", lambda _name: None)
    assert conversion_complaint(RuntimeError(REPORT + BRANCH), Refusal(OnnxFile(graph()))) == (
        "OpenVINO cannot convert Conv 'filtered': The input data tensor's rank has to be known (static); correct that "
        "operation in the model, or convert it where it was made and open the .xml; with `pip install onnxruntime` the "
        "message says if the model is wrong"
    )


@each_row(
    ("location", "said"),
    [
        ("../secret.bin", "outside of its folder"),
        ("weights/../../secret.bin", "outside of its folder"),
        ("/etc/hosts", "outside of its folder"),
        ("pipe", "which is not beside it"),
    ],
)
def test_weights_are_looked_for_beside_the_file_alone_and_never_in_a_pipe(
    location: str, said: str, tmp_path: Path
) -> None:
    if not (tmp_path / "pipe").exists():
        os.mkfifo(tmp_path / "pipe")
    file = OnnxFile(OnnxGraph((), {}, (OnnxTensor("w", 1, location),)))
    assert said in (file_fault(tmp_path / "model.onnx", file) or "")


@pytest.mark.parametrize("numbers", [10, 300])
def test_an_attribute_of_more_numbers_than_any_model_has_is_not_read(
    numbers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "_MOST_FIELDS", 100)

    def field(number: int, content: bytes) -> bytes:
        size = bytes([len(content)] if len(content) < 128 else [len(content) % 128 + 128, len(content) // 128])
        return bytes([number << 3 | 2]) + size + content

    attribute = field(1, b"axes") + field(8, bytes(numbers))
    (tmp_path / "model.onnx").write_bytes(field(7, field(1, field(5, attribute))))
    read = read_onnx(tmp_path / "model.onnx")
    assert (read is None) is (numbers > 100)
    assert read is None or read.graph.nodes[0].attributes == {"axes": (0,) * numbers}
