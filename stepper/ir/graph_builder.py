"""Layers for a graph that no file has: ids, ports and connections count themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from stepper.element_types import I64, ElementType
from stepper.ir.constants import literal_constant
from stepper.ir.model import Body, Edge, Graph, Layer, Port, Source


class Tensor(Struct, frozen=True):
    """The value of an output of a layer: where it comes from, and type and shape as far as they are known."""

    source: Source
    type: ElementType | None
    dims: tuple[int, ...]

    def of_rank(self, rank: int) -> Tensor:
        """Return the tensor with so many dims, all unknown where the file declares another number."""
        return self if len(self.dims) == rank else replace(self, dims=(-1,) * rank)


Declared = tuple[ElementType | None, tuple[int, ...]]
"""Type and dims of an output port."""


class GraphBuilder:
    """Collects layers, all of one line of the file; ids begin at `next_id`, names with `scope` and a slash."""

    def __init__(self, line: int, next_id: int = 0, scope: str = "") -> None:
        self.line, self.next_id, self.scope = line, next_id, scope
        self.layers: list[Layer] = []
        self.sources: dict[int, tuple[Source | None, ...]] = {}
        self._literals: dict[tuple[tuple[int, ...] | int, ElementType], Tensor] = {}

    def add(
        self,
        type: str,
        definition: int,
        name: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Declared],
        attributes: Mapping[str, str] | None = None,
        *,
        identity: int | None = None,
        bodies: tuple[Body, ...] = (),
        opened_from: str | None = None,
    ) -> tuple[Tensor, ...]:
        """Add a layer and return its outputs."""
        identity = self._new_id() if identity is None else identity
        first = len(inputs)
        ports = [Port(first + k, declared, dims, (), self.line) for k, (declared, dims) in enumerate(outputs)]
        layer = Layer(
            id=identity,
            name=self._full_name(name),
            type=type,
            version=f"opset{definition}",
            definition=definition,
            attributes=MappingProxyType(dict(attributes or {})),
            inputs=tuple(Port(k, tensor.type, tensor.dims, (), self.line) for k, tensor in enumerate(inputs)),
            outputs=tuple(ports),
            bodies=bodies,
            line=self.line,
            opened_from=opened_from,
        )
        self.layers.append(layer)
        self.sources[identity] = tuple(tensor.source for tensor in inputs)
        return tuple(Tensor(Source(identity, k), *declared) for k, declared in enumerate(outputs))

    def declare(self, tensor: Tensor, port: Port) -> None:
        """Give a tensor of this graph the names, the type and the dims that the file declares at a port."""
        for at, layer in enumerate(self.layers):
            if layer.id == tensor.source.layer:
                ports, index = layer.outputs, tensor.source.output
                declared = ports[index]._replace(element_type=port.element_type, dims=port.dims, names=port.names)
                self.layers[at] = layer._replace(outputs=(*ports[:index], declared, *ports[index + 1 :]))

    def literal(self, name: str, values: tuple[int, ...] | int, element_type: ElementType = I64) -> Tensor:
        """Return a Constant of these numbers; one that is there already serves again, under its first name."""
        if (found := self._literals.get((values, element_type))) is not None:
            return found
        layer = literal_constant(self._new_id(), self._full_name(name), values, element_type, self.line)
        self.layers.append(layer)
        self.sources[layer.id] = ()
        tensor = Tensor(Source(layer.id, 0), element_type, layer.outputs[0].dims)
        self._literals[values, element_type] = tensor
        return tensor

    def parameter(self, name: str, element_type: ElementType | None, dims: tuple[int, ...]) -> Tensor:
        """Return a Parameter of a body."""
        attributes = {"shape": ",".join("?" if dim < 0 else str(dim) for dim in dims)}
        if element_type is not None:
            attributes["element_type"] = element_type.name
        return self.add("Parameter", 1, name, (), [(element_type, dims)], attributes)[0]

    def result(self, name: str, tensor: Tensor) -> int:
        """Add a Result and return its id."""
        self.add("Result", 1, name, [tensor], ())
        return self.layers[-1].id

    def axis(self, axis: int) -> Tensor:
        """Return a Constant that names an axis."""
        return self.literal(f"axis_{axis}", (axis,))

    def squeezed(self, name: str, tensor: Tensor, axis: int) -> Tensor:
        """Return the tensor without the axis, which is 1 long."""
        dims = tensor.dims[:axis] + tensor.dims[axis + 1 :]
        return self.add("Squeeze", 1, name, [tensor, self.axis(axis)], [(tensor.type, dims)])[0]

    def unsqueezed(self, name: str, tensor: Tensor, axis: int) -> Tensor:
        """Return the tensor with an axis more, 1 long."""
        dims = (*tensor.dims[:axis], 1, *tensor.dims[axis:])
        return self.add("Unsqueeze", 1, name, [tensor, self.axis(axis)], [(tensor.type, dims)])[0]

    def selected(self, name: str, mask: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
        """`then` where the mask holds, else `otherwise`."""
        return self.add("Select", 1, name, [mask, then, otherwise], [(then.type, then.dims)])[0]

    def converted(self, name: str, tensor: Tensor, element_type: ElementType | None) -> Tensor:
        """Return the tensor in this type; itself where it has it already, or where nothing is asked for."""
        if element_type is None or tensor.type == element_type:
            return tensor
        attributes = {"destination_type": element_type.name}
        return self.add("Convert", 1, name, [tensor], [(element_type, tensor.dims)], attributes)[0]

    def graph(self) -> Graph:
        """Return the collected layers as a graph of its own."""
        layers, sources = tuple(self.layers), MappingProxyType(self.sources)
        return Graph(layers, edges_of(layers, sources, {}), sources, self.line)

    def _full_name(self, name: str) -> str:
        return "/".join(part for part in (self.scope, name) if part)

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1


def edges_of(
    layers: Sequence[Layer], sources: Mapping[int, tuple[Source | None, ...]], lines: Mapping[tuple[int, int], int]
) -> tuple[Edge, ...]:
    """Return the edges that say what `sources` says; `lines` are those of the file, by layer and port entered."""
    by_id = {layer.id: layer for layer in layers}
    return tuple(
        Edge(
            source.layer,
            by_id[source.layer].outputs[source.output].id,
            layer.id,
            port.id,
            lines.get((layer.id, port.id), layer.line),
        )
        for layer in layers
        for port, source in zip(layer.inputs, sources[layer.id], strict=True)
        if source is not None
    )
