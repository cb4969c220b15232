"""The seam between the engine and a partner that computes single operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.inspection.text import stop_lines
from stepper.engine.compiler import compile_model
from stepper.engine.machine import Machine
from stepper.engine.program import computed_elsewhere
from stepper.engine.rules import Rules
from stepper.errors import SessionError, UnsupportedOperation
from stepper.recording import record, resume
from tests.models import Graph, carried, last
from tests.openvino.partners import TRIPLES, Tripling, expected, read

X = {"x": np.float32(2)}


@pytest.mark.parametrize("rules", ["spec", "openvino"])
@pytest.mark.parametrize("version", ["extension", "opset99"])
def test_a_body_with_an_operation_of_a_partner_runs(tmp_path: Path, version: str, rules: str) -> None:
    outputs = stepper.run(read(tmp_path, version), X, rules=rules, partner=Tripling())
    np.testing.assert_allclose(outputs["pieces"], expected(2))
    assert outputs.computed_by == {TRIPLES: {"Triple": 1}}


def test_without_a_partner_the_run_stops_there_and_names_it(tmp_path: Path) -> None:
    model = read(tmp_path)
    with pytest.raises(UnsupportedOperation, match=r"Loop 'powers' #0 > Triple 'tripled': there is no kernel"):
        list(Machine(compile_model(model), stepper.bind_inputs(model, X)).run())


def test_a_type_of_a_known_operation_set_that_does_not_exist_is_still_refused(tmp_path: Path) -> None:
    with pytest.raises(stepper.StepperError, match="no operation set has an operation of type 'Triple'"):
        read(tmp_path, "opset8")


def test_an_operation_with_a_kernel_may_be_given_away(tmp_path: Path) -> None:
    partner = Tripling("Subtract")
    outputs = stepper.run(read(tmp_path), X, partner=partner)
    assert outputs["final"] == 2 * 9**5
    assert set(partner.calls) == {"tripled", "less"}
    assert outputs.computed_by == {TRIPLES: {"Triple": 1, "Subtract": 1}}


def test_a_compiled_model_says_who_computes_what(tmp_path: Path) -> None:
    compiled = compile_model(read(tmp_path), partner=Tripling())
    by = {op.layer.name: op.computed_by for program in compiled.programs for op in program.operations}
    assert by == {"powers": "", "tripled": TRIPLES, "less": ""}
    assert compiled.engine == "--engine tripling"
    assert computed_elsewhere(compile_model(absolute_value().read(tmp_path), partner=Tripling())) == {}


def absolute_value() -> Graph:
    net = Graph()
    net.result(net.apply("Abs", net.parameter("x")))
    return net


def test_a_variable_is_never_given_away(tmp_path: Path) -> None:
    net = Graph()
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": ""}
    read_value = net.apply("ReadValue", net.parameter("x"), version="opset6", **attributes)
    net.apply("Assign", net.apply("Negative", read_value), version="opset6", variable_id="v")
    net.result(read_value)
    outputs = stepper.run(net.read(tmp_path), X, partner=Tripling("ReadValue", "Assign"))
    assert outputs["result"] == 2
    assert outputs.states == {"v": np.float32(-2)}


def test_constants_are_computed_once_by_the_partner_too(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    six = body.apply("Triple", body.constant(2.0), version="extension", name="six")
    result = body.result(body.apply("Add", state, six))
    net.result(net.loop("loop", body, 4, True, [carried(net.parameter("x"), state, result)], [last(result)])[0])
    partner = Tripling()
    outputs = stepper.run(net.read(tmp_path), X, partner=partner)
    assert outputs["result"] == 26
    assert partner.calls == ["six"]
    assert outputs.computed_by == {TRIPLES: {"Triple": 1}}


def test_a_debugged_run_marks_it_and_goes_back_over_it(tmp_path: Path) -> None:
    debugger = stepper.Debugger(read(tmp_path), X, partner=Tripling())
    debugger.break_at("tripled", hit=3, exactly=True)
    stop = debugger.continue_()
    assert stop.iteration == 2
    view = debugger.view()
    assert view.done is not None
    assert view.done.computed_by == TRIPLES
    assert f"done: Triple 'tripled'  (so: computed by {TRIPLES})" in stop_lines(view)
    there = view.done.outputs[0].array
    debugger.last()
    debugger.goto_tick(stop.tick)
    again = debugger.view().done
    assert again is not None
    np.testing.assert_array_equal(again.outputs[0].array, there)
    debugger.reverse_step(3)
    assert debugger.stop.iteration == 1


def test_a_recorded_run_goes_on_with_the_same_partner_alone(tmp_path: Path) -> None:
    model, path = read(tmp_path), tmp_path / "run.sqlite"
    compiled = compile_model(model, Rules.SPEC, Tripling())
    inputs = stepper.bind_inputs(model, X)
    with record(Machine(compiled, inputs), inputs, path) as recorder:
        recorder.machine.advance(until=6)
    for partner in (None, Tripling(description="--engine another")):
        with pytest.raises(
            SessionError, match=r"was recorded with --engine tripling; .* would give other values: continue with"
        ):
            resume(path, partner=partner)
    recorder, _log = resume(path, partner=Tripling())
    with recorder:
        assert recorder.run()
    assert recorder.machine.outputs is not None
    np.testing.assert_allclose(recorder.machine.outputs[1], expected(2))
