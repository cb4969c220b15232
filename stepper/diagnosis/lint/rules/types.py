"""Rules of types and shapes that contradict each other between the outside and the inside of a body."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import (
    ELEMENTWISE,
    Declared,
    IfSubject,
    LayerSubject,
    LoopSubject,
    declared,
    different_types,
    of_parameter,
    of_port,
)
from stepper.diagnosis.rule import IF, LAYER, LOOP, Hits, found_by, inside, outside
from stepper.element_types import by_name
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import Source

_SAME_TYPE: Final = ELEMENTWISE | {"MatMul", "Concat"}
"""Operations whose operands have one type."""


@found_by(
    "T201",
    "body-parameter-type",
    LOOP,
    WARNING,
    says="{parameter} is declared as {inside}, and what comes in is {outside}",
    means="a Loop takes the type from outside; a TensorIterator of OpenVINO's CPU plugin converts in silence",
    do="declare the Parameter as {outside}, or convert the input",
)
def body_parameter_type(loop: LoopSubject) -> Hits:
    """Parameters of another type than their input."""
    for entry in loop.roles.fed:
        types = different_types(of_parameter(loop.inner.by_id[entry.parameter]), loop.outer(entry))
        if types:
            yield inside(entry, inside=types[0], outside=types[1])


@found_by(
    "T202",
    "body-parameter-shape",
    LOOP,
    WARNING,
    says="{parameter} is declared as {inside}, and what comes in is {outside}{cut}",
    means="OpenVINO takes the shape from outside, so what follows may not fit; here that is an error",
    do="declare the Parameter as what comes in",
)
def body_parameter_shape(loop: LoopSubject) -> Hits:
    """Parameters whose declared shape cannot be that of their input."""
    for entry in loop.roles.fed:
        outer, inner = loop.outer(entry).static, of_parameter(loop.inner.by_id[entry.parameter]).shape
        if outer is None or inner is None:
            continue
        slicing = entry.slicing
        if slicing is not None:
            if not -len(outer) <= slicing.axis < len(outer) or not slicing.stride:
                continue
            axis = slicing.axis % len(outer)
            outer = (*outer[:axis], abs(slicing.stride), *outer[axis + 1 :])
        if not inner.accepts(outer):
            cut = "" if slicing is None else f" in each slice, of {abs(slicing.stride)} along axis {slicing.axis}"
            came = f"[{','.join(map(str, outer))}]"
            hit = inside(entry, inside=str(inner), outside=came, cut=cut)
            # A state without elements, as what it is added to has none, is the same in any shape.
            yield hit.graded(NOTE) if inner.static is not None and 0 in inner.static else hit


@found_by(
    "T203",
    "sides-of-different-type",
    IF,
    ERROR,
    says="output {number} of the If is {then} from its then body and {otherwise} from its else body",
    means="OpenVINO refuses the file; here the type depends on the side that runs",
    do="convert the Result of one side",
    source="specification/If-8",
)
def sides_of_different_type(facts: IfSubject) -> Hits:
    """Outputs of an If with two types."""
    then, otherwise = facts.sides()
    for entry in then.body.outputs:
        other = next((one for one in otherwise.body.outputs if one.output == entry.output), None)
        if other is None or entry.output is None:
            continue
        types = different_types(then.of_result(entry.result), otherwise.of_result(other.result))
        if types:
            yield outside(facts.layer, number=entry.output, then=types[0], otherwise=types[1])


@found_by(
    "T204",
    "operands-of-different-type",
    LAYER,
    ERROR,
    *_SAME_TYPE,
    says="{layer} gets {first} from {maker} and {second} from {other}, which must be of one type",
    means="OpenVINO refuses the file",
    do="convert one of them",
    source="specification of the operation",
    of_kinds=True,
)
def operands_of_different_type(facts: LayerSubject) -> Hits:
    """Operations on values of two types."""
    layer = facts.layer
    sources = [one for one in facts.graph.sources[layer.id] if one is not None]
    given = {id(facts.graph.by_id[one.layer].outputs[one.output].element_type) for one in sources}
    if len(given) == 1 and not any(facts.graph.by_id[one.layer].type == "Parameter" for one in sources):
        return  # most are
    found = [(declared(facts.graph, source).type, facts.graph.by_id[source.layer]) for source in sources]
    known = [(one, maker) for one, maker in found if one is not None]
    for (first, maker), (second, other) in pairwise(known):
        if first != second:
            yield outside(layer, first=first.name, second=second.name, maker=maker, other=other)
            return


@found_by(
    "T205",
    "declared-type-differs",
    LAYER,
    WARNING,
    "TensorIterator",
    "Loop",
    "If",
    says="output {number} of {layer} is declared as {outer}, and {result} of its body gives {inner}",
    means="OpenVINO infers the type anew; readers that trust the file are misled",
    do="save the model with OpenVINO, which writes what it infers",
)
def declared_type_differs(facts: LayerSubject) -> Hits:
    """Outputs of a loop that are declared as another type than that of their Result."""
    for body in facts.layer.bodies:
        for entry in body.outputs:
            if entry.output is None or entry.output >= len(facts.layer.outputs):
                continue
            sources = body.graph.sources.get(entry.result, ())
            inner = declared(body.graph, sources[0] if sources else None)
            types = different_types(of_port(facts.layer.outputs[entry.output]), inner)
            if types:
                result = body.graph.by_id[entry.result]
                yield outside(facts.layer, number=entry.output, outer=types[0], inner=types[1], result=result)
                return


@found_by(
    "T206",
    "layer-against-its-port",
    LAYER,
    WARNING,
    "Constant",
    "Convert",
    "Parameter",
    says="{layer} is {given}, and its output port is declared as {declared}",
    means="what follows was written for {declared}: fractions are lost, elements are read otherwise, or it fails",
    do="undo what was changed; the data of the layer count, not its port",
    of_kinds=True,
)
def layer_against_its_port(facts: LayerSubject) -> Hits:
    """Constants, Parameters and Converts whose data and whose port are of different types or shapes."""
    layer = facts.layer
    if len(layer.outputs) != 1:
        return
    made = layer.outputs[0]
    if layer.type == "Constant" and constant_shape(layer) == made.dims and constant_type(layer) is made.element_type:
        return  # most are
    port = of_port(made)
    if layer.type == "Convert":
        own = Declared(by_name(layer.attributes.get("destination_type", "").strip()), None)
    else:
        own = declared(facts.graph, Source(layer.id, 0))
    types = different_types(own, port)
    given, taken = ([types[0]], [types[1]]) if types and types[1] != "dynamic" else ([], [])
    if own.static is not None and 0 not in own.static and port.static is not None and own.static != port.static:
        given, taken = [*given, str(own.shape)], [*taken, str(port.shape)]
    if given:
        yield outside(layer, given=" ".join(given), declared=" ".join(taken))


@found_by(
    "T207",
    "side-parameter-differs",
    IF,
    WARNING,
    says="{parameter} of the {role} is declared as {inside}, and what comes in by input {number} is {outside}",
    means="OpenVINO takes type and shape from outside, so that what follows may not fit",
    do="let external_port_id be the input that was meant, or declare the Parameter as what comes in",
    source="specification/If-8",
)
def side_parameter_differs(facts: IfSubject) -> Hits:
    """Parameters of a side that cannot take what their entry brings."""
    for side in facts.sides():
        for entry in side.body.inputs:
            parameter = side.inner.by_id.get(entry.parameter)
            if entry.input is None or parameter is None:
                continue
            inner, outer = of_parameter(parameter), facts.tensor(entry.input)
            types = different_types(inner, outer)
            shapes = inner.shape is not None and outer.static is not None and not inner.shape.accepts(outer.static)
            if types or shapes:
                words = {"inside": _typed(inner), "outside": _typed(outer)}
                role, site = side.body.role.replace("_", " "), facts.site(parameter)
                yield outside(parameter, parameter=site, role=role, number=entry.input, **words)


def _typed(one: Declared) -> str:
    return f"{'any' if one.type is None else one.type.name}{one.shape if one.shape is not None else ''}"
