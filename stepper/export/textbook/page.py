"""Layout of the textbook's figure in points: columns are iterations, rows what is carried, sliced and joined.

A page that is too narrow is met by leaving out, never by smaller letters: decimals, iterations, pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stepper.errors import UsageError
from stepper.export.drawing.composing import (
    FormulaForm,
    LegendForm,
    Sample,
    formula_line,
    formula_width,
    legend_drawn,
    shortened_heading,
)
from stepper.export.drawing.styles import (
    DrawnStep,
    MadeShapes,
    PageDrawing,
    Path,
    Point,
    Rectangle,
    Shape,
    StepTimes,
    TextLine,
)
from stepper.export.figures.drawn_graph import ValueSummary, shortened, shortened_names
from stepper.export.fonts import advance, wrapped
from stepper.export.textbook.lanes import (
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

LARGE: Final = 8.0
SMALL: Final = 7.0
"""Heights of text in points; nothing is smaller."""
WIDE: Final = 340.0
"""Points from which on pictures, all outputs and the inputs that stay the same are drawn."""
_PITCH: Final = 15.0
_MARGIN: Final = 2.0
_SLIDE_MARGIN: Final = 10.0
_SLIDE_HEIGHT: Final = 9 / 16
"""Of its width."""
_HEADING: Final = 12.0
"""Height of the title of a slide."""
_LINE: Final = 8.5
"""From line to line in a box."""
_END: Final = 25.5
_NARROW_END: Final = 12.0
"""From the last box to the edge of what is drawn; less where no verdict stands before the mark."""
_STRIP: Final = 15.0
_PICTURE: Final = 54.0
_MOST_SPREAD: Final = 26.0
"""Points that a gap is wider at most, so that the figure is as wide as the page."""
_TOOTH: Final = 6.0
_DEPTH: Final = 2.2
"""Teeth of a torn edge: their height, and how far they reach to both sides."""
_NARROW_NAMES: Final = (11, 8, 6)
"""Letters of names on a narrow page; fewer where there is no room even for few iterations."""
_LONGEST_PASSING: Final = 18
_IN_BOX: Final = 9.5
"""From the top of a small box to the base line of its number, above its lanes."""
_SMALL_CELL: Final = 12.6
_SMALL_GAP: Final = 8.5
_SMALL_HEIGHT: Final = 40.0
_WIRE_BESIDE: Final = 4.6
"""Points that a small box is wider for each wire beside the one in its middle."""
FORMULA: Final = FormulaForm("formula", "index", LARGE, SMALL, 2.0, 10.5)
_LEGEND_FORM: Final = LegendForm("aside", SMALL, 11, 4, 12)
MOST_SHOWN: Final = 12
"""Iterations that are drawn at most."""
PAGE_WIDTH: Final = 170 * 72 / 25.4
"""Points: the width of a page's text."""
ON_SLIDE: Final = 18 / SMALL
ON_SCREEN: Final = 11 / SMALL
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


class TextbookPage(Struct, frozen=True):
    """A drawing, what was left out of it in words, and when its parts come to be."""

    drawing: PageDrawing
    left_out: tuple[str, ...]
    times: StepTimes


def textbook_page(
    book: Textbook,
    width: float | None,
    title: str,
    description: str,
    *,
    unit: float = 1.0,
    is_slide: bool = False,
    legend: bool = True,
    ends: tuple[int, int] | None = None,
) -> TextbookPage:
    """Return the figure in a width in points (None: as wide as its iterations); a unit has so many of them.

    `ends` is how many of the first and of the last iterations it has at most (None: as many as have room). Raise
    UsageError, with the least width, where it does not fit.
    """
    plans = _plans(book.count, ends)
    texts = tuple(_with_texts(book, plans, is_wide=width is None or width / unit >= WIDE))
    if width is None:
        width = _width_of_all(book, [text for plan, text in texts if plan is plans[0]], plans[0]) * unit
    width /= unit
    wide = width >= WIDE
    outputs = book.outputs if wide else book.outputs[:1]
    heading = shortened_heading(title, _HEADING, width - 2 * _SLIDE_MARGIN) if is_slide else title
    for plan, text in texts:
        for drawn, has_legend in _forms(outputs, is_slide=is_slide, legend=legend):
            page = _PageLayout(book, drawn, plan, text, width, is_wide=wide, is_slide=is_slide)
            if page.used > width:
                break
            drawing = page.drawing(heading, description, is_slide=is_slide, legend=has_legend)
            if is_slide and drawing.height > width * _SLIDE_HEIGHT + 0.1:
                continue
            if is_slide and page.free > 1:  # in the middle below the title
                free = page.free
                page = _PageLayout(book, drawn, plan, text, width, is_wide=wide, is_slide=True)
                drawing = page.drawing(heading, description, is_slide=True, legend=has_legend, space=free / 2)
            left_out = page.left_out if has_legend == legend else (*page.left_out, "the legend")
            return TextbookPage(replace(drawing, points=unit), left_out, page.times)
        else:
            if text.has_types:
                continue
            raise UsageError(
                f"the figure does not fit a slide: it has {len(book.carried)} carried values, and needs "
                f"{drawing.height / width / _SLIDE_HEIGHT:.1f} times its height. --preset docs has room"
            )
    least = _PageLayout(book, outputs, plans[-1], text, width, is_wide=wide, is_slide=is_slide).used * unit
    width *= unit
    raise UsageError(
        f"the figure does not fit into {width * 25.4 / 72:.0f} mm at {SMALL * unit:.3g} points; "
        f"the least width is {math.ceil(least * 25.4 / 72)} mm"
    )


def _width_of_all(book: Textbook, texts: Sequence[CellText], plan: _Plan) -> float:
    """Return the width of a page with all outputs: as usual, or what the iterations of a plan need at least."""
    forms = (_PageLayout(book, book.outputs, plan, text, PAGE_WIDTH, is_wide=True, is_slide=False) for text in texts)
    return max(PAGE_WIDTH, min(one.used for one in forms))


def _forms(outputs: Sequence[ValueLane], *, is_slide: bool, legend: bool) -> Iterator[tuple[Sequence[ValueLane], bool]]:
    """Yield the outputs that are drawn, and whether the legend is: on a slide, which has a height, fewer and fewer."""
    yield outputs, legend
    if is_slide:
        for count in range(len(outputs) - 1, 0, -1):
            yield outputs[:count], legend
        if legend:
            yield outputs[:1], False


def _rows(book: Textbook) -> int:
    """Return how many lanes go through the boxes."""
    return len(book.carried) + (bool(book.conditions) or not book.count)


def _height(rows: int, words: int) -> float:
    """Return the height of the boxes, so that lanes and lines have room."""
    return max(_PITCH * (rows + 1), 34.0, _LINE * words + 7)


def _with_texts(book: Textbook, plans: Sequence[_Plan], *, is_wide: bool) -> Iterator[tuple[_Plan, CellText]]:
    """Yield the plans, each with what may stand in the boxes, the most first: no iteration is left out for it."""
    room = int((_height(_rows(book), 0) - 7) / _LINE) - 1
    formula = formula_text(book.work, SMALL, room) if book.count else None
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
    return found or [_Plan((), (), 0, letters) for letters in _NARROW_NAMES]


class _PageLayout:
    """One way to lay the figure out. Along time, places are `u` from 0; `x` of a place depends on its direction."""

    def __init__(
        self,
        book: Textbook,
        outputs: Sequence[ValueLane],
        plan: _Plan,
        text: CellText,
        width: float,
        *,
        is_wide: bool,
        is_slide: bool,
    ) -> None:
        self.text, self.decimals = text, dict[int, int]()
        self.margin = _SLIDE_MARGIN if is_slide else _MARGIN
        self.book, self.outputs, self.plan, self.width, self.is_wide = book, tuple(outputs), plan, width, is_wide
        strips = (*book.sliced, *outputs)
        names = [lane.name for lane in (*book.carried, *strips)]
        self.names = {name: name for name in names} if is_wide else shortened_names(names, plan.letters)
        labels = [advance(self._name(lane), SMALL, bold=True) for lane in (*book.carried, *strips)]
        labels += [advance(lane.form, SMALL) for lane in strips]
        labels += [advance("goes on", SMALL, bold=True), advance("iteration", SMALL)]
        self.label = max(labels) + 4
        drawn = {lane.name for lane in outputs}
        others = () if is_wide else (lane for lane in book.outputs if lane not in self.outputs)
        self.last_told = tuple(lane for lane in others if lane.kind is LaneKind.LAST)
        self.told = {lane.name for lane in book.carried if plan.is_dense and lane.told_by in drawn}
        self.begin, self.gap = self._gaps()
        size, padding = (SMALL, 3.0) if plan.is_dense else (LARGE, 6.0)
        cells = [
            advance(self._text(lane, k), size, bold=not plan.is_dense) + padding
            for lane in strips
            for k in plan.shown
            if k in lane.values
        ]
        pictured = is_wide and any(lane.is_vector for lane in strips)
        self.cell = self._small_cell() if plan.is_dense else self._usual_cell()
        pitch = max([self.cell + self.gap, *cells, _PICTURE + 6 if pictured else 0.0])
        self.gap = pitch - self.cell
        self.ending = self._least_ending()
        tear = 46.0 if is_wide else 36.0 if plan.letters == _NARROW_NAMES[0] else 30.0
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
        self.tear_top = self.free = 0.0
        self.shaded = ""
        self.items: list[Shape] = []
        self.steps = _steps(plan)
        self.made: list[MadeShapes] = []
        self.bands: tuple[Rectangle, ...] = ()

    def _gaps(self) -> tuple[float, float]:
        """Return the least width of the gap before the first box, and of those between boxes."""
        book, is_dense = self.book, self.plan.is_dense
        words = [
            advance(self._text(lane, k), SMALL)
            for lane in book.carried
            for k in (lane.values if lane.name not in self.told else ())
        ]
        if not book.count:
            words += [advance(_passing(lane), SMALL) + 4 for lane in book.carried]
        verdict = advance("false", SMALL) + 3 if book.conditions or not is_dense else 0.0
        gap = max([_SMALL_GAP if is_dense else 18.0, verdict, *(word + 7 for word in words)])
        first = [advance(self._text(lane, 0), SMALL) + 7 for lane in book.carried if 0 in lane.values]
        return max([gap, *first]), gap

    def _least_ending(self) -> float:
        """Return what is behind the last box at least: room for its verdict, and for the mark beside its slices."""
        if not self.plan.is_dense:
            return _END
        k, least = self.book.count - 1, _END if self.book.conditions else _NARROW_END
        for lane in (*self.book.sliced, *self.outputs):
            if k in lane.values:
                is_pictured = self.is_wide and lane.is_vector
                width = max(advance(self._text(lane, k), SMALL), _PICTURE if is_pictured else 0.0)
                least = max(least, (width - self.cell) / 2 + _NARROW_END - 3)
        return least

    def _usual_cell(self) -> float:
        """Return the width of a box with its words."""
        text = self.text
        lines = (
            *(formula_width(line, FORMULA) for line in text.formula),
            *(advance(word, SMALL) for word in text.lines),
        )
        body = max(advance(text.title, LARGE, bold=True), *lines)
        return max(body + (6 if text.formula else 2.4), 42.0 if self.is_wide else 22.0)

    def _small_cell(self) -> float:
        """Return the width of a box with a number, and with the wires that it has."""
        words = [advance(str(self.book.count), LARGE, bold=True) + 4.2]
        words += [advance(side, SMALL) + 2.4 for side in self.book.sides.values()]
        wires = max(len(self.outputs) - 1, int(self.is_wide and bool(self.book.invariant)))
        return max([_SMALL_CELL + _WIRE_BESIDE * wires, *words])

    def _place(self, pitch: float) -> None:
        """Place the iterations along time."""
        at = self.begin
        for k in self.plan.first:
            self.places[k] = at
            at += pitch
        if self.plan.last:
            self.torn = (at - self.gap + self.between, at - self.gap + self.between + self.tear)
            at = self.torn[1] + self.between
            for k in self.plan.last:
                self.places[k] = at
                at += pitch
        self.end = at - self.gap if self.plan.shown else self.begin + self.cell + self.gap

    @property
    def times(self) -> StepTimes:
        """When the items of the drawing come to be; its first one is the page."""
        made = tuple(MadeShapes(one.first + 1, one.behind + 1, one.step, one.known) for one in self.made)
        return StepTimes(self.steps, made, self.bands)

    @contextmanager
    def _made_in(self, iteration: int, *, known: bool = False) -> Iterator[None]:
        """Have what is drawn come to be in the step of an iteration; `known`: its texts are known before."""
        first = len(self.items)
        yield
        step = next((at for at, one in enumerate(self.steps) if iteration < one.end), max(len(self.steps) - 1, 0))
        self.made.append(MadeShapes(first, len(self.items), step, known))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts that are not drawn, in words."""
        found = []
        if self.plan.last:
            found.append(f"iterations {self.plan.first[-1] + 1} to {self.plan.last[0] - 1}")
        hidden = [lane.name for lane in self.book.outputs if lane not in (*self.outputs, *self.last_told)]
        if hidden:
            found.append(", ".join(hidden))
        if self.book.invariant and not self.is_wide:
            found.append(f"what is the same in each iteration ({', '.join(self.book.invariant)})")
        return tuple(found)

    # --- drawing ---------------------------------------------------------------------------------------------------

    def drawing(
        self, title: str, description: str, *, is_slide: bool, legend: bool = True, space: float = 0
    ) -> PageDrawing:
        """Return the drawing; `space` is left free below the title."""
        y = self.margin
        if title:
            self.items.append(TextLine("slide" if is_slide else "number", self.margin, y + 10, title))
            y += 22 if is_slide else 14
        y = self._courses(y + space)
        with self._made_in(self.book.count, known=True):
            y = self._headline(y)
        above = self.tear_top = y
        y = self._reading(y)
        for lane in self.book.sliced:
            y = self._strip(lane, y, above=True)
        y = self._invariants(y)
        y = self._numbers(y)
        top = y
        if not self.book.sliced:
            self.tear_top = top - 2
        bottom = top + _height(_rows(self.book), len(self.text.words) + bool(self.book.branch))
        bottom = max(bottom, top + _SMALL_HEIGHT) if self.plan.is_dense else bottom
        if self.book.count:
            self._cells(top, bottom)
        else:
            self._idle(top, bottom)
        for index, lane in enumerate(self.book.carried):
            self._carried(lane, top + _PITCH * (index + 1))
        last = top + _PITCH * (len(self.book.carried) + 1)
        if self.book.conditions:
            self._condition(last)
        if self.book.count:
            self._end_mark(top, bottom)
        else:
            self._mark_before(last)
        y = self._output_rows(bottom)
        if self.plan.last:
            self._torn(y - 3)
        self.bands = tuple(self._band(step, above - 2, y - 2) for step in self.steps)
        y = self._last_values(y)
        lowest = self.width * _SLIDE_HEIGHT - self.margin if is_slide else math.inf
        y = self._formula(y, lowest)
        y = self._below("aside", (self.book.course,), y, lowest)
        y = self._notes(self._without_effect(y))
        y = self._legend(y + 3) if legend else y
        height = max(y, self.width * _SLIDE_HEIGHT) if is_slide else y
        self.free = height - y
        page = Rectangle("page", 0, 0, self.width, height)
        name = title or self.book.title
        return PageDrawing(self.width, height, name, description, (page, *self.items))

    def _band(self, step: DrawnStep, top: float, bottom: float) -> Rectangle:
        """Return the band of a step: through slice, iteration and piece."""
        begin, end = self.torn if step.is_gap else (self.places[step.begin], self.places[step.begin] + self.cell)
        beside = 0.0 if step.is_gap else min(self.gap / 2 - 0.6, 4.0)  # clear of the values that are carried
        x0, x1 = sorted((self._x(begin - beside), self._x(end + beside)))
        return Rectangle("band", x0, top, x1 - x0, bottom - top, 2)

    def _x(self, u: float) -> float:
        """Return where a place of time is on the page."""
        left = self.label
        return left + (self.room - u if self.book.is_backward else u)

    def _box(self, style: str, u0: float, u1: float, y: float, height: float, corner: float = 0) -> None:
        x0, x1 = sorted((self._x(u0), self._x(u1)))
        self.items.append(Rectangle(style, x0, y, x1 - x0, height, corner))

    def _line(self, style: str, *points: Point) -> None:
        self.items.append(Path(style, (tuple((self._x(u), y) for u, y in points),)))

    def _words(self, style: str, u: float, y: float, text: str) -> None:
        self.items.append(TextLine(style, self._x(u), y, text, "middle"))

    def _arrow(self, style: str, u0: float, u1: float, y: float) -> None:
        """Draw a line along time with its head."""
        self._line(style, (u0, y), (u1 - 4, y))
        tip, back = self._x(u1), self._x(u1 - 5)
        self.items.append(Path(f"{style}-tip", (((tip, y), (back, y - 2.1), (back, y + 2.1)),), closed=True))

    def _headline(self, y: float) -> float:
        """Write why the run ended, above the end mark."""
        room, forms = self.width - 2 * self.margin, (self.book.ended, *self.book.ended_in_short)
        text = next((one for one in forms if advance(one, SMALL, bold=True) <= room), _fitting(forms[-1], room))
        mark, wide = self._x(self.room - 4), advance(text, SMALL, bold=True)
        if self.book.is_backward:
            anchor, at = "start", max(self.margin, min(mark - 2, self.width - self.margin - wide))
        else:
            anchor, at = "end", min(self.width - self.margin, max(mark + 2, self.margin + wide))
        self.items.append(TextLine("strong", at, y + 7, text, anchor))
        self._mark_above = (mark, y + 9.5)
        return y + 12

    def _courses(self, y: float) -> float:
        """Write how axes are cut where it is not slice after slice; return where the next row begins."""
        told = [lane for lane in self.book.sliced if lane.course]
        alone = len(self.book.sliced) == 1
        texts = [lane.course if alone else f"{self.names[lane.name]}: {lane.course}" for lane in told]
        return self._below("aside", texts, y, math.inf)

    def _reading(self, y: float) -> float:
        """Draw in which order slices are read where the last one is first; return where the next row begins."""
        if not (self.book.is_backward and self.book.sliced and self.places):
            return y
        self.items.append(TextLine("of-input", self.margin, y + 7, "read"))
        self._arrow("input-wire", 0, self.end, y + 4.6)
        return y + 11

    def _invariants(self, y: float) -> float:
        """Draw a bus of what is the same in each iteration."""
        if not self.book.invariant or not self.is_wide or not self.places:
            self._bus = None
            return y
        mark = self._x(self.room - 4)  # the wire from the words on the end goes down to its mark
        room = (self.width - self.margin if self.book.is_backward else mark - 4) - self.label
        text = _fitting(f"the same in each iteration: {', '.join(self.book.invariant)}", room)
        self.items.append(TextLine("of-input", self.label, y + 7, text))
        self._bus = y + 11
        return y + 15

    def _numbers(self, y: float) -> float:
        base = y + (_IN_BOX + 2 if self.plan.is_dense else 8)
        self.items.append(TextLine("aside", self.margin, base, "iteration"))
        for k, u in () if self.plan.is_dense else self.places.items():
            self._words("number", u + self.cell / 2, y + 8, str(k))
        if self.plan.last:
            begin, end = self.plan.first[-1] + 1, self.plan.last[0] - 1
            self._words("aside", sum(self.torn) / 2, base, str(begin) if begin == end else f"{begin} to {end}")
        return y + (2 if self.plan.is_dense else 12)

    def _idle(self, top: float, bottom: float) -> None:
        """Draw the body that has not run: what is carried goes straight past it."""
        self._box("idle-cell", self.begin, self.begin + self.cell, top, bottom - top, 3)
        base = bottom - 5 if self.is_wide else bottom + 9  # a narrow box has no room for the words
        self._words("aside", self.begin + self.cell / 2, base, "not run")

    def _cells(self, top: float, bottom: float) -> None:
        for k, u in self.places.items():
            side, words = self.book.sides.get(k), self.text.words
            first = (top + bottom) / 2 - 4 * (len(words) - (1 if side else 2))
            if self.plan.is_dense:
                words, first = (("number", str(k)),), top + _IN_BOX
            elif self.text.formula:
                first = (top + bottom - _LINE * (len(words) - 1 + bool(side))) / 2 + 2.4
            with self._made_in(k, known=True):
                self._box("cell", u, u + self.cell, top, bottom - top, 3)
                self._lines(words, u + self.cell / 2, first)
                if self._bus is not None:
                    x = u + self.cell - self._bus_beside
                    self.items.append(Path("input-wire", (((self._x(x), self._bus), (self._x(x), top - 4)),)))
                    self._head("input-wire", self._x(x), top)
            if side:
                with self._made_in(k):
                    self._words("aside", u + self.cell / 2, first + _LINE * len(words), side)
        if self._bus is not None:
            end = max(self.places.values()) + self.cell - self._bus_beside
            self._line("input-wire", (0, self._bus), (end, self._bus))
        if self.plan.last:
            middle, count = (top + bottom) / 2, self.plan.last[0] - self.plan.first[-1] - 1
            self._words("number", sum(self.torn) / 2, middle, f"{count:,}")
            for index, word in enumerate(["not drawn"] if self.is_wide else ["not", "drawn"]):
                self._words("aside", sum(self.torn) / 2, middle + 8.5 + 8 * index, word)

    def _lines(self, words: Sequence[tuple[str, str]], u: float, first: float) -> None:
        """Write lines, each with its style, around a place of time."""
        for index, (style, word) in enumerate(words):
            base = first + _LINE * index
            if style == FORMULA.style:
                self.items.append(formula_line(self._x(u), base, word, FORMULA, is_centred=True))
            else:
                self._words(style, u, base, word)

    @property
    def _bus_beside(self) -> float:
        """How far from the end of a box the wire of what is the same each time enters it."""
        return 3.4 if self.plan.is_dense else 7

    def _head(self, style: str, x: float, y: float) -> None:
        self.items.append(Path(f"{style}-tip", (((x, y), (x - 2.1, y - 5), (x + 2.1, y - 5)),), closed=True))

    def _spans(self) -> list[tuple[float, float, int, bool]]:
        """Return the gaps between cells: begin, end, the iteration that is entered, and whether a cell follows."""
        found, shown = [], self.plan.shown
        for index, k in enumerate(shown):
            begin = 0.0 if index == 0 else self.places[shown[index - 1]] + self.cell
            if index and shown[index - 1] != k - 1:
                found.append((begin, self.torn[0], shown[index - 1] + 1, False))
                begin = self.torn[1]
            found.append((begin, self.places[k], k, True))
        return found

    def _carried(self, lane: ValueLane, y: float) -> None:
        self.items.append(TextLine("of-carried", self.margin, y + 2.4, self._name(lane)))
        if not self.book.count:
            self._arrow("lane", 0, self.end, y)
            self._words("plain", self.begin / 2, y - 2.2, _passing(lane))
        for begin, end, k, has_cell in self._spans():
            with self._made_in(k):
                if has_cell:
                    self._arrow("lane", self._torn_at(begin, y), end, y)
                else:
                    self._line("lane", (begin, y), (self._torn_at(end, y), y))
                if k in lane.values and (not k or begin == self.torn[1] or lane.name not in self.told):
                    style = "broken" if _is_broken(lane.values[k]) else "plain"
                    above = 3.2 if lane.grows else 2.2  # brackets reach below the line of letters
                    self._words(style, (begin + end) / 2 - 1.5, y - above, self._text(lane, k))

    def _condition(self, y: float) -> None:
        self.items.append(TextLine("strong", self.margin, y + 2.4, "goes on"))
        for begin, end, k, _ in self._spans():
            with self._made_in(k):
                self._line("dots", (self._torn_at(begin, y), y), (self._torn_at(end, y), y))
                verdict = self.book.starts if k == 0 else self.book.conditions.get(k - 1, True)
                if verdict is not None:
                    self._words("plain", (begin + end) / 2 - 0.8, y - 2.2, str(bool(verdict)).lower())
        if self.plan.shown:
            k, u = self.plan.shown[-1], self.end
            with self._made_in(k):
                self._line("dots", (u, y), (u + self.ending - 8.5, y))
                if k in self.book.conditions:
                    self._words("plain", u + 9, y - 2.2, str(self.book.conditions[k]).lower())

    def _mark_before(self, y: float) -> None:
        """Draw the mark before the body of a loop that does not start."""
        self.items.append(TextLine("strong", self.margin, y + 2.4, "starts"))
        self._line("dots", (0, y), (self.begin - 9, y))
        self._words("plain", (self.begin - 9) / 2, y - 2.2, "false" if self.book.starts is False else "no")
        for style, before in (("end-thin", 6.5), ("end-bar", 3.5)):
            self._line(style, (self.begin - before, y - 6.5), (self.begin - before, y + 6.5))

    def _end_mark(self, top: float, bottom: float) -> None:
        for style, u in (("end-thin", self.room - 7), ("end-bar", self.room - 4)):
            self._line(style, (u, top), (u, bottom))
        x, y = self._mark_above
        self.items.append(Path("hair", (((x, y), (x, top - 2)),)))

    def _output_rows(self, bottom: float) -> float:
        """Draw the outputs below the boxes, and the wires to them; return where the next row begins."""
        y = bottom + 12
        tops = []
        for lane in self.outputs:
            tops.append(y)
            y += self._high(lane) + 9 + (_LINE if lane.places else 0)
        for row, (lane, top) in enumerate(zip(self.outputs, tops, strict=True)):
            self._output_wires(lane, self._beside(row), bottom, top)
        for lane, top in zip(self.outputs, tops, strict=True):
            self._strip(lane, top, above=False)
        return y

    def _last_values(self, y: float) -> float:
        """Write the last values that have no strip on a narrow page; return where the next row begins."""
        for lane in self.last_told:
            y += 9
            self.items.append(TextLine("of-output", self.margin, y, lane.name))
            k = self.book.count - 1
            told = self._text(lane, k) if k in lane.values else _passing(lane)
            form = f" ({lane.form})" if lane.form and k in lane.values else ""
            room = self.width - self.margin - self.label
            texts = (f"{told}{form}, the last value", f"{told}, the last value", told)
            shown = next((text for text in texts if advance(text, SMALL) <= room), _fitting(told, room))
            with self._made_in(max(k, 0)):
                style = "broken" if k in lane.values and _is_broken(lane.values[k]) else "plain"
                self.items.append(TextLine(style, self.label, y, shown))
        return y + 4 if self.last_told else y

    def _beside(self, row: int) -> float:
        """Return how far from the middle of a box the wire to a row leaves it: the first one there, others aside."""
        pairs = len(self.outputs) // 2
        most = self.cell / 2 - (3.4 if self.plan.is_dense else 4)
        beside = 0.0 if row == 0 else most * (1 - (row - 1) // 2 / pairs)
        return beside if row % 2 else -beside

    def _output_wires(self, lane: ValueLane, beside: float, bottom: float, top: float) -> None:
        """Draw the wires from the boxes to a row; the strips, which are drawn later, hide what is behind them."""
        shown = self.plan.shown[-1:] if lane.kind is LaneKind.LAST else self.plan.shown
        for k in shown:
            with self._made_in(k):
                x = self._x(self.places[k] + self.cell / 2 + beside)
                self.items.append(Path("output-wire", (((x, bottom), (x, top - 4)),)))
                self._head("output-wire", x, top)

    def _high(self, lane: ValueLane) -> float:
        """Return the height of a strip."""
        return _STRIP + (4 if self.is_wide and lane.is_vector else 0)

    def _axis_places(self, lane: ValueLane, word: str, y: float) -> None:
        """Write where on their axis the slices or the pieces lie."""
        self.items.append(TextLine("aside", self.margin, y, word))
        for k, u in self.places.items():
            self._words("aside", u + self.cell / 2, y, lane.places.get(k, ""))

    def _strip(self, lane: ValueLane, y: float, *, above: bool) -> float:
        """Draw a tensor along its axis, a cell for each iteration; return where the next row begins."""
        kind = "input" if above else "output"
        pictured = self.is_wide and lane.is_vector
        high = self._high(lane)
        if lane.places and above:
            y += _LINE
            self._axis_places(lane, "slice", y - 2.5)
        elif lane.places:
            self._axis_places(lane, "piece", y + high + _LINE - 1)
        self.items.append(TextLine(f"of-{kind}", self.margin, y + high / 2 - 0.8, self._name(lane)))
        self.items.append(TextLine("aside", self.margin, y + high / 2 + 7, self._form(lane)))
        half = (self.cell + self.gap) / 2
        if not self.book.count:
            self._box("idle-cell", 0, self.end, y, high)
            self._words("plain", self.end / 2, y + high / 2 + 2.6, _passing(lane) or "no piece")
        elif lane.kind is LaneKind.LAST:
            self._last(lane, y, high)
        else:
            for k, u in self.places.items():
                middle = u + self.cell / 2
                begin = self.torn[1] if self.plan.last and k == self.plan.last[0] else middle - half
                most = self.room - 7.5 if above else self.room  # beside the wire to the mark
                end = self.torn[0] if self.plan.last and k == self.plan.first[-1] else min(middle + half, most)
                with self._made_in(k, known=above):
                    self._strip_cell(f"{kind}-strip", begin, end, y, high)
                    self._value(lane, k, middle, y, high, pictured=pictured)
                    x = self._x(middle)
                    if above:
                        self.items.append(Path("input-wire", (((x, y + high), (x, y + high + 5)),)))
                        self._head("input-wire", x, y + high + 9)
            with self._made_in(self.plan.first[-1] + 1 if self.plan.last else 0, known=above):
                self._between(lane, y, high)
        return y + high + 10

    def _strip_cell(self, style: str, u0: float, u1: float, y: float, high: float) -> None:
        """Draw a cell of a strip; where the page is torn its edge is."""
        if not self.plan.last or (u0 != self.torn[1] and u1 != self.torn[0]):
            self._box(style, u0, u1, y, high)
            return
        heights = [y, *self._teeth(y, y + high), y + high]
        left = [(self._x(self._torn_at(u0, at)), at) for at in (heights if u0 == self.torn[1] else (y, y + high))]
        right = [(self._x(self._torn_at(u1, at)), at) for at in (heights if u1 == self.torn[0] else (y, y + high))]
        self.items.append(Path(style, ((*left, *reversed(right)),), closed=True))

    def _teeth(self, top: float, bottom: float) -> list[float]:
        """Return where between two heights the torn edge turns."""
        first = math.floor((top - self.tear_top) / _TOOTH) + 1
        last = math.ceil((bottom - self.tear_top) / _TOOTH)
        return [self.tear_top + at * _TOOTH for at in range(first, last)]

    def _torn_at(self, u: float, y: float) -> float:
        """Return a place of time, moved onto the torn edge where it is on it."""
        if not self.plan.last or u not in self.torn:
            return u
        at = (y - self.tear_top) / _TOOTH
        return u - _DEPTH + 2 * _DEPTH * (1 - abs(at % 2 - 1))

    def _last(self, lane: ValueLane, y: float, high: float) -> None:
        """Draw the value of the last iteration alone."""
        if not self.plan.shown:
            return
        k = self.plan.shown[-1]
        middle = self.places[k] + self.cell / 2
        half = min((self.cell + self.gap) / 2, self.room - middle)  # behind the last iteration the page ends
        with self._made_in(k):
            self._box("output-strip", middle - half, middle + half, y, high)
            self._value(lane, k, middle, y, high, pictured=self.is_wide and lane.is_vector)
        said, beside = "last value", middle - half - 4
        if self.plan.last and beside - advance(said, SMALL) < self.torn[1] + _DEPTH + 2:
            beside = self.torn[0] - _DEPTH - 2  # no words on the torn edge
        if beside >= advance(said, SMALL):
            anchor = "start" if self.book.is_backward else "end"
            self.items.append(TextLine("aside", self._x(beside), y + high / 2 + 2.6, said, anchor))

    def _value(self, lane: ValueLane, k: int, u: float, y: float, high: float, *, pictured: bool) -> None:
        value = lane.values.get(k)
        if value is None:
            return
        style = "broken" if _is_broken(value) else "plain" if lane.is_vector or self.plan.is_dense else "number"
        text, base = self._text(lane, k), y + high / 2 + 2.8
        if pictured and value.grid is not None and len(value.grid) == 1:
            self._shades(lane, value.grid[0], u, y + 2.5)
            base = y + high - 3
        self._words(style, u, base, text)

    def _shades(self, lane: ValueLane, cells: Sequence[float], u: float, y: float) -> None:
        """Draw a row of elements, each as dark as its magnitude beside the largest that is drawn of the lane."""
        kind = "input" if lane.kind is LaneKind.SLICED else "output"
        self.shaded = self.shaded or kind
        drawn = (lane.values[k] for k in self.places if k in lane.values)
        rows = (one.grid[0] for one in drawn if one.grid)
        largest = max((abs(cell) for row in rows for cell in row if math.isfinite(cell)), default=0.0) or 1.0
        wide, left = _PICTURE / len(cells), self._x(u) - _PICTURE / 2
        for index, cell in enumerate(cells):
            is_finite = math.isfinite(cell)
            shade = max(0.04, abs(cell) / largest) if is_finite else 1.0
            style = f"{kind}-shade" if is_finite else "fault-shade"
            self.items.append(Rectangle(style, left + index * wide, y, wide, 6, opacity=shade))
        self.items.append(Rectangle(f"{kind}-frame", left, y, _PICTURE, 6))

    def _between(self, lane: ValueLane, y: float, high: float) -> None:
        """Write into the tear what the iterations that are not drawn wrote, where it is short."""
        if not self.plan.last:
            return
        hidden = range(self.plan.first[-1] + 1, self.plan.last[0])
        words = [self._text(lane, k) for k in hidden if k in lane.values]
        is_whole = len(words) == len(hidden) and not lane.is_vector
        text = " ".join(words) if is_whole else ""
        if text and advance(text, SMALL) > self.tear - 6:
            half = len(words) // 2 + len(words) % 2
            lines = [" ".join(words[:half]), " ".join(words[half:])]
        else:
            lines = [text] if text else []
        if not lines or any(advance(line, SMALL) > self.tear - 6 for line in lines):
            pieces = counted(len(hidden), "piece")
            lines = [pieces] if advance(pieces, SMALL) <= self.tear - 6 else pieces.split()
            found = [lane.values[k].statistics for k in hidden if k in lane.values]
            numbers = [one.min for one in found if one is not None and isinstance(one.min, (int, float))]
            if is_whole and numbers and len(numbers) == len(hidden) and all(map(math.isfinite, numbers)):
                low, high_ = (decimal_text(bound, self._decimals(lane)) for bound in (min(numbers), max(numbers)))
                if max(advance(low, SMALL), advance(f"to {high_}", SMALL)) <= self.tear - 6:
                    lines = [low, f"to {high_}"]
        for index, line in enumerate(lines):
            self._words("aside", sum(self.torn) / 2, y + high / 2 + 2.6 + 8 * index - 4 * (len(lines) - 1), line)

    def _torn(self, bottom: float) -> None:
        """Draw the torn edges."""
        heights = [self.tear_top, *self._teeth(self.tear_top, bottom), bottom]
        for side in self.torn:
            self._line("tear", *((self._torn_at(side, y), y) for y in heights))

    def _formula(self, y: float, lowest: float) -> float:
        """Write the equations of the body, or the types of its operations, unless they stand in its box.

        They end above `lowest` with a legend below them. Return as others.
        """
        work = self.book.work
        told = () if self.text.formula else work.formula
        if self.plan.is_dense and work.cell is not None:  # its box has no room for the name
            units = counted(work.cell.units, "unit")
            y = self._below("plain", (f"body: {work.cell.type} of {units}",), y, lowest)
        if not told and not self.text.has_types and self.book.count:
            return self._below("plain", (f"body: {work.types_told}",), y, lowest, behind=",")
        return self._equations(told, y, lowest)

    def _equations(self, texts: Sequence[str], y: float, lowest: float) -> float:
        """Write equations that end above `lowest` with a legend, or none; return where the next row begins."""
        room = self.width - 2 * self.margin
        lines = [line for text in texts for line in wrapped(text, room, FORMULA.size)]
        if not lines or y + FORMULA.line * len(lines) + 2 * _LEGEND_FORM.row > lowest:
            return y
        for line in lines:
            y += FORMULA.line
            self.items.append(formula_line(self.margin, y, line, FORMULA))
        return y + 4

    def _below(self, style: str, texts: Sequence[str], y: float, lowest: float, *, behind: str = "") -> float:
        """Write lines that end above `lowest` with a legend below them, or none; return where the next row begins.

        `behind` is the sign behind which alone they break.
        """
        room = self.width - 2 * self.margin
        lines = [line for text in texts if text for line in wrapped(text, room, SMALL, behind=behind)]
        if not lines or y + 9 * len(lines) + 2 * _LEGEND_FORM.row > lowest:
            return y
        for line in lines:
            y += 9
            self.items.append(TextLine(style, self.margin, y, line))
        return y + 3

    def _without_effect(self, y: float) -> float:
        """Write which back edges carry nothing, and why; return where the next row begins."""
        room = self.width - 2 * self.margin
        for edge in self.book.without_effect:
            for text in (f"back edge {edge.name}", f"has no effect: {edge.reason}"):
                y += 9
                self.items.append(TextLine("aside", self.margin, y, _fitting(text, room)))
        return y + 3 if self.book.without_effect else y

    def _notes(self, y: float) -> float:
        """Write where the rule books differ; return where the next row begins."""
        return self._below("aside", self.book.notes, y, math.inf)

    def _legend(self, y: float) -> float:
        """Explain the lines that occur."""
        samples: list[Sample] = []
        if not self.book.count:
            samples.append(Sample(22, _condition_sample, "does not start"))
        if self.book.carried:
            told = enumerated(sorted({lane.told_by for lane in self.book.carried if lane.name in self.told}))
            samples.append(Sample(16, _lane_sample, f"carried: what is in {told}" if told else "carried"))
        if self.book.conditions:
            samples.append(Sample(22, _condition_sample, "goes on while true, else ends"))
        if self.book.sliced:
            samples.append(Sample(14, partial(_strip_sample, style="input-strip"), "sliced"))
        if any(lane.kind is LaneKind.JOINED for lane in self.outputs):
            samples.append(Sample(14, partial(_strip_sample, style="output-strip"), "output, piece by piece"))
        if self.plan.last:
            samples.append(Sample(12, _torn_sample, "iterations not drawn"))
        if self.shaded:
            samples.append(Sample(24, partial(_shades_sample, kind=self.shaded), "elements: the stronger, the larger"))
        if any(_has_norm(lane) for lane in self.book.carried):
            samples.append(Sample(0, lambda _x, _y: (), "|x|: L2 norm of x"))
        if self.book.branch:
            samples.append(Sample(0, lambda _x, _y: (), f"then, else: side of {self.book.branch} that ran"))
        shapes, bottom = legend_drawn(samples, self.margin, y, self.width - 2 * self.margin, _LEGEND_FORM)
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
            self.decimals[id(lane)] = _telling(lane, self.plan.decimals)
        return self.decimals[id(lane)]


def _telling(lane: ValueLane, least: int) -> int:
    """Return the decimals that tell the numbers of a lane apart, so many at least and 5 at most."""
    numbers = {value.statistics.min for value in lane.finite if value.statistics is not None}
    for decimals in range(least, 5):
        if len({value_text(value, decimals, is_piece=True) for value in lane.finite}) == len(numbers):
            return decimals
    return 5


def _steps(plan: _Plan) -> tuple[DrawnStep, ...]:
    """Return the iterations drawn and, where some are not, the gap."""
    drawn = [DrawnStep(k, k + 1) for k in plan.shown]
    if plan.last:
        drawn.insert(len(plan.first), DrawnStep(plan.first[-1] + 1, plan.last[0], is_gap=True))
    return tuple(drawn)


def _passing(lane: ValueLane) -> str:
    """Return what came in or went out where no iteration ran, short."""
    return shortened(lane.passing, _LONGEST_PASSING)


def _has_norm(lane: ValueLane) -> bool:
    """True if the L2 norms of a lane's values are drawn: they are carried, and numbers."""
    return lane.kind is LaneKind.CARRIED and lane.is_vector and not lane.grows and lane.has_numbers


def _is_broken(value: ValueSummary) -> bool:
    """True if an element is not finite."""
    found = value.statistics
    return found is not None and bool(found.nan or found.infinite)


def _fitting(text: str, room: float) -> str:
    """Return a text in bold that fits, shortened at its end where it must be."""
    if advance(text, SMALL, bold=True) <= room:
        return text
    while text and advance(f"{text}…", SMALL, bold=True) > room:
        text = text[:-1]
    return f"{text.rstrip(' ,;:')}…"


def _lane_sample(x: float, base: float) -> list[Shape]:
    y, tip = base - 2.5, x + 16
    head = Path("lane-tip", (((tip, y), (tip - 5, y - 2.1), (tip - 5, y + 2.1)),), closed=True)
    return [Path("lane", (((x, y), (tip - 4, y)),)), head]


def _condition_sample(x: float, base: float) -> list[Shape]:
    y = base - 2.5
    marks = [
        Path(style, (((x + at, base - 7), (x + at, base + 1.5)),))
        for style, at in (("end-thin", 17.5), ("end-bar", 20.5))
    ]
    return [Path("dots", (((x, y), (x + 15, y)),)), *marks]


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
        Path("tear", (tuple((x + at + (0 if index % 2 else 3.4), y) for index, y in enumerate(heights)),))
        for at in (1, 7)
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
