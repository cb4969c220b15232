"""A body in steps: drawn once, with the values of each iteration in turn, and a track that says which it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from stepper.export.drawing.composing import MARGIN, composed
from stepper.export.drawing.shapes import Group, PageDrawing, Rectangle, Shape, TextLine
from stepper.export.drawing.timing import COMING, DrawnStep, SteppedDrawing, TimedShape
from stepper.export.figures.figure import Figure, FigureNode, Thumbnail
from stepper.export.figures.loop_trace import LoopTrace
from stepper.export.fonts import SMALL_SIZE, advance
from stepper.export.layout.compound import arrange_level
from stepper.export.layout.figure_layout import FigureLayout, largest, size_of
from stepper.export.layout.frames import title_width
from stepper.export.picture import Picture
from stepper.export.views.unrolled import iteration_figures

_TRACK: Final = 20
"""Height of the cells of the track."""
_CELL: Final = 32
_LEAST_CELL: Final = 6


class BodyLayout:
    """One layout of a body for all iterations, with room for the texts of each."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self.figures = tuple(figures)
        first = figures[0]
        sizes = {node.id: largest(size_of(figure.by_id[node.id]) for figure in figures) for node in first.nodes}
        for frame in first.clusters:
            sizes[frame.id] = largest((title_width(figure.clusters_by_id[frame.id]), 0) for figure in figures)
        self._layout = arrange_level(first, "", sizes)
        self._lines = {node.id: max(len(figure.by_id[node.id].texts) for figure in figures) for node in first.nodes}
        self._pictured = {
            node.id: max((figure.by_id[node.id].thumbnail for figure in figures), key=_height) for node in first.nodes
        }

    def of(self, figure: Figure) -> FigureLayout:
        """Return the layout with the texts of one iteration."""
        nodes = {node.id: self._padded(node) for node in figure.nodes}
        return self._layout.renamed(nodes, dict(figure.clusters_by_id))

    def padded(self) -> FigureLayout:
        """Return the layout with as many lines, and a picture as high, in each box as it has in some iteration."""
        last = self.figures[-1]
        nodes = {
            node.id: replace(self._padded(node), thumbnail=node.thumbnail or self._pictured[node.id])
            for node in last.nodes
        }
        made = self._layout.renamed(nodes, dict(last.clusters_by_id))
        made.lines = [line._replace(idle=False) for line in made.lines]  # they stay while the sides of Ifs take turns
        return made

    def _padded(self, node: FigureNode) -> FigureNode:
        return replace(node, lines=(*node.lines, *[""] * (self._lines[node.id] - len(node.texts))))


def _height(picture: Thumbnail | None) -> int:
    return 0 if picture is None else picture.height


def stepped_body(picture: Picture) -> SteppedDrawing:
    """Return the rolled body with the values of the iterations of its trace; the whole is the last one."""
    trace = picture.trace
    assert trace is not None
    figures = iteration_figures(trace, picture.request.content, picture.loop_facts)
    layout = BodyLayout(figures)
    track = _StepTrack(trace)
    pages = []
    for step, figure in enumerate(figures):
        titled = replace(figure, title=picture.figure.title, notes=(), legend=picture.figure.legend)
        pages.append(track.below(composed(titled, layout.of(titled)), step))
    whole = replace(pages[-1], description=picture.figure.description)
    return SteppedDrawing(whole, track.steps, tuple(_merged(pages)))


class _StepTrack:
    """The row of iterations below a body: those that were, the one that is shown, those to come, and gaps."""

    def __init__(self, trace: LoopTrace) -> None:
        self.steps = tuple(DrawnStep(one.number, one.number + 1) for one in trace.iterations)
        gaps = (DrawnStep(begin, end, is_gap=True) for begin, end in trace.left_out)
        self._cells = sorted((*self.steps, *gaps), key=lambda step: step.begin)
        self._last = trace.count - 1

    def below(self, page: PageDrawing, at: int) -> PageDrawing:
        """Return a page with the track of a step below it."""
        step = self.steps[at]
        top = page.height - 4
        ground, *items = page.items
        assert isinstance(ground, Rectangle)
        items.append(TextLine("label", MARGIN, top + 8, f"{step.name} of 0..{self._last}"))
        wide = min(_CELL, (page.width - 2 * MARGIN) / len(self._cells))
        if wide >= _LEAST_CELL:
            items += self._drawn(wide, top + 16, step)
        else:
            wide *= len(self._cells)
            items.append(Rectangle("cell", MARGIN, top + 16, wide, _TRACK, 3))
            x = MARGIN + (wide - _LEAST_CELL) * self._cells.index(step) / max(len(self._cells) - 1, 1)
            items.append(Rectangle("band", x, top + 13, _LEAST_CELL, _TRACK + 6, 2))
        height = page.height + 16 + _TRACK + MARGIN - 4
        return replace(page, height=height, items=(replace(ground, height=height), *items))

    def _drawn(self, wide: float, y: float, now: DrawnStep) -> Iterator[Shape]:
        for index, cell in enumerate(self._cells):
            x = MARGIN + index * wide
            text = "…" if cell.is_gap else str(cell.begin)
            shapes: list[Shape] = [Rectangle("cell", x, y, wide, _TRACK, 3)]
            if cell == now:
                shapes.append(Rectangle("band", x, y, wide, _TRACK, 3))
            if advance(text, SMALL_SIZE) + 2 <= wide:
                shapes.append(TextLine("small", x + wide / 2, y + 14, text, "middle"))
            yield Group(tuple(shapes), COMING) if cell.begin > now.begin else Group(tuple(shapes))


def _merged(pages: Sequence[PageDrawing]) -> Iterator[TimedShape]:
    """Yield the shapes of pages of one layout, those that stay for several steps once; the last ones are the whole."""
    for states in zip(*(page.items for page in pages), strict=True):
        begin = 0
        for step in range(1, len(states) + 1):
            if step == len(states):
                yield TimedShape(states[begin], begin, step + 1)
            elif states[step] != states[begin]:
                yield TimedShape(states[begin], begin, step)
                begin = step
