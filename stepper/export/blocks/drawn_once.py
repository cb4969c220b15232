"""A figure with its repeating blocks drawn once: a frame with a count, its boxes named for all copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from stepper.export.blocks.finding import RepeatedBlock, repeats_of
from stepper.export.blocks.looks import StructuralLooks, inputs_of
from stepper.export.blocks.names import block_name, shared_name
from stepper.export.figures.builder import DrawnLevel, FigureBuilder
from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode, FramePort, NodeKind
from stepper.export.figures.labels import named_with_type, shortened
from stepper.ir.model import Model
from stepper.query.short_names import short_names_of
from stepper.wording import excerpt

LARGE: Final = 100
"""Boxes above which blocks are drawn once where nothing else is said."""
_LONGEST: Final = 44
_FIXED: Final = (NodeKind.PARAMETER, NodeKind.RESULT, NodeKind.ACCUMULATOR)
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


class _Copies(Struct, frozen=True):
    """Copies of a block in a figure: for each copy the ids of its boxes, and of what is open the frames."""

    level: DrawnLevel
    repeats: RepeatedBlock
    frame: str
    units: tuple[tuple[str, ...], ...]


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
        self._home: dict[str, str] = {}

    def fold(self, level: DrawnLevel, repeats: RepeatedBlock) -> None:
        """Fold the copies of a block of one graph into the first, unless the graph itself is in a copy of another."""
        if self._owner(level.cluster):
            return
        units = tuple(tuple(self._unit(level, key) for key in copy) for copy in repeats.copies)
        copies = _Copies(level, repeats, f"{level.prefix}b{repeats.copies[0][0]}", units)
        names = [[level.graph.by_id[key].name for key in copy] for copy in repeats.copies]
        name, count = block_name(names), len(units)
        how = "in a row, each reads the one before" if repeats.is_row else "side by side"
        title = shortened(excerpt(name), _LONGEST) or f"block of {len(units[0]):,} boxes"
        lines = (f"{count} alike {how}",)
        self._frames.append(Cluster(copies.frame, NodeKind.BLOCK, f"{title}  × {count}", level.cluster, lines))
        for at, unit in enumerate(units[0]):
            others = [copy[at] for copy in units]
            self._frame_of.update(dict.fromkeys(others, copies.frame))
            self._home.update(dict.fromkeys(others, level.cluster))
            self._stands_for.update(dict.fromkeys(others[1:], unit))
            self._name(copies, at, name)
        self._add_entries(copies)

    def _unit(self, level: DrawnLevel, key: int) -> str:
        box = f"{level.prefix}n{key}"
        return box if box in self._whole.by_id else f"{level.prefix}c{key}"

    def _owner(self, id: str) -> str:
        """Return the copy that a box or a frame is in, but for first copies; "" where it is in none."""
        while id and id not in self._stands_for:
            id = self._whole.parent(id)
        return id

    # --- names -----------------------------------------------------------------------------------------------------

    def _name(self, copies: _Copies, at: int, block: str) -> None:
        """Give a box of the first copy the name of all that it stands for, within the block."""
        unit, others = copies.units[0][at], [copy[at] for copy in copies.units]
        if unit not in self._whole.by_id:
            labels = [self._whole.clusters_by_id[other].label for other in others]
            self._titles[unit] = shortened(shared_name(labels), _LONGEST)
            return
        nodes = [self._whole.by_id[other] for other in others]
        first, layer = nodes[0], copies.level.graph.by_id[copies.repeats.copies[0][at]]
        label, name = shared_name([node.label for node in nodes]), first.name
        if first.kind not in (NodeKind.GROUP, NodeKind.SHAPES):
            own = self._within(copies, at, block)
            name, label = (own, label) if name else ("", named_with_type(layer, own))
        else:
            label = shared_name([copies.level.drawn.node(copy[at]).name for copy in copies.repeats.copies])
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

    def _within(self, copies: _Copies, at: int, block: str) -> str:
        """Return the name of what is at a place in the block, without that of the block."""
        graph, keys = copies.level.graph, [copy[at] for copy in copies.repeats.copies]
        whole = shared_name([graph.by_id[key].name for key in keys])
        if block and whole.startswith(block):
            return whole.removeprefix(block).lstrip("./_")
        short = short_names_of(graph)
        return shared_name([short[key] for key in keys])

    # --- what comes in ---------------------------------------------------------------------------------------------

    def _add_entries(self, copies: _Copies) -> None:
        """Add a box inside of the frame for each tensor that comes from outside of the first copy."""
        level, reads = copies.level, inputs_of(copies.level.drawn)
        place = {key: (copy, at) for copy, keys in enumerate(copies.repeats.copies) for at, key in enumerate(keys)}
        entries: dict[tuple[int, int], str] = {}
        for at, key in enumerate(copies.repeats.copies[0]):
            for index, (source, output) in enumerate(reads[key]):
                if source in place and place[source][0] == 0:
                    continue
                if (source, output) not in entries:
                    id = f"{copies.frame}in{len(entries)}"
                    entries[source, output] = id
                    sources = [reads[copy[at]][index][0] for copy in copies.repeats.copies]
                    node = self._entry(copies, sources, place)
                    self._entries.append(replace(node, id=id, cluster=copies.frame))
                for copy, units in enumerate(copies.units):
                    other = reads[copies.repeats.copies[copy][at]][index][0]
                    self._entry_of[units[at], self._unit(level, other)] = entries[source, output]

    def _entry(self, copies: _Copies, sources: Sequence[int], place: Mapping[int, tuple[int, int]]) -> FigureNode:
        names = short_names_of(copies.level.graph)
        before = place.get(sources[1])
        if before is not None and before[0] == 0:
            first = copies.repeats.copies[0]
            box = self._changed.get(self._unit(copies.level, first[before[1]]))
            then = names[sources[1]] if box is None else box.name or box.label
            return FigureNode("", NodeKind.INPUT, excerpt(names[sources[0]]), (f"then {then} of the one before",))
        is_same = len(set(sources)) == 1
        label = names[sources[0]] if is_same else shared_name([names[source] for source in sources])
        line = "the same for all" if is_same else "one for each"
        return FigureNode("", NodeKind.INPUT, shortened(excerpt(label), _LONGEST), (line,))

    # --- the figure ------------------------------------------------------------------------------------------------

    def figure(self) -> Figure:
        """Return the figure."""
        if not self._frames:
            return self._whole
        nodes = [self._changed.get(node.id, node) for node in self._whole.nodes if not self._owner(node.id)]
        clusters = [
            replace(one, label=self._titles.get(one.id, one.label), parent=self._frame_of.get(one.id, one.parent))
            for one in self._whole.clusters
            if not self._owner(one.id)
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
            source, target = self._member(edge.source), self._member(edge.target)
            blocks = self._frame_of.get(source, ""), self._frame_of.get(target, "")
            if blocks[0] == blocks[1]:
                if not blocks[0] or not (self._owner(edge.source) or self._owner(edge.target)):
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

    def _member(self, id: str) -> str:
        """Return the member of a block, in any copy, that a box or a frame is, or is in; "" where it is in none."""
        while id and id not in self._frame_of:
            id = self._whole.parent(id)
        return id

    def _beside(self, id: str, unit: str) -> str:
        """Return what stands in the graph of a member of a block, and is this box or has it inside."""
        home = self._home[unit]
        while id and self._whole.parent(id) != home:
            id = self._whole.parent(id)
        return id


def _with_ports(figure: Figure, block: str) -> Figure:
    """Return the figure with ports on the frame of a block, so that wires go through to its boxes and from them.

    A side from which something leads into, or out of, an inner frame has none.
    """
    inside = {node.id for node in figure.nodes_in[block]}
    within = figure.within(block)
    into = [edge for edge in figure.edges if edge.target in within and edge.source not in within]
    out = [edge for edge in figure.edges if edge.source in within and edge.target not in within]
    entered = list(dict.fromkeys(edge.target for edge in into))
    left = list(dict.fromkeys((edge.source, edge.output) for edge in out))
    if not inside.issuperset(entered) or any(edge.enters >= 0 for edge in into):
        entered = []
    if not inside.issuperset(source for source, _ in left) or any(edge.leaves >= 0 for edge in out):
        left = []
    moved = {}
    for edge in into if entered else ():
        moved[edge] = replace(edge, enters=entered.index(edge.target))
    for edge in out if left else ():
        moved[edge] = replace(edge, leaves=left.index((edge.source, edge.output)))
    ports = (
        *(FramePort(index, (), (end,)) for index, end in enumerate(entered)),
        *(FramePort(index, (), (end,), is_output=True) for index, (end, _) in enumerate(left)),
    )
    return replace(
        figure,
        edges=tuple(moved.get(edge, edge) for edge in figure.edges),
        clusters=tuple(replace(one, ports=ports) if one.id == block else one for one in figure.clusters),
    )
