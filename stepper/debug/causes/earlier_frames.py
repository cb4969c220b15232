"""The frames of earlier iterations, and of loops and Ifs that were left: fetched by replays beside the run.

A seat says where in a run a frame is: for each graph from the model's own inwards the operation (by index) that holds
the next one, and the iteration of it (None: of an If). The run itself stays where it is; all goes on in a twin of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from stepper.debug.timeline import Timeline
from stepper.debug.visits import before_iteration
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program
from stepper.errors import Paused, StepperError, UsageError

Seat = tuple[tuple[int, int | None], ...]

_FIRST_STRETCH: Final = 4
_WIDER: Final = 8
_LONGEST_STRETCH: Final = 1024
"""Iterations that are fetched in one replay."""
_MOST_BYTES: Final = 2**26
"""Of the values of the frames that are kept of one stretch."""
_FIRST_TICKS: Final = 64
_MOST_REMEMBERED: Final = 2**29
"""Bytes of the values of all frames of a run up to which they are fetched by one replay."""
_BYTES_OF_A_FRAME: Final = 1000
_MOST_TICKS: Final = 500_000
"""Moves of a run up to which they are."""


class EarlierFrames:
    """The frames of a run up to the present, or up to another `tick` of it, by their seats.

    `wants_all`: most of them will be asked for, so that all are fetched in one replay where there is room for them.
    """

    def __init__(self, timeline: Timeline, tick: int | None = None, *, wants_all: bool = False) -> None:
        self._scout = copy.copy(timeline)
        self._scout.machine = timeline.machine.twin()
        if tick is not None and tick != timeline.machine.tick:
            try:
                self._scout.goto(tick)
            except Paused:
                raise
            except StepperError:
                pass  # the run failed there, and stands before what failed
        if self._scout.machine.finished:
            self._scout.goto(self._scout.machine.tick - 1)  # there the model's own graph still has all of its values
        self._present = self._scout.machine.snapshot()
        self._here = seat_of(self._present.frames)
        self._known: dict[Seat, Frame] = dict(zip(_prefixes(self._here), self._present.frames, strict=True))
        self._closed: dict[Seat, int] = {}
        self._entered: dict[Seat, tuple[int, Program]] = {}
        self._stretch: dict[Seat, int] = {}
        self._left: dict[tuple[Seat, int], Seat] = {}
        self._wants_all = wants_all
        self._owner = timeline.machine
        self._owner.followers = (*self._owner.followers, self._scout.machine)
        self._scout.machine.pause_requested = self._owner.pause_requested

    def close(self) -> None:
        """Be done with it: a pause of the run is no longer heeded here."""
        self._owner.followers = tuple(one for one in self._owner.followers if one is not self._scout.machine)

    @property
    def present(self) -> Seat:
        """Return where the run stands."""
        return self._here

    def closed_at(self, seat: Seat) -> int | None:
        """Return the tick at which the iteration or branch of a seat was closed, if that was met on the way."""
        return self._closed.get(seat)

    def at(self, seat: Seat) -> list[Frame]:
        """Return the frames from the model's own graph to this one: as they are now, or as they were when closed.

        Raise Paused where the run is asked to pause.
        """
        frames = []
        for at in _prefixes(seat):
            if at not in self._known:
                self._remember()
            if at not in self._known:
                self._fetch(at)
            frames.append(self._known[at])
        return frames

    def _remember(self) -> None:
        """Fetch all frames of the run so far in one replay, if most are wanted and there is room for them."""
        if not self._wants_all or self._present.tick > _MOST_TICKS:
            return
        self._wants_all = False
        machine, found = self._scout.machine, _ClosedFrames(self._scout.machine)
        try:
            self._scout.goto(0)
            event = self._scout.forward(Every.ITERATION, found.see, until=self._present.tick)
        except Paused:
            raise
        except StepperError:  # a run that was resumed begins later
            machine.restore(self._present)
            return
        machine.restore(self._present)
        if event.kind is EventKind.PAUSED:
            raise Paused
        if found.size <= _MOST_REMEMBERED:
            found.known |= self._known
            self._take(found)

    def _take(self, found: _ClosedFrames) -> None:
        self._known |= found.known
        self._closed |= found.closed
        self._left |= found.left
        self._entered |= found.entered

    # --- iterations ----------------------------------------------------------------------------------------------

    def _fetch(self, seat: Seat) -> None:
        """Replay the iterations up to that of the seat, as many as are likely to be asked for next."""
        (*outer, (index, last)) = seat
        if last is None:  # of an If that was looked at before
            self.left(tuple(outer), index)
            return
        run: Seat = (*outer, (index, None))
        depth = len(seat)
        first = max(0, last + 1 - self._stretch.get(run, _FIRST_STRETCH))
        self._begin(run, depth, first)
        machine, found = self._scout.machine, _ClosedFrames(self._scout.machine)

        def is_last(event: Event) -> bool:
            if event.kind is not EventKind.ITERATION or len(machine.stack) != depth + 1:
                return False
            activation = machine.stack[-1].activation
            iteration = 0 if activation is None else activation.iteration
            if iteration >= first:
                found.see(event)
            return iteration >= last

        self._forward(Every.ITERATION, is_last)
        size = max(1, found.size // max(1, len(found.known)))
        longest = max(1, min(_LONGEST_STRETCH, _MOST_BYTES // size))
        self._stretch[run] = min(longest, self._stretch.get(run, _FIRST_STRETCH) * _WIDER)
        kept = {*_prefixes(self._here), *_prefixes(seat)}
        self._known = {at: frame for at, frame in self._known.items() if at in kept}
        self._take(found)

    def _begin(self, run: Seat, depth: int, first: int) -> None:
        """Go to a moment shortly before an iteration of a run of a loop."""
        machine = self._scout.machine
        if run not in self._entered:
            machine.restore(self._present)
            if before_iteration(self._scout, depth, first):
                raise Paused
            return
        tick, program = self._entered[run]
        # In a body without nested graphs every iteration has as many ticks; others are replayed from the entry.
        self._scout.goto(tick + first * (len(program.code) + 2) if program.straight else tick)

    # --- what was left -------------------------------------------------------------------------------------------

    def left(self, seat: Seat, index: int) -> tuple[Seat, Frame]:
        """Return the frame of a loop or If, the operation at this index of the graph of a seat, as it was left.

        Of a loop it is that of its last iteration.
        """
        if (seat, index) not in self._left:
            self._remember()
        if (seat, index) in self._left and self._left[seat, index] in self._known:
            return self._left[seat, index], self._known[self._left[seat, index]]
        machine, depth = self._scout.machine, len(seat)
        operation = self.at(seat)[-1].program.operations[index]
        if seat == self._here[: len(seat)]:
            machine.restore(self._present)
        else:
            self._scout.goto(self._closed[seat])
        last, ticks = machine.tick, _FIRST_TICKS
        found = _ClosedFrames(machine)

        def see(event: Event) -> bool:
            activation = event.frame.activation
            is_here = event.kind is EventKind.LEFT and len(machine.stack) == depth + 1
            if is_here and activation is not None and activation.operation is operation:
                found.see(event)
            return False

        while (seat, index) not in found.left and last > 0:
            begin = max(0, last - ticks)
            self._scout.goto(begin)
            self._forward(Every.LOOP, see, until=last)
            last, ticks = begin, ticks * _WIDER
        self._take(found)
        if not self._entered[(*seat, (index, None))][0]:
            raise UsageError("this run was resumed inside of a loop; what was before is not known")
        return self._left[seat, index], self._known[self._left[seat, index]]

    def _forward(self, every: Every, fits: Callable[[Event], bool], until: int | None = None) -> None:
        event = self._scout.forward(every, fits, until)
        if event.kind is EventKind.PAUSED:
            raise Paused


class _ClosedFrames:
    """Frames of a run as they were closed or left, with about how many bytes they keep."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.known: dict[Seat, Frame] = {}
        self.closed: dict[Seat, int] = {}
        self.left: dict[tuple[Seat, int], Seat] = {}
        self.entered: dict[Seat, tuple[int, Program]] = {}
        self.size = 0

    def see(self, event: Event) -> bool:
        """Take note of a frame that was closed or left. Return True where they have become too many."""
        frame, stack = event.frame, self._machine.stack
        activation = frame.activation
        if activation is None or event.kind not in (EventKind.ITERATION, EventKind.LEFT):
            return False
        seat = seat_of(stack)
        if event.kind is EventKind.LEFT:
            index, iteration = stack[-1].pc - 1, activation.iteration if isinstance(activation.plan, LoopPlan) else None
            self.entered[*seat, (index, None)] = (activation.entered, frame.program)
            inner = (*seat, (index, iteration))
            self.left[seat, index] = inner
            seat = inner
        if seat not in self.known:
            self.size += _bytes(frame) + _BYTES_OF_A_FRAME
        self.known[seat], self.closed[seat] = frame.copy(), event.tick
        return self.size > _MOST_REMEMBERED


def _prefixes(seat: Seat) -> list[Seat]:
    return [seat[:depth] for depth in range(len(seat) + 1)]


def iterations_of(seat: Seat) -> tuple[int, ...]:
    """Return the iterations of the loops around a frame, from the outermost inwards."""
    return tuple(iteration for _, iteration in seat if iteration is not None)


def seat_of(frames: Sequence[Frame]) -> Seat:
    """Return the seat of the innermost of these frames, of which the first is the model's own graph."""
    steps = []
    for outer, frame in pairwise(frames):
        activation = frame.active
        iteration = activation.iteration if isinstance(activation.plan, LoopPlan) else None
        steps.append((outer.pc, iteration))
    return tuple(steps)


def _bytes(frame: Frame) -> int:
    return sum(
        value.nbytes
        for value, constant in zip(frame.values, frame.program.template, strict=True)
        if value is not None and value is not constant
    )
