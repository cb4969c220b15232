"""The port map full screen: how values get into the body, out of it, and into the next iteration."""

from __future__ import annotations

import textwrap
from typing import ClassVar

from textual.app import ComposeResult

from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, padded, printable
from tui.screens.base import DebugScreen
from tui.screens.main.cards import AnswerCard
from tui.screens.ports.port_map import PortMap
from tui.screens.ports.rows import PortArrow, PortSide


class PortDetail(Pane, can_focus=False):
    """A sentence and the XML."""

    DEFAULT_CSS = """
    PortDetail { height: 5; border-top: solid $foreground 14%; }
    """
    kind: ClassVar[str] = "port"

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.port: PortArrow | None = None

    def put(self, port: PortArrow | None) -> None:
        """Explain this entry."""
        self.port = port
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Both ends, and the role."""
        port = self.port
        if port is None:
            return []
        outer, inner = clip(port.outer.name, width // 3), clip(port.inner.name, width // 3)
        ends = (outer, inner) if port.side is PortSide.IN else (inner, outer)
        self.title = f"{port.glyph} {ends[0]} → {ends[1]}"
        self.note = f"{port.role}   line {port.line} of the .xml "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the sentence in two lines at most, then the entry."""
        port = self.port
        if port is None:
            return []
        words = textwrap.wrap(printable(port.sentence), max(width - 4, 20))
        if len(words) > 2:
            words = [words[0], clip(" ".join(words[1:]), width - 4)]
        rows: list[Row] = [[(f"   {line}", "")] for line in words]
        return [*rows, [(padded(f"   {port.entry}", width - 1), "dim")]]


class PortsScreen(DebugScreen):
    """The picture, and below it the chosen entry in words."""

    DEFAULT_CSS = "PortsScreen .hidden { display: none; }"
    view_name = "port map"

    def body(self) -> ComposeResult:
        """The picture and the words."""
        yield PortMap(self.host, id="ports")
        yield PortDetail(self.host, id="port")
        yield AnswerCard(self.host, id="card")

    def fit(self, width: int, height: int) -> None:
        """The card is there only where it has lines."""
        card = self.query_one(AnswerCard)
        card.set_class(not card.lines, "hidden")
        card.most = max(6, height // 3)

    def on_port_map_chosen(self, message: PortMap.Chosen) -> None:
        """Explain it."""
        self.query_one(PortDetail).put(message.port)

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """An answer of several lines takes the place of the words."""
        if not self.is_ready:
            return False
        card = self.query_one(AnswerCard)
        card.put(title, lines)
        card.set_class(not lines, "hidden")
        self.query_one(PortDetail).set_class(bool(lines), "hidden")
        return True

    def close_card(self) -> bool:
        """Show the words again."""
        if not self.query_one(AnswerCard).lines:
            return False
        self.put_card("", ())
        self.query_one(PortMap).focus()
        return True
