"""Everything that an application keeps from one time to the next: layout, inputs, the place in a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from stepper.debug.debugger import Debugger
from stepper.debug.timeline import ORIGINAL
from stepper.errors import StepperError, UsageError
from stepper.records import Record
from stepper_tui.state import InputLoaded

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.files.output import ProtectedFiles
    from stepper.ir.model import Model
    from stepper.session.autosave import Autosave, RestoreResult
    from stepper.session.input_choices import InputChoices, Load, LoadOutcome, Opening
    from stepper_tui.app import StepperApp


_MOST_LINES = 200
_LONGEST = 200


def layout_of(app: StepperApp) -> dict[str, Any]:
    """Return the layout that is kept."""
    front = app.front
    return {
        "theme": app.theme,
        "view": front.view_name,
        "shown": front.kept(),
        "lines": [line[:_LONGEST] for line in app.typed[-_MOST_LINES:]],
    }


def put_layout(app: StepperApp, layout: Mapping[str, Any]) -> None:
    """Arrange the screen as it was kept; a screen of an older version becomes the sheet."""
    theme, shown = _text(layout, "theme"), layout.get("shown")
    if theme in app.available_themes:
        app.theme = theme
    app.typed[:0] = typed_lines(layout)
    if _text(layout, "view") == "sheet" and isinstance(shown, Mapping):
        app.sheet().put_kept(shown)


def typed_lines(layout: Mapping[str, Any]) -> list[str]:
    """Return the lines that were typed at the prompt."""
    lines = layout.get("lines")
    found = lines[-_MOST_LINES:] if isinstance(lines, list) else []
    return [line[:_LONGEST] for line in found if isinstance(line, str) and line.isprintable()]


def _text(layout: Mapping[str, Any], name: str) -> str:
    value = layout.get(name)
    return value if isinstance(value, str) else ""


def reopened(
    old: Debugger, reopen: Callable[[], Debugger], keep: Callable[[Debugger], str]
) -> tuple[Debugger, str, bool]:
    """Return a debugger of the files as they are now, as far as possible where the old one was; a sentence on that, and
    whether the place is the same."""
    from stepper.session.session_files import restore_session, save_session  # the first picture has no use for it

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rerun.session"
        save_session(old, path)
        new = reopen()
        try:
            restore_session(new, path, is_own=True)
        except StepperError:
            begun = "read again; the run is another one and begins at its start"
            return *_followed(old, reopen(), path, keep, begun), False
    return new, f"read again, run to tick {new.machine.tick}", True


def followed(old: Debugger, make: Callable[[], Debugger], keep: Callable[[Debugger], str]) -> tuple[Debugger, str]:
    """A debugger of another run, at its start, with breakpoints and watches of the old one; and a sentence on that."""
    from stepper.session.session_files import save_session

    new = make()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "before.session"
        save_session(old, path)
        return _followed(old, new, path, keep, "runs on these inputs, at its start")


def _followed(
    old: Debugger, new: Debugger, path: Path, keep: Callable[[Debugger], str], sentence: str
) -> tuple[Debugger, str]:
    from stepper.session.session_files import restore_stops

    found, problems = restore_stops(new, path)
    kept = [] if found.empty else ["breakpoints and watches are set again"]
    return new, "; ".join(one for one in (sentence, *kept, *problems, _left_out(old), keep(old)) if one)


def _left_out(old: Debugger) -> str:
    """Return a sentence on the marks and branches of the old run, which mean nothing in another."""
    branches = [branch.name for branch in old.branches if branch.name != ORIGINAL]
    groups = (("mark", "marks", sorted(old.marks)), ("branch", "branches", branches))
    parts = [f"{one if len(names) == 1 else many} {', '.join(names)}" for one, many, names in groups if names]
    return f"left out, as of the run before: {' and '.join(parts)}" if parts else ""


def _made(opening: Opening, inputs: Mapping[int, Array], files: ProtectedFiles) -> Debugger:
    """Return a debugger on these inputs, which keeps their files from being written over."""
    debugger = opening.make(inputs)
    debugger.protected += files
    return debugger


class InputChooser:
    """Has the inputs of the model chosen, and begins runs on them.

    `choices` are those that were made; None: nobody has asked for any. `begins`: the first run on chosen inputs is
    being opened. `choosing` makes of inputs that were all given on the command line such that can be chosen anew
    (None: they cannot).
    """

    def __init__(
        self,
        host: StepperApp,
        session: ApplicationSession,
        opening: Opening | None,
        choosing: Callable[[], Opening] | None,
    ) -> None:
        self._host = host
        self._session = session
        self._choosing = choosing
        self.begins = False
        self.choices = None if opening is None else self._choices_of(opening)

    def to_choose(self) -> InputChoices | None:
        """Return what was chosen for the inputs, also on the command line; None where nothing can be chosen."""
        if self.choices is None and self._choosing is not None:
            self.choices = self._choices_of(self._choosing())
        return self.choices

    def _choices_of(self, opening: Opening) -> InputChoices:
        """Return those of a model; large values are made in a thread of their own."""
        from stepper.session.input_choices import InputChoices, Loader

        return InputChoices(opening, Loader(lambda load, outcome: self._host.post_message(InputLoaded(load, outcome))))

    def begin(self, inputs: Mapping[int, Array]) -> None:
        """Run the model on these inputs, by position; the main screen opens when the run stands at its start."""
        if self.choices is None:
            raise UsageError("the model's inputs were given")
        host = self._host
        make = partial(_made, self.choices.opening, inputs, self.choices.files)
        if host.driver.is_open:
            host.driver.pause()
            self._session.follow(make)
            return
        if self.begins:
            raise UsageError("the model is being read")
        host.say("reading the model")
        host.driver.close()
        self.begins = True
        self._session.reopen = make
        host.drive(make)
        host.start_driver()

    def refuse(self, problem: str) -> None:
        """Show that the model cannot be run on the inputs that were chosen."""
        self.begins = False
        self._host.drive(None)
        self._host.say(problem, "bad")

    def take(self, load: Load, outcome: LoadOutcome) -> None:
        """Keep the value of an input that is made, or why there is none."""
        if self.choices is not None:
            self.choices.take(load, outcome)


Reopen: TypeAlias = "Callable[[], Debugger]"
"""Reads the model and its inputs once more."""


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

    def __init__(self, host: StepperApp, autosave: Autosave | None, reopen: Reopen | None, *, starts_up: bool) -> None:
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
        self.was_edited = False
        """True if a command edited the run here."""

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
        if not (state.has_edits and self.keeps and self.was_edited):
            return ""
        return "edits are kept in the session and come back"

    # --- keeping -------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Put back what was kept, before anything else is done."""
        if self.autosave is not None or self._starts_up:
            question = RestoreSession(self.autosave, self._starts_up, self._restored)
            self._host.driver.ask(question, self._show_restored, title="restoring the session")

    def _restored(self, back: RestoreResult) -> None:
        """In the worker. Leaving meanwhile changes nothing that is kept."""
        self._is_cut_short = back.failed and self._host.driver.is_closed

    def _show_restored(self, found: SessionBegun) -> None:
        back = found.result
        self._host.put_layout(back.layout or {}, is_within=found.is_within)
        if back.sentence:
            self._host.say(back.sentence, "bad" if back.failed else "dim")

    def save(self, say: bool = True) -> None:
        """Save it now. UsageError if it is not kept."""
        autosave, layout = self.autosave, self._host.layout()
        if autosave is None:
            raise UsageError("this session is not kept; session save FILE keeps it in a file")

        def saved(path: Path) -> None:
            if say:
                self._host.say(f"session saved in {path}")

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

    # --- anew ----------------------------------------------------------------------------------------------------

    def rerun(self) -> None:
        """Open model and inputs anew; place, breakpoints and watches stay. UsageError where they are not known."""
        reopen = self.reopen
        if reopen is None:
            raise UsageError("where the model came from is not known; goto tick 0 starts again")
        question = OpenAnew(reopen, self.autosave, self._host.layout())
        self._host.driver.ask(question, self.go_on_with, title="reading the model again")

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
        """Replace the debugger."""
        debugger, sentence = found
        host, old = self._host, self._host.driver
        debugger.protected += old.protected
        host.open_first()
        old.ended()
        host.drive(debugger, follows=True).start()
        self._host.say(sentence)
