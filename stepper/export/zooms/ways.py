"""All ways that values take from one box of a figure to another: through frames, and over back edges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from stepper.errors import UsageError
from stepper.export.figures.figure import EdgeKind, Figure, NodeKind
from stepper.wording import enumerated

_MOST_NAMED: Final = 8
"""Boxes that a message lists."""

_Links = Mapping[str, Collection[str]]


def between(figure: Figure, begin: str, end: str) -> Collection[str]:
    """Return the boxes on all ways from one box or frame to another, both among them; from itself to itself: cycles.

    Raise UsageError, with what can be reached, where there is none.
    """
    forward, backward = _links(figure)
    first, last = figure.within(begin), figure.within(end)
    if begin != end:  # a way begins where it last leaves the one, and ends where it first comes to the other
        forward.update(dict.fromkeys(last, ()))
        backward.update(dict.fromkeys(first, ()))
    below, above = _reached(forward, first), _reached(backward, last)
    if below.keys().isdisjoint(last):
        raise UsageError(_no_way(figure, begin, end))
    return {*first, *last, *(box for box in below if box in above)}


def _links(figure: Figure) -> tuple[dict[str, Collection[str]], dict[str, Collection[str]]]:
    """Return what follows from each box, and from what it follows: from the condition of an If what it gives."""
    forward: dict[str, dict[str, None]] = {}
    backward: dict[str, dict[str, None]] = {}
    for edge in figure.edges:
        if edge.kind in (EdgeKind.ENDS, EdgeKind.NO_EFFECT) or edge.source not in figure.by_id:
            continue
        for target in (edge.target,) if edge.target in figure.by_id else _chosen(figure, edge.target):
            forward.setdefault(edge.source, {})[target] = None
            backward.setdefault(target, {})[edge.source] = None
    return dict(forward), dict(backward)


def _chosen(figure: Figure, frame: str) -> list[str]:
    """Return the boxes in an If from which its outputs come; none of a loop."""
    if figure.clusters_by_id[frame].kind is not NodeKind.BRANCH:
        return []
    inside = figure.within(frame)
    return [edge.source for edge in figure.edges if edge.source in inside and edge.target not in inside]


def _reached(links: _Links, begin: Collection[str]) -> dict[str, None]:
    """Return what can be reached over at least one edge, the nearest first."""
    found: dict[str, None] = {}
    waiting = [box for one in begin for box in links.get(one, ())]
    for box in waiting:
        if box not in found:
            found[box] = None
            waiting += links.get(box, ())
    return found


def _no_way(figure: Figure, begin: str, end: str) -> str:
    """Return that there is none, what there is in its place, and whether a loop's control depends on it."""
    forward, _ = _links(figure)
    first, last = figure.within(begin), figure.within(end)
    one, other = _quoted(figure, begin), _quoted(figure, end)
    below = _reached(forward, first)
    sentences = [f"there is no way from {one} to {other}"]
    if begin == end:
        sentences = [f"there is no way from {one} back to itself: no back edge carries what follows from it"]
    elif not _reached(forward, last).keys().isdisjoint(first):
        sentences.append(f"but there is one from {other} to {one}")
    controls = _controlled(figure, {*first, *below}, end)
    if controls:
        sentences.append(f"but it decides how {enumerated(controls)} runs, which is around {other}")
    names = [_quoted(figure, box) for box in below if box not in first]
    if names:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        sentences.append(f"from {one} the ways lead to {', '.join(names[:_MOST_NAMED])}{more}")
    else:
        sentences.append(f"nothing that is drawn reads {one}")
    return "; ".join(sentences)


def _quoted(figure: Figure, id: str) -> str:
    return f"'{figure.name_of(id)}'" if id in figure.by_id else figure.name_of(id)


def _controlled(figure: Figure, sources: Collection[str], end: str) -> list[str]:
    """Return the frames around a box whose trip count or condition comes from one of these."""
    frames = set()
    frame = figure.parent(end)
    while frame:
        frames.add(frame)
        frame = figure.parent(frame)
    found = (
        frame
        for edge in figure.edges
        if edge.enters >= 0 and edge.source in sources
        for frame in (edge.target if edge.kind is not EdgeKind.ENDS else figure.parent(edge.target),)
        if frame in frames
    )
    return [figure.clusters_by_id[id].label for id in dict.fromkeys(found)]
