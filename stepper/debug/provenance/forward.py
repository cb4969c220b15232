"""The way of an element forward: which elements of which operations it reaches, in which iterations, by perturbation.

The kernel of each operation runs again with what was reached of its inputs changed, in several ways; the elements of
its outputs that differ are reached. So it goes on over back edges, slices, scan outputs, branches and nested bodies.
"""

from __future__ import annotations

from contextlib import closing
from typing import Final

import numpy as np
from msgspec.structs import replace

from stepper.debug.causes.cause import LinkKind
from stepper.debug.causes.crossings import pieces, ports_into, refitted
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat, iterations_of
from stepper.debug.causes.locations import location_of, output_named
from stepper.debug.causes.nan_origins import first_element
from stepper.debug.causes.run_walk import RunWalk
from stepper.debug.causes.why import NoValueYet
from stepper.debug.iterations.loop_runs import address_from_the_first
from stepper.debug.provenance.facts import Decision, ElementUse, OutputUse, Uses
from stepper.debug.provenance.operation_at import OperationAt
from stepper.debug.provenance.question import forward_address
from stepper.debug.provenance.rules import LARGEST_RUN, changes_of, differing
from stepper.debug.story.places import spot_of
from stepper.debug.timeline import Timeline
from stepper.element_types import Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind
from stepper.ir.model import layer_site
from stepper.query.address_syntax import Address, address_given

MOST_LISTED: Final = 1000
"""Elements of an output of the model that are listed."""
_MOST_USES: Final = 10_000

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
        stopped = "" if has_ended else "the run has not ended: that is as far as it has come"
        return _ForwardWalk(timeline, frames).uses(spot.seat, spot.slot, mask, str(asked), stopped)


def _has_value(timeline: Timeline, address: Address) -> bool:
    """True if the run has come to what an address means."""
    with closing(EarlierFrames(timeline)) as frames:
        try:
            spot_of(frames, timeline.machine.compiled, address)
        except NoValueYet:
            return False
    return True


class _ForwardWalk(RunWalk):
    """The way of an element forward through a run."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames) -> None:
        super().__init__(timeline, frames)
        self._uses: dict[tuple[int, int, tuple[int, ...]], ElementUse] = {}
        self._outputs: list[OutputUse] = []
        self._decisions: dict[tuple[int, str], Decision] = {}
        self._runs = 0

    def uses(self, seat: Seat, slot: int, mask: Array, address: str, stopped: str) -> Uses:
        """Return where an element goes, from its frame to the end of the run."""
        stopped = self._ended(lambda: self._walk(seat, {slot: mask}, slot), "all") or stopped
        found = tuple(self._uses.values())[:_MOST_USES]
        return Uses(address, found, tuple(self._outputs), tuple(self._decisions.values()), self._runs, stopped)

    def _walk(self, seat: Seat, masks: _Masks, slot: int) -> None:
        begin = self._frame(seat).program.computed_at.get(slot, -1) + 1
        self._graph(seat, masks, begin)
        while seat:  # on to the iterations after it, and out of the loop or If
            outer, (index, iteration), around = seat[:-1], seat[-1], _Masks()
            if iteration is None:
                _inner, activation, is_running = self._inner(outer, index)
                self._leave_branch(activation, masks, around, is_running=is_running)
            else:
                self._rest(outer, index, iteration, masks, around, {})
            seat, masks = outer, around
            self._graph(seat, masks, index + 1)
        program = self._frame(()).program
        for layer, result in zip(program.graph.results, program.results, strict=True):
            reached = masks.get(result)
            if reached is not None and reached.any():
                places = [tuple(int(at) for at in place) for place in np.argwhere(reached)[:MOST_LISTED]]
                self._outputs.append(OutputUse(layer.name, reached.shape, int(reached.sum()), tuple(places)))

    def _inner(self, seat: Seat, index: int) -> tuple[Seat, Activation, bool]:
        """Return the last iteration, or the branch, of an operation with bodies, and whether the run is in there."""
        present = self._frames.present
        is_running = len(present) > len(seat) and present[: len(seat)] == seat and present[len(seat)][0] == index
        if is_running:
            inner = present[: len(seat) + 1]
            frame = self._frame(inner)
        else:
            inner, frame = self._frames.left(seat, index)
        return inner, frame.active, is_running

    # --- a graph --------------------------------------------------------------------------------------------------

    def _graph(self, seat: Seat, masks: _Masks, begin: int) -> None:
        self._heed_pause()
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
        location = location_of(frames, self._file, operation.layer, output_named(operation.layer, output))
        outer = tuple(one.iteration for one in location.path[:-1] if one.iteration is not None)
        key = (id(frames[-1].program), operation.outputs[output], outer)
        known = self._uses.get(key)
        if known is not None:
            self._uses[key] = replace(known, times=known.times + 1, last=location.iteration)
            return
        self._uses[key] = ElementUse(
            location, first_element(mask), int(mask.sum()), int(mask.size), 1, location.iteration
        )

    def _through(self, frame: Frame, operation: Operation, masks: _Masks) -> None:
        at, function = OperationAt.in_frame(frame, operation, operation.outputs[0]), operation.function
        if operation.kind is not OpKind.KERNEL or function is None or operation.computed_by or at.size > LARGEST_RUN:
            masks.update(
                (slot, np.ones(one.shape, bool)) for slot, one in zip(operation.outputs, at.results, strict=True)
            )
            return
        reached = [np.zeros(result.shape, bool) for result in at.results]
        changes = [
            [one.reshape(value.shape) for one in changes_of(value, np.flatnonzero(masks[slot]), poisons=False)]
            if slot in masks and value is not None
            else []
            for slot, value in zip(operation.inputs, at.values, strict=True)
        ]
        for way in range(max(map(len, changes))):
            both = zip(at.values, changes, strict=True)
            inputs = [ways[min(way, len(ways) - 1)] if ways else value for value, ways in both]
            self._runs += 1
            try:
                with np.errstate(all="ignore"):
                    found = function(*inputs)
            except Exception:  # with other numbers a kernel may refuse what it has accepted
                continue
            for mask, result, other in zip(
                reached, at.results, found if operation.several_outputs else (found,), strict=False
            ):
                mask |= differing(result, np.asarray(other))
        for slot, mask in zip(operation.outputs, reached, strict=True):
            if mask.any():
                masks[slot] = mask

    # --- bodies ---------------------------------------------------------------------------------------------------

    def _through_body(self, seat: Seat, index: int, operation: Operation, masks: _Masks) -> None:
        inner, activation, is_running = self._inner(seat, index)
        plan = activation.plan
        if isinstance(plan, BranchPlan):
            if operation.inputs[0] in masks:
                self._decide(operation, "condition", seat)
            inside = self._handed_in(activation, self._frame(inner), 0, {}, masks)
            self._graph(inner, inside, 0)
            self._leave_branch(activation, inside, masks, is_running=is_running)
            return
        for what, at in (("trip count", plan.trip_count), ("condition", plan.condition)):
            if at is not None and operation.inputs[at] in masks:
                self._decide(operation, what, seat)
        around = _Masks()
        self._rest(seat, index, None, {}, around, {slot: masks[slot] for slot in operation.inputs if slot in masks})
        masks.update(around)

    def _decide(self, operation: Operation, what: str, seat: Seat) -> None:
        iteration = next(reversed(iterations_of(seat)), None)
        found = Decision(layer_site(operation.layer, self._file), what, iteration)
        self._decisions.setdefault((operation.layer.id, what), found)

    @staticmethod
    def _leave_branch(activation: Activation, masks: _Masks, around: _Masks, *, is_running: bool) -> None:
        plan, outputs = activation.plan, activation.operation.outputs
        assert isinstance(plan, BranchPlan)
        if not is_running:
            around.update({outputs[output]: masks[slot] for output, slot in plan.outputs if slot in masks})

    def _rest(
        self, outer: Seat, index: int, iteration: int | None, masks: _Masks, around: _Masks, given: _Masks
    ) -> None:
        """Follow what was reached through the iterations behind one (None: all), and to the outputs of the loop."""
        _inner, ended, is_running = self._inner(outer, index)
        plan, operation = ended.plan, ended.operation
        assert isinstance(plan, LoopPlan)
        found: dict[int, dict[int, Array]] = {}
        first = 0 if iteration is None else iteration
        for number in range(first, ended.iteration + 1):
            seat: Seat = (*outer, (index, number))
            if number > first or iteration is None:
                masks = self._handed_in(ended, self._frame(seat), number, masks, given)
                self._graph(seat, masks, 0)
            if plan.condition_result in masks:
                self._decide(operation, "condition", seat)
            for place, entry in enumerate(plan.concatenated):
                if entry.result in masks:
                    found.setdefault(place, {})[number] = masks[entry.result]
        if not is_running:
            self._leave_loop(outer, ended, masks, found, around)

    def _leave_loop(
        self, outer: Seat, ended: Activation, masks: _Masks, found: dict[int, dict[int, Array]], around: _Masks
    ) -> None:
        """Follow what was reached in the last iteration, and the pieces of all, to the outputs of the loop."""
        plan, operation, outers = ended.plan, ended.operation, self._frame(outer).values
        assert isinstance(plan, LoopPlan)
        for last in plan.last_values:
            slot = operation.outputs[last.output]
            if last.result in masks:
                around[slot] = refitted(masks[last.result], np.shape(outers[slot]))
        for place, reached in found.items():
            slot = operation.outputs[plan.concatenated[place].output]
            around[slot] = np.zeros(np.shape(outers[slot]), bool)
            joined = around[slot].reshape(around[slot].shape or (1,))
            for number, region in pieces(ended, place):
                if number in reached:
                    joined[region] = reached[number].reshape(joined[region].shape)

    @staticmethod
    def _handed_in(activation: Activation, frame: Frame, iteration: int, before: _Masks, given: _Masks) -> _Masks:
        """Return what was reached of the Parameters of a body, from the iteration before and from outside."""
        masks = _Masks()
        for slot, port in ports_into(activation, iteration).items():
            source = (before if port.kind is LinkKind.BACK_EDGE else given).get(port.outer)
            if source is None or not source.any():
                continue
            part = refitted(source, np.shape(frame.values[slot])) if port.region is None else source[port.region]
            if part.any():
                masks[slot] = part
        return masks
