"""Going to an iteration: the same place in it, counted from either end; a pause on the way is obeyed."""

from __future__ import annotations

import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason
from stepper.errors import UsageError
from tests.debug.debugged import at_iteration, sample, state_of
from tests.debug.pausing import pause_after

STRAIGHT_AND_NESTED = pytest.mark.parametrize("name", ["while_loop", "reverse", "nested_loop"])


def _iterations(debugger: Debugger) -> int:
    """Of the first loop of the model's own graph, by a plain run of the engine."""
    run = Debugger(debugger.model, dict(enumerate(debugger.inputs)), debugger.machine.rules)
    closed = 0
    for event in run.machine.run(stepper.Every.ITERATION):
        if event.kind.name == "ITERATION" and len(run.machine.stack) == 2:
            closed += 1
        if event.kind.name == "LEFT" and len(run.machine.stack) == 1:
            break
    return closed


@STRAIGHT_AND_NESTED
def test_iterations_are_counted_from_either_end(name: str) -> None:
    debugger = sample(name)
    count = _iterations(debugger)
    at_iteration(debugger, 0)
    tick, state = debugger.stop.tick, state_of(debugger.timeline)
    for iteration in range(count):
        assert debugger.goto_iteration(iteration).iteration == iteration
        assert (debugger.stop.closed, debugger.depth) == (True, 2)
        after = debugger.stop.tick
        assert debugger.goto_iteration(iteration - count).tick == after
    assert debugger.goto_iteration(-count).tick == tick
    assert state_of(debugger.timeline) == state
    with pytest.raises(UsageError, match=r"there is no iteration -[0-9]+: the loop runs [0-9]+ iterations, 0 to"):
        debugger.goto_iteration(-count - 1)


@STRAIGHT_AND_NESTED
def test_a_place_inside_of_the_body_is_kept(name: str) -> None:
    debugger = sample(name)
    while debugger.stop.iteration is None:
        debugger.step()
    debugger.next()
    place = (debugger.frame.pc, debugger.frame.phase, debugger.depth)
    assert debugger.goto_iteration(-1).iteration == _iterations(debugger) - 1
    assert (debugger.frame.pc, debugger.frame.phase, debugger.depth) == place


@STRAIGHT_AND_NESTED
def test_a_pause_on_the_way_to_the_last_iteration_is_where_the_run_stays(name: str) -> None:
    debugger = sample(name)
    at_iteration(debugger, 1)
    tick = debugger.stop.tick
    pause_after(debugger, 0)
    stop = debugger.goto_iteration(-1)
    assert (stop.reason, stop.tick, stop.iteration) == (Reason.PAUSED, tick, 1)
    assert debugger.goto_iteration(-1).iteration == _iterations(debugger) - 1


@STRAIGHT_AND_NESTED
@pytest.mark.parametrize("beyond", [0, 1, 10**12, 10**30])
def test_an_iteration_that_there_is_not_is_refused_and_the_present_stays(name: str, beyond: int) -> None:
    debugger = sample(name)
    count = _iterations(debugger)
    at_iteration(debugger, 0)
    present, state = debugger.stop, state_of(debugger.timeline)
    with pytest.raises(UsageError, match=rf"there is no iteration .*: the loop runs (at most \d|{count}) iterations"):
        debugger.goto_iteration(count + beyond)
    with pytest.raises(UsageError, match="there is no iteration"):
        debugger.next_iteration(count + beyond)
    assert debugger.stop == present and state_of(debugger.timeline) == state
    assert debugger.goto_iteration(count - 1).iteration == count - 1
