"""The run behind the overview, made by the worker in stretches while nothing else is asked for: bounded, to be held."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from stepper.debug.overview.facts import Overview, RunState
from tui.worker.findings import KnownFindings

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger

SECONDS = 10.0
"""Seconds for which the run goes on by itself."""
ENDLESS_SECONDS = 2.0
"""The same, where a loop can never end."""
MEMORY: Final = 2**29
"""Bytes that it may keep by itself."""
LOOKED: Final = 0.25
"""Seconds for which births of NaN and Inf are looked for at a time, when the run is over."""


class BackgroundRun:
    """Lives in the worker; `hold` and `is_wanted` are for any thread. `grew` is told, at most 30 times a second, what
    is known; `ended` when the run is over, before births and faults are looked for."""

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
    def is_wanted(self) -> bool:
        """True if it is under way, or waits for what goes first."""
        return self._is_wanted

    @property
    def is_shown(self) -> bool:
        """True while somebody looks at the facts."""
        return self._is_shown

    @property
    def is_over(self) -> bool:
        """True if it was made by itself, to the end or as far as its limits allow."""
        state = self._debugger.overview().state
        return self._is_automatic and not self._is_wanted and state not in (RunState.NOT_RUN, RunState.RUNNING)

    @property
    def has_work(self) -> bool:
        """True if the run is to go on, or births are to be looked for in what has run."""
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
        """Run on until it ends, a limit is met, it is held, or the debugger is paused for something else; then look for
        births, a while at a time. True if there is more to do."""
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
