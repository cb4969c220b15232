"""The first call as far as it comes before the loop over calls: what its variables begin with is computed of it."""

from __future__ import annotations

from collections.abc import Sequence

from stepper.ir.calls.body import needed_for
from stepper.ir.calls.plan import Calls
from stepper.ir.graph_builder import GraphBuilder, Tensor
from stepper.ir.model import Graph, Layer, Source


class FirstCall:
    """Copies layers of the model's graph to the graph around the loop, fed with the first part of each input."""

    def __init__(self, graph: Graph, builder: GraphBuilder, inputs: Sequence[Tensor], calls: Calls) -> None:
        self._graph, self._builder = graph, builder
        self._parts = {one.input: one for one in calls.parts}
        self._inputs = inputs
        self._copies: dict[int, int] = {}

    def copied(self, layer: Layer) -> Tensor:
        """Return the first output of the copy of a layer, with all that it needs."""
        for one in (*needed_for(self._graph, layer), layer):
            if one.id not in self._copies:
                self._copies[one.id] = self._copy(one)
        port = layer.outputs[0]
        return Tensor(Source(self._copies[layer.id], 0), port.element_type, port.dims)

    def _copy(self, layer: Layer) -> int:
        if layer.type == "Parameter":
            return self._first_part(layer)
        builder = self._builder
        identity, builder.next_id = builder.next_id, builder.next_id + 1
        builder.layers.append(layer._replace(id=identity))
        sources = [one and self._now(one) for one in self._graph.sources[layer.id]]
        builder.sources[identity] = tuple(sources)
        return identity

    def _now(self, source: Source) -> Source:
        if source.layer not in self._copies:  # files need not have a layer behind what it needs
            self._copies[source.layer] = self._copy(self._graph.by_id[source.layer])
        return Source(self._copies[source.layer], source.output)

    def _first_part(self, parameter: Layer) -> int:
        """Return the layer of the part that the first call gets of an input."""
        index = self._graph.parameters.index(parameter)
        whole, parts, builder = self._inputs[index], self._parts.get(index), self._builder
        if parts is None:
            return whole.source.layer
        dims = list(whole.dims)
        dims[parts.axis] = parts.lengths[0]
        limits = [builder.literal(f"{n}", (n,)) for n in (0, parts.lengths[0], 1)]
        inputs = [whole, *limits, builder.axis(parts.axis)]
        name = f"{parameter.name}/first"
        first = builder.add("Slice", 8, name, inputs, [(whole.type, tuple(dims))])[0]
        return (builder.squeezed(f"{name}_squeezed", first, parts.axis) if parts.own_axis else first).source.layer
