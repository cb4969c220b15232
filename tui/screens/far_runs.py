"""Which run of a loop is shown when one that was chosen is left: that of the loop around it, or that of the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepper.debug.iterations.far_runs import LoopOfRun
from stepper.query.atlas import Atlas

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel
    from tui.state import State


def loop_around(state: State, compiled: CompiledModel) -> LoopOfRun | None:
    """Return the run of the loop around the one that was chosen; None where that of the moment comes next."""
    far = state.far
    if far is None or not far.is_chosen:
        return None
    body = far.frames[far.depth].program
    depth = next((depth for depth in reversed(range(1, len(body.path))) if body.path[depth - 1].is_loop), None)
    if depth is None or state.loop_program is body:
        return None
    around, outer = Atlas(compiled).ancestor(body, depth), far.outer[: depth - 1]
    return None if state.loop_program is around else LoopOfRun(around, outer)


def is_left_at_once(state: State, compiled: CompiledModel) -> bool:
    """True if there is no run to be seen when the one that was chosen is left: the screen is then closed."""
    return state.loop is None and loop_around(state, compiled) is None
