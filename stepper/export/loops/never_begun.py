"""Loops that a run entered and that did no iteration."""

from __future__ import annotations

from typing import Final

from stepper.engine.events import EventKind, Every
from stepper.engine.machine import Machine
from stepper.errors import ExecutionError, LimitReached, UnsupportedOperation

_MOST_EVENTS: Final = 200_000
"""Events that are looked at; a run that is longer has shown nothing of what it had not entered by then."""


def never_begun(machine: Machine) -> frozenset[tuple[int, int]]:
    """Return the loops that never began, each by id() of the graph that it stands in and its own id."""
    entered: set[tuple[int, int]] = set()
    begun: set[tuple[int, int]] = set()
    try:
        for count, event in enumerate(machine.run(Every.ITERATION)):
            activation = event.frame.activation
            if count > _MOST_EVENTS:
                break
            if activation is None or not activation.operation.layer.is_loop:
                continue
            if event.kind is EventKind.ENTERED:
                entered.add((id(machine.stack[-2].program.graph), activation.operation.layer.id))
            elif event.kind is EventKind.ITERATION:
                begun.add((id(machine.stack[-2].program.graph), activation.operation.layer.id))
    except (ExecutionError, LimitReached, UnsupportedOperation):
        pass  # what it showed before is true
    return frozenset(entered - begun)
