"""What another run must offer to be a reference of the debugged one: its value at a place of ours.

Whoever has such values (an archive, a recording, a second model: stepper.compare) fulfils `ReferenceValues` and is set
as `debugger.reference`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.ir.model import BodyRole, Layer


class Level(NamedTuple):
    """A loop or an If on the way to a value: which of its bodies, and the iteration (None for a branch)."""

    layer: Layer
    role: BodyRole
    iteration: int | None


class Spot(NamedTuple):
    """Where and when a value of the debugged run is: the way to its graph, the layer that computes it, its output.

    `frame` is our live state of that graph, for references that compute from our values.
    """

    levels: tuple[Level, ...]
    layer: Layer
    output: int
    frame: Frame | None = None


class ReferenceValues(Protocol):
    """Values of another run, at the places of ours."""

    @property
    def title(self) -> str:
        """What messages call it."""

    def value_at(self, spot: Spot) -> Array | None:
        """The value at this place; None where the other run has none. May raise StepperError."""
