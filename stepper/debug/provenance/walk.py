"""The way back of all elements at once: each operation of each iteration is looked at once, in reverse order.

Of each value that matters the elements are kept as levels: how they matter. The way goes from operations to their
inputs by rules.py, over slices, back edges, scan outputs, branches and nested bodies, to the elements of the model's
inputs, of constants, of variables and of what the user has set.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct, field

from stepper.debug.branches.edits import ConditionEdit, ConstantEdit, TripCountEdit, ValueEdit
from stepper.debug.causes.crossings import producer
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.why import Differs
from stepper.debug.provenance.rules import Dependence, Method, dependences
from stepper.debug.provenance.shapes import shape_parts
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import ConcatenatedOutput, Scan
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind, Program
from stepper.engine.transitions import is_joined, joined_iterations
from stepper.errors import Paused
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
    program: Program
    layer: Layer
    output: int
    value: Array
    levels: Levels
    axes: Levels
    slot: int = -1


class RuleUse(NamedTuple):
    """A type of operation, and how its elements were found."""

    type: str
    method: Method


class Trail(Struct, eq=False):
    """All that a way back came to. `steps` counts the operations that were looked at, `rules` how often which one held.

    `layers` are those of the operations, by iteration; `stopped` says why it ended early.
    """

    reached: dict[tuple[int, int, int], ReachedTensor] = field(default_factory=dict)
    rules: dict[RuleUse, int] = field(default_factory=dict)
    controls: set[tuple[int, str]] = field(default_factory=set)
    steps: int = 0
    kernel_runs: int = 0
    stopped: str = ""


_Found = tuple[Levels | None, Levels | None]
"""What is wanted of a slot: of its elements, and of its extents."""


class _Wants:
    """Levels of what is wanted of the slots of a frame, by element; and of their extents, by axis."""

    def __init__(self) -> None:
        self.levels: dict[int, Levels] = {}
        self.shapes: dict[int, Levels] = {}

    def add(self, slot: int, levels: Levels) -> None:
        known = self.levels.get(slot)
        self.levels[slot] = levels if known is None else np.maximum(known, levels)

    def add_shape(self, slot: int, axes: Levels) -> None:
        known = self.shapes.get(slot)
        if axes.any():
            self.shapes[slot] = axes if known is None else np.maximum(known, axes)

    def slots(self) -> set[int]:
        return set(self.levels) | set(self.shapes)

    def pop(self, slot: int) -> _Found:
        return self.levels.pop(slot, None), self.shapes.pop(slot, None)

    def give(self, slot: int, found: _Found, shape: tuple[int, ...]) -> None:
        """Want of a slot, which holds a tensor of this shape, what was wanted of one of as many elements."""
        levels, of_shape = found
        if levels is not None and levels.size == int(np.prod(shape)):
            self.add(slot, levels.reshape(shape))
        elif levels is not None:
            self.add(slot, np.full(shape, levels.max(initial=0), np.uint8))
        if of_shape is not None and of_shape.size == len(shape):
            self.add_shape(slot, of_shape)
        elif of_shape is not None:
            self.add_shape(slot, np.full(len(shape), of_shape.max(initial=0), np.uint8))

    def __bool__(self) -> bool:
        return bool(self.levels or self.shapes)


class BackwardSlicer:
    """One way back, in frames that replays fetch. `differs`: only what differs from a reference is followed."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, differs: Differs | None = None) -> None:
        self._timeline, self._frames, self._differs = timeline, frames, differs
        edits = [edit for made in timeline.edits.values() for edit in made]
        self._edits = [edit for edit in edits if isinstance(edit, ValueEdit | ConstantEdit)]
        self._control_edits = [edit for edit in edits if isinstance(edit, TripCountEdit | ConditionEdit)]
        self._trail = Trail()
        self._spent = 0

    def trail(self, seat: Seat, slot: int, levels: Levels | None, axes: Levels | None = None) -> Trail:
        """Return what the wanted elements of a value depend on, and its extents along the wanted axes."""
        wants = _Wants()
        if levels is not None:
            wants.add(slot, levels)
        if axes is not None:
            wants.add_shape(slot, axes)
        try:
            self._back(seat, wants)
        except Paused:
            self._timeline.machine.request_pause(wanted=False)
            self._trail.stopped = "paused before all was found"
        return self._trail

    def end_of(self, outer: Seat, inner: Seat | None, activation: Activation) -> Trail:
        """Return what the number of iterations of a loop that has ended depends on."""
        wants = _Wants()
        try:
            index = activation.operation
            place = self._frames.at(outer)[-1].program.operations.index(index)
            self._loop(outer, place, {}, wants, None if inner is None else activation.iteration, asks_end=True)
            self._outward(outer, wants, place)
        except Paused:
            self._timeline.machine.request_pause(wanted=False)
            self._trail.stopped = "paused before all was found"
        return self._trail

    # --- a graph --------------------------------------------------------------------------------------------------

    def _back(self, seat: Seat, wants: _Wants) -> None:
        """Follow what is wanted of a frame through it, and through all that is around it."""
        self._outward(seat, wants, len(self._frames.at(seat)[-1].program.operations))

    def _outward(self, seat: Seat, wants: _Wants, upto: int) -> None:
        while True:
            if not seat:
                self._graph(seat, wants, upto)
                self._ends(seat, wants)
                return
            frame = self._frames.at(seat)[-1]
            activation = frame.activation
            assert activation is not None
            outer, (index, iteration) = seat[:-1], seat[-1]
            around = _Wants()
            if isinstance(activation.plan, LoopPlan):
                assert iteration is not None
                self._loop(outer, index, {iteration: wants}, around, iteration, upto=upto)
            else:
                self._branch(outer, seat, wants, around, upto)
            seat, wants, upto = outer, around, index

    def _graph(self, seat: Seat, wants: _Wants, upto: int) -> None:
        """Follow what is wanted through the operations of a frame; what is left are Parameters and constants."""
        frame = self._frames.at(seat)[-1]
        if self._timeline.machine.pause_requested:
            raise Paused
        self._end_at_edits(frame, wants)
        program = frame.program
        indices = {index for slot in wants.slots() if (index := program.computed_at.get(slot)) is not None}
        while indices:
            index = max(indices)
            indices.discard(index)
            operation = program.operations[index]
            found = [(slot, *wants.pop(slot)) for slot in operation.outputs]
            if index >= upto or not any(levels is not None or axes is not None for _, levels, axes in found):
                continue
            before = wants.slots()
            if operation.plans:
                self._into(seat, index, operation, found, wants)
            else:
                self._through(seat, frame, operation, found, wants)
            new = wants.slots() - before
            self._end_at_edits(frame, wants)
            indices |= {at for slot in new if (at := program.computed_at.get(slot)) is not None}
        for operation in reversed(program.folded):
            found = [(slot, *wants.pop(slot)) for slot in operation.outputs if slot in wants.slots()]
            if found:
                self._through(seat, frame, operation, found, wants)

    def _end_at_edits(self, frame: Frame, wants: _Wants) -> None:
        for edit in self._edits:
            if edit.program is frame.program and frame.values[edit.slot] is edit.value and edit.slot in wants.slots():
                self._reach(SourceKind.EDIT, frame, edit.slot, wants.pop(edit.slot))

    def _ends(self, seat: Seat, wants: _Wants) -> None:
        """Note the inputs of the model that were reached."""
        frame = self._frames.at(seat)[-1]
        self._constants(frame, wants)
        for slot in sorted(wants.slots()):
            self._reach(SourceKind.INPUT, frame, slot, wants.pop(slot))

    def _constants(self, frame: Frame, wants: _Wants) -> None:
        """Note the constants that were reached, and want no more of them."""
        template = frame.program.template
        for slot in [slot for slot in wants.slots() if template[slot] is not None]:
            self._reach(SourceKind.CONSTANT, frame, slot, wants.pop(slot))

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
        self._trail.reached[key] = ReachedTensor(kind, frame.program, layer, output, value, levels, axes, slot)

    # --- an operation ---------------------------------------------------------------------------------------------

    def _through(
        self,
        seat: Seat,
        frame: Frame,
        operation: Operation,
        found: Iterable[tuple[int, Levels | None, Levels | None]],
        wants: _Wants,
    ) -> None:
        self._trail.steps += 1
        values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
        if any(slot >= 0 and value is None for slot, value in zip(operation.inputs, values, strict=True)):
            self._trail.stopped = "what it was computed of was not kept by the run"
            return
        for slot, levels, of_shape in found:
            if of_shape is not None:
                self._shape(frame, operation, slot, of_shape, wants)
            if levels is None or not levels.any():
                continue
            if operation.layer.type == "ShapeOf" and self._differs is None:
                wants.add_shape(operation.inputs[0], levels)
            for level in (Strength.DATA, Strength.INDEX, Strength.CONTROL):
                mask = levels == level
                if mask.any():
                    self._elements(seat, frame, operation, slot, mask, level, wants)
        if operation.kind is OpKind.STATEFUL and operation.state_key:
            results = [(slot, levels) for slot, levels, _ in found if levels is not None]
            for slot, levels in results:
                self._reach(SourceKind.VARIABLE, frame, slot, (levels, None))

    def _elements(
        self, seat: Seat, frame: Frame, operation: Operation, slot: int, mask: Array, level: Strength, wants: _Wants
    ) -> None:
        value = np.asarray(frame.values[slot])
        bad = mask & ~np.isfinite(value) if value.dtype in FLOATING else np.zeros((), bool)
        if not bad.any():
            self._follow(seat, frame, operation, self._dependences(frame, operation, slot, mask), level, wants)
            return
        rest = mask & ~bad
        if rest.any():
            self._follow(seat, frame, operation, self._dependences(frame, operation, slot, rest), level, wants)
        places = np.flatnonzero(bad)
        groups = [places] if places.size > _MOST_SINGLE else [places[k : k + 1] for k in range(places.size)]
        for group in groups:
            one = np.zeros(bad.size, bool)
            one[group] = True
            parts = self._dependences(frame, operation, slot, one.reshape(bad.shape))
            self._follow(seat, frame, operation, _at_fault(frame, operation, parts), level, wants)

    def _dependences(self, frame: Frame, operation: Operation, slot: int, mask: Array) -> list[Dependence]:
        values = [frame.values[one] if one >= 0 else None for one in operation.inputs]
        results = [frame.values[one] for one in operation.outputs]
        each = 1 + sum(np.size(value) for value in values if value is not None) // _ELEMENTS_OF_A_RUN
        left = max(0, _MOST_RUNS - self._spent) // each
        found = dependences(operation, values, results, operation.outputs.index(slot), mask, left)
        self._spent += each * found.kernel_runs if found.method is Method.PERTURBED else 0
        use = RuleUse(operation.layer.type, found.method)
        self._trail.rules[use] = self._trail.rules.get(use, 0) + 1
        self._trail.kernel_runs += found.kernel_runs
        return found.found

    def _follow(
        self,
        seat: Seat,
        frame: Frame,
        operation: Operation,
        parts: list[Dependence],
        level: Strength,
        wants: _Wants,
    ) -> None:
        if self._differs is not None:
            parts = self._differing(seat, frame, operation, parts)
        for part in parts:
            own = min(level, Strength.INDEX) if part.is_index else level
            wants.add(operation.inputs[part.input], part.mask.astype(np.uint8) * np.uint8(own))

    def _differing(self, seat: Seat, frame: Frame, operation: Operation, parts: list[Dependence]) -> list[Dependence]:
        """Return the parts that differ from the reference; all where none does: the difference is born here."""
        assert self._differs is not None
        found, is_known = [], True
        for part in parts:
            slot = operation.inputs[part.input]
            other = self._differs(seat, slot, np.asarray(frame.values[slot]))
            if other is None and frame.program.template[slot] is not None:
                continue
            if other is None:
                is_known = False
                found.append(part)
            elif (both := part.mask & other).any():
                found.append(part._replace(mask=both))
        return found if found or not is_known else parts

    def _shape(self, frame: Frame, operation: Operation, slot: int, axes: Levels, wants: _Wants) -> None:
        """Follow extents of an output to those of the inputs, and to elements that say them."""
        values = [frame.values[one] if one >= 0 else None for one in operation.inputs]
        output, shape = operation.outputs.index(slot), np.shape(frame.values[slot])
        for axis in np.flatnonzero(axes).tolist():
            level = Strength(int(axes[axis]))
            found = shape_parts(operation, values, output, shape, axis)
            for part in found.parts:
                own = min(level, Strength.INDEX) if part.is_index else level
                value = np.asarray(values[part.input])
                levels = np.zeros(value.ndim if part.is_shape else value.shape, np.uint8)
                levels[part.element] = own
                add = wants.add_shape if part.is_shape else wants.add
                add(operation.inputs[part.input], levels)
            use = RuleUse(operation.layer.type, Method.RULE if found.has_rule else Method.WHOLE)
            self._trail.rules[use] = self._trail.rules.get(use, 0) + 1

    # --- into a body ----------------------------------------------------------------------------------------------

    def _into(
        self,
        seat: Seat,
        index: int,
        operation: Operation,
        found: list[tuple[int, Levels | None, Levels | None]],
        wants: _Wants,
    ) -> None:
        """Follow outputs of a loop or If into it and out again."""
        inner, frame = self._frames.left(seat, index)
        activation = frame.activation
        assert activation is not None
        plan = activation.plan
        wanted = {operation.outputs.index(slot): (levels, shape) for slot, levels, shape in found}
        if isinstance(plan, BranchPlan):
            inside = _Wants()
            for output, slot in plan.outputs:
                if output in wanted:
                    inside.give(slot, wanted[output], np.shape(frame.values[slot]))
            strongest = min(_strongest(wanted.values()), Strength.CONTROL)
            self._decides(seat, operation.inputs[0], wants, strongest)
            self._branch(seat, inner, inside, wants, len(frame.program.operations))
            return
        last = activation.iteration
        if last < 0:
            self._not_run(seat, operation, plan, wanted, wants)
            return
        inside_of: dict[int, _Wants] = {}
        asks_end = False
        for one in plan.last_values:
            if one.output in wanted:
                shape = np.shape(frame.values[one.result])
                inside_of.setdefault(last, _Wants()).give(one.result, wanted[one.output], shape)
                asks_end = True
        asks_end = self._into_scans(activation, plan, wanted, inside_of) or asks_end
        if inside_of or asks_end:
            self._loop(seat, index, inside_of, wants, last if asks_end else max(inside_of), asks_end=asks_end)

    @staticmethod
    def _into_scans(
        activation: Activation,
        plan: LoopPlan,
        wanted: dict[int, _Found],
        inside_of: dict[int, _Wants],
    ) -> bool:
        """Want of each iteration what is wanted of its pieces. Return True if the number of all pieces matters, too."""
        asks_end = False
        for place, entry in enumerate(plan.concatenated):
            levels, of_shape = wanted.get(entry.output, (None, None))
            if of_shape is not None:
                scan = activation.scans[place]
                if is_joined(plan, entry, scan):
                    asks_end = asks_end or bool(of_shape[normalize_axis(entry.slicing.axis, of_shape.size)])
                for iteration in _pieces_apart(plan, entry, scan):
                    inside_of.setdefault(iteration, _Wants()).add_shape(entry.result, of_shape)
            if levels is not None:
                asks_end = asks_end or entry.slicing.stride < 0
                for iteration, piece in _pieces(activation, place, plan, levels):
                    inside_of.setdefault(iteration, _Wants()).add(entry.result, piece)
        return asks_end

    def _value(self, seat: Seat, slot: int) -> Any:
        return self._frames.at(seat)[-1].values[slot]

    def _not_run(
        self,
        seat: Seat,
        operation: Operation,
        plan: LoopPlan,
        wanted: dict[int, _Found],
        wants: _Wants,
    ) -> None:
        """Follow last values of a loop that ran no iteration to what they began with."""
        inputs = {merged.parameter: merged.input for merged in plan.merged}
        for one in plan.last_values:
            if one.output in wanted and one.merged in inputs:
                slot = operation.inputs[inputs[one.merged]]
                wants.give(slot, wanted[one.output], np.shape(self._value(seat, slot)))
        self._control_inputs(seat, operation, plan, wants, Strength.CONTROL)

    def _branch(self, outer: Seat, inner: Seat, inside: _Wants, around: _Wants, upto: int) -> None:
        self._graph(inner, inside, upto)
        frame = self._frames.at(inner)[-1]
        self._constants(frame, inside)
        activation = frame.activation
        assert activation is not None and isinstance(activation.plan, BranchPlan)
        for index, slot in activation.plan.inputs:
            if slot in inside.slots():
                given = activation.operation.inputs[index]
                around.give(given, inside.pop(slot), np.shape(self._value(outer, given)))
        self._decides(outer, activation.operation.inputs[0], around, Strength.CONTROL)

    def _control_inputs(
        self, seat: Seat, operation: Operation, plan: LoopPlan, around: _Wants, level: Strength
    ) -> None:
        """Want what says before a loop how often it runs: trip count, condition, the lengths of what is cut."""
        for index in (plan.trip_count, plan.condition):
            if index is not None:
                self._decides(seat, operation.inputs[index], around, level)
        for sliced in plan.sliced:
            slot = operation.inputs[sliced.input]
            axes = np.zeros(np.ndim(self._value(seat, slot)), np.uint8)
            axes[normalize_axis(sliced.slicing.axis, axes.size)] = level
            if self._differs is None:
                around.add_shape(slot, axes)

    def _decides(self, seat: Seat, slot: int, wants: _Wants, level: int) -> None:
        """Want a value that decides whether something runs; with a reference only where that is another one there."""
        value = self._value(seat, slot)
        other = None if self._differs is None else self._differs(seat, slot, np.asarray(value))
        if other is None or other.any():
            wants.add(slot, np.full(np.shape(value), level, np.uint8))

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
        operation = self._frames.at(outer)[-1].program.operations[index]
        plan = operation.plans[0]
        assert isinstance(plan, LoopPlan)
        self._control_inputs(outer, operation, plan, around, Strength.CONTROL)
        for edit in self._control_edits:
            if edit.program is plan.program:
                self._trail.controls.add((int(operation.layer.id), type(edit).__name__))
        if begin is None or begin < 0:
            return
        carried = {merged.parameter: merged for merged in plan.merged}
        decides = plan.condition_result
        if decides is not None and plan.program.template[decides] is not None:  # the same in every iteration
            seat: Seat = (*outer, (index, begin))
            constant = _Wants()
            self._decides(seat, decides, constant, Strength.CONTROL)
            self._constants(self._frames.at(seat)[-1], constant)
            decides = None
        for iteration in range(begin, -1, -1):
            if decides is None and not inside_of:
                return
            wants = inside_of.pop(iteration, None) or _Wants()
            asks = decides is not None and (asks_end or iteration < begin)
            if not wants and not asks:
                continue
            seat = (*outer, (index, iteration))
            frame = self._frames.at(seat)[-1]
            if asks and decides is not None:
                self._decides(seat, decides, wants, Strength.CONTROL)
            last = upto if iteration == begin and upto is not None else len(frame.program.operations)
            self._graph(seat, wants, last)
            self._constants(frame, wants)
            self._hand_out(seat, operation, plan, frame, wants, around, carried, inside_of)

    def _hand_out(
        self,
        seat: Seat,
        operation: Operation,
        plan: LoopPlan,
        frame: Frame,
        wants: _Wants,
        around: _Wants,
        carried: dict[int, Any],
        inside_of: dict[int, _Wants],
    ) -> None:
        """Want of the iteration before, or of outside, what is wanted of the Parameters of an iteration."""
        activation, outer = frame.activation, seat[:-1]
        assert activation is not None
        index, iteration = seat[-1]
        assert iteration is not None
        for slot in sorted(wants.slots()):
            merged = carried.get(slot)
            found = wants.pop(slot)
            if merged is not None and iteration > 0:
                earlier = self._frames.at((*outer, (index, iteration - 1)))[-1]
                before = inside_of.setdefault(iteration - 1, _Wants())
                before.give(merged.result, found, np.shape(earlier.values[merged.result]))
            elif merged is not None:
                given = operation.inputs[merged.input]
                around.give(given, found, np.shape(self._value(outer, given)))
            else:
                self._into_sliced_or_invariant(outer, operation, plan, activation, slot, found, around, iteration)

    def _into_sliced_or_invariant(
        self,
        outer: Seat,
        operation: Operation,
        plan: LoopPlan,
        activation: Activation,
        slot: int,
        found: _Found,
        around: _Wants,
        iteration: int,
    ) -> None:
        for sliced in plan.sliced:
            if sliced.parameter == slot:
                given = operation.inputs[sliced.input]
                taken = next(one for one in activation.slices if one.parameter == slot)
                begin, end = taken.walk.range(iteration)
                levels, of_shape = found
                if levels is not None:
                    whole = np.zeros(np.shape(self._value(outer, given)), np.uint8)
                    whole[(slice(None),) * taken.walk.axis + (slice(begin, end),)] = levels
                    around.add(given, whole)
                if of_shape is not None:  # as many as the port map takes
                    others = of_shape.copy()
                    others[taken.walk.axis] = Strength.NONE
                    around.add_shape(given, others)
        for invariant in plan.invariant:
            if invariant.parameter == slot:
                given = operation.inputs[invariant.input]
                around.give(given, found, np.shape(self._value(outer, given)))


def _strongest(found: Iterable[_Found]) -> Strength:
    return Strength(max(int(one.max(initial=0)) for both in found for one in both if one is not None))


def _pieces_apart(plan: LoopPlan, entry: ConcatenatedOutput, scan: Scan) -> Iterable[int]:
    """Return the iterations whose pieces have a shape of their own; of those that have the same the first."""
    iterations = sorted(joined_iterations(plan, entry, scan))
    shapes = [scan.piece(iteration).shape for iteration in iterations]
    if len(set(shapes)) >= 64:
        return iterations
    return [one for place, one in enumerate(iterations) if shapes[place] not in shapes[:place]]


def _at_fault(frame: Frame, operation: Operation, parts: list[Dependence]) -> list[Dependence]:
    """Return the parts that are not finite; all where none is, for then a NaN or Inf is born here."""
    bad = []
    for part in parts:
        value = np.asarray(frame.values[operation.inputs[part.input]])
        if value.dtype in FLOATING and (both := part.mask & ~np.isfinite(value)).any():
            bad.append(part._replace(mask=both))
    return bad or parts


def _pieces(activation: Activation, place: int, plan: LoopPlan, levels: Levels) -> Iterable[tuple[int, Levels]]:
    """Return what is wanted of the piece of each iteration of a concatenated output."""
    entry, scan = plan.concatenated[place], activation.scans[place]
    levels = np.atleast_1d(levels)
    axis = normalize_axis(entry.slicing.axis, levels.ndim)
    offset = 0
    for iteration in joined_iterations(plan, entry, scan):
        shape = scan.piece(iteration).shape
        size = shape[axis] if shape else 1
        piece = levels[(slice(None),) * axis + (slice(offset, offset + size),)]
        offset += size
        if shape:  # a piece may be filled up with zeros
            piece = piece[tuple(slice(extent) for extent in shape)]
        if piece.any():
            yield iteration, piece.reshape(shape)
