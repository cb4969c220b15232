"""How the loops of a run ended: heard in the worker as they do, for the card at the end of the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

from stepper.engine.frames import Activation, Frame, place
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import Operation
from stepper.engine.rules import Note
from stepper.engine.run import LoopSummary
from stepper.ir.model import Layer

MOST_ENDS: Final = 100_000
"""Ends of loops that are kept; the first ones."""


class LastIteration(NamedTuple):
    """The moment at which a loop had closed its last iteration."""

    layer: Layer
    iteration: int
    tick: int


class Ending(Struct, frozen=True, eq=False):
    """Part of State at the end of the run: its loops, and the notes on what the other rule book `other` does otherwise.

    `is_partial`: there was more than is known, before a session began or on another course. `last` is of the loop that
    was the last of the model's own graph, or of those inside where there is none; None where none ran an iteration.
    """

    loops: tuple[LoopSummary, ...]
    is_partial: bool
    notes: tuple[Note, ...]
    other: str
    last: LastIteration | None = None


class _End(NamedTuple):
    operation: Operation
    iterations: int
    ended: EndReason
    depth: int


class Endings:
    """The ends of loops by tick, each once however often one goes back and forth."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._ends: dict[int, _End] = {}
        self._paths: dict[int, str] = {}
        self._is_partial = machine.tick > 0
        machine.on_loop_end = self._hear

    def _hear(self, frames: list[Frame], activation: Activation) -> None:
        if frames is not self._machine.stack:
            return  # a twin goes its own way
        if len(self._ends) >= MOST_ENDS:
            self._is_partial |= self._machine.tick not in self._ends
            return
        operation = activation.operation
        if id(operation) not in self._paths:
            self._paths[id(operation)] = place(frames, operation, iterations=False)
        assert activation.ended is not None, "a loop leaves for a reason"
        self._ends[self._machine.tick] = _End(operation, activation.iteration + 1, activation.ended, len(frames))

    def on_another_course(self, edited: Iterable[int]) -> None:
        """The run goes on in another branch, or with another edit: what came after the first edit of both is gone.

        `edited` are the ticks of these edits; without any it is the same course under another name.
        """
        first = min(edited, default=None)
        if first is None:
            return
        self._ends = {tick: end for tick, end in self._ends.items() if tick <= first}
        self._is_partial |= self._machine.tick > first

    def view(self) -> Ending | None:
        """At the end of the run, what there is to say."""
        if not self._machine.finished:
            return None
        loops: dict[int, LoopSummary] = {}
        for _, end in sorted(self._ends.items()):
            key, layer = id(end.operation), end.operation.layer
            loops.setdefault(key, LoopSummary(self._paths[key], layer.id, layer.type, layer.name, layer.line)).count(
                end.iterations, end.ended
            )
        rules = self._machine.rules
        notes = tuple(self._machine.notes)
        return Ending(tuple(loops.values()), self._is_partial, notes, str(rules.other), self._last())

    def _last(self) -> LastIteration | None:
        ran = [(end.depth == 1, tick, end) for tick, end in self._ends.items() if end.iterations]
        if not ran:
            return None
        _, tick, end = max(ran, key=lambda one: one[:2])
        return LastIteration(end.operation.layer, end.iterations - 1, tick - 1)  # the move after it left the loop
