"""Which layer of one model stands for which of another: by name where names hold, else by structure.

    alignment = align(ours, theirs)
    alignment.pair(graph).partner(layer.id)        # the reference's layer, or None

Two ways are tried for each pair of graphs: names first, then what the structure adds; and structure alone (operations
of the same type and attributes on the same inputs). The one that keeps more connections counts. Loops and branches
that stand for each other have their bodies aligned the same way. Pairs that the user gives go before everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stepper.compare.alignment.structure import Matcher
from stepper.compare.files.constants import ConstantValues
from stepper.ir.model import Body, Graph, Layer, Model


class GraphPair(Struct, frozen=True, eq=False):
    """Two graphs that stand for each other; `layers` and `reverse` map ids. `path` are the layers that lead to ours."""

    ours: Graph
    theirs: Graph
    path: tuple[Layer, ...]
    layers: Mapping[int, int]
    reverse: Mapping[int, int]

    def partner(self, layer: int) -> Layer | None:
        """Return the reference's layer for one of ours, by id."""
        found = self.layers.get(layer)
        return None if found is None else self.theirs.by_id[found]

    def origin(self, layer: int) -> Layer | None:
        """Return our layer for one of the reference's, by id."""
        found = self.reverse.get(layer)
        return None if found is None else self.ours.by_id[found]


class Alignment:
    """All pairs of graphs of two models, outer before inner."""

    def __init__(self, pairs: Sequence[GraphPair]) -> None:
        self.pairs = tuple(pairs)
        self._by_graph = {id(pair.ours): pair for pair in pairs}

    def pair(self, graph: Graph) -> GraphPair | None:
        """Return the pair of one of our graphs."""
        return self._by_graph.get(id(graph))


def align(
    ours: Model,
    theirs: Model,
    given: Mapping[str, str] | None = None,
    constants: tuple[ConstantValues, ConstantValues] | None = None,
) -> Alignment:
    """Return the pairs of two models; `given` are pairs of names that the user knows to stand for each other."""
    values = constants or (ConstantValues(ours), ConstantValues(theirs))
    pairs: list[GraphPair] = []
    anchors = _outer_anchors(ours.graph, theirs.graph)
    _descend(ours.graph, theirs.graph, (), anchors, dict(given or {}), values, pairs)
    return Alignment(pairs)


def _descend(
    ours: Graph,
    theirs: Graph,
    path: tuple[Layer, ...],
    anchors: Mapping[int, int],
    given: Mapping[str, str],
    constants: tuple[ConstantValues, ConstantValues],
    pairs: list[GraphPair],
) -> None:
    certain = {} if path else _named_ports(ours, theirs)
    layers = _matched(ours, theirs, anchors, {**certain, **_given_pairs(ours, theirs, given)}, constants)
    pair = GraphPair(ours, theirs, path, layers, {b: a for a, b in layers.items()})
    pairs.append(pair)
    for layer in ours.layers:
        other = pair.partner(layer.id) if layer.bodies else None
        if other is None or len(other.bodies) != len(layer.bodies):
            continue
        for body, other_body in zip(layer.bodies, other.bodies, strict=True):
            inner = _body_anchors(body, other_body)
            _descend(body.graph, other_body.graph, (*path, layer), inner, given, constants, pairs)


def _matched(
    ours: Graph,
    theirs: Graph,
    anchors: Mapping[int, int],
    certain: Mapping[int, int],
    constants: tuple[ConstantValues, ConstantValues],
) -> dict[int, int]:
    """Return the best of three: names first, structure from the anchors, structure from the outputs alone (so that
    crossed inputs are seen); the first of those that keep as many connections."""
    by_name = Matcher(ours, theirs, certain, constants)
    by_name.add_names()
    by_name.add(anchors)
    by_name.drop_doubtful()
    by_name.complete()
    if by_name.keeps_everything:
        return by_name.layers
    tried = [by_name]
    results = {mine: other for mine, other in anchors.items() if ours.by_id[mine].type == "Result"}
    for fixed in (anchors, results):
        matcher = Matcher(ours, theirs, certain, constants)
        matcher.add(fixed)
        matcher.complete()
        matcher.add(anchors)
        matcher.complete()
        tried.append(matcher)
    return max(tried, key=lambda matcher: matcher.kept).layers


def _given_pairs(ours: Graph, theirs: Graph, given: Mapping[str, str]) -> dict[int, int]:
    if not given:
        return {}
    names = {layer.name: layer.id for layer in theirs.layers}
    return {layer.id: names[given[layer.name]] for layer in ours.layers if given.get(layer.name) in names}


def _named_ports(ours: Graph, theirs: Graph) -> dict[int, int]:
    """Return pairs of the models' inputs and outputs by the names of their tensors, as far as these tell them apart."""
    found: dict[int, int] = {}
    for mine, others in ((ours.parameters, theirs.parameters), (ours.results, theirs.results)):
        known = {name: layer.id for layer in others for name in _tensor_names(theirs, layer)}
        for layer in mine:
            partners = {known[name] for name in _tensor_names(ours, layer) if name in known}
            if len(partners) == 1 and not partners & set(found.values()):
                found[layer.id] = partners.pop()
    return found


def _tensor_names(graph: Graph, layer: Layer) -> tuple[str, ...]:
    """Return the names of the tensor of an input or output of a model."""
    if layer.type == "Parameter":
        return layer.outputs[0].names
    source = graph.sources[layer.id][0]
    return () if source is None else graph.by_id[source.layer].outputs[source.output].names


def _outer_anchors(ours: Graph, theirs: Graph) -> dict[int, int]:
    """Return pairs of the models' inputs and outputs: by the names of tensors or layers, else by position."""
    found = _named_ports(ours, theirs)
    for mine, others in ((ours.parameters, theirs.parameters), (ours.results, theirs.results)):
        rest = [layer for layer in mine if layer.id not in found]
        found |= _by_name_or_position(rest, [layer for layer in others if layer.id not in found.values()])
    return found


def _by_name_or_position(mine: Sequence[Layer], others: Sequence[Layer]) -> dict[int, int]:
    names = {layer.name: layer.id for layer in others}
    found = {layer.id: names[layer.name] for layer in mine if layer.name in names}
    taken = set(found.values())
    if len(mine) == len(others):
        for layer, other in zip(mine, others, strict=True):
            if layer.id not in found and other.id not in taken:
                found[layer.id] = other.id
    return found


def _body_anchors(body: Body, other: Body) -> dict[int, int]:
    """Return pairs of Parameters and Results of two bodies: by name, else by what the port maps connect them with."""
    found = _named(body.graph.parameters, other.graph.parameters) | _named(body.graph.results, other.graph.results)
    for mine, theirs in (*_fed_alike(body, other), *_given_out_alike(body, other)):
        if mine not in found and theirs not in found.values():
            found[mine] = theirs
    into = {edge.to_layer: edge.from_layer for edge in other.back_edges}
    for edge in body.back_edges:
        result = into.get(found.get(edge.to_layer, -1))
        if result is not None and edge.from_layer not in found and result not in found.values():
            found[edge.from_layer] = result
    return found


def _fed_alike(body: Body, other: Body) -> Iterator[tuple[int, int]]:
    """Yield Parameters that get the same input of the outer layer, or the iteration number."""
    theirs = {(entry.input, entry.purpose): entry.parameter for entry in reversed(other.inputs)}
    for entry in body.inputs:
        if (entry.input, entry.purpose) in theirs:
            yield entry.parameter, theirs[entry.input, entry.purpose]


def _given_out_alike(body: Body, other: Body) -> Iterator[tuple[int, int]]:
    """Yield Results that become the same output of the outer layer, or the condition."""
    theirs = {(one.output, one.purpose): one.result for one in reversed(other.outputs)}
    for one in body.outputs:
        if (one.output, one.purpose) in theirs:
            yield one.result, theirs[one.output, one.purpose]


def _named(mine: Sequence[Layer], others: Sequence[Layer]) -> dict[int, int]:
    names = {layer.name: layer.id for layer in others if layer.name}
    return {layer.id: names[layer.name] for layer in mine if layer.name in names}


def follow_order(theirs: Model, alignment: Alignment) -> Model:
    """Return the reference with the layers of each graph in our order where they stand for ours, so that both runs do
    the same things in the same order. What it computes stays the same."""
    order = {id(pair.theirs): _order(pair) for pair in alignment.pairs}
    return replace(theirs, graph=_reordered(theirs.graph, order), reopen=None)


def _order(pair: GraphPair) -> dict[int, float]:
    """Return a sorting key for each of their layers: our partner's position, else just before the consumer's."""
    position = {layer.id: float(index) for index, layer in enumerate(pair.ours.layers)}
    keys = {theirs: position[ours] for ours, theirs in pair.layers.items()}
    consumers: dict[int, list[int]] = {}
    for layer in pair.theirs.layers:
        for source in pair.theirs.sources[layer.id]:
            if source is not None:
                consumers.setdefault(source.layer, []).append(layer.id)
    for layer in reversed(pair.theirs.layers):
        if layer.id not in keys:
            known = [keys[one] for one in consumers.get(layer.id, ()) if one in keys]
            keys[layer.id] = (min(known) if known else float(len(position))) - 0.5
    return keys


def _reordered(graph: Graph, order: Mapping[int, Mapping[int, float]]) -> Graph:
    layers = tuple(_with_bodies(layer, order) for layer in graph.layers)
    keys = order.get(id(graph))
    if keys is not None:
        layers = tuple(sorted(layers, key=lambda layer: keys[layer.id]))
    return Graph(layers, graph.edges, graph.sources, graph.line)


def _with_bodies(layer: Layer, order: Mapping[int, Mapping[int, float]]) -> Layer:
    if not layer.bodies:
        return layer
    bodies = tuple(
        Body(
            body.role,
            _reordered(body.graph, order),
            body.inputs,
            body.outputs,
            body.back_edges,
            body.first_draft,
            body.line,
        )
        for body in layer.bodies
    )
    return layer._replace(bodies=bodies)
