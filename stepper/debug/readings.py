"""Reading of a watched expression at one stop."""

from __future__ import annotations

from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.frames import LoopRun


class Reading(Struct, frozen=True, eq=False, weakref=True):
    """Value of an expression at one stop. `value` is kept where it is small; `text` says what it was in any case.

    `iteration` is that of the innermost loop, `run` that run of it; None outside. `error`: there was no value, and
    `text` says why.
    `shown` is the value in the format that was asked for, empty without one.
    """

    tick: int
    place: str
    iteration: int | None
    value: Array | None
    text: str
    error: bool
    run: LoopRun | None = None
    shown: str = ""
