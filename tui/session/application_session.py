"""The session: restored at the start, saved on the way, after a fault and at the end, and taken over by a debugger that
is opened anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec.structs import replace

from stepper.errors import StepperError, UsageError
from stepper.records import Record
from tui.paint.pane import Host
from tui.state import State
from tui.worker.driver import Driver, Receiver
from tui.worker.event_log import EventLog, LogKind

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.ir.model import Model
    from stepper.session.autosave import Autosave, RestoreResult

Reopen: TypeAlias = "Callable[[], Debugger]"
"""Reads the model and its inputs once more."""


class SessionHost(Host, Receiver, Protocol):
    """The application as its sessions and runs see it."""

    def say(self, text: str, tone: str = "dim") -> None:
        """Show a line above the prompt."""

    def open_first(self) -> None:
        """Close all that shows the run that was: another one follows, on the same screen if that can show it."""

    def drive(self, debugger: Debugger | Callable[[], Debugger] | None, log: EventLog | None = None) -> Driver:
        """Put a new driver in place of the present one, and return it; it is not started."""
        ...

    def start_driver(self) -> None:
        """Start the driver: put back what was kept, and do what the command line says."""

    def layout(self) -> dict[str, Any]:
        """Return how the screen is arranged, as it is kept."""
        ...

    def put_layout(self, layout: Mapping[str, Any], *, is_within: bool) -> None:
        """Arrange the screen as it was kept; `is_within`: the run stands between its start and its end."""


class SessionBegun(Record):
    """The session as it begins: the result of restoring; `is_within`: the run stands between its start and its end."""

    result: RestoreResult
    is_within: bool


class RestoreSession(Record):
    """Put back what was kept; without any, and if it `starts_up`, carry out the user's start-up file.

    `restored` is called in the worker with the answer.
    """

    autosave: Autosave | None
    starts_up: bool
    restored: Callable[[RestoreResult], None]

    def answer(self, debugger: Debugger) -> SessionBegun:
        """Return what to tell the user, and the layout that was kept."""
        from stepper.session.autosave import RestoreResult

        back = RestoreResult() if self.autosave is None else self.autosave.restore(debugger)
        if self.starts_up and not back.sentence:
            from stepper.commands import Interpreter
            from stepper.commands.session_commands import start_up

            problems = start_up(Interpreter(debugger), setting_up=True)
            back = replace(back, sentence="; ".join(problems), failed=bool(problems))
        self.restored(back)
        machine = debugger.machine
        return SessionBegun(back, machine.tick > 0 and not machine.finished)


class SaveSession(Record):
    """Save the session now; the answer is its file."""

    autosave: Autosave
    layout: Mapping[str, Any]

    def answer(self, debugger: Debugger) -> Path:
        """Return the file. StepperError where it cannot be written."""
        return self.autosave.save(debugger, self.layout)


class OpenAnew(Record):
    """Read model and inputs once more, and run to the same place; the answer is a debugger and a sentence."""

    reopen: Reopen
    autosave: Autosave | None
    layout: Mapping[str, Any]

    def answer(self, debugger: Debugger) -> tuple[Debugger, str]:
        """Return the other debugger. StepperError where the model cannot be read or run."""
        from tui.session.reopening import reopened

        part = partial(_kept_apart, self.autosave, self.layout)
        new, sentence, is_same = reopened(debugger, self.reopen, part)
        if is_same and self.autosave is not None:
            self.autosave.go_on()
        return new, sentence


class OpenFollowing(Record):
    """Begin another run, with breakpoints and watches of this one; the answer is a debugger and a sentence."""

    make: Reopen
    autosave: Autosave | None
    layout: Mapping[str, Any]

    def answer(self, debugger: Debugger) -> tuple[Debugger, str]:
        """Return the other debugger. StepperError where the model cannot be run so."""
        from tui.session.reopening import followed

        return followed(debugger, self.make, partial(_kept_apart, self.autosave, self.layout))


class OpenOtherForm(Record):
    """Begin anew with the sequences of the model opened as loops, or with the model as it was before (`closed`).

    The answer is a debugger, a sentence, and the model as it was.
    """

    closed: Model | None
    autosave: Autosave | None
    layout: Mapping[str, Any]

    def answer(self, debugger: Debugger) -> tuple[Debugger, str, Model]:
        """Return the other debugger. StepperError where the model cannot be run so."""
        from stepper.ir.reader import open_sequences
        from tui.session.reopening import followed

        model, before = self.closed, debugger.model
        model = open_sequences(before) if model is None else model
        found, _ = followed(debugger, lambda: debugger.on_form(model), partial(_kept_apart, self.autosave, self.layout))
        sentence = "the sequences are loops; Space closes them" if self.closed is None else "the sequences are closed"
        return found, sentence, before


def _kept_apart(autosave: Autosave | None, layout: Mapping[str, Any], old: Debugger) -> str:
    """Keep the session of a run that another one follows, so that neither replaces the other; return a sentence."""
    return "" if autosave is None else autosave.part(old, layout)


class ApplicationSession:
    """Session of the application: restored, saved, and taken over by a run that follows.

    `autosave` is None where nothing is kept, `reopen` where nothing can be read anew. `starts_up`: the user's start-up
    file is carried out if no session is put back. `last_layout` is how the screen was when it was left.
    """

    def __init__(self, host: SessionHost, autosave: Autosave | None, reopen: Reopen | None, *, starts_up: bool) -> None:
        self._host = host
        self.autosave = autosave
        self.reopen = reopen
        self._starts_up = starts_up
        self._is_cut_short = False
        self.last_layout: dict[str, Any] = {}
        self._closed: Model | None = None
        """The model as it was before its sequences were opened."""
        self.has_asked = False
        """True if it was said what becomes of edits, and nothing was done since."""

    @property
    def keeps(self) -> bool:
        """True if what the user has made of the run is there the next time."""
        return self.autosave is not None and self.autosave.keeps

    @property
    def lost_by_leaving(self) -> str:
        """The sentence on what would be lost with the application; empty where nothing would."""
        if not self._host.state.has_unkept_edits or self.keeps:
            return ""
        return "the edit is not kept (session save FILE keeps it)"

    @property
    def kept_at_leaving(self) -> str:
        """The sentence on the edits that were made here and come back; empty where there are none."""
        state = self._host.state
        if not state.has_edits or not self.keeps or not any(one.kind is LogKind.EDITED for one in state.lists.log):
            return ""
        return "edits are kept in the session and come back"

    # --- keeping -------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Put back what was kept, before anything else is done."""
        if self.autosave is not None or self._starts_up:
            question = RestoreSession(self.autosave, self._starts_up, self._restored)
            self._host.driver.ask(question, self._show_restored, title="restoring the session")

    def _restored(self, back: RestoreResult) -> None:
        """In the worker. Who leaves meanwhile leaves what is kept as it is."""
        self._is_cut_short = back.failed and self._host.driver.is_closed

    def _show_restored(self, found: SessionBegun) -> None:
        back = found.result
        self._host.put_layout(back.layout or {}, is_within=found.is_within)
        if back.sentence:
            self._tell(back.sentence, "bad" if back.failed else "dim")

    def save(self, say: bool = True) -> None:
        """Save it now. UsageError if it is not kept."""
        autosave, layout = self.autosave, self._host.layout()
        if autosave is None:
            raise UsageError("this session is not kept; session save FILE keeps it in a file")

        def saved(path: Path) -> None:
            if say:
                self._tell(f"session saved in {path}")

        self._host.driver.ask(SaveSession(autosave, layout), saved)

    def save_at_end(self) -> str:
        """Save it when the application has ended; return what to tell the user, empty where all is well."""
        try:
            return self._saved_at_end()
        finally:
            if self.autosave is not None:
                self.autosave.close()

    def _saved_at_end(self) -> str:
        driver = self._host.driver
        debugger = driver.ended()
        if self._is_cut_short or self.autosave is None or not driver.is_open:
            return ""
        if debugger is None:
            return "the session is not saved: an operation does not come to its end"
        try:
            self.autosave.save(debugger, self.last_layout)
        except StepperError as error:
            return f"the session is not saved: {error}"
        return ""

    def save_changes(self, debugger: Debugger, due: bool) -> tuple[str, bool]:
        """Save what has changed, in the worker after each job; return what is wrong with that, and True if there is
        something to save a little later."""
        autosave = self.autosave
        return ("", False) if autosave is None else (autosave.keep_up(debugger, due=due), autosave.is_due(debugger))

    def _tell(self, sentence: str, tone: str = "dim") -> None:
        self._host.say(sentence, tone)
        self._host.driver.log.add(LogKind.SESSION, sentence)

    # --- anew ----------------------------------------------------------------------------------------------------

    def rerun(self) -> None:
        """Open model and inputs anew; place, breakpoints and watches stay. UsageError where they are not known."""
        reopen = self.reopen
        if reopen is None:
            raise UsageError("where the model came from is not known; goto tick 0 begins anew")
        question = OpenAnew(reopen, self.autosave, self._host.layout())
        self._host.driver.ask(question, self.go_on_with, title="reading the model anew")

    def follow(self, make: Reopen) -> None:
        """Go on with another run, at its start, which takes breakpoints and watches over from this one."""

        def begun(found: tuple[Debugger, str]) -> None:
            self.reopen = make
            self.go_on_with(found)

        question = OpenFollowing(make, self.autosave, self._host.layout())
        self._host.driver.ask(question, begun, title="running on other inputs")

    def toggle_sequences(self) -> None:
        """Open the recurrent sequences of the model as loops, or close them again; the run begins anew."""

        def begun(found: tuple[Debugger, str, Model]) -> None:
            debugger, sentence, before = found
            self._closed = before if self._closed is None else None
            self.go_on_with((debugger, sentence))

        question = OpenOtherForm(self._closed, self.autosave, self._host.layout())
        self._host.driver.ask(question, begun, title="opening sequences")

    def go_on_with(self, found: tuple[Debugger, str]) -> None:
        """Put another debugger in place of the present one."""
        debugger, sentence = found
        host, old = self._host, self._host.driver
        debugger.protected += old.protected
        host.open_first()
        statistic = host.state.statistic
        old.ended()
        host.drive(debugger, old.log).start()
        if statistic != State().statistic:
            host.perform(f"statistic {statistic}", echo=False)
        self._tell(sentence)
