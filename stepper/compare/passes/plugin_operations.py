"""Operations of OpenVINO's CPU plugin, as its passes put them in: enough of them to run a model after most passes.

The passes near the end of a compilation put in operations that no operation set has, give operations other element
types than their definition says (`type_relaxed_opset1`), and write booleans as u8. None of it is in a saved model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from lxml import etree

from stepper import element_types
from stepper.element_types import Array, ElementType
from stepper.engine.program import Function
from stepper.ir import xml
from stepper.ir.model import Layer
from stepper.ir.xml import Element
from stepper.ops.registry import Kernel, find

_RELAXED: Final = "type_relaxed_opset"
_TYPE_ATTRIBUTES: Final = ("output_type", "index_element_type")


class PluginOperations:
    """A partner of the engine that computes the plugin's own operations with numpy."""

    description = "the plugin's own operations by numpy"

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """True if this is an operation of the plugin, or one with other types than its definition has."""
        return layer.type in _OPERATIONS or (has_kernel and layer.version.startswith(_RELAXED))

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Function, str]:
        """Return the function of the layer, and who computes it."""
        del constants
        if (operation := _OPERATIONS.get(layer.type)) is not None:
            attributes = layer.attributes
            return (lambda *inputs: (operation(attributes, *inputs),)), self.description
        assert layer.definition is not None, "a kernel was found for it"
        kernel = find(layer.type, layer.definition)
        assert kernel is not None
        return _relaxed(layer, kernel), self.description


def _relaxed(layer: Layer, kernel: Kernel) -> Function:
    """Return the kernel with the element types that the plugin gave it. A boolean stays one, where it is called u8."""
    incoming, outgoing = (_types(layer, f"{side}_data_types") for side in ("input", "output"))
    named = {} if outgoing[0] is None else dict.fromkeys(_TYPE_ATTRIBUTES, outgoing[0].name)
    function = kernel.bind({**named, **layer.attributes})

    def run(*inputs: Any) -> tuple[Any, ...]:
        found = function(*[_cast(value, incoming, index) for index, value in enumerate(inputs)])
        outputs = found if kernel.several_outputs else (found,)
        return tuple(value if value.dtype == np.bool_ else _cast(value, outgoing, k) for k, value in enumerate(outputs))

    return run


def _types(layer: Layer, name: str) -> list[ElementType | None]:
    return [element_types.by_name(text.strip()) for text in layer.attributes.get(name, "").split(",")]


def _cast(value: Any, types: Sequence[ElementType | None], index: int) -> Any:
    wanted = types[index] if index < len(types) else None
    return value if wanted is None or value.dtype == wanted.dtype else value.astype(wanted.dtype)


def _fully_connected(_attributes: Mapping[str, str], x: Any, weights: Any, bias: Any = None) -> Any:
    product = np.matmul(x, np.swapaxes(weights, -1, -2))
    return product if bias is None or bias.size == 0 else product + bias


def _power_static(attributes: Mapping[str, str], x: Any) -> Any:
    scale, shift, power = (np.asarray(attributes[name], x.dtype) for name in ("scale", "shift", "power"))
    moved = x * scale + shift
    return moved if power == 1 else np.power(moved, power)


def _leaky_relu(attributes: Mapping[str, str], x: Any) -> Any:
    return np.where(x < 0, x * np.asarray(attributes["negative_slope"], x.dtype), x)


def _swish(attributes: Mapping[str, str], x: Any) -> Any:
    alpha = np.asarray(attributes["alpha"], x.dtype)
    return x / (1 + np.exp(-x * alpha))


_OPERATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "FullyConnected": _fully_connected,
    "PowerStatic": _power_static,
    "LeakyRelu": _leaky_relu,
    "SwishCPU": _swish,
}


# --- the file --------------------------------------------------------------------------------------------------------


def make_readable(path: Path) -> None:
    """Rewrite a serialised model so that it can be read: Constants of no type, and conditions that are u8."""
    root = xml.parse(path)
    for layer in root.iter("layer"):
        data = layer.find("data")
        if layer.get("type") == "Const" and data is not None and data.get("element_type") == "dynamic":
            data.set("element_type", "u8")
    for graph in root.iter("net", "body", "then_body", "else_body"):
        for layer in _layers(graph):
            if (index := {"Loop": 1, "If": 0}.get(layer.get("type", ""))) is not None:
                _convert_to_boolean(graph, layer, index)
            if layer.get("type") == "Loop":
                _convert_condition(layer)
    path.write_bytes(etree.tostring(root))


def _convert_condition(loop: Element) -> None:
    """Let the Result that is the condition of a Loop's body be a boolean."""
    body = loop.find("body")
    entry = next((e for e in loop.iterfind("port_map/output") if e.get("purpose") == "execution_condition"), None)
    if body is not None and entry is not None:
        result = next((layer for layer in _layers(body) if layer.get("id") == entry.get("internal_layer_id")), None)
        if result is not None:
            _convert_to_boolean(body, result, 0)


def _convert_to_boolean(graph: Element, layer: Element, index: int) -> None:
    """Put a Convert before an input of a layer."""
    ports, layers = layer.findall("input/port"), graph.find("layers")
    if layers is None or index >= len(ports):
        return
    ends = (layer.get("id"), ports[index].get("id"))
    edge = next((e for e in graph.iterfind("edges/edge") if (e.get("to-layer"), e.get("to-port")) == ends), None)
    if edge is None:
        return
    identity = str(1 + max(int(other.get("id", "0")) for other in layers))
    head = {"id": identity, "name": f"condition_{identity}", "type": "Convert", "version": "opset1"}
    convert = etree.SubElement(layers, "layer", head)
    etree.SubElement(convert, "data", destination_type="boolean")
    etree.SubElement(etree.SubElement(convert, "input"), "port", id="0")
    etree.SubElement(etree.SubElement(convert, "output"), "port", id="1", precision="BOOL")
    onwards = {"from-layer": identity, "from-port": "1", "to-layer": ends[0] or "", "to-port": ends[1] or ""}
    edge.addnext(etree.Element("edge", onwards))
    edge.set("to-layer", identity)
    edge.set("to-port", "0")


def _layers(graph: Element) -> list[Element]:
    layers = graph.find("layers")
    return [] if layers is None else list(layers)
