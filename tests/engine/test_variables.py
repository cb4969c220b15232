"""ReadValue and Assign: what one inference leaves for the next."""

from __future__ import annotations

from pathlib import Path

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
