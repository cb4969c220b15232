"""Walks through the frames of a run: frames that replays fetch, ports of bodies, and how a value was made.

A seat says where in a run a frame is: for each graph from the model's own inwards the operation (by index) that holds
the next one, and the iteration of it (None: of an If). The run itself stays where it is; replays use a twin of it.

`ports_into` and `pieces` have ports by slots and regions, for masks; `into_body` and `out_of_body` for single elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from stepper import element_types
from stepper.debug.causes.cause import Element, LinkForm, LinkKind, PartRole
from stepper.debug.causes.loop_ends import is_end_set
from stepper.debug.loop_runs import before_iteration
from stepper.debug.provenance.dependence_rules import contributions, extent_contributions
from stepper.debug.provenance.operation_at import (
    Contribution,
    Contributions,
    Factor,
    OperationAt,
    ValueNotKept,
    body_of_frame,
    ensure_kept,
    file_of,
)
from stepper.debug.timeline import ConstantEdit, Timeline, ValueEdit
from stepper.element_types import FLOATING, Array, Indices, Shape
from stepper.engine.frames import Activation, Event, EventKind, Every, Frame
from stepper.engine.loops import EndReason
from stepper.engine.machine import Machine
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind, Program, Value, host_of
from stepper.engine.transitions import is_joined, joined_iterations
from stepper.errors import Paused, StepperError, UsageError
from stepper.ir.model import Layer
from stepper.ops.operands import normalize_axis

Seat = tuple[tuple[int, int | None], ...]

_FIRST_STRETCH = 4
_WIDER = 8
_LONGEST_STRETCH = 1024
"""Iterations that are fetched in one replay."""
_MOST_BYTES = 2**26
"""Most bytes of the values of one stretch's frames.

If the values of all stretches exceed twice this size, only the last stretch stays.
"""
_FIRST_TICKS = 64
_MOST_REMEMBERED = 2**29
"""Bytes of the values of all frames of a run up to which they are fetched by one replay."""
_BYTES_OF_A_FRAME = 1000
_MOST_TICKS = 500_000
"""Moves of a run up to which they are."""


class EarlierFrames:
    """The frames of a run up to the present, or up to another `tick` of it, by their seats.

    `wants_all`: most of them will be asked for, so that all are fetched in one replay where there is room for them.
    """

    def __init__(self, timeline: Timeline, tick: int | None = None, *, wants_all: bool = False) -> None:
        self._scout = timeline.scout()
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
        self.present = seat_of(self._present.frames)
        """Where the run stands."""
        self._known: dict[Seat, Frame] = dict(zip(_prefixes(self.present), self._present.frames, strict=True))
        self._closed: dict[Seat, int] = {}
        self._entered: dict[Seat, int] = {}
        self._stretch: dict[Seat, int] = {}
        self._left: dict[tuple[Seat, int], Seat] = {}
        self._wants_all, self._size = wants_all, 0
        edits = [edit for made in timeline.edits.values() for edit in made]
        self.edits = tuple(edit for edit in edits if isinstance(edit, ValueEdit | ConstantEdit))
        self._owner = timeline.machine
        self._owner.followers = (*self._owner.followers, self._scout.machine)
        self._scout.machine.pause_requested = self._owner.pause_requested

    def close(self) -> None:
        """Be done with it: a pause of the run is no longer heeded here."""
        self._owner.followers = tuple(one for one in self._owner.followers if one is not self._scout.machine)

    def edit(self, frame: Frame, slot: int) -> ValueEdit | ConstantEdit | None:
        """Return the edit that put its value into a slot of a frame; None where that was computed."""
        value = frame.values[slot]
        found = (one for one in self.edits if one.program is frame.program and one.slot == slot)
        return next((one for one in found if one.value is value), None)

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

    def frame(self, seat: Seat) -> Frame:
        """Return the frame of a seat. Raise Paused where the run is asked to pause."""
        return self.at(seat)[-1]

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
        """Replay iterations up to the seat's iteration, as many as are likely to be needed next."""
        (*outer, (index, last)) = seat
        if last is None:  # of an If that was looked at before
            self.left(tuple(outer), index)
            return
        run: Seat = (*outer, (index, None))
        depth = len(seat)
        first = max(0, last + 1 - self._stretch.get(run, _FIRST_STRETCH))
        if run in self._entered:
            self._scout.goto(self._entered[run])
        else:
            self._scout.machine.restore(self._present)
        if before_iteration(self._scout, depth, first):
            raise Paused
        machine, found = self._scout.machine, _ClosedFrames(self._scout.machine)

        def is_last(event: Event) -> bool:
            if event.kind is not EventKind.ITERATION or len(machine.stack) != depth + 1:
                return False
            iteration = machine.stack[-1].active.iteration
            if iteration >= first:
                found.see(event)
            return iteration >= last

        self._forward(Every.ITERATION, is_last)
        size = max(1, found.size // max(1, len(found.known)))
        longest = max(1, min(_LONGEST_STRETCH, _MOST_BYTES // size))
        self._stretch[run] = min(longest, self._stretch.get(run, _FIRST_STRETCH) * _WIDER)
        self._size += found.size
        if self._size > 2 * _MOST_BYTES:
            kept = {*_prefixes(self.present), *_prefixes(seat)}
            self._known = {at: frame for at, frame in self._known.items() if at in kept}
            self._size = found.size
        self._take(found)

    # --- what was left -------------------------------------------------------------------------------------------

    def left(self, seat: Seat, index: int) -> tuple[Seat, Frame]:
        """Return the frame of a loop or If after it was left, and the frame's seat.

        The loop or If is the operation at this index of the graph of a seat. A loop gives the frame of its last
        iteration.
        """
        if (seat, index) not in self._left:
            self._remember()
        if (seat, index) in self._left and self._left[seat, index] in self._known:
            return self._left[seat, index], self._known[self._left[seat, index]]
        machine, depth = self._scout.machine, len(seat)
        operation = self.frame(seat).program.operations[index]
        if seat == self.present[: len(seat)]:
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
        if not self._entered[*seat, (index, None)]:
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
        self.entered: dict[Seat, int] = {}
        self.size = 0

    def see(self, event: Event) -> bool:
        """Take note of a frame that was closed or left. Return True where they have become too many."""
        frame, seat = event.frame, closed_seat(event, self._machine.stack)
        if seat is None:
            return False
        if event.kind is EventKind.LEFT:
            around, (index, _) = seat[:-1], seat[-1]
            self.entered[*around, (index, None)] = frame.active.entered
            self.left[around, index] = seat
        if seat not in self.known:
            self.size += _bytes(frame) + _BYTES_OF_A_FRAME
        self.known[seat], self.closed[seat] = frame.copy(), event.tick
        return self.size > _MOST_REMEMBERED


def _prefixes(seat: Seat) -> list[Seat]:
    return [seat[:depth] for depth in range(len(seat) + 1)]


def iterations_of(seat: Seat) -> Indices:
    """Return the iterations of the loops around a frame, from the outermost inwards."""
    return tuple(iteration for _, iteration in seat if iteration is not None)


def seat_of(frames: Sequence[Frame]) -> Seat:
    """Return the seat of the innermost of these frames; the first frame is the model's own graph."""
    steps = []
    for outer, frame in pairwise(frames):
        activation = frame.active
        iteration = activation.iteration if isinstance(activation.plan, LoopPlan) else None
        steps.append((outer.pc, iteration))
    return tuple(steps)


def closed_seat(event: Event, stack: Sequence[Frame]) -> Seat | None:
    """Return the seat of the frame that an event closed, or left for the innermost of these; None for other events."""
    activation = event.frame.activation
    if activation is None or event.kind not in (EventKind.ITERATION, EventKind.LEFT):
        return None
    seat = seat_of(stack)
    if event.kind is EventKind.ITERATION:
        return seat
    return (*seat, (stack[-1].pc - 1, activation.iteration if isinstance(activation.plan, LoopPlan) else None))


def _bytes(frame: Frame) -> int:
    return sum(
        value.nbytes
        for value, constant in zip(frame.values, frame.program.template, strict=True)
        if value is not None and value is not constant
    )


class ValueSpot(NamedTuple):
    """An element (None: all) of what a slot holds in a frame. `is_shape`: of its shape, by axis."""

    seat: Seat
    slot: int
    element: Element | None
    is_shape: bool = False


def held(frame: Frame, spot: ValueSpot) -> Array:
    """Return what a spot is an element of: a value, or its shape. The frame has it."""
    value = np.asarray(frame.values[spot.slot])
    return np.array(value.shape, np.int64) if spot.is_shape else value


def element_of(value: Value | None, element: Element | None, *, is_shape: bool) -> Any:
    """Return an element of a value, or of its shape; None where that is no single one, or not there."""
    if value is None or element is None:
        return None
    array = np.array(np.shape(value), np.int64) if is_shape else np.asarray(value)
    is_inside = len(element) == array.ndim and all(map(int.__lt__, element, array.shape))
    return array[element] if is_inside else None


class BodyPort(NamedTuple):
    """Describe the path to a Parameter of a body: from a slot around it, or over a back edge.

    `outer` is the slot around the body. For a back edge, `outer` is the slot of the Result. `region` is the part of the
    outer tensor that the Parameter gets (None: all of it).
    """

    kind: LinkKind
    outer: int
    region: tuple[slice, ...] | None = None
    line: int = 0


def ports_into(activation: Activation, iteration: int) -> dict[int, BodyPort]:
    """Return the ways to the Parameters of a body in an iteration, by their slots."""
    plan, inputs = activation.plan, activation.operation.inputs
    if isinstance(plan, BranchPlan):
        return {slot: BodyPort(LinkKind.BRANCH_INPUT, inputs[index]) for index, slot in plan.inputs}
    found = {one.parameter: BodyPort(LinkKind.INVARIANT, inputs[one.input]) for one in plan.invariant}
    for one, taken in zip(plan.sliced, activation.slices, strict=True):
        region = (*(slice(None),) * taken.walk.axis, slice(*taken.walk.range(iteration)))
        found[one.parameter] = BodyPort(LinkKind.SLICE, inputs[one.input], region)
    for merged in plan.merged:
        back = BodyPort(LinkKind.BACK_EDGE, merged.result, line=merged.line)
        found[merged.parameter] = back if iteration > 0 else BodyPort(LinkKind.INITIAL, inputs[merged.input])
    return found


class Piece(NamedTuple):
    """Part of an output of a loop or If: the iteration that gave it (None: a branch), its region (None: all), shape."""

    iteration: int | None
    region: tuple[slice, ...] | None = None
    shape: Shape = ()


class WayOut(NamedTuple):
    """Describe how an output of a loop or If is made of a Result.

    The Result is in this slot of the body. `axis` is the axis of a join. If no iteration ran, the slot is the slot of
    the initial value, outside.
    """

    kind: LinkKind
    slot: int
    pieces: list[Piece]
    axis: int | None = None


def way_out(activation: Activation, output: int) -> WayOut:
    """Return how an output is made of what the body gave, its pieces in the order of the axis."""
    plan, last = activation.plan, activation.iteration
    if isinstance(plan, BranchPlan):
        slot = next(slot for index, slot in plan.outputs if index == output)
        return WayOut(LinkKind.BRANCH_OUTPUT, slot, [Piece(None)])
    for one in plan.last_values:
        if one.output == output and last >= 0:
            return WayOut(LinkKind.LAST_VALUE, one.result, [Piece(last)])
        if one.output == output:
            given = [merged.input for merged in plan.merged if merged.parameter == one.merged]
            slots = [activation.operation.inputs[index] for index in given]
            return WayOut(LinkKind.NO_ITERATION, slots[0] if slots else -1, [Piece(last) for _ in slots])
    place, entry = next((place, one) for place, one in enumerate(plan.concatenated) if one.output == output)
    scan, offset = activation.scans[place], 0
    if not is_joined(plan, entry, scan):
        return WayOut(LinkKind.LAST_VALUE, entry.result, [Piece(last)])
    found = WayOut(LinkKind.SCAN, entry.result, [], entry.slicing.axis)
    for iteration in joined_iterations(plan, entry, scan):
        piece = scan.piece(iteration).shape
        region = [slice(0, extent) for extent in piece or (1,)]
        axis = normalize_axis(entry.slicing.axis, len(region))
        region[axis] = slice(offset, offset + region[axis].stop)
        offset = region[axis].stop
        found.pieces.append(Piece(iteration, tuple(region), piece))
    return found


def refitted(levels: Array, shape: Shape) -> Array:
    """Return a mask in another shape of as many elements; all as the largest where they are not as many."""
    if levels.size == prod(shape):
        return levels.reshape(shape)
    return np.full(shape, levels.max(initial=0), levels.dtype)


class Crossing(NamedTuple):
    """A way over the border of a body: which, from where (None: from nowhere), and the line of its entry or edge.

    `decides`: what follows is no value that was handed over, but what settled how many there are. `becomes` says how a
    finite number becomes infinite, where a body gives it another type.
    """

    kind: LinkKind
    following: ValueSpot | None = None
    line: int = 0
    decides: bool = False
    becomes: str = ""


def into_body(frame: Frame, spot: ValueSpot) -> Crossing:
    """Return from where a Parameter of a body got its value, in the iteration of the spot."""
    activation = frame.active
    (*around, (index, _)), parameter = spot.seat, frame.program.parameter(spot.slot)
    line = next((one.line for one in body_of_frame(frame).inputs if one.parameter == parameter.id), 0)
    port = ports_into(activation, activation.iteration).get(spot.slot)
    if port is None:
        is_branch = isinstance(activation.plan, BranchPlan)
        return Crossing(LinkKind.BRANCH_INPUT if is_branch else LinkKind.NUMBER, None, line)
    if port.kind is LinkKind.BACK_EDGE:
        before: Seat = (*around, (index, activation.iteration - 1))
        return Crossing(port.kind, spot._replace(seat=before, slot=port.outer), port.line)
    element = spot.element
    if port.region is not None and element:
        axis = len(port.region) - 1
        if spot.is_shape and element == (axis,):  # as many as the port map takes
            return Crossing(port.kind, None, line)
        if not spot.is_shape:
            element = (*element[:axis], element[axis] + port.region[axis].start, *element[axis + 1 :])
    return Crossing(port.kind, spot._replace(seat=tuple(around), slot=port.outer, element=element), line)


def out_of_body(frames: EarlierFrames, spot: ValueSpot, operation: Operation) -> Crossing:
    """Return which Result gave an output of a loop or If, in the iteration, or of the branch, that did.

    Raise Paused where a replay is asked to pause.
    """
    program = frames.frame(spot.seat).program
    output = operation.outputs.index(spot.slot)
    inner, frame = frames.left(spot.seat, program.operations.index(operation))
    activation, element, value = frame.active, spot.element, frames.frame(spot.seat).values[spot.slot]
    line = next((one.line for one in body_of_frame(frame).outputs if one.output == output), 0)
    way = way_out(activation, output)
    following = spot._replace(slot=way.slot, seat=spot.seat if way.kind is LinkKind.NO_ITERATION else inner)
    found = following if way.pieces else None
    decides = way.axis is not None and spot.is_shape and element == (normalize_axis(way.axis, np.ndim(value)),)
    if decides:
        found = end_of_loop(frames, ended_run(frames, inner))
    elif way.axis is not None and not spot.is_shape:
        found = _in_piece(way, following)
    return Crossing(way.kind, found, line, decides)


def _in_piece(way: WayOut, spot: ValueSpot) -> ValueSpot | None:
    """Return the element of a piece that an element of a joined output is; None where zeros fill it up."""
    (*around, (index, _last)), element = spot.seat, spot.element
    for iteration, region, shape in way.pieces if element is not None else ():
        assert element is not None and region is not None
        if all(part.start <= at < part.stop for part, at in zip(region, element, strict=True)):
            own = tuple(at - part.start for part, at in zip(region, element, strict=True))
            return spot._replace(seat=(*around, (index, iteration)), element=own if shape else ())
    return None


def condition_of(frames: EarlierFrames, seat: Seat) -> tuple[ValueSpot, Operation] | None:
    """Return the condition of the If whose branch a seat is in, and that If; None for what is no branch."""
    activation = frames.frame(seat).activation
    if activation is None or not isinstance(activation.plan, BranchPlan):
        return None
    found = _single(frames, seat[:-1], activation.operation.inputs[0])
    return None if found is None else (found, activation.operation)


def _single(frames: EarlierFrames, seat: Seat, slot: int | None) -> ValueSpot | None:
    """Return the first element of what a slot holds; None where it holds none."""
    value = None if slot is None else frames.frame(seat).values[slot]
    return None if value is None or slot is None else ValueSpot(seat, slot, (0,) * np.ndim(value))


class EndedLoop(NamedTuple):
    """Describe a loop that has ended: the seat around it, its last seat, and its run.

    The last seat is the seat of its last iteration (None: it ran none). `is_set`: its trip count or condition was set
    by hand.
    """

    outer: Seat
    seat: Seat | None
    activation: Activation
    is_set: bool


def ended_run(frames: EarlierFrames, seat: Seat) -> EndedLoop:
    """Return the run of a loop that ended with the frame of a seat."""
    frame = frames.frame(seat)
    has_run = frame.active.iteration >= 0
    is_set = is_end_set(frame.active, frame.values if has_run else None)
    return EndedLoop(seat[:-1], seat if has_run else None, frame.active, is_set)


def end_of_loop(frames: EarlierFrames, ended: EndedLoop) -> ValueSpot | None:
    """Return what ended a loop: its condition, its trip count, or the extent of the input that had no further slice.

    None where that is no value of the run, as where it was set.
    """
    outer, inner, activation, is_set = ended
    plan, reason, inputs = activation.plan, activation.ended, activation.operation.inputs
    if not isinstance(plan, LoopPlan) or is_set:
        return None
    if reason is EndReason.SLICES:
        if not plan.sliced:
            return None
        entry, taken = min(zip(plan.sliced, activation.slices, strict=True), key=lambda pair: pair[1].walk.count)
        return ValueSpot(outer, inputs[entry.input], (taken.walk.axis,), is_shape=True)
    if reason is EndReason.CONDITION:
        return None if inner is None else _single(frames, inner, plan.condition_result)
    index = plan.condition if reason is EndReason.INITIAL_CONDITION else plan.trip_count
    found = None if index is None else _single(frames, outer, inputs[index])
    return found if found is not None and held(frames.frame(outer), found).size else None


def with_rank_of(source: Array, spot: ValueSpot) -> ValueSpot:
    """Return a spot whose element fits what another rank is given on the way; None where it cannot."""
    element = spot.element
    if spot.is_shape:
        return spot._replace(element=element if element is not None and element[0] < source.size else None)
    if element is not None and len(element) != source.ndim:
        element = (0,) * source.ndim if source.size == 1 else None
    return spot._replace(element=element)


def producer(program: Program, slot: int) -> tuple[Layer, int]:
    """Return the layer that computes the value of a slot, and at which output."""
    return program.producers[slot]


def operation_of(program: Program, slot: int) -> Operation | None:
    """Return the operation that computes a slot, also one that was computed once, from constants."""
    index = program.computed_at.get(slot)
    if index is not None:
        return program.operations[index]
    return next((operation for operation in program.folded if slot in operation.outputs), None)


class ReferenceSlots(Protocol):
    """Values of a reference, beside those of a run."""

    def value(self, seat: Seat, slot: int) -> Array | None:
        """Return what the reference has in a slot; None where that is not known."""

    def differs(self, seat: Seat, slot: int, value: Array) -> Array | None:
        """Return in which elements a value differs from the reference; None where that is not known."""


LEAST_WEIGHT = 0.05
"""Part of a sum or product, or of what was asked about, that counts; less is hardly followed."""
NOT_KEPT = "the run did not keep its operands"


class RunWalk:
    """Walk from a value, in frames that replays fetch; follow what differs from a `reference`."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, reference: ReferenceSlots | None = None) -> None:
        self._timeline, self._frames, self._reference = timeline, frames, reference
        self._file = file_of(timeline.machine.compiled)
        self._moving: dict[int, frozenset[int]] = {}

    def _ended(self, walk: Callable[[], object], before: str = "its beginning") -> str:
        """Walk. Return why that ended early: for a pause, or since a value was not kept; empty where it did not."""
        try:
            walk()
        except Paused:
            self._timeline.machine.request_pause(wanted=False)
            return f"paused before {before} was found"
        except ValueNotKept:
            return NOT_KEPT
        return ""

    def _heed_pause(self) -> None:
        if self._timeline.machine.pause_requested:
            raise Paused

    def _frame(self, seat: Seat) -> Frame:
        return self._frames.at(seat)[-1]

    def _value(self, seat: Seat, slot: int) -> Any:
        return self._frame(seat).values[slot]

    def element(self, spot: ValueSpot) -> Any:
        """Return what a spot is; None where that is no single element, or not there."""
        return element_of(self._value(spot.seat, spot.slot), spot.element, is_shape=spot.is_shape)

    def _is_bad(self, spot: ValueSpot) -> bool:
        return is_bad(self.element(spot))

    def _step(self, spot: ValueSpot, frame: Frame, operation: Operation | None) -> Crossing:
        """Return how a value came to be where it is: from nowhere in its own graph, or over which border.

        An element has the rank that it has beyond the border. Raise ValueNotKept.
        """
        program, slot = frame.program, spot.slot
        if frame.values[slot] is None:
            raise ValueNotKept
        if self._frames.edit(frame, slot) is not None:
            return Crossing(LinkKind.EDITED)
        if operation is not None and not operation.plans:
            return Crossing(LinkKind.COMPUTED if slot in program.computed_at else LinkKind.CONSTANT)
        if operation is None and slot not in program.parameters:
            return Crossing(LinkKind.CONSTANT)
        if operation is None and frame.activation is None:
            return Crossing(LinkKind.GIVEN)
        way = into_body(frame, spot) if operation is None else out_of_body(self._frames, spot, operation)
        if way.following is None:
            return way
        before = self._frame(way.following.seat)
        if before.values[way.following.slot] is None:
            raise ValueNotKept
        following = with_rank_of(held(before, way.following), way.following)
        number = self.element(following)
        if number is None or is_bad(number) or not self._is_bad(spot):
            return way._replace(following=following)
        becomes = f"{float(number):.4g} becomes {element_types.name_of(np.asarray(self.element(spot)).dtype)}"
        return way._replace(following=following, becomes=becomes)

    # --- what is followed ----------------------------------------------------------------------------------------

    def _contributions(self, spot: ValueSpot, frame: Frame, operation: Operation) -> Contributions:
        """Return what an element, or an extent, is made of, each term by its factor that is followed.

        Raise ValueNotKept.
        """
        assert spot.element is not None, "it is about one"
        ensure_kept(frame, operation)
        at = OperationAt.in_frame(frame, operation, spot.slot)
        found = extent_contributions(at, spot.element[0]) if spot.is_shape else contributions(at, spot.element)

        def turned(part: Contribution) -> Contribution:
            """Return a term with the factor that differs, is not finite, or changes, in the first place."""
            if part.beside is None:
                return part
            both = sorted((part.factor, part.beside), key=lambda one: self._rank(one, spot.seat, operation))
            return part._replace(factor=both[0], beside=both[1])

        return found._replace(parts=tuple(map(turned, found.parts)))

    def _rank(self, factor: Factor, seat: Seat, operation: Operation) -> tuple[bool, ...]:
        """Return a key that is smaller for what is followed first: what changes, constants last."""
        program, slot = self._frame(seat).program, operation.inputs[factor.input]
        return (
            not self._is_different(ValueSpot(seat, slot, factor.element, factor.is_shape)),
            not is_bad(factor.value),
            program.template[slot] is not None,
            slot not in self._moving_slots(program),
        )

    def _followed(self, found: Contributions, seat: Seat, operation: Operation) -> list[int]:
        """Return the numbers of the parts that may be followed, in this order: what decides, or contributes most.

        With a reference what differs from it comes first; constants come last, but before terms that are 0, and indices
        after data. Of a product what changes comes before what is the same in all iterations, and what a back edge
        carries first, unless it hardly counts.
        """
        plan = self._frame(seat).loop
        states = {parameter for parameter, _ in plan.carried} if plan else set()
        weights, is_sum = dict(enumerate(found.weights)), found.form is LinkForm.SUM

        def key(k: int) -> tuple[Any, ...]:
            part, weight = found.parts[k], weights.get(k, 1.0)
            is_same, _, is_constant, is_steady = self._rank(part.factor, seat, operation)
            is_state = found.form is LinkForm.PRODUCT and operation.inputs[part.factor.input] in states
            place = 0 if not is_state else -1 if weight >= LEAST_WEIGHT else 1
            is_other = part.role is not PartRole.DECIDES
            is_none, is_left = is_sum and not weight, is_steady and not is_sum
            return is_same, is_other, is_none, is_constant, not part.is_value, is_left, place

        return sorted((k for k, part in enumerate(found.parts) if part.factor.element is not None), key=key)

    def _is_different(self, spot: ValueSpot) -> bool:
        """True if an element (of a shape: all of the value) differs from the reference, or there is no reference."""
        if self._reference is None:
            return True
        if spot.element is None:
            return False
        found = self._reference.differs(spot.seat, spot.slot, np.asarray(self._value(spot.seat, spot.slot)))
        return found is not None and bool(found.all() if spot.is_shape else found[spot.element])

    def _moving_slots(self, program: Program) -> frozenset[int]:
        """Return the slots whose values differ by iteration, or by run: all but constants and what never changes."""
        if id(program) not in self._moving:
            plan = host_of(self._timeline.machine.compiled, program)[1] if program.path else None
            fixed = {one.parameter for one in plan.invariant} if isinstance(plan, LoopPlan) else set()
            found = {slot for slot in program.parameters if slot not in fixed}
            for operation in program.operations:
                if found & set(operation.inputs) or operation.kind is OpKind.STATEFUL:
                    found |= set(operation.outputs)
            self._moving[id(program)] = frozenset(found)
        return self._moving[id(program)]


def is_bad(value: Any) -> bool:
    """True if an element is NaN or infinite."""
    return value is not None and np.asarray(value).dtype in FLOATING and not bool(np.isfinite(value))
