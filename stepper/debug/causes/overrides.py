"""Ends of loops that a user set: by the trip count or the condition of a run, whatever its file and its body say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stepper.engine.frames import Activation
from stepper.engine.loops import EndReason, truth
from stepper.engine.program import LoopPlan, Value
from stepper.engine.transitions import CONDITION, TRIP_COUNT

BY_CONDITION: Final = (EndReason.CONDITION, EndReason.INITIAL_CONDITION)
_BY_COUNT: Final = (EndReason.TRIP_COUNT, EndReason.NO_ITERATIONS)


def is_end_set(activation: Activation, values: Sequence[Value | None] | None) -> bool:
    """Return True if a loop ended, or did not begin, for a trip count or a condition that was set.

    `values` are those of its body after the last iteration (None: there was none). A condition that was set matters
    only where the body's own would have let the loop go on.
    """
    ended, changed, plan = activation.ended, activation.changed, activation.plan
    if ended in _BY_COUNT:
        return TRIP_COUNT in changed
    if ended not in BY_CONDITION or CONDITION not in changed or not isinstance(plan, LoopPlan):
        return False
    if ended is EndReason.INITIAL_CONDITION or plan.condition_result is None or values is None:
        return True
    value = values[plan.condition_result]
    return value is None or truth(value) is not False


def set_end_text(reason: EndReason, limit: int | None) -> str:
    """Return what was set that ended a loop, or kept it from beginning; `limit` is its trip count."""
    return "the condition was set to false" if reason in BY_CONDITION else f"the trip count was set to {limit:,}"
