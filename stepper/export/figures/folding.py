"""Parts of a graph that fold into one box: arithmetic on shapes, and accumulators, which only collect values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

from stepper.export.layout.layered import topological_order
from stepper.ir.model import Graph, Growth, Layer, growth_of
from stepper.operation_types import NO_OPERATIONS

SHAPE_INPUTS: Final[Mapping[str, tuple[int, ...]]] = {
    "BatchToSpace": (1, 2, 3),
    "Broadcast": (1, 2),
    "ConvolutionBackpropData": (2,),
    "Eye": (0, 1, 2),
    "Gather": (2,),
    "GroupConvolutionBackpropData": (2,),
    "Interpolate": (1, 2, 3),
    "OneHot": (1,),
    "Pad": (1, 2),
    "RandomUniform": (0,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Roll": (1, 2),
    "Slice": (1, 2, 3, 4),
    "SpaceToBatch": (1, 2, 3),
    "Split": (1,),
    "Squeeze": (1,),
    "StridedSlice": (1, 2, 3),
    "Tile": (1,),
    "TopK": (1,),
    "Transpose": (1,),
    "Unsqueeze": (1,),
    "VariadicSplit": (1, 2),
}
"""By operation type, the inputs that say how large or where, and are no data."""

ARITHMETIC: Final = frozenset({
    "Add", "Broadcast", "Concat", "Convert", "Divide", "Equal", "Floor", "FloorMod", "Gather", "Greater",
    "GreaterEqual", "Less", "LessEqual", "Maximum", "Minimum", "Mod", "Multiply", "NotEqual", "Power", "Range",
    "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "ScatterElementsUpdate", "ScatterUpdate",
    "Select", "ShapeOf", "Slice", "Split", "Squeeze", "StridedSlice", "Subtract", "Transpose", "Unsqueeze",
    "VariadicSplit",
})  # fmt: skip
"""Operation types that compute sizes."""

SIZES_OF_DATA: Final = ("ShapeOf",)


def accumulators(graph: Graph, back_edges: Sequence[tuple[int, int]]) -> tuple[Growth, ...]:
    """Return the values that are only collected, among back edges given as (Result, Parameter)."""
    tails = [tail for tail, _ in back_edges]
    found = (growth_of(graph, tail, head) for tail, head in back_edges if tails.count(tail) == 1)
    return tuple(one for one in found if one is not None and one.only_collects)


def shape_groups(graph: Graph, smallest: int = 2) -> tuple[tuple[int, ...], ...]:
    """Return the groups of shape arithmetic: it begins at ShapeOf, and only shape inputs and its own kind read it."""
    return tuple(
        group for group in groups_of(graph, _shape_layers(graph, layers_in_order(graph))) if len(group) >= smallest
    )


def expressions(graph: Graph, taken: Set[int], most: int) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two to `most` operations of which all but the last are read by one of the group alone.

    Layers with bodies and those that are `taken` are in none. A larger expression is in as few groups as possible.
    """
    apart = {layer.id for layer in graph.layers if layer.type in NO_OPERATIONS or layer.bodies or layer.id in taken}
    inside: dict[int, list[int]] = {}  # by operation those that it alone reads
    ends: set[int] = set()
    sizes: dict[int, int] = {}
    order = [key for key in layers_in_order(graph) if key not in apart]
    for key in order:
        read = inside.get(key, [])
        sizes[key] = 1 + sum(sizes[one] for one in read)
        for one in sorted(read, key=lambda one: -sizes[one]):  # without the largest there is room for most others
            if sizes[key] <= most:
                break
            ends.add(one)
            sizes[key] -= sizes[one]
        readers = {reader.id for reader, _ in graph.readers.get(key, ())}
        reader = next(iter(readers)) if len(readers) == 1 else key
        if reader == key or reader in apart:
            ends.add(key)
        else:
            inside.setdefault(reader, []).append(key)
    end: dict[int, int] = {}
    for key in reversed(order):
        end.setdefault(key, key)
        for one in inside.get(key, ()):
            end[one] = one if one in ends else end[key]
    found: dict[int, list[int]] = {}
    for key in order:
        found.setdefault(end[key], []).append(key)
    return tuple(tuple(layers) for layers in found.values() if len(layers) > 1)


def groups_of(graph: Graph, members: set[int]) -> tuple[tuple[int, ...], ...]:
    """Return the layers by boxes, sources first in each: connected layers together, but apart where one box of
    them would wait for itself in a circle.
    """
    if not members:
        return ()
    order = layers_in_order(graph)
    stages = _stages(graph, order, members)
    group = {layer: layer for layer in members}

    def root(layer: int) -> int:
        while group[layer] != layer:
            group[layer] = group[group[layer]]
            layer = group[layer]
        return layer

    for layer in members:
        for source in graph.sources[layer]:
            if source is not None and source.layer in members and stages[source.layer] == stages[layer]:
                group[root(source.layer)] = root(layer)
    found: dict[int, list[int]] = {}
    for layer in order:
        if layer in members:
            found.setdefault(root(layer), []).append(layer)
    return tuple(tuple(layers) for layers in found.values())


def _shape_layers(graph: Graph, order: Sequence[int]) -> set[int]:
    """Return the layers of all groups: forward what follows from ShapeOf and Constants, backward what sizes need."""
    from_shape: dict[int, bool] = {}  # of what has only sizes and Constants as inputs: whether a ShapeOf is among them
    for key in order:
        layer = graph.by_id[key]
        sources = [source.layer for source in graph.sources[key] if source is not None]
        if layer.type in SIZES_OF_DATA:
            from_shape[key] = True
        elif layer.type == "Constant":
            from_shape[key] = False
        elif layer.type in ARITHMETIC and all(source in from_shape for source in sources):
            from_shape[key] = any(from_shape[source] for source in sources)
    members = {key for key, known in from_shape.items() if known and _gives_sizes(graph.by_id[key])}
    for key in reversed(order):
        if key in members and not all(
            reader.id in members or index in SHAPE_INPUTS.get(reader.type, ())
            for reader, index in graph.readers.get(key, ())
        ):
            members.discard(key)
    return members


def _gives_sizes(layer: Layer) -> bool:
    types = [port.element_type.name for port in layer.outputs if port.element_type is not None]
    return all(name in ("i64", "i32", "boolean") for name in types)


def _stages(graph: Graph, order: Sequence[int], members: set[int]) -> dict[int, int]:
    """Return for each layer how often sizes became data above it: groups of one stage never depend on each other."""
    stages: dict[int, int] = {}
    for key in order:
        stage = 0
        for source in graph.sources[key]:
            if source is not None:
                leaves = source.layer in members and key not in members
                stage = max(stage, stages[source.layer] + leaves)
        stages[key] = stage
    return stages


def layers_in_order(graph: Graph) -> list[int]:
    """Return layer ids, each after its sources; the reader of the file has excluded cycles."""
    return topological_order(
        {layer.id: [one.layer for one in graph.sources[layer.id] if one is not None] for layer in graph.layers}
    )
