"""The ways of values into and out of bodies: from a Parameter to what it was given, from an output to its Result.

`ports_into` and `pieces` have them by slots and regions, for masks; `into_body` and `out_of_body` for single elements.
The frames of earlier iterations come from replays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element, LinkKind
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.locations import body_of_frame
from stepper.debug.causes.verdicts import is_end_set
from stepper.element_types import Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import EndReason
from stepper.engine.program import BranchPlan, LoopPlan, Operation, Program, Value
from stepper.engine.transitions import is_joined, joined_iterations
from stepper.ir.model import Layer
from stepper.ops.operands import normalize_axis


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


class BodyPort(NamedTuple):
    """A way to a Parameter of a body: from the slot `outer` around it, or over a back edge from that of a Result.

    `region` is the part of the outer tensor that it gets (None: all of it).
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


def pieces(activation: Activation, place: int) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Yield the iterations that gave a concatenated output, each with the region of its piece, in order of the axis."""
    plan, scan = activation.plan, activation.scans[place]
    assert isinstance(plan, LoopPlan), "it has pieces"
    entry, offset = plan.concatenated[place], 0
    for iteration in joined_iterations(plan, entry, scan):
        shape = scan.piece(iteration).shape or (1,)
        axis = normalize_axis(entry.slicing.axis, len(shape))
        region = [slice(0, extent) for extent in shape]
        region[axis] = slice(offset, offset + shape[axis])
        offset += shape[axis]
        yield iteration, tuple(region)


def refitted(levels: Array, shape: tuple[int, ...]) -> Array:
    """Return a mask in another shape of as many elements; all as the largest where they are not as many."""
    if levels.size == prod(shape):
        return levels.reshape(shape)
    return np.full(shape, levels.max(initial=0), levels.dtype)


class Crossing(NamedTuple):
    """A way over the border of a body: which, from where (None: from nowhere), and the line of its entry or edge.

    `decides`: what follows is no value that was handed over, but what settled how many there are.
    """

    kind: LinkKind
    following: ValueSpot | None
    line: int
    decides: bool = False


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
    program = frames.at(spot.seat)[-1].program
    output = operation.outputs.index(spot.slot)
    inner, frame = frames.left(spot.seat, program.operations.index(operation))
    activation = frame.active
    plan = activation.plan
    line = next((one.line for one in body_of_frame(frame).outputs if one.output == output), 0)
    if isinstance(plan, BranchPlan):
        result = next(slot for index, slot in plan.outputs if index == output)
        return Crossing(LinkKind.BRANCH_OUTPUT, spot._replace(seat=inner, slot=result), line)
    for last in plan.last_values:
        if last.output != output:
            continue
        if activation.iteration >= 0:
            return Crossing(LinkKind.LAST_VALUE, spot._replace(seat=inner, slot=last.result), line)
        merged = next((one for one in plan.merged if one.parameter == last.merged), None)
        following = None if merged is None else spot._replace(slot=operation.inputs[merged.input])
        return Crossing(LinkKind.NO_ITERATION, following, line)
    place, entry = next((place, one) for place, one in enumerate(plan.concatenated) if one.output == output)
    of_last = spot._replace(seat=inner, slot=entry.result)
    if not is_joined(plan, entry, activation.scans[place]):
        return Crossing(LinkKind.LAST_VALUE, of_last, line)
    has_run = activation.iteration >= 0
    if spot.is_shape and spot.element is not None:
        rank = np.ndim(frames.at(spot.seat)[-1].values[spot.slot])
        if spot.element == (normalize_axis(entry.slicing.axis, rank),):
            ending = end_of_loop(frames, spot.seat, inner if has_run else None, activation)
            return Crossing(LinkKind.SCAN, ending, line, decides=True)
        return Crossing(LinkKind.SCAN, of_last if has_run else None, line)
    return Crossing(LinkKind.SCAN, _of_piece(activation, place, of_last) if has_run else None, line)


def _of_piece(activation: Activation, place: int, spot: ValueSpot) -> ValueSpot | None:
    """Return the element of the piece that an element of a concatenated output is; None where zeros fill it up."""
    (*around, (index, _last)), element = spot.seat, spot.element
    for iteration, region in pieces(activation, place) if element is not None else ():
        assert element is not None
        if all(part.start <= at < part.stop for part, at in zip(region, element, strict=True)):
            own = tuple(at - part.start for part, at in zip(region, element, strict=True))
            is_scalar = not activation.scans[place].piece(iteration).ndim
            return spot._replace(seat=(*around, (index, iteration)), element=() if is_scalar else own)
    return None


def condition_of(frames: EarlierFrames, seat: Seat) -> tuple[ValueSpot, Operation] | None:
    """Return the condition of the If whose branch a seat is in, and that If; None for what is no branch."""
    activation = frames.at(seat)[-1].activation
    if activation is None or not isinstance(activation.plan, BranchPlan):
        return None
    found = _single(frames, seat[:-1], activation.operation.inputs[0])
    return None if found is None else (found, activation.operation)


def _single(frames: EarlierFrames, seat: Seat, slot: int | None) -> ValueSpot | None:
    """Return the first element of what a slot holds; None where it holds none."""
    value = None if slot is None else frames.at(seat)[-1].values[slot]
    return None if value is None or slot is None else ValueSpot(seat, slot, (0,) * np.ndim(value))


def end_of_loop(frames: EarlierFrames, outer: Seat, inner: Seat | None, activation: Activation) -> ValueSpot | None:
    """Return what ended a loop: its condition, its trip count, or the extent of the input that had no further slice.

    None where that is no value of the run, as where it was set.
    """
    plan, reason = activation.plan, activation.ended
    if not isinstance(plan, LoopPlan) or is_end_set(activation, body_values(frames, inner)):
        return None
    inputs = activation.operation.inputs
    if reason is EndReason.SLICES:
        if not plan.sliced:
            return None
        entry, taken = min(zip(plan.sliced, activation.slices, strict=True), key=lambda pair: pair[1].walk.count)
        return ValueSpot(outer, inputs[entry.input], (taken.walk.axis,), is_shape=True)
    if reason is EndReason.CONDITION:
        return None if inner is None else _single(frames, inner, plan.condition_result)
    index = plan.condition if reason is EndReason.INITIAL_CONDITION else plan.trip_count
    found = None if index is None else _single(frames, outer, inputs[index])
    return found if found is not None and held(frames.at(outer)[-1], found).size else None


def body_values(frames: EarlierFrames, inner: Seat | None) -> Sequence[Value] | None:
    """Return the values of a body after its last iteration; None where no iteration ran."""
    return None if inner is None else frames.at(inner)[-1].values


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
