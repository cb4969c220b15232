"""The compare screen: the first difference in a sentence, each operation beside the reference, what is carried."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.paint.painter import Horizontal
from tui.screens.base import DebugScreen
from tui.screens.compare.carried_differences import CarriedDifferences
from tui.screens.compare.differences import OperationDifferences
from tui.screens.compare.first_difference import FirstDifferencePane
from tui.state import State


class CompareScreen(DebugScreen):
    """The run beside a reference."""

    DEFAULT_CSS = """
    CompareScreen #low { height: 1fr; }
    CompareScreen #carried { width: 62; border-left: solid $foreground 14%; }
    CompareScreen.-huge #carried { width: 80; }
    CompareScreen.-narrow #carried { width: 40; }
    CompareScreen.-alone #carried { display: none; }
    CompareScreen.-ascii #carried { border-left: ascii $foreground 14%; }
    CompareScreen.-tiny #low { layout: vertical; }
    CompareScreen.-tiny #carried { width: 1fr; height: auto; max-height: 9; border-left: none; }
    """
    view_name = "compare"

    def body(self) -> ComposeResult:
        """Verdict above, operations and carried values below."""
        yield FirstDifferencePane(self.host, id="first")
        with Horizontal(id="low"):
            yield OperationDifferences(self.host, id="differences")
            yield CarriedDifferences(self.host, id="carried")

    def show(self, state: State) -> None:
        """Without a reference the words have the whole width."""
        super().show(state)
        self.set_class(state.comparison is None, "-alone")
