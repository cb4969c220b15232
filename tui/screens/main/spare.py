"""The selected value as a picture, where other panes leave room: over the iterations, or as colours."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.timer import Timer

from tui.paint.names import layer_name, operation_names
from tui.paint.pane import Host
from tui.paint.rows import Row
from tui.pictures.heights import Want, heights
from tui.pictures.value_rows import Looks, RowColumns, size_wanted, value_rows
from tui.screens.main.back_edges import reach_of
from tui.screens.main.value import history_rows
from tui.screens.timeline.bar import none_ran
from tui.screens.timeline.time_axis import TimeSpan
from tui.screens.timeline.tracks import drawn_rows, loop_row
from tui.screens.value.facts import OverIterations
from tui.screens.value.heat import HeatGrid
from tui.screens.value.inquiries import Inquiries
from tui.screens.value.inspected import Inspected
from tui.screens.value.selection import Subject
from tui.state import State

_NAMES: Final = 14
_CALM: Final = 0.25
"""Seconds without another value before iterations are run through for one."""


class SelectedCourse(OverIterations):
    """The selected value over the iterations; of many elements the one that differs most from A."""

    DEFAULT_CSS = "SelectedCourse { height: 1fr; border-top: solid $foreground 14%; }"
    follows_selection: ClassVar[bool] = True

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        inspected = Inspected(host.driver, Inquiries(host.driver, self.changed))
        super().__init__(host, inspected, id=id)
        self._calm: Timer | None = None
        self._is_calm = False

    def update(self, state: State) -> None:
        """Another moment, or another value: it is asked about when nothing has changed for a while."""
        self.state, seen = state, self.inspected
        frame, cursor = state.frame, state.cursor
        before = seen.shown.address, seen.shown.iteration
        seen.state = state
        if frame is not None and cursor is not None and frame.layers[cursor].outputs:
            seen.open(Subject(frame.program, cursor, 0))
            found = None if state.a is None else state.a.difference(cursor)
            if found is not None and seen.array is not None and len(found.at) == seen.array.ndim:
                seen.go_to(found.at)
        if before != (seen.shown.address, seen.shown.iteration):
            self._is_calm = False
            if self._calm is not None:
                self._calm.stop()
            self._calm = self.set_timer(_CALM, self._ask)
        self.changed()

    def _ask(self) -> None:
        self._is_calm = True
        self.changed()

    def rows(self, width: int) -> list[Row]:
        """Return the picture; of another value as soon as nothing has changed for a while."""
        frame, cursor, seen = self.state.frame, self.state.cursor, self.inspected
        if not self._is_calm and not seen.over_iterations(asks=False).done:
            self.title = self.note = ""
            return []
        rows = super().rows(width)
        if frame is not None and cursor is not None:
            self.title = f"{operation_names(frame.program)[cursor]} {self.title}"
        return rows

    def on_unmount(self) -> None:
        """Ask no more."""
        self.inspected.inquiries.close()


class SelectedValue(SelectedCourse):
    """A value of few elements over the iterations, a larger one as colours."""

    DEFAULT_CSS = "SelectedValue { height: 1fr; border-top: solid $foreground 14%; }"

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._heat = HeatGrid(self.inspected, self)
        self._looks = Looks()
        self._has_course = False

    def stands_beside(self, *, has_course: bool) -> None:
        """The picture over the iterations is on the screen already, or no more."""
        if has_course != self._has_course:
            self._has_course = has_course
            self.changed()

    def rows(self, width: int) -> list[Row]:
        """Return the picture."""
        frame, cursor = self.state.frame, self.state.cursor
        self.note = ""
        if frame is None or cursor is None:
            self.title = ""
            return []
        name, seen = operation_names(frame.program)[cursor], self.inspected
        has_no_course = self._has_course or not any(layer.is_loop for layer in frame.program.path)
        if seen.array is not None and seen.is_numeric() and (has_no_course or not seen.is_few):
            self.title = name
            return self._heat.lines(width, max(self.size.height - 1, 1))
        rows = super().rows(width)
        rows = [*rows, *history_rows(self.state, width, self.size.height - 1 - len(rows))]
        self.title = f"{name} over iterations" if rows else ""
        return rows or self._ahead(width, self.size.height - 1)

    def _ahead(self, width: int, lines: int) -> list[Row]:
        """Return what the loop carries that comes next, as it will run, where no other pane on the screen shows it."""
        state = self.state.inside
        loop, history = state.loop, state.loop_history
        is_alone = self.screen.has_class("-tiny") and self.state.looks_ahead
        if not is_alone or loop is None or history is None or none_ran(loop):
            return []
        seen, limit = reach_of(state)
        span = TimeSpan.fitting(0, limit or seen + 1, width - _NAMES)
        ones = [loop_row(state, one.row, one.values, seen + 1) for one in drawn_rows(history.rows, lines)]
        wants = [Want(*size_wanted(one.values, span.axis, one.labels, is_ruled=True)) for one in ones]
        tall = heights(wants, max(lines - 1, len(ones)), plain=self.look.plain).lines
        self.title = f"{layer_name(loop.layer)}, as it will run"
        rows: list[Row] = [[(" " * _NAMES, ""), *span.ruler(())]]
        columns = RowColumns(_NAMES, width - _NAMES, 0)
        for one, height in zip(ones, tall, strict=True):
            rows += value_rows(one, span.axis, height, columns, self._looks, self.palette, is_ruled=True).rows
        return rows

    def on_unmount(self) -> None:
        """Ask no more."""
        self.inspected.inquiries.close()
