"""Breakpoints over inputs: a plain machine first, a debugger where that gives cause, or where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.causes.locations import address_at
from stepper.debug.causes.texts import sentences
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Reason, Stop
from stepper.element_types import Array
from stepper.engine.program import CompiledModel
from stepper.engine.run import LoopLog
from stepper.errors import StepperError
from stepper.sweep import row_making
from stepper.sweep.judges.screen import Screen, ScreenedRun
from stepper.sweep.limits import limited, overdue
from stepper.sweep.prepared import Prepared
from stepper.sweep.row_making import row_text
from stepper.sweep.rows import SweepOutcome, SweepRow


class BreakJudge:
    """Looks for what breakpoints wait for."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._breaks = [break_description(text) for text in prepared.job.breaks]
        words = [word for one in self._breaks if (word := _non_finite(one)) is not None]
        screen = Screen(prepared.compiled, words) if words and len(words) == len(self._breaks) else None
        self._screen = screen if screen is not None and screen.is_possible else None

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return where the first breakpoint stops the run."""
        prepared, log = self._prepared, LoopLog()
        if self._screen is not None:
            machine = prepared.machine(inputs, states, keeps=self._screen.keeps_main)
            screened = ScreenedRun(self._screen, machine)
            machine.observers = (log, screened)
            try:
                prepared.run(machine)
            except StepperError:
                screened.is_suspect = True  # a breakpoint may stop the run before it fails
            if not (screened.is_suspect or screened.ended()):
                return row_making.clean_row(name, row_making.counts_of_run(log.summaries))
        machine, log = prepared.machine(inputs, states), LoopLog()
        debugger = Debugger.of(machine, inputs)
        for description in self._breaks:
            debugger.breakpoints.add(description)
        machine.observers = (log,)
        with limited(machine, prepared.job.seconds):
            stop = debugger.continue_()
        if stop.reason is Reason.BREAK:
            return _stop_row(name, stop, prepared.compiled)
        if stop.reason is Reason.PAUSED:
            raise overdue(prepared.job.seconds)
        return row_making.clean_row(name, row_making.counts_of_run(log.summaries))


def _non_finite(description: BreakDescription) -> NonFiniteKind | None:
    """Return what a breakpoint waits for if that is the first NaN or Inf, and nothing else."""
    return next((kind for kind in NonFiniteKind if description == break_description(str(kind))), None)


def _stop_row(name: str, stop: Stop, compiled: CompiledModel) -> SweepRow:
    """Return the row of an input with which a breakpoint stopped the run."""
    cause = stop.cause
    assert cause is not None, "a breakpoint stopped it"
    site, path = cause.location.operation, cause.location.path
    address = address_at(cause.location, compiled)
    return SweepRow(
        name,
        SweepOutcome.STOPPED,
        what=str(cause.kind),
        operation=path[-1].layer.name if site is None and path else "" if site is None else site.name,
        type=path[-1].layer.type if site is None and path else "" if site is None else site.type,
        path=tuple(str(one.layer) for one in path),
        iterations=tuple(one.iteration for one in path if one.iteration is not None),
        address="" if address is None else str(address),
        text=row_text(sentences(cause)[0]),
    )
