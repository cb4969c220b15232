"""Trials of elements of inputs: does one matter? The model runs again with that element changed.

Rules say what an element can depend on. Of these a trial leaves those whose change alone changes what was asked about.
What it costs is bounded by moves of the machine, so that the answer is the same on every computer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.debug.causes.earlier_frames import Seat, seat_of
from stepper.debug.provenance.rules import same_values
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.errors import Paused, StepperError

MOST_COST: Final = 1_500_000
"""Moves of the machine, in all trials together, one with large tensors counting for several."""
_BYTES_OF_A_MOVE: Final = 20_000
_MOST_COMPARED: Final = 4

_ALONE: Final = 0.75
"""Part of all moves for which elements are tried one by one."""

Reading = Callable[[Frame], Array | None]
"""Return what was asked about, given the frame that has it; None where that has none."""


class TrialMoment(Struct, frozen=True, eq=False):
    """TrialMoment of a run at which the reading is taken: the close of the iteration, or branch, of a seat.

    `leaves` is the operation (by index) of the graph of the seat that is to be left, a loop whose end is asked about.
    """

    seat: Seat
    read: Reading
    leaves: int | None = None


class Tester:
    """Runs of a model beside a run, each with other inputs."""

    def __init__(
        self, compiled: CompiledModel, inputs: Sequence[Array], owner: Machine, moment: TrialMoment, size: int
    ) -> None:
        self._compiled, self._inputs, self._owner, self._moment = compiled, list(inputs), owner, moment
        self._most_moves = 4 * owner.tick + 1000
        self.runs = 0
        self._spent = 0
        self._each = size // _BYTES_OF_A_MOVE
        self._base: Array | None = None
        self._compared = _compared_with(compiled)

    def begin(self, expected: Array | None) -> str:
        """Run once as it was. Return why elements cannot be tried; empty where they can."""
        try:
            self._base = self._reading(self._inputs)
        except StepperError:
            self._base = None
        if self._base is None or expected is None or not same_values(self._base, expected):
            return "the run cannot be made again from its inputs alone"
        return ""

    def mattering(self, levels: Mapping[int, Array]) -> tuple[dict[int, Array], int]:
        """Return the elements that matter, of those with a level above 0, by input; and how many were tried.

        Each is tried alone; when most of the room is gone those that are left are tried in groups, which are halved
        where they matter. What there is no room for at all counts as mattering.
        """
        found = {index: np.zeros(level.size, bool) for index, level in levels.items()}
        alone = [
            (index, place) for index, level in levels.items() for place in np.flatnonzero(level.reshape(-1)).tolist()
        ]
        tried = 0
        while alone and self._spent < MOST_COST * _ALONE:
            index, place = alone.pop(0)
            found[index][place] = self._matters(index, np.array([place]))
            tried += 1
        groups = [(index, np.array([at for own, at in alone if own == index], np.int64)) for index in levels]
        groups = [(index, group) for index, group in groups if group.size]
        while groups:
            index, group = groups.pop()
            if self._spent >= MOST_COST:
                found[index][group] = True
            elif not self._matters(index, group):
                tried += group.size
            elif group.size == 1:
                tried += 1
                found[index][group] = True
            else:
                half = group.size // 2
                groups += [(index, group[half:]), (index, group[:half])]
        return {index: mask.reshape(levels[index].shape) for index, mask in found.items()}, tried

    def _matters(self, index: int, group: Array) -> bool:
        value = np.asarray(self._inputs[index])
        return any(self._differs(index, one.reshape(value.shape)) for one in trial_values(value, group, self._compared))

    def _differs(self, index: int, changed: Array) -> bool:
        try:
            got = self._reading([*self._inputs[:index], changed, *self._inputs[index + 1 :]])
        except Paused:
            raise
        except StepperError:  # with other numbers a model may refuse what it has accepted
            return True
        assert self._base is not None
        return got is None or not same_values(got, self._base)

    def _reading(self, inputs: list[Array]) -> Array | None:
        """Return what is read in a run with these inputs; None where the run does not come to it."""
        if self._owner.pause_requested:
            raise Paused
        self.runs += 1
        machine = Machine(self._compiled, inputs, states=self._owner.initial_states)
        machine.max_iterations = self._owner.max_iterations
        seat, leaves = self._moment.seat, self._moment.leaves
        every = Every.ITERATION if seat else Every.LOOP if leaves is not None else Every.END
        self._owner.followers = (machine, *self._owner.followers)
        try:
            while machine.stack and machine.tick < self._most_moves:
                event = machine.advance(every, self._most_moves)
                if event.kind is EventKind.PAUSED:
                    raise Paused
                if self._is_there(machine, event.kind, event.frame):
                    return self._moment.read(event.frame)
            return None
        finally:
            self._owner.followers = tuple(one for one in self._owner.followers if one is not machine)
            self._spent += machine.tick + self._each

    def _is_there(self, machine: Machine, kind: EventKind, frame: Frame) -> bool:
        seat, leaves = self._moment.seat, self._moment.leaves
        if leaves is not None:
            if kind is not EventKind.LEFT or len(machine.stack) != len(seat) + 1:
                return False
            return machine.stack[-1].pc - 1 == leaves and seat_of(machine.stack) == seat
        if not seat:
            return kind is EventKind.FINISHED
        if kind is EventKind.ITERATION and len(machine.stack) == len(seat) + 1:
            return seat_of(machine.stack) == seat
        if kind is EventKind.LEFT and seat[-1][1] is None and len(machine.stack) == len(seat):
            is_branch = frame.activation is not None and machine.stack[-1].pc - 1 == seat[-1][0]
            return is_branch and seat_of(machine.stack) == seat[:-1]
        return False


def _fits(number: int, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= number <= int(limits.max)


def _compared_with(compiled: CompiledModel) -> tuple[int, ...]:
    """Return the whole numbers of which the model asks whether something is one: the ends of sequences, say."""
    found: dict[int, None] = {}
    for program in compiled.programs:
        for operation in program.operations:
            if operation.layer.type in ("Equal", "NotEqual"):
                values = (program.template[slot] for slot in operation.inputs)
                for value in map(np.asarray, (one for one in values if one is not None)):
                    if value.size == 1 and value.dtype.kind in "iu":
                        found[int(value.reshape(()))] = None
    return tuple(found)[:_MOST_COMPARED]


def trial_values(value: Array, places: Array, compared: Sequence[int] = ()) -> list[Array]:
    """Return a tensor with the elements at these (flat) places changed in several ways, unevenly among them.

    `compared` are numbers that a whole number is tried as, too.
    """
    flat = np.array(value).reshape(-1)
    old: Any = flat[places]
    if flat.dtype == bool:
        changed = [~old]
    elif flat.dtype in FLOATING:
        kind = flat.dtype.type
        uneven = (1 + 0.25 * (np.arange(old.size) % 3)).astype(flat.dtype)
        with np.errstate(all="ignore"):
            half, one, small = kind(0.5), kind(1), kind(0.01)
            changed = [
                old * kind(1.5) * uneven + half * uneven,
                -old * uneven - kind(2) * uneven,
                old * kind(0) - one,
                old * kind(1.01) + small * uneven,
                old * kind(0),
                -old * uneven,
                old + one * uneven,
                old - one * uneven,
                old * kind(2) + one,
            ]
    elif flat.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            changed = [(old + 1).astype(flat.dtype), (old - 1).astype(flat.dtype)]
            changed += [np.full_like(old, one) for one in compared if _fits(one, flat.dtype)]
    else:
        return [flat]
    results = []
    for new in changed:
        one_of = flat.copy()
        one_of[places] = new
        results.append(one_of)
    return results
