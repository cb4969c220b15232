"""Layout of the textbook's figure in points: columns are iterations, rows what is carried, sliced and joined.

A page that is too narrow is met by leaving out, never by smaller letters: decimals, iterations, pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.composing import (
    FormulaForm,
    LegendForm,
    Sample,
    end_bars,
    formula_line,
    formula_width,
    legend_drawn,
    shortened_heading,
)
from stepper.export.figures.drawn_graph import ValueSummary, shortened_names
from stepper.export.fonts import advance, wrapped
from stepper.export.options import Preset
from stepper.export.picture import FigureRequest
from stepper.export.styles import (
    POINTS,
    DrawnStep,
    MadeShapes,
    PageDrawing,
    Point,
    Rectangle,
    Shape,
    StepTimes,
    TextLine,
    polygon,
    stroke,
    text_width,
)
from stepper.export.textbook_lanes import (
    NUMBER_ALONE,
    CellText,
    LaneKind,
    Textbook,
    ValueLane,
    cell_texts,
    formula_text,
)
from stepper.ops.operands import shape_text
from stepper.tensors.number_text import decimal_text
from stepper.wording import counted, enumerated

LARGE = 8.0
SMALL = 7.0
"""Heights of text in points; nothing is smaller."""
WIDE = 340.0
"""Points from which on pictures, all outputs and the inputs that stay the same are drawn."""
_PITCH = 15.0
_MARGIN = 2.0
_SLIDE_MARGIN = 10.0
_SLIDE_HEIGHT = 9 / 16
"""Of its width."""
_HEADING = 12.0
"""Height of the title of a slide."""
_LINE = 8.5
"""From line to line in a box."""
_END = 25.5
_NARROW_END = 12.0
"""From the last box to the edge of what is drawn; less where no verdict stands before the mark."""
_STRIP = 15.0
_PICTURE = 54.0
_MOST_SPREAD = 26.0
"""Points that a gap is wider at most, so that the figure is as wide as the page."""
_TOOTH = 6.0
_DEPTH = 2.2
"""Teeth of a torn edge: their height, and how far they reach to both sides."""
_NARROW_NAMES = (11, 8, 6)
"""Letters of names on a narrow page; fewer where there is no room even for few iterations."""
_IN_BOX = 9.5
"""From the top of a small box to the base line of its number, above its lanes."""
_SMALL_CELL = 12.6
_SMALL_GAP = 8.5
_SMALL_HEIGHT = 40.0
_WIRE_BESIDE = 4.6
"""Points that a small box is wider for each wire beside the one in its middle."""
FORMULA = FormulaForm("formula", "index", LARGE, SMALL, 2.0, 10.5)
_LEGEND_FORM = LegendForm("aside", SMALL, 11, 4, 12)
MOST_SHOWN = 12
"""Iterations that are drawn at most."""
PAGE_WIDTH = 170 * 72 / 25.4
"""Points: the width of a page's text."""
_ON_SLIDE = 18 / SMALL
_ON_SCREEN = 11 / SMALL
"""Pixels a unit on a slide and on a page of a screen: what the smallest letters have there."""


class _Plan(NamedTuple):
    """The iterations drawn from the beginning and from the end, the decimals of numbers, and letters of a name.

    On a wide page names are whole. `is_dense`: boxes hold the numbers of their iterations and no words, and a carried
    value that is a piece of an output stands there alone.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    decimals: int
    letters: int
    is_dense: bool = False

    @property
    def shown(self) -> tuple[int, ...]:
        return (*self.first, *self.last)

    @property
    def hidden(self) -> range:
        """The iterations in between that are not drawn."""
        return range(self.first[-1] + 1, self.last[0]) if self.last else range(-1, -1)


def textbook_page(
    book: Textbook, request: FigureRequest, description: str, ends: tuple[int, int] | None, width: float | None
) -> tuple[PageDrawing, StepTimes]:
    """Return the figure for a request in a width in points (None: as wide as its iterations), and its steps.

    `ends` is how many of the first and of the last iterations it has at most (None: as many as have room). Raise
    UsageError, with the least width, where it does not fit.
    """
    is_slide, legend = request.preset is Preset.SLIDE, request.legend
    unit = {Preset.SLIDE: _ON_SLIDE * POINTS, Preset.DOCS: _ON_SCREEN * POINTS}.get(request.preset or Preset.PAPER, 1.0)
    plans = _plans(book.count, ends)
    texts = tuple(_with_texts(book, plans, is_wide=width is None or width / unit >= WIDE))
    if width is None:  # as usual, or what the iterations need at least
        pages = (_PageLayout(book, book.outputs, *one, PAGE_WIDTH) for one in texts if one[0] is plans[0])
        width = max(PAGE_WIDTH, min(page.used for page in pages)) * unit
    width /= unit
    outputs = book.outputs if width >= WIDE else book.outputs[:1]
    heading = request.title or ""
    if is_slide:
        heading = f"{book.title}, unrolled" if request.title is None else heading
        heading = shortened_heading(heading, _HEADING, width - 2 * _SLIDE_MARGIN)
    for plan, text in texts:
        for drawn, has_legend in _forms(outputs, is_slide=is_slide, legend=legend):
            page = _PageLayout(book, drawn, plan, text, width, is_slide=is_slide)
            if page.used > width:
                break
            drawing = page.drawing(heading, description, legend=has_legend)
            if is_slide and drawing.height > width * _SLIDE_HEIGHT + 0.1:
                continue
            if is_slide and page.free > 1:  # in the middle below the title
                drawing = page.drawing(heading, description, legend=has_legend, space=page.free / 2)
            left_out = page.left_out if has_legend == legend else (*page.left_out, "the legend")
            if left_out:
                request.warn(f"not drawn: {'; '.join(left_out)}")
            return replace(drawing, points=unit), page.times
        else:
            if not text.has_types:
                raise UsageError(
                    f"the figure does not fit a slide: it has {len(book.carried)} carried values, and needs "
                    f"{drawing.height / width / _SLIDE_HEIGHT:.1f} times its height. --preset docs has room"
                )
    least = _PageLayout(book, outputs, plans[-1], text, width, is_slide=is_slide).used * unit
    raise UsageError(
        f"the figure does not fit into {width * unit * 25.4 / 72:.0f} mm at {SMALL * unit:.3g} points; "
        f"the least width is {math.ceil(least * 25.4 / 72)} mm"
    )


def _forms(outputs: Sequence[ValueLane], *, is_slide: bool, legend: bool) -> Iterator[tuple[Sequence[ValueLane], bool]]:
    """Yield the outputs that are drawn, and whether the legend is: on a slide, which has a height, fewer and fewer."""
    yield outputs, legend
    if is_slide:
        yield from ((outputs[:count], legend) for count in range(len(outputs) - 1, 0, -1))
        if legend:
            yield outputs[:1], False


def _height(book: Textbook, words: int) -> float:
    """Return the height of the boxes, so that lanes and lines have room."""
    return max(_PITCH * (len(book.carried) + bool(book.conditions) + 1), 34.0, _LINE * words + 7)


def _with_texts(book: Textbook, plans: Sequence[_Plan], *, is_wide: bool) -> Iterator[tuple[_Plan, CellText]]:
    """Yield the plans, each with what may stand in the boxes, the most first: no iteration is left out for it."""
    room = int((_height(book, 0) - 7) / _LINE) - 1
    formula = formula_text(book.work, SMALL, room)
    texts = (*([] if formula is None else [formula]), *cell_texts(book.work, room - bool(book.branch), is_wide=is_wide))
    for plan in plans:
        yield from ((plan, text) for text in ((NUMBER_ALONE,) if plan.is_dense else texts))


def ends_of(numbers: Sequence[int], count: int) -> tuple[int, int] | None:
    """Return how many of the first and of the last iterations these are; None where they are others, or not of both."""
    first = next((at for at, number in enumerate(numbers) if at != number), len(numbers))
    last = len(numbers) - first
    if first == count:
        return first, 0
    is_both = first and last and list(numbers[first:]) == list(range(count - last, count))
    return (first, last) if is_both else None


def _plans(count: int, most: tuple[int, int] | None = None) -> list[_Plan]:
    """Return the ways to draw so many iterations, the fullest first; `most` of the first and of the last ones."""
    ends: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    wanted = MOST_SHOWN if most is None else sum(most)
    if count <= wanted:
        ends.append((tuple(range(count)), ()))
    for shown in range(min(wanted, count - 1), 1, -1):
        tail = max(1, shown * 2 // 5)
        if most is not None:
            tail = max(1, min(most[1], max(tail, shown - most[0])))
        ends.append((tuple(range(shown - tail)), tuple(range(count - tail, count))))
    whole = [pair for pair in ends if not pair[1]]
    enough = [pair for pair in ends if pair[1] and len(pair[0]) + len(pair[1]) >= min(3, count)]
    usual, *fewer = _NARROW_NAMES
    found = [
        _Plan(first, last, decimals, usual, is_dense)
        for pairs in (whole, enough)
        for is_dense in (False, True)
        for decimals in (2, 1)
        for first, last in pairs
    ]
    found += [_Plan(first, last, decimals, usual) for decimals in (1, 0) for first, last in ends]
    found += [_Plan(first, last, 0, letters, is_dense) for letters in fewer for is_dense in (False, True)
              for first, last in ends]  # fmt: skip
    return found


class _PageLayout:
    """Lay out the figure in one way.

    Places along time are `u` from 0; their `x` depends on the direction.
    """

    def __init__(
        self,
        book: Textbook,
        outputs: Sequence[ValueLane],
        plan: _Plan,
        text: CellText,
        width: float,
        *,
        is_slide: bool = False,
    ) -> None:
        self.book, self.outputs, self.plan, self.text, self.width = book, outputs, plan, text, width
        self.hidden, self.is_dense = plan.hidden, plan.is_dense
        self.is_wide, self.is_slide, self.decimals = width >= WIDE, is_slide, dict[int, int]()
        self.margin = _SLIDE_MARGIN if is_slide else _MARGIN
        self.page_room = width - 2 * self.margin
        strips = (*book.sliced, *outputs)
        lanes = (*book.carried, *strips)
        names = [lane.name for lane in lanes]
        self.names = dict(zip(names, names, strict=True)) if self.is_wide else shortened_names(names, plan.letters)
        self.label = 4 + max(
            *(text_width("strong", word) for word in ("goes on", *map(self._name, lanes))),
            *(advance(word, SMALL) for word in ("iteration", *(lane.form for lane in strips))),
        )
        self.last_told = [
            lane for lane in book.outputs if not self.is_wide and lane not in outputs and lane.kind is LaneKind.LAST
        ]
        drawn = {lane.name for lane in outputs}
        self.told = {lane.name for lane in book.carried if self.is_dense and lane.told_by in drawn}
        self.begin, self.gap = self._gaps()
        style, padding = ("plain", 3.0) if self.is_dense else ("number", 6.0)
        cells = [
            text_width(style, self._text(lane, k)) + padding for lane in strips for k in plan.shown if k in lane.values
        ]
        self.cell = self._small_cell() if self.is_dense else self._usual_cell()
        pictured = _PICTURE + 6 if any(map(self._is_pictured, strips)) else 0.0
        pitch = max([self.cell + self.gap, *cells, pictured])
        self.gap = pitch - self.cell
        self.ending = self._least_ending()
        tear = 46.0 if self.is_wide else 36.0 if plan.letters == _NARROW_NAMES[0] else 30.0
        self.tear = tear if plan.last else 0.0
        self.between = max(self.begin, 20.0)
        self.places: dict[int, float] = {}
        self.torn = (math.inf, math.inf)
        self._place(pitch)
        self.label += self.margin - _MARGIN
        self.used = self.label + self.end + self.ending + self.margin
        gaps = max(len(plan.shown) - bool(plan.last), 0) + 2 * bool(plan.last)
        if gaps and self.used < width:  # the rest of the page goes to the gaps
            more = min((width - self.used) / gaps, _MOST_SPREAD)
            self.gap, self.begin, self.between = self.gap + more, self.begin + more, self.between + more
            self._place(pitch + more)
        self.room = self.end + self.ending
        self.free, self.shaded = 0.0, ""
        self.bus: float | None = None
        self.mark_above = (0.0, 0.0)
        self.items: list[Shape] = []
        self.steps = [DrawnStep(k, k + 1) for k in plan.shown]
        if plan.hidden:
            self.steps.insert(len(plan.first), DrawnStep(plan.hidden.start, plan.hidden.stop, is_gap=True))
        self.made: list[MadeShapes] = []

    def _gaps(self) -> tuple[float, float]:
        """Return the least width of the gap before the first box, and of those between boxes."""
        book, is_dense = self.book, self.is_dense
        untold = [lane for lane in book.carried if lane.name not in self.told]
        words = [advance(self._text(lane, k), SMALL) for lane in untold for k in lane.values]
        verdict = advance("false", SMALL) + 3 if book.conditions or not is_dense else 0.0
        gap = max([_SMALL_GAP if is_dense else 18.0, verdict, *(word + 7 for word in words)])
        first = [advance(self._text(lane, 0), SMALL) + 7 for lane in book.carried if 0 in lane.values]
        return max([gap, *first]), gap

    def _is_pictured(self, lane: ValueLane) -> bool:
        return self.is_wide and lane.is_vector

    def _least_ending(self) -> float:
        """Return what is behind the last box at least: room for its verdict, and for the mark beside its slices."""
        if not self.is_dense:
            return _END
        k, least = self.book.count - 1, _END if self.book.conditions else _NARROW_END
        for lane in (*self.book.sliced, *self.outputs):
            if k in lane.values:
                width = max(advance(self._text(lane, k), SMALL), _PICTURE if self._is_pictured(lane) else 0.0)
                least = max(least, (width - self.cell) / 2 + _NARROW_END - 3)
        return least

    def _usual_cell(self) -> float:
        """Return the width of a box with its words."""
        text = self.text
        body = max(
            text_width("number", text.title),
            *(formula_width(line, FORMULA) for line in text.formula),
            *(advance(word, SMALL) for word in text.lines),
        )
        return max(body + (6 if text.formula else 2.4), 42.0 if self.is_wide else 22.0)

    def _small_cell(self) -> float:
        """Return the width of a box with a number, and with the wires that it has."""
        sides = (advance(side, SMALL) + 2.4 for side in self.book.sides.values())
        wires = max(len(self.outputs) - 1, int(self.is_wide and bool(self.book.invariant)))
        number = text_width("number", str(self.book.count)) + 4.2
        return max(_SMALL_CELL + _WIRE_BESIDE * wires, number, *sides)

    def _place(self, pitch: float) -> None:
        """Place the iterations along time."""
        at = self.begin
        for k in self.plan.shown:
            if k == self.hidden.stop:
                begin = at - self.gap + self.between
                self.torn = (begin, begin + self.tear)
                at = self.torn[1] + self.between
            self.places[k] = at
            at += pitch
        self.end = at - self.gap

    @property
    def times(self) -> StepTimes:
        """When the items of the drawing come to be; its first one is the page."""
        return StepTimes(tuple(self.steps), tuple(self.made), self.bands)

    @contextmanager
    def _made_in(self, iteration: int, *, known: bool = False) -> Iterator[None]:
        """Have what is drawn come to be in the step of an iteration; `known`: its texts are known before."""
        first = len(self.items)
        yield
        step = next((at for at, one in enumerate(self.steps) if iteration < one.end), max(len(self.steps) - 1, 0))
        self.made.append(MadeShapes(first + 1, len(self.items) + 1, step, known))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts that are not drawn, in words."""
        invariant = "" if self.is_wide else ", ".join(self.book.invariant)
        hidden = (lane.name for lane in self.book.outputs if lane not in (*self.outputs, *self.last_told))
        parts = (
            f"iterations {self.hidden[0]} to {self.hidden[-1]}" if self.hidden else "",
            ", ".join(hidden),
            invariant and f"what is the same in each iteration ({invariant})",
        )
        return tuple(filter(None, parts))

    # --- drawing ---------------------------------------------------------------------------------------------------

    def drawing(self, title: str, description: str, *, legend: bool, space: float = 0) -> PageDrawing:
        """Return the drawing; `space` is left free below the title."""
        book, plan, y = self.book, self.plan, self.margin
        self.items, self.made, self.bus, self.shaded = [], [], None, ""
        if title:
            self._note("slide" if self.is_slide else "number", self.margin, y + 10, title)
            y += 22 if self.is_slide else 14
        alone = len(book.sliced) == 1
        told = [
            lane.course if alone else f"{self.names[lane.name]}: {lane.course}" for lane in book.sliced if lane.course
        ]
        y = self._below("aside", told, y + space)
        with self._made_in(book.count, known=True):
            y = self._headline(y)
        above = self.tear_top = y
        if book.is_backward and book.sliced:  # the last slice is the first
            self._note("of-input", self.margin, y + 7, "read")
            self._arrow("input-wire", 0, self.end, y + 4.6)
            y += 11
        for lane in book.sliced:
            y = self._strip(lane, y, above=True)
        y = top = self._numbers(self._invariants(y))
        if not book.sliced:
            self.tear_top = top - 2
        bottom = top + _height(book, len(self.text.words) + bool(book.branch))
        bottom = max(bottom, top + _SMALL_HEIGHT) if self.is_dense else bottom
        self._cells(top, bottom)
        for index, lane in enumerate(book.carried, 1):
            self._carried(lane, top + _PITCH * index)
        if book.conditions:
            self._condition(top + _PITCH * (len(book.carried) + 1))
        self.items += end_bars(self._x(self.room - 7), self._x(self.room - 4), top, bottom, "end-")
        self.items.append(stroke("hair", self.mark_above, (self.mark_above[0], top - 2)))
        y = self._output_rows(bottom)
        for side in self.torn if plan.last else ():
            teeth = range(math.floor((y - 3 - self.tear_top) / _TOOTH) + 1)
            self._line("tear", *((side + _DEPTH * (at % 2 * 2 - 1), self.tear_top + at * _TOOTH) for at in teeth))
        self.bands = tuple(self._band(step, above - 2, y - 2) for step in self.steps)
        y = self._last_values(y)
        lowest = self.width * _SLIDE_HEIGHT - self.margin if self.is_slide else math.inf
        y = self._below("aside", (book.course,), self._formula(y, lowest), lowest)
        lost = [(f"back edge {edge.name}", f"has no effect: {edge.reason}") for edge in book.without_effect]
        y = self._below("aside", [_fitting((text,), self.page_room) for texts in lost for text in texts], y)
        y = self._below("aside", book.notes, y)
        y = self._legend(y + 3) if legend else y
        height = max(y, self.width * _SLIDE_HEIGHT) if self.is_slide else y
        self.free = height - y
        page = Rectangle("page", 0, 0, self.width, height)
        return PageDrawing(self.width, height, title or book.title, description, (page, *self.items))

    def _band(self, step: DrawnStep, top: float, bottom: float) -> Rectangle:
        """Return the band of a step: through slice, iteration and piece."""
        begin, end = self.torn if step.is_gap else (self.places[step.begin], self.places[step.begin] + self.cell)
        beside = 0.0 if step.is_gap else min(self.gap / 2 - 0.6, 4.0)  # clear of the values that are carried
        x0, x1 = sorted((self._x(begin - beside), self._x(end + beside)))
        return Rectangle("band", x0, top, x1 - x0, bottom - top, 2)

    def _x(self, u: float) -> float:
        """Return where a place of time is on the page."""
        return self.label + (self.room - u if self.book.is_backward else u)

    def _box(self, style: str, u0: float, u1: float, y: float, height: float, corner: float = 0) -> None:
        x0, x1 = sorted((self._x(u0), self._x(u1)))
        self.items.append(Rectangle(style, x0, y, x1 - x0, height, corner))

    def _line(self, style: str, *points: Point) -> None:
        self.items.append(stroke(style, *((self._x(u), y) for u, y in points)))

    def _note(self, style: str, x: float, y: float, text: str, anchor: str = "start") -> None:
        if style == FORMULA.style:
            self.items.append(formula_line(x, y, text, FORMULA, is_centred=anchor == "middle"))
        else:
            self.items.append(TextLine(style, x, y, text, anchor))

    def _words(self, style: str, u: float, y: float, text: str) -> None:
        self._note(style, self._x(u), y, text, "middle")

    def _arrow(self, style: str, u0: float, u1: float, y: float) -> None:
        """Draw a line along time with its head."""
        self._line(style, (u0, y), (u1 - 4, y))
        back = self._x(u1 - 5)
        self.items.append(polygon(f"{style}-tip", (self._x(u1), y), (back, y - 2.1), (back, y + 2.1)))

    def _arrow_down(self, style: str, x: float, y0: float, y1: float) -> None:
        self.items.append(stroke(style, (x, y0), (x, y1 - 4)))
        self.items.append(polygon(f"{style}-tip", (x, y1), (x - 2.1, y1 - 5), (x + 2.1, y1 - 5)))

    def _headline(self, y: float) -> float:
        """Write why the run ended, above the end mark."""
        text = _fitting((self.book.ended, *self.book.ended_in_short), self.page_room)
        mark, wide = self._x(self.room - 4), text_width("strong", text)
        left, right = self.margin, self.width - self.margin
        if self.book.is_backward:
            self._note("strong", max(left, min(mark - 2, right - wide)), y + 7, text)
        else:
            self._note("strong", min(right, max(mark + 2, left + wide)), y + 7, text, "end")
        self.mark_above = (mark, y + 9.5)
        return y + 12

    def _invariants(self, y: float) -> float:
        """Draw a bus of what is the same in each iteration."""
        if not self.book.invariant or not self.is_wide:
            return y
        mark = self._x(self.room - 4)  # the wire from the words on the end goes down to its mark
        room = (self.width - self.margin if self.book.is_backward else mark - 4) - self.label
        text = _fitting((f"the same in each iteration: {', '.join(self.book.invariant)}",), room)
        self._note("of-input", self.label, y + 7, text)
        self.bus = y + 11
        return y + 15

    def _numbers(self, y: float) -> float:
        is_dense = self.is_dense
        base = y + (_IN_BOX + 2 if is_dense else 8)
        self._note("aside", self.margin, base, "iteration")
        for k, u in () if is_dense else self.places.items():
            self._words("number", u + self.cell / 2, y + 8, str(k))
        if self.hidden:
            begin, end = self.hidden[0], self.hidden[-1]
            self._words("aside", sum(self.torn) / 2, base, str(begin) if begin == end else f"{begin} to {end}")
        return y + (2 if is_dense else 12)

    def _cells(self, top: float, bottom: float) -> None:
        beside = 3.4 if self.is_dense else 7  # where the wire of what is the same each time enters a box
        for k, u in self.places.items():
            side, words = self.book.sides.get(k), self.text.words
            first = (top + bottom) / 2 - 4 * (len(words) - (1 if side else 2))
            if self.is_dense:
                words, first = (("number", str(k)),), top + _IN_BOX
            elif self.text.formula:
                first = (top + bottom - _LINE * (len(words) - 1 + bool(side))) / 2 + 2.4
            with self._made_in(k, known=True):
                self._box("cell", u, u + self.cell, top, bottom - top, 3)
                for index, (style, word) in enumerate(words):
                    self._words(style, u + self.cell / 2, first + _LINE * index, word)
                if self.bus is not None:
                    self._arrow_down("input-wire", self._x(u + self.cell - beside), self.bus, top)
            if side:
                with self._made_in(k):
                    self._words("aside", u + self.cell / 2, first + _LINE * len(words), side)
        if self.bus is not None:
            self._line("input-wire", (0, self.bus), (max(self.places.values()) + self.cell - beside, self.bus))
        if self.hidden:
            middle = (top + bottom) / 2
            self._words("number", sum(self.torn) / 2, middle, f"{len(self.hidden):,}")
            for index, word in enumerate(["not drawn"] if self.is_wide else ["not", "drawn"]):
                self._words("aside", sum(self.torn) / 2, middle + 8.5 + 8 * index, word)

    def _spans(self) -> Iterator[tuple[float, float, int, bool]]:
        """Yield the gaps between cells: begin, end, the iteration that is entered, and whether a cell follows."""
        begin, entered = 0.0, 0
        for k in self.plan.shown:
            if entered != k:
                yield begin, self.torn[0] - _DEPTH, entered, False
                begin = self.torn[1] + _DEPTH
            yield begin, self.places[k], k, True
            begin, entered = self.places[k] + self.cell, k + 1

    def _carried(self, lane: ValueLane, y: float) -> None:
        self._note("of-carried", self.margin, y + 2.4, self._name(lane))
        for begin, end, k, has_cell in self._spans():
            with self._made_in(k):
                if has_cell:
                    self._arrow("lane", begin, end, y)
                else:
                    self._line("lane", (begin, y), (end, y))
                if k in lane.values and (not k or k == self.hidden.stop or lane.name not in self.told):
                    above = 3.2 if lane.grows else 2.2  # brackets reach below the line of letters
                    self._words(_style(lane, k), (begin + end) / 2 - 1.5, y - above, self._text(lane, k))

    def _condition(self, y: float) -> None:
        self._note("strong", self.margin, y + 2.4, "goes on")
        for begin, end, k, _ in self._spans():
            with self._made_in(k):
                self._line("dots", (begin, y), (end, y))
                verdict = self.book.starts if k == 0 else self.book.conditions.get(k - 1, True)
                if verdict is not None:
                    self._words("plain", (begin + end) / 2 - 0.8, y - 2.2, str(bool(verdict)).lower())
        for k in self.plan.shown[-1:]:
            with self._made_in(k):
                self._line("dots", (self.end, y), (self.end + self.ending - 8.5, y))
                if k in self.book.conditions:
                    self._words("plain", self.end + 9, y - 2.2, str(self.book.conditions[k]).lower())

    def _output_rows(self, bottom: float) -> float:
        """Draw the outputs below the boxes, and the wires to them; return where the next row begins."""
        y = bottom + 12
        tops = []
        for row, lane in enumerate(self.outputs):
            shown = self.plan.shown[-1:] if lane.kind is LaneKind.LAST else self.plan.shown
            for k in shown:  # the strips, which are drawn later, hide what is behind them
                with self._made_in(k):
                    x = self._x(self.places[k] + self.cell / 2 + self._beside(row))
                    self._arrow_down("output-wire", x, bottom, y)
            tops.append(y)
            y += self._high(lane) + 9 + (_LINE if lane.places else 0)
        for lane, top in zip(self.outputs, tops, strict=True):
            self._strip(lane, top, above=False)
        return y

    def _last_values(self, y: float) -> float:
        """Write the last values that have no strip on a narrow page; return where the next row begins."""
        k = self.book.count - 1
        for lane in self.last_told:
            y += 9
            self._note("of-output", self.margin, y, lane.name)
            told = self._text(lane, k)
            form = f" ({lane.form})" if lane.form else ""
            texts = (f"{told}{form}, the last value", f"{told}, the last value", told)
            shown = _fitting(texts, self.width - self.margin - self.label, "plain")
            with self._made_in(k):
                self._note(_style(lane, k), self.label, y, shown)
        return y + 4 if self.last_told else y

    def _beside(self, row: int) -> float:
        """Return how far from the middle of a box the wire to a row leaves it: the first one there, others aside."""
        most = self.cell / 2 - (3.4 if self.is_dense else 4)
        beside = most * (1 - (row - 1) // 2 / (len(self.outputs) // 2)) if row else 0.0
        return beside if row % 2 else -beside

    def _high(self, lane: ValueLane) -> float:
        """Return the height of a strip."""
        return _STRIP + (4 if self._is_pictured(lane) else 0)

    def _strip(self, lane: ValueLane, y: float, *, above: bool) -> float:
        """Draw a tensor along its axis, a cell for each iteration; return where the next row begins."""
        kind, plan, high = "input" if above else "output", self.plan, self._high(lane)
        if lane.places:
            y += _LINE if above else 0
            base = y - 2.5 if above else y + high + _LINE - 1
            self._note("aside", self.margin, base, "slice" if above else "piece")
            for k, u in self.places.items():
                self._words("aside", u + self.cell / 2, base, lane.places.get(k, ""))
        self._note(f"of-{kind}", self.margin, y + high / 2 - 0.8, self._name(lane))
        self._note("aside", self.margin, y + high / 2 + 7, self._form(lane))
        is_last = lane.kind is LaneKind.LAST
        most = self.room - 7.5 if above else self.room  # beside the wire to the mark
        for k in plan.shown[-1:] if is_last else plan.shown:
            middle = self.places[k] + self.cell / 2
            begin, end = self._strip_ends(k, middle, most, is_last=is_last)
            with self._made_in(k, known=above):
                self._box(f"{kind}-strip", begin, end, y, high)
                self._value(lane, k, middle, y, high)
                if above:
                    self._arrow_down("input-wire", self._x(middle), y + high, y + high + 9)
            if is_last:
                self._last_value_told(begin - 4, y + high / 2 + 2.6)
        if self.hidden and not is_last:
            with self._made_in(self.hidden[0], known=above):
                self._between(lane, y + high / 2 + 2.6)
        return y + high + 10

    def _strip_ends(self, k: int, middle: float, most: float, *, is_last: bool) -> tuple[float, float]:
        """Return where the cell of an iteration begins and ends in a strip; behind the last iteration the page ends."""
        half = (self.cell + self.gap) / 2
        if is_last:
            half = min(half, self.room - middle)
            return middle - half, middle + half
        begin = self.torn[1] + _DEPTH if k == self.hidden.stop else middle - half
        return begin, self.torn[0] - _DEPTH if k == self.hidden.start - 1 else min(middle + half, most)

    def _last_value_told(self, beside: float, y: float) -> None:
        """Write beside the value of the last iteration what it is, where there is room."""
        said = "last value"
        wide = advance(said, SMALL)
        if self.plan.last and beside - wide < self.torn[1] + _DEPTH + 2:
            beside = self.torn[0] - _DEPTH - 2  # no words on the torn edge
        if beside >= wide:
            self._note("aside", self._x(beside), y, said, "start" if self.book.is_backward else "end")

    def _value(self, lane: ValueLane, k: int, u: float, y: float, high: float) -> None:
        value = lane.values.get(k)
        if value is None:
            return
        base = y + high / 2 + 2.8
        if self._is_pictured(lane) and value.grid is not None and len(value.grid) == 1:
            self._shades(lane, value.grid[0], self._x(u) - _PICTURE / 2, y + 2.5)
            base = y + high - 3
        usual = "plain" if lane.is_vector or self.is_dense else "number"
        self._words(_style(lane, k, usual), u, base, self._text(lane, k))

    def _shades(self, lane: ValueLane, cells: Sequence[float], left: float, y: float) -> None:
        """Draw a row of elements, each as dark as its magnitude beside the largest that is drawn of the lane."""
        kind = "input" if lane.kind is LaneKind.SLICED else "output"
        self.shaded = self.shaded or kind
        grids = (lane.values[k].grid or ((),) for k in self.places if k in lane.values)
        largest = max((abs(cell) for grid in grids for cell in grid[0] if math.isfinite(cell)), default=0.0) or 1.0
        wide = _PICTURE / len(cells)
        for index, cell in enumerate(cells):
            style, shade = "fault-shade", 1.0
            if math.isfinite(cell):
                style, shade = f"{kind}-shade", max(0.04, abs(cell) / largest)
            self.items.append(Rectangle(style, left + index * wide, y, wide, 6, opacity=shade))
        self.items.append(Rectangle(f"{kind}-frame", left, y, _PICTURE, 6))

    def _between(self, lane: ValueLane, y: float) -> None:
        """Write into the tear between which numbers the pieces that are not drawn are, or how many these are."""
        hidden = self.hidden
        values = [lane.values[k] for k in hidden if k in lane.values]
        pieces = counted(len(hidden), "piece")
        forms = [[pieces], pieces.split()]
        found = [None if one.statistics is None else one.statistics.min for one in values]
        numbers = [one for one in found if isinstance(one, (int, float)) and math.isfinite(one)]
        if len(numbers) == len(hidden) and not lane.is_vector:
            low, high = (decimal_text(bound, self._decimals(lane)) for bound in (min(numbers), max(numbers)))
            forms.insert(0, [low, f"to {high}"])
        room = self.tear - 6
        lines = next((one for one in forms if all(advance(line, SMALL) <= room for line in one)), forms[-1])
        for index, line in enumerate(lines):
            self._words("aside", sum(self.torn) / 2, y + 8 * index - 4 * (len(lines) - 1), line)

    def _formula(self, y: float, lowest: float) -> float:
        """Write the equations of the body, or the types of its operations, unless they stand in its box.

        They end above `lowest` with a legend below them. Return as others.
        """
        work = self.book.work
        if self.is_dense and work.cell is not None:  # its box has no room for the name
            told = f"body: {work.cell.type} of {counted(work.cell.units, 'unit')}"
            y = self._below("plain", (told,), y, lowest)
        formula = () if self.text.formula else work.formula
        if not formula and not self.text.has_types:
            return self._below("plain", (f"body: {work.types_told}",), y, lowest, behind=",")
        return self._below(FORMULA.style, formula, y, lowest)

    def _below(
        self, style: str, texts: Sequence[str], y: float, lowest: float = math.inf, *, behind: str = ""
    ) -> float:
        """Write lines that end above `lowest` with a legend below them, or none; return where the next row begins.

        `behind` is the sign behind which alone they break.
        """
        is_formula = style == FORMULA.style
        size, pitch, free = (FORMULA.size, FORMULA.line, 4) if is_formula else (SMALL, 9, 3)
        lines = [line for text in texts for line in wrapped(text, self.page_room, size, behind=behind)]
        if not lines or y + pitch * len(lines) + 2 * _LEGEND_FORM.row > lowest:
            return y
        for line in lines:
            y += pitch
            self._note(style, self.margin, y, line)
        return y + free

    def _legend(self, y: float) -> float:
        """Explain the lines that occur."""
        book, carried = self.book, self.book.carried
        told = enumerated(sorted({lane.told_by for lane in carried if lane.name in self.told}))
        joined = any(lane.kind is LaneKind.JOINED for lane in self.outputs)
        entries = (
            (carried, Sample(16, _lane_sample, f"carried: what is in {told}" if told else "carried")),
            (book.conditions, Sample(22, _condition_sample, "continues while true, else ends")),
            (book.sliced, Sample(14, partial(_strip_sample, style="input-strip"), "sliced")),
            (joined, Sample(14, partial(_strip_sample, style="output-strip"), "output, piece by piece")),
            (self.plan.last, Sample(12, _torn_sample, "iterations not drawn")),
            (self.shaded, Sample(24, partial(_shades_sample, kind=self.shaded), "elements: the stronger, the larger")),
            (any(map(_has_norm, carried)), Sample(0, lambda _x, _y: (), "|x|: L2 norm of x")),
            (book.branch, Sample(0, lambda _x, _y: (), f"then, else: side of {book.branch} that ran")),
        )
        samples = [sample for is_there, sample in entries if is_there]
        shapes, bottom = legend_drawn(samples, self.margin, y, self.page_room, _LEGEND_FORM)
        self.items += shapes
        return bottom + 1

    # --- texts -----------------------------------------------------------------------------------------------------

    def _name(self, lane: ValueLane) -> str:
        """Return the name of a lane, shorter on a narrow page; of carried tensors their norm is drawn."""
        name = self.names[lane.name]
        return f"|{name}|" if _has_norm(lane) else name

    def _form(self, lane: ValueLane) -> str:
        """Return what stands below the name of a strip: also what it is cut from, where there is room beside others."""
        longer = f"← {lane.origin}, {lane.form}"
        has_room = self.is_wide and advance(longer, SMALL) <= self.label - 4 - (self.margin - _MARGIN)
        return longer if lane.origin and lane.form and has_room else lane.form

    def _text(self, lane: ValueLane, k: int) -> str:
        if lane.grows:
            return shape_text(lane.values[k].shape)
        return value_text(lane.values[k], self._decimals(lane), is_piece=lane.kind is not LaneKind.CARRIED)

    def _decimals(self, lane: ValueLane) -> int:
        """Return the decimals of a lane: of pieces on a wide page as many as tell its numbers apart, 5 at most."""
        if lane.is_whole:
            return 0
        if not self.is_wide or lane.is_vector or lane.kind is LaneKind.CARRIED:
            return self.plan.decimals
        if id(lane) not in self.decimals:
            numbers = {value.statistics.min for value in lane.finite if value.statistics is not None}
            telling = (
                decimals
                for decimals in range(self.plan.decimals, 5)
                if len({value_text(value, decimals, is_piece=True) for value in lane.finite}) == len(numbers)
            )
            self.decimals[id(lane)] = next(telling, 5)
        return self.decimals[id(lane)]


def _has_norm(lane: ValueLane) -> bool:
    """True if the L2 norms of a lane's values are drawn: they are carried, and numbers."""
    return lane.kind is LaneKind.CARRIED and lane.is_vector and not lane.grows and lane.has_numbers


def _style(lane: ValueLane, k: int, usual: str = "plain") -> str:
    """Return the style of a value: another one where an element is not finite."""
    found = lane.values[k].statistics if k in lane.values else None
    return "broken" if found is not None and (found.nan or found.infinite) else usual


def _fitting(texts: Sequence[str], room: float, style: str = "strong") -> str:
    """Return the first text that fits; where none does the last one, shortened at its end."""
    found = next((one for one in texts if text_width(style, one) <= room), None)
    if found is not None:
        return found
    found = texts[-1]
    while found and text_width("strong", f"{found}…") > room:
        found = found[:-1]
    return f"{found.rstrip(' ,;:')}…"


def _lane_sample(x: float, base: float) -> list[Shape]:
    y, tip = base - 2.5, x + 16
    head = polygon("lane-tip", (tip, y), (tip - 5, y - 2.1), (tip - 5, y + 2.1))
    return [stroke("lane", (x, y), (tip - 4, y)), head]


def _condition_sample(x: float, base: float) -> list[Shape]:
    marks = end_bars(x + 17.5, x + 20.5, base - 7, base + 1.5, "end-")
    return [stroke("dots", (x, base - 2.5), (x + 15, base - 2.5)), *marks]


def _strip_sample(x: float, base: float, *, style: str) -> list[Shape]:
    return [Rectangle(style, x + at, base - 6, 7, 6) for at in (0, 7)]


def _shades_sample(x: float, base: float, *, kind: str) -> list[Shape]:
    shades = (0.04, 0.3, 0.65, 1.0)
    found: list[Shape] = [
        Rectangle(f"{kind}-shade", x + 6 * at, base - 6, 6, 6, opacity=shade) for at, shade in enumerate(shades)
    ]
    return [*found, Rectangle(f"{kind}-frame", x, base - 6, 24, 6)]


def _torn_sample(x: float, base: float) -> list[Shape]:
    heights = (base - 7.5, base - 4.5, base - 1.5, base + 1.5)
    return [
        stroke("tear", *((x + at + (0 if index % 2 else 3.4), y) for index, y in enumerate(heights))) for at in (1, 7)
    ]


def value_text(value: ValueSummary, decimals: int, *, is_piece: bool = False) -> str:
    """Return a value in a word: a scalar itself, a carried tensor's norm, of a piece its largest element and place.

    Of several booleans how many are true.
    """
    found = value.statistics
    if found is not None and value.type == "boolean" and found.size > 1:
        return "all true" if not found.zeros else f"{found.size - found.zeros} true"
    if found is None or value.type in ("boolean", "string"):
        return value.numbers or value.described
    if found.nan or found.infinite:
        letters = [word for word, count in (("NaN", found.nan), ("Inf", found.infinite)) if count]
        return letters[0] if found.size == 1 else f"{found.nan + found.infinite} {letters[0]}"
    if found.size == 1:
        return decimal_text(found.min, decimals) if isinstance(found.min, (int, float)) else value.numbers
    if found.size == 0:
        return "empty"
    if is_piece:
        place = "" if found.argmax is None else f" at {found.argmax}"
        return f"{decimal_text(found.max, decimals)}{place}" if found.max is not None else value.described
    return decimal_text(found.norm, decimals) if found.norm is not None else value.described
