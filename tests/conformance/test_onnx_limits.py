"""Models that OpenVINO's converter refuses: a fault of the file is named, a limit of the converter is gone round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")

import onnx
import onnxruntime

import stepper
from stepper.openvino.opening import open_model
from tests.cli.conftest import Call

HEAD = '<ir_version: 8, opset_import: ["": 17, "own": 1]>\n'
SCAN = """g (float[2,3] h, float[6,2,3] x, int64[2] lens) => (float[2,3] last, float[6,2,3] all)
    <int64 zero = {0}, int64 one = {1}, int64[1] back = {1}> {
    t0 = Identity (zero)
    tN, last, all = Scan <num_scan_inputs = 1, body = b (int64 t, float[2,3] old, float[2,3] slice)
        => (int64 t1, float[2,3] new, float[2,3] out) {
        is_over = GreaterOrEqual (t, lens)  column = Unsqueeze (is_over, back)
        sum = Add (old, slice)  new = Where (column, old, sum)  out = Identity (new)  t1 = Add (t, one)
    }> (t0, h, x)
}"""
FUNCTION = """g (float[3] x) => (float[3] y) { y = own.twice (x) }
<domain: "own", opset_import: ["": 17]>
twice (a) => (b) { b = Add (a, a) }"""
LOSS = """g (float[2,4,3] x, int64[2,3] t) => (float y) {
    y = NegativeLogLikelihoodLoss <reduction = "mean", ignore_index = 1> (x, t)
}"""
RANKS = """g (float[n,m] x, int64 rate) => (float[a,2,b] y)
    <int64 fast = {16000}, int64 zero = {0}, int64[1] first = {0}, float[2,1,3] w = {1,2,3,4,5,6}> {
    is_fast = Equal (rate, fast)
    y = If (is_fast) <then_branch = p () => (float[a,2,b] fast_y) {
        sizes = Shape (x)  rows = Gather (sizes, zero)  is_flat = Greater (rows, zero)
        three = If (is_flat) <then_branch = q () => (float[c,d,e] more) { more = Unsqueeze (x, one) },
                              else_branch = r () => (float[c,d] same) { same = Identity (x) }>
        fast_y = Conv (three, w)
    }, else_branch = s () => (float[f,g] slow_y) { slow_y = Identity (x) }>
}""".replace("int64[1] first = {0}", "int64[1] one = {1}")


def written(folder: Path, text: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), path)
    return path


def random(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "text, inputs, said",
    [
        (SCAN, {"h": random(2, 3), "x": random(6, 2, 3), "lens": np.array([6, 4])}, "Scan 'tN' with lens as states"),
        (
            RANKS,
            {"x": random(1, 6), "rate": np.array(16000)},
            "If 'y' as its then_branch; If 'three/y.0' as its then_branch",
        ),
        (FUNCTION, {"x": random(3)}, ""),
        (
            LOSS,
            {"x": random(2, 4, 3), "t": np.array([[0, 1, 2], [3, 1, 0]])},
            "NegativeLogLikelihoodLoss as the operations that define it",
        ),
    ],
    ids=["a Scan that reads from outside", "Ifs that given inputs settle", "a function", "one that ONNX defines so"],
)
def test_a_model_that_is_refused_as_it_is_opens(tmp_path: Path, text: str, inputs: dict[str, Any], said: str) -> None:
    path, told = written(tmp_path, text), list[str]()
    model = open_model(path, told.append, inputs=inputs)
    assert told[0].endswith(said)
    found = stepper.run(model, inputs)
    expected = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)
    for one, other in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert open_model(path, told.append, inputs=inputs).path == model.path
    assert len(told) == 1, "it is kept"


def test_other_values_are_another_conversion(tmp_path: Path, call: Call) -> None:
    path = written(tmp_path, RANKS)
    assert "then_branch" in call("run", path, "--input", "x=[[1,2,3,4]]", "--input", "rate=16000").err
    slow = call("run", path, "--input", "x=[[1,2,3,4]]", "--input", "rate=8000")
    assert "If 'y' as its else_branch" in slow.err
    assert "y  f32[1,4]  1 2 3 4" in slow.out
    refused = call("inspect", path)
    assert "(it comes from If 'three'); give the inputs, or the sizes that the file leaves open" in refused.err


def with_weights_outside(folder: Path, size: int) -> Path:
    path = written(folder, "g (float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}> { y = Add (x, w) }")
    model = onnx.load(path)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones(3, np.float32), "w"))
    onnx.save(model, path, save_as_external_data=True, location="w.data", size_threshold=0)
    (folder / "w.data").write_bytes((folder / "w.data").read_bytes()[:size])
    if not size:
        (folder / "w.data").unlink()
    return path


@pytest.mark.parametrize(
    "size, said",
    [
        (0, "its weights are in w.data, which is not beside it (initializer 'w'): copy both files into one folder"),
        (5, "w.data has 5 bytes, and initializer 'w' ends at byte 12: it is cut off; copy it again"),
    ],
)
def test_weights_that_are_not_there_are_named(tmp_path: Path, size: int, said: str) -> None:
    with pytest.raises(stepper.ModelError) as refused:
        open_model(with_weights_outside(tmp_path, size))
    assert str(refused.value).endswith(said)


BODY = """g (float[3] x, int64 n, bool go) => (float[3] y) {
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] old) => (bool d, float[3] new) {
        d = Identity (c)  [add_bias] new = Add (old, bias) }>
}"""


def test_a_name_that_nothing_gives_is_named(tmp_path: Path) -> None:
    with pytest.raises(stepper.ModelError) as refused:
        open_model(written(tmp_path, BODY))
    assert str(refused.value).endswith(
        "Add 'add_bias' in body of Loop 'y' reads 'bias', which no operation, input or initializer gives"
    )


def test_a_type_that_openvino_lacks_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add (x, w) }")
    model = onnx.load(path)
    model.graph.initializer[0].data_type = onnx.TensorProto.UINT2
    onnx.save(model, path)
    with pytest.raises(stepper.ModelError) as refused:
        open_model(path)
    assert str(refused.value).endswith(
        "initializer 'w' is of type uint2 (read by Add 'y'), which OpenVINO does not have: store it in another type"
    )


@pytest.mark.parametrize(
    "text, said",
    [
        ("g (float[2] x) => (float[2] y) { y = Concat (x, x) }", "; onnxruntime refuses it too ("),
        (
            "g (float[2] x) => (float[3,5] y) <int64[2] s = {3,5}> { y = Reshape (x, s) }",
            "is incompatible with input shape; onnxruntime opens the model: this is most likely a limit of OpenVINO's",
        ),
        ("g (float[m,2] x, int64 k) => (float[a,b] y) { y = own.f (x) }", "it has no rule for own.f"),
    ],
)
def test_it_is_said_whose_fault_it_is(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(stepper.ModelError) as refused:
        open_model(written(tmp_path, text))
    assert said in str(refused.value)
