"""Back edges: all are read before any is written, and a carried value may change its shape but not its type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.errors import ExecutionError
from tests.engine.conftest import Run
from tests.models import Graph, Value, carried, invariant, joined, last, sliced

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])
SEEDS = pytest.mark.parametrize("seed", ["TensorIterator", "Loop"])


def looped(net: Graph, body: Graph, seed: str, count: int, inputs: list, outputs: list) -> Graph:  # type: ignore[type-arg]
    """The body as either operation, `count` times."""
    if seed == "Loop":
        values = net.loop("carrying", body, count, True, inputs, outputs)
    else:
        drive, unused = net.constant(np.zeros(count)), body.parameter("unused", dims=(1,))
        values = net.tensor_iterator("carrying", body, [sliced(drive, unused), *inputs], outputs)
    for index, value in enumerate(values):
        net.result(value, f"out{index}")
    return net


def swap(net: Graph, seed: str, *, directly: bool) -> Graph:
    """(a, b) -> (b, a), three times; outputs are all a, all b."""
    body = net.body()
    a, b = body.parameter("a", dims=(1,)), body.parameter("b", dims=(1,))
    ends = (a, b) if directly else (body.apply("Negative", body.apply("Negative", side)) for side in (a, b))
    a_result, b_result = (body.result(side) for side in ends)
    x, y = net.parameter("x", dims=(1,)), net.parameter("y", dims=(1,))
    inputs = [carried(x, a, b_result), carried(y, b, a_result)]
    return looped(net, body, seed, 3, inputs, [joined(a_result), joined(b_result), last(a_result)])


@BOTH
@SEEDS
@pytest.mark.parametrize("directly", [True, False])
def test_two_values_can_be_swapped(run: Run, rules: str, seed: str, directly: bool) -> None:
    outputs = run(swap(Graph(), seed, directly=directly), [1.0], [2.0], rules=rules)
    assert [value.tolist() for value in outputs.values()] == [[1, 2, 1], [2, 1, 2], [1]]
    # OpenVINO's plugin shares the memory of a Parameter that is a Result, and copies one edge after the other.
    assert bool([note for note in outputs.notes if "may copy what it overwrote" in note.text]) == directly


@BOTH
@SEEDS
def test_three_values_can_be_rotated(run: Run, rules: str, seed: str) -> None:
    net = Graph()
    body = net.body()
    inside = [body.parameter(name, dims=(1,)) for name in "abc"]
    results = [body.result(body.apply("Relu", value)) for value in inside]
    outside = [net.parameter(name, dims=(1,)) for name in "xyz"]
    inputs = [carried(outside[k], inside[k], results[(k + 1) % 3]) for k in range(3)]
    looped(net, body, seed, 5, inputs, [joined(result) for result in results])
    a, b, c = (value.tolist() for value in run(net, [1.0], [2.0], [3.0], rules=rules).values())
    assert (a, b, c) == ([1, 2, 3, 1, 2], [2, 3, 1, 2, 3], [3, 1, 2, 3, 1])


@BOTH
@SEEDS
def test_a_delay_line_hands_on_the_slice_of_the_iteration_before(run: Run, rules: str, seed: str) -> None:
    net = Graph()
    body = net.body()
    x, before = net.parameter("x", dims=(4,)), net.constant([50.0])
    now, delayed = body.parameter("now", dims=(1,)), body.parameter("delayed", dims=(1,))
    now_result, delayed_result = body.result(now), body.result(delayed)
    inputs = [sliced(x, now), carried(before, delayed, now_result)]
    looped(net, body, seed, 4, inputs, [joined(delayed_result)])
    outputs = run(net, np.array([1, 3, 5, 7], np.float32), rules=rules)
    assert outputs["out0"].tolist() == [50, 1, 3, 5]
    assert any("may copy what it overwrote" in note.text for note in outputs.notes)


@BOTH
@SEEDS
def test_fibonacci_reads_both_numbers_before_it_writes_either(run: Run, rules: str, seed: str) -> None:
    net = Graph()
    body = net.body()
    a, b = body.parameter("a", "i64", (1,)), body.parameter("b", "i64", (1,))
    b_result, sum_result = body.result(body.apply("Abs", b)), body.result(body.apply("Add", a, b))
    inputs = [carried(net.constant([0]), a, b_result), carried(net.constant([1]), b, sum_result)]
    looped(net, body, seed, 10, inputs, [joined(b_result)])
    assert run(net, rules=rules)["out0"].tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def growing(net: Graph, seed: str, *, given_out: bool) -> Graph:
    """A tensor that becomes one longer each iteration; also its length."""
    body = net.body()
    tensor = body.parameter("tensor", dims=(-1,))
    longer = body.apply("Concat", tensor, body.constant([7.0]), dims=(-1,), axis=0)
    result = body.result(longer)
    size = body.result(body.apply("ShapeOf", longer, type="i64", dims=(1,), version="opset3", output_type="i64"))
    outputs = [joined(size), *([last(result)] if given_out else [])]
    return looped(net, body, seed, 3, [carried(net.parameter("x", dims=(-1,)), tensor, result)], outputs)


@SEEDS
@pytest.mark.parametrize("given_out", [True, False])
def test_a_carried_tensor_may_grow(run: Run, seed: str, given_out: bool) -> None:
    outputs = run(growing(Graph(), seed, given_out=given_out), [1.0, 2.0])
    assert outputs["out0"].tolist() == [3, 4, 5]
    if given_out:
        assert outputs["out1"].tolist() == [1, 2, 7, 7, 7]


@BOTH
def test_a_carried_tensor_may_grow_from_nothing_and_shrink_to_nothing(run: Run, rules: str) -> None:
    grown = run(growing(Graph(), "Loop", given_out=True), np.zeros(0, np.float32), rules=rules)
    assert grown["out1"].tolist() == [7, 7, 7]
    net = Graph()
    body = net.body()
    tensor = body.parameter("tensor", dims=(-1,))
    bounds = [body.constant([value], np.int64) for value in (1, 2**31 - 1, 1)]
    shorter = body.result(body.apply("Slice", tensor, *bounds, dims=(-1,), version="opset8"))
    total = body.result(body.apply("ReduceSum", tensor, body.constant([0]), dims=(1,), keep_dims="true"))
    looped(
        net, body, "Loop", 3, [carried(net.parameter("x", dims=(-1,)), tensor, shorter)], [last(shorter), joined(total)]
    )
    outputs = run(net, np.array([1, 10, 100], np.float32), rules=rules)
    assert outputs["out0"].shape == (0,) and outputs["out1"].tolist() == [111, 110, 100]


def third(net: Graph, initial: Value, type: str) -> Graph:
    """state = state / 3 in another type than it began with."""
    body = net.body()
    state = body.parameter("state", initial.type, initial.dims)
    converted = body.apply("Convert", state, type=type, destination_type=type)
    result = body.result(body.apply("Divide", converted, body.constant(3, np.dtype({"f64": "f8", "i64": "i8"}[type]))))
    for value in net.loop("carrying", body, 2, True, [carried(initial, state, result)], [last(result), joined(result)]):
        net.result(value)
    return net


def test_a_carried_value_of_another_type_is_cast_to_the_type_it_began_with(run: Run) -> None:
    net = Graph()
    final, both = run(third(net, net.parameter("x", "f32"), "f64"), np.float32(1)).values()
    first = np.float64(1) / 3
    assert final == np.float64(np.float32(first)) / 3 and final != first / 3
    assert both.tolist() == [first, final] and both.dtype == np.float64


def test_a_carried_integer_wraps_when_it_is_cast(run: Run) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i32")
    wide = body.apply("Convert", state, type="i64", destination_type="i64")
    result = body.result(body.apply("Add", wide, body.constant(2**31 - 1, np.int64)))
    net.result(net.loop("l", body, 2, True, [carried(net.constant(1, np.int32), state, result)], [joined(result)])[0])
    assert run(net)["result"].tolist() == [2**31, 2**31 - 1 - 2**31]


def test_a_fraction_is_not_cast_to_an_integer_behind_the_users_back(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i32")
    result = body.result(body.apply("Convert", state, type="f32", destination_type="f32"))
    net.result(net.loop("l", body, 2, True, [carried(net.constant(1, np.int32), state, result)], [last(result)])[0])
    message = r"^model > Loop 'l' #0: the back edge to '.*' \(the input on line \d+\) carries f32 into .* began as i32"
    with pytest.raises(ExecutionError, match=message):
        stepper.run(net.read(tmp_path), {})


@BOTH
@SEEDS
def test_invariant_values_stay_while_carried_ones_change(run: Run, rules: str, seed: str) -> None:
    net = Graph()
    body = net.body()
    state, step = body.parameter("state", dims=(1,)), body.parameter("step", dims=(1,))
    result = body.result(body.apply("Add", state, step))
    x = net.parameter("x", dims=(1,))
    looped(net, body, seed, 4, [carried(x, state, result), invariant(x, step)], [joined(result)])
    assert run(net, [3.0], rules=rules)["out0"].tolist() == [6, 9, 12, 15]
