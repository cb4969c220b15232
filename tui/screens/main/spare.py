"""The selected value as a picture, where a short list of operations leaves room: over the iterations, or as colours."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.timer import Timer

from tui.paint.names import operation_names
from tui.paint.pane import Host
from tui.paint.rows import Row
from tui.screens.main.value import history_rows
from tui.screens.value.facts import OverIterations
from tui.screens.value.heat import HeatGrid
from tui.screens.value.inquiries import Inquiries
from tui.screens.value.inspected import Inspected
from tui.screens.value.selection import Subject
from tui.state import State

_TALLEST: Final = 10
_CALM: Final = 0.25
"""Seconds without another value before iterations are run through for one."""


class SelectedValue(OverIterations):
    """A value of few elements over the iterations, a larger one as colours."""

    DEFAULT_CSS = "SelectedValue { height: 1fr; border-top: solid $foreground 14%; }"
    follows_selection: ClassVar[bool] = True

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        inspected = Inspected(host.driver, Inquiries(host.driver, self.changed))
        super().__init__(host, inspected, id=id)
        self._heat = HeatGrid(inspected, self)
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
        """Return the picture."""
        frame, cursor = self.state.frame, self.state.cursor
        self.note = ""
        if frame is None or cursor is None:
            self.title = ""
            return []
        name, seen = operation_names(frame.program)[cursor], self.inspected
        if seen.array is not None and seen.is_numeric() and not seen.is_few:
            self.title = name
            return self._heat.lines(width, max(self.size.height - 1, 1))
        rows = super().rows(width) if self._is_calm else []
        rows = [*rows, *history_rows(self.state, width, min(self.size.height - 1 - len(rows), _TALLEST))]
        self.title = f"{name} over iterations" if rows else ""
        return rows

    def on_unmount(self) -> None:
        """Ask no more."""
        self.inspected.inquiries.close()
