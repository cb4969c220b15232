"""Where a value differs from a reference, for a way back that follows only what does."""

from __future__ import annotations

import numpy as np

from stepper.debug.causes.crossings import producer
from stepper.debug.causes.earlier_frames import EarlierFrames, Seat
from stepper.debug.causes.run_walk import Differs
from stepper.debug.reference_values import ValuePlace, path_of
from stepper.debug.timeline import Timeline
from stepper.element_types import FLOATING, Array
from stepper.errors import StepperError

_RELATIVE = 1e-4
_ABSOLUTE = 1e-5


def differs_from(timeline: Timeline, frames: EarlierFrames) -> Differs | None:
    """Return a function that says where values of the run differ from the reference; None where there is none."""
    reference = timeline.reference
    if reference is None:
        return None
    known: dict[tuple[Seat, int], Array | None] = {}

    def differs(seat: Seat, slot: int, value: Array) -> Array | None:
        if (seat, slot) not in known:
            stack = frames.at(seat)
            layer, output = producer(stack[-1].program, slot)
            try:
                other = reference.value_at(ValuePlace(path_of(stack), layer, output, stack[-1]))
            except StepperError:
                other = None
            known[seat, slot] = None if other is None else _mask(value, np.asarray(other))
        return known[seat, slot]

    return differs


def _mask(value: Array, other: Array) -> Array:
    """Return where two tensors differ by more than rounding."""
    if value.shape != other.shape:
        return np.ones(value.shape, bool)
    if value.dtype in FLOATING and other.dtype in FLOATING:
        a, b = value.astype(np.float64), other.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(~np.isclose(a, b, _RELATIVE, _ABSOLUTE, equal_nan=True))
    return np.asarray(value != other)
