"""Iterations from left to right: which cell is which, the number line, and what the mouse does on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

from textual import events

from stepper.records import Record
from tui.paint.pane import Pane
from tui.paint.rows import Row, short_count
from tui.pictures.axis import Axis, Slot
from tui.pictures.drawing import Strip, laid, row_of
from tui.screens.timeline.far_title import line_to_iteration


class TimeAxisPane(Pane):
    """Time goes to the right. A subclass says which iteration stands where."""

    NAME_WIDTHS: ClassVar[tuple[tuple[int, int], ...]]
    """Widths of the pane, falling, and how many cells the names have from there on."""

    def iteration_in(self, cell: int) -> int | None:
        """Return the iteration that is shown so many cells right of the names."""
        raise NotImplementedError

    def seen(self) -> int:
        """The last iteration known to have run."""
        raise NotImplementedError

    def marks(self) -> list[TimeMark]:
        """Return the iterations that stand out: that of the moment, and that of A."""
        now = self.state.iteration
        found = [] if now is None else [TimeMark(now, "now")]
        return [*found, *(TimeMark(iteration, "a-on") for iteration in self.state.iterations_of_a)]

    def name_width(self, width: int) -> int:
        """Return how many cells the names have in a pane of this width."""
        return next(cells for least, cells in self.NAME_WIDTHS if width >= least)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag scrubs."""
        self.capture_mouse()
        self._go_to(event.x, is_drag=False)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Another iteration under the mouse."""
        if self.app.mouse_captured is self:
            self._go_to(event.x, is_drag=True)

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """The drag ends."""
        self.release_mouse()

    def _go_to(self, x: int, *, is_drag: bool) -> None:
        if self.state.loop is None or self.state.running is not None:
            return
        wanted = self.iteration_in(x - self.gutter.left - self.name_width(self.size.width))
        # A drag does not run on into what has not run yet, a click does.
        if wanted is not None and wanted != self.state.iteration and (not is_drag or wanted <= self.seen()):
            self.post_line(line_to_iteration(self.state, self.host.driver.compiled, wanted))


STEPS: Final = tuple(digit * 10**power for power in range(16) for digit in (1, 2, 5))
_WIDEST: Final = 12
"""Cells of a column of one iteration at most."""


class TimeMark(NamedTuple):
    """An iteration whose number stands out, and its style."""

    iteration: int
    token: str


class TimeSpan(Record):
    """The iterations [begin, end) in `bins` columns of `slot` cells each."""

    begin: int
    end: int
    bins: int
    slot: int

    @staticmethod
    def fitting(begin: int, end: int, room: int, widest: int = _WIDEST) -> TimeSpan:
        """As wide as fits."""
        count, room = max(end - begin, 1), max(room, 1)
        return TimeSpan(begin, begin + count, min(count, room), max(1, min(widest, room // count)))

    def at(self, iteration: int) -> int:
        """Return the first cell of an iteration."""
        place = (iteration - self.begin) * self.bins // (self.end - self.begin)
        return max(0, min(place, self.bins - 1)) * self.slot

    def covered(self, cell: int) -> tuple[int, int]:
        """Return the iterations of the column at a cell, as a half-open range."""
        column, count = cell // self.slot, self.end - self.begin
        begin = -(-column * count // self.bins)
        return self.begin + begin, self.begin + max(-(-(column + 1) * count // self.bins), begin + 1)

    @property
    def axis(self) -> Axis:
        """Return the columns as the slots of an axis."""
        return _axis(self)

    def ruler(self, marks: Sequence[TimeMark]) -> Row:
        """Return the number line; those of the marks are whole, and nothing touches them."""
        count = self.end - self.begin
        longest = len(short_count(self.end)) + 1
        every = next((step for step in STEPS if step * self.bins / count * self.slot >= max(longest, 5)), STEPS[-1])
        strips: list[Strip] = []
        taken: list[tuple[int, int]] = []
        for mark in marks:
            if self.begin <= mark.iteration < self.end:
                text, at = str(mark.iteration), self.at(mark.iteration)
                strips.append((at, text, mark.token))
                taken.append((at - 1, at + len(text)))
        width = self.bins * self.slot + 7
        for iteration in range(-(-self.begin // every) * every, self.end + 1, every):
            label = short_count(iteration)
            start = (iteration - self.begin) * self.bins // count * self.slot
            is_free = all(start + len(label) <= begin or start > end for begin, end in taken)
            if is_free and start + len(label) <= width:
                strips.append((start, label, "dim"))
        return row_of(laid(strips, width))


@lru_cache(maxsize=32)
def _axis(span: TimeSpan) -> Axis:
    """Return the columns of iterations as slots; most keys leave all of them where they are."""
    starts = [column * span.slot for column in range(span.bins)]
    return Axis(tuple(Slot(start, span.slot, *span.covered(start)) for start in starts), None)
