"""Nodes of ONNX files are found where they are; an STFT is written so that it gives what ONNX's own tests expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import stepper
from stepper.openvino.onnx_file import read_onnx
from stepper.openvino.onnx_rewriting import rewritten
from stepper.openvino.opening import open_model
from stepper.openvino.refusals import deciding_if, found_node, placed_text

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
NESTED = """g (float[n,4] x, float[1,4] w, bool c) => (float[m] y) {
    either = If (c) <then_branch = a () => (float[n,4] one) { one = Identity (x) },
                     else_branch = b () => (float[4] two) { two = ReduceSum <keepdims = 0> (x) }>
    y = If (c) <then_branch = p () => (float[m] three) { three = ReduceSum <keepdims = 0> (either) },
                else_branch = q () => (float[m] four) { sum = Add (either, w)  four = Flatten (sum) }>
}"""


def written(folder: Path, text: str) -> str:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), path)
    return str(path)


def test_a_node_is_found_by_its_output_in_its_branch_with_the_if_before_it(tmp_path: Path) -> None:
    file = read_onnx(Path(written(tmp_path, NESTED)))
    assert file is not None
    assert [name for name, is_open in file.graph.inputs.items() if is_open] == ["x"]
    found = found_node(file, "four")
    assert found is not None
    assert placed_text(found) == "Flatten 'four' in else_branch of If 'y'"
    assert deciding_if(found) == "either"
    assert found_node(file, "nowhere") is None


def test_what_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model at all")
    assert read_onnx(tmp_path / "broken.onnx") is None
    assert rewritten(str(tmp_path / "broken.onnx"), str(tmp_path / "new.onnx")).nodes == ()


def stft_tests() -> list[Any]:
    """Those of onnx.backend.test, in which step, window and length are inputs; importing it makes them."""
    import onnx.backend.test.case.node.stft

    return [case for case in onnx.backend.test.case.node._NodeTestCases if case.model.graph.node[0].op_type == "STFT"]


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


@pytest.mark.parametrize("case", stft_tests(), ids=lambda case: case.name)
def test_an_stft_as_a_convolution_gives_what_onnx_expects(case: Any, tmp_path: Path) -> None:
    model = case.model
    inputs, outputs = ([_array(one) for one in side] for side in case.data_sets[0])
    given = dict(zip((one.name for one in model.graph.input), inputs, strict=True))
    signal = model.graph.node[0].input[0]
    for one in list(model.graph.input)[1:]:  # a step, a window and a length that are known, as in real models
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(given[one.name]), one.name))
        model.graph.input.remove(one)
    source, target = tmp_path / "stft.onnx", tmp_path / "new.onnx"
    onnx.save(model, source)
    assert len(rewritten(str(source), str(target)).nodes) == 1
    new = onnx.load(target)
    onnx.checker.check_model(new)
    assert "STFT" not in {node.op_type for node in new.graph.node}
    (found,) = ReferenceEvaluator(new).run(None, {signal: given[signal]})
    np.testing.assert_allclose(found, outputs[0], rtol=1e-3, atol=1e-5 * np.abs(outputs[0]).max())


def test_there_are_tests_of_stft() -> None:
    assert len(stft_tests()) >= 2


@pytest.mark.parametrize(
    "text",
    [
        "g (float[1,64,2] x) => (float[n,m,k,l] y) <int64 s = {8}, int64 size = {16}> { y = STFT (x, s, , size) }",
        "g (float[1,64] x, int64 step) => (float[n,m,k,l] y) <int64 size = {16}> { y = STFT (x, step, , size) }",
        "g (double[1,64] x) => (double[n,m,k,l] y) <int64 s = {8}, int64 size = {16}> { y = STFT (x, s, , size) }",
    ],
    ids=["a signal with an imaginary part", "a step that is computed", "f64"],
)
def test_an_stft_of_another_kind_stays(text: str, tmp_path: Path) -> None:
    assert rewritten(written(tmp_path, text), str(tmp_path / "new.onnx")).nodes == ()
    assert not (tmp_path / "new.onnx").exists()


def test_a_model_with_an_stft_opens_and_gives_what_numpy_gives(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    text = """g (float[b,n] x) => (float[b,f,9,2] y) <int64 step = {8}, int64 size = {16}> {
        longer = Concat <axis = 1> (x, x)
        y = STFT (longer, step, , size)
    }"""
    path, told = written(tmp_path, text), list[str]()
    x = np.random.default_rng(1).standard_normal((2, 20)).astype(np.float32)
    found = stepper.run(open_model(path, told.append), {"x": x})["y"]
    frames = np.lib.stride_tricks.sliding_window_view(np.concatenate([x, x], axis=1), 16, axis=1)[:, ::8]
    expected = np.fft.rfft(frames, axis=2)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, rtol=1e-4, atol=1e-4)
    assert told[0].endswith("STFT 'y' as a convolution")


SQUEEZED = """g (float[b,4,n] x, float[3,4,1] w) => (float[b,3,1] y) {
    sizes = Shape (x)
    last = Gather <axis = 0> (sizes, two)
    is_one = Equal (last, one)
    rows = If (is_one) <then_branch = p () => (float[k,4] short) { short = Squeeze (x, axes) },
                        else_branch = q () => (float[k,4,n] long) { long = Identity (x) }>
    again = Unsqueeze (rows, axes)
    y = Conv (again, w)
}"""


def test_a_model_whose_rank_an_if_decides_opens_with_the_shapes_of_its_inputs(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    text = SQUEEZED.replace("y) {", "y) <int64 two = {2}, int64 one = {1}, int64[1] axes = {2}> {", 1)
    path = written(tmp_path, text)
    with pytest.raises(stepper.ModelError, match=r"Conv 'y': .*rank.* If 'rows'.*--shape 'x=\.\.\.'"):
        open_model(path)
    with pytest.raises(stepper.ModelError, match="it has no input 'z', for which a shape is given; there are x, w"):
        open_model(path, shapes={"z": (2, 4, 1)})
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 1), (3, 4, 1)))
    for _ in range(2):  # the second time it is kept
        told = list[str]()
        found = stepper.run(open_model(path, told.append, shapes={"x": (2, 4, 1)}), {"x": x, "w": w})["y"]
        np.testing.assert_allclose(found[..., 0], x[..., 0] @ w[..., 0].T, rtol=1e-5, atol=1e-6)
    assert not told
