"""What ONNX's evaluators compute inside of a loop: its body's tensors, given out of it once in each iteration.

A Loop and a Scan of the main graph may give any tensor of their body out, stacked over the iterations; that is how the
evaluators, which tell of nothing else, are made to tell. A tensor that changes its shape cannot be stacked: the
evaluator then refuses, and the loop is asked for what it says by itself; so is one whose body is too large to be kept
of each iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from stepper.element_types import Array
from stepper.ir.model import Graph, Model

if TYPE_CHECKING:
    import onnx

_LOOPS: Final = ("Loop", "Scan")
_PREFIX: Final = "stepper_each_"
_LARGEST: Final = 2**20
_OPEN: Final = 16


class OpenedLoop(Struct, frozen=True):
    """A loop: `outputs` are its tensors in the main graph, `inside` the names of stacked ones by those in the body."""

    outputs: tuple[str, ...]
    inside: Mapping[str, str]

    def iterations(self, values: Mapping[str, Array]) -> int | None:
        """How many it ran, by what a run gave; None where it gave nothing of this loop."""
        return next((len(values[name]) for name in self.inside.values() if name in values), None)

    def value(self, values: Mapping[str, Array], tensor: str, iteration: int) -> Array | None:
        """A tensor of the body in an iteration; None where it is not known."""
        stacked = values.get(self.inside.get(tensor, ""))
        return None if stacked is None or iteration >= len(stacked) else stacked[iteration]


def open_loops(proto: onnx.ModelProto, model: Model) -> list[OpenedLoop]:
    """Let the loops of the main graph give out what their bodies compute; changes the ONNX model.

    `model` is what it was converted into, where sizes are declared.
    """
    small = {
        name
        for layer in model.graph.layers
        if layer.is_loop and _declared_bytes(layer.bodies[0].graph) <= _LARGEST
        for port in layer.outputs
        for name in port.names
    }
    nodes = enumerate(proto.graph.node)
    return [_open(node, index) for index, node in nodes if node.op_type in _LOOPS and not small.isdisjoint(node.output)]


def _declared_bytes(body: Graph) -> int:
    """About how much one iteration computes; a dimension that is open counts for some."""
    sizes = (
        math.prod(_OPEN if dim < 0 else dim for dim in port.dims) for layer in body.layers for port in layer.outputs
    )
    return 4 * sum(sizes)


def _open(node: onnx.NodeProto, index: int) -> OpenedLoop:
    outputs = tuple(node.output)
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    inside = {}
    for place, (tensor, type) in enumerate(list(_tensors(body))):
        name, within = f"{_PREFIX}{index}_{place}", f"{_PREFIX}{index}_{place}_inside"
        body.node.add(op_type="Identity", input=[tensor], output=[within])
        given = body.output.add(name=within)
        if type is not None:
            given.type.CopyFrom(type)
        inside[tensor] = name
        node.output.append(name)
    for attribute in node.attribute:  # those of a Scan say something of each stacked output
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute.ints.extend([0] * len(inside))
    return OpenedLoop(outputs, inside)


def _tensors(body: onnx.GraphProto) -> Iterator[tuple[str, Any]]:
    """The body's inputs and what its nodes give, each with its type where the file says one."""
    known = {info.name: info.type for info in (*body.value_info, *body.output) if info.HasField("type")}
    for given in body.input:
        yield given.name, _unshaped(given.type) if given.HasField("type") else None
    for node in body.node:
        for name in node.output:
            if name:
                yield name, _unshaped(known[name]) if name in known else None


def _unshaped(type: Any) -> Any:
    """The element type alone: declared shapes of bodies are often wrong."""
    copy = type.__class__()
    copy.CopyFrom(type)
    if copy.HasField("tensor_type"):
        copy.tensor_type.ClearField("shape")
    return copy
