"""The terminal application: screens, and what connects keys, prompt and driver. It holds no semantics of its own."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

import tui.tensor_actions  # noqa: F401  # registers its actions
from stepper.debug.commands.registry import command_called
from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.errors import StepperError, UsageError
from tui import compare_actions as compare_actions
from tui import input_actions as input_actions
from tui import port_actions as port_actions
from tui.actions import ACTIONS
from tui.driver import Driver
from tui.inputs import InputChoices, Opening
from tui.messages import Changed, Fault, Found, Progress, Refused, Reply
from tui.palette import Actions
from tui.panes.base import Pane
from tui.panes.prompt import Prompt
from tui.registry import VIEWS
from tui.screens.base import DebugScreen
from tui.screens.inputs import InputsScreen
from tui.screens.main import MainScreen
from tui.stage import Stage
from tui.state import State
from tui.theme import THEMES, Look


class StepperApp(Stage):
    """The debugger on a screen. `lines` are commands to begin with."""

    TITLE = "stepper"
    CSS = """
    CommandPalette SearchIcon { display: none; }
    CommandPalette > Vertical { background: $surface; }
    """
    COMMANDS: ClassVar = {Actions}
    BINDINGS: ClassVar[list[BindingType]] = []
    ENABLE_COMMAND_PALETTE = True
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self,
        debugger: Debugger | Opening,
        name: str,
        look: Look | None = None,
        lines: Sequence[str] = (),
        *,
        light: bool = False,
    ) -> None:
        """A debugger; or a model whose inputs are chosen first, on the inputs screen."""
        super().__init__()
        self.look = Look() if look is None else look
        self.state = State(model=name)
        self.sought = ""
        self.asked_pane: Pane | None = None
        self.inputs = InputChoices(debugger) if isinstance(debugger, Opening) else None
        self.driver = Driver(self, None if isinstance(debugger, Opening) else debugger, name)
        self._lines = tuple(lines)
        self._faults: set[str] = set()
        self._begins = False
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "stepper-light" if light else "stepper-dark"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """So that themes that do not know of them work, too."""
        theme = self.current_theme
        return {"warm": theme.warning or "#e8a04c", "cool": theme.secondary or "#5b8fd9"}

    def get_default_screen(self) -> Screen[Any]:
        """The main screen."""
        return MainScreen()

    def on_mount(self) -> None:
        """Begin."""
        if self.inputs is None:
            self._start()
        else:
            self.push_screen(InputsScreen())
        self.call_after_refresh(self._settle)

    def _start(self) -> None:
        self.driver.start()
        for line in self._lines:
            self.driver.execute(line)

    def begin(self, inputs: Mapping[int, Array]) -> None:
        """Run the model on these inputs; the main screen opens when the run stands at its start."""
        if self.inputs is None:
            raise UsageError("the model's inputs were given")
        make = self.inputs.opening.make
        self.say("reading the model")
        self.driver.close()
        self._begins = True
        self.driver = Driver(self, lambda: make(inputs), self.state.model)
        self._start()

    def on_refused(self, message: Refused) -> None:
        """The inputs do not do."""
        self._begins = False
        self.driver = Driver(self, None, self.state.model)
        self.say(message.text, "bad")

    def _settle(self) -> None:
        """What is there now stays: without this the collector's pauses are the longest frames."""
        gc.collect()
        gc.freeze()

    # --- what the driver tells -----------------------------------------------------------------------------------

    def on_changed(self, message: Changed) -> None:
        """A new picture; the first one after inputs were chosen opens the main screen."""
        before, reply = self.state, message.reply
        same = before.frame is not None and message.state.frame is not None
        same = same and before.frame.program is message.state.frame.program  # type: ignore[union-attr]
        keeps = same and (reply is None or not reply.moved)
        self.state = replace(message.state, selected=before.selected if keeps else None)
        if self._begins:
            self._begins = False
            self.open_view("main")
        if reply is not None and reply.moved:
            self._front.put_card("", ())
        self._front.show(self.state)
        if reply is not None:
            self._answer(reply)
            if reply.ended:
                self.leave()

    def on_progress(self, message: Progress) -> None:
        """A movement is under way."""
        if self.driver.is_busy:
            self.state = replace(self.state, running=message.running)
            self._front.show_running(self.state)

    def on_found(self, message: Found) -> None:
        """The answer to a question of a pane."""
        if message.error:
            self.say(message.error, "bad")
            return
        try:
            message.then(message.answer)
        except Exception as error:  # a fault in a pane must not end the session
            self.report_fault(getattr(message.then, "__qualname__", "answer"), error)

    def on_fault(self, message: Fault) -> None:
        """Something is wrong in the program itself."""
        self.say(f"a fault in {message.where}: {message.text}; the session goes on", "bad")

    def report_fault(self, where: str, error: Exception) -> None:
        """Say once what went wrong in a pane."""
        text = f"{where} {error!r}"
        if text not in self._faults:
            self._faults.add(text)
            self.log.error(text)
            self.post_message(Fault(where, repr(error)))

    def _answer(self, reply: Reply) -> None:
        if not reply.lines:
            self.say("")
            return
        tone = "bad" if reply.is_error else "dim"
        if reply.moved and not reply.is_error:
            details = [line.strip() for line in reply.lines[1:] if line.startswith("  breakpoint")]
            self.say(details[0] if details else reply.lines[0], tone)
        elif len(reply.lines) > 1 and not reply.is_error and self._front.put_card(reply.line, reply.lines):
            self.say(f"{reply.line}: {len(reply.lines)} lines")
        else:
            self.say(" ".join(line.strip() for line in reply.lines), tone)

    # --- commands ------------------------------------------------------------------------------------------------

    def perform(self, line: str, *, echo: bool = True) -> None:
        """Carry out a line: an action of the screen, or else a command of the debugger."""
        try:
            text = self.filled(line).strip() if not line.startswith("prompt ") else line
            if text.startswith("@"):
                text = f"@ {text[1:]}"
            word, _, rest = text.partition(" ")
            action = ACTIONS.get(word) or self._action_beginning(word)
            if action is not None:
                action.carry_out(self, rest if action.name == "prompt" else rest.strip())
            else:
                self.driver.execute(text, echo=echo)
        except StepperError as error:
            self.say(str(error), "bad")

    def _action_beginning(self, word: str) -> Any:
        """The only action that begins so, where no command of the debugger does."""
        if not word:
            return None
        try:
            command_called(word)
        except StepperError:
            fitting = [name for name in ACTIONS if name.startswith(word)]
            return ACTIONS[fitting[0]] if len(fitting) == 1 else None
        return None

    def filled(self, line: str) -> str:
        """The line with the address of the selected operation in it. UsageError where nothing is selected."""
        if "{op}" not in line:
            return line
        frame, cursor = self.state.frame, self.state.cursor
        if frame is None or cursor is None:
            raise UsageError("nothing is selected: the run has ended")
        return line.replace("{op}", frame.address(cursor, self.driver.compiled))

    def say(self, text: str, tone: str = "dim") -> None:
        """Show a line above the prompt."""
        self._front.put_answer(" ".join(text.split()), tone)

    def select(self, index: int | None) -> None:
        """Select an operation of the frame that is looked at; None follows the moment."""
        self.state = replace(self.state, selected=index)
        self._front.show(self.state)

    # --- screens -------------------------------------------------------------------------------------------------

    @property
    def _front(self) -> DebugScreen:
        """The screen in front, without what lies over it."""
        return next(screen for screen in reversed(self.screen_stack) if isinstance(screen, DebugScreen))

    @property
    def focused_pane(self) -> Pane | None:
        """The pane with the focus."""
        focused = self.focused
        return focused if isinstance(focused, Pane) else None

    def open_view(self, name: str) -> None:
        """Open one of the screens of registry.py. UsageError for one that there is not."""
        view = VIEWS.get(name)
        if view is None:
            raise UsageError(f"there is no view '{name}'; there are {', '.join(VIEWS)}")
        self.asked_pane = self.focused_pane
        if name == "main":
            while self.close_view():
                pass
        elif not isinstance(self._front, view.load()):
            self.push_screen(view.load()())

    def close_view(self) -> bool:
        """Close the screen in front; whether it was not the last."""
        if len(self.screen_stack) < 2 or (self.inputs is not None and self.state.view is None):
            return False  # without a run the inputs are all that there is to see
        self.pop_screen()
        return True

    def close_card(self) -> bool:
        """Close what covers something."""
        if self._front.close_card():
            return True
        if self.state.selected is not None and len(self.screen_stack) < 2:
            self.select(None)
            return True
        return False

    def move_focus(self, by: int) -> None:
        """Another pane, or another tab."""
        move = getattr(self._front, "move_tab", None)
        if move is not None and move(by):
            return
        if by > 0:
            self.screen.focus_next(Pane)
        else:
            self.screen.focus_previous(Pane)

    def open_prompt(self, text: str = "") -> None:
        """Type a command."""
        prompt = self._front.prompt
        self.asked_pane = self.focused_pane
        prompt.value = text
        prompt.focus()
        prompt.cursor_position = len(text)

    def close_prompt(self) -> None:
        """Back to the pane from which it was opened."""
        prompt = self._front.prompt
        prompt.value = ""
        pane = self.asked_pane if self.asked_pane is not None and self.asked_pane.is_attached else None
        pane = pane or self._front.first_pane()
        if pane is not None:
            pane.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A line was typed."""
        if not isinstance(event.input, Prompt):
            return
        line = event.value.strip()
        event.input.remember(line)
        event.input.value = ""
        self.close_prompt()
        self.perform(line)

    def leave(self) -> None:
        """End; a movement under way is left where it is."""
        self.driver.close()
        self.exit(0)
