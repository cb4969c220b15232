"""Matching the layers of two graphs by what they are connected with; see layers.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from stepper.compare.files.constants import ConstantValues
from stepper.ir.model import Body, Graph, Layer, Source
from stepper.operation_types import NO_OPERATIONS

COMMUTATIVE: Final = frozenset(
    {"Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor"}
)
_FIXED: Final = frozenset(NO_OPERATIONS)

Key = tuple[Any, ...]


class IndexedGraph:
    """One graph with its consumers and constants."""

    def __init__(self, graph: Graph, constants: ConstantValues) -> None:
        self.graph = graph
        self.constants = constants
        self.consumers: dict[int, list[tuple[int, int]]] = {layer.id: [] for layer in graph.layers}
        self.edges = 0
        for layer in graph.layers:
            for port, source in enumerate(graph.sources[layer.id]):
                if source is not None:
                    self.consumers[source.layer].append((layer.id, port))
                    self.edges += 1

    def signature(self, body: Body) -> Key:
        """Return a key of a body's contents: how its port map cuts, its operations and constants, in no order."""
        cuts = sorted(map(repr, [one.slicing for one in body.inputs] + [one.slicing for one in body.outputs]))
        parts: Counter[Key] = Counter()
        for layer in body.graph.layers:
            if layer.type == "Constant":
                parts["constant", self.constants.digest(body.graph, Source(layer.id, 0))] += 1
            else:
                inner = tuple(self.signature(one) for one in layer.bodies)
                parts[layer.type, tuple(sorted(layer.attributes.items())), inner] += 1
        return tuple(cuts), frozenset(parts.items())

    def digest(self, source: Source) -> str | None:
        """Return the content of a constant source."""
        return self.constants.digest(self.graph, source)


class Matcher:
    """A growing one-to-one mapping of our layers' ids to the reference's."""

    def __init__(
        self, ours: Graph, theirs: Graph, certain: Mapping[int, int], constants: tuple[ConstantValues, ConstantValues]
    ) -> None:
        self.ours, self.theirs = IndexedGraph(ours, constants[0]), IndexedGraph(theirs, constants[1])
        self.certain = set(certain)
        self.layers: dict[int, int] = {}
        self.reverse: dict[int, int] = {}
        self.add(certain)

    # --- growing -------------------------------------------------------------------------------------------------

    def add(self, found: Mapping[int, int]) -> None:
        """Take these pairs, but for layers that have a partner already."""
        for mine, other in found.items():
            self._pair(mine, other)

    def _pair(self, mine: int, other: int) -> bool:
        if mine in self.layers or other in self.reverse:
            return False
        self.layers[mine], self.reverse[other] = other, mine
        return True

    def add_names(self) -> None:
        """Pair layers of one name, which is unique on both sides; operations of another type too."""
        mine, others = _by_unique_name(self.ours.graph), _by_unique_name(self.theirs.graph)
        for name, layer in mine.items():
            other = others.get(name)
            if other is not None and _may_be(layer, other):
                self._pair(layer.id, other.id)

    def drop_doubtful(self) -> None:
        """Part pairs that share a name and not one connection, while their neighbours are paired with others."""
        for mine, other in list(self.layers.items()):
            layer = self.ours.graph.by_id[mine]
            if mine in self.certain or layer.type in ("Parameter", "Result"):
                continue
            kept, broken = self._connections(mine, other)
            if broken and not kept:
                del self.layers[mine], self.reverse[other]

    def _connections(self, mine: int, other: int) -> tuple[int, int]:
        """Return how many connections of two layers agree, and how many lead to layers that are paired otherwise."""
        kept = broken = 0
        mine_sources, other_sources = self.ours.graph.sources[mine], self.theirs.graph.sources[other]
        for source, found in zip(mine_sources, other_sources, strict=False):
            if source is not None and found is not None and source.layer in self.layers:
                agree = self.layers[source.layer] == found.layer
                kept, broken = kept + agree, broken + (not agree)
        into = {(layer, port) for layer, port in self.theirs.consumers[other]}
        for layer, port in self.ours.consumers[mine]:
            if layer in self.layers:
                agree = (self.layers[layer], port) in into
                kept, broken = kept + agree, broken + (not agree)
        return kept, broken

    def complete(self) -> None:
        """Add what follows from the structure, the surest first, until nothing does."""
        rounds = (
            lambda: self._forward(attributes=True, types=True),
            lambda: self._backward(types=True),
            lambda: self._forward(attributes=False, types=True),
            lambda: self._backward(types=False),
            lambda: self._forward(attributes=False, types=False),
            lambda: self._forward(attributes=True, types=True, alike=True),
        )
        step = 0
        while step < len(rounds):
            step = 0 if rounds[step]() else step + 1

    def _forward(self, *, attributes: bool, types: bool, alike: bool = False) -> bool:
        """Pair operations of equal inputs (and type, and attributes), where these are unique; True if any was.

        `alike`: one pair of as many that cannot be told apart on both sides, in the order of the files.
        """
        mine = self._keyed(self.ours, self._my_source, self.layers, attributes=attributes, types=types)
        others = self._keyed(self.theirs, self._other_source, self.reverse, attributes=attributes, types=types)
        grown = False
        for key, layers in mine.items():
            candidates = others.get(key, [])
            if len(candidates) != len(layers) or (len(layers) > 1 and not alike):
                continue
            if types or self._share_a_consumer(layers[0].id, candidates[0].id):
                grown |= self._pair(layers[0].id, candidates[0].id)
                if grown and alike:
                    return True
        return grown

    def _keyed(
        self, side: IndexedGraph, named: Any, paired: Mapping[int, int], *, attributes: bool, types: bool
    ) -> dict[Key, list[Layer]]:
        found: dict[Key, list[Layer]] = {}
        for layer in side.graph.layers:
            if layer.id in paired or layer.type in _FIXED or not side.graph.sources[layer.id]:
                continue
            inputs = [named(source) for source in side.graph.sources[layer.id]]
            if None in inputs:
                continue
            if layer.type in COMMUTATIVE and not attributes:
                inputs.sort(key=repr)
            written = (*sorted(layer.attributes.items()), *map(side.signature, layer.bodies)) if attributes else ()
            key = (layer.type if types else "", len(layer.outputs), len(layer.bodies), tuple(inputs), written)
            found.setdefault(key, []).append(layer)
        return found

    def _my_source(self, source: Source | None) -> Key | None:
        if source is None:
            return ("open",)
        if source.layer in self.layers:
            return ("layer", source.layer, source.output)
        digest = self.ours.digest(source)
        return None if digest is None else ("constant", digest)

    def _other_source(self, source: Source | None) -> Key | None:
        if source is None:
            return ("open",)
        if source.layer in self.reverse:
            return ("layer", self.reverse[source.layer], source.output)
        digest = self.theirs.digest(source)
        return None if digest is None else ("constant", digest)

    def _share_a_consumer(self, mine: int, other: int) -> bool:
        into = set(self.theirs.consumers[other])
        return any((self.layers.get(layer), port) in into for layer, port in self.ours.consumers[mine])

    def _backward(self, *, types: bool) -> bool:
        """Pair sources of the same input of paired layers, of one type (or as many outputs); True if any was."""
        grown = False
        for mine, other in list(self.layers.items()):
            sources = zip(self.ours.graph.sources[mine], self.theirs.graph.sources[other], strict=False)
            for source, found in sources:
                if source is None or found is None or source.output != found.output:
                    continue
                if source.layer in self.layers or found.layer in self.reverse:
                    continue
                layer, partner = self.ours.graph.by_id[source.layer], self.theirs.graph.by_id[found.layer]
                if layer.type == partner.type or (
                    not types and _may_be(layer, partner) and self._same_inputs(layer, partner)
                ):
                    grown |= self._pair(layer.id, partner.id)
        return grown

    def _same_inputs(self, layer: Layer, other: Layer) -> bool:
        mine, others = self.ours.graph.sources[layer.id], self.theirs.graph.sources[other.id]
        if len(mine) != len(others):  # what the operation itself brings comes after its operand
            mine, others = mine[:1], others[:1]
        return (
            bool(mine)
            and bool(others)
            and [self._my_source(one) for one in mine] == [self._other_source(one) for one in others]
        )

    # --- judging -------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """How many of our connections the reference has too."""
        count = 0
        for mine, other in self.layers.items():
            for source, found in zip(self.ours.graph.sources[mine], self.theirs.graph.sources[other], strict=False):
                if source is not None and found is not None and self.layers.get(source.layer) == found.layer:
                    count += source.output == found.output
        return count

    @property
    def keeps_everything(self) -> bool:
        """True if both sides have the same connections."""
        return self.kept == self.ours.edges == self.theirs.edges


def _by_unique_name(graph: Graph) -> dict[str, Layer]:
    counts = Counter(layer.name for layer in graph.layers)
    return {layer.name: layer for layer in graph.layers if layer.name and counts[layer.name] == 1}


def _may_be(layer: Layer, other: Layer) -> bool:
    """True if one of the two may stand where the other does."""
    if layer.type == other.type:
        return len(layer.bodies) == len(other.bodies)
    if _FIXED & {layer.type, other.type}:
        return False
    return _shape(layer) == _shape(other)


def _shape(layer: Layer) -> tuple[int, int]:
    return len(layer.outputs), len(layer.bodies)
