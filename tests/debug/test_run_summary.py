"""How the loops of a run ended: iterations by the algorithm that the sample is, whatever way the debugger took."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.engine.loops import EndReason
from tests.debug.branches.test_loop_edits import rows_of_four
from tests.debug.debugged import opened, sample

PASSES, PAIRS = "model > Loop 'passes'", "model > Loop 'passes' > Loop 'pairs_of_neighbours'"


def bubble_sort_passes(numbers: list[float]) -> list[int]:
    """The comparisons of each pass, up to the first pass that exchanges nothing."""
    compared = []
    for end in range(len(numbers) - 1, 0, -1):
        compared.append(end)
        exchanged = False
        for left in range(end):
            if numbers[left] > numbers[left + 1]:
                numbers[left], numbers[left + 1] = numbers[left + 1], numbers[left]
                exchanged = True
        if not exchanged:
            break
    return compared


def test_each_execution_is_counted_once_whatever_the_way_to_the_end() -> None:
    debugger = sample("nested_loop")
    expected = bubble_sort_passes([float(one) for one in debugger.inputs[0]])
    assert debugger.run_summary() is None
    debugger.last()
    debugger.first()
    debugger.goto_tick(100)
    debugger.reverse_step(30)
    debugger.last()
    found = debugger.run_summary()
    assert found is not None and not found.is_partial and found.other_rules == "openvino"
    loops = {loop.path: loop for loop in found.loops}
    assert (loops[PAIRS].iterations, loops[PAIRS].executions) == (sum(expected), len(expected))
    assert (loops[PAIRS].fewest, loops[PAIRS].most) == (min(expected), max(expected))
    assert loops[PASSES].iterations == len(expected) and dict(loops[PASSES].ended) == {EndReason.CONDITION: 1}
    assert found.last is not None and (found.last.layer.name, found.last.iteration) == ("passes", len(expected) - 1)
    assert debugger.goto_tick(found.last.tick).iteration == found.last.iteration and debugger.stop.closed


def test_an_edit_forgets_what_ended_after_it_and_a_branch_that_had_ended_is_partial(tmp_path: Path) -> None:
    debugger = opened(tmp_path, rows_of_four(1), np.array([1, 2, 3], np.float32))
    debugger.last()
    debugger.first()
    debugger.run_to("taken@1")
    debugger.set_trip_count(3)
    debugger.last()
    found = debugger.run_summary()
    assert found is not None and [loop.iterations for loop in found.loops] == [3] and not found.is_partial
    debugger.branch("original")
    debugger.last()
    debugger.branch("edit-1")
    found = debugger.run_summary()
    assert found is not None and found.loops == () and found.is_partial, "it ended before it was gone back to"
