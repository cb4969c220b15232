"""The port map of the loop: outside, the body, and what comes after, with an arrow for every entry.

Wide: the body is a box, what enters stands at its left, what leaves at its right, a carried value in one line with its
back edge. Narrow: what enters above, what leaves below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from textual import events
from textual.message import Message

from stepper.tensors.pictures import Form
from stepper.wording import counted
from tui.paint.names import layer_name
from tui.paint.pane import Host, Pane
from tui.paint.rows import Cell, Row, clip, padded, width_of
from tui.pictures.axis import window
from tui.pictures.drawing import RowPicture, gaps, laid, row_of
from tui.screens.main.back_edges import by_parameter
from tui.screens.ports.axis_picture import AxisPicture
from tui.screens.ports.rows import End, Pair, PortArrow, PortSide, port_pairs
from tui.state import State

WIDE: Final = 96
"""Cells from which on all three columns stand side by side."""

_COURSE: Final = 8
"""Iterations that are drawn of what a back edge carries."""


class Columns(NamedTuple):
    """Widths: outside, arrow, body, arrow, outside again. The body is halved, entering and leaving."""

    before: int
    enter: int
    inside: int
    leave: int
    after: int


class PortMap(Pane):
    """Every entry of the port map and every back edge, at this moment."""

    DEFAULT_CSS = "PortMap { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "ports"
    looks_inside: ClassVar[bool] = True
    title = "port map"
    help_text: ClassVar[str] = (
        "How values get into the body, out of it, and into the next iteration. → ← a slice of an input, ↺ carried by\n"
        "a back edge, = the same each time, # the iteration number; ⊞ a piece of an output, ▪ the last value, ? the\n"
        "condition. The bar is the axis: █ this iteration, ▒ done before, ░ still to come, ╌ never read."
    )

    class Chosen(Message):
        """Another entry is chosen, or it shows something new."""

        def __init__(self, port: PortArrow | None) -> None:
            super().__init__()
            self.port = port

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.pairs: list[Pair] = []
        self._chosen = 0
        self._owners: list[tuple[PortArrow | None, PortArrow | None]] = []

    # --- choosing ------------------------------------------------------------------------------------------------

    @property
    def ports(self) -> list[PortArrow]:
        """All entries: those that enter, then those that leave."""
        entering = [left for left, _ in self.pairs if left is not None]
        return entering + [right for _, right in self.pairs if right is not None]

    @property
    def chosen(self) -> PortArrow | None:
        """The entry that is explained."""
        ports = self.ports
        return ports[min(self._chosen, len(ports) - 1)] if ports else None

    def choose(self, port: PortArrow | None) -> None:
        """Choose an entry."""
        places = [place for place, one in enumerate(self.ports) if one is port]
        if places:
            self._chosen = places[0]
            self.changed()
            self._keep_in_sight()
            self.post_message(self.Chosen(self.chosen))

    def move(self, direction: str) -> None:
        """Choose the entry above, below, or at the other side."""
        ports, chosen = self.ports, self.chosen
        if chosen is None:
            return
        if direction in ("down", "up"):
            place = self._chosen + (1 if direction == "down" else -1)
            self.choose(ports[max(0, min(place, len(ports) - 1))])
            return
        at = next(row for row, pair in enumerate(self.pairs) if chosen in pair)
        side = 0 if direction == "left" else 1
        nearest = sorted(range(len(self.pairs)), key=lambda row: abs(row - at))
        self.choose(next((self.pairs[row][side] for row in nearest if self.pairs[row][side] is not None), None))

    def update(self, state: State) -> None:
        """The moment has moved."""
        self.state = state
        loop = state.loop
        self.pairs = [] if loop is None else port_pairs(loop, self._course)
        self.note = self._note()
        self.changed()
        self.post_message(self.Chosen(self.chosen))

    def _course(self, parameter: int) -> Row:
        """Return the last iterations of what a back edge carries."""
        known = by_parameter(self.state).get(parameter)
        if known is None or known.values is None:
            return []
        values, now = known.values, max(self.state.iteration or 0, 0)
        axis = window(now, None, _COURSE, 1)
        drawn = RowPicture([values], axis)
        if not drawn.is_readable(1, _COURSE):
            drawn = RowPicture([values], axis, Form.BARS)
        strips = drawn.lines(values, axis, 1, self.palette)[0]
        return row_of(laid([*strips, *gaps(values, axis, now)], _COURSE))

    def _note(self) -> str:
        loop = self.state.loop
        if loop is None:
            return ""
        edges = len(loop.back_edges)
        back = f"{edges} back edge{'s' if edges != 1 else ''}"
        program = self.state.loop_program
        which = f"{layer_name(program.path[-1])}, its last iteration · " if self.state.is_far and program else ""
        return f"{which}{len(loop.inputs)} in · {sum(one.output is not None for one in loop.outputs)} out · {back} "

    def _keep_in_sight(self) -> None:
        room = self.size.height - 1
        rows = [row for row, owners in enumerate(self._owners) if self.chosen is not None and self.chosen in owners]
        if rows and rows[0] < self.top:
            self.top = max(rows[0] - 1, 0)
        elif rows and rows[-1] >= self.top + room:
            self.top = rows[-1] - room + 1
        self.changed()

    def on_click(self, event: events.Click) -> None:
        """A click chooses, a second one opens the value."""
        row = self.row_at(event.y)
        if row is None or row >= len(self._owners):
            return
        left, right = self._owners[row]
        wanted = right if left is None or (right is not None and event.x > self.size.width // 2) else left
        self.choose(wanted)
        if event.chain == 2:
            self.post_line("open-port")

    # --- drawing -------------------------------------------------------------------------------------------------

    def lines_wanted(self, width: int) -> int:
        """Return how many lines all has with a free one between entries."""
        entries, lines = (len(self.pairs), 4) if width >= WIDE else (len(self.ports), 3)
        return entries * 3 + lines + 2

    def rows(self, width: int) -> list[Row]:
        """Return the whole picture."""
        if self.state.loop is None:
            self._owners = []
            return self._outside()
        return self._wide(width) if width >= WIDE else self._narrow(width)

    def _outside(self) -> list[Row]:
        frame = self.state.frame
        ahead = [] if frame is None else [layer for layer in frame.layers[frame.last + 1 :] if layer.is_loop]
        rows: list[Row] = [[], [("  the run stands in no loop", "dim")]]
        if ahead:
            name = layer_name(ahead[0])
            rows.append([("  next is ", "dim"), (name, "strong"), (f", a {ahead[0].type}: ", "dim"), ("s", "key")])
            rows[-1].append((" steps on, into it when it comes", "dim"))
        return rows

    def _is_tight(self, entries: int, lines: int) -> bool:
        """True if there is no room for a free line between entries."""
        return entries * 3 + lines > self.size.height - 1

    def _wide(self, width: int) -> list[Row]:
        columns = _columns(width)
        tight = self._is_tight(len(self.pairs), 4)
        half = columns.inside // 2
        rows: list[Row] = [self._captions(columns), self._edge_of_box(columns, "╭", "╮", self._body_title(half * 2))]
        self._owners = [(None, None), (None, None)]
        for pair in self.pairs:
            left, right = pair
            for line in range(2 if tight else 3):
                rows.append(
                    [
                        *self._cells(left, line, columns.before, columns.enter, half, PortSide.IN),
                        *self._cells(right, line, columns.after, columns.leave, columns.inside - half, PortSide.OUT),
                    ]
                )
                self._owners.append(pair if line < 2 else (None, None))
        rows.append(self._edge_of_box(columns, "╰", "╯", ""))
        return rows

    def _captions(self, columns: Columns) -> Row:
        loop = self.state.loop
        assert loop is not None
        following = (loop.level.iteration or 0) + 1
        is_last = loop.trip.ended is not None or (loop.trip.total is not None and loop.trip.total <= following)
        shown = "outside" if is_last else f"iteration {following}, outside"
        after = clip(shown, columns.after)
        gap = columns.enter + columns.inside + columns.leave + 2
        return [("  ", ""), (padded("outside", columns.before), "dim"), (" " * gap, ""), (after, "dim")]

    def _body_title(self, width: int) -> str:
        frame, loop = self.state.frame, self.state.loop
        assert loop is not None
        iteration = loop.level.iteration
        moment = "before iteration 0" if iteration is None else f"iteration {iteration}"
        operations = ""
        if frame is not None and self.state.loop_depth is not None:
            operations = f" · {counted(len(self.state.frames[self.state.loop_depth].layers), 'operation')}"
        choices = (f" body, {moment}{operations} ", f" body, {moment} ", f" {moment} ")
        return _choose(choices, width - 2)

    def _edge_of_box(self, columns: Columns, left: str, right: str, text: str) -> Row:
        lead = 2 + columns.before + columns.enter
        return [
            (" " * lead, ""),
            (left, "dim"),
            (text, "strong"),
            ("─" * (columns.inside - len(text)), "dim"),
            (right, "dim"),
        ]

    def _cells(self, port: PortArrow | None, line: int, outer: int, arrow: int, inner: int, side: PortSide) -> Row:
        """Return one line of an entry: its outer end, the arrow, its end in the body."""
        wall: Cell = ("│", "dim")
        if port is None or line == 2:
            blank: Row = [(" " * (outer + arrow), "")]
            body: Row = [(" " * inner, "")]
            return [("  ", ""), *blank, wall, *body] if side is PortSide.IN else [*body, wall, *blank]
        on = port is self.chosen
        if line == 0:
            ends = _fitted(_end(port.outer, "strong", outer), outer), _arrow(port, arrow, on=on)
            name = _fitted([(clip(port.inner.name, inner - 2), "title-on" if on else "strong")], inner - 1)
        else:
            ends = (
                _fitted(self._below(port, outer), outer),
                [(padded(f"    {_choose(port.words, arrow - 5)}", arrow), "dim")],
            )
            name = _fitted([(port.inner.type, "dim")], inner - 1)
        mark: Cell = ("▸" if on and line == 0 else " ", "accent")
        if side is PortSide.IN:
            return [mark, (" ", ""), *ends[0], *ends[1], wall, (" ", ""), *name]
        return [mark, *name, wall, *ends[1], *ends[0]]

    def _below(self, port: PortArrow, width: int) -> Row:
        """Return the picture or the numbers below an entry: of these as many as there is room for."""
        if isinstance(port.below, AxisPicture):
            return port.below.row(width - 1)
        row = list(port.below)
        while len(row) > 1 and width_of(row) > width:
            row.pop()
        return row

    # --- narrow --------------------------------------------------------------------------------------------------

    def _narrow(self, width: int) -> list[Row]:
        entering = [left for left, _ in self.pairs if left is not None]
        leaving = [right for _, right in self.pairs if right is not None]
        tight = self._is_tight(len(entering) + len(leaving), 3)
        outer, arrow = (width - 3) * 32 // 100, (width - 3) * 40 // 100
        inner = width - 3 - outer - arrow
        rows: list[Row] = []
        self._owners = []
        for number, (ports, side) in enumerate(((entering, PortSide.IN), (leaving, PortSide.OUT))):
            rows.append(self._section(width, number))
            self._owners.append((None, None))
            for port in ports:
                for line in range(2 if tight else 3):
                    rows.append(self._narrow_line(port, line, (outer, arrow, inner), side))
                    self._owners.append((port, None) if side is PortSide.IN else (None, port))
        return rows

    def _section(self, width: int, number: int) -> Row:
        title = self._body_title(width)
        text = f" into{title}" if not number else " out of it, into the next iteration and outside "
        return [("──", "ghost"), (text, "dim"), ("─" * max(width - len(text) - 3, 0), "ghost")]

    def _narrow_line(self, port: PortArrow, line: int, widths: tuple[int, int, int], side: PortSide) -> Row:
        outer, arrow, inner = widths
        on = port is self.chosen
        if line == 2:
            return []
        if line == 0:
            far = _fitted(_end(port.outer, "strong", outer), outer)
            way = _arrow(port, arrow, on=on)
            near = _fitted(_end(port.inner, "title-on" if on else "strong", inner), inner)
        else:
            far = _fitted(self._below(port, outer), outer)
            way = [(padded(f"    {_choose(port.words, arrow - 5)}", arrow), "dim")]
            near = [(" " * inner, "")]
        mark: Cell = ("▸" if on and line == 0 else " ", "accent")
        ordered = [*far, *way, (" ", ""), *near] if side is PortSide.IN else [*near, *way, (" ", ""), *far]
        return [mark, (" ", ""), *ordered]


def _columns(width: int) -> Columns:
    """Return the widths of the columns: 18, 20, 23, 20, 19 of a hundred, roughly."""
    room = width - 5
    arrow = max(22, room * 20 // 100)
    rest = room - 2 * arrow
    inside = max(rest * 38 // 100, 26)
    before = (rest - inside) * 48 // 100
    return Columns(before, arrow, inside, arrow, rest - inside - before)


def _arrow(port: PortArrow, width: int, *, on: bool) -> Row:
    """`── ↺ carried ──────▸ `"""
    tone = "accent" if on or port.is_carried else ""
    line = "accent" if on else "faint"
    text = f" {port.glyph} {port.role} " if port.glyph.strip() else f" {port.role} "
    if not port.glyph.strip():
        return [(padded(f"    {text}", width), "dim")]
    return [(" ──", line), (text, tone), ("─" * max(width - len(text) - 5, 0), line), ("▸ ", "accent" if on else "dim")]


def _end(end: End, tone: str, width: int) -> Row:
    """Return name and type; the type is left out where it has no room."""
    room = width - len(end.type) - 3
    if not end.type or room < min(len(end.name), 10):
        return [(clip(end.name, width - 1), tone)]
    return [(clip(end.name, room), tone), (f"  {end.type}", "dim")]


def _fitted(row: Row, width: int) -> Row:
    """Return the row in exactly so many cells."""
    fitted: Row = []
    room = width
    for text, tone in row:
        part = text if len(text) <= room else text[: max(room - 1, 0)] + ("…" if room else "")
        fitted.append((part, tone))
        room -= len(part)
    return [*fitted, (" " * (width - width_of(fitted)), "")]


def _choose(words: Sequence[str], width: int) -> str:
    """Return the longest that has room."""
    return next((text for text in words if len(text) <= width), clip(words[-1], width))
