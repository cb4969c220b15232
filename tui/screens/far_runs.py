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


def carried_in_far_run(state: State, compiled: CompiledModel) -> str:
    """Return what the run of a loop carries that is looked at from elsewhere, as `table` takes it; empty for none."""
    from stepper.debug.table.columns import carried_in  # the first picture has no use for it

    far = state.far
    body = None if far is None or not state.is_far else far.frames[far.depth].program
    return "" if far is None or body is None or not body.path else carried_in(body, far.outer, compiled)


def is_left_at_once(state: State, compiled: CompiledModel) -> bool:
    """True if there is no run to be seen when the one that was chosen is left: the screen is then closed."""
    return state.loop is None and loop_around(state, compiled) is None
