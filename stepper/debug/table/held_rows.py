"""Rows of a table that stay in sight: now, and the moment A, maybe in another run of the loop or another branch."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from stepper.debug.branches.branches import Branches
from stepper.debug.iterations.loop_runs import Outer
from stepper.debug.moments.moment import Moment, MomentKind
from stepper.debug.stop import iteration_of
from stepper.debug.table.sheet import Sheet
from stepper.debug.table.views import SheetRequest, SheetView
from stepper.debug.timeline import Timeline


class HeldRow(Struct, frozen=True):
    """The row of A: the iteration, its numbers by column (None: none), and why there are none.

    `is_elsewhere`: it is in another branch, or in another run of the loop, so it is no row of the table.
    """

    kind: MomentKind
    iteration: int | None = None
    numbers: dict[int, Any] = {}
    problem: str = ""
    is_elsewhere: bool = False


class SheetLook(Struct, frozen=True, eq=False):
    """A view of a table, with the iteration in which the run stands (None: in no run of it), and A."""

    view: SheetView
    now: int | None
    a: HeldRow | None


class HoldingDebugger(Protocol):
    """A debugger, as far as its held rows are concerned."""

    branches: Branches

    @property
    def timeline(self) -> Timeline:
        """Return the course of the run that goes on."""

    @property
    def pinned(self) -> Moment | None:
        """Return the moment A."""


def look_at(debugger: HoldingDebugger, sheet: Sheet, request: SheetRequest, row: int | None = None) -> SheetLook:
    """Return a part of a table with the rows that are held; `row` is the iteration of the cursor."""
    now = iteration_now(sheet)
    at = now if now is not None else row
    a = None if debugger.pinned is None else _row_of(debugger, debugger.pinned, sheet, request.columns, at)
    mine = [] if a is None or a.iteration is None or a.is_elsewhere else [a.iteration]
    pinned = (*request.pinned, *([] if now is None else [now]), *mine)
    asked = SheetRequest(
        request.top, request.rows, request.columns, request.sort, request.filter, pinned, request.detail
    )
    view = sheet.view(asked)
    if a is not None and mine:
        a = HeldRow(a.kind, a.iteration, view.pinned[mine[0]])
    return SheetLook(view, now, a)


def iteration_now(sheet: Sheet) -> int | None:
    """Return the iteration in which the run stands; None where that is in no run of the table."""
    topic, stack = sheet.topic, sheet.timeline.machine.stack
    depth = len(topic.body.path)
    if depth >= len(stack) or stack[depth].program is not topic.body or _outer(stack[1:depth]) != sheet.outer:
        return None
    return iteration_of(stack[depth])


def _outer(frames: Any) -> Outer:
    return tuple(iteration_of(frame) for frame in frames)


def _row_of(
    debugger: HoldingDebugger, moment: Moment, sheet: Sheet, columns: tuple[int, ...], at: int | None
) -> HeldRow:
    kind, path = moment.kind, sheet.topic.body.path
    if kind is MomentKind.REFERENCE:
        return HeldRow(kind, problem="the rows of a reference are seen in the compare view (D)")
    outer, iteration = sheet.outer, at
    if kind is MomentKind.BEFORE:
        iteration = None if at is None or at < 1 else at - 1
    elif kind is MomentKind.ITERATION:
        place = moment.place[: len(path)]
        if [step.layer for step in place] != [layer.id for layer in path]:
            return HeldRow(kind, problem="A is in a loop that does not run here")
        outer, iteration = tuple(step.iteration for step in place[:-1]), place[-1].iteration
    if iteration is None:
        return HeldRow(kind, problem="there is no such iteration")
    branch = moment.branch or debugger.branches.name
    if branch == debugger.branches.name and outer == sheet.outer:
        return HeldRow(kind, iteration)
    if branch not in debugger.branches:
        return HeldRow(kind, problem=f"there is no branch '{branch}' any more")
    timeline = debugger.timeline if branch == debugger.branches.name else debugger.branches.timeline(branch)
    numbers = sheet.row_elsewhere(timeline, outer, iteration, columns)
    return HeldRow(kind, iteration, numbers, is_elsewhere=True)
