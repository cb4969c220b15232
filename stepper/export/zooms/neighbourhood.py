"""Boxes of a figure near one of them: its inputs and readers within so many hops, in the graph in which it stands."""

from __future__ import annotations

from collections.abc import Collection

from stepper.export.figures.figure import EdgeKind, Figure


def around(figure: Figure, centre: str, hops: int) -> Collection[str]:
    """Return the boxes within so many edges of one, back edges among them, against their direction too.

    Loops and Ifs that are open beside it count as one box, and stay whole; what is around its own graph is left out.
    """
    beside: dict[str, dict[str, None]] = {}
    unit = _units(figure, centre)
    for edge in figure.edges:
        source, target = unit.get(edge.source), unit.get(edge.target)
        if (
            edge.kind not in (EdgeKind.ENDS, EdgeKind.NO_EFFECT)
            and source is not None
            and target is not None
            and source != target
        ):
            beside.setdefault(source, {})[target] = None
            beside.setdefault(target, {})[source] = None
    reached, last = {centre}, {centre}
    for _ in range(hops):
        last = {other for one in last for other in beside.get(one, ())} - reached
        reached |= last
    return {node.id for node in figure.nodes if unit.get(node.id) in reached}


def _units(figure: Figure, centre: str) -> dict[str, str]:
    """Return, by id, the boxes of the centre's graph, and for what is in an open frame beside it that frame."""
    home, frames = figure.parent(centre), {frame.id: frame.parent for frame in figure.clusters}
    found: dict[str, str] = {}
    for id in (*figure.by_id, *frames):
        way = [id, *figure.frames_around(id)]
        if home in ("", *way[1:]) and id != home:
            found[id] = way[-1] if home == "" else way[way.index(home) - 1]
    return found
