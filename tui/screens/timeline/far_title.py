"""The heading of a pane with iterations that looks at a run of a loop from elsewhere: which run, of how many."""

from __future__ import annotations

from typing import Final

from tui.paint.names import layer_name
from tui.paint.rows import Row, clip
from tui.state import State

_RUNS: Final = 9
"""Runs beside one another that are named."""


def far_title(state: State, room: int) -> Row:
    """Return which run is looked at, with its neighbours if it is one of several; empty where it is the moment's."""
    far = state.far
    if far is None or not state.is_far:
        return []
    layers = state.frames[far.depth].program.path
    row: Row = [("   ", ""), (clip(layer_name(layers[-1]), max(room // 3, 8)), "strong")]
    at = far.outer[-1] if far.outer else None
    if at is None or far.around is None:
        return [*row, (", the whole run", "note")]
    row.append((f" in {clip(layer_name(layers[-2]), max(room // 4, 8))} ", "note"))
    first = max(0, min(at - _RUNS // 2, far.around - _RUNS))
    last = min(first + _RUNS, far.around)
    row.append(("… " if first else "", "dim"))
    for one in range(first, last):
        row += [(str(one), "strong cursor" if one == at else "dim"), (" ", "")]
    return [*row, (f"… {far.around}" if last < far.around else "", "dim")]
