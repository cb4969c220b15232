"""Port maps resolved to slots: what each entry is (sliced, merged, invariant, ...) and where in the body it leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from stepper import element_types
from stepper.engine.compilation.changing import can_change, decided_by
from stepper.engine.loops import (
    ConcatenatedOutput,
    InvariantInput,
    LastValueOutput,
    MergedInput,
    SlicedInput,
    check_stride,
    whole_axis,
)
from stepper.engine.program import BranchPlan, LoopPlan, Program, Value
from stepper.engine.roles import RoleError, Roles, control_inputs, roles_of
from stepper.engine.rules import Rules
from stepper.errors import KernelError
from stepper.ir.model import Body, Graph, InputMapping, Layer, Slicing, Source, parameter_shape, parameter_type
from stepper.ir.xml import EXECUTION_CONDITION
from stepper.ops.families import FAMILIES

Note = Callable[[str], None]


class PlanError(ValueError):
    """A port map that cannot be; `line` is the line of the entry, 0 where the whole is meant."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def branch_plan(body: Body, program: Program) -> BranchPlan:
    """Return one side of an If (If-8: input 0 is the condition; the port map's numbers are those of the layer)."""
    mapped = {entry.parameter for entry in body.inputs if entry.input is not None}
    for parameter in program.graph.parameters:
        if parameter.id not in mapped:
            raise PlanError(
                f"the Parameter {parameter.id} '{parameter.name}' of <{body.role}> is fed by nothing", body.line
            )
    inputs = [(entry.input, program.slot(entry.parameter)) for entry in body.inputs if entry.input is not None]
    outputs = [(entry.output, program.slot(entry.result)) for entry in body.outputs if entry.output is not None]
    return BranchPlan(program, tuple(inputs), tuple(outputs))


def loop_plan(layer: Layer, program: Program, outer: Graph, rules: Rules, note: Note) -> LoopPlan:
    """Return the whole port map of a TensorIterator or Loop.

    Which of several claims to one Parameter counts follows semantics 3.11 and 4.3. `note` is told where the rule books
    part. Raises PlanError for what neither allows.
    """
    body = layer.bodies[0]
    _check_dialect(layer, body, rules, note)
    is_loop = layer.type == "Loop"
    trip_count, condition = control_inputs(layer, body, outer) if is_loop else (None, None)
    try:
        roles = roles_of(layer)
    except RoleError as error:
        raise PlanError(str(error), error.line) from None
    _check_inputs(layer, roles, outer, rules, note)
    slot = program.slot
    merged, last_values = _merged(program, roles), _last_values(body, program, roles)
    return LoopPlan(
        program=program,
        sliced=tuple(
            SlicedInput(entry.input, slot(entry.parameter), entry.slicing, entry.line)
            for entry in roles.sliced
            if entry.input is not None and entry.slicing is not None
        ),
        merged=merged,
        rigid=_rigid(program, merged, last_values if is_loop else ()),
        passes_on=_passes_on(merged),
        carried=tuple((entry.parameter, entry.result) for entry in merged),
        may_grow=any(operation.layer.type not in _NEVER_LARGER for operation in program.operations),
        invariant=tuple(
            InvariantInput(entry.input, slot(entry.parameter), entry.line)
            for entry in roles.invariant
            if entry.input is not None
        ),
        unfed=tuple(slot(parameter.id) for parameter in roles.unfed),
        current_iteration=tuple(
            (slot(identity), _numbered(body.graph.by_id[identity], rules)) for identity in roles.current_iteration
        ),
        trip_count=trip_count,
        condition=condition,
        constant_condition=condition is not None and _is_constant(layer, condition, outer),
        condition_result=_condition_result(body, program, condition, rules) if is_loop else None,
        fixed_condition=is_loop and _is_fixed_condition(body, roles),
        deciding=_deciding(body, program, roles, merged) if is_loop else None,
        last_values=last_values,
        concatenated=_concatenated(body, program, rules, note),
        is_loop=is_loop,
        is_over_calls=layer.is_over_calls,
    )


def _is_fixed_condition(body: Body, roles: Roles) -> bool:
    """Return True if the body's condition is the same in each iteration, whatever it is."""
    given = _given_condition(body)
    return given is not None and not can_change(body.graph, roles, given)


def _deciding(
    body: Body, program: Program, roles: Roles, merged: tuple[MergedInput, ...]
) -> tuple[MergedInput, ...] | None:
    """Return the carried entries that alone decide how long the loop goes on; None where something else may."""
    given = _given_condition(body)
    parameters = None if given is None or roles.sliced else decided_by(body.graph, roles, given)
    if not parameters or program.has_memory:
        return None
    slots = {program.slot(identity) for identity in parameters}
    return tuple(entry for entry in merged if entry.parameter in slots)


def _given_condition(body: Body) -> Source | None:
    """Return what the body gives as its condition."""
    result = next((entry.result for entry in body.outputs if entry.purpose == EXECUTION_CONDITION), None)
    given = () if result is None else body.graph.sources.get(result, ())
    return given[0] if given else None


def _merged(program: Program, roles: Roles) -> tuple[MergedInput, ...]:
    slot = program.slot
    return tuple(
        MergedInput(entry.input, slot(entry.parameter), slot(roles.merged_from[entry.parameter]), entry.line)
        for entry in roles.merged
        if entry.input is not None
    )


def _rigid(
    program: Program, merged: tuple[MergedInput, ...], may_change: tuple[LastValueOutput, ...]
) -> tuple[MergedInput, ...]:
    """Return those for which the file declares one fixed shape, and another for what is carried back."""
    relaxed = {entry.result for entry in may_change}

    def is_rigid(entry: MergedInput) -> bool:
        entering = parameter_shape(program.parameter(entry.parameter)).static
        leaving = program.declared(entry.result)[0]
        return entering is not None and -1 not in leaving and entering != leaving

    return tuple(entry for entry in merged if entry.result not in relaxed and is_rigid(entry))


_NEVER_LARGER_FAMILIES: Final = (
    "elementwise comparison bitwise unary activation reduction normalization convert quantize recurrent"
)
_NEVER_LARGER: Final = frozenset(["Reshape", "Squeeze", "Unsqueeze", "Transpose"]).union(
    *(FAMILIES[name].split() for name in _NEVER_LARGER_FAMILIES.split())
)
"""Operations that, again and again, cannot make a tensor grow without bound."""


def _passes_on(merged: tuple[MergedInput, ...]) -> bool:
    parameters = {entry.parameter for entry in merged}
    return any(entry.result in parameters - {entry.parameter} for entry in merged)


def static_notes(layer: Layer, outer: Graph) -> tuple[str, ...]:
    """Return what a run by the specification notes of a loop before it begins: mostly where OpenVINO departs from it.

    What cannot run has no notes.
    """
    notes: dict[str, None] = {}
    body = layer.bodies[0]

    def note(text: str) -> None:
        notes.setdefault(text)

    try:
        _check_dialect(layer, body, Rules.SPEC, note)
        _check_inputs(layer, roles_of(layer), outer, Rules.SPEC, note)
        for entry in body.outputs:
            if entry.output is not None and entry.slicing is not None:
                _check_joined(entry.slicing, entry.line, Rules.SPEC, note)
    except (PlanError, RoleError):
        return ()
    return tuple(notes)


def _check_dialect(layer: Layer, body: Body, rules: Rules, note: Note) -> None:
    if body.first_draft:
        if rules is Rules.OPENVINO:
            raise PlanError("is written in the first draft of Loop-5, which OpenVINO refuses")
        note("is written in the first draft of Loop-5, which OpenVINO refuses")
    nested = [inner for inner in body.graph.layers if inner.type == "TensorIterator" and not inner.opened_from]
    if layer.type == "TensorIterator" and nested:
        text = f"has a TensorIterator in its body ({nested[0]}), which OpenVINO refuses"
        if rules is Rules.OPENVINO:
            raise PlanError(text)
        note(text)


def _check_inputs(layer: Layer, roles: Roles, outer: Graph, rules: Rules, note: Note) -> None:
    for entry in roles.fed:
        _check_slicing(entry, rules, note, is_loop=layer.type == "Loop")
        if outer.sources[layer.id][entry.input or 0] is None:
            raise PlanError(f"no edge reaches input {entry.input}, which the port map leads into the body", entry.line)
    for parameter in roles.unfed:
        note(f"nothing feeds the body's {parameter}: zeros are used, where OpenVINO leaves junk")
    _note_aliasing(layer.bodies[0].graph, roles, note)


_IN_PLACE = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Identity"})


def _note_aliasing(graph: Graph, roles: Roles, note: Note) -> None:
    """Note where the plugin's back edges, which copy in turn, would read what they overwrote (semantics 4.2)."""
    overwritten = {entry.parameter for entry in (*roles.sliced, *roles.merged)}
    for target, result in roles.merged_from.items():
        layer = graph.by_id[result]
        while layer.type in _IN_PLACE or layer.type == "Result":
            source = graph.sources[layer.id][0]
            assert source is not None, "the reader has seen to it"
            layer = graph.by_id[source.layer]
        if layer.type == "Parameter" and layer.id != target and layer.id in overwritten:
            names = f"{layer.id} '{layer.name}' to {target} '{graph.by_id[target].name}'"
            note(
                f"a back edge carries Parameter {names} unchanged; OpenVINO's plugin may copy what it overwrote before"
            )


def _check_slicing(entry: InputMapping, rules: Rules, note: Note, *, is_loop: bool) -> None:
    slicing = entry.slicing
    if slicing is None:
        return
    _check_stride(slicing, entry.line, rules, note)
    default = whole_axis(slicing)
    if is_loop and (slicing.start, slicing.end) != default:
        note(
            f"the sliced input on line {entry.line} has start {slicing.start} and end {slicing.end}, "
            "at which OpenVINO does not look in a Loop: it takes slices from the edge on"
        )
    elif slicing.start != default[0]:
        note(
            f"the sliced input on line {entry.line} has start {slicing.start}: the specification begins there, "
            "OpenVINO begins at the edge and only counts by it"
        )
    if slicing.axis < 0:
        note(f"the sliced input on line {entry.line} has axis {slicing.axis}, which OpenVINO refuses")
        if rules is Rules.OPENVINO:
            raise PlanError(
                f"the axis {slicing.axis} of a sliced input is negative, which OpenVINO refuses", entry.line
            )


def _check_stride(slicing: Slicing, line: int, rules: Rules, note: Note) -> None:
    try:
        check_stride(slicing, Rules.SPEC)
    except KernelError as error:
        if rules is Rules.SPEC or slicing.stride == 0:
            raise PlanError(str(error), line) from None
        note(f"on line {line} {error} by the specification; OpenVINO goes by the stride")


def _check_joined(slicing: Slicing, line: int, rules: Rules, note: Note) -> None:
    _check_stride(slicing, line, rules, note)
    if slicing.axis < 0:
        text = f"the concatenated output on line {line} has axis {slicing.axis}, which OpenVINO refuses"
        if rules is Rules.OPENVINO:
            raise PlanError(text, line)
        note(text)


def _numbered(parameter: Layer, rules: Rules) -> Callable[[int], Value]:
    """Return the conversion of an iteration number to a value of the Parameter's type and shape."""
    declared = parameter_type(parameter)
    dtype = np.dtype(np.int32 if rules is Rules.OPENVINO or declared is element_types.I32 else np.int64)
    if not parameter_shape(parameter).accepts(()):
        return lambda iteration: np.array([iteration], dtype)
    return dtype.type


def _is_constant(layer: Layer, index: int, outer: Graph) -> bool:
    source = outer.sources[layer.id][index]
    return source is not None and outer.by_id[source.layer].type == "Constant"


def _condition_result(body: Body, program: Program, condition: int | None, rules: Rules) -> int | None:
    """Return the slot of the body's condition; None if it does not count (first draft, no condition input)."""
    for entry in body.outputs:
        if entry.purpose == EXECUTION_CONDITION:
            return program.slot(entry.result)
        if entry.output is None and rules is Rules.OPENVINO:
            raise PlanError("a second <output> with external_port_id -1 hides the condition from OpenVINO", entry.line)
    if not body.first_draft:
        raise PlanError('no <output> of its port map has purpose="execution_condition", which Loop demands')
    if condition is None:
        return None
    marked = {entry.parameter for entry in body.inputs if entry.condition}
    for edge in body.back_edges:
        if edge.to_layer in marked:
            return program.slot(edge.from_layer)
    raise PlanError('no back edge leads into the Parameter marked condition="True", so nothing renews the condition')


def _last_values(body: Body, program: Program, roles: Roles) -> tuple[LastValueOutput, ...]:
    """Return the last-value outputs; of several Parameters fed by a Result, the lowest input counts (semantics 3.5)."""
    found = []
    for entry in body.outputs:
        if entry.output is None or entry.slicing is not None:
            continue
        fed = [merged for merged in roles.merged if roles.merged_from[merged.parameter] == entry.result]
        first = min(fed, key=lambda merged: merged.input or 0, default=None)
        slot = None if first is None else program.slot(first.parameter)
        found.append(LastValueOutput(entry.output, program.slot(entry.result), slot, entry.line))
    return tuple(found)


def _concatenated(body: Body, program: Program, rules: Rules, note: Note) -> tuple[ConcatenatedOutput, ...]:
    found = []
    for entry in body.outputs:
        slicing = entry.slicing
        if entry.output is None or slicing is None:
            continue
        _check_joined(slicing, entry.line, rules, note)
        found.append(ConcatenatedOutput(entry.output, program.slot(entry.result), slicing, entry.line))
    return tuple(found)
