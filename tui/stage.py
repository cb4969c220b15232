"""Stage: what actions, screens and the palette may ask of the application, without knowing how it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.app import App

from stepper.element_types import Array
from tui.keys.keymap import Keymap
from tui.paint.listing import Folding
from tui.paint.pane import Pane
from tui.state import State
from tui.theme import Look
from tui.worker.driver import Driver
from tui.worker.python_prompt import PythonPrompt

if TYPE_CHECKING:
    from tui.screens.inputs.choices import InputChoices
    from tui.screens.value.selection import Subject


class Stage(App[int]):
    """The application as its parts see it; tui.app fills it in.

    `state` is what is shown, `sought` the text that was searched last, `found` the address that a search found where it
    cannot be selected, `asked_pane` the pane that had the focus when the prompt or another screen was opened, `keymap`
    which key does what, `typed` the lines typed at the prompt, `answered` the last answer and its tone, `python` what !
    evaluates, `last_layout` how the screen was when it was left, `inputs` what was chosen for the model's inputs (None:
    nobody has asked, see `to_choose`), `folding` which groups of shape arithmetic are open.
    """

    look: Look
    state: State
    driver: Driver
    sought: str
    asked_pane: Pane | None
    keymap: Keymap
    typed: list[str]
    found: str
    answered: tuple[str, str]
    python: PythonPrompt
    last_layout: dict[str, Any]
    inputs: InputChoices | None
    folding: Folding

    def to_choose(self) -> InputChoices | None:
        """What was chosen for the inputs, also on the command line; None where nothing can be chosen."""
        raise NotImplementedError

    def begin(self, inputs: Mapping[int, Array]) -> None:
        """Run the model on these inputs, by position."""
        raise NotImplementedError

    @property
    def focused_pane(self) -> Pane | None:
        """The pane with the focus."""
        raise NotImplementedError

    def perform(self, line: str, *, echo: bool = True) -> None:
        """Carry out a line: an action of the screen, or else a command of the debugger."""
        raise NotImplementedError

    def filled(self, line: str) -> str:
        """The line with the address of the selected operation in it. UsageError where nothing is selected."""
        raise NotImplementedError

    def say(self, text: str, tone: str = "dim") -> None:
        """Show a line above the prompt."""
        raise NotImplementedError

    def show_card(self, title: str, lines: tuple[str, ...]) -> None:
        """Show an answer of several lines."""
        raise NotImplementedError

    def look_at(self, depth: int, index: int) -> None:
        """Look at a frame of the stack, and select one of its operations."""
        raise NotImplementedError

    def report_fault(self, where: str, error: Exception) -> None:
        """Say once what went wrong in a part of the program; the session goes on, and is saved."""
        raise NotImplementedError

    def select(self, index: int | None) -> None:
        """Select an operation of the frame that is looked at; None follows the moment."""
        raise NotImplementedError

    def open_view(self, name: str) -> None:
        """Open one of the screens of registry.py. UsageError for one that there is not."""
        raise NotImplementedError

    def open_value(self, subject: Subject) -> None:
        """Show this value full screen."""
        raise NotImplementedError

    def close_view(self) -> bool:
        """Close the screen in front; whether it was not the last."""
        raise NotImplementedError

    def close_card(self) -> bool:
        """Close what covers something; whether there was anything."""
        raise NotImplementedError

    def move_focus(self, by: int) -> None:
        """Another pane, or another tab."""
        raise NotImplementedError

    def open_prompt(self, text: str = "") -> None:
        """Type a command."""
        raise NotImplementedError

    def close_prompt(self) -> None:
        """Back to the pane from which it was opened."""
        raise NotImplementedError

    def save_session(self, say: bool = True) -> None:
        """Keep the session."""
        raise NotImplementedError

    def rerun(self) -> None:
        """Open model and inputs anew; place, breakpoints and watches stay."""
        raise NotImplementedError

    def submit(self, line: str) -> None:
        """Carry out a line that was typed."""
        raise NotImplementedError

    def leave(self, code: int = 0) -> None:
        """End with this exit code; a movement under way is left where it is."""
        raise NotImplementedError
