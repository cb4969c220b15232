"""ScrubbedPane: a pane with iterations from left to right, behind names; a click goes to one, a drag scrubs."""

from __future__ import annotations

from typing import ClassVar

from textual import events

from tui.paint.pane import Pane


class ScrubbedPane(Pane):
    """Time goes to the right. A subclass says which iteration stands where."""

    NAME_WIDTHS: ClassVar[tuple[tuple[int, int], ...]]
    """Widths of the pane, falling, and how many cells the names have from there on."""

    def iteration_in(self, cell: int) -> int | None:
        """The iteration that is shown so many cells right of the names."""
        raise NotImplementedError

    def seen(self) -> int:
        """The last iteration known to have run."""
        raise NotImplementedError

    def name_width(self, width: int) -> int:
        """How many cells the names have in a pane of this width."""
        return next(cells for least, cells in self.NAME_WIDTHS if width >= least)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag scrubs."""
        self.capture_mouse()
        self._go_to(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Another iteration under the mouse."""
        if self.app.mouse_captured is self:
            self._go_to(event.x)

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """The drag ends."""
        self.release_mouse()

    def _go_to(self, x: int) -> None:
        if self.state.loop is None or self.state.running is not None:
            return
        wanted = self.iteration_in(x - self.gutter.left - self.name_width(self.size.width))
        if wanted is not None and wanted != self.state.iteration and wanted <= self.seen():
            self.post_line(f"iter {wanted}")
