"""A beside the run on the overview: where a row differs from it, and its value at the cursor with the difference."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from stepper.debug.moments.difference import Change, difference
from stepper.debug.moments.moment import MomentKind
from stepper.debug.moments.texts import difference_text
from stepper.tensors.pictures import Form
from tui.paint.rows import Row, number
from tui.pictures.drawing import Strip, column
from tui.screens.moments.marks import histories_of_a, is_beside_run, site_strip, spread_cells
from tui.screens.overview.cards import LinePart
from tui.screens.overview.row_pictures import picture_of_a, way_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepper.debug.moments.spread import SpreadCell
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
    """A beside the runs of loops in which the debugger stands, or into which it looks: `now`, of this `state`."""

    def __init__(self, pane: Pane, state: State, now: Sequence[Place]) -> None:
        self._pane, self._state = pane, state
        self._cells = spread_cells(self._state)
        self._runs = {(one.card, one.run) for one in now}
        history = self._state.loop_history
        rows = () if history is None else history.rows
        theirs = histories_of_a(self._state)
        self._theirs = {
            (one.row.kind, one.row.inner.id, one.row.port): theirs[k] for k, one in enumerate(rows) if k in theirs
        }

    def is_beside(self, at: Place) -> bool:
        """True if the run of a place is held against A."""
        return (at.card, at.run) in self._runs

    def strip(self, shown: Shown, line: Line, at: Place, width: int) -> Row:
        """Return where a row differs from A on the axis of the run held against it; empty where that is not known."""
        run = self._run(shown, at)
        if self._cells is None or run is None or not self._has_strip(shown, line):
            return []
        axis = shown.axes[shown.runs.index(run)]
        return site_strip(self._pane, self._cells, shown.card.facts.rows[line.row], axis, width)

    def picture(
        self, shown: Shown, line: Line, at: Place, height: int, wishes: Wishes, palette: Palette
    ) -> list[list[Strip]]:
        """Return the values of a row in A, in the colours and on the axis of those of now; empty where it has none."""
        run = self._run(shown, at)
        theirs = self._whole(shown, line)
        return [] if theirs is None or run is None else picture_of_a(shown, line, theirs, run, height, wishes, palette)

    def lines_more(self, shown: Sequence[Shown], at: Place, extent: AExtent) -> int:
        """Return how many lines A takes below the rows of cards."""
        more = 0
        for one in shown:
            if one.is_listed or self._run(one, at) is None:
                continue
            for place, height in zip(one.lines, one.heights, strict=True):
                line = one.card.lines[place]
                if extent is AExtent.SELECTED and (one.place, place) != (at.card, at.line):
                    continue
                more += self._has_strip(one, line)
                if extent is AExtent.PICTURES and self._whole(one, line) is not None:
                    more += height
        return more

    def _run(self, shown: Shown, at: Place) -> int | None:
        """Return the run of a card that is held against A: the cursor's, else the first one shown."""
        runs = (at.run,) if shown.place == at.card else shown.runs
        return next((run for run in runs if run in shown.runs and (shown.place, run) in self._runs), None)

    def _has_strip(self, shown: Shown, line: Line) -> bool:
        if self._cells is None or line.part is not LinePart.VALUE or shown.card.program is not self._cells.program:
            return False
        site = shown.card.facts.rows[line.row].producer
        return site is not None and site.id in self._cells.program.indices

    def _whole(self, shown: Shown, line: Line) -> ValueHistory | None:
        """Return the values of a row in A over all iterations, where they are drawn."""
        if not self._theirs or line.form is Form.WORDS or not self._has_strip(shown, line):
            return None
        row = shown.card.facts.rows[line.row]
        return self._theirs.get((row.kind, row.inner.id, row.port))

    def value(self, card: Card, line: Line, at: Place, wishes: Wishes) -> Array | None:
        """Return the numbers of A that stand beside those of a place; None where it has none."""
        if not self.is_beside(at) or line.part is not LinePart.VALUE:
            return None
        row, a = card.facts.rows[line.row], self._state.a
        history, iteration = self._theirs.get((row.kind, row.inner.id, row.port)), at.iteration
        if is_beside_run(self._state) and history is None and self._is_same(card, line, at):
            history = card.history(line, at.run)  # it is not kept, and is the same
        if not is_beside_run(self._state):
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

    def absent(self, card: Card, line: Line) -> str:
        """Return why A has no numbers beside those of a row: it has none, or they are not kept, as of births."""
        row = card.facts.rows[line.row]
        is_kept = not is_beside_run(self._state) or (row.kind, row.inner.id, row.port) in self._theirs
        return "no value" if is_kept or line.part is not LinePart.VALUE else "its numbers are not kept"

    def _is_same(self, card: Card, line: Line, at: Place) -> bool:
        cell = self._cell(card, line, at)
        return cell is not None and cell.change is Change.SAME

    def told(self, card: Card, line: Line, at: Place, values: Array | None, theirs: Array | None) -> str:
        """Return how the value of a place differs from A; empty where that is not known."""
        history, cell = card.history(line, at.run), self._cell(card, line, at)
        if cell is not None and cell.change is Change.SAME:
            return "same bits"
        if history is not None and history.is_whole and values is not None and theirs is not None:
            found = difference(theirs, values)
            if found.change is Change.NUMBER:
                size = number(found.largest)
                return (
                    f"differs by {size}" if found.size == 1 else f"{found.different} of {found.size} differ, by {size}"
                )
            if found.change is not Change.SAME or cell is None or cell.change is None:
                return difference_text(found)
        if cell is None or cell.change is None:
            return ""
        words = {
            Change.SHAPE: "another shape",
            Change.MENDED: "not finite in A, finite now",
            Change.BROKEN: "finite in A, not finite now",
            Change.ADDED: "only now",
        }
        return words.get(cell.change, f"differs, at most by {number(cell.relative)} of an element")

    @staticmethod
    def worst(values: Array, theirs: Array) -> int:
        """Return which number differs most from that of A: one that was mended or broken, else the largest."""
        at = difference(theirs, values).at
        return at[0] if at else 0

    def _cell(self, card: Card, line: Line, at: Place) -> SpreadCell | None:
        site, cells = card.facts.rows[line.row].producer, self._cells
        if cells is None or site is None or not self.is_beside(at) or line.part is not LinePart.VALUE:
            return None
        row = at.iteration // cells.step
        index = cells.program.indices.get(site.id)
        return None if index is None or row >= len(cells.changes) else cells.at(row, index)
