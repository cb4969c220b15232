"""Data breakpoints: each kind stops where plain numpy on the recorded values says so, and nowhere else."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.moments import Reason
from stepper.errors import UsageError
from tests.debug import loops_to_break as models
from tests.debug.oracle import after, debugger, forward, moments, stops_both_ways, ticks

SAMPLES = Path(__file__).parents[2] / "sample_models"
X = np.array([1, 0, 0, 4, -9, 6, 6, 0], np.float32)


def closed(found: Any, *iterations: int) -> list[int]:
    return ticks(found, lambda moment: moment.kind == "ITERATION" and moment.iterations[-1] in iterations)


def sample(name: str) -> Debugger:
    folder = SAMPLES / name
    with np.load(folder / "inputs.npz") as inputs:
        return Debugger(stepper.read_model(folder / "model.xml"), dict(inputs))


# --- values that change ---------------------------------------------------------------------------------------------


def test_a_value_changes(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("changes sum")
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    assert stops_both_ways(run) == [sums[index] for index in (3, 4, 5, 6)]
    run.first()
    assert run.continue_().details == (
        "breakpoint 1: sum changed in iteration 3 of Loop 'walk' from f32[1] [1.] to f32[1] [5.]",
    )


def test_an_element_changes(tmp_path: Path) -> None:
    x = np.array([[1, 1], [1, 2], [1, 2], [7, 2], [7, 3], [7, 3]], np.float32)
    y = np.ones_like(x)
    run = debugger(models.division(), tmp_path, x, y)
    run.break_when("changes ratio[0,1]")
    ratios = after(moments(models.division(), tmp_path, x, y), "ratio")
    assert stops_both_ways(run) == [ratios[1], ratios[4]]
    run.first()
    assert (
        run.continue_()
        .details[0]
        .endswith("ratio[0,1] changed in iteration 1 of TensorIterator 'divide' from 1.0 to 2.0")
    )


def test_a_value_that_stays_does_not_change(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, np.zeros(8, np.float32))
    run.break_when("changes sum")
    assert stops_both_ways(run) == []


def test_what_a_back_edge_carries_changes_when_it_goes_out(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("changes next_total")
    assert stops_both_ways(run) == closed(moments(models.walk(), tmp_path, X), 3, 4, 5, 6)


@pytest.mark.parametrize("comparison", ["sum > 0", "sum <= -3", "abs(double) >= 8", "sum == prev(sum)", "item[0] > 5"])
def test_an_expression_becomes_true(tmp_path: Path, comparison: str) -> None:
    sums = np.cumsum(X)
    truth = {
        "sum > 0": sums > 0,
        "sum <= -3": sums <= -3,
        "abs(double) >= 8": np.abs(2 * sums) >= 8,
        "sum == prev(sum)": np.diff(sums, prepend=np.nan) == 0,
        "item[0] > 5": X > 5,
    }[comparison]
    turned = np.flatnonzero(truth & ~np.concatenate([[False], truth[:-1]]))
    found = moments(models.walk(), tmp_path, X)
    at = after(found, "double" if "double" in comparison else "sum")
    if "item" in comparison:
        at = ticks(found, lambda moment: moment.kind == "BEGUN")
    run = debugger(models.walk(), tmp_path, X)
    run.break_when(comparison)
    assert stops_both_ways(run) == [at[index] for index in turned]


def test_an_expression_that_is_never_true(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("sum > 1000")
    assert stops_both_ways(run) == []


def test_a_jump_larger_than_a_limit(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("diff>5")
    assert stops_both_ways(run) == closed(found, 4, 5, 6)
    run.breakpoints.delete()
    run.first()
    run.break_when("diff > 11 double")
    assert stops_both_ways(run) == [after(found, "double")[index] for index in (4, 5, 6)]
    run.breakpoints.delete()
    run.break_when("diff>50")
    assert stops_both_ways(run) == []


# --- NaN and Inf ----------------------------------------------------------------------------------------------------


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
        "breakpoint 1: all its inputs were clean: 0 (Add 'whole'), 1 (Parameter 'b')",
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


def test_nan_in_what_the_run_was_given(tmp_path: Path) -> None:
    x, y = np.ones((6, 2), np.float32), np.ones((6, 2), np.float32)
    x[3, 0] = np.nan
    run = debugger(models.division(), tmp_path, x, y)
    run.break_when("nan")
    assert stops_both_ways(run) == [after(moments(models.division(), tmp_path, x, y), "whole")[3]]
    run.first()
    assert "NaN was in input 0 (Parameter 'a') already, as the run was given it; clean: 1" in run.continue_().details[1]


def test_a_carried_nan_is_reported_where_it_appeared_only(tmp_path: Path) -> None:
    run = debugger(models.recurrence("Power", 2.0, trips=6, start=1e30), tmp_path)
    run.break_when("inf")
    assert [stop.iteration for stop in forward(run)] == [0]


def test_large_finite_sums_are_not_mistaken(tmp_path: Path) -> None:
    x = np.full((6, 2), 3e38, np.float32)
    run = debugger(models.division(), tmp_path, x, np.ones_like(x))
    run.break_when("inf")
    assert stops_both_ways(run) == []


def test_nan_is_found_before_the_run_fails_or_ends(tmp_path: Path) -> None:
    run = debugger(models.recurrence("Power", 2.0, start=1e30), tmp_path, max_iterations=1)
    run.break_when("inf")
    assert run.continue_().iteration == 0
    with pytest.raises(stepper.LimitReached if hasattr(stepper, "LimitReached") else Exception):
        run.continue_()


# --- shapes ---------------------------------------------------------------------------------------------------------


def test_a_shape_changes(tmp_path: Path) -> None:
    x = np.zeros(1, np.float32)
    found = moments(models.growing(), tmp_path, x)
    longer, cut = after(found, "longer"), after(found, "cut")
    sizes = [len(moment.values["cut"]) for moment in found if moment.kind == "ITERATION"]
    assert sizes == [2, 3, 4, 4, 4, 4, 4]
    run = debugger(models.growing(), tmp_path, x)
    run.break_when("shape")
    assert stops_both_ways(run) == longer[1:4], "of several in a row the first; then the cut makes them alike"
    run.first()
    assert (
        "Concat 'longer' changed in iteration 1 of Loop 'growing': f32[2] became f32[3]" in run.continue_().details[0]
    )
    assert cut[0] > longer[0]


def test_shapes_that_stay(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("shape walk")
    assert stops_both_ways(run) == []


# --- how a loop ends ------------------------------------------------------------------------------------------------


def test_the_condition_turns(tmp_path: Path) -> None:
    number = np.array([5], np.int64)
    found = moments(models.countdown(), tmp_path, number)
    for word in ("cond", "last", "end", "cond countdown"):
        run = debugger(models.countdown(), tmp_path, number)
        run.break_when(word)
        assert stops_both_ways(run) == closed(found, 4)
        run.first()
        details = run.continue_().details
        assert details[0] == "breakpoint 1: the condition became false in iteration 4 of Loop 'countdown'"
        assert details[1].endswith("is about to end after iteration 4, 5 in all: condition became false")
    run = debugger(models.countdown(), tmp_path, number)
    run.break_when("limit")
    assert stops_both_ways(run) == []


def test_the_trip_count_is_reached(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    for word in ("limit", "last", "end"):
        run = debugger(models.walk(), tmp_path, X)
        run.break_when(word)
        assert stops_both_ways(run) == closed(found, 7)
        run.first()
        assert "8 in all: trip count reached (8)" in run.continue_().details[0]
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("cond")
    assert stops_both_ways(run) == []


def test_a_loop_that_is_never_entered(tmp_path: Path) -> None:
    number = np.array([0], np.int64)
    found = moments(models.countdown(), tmp_path, number)
    run = debugger(models.countdown(), tmp_path, number)
    for word in ("cond", "limit", "last"):
        run.break_when(word)
    assert stops_both_ways(run) == []
    run.break_when("end")
    run.first()
    assert stops_both_ways(run) == ticks(found, lambda moment: moment.kind == "ENTERED")
    run.first()
    assert "without an iteration: condition was false at the start" in run.continue_().details[0]


def test_nested_loops_end_each_time(tmp_path: Path) -> None:
    found = moments(models.nested(), tmp_path)
    run = debugger(models.nested(), tmp_path)
    run.break_when("last")
    assert stops_both_ways(run) == ticks(found, lambda moment: moment.kind == "ITERATION" and moment.ended)


# --- what is carried ------------------------------------------------------------------------------------------------


def test_a_carried_value_is_stuck(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("stuck")
    assert stops_both_ways(run) == closed(found, 1, 7), "where it begins to be"
    run.first()
    assert "the carried value 'total' is stuck: in iteration 1 of Loop 'walk'" in run.continue_().details[0]


def test_a_carried_value_moves(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, np.arange(1, 9, dtype=np.float32))
    run.break_when("stuck")
    assert stops_both_ways(run) == []


@pytest.mark.parametrize(("factor", "modulus", "start"), [(3, 7, 1), (2, 12, 3), (5, 97, 4), (10, 11, 1), (1, 9, 5)])
def test_a_period_is_found(tmp_path: Path, factor: int, modulus: int, start: int) -> None:
    states, expected = [], None
    state = start
    for iteration in range(200):
        state = state * factor % modulus
        if state in states[-64:]:
            expected = iteration, iteration - (len(states) - 1 - states[::-1].index(state))
            break
        states.append(state)
    graph = models.modular(factor, modulus, start, trips=200)
    run = debugger(graph, tmp_path)
    run.break_when("period")
    stops = forward(run)
    if expected is None:
        assert stops == [], "the period is longer than what is looked for"
        return
    assert [stop.iteration for stop in stops] == [expected[0]]
    assert f"repeat with period {expected[1]}" in stops[0].details[0]
    assert "only the trip count (200) ends the loop" in stops[0].details[1]
    assert stops_both_ways(debugger_with(graph, tmp_path, "period")) == [stops[0].tick]


def debugger_with(graph: Any, folder: Path, word: str) -> Debugger:
    run = debugger(graph, folder)
    run.break_when(word)
    return run


def test_a_period_is_found_after_a_jump(tmp_path: Path) -> None:
    run = debugger_with(models.modular(3, 7, 1, trips=200), tmp_path, "period")
    tick = run.continue_().tick
    other = debugger(models.modular(3, 7, 1, trips=200), tmp_path)
    other.goto_tick(tick - 1)
    other.break_when("period")
    assert other.continue_().tick == tick
    other.goto_tick(tick + 100)
    assert other.continue_().reason is Reason.END, "it has begun before"
    assert other.reverse_continue().tick == tick


def test_no_period_where_everything_is_new(tmp_path: Path) -> None:
    run = debugger_with(models.recurrence("Add", 1.0, trips=150), tmp_path, "period")
    assert stops_both_ways(run) == []


def test_a_period_of_an_endless_loop_says_so(tmp_path: Path) -> None:
    run = debugger_with(models.modular(3, 7, 1), tmp_path, "period")
    assert "the loop can never end" in run.continue_().details[1]
    assert run.continue_  # it goes on for ever from here


def test_a_carried_value_grows(tmp_path: Path) -> None:
    graph = models.recurrence("Multiply", -3.0, trips=12)
    run = debugger_with(graph, tmp_path, "grow>100")
    found = moments(graph, tmp_path)
    assert stops_both_ways(run) == closed(found, 4)
    run.first()
    assert (
        run.continue_()
        .details[0]
        .endswith("100 times what it began with: 243 in iteration 4 of Loop 'loop', 1 at first")
    )


def test_growth_from_zero_counts_from_the_first_result(tmp_path: Path) -> None:
    graph = models.walk()
    x = np.array([1, 1, 1, 1, 1, 1, 1, 1], np.float32)
    run = debugger(graph, tmp_path, x)
    run.break_when("grow>5")
    run.break_when("grow>6.5 double")
    found = moments(graph, tmp_path, x)
    assert stops_both_ways(run) == sorted(closed(found, 5) + after(found, "double")[6:7])


def test_a_carried_value_that_stays_small(tmp_path: Path) -> None:
    run = debugger_with(models.recurrence("Multiply", -0.5, trips=12), tmp_path, "grow>2")
    assert stops_both_ways(run) == []


# --- wrong, endless, real -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "sum >",
        "summ > 1",
        "changes",
        "changes after",
        "changes nothing",
        "shape sum",
        "grow>1 nothing",
        "x > 1",
        "stuck x",
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, text: str) -> None:
    run = debugger(models.walk(), tmp_path, X)
    with pytest.raises(UsageError):
        run.break_when(text)
    assert len(run.breakpoints) == 0


@pytest.mark.parametrize("word", ["nan", "period hit", "following > 1e30", "changes following[0]"])
def test_an_endless_loop_can_be_paused(tmp_path: Path, word: str) -> None:
    run = debugger(models.recurrence("Add", 0.0), tmp_path)
    if word.endswith(" hit"):
        run.break_when(word.split()[0], hit=1000)
    else:
        run.break_when(word)
    threading.Timer(0.3, run.pause).start()
    begin = time.monotonic()
    assert run.continue_().reason is Reason.PAUSED
    assert time.monotonic() - begin < 3
    assert run.reverse_continue().reason in (Reason.START, Reason.BREAK)


def test_all_of_a_sample_model(tmp_path: Path) -> None:
    run = sample("while_loop")
    run.break_when("last")
    run.break_when("diff>5000")
    run.break_at("If", condition="iter > 100")
    expected = stops_both_ways(run)
    assert len(expected) >= 11


@pytest.mark.parametrize(
    "name", ["do_while_loop", "nested_loop", "growing_tensor", "date_normaliser", "for_with_condition"]
)
def test_sample_models_have_no_nan_and_end(name: str) -> None:
    run = sample(name)
    run.break_when("nan")
    assert forward(run) == []
    run.first()
    run.break_when("last")
    stops = stops_both_ways(run)
    assert stops and all("is about to end" in text for text in run.goto_tick(0).details)
