"""Rules of what begins and ends a loop: trip count, initial condition, condition of the body."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import IfSubject, LoopSubject, known_chain, known_value
from stepper.diagnosis.rule import IF, LOOP, Hits, found_by, inside, outside
from stepper.ir.model import Layer, Source
from stepper.wording import enumerated

_INT32: Final = range(-(2**31), 2**31)
_NO_LIMIT: Final = 2**63 - 1
_COMPARISONS: Final = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")


@found_by(
    "C201",
    "loop-never-ends",
    LOOP,
    ERROR,
    says="the loop can never end: the trip count is {trip}, and {condition}{given} is the same each time{because}",
    means="a run never comes back",
    do="give a trip count of 0 or more, or a condition that becomes false",
)
def loop_never_ends(loop: LoopSubject) -> Hits:
    """Loops without a limit whose condition is the constant true, or depends on nothing that changes."""
    trip = loop.trip_count
    if not loop.is_loop or trip is None or not _is_endless(loop) or loop.initial_condition is False:
        return
    result = loop.condition_result
    if result is None or loop.body_condition is False:
        return
    if loop.body_condition is True or not loop.can_change(result):
        where = loop.given_to(result)
        at = loop.inner.by_id[result if where is None else where.layer]
        read = loop.ancestors(where) & {entry.parameter for entry in loop.roles.invariant}
        names = enumerated([str(loop.name(one)) for one in sorted(read)])
        because = f": no back edge leads to {names}, which it reads" if names else ""
        given = "" if where is None else f", which {loop.site(at)} gives,"
        yield inside(at, trip=trip, condition=loop.name(result), given=given, because=because)


@found_by(
    "C202",
    "condition-never-changes",
    LOOP,
    WARNING,
    says="{condition} depends on nothing that changes from one iteration to the next",
    means="the loop runs once, or until its trip count or slices end it",
    do="let the condition read the value that the iteration makes",
    source="specification/Loop-5, execution_condition",
)
def condition_never_changes(loop: LoopSubject) -> Hits:
    """Conditions that are computed, and the same each time."""
    result = loop.condition_result
    if not loop.is_loop or result is None or loop.body_condition is not None or _is_endless(loop):
        return
    source = loop.given_to(result)
    if source is None or loop.can_change(result) or known_chain(loop.inner, source) is not None:
        return
    layer = loop.inner.by_id[source.layer]
    if layer.type != "Parameter":
        yield inside(layer, condition=layer)


def _is_endless(loop: LoopSubject) -> bool:
    return loop.trip_count is not None and (loop.trip_count < 0 or loop.trip_count == _NO_LIMIT)


@found_by(
    "C203",
    "initial-condition-false",
    LOOP,
    WARNING,
    says="the initial condition {layer} is the constant false: the loop is never entered",
    means="outputs that are carried are the first values; the others are empty, or undefined in OpenVINO",
    do="let the condition be computed, or be true",
)
def initial_condition_false(loop: LoopSubject) -> Hits:
    """Loops that nothing can enter."""
    if loop.is_loop and loop.initial_condition is False:
        yield outside(loop.maker(loop.control_inputs[1]))


@found_by(
    "C204",
    "trip-count-zero",
    LOOP,
    WARNING,
    says="the trip count {layer} is 0: the loop is never entered",
    means="outputs that are carried are the first values, and where there is nothing else this is a note; "
    "OpenVINO's compiler dies on a concatenated output whose size it knows; other last values are undefined",
    do="give the number of iterations, or -1 for no limit",
)
def trip_count_zero(loop: LoopSubject) -> Hits:
    """Loops with no iterations."""
    if loop.is_loop and loop.trip_count == 0:
        carried = set(loop.roles.merged_from.values())
        given = [entry for entry in loop.body.outputs if entry.output is not None]
        is_open = loop.body_condition is not True  # then the size of a concatenation is not known to the compiler
        is_defined = all(entry.result in carried if entry.slicing is None else is_open for entry in given)
        hit = outside(loop.maker(loop.control_inputs[0]))
        yield hit.graded(NOTE) if is_defined else hit


@found_by(
    "C205",
    "trip-count-negative",
    LOOP,
    WARNING,
    says="the trip count {layer} is {trip}; only -1 stands for no limit",
    means="OpenVINO's CPU plugin fails where an output is concatenated, else takes it as no limit",
    do="write -1, or the number of iterations",
    source="OpenVINO 2026.4.1, measured",
)
def trip_count_negative(loop: LoopSubject) -> Hits:
    """Trip counts below -1."""
    if loop.is_loop and loop.trip_count is not None and loop.trip_count < -1:
        yield outside(loop.maker(loop.control_inputs[0]), trip=loop.trip_count)


@found_by(
    "C206",
    "trip-count-narrowed",
    LOOP,
    WARNING,
    says="the trip count {trip} is {written}, which does not fit 32 bits: {layer} makes {becomes} of it",
    means="the loop runs another number of iterations than is written",
    do="give a trip count below 2^31",
)
def trip_count_narrowed(loop: LoopSubject) -> Hits:
    """Trip counts that a Convert cuts to 32 bits, or the runtime."""
    index = loop.control_inputs[0]
    chain = None if index is None else known_chain(loop.graph, loop.source(index))
    if chain is None:
        return
    constant, passed = chain
    value = known_value(loop.model, loop.graph, Source(constant.id, 0))
    if value is None or value.size != 1 or value.dtype.kind not in "iu" or int(value.reshape(-1)[0]) in _INT32:
        return
    if int(value.reshape(-1)[0]) == _NO_LIMIT:
        return  # as ONNX and PyTorch write a loop without a limit
    written, becomes = int(value.reshape(-1)[0]), loop.trip_count
    if becomes is not None and becomes != written:
        convert = next(layer for layer in passed if layer.type == "Convert")
        yield outside(convert, trip=constant, written=written, becomes=becomes)
    else:
        yield outside(constant, trip=constant, written=written, layer="OpenVINO's CPU plugin", becomes=2**31 - 1)


@found_by(
    "C215",
    "trip-count-without-limit",
    LOOP,
    NOTE,
    says="the trip count {layer} is {written}, the largest whole number of its type: no limit, {ends} ends the loop",
    means="runtimes that take it for a number reserve memory for it, or hold it in 32 bits",
    do="write -1, which says that there is no limit",
    source="specification/Loop-5, trip count",
)
def trip_count_without_limit(loop: LoopSubject) -> Hits:
    """Trip counts that ONNX and PyTorch write where there is none."""
    if loop.trip_count != _NO_LIMIT or loop.condition_result is None or loop.body_condition is True:
        return
    source = loop.given_to(loop.condition_result)
    ends = loop.name(loop.condition_result if source is None else source.layer)
    yield outside(loop.maker(loop.control_inputs[0]), written=_NO_LIMIT, ends=ends)


@found_by(
    "C207",
    "trip-count-type",
    LOOP,
    ERROR,
    says="the trip count {layer} is {type}, expected i64 or i32",
    means="OpenVINO refuses to compile the model",
    do="convert it to i64",
)
def trip_count_type(loop: LoopSubject) -> Hits:
    """Trip counts that are no whole numbers."""
    index = loop.control_inputs[0]
    found = None if index is None else loop.tensor(index).type
    if found is not None and found.name not in ("i16", "i32", "i64", "u16", "u32", "u64"):
        yield outside(loop.maker(index), type=found.name)


@found_by(
    "C208",
    "control-shape",
    LOOP,
    ERROR,
    says="the {what} {layer} has the shape {shape}, expected a scalar or one element",
    means="OpenVINO refuses the file",
    do="take one element of it",
)
def control_shape(loop: LoopSubject) -> Hits:
    """Trip counts and initial conditions with more than one element."""
    for what, index in zip(("trip count", "initial condition"), loop.control_inputs, strict=True):
        if index is None:
            continue
        declared = loop.tensor(index)
        if not declared.may_be_one_element or (declared.rank or 0) > 1:
            yield outside(loop.maker(index), what=what, shape=str(declared.shape))


@found_by(
    "C209",
    "condition-type",
    LOOP,
    ERROR,
    says="the {what} {layer}{made} is {type}, expected boolean",
    means="OpenVINO refuses to compile the model",
    do="compare the value, or convert it to boolean",
)
def condition_type(loop: LoopSubject) -> Hits:
    """Conditions that are not boolean."""
    index = loop.control_inputs[1]
    found = None if index is None else loop.tensor(index).type
    if found is not None and found.name != "boolean":
        yield outside(loop.maker(index), what="initial condition", made="", type=found.name)
    result = loop.condition_result
    found = None if result is None or not loop.is_loop else loop.of_result(result).type
    if result is not None and found is not None and found.name != "boolean":
        source = loop.given_to(result)
        made = "" if source is None else f", which {loop.name(source.layer)} gives,"
        yield inside(loop.inner.by_id[result], what="condition", layer=loop.name(result), made=made, type=found.name)


@found_by(
    "C210",
    "condition-not-one-element",
    LOOP,
    ERROR,
    says="the condition {result} has the shape {shape}, expected a scalar or one element",
    means="OpenVINO refuses the file; which element should decide is not said",
    do="reduce it, with ReduceLogicalAnd or ReduceLogicalOr",
)
def condition_not_one_element(loop: LoopSubject) -> Hits:
    """Conditions of a body with several elements."""
    result = loop.condition_result
    if result is None or not loop.is_loop:
        return
    shape = loop.least_shape(loop.given_to(result))
    if math.prod(shape) > 1:
        yield inside(loop.inner.by_id[result], result=loop.name(result), shape=f"[{','.join(map(str, shape))}]")


@found_by(
    "C211",
    "condition-constant-false",
    LOOP,
    NOTE,
    says="the condition {result} is the constant false{given}: the loop runs once",
    means="one iteration, whatever the trip count",
    do="let the condition be computed; a body that runs once needs no loop",
)
def condition_constant_false(loop: LoopSubject) -> Hits:
    """Loops whose trip count says more than the one iteration that they run."""
    result = loop.condition_result
    if loop.is_loop and result is not None and loop.body_condition is False and loop.trip_count != 1:
        source = loop.given_to(result)
        given = "" if source is None else f" of {loop.name(source.layer)}"
        at = loop.inner.by_id[result if source is None else source.layer]
        yield inside(at, result=loop.name(result), given=given)


@found_by(
    "C212",
    "condition-from-old-value",
    LOOP,
    NOTE,
    says="the condition {layer} reads {parameter}, the value from before the iteration; the new one is {next}",
    means="the loop ends one iteration later than with the new value: right for some loops, too late for others",
    do="if the loop runs once too often, let {layer} read {next}",
    source="specification/Loop-5, execution_condition",
)
def condition_from_old_value(loop: LoopSubject) -> Hits:
    """Comparisons in the condition that read what was carried in, though the body makes the next value."""
    result = loop.condition_result
    if not loop.is_loop or result is None:
        return
    for layer, parameter in _old_values(loop, loop.given_to(result)):
        new = loop.given_to(loop.roles.merged_from[parameter])
        if new is None or new.layer == parameter:
            continue
        next_ = loop.inner.by_id[new.layer]
        yield inside(layer, parameter=loop.name(parameter), next=next_)


def _old_values(loop: LoopSubject, source: Source | None) -> Iterator[tuple[Layer, int]]:
    """Yield what in the condition reads a carried Parameter, with the Parameter's id."""
    carried = {one.layer for result in loop.roles.merged_from.values() if (one := loop.given_to(result)) is not None}
    seen = carried - ({source.layer} if source is not None else set())  # what makes a new value reads the old one
    waiting = [] if source is None else [source.layer]
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        layer = loop.inner.by_id[key]
        is_asked = layer.type in _COMPARISONS or layer.type in ("LogicalNot", "LogicalAnd", "LogicalOr", "If")
        for one in loop.inner.sources[key]:
            origin = loop.origin(one)
            if origin is None:
                continue
            if is_asked and origin.layer in loop.roles.merged_from:
                yield layer, origin.layer
            elif is_asked or layer.type in (
                *("Squeeze", "Unsqueeze", "Reshape", "Convert"),
                "ReduceLogicalAnd",
                "ReduceLogicalOr",
            ):
                waiting.append(origin.layer)


@found_by(
    "C213",
    "if-condition-type",
    IF,
    ERROR,
    says="the condition {layer} of the If is {type}, expected boolean",
    means="OpenVINO's CPU plugin judges its first byte: 1.0 and 256 count as false",
    do="compare it, or convert it to boolean",
    source="specification/If-8",
)
def if_condition_type(facts: IfSubject) -> Hits:
    """Conditions of an If that are not boolean."""
    found = facts.tensor(0).type
    if found is not None and found.name != "boolean":
        yield outside(facts.maker(0), type=found.name)


@found_by(
    "C214",
    "if-condition-constant",
    IF,
    NOTE,
    says="the condition {layer} of the If is the constant {value}: the other side never runs",
    means="half of the If is dead",
    do="put the side that runs in place of the If",
    source="specification/If-8",
)
def if_condition_constant(facts: IfSubject) -> Hits:
    """Ifs that are decided by the file."""
    value = facts.constant(0)
    if value is not None and value.size:
        yield outside(facts.maker(0), value=str(bool(value.reshape(-1)[0])).lower())
