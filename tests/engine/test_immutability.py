"""Nobody writes into a tensor that another may hold: neither kernels, nor the machine, nor the caller by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.engine.compiler import compile_model
from stepper.engine.frames import EventKind, Every
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.ir.model import Model
from tests.engine.subjects import SUBJECTS, Subject, outputs_of, told
from tests.engine.test_variables import accumulator
from tests.engine.twins import deep
from tests.models import Graph, carried, invariant, joined, last
from tests.tables import each_row

SAMPLES = Path(__file__).parents[2] / "sample_models"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))
ALL = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)


def check_that_values_stay(compiled: CompiledModel, inputs: list[Any]) -> int:
    """Run to the end with a copy of every value as it was when it came into being; how many there were."""
    machine = Machine(compiled, inputs)
    seen: list[tuple[Any, Any]] = [(value, deep(value)) for value in inputs]
    for program in compiled.programs:
        seen += [(value, deep(value)) for value in program.template if value is not None]
    for event in machine.run(Every.OPERATION):
        frame = event.frame
        slots: tuple[int, ...] = frame.program.parameters
        if event.kind is EventKind.OPERATION:
            slots = frame.program.operations[frame.pc - 1].outputs
        elif event.kind not in (EventKind.ENTERED, EventKind.BEGUN):
            continue
        seen += [(value, deep(value)) for value in (frame.values[slot] for slot in slots) if value is not None]
    for value, copy in seen:
        np.testing.assert_array_equal(value, copy)
    return len(seen)


@each_row("rules", list(Rules))
@each_row("name", NAMES)
def test_no_operation_of_a_sample_model_changes_a_value_that_is_there_already(name: str, rules: Rules) -> None:
    model = stepper.read_model(SAMPLES / name / "model.xml")
    with np.load(SAMPLES / name / "inputs.npz") as arrays:
        inputs = bind_inputs(model, dict(arrays))
    assert check_that_values_stay(compile_model(model, rules), inputs) > 20


@ALL
def test_no_operation_changes_a_value_that_is_there_already(tmp_path: Path, subject: Subject) -> None:
    compiled = subject.compiled(tmp_path)
    check_that_values_stay(compiled, bind_inputs(compiled.model, dict(enumerate(subject.inputs))))


def passing_through() -> Graph:
    """Outputs that are an input, a constant, a part of an input, an invariant value of a loop, and one value twice."""
    net = Graph()
    x, constant = net.parameter("x", dims=(2,)), net.constant([5.0, 6.0])
    net.result(x, "input")
    net.result(constant, "constant")
    net.result(net.apply("Reshape", x, net.constant([2, 1]), dims=(2, 1), special_zero="false"), "view")
    body = net.body()
    inside, state = body.parameter("inside", dims=(2,)), body.parameter("state", dims=(2,))
    folded = body.result(body.apply("Negative", body.constant([1.0, 2.0])))
    following = body.result(body.apply("Add", state, inside))
    outputs = [last(body.result(inside)), last(folded), last(following), last(following), joined(following, stride=2)]
    inputs = [invariant(x, inside), carried(constant, state, following)]
    for index, value in enumerate(net.loop("l", body, 2, True, inputs, outputs)):
        net.result(value, f"loop{index}")
    return net


EXPECTED = {
    "input": [1, 2],
    "constant": [5, 6],
    "view": [[1], [2]],
    "loop0": [1, 2],
    "loop1": [-1, -2],
    "loop2": [7, 10],
    "loop3": [7, 10],
    "loop4": [6, 8, 7, 10],
}


@each_row("rules", ["spec", "openvino"])
def test_the_caller_may_write_into_every_output_of_a_run(tmp_path: Path, rules: str) -> None:
    model, x = passing_through().read(tmp_path), np.array([1, 2], np.float32)
    outputs = stepper.run(model, {"x": x}, rules=rules)
    assert {name: value.tolist() for name, value in outputs.items()} == EXPECTED
    for name in EXPECTED:
        outputs[name][...] = -99
        others = {other: value.tolist() for other, value in outputs.items() if not (value == -99).all()}
        assert others == {other: EXPECTED[other] for other in list(EXPECTED)[list(EXPECTED).index(name) + 1 :]}
    assert x.tolist() == [1, 2]
    again = stepper.run(model, {"x": x}, rules=rules)
    assert {name: value.tolist() for name, value in again.items()} == EXPECTED


def test_writing_into_an_output_does_not_change_a_variable(tmp_path: Path) -> None:
    net = Graph()
    assigned = net.apply("Assign", net.apply("Abs", net.parameter("x", dims=(1,))), version="opset3", variable_id="v")
    net.result(assigned)
    outputs = stepper.run(net.read(tmp_path), {"x": [3.0]})
    outputs["result"][0] = -1
    assert outputs.states["v"].tolist() == [3]


def test_a_machines_outputs_are_read_only_for_they_may_be_in_its_snapshots(tmp_path: Path) -> None:
    subject = Subject(passing_through, (np.array([1, 2], np.float32),))
    machine = subject.machine(subject.compiled(tmp_path))
    told(machine, Every.END)
    assert machine.outputs is not None
    for output in machine.outputs:
        with pytest.raises(ValueError, match="read-only"):
            output[...] = 0
    assert [value for _type, value in outputs_of(machine)] == list(EXPECTED.values())


def test_an_input_is_neither_written_to_nor_made_read_only_for_the_caller(tmp_path: Path) -> None:
    model: Model = accumulator().read(tmp_path)
    x = np.array(5, np.float32)
    stepper.run(model, {"x": x})
    assert x == 5 and x.flags.writeable
