"""Faults of a known place in large models: what is left is the operation of the fault, and what it needs."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
from contextvars import copy_context
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.cli import main
from stepper.debug.debugger import Debugger
from stepper.diagnosis.reduce.draft import DraftModel, ir_files
from stepper.diagnosis.reduce.reduce_service import TrialService
from stepper.diagnosis.reduce.reducing import Reduction, ReductionProgress, reduce_model
from stepper.diagnosis.reduce.trials import (
    DisagreesWith,
    EndsInError,
    FaultKind,
    RunSettings,
    StopsAt,
    TryModel,
)
from stepper.engine.inputs import bind_inputs
from tests.debug.debugged import SAMPLES
from tests.engine.subjects import endless
from tests.json_answers import checked
from tests.models import Graph, Value, carried, joined, last, sliced
from tests.tables import each_row

STEPS = 6


def chain(graph: Graph, value: Value, count: int, start: int = 0) -> Value:
    """Harmless operations, one after the other."""
    for index in range(count):
        half = graph.constant(np.float32(0.5 + index % 3), name=f"number_{start + index}")
        kind = ("Multiply", "Add", "Subtract")[index % 3]
        value = graph.apply(kind, value, half, name=f"harmless_{start + index}", auto_broadcast="numpy")
    return value


def planted(operation: str, threshold: float = 3.0, extra: int = 12, said: tuple[int, ...] = (1, 2)) -> Graph:
    """A loop over rows amid harmless operations; in row 4, where x - threshold is -1, `operation` is at fault."""
    net = Graph()
    x, body = net.parameter("x", "f32", (STEPS, 2)), net.body()
    before = chain(net, x, extra)
    row, raw = body.parameter("row", "f32", (1, 2)), body.parameter("raw", "f32", (1, 2))
    state = body.parameter("state", "f32", (1, 2))
    shifted = body.apply("Subtract", body.constant(np.float32(threshold)), raw, dims=(1, 2), name="shifted")
    guilty = body.apply(operation, shifted, name="guilty", dims=said)
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


@each_row("name", ["nested_loop", "while_loop", "reverse", "growing_tensor", "date_normaliser"])
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


def test_ports_say_the_shapes_that_are_there_also_when_the_time_is_up(tmp_path: Path) -> None:
    found = reduce_model(planted("Log", said=(7, 2)).read(tmp_path), rows(), StopsAt("nan"), seconds=0)
    assert found is not None and not found.is_smallest
    (guilty,) = (layer for _address, layer in found.model.operations() if layer.name == "guilty")
    assert guilty.outputs[0].dims == (1, 2)


def test_of_a_nan_an_output_shows_it_where_one_has(tmp_path: Path) -> None:
    """The first output never has it: the loop stops there all the same, but nobody else would see anything."""
    net = Graph()
    x, body = net.parameter("x", "f32", (STEPS, 2)), net.body()
    row, state = body.parameter("row", "f32", (1, 2)), body.parameter("state", "f32", (1, 2))
    doubled = body.result(body.apply("Add", row, row, name="doubled"), "doubled_r")
    logarithm = body.apply("Log", body.apply("Subtract", state, row, name="less"), name="logarithm")
    start = net.constant(np.full((1, 2), 5, np.float32), name="start")
    following = body.result(logarithm, "following")
    entries = [sliced(x, row), carried(start, state, following)]
    pieces, final = net.loop("rows", body, STEPS, True, entries, [joined(doubled), last(following)])
    net.result(pieces, "pieces")
    net.result(final, "final")
    found = reduce_model(net.read(tmp_path), rows(), StopsAt("nan"))
    assert found is not None and set(kinds(found)) <= {"Log", "Loop"}
    files = ir_files(found.model)
    (tmp_path / "small.xml").write_bytes(files.xml)
    (tmp_path / "small.bin").write_bytes(files.weights)
    outputs = stepper.run(tmp_path / "small.xml", dict(enumerate(found.model.inputs)))
    assert any(np.isnan(value).any() for value in outputs.values())


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
    def interrupting(progress: ReductionProgress, most: float) -> None:
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
    assert script.returncode == 1, script.stderr
    assert "NaN appears in Log 'guilty'" in (tmp_path / "small" / "REPORT.md").read_text()


def test_the_test_of_a_case_fails_with_the_fault_and_passes_when_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / "healthy").mkdir()
    healthy, path, folder = planted("Exp").write(tmp_path / "healthy"), planted("Abs").write(tmp_path), tmp_path / "o"
    np.savez(tmp_path / "x.npz", **rows())
    words = ["reduce", str(path), "--inputs", str(tmp_path / "x.npz"), "--differs", str(healthy), "-o", str(folder)]
    assert main([*words, "--atol", "1000"]) == 0  # they differ by less
    assert main(words) == 1
    test = runpy.run_path(str(folder / "test_reduced.py"))["test_the_reduced_model"]
    with pytest.raises(AssertionError):
        test()
    for ending in (".xml", ".bin"):
        (folder / f"model{ending}").write_bytes((folder / f"reference{ending}").read_bytes())
    test()


def test_an_error_where_the_healthy_model_has_none_is_a_difference(tmp_path: Path) -> None:
    def model(stride: int) -> Graph:
        net = Graph()
        x, body = net.parameter("x", "f32", (4, 2)), net.body()
        row = body.parameter("row", "f32", (1, 2))
        result = body.result(chain(body, row, 6), "row_result")
        (rows_out,) = net.tensor_iterator("rows", body, [sliced(x, row, stride=stride, part_size=1)], [joined(result)])
        net.result(chain(net, rows_out, 6, 50))
        return net

    (tmp_path / "healthy").mkdir()
    healthy, path = model(1).write(tmp_path / "healthy"), model(2).read(tmp_path)
    found = reduce_model(path, {"x": np.ones((4, 2), np.float32)}, DisagreesWith(str(healthy)))
    assert found is not None and found.fault.kind is FaultKind.ERROR and kinds(found) == ["TensorIterator"]
    assert found.fault.message.startswith("model.xml:") and "part_size" in found.fault.message


def accumulating(states: int) -> Graph:
    """A model with a variable: what came before is multiplied by 4 and goes on, through harmless operations."""
    net, variable = Graph(), {"variable_id": "memory", "variable_type": "f32", "variable_shape": f"1,{states}"}
    x = net.parameter("x", "f32", (1, states))
    before = net.apply("ReadValue", chain(net, x, 3), version="opset6", name="before", **variable)
    grown = net.apply("Multiply", before, net.constant(np.float32(4)), name="grown", auto_broadcast="numpy")
    net.apply("Assign", grown, version="opset6", name="after", **variable)
    net.result(chain(net, net.apply("Exp", grown, name="guilty"), 8, 50))
    return net


def test_a_state_and_an_engine_of_fewer_bits_are_part_of_the_fault(tmp_path: Path) -> None:
    path, words = accumulating(6).write(tmp_path), ["--break", "inf", "--input", "x=zeros", "-q", "-o"]
    assert main(["reduce", str(path), "--state", "memory=[[4,1,1,1,1,1]]", *words, str(tmp_path / "none")]) == 0
    engine = ["--engine", "numpy-f16", "--state", "memory=[[4,1,1,1,1,1]]"]
    assert main(["reduce", str(path), *engine, *words, str(tmp_path / "f16")]) == 1  # exp(16) is beyond f16
    small = stepper.read_model(tmp_path / "f16" / "model.xml")
    assert {layer.type for layer in small.graph.layers} - {"Constant", "Parameter", "Result"} == {"Exp"}
    shown = subprocess.run([sys.executable, tmp_path / "f16" / "reproduce.py"], capture_output=True, text=True)
    assert shown.returncode == 1 and "Inf appears in Exp" in shown.stdout, shown.stderr


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
    script = (folder / "reproduce.py").read_text()
    assert "import stepper" not in script and "EXPECTED = [\n    (np.array(" in script
    report = (folder / "REPORT.md").read_text()
    assert "MatMul 'turned'" in report and "openvino" in report and json.dumps("x")[1:-1] in report


def test_a_trial_that_never_ends_is_left_where_the_whole_model_had_stopped(tmp_path: Path) -> None:
    service = TrialService(lambda _stage: None)
    act = TryModel(str(endless().write(tmp_path)), RunSettings(most_moves=5_000), StopsAt("nan"))
    facts, _arrays = copy_context().run(service.perform, act, [])  # its limit of memory is for a process of its own
    assert facts.fault is None and facts.moves == 5_000
    debugger = Debugger(act.path, {})
    assert debugger.continue_(until=123).tick == 123 and not debugger.machine.finished
