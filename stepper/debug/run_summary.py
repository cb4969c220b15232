"""Summary of a debugged run: how its loops ended, each end counted once however often one goes back and forth."""

from __future__ import annotations

from typing import Final, NamedTuple
from weakref import proxy

from stepper.engine.frames import Activation, Frames, RunObserver, place
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import Operation
from stepper.engine.rules import Note
from stepper.engine.run import LoopSummary
from stepper.ir.model import Layer
from stepper.records import Record

MOST_ENDS: Final = 100_000
"""Loop ends that are kept, the first ones of a run."""


class LastIteration(NamedTuple):
    """The last iteration of a loop, and the tick at which it was closed."""

    layer: Layer
    iteration: int
    tick: int


class RunSummary(Record, eq=False):
    """Loops of a run that has ended, and notes on where the rule book `other_rules` departs from that of the run.

    `is_partial` is True if loops ended that were not counted: before the debugger listened, or in another branch.
    `last` is the last iteration of the loop of the main graph that ended last, of any loop if the main graph has none;
    None if no loop ran an iteration.
    """

    loops: tuple[LoopSummary, ...]
    is_partial: bool
    notes: tuple[Note, ...]
    other_rules: str
    last: LastIteration | None


class _LoopEnd(NamedTuple):
    operation: Operation
    path: str
    iterations: int
    ended: EndReason
    depth: int


class LoopEndLog(RunObserver):
    """Ends of loops by tick, as a machine reports them."""

    def __init__(self, machine: Machine) -> None:
        self._machine: Machine = proxy(machine)  # it holds this observer
        self._ends: dict[int, _LoopEnd] = {}
        self._paths: dict[int, str] = {}
        self._is_partial = machine.tick > 0
        machine.observers = (*machine.observers, self)

    def loop_left(self, stack: Frames, activation: Activation) -> None:
        """Count the end."""
        if len(self._ends) >= MOST_ENDS:
            self._is_partial |= self._machine.tick not in self._ends
            return
        operation = activation.operation
        path = self._paths.get(id(operation))
        if path is None:
            path = self._paths[id(operation)] = place(stack, operation, iterations=False)
        assert activation.ended is not None, "a loop leaves for a reason"
        end = _LoopEnd(operation, path, activation.iteration + 1, activation.ended, len(stack))
        self._ends[self._machine.tick] = end

    def forget_after(self, tick: int) -> None:
        """Drop the ends after a tick from which on the run takes another course."""
        self._ends = {at: end for at, end in self._ends.items() if at <= tick}
        self._is_partial |= self._machine.tick > tick

    def summary(self) -> RunSummary | None:
        """Return the summary; None before the end of the run."""
        machine = self._machine
        if not machine.finished:
            return None
        loops: dict[int, LoopSummary] = {}
        for _, end in sorted(self._ends.items()):
            layer = end.operation.layer
            empty = LoopSummary(end.path, layer.id, layer.type, layer.name, layer.line, word=layer.iteration_word)
            loop = loops.setdefault(id(end.operation), empty)
            loop.count(end.iterations, end.ended)
        notes = tuple(machine.notes)
        return RunSummary(tuple(loops.values()), self._is_partial, notes, str(machine.rules.other), self._last())

    def _last(self) -> LastIteration | None:
        ran = [(end.depth == 1, tick, end) for tick, end in self._ends.items() if end.iterations]
        if not ran:
            return None
        _, tick, end = max(ran, key=lambda one: one[:2])
        return LastIteration(end.operation.layer, end.iterations - 1, tick - 1)  # the move after it left the loop
