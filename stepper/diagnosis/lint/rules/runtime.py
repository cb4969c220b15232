"""Rules of what OpenVINO's CPU plugin (2026.4) does otherwise than the specification says, where a file shows it."""

from __future__ import annotations

import math
from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import LayerSubject, LoopSubject, integer_attribute, known_value, of_parameter
from stepper.diagnosis.rule import LAYER, LOOP, Hits, found_by, inside, outside
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import BackEdge, Source
from stepper.wording import enumerated

_INT32: Final = range(-(2**31), 2**31)
_LONG: Final = ("i64", "u64")
_ARITHMETIC: Final = ("Add", "Subtract", "Multiply", "Mod", "FloorMod", "Divide", "Power")


@found_by(
    "R201",
    "growing-state-not-exposed",
    LOOP,
    ERROR,
    says="{parameter} changes its shape from {before} to {after} and is no output of the loop",
    means="OpenVINO keeps the first shape and fails, or reads the wrong elements; here it runs",
    do="give {result} out as a last value, too ({kind})",
)
def growing_state_not_exposed(loop: LoopSubject) -> Hits:
    """Carried values of changing shape that the plugin does not know to be so."""
    exposed = {entry.result for entry in loop.body.outputs if entry.output is not None and entry.slicing is None}
    for parameter, result in loop.roles.merged_from.items():
        change = _change_of_shape(loop, parameter, result)
        if change is None or (loop.is_loop and result in exposed):
            continue
        yield inside(
            loop.inner.by_id[parameter],
            parameter=loop.name(parameter),
            result=loop.name(result),
            before=change[0],
            after=change[1],
            kind="with external_port_id of a new output"
            if loop.is_loop
            else "and use a Loop: a TensorIterator never can",
        )


@found_by(
    "R212",
    "growing-state",
    LOOP,
    NOTE,
    says="{parameter} changes its shape from {before} to {after}: a call ends with another shape than it began with",
    means="releases of OpenVINO without the change of openvino#14041 begin the next call with the last shape",
    do="use a newer release, or a new infer request for each call",
    source="openvinotoolkit/openvino#14041",
)
def growing_state(loop: LoopSubject) -> Hits:
    """Carried values of changing shape that are an output of the loop, too, as they must be."""
    exposed = {entry.result for entry in loop.body.outputs if entry.output is not None and entry.slicing is None}
    for parameter, result in loop.roles.merged_from.items() if loop.is_loop else ():
        change = _change_of_shape(loop, parameter, result)
        if change is not None and result in exposed:
            layer = loop.inner.by_id[parameter]
            yield inside(layer, before=change[0], after=change[1])


def _change_of_shape(loop: LoopSubject, parameter: int, result: int) -> tuple[str, str] | None:
    """Return the shapes of a carried value before and after an iteration where these surely differ."""
    before, after = of_parameter(loop.inner.by_id[parameter]), loop.of_result(result)
    shapes = before.static, after.static
    # OpenVINO reshapes one element.
    if None not in shapes and shapes[0] != shapes[1] and any(math.prod(one or ()) != 1 for one in shapes):
        return str(before.shape), str(after.shape)
    entry = next(one for one in loop.roles.merged if one.parameter == parameter)
    outer, source = loop.outer(entry), loop.origin(loop.given_to(result))
    layer = None if source is None else loop.inner.by_id[source.layer]
    if layer is None or layer.type != "Concat" or (axis := integer_attribute(layer, "axis")) is None:
        return None
    parts = [loop.origin(one) for one in loop.inner.sources[layer.id]]
    grows = len(parts) > 1 and any(part is not None and part.layer == parameter for part in parts)
    # What begins with size 0 is known to the plugin as open.
    if not grows or not outer.size(axis):
        return None
    return str(outer.shape), f"one that is longer along axis {axis} in each iteration"


@found_by(
    "R202",
    "aliased-back-edges",
    LOOP,
    WARNING,
    says="{result} passes {other} on as it is, a back edge carries it to {parameter}, and {other} gets a new value",
    means="OpenVINO's CPU plugin copies one after another between shared memory: {parameter} gets the new value of "
    "{other}, not the old one",
    do="put an operation that computes in between, such as Add with 0",
)
def aliased_back_edges(loop: LoopSubject) -> Hits:
    """Back edges that read a Parameter which is written in the same moment."""
    # New slices are written first, then what is carried in the order of the inputs.
    order = {entry.parameter: (0, entry.input or 0) for entry in loop.roles.sliced}
    order |= {entry.parameter: (1, entry.input or 0) for entry in loop.roles.merged}
    for edge in loop.body.back_edges:
        if loop.roles.merged_from.get(edge.to_layer) != edge.from_layer:
            continue
        other = _aliased(loop, edge)
        if other in order and other is not None and order[other] < order[edge.to_layer]:
            yield inside(edge, other=loop.name(other))


def _aliased(loop: LoopSubject, edge: BackEdge) -> int | None:
    """Return the Parameter whose memory a Result shares; None where something is computed in between."""
    source = loop.origin(loop.given_to(edge.from_layer))
    layer = None if source is None else loop.inner.by_id[source.layer]
    return layer.id if layer is not None and layer.type == "Parameter" else None


@found_by(
    "R203",
    "tensor-iterator-in-tensor-iterator",
    LOOP,
    ERROR,
    says="{inner} stands directly in the body of another TensorIterator",
    means="OpenVINO refuses the file",
    do="make one of them a Loop",
)
def nested_tensor_iterator(loop: LoopSubject) -> Hits:
    """TensorIterators that the reader of OpenVINO does not take."""
    for layer in loop.inner.layers if not loop.is_loop else ():
        if layer.type == "TensorIterator":
            yield inside(layer, inner=layer)


def _is_beyond_int32(facts: LayerSubject) -> bool:
    """Return True for one whole number of a body that does not fit into 32 bits."""
    kind = constant_type(facts.layer) if facts.path and facts.layer.outputs else None
    value = known_value(facts.model, facts.graph, Source(facts.layer.id, 0)) if kind and kind.name in _LONG else None
    return value is not None and value.size == 1 and int(value.reshape(-1)[0]) not in _INT32


@found_by(
    "R204",
    "constant-beyond-int32",
    LAYER,
    WARNING,
    "Constant",
    says="{layer} is {value}, beyond 32 bits, and {reader} computes with it",
    means="OpenVINO's CPU plugin computes i64 as i32: it becomes {becomes}",
    do="compute in f64 or scale the numbers; i64 is exact here, with --rules spec",
    suspects=_is_beyond_int32,
)
def constant_beyond_int32(facts: LayerSubject) -> Hits:
    """Whole numbers in the arithmetic of a body that do not fit."""
    layer = facts.layer
    readers = [one for one, _index in facts.graph.readers.get(layer.id, ()) if one.type in _ARITHMETIC]
    value = known_value(facts.model, facts.graph, Source(layer.id, 0)) if readers else None
    if value is not None:
        number = int(value.reshape(-1)[0])
        becomes = (number + 2**31) % 2**32 - 2**31
        yield outside(layer, value=number, reader=readers[0], becomes=becomes)


@found_by(
    "R205",
    "undefined-without-iterations",
    LOOP,
    NOTE,
    says="the loop may run no iteration ({why}), and {result} is a last value that no back edge carries",
    means="without an iteration the output is undefined: OpenVINO gives what was in the memory",
    do="carry the value with a back edge, so that it has a first value",
)
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


@found_by(
    "R206",
    "first-draft",
    LOOP,
    ERROR,
    says='the loop is written as the first draft of Loop-5 had it (internal_operation_id, condition="True")',
    means="no OpenVINO reads it; here it runs as that draft says",
    do="write the names of today: internal_layer_id, from-layer, to-layer, purpose",
    source="the first published draft of Loop-5",
)
def first_draft(loop: LoopSubject) -> Hits:
    """Loops in the words of the draft."""
    if loop.body.first_draft:
        yield outside(loop.layer)


@found_by(
    "R207",
    "sliced-inputs-unread",
    LOOP,
    WARNING,
    says="the body reads none of the slices ({parameters}), which alone say how many iterations there are",
    means="OpenVINO (EliminateLoopInputsOutputs) leaves them out, and the count with them: one iteration is left",
    do="let the body read a slice, or use a Loop with a trip count",
    source="runtime fault of 2026.4.1",
)
def sliced_inputs_unread(loop: LoopSubject) -> Hits:
    """TensorIterators that are only counted by their slices."""
    sliced = loop.roles.sliced
    if sliced and not loop.is_loop and not any(loop.is_read(entry.parameter) for entry in sliced):
        yield inside(sliced[0], parameters=enumerated([str(loop.name(one.parameter)) for one in sliced]))


def _is_square(facts: LayerSubject) -> bool:
    shape = constant_shape(facts.layer)
    return shape is not None and len(shape) >= 2 and shape[-1] == shape[-2] >= 2


@found_by(
    "R208",
    "square-constant-shared",
    LAYER,
    WARNING,
    "Constant",
    says="{first} and {second} share the square {constant}, one of them transposed",
    means="OpenVINO's CPU plugin (2026.4.1) computes the second with the weights of the first",
    do="give each MatMul a Constant of its own",
    source="runtime fault of 2026.4.1",
    suspects=_is_square,
)
def square_constant_shared(facts: LayerSubject) -> Hits:
    """Square weights that two products read in two ways."""
    layer = facts.layer
    readers = [one for one, index in facts.graph.readers.get(layer.id, ()) if one.type == "MatMul" and index == 1]
    ways = {one.is_set("transpose_b"): one for one in reversed(readers)}
    if len(ways) == 2:
        first, second = sorted(ways.values(), key=lambda one: one.line)
        yield outside(layer, first=first, second=second, constant=layer)


@found_by(
    "R209",
    "scan-size-taken-as-known",
    LOOP,
    ERROR,
    says="the condition {result} is {parameter} itself, which begins as the constant true and is carried: OpenVINO "
    "takes it as always true, and the concatenated outputs as {trip} long",
    means="where the condition ends the loop earlier, the rest of the outputs is memory that nothing has written",
    do="let the condition read what the body computes",
)
def scan_size_taken_as_known(loop: LoopSubject) -> Hits:
    """Conditions that are a carried Parameter, where outputs are concatenated."""
    result, trip = loop.condition_result, loop.trip_count
    source = None if result is None else loop.given_to(result)
    if result is None or source is None or trip is None or trip < 0 or source.layer not in loop.roles.merged_from:
        return
    entry = next(one for one in loop.roles.merged if one.parameter == source.layer)
    first = None if entry.input is None else loop.constant(entry.input)
    joined = [one for one in loop.body.outputs if one.slicing is not None and one.output is not None]
    carried = loop.given_to(loop.roles.merged_from[source.layer])
    if first is None or not first.all() or not joined or carried is None or carried.layer == source.layer:
        return
    yield inside(loop.inner.by_id[result], result=loop.name(result), parameter=loop.name(source.layer), trip=trip)


@found_by(
    "R210",
    "bytes-saturate",
    LAYER,
    NOTE,
    "Add",
    "Subtract",
    "Multiply",
    says="{layer} computes in {type}",
    means="OpenVINO's CPU plugin saturates where the specification lets the numbers wrap: 100 + 200 is 255 there "
    "and 44 here",
    do="compute in i32, and convert at the end",
    of_kinds=True,
)
def bytes_saturate(facts: LayerSubject) -> Hits:
    """Sums, differences and products of 8 bits in a body."""
    kind = facts.tensor(0).type if facts.path else None
    if kind is not None and kind.name in ("u8", "i8"):
        yield outside(facts.layer, type=kind.name)


@found_by(
    "R211",
    "computed-in-f32",
    LAYER,
    NOTE,
    "Parameter",
    says="{parameter} carries f64",
    means="OpenVINO's CPU plugin computes f64 as f32: digits that the specification keeps are lost",
    do="expect the precision of f32 there, or run here",
    of_kinds=True,
)
def computed_in_f32(facts: LayerSubject) -> Hits:
    """Parameters of bodies that are f64."""
    kind = of_parameter(facts.layer).type if facts.path else None
    if kind is not None and kind.name == "f64":
        yield outside(facts.layer)
