"""Changed values: the run from there is that of an independent twin, and the original stays as it was."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from stepper.engine.frames import Phase
from stepper.engine.program import LoopPlan
from stepper.errors import UsageError
from tests.debug.debugged import ALL_RUNS, opened, run_named, sample, state_of
from tests.debug.loops_to_break import recurrence
from tests.debug.sample_twins import bubble_sort, collatz
from tests.engine.subjects import sums
from tests.models import Graph, carried, joined, last
from tests.tables import each_row

VALUES = [5.0, 1.0, 4.0, 2.0, 8.0]


def with_folded(one: float, other: float, trips: int = 6) -> Graph:
    """A Loop: state -> state * (one + other) + one, where the sum is computed from constants alone; a scan output."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    first = body.constant([one], name="one")
    both = body.apply("Add", first, body.constant([other], name="other"), name="both")
    following = body.apply("Add", body.apply("Multiply", state, both, name="product"), first, name="following")
    out = body.result(following, "next_state")
    final, all_of_them = net.loop(
        "loop", body, trips, True, [carried(net.constant([1.0]), state, out)], [last(out), joined(out)]
    )
    net.result(final, "final")
    net.result(all_of_them, "all")
    return net


def outputs(debugger: Debugger) -> list[Any]:
    debugger.last()
    assert debugger.machine.outputs is not None
    return [np.asarray(output).tolist() for output in debugger.machine.outputs]


def at(debugger: Debugger, target: str) -> Debugger:
    debugger.first()
    debugger.run_to(target)
    assert debugger.stop.reason is Reason.BREAK
    return debugger


# --- twins ----------------------------------------------------------------------------------------------------------


@each_row("iteration", [0, 1, 50, 110])
@each_row("number", [3, 64])
def test_an_edited_run_is_that_of_its_twin(iteration: int, number: int) -> None:
    debugger = at(sample("while_loop"), f"until_one@{iteration}")
    debugger.set_value("number", number)
    assert outputs(debugger) == list(collatz(27, {iteration: number}))


def test_an_edit_in_an_inner_loop_goes_through_both_loops() -> None:
    changed = [9.0, 8.0, 7.0, 6.0, 5.0]
    debugger = at(sample("nested_loop"), "passes@1::pairs_of_neighbours@2")
    debugger.set_value("values", np.array(changed, np.float32))
    assert outputs(debugger) == list(bubble_sort(VALUES, {(1, 2): changed})[:3])


def test_one_element_changes_alone() -> None:
    debugger = at(sample("nested_loop"), "passes@0::pairs_of_neighbours@3")
    before = np.array(debugger.frame.values[debugger.frame.program.parameters[1]])
    debugger.set_value("values[-1]", -3)
    changed = [*before[:-1].tolist(), -3.0]
    assert outputs(debugger) == list(bubble_sort(VALUES, {(0, 3): changed})[:3])


def test_a_number_fills_a_slice() -> None:
    debugger = at(sample("nested_loop"), "passes@0::pairs_of_neighbours@0")
    debugger.set_value("values[1:4]", 7)
    assert outputs(debugger) == list(bubble_sort(VALUES, {(0, 0): [5.0, 7.0, 7.0, 7.0, 8.0]})[:3])


def test_what_a_result_holds_between_iterations_is_what_comes_in_next() -> None:
    debugger = at(sample("while_loop"), "until_one@4")
    while not debugger.stop.closed:
        debugger.next()
    gone_out = collatz(27)[2][4]
    with pytest.raises(UsageError, match="replaced when the next iteration begins, by what 'number_next_result' is"):
        debugger.set_value("number", 3)
    debugger.set_value("number_next", 3)
    steps, peak, numbers = collatz(27, {5: 3})
    assert numbers[4] == gone_out  # the piece of this iteration is recorded already
    assert outputs(debugger) == [steps, peak, numbers]


def test_an_input_can_be_changed_before_anything_runs() -> None:
    debugger = sample("while_loop")
    debugger.set_value("start", 6)
    assert outputs(debugger) == list(collatz(6))
    debugger.first()
    assert debugger.branches.is_edited


def test_an_initial_value_can_be_changed_when_the_loop_is_entered(tmp_path: Path) -> None:
    debugger = opened(tmp_path, sums(), np.array([1, 2, 3, 4, 5], np.float32))
    while debugger.depth == 1:
        debugger.step()
    debugger.set_value("total", 10)
    total = 10.0
    for item in (-1, -2, -3, -4, -5):
        total = 2 * (total + item)
    assert outputs(debugger)[0] == [abs(total)]


# --- the original and its branches ----------------------------------------------------------------------------------


def test_the_original_stays() -> None:
    debugger = at(sample("while_loop"), "until_one@9")
    tick = debugger.machine.tick
    debugger.set_value("number", 5)
    assert (debugger.branches.name, debugger.branches.is_edited) == ("edit-1", True)
    edited = outputs(debugger)
    debugger.branch("original")
    assert (debugger.machine.tick, debugger.branches.is_edited) == (tick, False)
    assert outputs(debugger) == list(collatz(27))
    debugger.branch("edit-1")
    assert debugger.machine.finished and outputs(debugger) == edited == list(collatz(27, {9: 5}))


def test_going_back_before_the_edit_and_forward_again_makes_it_again() -> None:
    debugger = at(sample("while_loop"), "until_one@9")
    tick = debugger.machine.tick
    debugger.set_value("number", 5)
    edited = state_of(debugger.timeline)
    for back in (tick - 1, 3, 0):
        debugger.goto_tick(back)
        assert not debugger.branches.is_edited or back == tick
        debugger.goto_tick(tick)
        assert state_of(debugger.timeline) == edited
        debugger.goto_tick(back)
        assert outputs(debugger) == list(collatz(27, {9: 5}))
    assert debugger.timeline.warnings == []


def test_branches_do_not_know_of_each_other() -> None:
    debugger = at(sample("while_loop"), "until_one@9")
    debugger.set_value("number", 5)
    debugger.branch("original")
    debugger.set_value("number", 7)
    assert debugger.branches.name == "edit-2"
    debugger.run_to("until_one@12")
    debugger.set_value("number", 32)
    assert debugger.branches.name == "edit-2"  # nothing is lost there
    for _ in range(2):
        debugger.branch("edit-1")
        assert outputs(debugger) == list(collatz(27, {9: 5}))
        debugger.branch("original")
        assert outputs(debugger) == list(collatz(27))
        debugger.branch("edit-2")
        assert outputs(debugger) == list(collatz(27, {9: 7, 12: 32}))
    assert [branch.name for branch in debugger.branches] == ["edit-1", "edit-2", "original"]
    assert [len(branch.edited_at) for branch in debugger.branches] == [1, 2, 0]


def test_an_edit_before_another_one_does_not_lose_it() -> None:
    debugger = at(sample("while_loop"), "until_one@9")
    debugger.set_value("number", 5)
    debugger.first()
    debugger.run_to("until_one@2")
    debugger.set_value("number", 9)
    assert debugger.branches.name == "edit-2"
    assert outputs(debugger) == list(collatz(27, {2: 9}))
    debugger.branch("edit-1")
    assert outputs(debugger) == list(collatz(27, {9: 5}))


def test_a_named_branch_begins_where_the_run_stands() -> None:
    debugger = at(sample("while_loop"), "until_one@3")
    tick = debugger.machine.tick
    debugger.branch("mine")
    assert debugger.machine.tick == tick
    debugger.set_value("number", 8)
    assert debugger.branches.name == "mine"
    assert outputs(debugger) == list(collatz(27, {3: 8}))


@each_row("name", ["", "two words", "\x1b[2J"])
def test_a_branch_has_a_printable_name(name: str) -> None:
    with pytest.raises(UsageError, match="one word"):
        sample("for_loop").branch(name)


def test_every_tick_of_a_branch_is_the_same_whichever_way_one_comes() -> None:
    debugger = at(sample("nested_loop"), "passes@1::pairs_of_neighbours@1")
    debugger.set_value("values[0]", 6)
    debugger.goto_tick(0)
    states = []
    while not debugger.machine.finished:
        states.append(state_of(debugger.timeline))
        debugger.goto_tick(debugger.machine.tick + 1)
    ticks = list(range(len(states)))
    random.Random(4).shuffle(ticks)
    for tick in ticks:
        debugger.goto_tick(tick)
        assert state_of(debugger.timeline) == states[tick]
    assert debugger.timeline.warnings == []


def settable(debugger: Debugger) -> list[str]:
    """Addresses in the innermost frame of what has a value that is not replaced at once."""
    frame = debugger.frame
    activation = frame.activation
    plan = None if activation is None else activation.plan
    fresh = set()
    if isinstance(plan, LoopPlan) and frame.phase is Phase.BETWEEN and activation is not None:
        fresh = {entry.parameter for entry in plan.sliced} | {number for number, _ in plan.current_iteration}
        fresh |= {to for to, result in plan.carried if to != result and activation.iteration >= 0}
    return [
        f"id={layer}" + (f":{output}" if output else "")
        for (layer, output), slot in frame.program.slots.items()
        if frame.is_current(slot) and frame.program.template[slot] is None and slot not in fresh
    ]


@ALL_RUNS
def test_setting_what_is_there_changes_nothing(name: str, tmp_path: Path) -> None:
    expected = outputs(run_named(name, tmp_path))
    debugger = run_named(name, tmp_path)
    debugger.branch("same")
    for _ in range(40):
        if debugger.machine.finished:
            break
        for address in settable(debugger):
            slot = debugger.frame.program.slots[int(address.split(":")[0][3:]), int((address + ":0").split(":")[1])]
            debugger.set_value(address, debugger.frame.values[slot])
        debugger.step()
    assert outputs(debugger) == expected
    debugger.branch("original")
    assert outputs(debugger) == expected and debugger.timeline.warnings == []


# --- what looks on --------------------------------------------------------------------------------------------------


def test_breakpoints_judge_a_branch_by_its_own_values() -> None:
    debugger = sample("while_loop")
    debugger.break_at("number_next", condition="number_next > 4000")
    debugger.break_when("stuck")
    debugger.breakpoints.enable(2, enabled=False)
    at(debugger, "until_one@5")
    debugger.set_value("number", 8)
    assert debugger.continue_().reason is Reason.END
    debugger.branch("original")
    assert debugger.continue_().reason is Reason.BREAK
    assert debugger.stop.iteration == next(index for index, number in enumerate(collatz(27)[2]) if number > 4000)


def test_watches_forget_what_holds_no_longer() -> None:
    debugger = at(sample("while_loop"), "until_one@5")
    watch = debugger.watch("number")
    debugger.run_to("until_one@8")
    debugger.goto_iteration(5)
    debugger.set_value("number", 8)
    assert [(reading.iteration, reading.text) for reading in watch.readings] == [(5, "8")]


# --- what is refused ------------------------------------------------------------------------------------------------


def typed(type: str, dtype: Any) -> Callable[[], Graph]:
    def graph() -> Graph:
        net = Graph()
        body = net.body()
        x = net.parameter("x", type, dims=(2,))
        state = body.parameter("state", type, dims=(2,))
        result = body.result(body.apply("Add", state, body.constant(np.array([1, 1]), dtype), name="more"))
        net.result(net.loop("loop", body, 3, True, [carried(x, state, result)], [last(result)])[0])
        return net

    return graph


@each_row(
    ("address", "value", "problem"),
    [
        ("state", 1.5, "of type i64, which cannot hold 1.5"),
        ("state", [1.0, float("nan")], "of type i64, which cannot hold these 2 values"),
        ("state", 2.0**70, "which cannot hold"),
        ("state", [1, 2, 3], "the shape [2], the value has [3]"),
        ("state[0]", [1, 2], "the shape [], the value has [2]"),
        ("state[2]", 1, "no such element"),
        ("state@0", 1, "names an iteration"),
        ("more", 1, "has no value here"),
        ("nothing_like_it", 1, "there is nothing called"),
        ("state", "text", "can only be set to numbers"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(
    tmp_path: Path, address: str, value: Any, problem: str
) -> None:
    debugger = opened(tmp_path, typed("i64", np.int64)(), np.array([1, 2]))
    at(debugger, "loop@1")
    before = state_of(debugger.timeline)
    with pytest.raises(UsageError) as refused:
        debugger.set_value(address, value)
    assert problem in str(refused.value)
    assert state_of(debugger.timeline) == before and debugger.branches.name == "original"


def test_what_is_computed_from_constants_alone_is_refused(tmp_path: Path) -> None:
    debugger = opened(tmp_path, with_folded(1.0, 2.0))
    debugger.step(2)
    with pytest.raises(UsageError, match="'both' is computed from constants alone, before the run; set one of those"):
        debugger.set_value("both", 5)


def test_a_slice_is_refused_between_iterations(tmp_path: Path) -> None:
    debugger = opened(tmp_path, sums(), np.array([1, 2, 3, 4, 5], np.float32))
    while not debugger.stop.closed:
        debugger.step()
    with pytest.raises(UsageError, match=r"replaced when the next iteration begins; set it once that has begun"):
        debugger.set_value("item", 10)


def test_the_end_of_the_run_cannot_be_changed() -> None:
    debugger = sample("for_loop")
    debugger.last()
    with pytest.raises(UsageError, match="the run has ended"):
        debugger.set_value("principal", 1)


def test_the_branches_of_a_run_share_its_budget_of_memory(tmp_path: Path) -> None:
    budget = 100_000
    debugger = opened(tmp_path, recurrence("Add", 1.0, trips=5000), memory=budget)
    timelines = [debugger.timeline]
    for number in range(4):
        at(debugger, f"loop@{1000 + number}")
        debugger.branch(f"course-{number}")
        debugger.set_value("state", float(number))
        debugger.last()
        timelines = [debugger.timeline, *debugger.branches._others.values()]
        assert sum(timeline.history.bytes for timeline in timelines) <= budget
    assert len(timelines) == 5
    debugger.branch("original")
    assert outputs(debugger) == [[5001.0]]
