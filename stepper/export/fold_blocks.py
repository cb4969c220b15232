"""A figure with its repeating blocks drawn once: a frame with a count, its boxes named for all copies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from os.path import commonprefix
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.element_types import Array
from stepper.errors import StepperError
from stepper.export.figures.builder import DrawnLevel, FigureBuilder
from stepper.export.figures.drawn_graph import DrawnGraph, layers_in_order, named_with_type, shortened
from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode, FramePort, NodeKind
from stepper.export.layout.layered import topological_order
from stepper.ir.constants import constant_shape, constant_type, constant_value
from stepper.ir.model import Graph, Layer, Model, Port
from stepper.query.short_names import short_names_of
from stepper.records import Record
from stepper.wording import excerpt

LEAST_SAVED = 6
"""Nodes that are left out at least where a block is drawn once."""
_LEAST_SIZE = 3
_MOST_PERIODS = 48
"""Periods that are tried, the most promising ones."""
_MOST_TRIES = 400
"""Parts of the sequence that are checked."""
_MOST_CUTS = 4

Read = tuple[int, int]
"""Input of a node: the node that it reads, and the output of that node."""


Copy = tuple[int, ...]
"""Nodes of a copy of a block, in one order for all copies."""


class RepeatedBlock(Record):
    """Copies of one block, each with its nodes in one order; in a row where each copy reads the one before."""

    copies: tuple[Copy, ...]
    is_row: bool

    @property
    def saved(self) -> int:
        """How many nodes need not be drawn."""
        return len(self.copies[0]) * (len(self.copies) - 1)


def repeats_of(
    inputs: Mapping[int, Sequence[Read]], looks: Mapping[int, Hashable], fixed: Set[int] = frozenset()
) -> tuple[RepeatedBlock, ...]:
    """Return the blocks that repeat, the largest saving first; no node is in two of them.

    `inputs` are those of each node in their order, without cycles; two nodes of one look can stand for each other.
    Nodes that are `fixed` are in no block.
    """
    return tuple(_Finder(inputs, looks, fixed).found())


class _SourcePlace(NamedTuple):
    """Position of a source seen from a reader in a copy: `back` copies before; `at` is the place in the block.

    Outside of all copies `back` is -1, and `at` the node.
    """

    back: int
    at: int
    output: int


class _Finder:
    """The graph in the order of its structure, and which nodes are in a block already."""

    def __init__(self, inputs: Mapping[int, Sequence[Read]], looks: Mapping[int, Hashable], fixed: Set[int]) -> None:
        self._inputs = inputs
        self._readers: dict[int, list[tuple[int, int]]] = {node: [] for node in inputs}
        for node, read in inputs.items():
            for index, (source, _) in enumerate(read):
                self._readers[source].append((node, index))
        known: dict[Hashable, int] = {}
        self._look = {
            node: known.setdefault((looks[node], tuple(output for _, output in read)), len(known))
            for node, read in inputs.items()
        }
        self._order = [node for node in _structural_order(inputs, self._readers) if node not in fixed]
        self._place = {node: at for at, node in enumerate(self._order)}
        self._frame: dict[int, int] = {}

    def found(self) -> Iterator[RepeatedBlock]:
        """Yield the blocks, those that save the most first."""
        crossing, tried = self._crossing(), set[tuple[int, ...]]()
        while (made := self._best(crossing, tried)) is not None:
            number = -len(self._frame) - 1
            self._frame.update((node, number) for copy in made.copies for node in copy)
            yield made

    def _best(self, crossing: tuple[Array, Array], tried: set[tuple[int, ...]]) -> RepeatedBlock | None:
        """Return the block of the part that saves the most, among those not `tried`; None if there is none."""
        looks = [-at if node in self._frame else self._look[node] + 1 for at, node in enumerate(self._order)]
        for part in sorted(_periodic(np.array(looks, np.int64))):
            if part in tried:
                continue
            if len(tried) == _MOST_TRIES:
                return None
            tried.add(part)
            made = self._checked(*part[1:], crossing)
            if made is not None and made.saved >= LEAST_SAVED and self._is_apart(made):
                return made
        return None

    def _crossing(self) -> tuple[Array, Array]:
        """Return for each place of the order how many nodes before it are read at or behind it, and how often."""
        nodes, reads = np.zeros((2, len(self._order) + 2), np.int64)
        for at, node in enumerate(self._order):
            places = [self._place[reader] for reader, _ in self._readers[node] if reader in self._place]
            for place in places:
                reads[at + 1] += 1
                reads[place + 1] -= 1
            if places:
                nodes[at + 1] += 1
                nodes[max(places) + 1] -= 1
        return np.cumsum(nodes), np.cumsum(reads)

    # --- one part of the sequence ----------------------------------------------------------------------------------

    def _checked(self, period: int, begin: int, length: int, crossing: tuple[Array, Array]) -> RepeatedBlock | None:
        """Return the copies in a part of the order; None where they differ.

        They are cut where the fewest tensors cross, best of all where these fork; of several cuts the one that saves
        most.
        """
        (nodes, reads), inner = crossing, begin + period
        slack = length % period
        key = {at: (int(nodes[inner + at]), -int(reads[inner + at]), at > slack) for at in range(period)}
        least = min(key.values())[0]
        offsets = sorted((at for at in range(period) if key[at][0] == least), key=lambda at: (*key[at], at))
        found: list[RepeatedBlock] = []
        for offset in offsets[:_MOST_CUTS]:
            starts = range(begin + offset, begin + length - period + 1, period)
            alike = self._alike([tuple(self._order[at : at + period]) for at in starts])
            if len(alike) < 2:
                continue
            copies = self._extended(alike)
            before = {*copies[0]}
            is_row = any(source in before for node in copies[1] for source, _ in self._inputs[node])
            found.append(RepeatedBlock(tuple(copies), is_row))
        return max(found, key=lambda one: one.saved, default=None)

    def _alike(self, copies: Sequence[Copy]) -> list[Copy]:
        """Return the longest run of consecutive copies that are wired alike."""
        refs, runs = self._refs(copies), [[copies[0]]]
        for (one, other), (before, copy) in zip(pairwise(refs), pairwise(copies), strict=True):
            if self._is_alike(one, other, may_enter=len(runs[-1]) == 1):
                runs[-1].append(copy)
            else:
                runs.append([before, copy] if self._is_alike(one, other, may_enter=True) else [copy])
        return max(runs, key=len)

    def _refs(self, copies: Sequence[Copy]) -> list[list[_SourcePlace]]:
        """Return where each copy reads from."""
        where = {node: (copy, at) for copy, nodes in enumerate(copies) for at, node in enumerate(nodes)}
        found: list[list[_SourcePlace]] = [[] for _ in copies]
        for copy, nodes in enumerate(copies):
            for source, output in (read for node in nodes for read in self._inputs[node]):
                other, at = where.get(source, (copy + 1, source))
                place = _SourcePlace(copy - other, at, output) if other <= copy else _SourcePlace(-1, source, output)
                found[copy].append(place)
        return found

    def _is_alike(self, one: list[_SourcePlace], other: list[_SourcePlace], *, may_enter: bool) -> bool:
        """True if two copies are wired alike; the first of a row may read what is before it wherever that is."""
        return all(
            a == b
            or (may_enter and a.back < 0 and b.back == 1)
            or (a.back < 0 and b.back < 0 and self._look[a.at] == self._look[b.at] and a.output == b.output)
            for a, b in zip(one, other, strict=True)
        )

    # --- further copies at both ends -------------------------------------------------------------------------------

    def _extended(self, copies: list[Copy]) -> list[Copy]:
        """Return the copies with those before and behind them that are wired alike."""
        taken = {node for copy in copies for node in copy}
        for step in (1, -1):
            while (made := self._another(copies[::step], taken, step)) is not None:
                taken.update(made)
                copies = [made, *copies] if step == 1 else [*copies, made]
        return copies

    def _another(self, copies: Sequence[Copy], taken: Set[int], step: int) -> Copy | None:
        """Return a copy that is to the first as that is to the second, found along edges; None where there is none."""
        model = dict.fromkeys(copies[0])
        found, waiting = dict(zip(copies[1], copies[0], strict=True)), list(copies[1])
        while waiting:
            pattern = waiting.pop()
            node = found[pattern]
            reads = zip(self._inputs[pattern], self._inputs[node], strict=True)
            steps = [(theirs, mine) for (theirs, _), (mine, _) in reads if theirs in model]
            for reader, index in self._readers[pattern]:
                if reader in model and reader not in found:
                    ready = (one for one, slot in self._readers[node] if slot == index and one not in taken)
                    fitting = [one for one in ready if self._look[one] == self._look[reader]]
                    steps += [(reader, fitting[0])] if len(fitting) == 1 else []
            for theirs, mine in steps:
                if theirs not in found:
                    is_free = mine in self._place and mine not in self._frame and mine not in taken
                    if self._look[theirs] != self._look[mine] or not is_free:
                        return None
                    waiting.append(theirs)
                if found.setdefault(theirs, mine) != mine:
                    return None
        made = tuple(found[node] for node in model if node in found)
        if len(set(made)) < len(model):
            return None
        one, other = self._refs([made, copies[0]][::step])
        return made if self._is_alike(one, other, may_enter=True) else None

    def _is_apart(self, made: RepeatedBlock) -> bool:
        """True if the block can be one box: nothing that reads it is read by it."""
        frame = {**self._frame, **{node: -len(self._frame) - 1 for copy in made.copies for node in copy}}
        links: dict[int, set[int]] = {}
        for node, read in self._inputs.items():
            links.setdefault(frame.get(node, node), set()).update(frame.get(source, source) for source, _ in read)
        try:
            topological_order({key: [*(sources - {key})] for key, sources in links.items()})
        except ValueError:
            return False
        return True


def _structural_order(
    inputs: Mapping[int, Sequence[Read]], readers: Mapping[int, Sequence[tuple[int, int]]]
) -> Iterator[int]:
    """Yield the nodes, each after its inputs, from the deepest end backwards, of several inputs the deepest first."""
    depth: dict[int, int] = {}
    for node in topological_order({node: [source for source, _ in read] for node, read in inputs.items()}):
        depth[node] = 1 + max((depth[source] for source, _ in inputs[node]), default=0)
    done: set[int] = set()
    for end in sorted((node for node in inputs if not readers[node]), key=lambda node: -depth[node]):
        stack = [end]
        while stack:
            node = stack[-1]
            waiting = [source for source, _ in inputs[node] if source not in done]
            if waiting:
                stack.append(max(waiting, key=lambda source: depth[source]))
            elif stack.pop() not in done:
                done.add(node)
                yield node


def _periodic(looks: Array) -> Iterator[tuple[int, int, int, int]]:
    """Yield the parts that have a period: what it saves, below 0; the period; where it begins; its length."""
    order = np.argsort(looks, kind="stable")
    gaps = np.diff(order)[np.diff(looks[order]) == 0]
    periods, counts = np.unique(gaps[gaps >= _LEAST_SIZE], return_counts=True)
    for at in np.argsort(-periods * counts, kind="stable")[:_MOST_PERIODS]:
        period = int(periods[at])
        same = np.concatenate(([False], looks[:-period] == looks[period:], [False]))
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            length = int(end - begin) + period
            saved = period * (length // period - 1)
            if end - begin >= period and saved >= LEAST_SAVED:
                yield -saved, period, int(begin), length


_NAMES = frozenset({"variable_id", "variable", "friendly_name"})
"""Attributes that are names."""
_MOST = 16
"""Elements of an integer constant that is compared by value."""


def inputs_of(drawn: DrawnGraph) -> dict[int, list[Read]]:
    """Return what each box reads, by its key."""
    found: dict[int, list[Read]] = {node.key: [] for node in drawn.nodes}
    for edge in drawn.edges:
        found[edge.target].append((edge.source, edge.output))
    return found


class StructuralLooks:
    """Looks of the boxes of a model's graphs; bodies are compared whole."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._bodies: dict[int, Hashable] = {}
        self._known: dict[Hashable, int] = {}

    def of(self, graph: Graph, drawn: DrawnGraph) -> dict[int, Hashable]:
        """Return a look for each box, by its key."""
        return {
            node.key: (node.kind, tuple(sorted(self._number(self._layer(graph, key)) for key in node.layers)))
            for node in drawn.nodes
        }

    def _layer(self, graph: Graph, key: int) -> Hashable:
        layer = graph.by_id[key]
        attributes = frozenset((name, text) for name, text in layer.attributes.items() if name not in _NAMES)
        if layer.type == "Constant":
            return self._constant(layer)
        bodies = tuple(  # the port map without ids of layers
            (
                body.role,
                self._body(body.graph),
                tuple((entry.input, entry.slicing, entry.purpose) for entry in body.inputs),
                tuple((entry.output, entry.slicing, entry.purpose) for entry in body.outputs),
                len(body.back_edges),
            )
            for body in layer.bodies
        )
        ports = tuple(map(_form, layer.inputs)), tuple(map(_form, layer.outputs))
        return layer.type, layer.definition, attributes, ports, bodies, tuple(self._operands(graph, layer))

    def _operands(self, graph: Graph, layer: Layer) -> Iterator[Hashable]:
        """Yield the constants that it reads, and of wires which of them are the same."""
        sources = graph.sources[layer.id]
        for source in sources:
            if source is None or graph.by_id[source.layer].type != "Constant":
                yield sources.index(source)
            else:
                yield self._constant(graph.by_id[source.layer])

    def _constant(self, layer: Layer) -> Hashable:
        type_, shape = constant_type(layer), constant_shape(layer)
        form = None if type_ is None else type_.name, shape
        if shape is None or type_ is None or int(np.prod(shape)) > _MOST:
            return form
        try:
            value = constant_value(self._model, layer)
        except StepperError:
            return form
        return (*form, tuple(value.reshape(-1).tolist())) if value.dtype.kind in "iub" else form

    def _body(self, graph: Graph) -> Hashable:
        """Return the structure of a whole graph: each of its ends with everything it depends on."""
        if id(graph) not in self._bodies:
            looks: dict[int, int] = {}
            for key in layers_in_order(graph):
                read = tuple(
                    None if source is None else (looks[source.layer], source.output) for source in graph.sources[key]
                )
                looks[key] = self._number((self._layer(graph, key), read))
            self._bodies[id(graph)] = tuple(sorted(looks.values()))
        return self._bodies[id(graph)]

    def _number(self, look: Hashable) -> int:
        return self._known.setdefault(look, len(self._known))


def _form(port: Port) -> Hashable:
    return None if port.element_type is None else port.element_type.name, port.dims


_TOKENS = re.compile(r"\d+|\D+")
_NUMBER = re.compile("[0-9]+")
_NUMBERED = re.compile(r"(?:^|[./_])\d{1,9}(?=[./_]|$)")
_MOST_LISTED = 4


def shared_name(names: Sequence[str]) -> str:
    """Return one name for several; the numbers in which they differ as a range, or what else differs as `…`."""
    if len(set(names)) == 1:
        return names[0]
    tokens = [_TOKENS.findall(name) for name in names]
    if all(len(found) == len(tokens[0]) for found in tokens):
        columns = list(zip(*tokens, strict=True))
        if all(len(set(column)) == 1 or all(map(_NUMBER.fullmatch, column)) for column in columns):
            return "".join(column[0] if len(set(column)) == 1 else _range(column) for column in columns)
    begin = commonprefix(names)  # noqa: RUF071 (of letters, not of paths)
    end = commonprefix([name[len(begin) :][::-1] for name in names])[::-1]  # noqa: RUF071
    return f"{begin}…{end}" if begin or end else f"{names[0]}, …"


def block_name(members: Sequence[Sequence[str]]) -> str:
    """Return the name of a block whose copies have members of these names.

    Returns "" if the names share no number. The name is the common part of most members, up to the number that counts
    the copies.
    """
    found: Counter[str] = Counter()
    for names in zip(*members, strict=True):
        for ends in zip(*([match.end() for match in _NUMBERED.finditer(name)] for name in names), strict=False):
            shared = shared_name([name[:end] for name, end in zip(names, ends, strict=True)])
            if shared.endswith("}") and shared.count("{") == 1 and "…" not in shared:
                found[shared] += 1
                break
    if not found:
        return ""
    name, count = max(found.items(), key=lambda item: (item[1], -len(item[0])))
    return name if 2 * count > len(members[0]) // 2 else ""


def _range(column: Sequence[str]) -> str:
    numbers = [int(text) for text in column]
    if all(after == before + 1 for before, after in pairwise(numbers)):
        return f"{{{column[0]}..{column[-1]}}}"
    if len(column) <= _MOST_LISTED:
        return f"{{{','.join(column)}}}"
    return f"{{{column[0]},{column[1]}..{column[-1]}}}"


LARGE = 100
"""Boxes above which blocks are drawn once where nothing else is said."""
_LONGEST = 44
_FIXED = (NodeKind.PARAMETER, NodeKind.RESULT, NodeKind.ACCUMULATOR)
"""Kinds of boxes of a body at which back edges and port maps end."""


def drawn_once(figure: Figure, parts: FigureBuilder, model: Model) -> Figure:
    """Return the figure with each block that repeats drawn once; the same figure where none does."""
    made, looks = _Once(figure), StructuralLooks(model)
    for level in parts.levels:
        kinds = {node.key: node.kind for node in level.drawn.nodes}
        fixed = frozenset(key for key, kind in kinds.items() if level.prefix and kind in _FIXED)
        for repeats in repeats_of(inputs_of(level.drawn), looks.of(level.graph, level.drawn), fixed):
            made.fold(level, repeats)
    return made.figure()


class _Once:
    """A figure in which copies become their first one."""

    def __init__(self, figure: Figure) -> None:
        self._whole = figure
        self._stands_for: dict[str, str] = {}
        self._frames: list[Cluster] = []
        self._frame_of: dict[str, str] = {}
        self._changed: dict[str, FigureNode] = {}
        self._titles: dict[str, str] = {}
        self._entries: list[FigureNode] = []
        self._entry_of: dict[tuple[str, str], str] = {}

    def fold(self, level: DrawnLevel, repeats: RepeatedBlock) -> None:
        """Fold the copies of a block of one graph into the first, unless the graph itself is in a copy of another."""
        if level.cluster and self._is_copy(level.cluster):
            return
        frame = f"{level.prefix}b{repeats.copies[0][0]}"
        names = [[level.graph.by_id[key].name for key in copy] for copy in repeats.copies]
        name, count = block_name(names), len(names)
        how = "in a row, each reads the one before" if repeats.is_row else "side by side"
        title = shortened(excerpt(name), _LONGEST) or f"block of {len(names[0]):,} boxes"
        lines = (f"{count} alike {how}",)
        self._frames.append(Cluster(frame, NodeKind.BLOCK, f"{title}  × {count}", level.cluster, lines))
        for keys in zip(*repeats.copies, strict=True):
            first, *others = (self._unit(level, key) for key in keys)
            self._frame_of.update(dict.fromkeys((first, *others), frame))
            self._stands_for.update(dict.fromkeys(others, first))
            self._name(level, (first, *others), keys, name)
        self._add_entries(level, repeats.copies, frame)

    def _unit(self, level: DrawnLevel, key: int) -> str:
        box = f"{level.prefix}n{key}"
        return box if box in self._whole.by_id else f"{level.prefix}c{key}"

    def _is_copy(self, id: str) -> bool:
        """True if a box or a frame is in a copy that is not the first."""
        return bool(self._whole.holder(id, self._stands_for))

    # --- names -----------------------------------------------------------------------------------------------------

    def _name(self, level: DrawnLevel, others: Sequence[str], keys: Sequence[int], block: str) -> None:
        """Give a box of the first copy the name of all that it stands for, within the block."""
        unit, graph = others[0], level.graph
        if unit not in self._whole.by_id:
            labels = [self._whole.clusters_by_id[other].label for other in others]
            self._titles[unit] = shortened(shared_name(labels), _LONGEST)
            return
        nodes = [self._whole.by_id[other] for other in others]
        first = nodes[0]
        if first.kind in (NodeKind.GROUP, NodeKind.SHAPES):
            label, name = shared_name([level.drawn.node(key).name for key in keys]), first.name
        else:
            own = shared_name([graph.by_id[key].name for key in keys])
            if block and own.startswith(block):
                own = own.removeprefix(block).lstrip("./_")
            else:
                own = shared_name([short_names_of(graph)[key] for key in keys])
            label, name = shared_name([node.label for node in nodes]), own
            if not first.name:
                label, name = named_with_type(graph.by_id[keys[0]], own), ""
        self._changed[unit] = replace(
            first,
            label=shortened(excerpt(label), _LONGEST),
            name=shortened(excerpt(name), _LONGEST),
            title=f"{first.title}; and {len(nodes) - 1} alike",
            lines=tuple(shared_name(lines) for lines in zip(*(node.lines for node in nodes), strict=False)),
            marks=tuple(dict.fromkeys(mark for node in nodes for mark in node.marks)),
            computed_by=tuple(dict.fromkeys(who for node in nodes for who in node.computed_by)),
            highlighted=any(node.highlighted for node in nodes),
        )

    # --- what comes in ---------------------------------------------------------------------------------------------

    def _add_entries(self, level: DrawnLevel, copies: Sequence[Sequence[int]], frame: str) -> None:
        """Add a box inside of the frame for each tensor that comes from outside of the first copy."""
        reads, entries = inputs_of(level.drawn), dict[Read, str]()
        for keys in zip(*copies, strict=True):
            for index, read in enumerate(reads[keys[0]]):
                if read[0] in copies[0]:
                    continue
                sources = [reads[key][index][0] for key in keys]
                if read not in entries:
                    entries[read] = f"{frame}in{len(entries)}"
                    label, line = self._entry(level, copies[0], sources)
                    self._entries.append(FigureNode(entries[read], NodeKind.INPUT, label, (line,), cluster=frame))
                for key, source in zip(keys, sources, strict=True):
                    self._entry_of[self._unit(level, key), self._unit(level, source)] = entries[read]

    def _entry(self, level: DrawnLevel, first: Sequence[int], sources: Sequence[int]) -> tuple[str, str]:
        """Return the name of what comes from outside, and for which copies that is."""
        names = short_names_of(level.graph)
        if sources[1] in first:
            box = self._changed.get(self._unit(level, sources[1]))
            then = names[sources[1]] if box is None else box.name or box.label
            return excerpt(names[sources[0]]), f"then {then} of the one before"
        label = shared_name([names[source] for source in sources])
        return shortened(excerpt(label), _LONGEST), "the same for all" if len({*sources}) == 1 else "one for each"

    # --- the figure ------------------------------------------------------------------------------------------------

    def figure(self) -> Figure:
        """Return the figure."""
        if not self._frames:
            return self._whole
        nodes = [self._changed.get(node.id, node) for node in self._whole.nodes if not self._is_copy(node.id)]
        clusters = [
            replace(one, label=self._titles.get(one.id, one.label), parent=self._frame_of.get(one.id, one.parent))
            for one in self._whole.clusters
            if not self._is_copy(one.id)
        ]
        shown = f"{len(self._whole.nodes):,} boxes, drawn as {len(nodes):,}"
        note = f"{shown}: blocks that repeat are drawn once (--blocks all draws each)"
        made = replace(
            self._whole,
            nodes=(*(replace(one, cluster=self._frame_of.get(one.id, one.cluster)) for one in nodes), *self._entries),
            edges=self._edges(),
            clusters=(*clusters, *self._frames),
            notes=(*self._whole.notes, note),
        )
        for frame in self._frames:
            made = _with_ports(made, frame.id)
        return made

    def _edges(self) -> tuple[FigureEdge, ...]:
        """Return the edges, those of all copies as those of the first; none from copy to copy."""
        found: dict[FigureEdge, None] = {}
        for edge in self._whole.edges:
            source, target = (self._whole.holder(end, self._frame_of) for end in (edge.source, edge.target))
            blocks = self._frame_of.get(source, ""), self._frame_of.get(target, "")
            if blocks[0] == blocks[1]:
                if not blocks[0] or not (self._is_copy(edge.source) or self._is_copy(edge.target)):
                    found[edge] = None
                continue
            begin, copied = self._stands_for.get(source, edge.source), target in self._stands_for
            entry = self._entry_of.get((target, self._beside(edge.source, target))) if blocks[1] else None
            if entry is None:
                found[replace(edge, source=begin, target=self._stands_for.get(target, edge.target))] = None
                continue
            found[FigureEdge(begin, entry, EdgeKind.DATA, output=edge.output)] = None
            if not copied:
                found[replace(edge, source=entry, output=0)] = None
        return tuple(found)

    def _beside(self, id: str, unit: str) -> str:
        """Return what stands in the graph of a member of a block, and is this box or has it inside."""
        home = self._whole.parent(unit)
        way = (id, *self._whole.frames_around(id))
        return next((one for one in way if self._whole.parent(one) == home), "")


def _with_ports(figure: Figure, block: str) -> Figure:
    """Return the figure with ports on the frame of a block, so that wires go through to its boxes and from them.

    A side from which something leads into, or out of, an inner frame has none.
    """
    inside, within = {node.id for node in figure.nodes_in[block]}, figure.within(block)
    ports: list[FramePort] = []
    moved: dict[FigureEdge, FigureEdge] = {}
    for is_output in (False, True):
        side = is_output, not is_output
        led = [one for one in figure.edges if (one.source in within, one.target in within) == side]
        ends = {one: (one.source, one.output) if is_output else (one.target, 0) for one in led}
        several = list(dict.fromkeys(ends.values()))
        is_led_on = any((one.leaves if is_output else one.enters) >= 0 for one in led)
        if is_led_on or not inside.issuperset(end for end, _ in several):
            continue
        for one, end in ends.items():
            at = several.index(end)
            moved[one] = replace(one, leaves=at) if is_output else replace(one, enters=at)
        ports += [FramePort(index, (), (end,), is_output) for index, (end, _) in enumerate(several)]
    return replace(
        figure,
        edges=tuple(moved.get(edge, edge) for edge in figure.edges),
        clusters=tuple(replace(one, ports=tuple(ports)) if one.id == block else one for one in figure.clusters),
    )
