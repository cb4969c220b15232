"""Names of nodes, which viewers of ONNX files show, and names of outputs mean the same wherever a name is typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("openvino")

import onnx

import stepper
from tests.cli.conftest import Call

WALK = """<ir_version: 8, opset_import: ["": 17]>
g (float[t,3] x) => (float[3] last, float[t,3] all, int64 half)
    <int64 zero = {0}, int64 two = {2}, bool true = {1}, float[3] start = {0,0,0}> {
    sizes = Shape (x)
    [count] n = Gather (sizes, zero)
    [halve] half = Div (n, two)
    [walk] last, all = Loop (n, true, start) <body = b (int64 i, bool c, float[3] s)
        => (bool d, float[3] new, float[3] out) {
        row = Gather (x, i)
        [add] sum = Add (s, row)
        [squash] new = Tanh (sum)
        d = Identity (c)
        out = Identity (new)
    }>
}"""
GRU = """<ir_version: 8, opset_import: ["": 17]>
g (float[5,1,3] x, float[1,12,3] w, float[1,12,4] r) => (float[5,1,1,4] y, float[1,1,4] last) {
    [cell] y, last = GRU <hidden_size = 4> (x, w, r)
}"""


def written(folder: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), folder / "walk.onnx")
    np.savez(folder / "x.npz", x=np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
    return folder / "walk.onnx"


@pytest.mark.parametrize("loop, value", [("walk", "squash"), ("last", "new"), ("all", "new")])
def test_both_names_are_taken(tmp_path: Path, call: Call, loop: str, value: str) -> None:
    path, given = written(tmp_path, WALK), ("--inputs", tmp_path / "x.npz")
    assert call("inspect", path, loop).out.startswith("Loop 'walk'")
    stopped = call("run", path, *given, "--break", value)
    assert stopped.code == 1
    assert "Tanh 'squash' ran in iteration 0 of Loop 'walk'" in stopped.out
    assert call("why", path, f"end of {loop}", *given).out.startswith("why 4 iterations of Loop 'walk'")
    assert call("why", path, f"{loop}::{value}@2[1]", *given).out.startswith("why ")
    debugger = stepper.open_debugger(path, dict(np.load(tmp_path / "x.npz")))
    debugger.goto(f"{value}@2")
    assert "squash" in str(debugger.stop)


def test_a_division_keeps_its_rounding_and_gets_its_name(tmp_path: Path) -> None:
    model = stepper.open_model(written(tmp_path, WALK))
    (divide,) = (layer for layer in model.graph.layers if layer.name == "halve")
    assert (divide.type, divide.attributes["m_pythondiv"]) == ("Divide", "false")


def test_a_recurrent_node_names_its_sequence_and_not_what_stands_behind_it(tmp_path: Path) -> None:
    model = stepper.open_model(written(tmp_path, GRU))
    names = {layer.name: layer.type for layer in model.graph.layers}
    assert names["cell"] == "GRUSequence"
    assert {name: names[name] for name in ("y", "last")} == {"y": "Transpose", "last": "Transpose"}


def test_openvino_and_onnx_still_agree(tmp_path: Path, call: Call) -> None:
    path = written(tmp_path, WALK)
    for reference in ("openvino", "onnx"):
        assert "no difference" in call("compare", path, "--with", reference, "--inputs", tmp_path / "x.npz").out
