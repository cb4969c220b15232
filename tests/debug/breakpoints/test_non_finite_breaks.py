"""NaN and Inf are reported where they appear, with the inputs that were clean, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.debug.breakpoints.kinds import non_finite
from stepper.errors import LimitReached, UsageError
from tests.debug import loops_to_break as models
from tests.debug.oracle import after, debugger, forward, moments, stops_both_ways
from tests.models import Graph, carried, invariant, joined, last, sliced


def fractions() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x, y = np.ones((6, 2), np.float32), np.ones((6, 2), np.float32)
    x[2, 1] = y[2, 1] = 0
    y[4, 0] = 0
    return x, y


def test_nan_appears_and_the_clean_inputs_are_named(tmp_path: Path) -> None:
    x, y = fractions()
    run = debugger(models.division(), tmp_path, x, y)
    run.break_when("nan")
    assert stops_both_ways(run) == [after(moments(models.division(), tmp_path, x, y), "ratio")[2]]
    run.first()
    assert run.continue_().details == (
        "breakpoint 1: NaN appears in Divide 'ratio' in iteration 2 of TensorIterator 'divide': "
        "element [0,1], 1 of 2 elements",
        "breakpoint 1: 0 / 0 gives NaN",
        "breakpoint 1: all its inputs were clean: Add 'whole' (input 0), Parameter 'b' (input 1)",
    )


def test_inf_appears(tmp_path: Path) -> None:
    x, y = fractions()
    run = debugger(models.division(), tmp_path, x, y)
    run.break_when("inf")
    assert stops_both_ways(run) == [after(moments(models.division(), tmp_path, x, y), "ratio")[4]]


def test_operations_can_be_excepted(tmp_path: Path) -> None:
    x, y = fractions()
    run = debugger(models.division(), tmp_path, x, y)
    run.break_when("nan")
    run.breakpoints.expect("rat*")
    assert stops_both_ways(run) == []
    with pytest.raises(UsageError):
        run.breakpoints.expect("nothing_like_this")
    assert run.breakpoints.exceptions == ("rat*",)


def test_clean_values_do_not_stop(tmp_path: Path) -> None:
    x = np.ones((6, 2), np.float32)
    run = debugger(models.division(), tmp_path, x, x)
    run.break_when("nan")
    run.break_when("inf")
    assert stops_both_ways(run) == []


def test_of_values_that_stay_nan_only_the_operations_that_made_it_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN that is carried on is in all that follows: to ask each of it took 35 times as long as the run."""
    net = Graph()
    body = net.body()
    state, step = body.parameter("state", "f32", (2,)), body.parameter("step", "i64", ())
    value = body.apply("Log", body.apply("Add", state, body.constant(-1, np.float32), name="lower"), name="log")
    for number in range(20):
        value = body.apply("Multiply", value, body.constant(1, np.float32), name=f"times{number}")
    result = body.result(value, "next")
    start = net.parameter("start", "f32", (2,))
    entries = [carried(start, state, result)]
    net.result(net.loop("loop", body, 9, True, entries, [last(result)], iteration=step)[0], "out")
    run = debugger(net, tmp_path, np.full(2, 2, np.float32))
    asked: list[int] = []
    test = non_finite.holds_any
    monkeypatch.setattr(non_finite, "holds_any", lambda word, value: asked.append(1) or test(word, value))
    births = run.run_overview().births
    assert [(str(one.cause.kind), one.cause.location.iteration) for one in births] == [("nan", 1)]
    assert len(asked) < 1.2 * 2 * 8 * 22, "each value of the eight iterations with a NaN, for NaN and for Inf"


def test_nan_in_what_the_run_was_given(tmp_path: Path) -> None:
    x, y = np.ones((6, 2), np.float32), np.ones((6, 2), np.float32)
    x[3, 0] = np.nan
    run = debugger(models.division(), tmp_path, x, y)
    run.break_when("nan")
    assert stops_both_ways(run) == [after(moments(models.division(), tmp_path, x, y), "whole")[3]]
    run.first()
    assert "NaN was in Parameter 'a' (input 0) already, as the run was given it; clean:" in run.continue_().details[1]


@pytest.mark.parametrize("inside", [True, False])
def test_nan_of_a_constant_appears_where_it_is_read_first_and_an_inf_there_is_meant(
    tmp_path: Path, inside: bool
) -> None:
    """The table has NaN in row 2, which is read in iterations 1 and 2; the mask of Inf is added in each."""
    net = Graph()
    x, body = net.parameter("x", "i64", dims=(4,)), net.body()
    row, numbers, axis = body.parameter("row", "i64", (1,)), [1.0, 2.0, np.nan], body.constant(0, np.int64)
    table = body.constant(numbers) if inside else body.parameter("table", dims=(3,))
    taken = body.apply("Gather", table, row, axis, version="opset8", name="taken")
    masked = body.apply("Add", taken, body.constant([-np.inf]), name="masked")
    entries = [sliced(x, row)] if inside else [sliced(x, row), invariant(net.constant(numbers), table)]
    scans = net.tensor_iterator("loop", body, entries, [joined(body.result(one)) for one in (taken, masked)])
    for scan in scans:
        net.result(scan)
    run = debugger(net, tmp_path, np.array([0, 2, 2, 1]))
    run.break_when("nan")
    stop = run.continue_()
    assert (stop.iteration, stop.done.layer.name if stop.done else "") == (1, "taken")
    assert (
        "(input 0) already, as the file has it" in stop.details[1] if inside else "Parameter 'table'" in stop.details[1]
    )
    run = debugger(net, tmp_path, np.array([0, 1, 1, 1]))
    run.break_when("inf")
    run.break_when("nan")
    assert stops_both_ways(run) == []


def test_a_carried_nan_is_reported_where_it_appeared_only(tmp_path: Path) -> None:
    run = debugger(models.recurrence("Power", 2.0, trips=6, start=1e30), tmp_path)
    run.break_when("inf")
    assert [stop.iteration for stop in forward(run)] == [0]


def test_nan_in_a_given_initial_value(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x"), net.body()
    state = body.parameter("state")
    out = body.result(body.apply("Add", state, body.constant(1.0), name="more"))
    (final,) = net.loop("loop", body, 3, True, [carried(x, state, out)], [last(out)])
    net.result(net.apply("Abs", final, name="after"))
    run = debugger(net, tmp_path, np.float32(np.nan))
    run.break_when("nan")
    assert stops_both_ways(run) == after(moments(net, tmp_path, np.float32(np.nan)), "more")[:1]


def test_large_finite_sums_are_not_mistaken(tmp_path: Path) -> None:
    x = np.full((6, 2), 3e38, np.float32)
    run = debugger(models.division(), tmp_path, x, np.ones_like(x))
    run.break_when("inf")
    assert stops_both_ways(run) == []


def test_nan_is_found_before_the_run_fails_or_ends(tmp_path: Path) -> None:
    run = debugger(models.recurrence("Power", 2.0, start=1e30), tmp_path, max_iterations=1)
    run.break_when("inf")
    assert run.continue_().iteration == 0
    with pytest.raises(LimitReached):
        run.continue_()


def test_nan_and_a_failure_later_in_the_same_iteration(tmp_path: Path) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(3,)), net.body()
    item = body.parameter("item", dims=(1,))
    ratio = body.apply("Divide", item, item, name="ratio")
    index = body.apply("Convert", ratio, type="i64", destination_type="i64", name="index")
    table, axis = body.constant([1.0, 2.0]), body.constant(0, np.int64)
    taken = body.apply("Gather", table, index, axis, version="opset8", name="taken")
    (scan,) = net.tensor_iterator("loop", body, [sliced(x, item)], [joined(body.result(taken))])
    net.result(scan)
    run = debugger(net, tmp_path, np.array([2, 0, 2], np.float32))
    run.break_when("nan")
    stop = run.continue_()
    assert (stop.iteration, stop.done.layer.name if stop.done else "") == (1, "ratio")
