"""The port map full screen: how values get into the body, out of it, and into the next iteration."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.screens.base import DebugScreen
from tui.screens.main.cards import AnswerCard
from tui.screens.ports.port_detail import PortDetail
from tui.screens.ports.port_map import PortMap


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
