"""Levels of detail at which a graph is drawn, from a map of glyphs to boxes with values."""

from __future__ import annotations

from typing import Final, NamedTuple

from stepper.records import Record


class Detail(NamedTuple):
    """How boxes look: rows, most letters of a name, free cells between neighbours, which further lines are in them."""

    name: str
    height: int
    letters: int
    gap: int
    has_type: bool = False
    has_value: bool = False


LEVELS: Final = (
    Detail("map", 1, 9, 1),
    Detail("lines", 1, 28, 1),
    Detail("short names", 1, 9, 1),
    Detail("names", 1, 28, 2),
    Detail("boxes", 3, 40, 2),
    Detail("boxes with values", 3, 40, 2, has_value=True),
    Detail("boxes with types and values", 4, 40, 2, has_type=True, has_value=True),
)
MAP, LINES, SHORT, NAMES, BOXES, VALUES, TYPES = range(len(LEVELS))
VALUE_WIDTH: Final = 12
"""Cells of a value in a box, beside the name."""


class Manner(Record):
    """Manner in which a graph is drawn: `level` is an index of LEVELS, `room` the columns to do with, if that counts.

    `lanes`: back edges are drawn in a gutter at the right; else ports have signs. `unfolded` are layers whose groups of
    shape arithmetic are open; `opened` are loops and Ifs drawn with their bodies inside, as (id of program, layer).
    `parts`: the drawing goes on beside itself, in so many parts, as a text in columns does. `expressions`: what one
    operation alone reads is in the box of that, up to so many in a box (0: none); `entered` are the layers of the box
    that the cursor is in, each of which has its own.
    """

    level: int
    room: int | None = None
    lanes: bool = True
    unfolded: frozenset[int] = frozenset()
    opened: frozenset[tuple[int, int]] = frozenset()
    parts: int = 1
    expressions: int = 0
    entered: frozenset[int] = frozenset()
