"""Stopping a run from outside: pauses asked for by another thread, and limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepper.engine.frames import Event, EventKind, Every
from stepper.engine.machine import Machine
from stepper.errors import LimitReached
from tests.engine.subjects import SUBJECTS, Subject, endless, endless_with_branch, outputs_of, told
from tests.models import Graph, carried, invariant, last


def paused(machine: Machine, every: Every) -> tuple[Event, float]:
    """Lets another thread ask for a pause; the event, and how many seconds after the request it came."""
    asked: list[float] = []

    def ask() -> None:
        time.sleep(0.02)
        asked.append(time.monotonic())
        machine.request_pause()

    thread = threading.Thread(target=ask)
    thread.start()
    event = next(event for event in machine.run(every) if event.kind is EventKind.PAUSED)
    seconds = time.monotonic() - asked[0]
    thread.join()
    return event, seconds


@pytest.mark.parametrize("graph", [endless, endless_with_branch])
@pytest.mark.parametrize("every", [Every.END, Every.OPERATION], ids=lambda every: every.name)
def test_a_pause_stops_an_endless_loop_at_once_and_the_run_goes_on_afterwards(
    tmp_path: Path, graph: Callable[[], Graph], every: Every
) -> None:
    subject = Subject(graph, ())
    machine = subject.machine(subject.compiled(tmp_path))
    ticks, waits = [0], []
    for _ in range(3):
        event, seconds = paused(machine, every)
        ticks.append(event.tick)
        waits.append(seconds)
    assert ticks == sorted(set(ticks)) and ticks[-1] == machine.tick
    assert min(waits) < 0.1
    loop = machine.stack[1].activation
    assert loop is not None and loop.iteration >= 1
    loop.limit = loop.iteration + 3
    told(machine, Every.END)
    assert outputs_of(machine) == [("int64", loop.limit)]


def test_a_pause_changes_nothing_in_a_run(tmp_path: Path) -> None:
    subject = SUBJECTS["branch in a loop"]
    compiled = subject.compiled(tmp_path)
    plain = subject.machine(compiled)
    lines = told(plain, Every.ITERATION)
    machine = subject.machine(compiled)
    found = []
    while not machine.finished:
        machine.request_pause()
        assert machine.advance(Every.ITERATION).kind is EventKind.PAUSED
        event = machine.advance(Every.ITERATION)
        found.append((event.kind.name, event.tick))
    assert found == [line[:2] for line in lines] and outputs_of(machine) == outputs_of(plain)


def test_a_run_can_be_walked_to_any_tick(tmp_path: Path) -> None:
    for subject in SUBJECTS.values():
        compiled = subject.compiled(tmp_path)
        whole = subject.machine(compiled)
        told(whole, Every.END)
        for every in Every:
            machine = subject.machine(compiled)
            for tick in range(1, whole.tick):
                while machine.tick < tick:
                    machine.advance(every, until=tick)
                # A branch is closed and left in one go.
                assert machine.tick in (tick, tick + 1)
            told(machine, Every.END)
            assert outputs_of(machine) == outputs_of(whole) and machine.tick == whole.tick


def nested_endless() -> Graph:
    """Two iterations outside, without end inside."""
    net = Graph()
    outer = net.body()
    x, inside = net.parameter("x"), outer.parameter("inside")
    inner = outer.body()
    state = inner.parameter("state")
    result = inner.result(inner.apply("Add", state, state))
    (out,) = outer.loop("inner", inner, -1, True, [carried(inside, state, result)], [last(result)])
    net.result(net.loop("outer", outer, 2, True, [invariant(x, inside)], [last(outer.result(out))])[0])
    return net


@pytest.mark.parametrize("every", list(Every), ids=lambda every: every.name)
def test_the_limit_on_iterations_names_the_loop_that_wants_more(tmp_path: Path, every: Every) -> None:
    subject = Subject(nested_endless, (np.float32(1),))
    machine = subject.machine(subject.compiled(tmp_path), max_iterations=7)
    message = (
        "^model > Loop 'outer' #0 > Loop 'inner' #6: the loop needs more than 7 iterations, the limit that was set$"
    )
    with pytest.raises(LimitReached, match=message):
        told(machine, every)
    # outer entered and begun, inner entered, and of each inner iteration begin, Add and close
    assert machine.tick == 3 + 7 * 3
    machine.max_iterations = 9
    with pytest.raises(LimitReached, match=r"#8: the loop needs more than 9"):
        told(machine, every)
    assert machine.tick == 3 + 9 * 3


def test_the_limit_counts_each_execution_of_a_loop_by_itself(tmp_path: Path) -> None:
    subject = SUBJECTS["loop in a loop"]  # 3 times 2 iterations
    machine = subject.machine(subject.compiled(tmp_path), max_iterations=3)
    told(machine, Every.END)
    assert machine.finished
