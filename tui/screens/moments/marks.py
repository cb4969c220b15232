"""Signs of two moments: a cell of the spread of an edit, and the strip of them below a picture of a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from rich.style import Style
from textual.color import Color

from stepper.debug.inspection.views import ValueView
from stepper.debug.moments.spread import SpreadCell, SpreadCells
from stepper.debug.overview.facts import Row as LoopRow
from stepper.tensors.difference import Change
from stepper.tensors.histories import ValueHistory
from tui.paint.pane import Pane
from tui.paint.rows import Cell, Row
from tui.pictures.axis import Axis
from tui.state import State
from tui.theme import GLYPHS

_LEAST_EXPONENT: Final = -7.0
_EXPONENTS: Final = 9.0
"""Relative differences from 1e-7 to 100 are shades; fainter and stronger ones look like these."""


def spread_tile(pane: Pane, one: SpreadCell, width: int) -> Cell:
    """Return a cell: edited, differs by so much, mended, broken, another shape or truth, only now, the same.

    It is blank where that is unknown.
    """
    plain = pane.look.plain
    if one.is_edited:
        return f"{pane.look.edited:^{width}}", "a-on"
    match one.change:
        case None:
            return " " * width, ""
        case Change.SAME:
            return f"{'=' if plain else GLYPHS['pending']:^{width}}", "faint"
        case Change.MENDED:
            return f"{'✓':^{width}}", _on(pane.ramp(0.55))
        case Change.BROKEN:
            return f"{'✗':^{width}}", "badbg"
        case Change.ADDED:
            return f"{GLYPHS['added']:^{width}}", "accent"
        case Change.SHAPE:
            return f"{GLYPHS['shape']:^{width}}", _on(_shade(pane, 1.0))
        case Change.TRUTH:
            return f"{GLYPHS['diff'] if plain else '':^{width}}", _on(_shade(pane, 1.0))
    level = (math.log10(one.relative + 1e-12) - _LEAST_EXPONENT) / _EXPONENTS if one.relative < math.inf else 1.0
    level = float(np.clip(level, 0.22, 1.0))
    text = str(int(level * 9)) if plain else ""
    return f"{text:^{width}}", _on(_shade(pane, level))


def _shade(pane: Pane, level: float) -> Color:
    return pane.colour("background").blend(pane.colour("warning"), level * 0.8)


def _on(ground: Color) -> Style:
    return Style(bgcolor=ground.rich_color, color=ground.get_contrast_text().rich_color)


def spread_cells(state: State) -> SpreadCells | None:
    """Return the cells of the loop that is shown, where A is another branch or a reference; else None."""
    found = None if state.a is None else state.a.spread
    cells = None if found is None else found.cells
    program = state.loop_program
    return cells if cells is not None and cells.program is program else None


def is_beside_run(state: State) -> bool:
    """True if A is another run, whole: a branch or a reference, of which all iterations are compared."""
    found = None if state.a is None else state.a.spread
    return found is not None and found.is_of_runs and spread_cells(state) is not None


def histories_of_a(state: State) -> dict[int, ValueHistory]:
    """Return the values in A of the rows of the loop that is shown, by their index, where A is another run.

    Where both are the same up to somewhere, up to there those of now.
    """
    cells, history = spread_cells(state), state.loop_history
    if cells is None or not is_beside_run(state) or history is None:
        return {}
    found = {index: cells.value_in_a(one.row, one.values) for index, one in enumerate(history.rows)}
    return {index: one for index, one in found.items() if one is not None}


def worst_strip(pane: Pane, cells: SpreadCells, axis: Axis, width: int) -> Row:
    """Return where any operation differs in each slot of an axis; beside an iteration any value of the loop's rows.

    Of all operations some always differ from those of another iteration.
    """
    history = pane.state.loop_history
    sites: list[int] = []
    if not is_beside_run(pane.state) and history is not None:
        rows = [one.row for one in history.rows if not one.row.appends]
        found = [cells.column_of(row) for row in rows]
        sites = [column for column in found if column is not None]
    return _strip(pane, cells, sites or None, axis, width)


def difference_strip(pane: Pane, cells: SpreadCells, value: ValueView | None, axis: Axis, width: int) -> Row:
    """Return where a value of the body differs in each slot of an axis; empty where no operation gives it."""
    layer = None if value is None else value.layer
    index = None if layer is None else cells.program.indices.get(layer.id)
    if (
        value is None
        or layer is None
        or index is None
        or cells.program.operations[index].layer is not layer
        or not axis.slots
    ):
        return []
    column = cells.column(layer.id, value.output)
    return [] if column is None else _strip(pane, cells, [column], axis, width)


def site_strip(pane: Pane, cells: SpreadCells, row: LoopRow, axis: Axis, width: int) -> Row:
    """Return where a row of the loop differs in each slot of an axis; empty where no operation gives it."""
    index = cells.column_of(row)
    return [] if index is None or not axis.slots else _strip(pane, cells, [index], axis, width)


def _strip(pane: Pane, cells: SpreadCells, operations: Sequence[int] | None, axis: Axis, width: int) -> Row:
    """Return the worst of some operations (None: of all) in each slot."""
    row: Row = []
    at = 0
    slots = [slot for slot in sorted(axis.slots) if slot.start < width]
    spans = [(slot.first // cells.step, -(-slot.last // cells.step)) for slot in slots]
    for slot, one in zip(slots, cells.worst_in(spans, operations), strict=True):
        row += [(" " * (slot.start - at), ""), spread_tile(pane, one, slot.width)]
        at = slot.start + slot.width
    return row
