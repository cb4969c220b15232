"""Which values of a frame are of the present iteration: held against a log of what the machine said it did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.machine import Machine
from tests.debug.debugged import ALL_RUNS, opened, run_named
from tests.models import Graph, carried, last


class Log:
    """What has run in each frame of the stack since its iteration began, written down from the events alone."""

    def __init__(self) -> None:
        self.done: list[set[int]] = [set()]

    def note(self, kind: EventKind, machine: Machine) -> None:
        if kind is EventKind.ENTERED:
            self.done.append(set())
        elif kind is EventKind.BEGUN:
            self.done[-1] = set()
        elif kind is EventKind.OPERATION:
            self.done[-1].add(machine.stack[-1].pc - 1)
        elif kind is EventKind.LEFT:
            self.done.pop()
            self.done[-1].add(machine.stack[-1].pc - 1)


def expected(frame: Frame, slot: int, done: set[int]) -> bool:
    for index, operation in enumerate(frame.program.operations):
        if slot in operation.outputs:
            return index in done
    return frame.values[slot] is not None


@ALL_RUNS
def test_a_value_is_current_from_its_operation_to_the_begin_of_the_next_iteration(name: str, tmp_path: Path) -> None:
    machine = run_named(name, tmp_path).machine
    log = Log()
    for event in machine.run(Every.OPERATION):
        log.note(event.kind, machine)
        for frame, done in zip(machine.stack, log.done, strict=False):
            for slot in range(len(frame.values)):
                assert frame.is_current(slot) == expected(frame, slot, done), (event, slot)
                assert (frame.current(slot) is None) == (frame.why_absent(slot) != "")


def test_a_stale_value_is_what_the_iteration_before_left(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    x = body.parameter("x")
    doubled = body.apply("Add", x, x, name="doubled")
    result = body.result(body.apply("Negative", doubled, name="negated"))
    net.result(net.loop("loop", body, 3, True, [carried(net.parameter("start"), x, result)], [last(result)])[0])
    debugger = opened(tmp_path, net, np.float32(1))
    debugger.step(2)
    frame = debugger.frame
    slot = frame.program.computed_at and next(iter(frame.program.computed_at))
    assert frame.before(slot) is None and frame.why_absent(slot) == "not computed yet in iteration 0"
    debugger.next_iteration()
    frame = debugger.frame
    kept = frame.before(slot)
    assert kept is not None and kept.tolist() == 2
    assert frame.why_absent(slot) == "not computed yet in iteration 1"
    debugger.next()
    assert debugger.frame.before(slot) is None
    now = debugger.frame.current(slot)
    assert now is not None and now.tolist() == -4


def test_what_is_shown_cannot_be_written_to(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    debugger.step(4)
    shown = [debugger.frame.current(slot) for slot in range(len(debugger.frame.values))]
    for array in shown:
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_why_there_is_no_value_is_said_for_each_case(tmp_path: Path) -> None:
    debugger = run_named("sums", tmp_path)
    frame = debugger.frame
    slot = next(iter(frame.program.computed_at))
    assert frame.why_absent(slot) == "not computed yet"
    assert frame.why_absent(-1) == "not connected"
    debugger.step(2)
    body = debugger.frame
    assert body.activation is not None and body.activation.iteration == -1
    assert body.why_absent(next(iter(body.program.computed_at))) == "nothing yet: no iteration has begun"


def test_after_no_iteration_nothing_was_computed(tmp_path: Path) -> None:
    debugger = run_named("never", tmp_path)
    debugger.step(2)
    body = debugger.frame
    assert body.why_absent(next(iter(body.program.computed_at))) == "never computed: no iteration ran"
