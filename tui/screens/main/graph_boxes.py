"""What each box of the graph looks like at a moment, and how cells are joined into a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from stepper.debug.inspection.frame_views import FrameView
from stepper.debug.iterations.statistics import HistoryView
from stepper.export.figures.figure import NodeKind
from tui.paint.drawing import Drawing
from tui.paint.rows import Row, cell_len
from tui.state import State

PORTS: Final = (NodeKind.PARAMETER, NodeKind.RESULT)
_LOOKS: Final = ("badbox", "now", "bad", "on", "port", "done", "box")
"""Tokens of a box, the most important first."""

Cells = list[str]
Tones = list[str]


class BoxLooks:
    """The token of each box at one moment, found when it is painted; `cursor` is the selected box."""

    def __init__(
        self, state: State, drawing: Drawing, cursor: int | None, index_of: Callable[[int], int | None]
    ) -> None:
        self._frame, self._history = state.frame, state.history
        self._drawing, self._cursor, self._index_of = drawing, cursor, index_of
        self._known: dict[int, str] = {}
        self._now: int | None = None
        frame = state.frame
        if frame is not None and 0 <= frame.moment < len(frame.layers):
            self._now = drawing.graph.box_of.get(frame.layers[frame.moment].id)

    def __getitem__(self, key: int) -> str:
        """The token of a box."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(key)
        return found

    def _look(self, key: int) -> str:
        frame, node = self._frame, self._drawing.graph.node(key)
        if frame is None:  # the run has ended
            return "port" if node.kind in PORTS else "done"
        indices = [index for index in map(self._index_of, node.layers) if index is not None]
        # What has no operation of its own never runs: a Constant is there, dead code is not.
        is_done = all(map(frame.is_done, indices)) if indices else node.kind is NodeKind.CONSTANT
        is_bad = self._history is not None and any(_is_bad(frame, self._history, index) for index in indices)
        is_now = key == self._now
        holds = (is_bad and is_now, is_now, is_bad, key == self._cursor, node.kind in PORTS, is_done, True)
        return _LOOKS[holds.index(True)]


def _is_bad(frame: FrameView, history: HistoryView, index: int) -> bool:
    """Whether the operation gave NaN or Inf in this iteration."""
    row = (frame.iteration or 0) - history.first
    if not (0 <= row < len(history.known) and frame.is_done(index) and history.known[row, index]):
        return False
    return not math.isfinite(history.numbers[row, index])


def centred(text: str, room: int) -> str:
    """In the middle of so many cells."""
    blanks = max(room - cell_len(text), 0)
    return " " * (blanks // 2) + text + " " * (blanks - blanks // 2)


def joined(cells: Cells, tones: Tones) -> Row:
    """Neighbours of one tone as one piece."""
    row: Row = []
    start = 0
    for place in range(1, len(cells) + 1):
        if place == len(cells) or tones[place] != tones[start]:
            row.append(("".join(cells[start:place]), tones[start]))
            start = place
    return row
