"""The moves of a loop on its frame: enter, begin an iteration, close it. What they mean is in loops.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from stepper.element_types import name_of
from stepper.engine import loops
from stepper.engine.frames import Activation, Frame, Phase, Slices
from stepper.engine.interventions import limit_reached
from stepper.engine.loops import EndReason
from stepper.engine.program import BranchPlan, LoopPlan, Operation, Value
from stepper.engine.rules import Rules
from stepper.engine.scans import Scan
from stepper.errors import KernelError
from stepper.ir.model import parameter_shape, parameter_type
from stepper.ops.operands import ensure_allocatable, shape_text

Note = Callable[[str], None]

_BOOLEAN = np.dtype(np.bool_)
_MANY_ELEMENTS: Final = 2**20
"""Carried values of more elements than these are looked at in each iteration, where the body can make them grow."""

# Each look-up of an Enum's member takes as long as a quarter of a numpy operation; these are made in every iteration.
_BETWEEN, _RUNNING, _LEAVING = Phase.BETWEEN, Phase.RUNNING, Phase.LEAVING
_OPENVINO = Rules.OPENVINO


def enter_loop(operation: Operation, outer: list[Value], rules: Rules, note: Note) -> Frame:
    """Return a frame for one run of a loop, fed with the outer values, no iteration begun."""
    (plan,) = operation.plans
    assert isinstance(plan, LoopPlan)
    program = plan.program
    values = list(program.template)
    fed = [(entry.input, entry.parameter) for entry in plan.merged]
    fed += [(entry.input, entry.parameter) for entry in plan.invariant]
    for index, slot in fed:
        values[slot] = _fitted(plan, slot, outer[operation.inputs[index]], rules)
    for slot in plan.unfed:
        values[slot] = _zeros(plan, slot)
    slices = tuple(_slices(plan, entry, outer[operation.inputs[entry.input]], rules) for entry in plan.sliced)
    activation = Activation(operation, plan, slices=slices, scans=[Scan(entry.result) for entry in plan.concatenated])
    activation.slice_count = min((taken.walk.count for taken in slices), default=sys.maxsize)
    if plan.is_loop:
        _read_control(activation, operation, outer, rules, note)
    else:
        counts = [(f"input {entry.input}", taken.walk.count) for entry, taken in zip(plan.sliced, slices, strict=True)]
        activation.limit = loops.common_count(counts) if counts else loops.count_without_slices(plan.concatenated)
        if activation.limit == 0:
            note("the sliced axis has no elements, which OpenVINO refuses")
    activation.ended = _end_at_start(activation)
    phase = Phase.BETWEEN if activation.ended is None else Phase.LEAVING
    return Frame(program, values, phase=phase, activation=activation)


def _read_control(activation: Activation, operation: Operation, outer: list[Value], rules: Rules, note: Note) -> None:
    plan = activation.plan
    assert isinstance(plan, LoopPlan)
    if plan.trip_count is not None:
        value = outer[operation.inputs[plan.trip_count]]
        activation.limit = loops.trip_count(value)
        if activation.limit is None and (count := int(np.ravel(value)[0])) != -1:
            text = f"the trip count is {count}: as any negative one it means unlimited"
            if plan.concatenated and rules is Rules.OPENVINO:
                raise KernelError(f"the trip count is {count}, which OpenVINO refuses where an output is concatenated")
            note(text + (", OpenVINO refuses it where an output is concatenated" if plan.concatenated else ""))
    if plan.condition is not None:
        activation.condition = loops.condition(outer[operation.inputs[plan.condition]], "execution condition")


def _end_at_start(activation: Activation) -> EndReason | None:
    if activation.limit == 0:
        plan = activation.plan
        return EndReason.NO_ITERATIONS if isinstance(plan, LoopPlan) and plan.is_loop else EndReason.SLICES
    return None if activation.condition else EndReason.INITIAL_CONDITION


def _slices(plan: LoopPlan, entry: loops.SlicedInput, value: Value, rules: Rules) -> Slices:
    try:
        walk = loops.slice_walk(entry.slicing, value.shape, rules, is_loop=plan.is_loop)
        if not plan.is_loop and walk.count == 0 and rules is Rules.OPENVINO:
            raise KernelError("its axis has no elements, which OpenVINO refuses")
    except KernelError as error:
        raise KernelError(
            f"input {entry.input} (line {entry.line}), shape {shape_text(value.shape)}: {error}"
        ) from None
    value = _fitted(plan, entry.parameter, value, rules)
    return Slices(entry.parameter, value, walk, (slice(None),) * walk.axis)


def _fitted(plan: LoopPlan, slot: int, value: Value, rules: Rules) -> Value:
    """Return a TensorIterator's Parameter keeps its declared type (a Loop's takes what comes); semantics 3.14."""
    if plan.is_loop or rules is Rules.OPENVINO:
        return value
    parameter = plan.program.parameter(slot)
    declared = parameter_type(parameter)
    if declared is None or declared.dtype == value.dtype:
        return value
    raise KernelError(f"the body's {parameter} is declared {declared} and gets {name_of(value.dtype)}")


def _zeros(plan: LoopPlan, slot: int) -> Value:
    parameter = plan.program.parameter(slot)
    declared = parameter_type(parameter)
    shape = parameter_shape(parameter).static
    dtype = np.dtype(np.float32) if declared is None else declared.dtype
    ensure_allocatable(shape or (), dtype)
    return np.zeros(shape or (), dtype)


def begin_iteration(frame: Frame) -> None:
    """Give the next iteration its inputs: what back edges carry (all read before any is written), slices, number."""
    activation, values = frame.activation, frame.values
    assert activation is not None
    plan: Any = activation.plan
    iteration = activation.iteration + 1
    if iteration >= activation.slice_count:
        raise KernelError(_missing_slice(activation, iteration))
    if iteration:
        if plan.passes_on:
            _carry_at_once(plan, values)
        else:
            for parameter, result in plan.carried:
                values[parameter] = values[result]
        if plan.may_grow:
            _refuse_giants(plan, values)
        for slot, dtype in activation.casts:
            values[slot] = values[slot].astype(dtype)
    for parameter, source, walk, prefix in activation.slices:
        begin = walk.first + iteration * walk.step
        values[parameter] = source[(*prefix, slice(begin, begin + walk.size))]
    for slot, numbered in plan.current_iteration:
        values[slot] = numbered(iteration)
    activation.iteration = iteration
    frame.pc = 0
    frame.phase = _RUNNING


def only_carries(activation: Activation) -> bool:
    """Return True if all that `begin_iteration` does is write what each back edge carries once it is read."""
    plan: Any = activation.plan
    return not (plan.passes_on or plan.may_grow or activation.casts or activation.slices or plan.current_iteration)


def _refuse_giants(plan: LoopPlan, values: list[Value]) -> None:
    for parameter, _result in plan.carried:
        value = values[parameter]
        if value.size > _MANY_ELEMENTS:
            ensure_allocatable(value.shape, value.dtype)


def _carry_at_once(plan: LoopPlan, values: list[Value]) -> None:
    carried = [values[result] for _parameter, result in plan.carried]
    for (parameter, _result), value in zip(plan.carried, carried, strict=True):
        values[parameter] = value


def _missing_slice(activation: Activation, iteration: int) -> str:
    plan: Any = activation.plan
    taken = zip(plan.sliced, activation.slices, strict=True)
    entry, count = next((entry, slices.walk.count) for entry, slices in taken if iteration >= slices.walk.count)
    name = activation.operation.layer.bodies[0].graph.by_id[entry.parameter].name
    place = f"input {entry.input} (line {entry.line})"
    return f"iteration {iteration} has no slice: {place} gives {count} slices to Parameter '{name}'"


def close_iteration(frame: Frame, rules: Rules) -> None:
    """Record what the iteration gave: a piece of each concatenated output, the condition, whether it was the last."""
    activation, values = frame.activation, frame.values
    assert activation is not None
    plan: Any = activation.plan
    executed = activation.iteration + 1
    if executed == 1:
        _settle(activation, plan, frame)
    elif plan.condition_result is not None:
        try:
            activation.condition = bool(values[plan.condition_result])
        except ValueError:
            loops.condition(values[plan.condition_result], "body's condition")  # says what is wrong
            raise
    if rules is _OPENVINO:
        for change in changed_shapes(plan, values):
            raise KernelError(change)
    _record_pieces(activation, plan, values)
    if activation.decided is not None:
        activation.condition, activation.decided = activation.decided, None
    if executed == activation.limit:
        activation.ended = limit_reached(activation)
    elif not activation.condition:
        activation.ended = EndReason.CONDITION
    frame.phase = _BETWEEN if activation.ended is None else _LEAVING


def _record_pieces(activation: Activation, plan: LoopPlan, values: list[Value]) -> None:
    """Add a piece to each concatenated output, once all of them can be joined to the ones before."""
    for entry, scan in () if plan.is_over_calls else zip(plan.concatenated, activation.scans, strict=True):
        try:
            scan.ensure_joins(values[scan.result], entry.slicing)
        except KernelError as error:
            where = f"output {entry.output} (line {entry.line})"
            raise KernelError(f"{where} cannot be concatenated: {error}") from None
    for scan in activation.scans:
        scan.append(values[scan.result])


def _settle(activation: Activation, plan: LoopPlan, frame: Frame) -> None:
    """Settle what the first iteration shows for all: types of the values, and that the condition is one."""
    values = frame.values
    if plan.condition_result is not None:
        activation.condition = loops.condition(values[plan.condition_result], "body's condition")
    activation.casts = _casts(plan, values)
    if plan.program.straight:
        activation.code = plan.program.specialised(values, frame.code)


def _casts(plan: LoopPlan, values: list[Value]) -> tuple[tuple[int, np.dtype[Any]], ...]:
    """Parameters that a back edge gives another type than their initial value has, which they keep."""
    found = []
    for entry in plan.merged:
        leaving, entered = values[entry.result].dtype, values[entry.parameter].dtype
        if leaving != entered:
            if not np.can_cast(leaving, entered, "same_kind"):
                carried = f"carries {name_of(leaving)} into a Parameter that began as {name_of(entered)}"
                name = plan.program.graph.parameters[plan.program.parameters.index(entry.parameter)].name
                raise KernelError(f"the back edge to '{name}' (the input on line {entry.line}) {carried}")
            found.append((entry.parameter, entered))
    return tuple(found)


def changed_shapes(plan: LoopPlan, values: list[Value]) -> Iterator[str]:
    """Yield what the plugin refuses: carried values that change their shape where they may not."""
    for entry in plan.rigid:
        leaving, entered = values[entry.result].shape or (1,), values[entry.parameter].shape or (1,)
        if leaving != entered:
            text = f"the carried value (line {entry.line}) changes its shape from {shape_text(entered)}"
            yield f"{text} to {shape_text(leaving)} and is not a last-value output of a Loop, which OpenVINO refuses"


def enter_branch(operation: Operation, outer: list[Value], rules: Rules) -> Frame:
    """Return a frame for the side of an If that its condition chooses."""
    value = outer[operation.inputs[0]]
    if rules is Rules.OPENVINO and value.dtype != _BOOLEAN:
        # The plugin looks at the first byte alone (semantics 5.5).
        chosen = np.asarray(value).tobytes()[:1] not in (b"", b"\0")
    else:
        chosen = loops.condition(value, "condition of the If")
    plan = operation.plans[0 if chosen else 1]
    assert isinstance(plan, BranchPlan)
    values = list(plan.program.template)
    for index, slot in plan.inputs:
        values[slot] = outer[operation.inputs[index]]
    return Frame(plan.program, values, activation=Activation(operation, plan, condition=chosen))
