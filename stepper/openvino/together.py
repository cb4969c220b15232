"""Operations of one graph in one model, each on its own: nothing flows from one to another.

Each gets its inputs from Parameters, and all that it gives are Results. What OpenVINO makes of each alone is so known
after one compilation, not after hundreds; nothing can be fused, and no error is carried from one to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import ExecutionError
from stepper.ir.constants import constant_shape, constant_type
from stepper.ir.model import Graph, Layer, Model, Source
from stepper.openvino.layers import (
    LayerInput,
    edge_text,
    fatal,
    input_text,
    must_be_constant,
    net_text,
    operation_text,
    result_text,
)
from stepper.openvino.texts.model_text import NativeText, weights_of

RANDOM: Final = frozenset({"RandomUniform", "Multinomial", "ReadValue", "Assign"})
"""Types whose outputs do not follow from their inputs."""

_OPEN: Final = "?"
_DEEPEST: Final = 16
_NAMED: Final = re.compile(r"\blayer([0-9]+)\b")


Outputs = Callable[[], Sequence[Array]]
"""Waits for what was begun."""


class BegunFunction(Protocol):
    """A function that may be begun, so that it computes beside others where it is in another process."""

    def __call__(self, *inputs: Any) -> Sequence[Array]:
        """Return its outputs."""

    def begin(self, *inputs: Any) -> Outputs:
        """Begin to compute, and return what waits for the outputs."""


class JointOperations(NamedTuple):
    """A function from the values of `sources` to `outputs`; what `begin` returns waits for them.

    It takes our values of `compared`, too, outputs that are no source: None is given for what agrees with ours.
    """

    layers: tuple[Layer, ...]
    sources: tuple[Source, ...]
    outputs: tuple[Source, ...]
    begin: Callable[..., Callable[[], Sequence[Array | None]]]
    compared: tuple[Source, ...] = ()


class OperationRefused(ExecutionError):
    """OpenVINO refuses one of several operations; `layer` is which, None where it does not say."""

    def __init__(self, message: str, layer: Layer | None) -> None:
        super().__init__(message)
        self.layer = layer


class SeparateText:
    """The text of operations of a graph as one model.

    Types are those of `values`, which has our value of each source; shapes too, but for dimensions that the file leaves
    open. What is computed from Constants and ranks alone is so there, too: of a reduction over all axes, say, OpenVINO
    must know how many there are. Operations that cannot join are left out, and outputs that nobody reads: with the
    indices of a MaxPool, say, OpenVINO takes a kernel that is a hundred times as slow, and not the one that it takes in
    the model.
    """

    def __init__(self, model: Model, graph: Graph, layers: Sequence[Layer], values: Mapping[Source, Any]) -> None:
        self._model, self._graph, self._values = model, graph, values
        self._constant: dict[int, bool] = {}
        self._ids: dict[Source, tuple[int, int]] = {}
        self._texts: list[str] = []
        self._edges: list[str] = []
        self.layers = [layer for layer in layers if self._can_join(layer)]
        self.sources: list[Source] = []
        self.outputs = [
            source
            for layer in self.layers
            for source in (Source(layer.id, output) for output in range(len(layer.outputs)))
            if source in graph.read_outputs
        ]
        self._identities: dict[int, Layer] = {}
        self.native = NativeText(self._text(), weights_of(model))

    def named_in(self, message: str) -> Layer | None:
        """Return the layer that a message of OpenVINO is about, by the name that it has in the text."""
        found = (self._identities.get(int(match[1])) for match in _NAMED.finditer(message))
        return next((layer for layer in found if layer is not None), None)

    def _can_join(self, layer: Layer) -> bool:
        """Return True but for a layer that is refused, or asked for otherwise: with numbers in the place of inputs."""
        inputs: list[Any] = []
        for index, source in enumerate(self._graph.sources[layer.id]):
            value = None if source is None else self._values[source]
            if source is None or value is None or value.dtype == STRING_DTYPE:
                return False
            if must_be_constant(layer, index) and not self._is_constant(source.layer):
                return False
            inputs.append(value)
        return bool(inputs) and not layer.bodies and not fatal(layer, inputs)

    def _is_constant(self, identity: int, depth: int = 0) -> bool:
        """Return True if a layer gives what follows from Constants of the file and from ranks, and nothing else."""
        if identity not in self._constant:
            layer, sources = self._graph.by_id[identity], self._graph.sources[identity]
            if layer.type == "Constant":
                found = "offset" in layer.attributes and self._model.weights is not None
            elif self._is_rank(layer):
                found = True
            elif depth == _DEEPEST or not sources or layer.bodies or layer.type in RANDOM:
                found = False
            else:
                found = all(one is not None and self._is_constant(one.layer, depth + 1) for one in sources)
            self._constant[identity] = found
        return self._constant[identity]

    def _is_rank(self, layer: Layer) -> bool:
        """Return True for the shape of a shape that we have."""
        source = self._graph.sources[layer.id][0] if layer.type == "ShapeOf" else None
        is_of_shape = source is not None and self._graph.by_id[source.layer].type == "ShapeOf"
        return source is not None and is_of_shape and (value := self._values[source]) is not None and value.size > 0

    def _ranked(self, identity: int) -> Iterator[Source]:
        """Yield the shapes on whose extents a constant layer rests."""
        layer, sources = self._graph.by_id[identity], self._graph.sources[identity]
        for source in sources:
            assert source is not None, "_is_constant has seen to it"
            if self._is_rank(layer):
                yield source
            else:
                yield from self._ranked(source.layer)

    def _text(self) -> str:
        for source, dims in self._parameters().items():
            self._ids[source] = len(self._texts), 0
            self._texts.append(input_text(len(self._texts), LayerInput(_type(self._values[source]), dims)))
            self.sources.append(source)
        written: dict[int, tuple[int, int]] = {}
        for layer in self.layers:
            identity = self._operation(layer)
            self._identities[identity] = layer
            written[layer.id] = identity, len(layer.inputs)
        results = [(written[layer][0], written[layer][1] + output) for layer, output in self.outputs]
        for identity, (operation, port) in enumerate(results, len(self._texts)):
            self._texts.append(result_text(identity))
            self._edges.append(edge_text(operation, port, identity, 0))
        return net_text(self._texts, self._edges)

    def _parameters(self) -> dict[Source, list[str]]:
        """Return the dimensions of each input that is not constant, open where an operation has them so.

        Those without extent are, too: what begins empty grows, and some kernels divide by an extent that they know.
        """
        found: dict[Source, list[str]] = {}
        for layer in self.layers:
            for source, port in zip(self._graph.sources[layer.id], layer.inputs, strict=True):
                assert source is not None, "_can_join has seen to it"
                if self._is_constant(source.layer):
                    for shape in self._ranked(source.layer):
                        found.setdefault(shape, [str(dim) for dim in self._values[shape].shape])
                    continue
                dims = found.get(source) or [str(dim) if dim else _OPEN for dim in self._values[source].shape]
                if len(port.dims) == len(dims):
                    dims = [_OPEN if size == -1 else dim for size, dim in zip(port.dims, dims, strict=True)]
                found[source] = dims
        return found

    def _operation(self, layer: Layer) -> int:
        """Write a layer, and before it the constant ones that lead to it; its id."""
        sources = [source for source in self._graph.sources[layer.id] if source is not None]
        ends = [self._ids.get(source) or self._written(source) for source in sources]
        identity = len(self._texts)
        self._texts.append(operation_text(identity, layer, [self._type_of(source) for source in sources]))
        self._edges += [edge_text(*end, identity, index) for index, end in enumerate(ends)]
        return identity

    def _written(self, source: Source) -> tuple[int, int]:
        """Write a constant layer; the id and port where a value of it comes out."""
        layer = self._graph.by_id[source.layer]
        if layer.type == "Constant":
            element_type, shape = constant_type(layer), constant_shape(layer)
            assert element_type is not None and shape is not None, "the reader has seen to it"
            offset, size = int(layer.attributes["offset"]), int(layer.attributes["size"])
            end = len(self._texts), 0
            entry = LayerInput(element_type.name, [str(dim) for dim in shape], offset, size)
            self._texts.append(input_text(end[0], entry))
        else:
            end = self._operation(layer), len(layer.inputs) + source.output
        self._ids[source] = end
        return end

    def _type_of(self, source: Source) -> str:
        if source in self._values:
            return _type(self._values[source])
        layer = self._graph.by_id[source.layer]
        found = constant_type(layer) if layer.type == "Constant" else layer.outputs[source.output].element_type
        return "dynamic" if found is None else found.name


def _type(value: Any) -> str:
    return element_types.of(value).name
