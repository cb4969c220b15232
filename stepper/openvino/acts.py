"""The acts that OpenVINO performs in its worker process, as they cross to it: `worker` asks, `service` performs."""

from __future__ import annotations

from types import MappingProxyType

from msgspec import Struct

from stepper import element_types
from stepper.ir.model import Layer, Port
from stepper.openvino.functions.kinds import AS_IT_IS, FunctionKind
from stepper.processes.messages import CallFunction, Definition


class RuntimeFacts(Struct, frozen=True):
    """Settings of OpenVINO: the fields of a `Runtime` that cross to another process."""

    device: str
    precision: str
    extensions: tuple[str, ...]
    properties: dict[str, str]


class PortFacts(Struct, frozen=True, array_like=True):
    """A port of a layer."""

    id: int
    element_type: str | None
    dims: tuple[int, ...]


class LayerFacts(Struct, frozen=True):
    """A layer without bodies."""

    id: int
    name: str
    type: str
    version: str
    definition: int | None
    attributes: dict[str, str]
    inputs: tuple[PortFacts, ...]
    outputs: tuple[PortFacts, ...]
    line: int


class CheckDevice(Struct, frozen=True, tag=True):
    """Refuse a device that is missing or does not compute in the precision."""

    runtime: RuntimeFacts


class Convert(Struct, frozen=True, tag=True):
    """Read a model of any format and write it as an IR; its inputs have these shapes, where any are given."""

    source: str
    target: str
    folder: str
    shapes: dict[str, tuple[int, ...]]


class FindNode(Struct, frozen=True, tag=True):
    """Find a node of an ONNX file by its name or an output of it; the facts are `onnx_files.NodeFacts` or nothing."""

    path: str
    output: str


class Rewrite(Struct, frozen=True, tag=True):
    """Write an ONNX file with others in the place of operations that OpenVINO lacks; the facts are `Replacements`."""

    source: str
    target: str
    folder: str


class CompileFile(Struct, frozen=True, tag=True):
    """Read and compile an IR in `folder`, for the sake of what OpenVINO writes there meanwhile."""

    runtime: RuntimeFacts
    path: str
    folder: str


class DefineModel(Definition, frozen=True, tag=True):
    """A model by the text of its IR and the path of its .bin (empty: it has none).

    The arrays of the message are what these variables begin with.
    """

    runtime: RuntimeFacts
    text: str
    weights: str
    states: tuple[str, ...] = ()
    kind: FunctionKind = AS_IT_IS


class DefineLayer(Definition, frozen=True, tag=True):
    """A layer; the arrays of the message are its constant inputs, at these places."""

    runtime: RuntimeFacts
    layer: LayerFacts
    constants: tuple[int, ...]
    is_last_resort: bool


OpenVINOAct = CheckDevice | Convert | FindNode | Rewrite | CompileFile | DefineModel | DefineLayer | CallFunction


def layer_facts(layer: Layer) -> LayerFacts:
    """Return a layer as it crosses to another process."""
    inputs, outputs = (tuple(map(_port_facts, ports)) for ports in (layer.inputs, layer.outputs))
    head = (layer.id, layer.name, layer.type, layer.version, layer.definition, dict(layer.attributes))
    return LayerFacts(*head, inputs, outputs, layer.line)


def _port_facts(port: Port) -> PortFacts:
    return PortFacts(port.id, None if port.element_type is None else port.element_type.name, port.dims)


def layer_of(facts: LayerFacts) -> Layer:
    """Return the layer again."""
    inputs, outputs = (
        tuple(
            Port(port.id, element_types.by_name(port.element_type or ""), port.dims, (), facts.line) for port in ports
        )
        for ports in (facts.inputs, facts.outputs)
    )
    attributes = MappingProxyType(facts.attributes)
    head = (facts.id, facts.name, facts.type, facts.version, facts.definition, attributes)
    return Layer(*head, inputs, outputs, (), facts.line)
