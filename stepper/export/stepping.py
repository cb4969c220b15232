"""A run step by step: frames of one size, the bodies that move, and the timing of an animation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from stepper.errors import OutputError, UsageError
from stepper.export.composing import MARGIN, composed, drawn
from stepper.export.figure_views import iteration_figures
from stepper.export.figures.figure import EdgeKind, Figure, FigureNode, NodeKind
from stepper.export.figures.loop_trace import LoopTrace
from stepper.export.fitting import on_page, room_of
from stepper.export.layout.arrangements import arranged
from stepper.export.layout.figure_layout import (
    CELL,
    BoxShape,
    FigureLayout,
    FrameShape,
    Polyline,
    arranged_content,
    room_for,
)
from stepper.export.options import FigureView
from stepper.export.picture import Picture, unheard
from stepper.export.styles import (
    NOT_BEGUN,
    DrawnStep,
    Group,
    MadeShapes,
    PageDrawing,
    Rectangle,
    SteppedDrawing,
    StepTimes,
    TextLine,
    TimedShape,
    stepped,
)
from stepper.files.file_kinds import FORMATS, FigureFormat
from stepper.wording import enumerated

_TRACK = 12
"""Height of the bar."""
_CELL = 32
_LEAST_CELL = 6


class BodyLayout:
    """Lay out a body once for all iterations, with room for the texts of each."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self.figures = tuple(figures)
        first = figures[0]
        sizes = room_for((item.id, item) for figure in figures for item in figure.items)
        self._layout = arranged_content(first, "", sizes).drawing
        self._lines = {node.id: max(len(figure.by_id[node.id].texts) for figure in figures) for node in first.nodes}
        pictures = {node.id: [figure.by_id[node.id].thumbnail for figure in figures] for node in first.nodes}
        self._pictured = {id: max(found, key=lambda one: one.height if one else 0) for id, found in pictures.items()}

    def of(self, figure: Figure) -> FigureLayout:
        """Return the layout with the texts of one iteration."""
        return self._layout.renamed({**figure.clusters_by_id, **{node.id: self._padded(node) for node in figure.nodes}})

    def padded(self) -> FigureLayout:
        """Return the layout with as many lines, and a picture as high, in each box as it has in some iteration."""
        last = self.figures[-1]
        nodes = {
            node.id: replace(self._padded(node), thumbnail=node.thumbnail or self._pictured[node.id])
            for node in last.nodes
        }
        made = self._layout.renamed({**last.clusters_by_id, **nodes})
        made.lines = [line._replace(idle=False) for line in made.lines]  # they stay while the sides of Ifs take turns
        return made

    def _padded(self, node: FigureNode) -> FigureNode:
        return replace(node, lines=(*node.lines, *[""] * (self._lines[node.id] - len(node.texts))))


def stepped_body(picture: Picture) -> SteppedDrawing:
    """Return the rolled body with the values of the iterations of its trace; the whole is the last one."""
    trace = picture.trace
    assert trace is not None
    figures = iteration_figures(trace, picture.request.content)
    layout = BodyLayout(figures)
    cells = _steps_and_gaps(trace)
    steps = tuple(step for step in cells if not step.is_gap)
    pages = []
    for step, figure in zip(steps, figures, strict=True):
        titled = replace(figure, title=picture.figure.title, notes=(), legend=picture.figure.legend)
        page = composed(titled, layout.of(titled))
        pages.append(_with_track(page, cells, cells.index(step), f"{step.name} of 0..{trace.count - 1}"))
    whole = replace(pages[-1], description=picture.figure.description)
    return SteppedDrawing(whole, steps, tuple(_merged(pages)))


def _steps_and_gaps(trace: LoopTrace) -> list[DrawnStep]:
    steps = [DrawnStep(one.number, one.number + 1) for one in trace.iterations]
    steps += [DrawnStep(*gap, is_gap=True) for gap in trace.left_out]
    return sorted(steps, key=lambda step: step.begin)


def _with_track(page: PageDrawing, cells: Sequence[DrawnStep], at: int, words: str) -> PageDrawing:
    """Return a page with a bar below it, which says where in the run the iteration is that is shown."""
    top, each = page.height - 4, min(_CELL, (page.width - 2 * MARGIN) / len(cells))
    x, whole = MARGIN + each * at, each * len(cells)
    height = page.height + 16 + _TRACK + MARGIN - 4
    items = (
        Rectangle("page", 0, 0, page.width, height),
        *page.items[1:],
        TextLine("label", MARGIN, top + 8, words),
        Rectangle("cell", MARGIN, top + 16, whole, _TRACK, 3),
        Rectangle("band", min(x, MARGIN + whole - _LEAST_CELL), top + 16, max(each, _LEAST_CELL), _TRACK, 3),
    )
    return replace(page, height=height, items=items)


def _merged(pages: Sequence[PageDrawing]) -> Iterator[TimedShape]:
    """Yield the shapes of pages of one layout, those that stay for several steps once; the last ones are the whole."""
    for states in zip(*(page.items for page in pages), strict=True):
        begin = 0
        for shape, same in groupby(states):
            end = begin + len(list(same))
            yield TimedShape(shape, begin, end + (end == len(states)))
            begin = end


_LEAVING = (EdgeKind.PIECE, EdgeKind.ENDS)


def stepped_iterations(figure: Figure, trace: LoopTrace) -> SteppedDrawing:
    """Return the unrolled figure of a trace in steps."""
    layout = arranged(figure)
    page = composed(figure, layout)
    stack = _Stack(figure, layout)
    first = next(at for at, item in enumerate(page.items) if isinstance(item, Group))
    found = enumerate(stack.steps(layout), first)
    made = tuple(MadeShapes(at, at + 1, step) for at, step in found if step is not None)
    stages = {item.id: item.items[0] for item in page.items if isinstance(item, Group)}
    bands = []  # each across the lines before and behind an iteration or a gap
    for id, behind in zip(stack.ids, stack.widths(layout), strict=True):
        stage = stages[id]
        assert isinstance(stage, Rectangle)
        wide = stage.x + stage.width + behind * CELL + 4
        bands.append(Rectangle("band", 4, stage.y - 6, wide, stage.height + 12, 8))
    return stepped(page, StepTimes(tuple(_steps_and_gaps(trace)), made, tuple(bands)))


class _Stack:
    """The rows of the iterations and gaps of a layout, from the top."""

    def __init__(self, figure: Figure, layout: FigureLayout) -> None:
        self.ids = [cluster.id for cluster in figure.clusters_in[""]]
        stages = {*self.ids}
        rows: list[FrameShape | BoxShape] = [frame for frame in layout.frames if frame.cluster.id in stages]
        rows += [box for box in layout.boxes if box.node.kind is NodeKind.ELLIPSIS]
        self.rows = sorted((one.y, one.y + one.height) for one in rows)
        self._edge = max(one.x + one.width for one in rows)

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
        frames = [self._at(frame.y) for frame in layout.frames]
        boxes = [self._at(box.y) for box in layout.boxes]
        return [*frames, *(self._line(line) for line in layout.lines), *boxes]

    def _at(self, row: int) -> int | None:
        """Return the step of what begins in a row: above the stack none, below it the last."""
        return None if row < self.rows[0][0] else self._leaving(row)

    def _line(self, line: Polyline) -> int:
        """Return the step of a line: of the iteration that it enters, or of the one that adds it to an output."""
        top, bottom = min(part.y0 for part in line.segments), max(part.y1 for part in line.segments)
        if line.kind in _LEAVING:
            return self._leaving(top)
        return next((at for at, (_, end) in enumerate(self.rows) if bottom < end), len(self.rows) - 1)

    def _leaving(self, row: int) -> int:
        return max((at for at, (begin, _) in enumerate(self.rows) if begin <= row), default=0)


MOVING = "@media screen and (prefers-reduced-motion: no-preference)"
"""The readers for whom pictures move."""


class VisibleTimes(NamedTuple):
    """When the shapes of a class are visible: changes at times, as parts of the whole time, the first at 0."""

    name: str
    changes: tuple[tuple[float, bool], ...]


def visible_times(name: str, shown: Iterable[int], seconds: Sequence[float]) -> VisibleTimes:
    """Return the times of what is shown in some of the steps, which last so many seconds each."""
    total, chosen, changes, at, before = sum(seconds), set(shown), [], 0.0, None
    for index, duration in enumerate(seconds):
        now = index in chosen
        if now is not before:
            changes.append((at / total, now))
        at, before = at + duration, now
    return VisibleTimes(name, tuple(changes))


def motion_rules(times: Iterable[VisibleTimes], seconds: float, scope: str = "") -> str:
    """Return the style sheet that plays them for so many seconds, again and again; `scope` is a class ("": none).

    Names of its rules begin with the scope, so that several pictures can stand in one page.
    """
    frames, rules = [], []
    prefix, within = (f"{scope}-", f".{scope} ") if scope else ("", "")
    for one in times:
        steps = " ".join(f"{at:.3%} {{ visibility: {'visible' if on else 'hidden'} }}" for at, on in one.changes)
        frames.append(f"@keyframes {prefix}{one.name} {{ {steps} }}")
        rules.append(f"{within}.{one.name} {{ animation: {prefix}{one.name} {seconds:g}s step-end infinite }}")
    return "\n".join([*frames, f"{MOVING} {{", *rules, "}", ""])


def steps_of(picture: Picture) -> SteppedDrawing:
    """Return a picture in steps. Raise UsageError where it shows no run, none of its iterations, or has no room."""
    trace = picture.trace
    if trace is None:
        raise UsageError("steps need a run: --view unrolled or rolled, with inputs")
    if not trace.count:
        page = drawn(picture)
        return SteppedDrawing(page, (NOT_BEGUN,), tuple(TimedShape(item, 0, 2) for item in page.items))
    if not trace.iterations:
        raise UsageError(f"none of the iterations that are chosen ran ({trace.ended}), so there are no steps")
    if picture.page is not None and picture.times is not None:
        return stepped(picture.page, picture.times)
    is_body = picture.request.view is FigureView.ROLLED
    drawing = stepped_body(picture) if is_body else stepped_iterations(picture.figure, trace)
    room = room_of(picture.request)
    if room is None:
        return drawing
    page = on_page(drawing.page, room)
    ground, *shapes = drawing.shapes
    return SteppedDrawing(page, drawing.steps, (replace(ground, shape=page.items[0]), *shapes))


_FRAME = re.compile(r"[0-9]{4,}")


def check_format(format: FigureFormat) -> None:
    """Raise UsageError for a format that is no drawing."""
    if not format.is_drawing:
        drawings = enumerated([one.name for one in FORMATS.values() if one.is_drawing])
        raise UsageError(f"frames are drawings: {drawings}, not {format.name}")


def frames(picture: Picture, format: FigureFormat) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files, one at a time. Raise UsageError where there are no steps."""
    drawing = steps_of(picture)
    for index, step in enumerate(drawing.steps):
        page = replace(picture, page=drawing.at(index))
        if index:  # what is to be said of all was said of the first
            page = replace(page, request=replace(page.request, warn=unheard))
        yield frame_name(step, drawing.steps, format), page.written(format.name)


def frame_name(step: DrawnStep, steps: Sequence[DrawnStep], format: FigureFormat) -> str:
    """Return the name of a step's file; so many digits that names sort as steps do."""
    digits = max(4, len(str(steps[-1].begin)))
    return f"{step.begin:0{digits}}{format.kind.suffixes[0]}"


def other_frames(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the files of a folder that are named as frames of this kind but are none of these: of an earlier run."""
    suffix = Path(names[0]).suffix
    found = (one.name for one in folder.iterdir() if one.suffix == suffix and _FRAME.fullmatch(one.stem))
    return sorted(set(found) - set(names))


def made_folder(path: Path) -> Path:
    """Return the folder, which is made where there is none. Raise OutputError where that cannot be."""
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise OutputError(f"--frames {path}: that is a file, and frames are put into a folder") from None
    except OSError as error:
        raise OutputError(f"--frames {path}: the folder cannot be made: {error.strerror}") from None
    return path
