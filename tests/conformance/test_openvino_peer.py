"""The other side of a comparison: the runtime's own run, and operations and bodies alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino")

import openvino
from openvino import opset13 as op

import stepper
from stepper.compare.comparison import compare_with, text_lines
from stepper.compare.references.openvino import OpenVINOReference
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from stepper.errors import KernelError, UsageError
from stepper.openvino import native_text
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import Runtime
from stepper.processes.worker import Worker
from tests.conformance.agreement import assert_agrees
from tests.conformance.openvino_subjects import LONG_AGO, NAMES, sample, some_values, sum_along_an_axis_that_is_a_list
from tests.engine.nested_models import alternating, loop_in_branch, loops_in_branches, multiplication_table


@pytest.mark.parametrize("name", [name for name in NAMES if name != LONG_AGO])
def test_the_runtimes_own_run_has_our_outputs_and_iterations(name: str) -> None:
    model, inputs, _wanted = sample(name)
    peer, bound = OpenVINOPeer(model), stepper.bind_inputs(model, inputs)
    ours = stepper.run(model, inputs, rules="openvino")
    assert sorted(peer.begin_counting(bound)().values()) == sorted(loop.iterations for loop in ours.loops)
    for actual, (where, value) in zip(peer.run(bound), ours.items(), strict=True):
        assert_agrees(actual, value, where)


def test_loops_in_loops_are_counted_in_all(tmp_path: Path) -> None:
    model = multiplication_table().read(tmp_path)
    inputs = some_values(model.graph)
    ours = stepper.run(model, dict(enumerate(inputs)))
    peer = OpenVINOPeer(model)
    iterations = peer.begin_counting(inputs)()
    assert not peer.notes
    assert sorted(iterations.values()) == sorted(loop.iterations for loop in ours.loops)
    assert max(map(len, iterations)) == 2


@pytest.mark.parametrize(("many", "rounds"), [(True, 3), (True, 0), (False, 3)])
def test_loops_in_branches_are_counted_in_all(tmp_path: Path, many: bool, rounds: int) -> None:
    model = loops_in_branches().read(tmp_path)
    inputs = stepper.bind_inputs(model, {"many": many, "n": rounds, "x": np.float32(1.5)})
    counted = OpenVINOPeer(model).begin_counting(inputs)()
    iterations = {key[-1:] if len(key) < 4 else key[-2:]: count for key, count in counted.items()}
    assert len(counted) == 3 and {key[1] for key in counted} == {"then_body"}
    ran = rounds if many else 0
    assert sorted(iterations.values()) == sorted([ran, 3 * ((ran + 1) // 2), 2 * (ran // 2)])
    text = "\n".join(text_lines(compare_with(Machine(compile_model(model), inputs), reference(model, inputs))))
    assert text.startswith("no difference from OpenVINO")


def reference(model: stepper.Model, inputs: Sequence[Array]) -> OpenVINOReference:
    return OpenVINOReference(OpenVINOPeer(model), inputs, "OpenVINO")


@pytest.mark.parametrize("name", ["for_loop", "date_normaliser", "while_loop", "nested_loop"])
def test_each_body_and_operation_alone_makes_of_the_same_what_ours_makes(name: str) -> None:
    model, inputs, _wanted = sample(name)
    peer = OpenVINOPeer(model)
    machine = Machine(compile_model(model), stepper.bind_inputs(model, inputs))
    bodies = operations = 0
    for event in machine.run(Every.OPERATION):
        frame, program = event.frame, event.frame.program
        if event.kind.name == "OPERATION" and frame.activation is not None and frame.pc and operations < 60:
            operation = program.operations[frame.pc - 1]
            if not operation.plans:
                operations += 1
                values = [frame.values[slot] for slot in operation.inputs]
                found = peer.operation(program.graph, operation.layer)(*values)
                for slot, value in zip(operation.outputs, found, strict=True):
                    assert_agrees(value, np.asarray(frame.values[slot]), f"{program.name} > {operation.layer}")
        if event.kind.name == "ITERATION" and bodies < 12:
            bodies += 1
            found = peer.body(program.graph)(*[np.asarray(frame.values[slot]) for slot in program.parameters])
            for slot, value in zip(program.results, found, strict=True):
                assert_agrees(value, np.asarray(frame.values[slot]), program.name)
    assert bodies and operations


def test_both_sides_of_an_if_are_found_as_bodies(tmp_path: Path) -> None:
    for index, graph in enumerate((alternating(), loop_in_branch())):
        folder = tmp_path / str(index)
        folder.mkdir()
        model = graph.read(folder)
        peer = OpenVINOPeer(model)
        for _path, body in list(model.graphs())[1:]:
            values = some_values(body)
            assert len(peer.body(body)(*values)) == len(body.results)
    with pytest.raises(UsageError, match="not a body of the model"):
        peer.body(model.graph)


def test_a_kernel_error_is_raised_for_one_operation_alone(tmp_path: Path) -> None:
    model = sum_along_an_axis_that_is_a_list().read(tmp_path)
    layer = next(layer for layer in model.graph.layers if layer.name == "odd")
    with pytest.raises(KernelError, match="OpenVINO refuses it"):
        OpenVINOPeer(model).operation(model.graph, layer)(np.array([1, 2], np.float32), np.array([0]))


def test_the_properties_of_a_runtime_are_those_a_model_is_compiled_with() -> None:
    x = op.parameter([2, 3], np.float32)
    usual, other = Runtime(), Runtime().with_properties({"DYNAMIC_QUANTIZATION_GROUP_SIZE": "16"})
    name = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
    models = [one.request(openvino.Model([op.relu(x)], [x])).get_compiled_model() for one in (usual, other)]
    sizes = [model.get_property(name) for model in models]
    assert sizes[0] != sizes[1] == 16 and usual.properties == {}


def test_nothing_is_waited_for_before_a_model_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO may still be loading: our own run goes on meanwhile."""

    class Waited(Exception):
        pass

    def waits(*_given: object, **_more: object) -> object:
        raise Waited

    model, inputs, _wanted = sample("for_loop")
    with monkeypatch.context() as patched:
        patched.setattr(Worker, "ask", waits)
        begun = OpenVINOPeer(model).begin(stepper.bind_inputs(model, inputs))
        with pytest.raises(Waited):
            OpenVINOPeer(model, Runtime("GPU.7"))
    ours = stepper.run(model, inputs, rules="openvino")
    for actual, (where, value) in zip(begun(), ours.items(), strict=True):
        assert_agrees(actual, value, where)


@pytest.mark.parametrize("changed", [
    lambda text: text,
    lambda text: text.replace('version="11">', 'version="10">', 1),
    lambda text: text.replace('<net name="for_loop"', "<!-- of hand --><net\n name='for &amp; loop'", 1),
])  # fmt: skip
def test_a_file_goes_over_as_it_is_or_says_the_same(tmp_path: Path, changed: Callable[[str], str]) -> None:
    model, inputs, _wanted = sample("for_loop")
    text = changed(model.path.read_text())
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes(model.path.with_suffix(".bin").read_bytes())
    copy = stepper.read_model(tmp_path / "model.xml")
    native = native_text.whole(copy)
    assert (native.text == text) == (text == model.path.read_text())
    assert 'version="11"' in native.text[:200]
    bound = stepper.bind_inputs(copy, inputs)
    for actual, wanted in zip(OpenVINOPeer(copy).run(bound), OpenVINOPeer(model).run(bound), strict=True):
        np.testing.assert_array_equal(actual, wanted)
