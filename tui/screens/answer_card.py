"""AnswerCard: what a command answered in several lines, above the prompt."""

from __future__ import annotations

from typing import ClassVar, Final

from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, printable, wrapped
from tui.theme import key_text

_WIDE: Final = 66
"""Cells from which on it says how many lines there are."""


class AnswerCard(Pane):
    """Answer of a command in several lines. Esc closes it."""

    DEFAULT_CSS = "AnswerCard { border-top: solid $primary; }"
    kind: ClassVar[str] = "card"
    help_text: ClassVar[str] = "What the last command answered."
    most: int = 14

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.lines: tuple[str, ...] = ()

    def put(self, title: str, lines: tuple[str, ...]) -> None:
        """Show these lines."""
        self.title, self.lines, self.top = clip(printable(title), 60), tuple(map(printable, lines)), 0
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Return how much there is, and how to see the rest."""
        keys = key_text("↓ ↑" if self.has_focus else "Tab, ↓", ascii=self.look.ascii)
        more = f"{keys} scroll   "
        more = more if self.count(width) > self.size.height else ""
        count = f"{len(self.lines)} lines   " if width >= _WIDE else ""
        self.note = f"{count}{more}Esc closes "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the lines; a long one goes on below, further in than it begins."""
        return [[("  ", ""), (part, "")] for line in self.lines for part in wrapped(line, width - 3)]

    def line_count(self, width: int) -> int:
        """Return how many rows there are, as far as there is room for them."""
        return min(super().line_count(width), self.most)
