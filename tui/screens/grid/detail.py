"""The cell of the grid that is selected: what its value is and how it spreads; its row as numbers; and the legend."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np

from stepper.debug.causes.nan_origins import NonFiniteOutput
from stepper.debug.causes.texts import element_text, word_of
from stepper.debug.inspection.views import FrameView
from stepper.debug.iterations.cell_store import Cell, CellsView
from stepper.debug.moments.texts import difference_text, truth_step_text
from stepper.debug.overview.facts import RowKind
from stepper.element_types import Array
from stepper.ops.operands import form_text
from stepper.tensors.number_text import fitted, number_text
from stepper.tensors.statistics import statistics
from stepper.wording import counted
from tui.paint.names import (
    carried_name,
    is_truth,
    layer_name,
    marked_name,
    operation_names,
    statistic_text,
    statistic_word,
)
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, figure, spread, width_of
from tui.screens.grid.columns import difference_at, is_beyond
from tui.screens.grid.grid import Grid
from tui.screens.main.value import MOST_AT_ONCE
from tui.theme import GLYPHS


class GridDetail(Pane, can_focus=False):
    """Three lines about the cell that is selected, else about the moment."""

    looks_inside: ClassVar[bool] = True
    DEFAULT_CSS = "GridDetail { border-top: solid $foreground 14%; height: auto; }"
    has_legend = True

    def __init__(self, host: Host, grid: Grid, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._grid = grid

    def rows(self, width: int) -> list[Row]:
        """Return the cell, then the legend."""
        cell, frame, cells = self._grid.cell, self._grid.frame, self.state.cells
        rows: list[Row] = [[], [], []]
        if cell is not None and frame is not None and cells is not None and cells.program is frame.program:
            value = self._value_row(cell, cells, width)
            value += self._difference(cell, width - width_of(value))
            rows = [self._title(cell, width), value, self._over_time(cell, cells, width)]
        return [*rows, [], self._legend(width)] if self.has_legend else rows

    def _held(self, cell: Cell) -> Array | None:
        """Return the value itself, where the run holds it: that of the present iteration."""
        frame = self._grid.frame
        if frame is None or (frame.iteration or 0) != cell.iteration or not frame.is_done(cell.operation):
            return None
        return frame.held(cell.operation)

    def _title(self, cell: Cell, width: int) -> Row:
        frame = self._grid.frame
        assert frame is not None
        array = self._held(cell)
        kind = "" if array is None else f"{form_text(array)}   "
        is_moment = cell == self._grid.moment and not self.state.is_far
        keys = "Enter opens" if is_moment else "Enter goes there" if self._grid.picked or self.state.is_far else ""
        name = marked_name(frame.program, cell.operation, max(width - 40, 10))
        number_ = "" if frame.iteration is None else f"@{cell.iteration}"
        return spread([(" ", ""), (f"{name}{number_}", "strong")], [(f"{kind}{keys} ", "note")], width)

    # --- the value -----------------------------------------------------------------------------------------------

    def _value_row(self, cell: Cell, cells: CellsView, width: int) -> Row:
        array, frame = self._held(cell), self._grid.frame
        known = cells.number(cell)
        if array is not None and frame is not None and array.size <= MOST_AT_ONCE:
            found = frame.non_finite(cell.operation)
            return self._ordinary_row(array, cell, cells) if found is None else self._odd_row(found, frame, width)
        if known is None:
            loop = self.state.loop
            is_none = self.state.is_far and loop is not None and loop.level.iteration is None
            return [("   no iteration ran here" if is_none else "   not computed yet, or jumped over", "dim")]
        word = statistic_word(cells.statistic, cells.program, cell.operation)
        row: Row = [
            ("   ", ""),
            (f"{word} ", "dim"),
            (self._written(known, cell), "" if math.isfinite(known) else "bad"),
        ]
        return [*row, *self._before(cell, cells)]

    def _odd_row(self, found: NonFiniteOutput, frame: FrameView, width: int) -> Row:
        kind, origin = word_of(found.kind), found.origin
        row: Row = [("   ", ""), (kind, "bad"), (f" in {found.count} of {found.size}, first ", "")]
        row.append((element_text(found.element) or "[]", ""))
        followed = next((one for one in origin.operands if one.input == origin.follows), None)
        if followed is not None and origin.arithmetic is None:
            return [
                *row,
                ("   came in", "dim"),
                (" with ", "dim"),
                (layer_name(frame.graph.by_id[followed.layer.id]), ""),
            ]
        row.append(("   born here", "bad"))
        if origin.formula:
            row.append((f": {origin.formula}", "dim"))
        if followed is not None and followed.value is not None:
            row += [(", with ", "dim"), (number_text(followed.value), "bad")]
            if width > 98:
                row += [(f" at {element_text(followed.element) or '[]'} of ", "dim")]
                row += [(layer_name(frame.graph.by_id[followed.layer.id]), "")]
        return row

    def _ordinary_row(self, array: Array, cell: Cell, cells: CellsView) -> Row:
        found = statistics(array)
        row: Row = [("   ", "")]
        shown = cells.number(cell)
        if shown is not None:
            row += [
                (f"{statistic_word(cells.statistic, cells.program, cell.operation)} ", "dim"),
                (self._written(shown, cell), ""),
            ]
        if found.size > 1 and found.min is not None and found.max is not None:
            row += [("   from ", "dim"), (fitted(found.min), ""), (" to ", "dim"), (fitted(found.max), "")]
        return [*row, *self._before(cell, cells)]

    def _before(self, cell: Cell, cells: CellsView) -> Row:
        before = cells.number(Cell(cell.iteration - 1, cell.operation))
        return [] if before is None else [("   iteration before ", "dim"), (self._written(before, cell), "")]

    def _written(self, value: float, cell: Cell) -> str:
        frame = self._grid.frame
        return fitted(value) if frame is None else statistic_text(value, frame.program, cell.operation)

    def _difference(self, cell: Cell, room: int) -> Row:
        """Return how far the value is from the reference's, or now from A's."""
        comparison, frame = self.state.comparison, self._grid.frame
        if comparison is None and frame is not None and (frame.iteration or 0) == cell.iteration:
            apart = difference_at(self.state, frame, cell.operation)
            text = "" if apart is None else f"   from A: {difference_text(apart)}"
            return [(text, "" if apart is not None and is_beyond(apart) else "dim")] if len(text) <= room else []
        compared = None if comparison is None else comparison.grid
        if compared is None or frame is None or compared.program is not frame.program:
            return []
        found = compared.at(cell)
        if found is None:
            row: Row = [("   not compared", "dim")]
        elif found.distance == 0:
            row = [("   same as the reference", "dim")]
        else:
            above = (f" {GLYPHS['diff']} above tolerance", "bad") if found.is_above else (", within tolerance", "dim")
            row = [("   difference ", "dim"), (fitted(found.distance, 8), ""), above]
        return row if width_of(row) <= room else row[:-1] if width_of(row[:-1]) <= room else []

    # --- over time -----------------------------------------------------------------------------------------------

    def _over_time(self, cell: Cell, cells: CellsView, width: int) -> Row:
        shown = cells.number(cell)
        kind = "" if shown is None or math.isfinite(shown) else "NaN" if math.isnan(shown) else "Inf"
        row = self._spread(cell, cells, kind, width) if kind else self._firsts(cells)
        return row if row else [("   no NaN and no Inf in what is known", "dim")]

    def _spread(self, cell: Cell, cells: CellsView, kind: str, width: int) -> Row:
        row: Row = [("   ", ""), ("NaN spreads" if kind == "NaN" else "Inf and NaN spread", "dim")]
        for iteration in range(cell.iteration, cell.iteration + 3):
            odd = cells.odd(iteration, kind)
            when = f"iteration {iteration}: " if any(layer.is_loop for layer in cells.program.path) else "to "
            text = f"   {when}{counted(odd or 0, 'op')}"
            if odd is not None and width_of(row) + len(text) < width:
                row.append((text, ""))
        by = [*self._carried(cell.iteration + 1), *self._carried(cell.iteration + 2)]
        for place, name in enumerate(dict.fromkeys(by)):
            more: Row = [("   by " if not place else " then ", "dim"), (f"{GLYPHS['back']} {name}", "")]
            if width_of([*row, *more]) < width:
                row += more
        return row

    def _carried(self, iteration: int) -> list[str]:
        """Return which carried values begin to have NaN or Inf with this iteration."""
        history = self.state.loop_history
        found = []
        for one in history.rows if history is not None else ():
            if one.row.kind is RowKind.BACK_EDGE and one.values is not None:
                before, now = (one.values.over(at, at + 1) for at in (iteration - 2, iteration - 1))
                is_odd = now is not None and not np.isfinite(now).all()
                if is_odd and (before is None or bool(np.isfinite(before).all())):
                    found.append(carried_name(one.row.inner))
        return found

    def _firsts(self, cells: CellsView) -> Row:
        row: Row = [("   ", "")]
        for kind, cell in sorted(cells.firsts.items(), key=lambda item: item[1]):
            name = operation_names(cells.program)[cell.operation]
            row += [("first ", "dim"), (kind, "bad"), (" of this run ", "dim"), (f"{name}@{cell.iteration}   ", "")]
        return row if cells.firsts else []

    def _legend(self, width: int) -> Row:
        row: Row = [("   ", "")]
        compared: Row = [(GLYPHS["diff"], "bad"), (" above tolerance  ", "dim"), ("!", "bad"), (" the first  ", "dim")]
        entries: list[Row] = [
            *([compared] if self.state.comparison is not None else [compared[:2]] if self.state.a is not None else []),
            [("N", "bad"), (" NaN  ", "dim"), ("I", "bad"), (" Inf  ", "dim")],
            [(" I ", "badbg"), (" first of its kind  ", "dim")],
            [(GLYPHS["break"], "bad"), (" stopped  ", "dim"), (self.look.edited, "edit"), (" edited  ", "dim")],
            [(GLYPHS["shape"], ""), (" shape changed  ", "dim"), (GLYPHS["now"], "accent"), (" the moment  ", "dim")],
            [(figure(-3, 1), ""), (" below zero  ", "dim")] if self.look.plain else [],
            [(GLYPHS["free"], ""), (" not known  ", "dim")],
            [("low ", "dim"), *[("  ", style) for style in self._grid.paint.shades()], (" high", "dim")],
        ]
        for entry in entries:
            if width_of([*row, *entry]) <= width:
                row += entry
        return row


_BEFORE_BARS: Final = 27
"""Cells of the columns of numbers."""


class GridHistory(Pane, can_focus=False):
    """Values of the selected operation over the iterations."""

    DEFAULT_CSS = "GridHistory { height: 1fr; }"
    looks_inside: ClassVar[bool] = True

    def __init__(self, host: Host, grid: Grid, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._grid = grid

    def heading(self, width: int) -> list[Row]:
        """Return which operation, and what its columns are."""
        cell, frame, cells = self._grid.cell, self._grid.frame, self.state.cells
        if cell is None or frame is None or cells is None:
            self.title = ""
            return []
        name = marked_name(frame.program, cell.operation, max(width - 17, 10))
        is_repeated = any(layer.is_loop for layer in frame.program.path)
        self.title = f"{name} over iterations" if is_repeated else name
        word = statistic_word(cells.statistic, frame.program, cell.operation)
        heads = f" {'iteration':>10}{word:>8}{'change':>8}" if is_repeated else f" {'':>10}{word:>8}"
        return [*super().heading(width), [(heads, "dim")]]

    def rows(self, width: int) -> list[Row]:
        """Return one line an iteration: those that the grid shows, around the cell where they are too many."""
        cell, frame, cells = self._grid.cell, self._grid.frame, self.state.cells
        if cell is None or frame is None or cells is None or cells.program is not frame.program:
            return []
        left, count = self._grid.columns()
        room = max(self.size.height - 2, 1)
        begin = max(left, min(cell.iteration - room // 2, left + count - room))
        tile = cells.window(begin - 1, min(room, left + count - begin) + 1, np.array([cell.operation]))
        values = np.where(tile.known[:, 0], tile.numbers[:, 0], math.nan)
        finite = values[1:][np.isfinite(values[1:])].tolist()
        low, high = min(finite, default=0.0), max(finite, default=0.0)
        rows: list[Row] = []
        for place, (before, value) in enumerate(zip(values[:-1].tolist(), values[1:].tolist(), strict=True)):
            iteration, known = begin + place, bool(tile.known[place + 1, 0])
            rows.append(self._row(iteration, before, value if known else None, (low, high), width, cells))
        return rows

    def _row(
        self,
        iteration: int,
        before: float,
        value: float | None,
        scale: tuple[float, float],
        width: int,
        cells: CellsView,
    ) -> Row:
        moment, cell = self._grid.moment, self._grid.cell
        here = moment is not None and moment.iteration == iteration
        tone = "title-on" if here else "strong" if cell is not None and cell.iteration == iteration else "dim"
        row: Row = [(GLYPHS["now"] if here else " ", "accent"), (f"{iteration:>10,}", tone)]
        if value is None:
            return [*row, (f"{GLYPHS['free']:>8}", "faint")]
        operation = 0 if cell is None else cell.operation
        row.append((f"{statistic_text(value, cells.program, operation):>8}", "" if math.isfinite(value) else "bad"))
        if not math.isfinite(value):
            return row
        text = self._change(iteration, before, value, cells, operation)
        low, high = scale
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        length = max(round(share * (width - _BEFORE_BARS - 2)), 1)
        return [*row, (f"{text:>8}  ", "dim"), ("━" * max(length, 0), "accent" if here else "bar")]

    def _change(self, iteration: int, before: float, value: float, cells: CellsView, operation: int) -> str:
        """Return by how much the number changed, or what a boolean was; `same` only where no element changed."""
        with np.errstate(all="ignore"):
            change = float(np.subtract(value, before))
        if not math.isfinite(change):
            return ""
        if is_truth(cells.program, operation):
            return truth_step_text(before, value, self.look.arrow, same="same")
        if change:
            return f"{'+' if change > 0 else ''}{fitted(change)}"
        if math.prod(cells.program.operations[operation].layer.outputs[0].dims) == 1:
            return "same"
        values = cells.values.get(operation)
        whole = None if values is None or not values.is_whole else values
        one, other = (None if whole is None else whole.over(at, at + 1) for at in (iteration - 1, iteration))
        return "same" if one is not None and other is not None and np.array_equal(one, other) else "0"
