"""The base of all walks through the frames of a run: edits, frames that replays fetch, how a value came to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.debug.branches.edits import ConstantEdit, ValueEdit
from stepper.debug.causes.cause import LinkForm, LinkKind, PartRole
from stepper.debug.causes.crossings import Crossing, ValueSpot, held, into_body, out_of_body, with_rank_of
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.locations import file_of
from stepper.debug.provenance.operation_at import Contribution, Contributions, Factor, OperationAt, ValueNotKept
from stepper.debug.provenance.rules import contributions, extent_contributions
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, OpKind, Program
from stepper.errors import Paused

Differs = Callable[[Seat, int, Array], Array | None]
"""Return in which elements a value differs from a reference; None where that is not known."""
LEAST_WEIGHT: Final = 0.05
"""Part of a sum or product, or of what was asked about, that counts; less is hardly followed."""
NOT_KEPT: Final = "what it was computed of was not kept by the run"


class RunWalk:
    """One walk from a value, in frames that replays fetch. `differs`: what differs from a reference is followed."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, differs: Differs | None = None) -> None:
        self._timeline, self._frames, self._differs = timeline, frames, differs
        self._file = file_of(timeline.machine.compiled)
        self._plans: dict[int, LoopPlan | BranchPlan] = {
            id(plan.program): plan
            for program in timeline.machine.compiled.programs
            for operation in program.operations
            for plan in operation.plans
        }
        self._moving: dict[int, frozenset[int]] = {}
        edits = [edit for made in timeline.edits.values() for edit in made]
        self._edits = [edit for edit in edits if isinstance(edit, ValueEdit | ConstantEdit)]

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
        frame = self._frame(spot.seat)
        is_there = frame.values[spot.slot] is not None and spot.element is not None
        return held(frame, spot)[spot.element] if is_there else None

    def _is_bad(self, spot: ValueSpot) -> bool:
        return is_bad(self.element(spot))

    def _is_edited(self, frame: Frame, slot: int) -> bool:
        value = frame.values[slot]
        return any(one.program is frame.program and one.slot == slot and one.value is value for one in self._edits)

    def _made_here(self, frame: Frame, slot: int, operation: Operation | None) -> LinkKind | None:
        """Return how a value came to be in its own graph; None where it came over a border. Raise ValueNotKept."""
        program = frame.program
        if frame.values[slot] is None:
            raise ValueNotKept
        if self._is_edited(frame, slot):
            return LinkKind.EDITED
        if operation is not None:
            computed = LinkKind.COMPUTED if slot in program.computed_at else LinkKind.CONSTANT
            return None if operation.plans else computed
        if slot not in program.parameters:
            return LinkKind.CONSTANT
        return LinkKind.GIVEN if frame.activation is None else None

    def _crossing(self, spot: ValueSpot, frame: Frame, operation: Operation | None) -> Crossing:
        """Return the border that a value came over, an element in the rank that it has there. Raise ValueNotKept."""
        way = into_body(frame, spot) if operation is None else out_of_body(self._frames, spot, operation)
        if way.following is None:
            return way
        before = self._frame(way.following.seat)
        if before.values[way.following.slot] is None:
            raise ValueNotKept
        return way._replace(following=with_rank_of(held(before, way.following), way.following))

    def _becomes(self, spot: ValueSpot, following: ValueSpot) -> str:
        """Return how a finite number becomes infinite where a body gives it another type; empty where it does not."""
        number = self.element(following)
        if number is None or is_bad(number) or not self._is_bad(spot):
            return ""
        return f"{float(number):.4g} becomes {element_types.name_of(np.asarray(self.element(spot)).dtype)}"

    # --- what is followed ----------------------------------------------------------------------------------------

    def _contributions(self, spot: ValueSpot, frame: Frame, operation: Operation) -> Contributions:
        """Return what an element, or an extent, is made of, each term by its factor that is followed.

        Raise ValueNotKept.
        """
        assert spot.element is not None, "it is about one"
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
        plan = self._plans.get(id(self._frame(seat).program))
        states = {parameter for parameter, _ in plan.carried} if isinstance(plan, LoopPlan) else set()
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
        if self._differs is None:
            return True
        if spot.element is None:
            return False
        found = self._differs(spot.seat, spot.slot, np.asarray(self._value(spot.seat, spot.slot)))
        return found is not None and bool(found.all() if spot.is_shape else found[spot.element])

    def _moving_slots(self, program: Program) -> frozenset[int]:
        """Return the slots whose values differ by iteration, or by run: all but constants and what never changes."""
        if id(program) not in self._moving:
            plan = self._plans.get(id(program))
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
