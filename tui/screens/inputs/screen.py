"""The inputs screen: opens where the command line leaves inputs open; the run begins when all are chosen."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar, Final

import numpy as np
from msgspec.structs import replace
from textual.app import ComposeResult

from stepper.element_types import Array
from stepper.ops.operands import form_text
from stepper.plain_values import storable
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import scale_of, shades
from stepper.tensors.planes import is_numeric, plane_of
from stepper.tensors.statistics import finish
from stepper.tensors.surveys import CellStatistic, edges, in_cells
from tui.paint.painter import Horizontal
from tui.paint.pane import Pane
from tui.paint.rows import Cell, Row, clip, elements, padded, printable, width_of
from tui.screens.bars import TopBar
from tui.screens.base import DebugScreen
from tui.screens.inputs.detail import InputDetail
from tui.screens.inputs.open_dimensions import OpenDimensions
from tui.screens.inputs.table import InputsTable
from tui.screens.value.inspected import AT_ONCE


class GivenInputs(Pane):
    """Names, types, elements; where there is room their colours, a cell being the mean of what it stands for."""

    DEFAULT_CSS = "GivenInputs { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "card"
    title = "inputs"
    note = "given when the run began "
    help_text: ClassVar[str] = "The inputs of a session, or of a program that has opened the screen, are as they are."

    def rows(self, width: int) -> list[Row]:
        """Return one an input."""
        given = self.host.driver.given
        room = min(max((len(name) for name, _ in given), default=0), 24)
        rows: list[Row] = []
        lines = min((self.size.height - 2) // max(len(given), 1) - 2, _TALLEST)
        for name, value in given:
            kind = form_text(value)
            head: Row = [(f"  {padded(clip(printable(name), room), room)}  ", "strong"), (f"{kind:<18}  ", "dim")]
            rows.append([*head, (elements(storable(value), width - width_of(head) - 1), "bar")])
            picture = self._picture(value, width - room - 6, lines)
            rows += [[(" " * (room + 4), ""), *row] for row in picture]
            rows += [[]] if picture else []
        return rows or [[("  the model has no inputs", "dim")]]

    def _picture(self, value: Array, width: int, lines: int) -> list[Row]:
        """Return the colours of a value in at most so many lines; none of a single number, or of very many."""
        array = np.asarray(value)
        if lines < 1 or not is_numeric(array.dtype) or not 1 < array.size <= AT_ONCE:
            return []
        plane = plane_of(array.shape)
        rows, columns = edges(0, plane.height, lines), edges(0, plane.width, max(width // _CELL, 1))
        tiles = finish(in_cells(partial(plane.block, array), rows, columns, CellStatistic.MEAN))
        scale = scale_of(tiles)
        is_whole = _NUMBERED * plane.width <= width and plane.height == len(tiles)
        return [
            [
                self._with_number(one, level, signed=scale.signed)
                if is_whole
                else self.tile(level, _CELL, signed=scale.signed)
                for one, level in zip(numbers, levels, strict=True)
            ]
            for numbers, levels in zip(tiles.tolist(), shades(tiles, scale).tolist(), strict=True)
        ]

    def _with_number(self, one: float, level: float, *, signed: bool) -> Cell:
        """Return an element as a shade with its number on it."""
        shade = self.palette.shade(level if math.isfinite(level) else 0.0, is_signed=signed)
        bad = not math.isfinite(one)
        return f"{fitted(one, 6):>{_NUMBERED - 1}} ", "bad" if bad else "" if self.look.ascii else self.palette.on(
            shade
        )


_TALLEST: Final = 24
"""Lines of the colours of an input."""
_CELL: Final = 2
_NUMBERED: Final = 8
"""Cells of an element with its number."""
STARTS: Final = "the run starts when all are"
_OFTEN: Final = 0.1
"""Seconds from one look at what is loading to the next."""


class InputsScreen(DebugScreen):
    """All inputs above; the open dimensions and the input at the cursor below."""

    DEFAULT_CSS = """
    InputsScreen #below { height: 1fr; margin-top: 1; border-top: solid $foreground 14%; }
    InputsScreen.-ascii #below { border-top: ascii $foreground 14%; }
    InputsScreen #dimensions { width: 46; height: 100%; }
    InputsScreen #detail { border-left: solid $foreground 14%; }
    InputsScreen.-ascii #detail { border-left: ascii $foreground 14%; }
    InputsScreen.-narrow #dimensions { width: 44; }
    InputsScreen.-tiny #below { layout: vertical; margin-top: 0; }
    InputsScreen.-tiny #dimensions { width: 1fr; height: auto; max-height: 5; }
    InputsScreen.-tiny #detail { border-left: none; }
    InputsScreen #dimensions.hidden { display: none; }
    """
    view_name = "inputs"

    def body(self) -> ComposeResult:
        """Table, dimensions, detail; the values alone where nothing can be chosen."""
        if self.host.to_choose() is None:
            yield GivenInputs(self.host, id="inputs")
            return
        yield InputsTable(self.host, id="inputs")
        with Horizontal(id="below"):
            yield OpenDimensions(self.host, id="dimensions")
            yield InputDetail(self.host, id="detail")

    def on_mount(self) -> None:
        """Show what was given."""
        super().on_mount()
        choices = self.host.inputs
        if choices is not None:
            self.query_one(OpenDimensions).set_class(not choices.dimensions, "hidden")
            self.chosen()
            self.set_interval(_OFTEN, self._look)

    def put_answer(self, text: str, tone: str) -> None:
        """Where there is no other answer, how far it is."""
        super().put_answer(text or self._how_far(), tone)

    def _look(self) -> None:
        """Show how far large values are."""
        choices = self.host.inputs
        if choices is not None and choices.loads:
            self.query_one(InputsTable).changed()
            self.query_one(InputDetail).changed()

    def close_card(self) -> bool:
        """Stop the making of large values."""
        choices = self.host.inputs
        if choices is None or not choices.stop_loading():
            return super().close_card()
        self.refresh_choices()
        return True

    def refresh_choices(self) -> None:
        """Something was chosen that the table has not asked for, or has come."""
        self.query_one(InputsTable).changed()
        self.chosen()

    def on_inputs_table_cursor_moved(self) -> None:
        """Another input, or another choice for it."""
        self.chosen()

    def chosen(self) -> None:
        """Something was chosen: say how far it is."""
        table = self.query_one(InputsTable)
        typing = None if table.editor is None else table.editor.text
        self.query_one(InputDetail).put(table.at, table.near, typing)
        self.query_one(OpenDimensions).changed()
        self.show_keys()
        choices = self.host.inputs
        if choices is None:
            return
        count, ready = len(choices.choices), choices.ready
        if self.host.state.view is None:
            self.host.state = replace(self.host.state, opening=f"{ready} of {count} ready")
            self.query_one("#top", TopBar).update(self.host.state)
        self.put_answer("", "dim")

    def _how_far(self) -> str:
        choices = self.host.inputs
        if choices is None:
            return ""
        count, ready, loading = len(choices.choices), choices.ready, len(choices.loads)
        if ready + len(choices.proposed) == count and choices.proposed:
            return f"{count} input{'s' if count != 1 else ''}; F5 runs on what is proposed"
        rest = f"{loading} loading, Esc stops that" if loading else "F5 runs" if ready == count else STARTS
        return f"{count} input{'s' if count != 1 else ''}, {ready} ready; {rest}"
