"""Draw the explanation of a value or a loop's end: its strip, and a graph for text formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from stepper.debug.causes.cause_texts import element_text
from stepper.debug.story.story_facts import (
    CutEdge,
    KeptColumns,
    LinkRole,
    ShortStory,
    Story,
    StoryColumn,
    kept_columns,
    last_links,
    part_of_story,
    shortened_story,
)
from stepper.debug.story.story_texts import column_text, entry_text, extent, number, reason, title, value_text, verdict
from stepper.debug.story.strip_layout import (
    CHIP,
    LABEL_AT,
    TORN,
    Options,
    PlacedChip,
    PlacedText,
    PlacedWire,
    Placement,
    Tone,
    place,
    wire_text,
)
from stepper.export.composing import Sample, legend_drawn, narrowed_text, right_tip, torn_edge
from stepper.export.figures.drawn_graph import shortened
from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.fitting import on_page, room_of
from stepper.export.fonts import SMALL_SIZE, advance, wrapped
from stepper.export.layout.figure_layout import CELL
from stepper.export.picture import FigureRequest
from stepper.export.styles import (
    Group,
    PageDrawing,
    Path,
    Point,
    Rectangle,
    Shape,
    TextLine,
    letters_of,
    stroke,
    text_width,
)
from stepper.wording import counted, printable

_SHORT_NAMES = (10, 8)
_LEAST_WITH_REASONS = 4
_USUAL_HEIGHT = 20
"""Lines of bands on a page that has no height."""
_LEAD = 4
"""Free cells before the first column of a band that continues the band above."""


class StoryBand(NamedTuple):
    """Hold adjacent columns of an explanation and their positions."""

    short: ShortStory
    placement: Placement


def story_forms(
    story: Story, room: int, *, is_usual: bool, height: float | None, measure: Callable[[str, Tone], int]
) -> Iterator[tuple[StoryBand, ...]]:
    """Yield an explanation with fewer and fewer columns and less context.

    `room` is in cells, `height` in lines. Columns stand in bands below each other if the page has a height, or if few
    fit side by side.
    """
    whole = Options(width=None if is_usual else max(60, room), measure=measure)
    plain = Options(histories=False, context=False, measure=measure)
    narrow = plain._replace(width=room)
    dense = narrow._replace(is_dense=True)
    total = len(story.columns)
    yield (_band(ShortStory(story), whole),)
    if height is not None:
        yield from _in_bands(story, [total], plain, room, height)
        yield (_band(ShortStory(story), dense),)
        yield from _in_bands(story, range(2, total), plain, room, height)
    for count in range(total - 1, _LEAST_WITH_REASONS - 1, -1):  # with room for so many their reasons are whole
        yield (_band(shortened_story(story, count), plain),)
    if height is None:
        for options in (plain, plain._replace(is_dense=True), dense._replace(names=_SHORT_NAMES[0])):
            yield from _in_bands(story, range(2, total + 1), options, room, _USUAL_HEIGHT)
    for options in (narrow, *(narrow._replace(names=letters) for letters in _SHORT_NAMES), dense):
        yield from ((_band(shortened_story(story, count), options),) for count in range(total, 0, -1))
    for count in range(len(story.links) - 1, 0, -1):
        for options in (narrow, narrow._replace(names=_SHORT_NAMES[-1])):
            yield (_band(last_links(story, count), options),)


def _band(short: ShortStory, options: Options) -> StoryBand:
    return StoryBand(short, place(short.story, options._replace(torn=short.torn)))


def _in_bands(
    story: Story, counts: Iterable[int], options: Options, room: int, height: float
) -> Iterator[tuple[StoryBand, ...]]:
    """Yield an explanation in full bands, with these numbers of columns, most first."""
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
    sizes = enumerate(len(made.short.story.columns) for made in bands)
    band = dict(zip(columns, (number for number, size in sizes for _ in range(size)), strict=False))
    ways = set(pairwise(columns))
    ends = ((story.links[edge.source].column, story.links[edge.target].column) for edge in story.edges)
    return all(way in ways for way in ends if set(way) <= band.keys() and band[way[0]] != band[way[1]])


ROW = 17
MARGIN = 16
_BELOW = 18
BETWEEN = 10
"""Pixels between two bands."""
_NARROWEST = 480
"""Pixels in which texts are wrapped where the strip is narrower."""
_LARGEST = 3.2
"""Largest number of pixels per unit on a slide; a short explanation fills the slide, too."""
_WIDEST = 1640
"""Pixels of a page that nobody gave a width."""
_CORNER = 5.0
_CUT = 4.0
_STEPS = 4
_STYLES = {
    Tone.PLAIN: "label",
    Tone.STRONG: "title",
    Tone.TITLE: "title",
    Tone.DIM: "small",
    Tone.NOTE: "small",
    Tone.FAINT: "faint",
    Tone.BAD: "mark",
    Tone.BAD_THIN: "bad-small",
    Tone.BORN: "born-text",
    Tone.CHIP: "title",
    Tone.BAD_CHIP: "bad-title",
}
_LONGEST_WORD = 1_000
"""Longest prefix of a word that is measured, in letters."""
_IN_FONT = str.maketrans({"↺": "", "⋮": "…"})
"""Glyphs that the font of figures does not have."""
_CHIPS = {Tone.CHIP: ("chip", 0.22), Tone.BAD_CHIP: ("bad-chip", 0.2), Tone.BORN: ("bad-chip", None)}


def story_drawing(story: Story, model: str, request: FigureRequest, notes: Sequence[str]) -> tuple[PageDrawing, str]:
    """Return the strip of an explanation: question or heading above, answer and legend below.

    On a narrow page, columns beside the path and the reasons are left out first, then iterations in the middle of the
    path. The second result describes these omissions ("": none). `notes` stand below the answer. Raises UsageError if a
    page is too small.
    """
    room, width, height, highest = room_of(request), _WIDEST, math.inf, math.inf
    if room is not None:
        unit = room.most if room.height is None else room.least
        width, highest = int(room.width / unit), room.highest / unit
        height = math.inf if room.height is None else room.height / unit
    forms = story_forms(
        story,
        max(30, (width - 2 * MARGIN) // CELL),
        is_usual=room is None,
        height=None if math.isinf(height) else height / ROW,
        measure=_cells,
    )
    least = min(_NARROWEST, width - 2 * MARGIN)
    draw = partial(_drawn, story, model=model, least=least, request=request, notes=notes)
    for bands in forms:
        made = draw(bands)
        if made.width <= width and made.height <= min(height, highest):
            break
    if room is not None and room.height is not None:  # what is free is spread above and below the strip
        room = room._replace(most=_LARGEST)
        made = draw(bands, free=on_page(made, room).height - made.height)
    parts = (
        (sum(band.short.left_out for band in bands), "iteration", "in the middle of the path"),
        (sum(band.short.farther for band in bands), "link", "farther from what was asked"),
    )
    left_out = " and ".join(f"{counted(number, noun)} {where}" for number, noun, where in parts if number)
    if left_out:
        made = replace(made, description=f"{made.description} Not drawn: {left_out}.")
    return made if room is None else on_page(made, room), left_out


def _drawn(
    story: Story,
    bands: Sequence[StoryBand],
    *,
    model: str,
    least: float,
    request: FigureRequest,
    notes: Sequence[str],
    free: float = 0,
) -> PageDrawing:
    told, more = verdict(story)
    heading = f"why {title(story)}" if request.title is None else request.title
    strip = max(least, *(band.placement.width * CELL for band in bands))
    above = [
        *_told("heading", heading, strip),
        *_told("small", " · ".join(part for part in (model, extent(story)) if part), strip),
    ]
    below = _told("label", f"{told}{more}", strip)
    below += [line for text in notes for line in _told("small", text, strip)]
    inner = round(max(strip, *(text_width(*line) for line in (*above, *below))))
    down = MARGIN + 12 + _BELOW * len(above) + free / 3
    strips: list[Shape] = []
    for band in bands:
        strips += _Strip(band, MARGIN, down).shapes()
        down += band.placement.height * ROW + BETWEEN
    under = down - BETWEEN + 12 + free / 3
    samples = list(_samples(bands)) if request.legend else []
    explained, bottom = legend_drawn(samples, MARGIN, under + _BELOW * len(below) + 8, inner)
    high = bottom + MARGIN + free / 3
    items = (
        Rectangle("page", 0, 0, inner + 2 * MARGIN, high),
        *(TextLine(style, MARGIN, MARGIN + 12 + _BELOW * at, line) for at, (style, line) in enumerate(above)),
        *strips,
        *(TextLine(style, MARGIN, under + _BELOW * at, line) for at, (style, line) in enumerate(below, 1)),
        *explained,
    )
    return PageDrawing(inner + 2 * MARGIN, high, heading, f"{told}{more}. {extent(story)}.", items)


def _told(style: str, text: str, width: float) -> list[tuple[str, str]]:
    """Return a text in lines of a width with their style; a word that is wider loses its middle."""
    size, bold = letters_of(style)
    words = (shortened(word, _LONGEST_WORD) for word in printable(text).split())
    narrow = " ".join(narrowed_text(word, width, size, bold=bold) for word in words)
    return [(style, line) for line in wrapped(narrow, width, size, bold=bold)]


def _cells(text: str, tone: Tone) -> int:
    """Return how many cells a text takes when drawn; each outer space is a cell."""
    words = text.strip()
    return len(text) - len(words) + math.ceil(_wide(_in_font(words), tone) / CELL)


def _in_font(words: str) -> str:
    """Return words without the glyphs that the font does not have, and with signs for what cannot be printed."""
    return printable(words.translate(_IN_FONT).strip())


def _wide(words: str, tone: Tone) -> float:
    return text_width(_STYLES[tone], words)


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
        yield Sample(26, lambda x, base: [Rectangle("bad-chip", x + 2, base - 9, 22, 11, 3)], "first here")
    if any(placement.histories for placement in placements) or any(text.is_number for text in texts):
        number = partial(TextLine, "small", text="1.5")
        words = "grey: the same element in other iterations"
        yield Sample(advance("1.5", SMALL_SIZE), lambda x, base: [number(x=x, y=base)], words)


def _arrow(x: float, base: float, *, dashed: bool) -> list[Shape]:
    y, tip = base - 4, x + 26
    if not dashed:
        return [Group((stroke("wire", (x, y), (tip, y)),), "story")]
    return [Group((stroke("wire", (x, y), (tip - 7, y)), right_tip(tip, y, 6)), "story dashed")]


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
        words, style = _in_font(text.text.strip()), _STYLES[text.tone]
        x, y = self._left(text.x + len(text.text) - len(text.text.lstrip())), self.dy + text.y * ROW + 1
        if text.is_label:
            yield Rectangle("page", x - 4, y, _wide(words, text.tone) + 8, ROW - 2)
        if text.tone is Tone.BORN:
            yield Rectangle("bad-chip", x - 3, y, _wide(words, text.tone) + 6, ROW - 2, 3)
        if text.is_number:
            yield TextLine(style, self._left(text.x + len(text.text)), self._base(text.y), words, "end")
        else:
            yield TextLine(style, x, self._base(text.y), words)

    # --- what is left out -

    @cached_property
    def _edges(self) -> tuple[float, float]:
        """Return where the torn edges are between which iterations are left out."""
        ends = (one.x + one.width for one in self.placement.columns if one.column == self.short.torn)
        begin = next(ends, self.placement.names)
        return self._left(begin + 1), self._left(begin + TORN - 3)

    def _tear(self) -> Iterator[Shape]:
        if self.short.torn is None:
            return
        top = self.dy
        for x in self._edges:
            yield torn_edge(x, top, self.placement.height * ROW, is_upright=True)
        middle = sum(self._edges) / 2
        yield TextLine("title", middle, top + ROW - 4, f"{self.short.left_out:,}", "middle")
        yield TextLine("small", middle, top + 2 * ROW - 4, "left out", "middle")

    def _cut_wires(self) -> Iterator[Shape]:
        """Draw the wires to what is left out, or is in the next band, with what they carry, and those that come back.

        They begin at the edge, so that the first of their dashes is there.
        """
        last, links = len(self.story.columns) - 1, self.story.links
        # by column: where wires from what is not here begin, where those to it end
        begins, ends = {0: self._left(self.placement.names + 1)}, {last: self._left(self.placement.width)}
        if self.short.torn is not None:
            ends[self.short.torn], begins[self.short.torn + 1] = self._edges
        chips = {chip.link: chip for chip in self.placement.chips}
        for cut in {one.link: one for one in self.short.coming}.values():
            begin = begins.get(links[cut.link].column)
            if begin is not None:
                tip, y = self._left(chips[cut.link].x), self._point(0, chips[cut.link].y)[1]
                yield self._cut_wire([(begin, y), (tip - 6, y)], cut, right_tip(tip, y, 6))
        leading: dict[int, list[CutEdge]] = {}
        for cut in self.short.leading:
            leading.setdefault(cut.link, []).append(cut)
        for link, cuts in leading.items():
            end = ends.get(links[link].column)
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
        return Group((stroke("wire", *points), *more), "story dashed bad" if cut.is_bad else "story dashed")

    # --- histories -----------------------------------------------------------------------------------------------

    def _history(self, row: int, x: int, y: int, width: int) -> Iterator[Shape]:
        values = [math.nan if isinstance(one, str) else one for one in self.story.rows[row].history]
        finite = [float(value) for value in values if value is not None and math.isfinite(value)]
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        floor = self.dy + y * ROW + ROW - 2
        for at, value in enumerate(values):
            step = width * CELL / len(values)
            left, wide = self._left(x) + at * step, max(step - 0.5, 0.5)
            if value is not None and math.isfinite(value):
                tall = 1.5 + (value - low) / (high - low or 1.0) * (ROW - 6)
                yield Rectangle("shade", left, floor - tall, wide, tall, 0, 0.7)
            elif value is not None:
                yield Rectangle("bad-chip", left, floor - ROW + 4, wide, ROW - 4, 0, 0.5)

    # --- wires ---------------------------------------------------------------------------------------------------

    def _wire(self, wire: PlacedWire) -> Shape:
        points = [self._point(x, y) for x, y in wire.points]
        head: list[Shape] = []
        if wire.head:
            x, y = points[-1]
            points[-1] = (x + CELL / 2 - 5, y)
            head = [right_tip(x + CELL / 2 + 1, y, 6)]
        parts = tuple(map(tuple, _interrupted(_rounded(points), self._crossings(wire))))
        classes = f"story{' dashed' if wire.dashed else ''}{' bad' if wire.bad else ''}"
        return Group((Path("wire", parts), *head), classes)

    def _point(self, x: int, y: int) -> Point:
        return self.dx + x * CELL + CELL / 2, self.dy + y * ROW + ROW / 2

    def _crossings(self, wire: PlacedWire) -> list[Point]:
        """Return where vertical pieces of other wires cross the horizontal ones of this."""
        uprights = [
            (x, min(top, bottom), max(top, bottom))
            for other in self.placement.wires
            if other.edge != wire.edge
            for (x, top), (beside, bottom) in pairwise(other.points)
            if x == beside
        ]
        return [
            self._point(x, y0)
            for (x0, y0), (x1, y1) in pairwise(wire.points)
            if y0 == y1
            for x, top, bottom in uprights
            if min(x0, x1) < x < max(x0, x1) and top < y0 < bottom
        ]


def _rounded(points: Sequence[Point]) -> list[Point]:
    """Return a polyline with its corners as short arcs."""
    places, found = [complex(*point) for point in points], [points[0]]
    for before, corner, after in zip(places, places[1:], places[2:], strict=False):
        reach = min(_CORNER, abs(before - corner) / 2, abs(after - corner) / 2)
        begin, end = (corner + (one - corner) / (abs(one - corner) or 1.0) * reach for one in (before, after))
        for step in range(_STEPS + 1):
            t = step / _STEPS
            at = (1 - t) ** 2 * begin + 2 * t * (1 - t) * corner + t * t * end
            found.append((at.real, at.imag))
    return [*found, points[-1]]


def _interrupted(points: Sequence[Point], crossings: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield the pieces of a polyline, which is left open where another one crosses it."""
    part = [points[0]]
    for (x0, y0), (x1, y1) in pairwise(points):
        is_level, sign = abs(y1 - y0) < 0.1, 1 if x1 > x0 else -1
        cuts = [x for x, y in crossings if is_level and abs(y - y0) < 0.1 and min(x0, x1) < x < max(x0, x1)]
        for x in sorted(cuts, reverse=x1 < x0):
            yield [*part, (x - sign * _CUT, y0)]
            part = [(x + sign * _CUT, y0)]
        part.append((x1, y1))
    yield part


def story_figure(story: Story, model: str, notes: tuple[str, ...] = ()) -> Figure:
    """Return an explanation as nodes `op@iteration`, with a cluster for each iteration.

    `model` is the name of the model. `notes` stand below.
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


def _nodes(story: Story) -> Iterator[FigureNode]:
    for at, link in enumerate(story.links):
        row, word = story.rows[link.row], reason(link)
        if link.entry is not None:
            label = entry_text(link.entry)
            yield FigureNode(f"e{at}", NodeKind.INPUT, label, cluster="", title=str(link.entry.layer))
        yield FigureNode(
            id=f"n{at}",
            kind=NodeKind.OPERATION,
            label=f"{row.name}{element_text(link.element)} = {value_text(link)}",
            lines=(word,) if word else (),
            marks=("first here",) if link.role is LinkRole.BORN else (),
            title=f"{row.layer}, line {row.layer.line}",
            cluster=f"c{link.column}",
            highlighted=link.role is LinkRole.ASKED,
        )


def _edges(story: Story) -> Iterator[FigureEdge]:
    for at, link in enumerate(story.links):
        if link.entry is not None:
            yield FigureEdge(f"e{at}", f"n{at}", EdgeKind.SLICE)
    for edge in story.edges:
        ends = f"n{edge.source}", f"n{edge.target}"
        if edge.back is None:
            yield FigureEdge(*ends, EdgeKind.DATA)
        else:
            label = f"{edge.back.name} {number(story.links[edge.source].value)}"
            yield FigureEdge(*ends, EdgeKind.CARRIED, label)
