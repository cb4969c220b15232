"""Numbers of operations by iteration: fetched without moving the run, and bounded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.debug.iterations.cell_store import CellStore, IterationStatistics, Tile
from stepper.tensors.statistics import number_of
from tests.debug.debugged import at_iteration, sample, state_of


def test_iterations_to_come_are_computed_and_the_present_stays(tmp_path: Path) -> None:
    debugger = sample("date_normaliser")
    at_iteration(debugger, 2)
    statistics = IterationStatistics(debugger.timeline, "rms")
    before, furthest = state_of(debugger.timeline), debugger.timeline.furthest
    while statistics.fill_between(1, 0, 19, lambda: False):
        pass
    assert state_of(debugger.timeline) == before and debugger.timeline.furthest == furthest
    part = statistics.view(1)
    assert part.first == 0 and len(part.known) == 11, "the present and eight iterations ahead"
    other = sample("date_normaliser")
    at_iteration(other, 0)
    for iteration in range(11):
        at_iteration(other, iteration)
        program = other.frame.program
        for index, operation in enumerate(program.operations):
            slot = program.shown_slot(operation.outputs[0])  # of a value that grows what the iteration adds
            wanted = number_of(other.frame.values[slot], "rms")
            known = part.numbers[iteration, index] if part.known[iteration, index] else None
            assert known == wanted or (known is not None and np.isnan(known))


def test_iterations_seen_longest_ago_go_first() -> None:
    store = CellStore(3, most_cells=3 * 256)
    row = Tile(np.array([[1.0, np.inf, np.nan]]), np.ones((1, 3), bool), np.zeros((1, 3), np.int32))
    for iteration in range(1000):
        assert store.missing(iteration, 1, 3).tolist() == [1, 2]
        store.put(iteration, store.missing(iteration, 0, 3), row)
        assert not store.missing(iteration, 0, 3).size
        store.close(iteration)
    assert store.cells == 3 * 256
    assert store.lacks(0) and not store.lacks(999)
    store.put(1000, np.arange(1), row)
    shown = store.window(1000, 2)
    store.put(1000, np.arange(1, 3), row)
    assert not shown.known[0, 1:].any() and not shown.known[1].any(), "what was given out does not change"
    assert store.window(1000, 1).known.all()


def test_an_infinity_is_not_hidden_by_the_least_or_largest_element() -> None:
    values = np.array([1.0, -np.inf], np.float32)
    assert number_of(values, "max") == np.inf and number_of(-values, "min") == np.inf
