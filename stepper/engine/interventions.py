"""Changes of a run beside its values: the trip count and condition of a loop that runs, and constants.

Everything here changes the state of a machine at a moment, and nothing else: whoever makes a change again at the same
moment of a replay gets the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from stepper.engine.frames import Activation, Constants, Frame, Phase
from stepper.engine.loops import EndReason
from stepper.engine.program import LoopPlan, Program, Step, Value
from stepper.errors import KernelError

TRIP_COUNT: Final = "trip count"
CONDITION: Final = "condition"
CONSTANTS: Final = "constants"
"""Names that may be in `Activation.changed`."""


def executed(frame: Frame) -> int:
    """Return the number of iterations that a loop has run when the one under way is closed."""
    assert frame.activation is not None
    return frame.activation.iteration + 1


def set_trip_count(frame: Frame, count: int | None) -> None:
    """Let the loop of a frame run at most so many iterations in all, None: any number; not fewer than it has run."""
    activation = frame.activation
    assert activation is not None and (count is None or count >= executed(frame))
    activation.limit = count
    activation.changed |= {TRIP_COUNT}
    _go_on_or_end(frame)


def set_condition(frame: Frame, *, holds: bool) -> None:
    """Let the loop of a frame go on or end: after the iteration under way, whatever its body says, or at once."""
    activation = frame.activation
    assert activation is not None
    activation.changed |= {CONDITION}
    if frame.phase is Phase.RUNNING:
        activation.decided = holds
    else:
        activation.condition = holds
        _go_on_or_end(frame)


def _go_on_or_end(frame: Frame) -> None:
    """Between two iterations: whether there is another, by limit and condition as they are now."""
    if frame.phase is Phase.RUNNING:
        return
    activation = frame.activation
    assert activation is not None
    activation.ended = _end(activation)
    frame.phase = Phase.BETWEEN if activation.ended is None else Phase.LEAVING


def limit_reached(activation: Activation) -> EndReason:
    """Return why a loop ended that ran as often as it may: a trip count, of its own or given by an edit, or slices."""
    plan = activation.plan
    if not (isinstance(plan, LoopPlan) and plan.is_loop) and TRIP_COUNT not in activation.changed:
        return EndReason.SLICES
    return EndReason.NO_ITERATIONS if activation.iteration < 0 else EndReason.TRIP_COUNT


def _end(activation: Activation) -> EndReason | None:
    none_ran = activation.iteration < 0
    if activation.limit == activation.iteration + 1:
        return limit_reached(activation)
    if activation.condition:
        return None
    return EndReason.INITIAL_CONDITION if none_ran else EndReason.CONDITION


# --- constants ------------------------------------------------------------------------------------------------------


def with_constant(program: Program, before: Constants | None, slot: int, value: Value) -> Constants:
    """Return the changed constants of a program with one more: what was computed from it beforehand is computed again.

    Raises KernelError where that fails, and where another engine computes with the constant, which it took beforehand.
    """
    values = {} if before is None else dict(before.values)
    values[slot] = value
    affected = {slot}
    with np.errstate(all="ignore"):
        for operation in program.folded:
            if affected.isdisjoint(operation.inputs):
                continue
            assert operation.function is not None
            results = operation.function(*[values.get(one, program.template[one]) for one in operation.inputs])
            outputs = results if operation.several_outputs else (results,)
            values.update(zip(operation.outputs, outputs, strict=False))
            affected.update(operation.outputs)
    for operation in program.operations:
        if operation.computed_by and not affected.isdisjoint(operation.inputs):
            layer, by = operation.layer, operation.computed_by
            raise KernelError(f"{layer.type} '{layer.name}' reads it, and {by} computes that with the model's own")
    return Constants.of(program, values)


def put_constants(stack: Sequence[Frame], constants: Mapping[int, Constants]) -> None:
    """Let the frames compute with these constants from now on."""
    for frame in stack:
        activation, found = frame.activation, constants.get(id(frame.program))
        if activation is not None:
            activation.changed |= {CONSTANTS}
        if found is None:
            continue
        for slot, value in found.values.items():
            frame.values[slot] = value
        if activation is not None and activation.code is not None:
            activation.code = _merged(activation.code, frame.code, found.code)
        frame.code = found.code


def _merged(own: Sequence[Step], before: Sequence[Step], after: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps of an activation, with those that have changed in the code that they were made of."""
    return tuple(new if new is not old else mine for mine, old, new in zip(own, before, after, strict=True))
