"""The way back of all elements at once: each operation of each iteration is looked at once, in reverse order.

Of each value that matters the elements are kept as levels: how they matter. The way goes from operations to their
inputs by rules.py, over slices, back edges, scan outputs, branches and nested bodies, to the elements of the model's
inputs, of constants, of variables and of what the user has set.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from msgspec import Struct, field

from stepper.debug.causes.cause import LinkKind
from stepper.debug.causes.crossings import ValueSpot, held, pieces, ports_into, producer, refitted
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.run_walk import NOT_KEPT, Differs, RunWalk
from stepper.debug.provenance.operation_at import Dependence, Method, OperationAt, ValueNotKept
from stepper.debug.provenance.rules import dependences, extent_parts
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import ConcatenatedOutput, Scan
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind
from stepper.engine.transitions import is_joined, joined_iterations
from stepper.ir.model import Layer
from stepper.ops.operands import normalize_axis


class Strength(IntEnum):
    """How an element matters: not at all, for whether something ran, for which element it is, or for its value."""

    NONE = 0
    CONTROL = 1
    INDEX = 2
    DATA = 3


Levels = Array
"""A `Strength` for each element, as uint8."""
_MOST_SINGLE: Final = 64
_MOST_RUNS: Final = 20_000
"""Kernel runs for operations without a rule, one with large tensors counting for several; then whole tensors matter."""
_ELEMENTS_OF_A_RUN: Final = 2_000


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
"""What is wanted of a slot: of its elements, and of its extents."""


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

    def give(self, slot: int, found: _Found, shape: tuple[int, ...]) -> None:
        """Want of a slot, which holds a tensor of this shape, what was wanted of one of as many elements."""
        levels, axes = found
        if levels is not None:
            self.want(slot, refitted(levels, shape))
        if axes is not None:
            self.want(slot, refitted(axes, (len(shape),)), is_shape=True)


class MaskWalk(RunWalk):
    """One way back, over at most so many operations. `differs`: only what differs from a reference is followed."""

    def __init__(
        self,
        timeline: Timeline,
        frames: EarlierFrames,
        differs: Differs | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__(timeline, frames, differs)
        self._trail, self._most = Trail(), most
        self._spent = 0

    def trail(self, spot: ValueSpot) -> Trail:
        """Return what an element of a value depends on, or an extent of it; without one what all extents do.

        Of a NaN or Inf it is what that is made of, not what says where from, or whether something ran.
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

    def end_of(self, outer: Seat, inner: Seat | None, activation: Activation) -> Trail:
        """Return what the number of iterations of a loop that has ended depends on."""
        wants = _Wants()

        def walk() -> None:
            place = self._frame(outer).program.operations.index(activation.operation)
            self._loop(outer, place, {}, wants, None if inner is None else activation.iteration, asks_end=True)
            self._outward(outer, wants, place)

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
            activation = self._frame(seat).activation
            assert activation is not None
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
        for slot in wants.slots() if self._edits else ():
            if self._is_edited(frame, slot):
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
        for slot, (levels, axes) in zip(operation.outputs, found, strict=True):
            try:
                at = OperationAt.in_frame(frame, operation, slot)
            except ValueNotKept:
                self._trail.stopped = NOT_KEPT
                return
            self._extents(at, [] if axes is None else axes, wants)
            if levels is None or not levels.any():
                continue
            if at.type == "ShapeOf" and self._differs is None:
                wants.want(operation.inputs[0], levels, is_shape=True)
            for level in (Strength.DATA, Strength.INDEX, Strength.CONTROL):
                mask = levels == level
                if mask.any():
                    self._elements(seat, at, mask, level, wants)
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
        for part in parts if self._differs is None else self._differing(seat, at, parts):
            own = min(level, Strength.INDEX) if part.is_index else level
            wants.want(at.operation.inputs[part.input], part.mask.astype(np.uint8) * np.uint8(own))

    def _differing(self, seat: Seat, at: OperationAt, parts: list[Dependence]) -> list[Dependence]:
        """Return the parts that differ from the reference; all where none does: the difference is born here."""
        assert self._differs is not None
        found, is_known = [], True
        for part in parts:
            slot = at.operation.inputs[part.input]
            other = self._differs(seat, slot, at.value(part.input))
            if other is None and self._frame(seat).program.template[slot] is not None:
                continue
            if other is None:
                is_known = False
                found.append(part)
            elif (both := part.mask & other).any():
                found.append(part._replace(mask=both))
        return found if found or not is_known else parts

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
        if isinstance(plan, BranchPlan):
            inside = _Wants()
            for output, slot in plan.outputs:
                inside.give(slot, found[output], np.shape(frame.values[slot]))
            strongest = max(int(one.max(initial=0)) for both in found for one in both if one is not None)
            self._decides(seat, operation.inputs[0], wants, min(strongest, Strength.CONTROL))
            self._branch(inner, inside, wants, len(frame.program.operations))
            return
        if last < 0:  # last values of a loop that ran no iteration are what they began with
            inputs = {merged.parameter: operation.inputs[merged.input] for merged in plan.merged}
            for one in plan.last_values:
                if one.merged in inputs:
                    slot = inputs[one.merged]
                    wants.give(slot, found[one.output], np.shape(self._value(seat, slot)))
            self._control_inputs(seat, operation, plan, wants)
            return
        inside_of: dict[int, _Wants] = defaultdict(_Wants)
        asks_end = False
        for one in plan.last_values:
            if any(levels is not None for levels in found[one.output]):
                inside_of[last].give(one.result, found[one.output], np.shape(frame.values[one.result]))
                asks_end = True
        for place, entry in enumerate(plan.concatenated):
            asks_end = self._into_pieces(activation, place, entry, found[entry.output], inside_of) or asks_end
        if inside_of or asks_end:
            self._loop(seat, index, inside_of, wants, last if asks_end else max(inside_of), asks_end=asks_end)

    @staticmethod
    def _into_pieces(
        activation: Activation, place: int, entry: ConcatenatedOutput, found: _Found, inside_of: dict[int, _Wants]
    ) -> bool:
        """Want of each iteration what is wanted of its piece. Return True if the number of all pieces matters, too."""
        asks_end, (levels, axes) = False, found
        plan, scan = activation.plan, activation.scans[place]
        assert isinstance(plan, LoopPlan)
        if axes is not None:
            if is_joined(plan, entry, scan):
                asks_end = bool(axes[normalize_axis(entry.slicing.axis, axes.size)])
            for iteration in _pieces_apart(plan, entry, scan):
                inside_of[iteration].want(entry.result, axes, is_shape=True)
        if levels is None:
            return asks_end
        for iteration, region in pieces(activation, place):
            part = np.atleast_1d(levels)[region]
            if part.any():
                inside_of[iteration].want(entry.result, part.reshape(scan.piece(iteration).shape))
        return asks_end or entry.slicing.stride < 0

    def _branch(self, inner: Seat, inside: _Wants, around: _Wants, upto: int) -> None:
        self._graph(inner, inside, upto)
        self._constants(inner, inside)
        self._hand_out(inner, inside, around, {})
        activation = self._frame(inner).activation
        assert activation is not None
        self._decides(inner[:-1], activation.operation.inputs[0], around, Strength.CONTROL)

    def _control_inputs(self, seat: Seat, operation: Operation, plan: LoopPlan, around: _Wants) -> None:
        """Want what says before a loop how often it runs: trip count, condition, the lengths of what is cut."""
        for index in (plan.trip_count, plan.condition):
            if index is not None:
                self._decides(seat, operation.inputs[index], around, Strength.CONTROL)
        for sliced in plan.sliced if self._differs is None else ():
            slot = operation.inputs[sliced.input]
            axes = np.zeros(np.ndim(self._value(seat, slot)), np.uint8)
            axes[normalize_axis(sliced.slicing.axis, axes.size)] = Strength.CONTROL
            around.want(slot, axes, is_shape=True)

    def _decides(self, seat: Seat, slot: int, wants: _Wants, level: int) -> None:
        """Want a value that decides whether something runs; with a reference only where that is another one there."""
        value = self._value(seat, slot)
        other = None if self._differs is None else self._differs(seat, slot, np.asarray(value))
        if other is None or other.any():
            wants.want(slot, np.full(np.shape(value), level, np.uint8))

    def _loop(
        self,
        outer: Seat,
        index: int,
        inside_of: dict[int, _Wants],
        around: _Wants,
        begin: int | None,
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
        if begin is None or begin < 0:
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
        activation = self._frame(seat).activation
        assert activation is not None
        outer, (index, iteration) = seat[:-1], seat[-1]
        ports = ports_into(activation, iteration or 0)
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


def _pieces_apart(plan: LoopPlan, entry: ConcatenatedOutput, scan: Scan) -> Iterable[int]:
    """Return the iterations whose pieces have a shape of their own; of those that have the same the first."""
    iterations = sorted(joined_iterations(plan, entry, scan))
    shapes = [scan.piece(iteration).shape for iteration in iterations]
    if len(set(shapes)) >= 64:
        return iterations
    return [one for place, one in enumerate(iterations) if shapes[place] not in shapes[:place]]


def _at_fault(at: OperationAt, parts: list[Dependence]) -> list[Dependence]:
    """Return the parts that are not finite; all where none is, for then a NaN or Inf is born here."""
    bad = []
    for part in parts:
        value = at.value(part.input)
        if value.dtype in FLOATING and (both := part.mask & ~np.isfinite(value)).any():
            bad.append(part._replace(mask=both))
    return bad or parts
