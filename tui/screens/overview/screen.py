"""The overview: what a whole run was, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult

from stepper.debug.overview.facts import Overview, RunState
from tui.screens.base import DebugScreen
from tui.screens.overview.around import has_sequences
from tui.screens.overview.pane import OverviewPane

if TYPE_CHECKING:
    from tui.screens.overview.loop_body import LoopBody

_LEAST: Final = 9
_LEAST_WIDTH: Final = 76
"""Lines and columns from which on a body is drawn below the cards."""
_LEAST_ASIDE: Final = 40
"""Columns from which on it is drawn at their right, where it has no room below them."""


class OverviewScreen(DebugScreen):
    """The loops of the run as cards."""

    view_name = "overview"
    _loop_body: LoopBody | None = None

    def body(self) -> ComposeResult:
        """Yield the one pane."""
        yield OverviewPane(self.host, self._share_room, id="overview")

    def _share_room(self) -> None:
        """Draw the body of the loop of the cursor where nothing else stands."""
        if not self.is_ready or self.maximized is not None:
            return
        pane, content = self.pane, self.query_one("#content")
        width, height = content.size
        room, aside, shown = height - pane.needed - 1, width - pane.used - 3, self._loop_body
        is_below, is_beside = room >= _LEAST and width >= _LEAST_WIDTH, aside >= _LEAST_ASIDE
        program = pane.program
        if program is None or not (is_below or is_beside) or not program.operations:
            if shown is not None:
                shown.display = False
            return
        if shown is None:
            from tui.screens.overview.loop_body import LoopBody  # the first picture has no such room

            shown = self._loop_body = LoopBody(self.host, lambda: pane.program, id="loop-body")
            self.adopt(shown, content)
        shown.set_class(not is_below, "-beside")
        shown.styles.height = room if is_below else height
        shown.styles.width = width if is_below else aside
        shown.display = True
        shown.update(self.host.state)

    @property
    def pane(self) -> OverviewPane:
        """The one pane."""
        return self.query_one("#overview", OverviewPane)

    def grew(self, overview: Overview) -> None:
        """More is known of the run."""
        if self.is_ready:
            self.pane.grew(overview)
            self.show_keys()

    def situation(self) -> str:
        """Return how the run stands that is shown, where the debugger does not move."""
        known = self.pane.overview
        if self.host.state.running is not None:
            return "running"
        if self.pane.is_without_run:
            return "without inputs"
        if known is None:
            return ""
        if known.state is RunState.RUNNING:
            return "making"
        if not known.loops and not has_sequences(known) and (known.branches or known.births or known.failure):
            return "branches" if known.branches else "found"
        if not known.loops:
            return "sequences" if has_sequences(known) else "without loops"
        return "" if known.state in (RunState.FINISHED, RunState.FAILED) else "paused"

    def is_alone(self) -> bool:
        """Return True if there is no other card, and no other pane."""
        return not self.following() and not self.pane.has_other_cards

    def move_tab(self, by: int) -> bool:
        """Go to the next card; with an answer open, to that and back."""
        return not self.has_answer and self.pane.move_card(by)
