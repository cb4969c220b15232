"""The application as actions and layouts see it, as a protocol; tui.app is the one that there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tui.screens.base import ScreenHost
from tui.session.application_session import SessionHost

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.screen import Screen
    from textual.theme import Theme

    from stepper.debug.story.facts import StoryQuestion
    from tui.screens.base import DebugScreen
    from tui.screens.value.selection import Subject
    from tui.session.application_session import ApplicationSession
    from tui.session.input_chooser import InputChooser
    from tui.worker.python_prompt import PythonPrompt


class Application(ScreenHost, SessionHost, Protocol):
    """Typed lines, choices and searches, the screens, and how they are changed.

    `sought` is the text that was searched last, `found` the address that a search found where it cannot be selected,
    `found_from` the one under the cursor of the pane then: until that moves on, the found one is meant.
    """

    sought: str
    found: str
    found_from: str
    session: ApplicationSession
    chooser: InputChooser

    @property
    def python(self) -> PythonPrompt:
        """The lines of Python that are evaluated on values of the run."""
        ...

    @property
    def front(self) -> DebugScreen:
        """The screen in front, without what lies over it."""
        ...

    @property
    def chosen_address(self) -> str:
        """The address under the cursor of the focused pane; empty where that has none, or stood there at a search."""
        ...

    def filled(self, line: str) -> str:
        """Return the line with the selected operation and the chosen row in it. UsageError where there is none."""
        ...

    def show_card(self, title: str, lines: tuple[str, ...]) -> None:
        """Show an answer of several lines."""

    def look_at(self, depth: int, index: int) -> None:
        """Look at a frame of the stack, and select one of its operations."""

    def open_view(self, name: str) -> None:
        """Open one of the screens of registry.py. UsageError for one that there is not."""

    def open_value(self, subject: Subject) -> None:
        """Show this value full screen."""

    def open_story(self, question: StoryQuestion) -> None:
        """Show the answer to a question why."""

    def open_sheet(self, text: str, rows: str = "carried") -> None:
        """Show values over the iterations."""

    def close_card(self) -> bool:
        """Close what covers something; False if there is nothing."""
        ...

    def move_focus(self, by: int) -> None:
        """Focus another pane, or show another tab."""

    def open_prompt(self, text: str = "") -> None:
        """Focus the prompt, with this text in it."""

    def leave(self, code: int = 0) -> None:
        """End with this exit code; a movement under way is left where it is."""

    # --- what Textual's App has ----------------------------------------------------------------------------------

    theme: str

    @property
    def size(self) -> Size:
        """Columns and rows of the terminal."""
        ...

    @property
    def screen(self) -> Screen[object]:
        """The screen on top."""
        ...

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]:
        """All screens, that on top last."""
        ...

    @property
    def available_themes(self) -> Mapping[str, Theme]:
        """The themes by name."""
        ...

    @property
    def current_theme(self) -> Theme:
        """The theme in use."""
        ...

    def action_suspend_process(self) -> None:
        """Give the terminal back to the shell until that puts the program in front again."""

    def action_command_palette(self) -> None:
        """Open the palette."""

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text, where the terminal can."""

    def export_screenshot(self, *, title: str | None = None) -> str:
        """Return the picture of the screen as SVG."""
        ...

    def call_after_refresh(self, callback: Callable[..., Any], *args: Any) -> bool:
        """Call back when the screen is painted."""
        ...
