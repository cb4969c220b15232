"""What-if: a value of the present is replaced by another, in a branch of the run that is marked as edited.

The original is never edited. A branch keeps its past, its edits, and where it stands; the histories of all branches
share the memory budget of the run evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.debug.branches.edits import ConditionEdit, ConstantEdit, Edit, TripCountEdit, ValueEdit, same_edit
from stepper.debug.branches.names import ORIGINAL
from stepper.debug.scopes import target_in
from stepper.debug.timeline import Timeline
from stepper.engine.frames import place
from stepper.errors import UsageError
from stepper.ops.operands import form_text

if TYPE_CHECKING:
    from stepper.debug.branches.differences import BranchDifference

WORDS: Final = ("rename", "delete", "diff")
"""Names that no branch can have: the commands about branches."""


class Branch(Struct, frozen=True):
    """A course of the run: where it stands, and the ticks at which values were changed in it.

    `parent` is the branch that it left at the tick `parted`, empty for the original. `edits` are its own in words, with
    their ticks; those that it shares with its parent are left out.
    """

    name: str
    tick: int
    place: str
    edited_at: tuple[int, ...]
    present: bool
    parent: str = ""
    parted: int = 0
    edits: tuple[tuple[int, str], ...] = ()


class Parent(NamedTuple):
    """The branch that another left, and the tick at which."""

    name: str
    tick: int


class Branches:
    """The branches of one run by name. One is the run itself, the others stand still until they are asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self.name = ORIGINAL
        self._timeline = timeline
        self._budget = timeline.history.budget
        self._others: dict[str, Timeline] = {}
        self._parents: dict[str, Parent] = {}
        self._kept: tuple[Edit, ...] = ()

    def __iter__(self) -> Iterator[Branch]:
        return iter([self._described(name) for name in sorted([self.name, *self._others])])

    def __contains__(self, name: object) -> bool:
        return name == self.name or name in self._others

    @property
    def is_edited(self) -> bool:
        """True if a value was changed on the way to the present."""
        return any(tick <= self._timeline.machine.tick for tick in self._timeline.edits)

    @property
    def has_edits(self) -> bool:
        """True if any branch has edits."""
        return any(self.edits(branch.name) for branch in self)

    @property
    def has_unkept_edits(self) -> bool:
        """True if an edit of any branch is in no session that was saved or put back."""
        return any(all(edit is not kept for kept in self._kept) for edit in self._all_edits())

    def keep_edits(self) -> None:
        """Take it that all edits are in a session now."""
        self._kept = self._all_edits()

    def _all_edits(self) -> tuple[Edit, ...]:
        return tuple(edit for branch in self for edits in self.edits(branch.name).values() for edit in edits)

    @property
    def title(self) -> str:
        """Return the branch that goes on, and that it is edited; empty for the original."""
        if self.name == ORIGINAL:
            return ""
        return f"{self.name}, edited" if self.is_edited else self.name

    def go(self, name: str) -> int | None:
        """Go on in the branch of this name, a new one from the present if there is none.

        Returns the tick from which on it differs from the branch left; None where it does not. Raise UsageError.
        """
        if name == self.name:
            return None
        if name not in self._others:
            _ensure_name(name)
            self._parents[name] = Parent(self.name, self._timeline.machine.tick)
        self._others[self.name] = self._timeline.branch()
        self.name = name
        other = self._others.pop(name, None)
        parting = None if other is None else self._timeline.become(other)
        self._share_budget()
        return parting

    def _share_budget(self) -> None:
        timelines = [self._timeline, *self._others.values()]
        for timeline in timelines:
            timeline.history.limit(self._budget // len(timelines))

    def timeline(self, name: str) -> Timeline:
        """Return the course of a branch, which goes on if that is the present one.

        Raise UsageError for an unknown name.
        """
        if name == self.name:
            return self._timeline
        if name not in self._others:
            raise UsageError(f"there is no branch '{name}'; there are {', '.join(sorted([self.name, *self._others]))}")
        return self._others[name]

    def edits(self, name: str) -> Mapping[int, tuple[Edit, ...]]:
        """Return what was changed in a branch, by tick."""
        return self.timeline(name).edits

    def rename(self, name: str, to: str) -> None:
        """Give a branch another name. Raise UsageError for the original, and for a name that is taken."""
        self.timeline(name)
        _ensure_name(to)
        if name == ORIGINAL:
            raise UsageError(f"'{ORIGINAL}' keeps its name: it is the run without edits")
        if to in self:
            raise UsageError(f"there is a branch '{to}' already")
        if name == self.name:
            self.name = to
        else:
            self._others[to] = self._others.pop(name)
        self._parents[to] = self._parents.pop(name)
        for child, parent in self._parents.items():
            if parent.name == name:
                self._parents[child] = Parent(to, parent.tick)

    def delete(self, name: str, *, descendants: bool = False) -> tuple[str, ...]:
        """Forget a branch, and with `descendants` those that left it; the names of all that are gone.

        Raise UsageError for the original, the one that goes on, and one that others left, unless these go, too.
        """
        self.timeline(name)
        gone = (name, *self._descendants(name))
        if name == ORIGINAL:
            raise UsageError(f"'{ORIGINAL}' cannot be deleted: it is the run without edits")
        if self.name in gone:
            whose = "" if name == self.name else f"'{self.name}' descends from '{name}', and "
            raise UsageError(f"{whose}'{self.name}' is where you are; go to another first: branch {ORIGINAL}")
        if len(gone) > 1 and not descendants:
            raise UsageError(f"{', '.join(gone[1:])} descend from '{name}'; branch delete {name} all takes them along")
        for one in gone:
            del self._others[one], self._parents[one]
        self._share_budget()
        return gone

    def _descendants(self, name: str) -> list[str]:
        found: list[str] = []
        for child, parent in sorted(self._parents.items()):
            if parent.name == name:
                found += [child, *self._descendants(child)]
        return found

    def put_back(self, name: str, parent: str, parted: int) -> None:
        """Say from which branch one descends, which was kept in a session."""
        if name != ORIGINAL:
            self._parents[name] = Parent(parent or ORIGINAL, parted)

    @property
    def last_edit(self) -> str:
        """Return the last edit of the branch that goes on, in words; empty where there is none."""
        edits = self._timeline.edits
        return f"{edit_text(edits[max(edits)][-1])} (tick {max(edits)})" if edits else ""

    def undo(self) -> int:
        """Take back the last edit of the branch that goes on, and stand at its moment; the tick.

        Raise UsageError where nothing was changed.
        """
        edits = self._timeline.edits
        if not edits:
            raise UsageError(f"nothing was changed in the branch '{self.name}'")
        tick = max(edits)
        self._timeline.take_back()
        return tick

    def difference(self, a: str, b: str, *, paused: Callable[[], bool] = lambda: False) -> BranchDifference:
        """Return what differs between two branches, where first, and how far; both are run to their end. UsageError.

        `paused` is asked all the time; what was found until it says so is the answer.
        """
        from stepper.debug.branches.differences import compare_timelines  # few ask for it

        return compare_timelines(a, self.timeline(a).branch(), b, self.timeline(b).branch(), paused)

    def leave_all(self) -> None:
        """Have the original alone, where it stands."""
        if self.name != ORIGINAL:
            self.go(ORIGINAL)
        self._others.clear()
        self._parents.clear()

    def make_room(self) -> None:
        """Before an edit: go on in a new branch where this one is the original, or would lose its later edits."""
        tick = self._timeline.machine.tick
        if self.name == ORIGINAL or any(edited > tick for edited in self._timeline.edits):
            number = 1
            while f"edit-{number}" in {self.name, *self._others}:
                number += 1
            self.go(f"edit-{number}")

    def _described(self, name: str) -> Branch:
        timeline = self._timeline if name == self.name else self._others[name]
        machine = timeline.machine
        where = place(machine.stack) if machine.stack else "the end of the run"
        parent = self._parents.get(name, Parent("", 0))
        shared = self.timeline(parent.name).edits if parent.name else {}
        own = [
            (tick, edit_text(edit))
            for tick, made in sorted(timeline.edits.items())
            for edit in made
            if not any(same_edit(edit, other) for other in shared.get(tick, ()))
        ]
        ticks = tuple(sorted(timeline.edits))
        return Branch(name, machine.tick, where, ticks, name == self.name, parent.name, parent.tick, tuple(own))


def _ensure_name(name: str) -> None:
    if not name.isprintable() or not name or " " in name:
        raise UsageError("the name of a branch is one word")
    if name in WORDS:
        raise UsageError(f"no branch can be called '{name}', which is a command about branches")


def edit_text(edit: Edit) -> str:
    """Return an edit in words, as it is set."""
    if isinstance(edit, ValueEdit | ConstantEdit):
        what = "constant " if isinstance(edit, ConstantEdit) else ""
        value = np.asarray(edit.value)
        shown = str(value.item()) if value.size == 1 else form_text(value)
        return f"{what}{target_in(edit.program, edit.slot).named.name} = {shown}"
    loop = edit.program.path[-1].name
    if isinstance(edit, TripCountEdit):
        return f"trip-count of {loop} = {-1 if edit.count is None else edit.count}"
    assert isinstance(edit, ConditionEdit)
    return f"condition of {loop} = {str(edit.holds).lower()}"
