"""What stands before the cells of a row of the grid: the operation or the folded group, and its largest difference."""

from __future__ import annotations

from typing import Final

from stepper.compare.stops.grid import LargestDifference
from stepper.debug.inspection.frame_views import FrameView
from tui.paint.listing import Entry
from tui.paint.names import marked_name
from tui.paint.rows import Row, Token, clip, number, padded
from tui.state import State
from tui.theme import GLYPHS

DIFFERENCE_WIDTH: Final = 12
"""Cells of the column of differences, the blank behind it included."""


def label(state: State, frame: FrameView, entry: Entry, width: int, *, chosen: int | None) -> Row:
    """Gutter, breakpoint and name in so many cells; `chosen` is the operation that is shown in detail."""
    here = frame.moment in entry.indices
    tone = "title-on" if here else "" if frame.is_done(entry.indices[-1]) and not entry.is_folded else "dim"
    under = " cursor" if chosen in entry.indices and not here else ""
    gutter = (GLYPHS["now"] if here else " ", "accent")
    return [gutter, _break(state, frame, entry), (_name(frame, entry, width - 3), f"{tone}{under}".strip()), (" ", "")]


def _name(frame: FrameView, entry: Entry, room: int) -> str:
    if not entry.is_folded:
        return padded(marked_name(frame.program, entry.indices[0], room), room)
    count = f" ×{len(entry.indices)}"
    return padded(f"{GLYPHS['fold']} {clip(entry.title, room - len(count) - 2)}{count}", room)


def _break(state: State, frame: FrameView, entry: Entry) -> tuple[str, Token]:
    breaks = [one for index in entry.indices for one in state.breaks if one.is_at(frame.program, index)]
    if not breaks:
        return " ", "bad"
    glyph = "break-off" if not breaks[0].enabled else "break-if" if breaks[0].conditional else "break"
    return GLYPHS[glyph], "bad"


def difference(state: State, frame: FrameView, entry: Entry) -> Row:
    """The row's largest difference in all iterations that are known, and its mark: a `!` is the first of the run.

    From the iteration before: that of this iteration.
    """
    comparison = state.comparison
    if comparison is None:
        return []
    found = None
    if comparison.grid is not None and comparison.grid.program is frame.program:
        found = comparison.grid.worst_of(entry.indices)
    elif frame is state.frame:
        ones = [comparison.operations[index] for index in entry.indices if index in comparison.operations]
        found = (
            LargestDifference(max(one.distance for one in ones), any(one.is_above for one in ones)) if ones else None
        )
    if found is None:
        return [(" " * DIFFERENCE_WIDTH, "")]
    text = "same" if found.distance == 0 else number(found.distance, 7)
    first = state.first_difference
    is_first = first is not None and any(frame.layers[index] is first.layer for index in entry.indices)
    mark = (GLYPHS["diff"] if found.is_above else " ") + ("!" if is_first else " ")
    tone = "badbg" if is_first else "bad"
    return [(f" {text:>7} ", "" if found.is_above else "dim"), (mark, tone if mark.strip() else ""), (" ", "")]
