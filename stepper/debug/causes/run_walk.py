"""The base of all walks through the frames of a run: edits, frames that replays fetch, how a value came to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper.debug.branches.edits import ConstantEdit, ValueEdit
from stepper.debug.causes.cause import LinkKind
from stepper.debug.causes.crossings import Crossing, ValueSpot, held, into_body, out_of_body
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.locations import file_of
from stepper.debug.provenance.operation_at import Contributions, OperationAt, ValueNotKept
from stepper.debug.provenance.rules import contributions, extent_contributions
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Frame
from stepper.engine.program import Operation
from stepper.errors import Paused

Differs = Callable[[Seat, int, Array], Array | None]
"""Return in which elements a value differs from a reference; None where that is not known."""
NOT_KEPT: Final = "what it was computed of was not kept by the run"


class RunWalk:
    """One walk from a value, in frames that replays fetch. `differs`: what differs from a reference is followed."""

    def __init__(self, timeline: Timeline, frames: EarlierFrames, differs: Differs | None = None) -> None:
        self._timeline, self._frames, self._differs = timeline, frames, differs
        self._file = file_of(timeline.machine.compiled)
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

    def _element(self, spot: ValueSpot) -> Any:
        """Return what a spot is; None where that is no single element, or not there."""
        frame = self._frame(spot.seat)
        is_there = frame.values[spot.slot] is not None and spot.element is not None
        return held(frame, spot)[spot.element] if is_there else None

    def _is_bad(self, spot: ValueSpot) -> bool:
        return is_bad(self._element(spot))

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
        """Return the border that a value came over."""
        return into_body(frame, spot) if operation is None else out_of_body(self._frames, spot, operation)

    @staticmethod
    def _contributions(spot: ValueSpot, frame: Frame, operation: Operation) -> Contributions:
        """Return what an element, or an extent, is made of. Raise ValueNotKept."""
        assert spot.element is not None, "it is about one"
        at = OperationAt.in_frame(frame, operation, spot.slot)
        return extent_contributions(at, spot.element[0]) if spot.is_shape else contributions(at, spot.element)


def is_bad(value: Any) -> bool:
    """True if an element is NaN or infinite."""
    return value is not None and np.asarray(value).dtype in FLOATING and not bool(np.isfinite(value))
