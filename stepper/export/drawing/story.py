"""The strip of a story as a drawing: chips are rectangles, wires are paths with round corners, text stays text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from stepper.debug.causes.cause import Scalar
from stepper.debug.story.facts import Story
from stepper.debug.story.strip.layout import CHIP, Options, PlacedText, PlacedWire, Placement, Tone, place
from stepper.debug.story.texts import extent, title, verdict
from stepper.export.drawing.legend import Sample, legend_drawn
from stepper.export.drawing.shapes import Group, PageDrawing, Path, Point, Rectangle, Shape, TextLine
from stepper.export.fonts import HEADING_SIZE, LABEL_SIZE, SMALL_SIZE, advance, wrapped
from stepper.export.layout.figure_layout import CELL

ROW: Final = 17
MARGIN: Final = 16
_BELOW: Final = 18
_NARROWEST: Final = 480
"""Pixels in which texts are wrapped where the strip is narrower."""
_CORNER: Final = 5.0
_CUT: Final = 4.0
_STEPS: Final = 4
_STYLES: Final = {
    Tone.PLAIN: "label",
    Tone.STRONG: "title",
    Tone.TITLE: "title",
    Tone.DIM: "small",
    Tone.NOTE: "small",
    Tone.FAINT: "faint",
    Tone.NOW: "title",
    Tone.BAD: "mark",
    Tone.BAD_THIN: "bad-small",
    Tone.BORN: "born-text",
    Tone.CHIP: "title",
    Tone.BAD_CHIP: "bad-title",
}
_IN_FONT: Final = str.maketrans({"↺": "", "⋮": "…"})
"""Glyphs that the font of figures does not have."""
_CHIPS: Final = {Tone.CHIP: ("chip", 0.22), Tone.BAD_CHIP: ("bad-chip", 0.2), Tone.BORN: ("bad-chip", None)}


def story_drawing(
    story: Story, model: str, width: int | None = None, heading: str | None = None, *, legend: bool = True
) -> PageDrawing:
    """Return the strip of a story with its question, or another heading, above, its answer and a legend below.

    `width` is that of the page in pixels: the columns beside the path and the reasons go first where it is narrow.
    """
    room = None if width is None else max(60, (width - 2 * MARGIN) // CELL)
    placement = place(story, Options(width=room, now=False))
    told, more = verdict(story)
    heading = f"why {title(story)}" if heading is None else heading
    strip = max(placement.width * CELL, _NARROWEST if width is None else min(_NARROWEST, width - 2 * MARGIN))
    above = wrapped(heading, strip, HEADING_SIZE, bold=True)
    note = wrapped(" · ".join(part for part in (model, extent(story)) if part), strip, SMALL_SIZE)
    lines = wrapped(f"{told}{more}", strip, LABEL_SIZE)
    texts = (
        *(advance(line, HEADING_SIZE, bold=True) for line in above),
        *(advance(line, SMALL_SIZE) for line in note),
        *(advance(line, LABEL_SIZE) for line in lines),
    )
    inner = round(max(strip, *texts))
    top = MARGIN + 12 + _BELOW * (len(above) + len(note))
    under = top + placement.height * ROW + 12
    samples = list(_samples(placement)) if legend else []
    explained, bottom = legend_drawn(samples, MARGIN, under + _BELOW * len(lines) + 8, inner)
    items: list[Shape] = [
        Rectangle("page", 0, 0, inner + 2 * MARGIN, bottom + MARGIN),
        *(TextLine("heading", MARGIN, MARGIN + 12 + _BELOW * at, line) for at, line in enumerate(above)),
        *(TextLine("small", MARGIN, MARGIN + 12 + _BELOW * (len(above) + at), line) for at, line in enumerate(note)),
        *_Strip(story, placement, MARGIN, top).shapes(),
        *(TextLine("label", MARGIN, under + _BELOW * (at + 1), line) for at, line in enumerate(lines)),
        *explained,
    ]
    return PageDrawing(inner + 2 * MARGIN, bottom + MARGIN, heading, f"{told}{more}. {extent(story)}.", tuple(items))


def _samples(placement: Placement) -> Iterator[Sample]:
    """Yield what a legend explains of the lines and numbers that occur."""
    for dashed, words in ((False, "within an iteration"), (True, "back edge: from the iteration before")):
        if any(wire.dashed is dashed for wire in placement.wires):
            yield Sample(26, partial(_arrow, dashed=dashed), words)
    if Tone.BORN in {*(chip.tone for chip in placement.chips), *(text.tone for text in placement.texts)}:
        yield Sample(26, _filled, "born here")
    if placement.histories or any(text.is_number for text in placement.texts):
        yield Sample(advance("1.5", SMALL_SIZE), _number, "grey: the same element in other iterations")


def _arrow(x: float, base: float, *, dashed: bool) -> list[Shape]:
    y, tip = base - 4, x + 26
    line = Path("wire", (((x, y), (tip - (7 if dashed else 0), y)),))
    head = (Path("tip", (((tip, y), (tip - 6, y - 4), (tip - 6, y + 4)),), closed=True),) if dashed else ()
    return [Group((line, *head), "story dashed" if dashed else "story")]


def _filled(x: float, base: float) -> list[Shape]:
    return [Rectangle("bad-chip", x + 2, base - 9, 22, 11, 3)]


def _number(x: float, base: float) -> list[Shape]:
    return [TextLine("small", x, base, "1.5")]


class _Strip:
    def __init__(self, story: Story, placement: Placement, dx: float, dy: float) -> None:
        self.story, self.placement, self.dx, self.dy = story, placement, dx, dy

    def shapes(self) -> Iterator[Shape]:
        """Yield everything in the order of painting."""
        for wire in self.placement.wires:
            yield self._wire(wire)
        for history in self.placement.histories:
            yield from self._history(history.row, history.x, history.y, history.width)
        for chip in self.placement.chips:
            style, opacity = _CHIPS[chip.tone]
            x, y = self._left(chip.x), self.dy + chip.y * ROW + 1
            yield Rectangle("page", x, y, CHIP * CELL, ROW - 2, 3)  # wires pass under it
            yield Rectangle(style, x, y, CHIP * CELL, ROW - 2, 3, opacity)
            words = "born-text" if chip.tone is Tone.BORN else _STYLES[chip.tone]
            yield TextLine(words, x + (CHIP - 1) * CELL, self._base(chip.y), chip.text.strip(), "end")
        for text in self.placement.texts:
            yield from self._text(text)

    def _left(self, x: float) -> float:
        return self.dx + x * CELL

    def _base(self, y: float) -> float:
        return self.dy + y * ROW + ROW - 4

    def _text(self, text: PlacedText) -> Iterator[Shape]:
        begin = len(text.text) - len(text.text.lstrip())
        x = self._left(text.x + begin)
        words = text.text.strip().translate(_IN_FONT).strip()
        if text.is_label:
            size = SMALL_SIZE if text.tone is Tone.BAD else LABEL_SIZE
            wide = advance(words, size, bold=text.tone is Tone.BAD)
            yield Rectangle("page", x - 4, self.dy + text.y * ROW + 1, wide + 8, ROW - 2)
        if text.tone is Tone.BORN:
            yield Rectangle(
                "bad-chip", x - 3, self.dy + text.y * ROW + 1, advance(words, LABEL_SIZE, bold=True) + 6, ROW - 2, 3
            )
        if text.is_number:
            yield TextLine(_STYLES[text.tone], self._left(text.x + len(text.text)), self._base(text.y), words, "end")
        else:
            yield TextLine(_STYLES[text.tone], x, self._base(text.y), words)

    # --- histories -----------------------------------------------------------------------------------------------

    def _history(self, row: int, x: int, y: int, width: int) -> Iterator[Shape]:
        values = [_measured(value) for value in self.story.rows[row].history]
        finite = [value for value in values if value is not None and math.isfinite(value)]
        if not values:
            return
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        step = width * CELL / len(values)
        floor = self.dy + y * ROW + ROW - 2
        for place_of, value in enumerate(values):
            left = self._left(x) + place_of * step
            if value is None:
                continue
            if not math.isfinite(value):
                yield Rectangle("bad-chip", left, floor - ROW + 4, max(step - 0.5, 0.5), ROW - 4, 0, 0.5)
                continue
            share = (value - low) / (high - low) if high > low else 0.0
            tall = 1.5 + share * (ROW - 6)
            yield Rectangle("shade", left, floor - tall, max(step - 0.5, 0.5), tall, 0, 0.7)

    # --- wires ---------------------------------------------------------------------------------------------------

    def _wire(self, wire: PlacedWire) -> Shape:
        points = [self._point(x, y) for x, y in wire.points]
        if wire.head:
            x, y = points[-1]
            points[-1] = (x + CELL / 2 - 5, y)
        parts = tuple(tuple(part) for part in _interrupted(_rounded(points), self._crossings(wire)))
        classes = " ".join(["story", *(["dashed"] if wire.dashed else []), *(["bad"] if wire.bad else [])])
        items: list[Shape] = [Path("wire", parts)]
        if wire.head:
            x, y = points[-1]
            items.append(Path("tip", (((x + 6, y), (x, y - 4), (x, y + 4)),), True))
        return Group(tuple(items), classes)

    def _point(self, x: int, y: int) -> Point:
        return self.dx + x * CELL + CELL / 2, self.dy + y * ROW + ROW / 2

    def _crossings(self, wire: PlacedWire) -> list[Point]:
        """Return where vertical pieces of other wires cross the horizontal ones of this."""
        own = list(pairwise(wire.points))
        others = [
            piece
            for other in self.placement.wires
            if other.edge != wire.edge
            for piece in pairwise(other.points)
            if piece[0][0] == piece[1][0]
        ]
        found = []
        for (x0, y0), (x1, y1) in own:
            if y0 != y1:
                continue
            for (x, top), (_, bottom) in others:
                if min(x0, x1) < x < max(x0, x1) and min(top, bottom) < y0 < max(top, bottom):
                    found.append(self._point(x, y0))
        return found


def _rounded(points: Sequence[Point]) -> list[Point]:
    """Return a polyline with its corners as short arcs."""
    found = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        reach = min(_CORNER, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        begin, end = _towards(corner, before, reach), _towards(corner, after, reach)
        for step in range(_STEPS + 1):
            t = step / _STEPS
            a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
            found.append((a * begin[0] + b * corner[0] + c * end[0], a * begin[1] + b * corner[1] + c * end[1]))
    return [*found, points[-1]]


def _towards(a: Point, b: Point, by: float) -> Point:
    length = math.dist(a, b) or 1.0
    return a[0] + (b[0] - a[0]) / length * by, a[1] + (b[1] - a[1]) / length * by


def _interrupted(points: Sequence[Point], crossings: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield the pieces of a polyline, which is left open where another one crosses it."""
    part = [points[0]]
    for (x0, y0), (x1, y1) in pairwise(points):
        cuts = sorted(
            (x for x, y in crossings if abs(y - y0) < 0.1 and abs(y - y1) < 0.1 and min(x0, x1) < x < max(x0, x1)),
            reverse=x1 < x0,
        )
        sign = 1 if x1 > x0 else -1
        for x in cuts:
            part.append((x - sign * _CUT, y0))
            yield part
            part = [(x + sign * _CUT, y0)]
        part.append((x1, y1))
    yield part


def _measured(value: Scalar | None) -> float | None:
    if value is None:
        return None
    return math.nan if isinstance(value, str) else float(value)
