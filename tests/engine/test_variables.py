"""ReadValue and Assign: what one inference leaves for the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from tests.models import Graph, carried, last

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])


def accumulator() -> Graph:
    """total += x, where total lives on; the output is the total before."""
    net = Graph()
    x = net.parameter("x")
    before = net.apply("ReadValue", net.constant(100.0), version="opset3", variable_id="total")
    net.result(before, "before")
    net.apply("Assign", net.apply("Add", before, x), version="opset3", variable_id="total")
    return net


@BOTH
def test_a_variable_lives_from_one_inference_to_the_next(tmp_path: Path, rules: str) -> None:
    model = accumulator().read(tmp_path)
    first = stepper.run(model, {"x": np.float32(5)}, rules=rules)
    assert first["before"] == 100 and first.states["total"] == 105
    second = stepper.run(model, {"x": np.float32(2)}, rules=rules, states=first.states)
    assert second["before"] == 105 and second.states["total"] == 107
    assert first.states["total"] == 105
    again = stepper.run(model, {"x": np.float32(1)}, rules=rules)
    assert again["before"] == 100


@BOTH
def test_a_variable_is_read_before_it_is_assigned_whatever_the_order_of_the_file(tmp_path: Path, rules: str) -> None:
    net = Graph()
    x = net.parameter("x")
    net.apply("Assign", x, version="opset3", variable_id="v")
    net.result(net.apply("ReadValue", net.constant(7.0), version="opset3", variable_id="v"))
    outputs = stepper.run(net.read(tmp_path), {"x": np.float32(1)}, rules=rules)
    assert outputs["result"] == 7 and outputs.states["v"] == 1


@BOTH
def test_a_variable_in_a_loops_body_counts_iterations(tmp_path: Path, rules: str) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    kept = body.apply("ReadValue", body.constant([0.0]), version="opset3", variable_id="count")
    following = body.apply("Add", kept, body.constant([1.0]))
    result = body.result(body.apply("Add", state, following))
    body.apply("Assign", following, version="opset3", variable_id="count")
    net.result(net.loop("l", body, 4, True, [carried(net.constant([0.0]), state, result)], [last(result)])[0])
    model = net.read(tmp_path)
    outputs = stepper.run(model, {}, rules=rules)
    assert outputs["result"].tolist() == [1 + 2 + 3 + 4] and outputs.states["count"].tolist() == [4]
    assert stepper.run(model, {}, rules=rules, states=outputs.states)["result"].tolist() == [5 + 6 + 7 + 8]


def test_the_variables_given_are_not_changed(tmp_path: Path) -> None:
    model = accumulator().read(tmp_path)
    given = {"total": np.array(1, np.float32)}
    stepper.run(model, {"x": np.float32(5)}, states=given)
    assert given == {"total": 1}


@BOTH
def test_states_are_in_the_types_of_the_model_and_go_from_run_to_run(tmp_path: Path, rules: str) -> None:
    net = Graph()
    x = net.parameter("x", "i64", (2,))
    kept = net.apply("ReadValue", net.constant([2, 3]), version="opset3", variable_id="v")
    net.apply("Assign", net.apply("Add", kept, x), version="opset3", variable_id="v")
    net.result(kept)
    model, inputs = net.read(tmp_path), {"x": [1, 1]}
    states: dict[str, Any] = {}
    for run in range(4):
        outputs = stepper.run(model, inputs, rules=rules, states=states)
        assert outputs["result"].tolist() == [2 + run, 3 + run]
        states = outputs.states
        assert states["v"].dtype == np.int64 and not states["v"].flags.writeable
    debugger = stepper.Debugger(model, inputs, rules, states=states)
    assert debugger.last().reason == "end of the run" and debugger.machine.states["v"].tolist() == [7, 8]


def test_states_given_are_not_changed_by_what_the_caller_does_later(tmp_path: Path) -> None:
    given = {"total": np.array(1, np.float32)}
    debugger = stepper.Debugger(accumulator().read(tmp_path), {"x": np.float32(5)}, states=given)
    given["total"][...] = 50
    debugger.last()
    assert debugger.machine.states["total"] == 6


@pytest.mark.parametrize(
    ("states", "kind", "text"),
    [
        ({"totl": 1}, stepper.UsageError, "the model has no variable 'totl'; its variables are total: f32[]"),
        ({"total": [1, 2]}, stepper.InputError, "given the shape [2], expected f32[]"),
        (
            {"total": 1e-60},
            stepper.InputError,
            "variable 'total' is f64, expected f32: converting it",
        ),
        ({"total": [[1], [2, 3]]}, stepper.InputError, "variable 'total' is given no tensor"),
    ],
)
def test_states_that_do_not_fit_are_one_message(
    tmp_path: Path, states: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        stepper.run(accumulator().read(tmp_path), {"x": np.float32(5)}, states=states)
    assert text in str(caught.value)
