"""Work of the driver beside movements: pictures of the debugger for the screens, and the run behind the sheet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepper.debug.inspection.views import break_views, frame_views, mark_views
from stepper.debug.overview.overview_facts import Overview, RunState
from stepper.debug.scopes import innermost_loop
from stepper.debug.timeline import RunCourse
from stepper_tui.state import Adjustment, CompareWithin, GoOnWithOverview, Lists, ShowOverview, State

if TYPE_CHECKING:
    from stepper.commands import Session
    from stepper.debug.debugger import Debugger
    from stepper.debug.inspection.views import LoopView, StopView
    from stepper.debug.moments.spread import MomentView
    from stepper.diagnosis.check.checking import CheckedRun
    from stepper.diagnosis.rule import Finding


_PATIENCE = 0.5
"""Seconds that one filling may take."""
_AT_ONCE = 0.004
"""Seconds for holding A against now while one waits for the picture."""


class Snapshots:
    """Takes pictures of a debugger; lives in the worker."""

    def __init__(self, debugger: Debugger, session: Session, name: str, background: BackgroundRun) -> None:
        self._debugger = debugger
        self._background = background
        self._session = session
        self._name = name
        self._failure: tuple[int, str] = (-1, "")
        self._is_compared = True

    def adjust(self, adjustment: Adjustment) -> None:
        """Take other pictures from now on."""
        match adjustment:
            case ShowOverview(wanted, runs):
                self._background.show(wanted=wanted, runs=runs)
            case GoOnWithOverview():
                self._background.go_on()
            case CompareWithin(tolerances):
                self._debugger.moments.allow(tolerances)

    def _moment(self, depth: int, seconds: float) -> MomentView | None:
        """Return A beside now, compared for so many seconds."""
        pinned = self._debugger.pinned
        if pinned is None:
            return None
        return self._debugger.moments.view(pinned, depth, enough=_after(seconds))

    def _fill_moment(self, depth: int, enough: Callable[[], bool]) -> bool:
        """Go on with what was not compared while one waited; True if there is more to see."""
        pinned, debugger = self._debugger.pinned, self._debugger
        if pinned is None:
            return False
        if not self._is_compared:
            found = debugger.moments.view(pinned, depth, enough=enough)
            self._is_compared = found.is_complete
            return True
        spread = debugger.moments.spread(pinned)
        if spread is None or self._background.has_work:  # a run alone is over much sooner
            return False
        if spread.is_over:
            return False
        deadline = time.monotonic() + _PATIENCE
        spread.go(lambda: enough() or time.monotonic() > deadline)
        return True

    def after(self, failure: str) -> None:
        """A command has ended; `failure` is the message of an error."""
        debugger = self._debugger
        self._failure = (debugger.machine.tick, failure) if failure else (-1, "")

    def take(self) -> State:
        """Return the present moment."""
        debugger = self._debugger
        stack = debugger.machine.stack
        depth = max(min(len(stack) - 1, len(stack) - 1 - self._session.level), 0)
        loop_depth = innermost_loop(stack[: depth + 1])
        view = debugger.view(differences=loop_depth is not None and loop_depth == innermost_loop(stack))
        loop = self._loop(view, loop_depth)
        tick, failure = self._failure
        a = self._moment(depth, _AT_ONCE)
        self._is_compared = a is None or a.is_complete
        return State(
            model=self._name,
            rules=str(debugger.machine.rules),
            engine=debugger.machine.compiled.engine,
            view=view,
            stop=debugger.stop,
            frames=frame_views(stack),
            depth=depth,
            loop=loop,
            loop_depth=loop_depth,
            breaks=break_views(debugger.breakpoints),
            lists=Lists(
                mark_views(debugger.marks, debugger.branches.name),
                *self._background.findings.known,
            ),
            course=RunCourse(debugger.timeline.edits),
            is_edited=debugger.branches.is_edited,
            has_edits=debugger.branches.has_edits,
            has_unkept_edits=debugger.branches.has_unkept_edits,
            furthest=debugger.timeline.furthest,
            labels=debugger.labels.view(),
            a=a,
            overview=self._background.view(),
            failure=failure if tick == debugger.machine.tick else "",
        )

    def _loop(self, view: StopView, depth: int | None) -> LoopView | None:
        if depth is None:
            return None
        if view.loop is not None and view.loop.level.depth == depth:
            return view.loop
        return self._debugger.loop(depth)

    def fill(self, enough: Callable[[], bool]) -> bool:
        """Fetch the missing history of the current loop; True if there is more to see."""
        return self._fill_moment(max(len(self._debugger.machine.stack) - self._session.level, 1) - 1, enough)


def _after(seconds: float) -> Callable[[], bool]:
    """Return what says when this thread has worked for so many seconds, without what it waited for others."""
    deadline = time.thread_time() + seconds
    return lambda: time.thread_time() > deadline


_SECONDS = 0.25
"""Seconds for which a run is repeated to look at what its operations compute."""
_MOST_LAYERS = 5_000
"""Layers of a model up to which its file is checked without being asked for: it takes a while."""


class KnownFindings:
    """Lives in the worker; `known` costs nothing."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._of_file: tuple[Finding, ...] | None = None
        self._of_run: CheckedRun | None = None
        self._overview: Overview | None = None

    @property
    def known(self) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Return what was found, the most severe first, and what was looked for; nothing of a run that is gone."""
        if self._overview is None or self._of_run is None:
            return (), ()
        overview = self._debugger.overview()
        is_same = self._overview.ticks == overview.ticks
        is_same = is_same and overview.state not in (RunState.NOT_RUN, RunState.RUNNING)
        from stepper.diagnosis.check.checking import ranked

        found = ranked((*(self._of_file or ()), *(self._of_run.findings if is_same else ())))
        return found, self._of_run.checked if is_same else ()

    def look(self, overview: Overview) -> None:
        """Look for what is wrong with the file and with a run that is over."""
        if overview is self._overview:
            return
        from stepper.diagnosis.check.checking import check_overview
        from stepper.diagnosis.lint.linting import lint

        model = self._debugger.model
        if self._of_file is None:
            count = sum(len(graph.layers) for _path, graph in model.graphs())
            is_file = model.path.suffix == ".xml" and model.path.is_file()
            self._of_file = lint(model.path) if is_file and count <= _MOST_LAYERS else ()
        self._of_run = check_overview(self._debugger, overview, _SECONDS)
        self._overview = overview


SECONDS = 10.0
"""Seconds for which the run continues by itself."""
ENDLESS_SECONDS = 2.0
"""The same, where a loop can never end."""
MEMORY = 2**29
"""Bytes that it may keep by itself."""
LOOKED = 0.25
"""Seconds of each search for the first NaN and Inf, when the run is over."""


class BackgroundRun:
    """Lives in the worker; `hold` is for any thread. `grew` gets, at most 30 times a second, what
    is known; `ended` when the run is over, before NaN, Inf and faults are looked for."""

    def __init__(
        self, debugger: Debugger, grew: Callable[[Overview], object], ended: Callable[[], object] = lambda: None
    ) -> None:
        self._debugger = debugger
        self._grew = grew
        self._ended = ended
        self.findings = KnownFindings(debugger)
        self._is_shown = False
        self._is_automatic = False
        self._is_repeated = False
        self._is_wanted = False
        self._looks = False
        self._left = 0.0
        self._endless_left = 0.0
        self._memory = MEMORY

    def show(self, *, wanted: bool, runs: bool) -> None:
        """The facts are shown, or no longer; where it `runs` each run that is shown is made by itself.

        So is each one after an edit, also once they are no longer shown: other screens have its values.
        """
        self._is_shown, self._is_automatic = wanted, runs
        self._is_repeated = runs if wanted else self._is_repeated
        self._looks = wanted and not self._is_wanted

    def go_on(self) -> None:
        """Run on from where it was left to the end, until it is held: somebody asked for it.

        At the limit of memory it may keep as much again.
        """
        if self._debugger.overview().state is RunState.OUT_OF_MEMORY:
            self._memory += MEMORY
        self._is_automatic = True
        self._go_on_for(math.inf, math.inf)

    def _go_on_for(self, seconds: float, endless_seconds: float) -> None:
        self._is_wanted, self._looks = True, False
        self._left, self._endless_left = seconds, endless_seconds

    def hold(self) -> bool:
        """Leave the run where it has come, until it is asked for again; True if it was under way."""
        was_wanted, self._is_wanted = self._is_wanted, False
        if was_wanted and self._debugger.overview().state is RunState.NOT_RUN:
            self._is_automatic = self._is_repeated = False
        return was_wanted

    def give_up(self) -> None:
        """Do nothing more by itself: it has failed."""
        self._is_automatic = self._is_repeated = self._is_wanted = self._looks = False

    @property
    def is_shown(self) -> bool:
        """True while somebody looks at the facts."""
        return self._is_shown

    @property
    def has_work(self) -> bool:
        """True if the run is to continue, or NaN and Inf are to be looked for in it."""
        return self._is_wanted or self._looks

    def view(self) -> Overview | None:
        """Return what is known; None while nobody looks. One that only gives way to something else is running."""
        known = self.known
        is_due = self._is_automatic or self._is_repeated
        if known is not None and known.state is RunState.NOT_RUN and is_due and not self._is_wanted:
            self._go_on_for(SECONDS, ENDLESS_SECONDS)
        return self._as_shown(known) if known is not None and self._is_shown else None

    @property
    def known(self) -> Overview | None:
        """Return what is known of the run, also while nobody looks; None where no run was to be made."""
        return self._debugger.overview() if self._is_shown or self._is_repeated else None

    def _as_shown(self, known: Overview) -> Overview:
        gives_way = self._is_wanted and known.state in (RunState.PAUSED, RunState.NOT_RUN)
        return replace(known, state=RunState.RUNNING) if gives_way else known

    def run_on(self) -> bool:
        """Run on, then look for the first NaN and Inf.

        The run ends, meets a limit, is held, or pauses because the debugger has other work. The search takes a while at
        a time. Returns True if there is more to do.
        """
        if not self._is_wanted:
            return self._look_on()
        begun = perf_counter()
        is_told = False

        def progress(known: Overview) -> None:
            nonlocal is_told
            self._tell(known)
            if known.state is not RunState.RUNNING and not is_told:
                is_told = True
                self._ended()

        known = self._debugger.run_overview(
            seconds=self._left, endless_seconds=self._endless_left, memory=self._memory, progress=progress
        )
        spent = perf_counter() - begun
        self._left, self._endless_left = max(self._left - spent, 0.0), max(self._endless_left - spent, 0.0)
        if known.state is not RunState.PAUSED:
            self._is_wanted = False
        self._looks = self._is_shown and not known.looked_through
        self._find(known)
        self._tell(known)
        return self.has_work

    def _find(self, known: Overview) -> None:
        """Look for what is wrong, when all is known of the run."""
        if not self.has_work and known.state is not RunState.PAUSED:
            self.findings.look(known)

    def _look_on(self) -> bool:
        known = self._debugger.overview()
        if not known.looked_through:
            known = self._debugger.look_through(seconds=LOOKED)
            self._tell(known)
        self._looks = self._is_shown and not known.looked_through
        self._find(known)
        return self._looks

    def _tell(self, known: Overview) -> None:
        self._grew(self._as_shown(known))
