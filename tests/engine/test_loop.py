"""Loop as a whole: the combinations of trip count and condition, the iteration number, slices, scan outputs."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.engine.loops import EndReason
from stepper.errors import ExecutionError, LimitReached
from tests.engine.conftest import Run
from tests.models import Graph, Value, backwards, carried, invariant, joined, last, sliced

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])


def doubling(trip_count: int | Value, condition: bool | Value, limit: float | None, net: Graph | None = None) -> Graph:
    """state *= 2 while it is below the limit (None: for ever); outputs: the last state, all states."""
    net = net or Graph()
    body = net.body()
    x, state = net.parameter("x"), body.parameter("state")
    doubled = body.apply("Multiply", state, body.constant(2.0), name="doubled")
    result = body.result(doubled)
    keep_going = None
    if limit is not None:
        keep_going = body.result(body.apply("Less", doubled, body.constant(limit), type="boolean"))
    outputs = net.loop(
        "doubling", body, trip_count, condition, [carried(x, state, result)], [last(result), joined(result)], keep_going
    )
    for index, value in enumerate(outputs):
        net.result(value, f"out{index}")
    return net


@BOTH
@pytest.mark.parametrize(
    ("trip_count", "condition", "limit", "states", "reason"),
    [
        (4, True, None, [2, 4, 8, 16], EndReason.TRIP_COUNT),
        (-1, True, 30.0, [2, 4, 8, 16, 32], EndReason.CONDITION),
        (-1, True, 1.0, [2], EndReason.CONDITION),
        (10, True, 8.0, [2, 4, 8], EndReason.CONDITION),
        (2, True, 1000.0, [2, 4], EndReason.TRIP_COUNT),
        (3, True, 8.0, [2, 4, 8], EndReason.TRIP_COUNT),
        (1, True, None, [2], EndReason.TRIP_COUNT),
    ],
    ids=["for", "while", "do while", "for, ended early", "for, not ended early", "both at once", "once"],
)
def test_trip_count_and_condition_end_a_loop_whichever_comes_first(
    run: Run, rules: str, trip_count: int, condition: bool, limit: float | None, states: list[int], reason: EndReason
) -> None:
    outputs = run(doubling(trip_count, condition, limit), np.float32(1), rules=rules)
    assert outputs["out0"].tolist() == states[-1]
    assert outputs["out1"].tolist() == states
    (loop,) = outputs.loops
    assert (loop.iterations, dict(loop.ended)) == (len(states), {reason: 1})


@BOTH
def test_an_endless_loop_is_ended_by_the_limit_on_iterations(run: Run, rules: str) -> None:
    with pytest.raises(LimitReached, match=r"^model > Loop 'doubling' #99: the loop needs more than 100 iterations"):
        run(doubling(-1, True, None), np.float32(0), rules=rules, max_iterations=100)


def test_the_limit_on_iterations_lets_exactly_so_many_pass(run: Run) -> None:
    assert run(doubling(4, True, None), np.float32(1), max_iterations=4)["out0"] == 16
    with pytest.raises(LimitReached):
        run(doubling(5, True, None), np.float32(1), max_iterations=4)


@BOTH
@pytest.mark.parametrize("type", ["i32", "i64"])
@pytest.mark.parametrize("dims", [(), (1,)])
def test_trip_count_and_condition_may_come_at_run_time(run: Run, rules: str, type: str, dims: tuple[int, ...]) -> None:
    net = Graph()
    trip_count, go = net.parameter("n", type, dims), net.parameter("go", "boolean", dims)
    doubling(trip_count, go, None, net)
    dtype = np.int32 if type == "i32" else np.int64
    outputs = run(net, np.full(dims, 3, dtype), np.full(dims, True), np.float32(1), rules=rules)
    assert outputs["out1"].tolist() == [2, 4, 8]


@BOTH
def test_the_trip_count_may_be_led_into_the_body_too(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    count, total = net.parameter("n", "i64"), net.constant(0, np.int64)
    inside, state = body.parameter("n", "i64"), body.parameter("state", "i64")
    result = body.result(body.apply("Add", state, inside))
    (out,) = net.loop(
        "square", body, count, True, [invariant(count, inside), carried(total, state, result)], [last(result)]
    )
    net.result(out)
    assert run(net, np.int64(7), rules=rules)["result"] == 49


@BOTH
@pytest.mark.parametrize("type", ["i32", "i64"])
@pytest.mark.parametrize("dims", [(), (1,)])
def test_the_iteration_number_counts_from_0_in_the_type_and_shape_of_its_parameter(
    run: Run, rules: str, type: str, dims: tuple[int, ...]
) -> None:
    net = Graph()
    body = net.body()
    number = body.parameter("number", type, dims)
    squared = body.result(body.apply("Multiply", number, number))
    all_squares, final = net.loop("squares", body, 5, True, [], [joined(squared), last(squared)], iteration=number)
    net.result(all_squares, "all")
    net.result(final, "final")
    outputs = run(net, rules=rules)
    dtype = np.int32 if type == "i32" else np.int64
    assert outputs["all"].tolist() == [0, 1, 4, 9, 16] and outputs["all"].dtype == dtype
    assert outputs["final"].shape == dims and outputs["final"].dtype == dtype


def test_an_iteration_number_of_another_type_is_refused_with_its_line(run: Run) -> None:
    net = Graph()
    body = net.body()
    number = body.parameter("number", "f32")
    result = body.result(number)
    net.result(net.loop("l", body, 5, True, [], [last(result)], iteration=number)[0])
    with pytest.raises(Exception, match=r"model.xml:\d+: .*the current iteration goes into .*must be i64 or i32"):
        run(net)


@BOTH
def test_the_condition_may_itself_be_carried_and_given_out(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    count = body.parameter("count", "i64")
    before = body.parameter("before", "boolean")
    following = body.apply("Add", count, body.constant(1, np.int64))
    below = body.apply("Less", following, body.constant(3, np.int64), type="boolean")
    count_result, below_result = body.result(following), body.result(below)
    before_result = body.result(before)
    inputs = [
        carried(net.constant(0, np.int64), count, count_result),
        carried(net.constant(True, np.bool_), before, below_result),
    ]
    outputs = [last(below_result), joined(below_result), joined(before_result)]
    for index, value in enumerate(net.loop("l", body, -1, True, inputs, outputs, below_result)):
        net.result(value, f"out{index}")
    values = [value.tolist() for value in run(net, rules=rules).values()]
    assert values == [False, [True, True, False], [True, True, True]]


def sliced_loop(trip_count: int, limit: float, **cut: int) -> Graph:
    """Adds up slices of x while the sum is below the limit."""
    net = Graph()
    body = net.body()
    x, piece, total = (
        net.parameter("x", dims=(-1,)),
        body.parameter("piece", dims=(1,)),
        body.parameter("total", dims=(1,)),
    )
    added = body.apply("Add", total, piece)
    result = body.result(added)
    keep_going = body.result(body.apply("Less", added, body.constant([limit]), type="boolean"))
    inputs = [sliced(x, piece, **cut), carried(net.constant([0.0]), total, result)]
    net.result(net.loop("sums", body, trip_count, True, inputs, [joined(result)], keep_going)[0])
    return net


@BOTH
def test_a_loop_need_not_use_every_slice(run: Run, rules: str) -> None:
    x = np.array([1, 2, 3, 4, 5], np.float32)
    assert run(sliced_loop(3, 1e9), x, rules=rules)["result"].tolist() == [1, 3, 6]
    assert run(sliced_loop(3, 1e9, **backwards()), x, rules=rules)["result"].tolist() == [5, 9, 12]
    assert run(sliced_loop(-1, 6), x, rules=rules)["result"].tolist() == [1, 3, 6]


@BOTH
@pytest.mark.parametrize("trip_count", [6, -1])
def test_fewer_slices_than_iterations_are_refused_with_input_slices_and_iteration(
    run: Run, rules: str, trip_count: int
) -> None:
    message = (
        r"^model > Loop 'sums' #4: iteration 5 has no slice: input 2 \(line \d+\) gives 5 slices to Parameter '\w+'$"
    )
    with pytest.raises(ExecutionError, match=message):
        run(sliced_loop(trip_count, 1e9), np.ones(5, np.float32), rules=rules)


@BOTH
def test_scan_outputs_may_be_joined_along_any_axis_and_backwards(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    number, base = body.parameter("number", "i64", (1,)), body.parameter("base", "i64", (1, 2, 1))
    result = body.result(body.apply("Add", base, number, dims=(1, 2, 1)))
    inputs = [invariant(net.constant([[[10], [20]]], np.int64), base)]
    outputs = [joined(result), joined(result, 2), joined(result, 0, **backwards())]
    for index, value in enumerate(net.loop("l", body, 3, True, inputs, outputs, iteration=number)):
        net.result(value, f"out{index}")
    out0, out1, out2 = run(net, rules=rules).values()
    assert out0.tolist() == [[[10], [20]], [[11], [21]], [[12], [22]]]
    assert out1.tolist() == [[[10, 11, 12], [20, 21, 22]]]
    assert out2.tolist() == out0.tolist()[::-1]


@BOTH
def test_a_parameter_that_nothing_feeds_is_zeros_and_noted(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    body.parameter("number", "i64")
    orphan = body.parameter("orphan", "f32", (2,))
    other = body.parameter("other", "f32", (2,))
    result = body.result(body.apply("Add", orphan, other))
    net.result(net.loop("l", body, 2, True, [invariant(net.constant([1.0, 2.0]), other)], [last(result)])[0])
    outputs = run(net, rules=rules)
    assert outputs["result"].tolist() == [1, 2]
    assert [note.text for note in outputs.notes if "'orphan'" in note.text] == [
        "nothing feeds the body's layer 1 'orphan' (Parameter): zeros are used, where OpenVINO leaves junk"
    ]
