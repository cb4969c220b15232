"""Values of operations that are looked at: those that were asked for alone, of every iteration, and bounded."""

from __future__ import annotations

import numpy as np

from stepper.debug.iterations.cell_store import IterationStatistics, ListedValues
from stepper.element_types import Array
from stepper.engine.frames import Phase
from tests.debug.debugged import at_iteration, sample, state_of
from tests.tui.wide_models import wide_loop


def test_values_are_those_of_the_run_in_every_iteration_and_the_present_stays() -> None:
    debugger = sample("date_normaliser")
    at_iteration(debugger, 5)
    program = debugger.frame.program
    names = [operation.layer.name.rpartition("/")[2] for operation in program.operations]
    asked = [names.index(name) for name in ("Softmax", "Sigmoid", "Add_3")]
    statistics = IterationStatistics(debugger.timeline)
    statistics.see()
    assert not statistics.view(1).values, "nobody has asked"
    statistics.want("grid", program, asked)
    before = state_of(debugger.timeline)
    while statistics.fill_between(1, 0, 9, lambda: False):
        pass
    assert not statistics.fill_between(1, 0, 9, lambda: False), "all is known, however often one asks"
    assert state_of(debugger.timeline) == before
    found = statistics.view(1).values
    assert set(found) == set(asked)
    other = sample("date_normaliser")
    at_iteration(other, 0)
    for iteration in range(10):
        at_iteration(other, iteration)
        for index in asked:
            value = other.frame.values[program.operations[index].outputs[0]]
            assert value is not None and 1 < value.size <= 64
            np.testing.assert_array_equal(found[index].over(iteration, iteration + 1), np.ravel(value))


def test_another_one_who_looks_takes_nothing_away_and_new_ones_are_fetched() -> None:
    debugger = sample("for_loop")
    debugger.run_to("years@0")
    at_iteration(debugger, 3)
    program = debugger.frame.program
    statistics = IterationStatistics(debugger.timeline)
    statistics.want("list", program, [0])
    while statistics.fill(1, 16, lambda: False):
        pass
    statistics.want("grid", program, [1])
    assert statistics.fill(1, 16, lambda: False), "the values of the new one are not known yet"
    statistics.see()
    found = statistics.view(1).values
    assert set(found) == {0, 1} and found[1].over(0, 1) is not None
    statistics.want("grid", None, ())
    assert set(statistics.view(1).values) == {0}


def test_a_stop_reads_small_values_and_leaves_off_when_asked() -> None:
    debugger = sample("for_loop")
    at_iteration(debugger, 0)
    frame = debugger.frame
    kept = ListedValues([0, 1])
    kept.want([0, 1])
    frame.values[0], frame.values[1] = np.zeros(4, np.float32), np.ones(10_000, np.float32)
    frame.phase = Phase.BETWEEN
    assert kept.see(frame, 0, most=100) and set(kept.view()) == {0}
    assert not kept.see(frame, 0, enough=lambda: True), "nobody has the time"
    assert kept.see(frame, 0) and set(kept.view()) == {0, 1}
    assert not kept.see(frame, 0), "all is known"
    texts = ListedValues([0])
    texts.want([0])
    frame.values[0] = np.array(["a"])
    assert not texts.see(frame, 0) and not texts.view(), "a text has no numbers"
    texts.close(0)
    assert not texts.lacks(0), "it is not asked for again"


def test_of_a_large_body_the_operations_near_the_moment_are_seen_first_and_the_others_when_there_is_time() -> None:
    debugger = wide_loop(3_200, 20)
    debugger.run_to("wide@3")
    debugger.next(900)
    statistics = IterationStatistics(debugger.timeline)
    statistics.see()
    frame, count = debugger.frame, len(debugger.frame.program.operations)
    assert frame.pc > 800, frame.pc

    def known(iteration: int) -> Array:
        found = statistics.view(1)
        return np.flatnonzero(found.known[iteration - found.first])

    assert known(3).tolist() == list(range(frame.pc - 500, frame.pc))
    assert known(2).tolist() == list(range(frame.pc, frame.pc + 500))
    while statistics.see_far():
        pass
    assert known(3).tolist() == list(range(frame.pc)) and known(2).tolist() == list(range(frame.pc, count))
