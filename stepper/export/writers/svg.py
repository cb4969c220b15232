"""SVG from our own layout: text stays text, ids and order are stable, and the same figure gives the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Final

from stepper.errors import UsageError
from stepper.export.figures.figure import Figure, FigureNode, Thumbnail
from stepper.export.layout.arrangement import arranged
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, FrameShape, Polyline, Text
from stepper.export.layout.geometry import Segment
from stepper.export.options import LayoutEngine, Theme
from stepper.export.picture import FigureRequest, Picture
from stepper.export.writers.graphviz import laid_out_by_dot
from stepper.export.writers.styles import FONT, ROUNDED, Paint, classes_of, overrides, painted, unpainted

CELL: Final = 8
ROW: Final = 16
MARGIN: Final = 14
INSET: Final = 2
HEADING: Final = 30


SMALLEST_TEXT: Final = 6.0
"""Pixels; a figure whose text would be smaller on the page is not readable there."""

FONT_SIZE: Final = 13


def write(picture: Picture) -> str | bytes:
    """Return the figure as SVG. Raise UsageError where it would not be readable in the width asked for."""
    request = picture.request
    request.warn(f"laid out by {'Graphviz' if request.layout is LayoutEngine.DOT else 'the program itself'}")
    if request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, "svg")
    drawing = arranged(picture.figure)
    _check_width(extent(picture.figure, drawing)[0], request)
    return svg(picture.figure, drawing, request.theme, request.width)


def _check_width(wide: int, request: FigureRequest) -> None:
    width = request.width
    if width is None or wide <= width:
        return
    size = FONT_SIZE * width / wide
    if size < SMALLEST_TEXT:
        raise UsageError(
            f"the figure is {wide:,} pixels wide; in {width:,} its text would be {size:.1f} pixels high. "
            "Hide operations (--hide, --only, --carried), fold bodies (--depth 0), or allow more --width"
        )
    request.warn(f"the figure is {wide:,} pixels wide; in {width:,} its text is {size:.1f} pixels high")


def svg(figure: Figure, drawing: FigureLayout, theme: Theme = Theme.AUTO, width: int | None = None) -> str:
    """Return the figure as SVG text; `width` is that of the page in pixels (None: its own)."""
    lines, paint, sheet = figure.below, painted(theme), overrides(theme)
    wide, high = extent(figure, drawing)
    shown = wide if width is None else min(width, wide)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stepper" viewBox="0 0 {wide} {high}" '
        f'width="{shown}" font-family="{FONT}" role="img" aria-labelledby="figure-title figure-description">'
    )
    parts = [
        head,
        f'<title id="figure-title">{escape(figure.title)}</title>',
        f'<desc id="figure-description">{escape(figure.description)}</desc>',
        *((f"<style>\n{sheet}</style>",) if sheet else ()),
        f'<rect class="page"{paint("page", "")} width="{wide}" height="{high}"/>',
        f'<text class="heading"{paint("heading", "")} x="{MARGIN}" y="{MARGIN + 10}">{escape(figure.title)}</text>',
        f'<g transform="translate({MARGIN} {HEADING + MARGIN})">',
        *_Shapes(paint).of(drawing),
        "</g>",
    ]
    below = HEADING + MARGIN + drawing.height * ROW + ROW + 6
    parts += [
        f'<text class="small"{paint("small", "")} x="{MARGIN}" y="{below + 16 * index}">{escape(line)}</text>'
        for index, line in enumerate(lines)
    ]
    return "\n".join([*parts, "</svg>", ""])


def inline_svg(figure: Figure, drawing: FigureLayout) -> str:
    """Return the shapes alone, for a page that has the colours, the title and the description itself."""
    wide, high = drawing.width * CELL + 2 * MARGIN, drawing.height * ROW + 2 * MARGIN
    label = f'role="img" aria-label="{escape(figure.title)}"'
    head = f'<svg class="stepper" viewBox="0 0 {wide} {high}" width="{wide}" {label}>'
    page = f'<rect class="page" width="{wide}" height="{high}"/>'
    shapes = _Shapes(unpainted).of(drawing)
    return "\n".join([head, page, f'<g transform="translate({MARGIN} {MARGIN})">', *shapes, "</g></svg>"])


def extent(figure: Figure, drawing: FigureLayout) -> tuple[int, int]:
    """Return width and height of the whole figure in pixels."""
    lines = figure.below
    wide = max([drawing.width * CELL, len(figure.title) * 9 + 4, *(len(line) * 7 for line in lines)]) + 2 * MARGIN
    return wide, HEADING + 2 * MARGIN + drawing.height * ROW + (len(lines) * 16 + 8 if lines else 0)


class _Shapes:
    """The shapes of a drawing as elements, each with its attributes."""

    def __init__(self, paint: Paint) -> None:
        self.paint = paint

    def of(self, drawing: FigureLayout) -> Iterator[str]:
        """Yield the elements in the order of drawing."""
        for frame in drawing.frames:
            yield from self._frame(frame)
        for line in drawing.lines:
            yield from self._line(line)
        for box in drawing.boxes:
            yield from self._box(box)
        for text in drawing.texts:
            yield from self._text(text)

    def _attributes(self, shape: str, groups: str = "") -> str:
        """Return the attribute of the class, and those of its style."""
        return f'class="{shape}"{self.paint(shape, groups)}'

    def _frame(self, frame: FrameShape) -> Iterator[str]:
        cluster = frame.cluster
        group = classes_of(cluster)
        x, y, width, height = frame.x * CELL, frame.y * ROW, frame.width * CELL, frame.height * ROW
        yield f'<g id="{escape(cluster.id)}" class="{group}">'
        place = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="8"'
        yield f"<rect {self._attributes('frame', group)} {place}/>"
        yield f'<text {self._attributes("title", group)} x="{x + 10}" y="{y + 19}">{escape(cluster.label)}</text>'
        for index, text in enumerate(cluster.lines):
            place = f'x="{x + 10}" y="{y + 19 + ROW * (index + 1)}"'
            yield f"<text {self._attributes('small', group)} {place}>{escape(text)}</text>"
        yield "</g>"

    def _box(self, box: BoxShape) -> Iterator[str]:
        node = box.node
        group = classes_of(node)
        x, y = box.x * CELL, box.y * ROW + INSET
        width, height = box.width * CELL, box.height * ROW - 2 * INSET
        corner = 13 if node.kind in ROUNDED else 4
        yield f'<g id="{escape(node.id)}" class="{group}">'
        if node.title:
            yield f"<title>{escape(node.title)}</title>"
        place = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="{corner}"'
        yield f"<rect {self._attributes('box', group)} {place}/>"
        middle = x + width // 2
        pictured = node.thumbnail.height if node.thumbnail is not None else 0
        top = y + (height - (len(node.texts) + pictured) * ROW) / 2
        for index, text in enumerate(node.texts):
            look = self._attributes(line_class(node, index), group)
            place = f'x="{middle}" y="{top + ROW * index + 12:g}" text-anchor="middle"'
            yield f"<text {look} {place}>{escape(text)}</text>"
        if node.thumbnail is not None:
            area = (x + 8, top + ROW * len(node.texts) + 2, width - 16, ROW * pictured - 4)
            yield f'<g class="picture" data-area="{" ".join(f"{number:g}" for number in area)}">'
            yield from self._thumbnail(node.thumbnail, *area)
            yield "</g>"
        yield "</g>"

    def _thumbnail(self, picture: Thumbnail, x: float, y: float, width: float, height: float) -> Iterator[str]:
        if picture.is_line and len(picture.rows[0]) > 1:
            step = width / (len(picture.rows[0]) - 1)
            parts: list[str] = []
            for index, shade in enumerate(picture.rows[0]):
                if shade is not None:
                    word = "L" if index and picture.rows[0][index - 1] is not None else "M"
                    parts.append(f"{word}{x + index * step:.1f} {y + (1 - shade) * height:.1f}")
            yield f'<path {self._attributes("spark")} d="{"".join(parts)}"/>'
            return
        high = height / len(picture.rows)
        for row, shades in enumerate(picture.rows):
            wide = min(width / len(shades), 2 * high)
            left = x + (width - wide * len(shades)) / 2
            for column, shade in enumerate(shades):
                box = f'x="{left + column * wide:.1f}" y="{y + row * high:.1f}" width="{wide:.1f}" height="{high:.1f}"'
                look = self._attributes("mark" if shade is None else "shade")
                yield f'<rect {look} {box} opacity="{1 if shade is None else 0.06 + 0.94 * shade:.2f}"/>'

    def _line(self, line: Polyline) -> Iterator[str]:
        group = f"{line.kind}{' idle' if line.idle else ''}"
        wire, tips = self._attributes("wire", group), self._attributes("tip", group)
        path = "".join(_stroke(segment, line) for segment in line.segments)
        yield f'<g class="{group}">'
        if line.title:
            yield f"<title>{escape(line.title)}</title>"
        yield f'<path {wire} d="{path}"/>'
        for x, y in line.heads:
            tip = (y + 1) * ROW + INSET
            yield f'<path {tips} d="M{_x(x)} {tip}l-4 -8h8z"/>'
        for x, y in line.rights:
            yield f'<path {tips} d="M{(x + 1) * CELL} {_y(y)}l-8 -4v8z"/>'
        for x, y in (*_junctions(line), *line.joins):
            yield f'<circle {tips} cx="{_x(x)}" cy="{_y(y)}" r="2.4"/>'
        yield "</g>"

    def _text(self, text: Text) -> Iterator[str]:
        place = f'x="{text.x * CELL:g}" y="{text.y * ROW + 12:g}" text-anchor="{text.anchor}"'
        if text.style == "back":  # it stands on wires; not every program can draw a stroke below its text
            yield f'<text {self._attributes("halo")} {place} aria-hidden="true">{escape(text.text)}</text>'
        yield f"<text {self._attributes(text.style)} {place}>{escape(text.text)}</text>"


def line_class(node: FigureNode, index: int) -> str:
    """Return the class of a line of a box: the label, a further line, or the marks."""
    return "label" if index == 0 else "mark" if node.marks and index == len(node.texts) - 1 else "small"


def _stroke(segment: Segment, line: Polyline) -> str:
    x0, y0, x1, y1 = segment
    if y0 == y1 and x0 != x1:
        return f"M{_x(x0)} {_y(y0)}H{_x(x1)}"
    begin = (y0 + 1) * ROW if (x0, y0) in line.stubs else _y(y0)
    return f"M{_x(x0)} {begin}V{_y(y1) + (6 if (x1, y1) in line.heads else 0)}"


def _junctions(line: Polyline) -> list[tuple[int, int]]:
    """Return the cells where a wire branches: three or four of its sides are drawn."""
    sides: dict[tuple[int, int], set[str]] = {}
    corners: Counter[tuple[int, int]] = Counter()
    for x0, y0, x1, y1 in line.segments:
        for end in {(x0, y0), (x1, y1)}:
            corners[end] += 1
    for x0, y0, x1, y1 in line.segments:
        for x, y in corners:
            if x0 <= x <= x1 and y0 <= y <= y1:
                found = sides.setdefault((x, y), set())
                found |= {word for word, there in _sides(x, y, Segment(x0, y0, x1, y1)) if there}
    for head in line.heads:
        sides.get(head, set()).add("down")
    return sorted(cell for cell, found in sides.items() if len(found) > 2)


def _sides(x: int, y: int, segment: Segment) -> Iterator[tuple[str, bool]]:
    x0, y0, x1, y1 = segment
    yield "left", x > x0
    yield "right", x < x1
    yield "up", y > y0
    yield "down", y < y1


def _x(column: int) -> int:
    return column * CELL + CELL // 2


def _y(row: int) -> int:
    return row * ROW + ROW // 2
