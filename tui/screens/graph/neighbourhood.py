"""The neighbourhood of one operation, for bodies that are too large to be drawn whole: boxes up to some levels away.

Where a wire leaves it stands a sign: the name of the box at its other end, or how many there are. A back edge of which
both ends are here has its lane; of one end alone, a sign says whose the other is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import DrawnBackEdge, DrawnGraph, DrawnNode, drawn_graph
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import LayoutEdge
from tui.screens.graph.drawing import Drawing, drawn
from tui.screens.graph.labels import body_of, label_of
from tui.screens.graph.levels import BOXES, NAMES, TYPES, Manner
from tui.theme import GLYPHS

MOST_WHOLE: Final = 1_000
"""Operations of a body that is drawn whole."""
MOST_BOXES: Final = 48
"""Boxes of a neighbourhood, signs not counted."""
_FAN: Final = 8
"""Boxes above or below any one; of more the nearest in the order of execution."""
_STANDING: Final = 16
"""Operations behind a sign that say how its wire looks."""


class Reach(NamedTuple):
    """How far a neighbourhood goes, and how its boxes are drawn (an index of LEVELS)."""

    level: int
    levels: int


REACHES: Final = (
    *(Reach(NAMES, levels) for levels in (6, 4, 3, 2)),
    Reach(BOXES, 2),
    Reach(TYPES, 2),
    Reach(TYPES, 1),
)
"""From the widest to the nearest."""
_USUAL: Final = (3, 4)
"""Indices of the reaches shown at first in a low pane and in others."""
_LOW: Final = 20


def usual_reach(height: int) -> int:
    """Return the index of what is shown at first in so many rows."""
    return _USUAL[height >= _LOW]


class _Cut(Struct):
    """Wires of chosen boxes: those between them, and signs for those that leave."""

    edges: list[LayoutEdge]
    nodes: list[DrawnNode]
    signs: dict[int, str]
    carried: set[int]

    def sign(self, key: int, label: str, layers: Iterable[int]) -> int:
        """Return one more sign; its key."""
        self.signs[key] = label
        self.nodes.append(DrawnNode(key, NodeKind.GROUP, label, label, tuple(layers)[:_STANDING]))
        return key


class Surroundings:
    """The boxes of a program, and by box the wires that it reads and those that are read; made once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._graph = drawn_graph(program.graph, body_of(program))
        self._sources: dict[int, list[LayoutEdge]] = {}
        self._readers: dict[int, list[LayoutEdge]] = {}
        for edge in self._graph.edges:
            self._sources.setdefault(edge.target, []).append(edge)
            self._readers.setdefault(edge.source, []).append(edge)
        self._backs: dict[int, list[DrawnBackEdge]] = {}
        for back in self._graph.back_edges:
            if back.tail != back.head:
                self._backs.setdefault(back.tail, []).append(back)
                self._backs.setdefault(back.head, []).append(back)
        self._free = max(self._graph.box_of, default=0) + 1
        indices = {operation.layer.id: index for index, operation in enumerate(program.operations)}
        beyond = {NodeKind.PARAMETER: -1, NodeKind.RESULT: len(indices)}
        self._places = {
            node.key: max((indices.get(layer, -1) for layer in node.layers), default=-1)
            if node.kind not in beyond
            else beyond[node.kind]
            for node in self._graph.nodes
        }

    def box_of(self, layer: int) -> int:
        """Return the box in which a layer is."""
        return self._graph.box_of[layer]

    def around(self, key: int, reach: Reach, room: int | None = None) -> Drawing:
        """Return the neighbourhood of a box, laid out."""
        return self._part(self._near(key, reach.levels), Manner(reach.level, room))

    def only(self, key: int, manner: Manner) -> Drawing:
        """Return a box with what it reads, what reads it, and the shortest cycle of back edges that it is on."""
        return self._part({key, *self._above(key), *self._below(key), *self.cycle(key)}, manner)

    def cycle(self, key: int) -> list[int]:
        """Return the boxes on the shortest way from a box through a back edge to itself; none where there is none."""
        before: dict[int, int] = {}
        for each in (frontier := [key]):  # grows while it is read
            heads = [back.head for back in self._backs.get(each, ()) if back.tail == each]
            for other in (*self._below(each), *heads):
                if other not in before:
                    before[other] = each
                    frontier.append(other)
        found: list[int] = []
        at = before.get(key)
        while at is not None and at != key:
            found.append(at)
            at = before[at]
        return found

    def _part(self, chosen: set[int], manner: Manner) -> Drawing:
        cut = _Cut([], [self._graph.node(each) for each in sorted(chosen)], {}, set())
        lanes = self._lanes(chosen)
        for each in sorted(chosen):
            self._cut_sources(cut, each, chosen)
            self._cut_readers(cut, each, chosen)
        for each in sorted(chosen):
            self._cut_back_edges(cut, each, lanes)
        box_of = {layer: node.key for node in cut.nodes if node.key in chosen for layer in (*node.layers, node.key)}
        graph = DrawnGraph(
            nodes=tuple(cut.nodes),
            edges=tuple(cut.edges),
            back_edges=tuple(lanes),
            box_of=box_of,
            first=tuple(dict.fromkeys(back.head for back in lanes)),
            last=tuple(dict.fromkeys(back.tail for back in lanes)),
        )
        drawing = drawn(self.program, graph, manner, cut.signs, cut.carried)
        drawing.is_part = True
        return drawing

    # --- which boxes ---------------------------------------------------------------------------------------------

    def _near(self, key: int, levels: int) -> set[int]:
        """Return the boxes that are drawn: level by level upwards and downwards in turn, as long as there is room."""
        chosen, above, below = {key}, [key], [key]
        for _ in range(levels):
            above = self._further(key, above, chosen, up=True)
            below = self._further(key, below, chosen, up=False)
        return chosen

    def _further(self, key: int, frontier: list[int], chosen: set[int], *, up: bool) -> list[int]:
        found = []
        for each in frontier:
            for other in self._nearest(key, self._above(each) if up else self._below(each))[:_FAN]:
                if other not in chosen and len(chosen) < MOST_BOXES:
                    chosen.add(other)
                    found.append(other)
        return found

    def _above(self, key: int) -> list[int]:
        return [edge.source for edge in self._sources.get(key, ())]

    def _below(self, key: int) -> list[int]:
        return [edge.target for edge in self._readers.get(key, ())]

    def _nearest(self, key: int, others: Iterable[int]) -> list[int]:
        """Return each once, the nearest in the order of execution first."""
        here = self._places[key]
        return sorted(dict.fromkeys(others), key=lambda other: abs(self._places[other] - here))

    # --- where wires are cut -------------------------------------------------------------------------------------

    def _cut_sources(self, cut: _Cut, key: int, chosen: set[int]) -> None:
        edges = self._sources.get(key, ())
        cut.edges += [edge for edge in edges if edge.source in chosen]
        hidden = self._nearest(key, (edge.source for edge in edges if edge.source not in chosen))
        if hidden:
            sign = cut.sign(self._free + len(cut.signs), self._words(hidden, "…"), self._standing(hidden))
            cut.edges.append(LayoutEdge(sign, key))

    def _cut_readers(self, cut: _Cut, key: int, chosen: set[int]) -> None:
        leaving = [edge for edge in self._readers.get(key, ()) if edge.target not in chosen]
        hidden = self._nearest(key, (edge.target for edge in leaving))
        if hidden:
            sign = cut.sign(self._free + len(cut.signs), self._words(hidden, "…"), self._standing(hidden))
            cut.edges += [LayoutEdge(key, sign, output) for output in dict.fromkeys(edge.output for edge in leaving)]

    def _lanes(self, chosen: set[int]) -> list[DrawnBackEdge]:
        """Return the back edges of which nothing is cut: their ends stand on the first and the last rank."""
        backs = list(dict.fromkeys(back for key in sorted(chosen) for back in self._backs.get(key, ())))
        outside = {end for back in backs if not {back.tail, back.head} <= chosen for end in (back.tail, back.head)}
        return [back for back in backs if outside.isdisjoint((back.tail, back.head))]

    def _cut_back_edges(self, cut: _Cut, key: int, lanes: Sequence[DrawnBackEdge]) -> None:
        """Above a Parameter what it is fed with, below a Result the Parameter that it feeds."""
        backs = [back for back in self._backs.get(key, ()) if back not in lanes]
        fed = [back.tail for back in backs if back.head == key]
        feeds = [back.head for back in backs if back.tail == key]
        if fed:
            makers = [maker for tail in fed for maker in self._above(tail)] or fed
            sign = cut.sign(self._free + len(cut.signs), self._words(makers, GLYPHS["back"]), self._standing(makers))
            cut.edges.append(LayoutEdge(sign, key))
            cut.carried.add(sign)
        if feeds:
            users = [user for head in feeds for user in self._nearest(head, self._below(head))]
            sign = cut.sign(
                self._free + len(cut.signs), self._words(feeds, GLYPHS["back"], "Parameters"), self._standing(users)
            )
            cut.edges.append(LayoutEdge(key, sign))
            cut.carried.add(key)

    def _words(self, hidden: Sequence[int], mark: str, several: str = "more") -> str:
        if len(hidden) > 1:
            return f"{mark} {len(hidden)} {several}"
        return f"{mark} {label_of(self.program, self._graph.node(hidden[0]))}"

    def _standing(self, hidden: Sequence[int]) -> list[int]:
        """Return the operations behind a sign, the nearest first; of a box the one that gives its value."""
        layers = self.program.layers
        return [layers[self._places[key]].id for key in hidden if 0 <= self._places[key] < len(layers)]
