"""The rows of the sheet: names, numbers around the cursor, bars elsewhere, pictures of tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from rich.style import Style
from textual import events

from stepper.debug.labels import label_of
from stepper.debug.overview.overview_facts import RowKind
from stepper.debug.table.columns import ColumnBin, SheetColumn, SheetView
from stepper.debug.table.row_sets import RowSet
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.tensors.difference import Change
from stepper.tensors.number_text import fitted
from stepper.tensors.tensor_pictures import BarScale, Form, Scale, bar_scale, scale_of, shades
from stepper.wording import counted
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.pictures import Slot, form_in, parts_of, picture, row_scale
from stepper_tui.paint.rows import (
    Cell,
    Row,
    bars_of,
    cell_len,
    clip,
    expression_name,
    listed_mark,
    padded,
    printable,
    spread,
    width_of,
    wrapped,
)
from stepper_tui.screens.sheet.headline import loop_facts, run_of
from stepper_tui.screens.sheet.model import SheetModel
from stepper_tui.state import State
from stepper_tui.theme import GLYPHS, break_glyph

if TYPE_CHECKING:
    from stepper.debug.moments.spread import SpreadCell
    from stepper.engine.program import Program
    from stepper.tensors.histories import ValueHistory
    from stepper_tui.app import StepperApp


Labels = Mapping[tuple[int, int], tuple[str, ...]]
_MOST_SHADE = 0.38
_STEPS = 16
"""Shades of a sign: as many as the eye can distinguish, so that styles are few."""


def cell_text(value: Any, room: int, *, whole: bool = False) -> str:
    """Return a number in at most so many cells (6 or more): three decimals, so that points stand under points.

    `whole`: those that it stands with have no fraction, so that it has no decimals either.
    """
    if value is None:
        return ""
    if not whole and isinstance(value, float) and math.isfinite(value) and (value == 0 or 1e-3 <= abs(value) < 1e5):
        text = f"{value:.3f}"
        return text if len(text) <= room else fitted(value, room)
    return fitted(value, max(room, 6))


def truth_text(value: Any) -> str:
    """Return a boolean as T or F."""
    return "" if value is None else GLYPHS["true" if value else "false"]


class Shades:
    """The shades of the columns of a view: zero is the ground, the robust largest of a column is full."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self._styles: dict[tuple[int, bool, str], Style] = {}
        self._view: SheetView | None = None
        self._labels: Labels = {}

    def take(self, view: SheetView, labels: Labels) -> None:
        """Another view; `labels` are the words for whole numbers, by the id of a program and a slot."""
        self._view, self._labels = view, labels

    def forget(self) -> None:
        """Another theme."""
        self._styles.clear()

    def cell(self, column: int, value: Any, width: int, *, bold: bool = False) -> Cell:
        """Return a cell, its number at the right with one blank behind it."""
        text = f"{self.text(column, value, width - 2):>{width - 1}} "
        if value is None:
            return f"{'·':>{width - 1}} ", "dim"
        if isinstance(value, float) and not math.isfinite(value):
            return text, "bad"
        return text, "" if self.is_truth(column) else self._style(self._level(column, value), bold=bold)

    def text(self, column: int, value: Any, room: int) -> str:
        """Return a number of a column in so many cells, or the word for it."""
        if self.is_truth(column):
            return truth_text(value)
        words = self._words(column) if isinstance(value, int) else ()
        return (
            clip(printable(label_of(words, value)), room)
            if words
            else cell_text(value, room, whole=self.is_whole(column))
        )

    def is_truth(self, column: int) -> bool:
        """Return True if a column is a boolean in each iteration."""
        return self._view is not None and self._view.is_truth(column)

    def is_whole(self, column: int) -> bool:
        """Return True if no number of a column has a fraction."""
        facts = None if self._view is None else self._view.facts.get(column)
        return facts is not None and facts.is_whole

    def _words(self, column: int) -> tuple[str, ...]:
        """Return the words for the numbers of a column of single elements; empty where it has none."""
        assert self._view is not None
        one = self._view.columns[column]
        if not self._labels or one.statistic or one.is_bucket:
            return ()
        target = self._view.topic.values[one.value].target
        return self._labels.get((id(target.program), target.slot), ())

    def _level(self, column: int, value: Any) -> int:
        assert self._view is not None
        course = self._view.courses.get(column)
        if course is not None:
            return _step(float(value), _scale_of_course(course.tobytes()))
        facts = self._view.facts[column]
        return _step(float(value), _scale_between(facts.low or 0.0, facts.high or 0.0))

    def _style(self, level: int, *, bold: bool) -> Style:
        key = level, bold, ""
        known = self._styles.get(key)
        if known is None:
            pane = self._pane
            shade = pane.colour("warm" if level > 0 else "cool")
            ground = pane.colour("background").blend(shade, (abs(level) / _STEPS) ** 0.8 * _MOST_SHADE)
            known = self._styles[key] = Style(
                bgcolor=ground.rich_color, color=pane.colour("foreground").rich_color, bold=bold
            )
        return known


# Most of what a key leaves as it was is painted again.


@lru_cache(maxsize=1 << 14)
def _step(value: float, scale: Scale) -> int:
    return round(float(shades(np.array(value), scale)) * _STEPS)


@lru_cache(maxsize=1 << 10)
def _scale_of_course(course: bytes) -> Scale:
    return scale_of(np.frombuffer(course))


@lru_cache(maxsize=1 << 10)
def _scale_between(low: float, high: float) -> Scale:
    return scale_of(np.array([low, high]))


@lru_cache(maxsize=1 << 10)
def _bar_scale_of(course: bytes) -> BarScale:
    return bar_scale(np.frombuffer(course), may_be_log=False)


_WIDE = 9
"""Cells of an iteration with its number."""
_LEAST_NARROW = 10
"""Cells that the iterations at the sides of these get at least, where not all have room for numbers."""
_NAMES = (16, 28)
_INDEX = 8
_GLYPHS = {
    RowKind.BACK_EDGE: GLYPHS["back"],
    RowKind.CONCATENATED: GLYPHS["scan"],
    RowKind.LAST_VALUE: GLYPHS["scan"],
    RowKind.BIRTH: "!",
    RowKind.SLICE: "→",
    RowKind.CONDITION: "?",
}
_CHANGES: Final[Mapping[Change | None, Cell]] = {
    None: (" ", ""),
    Change.SAME: ("=", "faint"),
    Change.MENDED: ("✓", "accent"),
    Change.BROKEN: ("✗", "bad"),
    Change.SHAPE: (GLYPHS["shape"], "edit"),
    Change.ADDED: (GLYPHS["added"], "accent"),
}
"""Signs of what an operation has become; of another number or truth `≠`."""
_MOST_PICTURES = 200
_MOST_ROWS = 500
"""Rows that are kept as they were painted."""
_TALLEST = 8
"""Lines of a picture below a row."""
_MIXED = "±"
"""Several iterations: a boolean is true in some and false in others."""


class Shape(NamedTuple):
    """Places in time on the screen: those from `first` up to `end` are wide, beside them `left` and `right` are bins.

    A bin is a pair of bounds.
    """

    first: int
    end: int
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def bounds(self) -> tuple[int, ...]:
        """The bounds of all bins; the bin between the two sides is wide."""
        return (*self.left, *self.right)


def shape_of_time(total: int, at: int, room: int, kept: int = -1) -> Shape:
    """Return which of so many places are wide, in so many cells; the others share what is left.

    They begin at the place that is `kept` while the cursor, which is `at` one of them, has a neighbour on both sides;
    else they are those around it.
    """
    whole = max(room // _WIDE, 1)
    if total <= whole:
        return Shape(0, total, (0,), (total,))
    narrow = min(total, max(room // 3, _LEAST_NARROW))
    wide = next((k for k in range(whole, 1, -1) if room - k * _WIDE - 2 >= min(narrow, total - k)), 1)
    last = total - wide
    is_inside = 0 <= kept <= last and kept + (kept > 0) <= at < kept + wide - (kept < last)
    first = kept if is_inside else max(0, min(at - wide // 2, last))
    end = first + wide
    cells = max(room - wide * _WIDE - 2, 2)
    before, behind = first, total - end
    left = min(before, max(round(cells * before / max(before + behind, 1)), min(before, 1)))
    right = min(behind, max(cells - left, min(behind, 1)))
    return Shape(first, end, _bounds(0, first, left), _bounds(end, total, right))


def _bounds(begin: int, end: int, bins: int) -> tuple[int, ...]:
    return tuple(begin + (end - begin) * k // bins for k in range(bins + 1)) if bins else (begin,)


class SheetPane(Pane):
    """Values down, iterations across."""

    DEFAULT_CSS = "SheetPane { height: 1fr; }"
    kind: ClassVar[str] = "sheet"
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = (
        "A row a value, a column an iteration: numbers around the cursor, bars elsewhere; below a tensor its elements\n"
        f"{GLYPHS['back']} x' carried to the next iteration, read there as x  {GLYPHS['scan']} collected  → slice  "
        "! NaN or Inf begins  ? continues\n"
        f"N NaN  I Inf  {GLYPHS['true']} true  {GLYPHS['false']} false  ± both  · none, or not yet  ● breakpoint\n"
        f"Beside a baseline: = same  {GLYPHS['diff']} other  ✓ finite now  ✗ not finite now  "
        f"{GLYPHS['shape']} other shape  * edited"
    )

    def __init__(self, host: StepperApp, model: SheetModel, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.model = model
        self.shape = Shape(0, 1, (0,), (1,))
        self._shades = Shades(self)
        self._shown: list[tuple[int, int]] = []
        """By line below the heading: the row, and which of its lines it is; one with more has a picture below."""
        self._heights: list[int] = []
        self._known_histories: tuple[tuple[object, ...], list[ValueHistory | None]] = (), []
        """The history of each picture by row, and the objects that it depends on."""
        self._heading: tuple[int, list[Row]] | None = None
        self._painted_rows: dict[int, tuple[tuple[object, ...], tuple[object, ...], Row]] = {}
        """Rows as they were last, with what they depend on: objects that are the same, and others that are equal."""
        self._pictures: dict[tuple[object, ...], list[Row]] = {}
        self._seen: tuple[Any, ...] = ()
        self._longest: tuple[Sequence[SheetColumn], int] = (), 0
        """The columns, and how long the longest of their names is."""

    @property
    def iteration_looked_at(self) -> tuple[Program, tuple[int, ...]] | None:
        """The body of the loop, and the iterations that the cursor is in."""
        view, iteration = self.model.view, self.model.iteration
        if view is None or iteration is None or not view.topic.body.path:
            return None
        return view.topic.body, (*(one for one in view.outer if one is not None), iteration)

    @property
    def chosen_address(self) -> str:
        """The address of the cell of the cursor."""
        try:
            return str(self.model.address())
        except UsageError:
            return ""

    @property
    def chosen_array(self) -> Array | None:
        """The value at that address."""
        found = self.model.inspected
        return None if found is None else found.value

    @property
    def chosen_element(self) -> tuple[int, ...] | None:
        """The element of the row."""
        column = self.model.at
        return None if column is None else column.index

    # --- following ---------------------------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """The run takes another course, or has come further."""
        self.state = state
        seen = (state.course, state.furthest, state.is_edited, state.a)
        if seen != self._seen:
            is_first, self._seen = not self._seen, seen
            if not is_first:
                self.model.changed_course()
        self.changed()

    def show_overview(self, state: State) -> None:
        """More is known of the whole run."""
        self.state = state
        self.changed()

    def changed(self) -> None:
        """Fit rows and columns to the size."""
        width, height = self.size
        model, view, self._heading = self.model, self.model.view, None
        if width and height and view is not None:
            level = model.level
            self.shape = shape_of_time(view.passed, level.place, width - self.label_width - 2, level.first)
            level.first = self.shape.first
            model.room = max(height - len(self.heading(width)), 1)
            model.window, model.bounds = (self.shape.first, self.shape.end), self.shape.bounds
            self._fit_heights(view)
            level.top = max(min(level.top, level.row), level.row - model.room + 1, 0)
            self.top = level.top if len(self._shown) > model.room else 0
            model.refresh()
        super().changed()

    def _fit_heights(self, view: SheetView) -> None:
        """Say how many lines each row has: where all have room, the lines left are for pictures of tensors."""
        wanted = self._pictures_wanted(view)
        found, left = [1] * len(wanted), self.model.room - len(wanted)
        while left > 0 and any(wanted):
            for index, more in enumerate(wanted):
                if more and left > 0:
                    found[index], wanted[index], left = found[index] + 1, more - 1, left - 1
        if found != self._heights:
            self._heights = found
            self._shown = [(index, line) for index, tall in enumerate(found) for line in range(tall)]

    @property
    def lines_wanted(self) -> int:
        """How many lines all rows fill, with pictures of all that have one."""
        view, width = self.model.view, self.size.width
        rows = 0 if view is None or self.model.is_none else len(view.columns) + sum(self._pictures_wanted(view))
        return len(self.heading(width)) + rows

    def _pictures_wanted(self, view: SheetView) -> list[int]:
        """Return how many lines the picture of each row fills; none of a long list of rows."""
        return [0 if one is None else _picture_lines(one) for one in self._histories(view)]

    def _histories(self, view: SheetView) -> list[ValueHistory | None]:
        count, level = len(view.columns), self.model.level
        known = view.columns, view.outer, self.model.found_in_view, self.state.overview, level.filter, level.sort
        if len(self._known_histories[0]) != len(known) or not all(map(is_, known, self._known_histories[0])):
            found = map(self._history, range(count)) if count < _MOST_PICTURES else [None] * count
            self._known_histories = known, [*found]
        return self._known_histories[1]

    def _history(self, index: int) -> ValueHistory | None:
        """Return the elements of a tensor over the iterations, as far as the background run keeps them."""
        view, found, overview = self.model.view, self.model.found_in_view, self.state.overview
        level = self.model.level
        if view is None or found is None or overview is None or level.filter or level.sort is not None:
            return None
        one = view.columns[index]
        if not one.statistic or found.changes is not None:
            return None
        compiled, frame = self.host.driver.compiled, found.question.frame
        facts = loop_facts(overview, compiled, frame.program)
        if facts is None or not facts.activations:
            return None
        target, mark = view.topic.values[one.value].target, found.marks[one.value]
        run = facts.activations[run_of(facts, view.outer)]
        for row, known in zip(facts.rows, run.values, strict=False):
            made = row.producer is not None and (row.producer.id, row.output) == (target.layer.id, target.output)
            if (row.inner.id == target.layer.id if mark is not None and mark.kind is RowKind.SLICE else made) and (
                known is not None and known.count and form_in(known) is Form.PICTURE and known.elements > 1
            ):
                return known
        return None

    def on_resize(self, _event: events.Resize) -> None:
        """Other cells are seen."""
        self.changed()

    def notify_style_update(self) -> None:
        """Another theme."""
        self._shades.forget()
        self._pictures.clear()
        self._painted_rows.clear()
        self._heading = None
        super().notify_style_update()

    # --- widths ------------------------------------------------------------------------------------------------------

    @property
    def _name_width(self) -> int:
        view = self.model.view
        if view is not None and self._longest[0] is not view.columns:
            self._longest = (
                view.columns,
                max(
                    (cell_len(row_title(view, one)) for one in view.columns[:200]),
                    default=0,
                ),
            )
        low, high = _NAMES
        return max(low, min(self._longest[1], high if self.size.width >= 100 else 22))

    @property
    def label_width(self) -> int:
        """Cells before the first iteration."""
        return 3 + self._name_width + 1 + _INDEX

    # --- rows --------------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the path, the sets of rows, filter and order, and the numbers of the iterations."""
        if self._heading is None or self._heading[0] != width:
            self._heading = width, self._heading_anew(width)
        return self._heading[1]

    def _heading_anew(self, width: int) -> list[Row]:
        model, view = self.model, self.model.view
        if view is None:
            self.title, self.note = "sheet", "" if model.level.problem else "reading"
            lines = [part for line in model.level.problem.splitlines() for part in wrapped(printable(line), width - 4)]
            reasons: list[Row] = [[(f"  {line}", "")] for line in lines]
            return [*super().heading(width), [], *reasons]
        is_low = self.app.size.height < 30
        if model.is_none:
            keys: Row = [("Esc", "key"), (" the graph around it   ", "dim"), ("g", "key"), (" its body", "dim")]
            return [[], [("  The loop has no iteration.   ", ""), *keys]]
        self._shades.take(view, self.state.labels)
        asked_for = self._asked_for(view, width)
        rows = [self._sets(view, width)]
        rows += [asked_for] if asked_for else []
        rows += [] if is_low else [[]]
        return [*rows, self._ruler(view)]

    @property
    def found_rows(self) -> RowSet | None:
        """The set of rows that is shown."""
        return None if self.model.found is None else self.model.found.question.rows

    def _sets(self, view: SheetView, width: int) -> Row:
        mark: Cell = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        row: Row = [mark, ("rows ", "dim")]
        for one in RowSet:
            is_shown = one is self.found_rows
            row.append((f" {one} {len(view.columns):,} ", "now") if is_shown else (f" {one} ", "dim"))
        row += [("  f", "key")] if width >= 70 else []
        count: Row = [] if not view.topic.body.path else [(counted(view.total, "iteration"), "note")]
        more: Row = [] if view.complete else [(", reading on", "note")]
        failed: Row = [("the run fails there   ", "bad")] if view.failure else []
        right = [*failed, *count, *more, (" ", "")]
        return spread(row, right, width) if width_of([*row, *right]) < width else row

    def _asked_for(self, view: SheetView, width: int) -> Row:
        level = self.model.level
        row: Row = [(" ", "")]
        if view.problem:
            return [(f" {clip(printable(' '.join(view.problem.split())), width - 2)}", "bad")]
        if level.filter:
            left = view.total - view.filtered
            row += [("filter ", "dim"), (printable(level.filter), "edit")]
            row.append((f"   {view.passed:,} of {counted(view.total, 'iteration')}", "strong"))
            row.append((f", {left:,} to be asked" if left > 0 else "", "dim"))
        if level.sort is not None and level.sort.column < len(view.columns):
            name = printable(view.columns[level.sort.column].name)
            way = " down" if level.sort.descending else " up"
            row += [("   " if level.filter else "", ""), ("ordered by ", "dim"), (name, "accent"), (way, "dim")]
        return row if len(row) > 1 else []

    def _ruler(self, view: SheetView) -> Row:
        shape, look = self.shape, self.model.level.look
        row: Row = [(padded("", self.label_width), "")]
        row.append((self._span(shape.left, view), "dim"))
        if len(shape.left) > 1:
            row.append((" ", ""))
        for place in range(shape.first, shape.end):
            at = place - view.top
            number = view.iterations[at] if 0 <= at < len(view.iterations) else None
            a = None if look is None or look.a is None or look.a.is_elsewhere else look.a.iteration
            if number is not None and number == a:
                row.append((f"{f'A {number:,}':>{_WIDE - 1}} ", "a-on"))
                continue
            tone = "title-on" if place == self.model.level.place else "dim"
            text = "…" if number is None else f"{number:,}"
            row.append((f"{text:>{_WIDE - 1}} ", tone))
        return [*row, (" ", ""), (self._span(shape.right, view), "dim")]

    def _span(self, bounds: tuple[int, ...], view: SheetView) -> str:
        """Return which iterations are narrow: the first and the last, where they are in the order of the run."""
        cells = len(bounds) - 1
        if cells < 1:
            return ""
        level = self.model.level
        is_plain = not level.filter and level.sort is None
        first, last = bounds[0] + view.begin, bounds[-1] - 1 + view.begin
        text = f"{first:,}…{last:,}" if is_plain and last > first else f"{first:,}" if is_plain else "…"
        return padded(text if len(text) <= cells else "…", cells)

    def count(self, width: int) -> int:
        """Return how many lines there are."""
        return 0 if self.model.view is None or self.model.is_none else len(self._shown)

    def row(self, index: int, width: int) -> Row:
        """Return one of them: a row with its numbers, or of the picture below it."""
        at, line = self._shown[index]
        view = self.model.view
        if view is None or at >= len(view.columns):
            return []  # others have come, for which it is not fitted yet
        return self._picture(at)[line - 1] if line else self._numbers(at)

    def row_at(self, y: int) -> int | None:
        """Return the index of the row in a line of the pane."""
        line = super().row_at(y)
        return None if line is None else self._shown[line][0]

    def _picture(self, index: int) -> list[Row]:
        """Return the lines below a row: its elements over the iterations, as shades."""
        view, shape = self.model.view, self.shape
        history, tall = None if view is None else self._histories(view)[index], self._heights[index] - 1
        if view is None or history is None:
            return [[]] * tall
        width = self.size.width - self.label_width
        key = (id(history), tall, shape, view.begin, width, self.look)
        if key not in self._pictures:
            if len(self._pictures) > _MOST_PICTURES:
                self._pictures.clear()
            lines = picture(history, _slots(shape, view.begin), tall, row_scale(history), self.palette)
            parts = parts_of(history, tall, is_plain=self.look.plain)
            self._pictures[key] = [
                [(padded(f"     {part}", self.label_width), "faint"), *line]
                for line, part in zip_longest(lines, parts, fillvalue="")
            ]
        return self._pictures[key]

    def _numbers(self, index: int) -> Row:
        """Return a row with its numbers: as it was, where it depends on nothing else."""
        view, level, found = self.model.view, self.model.level, self.model.found_in_view
        assert view is not None
        given = (parts.get(index) for parts in (view.numbers, view.bins, view.courses))
        form = view.forms[view.columns[index].value]
        same = *given, view.columns, view.topic, form, found, level.filter, level.sort
        place, facts, state = level.place if index == level.row else -1, view.facts.get(index), self.state
        equal = place, self.shape, self._name_width, view.request.bins, view.top, facts, state.breaks, state.labels
        known = self._painted_rows.get(index)
        if known is None or not all(map(is_, known[0], same)) or known[1] != equal:
            if len(self._painted_rows) > _MOST_ROWS:
                self._painted_rows.clear()
            known = self._painted_rows[index] = same, equal, self._numbers_anew(index, view)
        return known[2]

    def _numbers_anew(self, index: int, view: SheetView) -> Row:
        level, found = self.model.level, self.model.found_in_view
        one, is_at = view.columns[index], index == level.row
        kind = found.marks[one.value] if found is not None and one.value < len(found.marks) else None
        glyph = "" if kind is None else GLYPHS["scan"] if kind.appends else _GLYPHS.get(kind.kind, "")
        target = view.topic.values[one.value].target.layer
        glyph = glyph or (GLYPHS["unfold"] if target.bodies and not one.first else " ")
        under = " cursor" if is_at else ""
        room = self._name_width
        program = view.topic.values[one.value].target.program
        index_in = program.indices.get(target.id, -1)
        breaks = next((break_glyph(each) for each in self.state.breaks if each.is_at(program, index_in)), " ")
        tone = "bad" if kind is not None and kind.kind is RowKind.BIRTH else "dim"
        row: Row = [(GLYPHS["focus"] if is_at else " ", "accent"), (f"{glyph:1.1}", tone), (breaks, "bad")]
        mark = listed_mark(program, index_in) if index_in >= 0 else ""
        name = f"{clip(row_title(view, one), room - cell_len(mark))}{mark}"
        row.append((padded(name, room), f"strong{under}" if is_at else ""))
        row += [(f" {padded(self._index(one), _INDEX)}", f"dim{under}"), *self._cells(index, view)]
        return row

    def _index(self, one: SheetColumn) -> str:
        """Return which element is shown, or which number stands for several."""
        if one.statistic:
            view = self.model.view
            form = None if view is None else view.forms[one.value]
            shape = () if form is None or form.shape is None else form.shape
            return f"{one.statistic.replace('auto', '')}{'×'.join(map(str, shape))}"[:_INDEX]
        if one.first:
            return clip(f"[{','.join(map(str, one.first))}]{'+' * one.is_bucket}", _INDEX)
        return ""

    def _cells(self, index: int, view: SheetView) -> Iterator[Cell]:
        shape, level = self.shape, self.model.level
        bins, numbers = view.bins.get(index), view.numbers.get(index)
        is_current = view.request.bins == shape.bounds
        parts = bins if bins is not None and is_current else (None,) * (len(shape.bounds) - 1)
        left, right = len(shape.left) - 1, len(shape.right) - 1
        yield from self._narrow(index, shape.left, parts[:left])
        if left > 0:
            yield " ", ""
        marks = self._marks(index, range(shape.first, shape.end + 1))
        for place in range(shape.first, shape.end):
            at = place - view.top
            is_known = numbers is not None and 0 <= at < len(numbers)
            value = numbers[at] if numbers is not None and is_known else None
            if not is_known:
                yield f"{GLYPHS['pending']:>{_WIDE - 1}} ", "faint"
            elif index == level.row and place == level.place:
                text = "·" if value is None else self._shades.text(index, value, _WIDE - 2)
                yield f"{text:>{_WIDE - 1}} ", "now"
            elif marks:
                text, tone = marks[place - shape.first]
                yield text, tone
                yield self._shades.cell(index, value, _WIDE - 1)
            else:
                yield self._shades.cell(index, value, _WIDE)
        if right > 0:
            yield " ", ""
            yield from self._narrow(index, shape.right, parts[-right:])

    def _marks(self, index: int, bounds: Sequence[int]) -> list[Cell]:
        """Return how the operation of a row differs from the other run between neighbouring bounds."""
        view, found = self.model.view, self.model.found_in_view
        cells = None if found is None else found.changes
        if view is None or cells is None or self.model.level.filter or self.model.level.sort is not None:
            return []
        layer = view.topic.values[view.columns[index].value].target.layer.id
        spans = [(begin // cells.step, -(-end // cells.step)) for begin, end in pairwise(bounds)]
        found_cells = cells.worst_in(spans, cells.program.indices[layer])
        return [self._mark(one) for one in found_cells]

    def _mark(self, cell: SpreadCell) -> Cell:
        if cell.is_edited:
            return self.look.edited, "edit"
        return _CHANGES.get(cell.change, (GLYPHS["diff"], "edit"))

    def _narrow(self, index: int, bounds: tuple[int, ...], parts: tuple[ColumnBin | None, ...]) -> Iterator[Cell]:
        """Yield the narrow cells, those of one colour as one: to paint takes as long as there are pieces."""
        cells = self._marks(index, bounds) or self._bars(index, parts)
        for tone, run in groupby(cells, itemgetter(1)):
            yield "".join(text for text, _ in run), tone

    def _bars(self, index: int, parts: tuple[ColumnBin | None, ...]) -> Iterator[Cell]:
        is_truth, view = self._shades.is_truth(index), self.model.view
        course = None if view is None else view.courses.get(index)
        strongest = (None if one is None else one.strongest for one in parts)
        known = [] if course is None or is_truth else [one for one in strongest if one is not None]
        bars = iter(() if course is None else bars_of(np.array(known), _bar_scale_of(course.tobytes())))
        for one in parts:
            if one is None or one.strongest is None:
                yield GLYPHS["pending"], "faint"
            elif is_truth:
                yield _MIXED if one.low != one.high else GLYPHS["true" if one.low else "false"], "bar"
            else:
                yield next(bars, " "), "bar" if math.isfinite(one.strongest) else "bad"

    # --- keys that several panes know, and the mouse -----------------------------------------------------------------

    def scroll_rows(self, by: int) -> None:
        """Move the cursor with the wheel."""
        self.model.move(by, 0)

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor, a second one goes in; on the sets of rows it chooses."""
        model = self.model
        x = event.x - self.styles.padding.left
        index = self.row_at(event.y)
        if index is None and event.y == 0:
            at, view = 6, model.view
            for one in RowSet:
                wide = len(f" {one} {len(view.columns):,} ") if one is self.found_rows and view else len(one) + 2
                if at <= x < at + wide:
                    self.post_line(f"rows {one}")
                    return
                at += wide
        elif index is not None:
            place = self._place_at(x - self.label_width)
            model.go_to(model.level.place if place is None else place, index)
            if event.chain >= 2:
                self.post_line("sheet-open")

    def _place_at(self, x: int) -> int | None:
        """Return the place in time that stands in a cell."""
        shape = self.shape
        left, wide = len(shape.left) - 1, shape.end - shape.first
        begin = left + (1 if left else 0)
        if 0 <= x < left:
            return shape.left[x]
        if begin <= x < begin + wide * _WIDE:
            return shape.first + (x - begin) // _WIDE
        at = x - begin - wide * _WIDE - 1
        return shape.right[at] if 0 <= at < len(shape.right) - 1 else None


def _picture_lines(history: ValueHistory) -> int:
    """Return how many lines show all elements of a tensor: a line each if they are few, else in half blocks."""
    count = history.elements
    return count if count <= _TALLEST else min(-(-count // 2), _TALLEST)


def _slots(shape: Shape, begin: int) -> list[Slot]:
    """Return the cells of the iterations behind the names, with a blank behind each that is wide."""
    left = [Slot(k, 1, begin + one, begin + end) for k, (one, end) in enumerate(pairwise(shape.left))]
    at = len(left) + bool(left)
    wide = [
        Slot(at + k * _WIDE, _WIDE - 1, begin + k + shape.first, begin + k + shape.first + 1)
        for k in range(shape.end - shape.first)
    ]
    at += len(wide) * _WIDE + 1
    right = [Slot(at + k, 1, begin + one, begin + end) for k, (one, end) in enumerate(pairwise(shape.right))]
    return [*left, *wide, *right]


def row_title(view: SheetView, column: SheetColumn) -> str:
    """Return the name of a row, without the element or the statistic that stands beside it."""
    return expression_name(view.topic.values[column.value].title)
