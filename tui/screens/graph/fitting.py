"""The level of detail that fits a pane: the largest at which the whole graph is seen, else one that fits its width."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from msgspec.structs import replace

from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import WHOLE_EXPRESSIONS, DrawnGraph
from stepper.export.layout.layered import rank_nodes
from stepper.records import Record
from tui.screens.graph.drawing import LANE, Drawing, draw, drawn, graph_of
from tui.screens.graph.labels import label_of_folded
from tui.screens.graph.levels import BOXES, LEVELS, LINES, MAP, NAMES, SHORT, TYPES, VALUES, Manner

MAP_ROOM: Final = (30, 8, 16)
"""From how many columns on there is a map beside a graph that does not fit, and its least and largest width."""
_ROOMY: Final = (60, 26)
"""Columns and rows from which on boxes have frames in a graph of which a part is seen."""
BETWEEN: Final = 3
"""Cells between two parts of a graph that stand side by side."""
_MOST_PARTS: Final = 4
_LEAST_PART: Final = 24
MOST_LOST: Final = 5
"""Rows that may stay empty at the end of a part."""
_TALLER: Final = 1.2
"""How many times as tall a graph may become for values in its boxes."""
_DENSER: Final = 1.5
"""How many times as many operations are to be seen in lines as in boxes, of a graph of which a part is seen."""
_MOST_FOLDED: Final = (2, 3, 4, 6, 9)
"""Operations of an expression in one box: the first with which all of a graph is seen."""
_MOST_LANES: Final = 4
"""The part of the width that the lanes of back edges may take, as a divisor."""


class Fitting(Record):
    """Request for a drawing: into how many columns and rows, at which level (None: the one that fits), what is open."""

    width: int
    height: int
    level: int | None = None
    unfolded: frozenset[int] = frozenset()
    opened: frozenset[tuple[int, int]] = frozenset()


def map_width(width: int) -> int:
    """Return the columns of the map beside a graph in a pane so wide, with the blank before it; 0 for none."""
    begin, least, most = MAP_ROOM
    return 0 if width < begin else max(least, min(most, width // 4))


def part_width(width: int, parts: int) -> int:
    """Return the columns of each of several parts side by side."""
    return max((width - BETWEEN * (parts - 1)) // parts, 1)


def part_starts(drawing: Drawing, top: int, height: int) -> list[int]:
    """Return the row with which each part begins from row `top` on: below a rank, so that no wire loses its arrow."""
    starts = [top]
    while len(starts) < drawing.manner.parts:
        end = starts[-1] + height
        near = range(end, max(end - MOST_LOST, starts[-1]) - 1, -1)
        starts.append(next((y for y in near if y - 1 in drawing.boxes), end))
    return starts


def fits(drawing: Drawing, width: int, height: int) -> bool:
    """True if all of a drawing is seen at once, and no box that is open is cut in two parts."""
    if drawing.width + drawing.gutter > part_width(width, drawing.manner.parts):
        return False
    starts = part_starts(drawing, 0, height)
    opened = [drawing.layout.boxes[key] for key in drawing.sides]
    if any(box.y < start - drawing.margin < box.y + box.height for box in opened for start in starts[1:]):
        return False
    return starts[-1] + height >= drawing.height


def fitted(program: Program, how: Fitting) -> Drawing:
    """Return the graph of a program as it fits."""
    graph = graph_of(program, Manner(SHORT, unfolded=how.unfolded))
    if how.level is not None:
        return _scrolled(program, graph, how, (how.level,) if how.level > MAP else (SHORT,))
    whole = next((one for one in _candidates(program, graph, how) if fits(one, how.width, how.height)), None)
    if whole is None and not _opens(program, graph, how):
        whole = next((one for one in _folded(program, how) if fits(one, how.width, how.height)), None)
    if whole is not None:
        return whole
    return _denser(program, graph, how, _part(program, graph, how))


def _part(program: Program, graph: DrawnGraph, how: Fitting) -> Drawing:
    """Return the drawing of which a part is seen, in boxes."""
    if how.width < _ROOMY[0] or how.height < _ROOMY[1]:
        return _scrolled(program, graph, how, (NAMES, SHORT))
    drawing = _scrolled(program, graph, how, (BOXES, NAMES, SHORT))
    if drawing.manner.level < BOXES:
        return drawing
    valued = _scrolled(program, graph, how, (VALUES,))
    is_as_good = valued.manner.room == drawing.manner.room and valued.manner.lanes == drawing.manner.lanes
    return valued if is_as_good and valued.height <= _TALLER * drawing.height else drawing


def _denser(program: Program, graph: DrawnGraph, how: Fitting, part: Drawing) -> Drawing:
    """Return lines instead of boxes where many more operations are seen in them, as of a long chain."""
    room = how.width - map_width(how.width)
    opens = _opens(program, graph, how)
    parts = 1 if opens else max(min((room + BETWEEN) // (_LEAST_PART + BETWEEN), _MOST_PARTS), 1)
    seen = len(part.graph.nodes) * min(how.height / max(part.height, 1), 1)
    if not opens and how.height * parts < _DENSER * seen:
        return part
    manner = Manner(LINES, part_width(room, parts), False, how.unfolded, how.opened, parts)
    lines = drawn(program, graph, manner)
    is_denser = not opens or lines.height * _DENSER <= part.height
    return lines if is_denser and lines.width + lines.gutter <= part_width(room, parts) else part


def _candidates(program: Program, graph: DrawnGraph, how: Fitting) -> Iterator[Drawing]:
    """Yield drawings that may be seen whole: from the largest boxes on, then in several parts side by side."""
    ranks = _ranks(graph)
    manners = [
        Manner(level, how.width, lanes, how.unfolded, how.opened)
        for level in range(TYPES, LINES, -1)
        for lanes in _lanes(graph, how.width)
    ]
    for level, parts in product((NAMES, SHORT), range(2, _MOST_PARTS + 1)):
        room = part_width(how.width, parts)
        if room >= _LEAST_PART:
            lanes = not _count_of_lanes(graph)
            manners.append(Manner(level, room, lanes, how.unfolded, how.opened, parts))
    for manner in manners:
        if ranks * (LEVELS[manner.level].height + 1) - 1 <= how.height * manner.parts:
            yield drawn(program, graph, manner)
    for parts in range(-(-len(graph.nodes) // how.height), _MOST_PARTS + 1):
        yield drawn(program, graph, Manner(LINES, part_width(how.width, parts), False, how.unfolded, how.opened, parts))


def _folded(program: Program, how: Fitting) -> Iterator[Drawing]:
    """Yield drawings in lines with more and more operations in one: first such with room for opening any of them."""
    least = graph_of(program, Manner(LINES, unfolded=how.unfolded, expressions=WHOLE_EXPRESSIONS))
    if len(least.nodes) > how.height * _MOST_PARTS:
        return
    for opens, most in product((True, False), _MOST_FOLDED):
        manner = Manner(LINES, lanes=False, unfolded=how.unfolded, expressions=most)
        graph = graph_of(program, manner)
        largest = max((len(node.layers) for node in graph.nodes if node.is_folded), default=1)
        rows = len(graph.nodes) + (largest - 1 if opens else 0)
        for parts in range(-(-rows // how.height), _MOST_PARTS + 1):
            yield drawn(program, graph, replace(manner, room=part_width(how.width, parts), parts=parts))


def entered(program: Program, drawing: Drawing, layer: int, height: int) -> Drawing:
    """Return a drawing with a line for each operation of the box that a layer is in; else with its name on that box."""
    node = drawing.graph.node(drawing.graph.box_of[layer])
    manner = drawing.manner
    if not manner.expressions or not node.is_folded:
        return drawing
    opened = draw(program, replace(manner, entered=frozenset(node.layers)))
    width = max(manner.room or 0, 1) * manner.parts + BETWEEN * (manner.parts - 1)
    if fits(opened, width, height):
        return opened
    name = label_of_folded(program, node, layer, drawing.layout.boxes[node.key].width - 2)
    return replace(drawing, labels=drawing.labels | {node.key: name})


def _scrolled(program: Program, graph: DrawnGraph, how: Fitting, levels: tuple[int, ...]) -> Drawing:
    """Return the first drawing of which no box is cut, beside the map or without one; else the last."""
    drawing = None
    for room in dict.fromkeys((how.width - map_width(how.width), how.width)):
        for level in levels:
            for lanes in _lanes(graph, room):
                drawing = drawn(program, graph, Manner(level, room, lanes, how.unfolded, how.opened))
                if drawing.width + drawing.gutter <= room:
                    return drawing
    assert drawing is not None
    return drawing


def _lanes(graph: DrawnGraph, width: int) -> Iterator[bool]:
    """Yield whether back edges have lanes: first with them, where they leave enough room."""
    count = _count_of_lanes(graph)
    if count and (LANE * count + 1) * _MOST_LANES <= width:
        yield True
    yield not count


def _opens(program: Program, graph: DrawnGraph, how: Fitting) -> bool:
    """True if a box of the graph is open: its inside needs more than a line."""
    return any((id(program), node.key) in how.opened for node in graph.nodes)


def _count_of_lanes(graph: DrawnGraph) -> int:
    return sum(edge.tail != edge.head for edge in graph.back_edges)


def _ranks(graph: DrawnGraph) -> int:
    nodes = {node.key: None for node in graph.nodes}
    return max(rank_nodes(nodes, graph.edges, set(), set()).values(), default=0) + 1
