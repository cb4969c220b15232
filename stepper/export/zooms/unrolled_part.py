"""A part of a run: the boxes of a body that were selected, in every iteration that is drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from stepper.export.figures.figure import (
    BodyEnds,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    InnerBody,
    IterationPlace,
    NodeKind,
)


def in_iterations(figure: Figure, part: Figure, loop: int) -> Figure:
    """Return an unrolled figure with the boxes alone that `part` has, which is of the rolled body of the same loop.

    Inputs and outputs of the loop stay where they are connected to what stays, and so does the end.
    """
    return _Selection(figure, part, InnerBody(loop, "body")).figure()


class _Selection:
    """Boxes of the iterations by the part of their ids that all iterations share; `body` is that of the loop."""

    def __init__(self, figure: Figure, part: Figure, body: InnerBody) -> None:
        self._figure, self._part = figure, part
        self._stages = [one for one in figure.clusters if not one.parent]
        own = [node for node in part.nodes if node.site.inside[:1] == (body,)]
        frames = [frame for frame in part.clusters if frame.site.inside[:1] == (body,)]
        self._within = {node.id: node.site.within for node in own} | {frame.id: frame.site.within for frame in frames}
        self._tails = {self._within[node.id] for node in own}
        self._bright = {self._within[node.id] for node in own if node.highlighted}
        self._marks = [node for node in own if node.kind in (NodeKind.CUT_ABOVE, NodeKind.CUT_BELOW)]

    def figure(self) -> Figure:
        """Return the figure."""
        inside = [node for node in self._figure.nodes if node.place is not None and node.place.within in self._tails]
        is_bright = not any(node.highlighted for node in inside)
        inside = [
            replace(node, highlighted=node.highlighted or (is_bright and node.place.within in self._bright))
            for node in inside
            if node.place is not None
        ]
        edges = list(self._edges({node.id for node in inside}))
        touched = {end for edge in edges for end in (edge.source, edge.target)}
        outside = [node for node in self._figure.nodes if not node.cluster and node.id in touched]
        marks, mark_edges = self._all_marks()
        kept = {node.id for node in inside}
        frames = {frame for id in kept for frame in self._figure.frames_around(id)} | {one.id for one in self._stages}
        return replace(
            self._figure,
            nodes=(*outside, *inside, *marks),
            edges=(*edges, *mark_edges),
            clusters=tuple(cluster for cluster in self._figure.clusters if cluster.id in frames),
        )

    def _edges(self, kept: Collection[str]) -> Iterator[FigureEdge]:
        """Yield the edges that stay; one to an iteration as a whole is that of the boxes that its back edge names."""
        stages = {stage.id for stage in self._stages}
        for edge in self._figure.edges:
            ends = edge.body or BodyEnds()
            goes = self._has(edge.source, kept, ends.result)
            if edge.kind is EdgeKind.ENDS and edge.target in self._figure.by_id and not goes:
                stage = [edge.source, *self._figure.frames_around(edge.source)][-1]
                yield replace(edge, source=stage)
            elif edge.kind is EdgeKind.PORT and edge.target in stages and edge.body is None:
                continue  # trip count and condition are not of the part
            elif goes and self._has(edge.target, kept, ends.parameter):
                yield edge

    def _has(self, end: str, kept: Collection[str], layer: int | None) -> bool:
        if end in self._figure.by_id:
            return end in kept or not self._figure.by_id[end].cluster
        return layer is None or f"n{layer}" in self._tails

    def _all_marks(self) -> tuple[list[FigureNode], list[FigureEdge]]:
        """Return the marks of cuts, and their edges, for each iteration that is drawn."""
        nodes, edges = [], []
        ids = {node.id for node in self._marks}
        for stage in self._stages:
            if stage.kind is NodeKind.ITERATION:
                nodes += [
                    replace(
                        one,
                        id=self._moved(one.id, stage),
                        cluster=self._moved(one.cluster, stage),
                        place=IterationPlace(stage.id, self._within[one.id]),
                    )
                    for one in self._marks
                ]
                edges += [
                    replace(edge, source=self._moved(edge.source, stage), target=self._moved(edge.target, stage))
                    for edge in self._part.edges
                    if edge.source in ids or edge.target in ids
                ]
        return nodes, edges

    def _moved(self, id: str, stage: Cluster) -> str:
        """Return what is a box or frame of the body in an iteration; the frame of the loop is that of the iteration."""
        return f"{stage.id}.{self._within[id]}" if id in self._within else stage.id
