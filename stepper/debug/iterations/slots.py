"""Which values of a frame belong to the present: the slots keep what the iteration before left, until it is replaced.

The one place that tells what was computed already from what was not. Only program counter and phase of the frame are
asked; nothing is kept beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.engine.frames import Frame, Phase
from stepper.engine.program import LoopPlan


def is_current(frame: Frame, slot: int) -> bool:
    """True if what the slot holds was computed in the present iteration (or, between two, in the one just closed).

    Of an operation: once it has run. Of a Parameter: once the iteration has begun; before the first one, what the loop
    was entered with. Of a constant: always.
    """
    if slot < 0 or frame.values[slot] is None:
        return False
    index = frame.program.computed_at.get(slot)
    return index is None or index < computed(frame)


def computed(frame: Frame) -> int:
    """Return how many operations have run in the present iteration (or in the one just closed), from the first on."""
    if frame.phase is Phase.RUNNING:
        return frame.pc
    return len(frame.program.operations) if frame.activation is not None and frame.activation.iteration >= 0 else 0


def current(frame: Frame, slot: int) -> Array | None:
    """Return the present value of a slot as a read-only view; None where it was not computed yet."""
    return read_only(frame.values[slot]) if is_current(frame, slot) else None


def before(frame: Frame, slot: int) -> Array | None:
    """Return what the slot still holds of the iteration before; None where it holds the present, or nothing."""
    stale = slot >= 0 and frame.values[slot] is not None and not is_current(frame, slot)
    return read_only(frame.values[slot]) if stale else None


def why_absent(frame: Frame, slot: int) -> str:
    """Return why a slot has no present value, in words; empty where it has one."""
    if slot < 0:
        return "not connected"
    if is_current(frame, slot):
        return ""
    index, activation = frame.program.computed_at.get(slot), frame.activation
    if activation is None or not isinstance(activation.plan, LoopPlan):
        return "no longer kept" if index is None or index < frame.pc else "not computed yet"
    if frame.phase is Phase.LEAVING:
        return "never computed: no iteration ran"
    if activation.iteration < 0:
        return "nothing yet: no iteration has begun"
    return f"not computed yet in iteration {activation.iteration}"


def read_only(value: Any) -> Array:
    """Return a view that cannot be written to; of a numpy scalar an array of rank 0."""
    view = np.asarray(value).view()
    view.flags.writeable = False
    return view
