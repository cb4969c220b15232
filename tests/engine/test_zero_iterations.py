"""Loops that run no iteration: what their outputs are, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.engine.loops import EndReason
from stepper.errors import ExecutionError
from tests.engine.conftest import Run
from tests.models import Graph, Value, carried, invariant, joined, last, sliced

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])
START = np.array([[5]], np.float32)


def all_kinds(trip_count: int | Value, condition: bool | Value, net: Graph) -> Graph:
    """A carried value, one that nothing carries, one of unknown size, one that passes through; and concatenations."""
    body = net.body()
    x = net.parameter("x", dims=(1, 1))
    state, through = body.parameter("state", dims=(1, 1)), body.parameter("through", dims=(1, 1))
    state_result = body.result(body.apply("Negative", state))
    fresh = body.result(body.apply("Abs", state, name="fresh"))
    open_sized = body.result(body.apply("Relu", state, dims=(-1, 1)))
    scalar = body.result(body.apply("ReduceSum", state, body.constant([0, 1], np.int64), dims=(), keep_dims="false"))
    inputs = [carried(x, state, state_result), invariant(x, through)]
    outputs = [last(state_result), last(fresh), last(open_sized), last(body.result(through))]
    outputs += [joined(state_result), joined(fresh, 1), joined(open_sized, 1), joined(scalar)]
    for index, value in enumerate(net.loop("never", body, trip_count, condition, inputs, outputs)):
        net.result(value, f"out{index}")
    return net


@BOTH
@pytest.mark.parametrize(
    ("trip_count", "condition", "reason"),
    [
        (0, True, EndReason.NO_ITERATIONS),
        (5, False, EndReason.INITIAL_CONDITION),
        (-1, False, EndReason.INITIAL_CONDITION),
        (0, False, EndReason.NO_ITERATIONS),
    ],
)
def test_after_no_iteration_every_kind_of_output_is_what_the_rules_say(
    run: Run, rules: str, trip_count: int, condition: bool, reason: EndReason
) -> None:
    net = Graph()
    all_kinds(net.parameter("n", "i64"), net.parameter("go", "boolean"), net)
    outputs = run(net, np.int64(trip_count), np.bool_(condition), START, rules=rules)
    carried_out, fresh, open_sized, through, *concatenated = outputs.values()
    np.testing.assert_array_equal(carried_out, START)
    np.testing.assert_array_equal(fresh, np.zeros((1, 1), np.float32))
    np.testing.assert_array_equal(open_sized, np.zeros((0, 1), np.float32))
    np.testing.assert_array_equal(through, START)
    assert [value.shape for value in concatenated] == [(0, 1), (1, 0), (0, 0), (0,)]
    assert {value.dtype for value in outputs.values()} == {np.dtype(np.float32)}
    assert dict(outputs.loops[0].ended) == {reason: 1} and outputs.loops[0].iterations == 0


@BOTH
def test_undefined_last_values_are_noted_and_defined_ones_are_not(run: Run, rules: str) -> None:
    net = Graph()
    all_kinds(net.parameter("n", "i64"), True, net)
    notes = run(net, np.int64(0), START, rules=rules).notes
    assert [str(note) for note in notes] == [
        f"model > Loop 'never': output {index} is undefined, for no iteration ran and no back edge gives it a value: "
        "zeros are used"
        for index in (1, 2)
    ]
    assert not run(net, np.int64(1), START, rules=rules).notes


@BOTH
def test_a_result_that_feeds_several_parameters_begins_as_the_lowest_input(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    left, right = body.parameter("left"), body.parameter("right")
    result = body.result(body.apply("Add", left, right))
    low, high = net.parameter("low"), net.parameter("high")
    count = net.parameter("n", "i64")
    inputs = [carried(low, left, result), carried(high, right, result)]
    net.result(net.loop("l", body, count, True, inputs, [last(result)])[0])
    assert run(net, np.float32(3), np.float32(9), np.int64(0), rules=rules)["result"] == 3
    assert run(net, np.float32(3), np.float32(9), np.int64(2), rules=rules)["result"] == 24


@BOTH
def test_sliced_inputs_are_not_touched_when_no_iteration_runs(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x, piece = net.parameter("x", dims=(-1,)), body.parameter("piece", dims=(1,))
    result = body.result(body.apply("Negative", piece))
    net.result(net.loop("l", body, net.parameter("n", "i64"), True, [sliced(x, piece)], [joined(result)])[0])
    assert run(net, np.zeros(0, np.float32), np.int64(0), rules=rules)["result"].shape == (0,)


def tensor_iterator_over_rows() -> Graph:
    net = Graph()
    body = net.body()
    x, row, total = (
        net.parameter("x", dims=(-1, 1)),
        body.parameter("row", dims=(1, 1)),
        body.parameter("t", dims=(1, 1)),
    )
    result = body.result(body.apply("Add", row, total))
    inputs = [sliced(x, row), carried(net.constant(START), total, result)]
    for index, value in enumerate(net.tensor_iterator("rows", body, inputs, [last(result), joined(result, 1)])):
        net.result(value, f"out{index}")
    return net


def test_a_tensor_iterator_over_an_empty_axis_runs_no_iteration_by_the_specification(run: Run) -> None:
    outputs = run(tensor_iterator_over_rows(), np.zeros((0, 1), np.float32))
    np.testing.assert_array_equal(outputs["out0"], START)
    assert outputs["out1"].shape == (1, 0)
    assert dict(outputs.loops[0].ended) == {EndReason.SLICES: 1}


def test_a_tensor_iterator_over_an_empty_axis_is_refused_as_openvino_does(run: Run) -> None:
    with pytest.raises(ExecutionError, match=r"TensorIterator 'rows': input 0 \(line \d+\), shape \[0,1\]: "):
        run(tensor_iterator_over_rows(), np.zeros((0, 1), np.float32), rules="openvino")


@BOTH
def test_zero_elements_beside_the_sliced_axis_do_not_hinder(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x, row = net.parameter("x", dims=(3, 0)), body.parameter("row", dims=(1, 0))
    net.result(net.tensor_iterator("rows", body, [sliced(x, row)], [joined(body.result(body.apply("Abs", row)))])[0])
    outputs = run(net, np.zeros((3, 0), np.float32), rules=rules)
    assert outputs["result"].shape == (3, 0) and outputs.loops[0].iterations == 3
