"""The run of a loop that panes with iterations show where the run itself is in no loop, or another one was chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stepper.debug.inspection.views import frame_views, watch_views
from stepper.debug.iterations.far_runs import FarRun, LoopOfRun, far_run, is_here, loop_seen_from
from stepper.errors import Paused, StepperError
from tui.state import FarState

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.debug.iterations.cell_store import IterationStatistics
    from stepper.debug.iterations.sweep import Sweeps, SweepView

Window = tuple[int, int] | None


class FarView:
    """Finds the run, and fills in its histories; lives in the worker."""

    def __init__(self, debugger: Debugger, statistics: IterationStatistics, sweeps: Callable[[], Sweeps]) -> None:
        self._debugger = debugger
        self._statistics = statistics
        self._sweeps = sweeps
        self.chosen: LoopOfRun | None = None
        self._known: tuple[object, FarRun | None] | None = None

    def forget(self) -> None:
        """The run takes another course."""
        self._known = None

    def _wanted(self, depth: int, loop_depth: int | None) -> LoopOfRun | None:
        """Return the run that is looked at; None where the run is in the loop that is shown."""
        chosen, machine = self.chosen, self._debugger.machine
        if chosen is not None:
            return None if is_here(machine, chosen, loop_depth) else chosen
        return None if loop_depth is not None else loop_seen_from(machine, None, depth)

    @staticmethod
    def _key(wanted: LoopOfRun) -> object:
        return id(wanted.body), wanted.outer

    def find(self, depth: int, loop_depth: int | None) -> bool:
        """Look for the run, where that was not done; True if there is more to see."""
        wanted = self._wanted(depth, loop_depth)
        if wanted is None or (self._known is not None and self._known[0] == self._key(wanted)):
            return False
        try:
            found: FarRun | None = far_run(self._debugger.timeline, wanted)
        except Paused:
            return False
        except StepperError:
            found, self.chosen = None, None
        self._known = self._key(wanted), found
        return True

    def _run(self, depth: int, loop_depth: int | None) -> FarRun | None:
        wanted = self._wanted(depth, loop_depth)
        known = self._known
        return None if wanted is None or known is None or known[0] != self._key(wanted) else known[1]

    def view(self, depth: int, loop_depth: int | None, span: Window) -> FarState | None:
        """Return what is known of it."""
        run = self._run(depth, loop_depth)
        if run is None:
            return None
        debugger, statistics = self._debugger, self._statistics
        stack = debugger.machine.stack
        now = stack[0].pc - 1 if stack and not run.depth else None
        with run.entered(debugger.timeline):
            stack = debugger.machine.stack[: run.depth + 1]
            statistics.see()
            loop = debugger.loop(run.depth, differences=False) if run.depth else None
            sweep: SweepView | None = None
            if span is not None and loop is not None:
                sweep = self._sweeps().view(run.depth, span)
            return FarState(
                outer=run.outer,
                around=run.around,
                is_chosen=self.chosen is not None,
                frames=frame_views(stack, [one for made in debugger.timeline.edits.values() for one in made]),
                depth=run.depth,
                loop=loop,
                history=statistics.view(run.depth),
                sweep=sweep,
                watches=watch_views(
                    debugger.watches, None if loop is None else loop.level.run, debugger.machine.program
                ),
                a=None if loop is None else debugger.moments.view_of_run(debugger.pinned, loop.level.run),
                now=now,
            )

    def fill(self, depth: int, loop_depth: int | None, span: Window, enough: Callable[[], bool]) -> bool:
        """Fetch what its histories lack; True if there is more to see."""
        run = self._run(depth, loop_depth)
        if run is None:
            return False
        with run.entered(self._debugger.timeline):
            if not run.depth:
                return self._statistics.fill_values(run.depth, enough)
            if span is None or self._sweeps().is_complete(run.depth, span):
                return self._statistics.fill(run.depth, 64, enough)
            return self._sweeps().fill(run.depth, span, enough)
