"""ListScreen: a list over the whole screen, and below it what a command answered."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult

from tui.panes.cards import AnswerCard
from tui.panes.list_pane import ListPane
from tui.screens.base import DebugScreen


class ListScreen(DebugScreen):
    """A subclass names its pane."""

    DEFAULT_CSS = """
    ListScreen #content { padding-top: 1; }
    ListScreen .hidden { display: none; }
    ListScreen.-short #content { padding-top: 0; }
    """
    pane_class: ClassVar[type[ListPane[Any]]]
    shown_anyway: ClassVar[tuple[list[str], ...]] = (["enable"], ["disable"], ["delete"])
    """Commands that answer with a list that is on the screen."""

    def body(self) -> ComposeResult:
        """The list, and the place for answers."""
        yield self.pane_class(id=self.view_name)
        yield AnswerCard(id="card").add_class("hidden")

    def fit(self, width: int, height: int) -> None:
        """An answer leaves the list at least half of the screen."""
        self.query_one(AnswerCard).most = max(6, height // 3)

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
