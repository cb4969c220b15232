"""Where an edit spread: operations down, iterations across, and what became of the model's outputs in a sentence."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from textual import events

from stepper.debug.inspection.views import FrameView
from stepper.debug.moments.spread import SpreadCell, SpreadCells, SpreadView
from stepper.debug.moments.texts import output_notes, set_text, spread_sentence
from stepper.tensors.difference import Change
from stepper.wording import counted
from tui.paint.folding import Listing, OperationEntry
from tui.paint.names import marked_name
from tui.paint.pane import Host, Pane
from tui.paint.rows import (
    Cell,
    Row,
    clip,
    clip_end,
    clip_head,
    padded,
    printable,
    short_count,
    spread,
    width_of,
    wrapped,
)
from tui.screens.moments.marks import spread_tile
from tui.state import State
from tui.theme import GLYPHS

_WIDTHS: Final = (4, 3, 2, 1)
_NAME: Final = 18
_LEAST_NOTE: Final = 16
_ROOMY: Final = 20
_MOST_LINES: Final = 3
"""Rows of the pane from which on what became of the outputs has so many lines; else two."""


_LEGEND: Final = (
    ("edited", SpreadCell(Change.NUMBER, 0.0, is_edited=True)),
    ("only now", SpreadCell(Change.ADDED, 0.0, is_edited=False)),
    ("differs", SpreadCell(Change.NUMBER, 0.03, is_edited=False)),
    ("mended", SpreadCell(Change.MENDED, 0.0, is_edited=False)),
    ("same", SpreadCell(Change.SAME, 0.0, is_edited=False)),
    ("broken", SpreadCell(Change.BROKEN, 0.0, is_edited=False)),
)
"""Words of the legend; those at the end are left out first."""


class SpreadGrid(Pane):
    """A row an operation, a column an iteration: edited, differs by so much, mended, broken, the same bits."""

    DEFAULT_CSS = "SpreadGrid { height: 1fr; }"
    kind: ClassVar[str] = "moments"
    looks_inside: ClassVar[bool] = True
    title = "spread"
    help_text: ClassVar[str] = (
        "Where the edit spread, beside the branch that A is: operations down, iterations across.\n"
        "The shade is the logarithm of the largest relative difference; * the edit, ✓ not finite in A and finite now,\n"
        "✗ the reverse, ~ another shape, + an iteration that A does not run, · the same bits.\n"
        "x goes to where the next operation begins to differ, X back; V shows those alone that differ,\n"
        "v shows the graph in its place; a click selects, Enter or a double click goes there."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._differing_alone = False
        self._is_placed = False
        """True once the first operation that differs was put at the top, far from every moment."""

    # --- what is shown -------------------------------------------------------------------------------------------

    @property
    def found(self) -> SpreadView | None:
        """The two branches; None where A is no other branch."""
        return None if self.state.a is None else self.state.a.spread

    @property
    def _frame(self) -> FrameView | None:
        """The loop's frame around what is looked at; outside of loops that which is looked at."""
        state = self.state
        return state.frames[state.loop_depth] if state.loop_depth is not None else state.frame

    def _cells(self) -> SpreadCells | None:
        found, frame = self.found, self._frame
        cells = None if found is None else found.cells
        return cells if cells is not None and frame is not None and cells.program is frame.program else None

    def _listing(self) -> Listing | None:
        frame = self._frame
        return None if frame is None else self.host.folding.listing(frame.program)

    def _entries(self) -> tuple[OperationEntry, ...]:
        listing, cells = self._listing(), self._cells()
        if listing is None or cells is None:
            return ()
        if not self._differing_alone:
            return listing.entries
        touched = cells.touched
        return tuple(entry for entry in listing.entries if touched[list(entry.indices)].any())

    def look_on(self, _direction: int) -> None:
        """All operations, or those alone that differ in any iteration."""
        self._differing_alone = not self._differing_alone
        self.update(self.state)

    def update(self, state: State) -> None:
        """The selected operation stays in sight."""
        self.state = state
        entries, cursor = self._entries(), state.cursor
        room = self.size.height - len(self.heading(self.size.width))
        rows = [row for row, entry in enumerate(entries) if cursor in entry.indices]
        cells = self._cells()
        if state.is_far and cells is not None:  # no operation is that of the moment: from the first that differs on
            touched = cells.touched
            rows = [row for row, entry in enumerate(entries) if touched[list(entry.indices)].any()][:1]
        self._is_placed = self._is_placed and state.is_far
        is_to_place = state.is_far and not self._is_placed
        if rows and room > 0 and (is_to_place or not self.top <= rows[0] < self.top + room):
            self.top = rows[0] - (0 if state.is_far else room * 2 // 3)
            self._is_placed = state.is_far
        self.top = max(0, min(self.top, len(entries) - room))
        self.changed()

    def on_resize(self, _event: events.Resize) -> None:
        """The selected operation stays in sight."""
        self.update(self.state)

    # --- columns -------------------------------------------------------------------------------------------------

    def _columns(self, width: int) -> tuple[int, int, int, int]:
        """Return the cells of a column, rows of cells that one stands for, the first row, and how many columns."""
        cells = self._cells()
        room = max(width - self._name_width(width) - 2, 1)
        rows = 0 if cells is None else len(cells.changes)
        for cell in _WIDTHS:
            if rows * cell <= room:
                return cell, 1, 0, rows
        if rows <= 4 * room and cells is not None:  # a window that follows the moment tells more than bins of a few
            now = (self.state.iteration or 0) // cells.step
            return 1, 1, max(0, min(now - room * 2 // 3, rows - room)), min(room, rows)
        many = math.ceil(rows / room)
        return 1, many, 0, math.ceil(rows / many)

    @staticmethod
    def _name_width(width: int) -> int:
        return _NAME if width < 90 else 22

    # --- the rows ------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return what became of the outputs, what was set, what the signs mean, and the iterations."""
        found = self.found
        mark: Cell = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        if found is None:
            return [[mark, ("where the edit spread", "title")]]
        sentence = spread_sentence(found)
        more = "" if sentence else f"compared {counted(found.compared, 'iteration')}"
        tone = "title-on" if self.has_focus else "title"
        lines = [line.strip() for line in wrapped(printable(sentence or f"{more} so far"), max(width - 2, 20))]
        most = _MOST_LINES if self.size.height >= _ROOMY else 2
        rest = " ".join(lines[most - 1 :])
        lines = [*lines[: most - 1], *([clip_end(rest, width - 2)] if rest else [])]
        rows: list[Row] = [[mark, (lines[0], tone)]]
        rows += [[(" ", ""), (line, tone)] for line in lines[1:]]
        notes = "; ".join(filter(None, map(output_notes, found.outputs[:1])))
        rows.append([(" ", ""), (clip_head(printable(set_text(found)), width - 2), "edit")])
        if notes:
            room = width - 4 - len(rows[-1][-1][0])
            rows[-1].append((f"   {clip_end(notes, room)}" if room >= _LEAST_NOTE else "", "strong"))
        cells = self._cells()
        if cells is None:
            return [*rows, []]
        title = " where the runs differ" if found.is_reference else " where the edit spread"
        title = title if width >= 60 else " the runs" if found.is_reference else " the edit"
        return [*rows, [], spread([(title, "title")], self._legend(width - len(title) - 1), width), self._axis(width)]

    def _legend(self, room: int) -> Row:
        """Return what the signs mean, as many of them as there is room for."""
        row: Row = []
        cells = self._cells()
        has_added = cells is not None and cells.has(Change.ADDED)
        for word, one in _LEGEND:
            if one.change is Change.ADDED and not has_added:
                continue
            part: Row = [spread_tile(self, one, 3), (f" {word}  ", "dim")]
            if width_of(row) + width_of(part) <= room:
                row += part
        return row

    def _axis(self, width: int) -> Row:
        cells = self._cells()
        assert cells is not None
        cell, many, first, count = self._columns(width)
        now = -1 if self.state.iteration is None else (self.state.iteration // cells.step - first) // many
        marks = [" "] * (count * cell)
        wide = max(cell, len(str(self.state.iteration)))
        here = min(now * cell, max(count * cell - wide, 0))
        free = 0
        for column in range(count):
            label = short_count((first + column * many) * cells.step)
            at = column * cell + max((cell - len(label)) // 2, 0)
            end = at + len(label)
            is_clear = now < 0 or end < here or at > here + wide
            if free <= at and end <= len(marks) and is_clear:
                marks[at:end] = label
                free = end + 1
        line = "".join(marks)
        name = " " * (self._name_width(width) + 2)
        if not 0 <= now < count:
            return [(name, ""), (line, "dim")]
        moment = f"{self.state.iteration:^{wide}}"
        return [(name, ""), (line[:here], "dim"), (moment, "now"), (line[here + wide :], "dim")]

    def count(self, width: int) -> int:
        """Return a row an operation, or a sentence."""
        return len(self._entries()) or 1

    def row(self, index: int, width: int) -> Row:
        """Return one operation, or a folded group of them."""
        entries, cells, frame = self._entries(), self._cells(), self._frame
        if not entries or cells is None or frame is None:
            return [("  ", ""), (self._why_nothing(), "dim")]
        entry = entries[index]
        name_width = self._name_width(width)
        if entry.is_folded:
            name = clip(f"{GLYPHS['fold']} {entry.title} ×{len(entry.indices)}", name_width - 1)
        else:
            name = marked_name(frame.program, entry.indices[0], name_width - 1)
        is_cursor, is_now = self.state.cursor in entry.indices, frame.moment in entry.indices
        if self.state.is_far:
            is_cursor = is_now = False
        [all_rows] = cells.worst_in([(0, len(cells.changes))], entry.indices)
        touched = all_rows.change not in (None, Change.SAME)
        tone = ("strong" if is_cursor else "" if touched else "dim") + (" cursor" if is_cursor else "")
        gutter: Cell = (f"{GLYPHS['now'] if is_now else ' '} ", "accent")
        row: Row = [gutter, (padded(name, name_width), tone.strip())]
        cell, many, first, count = self._columns(width)
        begins = range(first, first + count * many, many)
        tiles = cells.worst_in([(begin, begin + many) for begin in begins], entry.indices)
        row += [spread_tile(self, one, cell) for one in tiles]
        return row

    def _why_nothing(self) -> str:
        found = self.found
        if found is None:
            return ""
        if found.parted is None:
            return "nothing differs"
        if not self.state.frames:
            return "the run has ended; N goes back"
        if found.cells is None:
            return "no operation differs in this run of the loop" if found.is_complete else "it is being compared"
        if self._differing_alone:
            return "no operation differs"
        return "what differs is in another body" if found.is_complete else "it is being compared"

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click selects an operation, a second one goes to the cell."""
        row, cells = self.row_at(event.y), self._cells()
        entries = self._entries()
        if row is None or cells is None or row >= len(entries):
            return
        index = entries[row].indices[0]
        width = self.size.width
        cell, many, first, count = self._columns(width)
        column = (event.x - self._name_width(width) - 3) // cell
        if event.chain == 2 and 0 <= column < count and self._frame is not None:
            iteration = (first + column * many) * cells.step
            self.post_line(f"goto {self._frame.moment_address(index, self.host.driver.compiled)}@{iteration}")
        elif not self.state.is_far:
            self.post_line(f"select {index}")

    def seek_difference(self, *, backward: bool) -> str:
        """Return the line that goes to where the next operation begins to differ; empty if there is none."""
        cells, frame = self._cells(), self._frame
        if cells is None or frame is None:
            return ""
        found = cells.next_different(self.state.iteration or 0, frame.moment, backward=backward)
        if found is None:
            return ""
        return f"goto {frame.moment_address(found[1], self.host.driver.compiled)}@{found[0]}"
