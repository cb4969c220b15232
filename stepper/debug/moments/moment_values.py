"""Values of a moment in one graph, wherever they are: in the frame of a run, or asked of a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, field

from stepper.element_types import Array, read_only
from stepper.engine.frames import Frame
from stepper.engine.program import Program, Value
from stepper.records import Brief

ValueKey = tuple[int, int]
"""A value of a graph: the id of the layer that computes it, and the index of the output."""


class MomentValues(Brief, Struct, frozen=True, eq=False):
    """Values of a moment in one graph. `iteration` is that of the moment, None outside of loops.

    Those of a run are in its frame, those of a reference in `given`, as far as they were asked for.
    """

    unshown: ClassVar = ("program", "_frame", "given")

    program: Program
    iteration: int | None
    _frame: Frame | None = None
    given: Mapping[ValueKey, Any] = field(default_factory=dict)

    def are_of(self, other: MomentValues) -> bool:
        """True if both read the same frame, or what the same reference gave at the same place."""
        if self._frame is None or other._frame is None:
            return self._frame is other._frame and self.given is other.given
        return self._frame is other._frame

    def held(self, layer: int, output: int = 0) -> Value | None:
        """Return the value of a layer's output, by the layer's id, itself; None where the moment has none."""
        if self._frame is None:
            return self.given.get((layer, output))
        slot = self.program.slots.get((layer, output), -1)
        return self._frame.values[slot] if self._frame.is_current(slot) else None

    def value(self, layer: int, output: int = 0) -> Array | None:
        """Return the same as an array that cannot be written to."""
        found = self.held(layer, output)
        return None if found is None else read_only(found)

    def output(self, index: int, output: int = 0) -> Array | None:
        """Return what an operation gave, by its place in the order of execution."""
        return self.value(self.program.operations[index].layer.id, output)
