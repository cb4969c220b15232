"""`stepper compare` and the debugger beside the real runtime and ONNX's own evaluators."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openvino")

import openvino as ov

from stepper.cli import main
from tests.compare.test_other_references import doubling
from tests.conformance.runtime import computes_in
from tests.conformance.test_openvino_opening import X, onnx_file
from tests.json_answers import checked
from tests.tui.driven import Driven, debugger_of_sample, drive

SAMPLES = Path(__file__).parents[2] / "sample_models"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/inputs.npz"))
REFUSED = "specification_lstm"
"""The runtime cannot read the published draft of the operation."""


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    np.savez(tmp_path / "x.npz", **X)
    return onnx_file(tmp_path)


def compare(capsys: pytest.CaptureFixture[str], model: Path, inputs: Path, *options: str) -> tuple[int, str]:
    code = main(["compare", str(model), "--inputs", str(inputs), *options])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in NAMES if name != REFUSED])
def test_the_runtime_agrees_on_a_sample_and_its_iterations_are_known(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = SAMPLES / name
    code, out = compare(capsys, folder / "model.xml", folder / "inputs.npz", "--with", "openvino", "--json")
    report = checked("compare", out)
    assert code == 0 and report["reference"] == "OpenVINO (CPU, f32)"
    for loop in report["loops"]:
        runs = [run for run in loop["runs"] for _ in range(run["count"])]
        if len(loop["path"]) == 0:
            assert [run["reference"] for run in runs] == [run["ours"] for run in runs]
        else:
            assert loop["iterations"]["ours"] == loop["iterations"]["reference"]


def test_a_model_that_the_runtime_refuses_is_a_finding_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    folder = SAMPLES / REFUSED
    code, out = compare(capsys, folder / "model.xml", folder / "inputs.npz")
    assert code == 1 and "the reference stops: OpenVINO refuses the model: " in " ".join(out.split())


def test_what_the_runtime_computes_otherwise_is_named_where_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = doubling().write(tmp_path)
    np.savez(tmp_path / "x.npz", start=np.int64([2**29]))
    precision = "bf16" if computes_in("bf16") else "f32"
    code, out = compare(capsys, path, tmp_path / "x.npz", "--precision", precision)
    head = " ".join(" ".join(out.splitlines()[:6]).split())
    assert code == 1 and f"first difference from OpenVINO (CPU, {precision}): Loop 'doubling' (id" in head
    assert "iteration 1, Multiply 'doubled'" in head and "overflow in OpenVINO's 32 bits" in head


def test_the_debugger_stops_where_the_runtime_makes_something_else_of_the_same_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = doubling().write(tmp_path)
    script = "break diff > 1e-4\ncontinue\nprint ref(doubled)\nprint doubled - ref(doubled)\nprint ref(value)\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(script))
    words = ["debug", str(path), "--input", f"start=[{2**29}]", "--reference", "openvino", "--script", "-"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "Multiply 'doubled' is 4.29497e+09 from OpenVINO (CPU, f32), more than 0.0001" in out
    assert "in iteration 1 of Loop 'doubling'" in out
    assert str(-(2**31)) in out and str(2**32) in out and str(2**30) in out


@pytest.mark.parametrize("swapped", [False, True])
def test_an_onnx_file_and_its_saved_ir_do_not_differ(
    swapped: bool, onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved.xml"
    ov.save_model(ov.Core().read_model(onnx_model), saved, compress_to_fp16=False)
    one, other = (saved, onnx_model) if swapped else (onnx_model, saved)
    code, out = compare(capsys, one, tmp_path / "x.npz", "--with", str(other))
    assert code == 0 and out.startswith("no difference from")


@pytest.mark.parametrize("evaluator", ["onnx", "onnxruntime"])
def test_onnx_itself_is_a_reference(
    evaluator: str, onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(evaluator)
    code, out = compare(capsys, onnx_model, tmp_path / "x.npz", "--with", evaluator, "--per-op", "--json")
    report = checked("compare", out)
    assert code == 0 and report["reference"] == f"loop.onnx in {evaluator}"
    assert {"start", "the_loop", "negative"} <= {one["layer"]["name"] for one in report["operations"]}
    assert all(output["known"] for output in report["outputs"])


def test_a_value_that_onnx_has_otherwise_is_found(
    onnx_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stepper.compare.references.onnx import OnnxPeer

    run = OnnxPeer.run

    def wrong(self: Any, *given: Any) -> Any:
        found = run(self, *given)
        return {**found, "last": found["last"] + 1, "negative": -(found["last"] + 1)}

    monkeypatch.setattr(OnnxPeer, "run", wrong)
    code, out = compare(capsys, onnx_model, tmp_path / "x.npz", "--with", "onnx")
    text = " ".join(out.split())
    assert code == 1 and "Loop 'the_loop'" in text and "no value in its body was seen to differ" in text


def edges_onnx(folder: Path) -> Path:
    """A convolution with a bias, whose weights sum to nothing: the converter makes two operations of it, and more."""
    from onnx import TensorProto, helper, numpy_helper, save

    kernel = np.random.default_rng(0).standard_normal((2, 3, 3, 3)).astype(np.float32)
    kernel -= kernel.mean(axis=(1, 2, 3), keepdims=True)
    constants = [numpy_helper.from_array(kernel, "K"), numpy_helper.from_array(np.zeros(2, np.float32), "b")]
    nodes = [helper.make_node("Conv", ["x", "K", "b"], ["c"], name="conv"), helper.make_node("Relu", ["c"], ["y"])]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in (("x", [1, 3, 16, 16]), ("y", [1, 2, 14, 14]))
    ]
    graph = helper.make_graph(nodes, "edges", ends[:1], ends[1:], constants)
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "edges.onnx")
    flat = 4000 + np.random.default_rng(1).uniform(0, 1e-3, (1, 3, 16, 16))
    np.savez(folder / "edges.npz", x=flat.astype(np.float32))
    return folder / "edges.onnx"


@pytest.mark.parametrize("wrong", [False, True])
def test_what_the_converter_adds_to_a_node_is_not_blamed(
    wrong: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    from stepper.compare.references.onnx import OnnxPeer

    run = OnnxPeer.run

    def off(self: Any, *given: Any) -> Any:
        found = run(self, *given)
        return {**found, "c": found["c"] + 1, "y": np.maximum(found["c"] + 1, 0)} if wrong else found

    monkeypatch.setattr(OnnxPeer, "run", off)
    code, out = compare(capsys, edges_onnx(tmp_path), tmp_path / "edges.npz", "--with", "onnxruntime")
    text = " ".join(out.split())
    assert code == int(wrong), text
    if wrong:
        assert "Add 'conv'" in text and "what the two do not share" not in text
        assert "OpenVINO's conversion of that node, together with Convolution" in text


@pytest.mark.parametrize("name", [name for name in NAMES if name != REFUSED])
def test_the_headline_compares_with_what_the_runtime_computes_of_our_values(name: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":compare openvino")
        shown = driven.text("headline") + driven.answer
        assert "agrees with" in shown or "every operation of this graph gives what it gave before" in shown, shown

    drive(debugger_of_sample(name), script, size=(160, 48), runs=True)


@pytest.mark.parametrize("words", [["inspect"], ["export"], ["debug", "--script", "-"]])
def test_every_command_opens_an_onnx_file(
    words: list[str],
    onnx_model: Path,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("next\n"))
    inputs = [] if words == ["inspect"] else ["--inputs", str(tmp_path / "x.npz")]
    assert main([words[0], str(onnx_model), *words[1:], *inputs]) == 0
    assert b"start" in capfdbinary.readouterr().out or words == ["export"]
