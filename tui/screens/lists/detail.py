"""The pane below a list: all that there is to say of the chosen row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from tui.paint.list_pane import ListPane
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, printable, wrapped


class ChosenDetail(Pane):
    """A word at the left, what it says of the chosen row at the right. A subclass has the words."""

    DEFAULT_CSS = "ChosenDetail { height: 1fr; margin-top: 1; border-top: solid $foreground 14%; }"
    kind: ClassVar[str] = "card"
    word_width: ClassVar[int] = 6

    def __init__(self, host: Host, listed: ListPane[Any]) -> None:
        super().__init__(host, id="detail")
        self._list = listed

    def heading(self, width: int) -> list[Row]:
        """Return the title and the note of the chosen row."""
        chosen = self._list.chosen
        self.title, self.note = ("", "") if chosen is None else self.titled(chosen)
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the words with their texts; without a chosen row what the list is for."""
        chosen = self._list.chosen
        if chosen is None:
            return [
                [(f"  {part}", "dim")] for line in self._list.help_text.splitlines() for part in wrapped(line, width)
            ]
        found: list[Row] = []
        for word, text in self.texts(chosen):
            parts = wrapped(printable(text), max(width - self.word_width - 4, 20)) if text else ()
            for place, part in enumerate(parts):
                found.append([(f"  {'' if place else word:<{self.word_width}}", "dim"), (part.lstrip(), "")])
        return found

    def titled(self, chosen: Any) -> tuple[str, str]:
        """Return the title of a row, and the note at the right."""
        raise NotImplementedError

    def texts(self, chosen: Any) -> Iterable[tuple[str, str]]:
        """Return the words, each with its text; an empty one is left out."""
        return ()
