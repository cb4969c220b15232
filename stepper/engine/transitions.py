"""The moves of a loop on its frame: enter, begin an iteration, close it. What they mean is in loops.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stepper.element_types import DType, name_of
from stepper.engine import loops
from stepper.engine.frames import Activation, Constants, Frame, Phase, Slices
from stepper.engine.loops import ConcatenatedOutput, EndReason, LastValueOutput, Scan, in_axis_order
from stepper.engine.program import BranchPlan, LoopPlan, Operation, Program, Step, Value
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import parameter_shape, parameter_type
from stepper.ops.operands import ensure_allocatable, shape_text

# Changes of a run beside its values: the trip count and condition of a loop that runs, and constants.
#
# Everything here changes the state of a machine at a moment, and nothing else: whoever makes a change again at the same
# moment of a replay gets the same run.

TRIP_COUNT = "trip count"
CONDITION = "condition"
CONSTANTS = "constants"
"""Names that may be in `Activation.changed`."""


def executed(frame: Frame) -> int:
    """Return the number of iterations that a loop has run when the one under way is closed."""
    return frame.active.iteration + 1


def set_trip_count(frame: Frame, count: int | None) -> None:
    """Let the loop of a frame run at most so many iterations in all, None: any number; not fewer than it has run."""
    activation = frame.active
    assert count is None or count >= executed(frame)
    activation.limit = count
    activation.changed |= {TRIP_COUNT}
    _go_on_or_end(frame)


def set_condition(frame: Frame, *, holds: bool) -> None:
    """Let the loop of a frame go on or end: after the iteration under way, whatever its body says, or at once."""
    activation = frame.active
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
    activation = frame.active
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


Note = Callable[[str], None]

_BOOLEAN = np.dtype(np.bool_)
_MANY_ELEMENTS = 2**20
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
        parameter = plan.program.parameter(slot)
        declared = parameter_type(parameter)
        shape = parameter_shape(parameter).static
        dtype = np.dtype(np.float32) if declared is None else declared.dtype
        ensure_allocatable(shape or (), dtype)
        values[slot] = np.zeros(shape or (), dtype)
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
    """Return a TensorIterator's Parameter keeps its declared type (a Loop's takes what comes) (measured)."""
    if plan.is_loop or rules is Rules.OPENVINO:
        return value
    parameter = plan.program.parameter(slot)
    declared = parameter_type(parameter)
    if declared is None or declared.dtype == value.dtype:
        return value
    raise KernelError(f"the body's {parameter} is declared {declared} and gets {name_of(value.dtype)}")


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
            carried = [values[result] for _parameter, result in plan.carried]
            for (parameter, _result), value in zip(plan.carried, carried, strict=True):
                values[parameter] = value
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


def _casts(plan: LoopPlan, values: list[Value]) -> tuple[tuple[int, DType], ...]:
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
        # The plugin looks at the first byte alone (measured).
        chosen = np.asarray(value).tobytes()[:1] not in (b"", b"\0")
    else:
        chosen = loops.condition(value, "condition of the If")
    plan = operation.plans[0 if chosen else 1]
    assert isinstance(plan, BranchPlan)
    values = list(plan.program.template)
    for index, slot in plan.inputs:
        values[slot] = outer[operation.inputs[index]]
    return Frame(plan.program, values, activation=Activation(operation, plan, condition=chosen))


# Outputs of a loop or a branch when it ends, after no iteration too (Loop-5; measured).


def outputs(frame: Frame, rules: Rules, note: Note) -> dict[int, Value]:
    """Return the outer layer's outputs by index, as they are if the loop ends with what it has done so far."""
    activation = frame.active
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
    """Return a concatenated output for a loop that ends with these pieces."""
    if scan.length == 0:
        shape, dtype = plan.program.declared(entry.result)
        return loops.empty_concatenation(entry.slicing.axis, shape, dtype)
    where = f"output {entry.output} (line {entry.line})"
    if not is_joined(plan, entry, scan):
        note(f"{where}: the shapes of the calls differ and cannot be joined: this is the value of the last call")
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

    It does so whatever the trip count is (measured).
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
