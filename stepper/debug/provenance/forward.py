"""The way of an element forward: which elements of which operations it reaches, in which iterations, by perturbation.

The kernel of each operation runs again with what was reached of its inputs changed, in several ways; the elements of
its outputs that differ are reached. So it goes on over back edges, slices, scan outputs, branches and nested bodies.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import numpy as np

from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.locations import file_of, location_of
from stepper.debug.causes.why import NoValueYet
from stepper.debug.iterations.loop_runs import address_from_the_first
from stepper.debug.provenance.facts import Decision, ElementUse, OutputUse, Uses
from stepper.debug.provenance.question import forward_address
from stepper.debug.provenance.rules import changes_of, same_values
from stepper.debug.story.places import spot_of
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind
from stepper.engine.transitions import joined_iterations
from stepper.errors import Paused
from stepper.ir.model import layer_site
from stepper.ops.operands import normalize_axis
from stepper.query.address_syntax import Address, address_given

MOST_LISTED: Final = 1000
"""Elements of an output of the model that are listed."""
_MOST_USES: Final = 10_000
_LARGEST_RUN: Final = 2**20


_Masks = dict[int, Array]


def uses(timeline: Timeline, address: str | Address) -> Uses:
    """Return where the element at an address goes; without an index where all elements go. The present stays.

    It is followed as far as the run has come; from its start, or of what it has not come to, as far as it is known.

    The address may be said as the question `where does x[3] go`.

    Raise UsageError for what has no value.
    """
    asked = address_given((forward_address(address) or address) if isinstance(address, str) else address)
    asked = address_from_the_first(timeline, asked)
    present, tick = timeline.machine.tick, None
    if present == 0 or not _has_value(timeline, asked):  # where nobody has gone yet what is known of the run is meant
        tick = max(timeline.furthest, present) if timeline.end is None else timeline.end.tick
    has_ended = timeline.machine.finished or (tick is not None and timeline.end is not None)
    with closing(EarlierFrames(timeline, tick, wants_all=True)) as frames:
        spot, _ = spot_of(frames, timeline.machine.compiled, asked)
        value = np.asarray(frames.at(spot.seat)[-1].values[spot.slot])
        mask = np.zeros(value.shape, bool)
        if asked.index and spot.element is not None:
            mask[spot.element] = True
        else:
            mask[...] = True
        walk = _ForwardWalk(timeline, frames)
        stopped = "" if has_ended else "the run has not ended: that is as far as it has come"
        try:
            walk.walk(spot.seat, spot.slot, mask)
        except Paused:
            timeline.machine.request_pause(wanted=False)
            stopped = "paused before all was found"
        return walk.uses(str(asked), stopped)


def _has_value(timeline: Timeline, address: Address) -> bool:
    """True if the run has come to what an address means."""
    with closing(EarlierFrames(timeline)) as frames:
        try:
            spot_of(frames, timeline.machine.compiled, address)
        except NoValueYet:
            return False
    return True


class _ForwardWalk:
    def __init__(self, timeline: Timeline, frames: EarlierFrames) -> None:
        self._timeline, self._frames = timeline, frames
        self._file = file_of(timeline.machine.compiled)
        self._uses: dict[tuple[int, int, tuple[int, ...]], ElementUse] = {}
        self._outputs: list[OutputUse] = []
        self._decisions: dict[tuple[int, str], Decision] = {}
        self._runs = 0

    def uses(self, address: str, stopped: str) -> Uses:
        found = tuple(self._uses.values())[:_MOST_USES]
        return Uses(address, found, tuple(self._outputs), tuple(self._decisions.values()), self._runs, stopped)

    def walk(self, seat: Seat, slot: int, mask: Array) -> None:
        """Follow an element from its frame to the end of the run."""
        masks: _Masks = {slot: mask}
        frame = self._frames.at(seat)[-1]
        begin = frame.program.computed_at.get(slot, -1) + 1
        while True:
            self._graph(seat, masks, begin)
            if not seat:
                break
            seat, masks, begin = self._out(seat, masks)
        program = self._frames.at(())[-1].program
        for layer, slot in zip(program.graph.results, program.results, strict=True):
            reached = masks.get(slot)
            if reached is not None and reached.any():
                places = [tuple(int(at) for at in place) for place in np.argwhere(reached)[:MOST_LISTED]]
                self._outputs.append(OutputUse(layer.name, reached.shape, int(reached.sum()), tuple(places)))

    def _out(self, seat: Seat, masks: _Masks) -> tuple[Seat, _Masks, int]:
        """Go on from an iteration to the ones after it, and out of the loop or If."""
        outer, (index, iteration) = seat[:-1], seat[-1]
        frame = self._frames.at(seat)[-1]
        activation = frame.activation
        assert activation is not None
        around: _Masks = {}
        self._rest(outer, index, activation, iteration, masks, around, {})
        return outer, around, index + 1

    def _inner(self, seat: Seat, index: int) -> tuple[Seat, Activation, bool]:
        """Return the last iteration, or the branch, of an operation with bodies, and whether the run is in there."""
        present = self._frames.present
        is_running = len(present) > len(seat) and present[: len(seat)] == seat and present[len(seat)][0] == index
        if is_running:
            inner, frame = present[: len(seat) + 1], self._frames.at(present[: len(seat) + 1])[-1]
        else:
            inner, frame = self._frames.left(seat, index)
        assert frame.activation is not None
        return inner, frame.activation, is_running

    # --- a graph --------------------------------------------------------------------------------------------------

    def _graph(self, seat: Seat, masks: _Masks, begin: int) -> None:
        if self._timeline.machine.pause_requested:
            raise Paused
        frames = self._frames.at(seat)
        frame = frames[-1]
        present = self._frames.present
        last = len(frame.program.operations)
        if seat == present[: len(seat)]:  # as far as the run has come
            last = present[len(seat)][0] + 1 if len(present) > len(seat) else frame.pc
        for index in range(begin, last):
            operation = frame.program.operations[index]
            if not any(slot in masks and masks[slot].any() for slot in operation.inputs):
                continue
            if operation.plans:
                self._through_body(seat, index, operation, masks)
            else:
                self._through(frame, operation, masks)
            for output, slot in enumerate(operation.outputs):
                if slot in masks and masks[slot].any():
                    self._note(frames, operation, output, masks[slot])

    def _note(self, frames: list[Frame], operation: Operation, output: int, mask: Array) -> None:
        named = output if len(operation.outputs) > 1 else None
        location = location_of(frames, self._file, operation.layer, named)
        outer = tuple(one.iteration for one in location.path[:-1] if one.iteration is not None)
        key = (id(frames[-1].program), operation.outputs[output], outer)
        known = self._uses.get(key)
        if known is not None:
            self._uses[key] = ElementUse(
                known.location, known.element, known.count, known.size, known.times + 1, location.iteration
            )
            return
        element = tuple(int(at) for at in np.argwhere(mask)[0])
        self._uses[key] = ElementUse(location, element, int(mask.sum()), int(mask.size), 1, location.iteration)

    def _through(self, frame: Frame, operation: Operation, masks: _Masks) -> None:
        values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
        results = [np.asarray(frame.values[slot]) for slot in operation.outputs]
        size = sum(0 if value is None else np.size(value) for value in values)
        function = operation.function
        if operation.kind is not OpKind.KERNEL or function is None or operation.computed_by or size > _LARGEST_RUN:
            for slot, result in zip(operation.outputs, results, strict=True):
                masks[slot] = np.ones(result.shape, bool)
            return
        reached = [np.zeros(result.shape, bool) for result in results]
        changes = [
            changes_of(np.asarray(value), np.flatnonzero(masks[slot]), poisons=False)
            if slot in masks and value is not None
            else []
            for slot, value in zip(operation.inputs, values, strict=True)
        ]
        for way in range(max(map(len, changes))):
            inputs: list[Any] = []
            for value, ways in zip(values, changes, strict=True):
                inputs.append(ways[min(way, len(ways) - 1)].reshape(np.asarray(value).shape) if ways else value)
            self._runs += 1
            try:
                with np.errstate(all="ignore"):
                    found = function(*inputs)
            except Exception:  # with other numbers a kernel may refuse what it has accepted
                continue
            for mask, result, other in zip(
                reached, results, found if operation.several_outputs else (found,), strict=False
            ):
                mask |= _differing(result, np.asarray(other))
        for slot, mask in zip(operation.outputs, reached, strict=True):
            if mask.any():
                masks[slot] = mask

    # --- bodies ---------------------------------------------------------------------------------------------------

    def _through_body(self, seat: Seat, index: int, operation: Operation, masks: _Masks) -> None:
        inner, activation, is_running = self._inner(seat, index)
        plan = activation.plan
        if isinstance(plan, BranchPlan):
            inside = {slot: masks[operation.inputs[k]] for k, slot in plan.inputs if operation.inputs[k] in masks}
            if operation.inputs[0] in masks:
                self._decide(operation, "condition", seat)
            self._graph(inner, inside, 0)
            for output, slot in plan.outputs if not is_running else ():
                if slot in inside:
                    masks[operation.outputs[output]] = inside[slot]
            return
        for what, at in (("trip count", plan.trip_count), ("condition", plan.condition)):
            if at is not None and operation.inputs[at] in masks:
                self._decide(operation, what, seat)
        given = {k: masks[slot] for k, slot in enumerate(operation.inputs) if slot in masks}
        around: _Masks = {}
        self._rest(seat, index, activation, None, {}, around, given)
        masks.update(around)

    def _decide(self, operation: Operation, what: str, seat: Seat) -> None:
        iteration = next((number for _, number in reversed(seat) if number is not None), None)
        found = Decision(layer_site(operation.layer, self._file), what, iteration)
        self._decisions.setdefault((operation.layer.id, what), found)

    def _rest(
        self,
        outer: Seat,
        index: int,
        activation: Activation,
        iteration: int | None,
        masks: _Masks,
        around: _Masks,
        given: dict[int, Array],
    ) -> None:
        """Follow what was reached through the iterations behind one (None: all), and to the outputs of the loop."""
        plan, operation = activation.plan, activation.operation
        _inner, ended, is_running = self._inner(outer, index)
        if isinstance(plan, BranchPlan):
            given_out = () if is_running else plan.outputs
            around.update({operation.outputs[output]: masks[slot] for output, slot in given_out if slot in masks})
            return
        pieces: dict[int, dict[int, Array]] = {}
        first = 0 if iteration is None else iteration
        for number in range(first, ended.iteration + 1):
            seat: Seat = (*outer, (index, number))
            frame = self._frames.at(seat)[-1]
            if number > first or iteration is None:
                masks = self._handed_in(plan, ended, number, masks if number > first else None, given, frame)
                self._graph(seat, masks, 0)
            if plan.condition_result in masks:
                self._decide(operation, "condition", seat)
            for place, entry in enumerate(plan.concatenated):
                if entry.result in masks:
                    pieces.setdefault(place, {})[number] = masks[entry.result]
        if not is_running:
            self._leave(outer, ended, masks, pieces, around)

    def _leave(
        self,
        outer: Seat,
        ended: Activation,
        masks: _Masks,
        pieces: dict[int, dict[int, Array]],
        around: _Masks,
    ) -> None:
        """Follow what was reached in the last iteration, and the pieces of all, to the outputs of the loop."""
        plan, operation = ended.plan, ended.operation
        assert isinstance(plan, LoopPlan), "it has pieces"
        outers = self._frames.at(outer)[-1].values
        for last in plan.last_values:
            slot = operation.outputs[last.output]
            if last.result in masks:
                around[slot] = _as(masks[last.result], np.shape(outers[slot]))
        for place, found in pieces.items():
            slot = operation.outputs[plan.concatenated[place].output]
            around[slot] = _joined(ended, plan, place, found, np.shape(outers[slot]))

    def _handed_in(
        self,
        plan: LoopPlan,
        activation: Activation,
        iteration: int,
        before: _Masks | None,
        given: dict[int, Array],
        frame: Frame,
    ) -> _Masks:
        """Return what was reached of the Parameters of an iteration."""
        masks: _Masks = {}
        for merged in plan.merged:
            source = (
                given.get(merged.input) if iteration == 0 else None if before is None else before.get(merged.result)
            )
            if source is not None and source.any():
                masks[merged.parameter] = _as(source, np.shape(frame.values[merged.parameter]))
        for invariant in plan.invariant:
            if invariant.input in given:
                shape = np.shape(frame.values[invariant.parameter])
                masks[invariant.parameter] = _as(given[invariant.input], shape)
        for sliced in plan.sliced:
            if sliced.input not in given:
                continue
            walk = next(one for one in activation.slices if one.parameter == sliced.parameter).walk
            part = given[sliced.input][(slice(None),) * walk.axis + (slice(*walk.range(iteration)),)]
            if part.any():
                masks[sliced.parameter] = part
        return masks


def _joined(
    activation: Activation, plan: LoopPlan, place: int, found: dict[int, Array], shape: tuple[int, ...]
) -> Array:
    """Return what was reached of a concatenated output, given what was of the pieces of iterations."""
    entry, scan = plan.concatenated[place], activation.scans[place]
    whole = np.zeros(shape, bool)
    joined = np.atleast_1d(whole)
    axis = normalize_axis(entry.slicing.axis, joined.ndim)
    offset = 0
    for number in joined_iterations(plan, entry, scan):
        piece = scan.piece(number).shape
        size = piece[axis] if piece else 1
        if number in found:
            part = joined[(slice(None),) * axis + (slice(offset, offset + size),)]
            own = part[tuple(slice(extent) for extent in piece)] if piece else part  # it may be filled up with zeros
            own[...] = found[number].reshape(own.shape)
        offset += size
    return whole


def _differing(a: Array, b: Array) -> Array:
    if a.shape != b.shape:
        return np.ones(a.shape, bool)
    return np.zeros(a.shape, bool) if same_values(a, b) else np.asarray(~((a == b) | ((a != a) & (b != b))))


def _as(mask: Array, shape: tuple[int, ...]) -> Array:
    """Return a mask in another shape of as many elements; all where they are not as many."""
    return mask.reshape(shape) if mask.size == int(np.prod(shape)) else np.full(shape, bool(mask.any()))
