"""Constants, trip counts and conditions changed while a run goes on: the run from there is that of a changed model."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepper.commands import Interpreter
from stepper.debug.branch_differences import difference_lines
from stepper.debug.debugger import Debugger
from stepper.debug.stop import fingerprint
from stepper.debug.story.story_texts import verdict
from stepper.engine.compiler import compile_model
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.errors import UsageError
from stepper.export.overview_page import overview_html
from stepper.plain_values import record_data
from stepper.session.session_files import restore_session, save_session
from tests.debug.branches.test_what_if import at, outputs, with_folded
from tests.debug.debugged import opened, sample, state_of
from tests.debug.loops_to_break import countdown, recurrence, walk
from tests.debug.sample_twins import bubble_sort, collatz
from tests.models import Graph, carried, invariant, joined, last
from tests.tables import each_row


def numbers(trips: int, changes: dict[int, tuple[float, float]]) -> list[list[float]]:
    """What with_folded gives: state * (one + other) + one in f32, where the two change in some iterations."""
    one, other, state, found = np.float32(1), np.float32(2), np.float32(1), []
    for iteration in range(trips):
        if iteration in changes:
            one, other = map(np.float32, changes[iteration])
        state = state * (one + other) + one
        found.append([float(state)])
    return found


def rows_of_four(index: int) -> Graph:
    """A Loop of 4 that takes element `index`, a constant, out of x[3] * (iteration so far): Gather has it settled."""
    net = Graph()
    x, body = net.parameter("x", dims=(3,)), net.body()
    table, state = body.parameter("table", dims=(3,)), body.parameter("state", dims=(1,))
    index_of, axis = body.constant([index], np.int64, name="index"), body.constant(0, np.int64, name="axis")
    taken = body.apply("Gather", table, index_of, axis, name="taken", batch_dims=0)
    out = body.result(body.apply("Add", state, taken, name="following"), "next_state")
    inputs = [invariant(x, table), carried(net.constant([0.0]), state, out)]
    net.result(net.loop("loop", body, 4, True, inputs, [last(out)])[0], "final")
    return net


def nested(inner: float) -> Graph:
    """Three times two times state + inner, in a Loop inside of a Loop."""
    net = Graph()
    outer = net.body()
    around = outer.parameter("around", dims=(1,))
    body = outer.body()
    state = body.parameter("state", dims=(1,))
    out = body.result(body.apply("Add", state, body.constant([inner], name="inner_step"), name="more"), "next_state")
    (once,) = outer.loop("inner", body, 2, True, [carried(around, state, out)], [last(out)])
    next_around = outer.result(once, "next_around")
    inputs = [carried(net.constant([0.0]), around, next_around)]
    final, steps = net.loop("outer", outer, 3, True, inputs, [last(next_around), joined(next_around)])
    net.result(final, "final")
    net.result(steps, "steps")
    return net


# --- constants ------------------------------------------------------------------------------------------------------


@each_row("iteration", [0, 1, 3, 5])
def test_a_constant_of_a_body_counts_from_there_on_with_what_was_computed_from_it(
    tmp_path: Path, iteration: int
) -> None:
    debugger = at(opened(tmp_path, with_folded(1.0, 2.0)), f"loop@{iteration}")
    debugger.set_value("other", 5)
    expected = numbers(6, {iteration: (1, 5)})
    assert outputs(debugger) == [expected[-1], [row[0] for row in expected]]
    debugger.first()
    assert outputs(debugger)[0] == expected[-1] and not debugger.timeline.warnings


def test_two_constants_one_after_the_other(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, with_folded(1.0, 2.0)), "loop@2")
    debugger.set_value("other", 5)
    debugger.next_iteration(2)
    debugger.set_value("one", 3)
    assert outputs(debugger)[0] == numbers(6, {2: (1, 5), 4: (3, 5)})[-1]


def test_the_original_keeps_its_constants(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, with_folded(1.0, 2.0)), "loop@2")
    debugger.set_value("other", 5)
    debugger.last()
    debugger.branch("original")
    assert outputs(debugger)[0] == numbers(6, {})[-1]
    debugger.branch("edit-1")
    assert outputs(debugger)[0] == numbers(6, {2: (1, 5)})[-1]


def test_a_constant_changed_at_the_start_gives_the_run_of_the_changed_model(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    debugger = opened(tmp_path / "a", with_folded(1.0, 2.0))
    debugger.set_value("loop::other", 7)
    assert outputs(debugger) == outputs(opened(tmp_path / "b", with_folded(1.0, 7.0)))


@each_row("iteration", [0, 2])
def test_a_constant_with_which_a_kernel_was_made_counts_too(tmp_path: Path, iteration: int) -> None:
    x = np.array([1, 20, 300], np.float32)
    debugger = at(opened(tmp_path, rows_of_four(0), x), f"loop@{iteration}")
    debugger.set_value("index", 2)
    assert outputs(debugger) == [[float(x[0] * iteration + x[2] * (4 - iteration))]]


def test_a_constant_of_an_inner_body_stays_changed_when_that_is_entered_again(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, nested(1.0)), "outer@1::inner@1")
    debugger.set_value("inner_step", 10)
    assert outputs(debugger) == [[1 + 1 + 1 + 10 + 10 + 10], [2.0, 13.0, 33.0]]


def test_replays_that_come_through_an_edit_make_it_again(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, nested(1.0)), "outer@1::inner@1")
    debugger.set_value("inner_step", 10)
    debugger.set_trip_count(3, "inner")
    debugger.next_iteration()
    debugger.set_condition(False, "outer")
    seen = {}
    debugger.first()
    while not debugger.machine.finished:
        seen[debugger.machine.tick] = state_of(debugger.timeline)
        debugger.step()
    chosen = random.Random(3)
    for tick in chosen.choices(sorted(seen), k=60):
        debugger.goto_tick(tick)
        assert state_of(debugger.timeline) == seen[tick]
    assert not debugger.timeline.warnings


# --- trip count -----------------------------------------------------------------------------------------------------


@each_row(("trips", "wanted"), [(3, 6), (6, 3), (3, 2), (5, 1000)])
def test_a_changed_trip_count_gives_the_run_of_the_changed_model(tmp_path: Path, trips: int, wanted: int) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    debugger = at(opened(tmp_path / "a", recurrence("Add", 1.0, trips)), "loop@1")
    debugger.set_trip_count(wanted)
    assert outputs(debugger) == outputs(opened(tmp_path / "b", recurrence("Add", 1.0, wanted))) == [[1.0 + wanted]]


def closed_last(debugger: Debugger) -> Debugger:
    debugger.run_to("loop@0")
    debugger.finish()
    assert debugger.stop.closed
    return debugger


def test_a_loop_that_has_run_all_iterations_goes_on(tmp_path: Path) -> None:
    debugger = closed_last(opened(tmp_path, recurrence("Add", 1.0, 3)))
    debugger.set_trip_count(5)
    assert outputs(debugger) == [[6.0]]


def test_a_trip_count_that_is_reached_already_ends_the_loop_now(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, recurrence("Add", 1.0, 9)), "loop@3")
    while not debugger.stop.closed:
        debugger.next()
    debugger.set_trip_count(4)
    assert debugger.loop().trip.total == 4
    assert outputs(debugger) == [[5.0]]


def test_a_trip_count_below_what_has_begun_is_refused(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, recurrence("Add", 1.0, 9)), "loop@3")
    with pytest.raises(UsageError, match="has begun 4 iterations"):
        debugger.set_trip_count(3)


def test_sliced_inputs_bound_how_far_a_trip_count_may_grow(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, walk(8), np.ones(8, np.float32)), "walk@3")
    with pytest.raises(UsageError, match=r"has slices for 8 iterations \(input 2, line \d+\), which is the most"):
        debugger.set_trip_count(9)
    with pytest.raises(UsageError, match="slices for 8"):
        debugger.set_trip_count(-1)
    debugger.set_trip_count(5)
    assert outputs(debugger)[0] == [5.0]


def test_the_iterations_of_a_tensor_iterator_can_be_fewer() -> None:
    debugger = at(sample("specification_lstm"), "lstm@3")
    debugger.set_trip_count(10)
    debugger.finish()
    assert debugger.stop.iteration == 9
    with pytest.raises(UsageError, match="slices for 25"):
        debugger.set_trip_count(26)


def test_the_trip_count_of_an_outer_loop_by_its_name() -> None:
    debugger = at(sample("nested_loop"), "passes@0::pairs_of_neighbours@1")
    debugger.set_trip_count(1, "passes")
    assert outputs(debugger)[2] == bubble_sort([5.0, 1.0, 4.0, 2.0, 8.0])[2][:1]
    debugger.first()
    debugger.run_to("passes@0::pairs_of_neighbours@1")
    with pytest.raises(UsageError, match="'elsewhere' is no loop around this place; around it are 'passes', 'pairs_of"):
        debugger.set_trip_count(1, "elsewhere")


# --- condition ------------------------------------------------------------------------------------------------------


@each_row("iteration", [0, 3, 50])
@each_row("steps", [0, 4])
def test_a_condition_set_to_false_ends_the_loop_after_the_iteration(iteration: int, steps: int) -> None:
    debugger = at(sample("while_loop"), f"until_one@{iteration}")
    if steps:
        debugger.next(steps)
    debugger.set_condition(False)
    _steps, _peak, expected = collatz(27)
    assert outputs(debugger)[2] == expected[: iteration + 1]


def test_a_condition_set_to_true_lets_a_loop_go_on_that_has_ended(tmp_path: Path) -> None:
    debugger = opened(tmp_path, countdown(), np.array([3], np.int64))
    debugger.run_to("countdown@2")
    while not debugger.stop.closed:
        debugger.next()
    debugger.set_condition(True)
    condition = debugger.loop().condition
    assert condition is not None and condition.sentence == "true (set by hand), so iteration 3 comes"
    # From 0 to -1, of which the body says again that it is not above 0.
    assert outputs(debugger) == [[-1]]


def test_a_condition_set_to_true_within_an_iteration_overrules_what_the_body_says(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, countdown(), np.array([3], np.int64)), "countdown@2")
    debugger.set_condition(True)
    assert outputs(debugger) == [[-1]]


def test_a_loop_that_was_never_entered_is_entered(tmp_path: Path) -> None:
    debugger = opened(tmp_path, countdown(), np.array([0], np.int64))
    while debugger.depth == 1:
        debugger.step()
    debugger.set_condition(True)
    assert outputs(debugger) == [[-1]]


def test_a_condition_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    debugger = closed_last(opened(tmp_path, recurrence("Add", 1.0, 3)))
    with pytest.raises(UsageError, match="is true already"):
        debugger.set_condition(True)
    with pytest.raises(UsageError, match="has run all 3 iterations; set trip-count = N"):
        debugger.set_condition(False)
    debugger = sample("specification_lstm")
    debugger.run_to("lstm@3")
    with pytest.raises(UsageError, match="has no condition; set trip-count = 4"):
        debugger.set_condition(False)


# --- at the prompt --------------------------------------------------------------------------------------------------


def test_at_the_prompt_each_is_set_and_said(tmp_path: Path) -> None:
    interpreter = Interpreter(at(opened(tmp_path, recurrence("Add", 1.0, 9)), "loop@1"))
    assert interpreter.execute("set trip-count = 6").lines[-1].startswith("  ends after 6 iterations")
    assert "6 iterations (set in this branch)" in interpreter.execute("info trip").lines[0]
    ended = interpreter.execute("set condition of loop = false")
    assert ended.lines[-1] == "  ends after 2 iterations, for its condition was set to false"
    assert ended.data["notes"] == ["ends after 2 iterations, for its condition was set to false"]
    interpreter.execute("set constant = 4")
    assert interpreter.execute("branches").lines == (
        "  original  tick 5, model > Loop 'loop' #1",
        "*   edit-1  tick 5, model > Loop 'loop' #1, left original at tick 5",
        "      tick 5: trip-count of loop = 6",
        "      tick 5: condition of loop = false",
        "      tick 5: constant constant = 4.0",
    )
    for line, problem in (
        ("set trip-count = 2.5", "the trip-count of a loop is a whole number"),
        ("set condition of loop = 3", "the condition of a loop is true or false"),
    ):
        with pytest.raises(UsageError, match=problem):
            interpreter.execute(line)


def test_a_value_called_condition_is_not_mistaken(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    condition = body.parameter("condition", dims=(1,))
    out = body.result(body.apply("Add", condition, body.constant([1.0]), name="more"), "next")
    net.result(net.loop("loop", body, 3, True, [carried(net.constant([0.0]), condition, out)], [last(out)])[0])
    interpreter = Interpreter(at(opened(tmp_path, net), "loop@1"))
    with pytest.raises(UsageError, match="write `condition` for that, or set condition of LOOP"):
        interpreter.execute("set condition = 1")
    interpreter.execute("set `condition` = 10")
    interpreter.execute("set condition of loop = false")
    assert outputs(interpreter.session.debugger) == [[11.0]]


# --- undo, names, sessions ------------------------------------------------------------------------------------------


@each_row("start", ["loop@2", ""])
def test_undo_takes_one_edit_back_after_the_other(tmp_path: Path, start: str) -> None:
    debugger = opened(tmp_path, with_folded(1.0, 2.0))
    if start:
        at(debugger, start)
    tick = debugger.machine.tick
    debugger.set_value("loop::other", 5)
    debugger.set_value("loop::one", 3)
    debugger.last()
    assert debugger.undo().tick == tick
    begin = 2 if start else 0
    assert outputs(debugger)[0] == numbers(6, {begin: (1, 5)})[-1]
    debugger.undo()
    assert outputs(debugger)[0] == numbers(6, {})[-1] and not debugger.branches.is_edited
    with pytest.raises(UsageError, match="nothing was changed in the branch 'edit-1'"):
        debugger.undo()
    assert not debugger.timeline.warnings


def three_branches(folder: Path) -> Debugger:
    debugger = at(opened(folder, with_folded(1.0, 2.0)), "loop@1")
    debugger.set_value("other", 5)
    debugger.branch("second")
    debugger.next_iteration()
    debugger.set_trip_count(4)
    debugger.branch("third")
    debugger.set_condition(False)
    return debugger


def test_a_stays_the_same_branch_when_that_is_renamed(tmp_path: Path) -> None:
    debugger = three_branches(tmp_path)
    debugger.pinned = debugger.moments.called("edit-1")
    before = debugger.difference()
    debugger.rename_branch("edit-1", "hot")
    assert debugger.pinned is not None and debugger.pinned.branch == "hot"
    after = debugger.difference()
    assert not after.problem and after.operations == before.operations


def test_branches_can_be_renamed_and_deleted_but_not_the_one_that_one_is_in(tmp_path: Path) -> None:
    debugger = three_branches(tmp_path)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: debugger.delete_branch("third"), "'third' is where you are"),
        (lambda: debugger.delete_branch("second"), "'third' descends from 'second', and 'third' is where you are"),
        (lambda: debugger.delete_branch("original"), "cannot be deleted"),
        (lambda: debugger.delete_branch("fourth"), "there is no branch 'fourth'; there are edit-1, original, second"),
        (lambda: debugger.rename_branch("original", "x"), "keeps its name"),
        (lambda: debugger.rename_branch("third", "second"), "there is a branch 'second' already"),
        (lambda: debugger.rename_branch("third", "delete"), "no branch can be called 'delete'"),
        (lambda: debugger.branch("diff"), "no branch can be called 'diff'"),
    ]
    for action, problem in refused:
        with pytest.raises(UsageError, match=problem):
            action()
    debugger.rename_branch("second", "shorter")
    debugger.rename_branch("third", "last")
    assert {branch.name: branch.parent for branch in debugger.branches} == {
        "edit-1": "original",
        "last": "shorter",
        "original": "",
        "shorter": "edit-1",
    }
    debugger.branch("original")
    with pytest.raises(UsageError, match="last descend from 'shorter'; branch delete shorter all takes them along"):
        debugger.delete_branch("shorter")
    assert debugger.delete_branch("shorter", descendants=True) == ("shorter", "last")
    assert [branch.name for branch in debugger.branches] == ["edit-1", "original"]


def test_every_kind_of_edit_is_kept_in_a_session(tmp_path: Path) -> None:
    debugger = three_branches(tmp_path)
    debugger.branch("second")
    save_session(debugger, tmp_path / "kept.session")
    ends = {}
    for branch in list(debugger.branches):
        debugger.branch(branch.name)
        ends[branch.name] = outputs(debugger)
    other = opened(tmp_path, with_folded(1.0, 2.0))
    restore_session(other, tmp_path / "kept.session")
    assert other.branches.name == "second"
    assert [(one.name, one.parent, one.parted, one.edits) for one in other.branches] == [
        (one.name, one.parent, one.parted, one.edits) for one in debugger.branches
    ]
    for branch in list(other.branches):
        other.branch(branch.name)
        assert outputs(other) == ends[branch.name]


# --- the difference of two branches ---------------------------------------------------------------------------------


def test_the_difference_of_two_branches_is_that_of_the_two_runs(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, with_folded(1.0, 2.0)), "loop@2")
    tick = debugger.machine.tick
    debugger.set_value("other", 5)
    before = state_of(debugger.timeline)
    found = debugger.branches.difference("original", "edit-1")
    assert state_of(debugger.timeline) == before
    assert found.parted == tick and found.first is not None and found.computed is not None
    assert (found.first.what, found.first.name, found.first.a, found.first.b) == ("constant", "other", "2.0", "5.0")
    assert (found.computed.name, found.computed.iteration) == ("product", 2)
    one, other = numbers(6, {}), numbers(6, {2: (1, 5)})
    largest = max(abs(a - b) for (a,), (b,) in zip(one, other, strict=True))
    rows = {row.what: row for row in found.rows}
    assert (rows["carried"].name, rows["carried"].different, rows["carried"].compared) == ("state", 4, 4)  # type: ignore[index]
    assert rows["carried"].first == (2,) and rows["carried"].largest == largest  # type: ignore[index]
    assert rows["scan output"].name == "following" and "iterations" not in rows  # type: ignore[index]


def test_branches_of_another_course_differ_in_their_iterations() -> None:
    debugger = at(sample("while_loop"), "until_one@4")
    debugger.set_value("number", 3)
    found = debugger.branches.difference("original", "edit-1")
    _, _, one = collatz(27)
    _, _, other = collatz(27, {4: 3})
    (iterations,) = [row for row in found.rows if row.what == "iterations"]
    assert (iterations.a, iterations.b) == (str(len(one)), str(len(other)))
    (carried_number,) = [row for row in found.rows if row.name == "number"]
    pairs = list(zip(one, other, strict=False))[4:]
    assert carried_number.compared == len(pairs)
    assert carried_number.different == sum(a != b for a, b in pairs)
    assert carried_number.largest == max(abs(a - b) for a, b in pairs)


def test_a_nan_on_one_side_is_said_and_is_no_distance_of_zero() -> None:
    debugger = at(sample("rwkv_overflow"), "time_mixing::kept_weight@7")
    debugger.set_value("key[0,3]", 80)
    found = debugger.branches.difference("original", "edit-1")
    (output, *_) = [row for row in found.rows if row.what == "model output"]
    assert output.largest is not None and np.isnan(output.largest)
    assert any("by NaN on one side" in line for line in difference_lines(found))
    assert record_data(found)["rows"][-1]["largest"] == "NaN"


def test_an_edit_that_changes_nothing_is_no_difference(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, with_folded(1.0, 2.0)), "loop@2")
    debugger.set_value("other", 2)
    found = debugger.branches.difference("original", "edit-1")
    assert found.first is None and found.computed is None and found.rows == ()
    interpreter = Interpreter(debugger)
    assert interpreter.execute("branch diff original").lines[-1].startswith("nothing that loops carry or give differs")
    with pytest.raises(UsageError, match="there is no branch 'x'"):
        interpreter.execute("branch diff x")


def test_a_comparison_can_be_paused(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, recurrence("Add", 1.0, -1)), "loop@2")
    debugger.set_value("constant", 2)
    asked = iter(range(50))
    found = debugger.branches.difference("original", "edit-1", paused=lambda: next(asked) == 49)
    assert found.stopped == "paused" and found.computed is not None and found.computed.name == "following"


def test_a_pickled_state_has_the_changed_constants(tmp_path: Path) -> None:
    x = np.array([1, 20, 300], np.float32)
    debugger = at(opened(tmp_path, rows_of_four(0), x), "loop@2")
    debugger.set_value("index", 2)
    again = pickle.loads(pickle.dumps(debugger.machine.snapshot()))
    assert fingerprint(again) == state_of(debugger.timeline)
    machine = Machine(compile_model(debugger.model), [x])
    machine.restore(again)
    for _ in machine.run():
        pass
    assert machine.outputs is not None and machine.outputs[0].tolist() == [602.0]


def test_a_tensor_iterator_that_was_given_a_trip_count_does_not_say_that_its_slices_are_used() -> None:
    interpreter = Interpreter(sample("reverse"))
    interpreter.execute("step 3")
    assert interpreter.execute("info trip").data["sentence"] == "ends after 8 iterations, when every slice is used"
    interpreter.execute("set trip-count = 2")
    assert (
        interpreter.execute("info trip").data["sentence"] == "ends after 2 iterations, when the trip count is reached"
    )
    stop = interpreter.execute("finish")
    assert stop.lines[1] == "  iteration 1 is closed, the last: trip count reached"
    sentence = interpreter.execute("info trip").data["sentence"]
    assert sentence == "ended after 2 iterations: the trip count, 2, is reached"
    with pytest.raises(UsageError, match="has begun 2 iterations, so"):
        interpreter.execute("set trip-count = 1")
    interpreter.execute("goto tick 3")
    with pytest.raises(UsageError, match="has begun 1 iteration, so"):
        interpreter.execute("set trip-count = 0")


# --- why a loop ended -----------------------------------------------------------------------------------------------


def page(debugger: Debugger) -> str:
    return overview_html(debugger.run_overview(), debugger.machine.compiled)


@each_row("name, at_iteration", [("while_loop", 3), ("do_while_loop", 2)])
def test_where_the_condition_was_set_nothing_that_the_body_computed_is_told_as_the_reason(
    name: str, at_iteration: int
) -> None:
    debugger = sample(name)
    debugger.goto_iteration(at_iteration)
    debugger.set_condition(False)
    facts = debugger.run_overview().loops[0]
    ending = facts.activations[0].ending
    assert ending is not None and ending.verdict is not None
    assert (ending.reason, ending.iteration, ending.is_set) == (EndReason.CONDITION, at_iteration, True)
    assert ending.verdict.value, "the body wanted to go on"
    assert f"ended after iteration {at_iteration}: the condition was set to false" in page(debugger)
    debugger.last()
    story = debugger.story(ends=True)
    assert story.end is not None and story.end.is_set
    told, more = verdict(story)
    assert told == "the condition was set to false" and more.startswith(", so no value decided it")
    assert not any(story.rows[link.row].layer.type in ("NotEqual", "Greater") for link in story.links)
    answer = Interpreter(debugger).execute("why the end")
    assert answer.lines[0].endswith(": the condition was set to false") and answer.data["why"]["set_by_hand"]


def test_where_the_trip_count_was_set_the_constant_is_not_the_reason() -> None:
    debugger = sample("for_loop")
    debugger.goto_iteration(2)
    debugger.set_trip_count(5)
    ending = debugger.run_overview().loops[0].activations[0].ending
    assert ending is not None
    assert (ending.reason, ending.iteration, ending.limit, ending.is_set) == (EndReason.TRIP_COUNT, 4, 5, True)
    assert "ended after iteration 4: the trip count was set to 5" in page(debugger)
    debugger.last()
    told, more = verdict(debugger.story(ends=True))
    assert told == "the trip count was set to 5" and "10" not in more
    assert Interpreter(debugger).execute("why the end").lines[0].endswith(": the trip count was set to 5")


def test_a_condition_that_was_set_to_true_is_not_why_a_loop_ended_later(tmp_path: Path) -> None:
    debugger = at(opened(tmp_path, countdown(), np.array([3], np.int64)), "countdown@2")
    debugger.set_condition(True)
    ending = debugger.run_overview().loops[0].activations[0].ending
    assert ending is not None and ending.verdict is not None
    assert (ending.iteration, ending.is_set, ending.verdict.value) == (3, False, False), "-1 is not above 0"


def test_a_loop_that_was_kept_from_beginning_says_what_was_set(tmp_path: Path) -> None:
    debugger = opened(tmp_path, countdown(), np.array([3], np.int64))
    while debugger.depth == 1:
        debugger.step()
    debugger.set_condition(False)
    ending = debugger.run_overview().loops[0].activations[0].ending
    assert ending is not None
    assert (ending.reason, ending.iteration, ending.is_set) == (EndReason.INITIAL_CONDITION, -1, True)
    assert "did not begin: the condition was set to false" in page(debugger)
