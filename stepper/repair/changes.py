"""The changes that edits are made of, each a function whose last argument is the model that is being edited.

apply = partial(read, scope, layer, 0, source)       # what an RepairEdit has; apply(patch) makes the change
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from stepper.element_types import Array
from stepper.ir.model import InputMapping, Scope, Source
from stepper.repair.patch import GraphPatch, ModelPatch

Item = TypeVar("Item")


def read(scope: Scope, layer: int, index: int, source: Source, patch: ModelPatch) -> None:
    """Let an input of a layer read another value."""
    patch.graph(scope).read(layer, index, source)


def set_sources(scope: Scope, layer: int, sources: Sequence[Source | None], patch: ModelPatch) -> None:
    """Replace all sources of a layer."""
    patch.graph(scope).set_sources(layer, sources)


def set_attributes(scope: Scope, layer: int, texts: Mapping[str, str], patch: ModelPatch) -> None:
    """Set attributes of a layer."""
    patch.graph(scope).set_attributes(layer, texts)


def set_type(scope: Scope, layer: int, name: str, texts: Mapping[str, str], patch: ModelPatch) -> None:
    """Let a layer be another operation."""
    patch.graph(scope).set_type(layer, name, texts)


def set_operation(
    scope: Scope, layer: int, name: str, texts: Mapping[str, str], sources: Sequence[Source | None], patch: ModelPatch
) -> None:
    """Let a layer be another operation that reads other values."""
    set_type(scope, layer, name, texts, patch)
    patch.graph(scope).set_sources(layer, sources)


def redirect(scope: Scope, old: Source, new: Source, patch: ModelPatch) -> None:
    """Let all that read one value read another."""
    patch.graph(scope).redirect(old, new)


def exchange(scope: Scope, layers: Sequence[int], a: Source, b: Source, patch: ModelPatch) -> None:
    """Let layers that read one of two values read the other one."""
    graph, exchanged = patch.graph(scope), {a: b, b: a}
    for layer in layers:
        graph.set_sources(layer, [None if one is None else exchanged.get(one, one) for one in graph.sources[layer]])


def repeat(scope: Scope, layer: int, index: int, patch: ModelPatch) -> None:
    """Apply an operation once more to its own output."""
    graph, made = patch.graph(scope), Source(layer, 0)
    old, sources = graph.layers[layer], list(graph.sources[layer])
    sources[index] = made
    again = graph.add(old.type, sources, old.attributes, old.outputs[0], f"{old.name}/again")
    graph.redirect(made, again, but=(again.layer,))


def set_value(scope: Scope, layer: int, value: Array, patch: ModelPatch) -> None:
    """Give a Constant another value."""
    patch.graph(scope).set_value(layer, value)


def set_values(values: Sequence[tuple[Scope, int, Array]], patch: ModelPatch) -> None:
    """Give several Constants other values."""
    for scope, layer, value in values:
        patch.graph(scope).set_value(layer, value)


class InsertPoint(NamedTuple):
    """Where something is inserted: behind a value for all that read it (layer -1), or before one input of a layer."""

    source: Source
    layer: int = -1
    input: int = -1

    @property
    def is_behind(self) -> bool:
        """True if all that read the value are meant."""
        return self.layer < 0

    def put(self, graph: GraphPatch, made: Source) -> None:
        """Let who reads the value here read what was made of it."""
        if self.is_behind:
            graph.redirect(self.source, made, but=graph.added)
        else:
            graph.read(self.layer, self.input, made)


def insert(scope: Scope, place: InsertPoint, name: str, texts: Mapping[str, str], patch: ModelPatch) -> None:
    """Insert an operation of one input."""
    graph = patch.graph(scope)
    place.put(graph, graph.add(name, (place.source,), texts, graph.port(place.source)))


def insert_with(
    scope: Scope,
    place: InsertPoint,
    name: str,
    operand: Source | Array,
    texts: Mapping[str, str],
    at: int,
    patch: ModelPatch,
) -> None:
    """Insert an operation of two inputs; the other operand is a value in scope or a number, the value is input `at`."""
    graph = patch.graph(scope)
    other = operand if isinstance(operand, Source) else graph.constant(operand)
    sources = (place.source, other) if at == 0 else (other, place.source)
    place.put(graph, graph.add(name, sources, texts, graph.port(place.source)))


def add_input(patch: ModelPatch, scope: Scope, source: Source, name: str) -> int:
    """Give a body a value from outside that is the same in each iteration; return the id of its Parameter."""
    outer, loop = patch.graph(scope[:-1]), scope[-1][0]
    index = len(outer.sources[loop])
    outer.read(loop, index, source)
    parameter = patch.graph(scope).parameter(outer.port(source), name)
    patch.port_map(scope).inputs.append(InputMapping(index, parameter, None, None, False, 0))
    return parameter


def swapped(items: Iterable[Item], a: int, b: int) -> list[Item]:
    """Return the items with two of them exchanged."""
    found = list(items)
    found[a], found[b] = found[b], found[a]
    return found
