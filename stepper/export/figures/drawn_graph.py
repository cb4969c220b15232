"""A graph of the model as it is drawn: what is folded into one box, the edges between boxes, back edges, short labels.

Boxes are known by a layer's id (`DrawnNode.key`): their own, or that of the layer that stands for the folded ones.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from stepper.export.figures.figure import NodeKind
from stepper.export.figures.folding import accumulators, expressions, groups_of, shape_groups
from stepper.export.figures.labels import labels_of, told_apart
from stepper.export.layout.geometry import LayoutEdge
from stepper.ir.model import Body, Graph, Growth, Layer, Source
from stepper.operation_types import NO_OPERATIONS
from stepper.wording import counted, excerpt


class FoldingOptions(Struct, frozen=True):
    """Layers without boxes of their own: Constants (folded into their readers), shape arithmetic, accumulators.

    `hidden` are further operations (by id) of which only groups are drawn; Parameters and Results among them stay.
    `unfolded` are layers whose groups are not folded. `expressions`: what one operation alone reads is in the box of
    that, up to so many operations in each (0: none). `results`: Constants are folded into Results as well.
    """

    constants: bool = True
    shapes: bool = True
    accumulators: bool = True
    hidden: frozenset[int] = frozenset()
    unfolded: frozenset[int] = frozenset()
    expressions: int = 0
    results: bool = False


class DrawnNode(Struct, frozen=True):
    """A box: `layers` are the ids that it stands for, the key first; `constants` the Constants folded into it.

    `label` tells it apart from boxes of the same `name`.
    """

    key: int
    kind: NodeKind
    label: str
    name: str
    layers: tuple[int, ...]
    constants: tuple[int, ...] = ()

    @property
    def is_folded(self) -> bool:
        """True if operations of an expression are in the box, and not shape arithmetic."""
        return self.kind is NodeKind.GROUP


class DrawnBackEdge(NamedTuple):
    """A back edge between boxes; `name` is the short name of its Parameter. A folded accumulator's: tail is head."""

    tail: int
    head: int
    name: str
    result: int
    parameter: int


class DrawnGraph(Struct, frozen=True, dict=True):
    """Boxes in file order, each tensor's edges once per reader, back edges apart.

    `box_of` maps every layer id to the key of its box; a Constant that several read to its first reader. `first` and
    `last` are the boxes to be held on the first and last rank.
    """

    nodes: tuple[DrawnNode, ...]
    edges: tuple[LayoutEdge[int], ...]
    back_edges: tuple[DrawnBackEdge, ...]
    box_of: Mapping[int, int]
    first: tuple[int, ...]
    last: tuple[int, ...]

    def node(self, key: int) -> DrawnNode:
        """Return the box of that key; KeyError for none."""
        return self.by_key[key]

    @cached_property
    def by_key(self) -> dict[int, DrawnNode]:
        """The boxes by key."""
        return {node.key: node for node in self.nodes}

    @cached_property
    def unfolded(self) -> int:
        """How many boxes there are where each operation of an expression has its own."""
        return sum(len(node.layers) if node.is_folded else 1 for node in self.nodes)

    def operations_of(self, key: int) -> tuple[int, ...]:
        """Return the layers of a box in file order, without the Constants."""
        return tuple(sorted(self.node(key).layers))


USUAL: Final = FoldingOptions()
WHOLE_EXPRESSIONS: Final = sys.maxsize
"""Operations of an expression in one box, where none is too many."""
EVERYTHING_DRAWN: Final = FoldingOptions(constants=False, shapes=False, accumulators=False)


def drawn_graph(graph: Graph, body: Body | None = None, folding: FoldingOptions = USUAL) -> DrawnGraph:
    """Return the boxes and edges of a graph; `body` is the loop's body whose graph it is, for its back edges."""
    carried = _carried(graph, body) if body else []
    collected = accumulators(graph, carried) if folding.accumulators else ()
    groups = _groups(graph, folding, collected)
    box_of = {layer.id: layer.id for layer in graph.layers}
    box_of.update({layer: entry.parameter for entry in collected for layer in entry.layers})
    box_of.update({layer: group.layers[-1] for group in groups for layer in group.layers})
    folded = _fold_constants(graph, box_of, results=folding.results) if folding.constants else {}
    labels = labels_of(graph)
    nodes = _nodes(labels, graph, box_of, folded, collected, groups)
    joined = {(entry.result, entry.parameter) for entry in collected}
    ends = [(tail, head) for tail, head in carried if (tail, head) not in joined]
    back_edges = tuple(
        DrawnBackEdge(box_of[tail], box_of[head], excerpt(labels[head]), tail, head) for tail, head in carried
    )
    return DrawnGraph(
        nodes=nodes,
        edges=_edges(graph, nodes, box_of, folded),
        back_edges=back_edges,
        box_of=box_of,
        first=tuple(dict.fromkeys(box_of[head] for _, head in ends)),
        last=tuple(dict.fromkeys(box_of[tail] for tail, _ in ends)),
    )


class _Group(NamedTuple):
    """Layers that are drawn as one box, sources first."""

    kind: NodeKind
    layers: tuple[int, ...]
    last: str = ""

    @property
    def label(self) -> str:
        count = len(self.layers)
        if self.kind is NodeKind.SHAPES:
            return f"shapes ×{count}"
        if self.last:
            return f"{self.last} +{count - 1}"
        return counted(count, "operation")


def _groups(graph: Graph, folding: FoldingOptions, collected: Sequence[Growth]) -> list[_Group]:
    """Return the groups of shape arithmetic and of hidden operations; a layer is in one of them at most."""
    taken = {layer for entry in collected for layer in entry.layers}
    hidden = {key for key in folding.hidden - taken if graph.by_id[key].type not in NO_OPERATIONS}
    groups = [_Group(NodeKind.GROUP, layers) for layers in groups_of(graph, hidden)]
    if folding.shapes and not hidden:
        apart = taken | folding.unfolded
        groups += [_Group(NodeKind.SHAPES, layers) for layers in shape_groups(graph) if apart.isdisjoint(layers)]
    if folding.expressions:
        taken |= {layer for group in groups for layer in group.layers}
        found = expressions(graph, taken, folding.expressions)
        named = [_Group(NodeKind.GROUP, layers, graph.by_id[layers[-1]].type) for layers in found]
        groups += [group for group in named if folding.unfolded.isdisjoint(group.layers)]
    return groups


def _carried(graph: Graph, body: Body) -> list[tuple[int, int]]:
    """Return the back edges as (Result, Parameter), each once; those that name no layer of the graph have no effect."""
    results, parameters = {layer.id for layer in graph.results}, {layer.id for layer in graph.parameters}
    ends = [(edge.from_layer, edge.to_layer) for edge in body.back_edges]
    return [(tail, head) for tail, head in dict.fromkeys(ends) if tail in results and head in parameters]


def _fold_constants(graph: Graph, box_of: dict[int, int], *, results: bool) -> dict[int, tuple[int, ...]]:
    """Fold Constants into boxes, also in `box_of`; one that nothing reads, without `results` a Result, stays a box."""
    constants = {layer.id for layer in graph.layers if layer.type == "Constant"}
    if not results:
        read = {source for result in graph.results for source in graph.sources[result.id]}
        constants -= {source.layer for source in read if source is not None}
    found: dict[int, dict[int, None]] = {}
    for layer in graph.layers:
        for source in graph.sources[layer.id]:
            if source is not None and source.layer in constants:
                found.setdefault(box_of[layer.id], {})[source.layer] = None
    for key, inside in reversed(found.items()):  # the first reader comes last and stays
        box_of.update(dict.fromkeys(inside, key))
    return {key: tuple(inside) for key, inside in found.items()}


def _nodes(
    labels: Mapping[int, str],
    graph: Graph,
    box_of: Mapping[int, int],
    folded: Mapping[int, tuple[int, ...]],
    collected: Sequence[Growth],
    groups: Sequence[_Group],
) -> tuple[DrawnNode, ...]:
    several = {entry.parameter: (entry.parameter, *entry.layers[1:]) for entry in collected}
    several.update({group.layers[-1]: (group.layers[-1], *group.layers[:-1]) for group in groups})
    kinds = {layer.id: _kind(layer) for layer in graph.layers if box_of[layer.id] == layer.id}
    kinds.update({entry.parameter: NodeKind.ACCUMULATOR for entry in collected})
    kinds.update({group.layers[-1]: group.kind for group in groups})
    shown = {key: labels[key] for key in kinds}
    shown.update({entry.parameter: f"{labels[entry.parameter]} +" for entry in collected})
    shown.update({group.layers[-1]: group.label for group in groups})
    apart = told_apart(shown)
    return tuple(
        DrawnNode(key, kind, apart[key], shown[key], several.get(key, (key,)), folded.get(key, ()))
        for key, kind in kinds.items()
    )


def _kind(layer: Layer) -> NodeKind:
    if layer.is_loop:
        return NodeKind.LOOP
    kinds = {
        "Parameter": NodeKind.PARAMETER,
        "Result": NodeKind.RESULT,
        "If": NodeKind.BRANCH,
        "Constant": NodeKind.CONSTANT,
    }
    return kinds.get(layer.type, NodeKind.OPERATION)


def _edges(
    graph: Graph, nodes: Sequence[DrawnNode], box_of: Mapping[int, int], folded: Mapping[int, tuple[int, ...]]
) -> tuple[LayoutEdge[int], ...]:
    """Return every tensor from box to box, once for each reader; the tensors that leave a folded box are numbered."""
    hidden = {constant for inside in folded.values() for constant in inside}
    numbers: dict[int, dict[Source, int]] = {node.key: {} for node in nodes if len(node.layers) > 1}
    edges: dict[LayoutEdge[int], None] = {}
    for layer in graph.layers:
        target = box_of[layer.id]
        for source in graph.sources[layer.id]:
            if source is None or source.layer in hidden or box_of[source.layer] == target:
                continue
            key, output = box_of[source.layer], source.output
            if key in numbers:
                output = numbers[key].setdefault(source, len(numbers[key]))
            edges[LayoutEdge(key, target, output)] = None
    return tuple(edges)
