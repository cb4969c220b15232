"""Iterations from anywhere: the next and the previous of any loop, the N-th of the only one, into a loop by its name.

Where iterations begin and end is told by a plain run of the engine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.engine.frames import EventKind
from stepper.errors import UsageError
from stepper.query.address_resolution import AmbiguousAddress
from tests.debug.debugged import opened, sample, state_of
from tests.models import Graph, carried, last

ANY = pytest.mark.parametrize("name", ["while_loop", "reverse", "nested_loop", "date_normaliser"])


def ticks_of(debugger: Debugger, kind: EventKind) -> list[int]:
    """The ticks of all events of a kind that are of iterations, in a run of its own."""
    run = Debugger(debugger.model, dict(enumerate(debugger.inputs)), debugger.machine.rules)
    found = []
    for event in run.machine.run(stepper.Every.OPERATION):
        activation = event.frame.activation if event.kind is kind else None
        if activation is not None and activation.operation.layer.is_loop:
            found.append(event.tick)
    return found


@ANY
def test_outside_of_loops_the_next_iteration_is_the_first_that_begins_and_the_previous_the_last_that_ended(
    name: str,
) -> None:
    debugger = sample(name)
    begun, closed = ticks_of(debugger, EventKind.BEGUN), ticks_of(debugger, EventKind.ITERATION)
    assert debugger.next_iteration().tick == begun[0]
    debugger.first()
    assert debugger.next_iteration(2).tick == begun[1]
    debugger.last()
    assert debugger.previous_iteration().tick == closed[-1]
    debugger.last()
    assert debugger.previous_iteration(2).tick == closed[-2]


@ANY
def test_where_there_is_none_that_is_said_and_the_present_stays(name: str) -> None:
    debugger = sample(name)
    with pytest.raises(UsageError, match="no loop has run an iteration before this position"):
        debugger.previous_iteration()
    assert debugger.machine.tick == 0
    debugger.last()
    debugger.reverse_next()
    present, state = debugger.machine.tick, state_of(debugger.timeline)
    with pytest.raises(UsageError, match="no loop runs an iteration after this position"):
        debugger.next_iteration()
    assert debugger.machine.tick == present and state_of(debugger.timeline) == state


@ANY
@pytest.mark.parametrize("where", ["first", "last"])
def test_outside_a_number_means_the_only_loop_and_one_that_it_does_not_run_is_refused(name: str, where: str) -> None:
    debugger = sample(name)
    outer = [tick for tick in ticks_of(debugger, EventKind.BEGUN) if _depth_at(name, tick) == 2]
    getattr(debugger, where)()
    assert debugger.goto_iteration(1).tick == outer[1]
    getattr(debugger, where)()
    assert debugger.goto_iteration(-1).tick == outer[-1]
    getattr(debugger, where)()
    present = debugger.machine.tick
    for beyond in (len(outer), -len(outer) - 1):
        with pytest.raises(UsageError, match="there is no iteration"):
            debugger.goto_iteration(beyond)
        assert debugger.machine.tick == present


def _depth_at(name: str, tick: int) -> int:
    debugger = sample(name)
    debugger.goto_tick(tick)
    return debugger.depth


def test_inside_of_an_if_the_place_is_kept_where_that_side_runs_again_and_else_it_is_after_the_if() -> None:
    debugger = sample("while_loop")
    even = {}
    for iteration in range(8):
        debugger.goto(f"is_even@{iteration}")
        even[iteration] = bool(debugger.evaluate("is_even"))
    assert len(set(even.values())) == 2
    debugger.goto("is_even@1")
    debugger.step()
    assert debugger.depth == 3
    for iteration in (3, 5, 7, 2, 6, 4, 1):
        debugger.goto("is_even@1")
        debugger.step()
        stop = debugger.goto_iteration(iteration)
        activation = debugger.machine.stack[1].activation
        assert activation is not None and activation.iteration == iteration
        assert (debugger.depth == 3) == (even[iteration] is even[1])
        if debugger.depth == 2:
            assert stop.done is not None and stop.done.layer.name == "number_next"


def test_a_loop_by_its_name_is_its_first_iteration_and_by_its_output_where_it_is_left() -> None:
    for verb in ("goto", "run_to"):
        debugger = sample("date_normaliser")
        begun = ticks_of(debugger, EventKind.BEGUN)[0]
        assert getattr(debugger, verb)("Loop").tick == begun
        debugger.first()
        assert getattr(debugger, verb)("`prim::Loop/Loop`:0").tick > begun
        assert debugger.depth == 1 and debugger.stop.done is not None
        debugger.goto_tick(begun)
        assert debugger.run_to("Loop").done.layer.type == "Loop"  # type: ignore[union-attr]


def test_where_several_loops_can_be_meant_each_is_a_candidate_that_leads_there(tmp_path: Path) -> None:
    net = Graph()
    value = net.constant([1.0])
    for name in ("one", "two", "three"):
        body = net.body()
        state = body.parameter("state", dims=(1,))
        out = body.result(body.apply("Sin", state, name="sine"), "next_state")
        (value,) = net.loop(name, body, 4, True, [carried(value, state, out)], [last(out)])
    net.result(value, "final")
    debugger = opened(tmp_path, net)
    for ask in (lambda: debugger.goto_iteration(1), lambda: debugger.goto("sine"), lambda: debugger.goto("Loop")):
        debugger.first()
        with pytest.raises(AmbiguousAddress) as refused:
            ask()
        candidates = refused.value.candidates
        assert len(candidates) == 3 and all(one.address in str(refused.value) for one in candidates)
        ticks = [debugger.goto(one.address).tick for one in candidates]
        assert ticks == sorted(set(ticks))
        assert [debugger.goto_tick(tick).depth for tick in ticks] == [2, 2, 2]
