"""Moving from box to box: along the wires, into what is open, from side to side, and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stepper.export.figures.figure import NodeKind
from tui.screens.graph.drawing import BoxPlace, Drawing, Side


def side_of(drawing: Drawing, place: BoxPlace) -> Side | None:
    """Return the body in which a box is; None for one that is inside of none."""
    side = None
    for key, number in place.path:
        side = drawing.sides[key][number]
        drawing = side.drawing
    return side


def drawing_of(drawing: Drawing, place: BoxPlace) -> Drawing:
    """Return the drawing in which a box is."""
    side = side_of(drawing, place)
    return drawing if side is None else side.drawing


def holds(drawing: Drawing, place: BoxPlace) -> bool:
    """True if the box is drawn: all around it are open."""
    for key, number in place.path:
        sides = drawing.sides.get(key, ())
        if number >= len(sides):
            return False
        drawing = sides[number].drawing
    return place.key in drawing.layout.boxes


def moved(
    drawing: Drawing, place: BoxPlace, direction: str, can_stop: Callable[[BoxPlace], bool], *, enters: bool = True
) -> BoxPlace | None:
    """Return the box up, down, left or right of one, as far as one can stop there; None for none.

    Down from an open box is its inside (unless it `enters` none), down from the end of that what is below the box.
    """
    here = drawing_of(drawing, place)
    if enters and direction == "down" and place.key in here.sides:
        return _first(here, place, 0)
    near = (BoxPlace(place.path, other) for other in _beside(here, place.key, direction))
    found = next(filter(can_stop, near), None)
    if found is not None or not place.path:
        return found
    *around, (key, number) = place.path
    outer = BoxPlace(tuple(around), key)
    if direction == "up":
        return outer
    if direction == "down":
        return moved(drawing, outer, direction, can_stop, enters=False)
    side = number + (1 if direction == "right" else -1)
    there = drawing_of(drawing, outer)
    return _first(there, outer, side) if 0 <= side < len(there.sides[key]) else None


def _first(drawing: Drawing, place: BoxPlace, side: int) -> BoxPlace:
    """Return the first box of a side of an open box."""
    inner = drawing.sides[place.key][side].drawing
    return BoxPlace((*place.path, (place.key, side)), inner.layout.ranks[0][0])


def _beside(drawing: Drawing, key: int, direction: str) -> Iterable[int]:
    """Return the boxes in a direction, the nearest first; those at which the way ends come last."""
    if direction in ("left", "right"):
        rank = next(rank for rank in drawing.layout.ranks if key in rank)
        place = rank.index(key)
        return rank[place + 1 :] if direction == "right" else rank[:place][::-1]
    near = drawing.sources(key) if direction == "up" else drawing.readers(key)
    centre = drawing.layout.boxes[key].centre

    def far(other: int) -> tuple[bool, int]:
        ends = drawing.graph.node(other).kind is NodeKind.ACCUMULATOR
        return ends, abs(drawing.layout.boxes[other].centre - centre)

    return sorted(near, key=far)
