"""Durable: what of the application makes a session last. Restored at the start, saved at the end and after a fault,
taken over by a debugger that is opened anew."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from stepper.commands import Interpreter
from stepper.commands.start_up import start_up
from stepper.debug.debugger import Debugger
from stepper.errors import StepperError, UsageError
from stepper.session.keeper import Back, Keeper
from tui.screens.base import DebugScreen
from tui.session.layout import layout_of, put_layout
from tui.stage import Stage
from tui.state import State
from tui.worker.driver import Driver
from tui.worker.event_log import Kind

Reopen = Callable[[], Debugger]
"""Reads the model and its inputs once more."""
_SIGNALS = ("SIGTERM", "SIGHUP")


class Durable(Stage):
    """`keeper` is None where nothing is kept, `reopen` where nothing can be read anew."""

    keeper: Keeper | None = None
    starts_up = False
    """True where the user's start-up file is carried out, if no session is put back."""
    _is_cut_short = False
    reopen: Reopen | None = None

    @property
    def front(self) -> DebugScreen:
        """The screen in front, without what lies over it."""
        return next(screen for screen in reversed(self.screen_stack) if isinstance(screen, DebugScreen))

    # --- keeping -------------------------------------------------------------------------------------------------

    def take_up(self) -> None:
        """Put back what was kept, before anything else is done."""
        if self.keeper is not None or self.starts_up:
            self.driver.ask(partial(self._restored, self.keeper), self._taken_up, title="restoring the session")

    def _restored(self, keeper: Keeper | None, debugger: Debugger) -> Back:
        """In the worker. Who leaves meanwhile leaves what is kept as it is."""
        back = Back() if keeper is None else keeper.restore(debugger)
        if self.starts_up and not back.sentence:
            problems = start_up(Interpreter(debugger), setting_up=True)
            back = replace(back, sentence="; ".join(problems), failed=bool(problems))
        self._is_cut_short = back.failed and self.driver.is_closed
        return back

    def _taken_up(self, back: Back) -> None:
        if back.layout is not None:
            put_layout(self, back.layout)
        if back.sentence:
            self._tell(back.sentence, "bad" if back.failed else "dim")

    def save_session(self, say: bool = True) -> None:
        """Keep it now."""
        keeper, layout = self.keeper, layout_of(self, self.front)
        if keeper is None:
            raise UsageError("this session is not kept; session save FILE keeps it in a file")

        def saved(path: Path) -> None:
            if say:
                self._tell(f"session saved in {path}")

        self.driver.ask(lambda debugger: keeper.save(debugger, layout), saved)

    def keep_at_end(self) -> str:
        """Keep it when the application has ended; what to tell the user, empty where all is well."""
        try:
            return self._kept_at_end()
        finally:
            if self.keeper is not None:
                self.keeper.close()

    def _kept_at_end(self) -> str:
        debugger = self.driver.ended()
        if self._is_cut_short:
            return ""
        if self.keeper is None or not self.driver.is_open:
            return ""
        if debugger is None:
            return "the session is not saved: an operation does not come to its end"
        try:
            self.keeper.save(debugger, self.last_layout)
        except StepperError as error:
            return f"the session is not saved: {error}"
        return ""

    def keep_up(self, debugger: Debugger, due: bool) -> tuple[str, bool]:
        """Called in the worker after each job: save what has changed. What is wrong with that, and whether there is
        something to save a little later."""
        keeper = self.keeper
        return ("", False) if keeper is None else (keeper.keep_up(debugger, due=due), keeper.is_due(debugger))

    def leave_when_told(self) -> None:
        """A terminal that is closed leaves a session that is saved."""
        if not self.is_headless:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                for name in _SIGNALS:
                    if hasattr(signal, name):
                        number = getattr(signal, name)
                        asyncio.get_running_loop().add_signal_handler(number, self.leave, 128 + number)

    def _tell(self, sentence: str, tone: str = "dim") -> None:
        self.say(sentence, tone)
        self.driver.log.add(Kind.SESSION, sentence)

    # --- anew ----------------------------------------------------------------------------------------------------

    def rerun(self) -> None:
        """Open model and inputs anew; place, breakpoints and watches stay."""
        reopen = self.reopen
        if reopen is None:
            raise UsageError("where the model came from is not known; goto tick 0 begins anew")
        keeper, keep = self.keeper, self.keeping_other()

        def ask(old: Debugger) -> tuple[Debugger, str]:
            from tui.session.reopening import reopened

            new, sentence, is_same = reopened(old, reopen, keep)
            if is_same and keeper is not None:
                keeper.go_on()
            return new, sentence

        self.driver.ask(ask, self.go_on_with, title="reading the model anew")

    def keeping_other(self) -> Callable[[Debugger], str]:
        """Keeps the session of a run that another one follows, so that neither replaces the other; what to tell."""
        keeper, layout = self.keeper, layout_of(self, self.front)
        return lambda old: "" if keeper is None else keeper.part(old, layout)

    def go_on_with(self, found: tuple[Debugger, str]) -> None:
        """Another debugger in place of the present one."""
        debugger, sentence = found
        debugger.protected += self.driver.protected
        while self.close_view():
            pass
        log, statistic = self.driver.log, self.state.statistic
        self.driver.ended()
        self.found = ""
        self.driver = Driver(self, debugger, self.state.model, log, keep=self.keep_up)
        self.driver.start()
        if statistic != State().statistic:
            self.perform(f"statistic {statistic}", echo=False)
        self._tell(sentence)
