"""Build the drawn graph: folded boxes, edges between boxes, back edges, short labels.

Arithmetic on shapes, and accumulators, which only collect values, fold into one box. A box is known by a layer id
(`DrawnNode.key`): the id of its layer, or of the layer that stands for the folded layers.

Operands of an operation are written as `Divide(·, 2)`, where `·` comes by wire and 2 is a constant.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import StepperError
from stepper.export.figures.figure import NodeKind, Thumbnail
from stepper.export.layout.layered import LayoutEdge, topological_order
from stepper.export.options import ValueDetail
from stepper.ir.constants import constant_shape, constant_type, constant_value
from stepper.ir.model import Body, Graph, Growth, Layer, Model, Source, growth_of, kept_with_graph
from stepper.operation_types import NO_OPERATIONS
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.query.short_names import is_automatic, last_part, short_names_of
from stepper.records import Record
from stepper.tensors.number_text import nested_text, number_text
from stepper.tensors.statistics import Statistics, statistics
from stepper.wording import counted, excerpt

_SHAPE_INPUTS = """
    BatchToSpace=1,2,3 Broadcast=1,2 ConvolutionBackpropData=2 Eye=0,1,2 Gather=2 GroupConvolutionBackpropData=2
    Interpolate=1,2,3 OneHot=1 Pad=1,2 RandomUniform=0 Range=0,1,2 Reshape=1 Roll=1,2 Slice=1,2,3,4
    SpaceToBatch=1,2,3 Split=1 Squeeze=1 StridedSlice=1,2,3 Tile=1 TopK=1 Transpose=1 Unsqueeze=1
    VariadicSplit=1,2
"""
SHAPE_INPUTS: Final[Mapping[str, tuple[int, ...]]] = {
    type: tuple(map(int, inputs.split(",")))
    for type, _, inputs in (one.partition("=") for one in _SHAPE_INPUTS.split())
}
"""By operation type, the inputs that say how large or where, and are no data."""

LayerIds = tuple[int, ...]

_ARITHMETIC = """
    Add Broadcast Concat Convert Divide Equal Floor FloorMod Gather Greater GreaterEqual Less LessEqual Maximum
    Minimum Mod Multiply NotEqual Power Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape
    ScatterElementsUpdate ScatterUpdate Select ShapeOf Slice Split Squeeze StridedSlice Subtract Transpose
    Unsqueeze VariadicSplit
"""
ARITHMETIC = frozenset(_ARITHMETIC.split())
"""Operation types that compute sizes."""

SIZES_OF_DATA = ("ShapeOf",)


def accumulators(graph: Graph, back_edges: Sequence[tuple[int, int]]) -> tuple[Growth, ...]:
    """Return the values that are only collected, among back edges given as (Result, Parameter)."""
    tails = [tail for tail, _ in back_edges]
    found = (growth_of(graph, tail, head) for tail, head in back_edges if tails.count(tail) == 1)
    return tuple(one for one in found if one is not None and one.only_collects)


def shape_groups(graph: Graph) -> tuple[LayerIds, ...]:
    """Return the groups of shape arithmetic: it begins at ShapeOf, and only shape inputs and its own kind read it."""
    return tuple(group for group in groups_of(graph, _shape_layers(graph, layers_in_order(graph))) if len(group) > 1)


def expressions(graph: Graph, taken: Set[int], most: int) -> tuple[LayerIds, ...]:
    """Return groups of two to `most` operations whose values stay inside, except for the last.

    Only one operation of the group reads each operation but the last. Layers with bodies and layers that are `taken`
    are in no group. A larger expression is in as few groups as possible.
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


def groups_of(graph: Graph, members: set[int]) -> tuple[LayerIds, ...]:
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


LONGEST = 28
_BETWEEN_WORDS = re.compile(r"[._:…-]+")
_LETTER = re.compile(r"[^\W\d_]")


@kept_with_graph
def labels_of(graph: Graph) -> Mapping[int, str]:
    """Return a label for every layer, no two alike.

    An operation that only a converter has named has the name of the one Constant that it reads behind its own, where
    that is the only one of its name.
    """
    names, constants = short_names_of(graph), _constant_names(graph)
    labels = {}
    for layer in graph.layers:
        operands = (
            [] if layer.bodies or layer.type in NO_OPERATIONS or not is_automatic(layer) else graph.sources[layer.id]
        )
        read = [constants[source.layer] for source in operands if source is not None and source.layer in constants]
        operand = f" ({read[0]})" if len(read) == 1 and read[0] else ""
        labels[layer.id] = shortened(named_with_type(layer, names[layer.id]) + operand)
    return told_apart(labels)


@kept_with_graph
def references_of(graph: Graph) -> Mapping[int, str]:
    """Return for every layer what a text calls it: its short name, of an operation without the type.

    One whose name is a converter's number alone has its type before that. All views call the Parameters and Results of
    a body so, and what is outside of it.
    """
    names, labels = short_names_of(graph), labels_of(graph)
    short = shortened_names(names.values())
    return told_apart(
        {
            layer.id: short[names[layer.id]]
            if layer.type not in NO_OPERATIONS and _LETTER.search(names[layer.id])
            else labels[layer.id]
            for layer in graph.layers
        }
    )


def readers_of(outer: Graph, layer: Layer, output: int) -> tuple[Layer, ...]:
    """Return what reads an output of a loop or If in the graph around it, Results first: these are what it becomes."""
    wanted = Source(layer.id, output)
    found = (one for one in outer.layers if wanted in outer.sources[one.id])
    return tuple(sorted(found, key=lambda one: one.type != "Result"))


def reader_names(outer: Graph, layer: Layer, output: int, longest: int = LONGEST) -> tuple[str, ...]:
    """Return what reads an output of a loop or If in the graph around it, by name."""
    names = references_of(outer)
    return tuple(shortened(excerpt(names[one.id]), longest) for one in readers_of(outer, layer, output))


def output_name(outer: Graph, layer: Layer, output: int, longest: int = LONGEST) -> str:
    """Return what an output of a loop or If is called around it: as the Result that it becomes, else as its tensor.

    Empty where it has no name of its own; what an operation computes from it is another value.
    """
    results = [one for one in readers_of(outer, layer, output) if one.type == "Result"]
    tensors = [name for name in layer.outputs[output].names if _LETTER.search(name)]
    found = references_of(outer)[results[0].id] if results else tensors[0] if tensors else ""
    return shortened(excerpt(found), longest)


def type_and_name(layer: Layer, name: str) -> tuple[str, str]:
    """Return the two lines of an operation's box: its type and its name, or the name alone where that says the type."""
    if says_type(layer, name):
        return shortened(excerpt(name)), ""
    return excerpt(layer.type), shortened(excerpt(name))


def _constant_names(graph: Graph) -> dict[int, str]:
    """Return the last part of each Constant's name; empty for one that only a converter has named, or of several."""
    layers = [layer for layer in graph.layers if layer.type == "Constant"]
    names = {layer.id: re.split(r"[/.:]", layer.name)[-1] for layer in layers}
    count = Counter(names.values())
    return {
        layer.id: name if count[name] == 1 and _LETTER.match(name) and not is_automatic(layer) else ""
        for layer, name in zip(layers, names.values(), strict=True)
    }


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most that many characters: a longer one loses its middle, never the number at its end."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) * 2 // 3
    return f"{text[: longest - 1 - tail].rstrip('…')}…{text[-tail:].lstrip('…')}"


def shortened_names(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """Return for each name one of at most that many characters: of a long one its last words, `…function_state_in`.

    Where these tell nothing, or fit another name as well, it loses its middle.
    """
    ends = {name: _last_words(name, longest) for name in names}
    count = Counter(ends.values()) + Counter(name for name in ends if len(name) <= longest)
    return {name: f"…{end}" if end and count[end] == 1 else shortened(name, longest) for name, end in ends.items()}


def _last_words(name: str, longest: int) -> str:
    """Return the end of a long name at which a word begins; empty for a short one, and where that would say little."""
    if len(name) <= longest:
        return ""
    scoped = "/" in name or " " in name  # it has a scope, or a type, because its end does not tell
    ends = () if scoped else (name[found.end() :] for found in _BETWEEN_WORDS.finditer(name))
    fitting = next((end for end in ends if len(end) < longest), "")
    return fitting if len(fitting) >= longest // 3 and _LETTER.search(fitting) else ""


def named_with_type(layer: Layer, name: str) -> str:
    """Return a name for a layer, with its type where the name does not say that."""
    if layer.type in NO_OPERATIONS and _LETTER.search(name):
        return name
    return name if says_type(layer, name) else f"{layer.type} {name}".rstrip()


def says_type(layer: Layer, name: str) -> bool:
    """True if the type of the layer is in a name."""
    return layer.type.lower() in name.lower()


def told_apart(labels: Mapping[int, str]) -> dict[int, str]:
    """Return the labels, with the layer's id after those that are still alike."""
    count = Counter(labels.values())
    return {key: f"{label} #{key}" if count[label] > 1 else label for key, label in labels.items()}


MOST_ELEMENTS = 12
"""Elements of a tensor that is written out."""

_THUMBNAIL = (6, 24)

Grid = tuple[tuple[float, ...], ...]


class ValueMark(NamedTuple):
    """An anomaly of a value: `word` is NaN, Inf or shape; of how many elements, or what the shape was before."""

    word: str
    elements: int = 0
    before: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.elements} {self.word}" if self.elements else f"{self.word} was {shape_text(self.before)}"


class ValueSummary(Record):
    """Summarise a value: type and shape, statistics, and all numbers if they are few.

    `marks` are its anomalies. `grid` has the cells of a thumbnail.
    """

    type: str
    shape: tuple[int, ...]
    marks: tuple[ValueMark, ...]
    statistics: Statistics | None = None
    numbers: str = ""
    grid: Grid | None = None

    @property
    def described(self) -> str:
        """Such as `f32[1,16]`."""
        return f"{self.type}{shape_text(self.shape)}"


def summary(value: Any, before: Any, values: ValueDetail) -> ValueSummary:
    """Return the summary of a value; `before` is the value of the iteration before (None: there was none)."""
    array = np.asarray(value)
    found = statistics(array)
    return ValueSummary(
        type=element_types.name_of(array.dtype),
        shape=array.shape,
        marks=tuple(_marks(array, before, found)),
        statistics=found,
        numbers=nested_text(array) if array.size <= MOST_ELEMENTS else "",
        grid=_grid(array) if values is ValueDetail.THUMBNAILS and array.size > 1 else None,
    )


def _marks(array: Array, before: Any, found: Statistics | None) -> Iterable[ValueMark]:
    if found is not None and element_types.is_floating(array.dtype):
        if found.nan:
            yield ValueMark("NaN", found.nan)
        if found.infinite:
            yield ValueMark("Inf", found.infinite)
    if before is not None and np.shape(before) != array.shape:
        yield ValueMark("shape", before=np.shape(before))


def value_lines(value: ValueSummary, values: ValueDetail) -> tuple[str, ...]:
    """Return the lines that stand in the value's box."""
    if values is ValueDetail.NONE:
        return ()
    if values is ValueDetail.SHAPE:
        return (value.described,)
    scalar = all(size == 1 for size in value.shape)
    if value.numbers and (scalar or values is ValueDetail.FULL):
        return (f"{value.described} {value.numbers}",) if scalar else (value.described, value.numbers)
    if values is ValueDetail.THUMBNAILS or value.statistics is None:
        return (value.described,)
    return (value.described, statistics_text(value.statistics))


def statistics_text(found: Statistics) -> str:
    """Return a text such as `-0.93 to 0.71, mean 0.02`, or `all 0`, on the finite elements."""
    if found.min is None or found.max is None or found.mean is None:
        return "no finite element" if found.size else "empty"
    if found.min == found.max:
        return f"all {number_text(found.min)}"
    return f"{number_text(found.min)} to {number_text(found.max)}, mean {number_text(found.mean)}"


def _grid(array: Array) -> Grid | None:
    """Return at most as many cells as a thumbnail has, each the mean of a part of the tensor."""
    if array.dtype == STRING_DTYPE:
        return None
    plain = storable(array).astype(np.float64)
    flat = (
        plain.reshape(1, -1)
        if plain.ndim == 1 or max(plain.shape) == plain.size
        else plain.reshape(-1, plain.shape[-1])
    )
    rows, columns = (min(most, size) for most, size in zip(_THUMBNAIL, flat.shape, strict=True))
    parts = [np.array_split(part.mean(axis=0), columns) for part in np.array_split(flat, rows)]
    return tuple(tuple(float(cell.mean()) for cell in row) for row in parts)


def thumbnails(grids: Iterable[Grid | None]) -> list[Thumbnail | None]:
    """Return the thumbnails of one value over the iterations, shades on one scale."""
    kept = list(grids)
    numbers = [cell for grid in kept if grid is not None for row in grid for cell in row if np.isfinite(cell)]
    low = min(numbers, default=0.0)
    span = max(numbers, default=0.0) - low or 1.0

    def shade(cell: float) -> float | None:
        return (cell - low) / span if np.isfinite(cell) else None

    return [None if grid is None else Thumbnail(tuple(tuple(map(shade, row)) for row in grid)) for grid in kept]


class FoldingOptions(Record):
    """Select layers without own boxes: Constants, shape arithmetic, accumulators.

    Constants are folded into their readers.

    `hidden` are further operations (by id) that are drawn only as groups; Parameters and Results among them stay.
    `unfolded` are layers whose groups are not folded. `expressions`: an operation with one reader is drawn in the box
    of its reader, up to this number of operations per box (0: none). `results`: Constants are also folded into Results.
    """

    constants: bool = True
    accumulators: bool = True
    hidden: frozenset[int] = frozenset()
    unfolded: frozenset[int] = frozenset()
    expressions: int = 0
    results: bool = False


class DrawnNode(Record):
    """A box: `layers` are the ids that it stands for, the key first; `constants` the Constants folded into it.

    `label` tells it apart from boxes of the same `name`.
    """

    key: int
    kind: NodeKind
    label: str
    name: str
    layers: LayerIds
    constants: LayerIds = ()

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


class DrawnGraph(Record, dict=True):
    """Boxes in file order, each tensor's edges once per reader, back edges apart.

    `box_of` maps every layer id to the key of its box; a Constant that several read to its first reader. `first` and
    `last` are the boxes to be held on the first and last rank.
    """

    nodes: tuple[DrawnNode, ...]
    edges: tuple[LayoutEdge, ...]
    back_edges: tuple[DrawnBackEdge, ...]
    box_of: Mapping[int, int]
    first: LayerIds
    last: LayerIds

    def node(self, key: int) -> DrawnNode:
        """Return the box of that key; KeyError for none."""
        return self.by_key[key]

    @cached_property
    def by_key(self) -> dict[int, DrawnNode]:
        """The boxes by key."""
        return {node.key: node for node in self.nodes}


USUAL = FoldingOptions()
WHOLE_EXPRESSIONS = sys.maxsize
"""Operations of an expression in one box, where none is too many."""


def drawn_graph(graph: Graph, body: Body | None = None, folding: FoldingOptions = USUAL) -> DrawnGraph:
    """Return the boxes and edges of a graph; `body` is the loop's body whose graph it is, for its back edges."""
    carried = _carried(graph, body) if body else []
    collected = accumulators(graph, carried) if folding.accumulators else ()
    labels = labels_of(graph)
    groups = {group.key: group for group in _groups(graph, folding, collected, labels)}
    box_of = {layer.id: layer.id for layer in graph.layers}
    box_of.update({layer: key for key, group in groups.items() for layer in group.layers})
    folded = _fold_constants(graph, box_of, results=folding.results) if folding.constants else {}
    boxes = {
        layer.id: DrawnNode(layer.id, _kind(layer), "", labels[layer.id], (layer.id,))
        for layer in graph.layers
        if box_of[layer.id] == layer.id
    } | groups
    apart = told_apart({key: box.name for key, box in boxes.items()})
    nodes = tuple(replace(box, label=apart[key], constants=folded.get(key, ())) for key, box in boxes.items())
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


def _groups(
    graph: Graph, folding: FoldingOptions, collected: Sequence[Growth], labels: Mapping[int, str]
) -> Iterator[DrawnNode]:
    """Yield accumulators, groups of shape arithmetic and of hidden operations; a layer is in one of them at most."""
    for entry in collected:
        yield DrawnNode(entry.layers[0], NodeKind.ACCUMULATOR, "", f"{labels[entry.parameter]} +", entry.layers)
    taken = {layer for entry in collected for layer in entry.layers}
    hidden = {key for key in folding.hidden - taken if graph.by_id[key].type not in NO_OPERATIONS}
    groups = [(NodeKind.GROUP, layers, counted(len(layers), "operation")) for layers in groups_of(graph, hidden)]
    apart = taken | folding.unfolded
    if not hidden:
        found = (layers for layers in shape_groups(graph) if apart.isdisjoint(layers))
        groups += [(NodeKind.SHAPES, layers, f"shapes ×{len(layers)}") for layers in found]
    if folding.expressions:
        taken |= {layer for _, layers, _ in groups for layer in layers}
        groups += [
            (NodeKind.GROUP, layers, f"{graph.by_id[layers[-1]].type} +{len(layers) - 1}")
            for layers in expressions(graph, taken, folding.expressions)
            if folding.unfolded.isdisjoint(layers)
        ]
    for kind, (*layers, key), name in groups:
        yield DrawnNode(key, kind, "", name, (key, *layers))


def _carried(graph: Graph, body: Body) -> list[tuple[int, int]]:
    """Return the back edges as (Result, Parameter), each once; those that name no layer of the graph have no effect."""
    results, parameters = {layer.id for layer in graph.results}, {layer.id for layer in graph.parameters}
    ends = [(edge.from_layer, edge.to_layer) for edge in body.back_edges]
    return [(tail, head) for tail, head in dict.fromkeys(ends) if tail in results and head in parameters]


def _fold_constants(graph: Graph, box_of: dict[int, int], *, results: bool) -> dict[int, LayerIds]:
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


def _kind(layer: Layer) -> NodeKind:
    if layer.bodies:
        return NodeKind.LOOP if layer.is_loop else NodeKind.BRANCH
    return NodeKind(layer.type.lower()) if layer.type in NO_OPERATIONS else NodeKind.OPERATION


def _edges(
    graph: Graph, nodes: Sequence[DrawnNode], box_of: Mapping[int, int], folded: Mapping[int, LayerIds]
) -> tuple[LayoutEdge, ...]:
    """Return every tensor from box to box, once for each reader; the tensors that leave a folded box are numbered."""
    hidden = {constant for inside in folded.values() for constant in inside}
    numbers: dict[int, dict[Source, int]] = {node.key: {} for node in nodes if len(node.layers) > 1}
    edges: dict[LayoutEdge, None] = {}
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


WIRED = "·"
_MOST = 4
"""Elements of a constant that is written out."""
_LONGEST = 14
"""Characters of a constant that is written out, or of its name."""
_WIDEST = 44
"""Characters of all operands; above, names of constants are left out first, then all but the first operands."""


def operands_text(model: Model, graph: Graph, layer: Layer) -> str:
    """Return the operands of an operation in brackets; "" where all come by wires of their own, which say enough."""
    sources = graph.sources[layer.id]
    wired = [source for source in sources if source is not None and graph.by_id[source.layer].type != "Constant"]
    if len(wired) == len(sources) == len(set(wired)):
        return ""
    for names in (True, False):
        texts = [
            ""
            if source is None
            else WIRED
            if source in wired
            else constant_text(model, graph.by_id[source.layer], names=names)
            for source in sources
        ]
        while texts and not texts[-1]:
            texts.pop()
        text = f"({', '.join(texts)})"
        if len(text) <= _WIDEST:
            return text
    return f"({', '.join(texts[:2])}, … {len(texts) - 2} more)" if len(texts) > 3 else shortened(text, _WIDEST)


def constant_text(model: Model, source: Layer, *, names: bool = True) -> str:
    """Return a constant of a few elements written out, another one by its name, type and shape: `W f32[192,64]`."""
    if text := _written_out(model, source):
        return text
    element_type, shape = constant_type(source), constant_shape(source)
    form = f"{'?' if element_type is None else element_type.name}{'' if shape is None else shape_text(shape)}"
    name = excerpt(last_part(source.name))
    if not names or is_automatic(source) or name.isdigit():
        return form
    return f"{shortened(name, _LONGEST)} {form}"


def constant_symbol(model: Model, source: Layer) -> str:
    """Return a constant in a formula: a few elements written out, another one by its name, or by its type and shape."""
    name = excerpt(last_part(source.name))
    is_named = not is_automatic(source) and not name.isdigit()
    return _written_out(model, source) or (name if is_named else constant_text(model, source, names=False))


def _written_out(model: Model, constant: Layer) -> str:
    """Return a constant of a few elements written out; empty for others, and where there is no .bin."""
    shape = constant_shape(constant)
    if shape is None or int(np.prod(shape)) > _MOST or len([extent for extent in shape if extent != 1]) > 1:
        return ""
    try:
        text = nested_text(constant_value(model, constant).reshape(-1))
    except StepperError:
        return ""
    return text if len(text) <= _LONGEST else ""
