"""A reference run beside the one that is debugged: `ref(x)` in expressions, `break diff>X` where one is there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepper.debug.breakpoints.carried import distance
from stepper.debug.breakpoints.checks import Causes, Check
from stepper.debug.breakpoints.kinds import DataBreak
from stepper.debug.causes.cause import CauseKind, Differs
from stepper.debug.causes.locations import change_of, location_of
from stepper.debug.reference_values import ReferenceValues, ValuePlace, path_of
from stepper.debug.scopes import frame_of
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.errors import UsageError


class Reading:
    """The values of a reference for one place of a program, at any moment."""

    def __init__(self, program: Program, slot: int) -> None:
        self.program, self.slot = program, slot
        key = next(key for key, found in program.slots.items() if found == slot)
        self._layer, self._output = program.graph.by_id[key[0]], key[1]

    def at(self, stack: Sequence[Frame], reference: ReferenceValues) -> Array | None:
        """Its value now; None where the reference has none. UsageError where our run is elsewhere."""
        depth = frame_of(stack, self.program)
        if depth is None:
            raise UsageError(f"{self.program.name} is not running")
        return reference.value_at(ValuePlace(path_of(stack[: depth + 1]), self._layer, self._output, stack[depth]))


def difference_checks(
    wanted: DataBreak, reference: ReferenceValues, programs: Sequence[Program], file: str
) -> list[Check]:
    """What `diff>X` asks of every operation of these graphs: that it is not further from the reference."""
    return [
        difference_check(wanted, reference, program, index, slot, file)
        for program in programs
        for index, operation in enumerate(program.operations)
        for slot in operation.outputs
    ]


def difference_check(
    wanted: DataBreak, reference: ReferenceValues, program: Program, index: int, slot: int, file: str
) -> Check:
    """The same of one value, after the operation at this index."""
    reading, depth = Reading(program, slot), len(program.path)
    key = next(key for key, found in program.slots.items() if found == slot)
    layer = program.graph.by_id[key[0]]

    def test(stack: Sequence[Frame]) -> Causes | None:
        ours, theirs = stack[depth].values[slot], reading.at(stack, reference)
        if ours is None or theirs is None:
            return None
        far = None if ours.shape != theirs.shape else distance(np.asarray(ours), np.asarray(theirs))
        if far is not None and not far > wanted.limit:
            return None
        differs = Differs(
            kind=CauseKind.REFERENCE,
            location=location_of(stack[: depth + 1], file, layer),
            reference=reference.title,
            distance=far,
            limit=wanted.limit,
            change=change_of(np.asarray(theirs), np.asarray(ours)),
        )
        return (differs,)

    return Check(program, index, test)
