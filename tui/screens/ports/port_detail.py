"""The chosen entry of the port map in a sentence, with the rule that says so and its place in the file."""

from __future__ import annotations

import textwrap
from typing import ClassVar

from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, padded, printable
from tui.screens.ports.rows import Port, Side


class PortDetail(Pane, can_focus=False):
    """A sentence and the XML."""

    DEFAULT_CSS = """
    PortDetail { height: 5; border-top: solid $foreground 14%; }
    """
    kind: ClassVar[str] = "port"

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.port: Port | None = None

    def put(self, port: Port | None) -> None:
        """Explain this entry."""
        self.port = port
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Both ends, and the role."""
        port = self.port
        if port is None:
            return []
        outer, inner = clip(port.outer.name, width // 3), clip(port.inner.name, width // 3)
        ends = (outer, inner) if port.side is Side.IN else (inner, outer)
        self.title = f"{port.glyph} {ends[0]} → {ends[1]}"
        self.note = f"{port.role}   line {port.line} of the .xml "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """The sentence in two lines at most, then the entry."""
        port = self.port
        if port is None:
            return []
        words = textwrap.wrap(printable(port.sentence), max(width - 4, 20))
        if len(words) > 2:
            words = [words[0], clip(" ".join(words[1:]), width - 4)]
        rows: list[Row] = [[(f"   {line}", "")] for line in words]
        return [*rows, [(padded(f"   {port.entry}", width - 1), "dim")]]
