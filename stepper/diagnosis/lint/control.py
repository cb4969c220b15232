"""Rules of what begins and ends a loop, and of what OpenVINO does otherwise than the specification says."""

from __future__ import annotations

import math
from collections.abc import Iterator

from stepper.diagnosis.lint.subjects import (
    COMPARISONS,
    PASSING,
    IfSubject,
    LayerSubject,
    LoopSubject,
    integer_attribute,
    known_chain,
    of_parameter,
)
from stepper.diagnosis.rule import NOTE, Hits, found_by, found_in, found_in_kinds, inside, outside
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import Layer
from stepper.ops.operands import shape_text
from stepper.wording import enumerated

# Rules of what begins and ends a loop: trip count, initial condition, condition of the body.


_INT32 = range(-(2**31), 2**31)
_NO_LIMIT = 2**63 - 1


@found_by
def loop_never_ends(loop: LoopSubject) -> Hits:
    """Loops without a limit whose condition is the constant true, or depends on nothing that changes."""
    trip = loop.trip_count
    if not loop.is_loop or trip is None or not _is_endless(loop) or loop.initial_condition is False:
        return
    result = loop.condition_result
    if result is None or loop.body_condition is False:
        return
    if loop.body_condition is True or not loop.can_change(result):
        at = _deciding(loop, result)
        read = loop.decides & {entry.parameter for entry in loop.roles.invariant}
        names = enumerated([str(loop.name(one)) for one in sorted(read)])
        because = f": no back edge leads to {names}, which it reads" if names else ""
        given = "" if loop.condition is None else f", which {loop.site(at)} gives,"
        yield inside(at, trip=trip, condition=loop.name(result), given=given, because=because)


def _deciding(loop: LoopSubject, result: int) -> Layer:
    """Return what computes the condition; its Result where nothing does."""
    return loop.inner.by_id[result if loop.condition is None else loop.condition.layer]


@found_by
def condition_never_changes(loop: LoopSubject) -> Hits:
    """Conditions that are computed, and the same each time."""
    result = loop.condition_result
    if not loop.is_loop or result is None or loop.body_condition is not None or _is_endless(loop):
        return
    layer = loop.inner.layer_of(loop.condition)
    if loop.can_change(result) or known_chain(loop.inner, loop.condition) is not None:
        return
    if layer.type not in ("", "Parameter"):
        yield inside(layer, condition=layer)


def _is_endless(loop: LoopSubject) -> bool:
    return loop.trip_count is not None and (loop.trip_count < 0 or loop.trip_count == _NO_LIMIT)


@found_by
def initial_condition_false(loop: LoopSubject) -> Hits:
    """Loops that nothing can enter."""
    if loop.is_loop and loop.initial_condition is False:
        yield outside(loop.maker(loop.control_inputs[1]))


@found_by
def trip_count_zero(loop: LoopSubject) -> Hits:
    """Loops with no iterations."""
    if loop.is_loop and loop.trip_count == 0:
        carried = set(loop.roles.merged_from.values())
        given = [entry for entry in loop.body.outputs if entry.output is not None]
        is_open = loop.body_condition is not True  # then the size of a concatenation is not known to the compiler
        is_defined = all(entry.result in carried if entry.slicing is None else is_open for entry in given)
        hit = outside(loop.maker(loop.control_inputs[0]))
        yield hit.graded(NOTE) if is_defined else hit


@found_by
def trip_count_negative(loop: LoopSubject) -> Hits:
    """Trip counts below -1."""
    if loop.is_loop and loop.trip_count is not None and loop.trip_count < -1:
        yield outside(loop.maker(loop.control_inputs[0]), trip=loop.trip_count)


@found_by
def trip_count_narrowed(loop: LoopSubject) -> Hits:
    """Trip counts that a Convert cuts to 32 bits, or the runtime."""
    chain = known_chain(loop.graph, loop.source(loop.control_inputs[0]))
    if chain is None:
        return
    constant, passed = chain
    value = loop.value_of(constant)
    if value is None or value.size != 1 or value.dtype.kind not in "iu":
        return
    written, becomes = value.item(), loop.trip_count
    if written in _INT32 or written == _NO_LIMIT:
        return  # as ONNX and PyTorch write a loop without a limit
    if becomes is not None and becomes != written:
        convert = next(layer for layer in passed if layer.type == "Convert")
        yield outside(convert, trip=constant, written=written, becomes=becomes)
    else:
        yield outside(constant, trip=constant, written=written, layer="OpenVINO's CPU plugin", becomes=2**31 - 1)


@found_by
def trip_count_without_limit(loop: LoopSubject) -> Hits:
    """Trip counts that ONNX and PyTorch write where there is none."""
    if loop.trip_count != _NO_LIMIT or loop.condition_result is None or loop.body_condition is True:
        return
    ends = _deciding(loop, loop.condition_result)
    yield outside(loop.maker(loop.control_inputs[0]), written=_NO_LIMIT, ends=ends)


@found_by
def trip_count_type(loop: LoopSubject) -> Hits:
    """Trip counts that are no whole numbers."""
    index = loop.control_inputs[0]
    found = loop.tensor(index).type
    if found is not None and found.name not in ("i16", "i32", "i64", "u16", "u32", "u64"):
        yield outside(loop.maker(index), type=found.name)


@found_by
def control_shape(loop: LoopSubject) -> Hits:
    """Trip counts and initial conditions with more than one element."""
    for what, index in zip(("trip count", "initial condition"), loop.control_inputs, strict=True):
        if index is None:
            continue
        declared = loop.tensor(index)
        if not declared.may_be_one_element or (declared.rank or 0) > 1:
            yield outside(loop.maker(index), what=what, shape=str(declared.shape))


@found_by
def condition_type(loop: LoopSubject) -> Hits:
    """Conditions that are not boolean."""
    index = loop.control_inputs[1]
    found = loop.tensor(index).type
    if found is not None and found.name != "boolean":
        yield outside(loop.maker(index), what="initial condition", made="", type=found.name)
    result = loop.condition_result
    found = None if result is None or not loop.is_loop else loop.of_result(result).type
    if result is not None and found is not None and found.name != "boolean":
        made = "" if loop.condition is None else f", which {loop.name(loop.condition.layer)} gives,"
        yield inside(loop.inner.by_id[result], what="condition", layer=loop.name(result), made=made, type=found.name)


@found_by
def condition_not_one_element(loop: LoopSubject) -> Hits:
    """Conditions of a body with several elements."""
    result = loop.condition_result
    if result is None or not loop.is_loop:
        return
    shape = loop.least_shape(loop.condition)
    if math.prod(shape) > 1:
        yield inside(loop.inner.by_id[result], result=loop.name(result), shape=shape_text(shape))


@found_by
def condition_constant_false(loop: LoopSubject) -> Hits:
    """Loops whose trip count says more than the one iteration that they run."""
    result = loop.condition_result
    if loop.is_loop and result is not None and loop.body_condition is False and loop.trip_count != 1:
        given = "" if loop.condition is None else f" of {loop.name(loop.condition.layer)}"
        at = _deciding(loop, result)
        yield inside(at, result=loop.name(result), given=given)


@found_by
def condition_from_old_value(loop: LoopSubject) -> Hits:
    """Comparisons in the condition that read what was carried in, though the body makes the next value."""
    if not loop.is_loop:
        return
    for layer, parameter in _old_values(loop):
        new = loop.given_to(loop.roles.merged_from[parameter])
        if new is None or new.layer == parameter:
            continue
        next_ = loop.inner.by_id[new.layer]
        yield inside(layer, parameter=loop.name(parameter), next=next_)


def _old_values(loop: LoopSubject) -> Iterator[tuple[Layer, int]]:
    """Yield what in the condition reads a carried Parameter, with the Parameter's id."""
    waiting = [loop.inner.layer_of(loop.condition)]
    seen = {loop.inner.layer_of(loop.given_to(result)).id for result in loop.roles.merged_from.values()}
    seen -= {waiting[0].id}  # what makes a new value reads the old one
    while waiting:
        layer = waiting.pop()
        if layer.id in seen:
            continue
        seen.add(layer.id)
        is_asked = layer.type in COMPARISONS or layer.type in ("LogicalNot", "LogicalAnd", "LogicalOr", "If")
        for one in loop.inner.sources.get(layer.id, ()):
            origin = loop.inner.layer_of(loop.origin(one))
            if is_asked and origin.id in loop.roles.merged_from:
                yield layer, origin.id
            elif is_asked or layer.type in (*PASSING, "ReduceLogicalAnd", "ReduceLogicalOr"):
                waiting.append(origin)


@found_by
def if_condition_type(facts: IfSubject) -> Hits:
    """Conditions of an If that are not boolean."""
    found = facts.tensor(0).type
    if found is not None and found.name != "boolean":
        yield outside(facts.maker(0), type=found.name)


@found_by
def if_condition_constant(facts: IfSubject) -> Hits:
    """Ifs that are decided by the file."""
    value = facts.constant(0)
    if value is not None and value.size:
        yield outside(facts.maker(0), value=str(bool(value.reshape(-1)[0])).lower())


# Rules of what OpenVINO's CPU plugin (2026.4) does otherwise than the specification says, where a file shows it.


_LONG = ("i64", "u64")
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Mod", "FloorMod", "Divide", "Power")


@found_by
def growing_state_not_exposed(loop: LoopSubject) -> Hits:
    """Carried values of changing shape that the plugin does not know to be so."""
    for parameter, result, before, after in _growing(loop, exposed=False):
        yield inside(
            parameter,
            parameter=parameter,
            result=loop.name(result),
            before=before,
            after=after,
            kind="with external_port_id of a new output"
            if loop.is_loop
            else "and use a Loop: a TensorIterator never can",
        )


@found_by
def growing_state(loop: LoopSubject) -> Hits:
    """Carried values of changing shape that are an output of the loop, too, as they must be."""
    for parameter, _result, before, after in _growing(loop, exposed=True):
        yield inside(parameter, before=before, after=after)


def _growing(loop: LoopSubject, *, exposed: bool) -> Iterator[tuple[Layer, int, str, str]]:
    """Yield Parameters and Results of values of changing shape, with both shapes; `exposed`: outputs of a Loop."""
    given = {entry.result for entry in loop.body.outputs if entry.output is not None and entry.slicing is None}
    for parameter, result in loop.roles.merged_from.items():
        change = _change_of_shape(loop, parameter, result)
        if change is not None and (loop.is_loop and result in given) is exposed:
            yield loop.inner.by_id[parameter], result, *change


def _change_of_shape(loop: LoopSubject, parameter: int, result: int) -> tuple[str, str] | None:
    """Return the shapes of a carried value before and after an iteration where these surely differ."""
    before, after = of_parameter(loop.inner.by_id[parameter]), loop.of_result(result)
    shapes = before.static, after.static
    # OpenVINO reshapes one element.
    if None not in shapes and shapes[0] != shapes[1] and any(math.prod(one or ()) != 1 for one in shapes):
        return str(before.shape), str(after.shape)
    outer, layer = loop.fed(parameter), loop.inner.layer_of(loop.origin(loop.given_to(result)))
    if layer.type != "Concat" or (axis := integer_attribute(layer, "axis")) is None:
        return None
    parts = [loop.inner.layer_of(loop.origin(one)).id for one in loop.inner.sources[layer.id]]
    grows = len(parts) > 1 and parameter in parts
    # What begins with size 0 is known to the plugin as open.
    if not grows or not outer.size(axis):
        return None
    return str(outer.shape), f"one that is longer along axis {axis} in each iteration"


@found_by
def aliased_back_edges(loop: LoopSubject) -> Hits:
    """Back edges that read a Parameter which is written in the same moment."""
    # New slices are written first, then what is carried in the order of the inputs.
    order = {entry.parameter: (0, entry.input or 0) for entry in loop.roles.sliced}
    order |= {entry.parameter: (1, entry.input or 0) for entry in loop.roles.merged}
    for edge in loop.body.back_edges:
        if loop.roles.merged_from.get(edge.to_layer) != edge.from_layer:
            continue
        # The Result shares the memory of a Parameter where nothing is computed in between.
        other = loop.inner.layer_of(loop.origin(loop.given_to(edge.from_layer)))
        if other.type == "Parameter" and other.id in order and order[other.id] < order[edge.to_layer]:
            yield inside(edge, other=other)


@found_by
def tensor_iterator_in_tensor_iterator(loop: LoopSubject) -> Hits:
    """TensorIterators that the reader of OpenVINO does not take."""
    for layer in loop.inner.layers if not loop.is_loop else ():
        if layer.type == "TensorIterator":
            yield inside(layer, inner=layer)


def _is_beyond_int32(facts: LayerSubject) -> bool:
    """Return True for one whole number of a body that does not fit into 32 bits."""
    kind = constant_type(facts.layer) if facts.path and facts.layer.outputs else None
    value = facts.value_of(facts.layer) if kind and kind.name in _LONG else None
    return value is not None and value.size == 1 and value.item() not in _INT32


@found_in("Constant", suspects=_is_beyond_int32)
def constant_beyond_int32(facts: LayerSubject) -> Hits:
    """Whole numbers in the arithmetic of a body that do not fit."""
    layer = facts.layer
    readers = [one for one, _index in facts.graph.readers[layer.id] if one.type in _ARITHMETIC]
    value = facts.value_of(layer) if readers else None
    if value is not None:
        number = value.item()
        becomes = (number + 2**31) % 2**32 - 2**31
        yield facts.hit(value=number, reader=readers[0], becomes=becomes)


@found_by
def undefined_without_iterations(loop: LoopSubject) -> Hits:
    """Last values of loops that the file says are never entered."""
    if not loop.is_loop:
        return
    why = "the trip count is 0" if loop.trip_count == 0 else "the initial condition is false"
    if loop.trip_count != 0 and loop.initial_condition is not False:
        return
    carried = set(loop.roles.merged_from.values())
    for entry in loop.body.outputs:
        if entry.output is not None and entry.slicing is None and entry.result not in carried:
            yield inside(entry, why=why)


@found_by
def first_draft(loop: LoopSubject) -> Hits:
    """Loops in the words of the draft."""
    if loop.body.first_draft:
        yield loop.hit()


@found_by
def sliced_inputs_unread(loop: LoopSubject) -> Hits:
    """TensorIterators that are only counted by their slices."""
    sliced = loop.roles.sliced
    if sliced and not loop.is_loop and not any(loop.is_read(entry.parameter) for entry in sliced):
        yield inside(sliced[0], parameters=enumerated([str(loop.name(one.parameter)) for one in sliced]))


def _is_square(facts: LayerSubject) -> bool:
    shape = constant_shape(facts.layer)
    return shape is not None and len(shape) >= 2 and shape[-1] == shape[-2] >= 2


@found_in("Constant", suspects=_is_square)
def square_constant_shared(facts: LayerSubject) -> Hits:
    """Square weights that two products read in two ways."""
    layer = facts.layer
    readers = [one for one, index in facts.graph.readers[layer.id] if one.type == "MatMul" and index == 1]
    ways = {one.is_set("transpose_b"): one for one in reversed(readers)}
    if len(ways) == 2:
        first, second = sorted(ways.values(), key=lambda one: one.line)
        yield facts.hit(first=first, second=second, constant=layer)


@found_by
def scan_size_taken_as_known(loop: LoopSubject) -> Hits:
    """Conditions that are a carried Parameter, where outputs are concatenated."""
    result, trip = loop.condition_result, loop.trip_count
    source = loop.condition
    if result is None or source is None or trip is None or trip < 0 or source.layer not in loop.roles.merged_from:
        return
    entry = next(one for one in loop.roles.merged if one.parameter == source.layer)
    first = loop.constant(entry.input)
    joined = [one for one in loop.body.outputs if one.slicing is not None and one.output is not None]
    carried = loop.given_to(loop.roles.merged_from[source.layer])
    if first is None or not first.all() or not joined or carried is None or carried.layer == source.layer:
        return
    yield inside(loop.inner.by_id[result], result=loop.name(result), parameter=loop.name(source.layer), trip=trip)


@found_in_kinds("Add", "Subtract", "Multiply")
def bytes_saturate(facts: LayerSubject) -> Hits:
    """Sums, differences and products of 8 bits in a body."""
    kind = facts.tensor(0).type if facts.path else None
    if kind is not None and kind.name in ("u8", "i8"):
        yield facts.hit(type=kind.name)


@found_in_kinds("Parameter")
def computed_in_f32(facts: LayerSubject) -> Hits:
    """Parameters of bodies that are f64."""
    kind = of_parameter(facts.layer).type if facts.path else None
    if kind is not None and kind.name == "f64":
        yield facts.hit()
