"""What is wrong with where things stand on the page of a figure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from tests.export.reading_back.drawing import Area, Drawing, Item, Wire, Words, segments_of

"""Boxes of a body as one box, all in its frame."""


def faults(drawing: Drawing) -> Iterator[str]:
    """A sentence for each fault."""
    assert drawing.joins is not None
    yield from drawing.loose
    yield from _outside(drawing)
    yield from _cut(drawing)
    yield from _over_each_other(drawing)
    yield from _crossed(drawing)
    yield from _nested(drawing)


def _outside(drawing: Drawing) -> Iterator[str]:
    for words in drawing.words:
        if not words.area.within(drawing.page):
            yield f"the words {words.text!r} leave the page"
    for item in (*drawing.boxes.values(), *drawing.frames.values()):
        if not item.area.within(drawing.page):
            yield f"{item.id} leaves the page"
    for wire in drawing.wires:
        if any(not area.within(drawing.page) for area in segments_of(wire)):
            yield f"a wire ({wire.kind} {wire.title!r}) leaves the page"


def _cut(drawing: Drawing) -> Iterator[str]:
    for item in (*drawing.boxes.values(), *drawing.frames.values()):
        for words in item.words:
            if not words.area.within(item.area, 1.5):
                yield f"the words {words.text!r} stand out of {item.id}"


def _over_each_other(drawing: Drawing) -> Iterator[str]:
    shown = sorted(drawing.words, key=lambda one: one.area.y)
    for index, one in enumerate(shown):
        for other in shown[index + 1 :]:
            if other.area.y > one.area.bottom:
                break
            across, down = one.area.overlap(other.area)
            if across > 1 and down > 2:
                yield f"the words {one.text!r} and {other.text!r} overlap"
    for one, other in combinations(drawing.boxes.values(), 2):
        across, down = one.area.overlap(other.area)
        if across > 0.5 and down > 0.5:
            yield f"the boxes {one.id} and {other.id} overlap"


def _crossed(drawing: Drawing) -> Iterator[str]:
    """Wires through boxes that they do not join, and through words."""
    in_boxes = {id(words) for item in drawing.boxes.values() for words in item.words}
    bare = [words for words in drawing.words if id(words) not in in_boxes]
    boxes = list(drawing.boxes.values())
    over_boxes, over_words = _Overlaps([one.area for one in boxes]), _Overlaps([_inner(one) for one in bare])
    for wire in drawing.wires:
        for area in segments_of(wire):
            for index in over_boxes.of(area):
                if _through(area, boxes[index], wire):
                    yield f"a wire ({wire.kind} {wire.title!r}) runs through the box {boxes[index].id}"
            for index in over_words.of(area):
                yield f"a wire ({wire.kind} {wire.title!r}) runs through the words {bare[index].text!r}"


class _Overlaps:
    """Areas, to be asked which of them another one touches."""

    def __init__(self, areas: list[Area]) -> None:
        rows = [(area.x, area.y, area.right, area.bottom) for area in areas]
        self.edges = np.array(rows).reshape(-1, 4)

    def of(self, area: Area) -> list[int]:
        left, top, right, bottom = self.edges.T
        found = (left <= area.right) & (area.x <= right) & (top <= area.bottom) & (area.y <= bottom)
        return [int(index) for index in np.flatnonzero(found)]


def _inner(words: Words) -> Area:
    area = words.area
    return Area(area.x + 1, area.y + 2, max(area.width - 2, 0), max(area.height - 5, 0))


def _through(area: Area, item: Item, wire: Wire) -> bool:
    """Whether a line is seen to cross a box; lines begin below the box that they leave."""
    across, down = item.area.overlap(area)
    if across < 0 or down < 0:
        return False
    ends = [point for point in wire.ends if item.area.holds(*point, 1)]
    if ends:
        return False
    touches = max(across, down) if min(across, down) >= 0 else 0
    reaches = any(abs(tip[1] - item.area.y) <= 4 or abs(tip[0] - item.area.x) <= 4 for tip in wire.tips
                  if item.area.holds(*tip, 4))  # fmt: skip
    return touches > 4 and not (reaches and touches <= 8)


def _nested(drawing: Drawing) -> Iterator[str]:
    """Boxes stand within the frame that their id names, and in no other."""
    for item in (*drawing.boxes.values(), *drawing.frames.values()):
        home = home_of(drawing, item.id)
        if home is not None and not item.area.within(home.area):
            yield f"{item.id} stands out of its frame {home.id}"
    for frame in drawing.frames.values():
        for item in drawing.boxes.values():
            inside = item.area.within(frame.area)
            if inside and frame.id not in _homes(drawing, item.id):
                yield f"{item.id} stands in the frame {frame.id}, to which it does not belong"


def home_of(drawing: Drawing, id: str) -> Item | None:
    """The frame in which an item belongs, by its id: `i3.5t.n7` in `i3.c5.then`, `4.n2` in `c4`."""
    if id in drawing.frames and id.endswith((".then", ".else")):
        return drawing.frames.get(id.rpartition(".")[0])
    before = id.rpartition(".")[0]
    if not before:
        return None
    if before in ("then", "else"):
        return drawing.frames.get(before)
    if before in drawing.frames:
        return drawing.frames[before]
    outer, _, owner = before.rpartition(".")
    prefix = f"{outer}." if outer else ""
    side = {"t": ".then", "e": ".else"}.get(owner[-1:], "")
    return drawing.frames.get(f"{prefix}c{owner.rstrip('te')}{side}")


def _homes(drawing: Drawing, id: str) -> set[str]:
    found: set[str] = set()
    home = home_of(drawing, id)
    while home is not None and home.id not in found:
        found.add(home.id)
        home = home_of(drawing, home.id)
    return found
