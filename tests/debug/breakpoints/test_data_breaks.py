"""Data breakpoints: each kind stops where plain numpy on the recorded values says so, and nowhere else."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from stepper.errors import UsageError
from tests.debug import loops_to_break as models
from tests.debug.oracle import after, closed, debugger, forward, moments, stops_both_ways, ticks
from tests.models import Graph
from tests.tables import each_row

SAMPLES = Path(__file__).parents[3] / "sample_models"
X = np.array([1, 0, 0, 4, -9, 6, 6, 0], np.float32)


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
        "breakpoint 1: sum changed in iteration 3 of Loop 'walk': from f32[1] [1.] to f32[1] [5.]",
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
        .endswith("ratio[0,1] changed in iteration 1 of TensorIterator 'divide': from 1.0 to 2.0")
    )


def test_a_value_that_stays_does_not_change(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, np.zeros(8, np.float32))
    run.break_when("changes sum")
    assert stops_both_ways(run) == []


def test_what_a_back_edge_carries_changes_when_it_goes_out(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("changes next_total")
    assert stops_both_ways(run) == closed(moments(models.walk(), tmp_path, X), 3, 4, 5, 6)


def test_a_value_is_new_in_the_first_iteration_and_where_it_changes(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    sums = np.cumsum(X)
    other = [0, *(np.flatnonzero(np.diff(sums)) + 1)]  # a sum is as before where 0 was added
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("new sum")
    assert stops_both_ways(run) == [after(found, "sum")[index] for index in other]
    run.first()
    assert run.continue_().details == ("breakpoint 1: sum is there for the first time in iteration 0 of Loop 'walk'",)


def test_a_value_outside_of_loops_is_new_once_and_is_compared_with_nothing(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("new after[0]")
    assert stops_both_ways(run) == after(moments(models.walk(), tmp_path, X), "after")
    with pytest.raises(UsageError, match="computed once"):
        run.break_when("changes after")
    for constant in ("x", "nothing"):
        with pytest.raises(UsageError):
            run.break_when(f"new {constant}")


def test_in_a_side_of_an_if_a_value_is_new_each_time() -> None:
    with np.load(SAMPLES / "while_loop" / "inputs.npz") as inputs:
        number = int(inputs["start"])
    even = 0
    while number != 1:
        number, even = (number // 2, even + 1) if number % 2 == 0 else (3 * number + 1, even)
    run = sample("while_loop")
    run.break_when("new until_one::number_next::then::half")
    assert len(stops_both_ways(run)) == even > 50
    with pytest.raises(UsageError, match="in a side of If 'number_next', where nothing is compared"):
        run.break_when("changes until_one::number_next::then::half")


@each_row("comparison", ["sum > 0", "sum <= -3", "abs(double) >= 8", "sum == prev(sum)", "item[0] > 5"])
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
        (detail,) = run.continue_().details
        turned = "breakpoint 1: the condition became false in iteration 4 of Loop 'countdown'"
        assert detail == f"{turned}: the loop is about to end, 5 in all"
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


# --- wrong, endless, real -------------------------------------------------------------------------------------------


@each_row(
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


@each_row("word", ["nan", "period hit", "following > 1e30", "changes following[0]"])
def test_an_endless_loop_can_be_paused(tmp_path: Path, word: str) -> None:
    run = debugger(models.recurrence("Add", 0.0), tmp_path)
    if word.endswith(" hit"):
        run.break_when(word.split()[0], hit=1000)
    else:
        run.break_when(word)
    threading.Timer(0.3, run.pause).start()
    begin = time.monotonic()
    assert run.continue_().reason is Reason.PAUSED
    assert time.monotonic() - begin < 30
    assert run.reverse_continue().reason in (Reason.START, Reason.BREAK)


def test_all_of_a_sample_model(tmp_path: Path) -> None:
    run = sample("while_loop")
    run.break_when("last")
    run.break_when("diff>5000")
    run.break_at("If", condition="iter > 100")
    expected = stops_both_ways(run)
    assert len(expected) >= 11


@each_row("name", ["do_while_loop", "nested_loop", "growing_tensor", "date_normaliser", "for_with_condition"])
def test_sample_models_have_no_nan_and_end(name: str) -> None:
    run = sample(name)
    run.break_when("nan")
    assert forward(run) == []
    run.first()
    run.break_when("last")
    stops = stops_both_ways(run)
    assert stops and all("is about to end" in text for text in run.goto_tick(0).details)


# --- an iteration of any loop ---------------------------------------------------------------------------------------


@each_row("iteration", [0, 1, 3])
def test_iter_means_every_loop_where_none_runs(iteration: int) -> None:
    walk, begun = sample("nested_loop"), []
    while not walk.machine.finished:
        stop = walk.step()
        if stop.iteration == iteration and not stop.closed and stop.done is None:
            begun.append(stop.tick)
    run = sample("nested_loop")
    run.break_when(f"iter == {iteration}")
    assert list(iter(lambda: run.continue_().tick, walk.machine.tick)) == begun and begun
    back = [run.reverse_continue().tick for _ in begun]
    assert back == begun[::-1]
    other = sample("nested_loop")
    assert other.until(f"iter == {iteration}").tick == begun[0]


def test_iter_has_no_meaning_in_a_model_without_loops(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Negative", net.parameter("x", dims=(1,)), name="y"))
    with pytest.raises(UsageError, match="there is no loop in the model, so 'iter' in 'iter == 1' has no meaning"):
        debugger(net, tmp_path, np.ones(1, np.float32)).break_when("iter == 1")
