"""PNG: the SVG of our own layout as pixels, with the font that comes with the program, the same bytes everywhere.

Its title and description are in it, as alternative text.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from stepper.errors import UsageError
from stepper.export.drawing.composing import drawn
from stepper.export.drawing.shapes import POINTS
from stepper.export.fonts import BOLD, REGULAR
from stepper.export.options import LayoutEngine
from stepper.export.picture import Picture
from stepper.export.writers.graphviz import laid_out_by_dot
from stepper.export.writers.svg import svg

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
