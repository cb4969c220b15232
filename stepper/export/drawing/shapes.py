"""Shapes of a drawing in pixels, y downwards; each has the name of a style, whose colours a painter looks up."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

Point = tuple[float, float]

POINTS: Final = 0.75
"""Points a pixel: 96 pixels are an inch of 72 points."""


class Rectangle(Struct, frozen=True):
    """A rectangle with corners of a radius; `opacity` is that of its fill, from 0 to 1 (None: 1)."""

    style: str
    x: float
    y: float
    width: float
    height: float
    corner: float = 0
    opacity: float | None = None


class Path(Struct, frozen=True):
    """Lines from point to point; each part is a line of its own, closed where `closed`."""

    style: str
    parts: tuple[tuple[Point, ...], ...]
    closed: bool = False


class Disc(Struct, frozen=True):
    """A filled circle."""

    style: str
    x: float
    y: float
    radius: float


class TextLine(Struct, frozen=True):
    """A line of text on its base line; `anchor` is start, middle or end. `hidden`: readers aloud leave it out."""

    style: str
    x: float
    y: float
    text: str
    anchor: str = "start"
    hidden: bool = False


class Group(Struct, frozen=True):
    """Shapes that are one thing: the classes that choose their styles, an id, a title that is shown on demand.

    `area` (x, y, width, height) is where a picture stands whose shapes a script replaces.
    """

    items: tuple[Shape, ...]
    classes: str = ""
    id: str = ""
    title: str = ""
    area: tuple[float, float, float, float] | None = None


Shape = Rectangle | Path | Disc | TextLine | Group


class PageDrawing(Struct, frozen=True):
    """Everything on the page in the order of painting; `title` and `description` are its text for readers aloud.

    `points` is how many points (1/72 inch) a unit is: 0.75 where units are pixels, 1 where they are points.
    """

    width: float
    height: float
    title: str
    description: str
    items: tuple[Shape, ...]
    points: float = POINTS
