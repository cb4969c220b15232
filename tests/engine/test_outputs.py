"""What a whole run gives back beside its values: names, summaries of loops."""

from __future__ import annotations

import numpy as np

from stepper.engine.loops import EndReason
from tests.engine.conftest import Run
from tests.engine.nested_models import alternating
from tests.models import Graph, carried, joined, last


def test_an_output_is_named_by_its_tensor_else_by_its_result_and_never_twice(run: Run) -> None:
    net = Graph()
    named, plain = net.parameter("x", names="t,u"), net.parameter("y")
    for value, name in ((named, "r"), (named, "r"), (plain, "r"), (plain, "r"), (plain, "r"), (plain, "")):
        net.result(value, name)
    outputs = run(net, np.float32(1), np.float32(2))
    assert list(outputs) == ["t", "u", "r", "r#0", "r#1", "#0"]
    assert [float(value) for value in outputs.values()] == [1, 1, 2, 2, 2, 2]


def test_outputs_come_in_the_order_of_the_results(run: Run) -> None:
    net = Graph()
    x = net.parameter("x")
    for name in ("z", "a", "m"):
        net.result(net.apply("Abs", x), name)
    assert list(run(net, np.float32(1))) == ["z", "a", "m"]


def test_loops_are_summed_up_over_all_their_executions(run: Run) -> None:
    net = Graph()
    outer = net.body()
    number = outer.parameter("number", "i64")
    inner = outer.body()
    state, ended = inner.parameter("state", "i64"), inner.parameter("ended", "i64")
    following = inner.apply("Add", state, inner.constant(1, np.int64))
    below = inner.result(inner.apply("Less", following, inner.constant(3, np.int64), type="boolean"))
    result, ended_result = inner.result(following), inner.result(inner.apply("Abs", ended))
    inputs = [carried(outer.constant(0, np.int64), state, result), carried(number, ended, ended_result)]
    (count,) = outer.loop("inner", inner, number, True, inputs, [last(result)], below)
    (counts,) = net.loop("outer", outer, 6, True, [], [joined(outer.result(count))], iteration=number)
    net.result(counts)
    outputs = run(net)
    assert outputs["result"].tolist() == [0, 1, 2, 3, 3, 3]
    summary, whole = outputs.loops
    assert (summary.executions, summary.iterations, summary.fewest, summary.most) == (6, 12, 0, 3)
    assert dict(summary.ended) == {EndReason.NO_ITERATIONS: 1, EndReason.TRIP_COUNT: 3, EndReason.CONDITION: 2}
    assert (whole.executions, whole.iterations) == (1, 6)


def test_branches_are_no_loops(run: Run) -> None:
    assert [loop.path for loop in run(alternating(), np.int64(6)).loops] == ["model > Loop 'until_one'"]
