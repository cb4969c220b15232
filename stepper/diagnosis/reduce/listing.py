"""A draft, and a fault, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepper import element_types
from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault
from stepper.diagnosis.reduce.draft import DraftBody, DraftGraph, DraftLayer, DraftModel
from stepper.element_types import Array
from stepper.ops.operands import shape_text

_MOST_NUMBERS = 16
_DEFAULTS = {"element_type", "shape"}


def fault_text(fault: FoundFault) -> str:
    """Return a fault in one sentence."""
    match fault.kind:
        case FaultKind.STOP:
            return f"the run stops: {fault.message}"
        case FaultKind.ERROR:
            return f"the run ends in an error: {fault.message}"
        case FaultKind.REFUSED:
            return f"{fault.program} refuses the model: {fault.message}"
        case FaultKind.ENDED:
            return fault.message
        case FaultKind.SHAPES:
            return f"output {fault.output} has another shape in {fault.program}: {fault.message}"
        case FaultKind.VALUES:
            return f"output {fault.output} differs from {fault.program}: {fault.message}"


def model_lines(draft: DraftModel) -> Iterator[str]:
    """Yield a model as text: a line for each layer, its inputs by name, bodies indented."""
    yield from _graph_lines(draft.graph, "")


def _graph_lines(graph: DraftGraph, indent: str) -> Iterator[str]:
    for layer in graph.ordered():
        yield f"{indent}{_layer_line(graph, layer)}"
        for body in layer.bodies:
            yield f"{indent}  {body.role}:"
            yield from (f"{indent}    {line}" for line in _map_lines(layer, graph, body))
            yield from _graph_lines(body.graph, f"{indent}    ")


def _layer_line(graph: DraftGraph, layer: DraftLayer) -> str:
    inputs = [_source_name(graph, layer, index) for index in range(len(layer.sources))]
    outputs = ", ".join(
        f"{'dynamic' if port.element_type is None else port.element_type.name}{shape_text(port.dims)}"
        for port in layer.outputs
    )
    arguments = f"({', '.join(inputs)})" if inputs else ""
    value = "" if layer.value is None else f" = {value_text(layer.value)}"
    hidden = _DEFAULTS if layer.type in ("Constant", "Parameter") else set()
    shown = ", ".join(f"{key}={text}" for key, text in layer.attributes.items() if key not in hidden)
    if layer.type == "Constant":
        shown = ""
    ends = "".join((f" -> {outputs}" if outputs else "", value, f"  {{{shown}}}" if shown else ""))
    return f"{layer.type} '{layer.name}'{arguments}{ends}"


def _source_name(graph: DraftGraph, layer: DraftLayer, index: int) -> str:
    source = layer.sources[index]
    if source is None:
        return "nothing"
    producer = graph.layers[source.layer]
    return producer.name if len(producer.outputs) == 1 else f"{producer.name}.{source.output}"


def _map_lines(layer: DraftLayer, graph: DraftGraph, body: DraftBody) -> Iterator[str]:
    names = {one.id: one.name for one in body.graph.layers.values()}
    for entry in body.inputs:
        sliced = "" if entry.slicing is None else f", sliced: {entry.slicing}"
        given = "nothing" if entry.input is None else _source_name(graph, layer, entry.input)
        purpose = "" if entry.purpose is None else f" ({entry.purpose})"
        yield f"input '{names[entry.parameter]}' <- {given}{sliced}{purpose}"
    for output in body.outputs:
        sliced = "" if output.slicing is None else f", joined: {output.slicing}"
        purpose = "" if output.purpose is None else f" ({output.purpose})"
        given = "nothing" if output.output is None else str(output.output)
        yield f"output {given} <- '{names[output.result]}'{sliced}{purpose}"
    for edge in body.back_edges:
        yield f"back edge '{names[edge.from_layer]}' -> '{names[edge.to_layer]}'"


def value_text(value: Array) -> str:
    """Return the numbers of a tensor where they are few."""
    if value.size > _MOST_NUMBERS:
        same = value.size and not value.dtype.names and bool((value == value.reshape(-1)[0]).all())
        return f"{value.size} elements{f', all {value.reshape(-1)[0]}' if same else ''}"
    return np.array2string(np.asarray(value), separator=", ").replace("\n", "")


def type_text(value: Array) -> str:
    """Return type and shape of a tensor."""
    return f"{element_types.of(value).name}{shape_text(value.shape)}"
