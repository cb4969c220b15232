"""Lists about a run: what `info` shows of the loop and of the session, and the branches as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from stepper.commands.breakpoints import breaks, watches
from stepper.commands.session import Answer, Session
from stepper.debug.branches.branches import Branch
from stepper.debug.inspection.text import edge_lines, port_lines, scan_lines, trip_lines
from stepper.debug.inspection.view_data import ViewData, scan_data, trip_data
from stepper.debug.inspection.views import LoopView
from stepper.debug.iterations.far_runs import loop_seen_from
from stepper.errors import UsageError
from stepper.query.address_resolution import layer_address
from stepper.query.atlas import Atlas


def _loop(session: Session) -> LoopView:
    debugger = session.debugger
    try:
        return debugger.loop(session.depth if session.level else None)
    except UsageError as error:
        machine = debugger.machine
        near = loop_seen_from(machine, None, session.depth)
        if near is None:
            raise
        around = Atlas(machine.compiled).ancestor(near.body, len(near.body.path) - 1)
        name = layer_address(near.body.path[-1], around, machine.compiled)
        raise UsageError(f"{error}; goto {name} goes into one") from None


def _ports(session: Session) -> Answer:
    loop = _loop(session)
    return Answer(tuple(port_lines(loop)), {"ports": ViewData(session.debugger.model).ports(loop)})


def _edges(session: Session) -> Answer:
    edges = _loop(session).back_edges
    lines = [line for edge in edges for line in edge_lines(edge)]
    data = ViewData(session.debugger.model)
    return Answer(tuple(lines or ["no back edges"]), {"back_edges": [data.back_edge(edge) for edge in edges]})


def _scans(session: Session) -> Answer:
    scans = _loop(session).scans
    lines = [line for scan in scans for line in scan_lines(scan)]
    return Answer(tuple(lines or ["no scan outputs"]), {"scans": [scan_data(scan) for scan in scans]})


def _trip(session: Session) -> Answer:
    loop = _loop(session)
    return Answer(tuple(trip_lines(loop)), trip_data(loop))


def _memory(session: Session) -> Answer:
    timeline = session.debugger.timeline
    history = timeline.history
    lines = [f"{len(history)} snapshots, {history.bytes:,} of {history.budget:,} bytes, {history.distance} ticks apart"]
    lines += timeline.warnings
    return Answer(tuple(lines), {"snapshots": len(history), "bytes": history.bytes, "budget": history.budget})


def _marks(session: Session) -> Answer:
    lines = [f"{name}  tick {mark.tick}, branch {mark.branch}" for name, mark in session.marks.items()]
    data = {name: {"tick": mark.tick, "branch": mark.branch} for name, mark in session.marks.items()}
    return Answer(tuple(lines or ["no marks"]), {"marks": data})


def branches(session: Session) -> Answer:
    """Return the branches, each below the one that it left, with where it stands and what was changed in it."""
    found = list(session.debugger.branches)
    lines = [line for branch, depth in _tree(found, "", 0) for line in _branch_lines(branch, depth)]
    data = [
        {
            "name": branch.name,
            "tick": branch.tick,
            "place": branch.place,
            "edited_at": list(branch.edited_at),
            "present": branch.present,
            "parent": branch.parent or None,
            "parted": branch.parted if branch.parent else None,
            "edits": [{"tick": tick, "text": text} for tick, text in branch.edits],
        }
        for branch in found
    ]
    return Answer(tuple(lines), {"branches": data})


def _tree(found: Sequence[Branch], parent: str, depth: int) -> Iterator[tuple[Branch, int]]:
    for branch in found:
        if branch.parent == parent:
            yield branch, depth
            yield from _tree(found, branch.name, depth + 1)


def _branch_lines(branch: Branch, depth: int) -> list[str]:
    indent = "  " * depth
    left = f", left {branch.parent} at tick {branch.parted}" if branch.parent else ""
    lines = [f"{'*' if branch.present else ' '} {indent}{branch.name}  tick {branch.tick}, {branch.place}{left}"]
    return lines + [f"  {indent}  tick {tick}: {text}" for tick, text in branch.edits]


LISTS: Final[Mapping[str, Callable[[Session], Answer]]] = {
    "breaks": breaks,
    "watches": watches,
    "ports": _ports,
    "edges": _edges,
    "scans": _scans,
    "trip": _trip,
    "memory": _memory,
    "marks": _marks,
    "branches": branches,
    "display": watches,
}
