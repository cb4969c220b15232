"""ListScreen: a list over the whole screen, where there is room more about it below, and what a command answered."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from textual.app import ComposeResult

from tui.paint.list_pane import ListPane
from tui.paint.pane import Pane
from tui.screens.base import DebugScreen
from tui.screens.main.cards import AnswerCard

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
        """The list, more about it, and the place for answers."""
        listed = self.pane_class(self.host, id=self.view_name)
        yield listed
        listed.beside = self.more_about(listed)
        if listed.beside is not None:
            yield listed.beside.add_class("more")
        yield AnswerCard(self.host, id="card").add_class("hidden")

    def more_about(self, listed: Any) -> Pane | None:
        """Return a pane below the list."""
        return None

    def fit(self, width: int, height: int) -> None:
        """An answer leaves the list at least half of the screen."""
        self.query_one(AnswerCard).most = max(6, height // 3)
        pane = self.first_pane()
        self.set_class(height >= _LEAST and isinstance(pane, ListPane) and pane.beside is not None, "-more")

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """An answer of several lines."""
        if not self.is_ready or title.split()[:1] in self.shown_anyway:
            return False
        card = self.query_one(AnswerCard)
        if lines or card.lines:
            card.put(title, lines)
            card.set_class(not lines, "hidden")
        return True

    def close_card(self) -> bool:
        """The list alone."""
        card = self.query_one(AnswerCard)
        if not card.lines:
            return False
        had_focus = card.has_focus
        self.put_card("", ())
        pane = self.first_pane()
        if had_focus and pane is not None:
            pane.focus()
        return True
