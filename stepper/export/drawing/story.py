"""The strip of a story as a drawing: chips are rectangles, wires are paths with round corners, text stays text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from stepper.debug.causes.cause import Scalar
from stepper.debug.story.facts import Story
from stepper.debug.story.shortening import ShortStory, shortened_story
from stepper.debug.story.strip.layout import CHIP, TORN, Options, PlacedText, PlacedWire, Placement, Tone, place
from stepper.debug.story.texts import extent, title, verdict
from stepper.export.drawing.legend import Sample, legend_drawn, torn_edge_down
from stepper.export.drawing.shapes import Group, PageDrawing, Path, Point, Rectangle, Shape, TextLine
from stepper.export.fonts import HEADING_SIZE, LABEL_SIZE, SMALL_SIZE, advance, wrapped
from stepper.export.layout.figure_layout import CELL
from stepper.wording import counted

ROW: Final = 17
MARGIN: Final = 16
_BELOW: Final = 18
_NARROWEST: Final = 480
"""Pixels in which texts are wrapped where the strip is narrower."""
_WIDEST: Final = 1640
"""Pixels of a page that nobody gave a width."""
_SHORT_NAMES: Final = (10, 8)
_LEAST_WITH_REASONS: Final = 4
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
    story: Story,
    model: str,
    width: int | None = None,
    heading: str | None = None,
    *,
    legend: bool = True,
    height: float = math.inf,
) -> tuple[PageDrawing, str]:
    """Return the strip of a story with its question, or another heading, above, its answer and a legend below.

    `width` and `height` are those of the page in pixels (None: usual ones). Columns beside the path and the reasons go
    first where it is narrow, then iterations in the middle of the path, which are told as well ("": none).
    """
    forms = _forms(story, _WIDEST if width is None else width, is_usual=width is None, has_height=math.isfinite(height))
    for short, options in forms:
        placement = place(short.story, options)
        made = _drawn(story, short, placement, model, width, heading, legend=legend)
        if made.width <= (_WIDEST if width is None else width) and made.height <= height:
            break
    left_out = f"{counted(short.left_out, 'iteration')} in the middle of the path" if short.left_out else ""
    if left_out:
        made = replace(made, description=f"{made.description} Not drawn: {left_out}.")
    return made, left_out


def _forms(story: Story, width: int, *, is_usual: bool, has_height: bool) -> Iterator[tuple[ShortStory, Options]]:
    """Yield a story with fewer and fewer columns, and how it is laid out."""
    room = max(30, (width - 2 * MARGIN) // CELL)
    whole = Options(width=None if is_usual else max(60, room), now=False)
    yield ShortStory(story), whole
    plain = Options(now=False, histories=False, context=False)
    narrow = plain._replace(width=room)
    dense = narrow._replace(height=1)  # no free lines between the rows
    if has_height:
        yield ShortStory(story), dense
    ways = (
        (plain, _LEAST_WITH_REASONS),
        (narrow, 1),
        *((narrow._replace(names=letters), 1) for letters in _SHORT_NAMES),
        *((dense, 1) for _ in range(has_height)),
    )
    for options, least in ways:  # reasons are whole as long as enough columns have room with them
        for count in range(len(story.columns) - (options is plain), least - 1, -1):
            short = shortened_story(story, count)
            yield short, options._replace(torn=short.torn)


def _drawn(
    story: Story,
    short: ShortStory,
    placement: Placement,
    model: str,
    width: int | None,
    heading: str | None,
    *,
    legend: bool,
) -> PageDrawing:
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
        *_Strip(short, placement, MARGIN, top).shapes(),
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
    def __init__(self, short: ShortStory, placement: Placement, dx: float, dy: float) -> None:
        self.story, self.placement, self.dx, self.dy = short.story, placement, dx, dy
        self.short = short

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
        yield from self._tear()

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

    # --- what is left out -

    def _tear(self) -> Iterator[Shape]:
        """Draw the torn edges between which iterations are left out, with the wires that lead there and come back."""
        if self.short.torn is None:
            return
        columns = {one.column: one for one in self.placement.columns}
        before, after = columns.get(self.short.torn), columns[self.short.torn + 1]
        begin = self.placement.names if before is None else before.x + before.width
        left, right = self._left(begin + 1), self._left(begin + TORN - 3)
        top, bottom = self.dy, self.dy + self.placement.height * ROW
        for x in (left, right):
            yield torn_edge_down(x, top, bottom - top)
        middle = (left + right) / 2
        yield TextLine("title", middle, top + ROW - 4, f"{self.short.left_out:,}", "middle")
        yield TextLine("small", middle, top + 2 * ROW - 4, "left out", "middle")
        places = {chip.link: chip for chip in self.placement.chips}
        for link in self.short.coming:
            if self.story.links[link].column == self.short.torn + 1:
                y = self._point(0, places[link].y)[1]
                yield self._stub(right + 3, self._left(after.x), y, is_bad=self.story.links[link].is_bad, head=True)
        for link in self.short.leading:
            chip = places[link]
            if before is not None and chip.x == before.x:
                x, y = self._point(chip.x + 2, chip.y + 1)
                if self.placement.pitch == 1:
                    x, y = self._point(chip.x + CHIP, chip.y)
                yield self._stub(x, left - 3, y, is_bad=self.story.links[link].is_bad, head=False)

    @staticmethod
    def _stub(x0: float, x1: float, y: float, *, is_bad: bool, head: bool) -> Shape:
        """Return a wire whose other end is left out."""
        items: list[Shape] = [Path("wire", (((x0, y), (x1 - (6 if head else 0), y)),))]
        if not head:
            items = [Path("wire", (((x0, y), (x1, y)),))]
        else:
            items.append(Path("tip", (((x1, y), (x1 - 6, y - 4), (x1 - 6, y + 4)),), True))
        return Group(tuple(items), "story dashed bad" if is_bad else "story dashed")

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
