"""A part of a figure: the boxes that stay with the frames around them, and marks where the rest was cut off."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stepper.export.figures.figure import (
    BACKWARD,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    FigureSite,
    FramePort,
    NodeKind,
)
from stepper.export.figures.labels import shortened
from stepper.wording import counted


class Cut(Struct, frozen=True):
    """Boxes that were left out beside some others: their inputs, or their readers, in the frame `cluster`.

    `edges` are one for each of the `boxes` that lost them.
    """

    boxes: tuple[str, ...]
    edges: tuple[FigureEdge, ...]
    beyond: tuple[str, ...]
    cluster: str
    is_above: bool
    more: bool


def selected(figure: Figure, kept: Collection[str], *, marked: bool, bright: Collection[str] = ()) -> Figure:
    """Return the figure with the kept boxes alone, in their frames; with marks for what was cut off, if wanted.

    What stands in a frame that is kept as a whole stays. `bright` are the boxes and frames to be highlighted.
    """
    frames = _frames(figure, kept)
    nodes = [node for node in figure.nodes if node.id in kept]
    edges = [edge for edge in figure.edges if _stays(edge.source, kept, frames) and _stays(edge.target, kept, frames)]
    found = [replace(node, highlighted=True) if node.id in bright else node for node in nodes]
    if marked:
        found = _with_back_edges(figure, found)
        for number, cut in enumerate(_cuts(figure, kept, frames)):
            node = _mark(figure, cut, f"cut{number}")
            found.append(node)
            edges += [
                replace(edge, source=node.id) if cut.is_above else replace(edge, target=node.id) for edge in cut.edges
            ]
    return replace(
        figure,
        nodes=tuple(found),
        edges=tuple(edges),
        clusters=tuple(
            replace(
                frame,
                highlighted=frame.highlighted or frame.id in bright,
                ports=_ports(frame, kept, edges, all_that_stay=marked),
            )
            for frame in figure.clusters
            if frame.id in frames
        ),
    )


def _frames(figure: Figure, kept: Collection[str]) -> Mapping[str, Cluster]:
    ids = {frame for id in kept for frame in figure.frames_around(id)}
    return {cluster.id: cluster for cluster in figure.clusters if cluster.id in ids}


def _ports(
    frame: Cluster, kept: Collection[str], edges: Sequence[FigureEdge], *, all_that_stay: bool
) -> tuple[FramePort, ...]:
    """Return the ports that edges go through; all that lead to what stays, or from it, if wanted."""
    through = {(edge.source, edge.leaves, True) for edge in edges} | {
        (edge.target, edge.enters, False) for edge in edges
    }
    left = ((port, tuple(end for end in port.ends if end in kept)) for port in frame.ports)
    return tuple(
        replace(port, ends=ends)
        for port, ends in left
        if (all_that_stay and ends)
        or any((end, port.index, port.is_output) in through for end in (*ends, *(() if port.ends else (frame.id,))))
    )


def _stays(end: str, kept: Collection[str], frames: Collection[str]) -> bool:
    return end in kept or end in frames


def _cuts(figure: Figure, kept: Collection[str], frames: Collection[str]) -> Iterator[Cut]:
    """Yield what was cut off; boxes that lost the same have one mark."""
    lost: dict[tuple[str, bool], dict[str, FigureEdge]] = {}
    left: set[tuple[str, bool]] = set()
    for edge in figure.edges:
        if edge.kind in (*BACKWARD, EdgeKind.ENDS):
            continue
        for mine, other, is_above in ((edge.target, edge.source, True), (edge.source, edge.target, False)):
            if mine not in kept:
                continue
            if other in kept or other in frames:
                left.add((mine, is_above))
            else:
                lost.setdefault((mine, is_above), {}).setdefault(other, edge)
    alike: dict[tuple[tuple[str, ...], str, bool, bool], list[str]] = {}
    for (mine, is_above), others in lost.items():
        cluster = _shared_frame(figure, mine, next(iter(others)))
        key = tuple(others), cluster, is_above, (mine, is_above) in left
        alike.setdefault(key, []).append(mine)
    for (others_, cluster, is_above, more), boxes in alike.items():
        edges = tuple(lost[box, is_above][others_[0]] for box in boxes)
        yield Cut(tuple(boxes), edges, others_, cluster, is_above, more)


def _shared_frame(figure: Figure, mine: str, other: str) -> str:
    around = {*figure.frames_around(other), ""}
    return next((frame for frame in figure.frames_around(mine) if frame in around), "")


def _mark(figure: Figure, cut: Cut, tail: str) -> FigureNode:
    names = [figure.name_of(id) for id in cut.beyond]
    if len(names) == 1:
        label = f"… {shortened(names[0], 24)}"
    else:
        word = "input" if cut.is_above else "reader"
        label = f"… {counted(len(names), f'more {word}' if cut.more else word)}"
    box = figure.by_id[cut.boxes[0]]
    site = FigureSite(box.site.inside if cut.cluster == box.cluster else (), tail)
    kind = NodeKind.CUT_ABOVE if cut.is_above else NodeKind.CUT_BELOW
    return FigureNode(site.id, kind, label, title=", ".join(names), cluster=cut.cluster, site=site)


def _with_back_edges(figure: Figure, nodes: Sequence[FigureNode]) -> list[FigureNode]:
    """Return the boxes, those that lost the other end of a back edge with a line that names it."""
    kept = {node.id for node in nodes}
    lines: dict[str, list[str]] = {}
    for edge in figure.edges:
        if edge.kind not in BACKWARD or (edge.source in kept) == (edge.target in kept):
            continue
        if edge.source in kept:
            lines.setdefault(edge.source, []).append(f"… then {shortened(figure.name_of(edge.target), 24)}")
        else:
            lines.setdefault(edge.target, []).append(f"… after {shortened(figure.name_of(edge.source), 24)}")
    return [replace(node, lines=(*node.lines, *lines[node.id])) if node.id in lines else node for node in nodes]
