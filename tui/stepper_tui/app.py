"""The terminal application: screens, and what connects keys, prompt and driver. It holds no semantics of its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from time import perf_counter, thread_time
from typing import IO, TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace
from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.screen import Screen

from stepper.debug.overview.overview_facts import RunState
from stepper.errors import StepperError, UsageError
from stepper.records import Record
from stepper_tui.command_line import VIEWS, ActionPalette, Actions, CommandLine
from stepper_tui.keys import KEYS
from stepper_tui.paint.pane import Pane
from stepper_tui.registry import actions
from stepper_tui.screens.base import DebugScreen
from stepper_tui.session import ApplicationSession, InputChooser, Reopen, layout_of, put_layout
from stepper_tui.state import (
    Answered,
    EditorCame,
    EditorMoves,
    FaultFound,
    InputLoaded,
    InputsRefused,
    OverviewGrew,
    Reply,
    RunProgress,
    State,
    StateChanged,
)
from stepper_tui.theme import THEMES, Look
from stepper_tui.worker.driver import Driver

_SIGNALS = ("SIGTERM", "SIGHUP")
_AT_ONCE = ("escape", "q", "ctrl+c", "ctrl+q", "ctrl+z")
_WITHOUT_RUN = ("inputs", "help")
"""Screens that can be shown while the inputs are chosen."""
_SETTLING = 0.4
"""Seconds after the first picture in which nothing is loaded that is not on it, so that the run behind it is there."""
_EDITS = ("set", "undo", "branch")
_PATIENCE = 2.0
"""Seconds that keys wait at most for what they act on."""
_SHARE = 40
"""A movement under way is shown again after so many times as long as the last picture of it took."""
_SHARE_BEHIND = 100
"""The same for the run behind the overview."""
if TYPE_CHECKING:  # what the first picture does not need is imported where it is called for
    from textual.driver import Driver as TerminalDriver
    from textual.drivers.linux_driver import LinuxDriver

    from stepper.commands.command_completion import Completion
    from stepper.debug.debugger import Debugger
    from stepper.debug.stop import Stop
    from stepper.integrations.dap import Visit
    from stepper.integrations.dap.joining import RunPort
    from stepper.session.autosave import Autosave
    from stepper.session.input_choices import InputChoices, Opening
    from stepper_tui.keymap import ChosenKeys
    from stepper_tui.screens.sheet.screen import SheetScreen
    from stepper_tui.screens.value.inspected import Subject
    from stepper_tui.worker.python_prompt import PythonPrompt

    _Base = LinuxDriver
else:
    _Base = object

_CLEAR = "\x1b[H\x1b[2J"


class ClearingDriver(_Base):
    """To be named before a driver class: what is painted is cleared before the normal screen is put back.

    tmux takes lines of the other screen for lines of the normal one if the terminal was made smaller meanwhile.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file: Any = LastingFile(self._file)

    def stop_application_mode(self) -> None:
        """Leave the other screen, empty."""
        self.write(_CLEAR)
        super().stop_application_mode()


class LastingFile:
    """A terminal that takes what is written to it also when it is gone.

    Textual writes in a thread that would end at the first error, and waits for it for ever.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write it, if the terminal is there; return the number of characters."""
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Have it shown, if the terminal is there."""
        with contextlib.suppress(OSError):
            self._file.flush()


def clearing(driver: type[TerminalDriver]) -> type[TerminalDriver]:
    """Return the class of a driver that clears what it has painted when it leaves the terminal."""
    return type(f"Clearing{driver.__name__}", (ClearingDriver, driver), {})


def _settle() -> None:
    """Load what the first key will need, with all screens. What is there now stays, where we began without the
    collector: else its pauses are the longest frames."""
    from stepper.commands.command_session import commands

    actions()
    commands()
    for view in VIEWS.values():
        view.load()
    import_module("stepper_tui.screens.cursor_lines")  # what is typed there may be of the cursor
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


class _Settling(Record):
    """Request to load in the worker what the first key will need; a run stands still for it.

    During a run each file of each module would wait for the interpreter, and the keys with it.
    """

    def answer(self, _debugger: Debugger) -> None:
        """Load it."""
        _settle()


class StepperApp(App[int]):
    """The debugger on a screen. `lines` are commands to begin with."""

    TITLE = "stepper"
    COMMANDS: ClassVar = {Actions}
    BINDINGS: ClassVar[list[BindingType]] = []
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "f24"
    """The palette has its key in keys.py, where it can be changed; this one is on no keyboard."""
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self,
        debugger: Debugger | Callable[[], Debugger] | None,
        name: str,
        look: Look | None = None,
        lines: Sequence[str] = (),
        *,
        light: bool = False,
        keys: ChosenKeys | None = None,
        autosave: Autosave | None = None,
        opening: Opening | None = None,
        reopen: Reopen | None = None,
        choosing: Callable[[], Opening] | None = None,
        starts_up: bool = False,
        runs: bool | None = None,
        editors: RunPort | None = None,
    ) -> None:
        """A debugger, or how it is made when the first screen is there; None: of a model whose inputs are chosen first
        (`opening`). `choosing` is how those of a debugger can be chosen anew.

        `runs`: the run behind the sheet is made at once (False: when it is asked for).

        `editors` is where editors join the run.
        """
        super().__init__()
        self.keymap = KEYS if keys is None else keys.keymap
        self.answered = "", "dim"
        self._refused: tuple[str, str] | None = None
        """The answer that said what is wrong with a line."""
        self._editors = editors
        self._editor = "" if editors is None else f"dap {editors.number}"
        self._conflicts = () if keys is None else keys.conflicts
        self.look = Look() if look is None else look
        self.state = State(model=name, editor=self._editor)
        self.runs = runs
        self.refusal: Exception | None = None
        """Why there is no debugger, where that ended the application."""
        self.asked_pane: Pane | None = None
        self.typed: list[str] = []
        self._command_line = CommandLine(self)
        self.session = ApplicationSession(self, autosave, reopen, starts_up=starts_up)
        self.chooser = InputChooser(self, self.session, opening, choosing)
        self.driver = self.drive(debugger)
        self._lines = tuple(lines)
        self._faults: set[str] = set()
        self._tells_fault = False
        self._progress_due = 0.0
        self._held: list[events.Key] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "stepper-light" if light else "stepper-dark"
        self.stylesheet.set_variables(self.get_css_variables())  # before anything is styled
        self._is_styled = True

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """So that themes that do not know of them work, too."""
        theme = self.current_theme
        return {"warm": theme.warning or "#e8a04c", "cool": theme.secondary or "#5b8fd9"}

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything anew, but for the first time: all is styled as it comes, with the theme that is set."""
        if self._is_styled:
            self._is_styled = False
        else:
            super().refresh_css(animate)

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen under all others."""
        return VIEWS["sheet"].load()(self)

    def get_driver_class(self) -> type[TerminalDriver]:
        """Return what draws: on a terminal one that leaves nothing behind there."""
        found = super().get_driver_class()
        return found if os.environ.get("TEXTUAL_DRIVER") else clearing(found)

    def on_mount(self) -> None:
        """Begin."""
        self._leave_on_signals()
        self.app_resume_signal.subscribe(self, lambda _app: self.refresh(layout=True))  # the terminal is empty
        if self.inputs is not None:
            self.push_screen(VIEWS["inputs"].load()(self))
        self.set_timer(_SETTLING, self._settle_when_open)
        if self._editors is not None:
            self._editors.open(self)

    def on_ready(self) -> None:
        """The screen is painted: begin with the model."""
        if self.inputs is None:
            self.start_driver()

    def _leave_on_signals(self) -> None:
        """A terminal that is closed leaves a session that is saved."""
        if not self.is_headless:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                for name in _SIGNALS:
                    if hasattr(signal, name):
                        number = getattr(signal, name)
                        asyncio.get_running_loop().add_signal_handler(number, self.leave, 128 + number)

    @cached_property
    def python(self) -> PythonPrompt:
        """The lines of Python that are evaluated on values of the run."""
        from stepper_tui.worker.python_prompt import PythonPrompt

        return PythonPrompt()

    @property
    def inputs(self) -> InputChoices | None:
        """The choices for the model's inputs; None if they are not open to choice, or nobody has asked."""
        return self.chooser.choices

    def to_choose(self) -> InputChoices | None:
        """Return what was chosen for the inputs, also on the command line; None where nothing can be chosen."""
        return self.chooser.to_choose()

    def layout(self) -> dict[str, Any]:
        """Return the layout of the screen, in the form that is saved."""
        return layout_of(self)

    def put_layout(self, layout: Mapping[str, Any], *, is_within: bool) -> None:
        """Arrange the screen as it was kept."""
        put_layout(self, layout)

    def drive(self, debugger: Debugger | Callable[[], Debugger] | None, *, follows: bool = False) -> Driver:
        """Replace the driver, and return the new one; it is not started. `follows`: there was another run."""
        if self._editors is not None and follows:
            self._editors.end_session(restarts=True)
        self.driver = Driver(self, debugger, self.state.model, keep=self.session.save_changes, editors=self._editors)
        return self.driver

    def start_driver(self) -> None:
        """Put back what was kept, and do what the command line says."""
        self.driver.start()
        self.session.restore()
        for line in self._lines:
            self.driver.execute(line)
        if self._conflicts:
            more = f" (and {len(self._conflicts) - 1} more: stepper help keys)" if len(self._conflicts) > 1 else ""
            self.call_after_refresh(self.say, f"keys in conflict: {self._conflicts[0]}{more}", "edit")

    def _settle_when_open(self) -> None:
        """Wait for the model, which comes first."""
        if self.inputs is None and not (self.driver.is_open or self.driver.is_closed):
            self.set_timer(_SETTLING, self._settle_when_open)
        elif self.driver.is_open and not self.driver.is_closed:
            self.driver.ask(_Settling(), lambda _: None, gives_way=True)
        else:
            _settle()

    # --- the host of editors, in their threads -------------------------------------------------------------------

    @property
    def is_moving(self) -> bool:
        """True while the run is moved from here."""
        return self.driver.is_moving

    @property
    def has_ended(self) -> bool:
        """True if what waits for the run is never done."""
        return self.driver.has_ended

    def visit(self, visit: Visit) -> None:
        """Have this done with the run, when it is its turn. UsageError where there is no run yet."""
        self.driver.visit(visit)
        if visit.title:
            self.post_message(EditorMoves())

    def on_editor_moves(self, _message: EditorMoves) -> None:
        """Show how far a movement has come that an editor has asked for."""
        self.driver.watch()

    def tell_editor(self, *, joined: bool) -> None:
        """An editor has come, or has left."""
        self.post_message(EditorCame(joined=joined))

    def on_editor_came(self, message: EditorCame) -> None:
        """Show that the run has a second reader."""
        assert self._editors is not None
        self._editor = "editor" if message.joined else f"dap {self._editors.number}"
        if self._has_front:
            self.state = replace(self.state, editor=self._editor)
            self.front.show(self.state)
            self.say("an editor has joined the run" if message.joined else "the editor has left")

    # --- what the driver tells -----------------------------------------------------------------------------------

    def on_state_changed(self, message: StateChanged) -> None:
        """A new picture; the first one after inputs were chosen opens the first screen."""
        if self.driver.is_closed or not self._has_front:
            return  # it was on its way when the application ended
        before, reply = self.state, message.reply
        same = before.frame is not None and message.state.frame is not None
        same = same and before.frame.program is message.state.frame.program  # type: ignore[union-attr]
        keeps = same and (reply is None or not reply.moved)
        self.state = replace(message.state, selected=before.selected if keeps else None, editor=self._editor)
        if self.chooser.begins:
            self.chooser.begins = False
            self.say("")
            self.sheet()
        if reply is not None and reply.moved:
            self.front.put_card("", ())
            self.session.was_edited |= reply.command in _EDITS
        self.front.show(self.state)
        tick, was = (None if one.view is None else one.view.tick for one in (self.state, before))
        is_asked = reply is not None and reply.moved
        if (tick != was or is_asked) and was is not None and self._sheet is not None:
            self._sheet.run_moved("" if reply is None else reply.command)
            if reply is not None and reply.moved and self.state.stop is not None and self.state.stop.causes:
                self._ask_by_itself(self.state.stop)
        if reply is not None:
            self._answer(reply)
        if reply is not None and reply.ended:
            self.leave()

    def _ask_by_itself(self, stop: Stop) -> None:
        """Open the explanation of a stop whose cause is in another iteration."""
        from stepper_tui.screens.sheet.questions import question_of

        question = question_of(stop, self.driver.compiled)
        if question is not None:
            self.sheet().model.ask(question)

    def on_overview_grew(self, message: OverviewGrew) -> None:
        """More is known of the whole run."""
        if self.driver.is_closed or not self._has_front:
            return
        if message.overview.state is RunState.RUNNING and perf_counter() < self._progress_due:
            return
        began = thread_time()  # without what it waits for the run
        self.state = replace(self.state, overview=message.overview)
        self.front.grew(message.overview)
        self._wait_with_progress(began, _SHARE_BEHIND)
        self.call_after_refresh(self._wait_with_progress, began, _SHARE_BEHIND)
        self.call_after_refresh(self.driver.painted)

    def on_run_progress(self, message: RunProgress) -> None:
        """A movement is under way."""
        if self.driver.is_busy and self._has_front and perf_counter() >= self._progress_due:
            began = thread_time()
            self.state = replace(self.state, running=message.running)
            self.front.show_running(self.state)
            self._wait_with_progress(began, _SHARE)
            self.call_after_refresh(self._wait_with_progress, began, _SHARE)

    def _wait_with_progress(self, began: float, share: int) -> None:
        """Leave the processor to the run for long enough after a picture of it, what painting it took included."""
        self._progress_due = perf_counter() + share * (thread_time() - began)

    def on_answered(self, message: Answered) -> None:
        """The answer to a question of a pane."""
        if not self._has_front:
            return
        if message.error:
            if message.refused is None:
                self.say(message.error, "bad")
            else:
                self._refuse(message.line, message.refused)
            self._held.clear()  # what they were meant for is not there
            return
        try:
            message.then(message.answer)
        except Exception as error:  # a fault in a pane must not end the session
            self.report_fault(f"what is shown of {message.question}", error)
        self.release_keys()

    def on_fault_found(self, message: FaultFound) -> None:
        """Something is wrong in the program itself."""
        kept = self.session.autosave is not None and self.driver.is_open
        self._tells_fault = False  # of two the later one is told
        self.say(f"a fault in {message.where}: {message.text}; the session goes on{', saved' if kept else ''}", "bad")
        self._tells_fault = True
        if kept:
            self.session.save(say=False)

    def on_inputs_refused(self, message: InputsRefused) -> None:
        """The model cannot be run on the inputs that were chosen; without a choice there is nothing to be seen."""
        if self.inputs is None:
            self.refusal = message.error
            self.leave(1)
        else:
            self.chooser.refuse(message.text)

    def on_input_loaded(self, message: InputLoaded) -> None:
        """The value of an input is made, or will not be."""
        from stepper_tui.screens.inputs import InputsScreen

        self.chooser.take(message.load, message.outcome)
        if self._has_front and isinstance(self.front, InputsScreen):
            self.front.refresh_choices()

    def report_fault(self, where: str, error: Exception) -> None:
        """Say once what went wrong in a pane."""
        text = f"{where} {error!r}"
        if text not in self._faults:
            self._faults.add(text)
            self.log.error(text)
            self.post_message(FaultFound(where, repr(error)))

    def _answer(self, reply: Reply) -> None:
        if reply.refused is not None:
            self._refuse(reply.line, reply.refused)
            return
        if reply.logged:
            self.front.put_card(reply.line, reply.logged)
        if not reply.lines:
            self.say("")
            return
        tone = "bad" if reply.is_error else "dim"
        if reply.moved and not reply.is_error:
            self.say(" ".join(note.strip() for note in reply.notes) or self._stop_line(reply.lines[0]), tone)
        elif len(reply.lines) > 1 and not reply.is_error and self.front.put_card(reply.line, reply.lines):
            self.say(f"{reply.line}: {len(reply.lines)} lines")
        else:
            self.say(" ".join(line.strip() for line in reply.lines), tone)

    def _stop_line(self, first: str) -> str:
        """A stop in a line; `first` is the first line of its answer."""
        stop = self.state.stop
        if stop is not None and stop.searched is not None:
            from stepper.commands.command_session import searched_text

            return f"paused: {searched_text(stop.searched)}"
        return stop.details[0] if stop is not None and stop.is_interrupted else first

    # --- commands ------------------------------------------------------------------------------------------------

    def perform(self, line: str) -> None:
        """Carry out a line: an action of the screen, or else a command of the debugger."""
        self._tells_fault = False
        refused = self._refused
        if line not in ("back", "quit"):
            self.session.has_asked = False
        try:
            self._command_line.perform(line)
        except StepperError as error:
            self._refuse(line, error)
        except Exception as error:  # a fault in an action must not end the session
            self.report_fault(line.partition(" ")[0], error)
        else:
            is_before = self.answered is refused is self._refused  # not that of a line that this one has carried out
            if is_before and not line.startswith("prompt"):  # who types it anew still reads it
                self.say("")

    @property
    def chosen_address(self) -> str:
        """The address under the cursor of the focused pane; empty where that has none."""
        return self._command_line.chosen_address

    def filled(self, line: str) -> str:
        """Return the line with the selected operation in it. UsageError where there is none."""
        return self._command_line.filled(line)

    def completions(self, line: str, most: int) -> list[Completion]:
        """Return how a line can go on, with what its names are now."""
        return self._command_line.completions(line, most)

    def take_completion(self, completion: Completion) -> None:
        """Put a completion into the line that is typed."""
        if self.focused is self.front.prompt:
            self.front.prompt.take(completion)

    def _refuse(self, line: str, error: StepperError) -> None:
        """Say what is wrong with a line; of an ambiguous name, what there is to pick."""
        self.say(error.reason if error.candidates and error.reason else str(error), "bad")
        self._refused = self.answered
        if error.candidates:
            frames = self.state.frames[: self.state.depth + 1]
            self.asked_pane = self.focused_pane or self.asked_pane
            self.front.pick("which one?", self._command_line.completer.instead(line, error, frames))

    def show_card(self, title: str, lines: tuple[str, ...]) -> None:
        """Show an answer of several lines."""
        if not self.front.put_card(title, lines):
            self.say(" ".join(lines))

    def say(self, text: str, tone: str = "dim") -> None:
        """Show a line above the prompt; a fault stays there until the user does something."""
        if self._tells_fault:
            return
        self.answered = " ".join(text.split()), tone
        if self._has_front:
            self.front.put_answer(*self.answered)

    def select(self, index: int | None) -> None:
        """Select an operation of the frame that is looked at; None follows the moment."""
        self.state = replace(self.state, selected=index)
        self.front.show(self.state)

    # --- screens -------------------------------------------------------------------------------------------------

    @property
    def front(self) -> DebugScreen:
        """The screen in front, without what lies over it."""
        return next(screen for screen in reversed(self.screen_stack) if isinstance(screen, DebugScreen))

    @property
    def _has_front(self) -> bool:
        """True until the end: what was on its way then finds no screen any more, or only one of Textual's own."""
        return any(isinstance(screen, DebugScreen) for screen in self.screen_stack)

    @property
    def focused_pane(self) -> Pane | None:
        """The pane with the focus."""
        focused = self.focused
        return focused if isinstance(focused, Pane) else None

    @property
    def _sheet(self) -> SheetScreen | None:
        """The sheet, which lies below all others."""
        from stepper_tui.screens.sheet.screen import SheetScreen

        return next((screen for screen in self.screen_stack if isinstance(screen, SheetScreen)), None)

    def sheet(self) -> SheetScreen:
        """Bring the sheet to the front. UsageError before there is a run."""
        self._need_run()
        while not isinstance(self.front, VIEWS["sheet"].load()) and self.close_view():
            pass
        found = self._sheet
        assert found is not None
        return found

    def open_view(self, name: str) -> None:
        """Open one of the screens of command_line.py. UsageError for one that there is not."""
        view = VIEWS.get(name)
        if view is None:
            raise UsageError(f"there is no view '{name}'; there are {', '.join(VIEWS)}")
        if name not in _WITHOUT_RUN:
            self._need_run()
        kind = view.load()
        if name == "sheet":
            self.sheet()
        elif name == "value":
            self.perform("value")
        elif not isinstance(self.front, kind):
            if name == "graph":
                for line in self.sheet().model.line_to_moment:
                    self.perform(line)
            self.asked_pane = self.focused_pane
            self.push_screen(kind(self))

    def _need_run(self) -> None:
        if self._is_without_run:
            raise UsageError("the model does not run yet: choose its inputs, F5 runs")

    @property
    def _is_without_run(self) -> bool:
        """True if inputs are to be chosen before there is a run."""
        return self.inputs is not None and self.state.view is None and not self.driver.is_open

    def open_value(self, subject: Subject) -> None:
        """Show this value full screen."""
        from stepper_tui.screens.value.screen import ValueScreen

        self.asked_pane = self.focused_pane
        self.push_screen(ValueScreen(self, subject))

    def open_sheet(self, text: str) -> None:
        """Show these values over the iterations."""
        from stepper_tui.screens.sheet.questions import OpenSheet

        sheet = self.sheet()
        if text:
            sheet.model.show(OpenSheet(None, text=text))

    def open_first(self) -> None:
        """Close all that shows the run that was: another one follows."""
        while self.close_view():
            pass

    def close_view(self) -> bool:
        """Close the screen in front; False if it is the last."""
        is_first = self._is_without_run and self.front.view_name == "inputs"  # what lies below them shows a run
        if len(self.screen_stack) < 2 or is_first:
            return False
        self.pop_screen()
        return True

    def close_card(self) -> bool:
        """Close what covers something."""
        return self.front.close_picks() or self.front.close_card()

    def move_focus(self, by: int) -> None:
        """Another pane."""
        if by > 0:
            self.screen.focus_next(Pane)
        else:
            self.screen.focus_previous(Pane)

    def open_prompt(self, text: str = "") -> None:
        """Type a command."""
        prompt = self.front.prompt
        self.asked_pane = self.focused_pane
        prompt.value = text
        self.front.set_focus(prompt)  # at once: what is typed next is for it
        prompt.cursor_position = len(text)

    def close_prompt(self) -> None:
        """Back to the pane from which it was opened."""
        prompt = self.front.prompt
        prompt.value = ""
        pane = self.asked_pane if self.asked_pane is not None and self.asked_pane.is_attached else None
        pane = pane or self.front.first_pane()
        if pane is not None:
            self.front.set_focus(pane)

    def submit(self, line: str) -> None:
        """Carry out a line that was typed."""
        self.front.prompt.remember(line)
        self.close_prompt()
        self.perform(line)

    def show_keys(self) -> None:
        """Name the keys that hold now in the last line of the screen."""
        self.front.show_keys()

    def heed(self, event: events.Key) -> bool:
        """Carry out what a key means in the focused pane; True if it means anything."""
        return self.front.heed(event)

    async def on_event(self, event: events.Event) -> None:
        """A key that has a meaning is heeded at once, not after its way through the panes.

        Who types `:next` quickly has typed the n before the prompt would be there.
        """
        if isinstance(event, events.Key) and not event.is_forwarded and isinstance(self.screen, DebugScreen):
            focused = self.focused
            free = focused is None or (isinstance(focused, Pane) and not focused.is_typing)
            if free and self._holds(event, self.screen):
                return
            if free and self.screen.heed(event):
                return
        await super().on_event(event)

    def _holds(self, event: events.Key, screen: DebugScreen) -> bool:
        """Keep a key that was typed before the screen has what it acts on; those that close come at once."""
        if event.key in _AT_ONCE:
            self._held.clear()
            return False
        if not self._held and screen.is_ready and not screen.awaits_answer:
            return False
        if not self._held:
            self.set_timer(_PATIENCE, lambda: self._release(given_up=True))
        self._held.append(event)
        return True

    def release_keys(self) -> None:
        """Carry out the keys that were typed before a screen had its parts."""
        if self._held:
            self.call_next(self._release)

    async def _release(self, *, given_up: bool = False) -> None:
        """Carry out the keys that waited, in their order, up to one that others have to wait for."""
        waited, self._held = self._held, []
        while waited:
            screen = self.screen
            is_early = isinstance(screen, DebugScreen) and (not screen.is_ready or screen.awaits_answer)
            if is_early and not given_up:
                self._held = [*waited, *self._held]
                return
            event = waited.pop(0)
            focused = self.focused
            free = focused is None or (isinstance(focused, Pane) and not focused.is_typing)
            if not (isinstance(screen, DebugScreen) and free and screen.heed(event)):
                await super().on_event(event)

    def action_command_palette(self) -> None:
        """Every action by name."""
        if not any(isinstance(screen, ActionPalette) for screen in self.screen_stack):
            self.push_screen(ActionPalette(placeholder="an action", classes="-ascii" if self.look.ascii else None))

    def leave(self, code: int = 0) -> None:
        """End with this exit code; a movement under way is left where it is."""
        if self._has_front:
            self.session.last_layout = self.layout()
        self.driver.close()
        self.exit(code)
