"""Actions that choose which run of a loop the grid, the timeline and the watches show, wherever the run stands."""

from __future__ import annotations

from typing import Final

from stepper.debug.iterations.far_runs import LoopOfRun
from stepper.engine.program import LoopPlan
from stepper.errors import UsageError
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import parse_address
from tui.actions.registry import action
from tui.application import Application
from tui.screens.far_runs import loop_around
from tui.screens.grid.grid import Grid
from tui.state import State
from tui.worker.requests import ShowRun

_OF_A_RUN: Final = ("grid", "timeline", "watches")
"""Screens that show one run of a loop."""


@action("loop-run", syntax="next|previous|in|out|ADDRESS", help="which run of a loop is shown: outer@3::inner")
def _loop_run(app: Application, text: str) -> None:
    word = text or "next"
    if word == "out":
        app.driver.adjust(ShowRun(loop_around(app.state, app.driver.compiled)))
    elif word in ("next", "previous"):
        app.driver.adjust(ShowRun(_beside(app.state, 1 if word == "next" else -1)))
    elif word == "in":
        app.driver.adjust(ShowRun(_below(app)))
    else:
        called = _called(app, word)
        if app.front.view_name not in _OF_A_RUN:
            app.open_view("grid")
        app.driver.adjust(ShowRun(called))


def _beside(state: State, by: int) -> LoopOfRun:
    """Return the run after the one that is shown, or the one before. UsageError where there is none."""
    shown = state.inside
    depth = shown.loop_depth
    if depth is None:
        raise UsageError("no run of a loop is shown here")
    body = shown.frames[depth].program
    outer = list(state.far.outer if state.far is not None else [frame.iteration for frame in state.frames[1:depth]])
    at = next((level for level in reversed(range(len(outer))) if outer[level] is not None), None)
    if at is None:
        raise UsageError("this loop runs once; < and > choose among the runs of a loop in another one")
    wanted = (outer[at] or 0) + by
    most = None if state.far is None else state.far.around
    if wanted < 0 or (most is not None and wanted >= most):
        raise UsageError(f"there is no run {'before' if by < 0 else 'after'} this one")
    outer[at] = wanted
    return LoopOfRun(body, tuple(outer))


def _below(app: Application) -> LoopOfRun:
    """Return the run of the loop of the grid's row, in the iteration of its cell. UsageError where that is no loop."""
    grid = app.focused_pane
    if not isinstance(grid, Grid) or grid.frame is None or grid.cell is None:
        raise UsageError("choose the row of a loop in the grid")
    plans = grid.frame.program.operations[grid.cell.operation].plans
    if not plans or not isinstance(plans[0], LoopPlan):
        raise UsageError("this row is no loop")
    state, depth = app.state, grid.frame.depth
    outer = state.far.outer if state.far is not None else tuple(one.iteration for one in state.frames[1:depth])
    around = () if depth == 0 else (*outer, grid.cell.iteration)
    return LoopOfRun(plans[0].program, around)


def _called(app: Application, text: str) -> LoopOfRun:
    """Return the run that an address of a loop means. UsageError."""
    compiled = app.driver.compiled
    target = resolve(parse_address(text), compiled)
    index = target.program.computed_at.get(target.slot)
    operation = None if index is None else target.program.operations[index]
    if operation is None or not operation.plans or not isinstance(operation.plans[0], LoopPlan):
        raise UsageError(f"'{text}' is no loop")
    outer = tuple(one if isinstance(one, int) else None for one in target.iterations)
    return LoopOfRun(operation.plans[0].program, outer)
