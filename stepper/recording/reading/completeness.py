"""Whether a frame has every value that the rest of its run will read."""

from __future__ import annotations

from stepper.engine.frames import Activation, Frame, Phase
from stepper.engine.program import LoopPlan


def missing_slots(frame: Frame) -> set[int]:
    """The slots that are empty and will be read before anything is written to them."""
    program, activation = frame.program, frame.activation
    present = {slot for slot, value in enumerate(frame.values) if value is not None}
    if frame.phase is Phase.LEAVING:
        return _read_at_the_end(activation) - present
    missing: set[int] = set()
    begin = frame.pc
    if frame.phase is Phase.BETWEEN:
        begin = 0
        missing = _carried(activation) - present
        present |= _renewed(activation)
    for operation in program.operations[begin:]:
        missing |= {slot for slot in operation.inputs if slot >= 0} - present
        present |= set(operation.outputs)
    return missing | (set(program.results) - present)


def _read_at_the_end(activation: Activation | None) -> set[int]:
    if activation is None or not isinstance(activation.plan, LoopPlan) or activation.iteration < 0:
        return set()
    return {entry.result for entry in activation.plan.last_values}


def _carried(activation: Activation | None) -> set[int]:
    """What back edges read when the next iteration begins."""
    if activation is None or not isinstance(activation.plan, LoopPlan) or activation.iteration < 0:
        return set()
    return {entry.result for entry in activation.plan.merged}


def _renewed(activation: Activation | None) -> set[int]:
    """What the beginning of the next iteration writes."""
    if activation is None or not isinstance(activation.plan, LoopPlan):
        return set()
    plan = activation.plan
    slots = {entry.parameter for entry in plan.sliced} | {slot for slot, _numbered in plan.current_iteration}
    return slots | ({entry.parameter for entry in plan.merged} if activation.iteration >= 0 else set())
