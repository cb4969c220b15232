"""The story of a value, or of the end of a loop: its strip as a drawing, and as a graph for formats of text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from stepper.debug.causes.cause import Scalar
from stepper.debug.causes.texts import element_text
from stepper.debug.story.facts import LinkRole, Story, StoryColumn
from stepper.debug.story.shortening import (
    CutEdge,
    KeptColumns,
    ShortStory,
    kept_columns,
    last_links,
    part_of_story,
    shortened_story,
)
from stepper.debug.story.strip.layout import (
    CHIP,
    LABEL_AT,
    TORN,
    Options,
    PlacedChip,
    PlacedColumn,
    PlacedText,
    PlacedWire,
    Placement,
    Tone,
    place,
    wire_text,
)
from stepper.debug.story.texts import column_text, entry_text, extent, number, reason, title, value_text, verdict
from stepper.export.drawing.composing import Sample, legend_drawn, torn_edge_down
from stepper.export.drawing.styles import Group, PageDrawing, Path, Point, Rectangle, Shape, TextLine
from stepper.export.figures.drawn_graph import shortened
from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.fonts import HEADING_SIZE, LABEL_SIZE, SMALL_SIZE, advance, wrapped
from stepper.export.layout.figure_layout import CELL
from stepper.wording import counted, printable

_SHORT_NAMES: Final = (10, 8)
_LEAST_WITH_REASONS: Final = 4
_USUAL_HEIGHT: Final = 20
"""Lines of bands on a page that has no height."""
_LEAD: Final = 4
"""Free cells before the first column of a band that goes on from the one above."""


class StoryBand(NamedTuple):
    """Columns of a story that stand side by side, and where they lie."""

    short: ShortStory
    placement: Placement


def story_forms(
    story: Story, room: int, *, is_usual: bool, height: float | None, measure: Callable[[str, Tone], int]
) -> Iterator[tuple[StoryBand, ...]]:
    """Yield a story with fewer and fewer columns and less beside them; `room` is in cells, `height` in lines.

    Columns stand in bands one below the other where the page has a height, or where few have room side by side.
    """
    whole = Options(width=None if is_usual else max(60, room), now=False, measure=measure)
    plain = Options(now=False, histories=False, context=False, measure=measure)
    narrow = plain._replace(width=room)
    dense = narrow._replace(height=1)  # no free lines between the rows
    short = dense._replace(names=_SHORT_NAMES[0])
    total = len(story.columns)
    counts = range(total - 1, _LEAST_WITH_REASONS - 1, -1)  # as long as so many have room their reasons are whole
    yield (_band(ShortStory(story), whole),)
    if height is not None:
        yield from _in_bands(story, [total], plain, room, height)
        yield (_band(ShortStory(story), dense),)
        yield from _in_bands(story, range(2, total), plain, room, height)
    yield from ((_band(shortened_story(story, count), plain),) for count in counts)
    if height is None:
        for options in (plain, plain._replace(height=1), short):
            yield from _in_bands(story, range(2, total + 1), options, room, _USUAL_HEIGHT)
    for options in (narrow, *(narrow._replace(names=letters) for letters in _SHORT_NAMES), dense):
        yield from ((_band(shortened_story(story, count), options),) for count in range(total, 0, -1))
    for count in range(len(story.links) - 1, 0, -1):
        short_story = last_links(story, count)
        yield (_band(short_story, narrow),)
        yield (_band(short_story, narrow._replace(names=_SHORT_NAMES[-1])),)


def _band(short: ShortStory, options: Options) -> StoryBand:
    return StoryBand(short, place(short.story, options._replace(torn=short.torn)))


def _in_bands(
    story: Story, counts: Iterable[int], options: Options, room: int, height: float
) -> Iterator[tuple[StoryBand, ...]]:
    """Yield a story in bands, each as full as may be, with as many of its columns as these numbers say, most first."""
    found = list[tuple[StoryBand, ...]]()
    for count in counts:
        kept = kept_columns(story, count)
        made = _banded(story, kept, options, room, height)
        if not made:
            break
        if len(made) > 1 and story.links[story.asked].column in kept.columns and _goes_on(story, kept.columns, made):
            found.append(made)
    yield from reversed(found)


def _banded(story: Story, kept: KeptColumns, options: Options, room: int, height: float) -> tuple[StoryBand, ...]:
    """Return columns in bands; none where they have no room."""
    bands = list[StoryBand]()
    rest = kept
    while rest.columns:
        made = _widest(story, rest, options._replace(lead=_LEAD if bands else 0), room)
        height -= math.inf if made is None else made.placement.height
        if made is None or height < 0:
            return ()
        bands.append(made)
        rest = KeptColumns(rest.columns[len(made.short.story.columns) :])
    return tuple(bands)


def _widest(story: Story, rest: KeptColumns, options: Options, room: int) -> StoryBand | None:
    """Return the band of as many of the first columns as have room; None where not even those around a gap have."""
    found = None
    for size in range(1 if rest.torn is None else rest.torn + 2, len(rest.columns) + 1):
        made = _band(part_of_story(story, rest._replace(columns=rest.columns[:size])), options)
        if made.placement.width > room:
            break
        found = made
    return found


def _goes_on(story: Story, columns: tuple[int, ...], bands: tuple[StoryBand, ...]) -> bool:
    """True if what leads from a band to another one leads from its last column to the first one of the next."""
    parts = iter(columns)
    band = {
        column: number for number, made in enumerate(bands) for column in islice(parts, len(made.short.story.columns))
    }
    ways = {(a, b) for a, b in pairwise(columns) if band[a] != band[b]}
    for edge in story.edges:
        source, target = story.links[edge.source].column, story.links[edge.target].column
        is_apart = source in band and target in band and band[source] != band[target]
        if is_apart and (source, target) not in ways:
            return False
    return True


ROW: Final = 17
MARGIN: Final = 16
_BELOW: Final = 18
BETWEEN: Final = 10
"""Pixels between two bands."""
_NARROWEST: Final = 480
"""Pixels in which texts are wrapped where the strip is narrower."""
_WIDEST: Final = 1640
"""Pixels of a page that nobody gave a width."""
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
_LONGEST_WORD: Final = 1_000
"""Letters of a word of which it is looked how many have room."""
_SIZES: Final = {"small": SMALL_SIZE, "faint": SMALL_SIZE, "mark": SMALL_SIZE, "bad-small": SMALL_SIZE}
_BOLD: Final = frozenset({"title", "mark", "bad-title", "born-text"})
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
    highest: float = math.inf,
    free: float = 0,
    notes: Sequence[str] = (),
) -> tuple[PageDrawing, str]:
    """Return the strip of a story with its question, or another heading, above, its answer and a legend below.

    `width` and `height` are those of the page in pixels (None: usual ones), `highest` is what a page has at most that
    is as high as its story. Columns beside the path and the reasons go
    first where it is narrow, then iterations in the middle of the path, which are told as well ("": none). `notes`
    stand below the answer. `free` is a height that is spread above and below the strip.
    """
    forms = story_forms(
        story,
        max(30, ((_WIDEST if width is None else width) - 2 * MARGIN) // CELL),
        is_usual=width is None,
        height=None if math.isinf(height) else height / ROW,
        measure=_cells,
    )
    for bands in forms:
        made = _drawn(story, bands, model, width, heading, legend=legend, notes=notes)
        if made.width <= (_WIDEST if width is None else width) and made.height <= min(height, highest):
            break
    if free > 0:
        made = _drawn(story, bands, model, width, heading, legend=legend, notes=notes, free=free)
    count = sum(band.short.left_out for band in bands)
    farther = sum(band.short.farther for band in bands)
    parts = (
        (count, f"{counted(count, 'iteration')} in the middle of the path"),
        (farther, f"{counted(farther, 'link')} farther from what was asked"),
    )
    left_out = " and ".join(words for number, words in parts if number)
    if left_out:
        made = replace(made, description=f"{made.description} Not drawn: {left_out}.")
    return made, left_out


def _drawn(
    story: Story,
    bands: Sequence[StoryBand],
    model: str,
    width: int | None,
    heading: str | None,
    *,
    legend: bool,
    notes: Sequence[str],
    free: float = 0,
) -> PageDrawing:
    told, more = verdict(story)
    heading = f"why {title(story)}" if heading is None else heading
    strip = max(
        max(band.placement.width for band in bands) * CELL,
        _NARROWEST if width is None else min(_NARROWEST, width - 2 * MARGIN),
    )
    above = _told(heading, strip, HEADING_SIZE, bold=True)
    note = _told(" · ".join(part for part in (model, extent(story)) if part), strip, SMALL_SIZE)
    lines = _told(f"{told}{more}", strip, LABEL_SIZE)
    noted = [line for text in notes for line in _told(text, strip, SMALL_SIZE)]
    texts = (
        *(advance(line, HEADING_SIZE, bold=True) for line in above),
        *(advance(line, SMALL_SIZE) for line in note),
        *(advance(line, LABEL_SIZE) for line in lines),
        *(advance(line, SMALL_SIZE) for line in noted),
    )
    inner = round(max(strip, *texts))
    top = MARGIN + 12 + _BELOW * (len(above) + len(note)) + free / 3
    tops = [top + sum(band.placement.height * ROW + BETWEEN for band in bands[:number]) for number in range(len(bands))]
    under = tops[-1] + bands[-1].placement.height * ROW + 12 + free / 3
    samples = list(_samples(bands)) if legend else []
    behind = under + _BELOW * len(lines)
    explained, bottom = legend_drawn(samples, MARGIN, behind + _BELOW * len(noted) + 8, inner)
    high = bottom + MARGIN + free / 3
    items: list[Shape] = [
        Rectangle("page", 0, 0, inner + 2 * MARGIN, high),
        *(TextLine("heading", MARGIN, MARGIN + 12 + _BELOW * at, line) for at, line in enumerate(above)),
        *(TextLine("small", MARGIN, MARGIN + 12 + _BELOW * (len(above) + at), line) for at, line in enumerate(note)),
        *(shape for band, down in zip(bands, tops, strict=True) for shape in _Strip(band, MARGIN, down).shapes()),
        *(TextLine("label", MARGIN, under + _BELOW * (at + 1), line) for at, line in enumerate(lines)),
        *(TextLine("small", MARGIN, behind + _BELOW * (at + 1), line) for at, line in enumerate(noted)),
        *explained,
    ]
    return PageDrawing(inner + 2 * MARGIN, high, heading, f"{told}{more}. {extent(story)}.", tuple(items))


def _told(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Return a text in lines of a width; a word that is wider loses its middle."""
    words = []
    for word in printable(text).split():
        shown = shortened(word, _LONGEST_WORD)
        for longest in range(len(shown) - 1, 3, -1):
            if advance(shown, size, bold=bold) <= width:
                break
            shown = shortened(word, longest)
        words.append(shown)
    return wrapped(" ".join(words), width, size, bold=bold)


def _cells(text: str, tone: Tone) -> int:
    """Return how many cells a text takes as it is drawn; spaces around it are a cell each."""
    words = text.strip()
    return len(text) - len(words) + math.ceil(_wide(_in_font(words), tone) / CELL)


def _in_font(words: str) -> str:
    """Return words without the glyphs that the font does not have, and with signs for what cannot be printed."""
    return printable(words.translate(_IN_FONT).strip())


def _wide(words: str, tone: Tone) -> float:
    style = _STYLES[tone]
    return advance(words, _SIZES.get(style, LABEL_SIZE), bold=style in _BOLD)


def _samples(bands: Sequence[StoryBand]) -> Iterator[Sample]:
    """Yield what a legend explains of the lines and numbers that occur."""
    placements = [band.placement for band in bands]
    wires = {wire.dashed for placement in placements for wire in placement.wires}
    wires |= {True for band in bands if band.short.leading or band.short.coming}
    texts = [text for placement in placements for text in placement.texts]
    tones = {text.tone for text in texts} | {chip.tone for placement in placements for chip in placement.chips}
    for dashed, words in ((False, "within an iteration"), (True, "back edge: from the iteration before")):
        if dashed in wires:
            yield Sample(26, partial(_arrow, dashed=dashed), words)
    if Tone.BORN in tones:
        yield Sample(26, _filled, "born here")
    if any(placement.histories for placement in placements) or any(text.is_number for text in texts):
        yield Sample(advance("1.5", SMALL_SIZE), _number, "grey: the same element in other iterations")


def _tip(x: float, y: float) -> Shape:
    return Path("tip", (((x, y), (x - 6, y - 4), (x - 6, y + 4)),), closed=True)


def _arrow(x: float, base: float, *, dashed: bool) -> list[Shape]:
    y, tip = base - 4, x + 26
    line = Path("wire", (((x, y), (tip - (7 if dashed else 0), y)),))
    head = (_tip(tip, y),) if dashed else ()
    return [Group((line, *head), "story dashed" if dashed else "story")]


def _filled(x: float, base: float) -> list[Shape]:
    return [Rectangle("bad-chip", x + 2, base - 9, 22, 11, 3)]


def _number(x: float, base: float) -> list[Shape]:
    return [TextLine("small", x, base, "1.5")]


class _Strip:
    def __init__(self, band: StoryBand, dx: float, dy: float) -> None:
        self.short, self.story, self.placement = band.short, band.short.story, band.placement
        self.dx, self.dy = dx, dy

    def shapes(self) -> Iterator[Shape]:
        """Yield everything in the order of painting."""
        for wire in self.placement.wires:
            yield self._wire(wire)
        yield from self._cut_wires()
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
        words = _in_font(text.text.strip())
        if text.is_label:
            yield Rectangle("page", x - 4, self.dy + text.y * ROW + 1, _wide(words, text.tone) + 8, ROW - 2)
        if text.tone is Tone.BORN:
            yield Rectangle("bad-chip", x - 3, self.dy + text.y * ROW + 1, _wide(words, text.tone) + 6, ROW - 2, 3)
        if text.is_number:
            yield TextLine(_STYLES[text.tone], self._left(text.x + len(text.text)), self._base(text.y), words, "end")
        else:
            yield TextLine(_STYLES[text.tone], x, self._base(text.y), words)

    # --- what is left out -

    @cached_property
    def _edges(self) -> tuple[float, float]:
        """Return where the torn edges are between which iterations are left out."""
        before = self._before
        begin = self.placement.names if before is None else before.x + before.width
        return self._left(begin + 1), self._left(begin + TORN - 3)

    @property
    def _before(self) -> PlacedColumn | None:
        return next((one for one in self.placement.columns if one.column == self.short.torn), None)

    def _tear(self) -> Iterator[Shape]:
        if self.short.torn is None:
            return
        top, bottom = self.dy, self.dy + self.placement.height * ROW
        for x in self._edges:
            yield torn_edge_down(x, top, bottom - top)
        middle = sum(self._edges) / 2
        yield TextLine("title", middle, top + ROW - 4, f"{self.short.left_out:,}", "middle")
        yield TextLine("small", middle, top + 2 * ROW - 4, "left out", "middle")

    def _cut_wires(self) -> Iterator[Shape]:
        """Draw the wires to what is left out, or is in the next band, with what they carry, and those that come back.

        They begin at the edge, so that the first of their dashes is there.
        """
        first, last = 0, len(self.story.columns) - 1
        begins, ends = {}, {}  # by column: where wires from what is not here begin, where those to it end
        if self.short.torn is not None:
            ends[self.short.torn], begins[self.short.torn + 1] = self._edges
        begins.setdefault(first, self._left(self.placement.names + 1))
        ends.setdefault(last, self._left(self.placement.width))
        chips = {chip.link: chip for chip in self.placement.chips}
        for cut in {one.link: one for one in self.short.coming}.values():
            begin = begins.get(self.story.links[cut.link].column)
            if begin is not None:
                tip, y = self._left(chips[cut.link].x), self._point(0, chips[cut.link].y)[1]
                yield self._cut_wire([(begin, y), (tip - 6, y)], cut, _tip(tip, y))
        leading: dict[int, list[CutEdge]] = {}
        for cut in self.short.leading:
            leading.setdefault(cut.link, []).append(cut)
        for link, cuts in leading.items():
            end = ends.get(self.story.links[link].column)
            if end is not None:
                yield from self._leading(chips[link], cuts, end)

    def _leading(self, chip: PlacedChip, cuts: Sequence[CutEdge], end: float) -> Iterator[Shape]:
        """Draw the wire from a chip to the edge of what is not here, and what it carries where there is room."""
        if self.placement.pitch == 1:
            x, y = self._point(chip.x + CHIP, chip.y)
            yield self._cut_wire([(end, y), (x, y)], cuts[0])
            return
        begin = self._point(chip.x + LABEL_AT, chip.y)
        y = self._point(0, chip.y + 1)[1]
        yield self._cut_wire(list(reversed(_rounded([begin, (begin[0], y), (end, y)]))), cuts[0])
        told = dict.fromkeys(wire_text(cut.edge, self.story.links[chip.link].value).strip() for cut in cuts)
        tone = Tone.BAD if cuts[0].is_bad else Tone.PLAIN
        label = PlacedText(chip.x + LABEL_AT + 2, chip.y + 1, f" {', '.join(told)} ", tone, is_label=True)
        if self._left(label.x + _cells(label.text, tone)) < end:
            yield from self._text(label)

    @staticmethod
    def _cut_wire(points: Sequence[Point], cut: CutEdge, *more: Shape) -> Shape:
        return Group((Path("wire", (tuple(points),)), *more), "story dashed bad" if cut.is_bad else "story dashed")

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
            items.append(_tip(x + 6, y))
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


def story_figure(story: Story, model: str, notes: tuple[str, ...] = ()) -> Figure:
    """Return a story as nodes `op@iteration` in a cluster for each iteration; `model` is the name of the model.

    `notes` stand below.
    """
    told, more = verdict(story)
    return Figure(
        title=f"why {title(story)}",
        description=f"{told}{more}. {extent(story)}.",
        nodes=tuple(_nodes(story)),
        edges=tuple(_edges(story)),
        clusters=tuple(
            Cluster(f"c{place}", NodeKind.ITERATION, _head(column)) for place, column in enumerate(story.columns)
        ),
        facts=(*((model,) if model else ()), *notes),
    )


def _head(column: StoryColumn) -> str:
    if not column.path:
        return "model" if not column.phase else f"model, {'before' if column.phase < 0 else 'after'} the loop"
    outer = f"{'>'.join(map(str, column.path[:-1]))}>" if len(column.path) > 1 else ""
    when = "" if not column.phase else ", before" if column.phase < 0 else ", after"
    return f"iteration {outer}{column_text(column)}{when}"


def _nodes(story: Story) -> list[FigureNode]:
    nodes = []
    for at, link in enumerate(story.links):
        row = story.rows[link.row]
        words = [word for word in (reason(link),) if word]
        if link.entry is not None:
            nodes.append(
                FigureNode(f"e{at}", NodeKind.INPUT, entry_text(link.entry), cluster="", title=str(link.entry.layer))
            )
        nodes.append(
            FigureNode(
                id=f"n{at}",
                kind=NodeKind.OPERATION,
                label=f"{row.name}{element_text(link.element)} = {value_text(link)}",
                lines=tuple(words),
                marks=("born here",) if link.role is LinkRole.BORN else (),
                title=f"{row.layer}, line {row.layer.line}",
                cluster=f"c{link.column}",
                highlighted=link.role is LinkRole.ASKED,
            )
        )
    return nodes


def _edges(story: Story) -> list[FigureEdge]:
    edges = [
        FigureEdge(f"e{place}", f"n{place}", EdgeKind.SLICE)
        for place, link in enumerate(story.links)
        if link.entry is not None
    ]
    for edge in story.edges:
        back = edge.back
        kind = EdgeKind.DATA if back is None else EdgeKind.CARRIED
        label = "" if back is None else f"{back.name} {number(story.links[edge.source].value)}"
        edges.append(FigureEdge(f"n{edge.source}", f"n{edge.target}", kind, label))
    return edges
