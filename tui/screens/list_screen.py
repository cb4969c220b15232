"""ListScreen: a list over the whole screen, where there is room more about it below, and what a command answered."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from textual.app import ComposeResult

from tui.paint.list_pane import ListPane
from tui.paint.pane import Pane
from tui.screens.base import DebugScreen

_LEAST: Final = 22
"""Rows of the screen from which on there is room for more than the list."""


class ListScreen(DebugScreen):
    """A subclass names its pane."""

    DEFAULT_CSS = """
    ListScreen #content { padding-top: 1; }
    ListScreen .hidden { display: none; }
    ListScreen.-short #content { padding-top: 0; }
    ListScreen .more { display: none; }
    ListScreen.-more .more { display: block; }
    ListScreen.-more ListPane { height: auto; max-height: 50%; }
    ListScreen.-ascii ChosenDetail { border-top: ascii $foreground 14%; }
    """
    pane_class: ClassVar[type[ListPane[Any]]]
    shown_anyway: ClassVar[tuple[list[str], ...]] = (["enable"], ["disable"], ["delete"])
    """Commands that answer with a list that is on the screen."""

    def body(self) -> ComposeResult:
        """The list, and more about it."""
        listed = self.pane_class(self.host, id=self.view_name)
        yield listed
        listed.beside = self.more_about(listed)
        if listed.beside is not None:
            yield listed.beside.add_class("more")

    def more_about(self, listed: Any) -> Pane | None:
        """Return a pane below the list."""
        return None

    def fit(self, width: int, height: int) -> None:
        """More about the list where there is room for it."""
        pane = self.first_pane()
        self.set_class(height >= _LEAST and isinstance(pane, ListPane) and pane.beside is not None, "-more")

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """An answer of several lines, unless it is the list itself."""
        return title.split()[:1] not in self.shown_anyway and super().put_card(title, lines)
