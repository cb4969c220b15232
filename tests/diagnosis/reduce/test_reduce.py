"""Faults of a known place in large models: what is left is the operation of the fault, and what it needs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.diagnosis.reduce.conditions import (
    DisagreesWith,
    EndsInError,
    FaultKind,
    StopsAt,
)
from stepper.diagnosis.reduce.draft import DraftModel
from stepper.diagnosis.reduce.reducing import Reduction, ReductionProgress, reduce_model
from stepper.diagnosis.reduce.writing import ir_files
from stepper.engine.inputs import bind_inputs
from tests.debug.debugged import SAMPLES
from tests.json_answers import checked
from tests.models import Graph, Value, carried, joined, last, sliced

STEPS = 6


def chain(graph: Graph, value: Value, count: int, start: int = 0) -> Value:
    """Harmless operations, one after the other."""
    for index in range(count):
        half = graph.constant(np.float32(0.5 + index % 3), name=f"number_{start + index}")
        kind = ("Multiply", "Add", "Subtract")[index % 3]
        value = graph.apply(kind, value, half, name=f"harmless_{start + index}", auto_broadcast="numpy")
    return value


def planted(operation: str, threshold: float = 3.0, extra: int = 12) -> Graph:
    """A loop over rows amid harmless operations; in row 4, where x - threshold is -1, `operation` is at fault."""
    net = Graph()
    x, body = net.parameter("x", "f32", (STEPS, 2)), net.body()
    before = chain(net, x, extra)
    row, raw = body.parameter("row", "f32", (1, 2)), body.parameter("raw", "f32", (1, 2))
    state = body.parameter("state", "f32", (1, 2))
    shifted = body.apply("Subtract", body.constant(np.float32(threshold)), raw, dims=(1, 2), name="shifted")
    guilty = body.apply(operation, shifted, name="guilty", dims=(1, 2))
    mixed = body.apply("Add", chain(body, row, extra, 100), guilty, name="mixed", auto_broadcast="numpy")
    following = body.result(body.apply("Add", state, mixed, name="following", auto_broadcast="numpy"), "following_r")
    start = net.constant(np.zeros((1, 2), np.float32), name="start")
    entries = [sliced(before, row), sliced(x, raw), carried(start, state, following)]
    final, pieces = net.loop("rows", body, STEPS, True, entries, [last(following), joined(following)])
    net.result(chain(net, final, extra, 200), "final")
    net.result(pieces, "pieces")
    return net


def rows() -> dict[str, np.ndarray]:
    x = np.ones((STEPS, 2), np.float32)
    x[4, 1] = 4
    return {"x": x}


def kinds(found: Reduction) -> list[str]:
    return sorted(layer.type for _address, layer in found.model.operations())


@pytest.mark.parametrize("name", ["nested_loop", "while_loop", "reverse", "growing_tensor", "date_normaliser"])
def test_what_is_written_computes_the_same(name: str, tmp_path: Path) -> None:
    folder = SAMPLES / name
    model, inputs = stepper.read_model(folder / "model.xml"), dict(np.load(folder / "inputs.npz"))
    files = ir_files(DraftModel.of(model, bind_inputs(model, inputs)))
    (tmp_path / "again.xml").write_bytes(files.xml)
    (tmp_path / "again.bin").write_bytes(files.weights)
    before, after = stepper.run(model, inputs), stepper.run(tmp_path / "again.xml", inputs)
    assert list(before) == list(after) and [one.iterations for one in before.loops] == [
        one.iterations for one in after.loops
    ]
    for name_, value in before.items():
        np.testing.assert_array_equal(value, after[name_])


def test_of_a_nan_the_operation_that_bears_it_is_left(tmp_path: Path) -> None:
    model = planted("Log").read(tmp_path)
    found = reduce_model(model, rows(), StopsAt("nan"))
    assert found is not None and found.is_smallest
    assert found.fault.kind is FaultKind.STOP and found.fault.layer_type == "Log"
    assert kinds(found) == ["Log"] and found.operations[0] > 40
    assert sum(value.size for value in found.model.inputs) <= 1
    again = reduce_model(model, rows(), StopsAt("nan"))
    assert again is not None and ir_files(again.model) == ir_files(found.model)


def test_of_two_models_the_operation_in_which_they_differ_is_left(tmp_path: Path) -> None:
    (tmp_path / "healthy").mkdir()
    healthy = planted("Exp").write(tmp_path / "healthy")
    found = reduce_model(planted("Abs").read(tmp_path), rows(), DisagreesWith(str(healthy)))
    assert found is not None and found.twin is not None and found.is_smallest
    assert kinds(found) == ["Abs"]
    assert [layer.type for _address, layer in found.twin.operations()] == ["Exp"]
    with np.errstate(all="ignore"):
        (x,) = [layer.value for layer in found.model.graph.layers.values() if layer.value is not None]
        assert x is not None
        np.testing.assert_allclose(np.ravel(found.expected[0]), np.ravel(np.exp(x)), rtol=1e-6)
        np.testing.assert_array_equal(np.ravel(found.given[0]), np.ravel(np.abs(x)))


def test_of_an_error_the_operation_that_fails_is_left(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", "f32", (3, 4))
    wanted = net.constant(np.array([5, 2]), name="wanted")
    y = net.apply("Reshape", chain(net, x, 20), wanted, dims=(-1, -1), name="guilty", special_zero="false")
    net.result(chain(net, y, 20, 100))
    found = reduce_model(net.read(tmp_path), {"x": np.ones((3, 4), np.float32)}, EndsInError())
    assert found is not None and (found.fault.what, found.fault.layer_type) == ("ExecutionError", "Reshape")
    assert kinds(found) == ["Reshape"]


def test_a_model_without_the_fault_is_not_reduced(tmp_path: Path) -> None:
    assert reduce_model(planted("Exp").read(tmp_path), rows(), StopsAt("nan")) is None
    code = main(
        ["reduce", str(tmp_path / "model.xml"), "--input", "x=ones", "--break", "nan", "-o", str(tmp_path / "o")]
    )
    assert code == 0 and not (tmp_path / "o").exists()


def test_an_interrupt_keeps_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupting(progress: ReductionProgress) -> None:
        if progress.operations < 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("stepper.cli.commands.reduce._show", interrupting)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    path = planted("Log").write(tmp_path)
    np.savez(tmp_path / "x.npz", **rows())
    words = ["reduce", str(path), "--inputs", str(tmp_path / "x.npz"), "--break", "nan", "--json"]
    assert main([*words, "-o", str(tmp_path / "small")]) == 130
    answer = checked("reduce", capsys.readouterr().out)
    assert answer["reduced"]["is_interrupted"] and 1 < answer["reduced"]["operations"] < 20
    script = subprocess.run([sys.executable, tmp_path / "small" / "reproduce.py"], capture_output=True, text=True)
    assert script.returncode == 1 and "NaN appears in Log 'guilty'" in script.stdout, script.stderr


@pytest.mark.skipif(importlib.util.find_spec("openvino") is None, reason="needs OpenVINO")
def test_a_fault_of_the_runtime_has_a_case_that_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random, net = np.random.default_rng(0), Graph()
    x = net.parameter("x", "f32", (2, 4))
    weights = net.constant(random.standard_normal((4, 4)).astype(np.float32), name="weights")
    inner = chain(net, x, 12)
    one = net.apply("MatMul", inner, weights, name="straight", transpose_a="false", transpose_b="false")
    other = net.apply("MatMul", inner, weights, name="turned", transpose_a="false", transpose_b="true")
    net.result(one, "one")
    net.result(other, "other")
    net.result(chain(net, x, 9, 100), "healthy")
    path, folder = net.write(tmp_path), tmp_path / "small"
    np.savez(tmp_path / "x.npz", x=random.standard_normal((2, 4)).astype(np.float32))
    words = ["reduce", str(path), "--inputs", str(tmp_path / "x.npz"), "--json", "-q", "-o", str(folder)]
    assert main(words) == 1
    answer = checked("reduce", capsys.readouterr().out)
    assert (answer["fault"]["program"], answer["fault"]["kind"]) == ("OpenVINO", "values")
    small = stepper.read_model(folder / "model.xml")
    assert (
        sorted(layer.type for layer in small.graph.layers if "Mat" in layer.type or "Mul" in layer.type)
        == ["MatMul"] * 2
    )
    assert answer["reduced"]["operations"] == 2 and answer["reduced"]["is_smallest"]
    files = {one.name for one in folder.iterdir()}
    assert files == {*answer["reduced"]["files"]} >= {"model.xml", "model.bin", "inputs.npz", "reproduce.py"}
    shown = subprocess.run([sys.executable, folder / "reproduce.py"], capture_output=True, text=True, timeout=100)
    assert shown.returncode == 1 and "they differ" in shown.stdout, shown.stderr
    assert "import stepper" not in (folder / "reproduce.py").read_text()
    report = (folder / "REPORT.md").read_text()
    assert "MatMul 'turned'" in report and "openvino" in report and json.dumps("x")[1:-1] in report
