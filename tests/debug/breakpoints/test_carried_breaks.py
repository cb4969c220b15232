"""What a loop carries: stuck, repeating, growing; held against the same recurrence in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from tests.debug import loops_to_break as models
from tests.debug.oracle import after, closed, debugger, forward, moments, stops_both_ways
from tests.tables import each_row

X = np.array([1, 0, 0, 4, -9, 6, 6, 0], np.float32)


def test_a_carried_value_is_stuck(tmp_path: Path) -> None:
    found = moments(models.walk(), tmp_path, X)
    run = debugger(models.walk(), tmp_path, X)
    run.break_when("stuck")
    assert stops_both_ways(run) == closed(found, 1, 7), "where it begins to be"
    run.first()
    assert "the carried value 'total' is stuck in iteration 1 of Loop 'walk'" in run.continue_().details[0]


def test_a_carried_value_moves(tmp_path: Path) -> None:
    run = debugger(models.walk(), tmp_path, np.arange(1, 9, dtype=np.float32))
    run.break_when("stuck")
    assert stops_both_ways(run) == []


@each_row(("factor", "modulus", "start"), [(3, 7, 1), (2, 12, 3), (5, 97, 4), (10, 11, 1), (1, 9, 5)])
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


def test_a_carried_value_grows(tmp_path: Path) -> None:
    graph = models.recurrence("Multiply", -3.0, trips=12)
    run = debugger_with(graph, tmp_path, "grow>100")
    found = moments(graph, tmp_path)
    assert stops_both_ways(run) == closed(found, 4)
    run.first()
    assert (
        run.continue_()
        .details[0]
        .endswith("100 times what it began with in iteration 4 of Loop 'loop': 243, 1 at first")
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
