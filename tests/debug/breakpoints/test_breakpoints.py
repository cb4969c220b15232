"""Breakpoints stop at exactly the moments that a plain walk finds, forward, backward, and whatever came before."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.debug.stop import Reason
from stepper.engine.frames import EventKind, Every
from stepper.errors import UsageError
from tests.debug import loops_to_break as models
from tests.debug.debugged import sample
from tests.debug.oracle import after, backward, debugger, forward, moments, stops_both_ways, ticks
from tests.tables import each_row

X = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.float32)


def begun(found: Any, *iterations: int) -> list[int]:
    return ticks(found, lambda moment: moment.kind == "BEGUN" and moment.iterations == iterations)


@each_row("target", ["double", "walk::double", "doub*", "/^double$/", "Multiply", "walk::Multiply"])
def test_an_operation_by_name_pattern_or_type(tmp_path: Path, target: str) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at(target)
    assert stops_both_ways(run) == after(found, "double")


def test_an_operation_by_its_id(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    body = next(program for program in run.machine.compiled.programs if program.path)
    number = next(operation.layer.id for operation in body.operations if operation.layer.name == "double")
    run.break_at(f"walk::id={number}")
    assert stops_both_ways(run) == after(found, "double")


def test_a_pattern_reaches_all_graphs(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("/^(sum|after)$/")
    assert stops_both_ways(run) == sorted(after(found, "sum") + after(found, "after"))


@each_row(("target", "iterations"), [("walk@3", [3]), ("walk@0", [0]), ("walk@2:5", [2, 3, 4])])
def test_an_iteration_of_a_loop(tmp_path: Path, target: str, iterations: list[int]) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at(target)
    assert stops_both_ways(run) == [tick for iteration in iterations for tick in begun(found, iteration)]


def test_an_iteration_of_the_loop_that_runs_here(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    with pytest.raises(UsageError, match="there is no loop here"):
        run.break_at("@5")
    run.step(3)
    run.break_at("@5")
    stop = run.continue_()
    assert (stop.iteration, stop.done, stop.closed) == (5, None, False)


def test_an_operation_in_one_iteration(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum@6")
    assert stops_both_ways(run) == after(found, "sum", lambda moment: moment.iterations == (6,))
    with pytest.raises(UsageError, match="counts from the end"):
        run.break_at("sum@-1")


def test_a_back_edge_from_both_sides(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("next_total")
    assert stops_both_ways(run) == ticks(found, lambda moment: moment.kind == "ITERATION")
    run.first()
    assert "carries it from iteration 0 to 1" in run.continue_().details[1]
    run.breakpoints.delete()
    run.first()
    run.break_at("total")
    assert stops_both_ways(run) == ticks(found, lambda moment: moment.kind == "BEGUN")


def test_an_output_of_a_loop(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("walk:1")
    assert stops_both_ways(run) == ticks(found, lambda moment: moment.kind == "LEFT")


def test_a_condition(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("double", condition="sum > 9 and iter < 6")
    expected = after(found, "double", lambda moment: bool(moment.values["sum"] > 9) and moment.iterations[0] < 6)
    assert len(expected) == 3 and stops_both_ways(run) == expected
    assert "'sum > 9 and iter < 6' is true" in backward(run)[0].details[0]


def test_a_condition_that_is_never_true(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("double", condition="sum > 1000")
    assert stops_both_ways(run) == []


def test_a_condition_on_the_iteration_before(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X[::-1].copy())
    run = debugger(models.walk(), tmp_path, X[::-1].copy())
    run.break_at("sum", condition="sum - prev(sum) < 4")
    expected = after(found, "sum", lambda moment: moment.iterations[0] >= 5)
    assert stops_both_ways(run) == expected
    run.goto_tick(expected[1] - 1)
    assert run.continue_().tick == expected[1], "the iteration before is found though nobody watched it"


def test_a_condition_that_fits_no_values_stops_and_says_so(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", condition="sum[3] > 0")
    assert "cannot be evaluated" in run.continue_().details[0]


@each_row(
    ("target", "condition", "message"),
    [
        ("doubel", "", "near is double"),
        ("double", "sum >", r"\^"),
        ("double", "summ > 1", "near is sum"),
        ("sum", "double > 1", "computed later"),
        ("after", "sum > 1", "has no values while"),
        ("after", "iter > 1", "no loop"),
        ("sum", "ref(sum) > 1", "no reference"),
        ("sum", "sum@3 > 1", "names an iteration"),
        ("x", "", "from the start"),
        ("sum[0]", "", "changes"),
        ("sum::x", "", "is neither a loop nor"),
    ],
)
def test_what_is_wrong_is_refused_when_it_is_set(tmp_path: Path, target: str, condition: str, message: str) -> None:
    run = debugger(models.walk(), tmp_path, X)
    with pytest.raises(UsageError, match=message):
        run.break_at(target, condition=condition)
    assert len(run.breakpoints) == 0 and run.continue_().reason is Reason.END


def test_hit_counts_count_moments(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", hit=3)
    assert stops_both_ways(run) == sums[2:]
    assert run.breakpoints[1].hits == 8, "every moment once, though they were passed three times"


def test_a_hit_count_can_be_exact(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", hit=3, exactly=True)
    assert stops_both_ways(run) == [sums[2]]


def test_hit_counts_see_what_was_jumped_over(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", hit=3)
    run.goto_tick(sums[4])
    assert [stop.tick for stop in forward(run)] == sums[5:]
    run.goto_tick(sums[5])
    assert [stop.tick for stop in backward(run)] == sums[2:5]


def test_a_hit_count_begins_where_it_was_set(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.goto_tick(sums[2])
    run.break_at("sum", hit=2)
    assert [stop.tick for stop in forward(run)] == sums[4:]


def test_an_ignore_count_begins_at_the_present(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum")
    assert run.continue_().tick == sums[0]
    run.breakpoints.ignore(1, 3)
    assert [stop.tick for stop in forward(run)] == sums[4:]
    assert [stop.tick for stop in backward(run)] == [sums[0], *sums[4:]]


def test_once(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", condition="iter >= 2", once=True)
    assert [stop.tick for stop in forward(run)] == [sums[2]]
    assert len(run.breakpoints) == 0


def test_disable_enable_and_delete_while_it_runs(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    number = run.break_at("sum").number
    run.continue_()
    run.breakpoints.enable(number, enabled=False)
    assert not run.breakpoints[number].description.enabled
    assert run.next_iteration(2).tick == sums[2]
    run.breakpoints.enable(number)
    assert run.continue_().tick == sums[3]
    run.breakpoints.delete(number)
    assert run.continue_().reason is Reason.END
    with pytest.raises(UsageError, match="no breakpoint 1"):
        run.breakpoints.enable(number)


def test_several_at_one_moment_are_all_named(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum")
    run.break_at("Add", condition="iter == 0")
    details = run.continue_().details
    assert [text.split(":")[0] for text in details] == ["breakpoint 1", "breakpoint 2"]
    assert "Add 'sum' ran in iteration 0 of Loop 'walk'" in details[0]


def test_together_they_stop_in_the_order_of_time(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("double")
    run.break_at("sum", condition="iter > 4")
    run.break_at("walk@6")
    run.break_when("last")
    expected = after(found, "double") + after(found, "sum", lambda moment: moment.iterations[0] > 4) + begun(found, 6)
    expected += ticks(found, lambda moment: moment.kind == "ITERATION" and moment.ended)
    assert stops_both_ways(run) == sorted(expected)


def test_single_moves_show_breakpoints_and_go_on(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", condition="iter == 0")
    run.break_at("double")
    assert run.step(3).reason is Reason.BREAK, "step by step the same moments are breakpoints"
    assert run.step(1).reason is Reason.BREAK
    assert run.step(8).tick == 12


def test_next_stops_inside_of_what_it_runs(tmp_path: Path) -> None:
    found = moments(models.nested(), tmp_path)
    run = debugger(models.nested(), tmp_path)
    run.break_at("product", condition="iter == 2")
    stop = run.next()
    assert stop.tick == after(found, "product", lambda moment: moment.iterations == (0, 2))[0]
    assert run.finish().closed, "no further stop in this run of the inner loop"
    assert run.finish().depth == 2
    assert run.finish().tick == after(found, "product", lambda moment: moment.iterations == (1, 2))[0]


def test_until_and_run_to(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    assert run.until("sum > 9").tick == after(found, "sum", lambda moment: bool(moment.values["sum"] > 9))[0]
    assert run.until("iter > 5").tick == begun(found, 6)[0]
    assert run.run_to("after").tick == after(found, "after")[0]
    with pytest.raises(UsageError):
        run.until("sum >")
    run.first()
    assert run.run_to("walk@4").tick == begun(found, 4)[0]
    assert run.continue_().reason is Reason.END, "both were for one movement"


def test_where_nothing_of_it_follows_the_run_stays_and_says_what_goes_back(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    watch = run.watch("iter")
    last = run.goto_tick(after(found, "double")[-1])
    with pytest.raises(UsageError, match="does not come to 'sum' after this position; goto sum goes back to it"):
        run.run_to("sum")
    assert run.stop == last and run.machine.tick == last.tick
    assert watch.now is not None and watch.now.tick == last.tick
    assert run.goto("sum").tick == after(found, "sum")[-1]
    with pytest.raises(UsageError, match="goto walk goes back to it"):
        run.goto_tick(after(found, "after")[0])
        run.run_to("walk")
    run.goto_tick(after(found, "double")[-1])
    run.break_at("after")
    assert run.run_to("sum").reason is Reason.BREAK, "a breakpoint on the way stops as ever"


def test_a_logpoint_writes_and_never_stops(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    lines: list[str] = []
    run.breakpoints.sink = lines.append
    run.log_at("double", "{iter}: {max(sum):.1f} {{ {sum[0] > 9}", condition="iter >= 5")
    assert run.continue_().reason is Reason.END
    assert lines == ["5: 21.0 { True", "6: 28.0 { True", "7: 36.0 { True"]
    run.last()
    assert run.reverse_continue().reason is not Reason.BREAK
    assert len(lines) == 3, "a search backward writes nothing"


def test_a_logpoint_does_not_write_beyond_a_stop(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, X)
    lines: list[str] = []
    run.breakpoints.sink = lines.append
    run.log_at("double", "{iter}")
    run.break_at("sum", condition="iter == 2")
    run.continue_()
    assert lines == ["0", "1"]
    run.break_when("sum > 20")
    run.continue_()
    assert lines == ["0", "1", "2", "3", "4"]


@each_row("line", ["{sum", "{nothing}", "{sum:.3q}", "{sum >}", "{sum!r}"])
def test_a_wrong_logpoint_is_refused(tmp_path: Path, line: str) -> None:
    run = debugger(models.walk(), tmp_path, X)
    with pytest.raises(UsageError):
        run.log_at("double", line)


def test_nested_loops(tmp_path: Path) -> None:
    found = moments(models.nested(), tmp_path)
    run = debugger(models.nested(), tmp_path)
    run.break_at("rows@1::columns@2::product")
    run.break_at("part_sum", condition="part_sum > 3 and total >= 6")
    run.break_at("columns", condition="iter == 2")
    expected = after(found, "product", lambda moment: moment.iterations == (1, 2))
    expected += after(found, "part_sum", lambda m: bool(m.values["part_sum"] > 3) and m.iterations[0] == 2)
    expected += after(found, "columns", lambda moment: moment.iterations == (2,))
    assert stops_both_ways(run) == sorted(expected)


def test_sides_of_an_if(tmp_path: Path) -> None:
    found = moments(models.choosing(), tmp_path)
    run = debugger(models.choosing(), tmp_path)
    run.break_at("triple")
    run.break_at("half", condition="half < 5 and iter > 0")
    run.break_at("half_in")
    run.break_at("choice", condition="iter == 3")
    expected = after(found, "triple") + after(found, "choice", lambda moment: moment.iterations[0] == 3)
    expected += after(found, "half", lambda m: bool(m.values["half"] < 5) and m.iterations[0] > 0)
    expected += [tick - 1 for tick in after(found, "half")]
    assert stops_both_ways(run) == sorted(set(expected))


def test_from_any_moment_the_next_stop_is_the_same(tmp_path: Path) -> None:
    run = debugger(models.nested(), tmp_path)
    run.break_at("product", condition="product > 1 and product != prev(product)")
    run.break_when("changes row_total")
    run.break_at("rows@2", hit=1)
    expected = stops_both_ways(run)
    end = run.last().tick
    for tick in np.random.default_rng(0).permutation(end).tolist():
        run.goto_tick(tick)
        assert run.continue_().tick == next((at for at in expected if at > tick), end)
        run.goto_tick(tick)
        assert run.reverse_continue().tick == next((at for at in reversed(expected) if at < tick), 0)


def test_an_edit_makes_another_course_of_which_counts_know(tmp_path: Path) -> None:
    sums = after(moments(models.walk(), tmp_path, X), "sum")
    run = debugger(models.walk(), tmp_path, X)
    run.break_at("sum", condition="sum > 5", hit=2)
    assert run.continue_().tick == sums[3]
    run.goto_tick(sums[0] - 1)
    run.set_value("total", 100)
    assert run.continue_().tick == sums[1], "counted again on the other course"
    run.branch("original")
    run.first()
    assert run.continue_().tick == sums[3], "and on the first one as before"


# --- iterations of loops around -------------------------------------------------------------------------------------


@each_row("place", ["first", "passes@0", "passes@0::pairs_of_neighbours@0"])
def test_a_condition_asks_for_the_iteration_of_an_outer_loop_by_its_name(place: str) -> None:
    run = sample("nested_loop")
    if place != "first":
        run.run_to(place)
    run.break_when("iter(passes) == 2 and iter(pairs_of_neighbours) == 1")
    run.break_at("pairs_of_neighbours::swapped", condition="iter(passes) == 1 and iter == 2")
    assert run.continue_().place == "model > Loop 'passes' #1 > Loop 'pairs_of_neighbours' #2"
    assert run.continue_().place == "model > Loop 'passes' #2 > Loop 'pairs_of_neighbours' #1"
    assert run.evaluate("iter(passes) * 10 + iter") == 21
    assert run.continue_().reason is Reason.END
    run.breakpoints.clear()
    run.first()
    run.run_to("passes@0::pairs_of_neighbours@0")
    found = run.find("iter(passes) == 2 and iter == 1")
    assert found.moments[0].place == "model > Loop 'passes' #2 > Loop 'pairs_of_neighbours' #1"


def test_an_iteration_of_no_loop_around_names_those_that_are() -> None:
    run = sample("nested_loop")
    run.run_to("passes@0::pairs_of_neighbours@0")
    expected = "'other' is no loop around this place; around it are 'passes', 'pairs_of_neighbours'"
    with pytest.raises(UsageError, match=expected):
        run.break_when("iter(other) == 2")
    with pytest.raises(UsageError, match=expected):
        run.evaluate("iter(other)")
    with pytest.raises(UsageError, match="expected the name of a loop around"):
        run.break_when("iter() == 2")
    with pytest.raises(UsageError, match="stays what it is"):
        run.evaluate("prev(iter(passes))")


def test_a_copy_of_the_machine_runs_past_the_breakpoints_and_tells_the_debugger_nothing() -> None:
    debugger = sample("for_loop")
    debugger.break_at("balance_next")
    copied = copy.copy(debugger.machine)
    assert [event.kind for event in copied.run(Every.LOOP)][-1] is EventKind.FINISHED
    debugger.last()
    summary = debugger.run_summary()
    assert summary is not None and [loop.executions for loop in summary.loops] == [1]
