"""A moment beside now as frozen data: its values, and how far each operation of now is from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field

from stepper.debug.moments.difference import Difference
from stepper.debug.moments.moment import Moment
from stepper.debug.moments.moment_values import MomentValues
from stepper.debug.moments.spread import SpreadView
from stepper.records import Brief


class OperationDifference(Struct, frozen=True, eq=False):
    """An operation in the moment and now: `number` is the statistic of its value in the moment.

    `difference` is None where one of the two has no value; of several outputs that of the one that differs most.
    """

    number: float | None
    difference: Difference | None


class MomentView(Brief, Struct, frozen=True, eq=False):
    """A beside now. `title` is that of a reference, `iteration` that of A in the loop around the frame.

    `path` has the iterations of A and of now in all loops around the frame, outer before inner, where they are in
    different runs of the loop, or A is an iteration of one further out; else it is None.

    `values` are those of the frame that is looked at, `loop` those of the loop that runs in or around it. `operations`
    map the index of an operation to how it differs, `carried` the id of a Parameter to how what entered the iteration
    does; both as far as they were compared. `spread` is there beside another branch: where the two differ in all
    iterations of the loop. `problem` says why A has no values here; `is_elsewhere`: because it is
    in no iteration of where the run stands.
    """

    unshown: ClassVar = ("values", "loop", "spread")

    moment: Moment
    iteration: int | None = None
    path: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    title: str = ""
    values: MomentValues | None = None
    loop: MomentValues | None = None
    operations: Mapping[int, OperationDifference] = field(default_factory=dict)
    carried: Mapping[int, Difference] = field(default_factory=dict)
    spread: SpreadView | None = None
    problem: str = ""
    is_elsewhere: bool = False
    is_complete: bool = False

    @property
    def is_in_this_run(self) -> bool:
        """True if A is an iteration of the same run of the loop as now."""
        return self.iteration is not None and (self.path is None or self.path[0][:-1] == self.path[1][:-1])

    def difference(self, index: int) -> Difference | None:
        """Return how far an operation is from A; None where that is not known."""
        found = self.operations.get(index)
        return None if found is None else found.difference
