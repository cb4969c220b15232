"""Why a model is not converted: the operation is named, and what can be done; by what OpenVINO really says."""

from __future__ import annotations

import pytest

from stepper.openvino.conversion import NodeFacts, NodeScope, conversion_complaint

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


def test_the_node_that_fails_first_is_told_with_its_branch_and_what_decides_its_shape() -> None:
    scopes = (NodeScope("If", "rate", "then_branch"), NodeScope("Loop", "frames", "body"))
    facts = {"filtered": NodeFacts("Conv", "/decoder/conv", scopes, "/squeeze", ("input", "state"))}
    assert conversion_complaint(RuntimeError(REPORT + BRANCH), facts.get) == (
        "OpenVINO cannot convert Conv '/decoder/conv' in body of Loop 'frames' in then_branch of If 'rate': "
        "The input data tensor's rank has to be known (static) (it comes from If '/squeeze'); give the inputs the "
        "sizes that the file leaves open, as `stepper run` takes them (--shape 'input=...' --shape 'state=...'; in "
        "Python: open_model with shapes)"
    )
    assert conversion_complaint(RuntimeError(REPORT + BRANCH), facts.get, are_fixed=True).endswith(
        "(static); correct that operation in the model, or convert it where it was made and open the .xml"
    )


def test_without_the_package_for_onnx_files_it_is_said_what_would_tell_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepper.openvino.conversion.find_spec", lambda _name: None)
    assert conversion_complaint(RuntimeError(REPORT + BRANCH), lambda _name: None) == (
        "OpenVINO cannot convert Conv 'filtered': The input data tensor's rank has to be known (static); correct that "
        "operation in the model, or convert it where it was made and open the .xml; with `pip install onnx` it is said "
        "in which branch that is"
    )
