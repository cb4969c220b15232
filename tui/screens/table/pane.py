"""The table: head with time and histogram, A, now and their difference, then the rows; a cursor by row and column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events

from stepper.debug.moments.texts import path_text, truth_step_text
from stepper.debug.table.columns import SheetColumn, SheetForm, SheetView
from stepper.debug.table.conditions import cell_test
from stepper.errors import UsageError
from stepper.query.short_names import last_part
from stepper.wording import counted
from tui.paint.names import expression_name, layer_name
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, cell_len, clip, clip_head, padded, printable, width_of, wrapped
from tui.screens.lists.topic import example_rows
from tui.screens.table.cells import Shades, count_bars, difference_text, time_bars
from tui.screens.table.topic import TableTopic
from tui.screens.timeline.bar import none_ran, outside_text
from tui.state import State
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.engine.program import Program

_NARROWEST: Final = 10
_WIDEST: Final = 18
_LEAST_NAME: Final = 4
_USUAL: Final = 13
"""Cells of a column at most where not all of them have room."""
_BARS: Final = 8
_DOWN, _UP = "▼", "▲"


_TABLES: Final = (
    (":table", "what the loop next to the moment carries"),
    (":table x, P", "values by name, a column an element"),
    (":table rms(*)", "a column an operation"),
    (":table outer@3::inner::h", "a value of one run of an inner loop"),
    ("0", "the overview: Enter there, or ] here, goes into a loop, where # shows what is selected"),
)


class TablePane(Pane):
    """Iterations down, elements across."""

    DEFAULT_CSS = "TablePane { height: 1fr; }"
    kind: ClassVar[str] = "table"
    shows_handed_on: ClassVar[bool] = True
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = (
        "A row an iteration, a column an element (x[0,3]), at most 64; of more elements buckets, which Enter\n"
        "opens: x[0,32]+32 begins at x[0,32] and has 32 elements. `table rms(*)` has a column an operation.\n"
        "Above the rows: the course over the iterations, how often which numbers are there, A, now, and now minus A.\n"
        "| filters: > 5, abs > 10, x[1] < prev(x[1]), nan; / goes to a column, or to the next row of a condition.\n"
        "Columns that are the same in every iteration are hidden, and counted; Space shows them.\n"
        "Shade: by column, above and below zero. Bold: what passes the filter's comparison."
    )

    def __init__(self, host: Host, topic: TableTopic, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.topic = topic
        self._shades = Shades(self)
        self._seen: tuple[Any, ...] = ()
        self._longest: tuple[SheetView | None, list[int], int] = (None, [], 0)
        self._first_held = 0

    @property
    def iteration_looked_at(self) -> tuple[Program, tuple[int, ...]] | None:
        """The body of the loop of the table, and the iterations of the row of the cursor."""
        view, iteration = self.topic.view, self.topic.iteration
        if view is None or iteration is None:
            return None
        return view.topic.body, (*(one for one in view.outer if one is not None), iteration)

    @property
    def idle(self) -> tuple[str, ...]:
        """Commands that do nothing where no other number can stand for a column."""
        return () if self.topic.has_looks else ("look next",)

    # --- following -------------------------------------------------------------------------------------------------

    def update(self, state: State) -> None:
        """The rows are others where the run stands elsewhere."""
        self.state = state
        a = None if state.a is None else (state.a.moment, state.a.title)
        seen = (None if state.view is None else state.view.tick, state.course, state.furthest, state.is_edited, a)
        if seen != self._seen:
            self._seen = seen
            self.topic.run_moved()
        self.changed()

    def changed(self) -> None:
        """Fit the rows to the size."""
        self._fit()
        super().changed()

    def _fit(self) -> None:
        width, height = self.size
        if width and height:
            self.topic.room = max(height - len(self.heading(width)), 1)
            self.topic.wide = max((width - self.label_width - 2) // self.cell_width, 1)
            self.topic.follow()
            self.top = self.topic.level.top

    def on_resize(self, _event: events.Resize) -> None:
        """Other cells are seen."""
        self.changed()
        self.topic.refresh()

    def notify_style_update(self) -> None:
        """Another theme."""
        self._shades.forget()
        super().notify_style_update()

    # --- widths ----------------------------------------------------------------------------------------------------

    @property
    def label_width(self) -> int:
        """Cells before the first column."""
        view = self.topic.view
        last = 0 if view is None else view.begin + view.total
        return max(len(str(last)) + 2, 6)

    @property
    def cell_width(self) -> int:
        """Cells of a column: wider for long names where all columns have room."""
        view, shown = self.topic.view, self.topic.shown
        if view is None or not shown:
            return _NARROWEST
        seen, listed, longest = self._longest
        if seen is not view or listed is not shown:
            longest = max(cell_len("".join(_parts(view.columns[one]))) for one in shown[:64])
            self._longest = view, shown, longest
        wanted = min(max(_NARROWEST, longest + 3), _WIDEST)
        room = max(self.size.width - self.label_width - 2, 1)
        return wanted if wanted * len(shown) <= room else min(wanted, _USUAL)

    @property
    def whole_width(self) -> int:
        """Cells in which all columns are seen, with short names."""
        return self.label_width + 2 + _USUAL * len(self.topic.shown)

    def _columns(self) -> list[int]:
        level = self.topic.level
        return self.topic.shown[level.left : level.left + self.topic.wide]

    # --- rows ------------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the title, what is sorted and filtered, the heads of the columns, and the rows that are held."""
        view = self.topic.view
        if view is None:
            problem = self.topic.level.problem
            self.title, self.note = "table", "" if problem else "reading"
            if not problem:
                return super().heading(width)
            lines = [part for line in problem.splitlines() for part in wrapped(printable(line), width - 4)]
            why: list[Row] = [[(f"  {line}", "")] for line in lines]
            return [*super().heading(width), [], *why, [], *example_rows("what a table shows", _TABLES, width)]
        if self.topic.is_none:
            loop, self.title, self.note = self.state.inside.loop, "table", ""
            known = loop is not None and none_ran(loop)
            told = outside_text(self.state.inside) if known else "no iteration has run yet"
            reasons: list[Row] = [[(f"  {line}", "")] for line in wrapped(told, width - 4)]
            return [*super().heading(width), [], *reasons]
        self._shades.take(view, self.state.labels)
        tight = self.app.size.height < 30
        rows = [self._title(view, width)]
        rows += [] if tight else [self._words(view, width), []]
        rows += self._heads(view)
        self._first_held = len(rows)
        return [*rows, *self._held(view), self._rule()]

    def _title(self, view: SheetView, width: int) -> Row:
        mark = (GLYPHS["focus"], "accent") if self.has_focus else (" ", "")
        path = " › ".join(level.text for level in self.topic.levels[1:])
        row: Row = [mark, ("table", "title-on" if self.has_focus else "title"), ("   ", "")]
        row += [*_run_of(view, max(width // 3, 24)), ("   ", "")]
        room = width - width_of(row) - 2
        if self.app.size.height < 30:
            words = self._sorted_words(view)
            row.append((clip(printable(_of(view.forms, brief=True)), max(room - width_of(words) - 3, 12)), "note"))
            return [*row, ("   ", ""), *words]
        text = _of(view.forms, brief=len(view.forms) > 4) + (f"   {path}" if path else "") + self._buckets(view)
        when = "" if any(form.is_entered for form in view.forms) else " after each iteration"
        return [*row, (clip(f"{printable(text)}{when}", room), "note")]

    def _buckets(self, view: SheetView) -> str:
        """Return how large the buckets are, and which number stands for one."""
        sheet = self.topic.level.sheet
        sizes = [one.end - one.begin for one in view.columns if one.is_bucket]
        if not sizes or sheet is None:
            return ""
        return f", {sheet.statistic} of {len(sizes)} buckets of {max(sizes):,} elements"

    def _words(self, view: SheetView, width: int) -> Row:
        constant, by_hand = self.topic.hidden
        row: Row = [("  ", ""), *self._sorted_words(view)]
        if constant or by_hand:
            same = constant - view.zero
            counts = ((view.zero, "always 0"), (same, "always the same"), (by_hand, "by hand"))
            kinds = [(count, words) for count, words in counts if count]
            detail = kinds[0][1] if len(kinds) == 1 else ", ".join(f"{count} {words}" for count, words in kinds)
            row += [("   " if width_of(row) > 2 else "", ""), ("hidden ", "dim")]
            columns = constant + by_hand
            row += [(f"{columns} column{'' if columns == 1 else 's'}", ""), (f" ({detail})", "dim")]
        return row if width_of(row) <= width else [(clip("".join(text for text, _ in row), width), "dim")]

    def _sorted_words(self, view: SheetView) -> Row:
        level, row = self.topic.level, list[tuple[str, Any]]()
        if level.filter:
            row += [("filter ", "dim"), (printable(level.filter), "edit")]
        if level.sort is not None and level.sort.column < len(view.columns):
            name = printable(view.columns[level.sort.column].name)
            way = " down" if level.sort.descending else " up"
            row += [("   " if row else "", ""), ("sorted by ", "dim"), (name, "accent"), (way, "dim")]
        return row

    def _heads(self, view: SheetView) -> list[Row]:
        level, wide, label = self.topic.level, self.cell_width, self.label_width
        on = "cursor" if level.column < 0 else ""
        names: Row = [(" ", ""), (padded("@", label - 2, right=True), f"dim {on}".strip()), (" ", "")]
        times: Row = [(padded(" time", label), "dim")]
        counts: Row = [(padded(" hist", label), "dim")]
        bars = min(wide - 2, _BARS)
        for column in self._columns():
            head = view.heads.get(column)
            is_key = level.sort is not None and level.sort.column == column
            mark = (_DOWN if level.sort.descending else _UP) if is_key and level.sort is not None else ""
            one = view.columns[column]
            name = column_label(one, wide - 2 - (2 if mark else 0))
            tone = "title-on" if column == level.column or is_key else "strong"
            names.append((f"{name}{f' {mark}' if mark else ''} ".rjust(wide), tone))
            times.append((f"{'' if head is None else time_bars(head, bars)} ".rjust(wide), "bar"))
            counts.append((f"{'' if head is None else count_bars(head)} ".rjust(wide), "note"))
        return [names, times, counts]

    def _held(self, view: SheetView) -> list[Row]:
        """Return A, now and their difference, as far as there are any."""
        look, wide, label, rows = self.topic.level.look, self.cell_width, self.label_width, list[Row]()
        if look is None:
            return rows
        a, now, columns = look.a, look.now, self._columns()
        if a is not None:
            text = "A" if a.iteration is None else f"A {a.iteration}"
            row: Row = [(padded(text, label - 1), "a-on"), (" ", "")]
            if a.problem:
                row.append((f" {a.problem}", "dim"))
            else:
                row += [self._shades.cell(column, a.numbers.get(column), wide) for column in columns]
            rows.append(row)
        here = {} if now is None else view.pinned.get(now, {})
        if now is not None:
            row = [(padded(f"{GLYPHS['now']}{now}", label - 1), "now"), (" ", "")]
            rows.append(row + [self._shades.cell(column, here.get(column), wide) for column in columns])
        if a is not None and not a.problem and now is not None:
            row = [(padded(" dif", label), "dim")]
            for column in columns:
                one, other = a.numbers.get(column), here.get(column)
                if self._shades.is_truth(column):
                    text = truth_step_text(one, other, self.look.arrow, same="=")
                else:
                    text = difference_text(one, other, wide - 2, whole=self._shades.is_whole(column))
                row.append((f"{text} ".rjust(wide), "dim" if text == "=" else "strong"))
            rows.append(row)
        return rows

    def _rule(self) -> Row:
        return [("─" * (self.label_width + len(self._columns()) * self.cell_width), "ghost")]

    def count(self, width: int) -> int:
        """Return how many rows pass the filter."""
        view = self.topic.view
        return 0 if view is None else view.passed

    def row(self, index: int, width: int) -> Row:
        """Return one of them; empty cells where it is still asked for."""
        view, level, look = self.topic.view, self.topic.level, self.topic.level.look
        assert view is not None and look is not None
        at, wide, label = index - view.top, self.cell_width, self.label_width
        if not 0 <= at < len(view.iterations):
            return [(padded("…", label - 1, right=True), "faint")]
        iteration = view.iterations[at]
        is_at, is_a = index == level.place, look.a is not None and not look.a.is_elsewhere
        is_a = is_a and look.a is not None and look.a.iteration == iteration
        tone = "now" if iteration == look.now else "a-on" if is_a else "accent" if is_at else "dim"
        number = str(iteration)
        row: Row = [(GLYPHS["focus"] if is_at else " ", "accent"), (" " * (label - 2 - len(number)), "")]
        under = " cursor" if is_at and level.column < 0 and tone not in ("now", "a-on") else ""
        row += [(number, f"{tone}{under}"), (" ", "")]
        test = cell_test(level.filter) if level.filter else None
        for column in self._columns():
            numbers = view.numbers.get(column)
            if numbers is None:
                row.append((f"{'…':>{wide - 1}} ", "faint"))
                continue
            value = numbers[at]
            if is_at and column == level.column:
                row.append((f"{self._shades.text(column, value, wide - 2):>{wide - 1}} ", "now"))
                continue
            bold = test is not None and value is not None and test.holds(float(value))
            row.append(self._shades.cell(column, value, wide, bold=bold))
        return row

    # --- keys that several panes know --------------------------------------------------------------------------------

    def look_on(self, direction: int) -> None:
        """Let another number stand for buckets, or for operations."""
        if not self.topic.look_on(direction):
            raise UsageError("each column is one number: there is no other to stand for it")
        self.changed()

    def fold(self) -> str:
        """Show the columns that are hidden, or hide them again."""
        if not any(self.topic.hidden) and not self.topic.level.shows_all:
            return "no columns are hidden"
        self.topic.toggle_hidden()
        return ""

    def scroll_rows(self, by: int) -> None:
        """Move the cursor with the wheel."""
        self.topic.move(by, 0)

    # --- the mouse -------------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click chooses a cell, a second one opens it, in the row of A goes there; on a head it sorts."""
        heading = len(self.heading(self.size.width))
        columns, topic = self._columns(), self.topic
        at = (event.x - self.styles.padding.left - self.label_width) // self.cell_width
        column = columns[at] if 0 <= at < len(columns) else -1
        index = self.row_at(event.y)
        if index is not None:
            topic.go_to(index, column if column >= 0 else None)
            if column < 0:
                topic.level.column = -1
                topic.move(0, 0)
            if event.chain >= 2:
                self.post_line("table-open")
        elif self._first_held <= event.y < heading and topic.view is not None:
            look = topic.level.look
            is_a = look is not None and look.a is not None and event.y == self._first_held
            if is_a and event.chain >= 2:
                self.post_line("goto 'A")
        elif event.y < heading and column >= 0:
            topic.level.column = column
            sort = topic.level.sort
            down = sort is None or sort.column != column
            topic.sort(descending=down or (sort is not None and not sort.descending))


class TableLine(Pane, can_focus=False):
    """The line below the table: how many rows and columns there are and are seen, and what is told how."""

    DEFAULT_CSS = "TableLine { height: 1; }"
    follows_selection: ClassVar[bool] = False

    def __init__(self, host: Host, topic: TableTopic, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.topic = topic

    def rows(self, width: int) -> list[Row]:
        """Return the line."""
        view, level = self.topic.view, self.topic.level
        if view is None or self.topic.is_none:
            return [[]]
        if view.problem:
            return [[(f" {clip(printable(' '.join(view.problem.split())), width - 2)}", "bad")]]
        row: Row = [(f" {view.passed:,} of {counted(view.total, 'row')}", "strong")]
        if level.filter:
            row.append((f"   {view.filtered - view.passed:,} filtered out", "dim"))
            if view.filtered < view.total:
                row.append((f", {view.total - view.filtered:,} to be asked", "dim"))
        if not view.complete:
            row.append(("   reading on", "dim"))
        if view.failure:
            row.append(("   the run fails there", "bad"))
        beyond = len(self.topic.shown) - level.left - self.topic.wide
        if beyond > 0:
            row.append((f"   → {beyond} more columns", ""))
        test = cell_test(level.filter) if level.filter else None
        if test is not None:
            number = f"{test.number:g}"
            row += [("   bold: ", "dim"), (f"{'abs ' if test.is_magnitude else ''}{test.operator} {number}", "strong")]
        legend: Row = [
            ("   shade by column, ", "dim"),
            ("below", "cool"),
            (" and ", "dim"),
            ("above", "warm"),
            (" zero", "dim"),
        ]
        return [[*row, *legend] if width_of(row) + width_of(legend) <= width else row]


def column_label(column: SheetColumn, room: int) -> str:
    """Return the name of a column in so many cells: which element it is stays, the name of the value is cut.

    Of several elements that is the first one; how many there are, the title says.
    """
    head, index = _parts(column)
    if cell_len(head + index) <= room:
        return head + index
    begin = f"{column.statistic}("
    if column.statistic and head.startswith(begin):
        name, left = expression_name(head[len(begin) : -1]), room - len(column.statistic) - 1
        return f"{column.statistic} {clip(name, left)}" if left >= _LEAST_NAME else clip(column.statistic, room)
    head, rest = last_part(head.strip("`")), room - len(index)
    if not index or cell_len(head) <= rest:
        return f"{clip(head, rest)}{index}"
    return f"{clip(head, rest)}{index}" if rest >= _LEAST_NAME else clip_head(index, room)


def _parts(column: SheetColumn) -> tuple[str, str]:
    """Return the name of a column's value, and which element it is."""
    index = f"[{','.join(map(str, column.first))}]" if column.first else ""
    return printable(column.of or column.name), f"{index}{'+' * column.is_bucket}"


def _run_of(view: SheetView, room: int) -> Row:
    """Return the loop of a table, and in which iterations of those around it: `inner in outer 2`, or `inner run 2`."""
    *layers, loop = view.topic.body.path
    known = [(layer, one) for layer, one in zip(layers, view.outer, strict=False) if layer.is_loop and one is not None]
    name, where, run = layer_name(loop), "", ""
    if known:
        where = f" in {', '.join(f'{layer_name(layer)} {one}' for layer, one in reversed(known))}"
        run = f" run {path_text(one for _, one in known)}"
    told = next((one for one in (where, run) if cell_len(name + one) <= room), run)
    return [(clip(name, max(room - cell_len(told), room // 3)), "strong"), (told, "note")]


def _of(forms: tuple[SheetForm, ...], *, brief: bool) -> str:
    """Return what the columns are of."""
    statistics = dict.fromkeys(form.statistic for form in forms)
    if len(statistics) == 1 and len(forms) > 4 and forms[0].statistic:
        return f"{forms[0].statistic} of {len(forms)} operations"
    if brief:
        names = ", ".join(form.name for form in forms[:6])
        return names + (f" and {len(forms) - 6} more" if len(forms) > 6 else "")
    parts = [form.name if form.statistic or form.shape is None else f"{form.name} {_form(form)}" for form in forms]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _form(form: SheetForm) -> str:
    if form.is_uneven:
        return f"{form.type}, whose shape changes"
    return f"{form.type}[{','.join(map(str, form.shape or ()))}]"
