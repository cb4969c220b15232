"""Edits: changes by the user at a moment of a run, as plain data, made again by every replay of the moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from stepper.element_types import Array, Indices
from stepper.engine import transitions
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.engine.machine import Machine

# --- Names of branches that are given --------------------------------------------------------------------------------


ORIGINAL: Final = "original"
"""The branch with which a run begins."""

# ---------------------------------------------------------------------------------------------------------------------


class Edit(Record):
    """A change that belongs to the frame, or the constants, of a program."""

    program: Program

    @property
    def depth(self) -> int:
        """Return that of the frame on the stack (1: the model's own graph)."""
        return len(self.program.path) + 1

    def frame(self, machine: Machine) -> Frame:
        """Return the frame that runs the program."""
        return machine.stack[self.depth - 1]

    def make(self, machine: Machine) -> None:
        """Change the machine, which stands at the moment of the edit."""
        raise NotImplementedError


class ValueEdit(Edit, frozen=True):
    """Another value in a slot of a frame; `before` is the value that it replaces."""

    slot: int
    value: Array
    before: Array

    def make(self, machine: Machine) -> None:
        """Put the value into the slot."""
        frame = self.frame(machine)
        frame.values[self.slot] = self.value
        _tell(machine, frame, self.slot)


class ConstantEdit(Edit, frozen=True):
    """Another value of a constant, from the moment on in every run of the program."""

    slot: int
    value: Array

    def make(self, machine: Machine) -> None:
        """Compute with the value from now on."""
        machine.set_constant(self.program, self.slot, self.value)


class TripCountEdit(Edit, frozen=True):
    """Another trip count of the loop that runs in the frame; None: no limit."""

    count: int | None

    def make(self, machine: Machine) -> None:
        """Give the loop the trip count."""
        frame = self.frame(machine)
        transitions.set_trip_count(frame, self.count)
        _tell(machine, frame, None)


class ConditionEdit(Edit, frozen=True):
    """Condition of the loop that runs in the frame, as it is to be at the end of the iteration under way or now."""

    holds: bool

    def make(self, machine: Machine) -> None:
        """Give the loop the condition."""
        frame = self.frame(machine)
        transitions.set_condition(frame, holds=self.holds)
        _tell(machine, frame, None)


def _tell(machine: Machine, frame: Frame, slot: int | None) -> None:
    for observer in machine.observers:
        observer.changed(frame, slot)


def same_edit(a: Edit, b: Edit) -> bool:
    """True if two edits change the same in the same way, as an edit does that was kept and made again."""
    if type(a) is not type(b) or a.program is not b.program:
        return False
    if isinstance(a, ValueEdit | ConstantEdit) and isinstance(b, ValueEdit | ConstantEdit):
        one, other = np.asarray(a.value), np.asarray(b.value)
        alike = (a.slot, one.dtype, one.shape) == (b.slot, other.dtype, other.shape)
        return alike and (one is other or one.tobytes() == other.tobytes())
    return a == b


def same_edits(a: Sequence[Edit], b: Sequence[Edit]) -> bool:
    """True if the edits of a moment are the same."""
    return len(a) == len(b) and all(same_edit(one, other) for one, other in zip(a, b, strict=True))


def same_by_tick(a: Mapping[int, Sequence[Edit]], b: Mapping[int, Sequence[Edit]]) -> bool:
    """True if two courses of a run have the same edits at the same ticks."""
    return a.keys() == b.keys() and all(same_edits(edits, b[tick]) for tick, edits in a.items())


# --- Which way a run goes, as something to compare: states keep it, and know whether what they saw still holds -------


class RunCourse:
    """Which way a run goes, made of its edits; equal to another one of the very same edits, whatever its branch."""

    __slots__ = ("_edits",)

    def __init__(self, edits: Mapping[int, tuple[Edit, ...]] | None = None) -> None:
        self._edits = tuple(sorted((edits or {}).items(), key=lambda made: made[0]))

    @property
    def _key(self) -> tuple[tuple[int, Indices], ...]:
        """Identities stand for edits, which are kept here: a value set anew to the same is another edit."""
        return tuple((tick, tuple(map(id, made))) for tick, made in self._edits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunCourse) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)
