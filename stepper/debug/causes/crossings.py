"""The ways of a value into and out of bodies: from a Parameter to what it was given, from an output to its Result.

`why` and stories follow single elements over them; the frames of earlier iterations come from replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element, LinkKind
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.locations import body_of_frame
from stepper.debug.causes.overrides import is_end_set
from stepper.element_types import Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import ConcatenatedOutput, EndReason, in_axis_order
from stepper.engine.program import BranchPlan, LoopPlan, Operation, Program, Value
from stepper.engine.transitions import is_joined
from stepper.errors import UsageError
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
    activation = frame.activation
    assert activation is not None, "a body has one"
    plan, line = activation.plan, _entry_line(frame, spot.slot)
    inputs, outside = activation.operation.inputs, spot.seat[:-1]
    if isinstance(plan, BranchPlan):
        index = next((one for one, slot in plan.inputs if slot == spot.slot), None)
        following = None if index is None else spot._replace(seat=outside, slot=inputs[index])
        return Crossing(LinkKind.BRANCH_INPUT, following, line)
    for merged in plan.merged:
        if merged.parameter == spot.slot and activation.iteration > 0:
            (*around, (operation, _iteration)) = spot.seat
            before: Seat = (*around, (operation, activation.iteration - 1))
            return Crossing(LinkKind.BACK_EDGE, spot._replace(seat=before, slot=merged.result), merged.line)
        if merged.parameter == spot.slot:
            return Crossing(LinkKind.INITIAL, spot._replace(seat=outside, slot=inputs[merged.input]), line)
    for sliced in plan.sliced:
        if sliced.parameter == spot.slot:
            taken = next(one for one in activation.slices if one.parameter == spot.slot)
            if spot.is_shape and spot.element == (taken.walk.axis,):  # as many as the port map takes
                return Crossing(LinkKind.SLICE, None, line)
            is_moved = spot.element is not None and not spot.is_shape
            element = _unsliced(activation, spot.slot, spot.element) if is_moved and spot.element else spot.element
            return Crossing(
                LinkKind.SLICE, spot._replace(seat=outside, slot=inputs[sliced.input], element=element), line
            )
    for invariant in plan.invariant:
        if invariant.parameter == spot.slot:
            return Crossing(LinkKind.INVARIANT, spot._replace(seat=outside, slot=inputs[invariant.input]), line)
    return Crossing(LinkKind.NUMBER, None, line)


def _unsliced(activation: Activation, slot: int, element: Element) -> Element:
    """Return the element of what is sliced that an element of a slice is."""
    taken = next(one for one in activation.slices if one.parameter == slot)
    axis, begin = taken.walk.axis, taken.walk.range(activation.iteration)[0]
    return (*element[:axis], element[axis] + begin, *element[axis + 1 :])


def out_of_body(frames: EarlierFrames, spot: ValueSpot, operation: Operation) -> Crossing:
    """Return which Result gave an output of a loop or If, in the iteration, or of the branch, that did.

    Raise Paused where a replay is asked to pause.
    """
    program = frames.at(spot.seat)[-1].program
    output = operation.outputs.index(spot.slot)
    inner, frame = frames.left(spot.seat, program.operations.index(operation))
    activation = frame.activation
    assert activation is not None, "a body has one"
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
    entry = next(one for one in plan.concatenated if one.output == output)
    if not is_joined(plan, entry, activation.scans[plan.concatenated.index(entry)]):
        return Crossing(LinkKind.LAST_VALUE, spot._replace(seat=inner, slot=entry.result), line)
    if spot.is_shape and spot.element is not None:
        return _shape_of_pieces(frames, spot, inner if activation.iteration >= 0 else None, activation, entry, line)
    if spot.element is None or activation.iteration < 0:
        return Crossing(LinkKind.SCAN, None, line)
    iteration, element = _piece(activation, plan, entry, spot.element)
    shape = activation.scans[plan.concatenated.index(entry)].piece(iteration).shape
    if any(at >= extent for at, extent in zip(element, shape, strict=True)):
        return Crossing(LinkKind.SCAN, None, line)  # a piece was filled up with zeros
    (*around, (index, _last)) = inner
    return Crossing(LinkKind.SCAN, ValueSpot((*around, (index, iteration)), entry.result, element), line)


def _shape_of_pieces(
    frames: EarlierFrames,
    spot: ValueSpot,
    inner: Seat | None,
    activation: Activation,
    entry: ConcatenatedOutput,
    line: int,
) -> Crossing:
    """Of an extent of a concatenated output: what ended the loop, or the same extent of the piece that came last."""
    rank = np.ndim(frames.at(spot.seat)[-1].values[spot.slot])
    if spot.element == (normalize_axis(entry.slicing.axis, rank),):
        return Crossing(LinkKind.SCAN, end_of_loop(frames, spot.seat, inner, activation), line, decides=True)
    return Crossing(LinkKind.SCAN, None if inner is None else spot._replace(seat=inner, slot=entry.result), line)


def condition_of(frames: EarlierFrames, seat: Seat) -> tuple[ValueSpot, Operation] | None:
    """Return the condition of the If whose branch a seat is in, and that If; None for what is no branch."""
    activation = frames.at(seat)[-1].activation
    if activation is None or not isinstance(activation.plan, BranchPlan):
        return None
    operation, outer = activation.operation, seat[:-1]
    slot = operation.inputs[0]
    value = frames.at(outer)[-1].values[slot]
    return None if value is None else (ValueSpot(outer, slot, (0,) * np.ndim(value)), operation)


def end_of_loop(frames: EarlierFrames, outer: Seat, inner: Seat | None, activation: Activation) -> ValueSpot | None:
    """Return what ended a loop: its condition, its trip count, or the extent of the input that had no further slice.

    None where that is no value of the run, as where it was set.
    """
    plan, reason = activation.plan, activation.ended
    if not isinstance(plan, LoopPlan) or is_end_set(activation, body_values(frames, inner)):
        return None
    inputs, around = activation.operation.inputs, frames.at(outer)[-1].values
    if reason is EndReason.SLICES and plan.sliced:
        entry, taken = min(zip(plan.sliced, activation.slices, strict=True), key=lambda pair: pair[1].walk.count)
        return ValueSpot(outer, inputs[entry.input], (taken.walk.axis,), is_shape=True)
    if reason is EndReason.CONDITION:
        if inner is None or plan.condition_result is None:
            return None
        value = frames.at(inner)[-1].values[plan.condition_result]
        return None if value is None else ValueSpot(inner, plan.condition_result, (0,) * np.ndim(value))
    index = plan.condition if reason is EndReason.INITIAL_CONDITION else plan.trip_count
    if index is None or reason is EndReason.SLICES or not np.size(around[inputs[index]]):
        return None
    return ValueSpot(outer, inputs[index], (0,) * np.ndim(around[inputs[index]]))


def body_values(frames: EarlierFrames, inner: Seat | None) -> Sequence[Value] | None:
    """Return the values of a body after its last iteration; None where no iteration ran."""
    return None if inner is None else frames.at(inner)[-1].values


def _piece(activation: Activation, plan: LoopPlan, entry: ConcatenatedOutput, element: Element) -> tuple[int, Element]:
    """Return the iteration that gave an element of a concatenated output, and the element of its piece."""
    scan = activation.scans[plan.concatenated.index(entry)]
    axis = normalize_axis(entry.slicing.axis, len(element))
    offset = element[axis]
    for iteration in in_axis_order(range(scan.length), entry.slicing):
        piece = scan.piece(iteration)
        size = piece.shape[axis] if piece.ndim else 1
        if offset < size:
            return iteration, ((*element[:axis], offset, *element[axis + 1 :]) if piece.ndim else ())
        offset -= size
    raise UsageError("the pieces of the output do not make it up")


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


def _entry_line(frame: Frame, slot: int) -> int:
    """Return the line of the `<input>` of the port map that feeds a Parameter."""
    parameter = frame.program.parameter(slot)
    return next((one.line for one in body_of_frame(frame).inputs if one.parameter == parameter.id), 0)
