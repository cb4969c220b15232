"""Iterations below each other in steps: each comes to be with what enters it and what it adds to the outputs."""

from __future__ import annotations

from stepper.export.drawing.composing import composed
from stepper.export.drawing.shapes import Group, Rectangle, Shape
from stepper.export.drawing.timing import DrawnStep, MadeShapes, SteppedDrawing, StepTimes, stepped
from stepper.export.figures.figure import EdgeKind, Figure, NodeKind
from stepper.export.figures.loop_trace import LoopTrace
from stepper.export.layout.arrangement import arranged
from stepper.export.layout.figure_layout import CELL, FigureLayout, Polyline

_LEAVING = (EdgeKind.PIECE, EdgeKind.ENDS)


def stepped_iterations(figure: Figure, trace: LoopTrace) -> SteppedDrawing:
    """Return the unrolled figure of a trace in steps."""
    layout = arranged(figure)
    page = composed(figure, layout)
    drawn = [DrawnStep(one.number, one.number + 1) for one in trace.iterations]
    steps = sorted((*drawn, *(DrawnStep(*gap, is_gap=True) for gap in trace.left_out)), key=lambda step: step.begin)
    stack = _Stack(figure, layout)
    first = next(at for at, item in enumerate(page.items) if isinstance(item, Group))
    found = enumerate(stack.steps(layout), first)
    made = tuple(MadeShapes(at, at + 1, step) for at, step in found if step is not None)
    stages = {item.id: item.items[0] for item in page.items if isinstance(item, Group)}
    bands = tuple(_band(stages[id], wide) for id, wide in zip(stack.ids, stack.widths(layout), strict=True))
    return stepped(page, StepTimes(tuple(steps), made, bands))


def _band(stage: Shape, behind: int) -> Rectangle:
    """Return the band of an iteration or a gap, across the lines before it and so many cells behind it."""
    assert isinstance(stage, Rectangle)
    return Rectangle("band", 4, stage.y - 6, stage.x + stage.width + behind * CELL + 4, stage.height + 12, 8)


class _Stack:
    """The rows of the iterations and gaps of a layout, from the top."""

    def __init__(self, figure: Figure, layout: FigureLayout) -> None:
        stages = {cluster.id for cluster in figure.clusters_in[""]}
        frames = [(frame.y, frame.y + frame.height) for frame in layout.frames if frame.cluster.id in stages]
        gaps = [(box.y, box.y + box.height) for box in layout.boxes if box.node.kind is NodeKind.ELLIPSIS]
        self.rows = sorted((*frames, *gaps))
        self.ids = [cluster.id for cluster in figure.clusters_in[""]]
        self._edge = max(
            [frame.x + frame.width for frame in layout.frames if frame.cluster.id in stages]
            + [box.x + box.width for box in layout.boxes if box.node.kind is NodeKind.ELLIPSIS]
        )

    def widths(self, layout: FigureLayout) -> list[int]:
        """Return how many cells lines beside each iteration or gap reach behind it."""
        found = [0] * len(self.rows)
        for line in layout.lines:
            for part in line.segments:
                at = self._leaving(part.y0)
                if part.y0 < self.rows[at][1]:
                    found[at] = max(found[at], part.x1 + 1 - self._edge)
        return found

    def steps(self, layout: FigureLayout) -> list[int | None]:
        """Return the step of each shape of the layout in the order of painting; None for those always there."""
        found: list[int | None] = [self._at(frame.y) for frame in layout.frames]
        found += [self._line(line) for line in layout.lines]
        found += [self._at(box.y) for box in layout.boxes]
        return found

    def _at(self, row: int) -> int | None:
        """Return the step of what begins in a row: above the stack none, below it the last."""
        if row < self.rows[0][0]:
            return None
        return self._leaving(row)

    def _line(self, line: Polyline) -> int:
        """Return the step of a line: of the iteration that it enters, or of the one that adds it to an output."""
        top, bottom = min(part.y0 for part in line.segments), max(part.y1 for part in line.segments)
        return self._leaving(top) if line.kind in _LEAVING else self._entering(bottom)

    def _leaving(self, row: int) -> int:
        return max((at for at, (begin, _) in enumerate(self.rows) if begin <= row), default=0)

    def _entering(self, row: int) -> int:
        return next((at for at, (_, end) in enumerate(self.rows) if row < end), len(self.rows) - 1)
