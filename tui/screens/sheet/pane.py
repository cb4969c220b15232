"""The sheet: rows of values by iterations. Columns are wide around the cursor, with numbers, and narrow elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from textual import events

from stepper.debug.overview.facts import RowKind
from stepper.debug.story.texts import entry_text, iteration_text, link_name, title, value_text, verdict
from stepper.debug.table.columns import ColumnBin, SheetColumn, SheetView
from stepper.debug.table.row_sets import RowSet, RowsFound
from stepper.tensors.difference import Change
from stepper.wording import counted
from tui.paint.names import expression_name, layer_name, listed_mark
from tui.paint.pane import Host, Pane
from tui.paint.rows import Cell, Row, cell_len, clip, padded, printable, wrapped
from tui.screens.sheet.cells import Shades, bars_of
from tui.screens.sheet.headline import Headline, sentence
from tui.screens.sheet.model import SheetModel
from tui.state import State
from tui.theme import GLYPHS, break_glyph

if TYPE_CHECKING:
    from stepper.debug.moments.spread import SpreadCell
    from stepper.debug.story.facts import Story
    from stepper.element_types import Array
    from stepper.engine.program import Program

_WIDE: Final = 9
"""Cells of an iteration with its number."""
_LEAST_NARROW: Final = 10
"""Cells that the iterations at the sides of these get at least, where not all have room for numbers."""
_NAMES: Final = (16, 28)
_INDEX: Final = 8
_GLYPHS: Final = {
    RowKind.BACK_EDGE: GLYPHS["back"],
    RowKind.CONCATENATED: GLYPHS["scan"],
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
_MIXED: Final = "±"
"""Several iterations, in some of which a boolean is true and in others not."""


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
        """The bounds of all bins; that between the two sides is what is wide."""
        return (*self.left, *self.right)


def shape_of_time(total: int, at: int, room: int) -> Shape:
    """Return which of so many places are wide, in so many cells: those around one; the others share what is left."""
    whole = max(room // _WIDE, 1)
    if total <= whole:
        return Shape(0, total, (0,), (total,))
    wide = max(min((room - _LEAST_NARROW) // _WIDE, max(whole * 2 // 3, 3)), 1)
    first = max(0, min(at - wide // 2, total - wide))
    end = min(first + wide, total)
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
    shows_handed_on: ClassVar[bool] = True
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = (
        "A row a value, a column an iteration: numbers around the cursor, bars elsewhere. f chooses the rows:\n"
        "carried, all operations, the path of the value (why), what changed, what is watched, the elements.\n"
        f"{GLYPHS['back']} x' is carried to the next iteration as x, {GLYPHS['scan']} is collected, → is a slice,\n"
        "? says if the loop goes on. N NaN, I Inf, T true, F false, ± both; · not read yet.\n"
        "Of what changed: = the same, ≠ another number, ✓ finite now, ✗ no longer finite, ~ another shape, * edited.\n"
        "Enter goes into a loop, an If or a tensor, Esc comes out. Space goes to the moment of the cursor.\n"
        "> < order the iterations by the row, | shows those where a condition holds: > 5, nan, x < prev(x)."
    )

    def __init__(self, host: Host, model: SheetModel, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.model = model
        self.shape = Shape(0, 1, (0,), (1,))
        self._shades = Shades(self)
        self._headline = Headline()
        self._sets_at = 1
        self._seen: tuple[Any, ...] = ()

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
        found = self.model.inspected
        return "" if found is None else str(found.address)

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
        """The run stands elsewhere, or takes another course."""
        self.state = state
        seen = (None if state.view is None else state.view.tick, state.course, state.furthest, state.is_edited)
        if seen != self._seen:
            is_first, self._seen = not self._seen, seen
            look = self.model.level.look
            self.model.run_moved(None if look is None or is_first else state.iteration)
        self.changed()

    def changed(self) -> None:
        """Fit rows and columns to the size."""
        width, height = self.size
        model, view = self.model, self.model.view
        if width and height and view is not None:
            level, had = model.level, (model.room, model.window, model.bounds)
            model.room = max(height - len(self.heading(width)), 1)
            level.top = max(min(level.top, level.row), level.row - model.room + 1, 0)
            self.top = level.top
            self.shape = shape_of_time(view.passed, level.place, width - self.label_width - 2)
            model.window, model.bounds = (self.shape.first, self.shape.end), self.shape.bounds
            if had != (model.room, model.window, model.bounds):
                model.refresh()
        super().changed()

    def on_resize(self, _event: events.Resize) -> None:
        """Other cells are seen."""
        self.changed()

    def notify_style_update(self) -> None:
        """Another theme."""
        self._shades.forget()
        super().notify_style_update()

    # --- widths ------------------------------------------------------------------------------------------------------

    @property
    def _name_width(self) -> int:
        view = self.model.view
        longest = 0 if view is None else max((cell_len(_name(view, one)) for one in view.columns[:200]), default=0)
        low, high = _NAMES
        return max(low, min(longest, high if self.size.width >= 100 else 22))

    @property
    def label_width(self) -> int:
        """Cells before the first iteration."""
        return 3 + self._name_width + 1 + _INDEX

    # --- rows --------------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the path, the sets of rows, filter and order, and the numbers of the iterations."""
        model, view = self.model, self.model.view
        if view is None:
            self.title, self.note = "sheet", "" if model.level.problem else "reading"
            lines = [part for line in model.level.problem.splitlines() for part in wrapped(printable(line), width - 4)]
            reasons: list[Row] = [[(f"  {line}", "")] for line in lines]
            return [*super().heading(width), [], *reasons]
        if model.is_none:
            return [self._path(view, width), *self._told(width, is_low=False)]
        self._shades.take(view, self.state.labels)
        rows = [self._path(view, width), self._sets(width)]
        asked_for, is_low = self._asked_for(view, width), self.app.size.height < 30
        rows[1:1] = self._told(width, is_low=is_low)
        self._sets_at = len(rows) - 1
        rows += [asked_for] if asked_for else []
        rows += [] if is_low else [[]]
        return [*rows, self._ruler(view)]

    def _told(self, width: int, *, is_low: bool) -> list[Row]:
        """Return what the loop does, what was found, why it ended; of a path the answer to why."""
        found = self.model.found
        if found is None:
            return []
        if found.story is not None:
            strong, rest = verdict(found.story)
            lines = wrapped(printable(f"why {title(found.story)}: {strong}{rest}"), width - 2)
            most = 2 if is_low else 3
            rows: list[Row] = [[(f" {line}", "")] for line in lines[:most]]
            rows[-1] += [("…", "")] if len(lines) > most else []
            return [*rows, *self._outside(found, width)]
        frame = found.question.frame
        rows = self._headline.rows(self.state, self.host.driver.compiled, frame, width, is_low=is_low)
        does = "" if is_low or found.question.rows is not RowSet.CARRIED else sentence(found)
        return [*rows, [(f" {clip(does, width - 1)}", "dim")]] if does else rows

    def _path(self, view: SheetView, width: int) -> Row:
        mark: Cell = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        names = ["model"]
        outer = [*view.outer, None]
        for frame in self.model.path[1:]:
            layer = frame.program.path[-1]
            around = outer[len(frame.program.path) - 2] if len(frame.program.path) > 1 else None
            names[-1] += "" if around is None else f" @{around}"
            names.append(printable(layer_name(layer)))
        if len(self.model.levels) > 1 and self.found_rows is RowSet.ELEMENTS:
            names.append(printable(view.forms[0].name))
        row: Row = [mark, (clip(" › ".join(names), width * 2 // 3), "title-on" if self.has_focus else "title")]
        count = "" if not view.topic.body.path else f"   {counted(view.total, 'iteration')}"
        more = "" if view.complete else ", reading on"
        return [*row, (f"{count}{more}", "note"), ("   the run fails there" if view.failure else "", "bad")]

    def _outside(self, found: RowsFound, width: int) -> list[Row]:
        """Return what a path begins with, its back edges and links in other graphs, and what is not followed."""
        story = found.story
        if story is None:
            return []
        told = [
            f"{entry_text(link.entry)} = {value_text(link)}"
            for link in story.links
            if link.entry is not None and link.entry.factor is not None
        ]
        told += [
            f"{GLYPHS['back']} {edge.back.name} {_iteration(story, edge.source)} → {_iteration(story, edge.target)}"
            for edge in story.edges
            if edge.back is not None
        ]
        told += [f"{link_name(story, story.links[k])} = {value_text(story.links[k])}" for k in found.outside]
        told += [counted(story.pending, "operand") + " not followed"] if story.pending else []
        return [[(f" from {clip(printable(', '.join(told)), width - 7)}", "dim")]] if told else []

    @property
    def found_rows(self) -> RowSet | None:
        """The set of rows that is shown."""
        return None if self.model.found is None else self.model.found.question.rows

    def _sets(self, width: int) -> Row:
        view = self.model.view
        row: Row = [(" rows ", "dim")]
        for one in RowSet:
            if one is self.found_rows:
                row.append((f" {one} {0 if view is None else len(view.columns):,} ", "now"))
            else:
                row.append((f" {one} ", "dim"))
        return [*row, ("  f", "key"), (" other rows", "dim")] if width >= 76 else row

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
            is_now = look is not None and number is not None and number == look.now
            a = None if look is None or look.a is None or look.a.is_elsewhere else look.a.iteration
            if number is not None and number == a:
                row.append((f"{f'A {number:,}':>{_WIDE - 1}} ", "a-on"))
                continue
            tone = "title-on" if place == self.model.level.place else "accent" if is_now else "dim"
            text = "…" if number is None else f"{GLYPHS['now'] if is_now else ''}{number:,}"
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
        """Return how many rows there are."""
        view = self.model.view
        return 0 if view is None or self.model.is_none else len(view.columns)

    def row(self, index: int, width: int) -> Row:
        """Return one of them."""
        view, level = self.model.view, self.model.level
        assert view is not None
        one, is_at = view.columns[index], index == level.row
        found = self.model.found
        kind = found.marks[one.value] if found is not None and one.value < len(found.marks) else None
        glyph = "" if kind is None else _GLYPHS.get(kind.kind, "")
        target = view.topic.values[one.value].target.layer
        glyph = glyph or (GLYPHS["unfold"] if target.bodies and one.statistic != "" else " ")
        under = " cursor" if is_at else ""
        room = self._name_width
        program = view.topic.values[one.value].target.program
        index_in = program.indices.get(target.id, -1)
        breaks = next((break_glyph(each) for each in self.state.breaks if each.is_at(program, index_in)), " ")
        row: Row = [(GLYPHS["focus"] if is_at else " ", "accent"), (f"{glyph:1.1}", "dim"), (breaks, "bad")]
        mark = listed_mark(program, index_in) if index_in >= 0 else ""
        name = f"{clip(_name(view, one), room - cell_len(mark))}{mark}"
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
        target = view.topic.values[view.columns[index].value].target
        program = target.program if self._moment == (id(target.program), target.layer.id) else None
        for place in range(shape.first, shape.end):
            at = place - view.top
            is_known = numbers is not None and 0 <= at < len(numbers)
            value = numbers[at] if numbers is not None and is_known else None
            if not is_known:
                yield f"{GLYPHS['pending']:>{_WIDE - 1}} ", "faint"
            elif index == level.row and place == level.place:
                text = "·" if value is None else self._shades.text(index, value, _WIDE - 2)
                yield f"{text:>{_WIDE - 1}} ", "now"
            elif self._is_moment(program, place, view):
                text, tone = self._shades.cell(index, value, _WIDE - 1)
                yield GLYPHS["now"], "accent"
                yield text, tone
            elif marks:
                text, tone = marks[place - shape.first]
                yield text, tone
                yield self._shades.cell(index, value, _WIDE - 1)
            else:
                yield self._shades.cell(index, value, _WIDE)
        if right > 0:
            yield " ", ""
            yield from self._narrow(index, shape.right, parts[-right:])

    @property
    def _moment(self) -> tuple[int, int] | None:
        """The program and the layer of the operation after which the run stands."""
        frame = self.state.frame
        if frame is None or not 0 <= frame.moment < len(frame.layers):
            return None
        return id(frame.program), frame.layers[frame.moment].id

    def _is_moment(self, program: Program | None, place: int, view: SheetView) -> bool:
        """True if a cell of the operation of the moment is in its iteration."""
        look, at = self.model.level.look, place - view.top
        is_known = program is not None and look is not None and 0 <= at < len(view.iterations)
        return is_known and look is not None and view.iterations[at] == look.now

    def _marks(self, index: int, bounds: Sequence[int]) -> list[Cell]:
        """Return how the operation of a row differs from that of the other run between neighbouring bounds."""
        view, found = self.model.view, self.model.found
        cells = None if found is None else found.changes
        if view is None or cells is None or self.model.level.filter or self.model.level.sort is not None:
            return []
        layer = view.topic.values[view.columns[index].value].target.layer.id
        spans = [(begin // cells.step, -(-end // cells.step)) for begin, end in pairwise(bounds)]
        found_cells = cells.worst_in(spans, [cells.program.indices[layer]])
        return [self._mark(one) for one in found_cells]

    def _mark(self, cell: SpreadCell) -> Cell:
        if cell.is_edited:
            return self.look.edited, "edit"
        return _CHANGES.get(cell.change, (GLYPHS["diff"], "edit"))

    def _narrow(self, index: int, bounds: tuple[int, ...], parts: tuple[ColumnBin | None, ...]) -> Iterator[Cell]:
        marks = self._marks(index, bounds)
        if marks:
            yield from marks
            return
        is_truth, view = self._shades.is_truth(index), self.model.view
        course = None if view is None else view.courses.get(index)
        known = [] if course is None or is_truth else [one.strongest for one in parts if one is not None]
        bars = iter(() if course is None else bars_of(known, course))
        for one in parts:
            if one is None:
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
        if index is None and event.y == self._sets_at:
            at = 6
            for one in RowSet:
                view = model.view
                wide = len(f" {one} {len(view.columns):,} ") if one is self.found_rows and view else len(one) + 2
                if at <= x < at + wide:
                    model.show_rows(one)
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


def _iteration(story: Story, link: int) -> str:
    return iteration_text(story.columns[story.links[link].column].path)


def _name(view: SheetView, column: SheetColumn) -> str:
    """Return the name of a row, without the element or the statistic that stands beside it."""
    name = view.topic.values[column.value].name
    begin = f"{column.statistic}("
    if column.statistic and name.startswith(begin):
        name = expression_name(name[len(begin) : -1])
    name = name.partition("[")[0] if column.first or column.index is not None else name
    return printable(name.replace("`", ""))
