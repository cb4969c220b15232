"""A graph of the model as it is drawn: what is folded into one box, the edges between boxes, back edges, short labels.

Boxes are known by a layer's id (`DrawnNode.key`): their own, or that of the layer that stands for the folded ones.

Operands of an operation are written as `Divide(·, 2)`, where `·` comes by wire and 2 is a constant.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import StepperError
from stepper.export.figures.figure import NodeKind, Thumbnail
from stepper.export.figures.folding import accumulators, expressions, groups_of, shape_groups
from stepper.export.layout.layered import LayoutEdge
from stepper.export.options import ValueDetail
from stepper.ir.constants import constant_shape, constant_type, constant_value
from stepper.ir.model import Body, Graph, Growth, Layer, Model, Source, kept_with_graph
from stepper.operation_types import NO_OPERATIONS
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.query.short_names import is_automatic, last_part, short_names_of
from stepper.records import Record
from stepper.tensors.number_text import nested_text, number_text
from stepper.tensors.statistics import Statistics, statistics
from stepper.wording import counted, excerpt

LONGEST: Final = 28
_BETWEEN_WORDS: Final = re.compile(r"[._:…-]+")
_LETTER: Final = re.compile(r"[^\W\d_]")


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


MOST_ELEMENTS: Final = 12
"""Elements of a tensor that is written out."""

_THUMBNAIL: Final = (6, 24)

Grid = tuple[tuple[float, ...], ...]


class ValueMark(NamedTuple):
    """An anomaly of a value: `word` is NaN, Inf or shape; of how many elements, or what the shape was before."""

    word: str
    elements: int = 0
    before: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.elements} {self.word}" if self.elements else f"{self.word} was {shape_text(self.before)}"


class ValueSummary(Record):
    """One value: type and shape, statistics, all numbers where they are few.

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
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
    span = high - low or 1.0

    def shade(cell: float) -> float | None:
        return (cell - low) / span if np.isfinite(cell) else None

    return [None if grid is None else Thumbnail(tuple(tuple(map(shade, row)) for row in grid)) for grid in kept]


class FoldingOptions(Record):
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


class DrawnNode(Record):
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


class DrawnGraph(Record, dict=True):
    """Boxes in file order, each tensor's edges once per reader, back edges apart.

    `box_of` maps every layer id to the key of its box; a Constant that several read to its first reader. `first` and
    `last` are the boxes to be held on the first and last rank.
    """

    nodes: tuple[DrawnNode, ...]
    edges: tuple[LayoutEdge, ...]
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


USUAL: Final = FoldingOptions()
WHOLE_EXPRESSIONS: Final = sys.maxsize
"""Operations of an expression in one box, where none is too many."""
EVERYTHING_DRAWN: Final = FoldingOptions(constants=False, shapes=False, accumulators=False)


def drawn_graph(graph: Graph, body: Body | None = None, folding: FoldingOptions = USUAL) -> DrawnGraph:
    """Return the boxes and edges of a graph; `body` is the loop's body whose graph it is, for its back edges."""
    carried = _carried(graph, body) if body else []
    collected = accumulators(graph, carried) if folding.accumulators else ()
    labels = labels_of(graph)
    groups = {group.layers[0]: group for group in _groups(graph, folding, collected, labels)}
    box_of = {layer.id: layer.id for layer in graph.layers}
    box_of.update({layer: key for key, group in groups.items() for layer in group.layers})
    folded = _fold_constants(graph, box_of, results=folding.results) if folding.constants else {}
    nodes = tuple(_nodes(labels, graph, box_of, folded, groups))
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
    """Layers that are drawn as one box: first the one by which it is known."""

    kind: NodeKind
    layers: tuple[int, ...]
    label: str


def _groups(
    graph: Graph, folding: FoldingOptions, collected: Sequence[Growth], labels: Mapping[int, str]
) -> Iterator[_Group]:
    """Yield accumulators, groups of shape arithmetic and of hidden operations; a layer is in one of them at most."""
    for entry in collected:
        yield _Group(NodeKind.ACCUMULATOR, entry.layers, f"{labels[entry.parameter]} +")
    taken = {layer for entry in collected for layer in entry.layers}
    hidden = {key for key in folding.hidden - taken if graph.by_id[key].type not in NO_OPERATIONS}
    groups = [(NodeKind.GROUP, layers, counted(len(layers), "operation")) for layers in groups_of(graph, hidden)]
    apart = taken | folding.unfolded
    if folding.shapes and not hidden:
        found = (layers for layers in shape_groups(graph) if apart.isdisjoint(layers))
        groups += [(NodeKind.SHAPES, layers, f"shapes ×{len(layers)}") for layers in found]
    if folding.expressions:
        taken |= {layer for _, layers, _ in groups for layer in layers}
        groups += [
            (NodeKind.GROUP, layers, f"{graph.by_id[layers[-1]].type} +{len(layers) - 1}")
            for layers in expressions(graph, taken, folding.expressions)
            if folding.unfolded.isdisjoint(layers)
        ]
    yield from (_Group(kind, (layers[-1], *layers[:-1]), label) for kind, layers, label in groups)


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
    groups: Mapping[int, _Group],
) -> Iterator[DrawnNode]:
    alone = {
        layer.id: _Group(_kind(layer), (layer.id,), labels[layer.id])
        for layer in graph.layers
        if box_of[layer.id] == layer.id
    }
    boxes = {**alone, **groups}
    apart = told_apart({key: box.label for key, box in boxes.items()})
    for key, box in boxes.items():
        yield DrawnNode(key, box.kind, apart[key], box.label, box.layers, folded.get(key, ()))


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


WIRED: Final = "·"
_MOST: Final = 4
"""Elements of a constant that is written out."""
_LONGEST: Final = 14
"""Characters of a constant that is written out, or of its name."""
_WIDEST: Final = 44
"""Characters of all operands; above, names of constants are left out first, then all but the first operands."""


def operands_text(model: Model, graph: Graph, layer: Layer) -> str:
    """Return the operands of an operation in brackets; "" where all come by wires of their own, which say enough."""
    sources = graph.sources[layer.id]
    wired = [source for source in sources if source is not None and graph.by_id[source.layer].type != "Constant"]
    if len(wired) == len(sources) == len(set(wired)):
        return ""
    for names in (True, False):
        texts = [
            "" if source is None else _operand(model, graph.by_id[source.layer], names=names) for source in sources
        ]
        while texts and not texts[-1]:
            texts.pop()
        text = f"({', '.join(texts)})"
        if len(text) <= _WIDEST:
            return text
    return f"({', '.join(texts[:2])}, … {len(texts) - 2} more)" if len(texts) > 3 else shortened(text, _WIDEST)


def _operand(model: Model, source: Layer, *, names: bool) -> str:
    return constant_text(model, source, names=names) if source.type == "Constant" else WIRED


def constant_text(model: Model, source: Layer, *, names: bool = True) -> str:
    """Return a constant of a few elements written out, another one by its name, type and shape: `W f32[192,64]`."""
    value = _small(model, source)
    if value is not None:
        text = nested_text(value.reshape(-1))
        if len(text) <= _LONGEST:
            return text
    element_type, shape = constant_type(source), constant_shape(source)
    form = f"{'?' if element_type is None else element_type.name}{'' if shape is None else shape_text(shape)}"
    name = excerpt(last_part(source.name))
    if not names or is_automatic(source) or name.isdigit():
        return form
    return f"{shortened(name, _LONGEST)} {form}"


def constant_symbol(model: Model, source: Layer) -> str:
    """Return a constant in a formula: a few elements written out, another one by its name, or by its type and shape."""
    value = _small(model, source)
    if value is not None and len(text := nested_text(value.reshape(-1))) <= _LONGEST:
        return text
    name = excerpt(last_part(source.name))
    return constant_text(model, source, names=False) if is_automatic(source) or name.isdigit() else name


def _small(model: Model, constant: Layer) -> Array | None:
    """Return the value of a constant of a few elements; None for others, and where there is no .bin."""
    shape = constant_shape(constant)
    if shape is None or int(np.prod(shape)) > _MOST or len([extent for extent in shape if extent != 1]) > 1:
        return None
    try:
        return constant_value(model, constant)
    except StepperError:
        return None
