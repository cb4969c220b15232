"""The moments where an expression holds: held against a walk over every moment of the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import force_setattr

from stepper.debug.debugger import Debugger
from stepper.debug.overview import runs
from stepper.engine.frames import EventKind, Every, Frame, place
from stepper.errors import UsageError
from stepper.query.expressions import ExpressionError
from tests.debug.debugged import at_iteration, opened, run_named, sample, state_of
from tests.debug.iterations.test_series import counting
from tests.models import Graph, carried, last
from tests.tables import each_row

Holds = Callable[[dict[str, Any], int], bool]


def brute_force(debugger: Debugger, names: list[str], path: str, holds: Holds) -> list[tuple[int, int, str]]:
    """Of every iteration of the loop (by the names of its path) the first moment at which all names have their value,
    if the condition holds then."""
    machine = Debugger(debugger.model, dict(enumerate(debugger.inputs)), debugger.machine.rules).machine
    found: list[tuple[int, int, str]] = []
    asked: set[tuple[str, int]] = set()
    while not machine.finished:
        machine.advance()
        if not machine.stack:
            break
        frame = machine.stack[-1]
        if frame.activation is None or "/".join(layer.name for layer in frame.program.path) != path:
            continue
        values = values_of(frame, names)
        iteration = frame.activation.iteration
        key = (place(machine.stack), iteration)
        if values is None or iteration < 0 or key in asked:
            continue
        asked.add(key)
        if holds(values, iteration):
            found.append((machine.tick, iteration, place(machine.stack)))
    return found


def values_of(frame: Frame, names: list[str]) -> dict[str, Any] | None:
    ids = {layer.name: layer.id for layer in frame.program.graph.layers}
    slots = {name: frame.program.slots[ids[name], 0] for name in names}
    if not all(frame.is_current(slot) for slot in slots.values()):
        return None
    return {name: frame.values[slot] for name, slot in slots.items()}


def small_step(values: dict[str, Any], _iteration: int) -> bool:
    return bool(np.abs(values["h"]).max() > 0.3)


CASES: list[tuple[str, str, list[str], str, Holds]] = [
    ("specification_lstm", "max(abs(h)) > 0.3", ["h"], "lstm", small_step),
    ("specification_lstm", "y_row[0,0,3] > 0", ["y_row"], "lstm", lambda v, _: bool(v["y_row"][0, 0, 3] > 0)),
    (
        "specification_lstm",
        "iter >= 5 and x[0,0] < h[0,0]",
        ["x", "h"],
        "lstm",
        lambda v, i: bool(i >= 5 and v["x"][0, 0] < v["h"][0, 0]),
    ),
    ("while_loop", "until_one::is_even", ["is_even"], "until_one", lambda v, _: bool(v["is_even"])),
    ("while_loop", "until_one::number > 500", ["number"], "until_one", lambda v, _: bool(v["number"] > 500)),
    ("for_loop", "iter % 3 == 1 and balance[0] > 0", ["balance"], "years", lambda _, i: i % 3 == 1),
]


@each_row("name, text, names, path, holds", CASES, ids=[case[1] for case in CASES])
@each_row("tick", [0, 17, 40])
def test_it_finds_what_a_walk_over_the_whole_run_finds(
    name: str, text: str, names: list[str], path: str, holds: Holds, tick: int
) -> None:
    debugger = sample(name)
    expected = brute_force(debugger, names, loop_path(debugger) if path == "years" else path, holds)
    assert expected, "a case that never holds tests nothing"
    debugger.goto_tick(tick)
    before = state_of(debugger.timeline)
    found = debugger.find(text, "all")
    assert [(moment.tick, moment.iteration, moment.place) for moment in found.moments] == expected
    assert not found.more and found.stopped == "" and found.failures == 0
    ticks = [moment[0] for moment in expected]
    for which, wanted in (
        ("first", ticks[:1]),
        ("last", ticks[-1:]),
        ("next", [at for at in ticks if at > tick][:1]),
        ("previous", [at for at in ticks if at < tick][-1:]),
    ):
        assert [moment.tick for moment in debugger.find(text, which).moments] == wanted, which
    assert state_of(debugger.timeline) == before and not debugger.timeline.warnings


def loop_path(debugger: Debugger) -> str:
    return next(layer.name for layer in debugger.model.graph.layers if layer.is_loop)


def test_a_moment_found_is_where_the_values_are_just_there() -> None:
    debugger = sample("specification_lstm")
    moment = debugger.find("y_row[0,0,3] > 0").moments[0]
    stop = debugger.goto_tick(moment.tick)
    assert stop.done is not None and stop.done.layer.name == "y_row"
    assert (stop.iteration, stop.place) == (moment.iteration, moment.place)
    value = debugger.view().done.outputs[0].array  # type: ignore[union-attr]
    assert value is not None and value[0, 0, 3] > 0


def test_in_nested_loops_every_run_of_the_inner_one_is_asked() -> None:
    debugger = sample("nested_loop")
    found = debugger.find("pairs_of_neighbours::position == 1", "all")
    assert found.asked == 4 + 3 + 2 and len(found.moments) == 3
    assert [moment.iteration for moment in found.moments] == [1, 1, 1]
    assert [moment.place.split(" > ")[1] for moment in found.moments] == [f"Loop 'passes' #{i}" for i in range(3)]


def test_a_value_of_the_loop_around_may_be_named_with_one_inside() -> None:
    debugger = sample("nested_loop")
    debugger.step(12)
    found = debugger.find("passes_done == 1 and position == 2", "all")
    assert [moment.place for moment in found.moments] == ["model > Loop 'passes' #1 > Loop 'pairs_of_neighbours' #2"]


def test_in_a_branch_it_is_asked_when_that_side_runs(tmp_path: Path) -> None:
    debugger = run_named("branch in a loop", tmp_path)
    found = debugger.find("half < 5", "all")
    # 3 10 5 16 8 4 2 1: halved in iterations 1 and 3 to 6
    assert found.asked == 5 and [moment.iteration for moment in found.moments] == [4, 5, 6]
    assert [moment.iteration for moment in debugger.find("n == 4 or n == 16", "all").moments] == [3, 5]


def test_in_the_models_own_graph_it_is_asked_once(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    found = debugger.find("after > 0", "all")
    assert found.asked == 1 and [moment.iteration for moment in found.moments] == [None]
    assert debugger.find("model::x[0] == 1", "all").moments[0].tick == 0


def test_the_value_one_iteration_before_can_be_asked_for(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(10))
    found = debugger.find("iter > 0 and more == prev(more) + 1", "all")
    assert [moment.iteration for moment in found.moments] == list(range(1, 10)) and found.failures == 0
    found = debugger.find("x > prev(x)", "all")
    assert len(found.moments) == 9 and found.failures == 1 and "one iteration before" in found.failure
    at_iteration(debugger, 4)
    debugger.step()
    following = debugger.find("more > prev(more)", "next")
    assert following.moments[0].iteration == 5 and following.failures == 0
    debugger.step()
    assert debugger.find("more > prev(more)", "next").moments[0].iteration == 6


def test_a_limit_ends_the_search_and_says_so(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(10))
    found = debugger.find("x >= 0", "all", limit=4)
    assert [moment.iteration for moment in found.moments] == [0, 1, 2, 3] and found.more
    assert not debugger.find("x >= 0", "all", limit=10).more
    one = debugger.find("x >= 0", "all", limit=1)
    assert len(one.moments) == 1 and one.more


def test_a_search_ends_at_the_tick_that_was_set(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(-1))
    found = debugger.find("more > 5", "all", until=4 * 10)
    assert found.stopped == "tick 40 is reached"
    assert [moment.iteration for moment in found.moments] == [5, 6, 7, 8, 9] and found.moments[-1].tick == 39


def test_an_endless_search_can_be_interrupted(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(-1))
    at_iteration(debugger, 2)
    before = state_of(debugger.timeline)
    threading.Timer(0.2, debugger.pause).start()
    found = debugger.find("x < 0", "last")
    assert found.stopped == "paused" and found.moments == () and found.asked > 10
    assert state_of(debugger.timeline) == before


def test_where_the_run_fails_what_was_found_before_is_given(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counting(-1), max_iterations=6)
    found = debugger.find("x > 3", "all")
    assert [moment.iteration for moment in found.moments] == [4, 5] and "more than 6 iterations" in found.stopped


def test_in_an_iteration_that_fails_later_the_moment_is_found_too(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    body = next(program for program in debugger.machine.compiled.programs if program.path)
    function, calls = body.operations[1].function, []
    assert function is not None

    def failing(*inputs: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise ValueError("broken")
        return function(*inputs)

    force_setattr(body, "code", (body.code[0], (failing, *body.code[1][1:])))
    found = debugger.find("added < 100", "all")
    assert [moment.iteration for moment in found.moments] == [0, 1, 2] and "broken" in found.stopped
    assert [moment.tick for moment in found.moments] == [4, 8, 12]
    assert debugger.machine.tick == 0


@each_row(
    "text, reason",
    [
        ("h_next >", "expected a number"),
        ("nothing > 1", "nothing called 'nothing'"),
        ("h_next@3[0,0] > 1", "may not say which"),
        ("ref(h_next)[0,0] > 1", "no reference run"),
    ],
)
def test_an_expression_that_can_hold_nowhere_is_refused(text: str, reason: str) -> None:
    debugger = sample("specification_lstm")
    before = state_of(debugger.timeline)
    with pytest.raises(UsageError, match=reason):
        debugger.find(text)
    assert state_of(debugger.timeline) == before


def test_values_that_are_never_there_together_are_refused(tmp_path: Path) -> None:
    debugger = run_named("branch in a loop", tmp_path)
    with pytest.raises(UsageError, match="never runs inside"):
        debugger.find("half > triple")


def test_an_expression_without_a_truth_counts_as_a_failure() -> None:
    debugger = sample("specification_lstm")
    found = debugger.find("h_next > 0", "all")
    assert found.moments == () and found.failures == found.asked == 25 and "any() or all()" in found.failure


def test_an_unknown_choice_is_refused() -> None:
    debugger = sample("for_loop")
    with pytest.raises(UsageError, match="first, next, previous, last, all"):
        debugger.find("balance[0] > 0", "second")
    with pytest.raises(UsageError, match="limit"):
        debugger.find("balance[0] > 0", "all", limit=0)
    with pytest.raises(ExpressionError):
        debugger.find("(", "all")


def test_only_the_iteration_number_can_be_asked_for_inside_a_loop() -> None:
    debugger = sample("for_loop")
    at_iteration(debugger, 1)
    assert [moment.iteration for moment in debugger.find("iter > 7", "all").moments] == [8, 9]


@each_row(("word", "is_bad"), [("nan", np.isnan), ("inf", np.isinf)])
def test_nan_and_inf_are_found_where_they_are_born_from_any_moment(word: str, is_bad: Callable[[Any], Any]) -> None:
    debugger = sample("rwkv_overflow")
    births = []
    machine = sample("rwkv_overflow").machine
    for event in machine.run(Every.OPERATION):
        if event.kind is EventKind.OPERATION:
            operation = event.frame.program.operations[event.frame.pc - 1]
            values = [np.asarray(event.frame.values[slot]) for slot in (operation.inputs[0], operation.outputs[0])]
            inputs = [np.asarray(event.frame.values[slot]) for slot in operation.inputs]
            if is_bad(values[1]).any() and not any(is_bad(one).any() for one in inputs):
                births.append((event.tick, operation.layer.name))
    first = births[0][0]
    assert [one.tick for one in debugger.find(word).moments] == [first]
    of_each = {name: tick for tick, name in reversed(births)}
    assert [one.tick for one in debugger.find(word, "all").moments] == sorted(of_each.values())
    debugger.run_to("key@11")
    assert debugger.find(word).moments[0].tick == first and debugger.stop.tick == debugger.machine.tick
    assert [one.tick for one in debugger.find(word, "previous").moments] == [max(of_each.values())]
    assert not debugger.find(word, "next").moments


def test_from_the_start_the_only_loop_is_meant() -> None:
    debugger = sample("rwkv_overflow")
    (found,) = debugger.find("iter == 3").moments
    assert found.iteration == 3
    with pytest.raises(UsageError, match="no loop here"):
        sample("nested_loop").find("iter == 1")


def test_the_last_origin_is_not_told_where_the_search_ended_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Graph()
    body = net.body()
    k = body.parameter("k", dims=(1,))
    left = [body.apply("Subtract", body.constant([float(limit)]), k) for limit in (5, 10, 20_000)]
    roots = [last(body.result(body.apply("Sqrt", one))) for one in left]
    after = body.result(body.apply("Add", k, body.constant([1.0])), "after")
    entries = [carried(net.parameter("x", dims=(1,)), k, after)]
    for output in net.loop("count", body, 20_010, True, entries, roots):
        net.result(output)
    monkeypatch.setattr(runs, "MOST_BIRTHS", 2)
    for which, stopped in (("last", "2 origins were found"), ("first", "")):
        assert opened(tmp_path, net, np.zeros(1, np.float32)).find("nan", which).stopped == stopped
    monkeypatch.setattr(runs, "MOST_BIRTHS", 3)
    found = opened(tmp_path, net, np.zeros(1, np.float32)).find("nan", "last")
    assert (found.stopped, [one.iteration for one in found.moments]) == ("", [20_001])
