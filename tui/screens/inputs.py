"""The inputs screen: opens where the command line leaves inputs open; the run begins when all are chosen."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult

from tui.containers import Horizontal
from tui.panes.input_detail import InputDetail
from tui.panes.inputs_table import InputsTable
from tui.panes.lines import TopBar
from tui.panes.open_dimensions import OpenDimensions
from tui.screens.base import DebugScreen


class InputsScreen(DebugScreen):
    """All inputs above; the open dimensions and the input at the cursor below."""

    DEFAULT_CSS = """
    InputsScreen #below { height: 1fr; margin-top: 1; border-top: solid $foreground 14%; }
    InputsScreen.-ascii #below { border-top: ascii $foreground 14%; }
    InputsScreen #dimensions { width: 46; height: 100%; }
    InputsScreen #detail { border-left: solid $foreground 14%; }
    InputsScreen.-ascii #detail { border-left: ascii $foreground 14%; }
    InputsScreen.-narrow #dimensions { width: 40; }
    InputsScreen.-tiny #below { layout: vertical; margin-top: 0; }
    InputsScreen.-tiny #dimensions { width: 1fr; height: auto; max-height: 5; }
    InputsScreen.-tiny #detail { border-left: none; }
    InputsScreen #dimensions.hidden { display: none; }
    """
    view_name = "inputs"

    def body(self) -> ComposeResult:
        """Table, dimensions, detail."""
        yield InputsTable(id="inputs")
        with Horizontal(id="below"):
            yield OpenDimensions(id="dimensions")
            yield InputDetail(id="detail")

    def on_mount(self) -> None:
        """Show what was given."""
        super().on_mount()
        choices = self.stepper.inputs
        self.query_one(OpenDimensions).set_class(choices is None or not choices.dimensions, "hidden")
        self.chosen()

    def on_inputs_table_moved(self) -> None:
        """Another input, or another choice for it."""
        self.chosen()

    def chosen(self) -> None:
        """Something was chosen: say how far it is."""
        table = self.query_one(InputsTable)
        typing = None if table.editor is None else table.editor.text
        self.query_one(InputDetail).put(table.at, table.near, typing)
        self.query_one(OpenDimensions).changed()
        choices = self.stepper.inputs
        if choices is None:
            return
        count, ready = len(choices.choices), choices.ready
        if self.stepper.state.view is None:
            self.stepper.state = replace(self.stepper.state, opening=f"{ready} of {count} ready")
            self.query_one("#top", TopBar).update(self.stepper.state)
        rest = "F5 runs" if ready == count else "the run starts when all are"
        self.put_answer(f"{count} input{'s' if count != 1 else ''}, {ready} ready; {rest}", "dim")
