"""Pictures of the moment: what the worker takes from the debugger for the screen, as frozen state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from stepper.debug.branches.edits import RunCourse, ValueEdit
from stepper.debug.causes.cause import Trigger
from stepper.debug.inspection.views import Variables, break_views, frame_views, mark_views, watch_views
from stepper.debug.iterations.cell_store import IterationStatistics, WholeRuns
from stepper.debug.moments.moment import MomentKind
from stepper.debug.overview.programs import births_in
from stepper.debug.scopes import innermost_loop
from stepper.engine.frames import Phase
from stepper.errors import StepperError
from stepper.ir.lowering import sequences_of, without_loops
from tui.state import Lists, State, TimelineEvent, TimelineEventKind
from tui.worker.far_view import FarView
from tui.worker.requests import (
    Adjustment,
    CompareWithin,
    GoOnWithOverview,
    ShowOverview,
    ShowRun,
    ShowStatistic,
    ShowTime,
    ShowValues,
    ShowWatches,
)
from tui.worker.watch_runs import WatchRuns

if TYPE_CHECKING:
    from stepper.commands import Session
    from stepper.compare.stops import StopComparer, StopComparison
    from stepper.debug.debugger import Debugger
    from stepper.debug.inspection.views import LoopView, StopView
    from stepper.debug.iterations.sweep import Sweeps
    from stepper.debug.moments.spread import MomentView
    from tui.worker.background_run import BackgroundRun
    from tui.worker.event_log import EventLog

MOST_EVENTS: Final = 1_000
_FILLED: Final = (16, 64, 512)
"""Iterations back that are filled in, the nearest first."""
_ANY: Final = (0, 1)
"""A stretch of iterations, where only the whole of the loop is asked for."""
_PATIENCE: Final = 0.5
"""Seconds that one filling may take."""
_AT_ONCE: Final = 0.004
"""Seconds for holding A against now while one waits for the picture."""
_AT_A_KEY: Final = 0.2
"""Seconds for a comparison while one waits for the picture."""
_CALM: Final = 0.3
"""Seconds after a command in which no long walk begins: it would share the processor with the screen."""


def _course(debugger: Debugger) -> tuple[str, RunCourse]:
    """Return which way the run goes, and the name of its branch."""
    return debugger.branches.name, RunCourse(debugger.timeline.edits)


class Snapshots:
    """Takes pictures of a debugger; lives in the worker."""

    def __init__(
        self, debugger: Debugger, session: Session, name: str, log: EventLog, background: BackgroundRun
    ) -> None:
        self._debugger = debugger
        self._background = background
        self._without_loops = without_loops(debugger.model)
        self._is_loopless = bool(self._without_loops) and not sequences_of(debugger.model)
        self._session = session
        self._name = name
        self._log = log
        self._variables = Variables(debugger.machine.compiled)
        self.statistics = IterationStatistics(debugger.timeline)
        self._comparer: StopComparer | None = None
        self._events: dict[tuple[int, TimelineEventKind], TimelineEvent] = {}
        self._course = _course(debugger)
        self._failure: tuple[int, str] = (-1, "")
        self._span: tuple[int, int] | None = None
        self._acted = 0.0
        self._sweeps: Sweeps | None = None
        self._whole = WholeRuns()
        self._far = FarView(debugger, self.statistics, lambda: self.sweeps)
        self._watch_runs = WatchRuns(debugger, lambda: self.sweeps)
        self._is_compared = True
        self._left_out = self._were_left = 0  # operations that were compared when the time was over

    def adjust(self, adjustment: Adjustment) -> None:
        """Take other pictures from now on."""
        match adjustment:
            case ShowStatistic(name):
                self.statistics.choose(name)
            case ShowValues(who, program, operations):
                self.statistics.want(who, program, operations)
            case ShowTime(span):
                self._span = span
            case ShowWatches(wanted):
                self._watch_runs.wanted = wanted
            case ShowRun(loop):
                self._far.chosen = loop
            case ShowOverview(wanted, runs):
                self._background.show(wanted=wanted, runs=runs)
            case GoOnWithOverview():
                self._background.go_on()
            case CompareWithin(tolerances):
                self.comparer.tolerances = tolerances
                self._debugger.moments.allow(tolerances)

    @property
    def comparer(self) -> StopComparer:
        """The run beside another one; what compares is loaded when something is compared."""
        if self._comparer is None:
            from stepper.compare.stops import StopComparer

            self._comparer = StopComparer(self._debugger)
        return self._comparer

    @property
    def sweeps(self) -> Sweeps:
        """All iterations of the loops; loaded with the first look at them."""
        if self._sweeps is None:
            from stepper.debug.iterations.sweep import Sweeps

            self._sweeps = Sweeps(self._debugger)
        return self._sweeps

    def _moment(self, depth: int, seconds: float) -> MomentView | None:
        """Return A beside now, as far as it is compared within so many seconds."""
        pinned = self._debugger.pinned
        if pinned is None:
            return None
        return self._debugger.moments.view(pinned, depth, self.statistics.statistic, _after(seconds))

    def _fill_moment(self, depth: int, enough: Callable[[], bool]) -> bool:
        """Go on with what was not compared while one waited; True if there is more to see."""
        pinned, debugger = self._debugger.pinned, self._debugger
        if pinned is None:
            return False
        if not self._is_compared:
            found = debugger.moments.view(pinned, depth, self.statistics.statistic, enough)
            self._is_compared = found.is_complete
            return True
        spread = debugger.moments.spread(pinned)
        if spread is None or self._background.has_work:  # a run alone is over much sooner
            return False
        known = self._background.known
        if known is not None:
            spread.follow(births_in(known, debugger.machine.compiled))
        if spread.is_over:
            return False
        deadline = time.monotonic() + _PATIENCE
        spread.go(lambda: enough() or time.monotonic() > deadline)
        return True

    @property
    def _compares(self) -> bool:
        """True if A is the reference."""
        pinned = self._debugger.pinned
        return pinned is not None and pinned.kind is MomentKind.REFERENCE and self._debugger.reference is not None

    def _comparison(self, depth: int) -> StopComparison | None:
        if not self._compares:
            return None
        try:
            found = self.comparer.compare(depth, patience=_AT_A_KEY)
            self._left_out = 0 if found.is_whole else len(found.operations)
            return found
        except StepperError as error:
            from stepper.compare.stops import StopComparison

            return StopComparison("", problem=str(error))

    def _fill_comparison(self, enough: Callable[[], bool]) -> bool:
        if not self._compares:
            return False
        stack = self._debugger.machine.stack
        if self._left_out > self._were_left:  # what was asked of the reference is known now: another look gets further
            self._were_left = self._left_out
            return True
        loop_depth = innermost_loop(stack[: max(len(stack) - self._session.level, 1)])
        return self.comparer.fill(loop_depth, enough=enough)

    def after(self, failure: str) -> None:
        """A command has ended; `failure` is the message of an error."""
        self._acted = time.monotonic()
        self._were_left = 0
        debugger = self._debugger
        course = _course(debugger)
        tick = debugger.machine.tick
        if course != self._course:
            self._course = course
            self.statistics.forget()
            self._far.forget()
            self._watch_runs.forget()
            if self._sweeps is not None:
                self._sweeps.forget()
            edits = debugger.timeline.edits
            self._events = {
                key: event
                for key, event in self._events.items()
                if key[0] <= tick and (event.kind is not TimelineEventKind.EDIT or key[0] in edits)
            }
            if tick in edits:
                self._note(TimelineEventKind.EDIT)
        stop = debugger.stop
        cause = stop.cause
        if cause is not None and cause.trigger is Trigger.BREAKPOINT and stop.tick == tick:
            self._note(TimelineEventKind.STOP, cause.number)
        self._failure = (tick, failure) if failure else (-1, "")

    def _note(self, kind: TimelineEventKind, breakpoint: int | None = None) -> None:
        stack = self._debugger.machine.stack
        depth = innermost_loop(stack)
        if depth is None or len(self._events) >= MOST_EVENTS:
            return
        level = self._debugger.loop(depth, differences=False).level
        if level.iteration is not None:
            tick = self._debugger.machine.tick
            self._events[tick, kind] = TimelineEvent(
                tick, level.run, level.iteration, kind, self._place(kind), breakpoint
            )

    def _place(self, kind: TimelineEventKind) -> tuple[int, int] | None:
        """Return the operation just executed; of an edit that whose value was changed."""
        machine, timeline = self._debugger.machine, self._debugger.timeline
        frame = machine.stack[-1]
        index = frame.pc - 1 if frame.phase is Phase.RUNNING else len(frame.program.operations) - 1
        if kind is TimelineEventKind.EDIT:
            edit = timeline.edits[machine.tick][-1]
            if not isinstance(edit, ValueEdit):
                return None
            frame = machine.stack[edit.depth - 1]
            index = frame.program.computed_at.get(edit.slot, -1)
        return (id(frame.program), index) if index >= 0 else None

    def take(self) -> State:
        """Return the present moment."""
        debugger = self._debugger
        stack = debugger.machine.stack
        depth = max(min(len(stack) - 1, len(stack) - 1 - self._session.level), 0)
        loop_depth = innermost_loop(stack[: depth + 1])
        self.statistics.see()
        view = debugger.view(differences=loop_depth is not None and loop_depth == innermost_loop(stack))
        loop = self._loop(view, loop_depth)
        history = self.statistics.view(depth) if stack else None
        loop_history = None
        if loop_depth is not None:
            near = history if history is not None and loop_depth == depth else self.statistics.view(loop_depth)
            loop_history = self._whole.filled_up(near, stack[loop_depth], self._background.known)
        tick, failure = self._failure
        a, span = self._moment(depth, _AT_ONCE), self._seen_span
        self._is_compared = a is None or a.is_complete
        return State(
            model=self._name,
            rules=str(debugger.machine.rules),
            engine=debugger.machine.compiled.engine,
            without_loops=self._without_loops,
            is_loopless=self._is_loopless,
            view=view,
            stop=debugger.stop,
            frames=frame_views(stack, [edit for made in debugger.timeline.edits.values() for edit in made]),
            depth=depth,
            loop=loop,
            loop_depth=loop_depth,
            history=loop_history if loop_depth == depth else history,
            loop_history=loop_history,
            sweep=None if span is None or loop_depth is None else self.sweeps.view(loop_depth, span),
            breaks=break_views(debugger.breakpoints),
            lists=Lists(
                self._variables.views(debugger.machine.states),
                mark_views(debugger.marks, debugger.branches.name),
                debugger.breakpoints.exceptions,
                self._log.entries(),
                *self._background.findings.known,
            ),
            watches=watch_views(debugger.watches, None if loop is None else loop.level.run, debugger.machine.program),
            watch_runs=self._watch_runs.view(None if loop_depth is None else stack[loop_depth].program),
            events=tuple(self._events.values()),
            branch=debugger.branches.name,
            course=RunCourse(debugger.timeline.edits),
            is_edited=debugger.branches.is_edited,
            has_edits=debugger.branches.has_edits,
            has_unkept_edits=debugger.branches.has_unkept_edits,
            furthest=debugger.timeline.furthest,
            statistic=self.statistics.statistic,
            labels=debugger.labels.view(),
            comparison=self._comparison(depth),
            a=a,
            output_names=tuple(result.name for result in debugger.model.graph.results),
            ending=debugger.run_summary(),
            overview=self._background.view(),
            failure=failure if tick == debugger.machine.tick else "",
            far=self._far.view(depth, loop_depth, span) if self._shows_far else None,
        )

    @property
    def _seen_span(self) -> tuple[int, int] | None:
        """The iterations that are seen closely; a watch is known in all of them, whatever the screen."""
        return self._span if self._span is not None else _ANY if len(self._debugger.watches) else None

    @property
    def _shows_far(self) -> bool:
        """True if a run of a loop in which the run is not is to be seen, or is known anyway."""
        is_asked_for = self._span is not None or self._far.chosen is not None
        return is_asked_for or self._background.is_over

    def _loop(self, view: StopView, depth: int | None) -> LoopView | None:
        if depth is None:
            return None
        if view.loop is not None and view.loop.level.depth == depth:
            return view.loop
        return self._debugger.loop(depth)

    def fill(self, enough: Callable[[], bool]) -> bool:
        """Fetch what the histories of the present loop lack; True if there is more to see."""
        stack = self._debugger.machine.stack
        looked_at = max(len(stack) - self._session.level, 1)
        if (
            self.statistics.see_far()
            or self._fill_moment(looked_at - 1, enough)
            or self.statistics.fill_values(looked_at - 1, enough)
        ):
            return True
        depth = innermost_loop(stack[:looked_at])
        if self._watch_runs.fill(None if depth is None else stack[depth].program, _soon(enough)):
            return True
        if self._shows_far and self._fill_far(looked_at - 1, depth, enough):
            return True
        if depth is None:
            return self._fill_comparison(enough)
        is_due = _soon(enough)
        if any(self.statistics.fill(depth, back, is_due) for back in _FILLED):
            return True
        span = self._seen_span
        if span is None or self.sweeps.is_complete(depth, span):
            return self._fill_comparison(enough)
        while not enough() and time.monotonic() < self._acted + _CALM:
            time.sleep(0.002)
        if not enough() and self.sweeps.fill(depth, span, _soon(enough)):
            return True
        return self._fill_comparison(enough)

    def _fill_far(self, depth: int, loop_depth: int | None, enough: Callable[[], bool]) -> bool:
        """Find the run of a loop that is seen from elsewhere, and fetch what it lacks; True if there is more to see."""
        if self._far.find(depth, loop_depth):
            return True
        return self._far.fill(depth, loop_depth, self._seen_span, _soon(enough))


def _soon(enough: Callable[[], bool]) -> Callable[[], bool]:
    """Return what says when it is enough, or one filling has taken long."""
    deadline = time.monotonic() + _PATIENCE
    return lambda: enough() or time.monotonic() > deadline


def _after(seconds: float) -> Callable[[], bool]:
    """Return what says when this thread has worked for so many seconds, without what it waited for others."""
    deadline = time.thread_time() + seconds
    return lambda: time.thread_time() > deadline
