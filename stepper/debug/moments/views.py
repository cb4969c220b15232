"""A moment beside now as frozen data: its values, and how far each operation of now is from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, field

from stepper.debug.iterations import slots
from stepper.debug.moments.difference import Difference
from stepper.debug.moments.moment import Moment
from stepper.debug.moments.spread import SpreadView
from stepper.element_types import Array
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

    def held(self, layer: int, output: int = 0) -> Value | None:
        """Return the value of a layer's output, by the layer's id, itself; None where the moment has none."""
        if self._frame is None:
            return self.given.get((layer, output))
        slot = self.program.slots.get((layer, output), -1)
        return self._frame.values[slot] if slots.is_current(self._frame, slot) else None

    def value(self, layer: int, output: int = 0) -> Array | None:
        """Return the same as an array that cannot be written to."""
        found = self.held(layer, output)
        return None if found is None else slots.read_only(found)

    def output(self, index: int, output: int = 0) -> Array | None:
        """Return what an operation gave, by its place in the order of execution."""
        return self.value(self.program.operations[index].layer.id, output)


class OperationDifference(Struct, frozen=True, eq=False):
    """An operation in the moment and now: `number` is the statistic of its value in the moment.

    `difference` is None where one of the two has no value; of several outputs that of the one that differs most.
    """

    number: float | None
    difference: Difference | None


class MomentView(Brief, Struct, frozen=True, eq=False):
    """A beside now. `title` is that of a reference, `iteration` that of A in the loop around the frame.

    `values` are those of the frame that is looked at, `loop` those of the loop that runs in or around it. `operations`
    map the index of an operation to how it differs, `carried` the id of a Parameter to how what entered the iteration
    does; both as far as they were compared. `spread` is there beside another branch: where the two differ in all
    iterations of the loop. `problem` says why A has no values here.
    """

    unshown: ClassVar = ("values", "loop", "spread")

    moment: Moment
    iteration: int | None = None
    title: str = ""
    values: MomentValues | None = None
    loop: MomentValues | None = None
    operations: Mapping[int, OperationDifference] = field(default_factory=dict)
    carried: Mapping[int, Difference] = field(default_factory=dict)
    spread: SpreadView | None = None
    problem: str = ""
    is_complete: bool = False

    def difference(self, index: int) -> Difference | None:
        """Return how far an operation is from A; None where that is not known."""
        found = self.operations.get(index)
        return None if found is None else found.difference
