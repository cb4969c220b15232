"""Below the cards, where they leave room: the graph of the body that the cursor is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events
from textual.geometry import Size

from stepper.engine.program import Program
from tui.paint.links import LinkedValue
from tui.paint.pane import Host
from tui.paint.rows import Row, printable
from tui.screens.graph.pane import BodyGraph
from tui.state import State

if TYPE_CHECKING:
    from stepper.debug.inspection.views import FrameView


class LoopBody(BodyGraph, can_focus=False):
    """The graph of a body, at no moment; two clicks on an operation go to where it runs first."""

    DEFAULT_CSS = """
    LoopBody { height: 12; margin-top: 1; }
    LoopBody.-beside { dock: right; margin-top: 0; border-left: solid $foreground 14%; }
    DebugScreen.-ascii LoopBody.-beside { border-left: ascii $foreground 14%; }
    """

    def __init__(
        self,
        host: Host,
        chosen: Callable[[], Program | None],
        *,
        layer: Callable[[], int | None] = lambda: None,
        id: str | None = None,
    ) -> None:
        super().__init__(host, id=id)
        self._chosen, self._chosen_layer = chosen, layer
        self._updated_for: tuple[Program | None, Size] = None, Size(0, 0)

    @property
    def _frame(self) -> FrameView | None:
        return None

    def _program(self) -> Program | None:
        return self._chosen()

    def _layer(self) -> int | None:
        return self._chosen_layer()

    def update(self, state: State) -> None:
        """Another body."""
        program = self._chosen()
        self._updated_for = program, self.size
        loop = None if program is None or not program.path else program.path[-1]
        self.title = "the model's graph" if loop is None else f"body of {printable(loop.name)}"
        super().update(state)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return its lines; the first size may come without an event, before the pane takes any."""
        if (self._chosen(), self.size) != self._updated_for:
            self.call_after_refresh(lambda: self.update(self.state))
        return super().visible_lines(width, height)

    def on_click(self, event: events.Click) -> None:
        """Two clicks on a box go to its operation; there is nothing to select."""
        event.prevent_default()
        program, place = self._program(), self._place_at(event.x - self.gutter.left, event.y - 1)
        if event.chain != 2 or program is None or place is None or place.path:
            return
        layer = program.graph.by_id[place.key]
        if layer.outputs:
            self.post_line(f"goto {LinkedValue(program, layer).address(self.host.driver.compiled)}")
