"""PNG and PDF: a figure as pixels, and as a page of its own size with the font in it."""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final

from stepper.errors import UsageError
from stepper.export.drawing.composing import drawn
from stepper.export.drawing.styles import (
    POINTS,
    Disc,
    Group,
    PageDrawing,
    Palette,
    Path,
    Rectangle,
    Shape,
    TextLine,
    palette,
    properties_of,
)
from stepper.export.fonts import BOLD, REGULAR, advance, missing
from stepper.export.options import LayoutEngine
from stepper.export.picture import Picture
from stepper.export.writers.graphviz import laid_out_by_dot
from stepper.export.writers.svg import svg

if TYPE_CHECKING:
    from fpdf import FPDF


LARGEST: Final = 32_767
"""Pixels along a side; larger pictures many programs refuse or shrink."""
_MOST: Final = 200_000_000
"""Pixels in all: 800 MB while the picture is painted."""

_BEHIND_HEADER: Final = 33
"""Bytes of the signature and of IHDR, which is the first chunk."""


def write(picture: Picture) -> bytes:
    """Return the figure as PNG. Raise UsageError where it is larger than a PNG can reasonably be."""
    request = picture.request
    if request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, "png")
    drawing = drawn(picture)
    scale = request.scale * drawing.points / POINTS
    if request.width is not None:
        scale *= min(1.0, request.width / (drawing.width * drawing.points / POINTS))
    wide, high = round(drawing.width * scale), round(drawing.height * scale)
    if max(wide, high) > LARGEST or wide * high > _MOST:
        raise UsageError(
            f"the picture would have {wide:,} x {high:,} pixels; a PNG has at most {LARGEST:,} along a side and "
            f"{_MOST:,} in all here. Choose less (--iters, --depth 0), a smaller --scale, or --as svg or pdf"
        )
    import resvg_py

    theme = request.theme.fixed
    pixels: bytes = resvg_py.svg_to_bytes(
        svg_string=svg(drawing, theme),
        zoom=scale * POINTS / drawing.points,
        skip_system_fonts=True,
        font_files=[str(REGULAR), str(BOLD)],
        font_family="Liberation Sans",
        sans_serif_family="Liberation Sans",
    )
    said = (_international_text("Title", drawing.title), _international_text("Description", drawing.description))
    return b"".join((pixels[:_BEHIND_HEADER], *said, pixels[_BEHIND_HEADER:]))


def _international_text(keyword: str, text: str) -> bytes:
    """Return the iTXt chunk of a text, uncompressed; with `Title` and `Description` a PNG says what it shows."""
    body = b"iTXt" + keyword.encode("latin-1") + bytes(5) + text.replace("\0", "").encode("utf-8", "backslashreplace")
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


_LARGEST: Final = 14_400
"""Points along a side of a page, the limit of the format (ISO 32000-1, annex C)."""
_FONT: Final = "Liberation"


def write_pdf(picture: Picture) -> bytes:
    """Return the figure as a page of PDF of its own size. Raise UsageError where that is larger than pages can be."""
    request = picture.request
    if request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, "pdf")
    drawing = drawn(picture)
    theme = request.theme.fixed
    scale = drawing.points
    if request.width is not None:
        scale *= min(1.0, request.width / (drawing.width * drawing.points / POINTS))
    wide, high = drawing.width * scale, drawing.height * scale
    if max(wide, high) > _LARGEST:
        raise UsageError(
            f"the page would have {wide:,.0f} x {high:,.0f} points; PDF allows {_LARGEST:,} along a side. "
            "Choose less (--iters, --depth 0) or --as svg"
        )
    unknown = "".join(dict.fromkeys(missing("".join(_texts(drawing.items)))))
    if unknown:
        request.warn(f"the font of the PDF has no {' '.join(unknown[:10])}; --as svg uses the fonts of its reader")
    return pdf(drawing, palette(theme), scale)


def pdf(drawing: PageDrawing, colours: Palette, scale: float = POINTS) -> bytes:
    """Return a drawing as a page of PDF; `scale` is points a pixel."""
    from fpdf import FPDF

    document = FPDF(unit=scale, format=(drawing.width, drawing.height))
    document.set_creation_date(datetime(2000, 1, 1, tzinfo=UTC))  # the same bytes whenever it is written
    document.set_producer("stepper")
    document.set_title(drawing.title)
    document.set_subject(drawing.description)
    document.set_lang("en")
    document.set_auto_page_break(False)
    document.set_margin(0)
    document.add_font(_FONT, "", REGULAR)
    document.add_font(_FONT, "B", BOLD)
    document.add_page()
    with document._marked_sequence(title=drawing.title, alt_text=drawing.description):  # as its own images are
        _Page(document, colours).draw(drawing.items)
    with _unheard(logging.getLogger("fpdf")):  # of letters that the font does not have the request has been told
        return bytes(document.output())


@contextmanager
def _unheard(logger: logging.Logger) -> Iterator[None]:
    """Drop the warnings of a logger."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class _Page:
    """A page that shapes are painted on."""

    def __init__(self, document: FPDF, colours: Palette) -> None:
        self._document, self._colours = document, colours

    def draw(self, shapes: Iterable[Shape], groups: str = "") -> None:
        """Paint shapes that stand in a group of classes."""
        for shape in shapes:
            if isinstance(shape, Group):
                self.draw(shape.items, shape.classes)
            elif isinstance(shape, TextLine):
                self._words(shape, self._properties(shape.style, groups))
            else:
                self._outline(shape, self._properties(shape.style, groups))

    def _properties(self, style: str, groups: str) -> dict[str, str]:
        return _properties(style, groups, tuple(self._colours.items()))

    def _outline(self, shape: Rectangle | Path | Disc, properties: dict[str, str]) -> None:
        with self._document.new_path() as path:
            style = path.style
            style.fill_color = _colour(properties.get("fill", "none"))
            style.stroke_color = _colour(properties.get("stroke", "none"))
            style.stroke_width = float(properties.get("stroke-width", 1))
            style.stroke_cap_style = properties.get("stroke-linecap", "butt")
            style.stroke_join_style = properties.get("stroke-linejoin", "miter")
            style.stroke_dash_pattern = [float(part) for part in properties.get("stroke-dasharray", "").split()] or None
            style.stroke_dash_phase = float(properties.get("stroke-dashoffset", 0))
            style.auto_close = False
            if isinstance(shape, Rectangle):
                style.fill_opacity = 1 if shape.opacity is None else shape.opacity
                corner = min(shape.corner, shape.height / 2, shape.width / 2)
                path.rectangle(shape.x, shape.y, shape.width, shape.height, corner, corner)
            elif isinstance(shape, Disc):
                path.circle(shape.x, shape.y, shape.radius)
            else:
                for part in shape.parts:
                    path.move_to(*part[0])
                    for point in part[1:]:
                        path.line_to(*point)
                    if shape.closed:
                        path.close()

    def _words(self, words: TextLine, properties: dict[str, str]) -> None:
        if not words.text:
            return
        bold = properties.get("font-weight") == "bold"
        size = float(properties["font-size"].removesuffix("px"))
        width = advance(words.text, size, bold=bold)
        x = words.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor]
        document = self._document
        document.set_font(_FONT, "B" if bold else "", size * document.k)
        fill = properties["fill"]
        if "stroke" in properties:
            stroke = float(properties["stroke-width"])
            with document.local_context(text_mode="FILL_STROKE", draw_color=fill, text_color=fill, line_width=stroke):
                document.text(x, words.y, words.text)
            return
        document.set_text_color(fill)
        document.text(x, words.y, words.text)


@cache
def _properties(style: str, groups: str, colours: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return properties_of(style, groups, dict(colours))


def _colour(word: str) -> str | None:
    return None if word == "none" else word


def _texts(shapes: Iterable[Shape]) -> Iterable[str]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from _texts(shape.items)
        elif isinstance(shape, TextLine):
            yield shape.text
