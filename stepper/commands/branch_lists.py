"""The branches of a run as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepper.commands.session import Answer, Session
from stepper.debug.branches.branches import Branch


def branches(session: Session) -> Answer:
    """The branches, each below the one that it left, with where it stands and what was changed in it."""
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
