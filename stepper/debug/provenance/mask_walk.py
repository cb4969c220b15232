"""The walks of all elements at once, as masks: back to what an element depends on, and forward to what it reaches.

Back, the elements of each value that matter are kept as levels: how they matter. The way goes from operations to their
inputs by rules.py. Forward, the kernel of each operation runs again with what was reached of its inputs changed, in
several ways; the elements of its outputs that differ are reached.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from enum import IntEnum

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepper.debug.causes.cause import LinkKind
from stepper.debug.causes.nan_origins import first_element
from stepper.debug.causes.run_walk import (
    NOT_KEPT,
    EarlierFrames,
    EndedLoop,
    ReferenceSlots,
    RunWalk,
    Seat,
    ValueSpot,
    WayOut,
    held,
    iterations_of,
    ports_into,
    producer,
    refitted,
    way_out,
)
from stepper.debug.loop_runs import address_from_the_first
from stepper.debug.provenance.dependence_rules import LARGEST_RUN, changes_of, dependences, extent_parts
from stepper.debug.provenance.operation_at import (
    Dependence,
    Method,
    OperationAt,
    ValueNotKept,
    differing,
    ensure_kept,
    location_of,
    output_named,
)
from stepper.debug.provenance.question import NoValueYet, forward_address, spot_of
from stepper.debug.story.story_facts import Decision, ElementUse, OutputUse, Uses
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array, Indices, Shape
from stepper.engine.frames import Activation, Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind
from stepper.ir.model import Layer, layer_site
from stepper.ops.operands import normalize_axis
from stepper.query.address_syntax import Address, address_given


class Strength(IntEnum):
    """How an element matters: not at all, for whether something ran, for which element it is, or for its value."""

    NONE = 0
    CONTROL = 1
    INDEX = 2
    DATA = 3


_STRONGEST_FIRST = (Strength.DATA, Strength.INDEX, Strength.CONTROL)
_INDEX = int(Strength.INDEX)

Levels = Array
"""A `Strength` for each element, as uint8."""
_MOST_SINGLE = 64
_MOST_RUNS = 20_000
"""Kernel runs for operations without a rule, one with large tensors counting for several; then whole tensors matter."""
_ELEMENTS_OF_A_RUN = 2_000


class SourceKind(IntEnum):
    """End of a way back."""

    INPUT = 0
    CONSTANT = 1
    EDIT = 2
    VARIABLE = 3


class ReachedTensor(Struct, eq=False):
    """A tensor at which the way back ends; `levels` says how which of its elements matter, `axes` which extents."""

    kind: SourceKind
    layer: Layer
    output: int
    value: Array
    levels: Levels
    axes: Levels
    slot: int


class Trail(Struct, eq=False):
    """All that a way back came to. `steps` counts the operations that were looked at, `rules` how often which one held.

    `stopped` says why it ended early.
    """

    reached: dict[tuple[int, int, int], ReachedTensor] = field(default_factory=dict)
    rules: Counter[tuple[str, Method]] = field(default_factory=Counter)
    steps: int = 0
    kernel_runs: int = 0
    stopped: str = ""


_Found = tuple[Levels | None, Levels | None]
"""Levels of a slot: of its elements, and of its extents."""


class _Wants(dict[tuple[int, bool], Levels]):
    """Levels of what is wanted of the slots of a frame: of elements, and (True) of extents, by axis."""

    def want(self, slot: int, levels: Levels, is_shape: bool = False) -> None:
        if is_shape and not levels.any():
            return
        known = self.get((slot, is_shape))
        self[slot, is_shape] = levels if known is None else np.maximum(known, levels)

    def slots(self) -> set[int]:
        return {slot for slot, _ in self}

    def take(self, slot: int) -> _Found:
        return self.pop((slot, False), None), self.pop((slot, True), None)

    def give(self, slot: int, found: _Found, shape: Shape) -> None:
        """Want of a slot, which holds a tensor of this shape, what was wanted of one of as many elements."""
        levels, axes = found
        if levels is not None:
            self.want(slot, refitted(levels, shape))
        if axes is not None:
            self.want(slot, refitted(axes, (len(shape),)), is_shape=True)


class MaskWalk(RunWalk):
    """Walk back over at most so many operations; follow only what differs from a `reference`."""

    def __init__(
        self,
        timeline: Timeline,
        frames: EarlierFrames,
        reference: ReferenceSlots | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__(timeline, frames, reference)
        self._trail, self._most = Trail(), most
        self._spent = 0

    def trail(self, spot: ValueSpot) -> Trail:
        """Return what an element of a value depends on, or an extent of it.

        Without an element, return what all extents depend on. A NaN or Inf depends only on the elements that made it,
        not on elements that say where from, or whether something ran.
        """
        wants, frame = _Wants(), self._frame(spot.seat)
        levels = np.zeros(held(frame, spot).shape, np.uint8)
        levels[... if spot.element is None else spot.element] = Strength.DATA
        wants.want(spot.slot, levels, spot.is_shape)
        paused = self._ended(lambda: self._outward(spot.seat, wants, len(frame.program.operations)), "all")
        self._trail.stopped = paused or self._trail.stopped
        for one in self._trail.reached.values() if self._is_bad(spot) else ():
            one.levels = np.where(one.levels == Strength.DATA, one.levels, np.uint8(0))
            one.axes = np.zeros_like(one.axes)
        return self._trail

    def end_of(self, ended: EndedLoop) -> Trail:
        """Return what the number of iterations of a loop that has ended depends on."""
        wants = _Wants()

        def walk() -> None:
            place = self._frame(ended.outer).program.operations.index(ended.activation.operation)
            self._loop(ended.outer, place, {}, wants, ended.activation.iteration, asks_end=True)
            self._outward(ended.outer, wants, place)

        self._trail.stopped = self._ended(walk, "all") or self._trail.stopped
        for one in self._trail.reached.values():  # all that matters does so for whether an iteration ran
            one.levels, one.axes = (
                np.where(levels > 0, np.uint8(Strength.DATA), np.uint8(0)) for levels in (one.levels, one.axes)
            )
        return self._trail

    # --- a graph --------------------------------------------------------------------------------------------------

    def _outward(self, seat: Seat, wants: _Wants, upto: int) -> None:
        """Follow what is wanted of a frame through it, and through all that is around it."""
        while seat:
            outer, (index, iteration) = seat[:-1], seat[-1]
            around = _Wants()
            if iteration is None:
                self._branch(seat, wants, around, upto)
            else:
                self._loop(outer, index, {iteration: wants}, around, iteration, upto=upto)
            seat, wants, upto = outer, around, index
        self._graph(seat, wants, upto)
        self._constants(seat, wants)
        for slot in sorted(wants.slots()):  # the inputs of the model that were reached
            self._reach(SourceKind.INPUT, self._frame(seat), slot, wants.take(slot))

    def _graph(self, seat: Seat, wants: _Wants, upto: int) -> None:
        """Follow what is wanted through the operations of a frame; what is left are Parameters and constants."""
        frame = self._frame(seat)
        self._heed_pause()
        self._end_at_edits(frame, wants)
        program = frame.program
        while indices := [at for slot, _ in wants if (at := program.computed_at.get(slot)) is not None]:
            index = max(indices)
            operation = program.operations[index]
            found = [wants.take(slot) for slot in operation.outputs]
            if index >= upto:
                continue
            if operation.plans:
                self._into(seat, index, operation, found, wants)
            else:
                self._through(seat, frame, operation, found, wants)
            self._end_at_edits(frame, wants)
        for operation in reversed(program.folded):
            if wants.slots() & set(operation.outputs):
                self._through(seat, frame, operation, [wants.take(slot) for slot in operation.outputs], wants)

    def _end_at_edits(self, frame: Frame, wants: _Wants) -> None:
        for slot in wants.slots() if self._frames.edits else ():
            if self._frames.edit(frame, slot) is not None:
                self._reach(SourceKind.EDIT, frame, slot, wants.take(slot))

    def _constants(self, seat: Seat, wants: _Wants) -> None:
        """Note the constants that were reached, and want no more of them."""
        frame = self._frame(seat)
        for slot in wants.slots():
            if frame.program.template[slot] is not None:
                self._reach(SourceKind.CONSTANT, frame, slot, wants.take(slot))

    def _reach(self, kind: SourceKind, frame: Frame, slot: int, found: _Found) -> None:
        value = np.asarray(frame.values[slot])
        levels = np.zeros(value.shape, np.uint8) if found[0] is None else found[0]
        axes = np.zeros(value.ndim, np.uint8) if found[1] is None else found[1]
        if not levels.any() and not axes.any():
            return
        key = (kind, id(frame.program), slot)
        known = self._trail.reached.get(key)
        if known is not None:
            known.levels, known.axes = np.maximum(known.levels, levels), np.maximum(known.axes, axes)
            return
        layer, output = producer(frame.program, slot)
        self._trail.reached[key] = ReachedTensor(kind, layer, output, value, levels, axes, slot)

    # --- an operation ---------------------------------------------------------------------------------------------

    def _through(self, seat: Seat, frame: Frame, operation: Operation, found: Sequence[_Found], wants: _Wants) -> None:
        self._trail.steps += 1
        if self._most is not None and self._trail.steps > self._most:
            raise ValueNotKept  # no further value is asked for
        try:
            ensure_kept(frame, operation)
        except ValueNotKept:
            self._trail.stopped = NOT_KEPT
            return
        for slot, (levels, axes) in zip(operation.outputs, found, strict=True):
            at = OperationAt.in_frame(frame, operation, slot)
            self._extents(at, [] if axes is None else axes, wants)
            counts = (0,) if levels is None else np.bincount(levels.ravel(), minlength=len(Strength)).tolist()
            if levels is None or not any(counts[1:]):
                continue
            if at.type == "ShapeOf" and self._reference is None:
                wants.want(operation.inputs[0], levels, is_shape=True)
            for level in _STRONGEST_FIRST:
                if counts[level]:
                    self._elements(seat, at, levels == level, level, wants)
            if operation.kind is OpKind.STATEFUL and operation.state_key:
                self._reach(SourceKind.VARIABLE, frame, slot, (levels, None))

    def _elements(self, seat: Seat, at: OperationAt, mask: Array, level: Strength, wants: _Wants) -> None:
        value = at.result
        bad = mask & ~np.isfinite(value) if value.dtype in FLOATING else np.zeros((), bool)
        rest = mask & ~bad
        if rest.any():
            self._follow(seat, at, self._dependences(at, rest), level, wants)
        places = np.flatnonzero(bad)
        groups = [places] if places.size > _MOST_SINGLE else [places[k : k + 1] for k in range(places.size)]
        for group in groups:
            one = np.zeros(bad.size, bool)
            one[group] = True
            parts = self._dependences(at, one.reshape(bad.shape))
            self._follow(seat, at, _at_fault(at, parts), level, wants)

    def _dependences(self, at: OperationAt, mask: Array) -> list[Dependence]:
        each = 1 + at.size // _ELEMENTS_OF_A_RUN
        found = dependences(at, mask, max(0, _MOST_RUNS - self._spent) // each)
        self._spent += each * found.kernel_runs if found.method is Method.PERTURBED else 0
        self._trail.rules[at.type, found.method] += 1
        self._trail.kernel_runs += found.kernel_runs
        return found.found

    def _follow(self, seat: Seat, at: OperationAt, parts: list[Dependence], level: Strength, wants: _Wants) -> None:
        for part in parts if self._reference is None else self._differing(seat, at, parts):
            own = min(level, _INDEX) if part.is_index else level
            wants.want(at.operation.inputs[part.input], part.mask.astype(np.uint8) * np.uint8(own))

    def _differing(self, seat: Seat, at: OperationAt, parts: list[Dependence]) -> list[Dependence]:
        """Return the parts that differ from the reference; none where all that is computed agrees: it begins here."""
        assert self._reference is not None
        found = []
        for part in parts:
            slot = at.operation.inputs[part.input]
            other = self._reference.differs(seat, slot, at.value(part.input))
            if other is None and self._frame(seat).program.template[slot] is not None:
                continue
            if other is None:
                found.append(part)
            elif (both := part.mask & other).any():
                found.append(part._replace(mask=both))
        return found

    def _extents(self, at: OperationAt, axes: Levels | Sequence[int], wants: _Wants) -> None:
        """Follow extents of an output to those of the inputs, and to elements that say them."""
        for axis in np.flatnonzero(axes).tolist():
            found = extent_parts(at, axis)
            for part in found.parts:
                value = at.value(part.input)
                levels = np.zeros(value.ndim if part.is_shape else value.shape, np.uint8)
                levels[part.element] = min(int(axes[axis]), Strength.INDEX) if part.is_index else axes[axis]
                wants.want(at.operation.inputs[part.input], levels, part.is_shape)
            self._trail.rules[at.type, Method.RULE if found.has_rule else Method.WHOLE] += 1

    # --- into a body ----------------------------------------------------------------------------------------------

    def _into(self, seat: Seat, index: int, operation: Operation, found: Sequence[_Found], wants: _Wants) -> None:
        """Follow outputs of a loop or If into it and out again."""
        inner, frame = self._frames.left(seat, index)
        activation = frame.active
        plan, last = activation.plan, activation.iteration
        inside_of: dict[int | None, _Wants] = defaultdict(_Wants)
        asks_end = False
        for output, (levels, axes) in enumerate(found):
            if levels is None and axes is None:
                continue
            way = way_out(activation, output)
            if way.kind is LinkKind.NO_ITERATION and way.pieces:  # it is what the loop began with
                wants.give(way.slot, (levels, axes), np.shape(self._value(seat, way.slot)))
            elif way.axis is None and way.pieces:
                inside_of[way.pieces[0].iteration].give(way.slot, (levels, axes), np.shape(frame.values[way.slot]))
                asks_end = True
            elif isinstance(plan, LoopPlan) and way.axis is not None:
                stride = next(one.slicing.stride for one in plan.concatenated if one.output == output)
                asks_end |= levels is not None and stride < 0
                asks_end |= axes is not None and bool(axes[normalize_axis(way.axis, axes.size)])
                self._into_pieces(way, levels, axes, inside_of)
        if isinstance(plan, BranchPlan):
            strongest = max(int(one.max(initial=0)) for both in found for one in both if one is not None)
            self._decides(seat, operation.inputs[0], wants, min(strongest, Strength.CONTROL))
            self._branch(inner, inside_of[None], wants, len(frame.program.operations))
        elif last < 0:
            self._control_inputs(seat, operation, plan, wants)
        elif inside_of or asks_end:
            inside = {iteration: one for iteration, one in inside_of.items() if iteration is not None}
            self._loop(seat, index, inside, wants, last if asks_end else max(inside), asks_end=asks_end)

    @staticmethod
    def _into_pieces(
        way: WayOut, levels: Levels | None, axes: Levels | None, inside_of: dict[int | None, _Wants]
    ) -> None:
        """Want of each iteration what is wanted of its piece; extents of the first piece of each shape."""
        firsts = dict[Shape, int | None]()
        for iteration, region, shape in way.pieces:
            part = None if levels is None else np.atleast_1d(levels)[region]
            if part is not None and part.any():
                inside_of[iteration].want(way.slot, part.reshape(shape))
        for iteration, _, shape in sorted(way.pieces) if axes is not None else ():
            if not shape:  # one element long whatever it is made of
                continue
            firsts.setdefault(shape, iteration)
        for iteration in firsts.values():
            assert axes is not None
            inside_of[iteration].want(way.slot, axes, is_shape=True)

    def _branch(self, inner: Seat, inside: _Wants, around: _Wants, upto: int) -> None:
        self._graph(inner, inside, upto)
        self._constants(inner, inside)
        self._hand_out(inner, inside, around, {})
        self._decides(inner[:-1], self._frame(inner).active.operation.inputs[0], around, Strength.CONTROL)

    def _control_inputs(self, seat: Seat, operation: Operation, plan: LoopPlan, around: _Wants) -> None:
        """Want what says before a loop how often it runs: trip count, condition, the lengths of what is cut."""
        for index in (plan.trip_count, plan.condition):
            if index is not None:
                self._decides(seat, operation.inputs[index], around, Strength.CONTROL)
        for sliced in plan.sliced if self._reference is None else ():
            slot = operation.inputs[sliced.input]
            axes = np.zeros(np.ndim(self._value(seat, slot)), np.uint8)
            axes[normalize_axis(sliced.slicing.axis, axes.size)] = Strength.CONTROL
            around.want(slot, axes, is_shape=True)

    def _decides(self, seat: Seat, slot: int, wants: _Wants, level: int) -> None:
        """Want a value that decides whether something runs; with a reference only where that is another one there."""
        value = self._value(seat, slot)
        other = None if self._reference is None else self._reference.differs(seat, slot, np.asarray(value))
        if other is None or other.any():
            wants.want(slot, np.full(np.shape(value), level, np.uint8))

    def _loop(
        self,
        outer: Seat,
        index: int,
        inside_of: dict[int, _Wants],
        around: _Wants,
        begin: int,
        *,
        upto: int | None = None,
        asks_end: bool = False,
    ) -> None:
        """Follow what is wanted of iterations back to the first one, and to the inputs of the loop.

        `upto` is of the iteration `begin` (None: all operations). `asks_end`: whether it went on after it matters, too.
        """
        operation = self._frame(outer).program.operations[index]
        plan = operation.plans[0]
        assert isinstance(plan, LoopPlan)
        self._control_inputs(outer, operation, plan, around)
        if begin < 0:
            return
        decides = plan.condition_result
        if decides is not None and plan.program.template[decides] is not None:  # the same in every iteration
            seat: Seat = (*outer, (index, begin))
            constant = _Wants()
            self._decides(seat, decides, constant, Strength.CONTROL)
            self._constants(seat, constant)
            decides = None
        for iteration in range(begin, -1, -1):
            if decides is None and not inside_of:
                return
            wants = inside_of.pop(iteration, None) or _Wants()
            asks = decides is not None and (asks_end or iteration < begin)
            if not wants and not asks:
                continue
            seat = (*outer, (index, iteration))
            if asks and decides is not None:
                self._decides(seat, decides, wants, Strength.CONTROL)
            whole = len(plan.program.operations)
            self._graph(seat, wants, upto if iteration == begin and upto is not None else whole)
            self._constants(seat, wants)
            self._hand_out(seat, wants, around, inside_of)

    def _hand_out(self, seat: Seat, wants: _Wants, around: _Wants, inside_of: dict[int, _Wants]) -> None:
        """Want of the iteration before, or of outside, what is wanted of the Parameters of a body."""
        outer, (index, iteration) = seat[:-1], seat[-1]
        ports = ports_into(self._frame(seat).active, iteration or 0)
        for slot in sorted(wants.slots()):
            (levels, axes), port = wants.take(slot), ports.get(slot)
            if port is None:
                continue
            if port.kind is LinkKind.BACK_EDGE and iteration is not None:
                earlier = np.shape(self._value((*outer, (index, iteration - 1)), port.outer))
                inside_of.setdefault(iteration - 1, _Wants()).give(port.outer, (levels, axes), earlier)
                continue
            shape = np.shape(self._value(outer, port.outer))
            if port.region is not None and levels is not None:
                whole = np.zeros(shape, np.uint8)
                whole[port.region] = levels
                levels = whole
            if port.region is not None and axes is not None:  # as many as the port map takes
                axes = axes.copy()
                axes[len(port.region) - 1] = Strength.NONE
            around.give(port.outer, (levels, axes), shape)


def _at_fault(at: OperationAt, parts: list[Dependence]) -> list[Dependence]:
    """Return the parts that are not finite; all if none is, for then the NaN or Inf starts here."""
    bad = []
    for part in parts:
        value = at.value(part.input)
        if value.dtype in FLOATING and (both := part.mask & ~np.isfinite(value)).any():
            bad.append(part._replace(mask=both))
    return bad or parts


MOST_LISTED = 1000
"""Elements of an output of the model that are listed."""
_MOST_USES = 10_000

_Masks = dict[int, Array]


def uses(timeline: Timeline, address: str | Address) -> Uses:
    """Return where the element at an address goes; without an index where all elements go.

    The present stays. The element is followed as far as the run has come. At the start of the run, or for a value that
    the run has not come to, it is followed as far as the run is known.

    The address may be given as the question `where does x[3] go`. Raise UsageError for what has no value.
    """
    asked = address_given((forward_address(address) or address) if isinstance(address, str) else address)
    asked = address_from_the_first(timeline, asked)
    present, tick = timeline.machine.tick, None
    if present == 0 or not _has_value(timeline, asked):  # where nobody has gone yet what is known of the run is meant
        tick = max(timeline.furthest, present) if timeline.end is None else timeline.end.tick
    has_ended = timeline.machine.finished or (tick is not None and timeline.end is not None)
    with closing(EarlierFrames(timeline, tick, wants_all=True)) as frames:
        spot, _ = spot_of(frames, timeline.machine.compiled, asked)
        value = np.asarray(frames.frame(spot.seat).values[spot.slot])
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
        self._uses: dict[tuple[int, int, Indices], ElementUse] = {}
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
                self._leave(outer, activation, {None: masks}, around, is_running=is_running)
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
        ensure_kept(frame, operation)
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
            self._leave(seat, activation, {None: inside}, masks, is_running=is_running)
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

    def _rest(
        self, outer: Seat, index: int, iteration: int | None, masks: _Masks, around: _Masks, given: _Masks
    ) -> None:
        """Follow what was reached through the iterations behind one (None: all), and to the outputs of the loop."""
        _inner, ended, is_running = self._inner(outer, index)
        plan, operation = ended.plan, ended.operation
        assert isinstance(plan, LoopPlan)
        found: dict[int | None, _Masks] = {}
        first = 0 if iteration is None else iteration
        for number in range(first, ended.iteration + 1):
            seat: Seat = (*outer, (index, number))
            if number > first or iteration is None:
                masks = self._handed_in(ended, self._frame(seat), number, masks, given)
                self._graph(seat, masks, 0)
            if plan.condition_result in masks:
                self._decide(operation, "condition", seat)
            found[number] = {slot: masks[slot] for slot in plan.program.results if slot in masks}
        self._leave(outer, ended, found, around, is_running=is_running)

    def _leave(
        self, outer: Seat, ended: Activation, found: dict[int | None, _Masks], around: _Masks, *, is_running: bool
    ) -> None:
        """Follow what was reached of Results, by iterations, to the outputs of a loop or If that was left."""
        for output, slot in enumerate(() if is_running else ended.operation.outputs):
            way, shape = way_out(ended, output), np.shape(self._frame(outer).values[slot])
            for iteration, region, _ in way.pieces:
                mask = found.get(iteration, {}).get(way.slot)
                if mask is not None and region is None:
                    around[slot] = refitted(mask, shape)
                elif mask is not None:
                    joined = np.atleast_1d(around.setdefault(slot, np.zeros(shape, bool)))
                    joined[region] = mask.reshape(joined[region].shape)

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
