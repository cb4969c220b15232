"""LinkPane: a pane with a cursor that goes from link to link; Enter and a second click carry out where it leads."""

from __future__ import annotations

from textual import events

from tui.paint.links import Destination, LinkText, destinations_in
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, overlaid
from tui.theme import GLYPHS


class LinkPane(Pane):
    """A pane of few rows, in which there are links. Without any its cursor keys scroll."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._chosen = 0

    # --- choosing ------------------------------------------------------------------------------------------------

    def _targets(self) -> list[tuple[int, Destination]]:
        return destinations_in(self._all(self.size.width)) if self.size.width else []

    @property
    def chosen(self) -> Destination | None:
        """The target of the chosen link; None where there is none."""
        targets = self._targets()
        return targets[min(self._chosen, len(targets) - 1)][1] if targets else None

    @property
    def chosen_address(self) -> str:
        """The address of the chosen value; empty where the chosen link stands for none."""
        chosen = self.chosen
        return "" if chosen is None or chosen.value is None else chosen.value.address(self.host.driver.compiled)

    def choose(self, index: int) -> None:
        """Choose a link, as near as there is one, and bring it into sight."""
        targets = self._targets()
        self._chosen = max(0, min(index, len(targets) - 1))
        if targets:
            width, height = self.size
            room, row = max(height - len(self.heading(width)), 1), targets[self._chosen][0]
            self.top = max(min(self.top, row), row - room + 1, 0)
        self.changed()

    def move(self, to: str) -> None:
        """+N, -N, page, -page, first or last."""
        targets = self._targets()
        page = max(self.size.height - 2, 1)
        ends = {"first": 0, "last": len(targets) - 1, "page": self._chosen + page, "-page": self._chosen - page}
        if targets:
            self.choose(ends[to] if to in ends else min(self._chosen, len(targets) - 1) + int(to))
        else:
            rows = {"first": -self.top, "last": self.count(self.size.width), "page": page, "-page": -page}
            self.scroll_rows(rows[to] if to in rows else int(to))

    def open_chosen(self) -> None:
        """Carry out where the chosen link leads."""
        chosen = self.chosen
        if chosen is not None and chosen.line:
            self.post_line(chosen.line)

    # --- what is seen --------------------------------------------------------------------------------------------

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the lines; with the focus the chosen link is lit, and its line begins with the glyph of the focus."""
        lines = super().visible_lines(width, height)
        chosen = self.chosen if self.has_focus else None
        return lines if chosen is None else [_lit(line, chosen) for line in lines]

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click chooses, a second one carries out."""
        wanted = self.destination_under(event)
        found = next((k for k, (_, target) in enumerate(self._targets()) if target is wanted), None)
        if found is not None:
            self.choose(found)
            if event.chain >= 2:
                self.open_chosen()


def _lit(row: Row, chosen: Destination) -> Row:
    if not any(isinstance(text, LinkText) and text.target is chosen for text, _ in row):
        return row
    lit: Row = []
    for text, token in row:
        is_chosen = isinstance(text, LinkText) and text.target is chosen
        lit += overlaid([(text, token)], "cursor") if is_chosen else [(text, token)]
    text, token = lit[0]
    if not text.startswith(" "):
        return lit
    head = LinkText(GLYPHS["focus"], text.target) if isinstance(text, LinkText) else GLYPHS["focus"]
    rest = LinkText(text[1:], text.target) if isinstance(text, LinkText) else text[1:]
    return [(head, f"accent {token}".strip() if isinstance(token, str) else token), (rest, token), *lit[1:]]
