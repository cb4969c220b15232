"""Outline of a model without a run: inputs, outputs, loops and their port maps, operations, missing kernels.

Plain data for `stepper inspect` and for whoever wants to show a model; needs no .bin, but says more with one.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import Struct

from stepper.element_types import ElementType
from stepper.engine.compilation.compiler import unsupported_layers
from stepper.engine.inputs.variables import variables_of
from stepper.engine.roles import Control, RoleError, control, output_role, roles_of
from stepper.engine.run import output_names
from stepper.ir.lowering import sequences_of
from stepper.ir.model import (
    Body,
    Graph,
    InputMapping,
    Layer,
    LayerSite,
    Model,
    Slicing,
    Source,
    layer_site,
    parameter_shape,
    parameter_type,
    path_text,
)
from stepper.ir.shapes import PartialShape
from stepper.ops.departures import Departure, Use, departures


class TensorOutline(Struct, frozen=True):
    """An input or output of the model: name, further tensor names, declared type and shape."""

    name: str
    tensor_names: tuple[str, ...]
    type: str
    shape: str


class PortEntry(Struct, frozen=True):
    """One entry of a port map; `role` is sliced, merged, invariant, current iteration, not connected or not used for an
    input, last value, concatenated or execution condition for an output. `outer` is the index of the layer's port, and
    `around` are the layers outside that give the input, or read the output.
    """

    direction: Literal["input", "output"]
    role: str
    outer: int | None
    inner: LayerSite
    slicing: Slicing | None
    line: int
    around: tuple[LayerSite, ...] = ()


class BackEdgeOutline(Struct, frozen=True):
    """A back edge: its Result, its Parameter, and its line."""

    result: LayerSite
    parameter: LayerSite
    line: int


class WithoutKernel(Struct, frozen=True):
    """An operation that has no kernel: its type with its opset, the layer, and where that is, in words."""

    operation: str
    layer: LayerSite
    path: str


class LoopOutline(Struct, frozen=True):
    """One TensorIterator, Loop or If, and what controls it.

    `opened_from` is the type of the sequence that the loop is in the file, None for a loop of the file.
    """

    path: str
    type: str
    layer: LayerSite
    opened_from: str | None
    control: Control
    entries: tuple[PortEntry, ...]
    back_edges: tuple[BackEdgeOutline, ...]
    operations: dict[str, int]


class Outline(Struct, frozen=True):
    """The whole model."""

    name: str
    version: int
    weights: int | None
    inputs: tuple[TensorOutline, ...]
    outputs: tuple[TensorOutline, ...]
    loops: tuple[LoopOutline, ...]
    operations: dict[str, int]
    without_kernel: tuple[WithoutKernel, ...]
    departures: tuple[Departure, ...]
    variables: tuple[TensorOutline, ...] = ()
    sequences: tuple[LayerSite, ...] = ()
    """The layers that --open-sequences opens as loops."""


def outline(model: Model) -> Outline:
    """Return the outline of a model; every graph of it, outer before inner."""
    loops = [
        _loop(model, path, graph, layer) for path, graph in model.graphs() for layer in graph.layers if layer.bodies
    ]
    return Outline(
        name=model.name,
        version=model.version,
        weights=None if model.weights is None else model.weights.size,
        inputs=tuple(_input(parameter) for parameter in model.graph.parameters),
        outputs=tuple(_outputs(model)),
        loops=tuple(loops),
        operations=_counts([layer for _, graph in model.graphs() for layer in graph.layers]),
        without_kernel=tuple(
            WithoutKernel(
                f"{layer.type}-{layer.definition or layer.version}", layer_site(layer, str(model.path)), path_text(path)
            )
            for path, layer in unsupported_layers(model)
        ),
        departures=tuple(departures(_use(layer) for _, graph in model.graphs() for layer in graph.layers)),
        variables=tuple(
            TensorOutline(facts.name, (), facts.type or "any", facts.shape)
            for facts in (variable.facts for variable in variables_of(model))
        ),
        sequences=tuple(layer_site(layer, str(model.path)) for layer in sequences_of(model)),
    )


def _use(layer: Layer) -> Use:
    ports = (*layer.inputs[:1], *layer.outputs)
    if layer.type in ("Convert", "ConvertLike"):  # known by what they make
        ports = layer.outputs
    types = frozenset(port.element_type.name for port in ports if port.element_type is not None)
    return Use(layer.type, layer.definition, layer.attributes, types)


def _input(parameter: Layer) -> TensorOutline:
    names = tuple(name for name in parameter.outputs[0].names if name != parameter.name)
    return TensorOutline(parameter.name, names, _type(parameter_type(parameter)), str(parameter_shape(parameter)))


def _outputs(model: Model) -> list[TensorOutline]:
    found = []
    for name, result in zip(output_names(model), model.graph.results, strict=True):
        source = model.graph.sources[result.id][0]
        assert source is not None, "the reader has seen to it"
        port = model.graph.by_id[source.layer].outputs[source.output]
        others = tuple(dict.fromkeys(other for other in (*port.names, result.name) if other != name))
        found.append(TensorOutline(name, others, _type(port.element_type), str(PartialShape.of_dims(port.dims))))
    return found


def _type(element_type: ElementType | None) -> str:
    return "any" if element_type is None else element_type.name


def _counts(layers: list[Layer]) -> dict[str, int]:
    return dict(sorted(Counter(layer.type for layer in layers).items()))


def _loop(model: Model, path: tuple[Layer, ...], graph: Graph, layer: Layer) -> LoopOutline:
    file = str(model.path)
    entries = [entry for body in layer.bodies for entry in _entries(graph, layer, body, file)]
    back_edges = tuple(
        BackEdgeOutline(_inner(body, edge.from_layer, file), _inner(body, edge.to_layer, file), edge.line)
        for body in layer.bodies
        for edge in body.back_edges
    )
    inner = [inner for body in layer.bodies for inner in body.graph.layers]
    return LoopOutline(
        path=path_text((*path, layer)),
        type=f"{layer.type}-{layer.definition}",
        layer=layer_site(layer, file),
        opened_from=layer.opened_from,
        control=control(model, graph, layer),
        entries=tuple(entries),
        back_edges=back_edges,
        operations=_counts(inner),
    )


def _entries(graph: Graph, layer: Layer, body: Body, file: str) -> list[PortEntry]:
    side = {"body": "", "then_body": "then: ", "else_body": "else: "}[body.role]
    found = [
        PortEntry(
            "input",
            side + _input_role(layer, entry),
            entry.input,
            _inner(body, entry.parameter, file),
            entry.slicing,
            entry.line,
            _giving(graph, layer, entry.input, file),
        )
        for entry in body.inputs
    ]
    found += [
        PortEntry(
            "output",
            side + output_role(entry),
            entry.output,
            _inner(body, entry.result, file),
            entry.slicing,
            entry.line,
            _reading(graph, layer, entry.output, file),
        )
        for entry in body.outputs
    ]
    return found


def _giving(graph: Graph, layer: Layer, index: int | None, file: str) -> tuple[LayerSite, ...]:
    sources = graph.sources[layer.id]
    source = sources[index] if index is not None and index < len(sources) else None
    return () if source is None else (layer_site(graph.by_id[source.layer], file),)


def _reading(graph: Graph, layer: Layer, index: int | None, file: str) -> tuple[LayerSite, ...]:
    if index is None:
        return ()
    reading = {
        one.id for one, at in graph.readers.get(layer.id, ()) if graph.sources[one.id][at] == Source(layer.id, index)
    }
    return tuple(layer_site(graph.by_id[one], file) for one in sorted(reading))


def _inner(body: Body, identity: int, file: str) -> LayerSite:
    """Return a layer of a body; without name and type where the body has none of that id."""
    layer = body.graph.by_id.get(identity)
    return LayerSite(identity, "", "", file, 0) if layer is None else layer_site(layer, file)


def _input_role(layer: Layer, entry: InputMapping) -> str:
    if not layer.is_loop:
        return "input"
    try:
        roles = roles_of(layer)
    except RoleError as error:
        return f"cannot be: {error}"
    return roles.role_of(entry)
