"""Outputs of a loop or a branch when it ends, after no iteration too (semantics 2, 3.5, 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stepper.engine import loops
from stepper.engine.frames import Activation, Frame
from stepper.engine.loops import ConcatenatedOutput, LastValueOutput, in_axis_order
from stepper.engine.program import BranchPlan, LoopPlan, Value
from stepper.engine.rules import Rules
from stepper.engine.scans import Scan
from stepper.engine.transitions import changed_shapes
from stepper.errors import KernelError

Note = Callable[[str], None]


def outputs(frame: Frame, rules: Rules, note: Note) -> dict[int, Value]:
    """Return the outer layer's outputs by index, as they are if the loop ends with what it has done so far."""
    activation = frame.activation
    assert activation is not None
    plan = activation.plan
    if isinstance(plan, BranchPlan):
        return {output: frame.values[slot] for output, slot in plan.outputs}
    if ended_by_constant(activation):
        note(
            "the condition is a Constant that is false: the specification gives initial values, OpenVINO empty ones, "
            "and it refuses concatenated and scalar outputs"
        )
        if rules is Rules.OPENVINO:
            return _constant_false(frame, plan)
    if activation.iteration >= 0 and rules is Rules.SPEC:
        for change in changed_shapes(plan, frame.values):
            note(change)
    found: dict[int, Value] = {}
    for entry in plan.last_values:
        found[entry.output] = _last_value(frame, activation, entry, note)
    for concatenated, scan in zip(plan.concatenated, activation.scans, strict=True):
        found[concatenated.output] = concatenated_output(plan, concatenated, scan, rules, note)
    return found


def _last_value(frame: Frame, activation: Activation, entry: LastValueOutput, note: Note) -> Value:
    if activation.iteration >= 0:
        return frame.values[entry.result]
    if entry.merged is not None:
        return frame.values[entry.merged]
    if frame.values[entry.result] is not None:  # an invariant input or a constant that passes through the body
        return frame.values[entry.result]
    assert isinstance(activation.plan, LoopPlan)
    note(f"output {entry.output} is undefined, for no iteration ran and no back edge gives it a value: zeros are used")
    shape, dtype = activation.plan.program.declared(entry.result)
    return loops.undefined_last_value(shape, dtype)


def concatenated_output(plan: LoopPlan, entry: ConcatenatedOutput, scan: Scan, rules: Rules, note: Note) -> Value:
    """Return a concatenated output as it is if the loop ends with these pieces."""
    if scan.length == 0:
        shape, dtype = plan.program.declared(entry.result)
        return loops.empty_concatenation(entry.slicing.axis, shape, dtype)
    where = f"output {entry.output} (line {entry.line})"
    if not is_joined(plan, entry, scan):
        note(f"{where}: what the calls gave differs in shape and cannot be joined: it is that of the last call")
        return scan.piece(scan.length - 1)
    if plan.is_over_calls:
        return scan.concatenated(entry.slicing, Rules.SPEC, lambda _text: None)
    try:
        return scan.concatenated(entry.slicing, rules, lambda text: note(f"{where}: {text}"))
    except KernelError as error:
        raise KernelError(f"{where} cannot be concatenated: {error}") from None


def is_joined(plan: LoopPlan, entry: ConcatenatedOutput, scan: Scan) -> bool:
    """Return False for outputs of calls that cannot be joined: no rule of either book says what these must be."""
    return not plan.is_over_calls or not scan.length or scan.shape(entry.slicing.axis) is not None


def joined_iterations(plan: LoopPlan, entry: ConcatenatedOutput, scan: Scan) -> Sequence[int]:
    """Return the iterations of whose pieces the output is made if the loop ends with these, in order of the axis."""
    every = range(scan.length)
    return in_axis_order(every, entry.slicing) if is_joined(plan, entry, scan) else every[-1:]


def ended_by_constant(activation: Activation) -> bool:
    """True if no iteration ran and the condition is a Constant that is false; OpenVINO then infers empty shapes.

    It does so whatever the trip count is (semantics 3.5).
    """
    plan = activation.plan
    if activation.iteration >= 0 or not isinstance(plan, LoopPlan):
        return False
    return plan.constant_condition and not activation.condition


def _constant_false(frame: Frame, plan: LoopPlan) -> dict[int, Value]:
    found: dict[int, Value] = {}
    if plan.concatenated:
        raise KernelError("its condition is a Constant that is false, and OpenVINO then refuses concatenated outputs")
    for entry in plan.last_values:
        if entry.merged is None:
            shape, dtype = plan.program.declared(entry.result)
        else:
            initial = frame.values[entry.merged]
            shape, dtype = initial.shape, initial.dtype
        if not shape:
            raise KernelError("its condition is a Constant that is false, and OpenVINO then refuses a scalar output")
        found[entry.output] = np.zeros((0, *shape[1:]), dtype)
    return found
