"""An overview with a detail on one page: the whole small, and the marked part of it large beside it, as on maps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from stepper.export.drawing.composing import composed_alone, shapes_of
from stepper.export.drawing.legend import legend_drawn, samples_of
from stepper.export.drawing.shapes import Group, PageDrawing, Path, Rectangle, Shape, TextLine
from stepper.export.drawing.styles import ROUNDED, classes_of
from stepper.export.figures.figure import Figure, NodeKind
from stepper.export.fonts import HEADING_SIZE, SMALL_SIZE, advance
from stepper.export.layout.arrangement import arranged
from stepper.export.layout.figure_layout import CELL, FigureLayout

_MARGIN: Final = 14
_HEADING: Final = 30
_LINE: Final = 16
_ROW: Final = 16
_WIDEST: Final = 320
_LOWEST: Final = 260
"""Height of the overview, in pixels, beside a detail that is lower."""
_APART: Final = 56
_LEAST: Final = 7.0
"""Pixels of the marked region, at least."""


def inset_page(whole: Figure, part: Figure) -> PageDrawing:
    """Return the page; `part` has the title and the notes, its boxes are some of those of `whole`."""
    detail, overview = arranged(part), arranged(whole)
    size = composed_alone(replace(part, legend=()), detail)
    samples = samples_of(part.legend)
    height = max(size.height, _LOWEST)
    factor = min(0.5, _WIDEST / (overview.width * CELL), height / (overview.height * _ROW))
    wide, high = overview.width * CELL * factor, overview.height * _ROW * factor
    top = _MARGIN + (_HEADING if part.title else 0)
    left = _MARGIN + wide + _APART
    region = _region(overview, {node.id for node in part.nodes}, factor, _MARGIN, top)
    panel = Rectangle("region", left, top, size.width, size.height, 8)
    below = top + max(high + _LINE + 4, size.height) + 20
    texts = [advance(part.title, HEADING_SIZE, bold=True), *(advance(line, SMALL_SIZE) for line in part.below)]
    width = round(max(left + size.width, *(_MARGIN + text for text in texts))) + _MARGIN
    text_end = below + _LINE * (len(part.below) - 1) + 4 if part.below else below - _LINE
    legend, bottom = legend_drawn(samples, _MARGIN, text_end + 10, width - 2 * _MARGIN)
    height = (bottom if legend else text_end) + _MARGIN
    caption = f"the whole, {len(whole.nodes):,} boxes" if len(whole.nodes) != 1 else "the whole, one box"
    items: list[Shape] = [
        Rectangle("page", 0, 0, width, height),
        *((TextLine("heading", _MARGIN, _MARGIN + 10, part.title),) if part.title else ()),
        *_small(overview, part, factor, _MARGIN, top),
        _sight(region, panel),
        region,
        Rectangle("panel", panel.x, panel.y, panel.width, panel.height, 8),
        *shapes_of(detail, left + _MARGIN, top + _MARGIN),
        panel,
        TextLine("small", _MARGIN, top + high + _LINE, caption),
        *(TextLine("small", _MARGIN, below + _LINE * at, line) for at, line in enumerate(part.below)),
        *legend,
    ]
    return PageDrawing(width, height, part.title, part.description, tuple(items))


def _small(layout: FigureLayout, part: Figure, factor: float, dx: float, dy: float) -> Iterator[Group]:
    """Yield frames, wires and boxes without their texts; the boxes of the part are bright."""
    x, y = CELL * factor, _ROW * factor
    for frame in layout.frames:
        corner = Rectangle("frame", dx + frame.x * x, dy + frame.y * y, frame.width * x, frame.height * y, 8 * factor)
        yield Group((corner,), f"{classes_of(frame.cluster)} far")
    for line in layout.lines:
        parts = tuple(
            ((dx + (a + 0.5) * x, dy + (b + 0.5) * y), (dx + (c + 0.5) * x, dy + (d + 0.5) * y))
            for a, b, c, d in line.segments
        )
        yield Group((Path("wire", parts),), f"{line.kind}{' idle' if line.idle else ''} far")
    for box in layout.boxes:
        round_ = 13 * factor if box.node.kind in ROUNDED else 4 * factor
        if box.node.kind is NodeKind.END:
            continue
        shape = Rectangle("box", dx + box.x * x, dy + (box.y + 0.1) * y, box.width * x, (box.height - 0.2) * y, round_)
        bright = " highlighted" if box.node.id in part.by_id else ""
        yield Group((shape,), f"{box.node.kind}{bright} far")


def _region(layout: FigureLayout, kept: Collection[str], factor: float, dx: float, dy: float) -> Rectangle:
    """Return the rectangle around the boxes of the part, where the whole is small."""
    boxes = [box for box in layout.boxes if box.node.id in kept]
    left, top = min(box.x for box in boxes) * CELL, min(box.y for box in boxes) * _ROW
    right, bottom = max((box.x + box.width) * CELL for box in boxes), max((box.y + box.height) * _ROW for box in boxes)
    width, height = max((right - left) * factor, _LEAST) + 6, max((bottom - top) * factor, _LEAST) + 6
    middle, centre = dx + (left + right) / 2 * factor, dy + (top + bottom) / 2 * factor
    return Rectangle("region", middle - width / 2, centre - height / 2, width, height, 2)


def _sight(region: Rectangle, panel: Rectangle) -> Path:
    """Return the two lines that lead from the region to the detail."""
    edge = region.x + region.width
    return Path(
        "sight",
        (
            ((edge, region.y), (panel.x, panel.y + 4)),
            ((edge, region.y + region.height), (panel.x, panel.y + panel.height - 4)),
        ),
    )
