"""The columns of the grid: those before the iterations, and how wide and how numbered the iterations are."""

from __future__ import annotations

import math
from typing import Final

from stepper.compare.stops import LargestDifference
from stepper.debug.inspection.views import FrameView
from stepper.debug.moments.texts import truth_text
from stepper.records import Record
from stepper.tensors.difference import Change, Difference
from stepper.tensors.number_text import fitted
from tui.paint.columns import TableColumn
from tui.paint.folding import OperationEntry
from tui.paint.names import marked_name
from tui.paint.rows import Row, clip, padded, short_count
from tui.state import State
from tui.theme import GLYPHS, Look, break_glyph


class GridRow(Record, eq=False):
    """A row of the grid: an operation or a folded group of the frame; `chosen` is the operation shown in detail."""

    state: State
    look: Look
    frame: FrameView
    entry: OperationEntry
    chosen: int | None

    @property
    def now(self) -> int | None:
        """The operation of the moment; None where the run does not stand in the frame."""
        return self.state.now if self.state.is_far else self.frame.moment


def columns(state: State) -> tuple[TableColumn[GridRow], ...]:
    """Return the columns before the iterations: a new one is a line here, and a function that writes it."""
    found = [
        TableColumn("", 1, _now),
        TableColumn("", 1, _break),
        TableColumn("", _name_width, _name),
    ]
    if state.comparison is not None:
        found.append(TableColumn("difference", 12, _difference))
    elif state.a is not None:
        found.append(TableColumn("difference", 12, _difference_from_a))
    return tuple(found)


def _now(row: GridRow, _width: int) -> Row:
    is_now = row.now in row.entry.indices
    return [(GLYPHS["now"] if is_now else " ", "accent")]


def _break(row: GridRow, _width: int) -> Row:
    state, program = row.state, row.frame.program
    breaks = [one for index in row.entry.indices for one in state.breaks if one.is_at(program, index)]
    return [(break_glyph(breaks[0]) if breaks else " ", "bad")]


def _name_width(width: int) -> int:
    return 28 if width >= 186 else 19 if width > 96 else 15


def _name(row: GridRow, width: int) -> Row:
    frame, entry, room = row.frame, row.entry, width - 1
    here = row.now in entry.indices
    tone = "title-on" if here else "" if frame.is_done(entry.indices[-1]) and not entry.is_folded else "dim"
    under = " cursor" if row.chosen in entry.indices and not here else ""
    text = marked_name(frame.program, entry.indices[0], room)
    if entry.is_folded:
        count = f" ×{len(entry.indices)}"
        text = f"{GLYPHS['fold']} {clip(entry.title, room - len(count) - 2)}{count}"
    return [(padded(text, room), f"{tone}{under}".strip()), (" ", "")]


def _difference(row: GridRow, width: int) -> Row:
    """The row's largest difference in all iterations that are known, and its mark: a `!` is the first of the run."""
    state, frame, entry = row.state, row.frame, row.entry
    comparison = state.comparison
    found = None
    if comparison is not None and comparison.grid is not None and comparison.grid.program is frame.program:
        found = comparison.grid.worst_of(entry.indices)
    elif comparison is not None and frame is state.frame:
        ones = [comparison.operations[index] for index in entry.indices if index in comparison.operations]
        found = (
            LargestDifference(max(one.distance for one in ones), any(one.is_above for one in ones)) if ones else None
        )
    if found is None:
        return [(" " * width, "")]
    text = "same" if found.distance == 0 else fitted(found.distance, 7)
    first = state.first_difference
    is_first = first is not None and any(frame.layers[index] is first.layer for index in entry.indices)
    mark = (GLYPHS["diff"] if found.is_above else " ") + ("!" if is_first else " ")
    tone = "badbg" if is_first else "bad"
    return [(f" {text:>7} ", "" if found.is_above else "dim"), (mark, tone if mark.strip() else ""), (" ", "")]


def difference_at(state: State, frame: FrameView, index: int) -> Difference | None:
    """Return how far an operation of now is from A; None where one of the two has no value, or is not compared."""
    a = state.a
    if a is None or a.values is None or a.values.program is not frame.program or not frame.is_done(index):
        return None
    return a.difference(index)


def _difference_from_a(row: GridRow, width: int) -> Row:
    """The row's largest difference of now from an iteration or a branch, and its mark; or in which way it differs."""
    every = (difference_at(row.state, row.frame, index) for index in row.entry.indices)
    found = [one for one in every if one is not None]
    if not found:
        return [(" " * width, "")]
    worst = max(found, key=lambda one: (_WAYS.index(one.change), one.largest or 0.0))
    text = str(worst.change)
    if worst.change is Change.NUMBER:
        text = fitted(worst.largest, 7) if math.isfinite(worst.largest or 0.0) else "differs"
    elif worst.change is Change.TRUTH:
        text = truth_text(worst, row.look.arrow, 7)
    is_above = any(is_beyond(one) for one in found)
    mark = GLYPHS["diff"] if is_above else " "
    return [(f" {text:>7} ", "" if is_above else "dim"), (f"{mark} ", "bad" if is_above else ""), (" ", "")]


def is_beyond(found: Difference) -> bool:
    """True if a difference leaves the tolerance."""
    return found.change is not Change.SAME and not found.is_within


_WAYS: Final = tuple(Change)
_STEPS: Final = tuple(digit * 10**power for power in range(12) for digit in (1, 2, 5))


def axis(first: int, count: int, cell: int, now: int, width: int) -> Row:
    """Return numbers of the iterations from `first` on, a column of `cell` cells each, in at most `width` cells."""
    longest = len(short_count(first + count))
    every = next((step for step in _STEPS if step * cell > longest), _STEPS[-1])
    room = min(count * cell + longest, width)
    centred = every == 1 and cell > 2
    cells = [" "] * room
    text = str(now)
    at = (now - first) * cell + ((cell - 1 - len(text) + 1) // 2 if centred else 0)
    is_seen = first <= now < first + count and at + len(text) <= width
    for iteration in range(-(-first // every) * every, first + count, every):
        label = short_count(iteration)
        start = (iteration - first) * cell + ((cell - 1 - len(label) + 1) // 2 if centred else 0)
        touches = is_seen and start < at + len(text) + (not centred) and at < start + len(label) + (not centred)
        if not touches and start + len(label) <= room:
            cells[start : start + len(label)] = label
    line = "".join(cells)
    if not is_seen:
        return [(line, "dim")]
    tone = "title-on" if centred else "now"
    return [(line[:at], "dim"), (text, tone), (line[at + len(text) :], "dim")]


WIDTHS: Final = (1, 2, 4, 5, 7, 8, 9, 12)
"""Cells of the terminal for one of the grid; from 4 on the last is air."""
NUMBERED: Final = 8
"""From this width on a cell has its number."""
PICTURED: Final = 12
"""From this width on it has both, its number and the picture of its value; below that the picture alone."""
_NUMBER: Final = 6

_AMPLE: Final = 110
"""Cells for the iterations that are enough, with numbers or without."""


def picture_width(wide: int) -> int:
    """Return the cells for the picture of a value in one of the grid."""
    return wide - 1 - _NUMBER if wide >= PICTURED else wide - 1 if wide > 3 else wide


def usual(width: int, room: int, iterations: int | None) -> int:
    """Return which of the widths it is without zoom, in `room` cells of a pane that is `width` wide."""
    least = 3 if width >= 146 else 2 if width > 106 else 1
    fitting = [at for at, wide in enumerate(WIDTHS) if iterations is not None and iterations * wide <= room]
    return max([least, *fitting[-1:]])


def suffices(room: int, whole: int, iterations: int | None) -> bool:
    """True if all iterations fit into `room` cells, and with their numbers where they would have them in the whole."""
    if iterations is None or iterations * WIDTHS[3] > room:
        return False
    return room >= _AMPLE or iterations * NUMBERED <= room or iterations * NUMBERED > whole
