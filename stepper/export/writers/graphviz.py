"""PNG and PDF, drawn by Graphviz where it is installed, in our own layout, so that they look like the SVG.

Graphviz gets DOT text in which every position is fixed: `neato -n2` moves nothing. Frames are in the background, wires
over them, boxes on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from stepper.errors import UsageError
from stepper.export.figures.figure import Arrangement, Figure
from stepper.export.layout.arrangement import arranged
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, FrameShape, Polyline, Text
from stepper.export.layout.geometry import Segment
from stepper.export.options import LayoutEngine, Theme
from stepper.export.picture import Picture
from stepper.export.writers.dot import box_attributes, dot, edge_style, quoted
from stepper.export.writers.styles import Palette, palette

INSTALL: Final = "install it with `apt install graphviz`, `brew install graphviz` or from graphviz.org"

MOST_AROUND: Final = 150
"""Nodes at positions round which Graphviz routes edges within a second; more take much longer."""

CELL: Final = 6.0
ROW: Final = 12.0
FONT: Final = "DejaVu Sans Mono,Menlo,Consolas,monospace"
LABEL: Final = 9.6
SMALL: Final = 8.1
HEADING: Final = 24.0

_TABLE: Final = '<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0">'


def png(picture: Picture) -> bytes:
    """Return the figure as PNG. Raise UsageError where Graphviz is not installed, or fails."""
    return _drawn(picture, "png")


def pdf(picture: Picture) -> bytes:
    """Return the figure as PDF. Raise UsageError where Graphviz is not installed, or fails."""
    return _drawn(picture, "pdf")


def _drawn(picture: Picture, format: str) -> bytes:
    if picture.request.layout is LayoutEngine.DOT:
        return laid_out_by_dot(picture, format)
    return drawn(placed_dot(picture.figure, arranged(picture.figure), picture.request.theme), format, is_placed=True)


def laid_out_by_dot(picture: Picture, format: str) -> bytes:
    """Return the figure as Graphviz lays it out: svg, png or pdf. Raise UsageError where it is missing, or fails."""
    figure = picture.figure
    has_places = figure.arrangement is Arrangement.ITERATIONS and len(figure.nodes) <= MOST_AROUND
    return drawn(dot(figure, picture.request.theme), format, is_placed=has_places)


def drawn(text: str, format: str, *, is_placed: bool) -> bytes:
    """Return DOT text drawn as svg, png or pdf, with the positions in the text where it `is_placed`, else laid out.

    Raise UsageError where Graphviz is not installed, or fails.
    """
    import graphviz  # type: ignore[import-untyped]  # it has no types, and loads only where it is needed

    try:
        engine = {"engine": "neato", "neato_no_op": 2} if is_placed else {"engine": "dot"}
        made: bytes = graphviz.Source(text).pipe(format=format, quiet=True, **engine)
    except graphviz.ExecutableNotFound:
        raise UsageError(
            f"{format} is drawn by Graphviz, but its program `dot` is not installed; {INSTALL}. "
            "`--as svg` and `--as dot` work without it"
        ) from None
    except graphviz.CalledProcessError as error:
        raise UsageError(f"Graphviz could not draw the figure: {str(error).splitlines()[0]}") from None
    return made


def placed_dot(figure: Figure, drawing: FigureLayout, theme: Theme) -> str:
    """Return the drawing as DOT text with fixed places."""
    return _Placed(figure, drawing, palette(theme)).text()


class _Placed:
    """Conversion of a layout to DOT, where y runs upwards."""

    def __init__(self, figure: Figure, drawing: FigureLayout, colours: Palette) -> None:
        self.figure, self.drawing, self.colours = figure, drawing, colours
        self.height = drawing.height * ROW

    def text(self) -> str:
        background = "".join(part for frame in self.drawing.frames for part in self._frame(frame))
        lines = [
            "graph placed {",
            f'  outputorder=edgesfirst; splines=true; pad=0.2; bgcolor="{self.colours["page"]}";',
            f"  _background={quoted(background)};",
            f'  node [shape=box, fixedsize=true, margin=0, fontname="{FONT}", fontsize={LABEL}];',
            *(f"  {line}" for line in self._nodes()),
            *(f"  {line}" for line in self._edges()),
            "}",
        ]
        return "\n".join([*lines, ""])

    # --- frames ----------------------------------------------------------------------------------------------------

    def _frame(self, frame: FrameShape) -> Iterator[str]:
        """Yield a frame in Graphviz's own drawing language: fill, pen, filled polygon."""
        edge = self.colours["now-edge" if frame.cluster.highlighted else "body-edge"]
        fill = self.colours["body"]
        left, right = frame.x * CELL, (frame.x + frame.width) * CELL
        top, bottom = self._y(frame.y), self._y(frame.y + frame.height)
        corners = f"{left:g} {top:g} {right:g} {top:g} {right:g} {bottom:g} {left:g} {bottom:g}"
        yield f"C 7 -{fill} c 7 -{edge} P 4 {corners} "

    def _y(self, row: float) -> float:
        return self.height - row * ROW

    # --- boxes and texts -------------------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[str]:
        wide = self.drawing.width * CELL
        yield self._plain("heading", wide / 2, self.height + HEADING / 2, [self.figure.title], wide, "ink", bold=True)
        for frame in self.drawing.frames:
            cluster, width = frame.cluster, frame.width * CELL - 12
            for index, text in enumerate((cluster.label, *cluster.lines)):
                x, y = (frame.x + frame.width / 2) * CELL, self._y(frame.y + 1 + index)
                yield self._plain(f"title_{cluster.id}_{index}", x, y, [text], width, "ink", bold=index == 0)
        for box in self.drawing.boxes:
            yield self._box(box)
        for index, loose in enumerate(self.drawing.texts):
            yield self._text(index, loose)
        for index, line in enumerate(self.figure.below):
            yield self._plain(f"fact_{index}", wide / 2, -ROW * (index + 1), [line], wide, "quiet", size=SMALL)

    def _plain(
        self,
        name: str,
        x: float,
        y: float,
        lines: list[str],
        width: float,
        colour: str,
        *,
        bold: bool = False,
        size: float = LABEL,
    ) -> str:
        """Return text on the left side of an invisible box."""
        text = "".join(f'{_html(line, bold=bold)}<BR ALIGN="LEFT"/>' for line in lines)
        font = f'<FONT POINT-SIZE="{size}" COLOR="{self.colours[colour]}">{text}</FONT>'
        needed = max(width, max(len(line) for line in lines) * size * 0.65)  # a box too small is warned about
        cell = f'<TR><TD ALIGN="LEFT">{font}</TD></TR>'
        table = f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0" WIDTH="{needed:g}">{cell}</TABLE>'
        x += (needed - width) / 2
        place = f'pos="{x:g},{y:g}", width={needed / 72 + 0.1:.4f}, height={ROW / 36:.4f}'
        return f"{quoted(name)} [shape=none, {place}, label=<{table}>];"

    def _box(self, box: BoxShape) -> str:
        node = box.node
        width, height = box.width * CELL, box.height * ROW - 3
        attributes = [
            f'pos="{box.x * CELL + width / 2:g},{self._y(box.y + box.height / 2):g}"',
            f"width={width / 72:.4f}, height={height / 72:.4f}",
            *box_attributes(node, self.colours),
            f"label=<{_TABLE}{''.join(self._lines(box))}</TABLE>>",
        ]
        return f"{quoted(node.id)} [{', '.join(attributes)}];"

    def _lines(self, box: BoxShape) -> Iterator[str]:
        """Yield the rows of a table, which has the line spacing of the SVG, unlike line breaks."""
        for index, text in enumerate(box.node.texts):
            marks = bool(box.node.marks) and index == len(box.node.texts) - 1
            colour = "ink" if index == 0 and not box.node.idle else "mark" if marks else "quiet"
            size = LABEL if index == 0 else SMALL
            font = f'<FONT POINT-SIZE="{size}" COLOR="{self.colours[colour]}">{_html(text, bold=marks)}</FONT>'
            yield f'<TR><TD HEIGHT="{ROW:g}">{font}</TD></TR>'

    def _text(self, index: int, text: Text) -> str:
        width = (len(text.text) + 1) * SMALL * 0.62
        x = text.x * CELL + (width / 2 if text.anchor == "start" else 0)
        colour = "back" if text.style == "back" else "quiet" if text.style == "small" else "ink"
        font = f'<FONT POINT-SIZE="{SMALL}" COLOR="{self.colours[colour]}">{_html(text.text)}</FONT>'
        ground = self.colours["body"]
        filled = f', style=filled, fillcolor="{ground}", color="{ground}"' if text.style == "back" else ", shape=none"
        place = f'pos="{x:g},{self._y(text.y + 0.5):g}", width={width / 72:.4f}, height={ROW / 72:.4f}'
        return f"{quoted(f'text_{index}')} [{place}{filled}, label=<{font}>];"

    # --- wires -----------------------------------------------------------------------------------------------------

    def _edges(self) -> Iterator[str]:
        for index, line in enumerate(self.drawing.lines):
            yield from self._wire(index, line)

    def _wire(self, index: int, line: Polyline) -> Iterator[str]:
        colour, style = edge_style(line.kind, self.colours, is_idle=line.idle)
        begin, end = quoted(f"a{index}"), quoted(f"b{index}")
        yield f'{begin} [shape=none, label="", width=0, height=0, pos="0,0"];'
        yield f'{end} [shape=none, label="", width=0, height=0, pos="0,0"];'
        look = f'color="{colour}", style={style}, penwidth=1'
        for segment in line.segments:
            yield f'{begin} -- {end} [{look}, pos="{self._spline(segment, line)}"];'
        for x, y in (*line.heads, *line.rights):
            yield f'{begin} -- {end} [{look}, style=solid, dir=forward, arrowsize=0.6, pos="{self._head(x, y, line)}"];'

    def _spline(self, segment: Segment, line: Polyline) -> str:
        x0, y0, x1, y1 = segment
        begin = y0 + (0.5 if (x0, y0) in line.stubs and x0 == x1 else 0)
        return self._bezier((x0 + 0.5) * CELL, self._y(begin + 0.5), (x1 + 0.5) * CELL, self._y(y1 + 0.5))

    def _head(self, x: int, y: int, line: Polyline) -> str:
        """Return a short edge with its arrow: its tip is what `e` names."""
        across, down = (x + 0.5) * CELL, self._y(y + 0.5)
        if (x, y) in line.heads:
            return f"e,{across:g},{down - ROW / 2 - 1.5:g} " + self._bezier(
                across, down + 2, across, down - ROW / 2 + 4
            )
        return f"e,{(x + 1) * CELL:g},{down:g} " + self._bezier(across - 4, down, (x + 1) * CELL - 5, down)

    def _bezier(self, x0: float, y0: float, x1: float, y1: float) -> str:
        thirds = [(x0 + (x1 - x0) * part / 3, y0 + (y1 - y0) * part / 3) for part in range(4)]
        return " ".join(f"{x:g},{y:g}" for x, y in thirds)


def _html(text: str, *, bold: bool = False) -> str:
    """Return text of an HTML-like label."""
    safe = escape(text, quote=True).replace("&#x27;", "&#39;") or " "
    return f"<B>{safe}</B>" if bold else safe
