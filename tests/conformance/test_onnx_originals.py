"""A converted model is held against the file that it came from, and what the converter ignores is named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")

import onnx

from tests.cli.conftest import Call

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
LSTM = """g (float[2,5,3] x, float[2,16,3] w, float[2,16,4] r, float[2,12] p) => (float[a,b,c,d] y) {{
    [lstm] y = LSTM <hidden_size = 4, direction = "bidirectional"{more}> (x, w, r, , , , , {last})
}}"""
RNN = """g (float[2,5,3] x, float[2,4,3] w, float[2,4,4] r, float[2,12] p) => (float[a,b,c,d] y) {{
    [rnn] y = RNN <hidden_size = 4, direction = "bidirectional"{more}> (x, w, r)
}}"""


def written(folder: Path, text: str) -> tuple[Path, tuple[Any, ...]]:
    """Return a model and its inputs as options; the names have to be quoted in a shell."""
    path, inputs = folder / "it's a model.onnx", folder / "my inputs.npz"
    model = onnx.parser.parse_model(HEAD + text)
    onnx.save(model, path)
    random = np.random.default_rng(1)
    shapes = {one.name: [size.dim_value for size in one.type.tensor_type.shape.dim] for one in model.graph.input}
    np.savez(inputs, **{name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})
    return path, ("--inputs", inputs)


@pytest.mark.parametrize(
    "text, part, reference",
    [
        (LSTM.format(more="", last="p"), "input P of LSTM 'lstm'", "onnxruntime"),
        (LSTM.format(more=", layout = 1", last=""), "layout=1 of LSTM 'lstm'", "onnx"),
        (LSTM.format(more=", input_forget = 1", last=""), "input_forget=1 of LSTM 'lstm'", "onnxruntime"),
        (
            RNN.format(more=', activations = ["Tanh", "Relu"]', last=""),
            "the activations of the second direction of RNN 'rnn'",
            "onnxruntime",
        ),
    ],
    ids=["peepholes", "layout", "input_forget", "activations"],
)
def test_what_the_converter_ignores_is_named(
    tmp_path: Path,
    call: Call,
    text: str,
    part: str,
    reference: str,
) -> None:
    path, given = written(tmp_path, text)
    assert f"; OpenVINO ignores {part}\n" in call("inspect", path).err
    found = call("check", path, *given)
    assert found.code == 1
    assert f"{path}: error D504 converter-ignores: OpenVINO's converter ignores {part}" in found.out
    if "layout" in part:  # this shape goes no further: the reference reads the axes otherwise
        return
    assert f"difference from {reference}" in found.out
    (again,) = re.findall(r"look at both sides there: stepper (.*)", found.out)
    told = call(*shlex.split(again))
    assert told.code == 1
    assert told.out.startswith(f"first difference from {path.name} in {reference}")
    assert call("compare", path, *given).out == told.out


@pytest.mark.parametrize("text", [LSTM.format(more="", last=""), RNN.format(more="", last="")], ids=["LSTM", "RNN"])
def test_a_healthy_model_is_held_against_both_and_nothing_is_said(
    tmp_path: Path,
    call: Call,
    text: str,
) -> None:
    path, given = written(tmp_path, text)
    found = call("check", path, *given)
    assert (found.code, found.out.splitlines()[0]) == (0, "nothing is wrong")
    assert found.out.rstrip().endswith("difference from onnxruntime, difference from openvino")
    assert "ignores" not in found.err
    assert "no difference from it's a model.onnx in onnxruntime" in call("compare", path, *given).out
    assert "no difference from OpenVINO" in call("compare", path, *given, "--with", "openvino").out
    assert "no difference from OpenVINO" in call("compare", path, *given, "--device", "CPU").out


def test_a_rank_that_changes_is_an_error_before_the_run_that_fails(tmp_path: Path, call: Call) -> None:
    text = """g (float[3] x) => (float last, float[3] all) <float h = {0}, float[1] one = {1}, float two = {2}> {
        last, all = Scan <num_scan_inputs = 1, body = b (float c, float s) => (float c2, float out) {
            c2 = Add (c, one)  out = Mul (c, two)
        }> (h, x)
    }"""
    path, given = written(tmp_path, text)
    lines = [line for line in call("check", path, *given).out.splitlines() if ": error " in line]
    assert [re.findall(r"error (\w+)", line)[0] for line in lines][:2] == ["B208", "D101"]


def test_a_loop_that_does_not_end_is_not_compared(tmp_path: Path, call: Call) -> None:
    text = """g (float[3] x) => (float[3] y) <int64 n = {-5}, bool go = {1}> {
        y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] old) => (bool d, float[3] new) {
            d = Identity (c)  new = Add (old, old) }>
    }"""
    path, given = written(tmp_path, text)
    found = call("check", path, *given, "--seconds", "1", "--with", "onnxruntime")
    assert found.code == 1
    assert "D301" in found.out and "difference from" not in found.out
