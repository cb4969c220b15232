"""What a pass changed, and how a model is read in the middle of a compilation."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import stepper
from stepper.compare.compared_passes import PassRun, PluginOperations, differences, make_readable
from stepper.errors import ExecutionError, LimitReached
from stepper.ir.model import Layer, Port
from stepper.ir.reader import read
from stepper.openvino import native_text, partner
from stepper.openvino.partner import traced_passes
from stepper.processes.programs import WorkerProgram
from stepper.tensors.tolerances import OTHER_KERNELS
from tests.engine.nested_models import alternating, multiplication_table
from tests.engine.subjects import growing, sums
from tests.tables import each_row

LOOP = "model > Loop 'a'"


def ran(output: object = 1.0, iterations: int = 3, value: object = 2.0) -> PassRun:
    key = (LOOP, "last of 'h'")
    return PassRun({"y": np.asarray(output)}, {LOOP: iterations}, {key: np.asarray(value)})


@each_row(
    "after, said",
    [
        (ran(), []),
        (ran(np.float32(1.00005)), []),
        (ran(1.1), ["output 'y': 1 of 1 elements differ: 1.1 instead of 1"]),
        (ran(np.nan), ["output 'y': 1 of 1 elements differ: NaN instead of 1"]),
        (ran([1.0, 2.0]), ["output 'y': shape [2] instead of []"]),
        (ran([1.0]), []),
        (ran(iterations=4), ["Loop 'a': 4 iterations instead of 3"]),
        (ran(value=3.0), ["Loop 'a', last of 'h': 1 of 1 elements differ: 3 instead of 2"]),
        (PassRun({"y": np.asarray(1.0)}, {}), []),
        (PassRun({}, {}), ["0 outputs instead of 1"]),
    ],
)
def test_differences_are_said_in_words(after: PassRun, said: list[str]) -> None:
    assert differences(ran(), after, OTHER_KERNELS["f32"])[0] == said


def test_integers_must_be_equal_and_infinities_are() -> None:
    assert differences(
        PassRun({"n": np.array([2**40])}, {}), PassRun({"n": np.array([0], np.int32)}, {}), OTHER_KERNELS["f32"]
    )[0]
    infinite = PassRun({"x": np.array([np.inf, -np.inf, np.nan])}, {})
    assert differences(infinite, infinite, OTHER_KERNELS["f32"]) == ([], 0.0)


def layer(type: str, version: str, outputs: int = 1, **attributes: str) -> Layer:
    ports = tuple(Port(index, None, (), (), 1) for index in range(outputs))
    definition = 1 if version.startswith("type_relaxed") else None
    return Layer(1, "layer", type, version, definition, MappingProxyType(attributes), (), ports, (), 1)


X = np.array([[-1.0, 2.0]], np.float32)
W = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


@each_row(
    "operation, inputs, expected",
    [
        (layer("FullyConnected", "ie_internal_opset"), [X, W], X @ W.T),
        (layer("FullyConnected", "ie_internal_opset"), [X, W, np.zeros(0, np.uint8)], X @ W.T),
        (layer("FullyConnected", "ie_internal_opset"), [X, W, np.ones(3, np.float32)], X @ W.T + 1),
        (layer("PowerStatic", "cpu_plugin_opset", scale="-2", shift="1", power="2"), [X], (1 - 2 * X) ** 2),
        (layer("LeakyRelu", "cpu_plugin_opset", negative_slope="0.5"), [X], [[-0.5, 2]]),
        (layer("SwishCPU", "cpu_plugin_opset", alpha="1"), [X], X / (1 + np.exp(-X))),
        (layer("ShapeOf", "type_relaxed_opset1", output_data_types="i32"), [X], np.array([1, 2], np.int32)),
        (layer("Less", "type_relaxed_opset1", output_data_types="u8"), [X, X], np.array([[False, False]])),
        (layer("Add", "type_relaxed_opset1", input_data_types="f32,f32", output_data_types="i8"), [X, X], [[-2, 4]]),
    ],
)
def test_the_plugins_own_operations_are_computed(operation: Layer, inputs: list[np.ndarray], expected: object) -> None:
    partner = PluginOperations()
    assert partner.computes(operation, has_kernel=operation.definition is not None)
    (found,) = partner.bind(operation, [None] * len(inputs))[0](*inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == (np.int8 if operation.type == "Add" else getattr(expected, "dtype", np.dtype(np.float32)))


def test_conditions_that_became_bytes_are_read_as_conditions(tmp_path: Path) -> None:
    path = sums().write(tmp_path)
    text = path.read_text().replace('element_type="boolean"', 'element_type="u8"').replace("BOOLEAN", "U8")
    path.write_text(text)
    with pytest.raises(stepper.StepperError, match="condition"):
        stepper.run(read(path), {0: np.ones(5)})
    make_readable(path)
    outputs = stepper.run(read(path), {0: np.ones(5)})
    assert outputs.loops[0].iterations == 5


@each_row("graph", [sums, growing, multiplication_table])
def test_a_model_that_counts_its_loops_counts_what_a_run_reports(tmp_path: Path, graph: object) -> None:
    assert callable(graph)
    model = graph().read(tmp_path)
    inputs = [
        np.ones([abs(dim) for dim in parameter.outputs[0].dims], np.float32) for parameter in model.graph.parameters
    ]
    (text, _weights), paths = native_text.counted(model)
    counting = tmp_path / "counted.xml"
    counting.write_text(text)
    counting.with_suffix(".bin").write_bytes(model.path.with_suffix(".bin").read_bytes())
    numbers = [np.array([number], np.int32) for number in (0, 1)]
    outputs = list(stepper.run(read(counting), dict(enumerate([*inputs, *numbers]))).values())
    plain = stepper.run(model, dict(enumerate(inputs)))
    counts = [int(value[0]) for value in outputs[len(plain) :]]
    assert sorted(counts) == sorted(loop.iterations for loop in plain.loops)
    assert len(paths) == len(counts)
    for ours, theirs in zip(plain.values(), outputs, strict=False):
        np.testing.assert_array_equal(ours, theirs)


def test_a_body_alone_computes_an_iteration(tmp_path: Path) -> None:
    model = alternating().read(tmp_path)
    ((_path, _main), *bodies) = model.graphs()
    for _path, graph in bodies:
        text, _weights = native_text.body(model, graph)
        alone = tmp_path / "alone.xml"
        alone.write_text(text)
        alone.with_suffix(".bin").write_bytes(model.path.with_suffix(".bin").read_bytes())
        found = read(alone).graph
        assert [layer.name for layer in found.layers] == [layer.name for layer in graph.layers]


# --- a compilation, played by a script ------------------------------------------------------------------------------


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partner, "PROGRAM", WorkerProgram("OpenVINO", "tests.openvino.played_passes"))


@pytest.mark.usefixtures("played")
def test_passes_come_in_order_and_leave_nothing_behind(tmp_path: Path) -> None:
    numbers = []
    for traced in traced_passes(tmp_path / "m.xml", "12:ends", "f32"):
        numbers.append(traced.number)
        assert traced.name == "ov::pass::Some"
        assert traced.path.read_bytes() == b"<net/>"
        folder = traced.path.parent
        assert not (folder / f"Model7_{traced.number - 1:03}_ov::pass::Some.bin").exists()
    assert numbers == list(range(12))
    assert not folder.exists()


@pytest.mark.usefixtures("played")
def test_a_refusal_comes_after_the_passes_up_to_there(tmp_path: Path) -> None:
    passes = traced_passes(tmp_path / "m.xml", "3:fails", "f32")
    assert [next(passes).number for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ExecutionError, match="OpenVINO refuses the model: It is too large"):
        next(passes)


@pytest.mark.usefixtures("played")
def test_a_crash_and_a_pass_without_an_end_are_sentences_after_the_passes_up_to_there(tmp_path: Path) -> None:
    passes = traced_passes(tmp_path / "m.xml", "3:crashes", "f32")
    folder = next(passes).path.parent
    assert next(passes).number == 1
    with pytest.raises(ExecutionError, match=r"^OpenVINO crashed \(SIGABRT\) while compiling the model m.xml$"):
        next(passes)
    assert not folder.exists()
    passes = traced_passes(tmp_path / "m.xml", "1:hangs", "f32", timeout=2.0)
    with pytest.raises(LimitReached, match=r"^OpenVINO did not finish within 2 s while compiling the model m.xml$"):
        list(passes)


@pytest.mark.usefixtures("played")
@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be made to wait there")
def test_the_compilation_waits_while_it_is_too_far_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partner, "_MOST_BYTES", 20_000)
    most, numbers = 0, []
    for traced in traced_passes(tmp_path / "m.xml", "300:slow", "f32"):
        numbers.append(traced.number)
        time.sleep(0.003)  # longer than a pass takes
        most = max(most, sum(path.stat().st_size for path in traced.path.parent.glob("*.bin")))
    assert numbers == list(range(300))
    assert most < 120_000, "of 210,000 in all"


@pytest.mark.usefixtures("played")
def test_leaving_early_ends_the_compilation(tmp_path: Path) -> None:
    passes = traced_passes(tmp_path / "m.xml", "3:hangs", "f32")
    folder = next(passes).path.parent
    number = int((folder / "pid").read_text())
    begin = time.perf_counter()
    passes.close()  # type: ignore[attr-defined]  # a generator
    assert time.perf_counter() - begin < 10
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
