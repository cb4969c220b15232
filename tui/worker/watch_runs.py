"""Watches of loops that are not shown: each over the iterations of its own loop, filled while nothing else is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from stepper.debug.iterations.far_runs import FarRun, LoopOfRun, far_run, loop_of_body
from stepper.debug.stop import iteration_of
from stepper.errors import Paused, StepperError

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.debug.iterations.sweep import Sweeps, WatchedRun
    from stepper.debug.watches import Watch
    from stepper.engine.program import Program
    from stepper.tensors.histories import ValueHistory


class _Key(NamedTuple):
    body: int
    outer: tuple[int | None, ...]


class WatchRuns:
    """Finds the runs of the loops, and fills in the watches; lives in the worker."""

    def __init__(self, debugger: Debugger, sweeps: Callable[[], Sweeps]) -> None:
        self._debugger = debugger
        self._sweeps = sweeps
        self.wanted = False
        """Whether anybody looks."""
        self._runs: dict[_Key, FarRun | None] = {}
        self._known: dict[tuple[_Key, int, str], WatchedRun] = {}

    def forget(self) -> None:
        """The run takes another course."""
        self._runs.clear()
        self._known.clear()

    def _elsewhere(self, shown: Program | None) -> list[tuple[Watch, LoopOfRun, _Key]]:
        """Return the watches that read in other loops than the one that is shown, with the run of theirs."""
        machine, watches = self._debugger.machine, self._debugger.watches
        around = [(frame.program, iteration_of(frame)) for frame in machine.stack]
        found = []
        for watch in watches if self.wanted else ():
            body = watches.body(watch, machine.program)
            if body is not None and body is not shown:
                loop = loop_of_body(body, around, watches.outer(watch, machine.program))
                found.append((watch, loop, _Key(id(body), loop.outer)))
        return found

    def view(self, shown: Program | None) -> Mapping[int, ValueHistory]:
        """Return what is known of them, by number."""
        known = [
            (watch.number, self._known.get((key, watch.number, watch.text))) for watch, _, key in self._elsewhere(shown)
        ]
        return {number: one.values for number, one in known if one is not None and one.values is not None}

    def fill(self, shown: Program | None, enough: Callable[[], bool]) -> bool:
        """Look through some more iterations of one of them; True if there is more to see."""
        for watch, loop, key in self._elsewhere(shown):
            known = self._known.get((key, watch.number, watch.text))
            if known is not None and known.is_whole:
                continue
            if key not in self._runs:
                try:
                    self._runs[key] = far_run(self._debugger.timeline, loop)
                except Paused:
                    return False
                except StepperError:
                    self._runs[key] = None
            run = self._runs[key]
            if run is None:
                continue
            with run.entered(self._debugger.timeline):
                found = self._sweeps().fill_watched(run.depth, watch.number, enough)
                self._known[key, watch.number, watch.text] = found
            return True
        return False
