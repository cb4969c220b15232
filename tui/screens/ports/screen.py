"""The port map full screen: how values get into the body, out of it, and into the next iteration."""

from __future__ import annotations

import textwrap
from typing import ClassVar, Final

from textual.app import ComposeResult

from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, padded, printable
from tui.pictures.value_rows import ValueRow
from tui.screens.base import DebugScreen
from tui.screens.ports.port_map import PortMap
from tui.screens.ports.rows import PortArrow, PortSide
from tui.screens.timeline.bar import TimelineBar
from tui.screens.timeline.tracks import loop_row

_LEAST: Final = 6
"""Lines of a course: its name, the iterations, two of the picture, the moment, the line above."""
_TALLEST: Final = 22


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


class PortCourse(TimelineBar, can_focus=False):
    """The value that goes through the chosen entry, over the iterations."""

    DEFAULT_CSS = "PortCourse { height: 8; }"
    kind: ClassVar[str] = "port-course"

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._port: PortArrow | None = None

    def put(self, port: PortArrow | None) -> None:
        """Show this entry."""
        self._port = port
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Return the name of the value."""
        found = self._tracks(1)
        self.title = f"{found[0].name[0]} over the iterations" if found else ""
        self.note = "last " if found else ""
        return super().heading(width) if found else []

    def rows(self, width: int) -> list[Row]:
        """None of what stays the same."""
        return super().rows(width) if self._tracks(1) else []

    def _tracks(self, most: int) -> list[ValueRow]:
        layer, history = None if self._port is None else self._port.layer, self.state.loop_history
        if layer is None or history is None:
            return []
        ends = [(one, {one.row.inner.id, *([one.row.result.id] if one.row.result else [])}) for one in history.rows]
        found = [one for one, ids in ends if layer.id in ids and one.values is not None]
        return [loop_row(self.state, one.row, one.values, self.seen() + 1) for one in found[:most]]


class PortsScreen(DebugScreen):
    """The picture, and below it the chosen entry in words, and where there is room over the iterations."""

    DEFAULT_CSS = """
    PortsScreen .hidden { display: none; }
    PortsScreen.-ascii PortCourse { border-top: ascii $foreground 14%; }
    """
    view_name = "port map"

    def body(self) -> ComposeResult:
        """The picture and the words."""
        yield PortMap(self.host, id="ports")
        yield PortCourse(self.host, id="course").add_class("hidden")
        yield PortDetail(self.host, id="port")

    def on_port_map_chosen(self, message: PortMap.Chosen) -> None:
        """Explain it."""
        self.query_one(PortDetail).put(message.port)
        ports, course = self.query_one(PortMap), self.query_one(PortCourse)
        room = ports.outer_size.height + (course.outer_size.height if course.display else 0)
        left = min(room - ports.lines_wanted(ports.size.width), _TALLEST)
        course.put(message.port)
        course.set_class(left < _LEAST, "hidden")
        course.styles.height = max(left, _LEAST)

    def put_card(self, title: str, lines: tuple[str, ...]) -> bool:
        """An answer of several lines takes the place of the words."""
        is_put = super().put_card(title, lines)
        if is_put:
            self.query_one(PortDetail).set_class(bool(lines), "hidden")
        return is_put
