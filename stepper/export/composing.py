"""From a laid-out figure to a drawing: boxes, edges and their crossings, formulas, the legend."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from stepper.export.figures.drawn_graph import shortened
from stepper.export.figures.figure import (
    BACKWARD,
    CUTS,
    EdgeKind,
    Figure,
    FigureNode,
    LegendEntry,
    LegendSign,
    NodeKind,
    Thumbnail,
)
from stepper.export.fonts import HEADING_SIZE, LABEL_SIZE, SLIDE_SIZE, SMALL_SIZE, advance, wrapped
from stepper.export.layout.arrangements import arranged
from stepper.export.layout.figure_layout import (
    CELL,
    BoxShape,
    EndMark,
    FigureLayout,
    FrameShape,
    Polyline,
    PortShape,
    Text,
)
from stepper.export.layout.layered import Cell, Segment
from stepper.export.picture import Picture
from stepper.export.styles import (
    ROUNDED,
    Disc,
    Group,
    PageDrawing,
    Path,
    Point,
    Rectangle,
    Shape,
    TextLine,
    classes_of,
    polygon,
    stroke,
)

_WITH_GAPS = (*BACKWARD, EdgeKind.CARRIED)

Gaps = Mapping[Segment, tuple[int, ...]]
"""The segments of a line, those that touch as one; the columns (of an upright one: the rows) of the gaps, in order."""


def gaps_of(lines: Sequence[Polyline]) -> list[Gaps]:
    """Return the gaps of each back edge, where it crosses another wire; of two back edges the level one has it.

    Nothing for other lines.
    """
    parts = [[(one, at) for at in (False, True) for one in _whole(line, upright=at)] for line in lines]
    through: defaultdict[tuple[bool, Cell], set[int]] = defaultdict(set)  # the upright, or level, lines of a cell
    for index, found in enumerate(parts):
        for one, upright in found:
            for cell in _between(one):
                through[upright, cell].add(index)
    others = {index for index, line in enumerate(lines) if line.kind not in _WITH_GAPS}
    gaps: list[Gaps] = [{} for _ in lines]
    for index, found in enumerate(parts):
        for one, upright in found if lines[index].kind in _WITH_GAPS else ():
            cells = ((cell, through[not upright, cell]) for cell in _between(one))
            crossed = (cell[upright] for cell, by in cells if (by & others if upright else by - {index}))
            gaps[index] = {**gaps[index], one: tuple(crossed)}
    return gaps


def _between(one: Segment) -> list[Cell]:
    """Return the cells between the ends of a segment."""
    return [(x, one.y0) for x in range(one.x0 + 1, one.x1)] or [(one.x0, y) for y in range(one.y0 + 1, one.y1)]


def _whole(line: Polyline, *, upright: bool) -> Iterator[Segment]:
    """Yield the upright, or the level, segments of a line; those that touch as one."""
    now: Segment | None = None
    key = attrgetter("x0", "y0", "y1") if upright else attrgetter("y0", "x0", "x1")
    for one in sorted(line.segments, key=key):
        if (one.x0 != one.x1, one.y0 != one.y1) != (not upright, upright):
            continue
        if now is not None and key(now)[0] == key(one)[0] and key(one)[1] <= key(now)[2]:
            now = Segment(now.x0, now.y0, max(now.x1, one.x1), max(now.y1, one.y1))
        else:
            if now is not None:
                yield now
            now = one
    if now is not None:
        yield now


def parted(begin: float, end: float, gaps: Iterable[float], half: float) -> Iterator[tuple[float, float]]:
    """Yield what is left of a stretch without its gaps, given by their middles in order, and by half their width."""
    at = begin
    for middle in gaps:
        if middle - half > at:
            yield at, middle - half
        at = middle + half
    if end > at:
        yield at, end


_INDEX = re.compile(r"_(?:\{([^{}]*)\}|(t)(?!\w))")
"""An index in the notation of formulas: `h_t`, `h_{t−1}`."""


class FormulaForm(NamedTuple):
    """Styles of letters and of indices with their sizes, how far indices are lowered, and from line to line."""

    style: str
    index_style: str
    size: float
    index_size: float
    lowered: float
    line: float


def formula_line(x: float, base: float, text: str, form: FormulaForm, *, is_centred: bool = False) -> Group:
    """Return a line of a formula that begins at `x`, or has its middle there; its title is the whole text."""
    left = x - formula_width(text, form) / 2 if is_centred else x
    lines = []
    for letters, style, size, lower in _pieces(text, form):
        if letters.strip():
            indent = len(letters) - len(letters.lstrip())  # spaces at the beginning are not drawn by all
            at = left + advance(" ", form.size) * indent
            lines.append(TextLine(style, at, base + lower, letters.strip()))
        left += advance(letters, size)
    return Group(tuple(lines), title=text)


def formula_width(text: str, form: FormulaForm) -> float:
    """Return the width of a line of a formula."""
    return sum(advance(letters, size) for letters, _, size, _ in _pieces(text, form))


def _pieces(text: str, form: FormulaForm) -> Iterator[tuple[str, str, float, float]]:
    """Yield letters and indices in turn: the text, its style and size, and how far it is lowered."""
    letters, indices = (form.style, form.size, 0.0), (form.index_style, form.index_size, form.lowered)
    at = 0
    for found in _INDEX.finditer(text):
        yield text[at : found.start()], *letters
        yield found[1] or found[2], *indices
        at = found.end()
    yield text[at:], *letters


LEGEND_ROW = 18
_WIDE = 26.0
_LEGEND_GAP = 6.0
_BETWEEN = 20.0
_BOXES = {
    LegendSign.PARAMETER: ("parameter", 5),
    LegendSign.MERGED: ("parameter merged", 5),
    LegendSign.RESULT: ("result", 5),
    LegendSign.CONDITION: ("result condition", 5),
    LegendSign.GROUP: ("group", 2),
    LegendSign.ACCUMULATOR: ("accumulator", 2),
    LegendSign.IDLE: ("idle", 2),
}
"""Classes and corners of boxes."""
_SIGNS = {LegendSign.OPERAND: "·", LegendSign.STEP: "S[k]"}
"""Signs that are text."""
_WIDTHS = {LegendSign.PORTS: 9.0, **{sign: advance(text, SMALL_SIZE) for sign, text in _SIGNS.items()}}


class Sample(NamedTuple):
    """Hold a legend entry: its width, its words, and a function that draws it.

    The function takes a point of the base line.
    """

    width: float
    drawn: Callable[[float, float], Sequence[Shape]]
    words: str


class LegendForm(NamedTuple):
    """Measures of a legend: style and size of its words, the height of a row, and the gaps."""

    style: str = "small"
    size: float = SMALL_SIZE
    row: float = LEGEND_ROW
    gap: float = _LEGEND_GAP
    between: float = _BETWEEN


_USUAL_LEGEND = LegendForm()


def legend_drawn(
    samples: Sequence[Sample], x: float, y: float, width: float, form: LegendForm = _USUAL_LEGEND
) -> tuple[list[Shape], float]:
    """Return a legend as a group, in rows of at most that width, and where the next thing below may begin."""
    items: list[Shape] = []
    at, base = x, y + form.row * 0.75
    for sample in samples:
        words = advance(sample.words, form.size)
        wide = sample.width + (form.gap if sample.width else 0) + words
        if at > x and at + wide > x + width:
            at, base = x, base + form.row
        items += sample.drawn(at, base)
        items.append(TextLine(form.style, at + wide - words, base, sample.words))
        at += wide + form.between
    return ([Group(tuple(items), "legend")], base + form.row * 0.25) if samples else ([], y)


def legend_width(samples: Sequence[Sample]) -> float:
    """Return the width of a legend in one row."""
    texts = sum(sample.width + _LEGEND_GAP + advance(sample.words, SMALL_SIZE) for sample in samples)
    return texts + _BETWEEN * max(len(samples) - 1, 0)


def samples_of(entries: Sequence[LegendEntry]) -> list[Sample]:
    """Return the entries of a figure's legend as samples of what is drawn."""
    return [Sample(_WIDTHS.get(entry.sign, _WIDE), partial(_drawn_sign, entry.sign), entry.words) for entry in entries]


def torn_edge(x: float, y: float, length: float, *, is_upright: bool = False) -> Path:
    """Return a torn edge: a zigzag line of as many teeth as there is room for."""
    teeth = max(2, round(length / 12))
    points = [(length / (2 * teeth) * at, 2.5 if at % 2 else -2.5) for at in range(2 * teeth + 1)]
    return stroke("tear", *((x + aside, y + at) if is_upright else (x + at, y + aside) for at, aside in points))


def end_bars(thin: float, thick: float, top: float, bottom: float, prefix: str = "") -> list[Shape]:
    """Return the final bar of music at two columns."""
    pairs = ((f"{prefix}thin", thin), (f"{prefix}bar", thick))
    return [stroke(style, (x, top), (x, bottom)) for style, x in pairs]


def _cross(x: float, y: float, half: float) -> Path:
    return Path("cross", (((x - half, y - half), (x + half, y + half)), ((x - half, y + half), (x + half, y - half))))


def right_tip(x: float, y: float, length: float = 8) -> Path:
    """Return the head of an arrow that points to the right."""
    return polygon("tip", (x, y), (x - length, y - 4), (x - length, y + 4))


def _drawn_sign(sign: LegendSign, x: float, base: float) -> Sequence[Shape]:
    middle, end = base - 4, x + _WIDE
    if sign in _SIGNS:
        return [TextLine("small", x, base, _SIGNS[sign])]
    if sign is LegendSign.CUT:
        return [torn_edge(x, middle, _WIDE)]
    if sign is LegendSign.ENDS:
        line = Group((stroke("wire", (x, middle), (end - 9, middle)),), sign)
        return [line, *end_bars(end - 6, end - 2, base - 10, base + 2)]
    if sign in _BOXES:
        classes, corner = _BOXES[sign]
        style = "frame" if sign is LegendSign.IDLE else "box"
        return [Group((Rectangle(style, x + 1, base - 9, _WIDE - 2, 10, corner),), classes)]
    if sign is LegendSign.PORTS:
        shapes: tuple[Shape, ...] = (Rectangle("square", x, base - 8, 8, 8),)
    elif sign is LegendSign.BLOCK:
        shapes = tuple(Rectangle("frame", x + 1 + at, base - 9 + at, _WIDE - 5, 8, 2) for at in (4, 2, 0))
    else:
        crosses = (_cross(x + _WIDE / 2 - 4, middle, 4),) if sign is LegendSign.NO_EFFECT else ()
        shapes = (stroke("wire", (x, middle), (end - 7, middle)), right_tip(end, middle), *crosses)
    return [Group(shapes, sign)]


ROW = 16
MARGIN = 14
EQUATION = FormulaForm("equation", "equation-index", LABEL_SIZE, SMALL_SIZE, 3.0, 16)
_INSET = 2
_HEADING = 30
_PORT = 4.5
_BAR = 8.0
"""Half of the height of an end mark; of a port half of its side."""
_GAP = 4.5
"""Half of the gap of a back edge where it crosses another wire."""
_BELOW = 16
"""Height of a line below the figure."""
_LEGEND = 420
"""Width that a legend gets where the figure is narrower."""
_TEXTS = 480
"""Width that texts get where the figure is narrower and the page is not."""


def drawn(picture: Picture) -> PageDrawing:
    """Return what a picture shows: a page of its own, else its figure, laid out by the program itself."""
    return composed(picture.figure, arranged(picture.figure)) if picture.page is None else picture.page


class PageForm(NamedTuple):
    """Form of a page in units: its heading, how wide it may be (None: as its texts are), on a slide its very size."""

    heading: str
    width: float | None = None
    slide: tuple[float, float] | None = None


def composed(figure: Figure, layout: FigureLayout, form: PageForm | None = None) -> PageDrawing:
    """Return a figure with a heading above (its title, if nothing else is said), its facts, notes and legend below."""
    return page_of(figure, (layout.width * CELL, layout.height * ROW), partial(shapes_of, layout), form)


def page_of(
    figure: Figure, area: Point, shapes: Callable[[float, float], Iterable[Shape]], form: PageForm | None = None
) -> PageDrawing:
    """Return the page of a figure; `shapes` draws boxes and wires in an area from a corner on."""
    heading, most, slide = PageForm(figure.title) if form is None else form
    samples, size = samples_of(figure.legend), HEADING_SIZE if slide is None else SLIDE_SIZE
    drawn_width, drawn_height = area
    room = None if most is None else max(drawn_width, min(int(most) - 2 * MARGIN, _TEXTS))
    titles = [heading] if room is None and heading else wrapped(heading, room or 0, size, bold=True)
    facts, equations = figure.facts, figure.equations if slide is None else ()
    others = (*(facts if slide is None else ()), *figure.notes, *figure.legends)
    told = " · ".join((*figure.equations, *facts))
    under = [] if slide is None else wrapped(told, (most or slide[0]) - 2 * MARGIN, SMALL_SIZE)
    if room is not None:
        equations = tuple(part for line in equations for part in wrapped(line, room, EQUATION.size))
        others = tuple(part for line in others for part in wrapped(line, room, SMALL_SIZE))
    lines = (*equations, *others)
    widths = (*(formula_width(line, EQUATION) for line in equations), *(advance(line, SMALL_SIZE) for line in others))
    texts = (*(advance(line, size, bold=True) for line in titles), *widths)
    legend_room = min(legend_width(samples), _LEGEND if room is None else room)
    inner = round(max(drawn_width, *texts, legend_room))
    above = MARGIN + (_HEADING * len(titles) if titles else 0) + _BELOW * len(under)
    dx, dy, wide = float(MARGIN), 0.0, float(inner + 2 * MARGIN)
    if slide is not None:
        inside = drawn_width if drawn_width > legend_room else inner
        dx, wide = max(MARGIN, round((slide[0] - inside) / 2)), max(slide[0], wide)
        end = _under(lines, above + drawn_height)
        bottom = legend_drawn(samples, dx, end + 10, inner)[1] if samples else end
        dy = max(0.0, round((slide[1] - bottom - MARGIN) / 2))
    below = above + dy + drawn_height + ROW + 6
    end = _under(lines, above + drawn_height) + dy
    legend, bottom = legend_drawn(samples, dx, end + 10, inner)
    high = (bottom if legend else end) + MARGIN
    height = high if slide is None else max(slide[1], high)
    style = "heading" if slide is None else "slide-heading"
    widest = max(widths, default=0)
    left = max(MARGIN, min(dx, wide - MARGIN - widest))
    items: tuple[Shape, ...] = (
        Rectangle("page", 0, 0, wide, height),
        *(TextLine(style, MARGIN, MARGIN + 10 + _HEADING * at, line) for at, line in enumerate(titles)),
        *(TextLine("small", MARGIN, above - 8 - _BELOW * at, line) for at, line in enumerate(reversed(under))),
        *shapes(dx, above + dy),
        *(formula_line(left, below + _BELOW * at, line, EQUATION) for at, line in enumerate(equations)),
        *(TextLine("small", left, below + _BELOW * at, line) for at, line in enumerate(others, len(equations))),
        *legend,
    )
    return PageDrawing(wide, height, figure.title, figure.description, items)


def _under(lines: Sequence[str], under: float) -> float:
    """Return where the lines below a layout end."""
    return under + ROW + 6 + (len(lines) - 1) * _BELOW + 4 if lines else under


def composed_alone(figure: Figure, layout: FigureLayout) -> PageDrawing:
    """Return the shapes and the legend of a figure without title, facts and notes, for a page that has them itself."""
    samples = samples_of(figure.legend)
    inner = max(layout.width * CELL, min(legend_width(samples), _LEGEND))
    legend, bottom = legend_drawn(samples, MARGIN, layout.height * ROW + 2 * MARGIN, inner)
    width, height = inner + 2 * MARGIN, bottom + (MARGIN if legend else 0)
    items = (Rectangle("page", 0, 0, width, height), *shapes_of(layout, MARGIN, MARGIN), *legend)
    return PageDrawing(width, height, figure.title, figure.description, items)


def line_class(node: FigureNode, index: int) -> str:
    """Return the style of a line of a box: the label, a further line, or the marks."""
    return "label" if index == 0 else "mark" if node.marks and index == len(node.texts) - 1 else "small"


def shapes_of(layout: FigureLayout, dx: float, dy: float) -> Iterator[Shape]:
    """Yield the shapes of a layout in the order of painting, moved."""
    place = _PagePlace(dx, dy)
    for frame in layout.frames:
        yield place.frame(frame)
    for line, gaps in zip(layout.lines, gaps_of(layout.lines), strict=True):
        yield place.line(line, gaps)
    for box in layout.boxes:
        yield place.box(box)
    for port in layout.ports:
        yield place.port(port)
    for mark in layout.marks:
        yield place.mark(mark)
    for text in layout.texts:
        yield place.text(text)


class _PagePlace:
    """The place of a layout's corner on the page, in pixels."""

    def __init__(self, dx: float, dy: float) -> None:
        self.dx, self.dy = dx, dy

    def frame(self, frame: FrameShape) -> Group:
        """Return a frame with its title and lines."""
        cluster = frame.cluster
        x, y = self.dx + frame.x * CELL, self.dy + frame.y * ROW
        behind = (6, 3, 0) if cluster.kind is NodeKind.BLOCK else (0,)  # a pile of them
        size = frame.width * CELL, frame.height * ROW
        items: list[Shape] = [Rectangle("frame", x + at, y + at, *size, 8) for at in behind]
        left, top = x + 10 + frame.title[0] * CELL, y + 19 + frame.title[1] * ROW
        items.append(TextLine("title", left, top, cluster.label))
        items += [TextLine("small", left, top + ROW * (at + 1), text) for at, text in enumerate(cluster.lines)]
        return Group(tuple(items), classes_of(cluster), cluster.id)

    def box(self, box: BoxShape) -> Group:
        """Return a box with its lines and its picture."""
        node = box.node
        x, y = self.dx + box.x * CELL, self.dy + box.y * ROW + _INSET
        width, height = box.width * CELL, box.height * ROW - 2 * _INSET
        items: list[Shape] = [Rectangle("box", x, y, width, height, 13 if node.kind in ROUNDED else 4)]
        aside = 0
        if node.kind in CUTS:
            is_above = node.kind is NodeKind.CUT_ABOVE
            aside = -4 if is_above else 6
            items = [torn_edge(x, y + height - 6 if is_above else y + 3, width)]
        if node.kind is NodeKind.END:
            items = end_bars(x + width - 6, x + width - 2, y, y + height)
        pictured = node.thumbnail.height if node.thumbnail is not None else 0
        top = y + (height - (len(node.texts) + pictured) * ROW) / 2 + aside
        for index, text in enumerate(node.texts):
            items.append(TextLine(line_class(node, index), x + width / 2, top + ROW * index + 12, text, "middle"))
        if node.thumbnail is not None:
            area = (x + 8, top + ROW * len(node.texts) + 2, width - 16, ROW * pictured - 4)
            items.append(Group(tuple(_thumbnail(node.thumbnail, *area)), "picture", area=area))
        return Group(tuple(items), classes_of(node), node.id, node.title)

    def port(self, port: PortShape) -> Rectangle:
        """Return a port of a frame."""
        x, y = self._x(port.x), self.dy + port.y * ROW
        return Rectangle("square", x - _PORT, y - _PORT, 2 * _PORT, 2 * _PORT)

    def mark(self, mark: EndMark) -> Group:
        """Return the final bar of music, thin and thick, on the rim of a frame."""
        x, y = self.dx + mark.x * CELL, self._y(mark.y)
        inwards = 1 if mark.at_left else -1
        items = end_bars(x + 7 * inwards, x + 2 * inwards, y - _BAR, y + _BAR)
        anchor, below = "start" if mark.at_left else "end", ROW if mark.says_below else 4
        text = TextLine("small", x + 12 * inwards, y + below, mark.node.label, anchor)
        return Group((*items, text), classes_of(mark.node), mark.node.id, mark.node.title)

    def line(self, line: Polyline, gaps: Gaps) -> Group:
        """Return a wire with its heads, junctions, and gaps where it crosses others."""
        parts = gaps or dict.fromkeys(line.segments, ())
        strokes = [part for one in parts for part in self._parted(self._stroke(one, line), parts[one])]
        items: list[Shape] = [Path("wire", tuple(strokes))]
        for column, row in line.heads:
            x, y = self._x(column), self.dy + (row + 1) * ROW + _INSET
            items.append(polygon("tip", (x, y), (x - 4, y - 8), (x + 4, y - 8)))
        items += [right_tip(self.dx + (column + 1) * CELL, self._y(row)) for column, row in line.rights]
        items += [_cross(self._x(column), self._y(row), 6) for column, row in line.crosses]
        joined = (*_junctions(line), *line.joins)
        items += [Disc("tip", self._x(column), self._y(row), 2.4) for column, row in joined]
        return Group(tuple(items), f"{line.kind}{' idle' if line.idle else ''}", title=line.title)

    def text(self, text: Text) -> TextLine:
        """Return a text of its own."""
        x, y = self.dx + text.x * CELL, self.dy + text.y * ROW + 12
        return TextLine(text.style, x, y, text.text, text.anchor)

    def _stroke(self, segment: Segment, line: Polyline) -> tuple[Point, Point]:
        x0, y0, x1, y1 = segment
        if y0 == y1 and x0 != x1:
            return (self._x(x0), self._y(y0)), (self._x(x1), self._y(y0))
        begin = self.dy + y0 * ROW if (x0, y0) in line.ups else self._y(y0)
        end = self.dy + (y1 + 1) * ROW if (x1, y1) in line.downs else self._y(y1)
        return (self._x(x0), begin), (self._x(x0), end + (6 if (x1, y1) in line.heads else 0))

    def _parted(self, stroke: tuple[Point, Point], gaps: Iterable[int]) -> Iterator[tuple[Point, Point]]:
        """Yield the parts of a stroke beside its gaps, columns or rows."""
        (x0, y0), (x1, y1) = stroke
        is_level = y0 == y1
        begin, end, place = (x0, x1, self._x) if is_level else (y0, y1, self._y)
        for a, b in parted(begin, end, map(place, gaps), _GAP) if gaps else [(begin, end)]:
            yield ((a, y0), (b, y0)) if is_level else ((x0, a), (x0, b))

    def _x(self, column: int) -> float:
        return self.dx + column * CELL + CELL / 2

    def _y(self, row: int) -> float:
        return self.dy + row * ROW + ROW / 2


def _thumbnail(picture: Thumbnail, x: float, y: float, width: float, height: float) -> Iterator[Shape]:
    if picture.is_line and len(picture.rows[0]) > 1:
        step = width / (len(picture.rows[0]) - 1)
        dots = enumerate(picture.rows[0])
        points = [None if shade is None else (x + at * step, y + (1 - shade) * height) for at, shade in dots]
        groups = (tuple(filter(None, group)) for _, group in groupby(points, bool))
        yield Path("spark", tuple(filter(None, groups)))
        return
    high = height / len(picture.rows)
    for row, shades in enumerate(picture.rows):
        wide = min(width / len(shades), 2 * high)
        left = x + (width - wide * len(shades)) / 2
        for column, shade in enumerate(shades):
            style, opacity = ("mark", 1.0) if shade is None else ("shade", 0.06 + 0.94 * shade)
            yield Rectangle(style, left + column * wide, y + row * high, wide, high, opacity=opacity)


def _junctions(line: Polyline) -> list[Cell]:
    """Return the cells where a wire branches: three or four of its sides are drawn."""
    beside: defaultdict[Cell, set[Cell]] = defaultdict(set)
    corners: set[Cell] = set()
    for x0, y0, x1, y1 in line.segments:
        corners |= {(x0, y0), (x1, y1)}
        for a, b in pairwise((x, y) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1)):
            beside[a].add(b)
            beside[b].add(a)
    for x, y in line.heads:
        beside[x, y].add((x, y + 1))
    return sorted(cell for cell in corners if len(beside[cell]) > 2)


def narrowed_text(text: str, width: float, size: float, *, bold: bool = False, least: int = 4) -> str:
    """Return a text that loses its middle, but for so many letters, where it is wider than that."""
    found = text
    for longest in range(len(text) - 1, least - 1, -1):
        if advance(found, size, bold=bold) <= width:
            break
        found = shortened(text, longest)
    return found


def shortened_heading(heading: str, size: float, width: float) -> str:
    """Return a heading in bold letters of a size without its middle where it is wider than a page."""
    return narrowed_text(heading, width, size, bold=True, least=13)
