"""A run of a loop that is looked at from elsewhere: the heading of a pane that shows it, and the way into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stepper.debug.iterations.loop_runs import address_in_run
from stepper.query.address_resolution import Atlas, layer_address
from tui.paint.names import layer_name
from tui.paint.rows import Row, clip
from tui.state import State

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel

_RUNS: Final = 9
"""Runs beside one another that are named."""


def line_to_iteration(state: State, compiled: CompiledModel, iteration: int) -> str:
    """Return the line that goes to an iteration of the run of a loop that is shown."""
    far, body = state.far, state.loop_program
    if far is None or body is None or not state.is_far:
        return f"iter {iteration}"
    around = Atlas(compiled).ancestor(body, len(body.path) - 1)
    return f"goto {address_in_run(layer_address(body.path[-1], around, compiled), body, far.outer, iteration)}"


def far_title(state: State, room: int) -> Row:
    """Return which run is looked at, with its neighbours if it is one of several; empty where it is the moment's."""
    far = state.far
    if far is None or not state.is_far:
        return []
    layers = state.frames[far.depth].program.path
    if not layers:
        return [("   ", ""), ("the model's graph", "strong"), (", the whole run", "note")]
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
    row.append((f"… {far.around}" if last < far.around else "", "dim"))
    around = [
        f"{layer_name(layer)} {one}" for layer, one in zip(layers[:-2], far.outer, strict=False) if one is not None
    ]
    return [*row, (f"of {', '.join(reversed(around))}" if around else "", "note")]
