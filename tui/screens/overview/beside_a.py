"""A beside the run on the overview: where a row differs from it, and its value at the cursor with the difference."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from stepper.debug.moments.moment import MomentKind
from stepper.debug.moments.texts import difference_text, truth_text
from stepper.tensors.difference import Change, difference
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import Form
from tui.paint.rows import Row
from tui.pictures.drawing import Cells, Strip, column, row_of
from tui.screens.moments.marks import site_strip, spread_cells
from tui.screens.overview.cards import LinePart
from tui.screens.overview.row_pictures import picture_of_a, way_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepper.debug.moments.spread import SpreadCell, SpreadCells
    from stepper.element_types import Array
    from stepper.tensors.histories import ValueHistory
    from tui.paint.pane import Pane
    from tui.pictures.palette import Palette
    from tui.screens.overview.arrangement import Shown, Wishes
    from tui.screens.overview.cards import Card, Line
    from tui.screens.overview.cursor import Place
    from tui.state import State


class AExtent(IntEnum):
    """Where A is drawn: the strip of differences of the selected row, those of all rows, A's pictures as well."""

    SELECTED = 0
    STRIPS = 1
    PICTURES = 2


class BesideA:
    """A beside the runs of loops: where it is another run of the model beside all of which that is known.

    Else beside those in which the debugger stands, or into which it looks: `now`, of this `state`.
    """

    def __init__(self, pane: Pane, state: State, now: Sequence[Place], cards: Sequence[Card]) -> None:
        self._pane, self._state = pane, state
        self._spread = None if state.a is None or state.a.spread is None else state.a.spread
        self._is_run = self._spread is not None and self._spread.is_of_runs
        self._runs = {(one.card, one.run) for one in now}
        self._cells: dict[tuple[int, int], SpreadCells] = {}
        self._same: set[tuple[int, int]] = set()
        if self._is_run:
            self._find_runs(cards)
        elif (cells := spread_cells(state)) is not None:
            self._cells = dict.fromkeys(self._runs, cells)
        self._runs |= self._cells.keys() | self._same

    def _find_runs(self, cards: Sequence[Card]) -> None:
        """Find what is known of each run of a loop; those that had ended before the two part are the same."""
        spread = self._spread
        assert spread is not None
        known = {(id(one.program), one.outer): one for one in spread.runs}
        for place, card in enumerate(cards):
            for run, activation in enumerate(card.runs):
                cells = known.get((id(card.program), activation.outer))
                if cells is not None:
                    self._cells[place, run] = cells
                elif spread.is_complete and (spread.parted is None or activation.tick < spread.parted):
                    self._same.add((place, run))

    def is_beside(self, at: Place) -> bool:
        """True if the run of a place is held against A."""
        return (at.card, at.run) in self._runs

    def strip(self, shown: Shown, line: Line, width: int) -> Row:
        """Return where a row differs from A in each run that is shown; empty where that is not known."""
        cells: Cells = [(" ", "")] * width
        runs = self._compared(shown, line)
        for run in runs:
            axis = shown.axes[shown.runs.index(run)]
            row = site_strip(self._pane, self._cells[shown.place, run], shown.card.facts.rows[line.row], axis, width)
            for at, cell in enumerate((letter, token) for text, token in row for letter in text):
                if at < width and cell[1]:
                    cells[at] = cell
        return row_of(cells) if runs else []

    def picture(self, shown: Shown, line: Line, height: int, wishes: Wishes, palette: Palette) -> list[list[Strip]]:
        """Return the values of a row in A, in the colours and on the axes of those of now; empty where it has none."""
        found: list[list[Strip]] = [[] for _ in range(height)]
        known = self._whole(shown, line)
        for run, theirs in known.items():
            for y, strips in enumerate(picture_of_a(shown, line, theirs, run, height, wishes, palette)[:height]):
                found[y] += strips
        return found if known else []

    def lines_more(self, shown: Sequence[Shown], at: Place, extent: AExtent) -> int:
        """Return how many lines A takes below the rows of cards."""
        more = 0
        for one in shown:
            if one.is_listed:
                continue
            for place, height in zip(one.lines, one.heights, strict=True):
                line = one.card.lines[place]
                if extent is AExtent.SELECTED and (one.place, place) != (at.card, at.line):
                    continue
                more += bool(self._compared(one, line))
                if extent is AExtent.PICTURES and self._whole(one, line):
                    more += height
        return more

    def _compared(self, shown: Shown, line: Line) -> list[int]:
        """Return the runs that are shown of a card in which a row is compared with A."""
        if line.part is not LinePart.VALUE:
            return []
        row = shown.card.facts.rows[line.row]
        known = ((run, self._cells.get((shown.place, run))) for run in shown.runs)
        return [
            run
            for run, cells in known
            if cells is not None and cells.program is shown.card.program and cells.column_of(row) is not None
        ]

    def _whole(self, shown: Shown, line: Line) -> dict[int, ValueHistory]:
        """Return the values of a row in A over all iterations by the run, where they are drawn."""
        if not self._is_run or line.form is Form.WORDS or not self._compared(shown, line):
            return {}
        known = {run: self._in_a(shown.card, line, shown.place, run) for run in shown.runs}
        return {run: one for run, one in known.items() if one is not None}

    def _in_a(self, card: Card, line: Line, place: int, run: int) -> ValueHistory | None:
        """Return the values of a row in a run of A, as far as they are known."""
        cells, now = self._cells.get((place, run)), card.history(line, run)
        if cells is None:
            return now if (place, run) in self._same else None
        return cells.value_in_a(card.facts.rows[line.row], now)

    def value(self, card: Card, line: Line, at: Place, wishes: Wishes) -> Array | None:
        """Return the numbers of A that stand beside those of a place; None where it has none."""
        if not self.is_beside(at) or line.part is not LinePart.VALUE:
            return None
        a, iteration, history = self._state.a, at.iteration, None
        if self._is_run:
            history = self._in_a(card, line, at.card, at.run)
            if self._is_same(card, line, at) and (history is None or history.over(iteration, iteration + 1) is None):
                history = card.history(line, at.run)  # it is not kept, and is the same
        else:
            run, iteration = -1, -1
            if a is not None and a.moment.kind is MomentKind.BEFORE:
                run, iteration = at.run, at.iteration - 1
            elif a is not None and a.moment.kind is MomentKind.ITERATION:
                around = [step.iteration for step in a.moment.place if step.iteration is not None]
                run = next((k for k, one in enumerate(card.runs) if [*one.outer] == around[:-1]), -1)
                iteration = around[-1] if around else -1
            history = card.history(line, run)
        if history is None or iteration < 0:
            return None
        return column(history, iteration, iteration + 1, way_of(wishes, card, line))

    def absent(self, card: Card, line: Line, at: Place) -> str:
        """Return why A has no numbers beside those of a row: it has none, they are not kept, or not looked up yet."""
        if not self._is_run or line.part is not LinePart.VALUE:
            return "no value"
        cell = self._cell(card, line, at)
        is_added = cell is not None and cell.change is Change.ADDED
        if is_added or self._in_a(card, line, at.card, at.run) is not None:
            return "no value"
        cells = self._cells.get((at.card, at.run))
        row = card.facts.rows[line.row]
        is_asked = cells is not None and any(
            (one.kind, one.inner, one.port) == (row.kind, row.inner, row.port) for one in cells.rows
        )
        return "its numbers are not kept" if is_asked else "not looked up yet"

    def _is_same(self, card: Card, line: Line, at: Place) -> bool:
        cell = self._cell(card, line, at)
        return cell is not None and cell.change is Change.SAME

    def told(self, card: Card, line: Line, at: Place, values: Array | None, theirs: Array | None) -> str:
        """Return how the value of a place differs from A; empty where that is not known."""
        history, cell = card.history(line, at.run), self._cell(card, line, at)
        if (at.card, at.run) in self._same or (cell is not None and cell.change is Change.SAME):
            return "same bits"
        if history is not None and history.is_whole and values is not None and theirs is not None:
            kind = np.bool_ if history.type == "boolean" else values.dtype
            found = difference(theirs.astype(kind), values.astype(kind))
            if found.change is Change.TRUTH:
                text = truth_text(found, self._pane.look.arrow)
                return text if found.size == 1 else f"{text} differ"
            if found.change is Change.NUMBER:
                size = fitted(found.largest)
                return (
                    f"differs by {size}" if found.size == 1 else f"{found.different} of {found.size} differ, by {size}"
                )
            if found.change is not Change.SAME or cell is None or cell.change is None:
                return difference_text(found)
        if cell is None or cell.change is None:
            return ""
        words = {
            Change.TRUTH: "differs",
            Change.SHAPE: "another shape",
            Change.MENDED: "not finite in A, finite now",
            Change.BROKEN: "finite in A, not finite now",
            Change.ADDED: "only now",
        }
        return words.get(cell.change, f"differs, at most by {fitted(cell.relative)} of an element")

    @staticmethod
    def worst(values: Array, theirs: Array) -> int:
        """Return which number differs most from that of A: one that was mended or broken, else the largest."""
        at = difference(theirs, values).at
        return at[0] if at else 0

    def _cell(self, card: Card, line: Line, at: Place) -> SpreadCell | None:
        cells = self._cells.get((at.card, at.run))
        if cells is None or line.part is not LinePart.VALUE:
            return None
        row = at.iteration // cells.step
        index = cells.column_of(card.facts.rows[line.row])
        return None if index is None or row >= len(cells.changes) else cells.at(row, index)
