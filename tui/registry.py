"""The screens by name: a new one is a file in screens/ and a line here. `:view NAME` and the palette open them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from stepper.records import Record

if TYPE_CHECKING:
    from tui.screens.base import DebugScreen


class View(Record):
    """A screen: its name at the prompt, where its class is (imported when it is opened), and what it shows.

    `panes` are those of its panes that have keys, by the names under which keys.py knows them.
    """

    name: str
    place: str
    help: str
    panes: tuple[str, ...]

    def load(self) -> type[DebugScreen]:
        """Return its class."""
        module, _, name = self.place.partition(":")
        found: type[DebugScreen] = getattr(import_module(module), name)
        return found


VIEWS: Final = {
    view.name: view
    for view in (
        View(
            "main",
            "tui.screens.main.screen:MainScreen",
            "operations, graph, loop, timeline",
            (
                "operations",
                "graph",
                "moments",
                "value",
                "timeline",
                "frames",
                "loop",
                "edges",
                "scans",
                "node",
                "stop",
                "end",
            ),
        ),
        View(
            "overview",
            "tui.screens.overview.screen:OverviewScreen",
            "the whole run: each loop a card, iterations from left to right",
            ("overview",),
        ),
        View(
            "value",
            "tui.screens.value.screen:ValueScreen",
            "one tensor: colours, numbers, difference, bits, statistics",
            ("tensor",),
        ),
        View(
            "compare",
            "tui.screens.compare.screen:CompareScreen",
            "the run beside a reference: where they part, op by op",
            ("differences",),
        ),
        View(
            "sheet",
            "tui.screens.sheet.screen:SheetScreen",
            "values by iterations: what is carried, all operations, the path of a value, elements",
            ("sheet",),
        ),
        View(
            "inputs",
            "tui.screens.inputs.screen:InputsScreen",
            "what was chosen for the model's inputs",
            ("inputs", "dimensions"),
        ),
        View(
            "breakpoints",
            "tui.screens.lists.breakpoints:BreakpointsScreen",
            "breakpoints: what each waits for, hits",
            ("breakpoints",),
        ),
        View(
            "watches",
            "tui.screens.lists.watches:WatchesScreen",
            "watched expressions now, before and over the iterations",
            ("watches",),
        ),
        View(
            "findings",
            "tui.screens.lists.findings:FindingsScreen",
            "what is wrong with the file and with the run of the overview",
            ("findings",),
        ),
        View(
            "events",
            "tui.screens.lists.events:EventsScreen",
            "the log: what was done, what stopped the run, what failed",
            ("events",),
        ),
        View(
            "variables",
            "tui.screens.lists.variables:VariablesScreen",
            "variables of the model, values of the frame",
            ("variables",),
        ),
        View("help", "tui.screens.help:HelpScreen", "the keys of the focused pane, then all", ("card",)),
    )
}
