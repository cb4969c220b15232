"""The value that is looked at as colours or numbers, or its difference; beside it the other of the two.

Colours: an element two cells wide, else half blocks, each the mean, largest or rms of what it stands for. A cell with a
NaN or an infinity in it is that letter, always; the first one is reversed. Zero is the ground; one scale holds for all
pictures of values, so that one outlier does not hide the rest. Numbers: only the cells that are seen are written. A
plane of one row that is longer than the line continues in the lines below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import Struct, field
from textual import events

from stepper import element_types
from stepper.element_types import STRING, Array
from stepper.ops.operands import form_text
from stepper.records import Record
from stepper.tensors.element_forms import codes
from stepper.tensors.number_text import fitted, number_text
from stepper.tensors.planes import readable
from stepper.tensors.surveys import CellStatistic, edges
from stepper.tensors.tensor_pictures import Scale, ScaleKind, bar_scale, heights, scale_of, shades
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import Cell, Row, columns, padded, printable, spread, width_of
from stepper_tui.screens.value.inspected import VIEWS, Inspected
from stepper_tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

_LEGEND = 2
"""Rows below the picture."""
_LEGEND_FROM = 8
"""Lines from which on a legend has room."""
_WORDS = {
    CellStatistic.MEAN: "their mean",
    CellStatistic.LARGEST: "the largest magnitude of them",
    CellStatistic.RMS: "their root mean square",
}
_NUMBERED = 8
_SIZES = (2, 3, 4, 6, _NUMBERED)
"""Cells of an element from which on its number stands in them."""
_STEPS = 8
"""Shades of a sign in the legend."""
_LEAST_BELOW = 5
"""Lines that must be left below the colours for something else to stand there."""
_UNITS = ("B", "KB", "MB", "GB")


class _Division(Record):
    """How elements become cells: `wide` cells across, `halves` elements down in a cell, or `tall` cells an element."""

    wide: int
    halves: int
    tall: int
    rows: Array
    columns: Array

    def fits(self, other: _Division) -> bool:
        """True if the same cells stand for the same elements."""
        same = (self.wide, self.halves, self.tall) == (other.wide, other.halves, other.tall)
        return same and np.array_equal(self.rows, other.rows) and np.array_equal(self.columns, other.columns)

    @property
    def each(self) -> tuple[int, int]:
        """How many rows and columns a cell stands for at most."""
        return tuple(max(1, int(np.diff(one).max(initial=1))) for one in (self.rows, self.columns))  # type: ignore[return-value]


class _Drawn(Struct, eq=False):
    """The last drawing, without the cursor."""

    cells: _Division
    tiles: Array
    scale: Scale
    levels: list[list[float]]
    first: tuple[int, ...] | None
    lines: list[list[Row]] = field(default_factory=list)


class HeatGrid:
    """A window on the colours: the whole plane at first, + shows a part larger."""

    def __init__(self, inspected: Inspected, pane: Pane) -> None:
        self._seen, self._pane = inspected, pane
        self._label = 4
        self._cells: _Division | None = None
        self._part: tuple[range, range] = range(0), range(0)
        self._drawn: _Drawn | None = None
        self._look: tuple[object, ...] = ()

    # --- what is drawn -------------------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Row]:
        """Return a line of labels, the picture, and a legend where there is room for one."""
        seen, plane = self._seen, self._seen.plane
        if seen.array is None or height < 2:
            return []
        if not seen.is_numeric():
            return [[(" texts have no colours; v shows them", "dim")]]
        self._label = max(3, len(str(plane.row_label(plane.height - 1)))) + 2
        tall = height - 1 - (_LEGEND if height >= _LEGEND_FROM else 0)
        cells = self._divided(max(width - self._label - 1, 2), max(tall, 1))
        tiles = seen.tiles(cells.rows, cells.columns)
        if tiles is None and self._drawn is None:
            self._cells = cells
            return [[(" looking through the elements ...", "dim")]]
        drawn = self._drawing(cells, tiles)
        self._cells = drawn.cells
        found = [self._labels(drawn.cells), *self._picture(drawn)]
        if height >= _LEGEND_FROM:
            found += [[], self._legend(drawn, width, waits=tiles is None)]
        return found

    def _drawing(self, cells: _Division, tiles: Array | None) -> _Drawn:
        """Return the drawing of some tiles; the same ones in the same cells keep what was drawn of them."""
        drawn, look = self._drawn, (self._pane.app.theme, self._pane.look)
        is_same = tiles is None or (drawn is not None and tiles is drawn.tiles and drawn.cells.fits(cells))
        if drawn is not None and look == self._look and is_same:
            return drawn
        tiles = drawn.tiles if tiles is None and drawn is not None else tiles
        assert tiles is not None
        scale, bad = scale_of(tiles), np.argwhere(~np.isfinite(tiles))
        first = tuple(bad[0].tolist()) if len(bad) else None
        self._drawn, self._look = _Drawn(cells, tiles, scale, shades(tiles, scale).tolist(), first), look
        return self._drawn

    @property
    def has_numbers(self) -> bool:
        """True if the cells have their numbers in them."""
        return self._cells is not None and self._cells.wide == _NUMBERED

    def wanted(self, width: int) -> int:
        """Return the lines of the labels, of all elements as large as they may be, and of the legend."""
        plane = self._seen.plane
        wide = max(size for size in _SIZES if size == 2 or size * plane.width <= width - self._label - 1)
        lines = 2 + plane.height * min(wide // 2, 3)
        return lines + (_LEGEND if lines + _LEGEND >= _LEGEND_FROM else 0)

    def profile(self, height: int) -> list[Row]:
        """Return the numbers of the row of the cursor as columns below the colours."""
        drawn, plane = self._drawn, self._seen.plane
        down = -1 if drawn is None else int(np.searchsorted(drawn.cells.rows, self._seen.place[0], "right")) - 1
        if drawn is None or height < _LEAST_BELOW or not 0 <= down < len(drawn.tiles):
            return []
        numbers = drawn.tiles[down]
        finite = numbers[np.isfinite(numbers)]
        scale = bar_scale(finite)
        wide, left = drawn.cells.wide, (" " * self._label, "")
        lines = columns(heights(numbers, scale).tolist(), min(height - 1, 16), wide, gap=wide > 3)
        ends = f"   {' to '.join(map(fitted, (finite.min(), finite.max())))}" if finite.size else ""
        rows: list[Row] = [[left, (f"row {plane.row_label(self._seen.place[0])}", "title"), (ends, "note")]]
        rows += [[left, (line, "bar")] for line in lines]
        return rows

    def _divided(self, width: int, tall: int) -> _Division:
        """Return the largest cells with which all that is to be seen is seen."""
        rows, columns = self._part = self._window()
        plain = self._pane.look.plain
        wide = 2 if 2 * len(columns) <= width or plain else 1
        halves = 1 if plain or (wide == 2 and len(rows) <= tall) else 2
        down = edges(rows.start, rows.stop, tall * halves)
        across = edges(columns.start, columns.stop, width // wide)
        repeated = 1
        if halves == 1 and len(across) > len(columns) and len(down) > len(rows):
            # Few elements get larger cells, in which the number stands as well.
            wide = max(size for size in _SIZES if size == 2 or size * len(columns) <= width)
            repeated = max(1, min(wide // 2, 3, tall // len(rows)))
        return _Division(wide, halves, repeated, down, across)

    def _window(self) -> tuple[range, range]:
        """Return all rows and columns, or with zoom a part of them that holds the cursor."""
        plane, place = self._seen.plane, self._seen.place
        found = []
        for axis, count in enumerate((plane.height, plane.width)):
            room = max(min(count, 4), count >> self._seen.zoom)
            was = self._part[axis]
            begin = was.start if len(was) == room and place[axis] in was else place[axis] - room // 2
            begin = max(0, min(begin, count - room))
            found.append(range(begin, begin + room))
        return found[0], found[1]

    def _labels(self, cells: _Division) -> Row:
        plane = self._seen.plane
        step = 8 if cells.wide == 2 else 14 if cells.wide == 1 else 8 // cells.wide
        text, room = "", (len(cells.columns) - 1) * cells.wide
        for cell in range(0, len(cells.columns) - 1, step):
            label = str(plane.column_label(int(cells.columns[cell])))
            if cell * cells.wide + len(label) <= max(room, len(label)):
                text = text.ljust(cell * cells.wide) + label
        return [(" " * self._label, ""), (text, "dim")]

    def _picture(self, drawn: _Drawn) -> list[Row]:
        """Return all rows; where only the cursor has moved, those of before but two."""
        cells, (row_at, column_at) = drawn.cells, self._seen.place
        down = int(np.searchsorted(cells.rows, row_at, "right")) - 1
        across = int(np.searchsorted(cells.columns, column_at, "right")) - 1
        if not drawn.lines:
            drawn.lines = [self._lines_at(drawn, top, None, -1) for top in range(0, len(drawn.tiles), cells.halves)]
        found = list(drawn.lines)
        if 0 <= down < len(drawn.tiles):
            found[down // cells.halves] = self._lines_at(drawn, down // cells.halves * cells.halves, down, across)
        return [row for rows in found for row in rows]

    def _lines_at(self, drawn: _Drawn, top: int, down: int | None, across: int) -> list[Row]:
        """Return the lines of one row of elements, or of two in half blocks; `down` is the row of the cursor."""
        cells, plane = drawn.cells, self._seen.plane
        count, halves = len(drawn.tiles), cells.halves
        spaced = halves == 1 or top % 8 == 0 or down is not None
        at = self._seen.place[0] if down is not None else int(cells.rows[top])
        label = f"{plane.row_label(at):>{self._label - 1}} " if spaced and plane.height > 1 else " " * self._label
        row: Row = [(label, "title-on" if down is not None else "dim")]
        for column in range(drawn.tiles.shape[1]):
            if top + halves >= count and not plane.is_there(int(cells.rows[top]), int(cells.columns[column])):
                break
            row.append(
                self._cell(drawn, range(top, min(top + halves, count)), column, down if column == across else None)
            )
        blank = [(" " * len(text), token) for text, token in row]
        return [_merged(row if line == (cells.tall - 1) // 2 else blank) for line in range(cells.tall)]

    def _written(self, value: float) -> str:
        array = self._seen.array
        is_truth = array is not None and array.dtype == np.bool_ and not self._seen.against
        return fitted(bool(value) if is_truth else value, 6)

    def _cell(self, drawn: _Drawn, rows: range, column: int, cursor: int | None) -> Cell:
        """Return one cell: of one element (or bin), or of two above one another; `cursor` is its row if it is here."""
        palette, cells, signed = self._pane.palette, drawn.cells, drawn.scale.signed
        values = [float(drawn.tiles[row, column]) for row in rows]
        levels = [drawn.levels[row][column] for row in rows]
        text = f"{self._written(values[0]):>{cells.wide - 1}} " if cells.wide == _NUMBERED else ""
        if cursor is None:
            is_first = drawn.first is not None and drawn.first[1] == column and drawn.first[0] in rows
            shown = [*levels, 0.0][: cells.halves]
            return palette.tile(shown, cells.wide, is_signed=signed, text=text, is_first=is_first)
        bad = next((one for one in values if not math.isfinite(one)), None)
        if bad is not None:
            return f"{'N' if math.isnan(bad) else 'I'}<".ljust(cells.wide)[: cells.wide], "now"
        if cells.halves == 1:
            return text or "[]".ljust(cells.wide), "now"
        colours = [palette.shade(level, is_signed=signed) for level in levels]
        colours[cursor - rows.start] = palette.primary
        return "▀" * cells.wide, palette.pair(*[*colours, palette.background][:2])

    # --- beside the picture --------------------------------------------------------------------------------------

    def _legend(self, drawn: _Drawn, width: int, *, waits: bool) -> Row:
        palette, scale, tiles = self._pane.palette, drawn.scale, drawn.tiles
        most, signed = fitted(scale.full, 8), bool((tiles < 0).any())
        row: Row = [(" " * self._label, ""), (f"-{most} " if signed else "0 ", "dim")]
        for step in range(-_STEPS if signed else 0, _STEPS + 1):
            row.append((" ", palette.on(step / _STEPS, is_signed=scale.signed)))
        has_more = bool((np.abs(tiles[np.isfinite(tiles)]) > scale.full).any())
        row.append((f" {most}{' and more' if has_more else ''}", "dim"))
        row.append((" log" if scale.kind is ScaleKind.LOG else "", "dim"))
        if not np.isfinite(tiles).all():
            bad = palette.letter(is_first=False)
            row += [("   ", ""), ("N", bad), (" NaN  ", "dim"), ("I", bad), (" Inf", "dim")]
        text = self.reduction or ("zero is the ground" if width > 90 else "")
        return [*row, ("   computing ..." if waits else f"   {text}", "dim")]

    @property
    def reduction(self) -> str:
        """Return how many elements a cell stands for, and by which number; empty where it is one."""
        down, across = self.step()
        if self._cells is None or down * across == 1:
            return ""
        part = "half a cell" if self._cells.halves == 2 else "a cell"
        return f"{part} is {down} × {across} elements: {_WORDS[self._seen.statistic]}"

    def place_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Row and column of an element that is drawn in a cell: the first of those that it stands for."""
        cells = self._cells
        if cells is None or y < 1 or x < self._label:
            return None
        down, across = (y - 1) // cells.tall * cells.halves, (x - self._label) // cells.wide
        if down >= len(cells.rows) - 1 or across >= len(cells.columns) - 1:
            return None
        return int(cells.rows[down]), int(cells.columns[across])

    def step(self) -> tuple[int, int]:
        """Return how many rows and columns one goes with an arrow: as many as are drawn together."""
        return (1, 1) if self._cells is None else self._cells.each

    def page(self) -> int:
        """Return how many rows one goes at once."""
        return 10 * self.step()[0]

    def scroll(self, down: int, across: int) -> None:
        """With zoom, look elsewhere: the cursor goes along."""
        rows, columns = self.step()
        row, column = self._seen.place
        self._seen.point_at(row + down * rows, column + across * columns)


def _merged(row: Row) -> Row:
    """Return neighbours of one look as one piece: there is less to paint."""
    found: Row = []
    for text, token in row:
        if found and found[-1][1] is token:
            found[-1] = found[-1][0] + text, token
        else:
            found.append((text, token))
    return found


_WIDEST_TEXT = 24
_FIXED = (1e-3, 1e7)
"""Largest magnitudes between which numbers are written without an exponent."""


class Format(Record):
    """`width` cells an element; `write` puts an item into at most so many."""

    width: int
    write: Callable[[Any], str]
    note: str = ""
    to_the_left: bool = False

    def cell(self, item: Any) -> str:
        """Return an item in exactly so many cells."""
        return padded(self.write(item), self.width, right=not self.to_the_left)


def format_of(part: Array, digits: int, low: float | None = None, high: float | None = None) -> Format:
    """The format for elements of a readable type; `low` and `high` are the least and the largest of the tensor."""
    if part.dtype.kind == "b":
        return Format(5, lambda item: "true" if item else "false")
    if part.dtype.kind in "iu":
        bounds = [int(part.min()), int(part.max())] if low is None or high is None else [int(low), int(high)]
        return Format(max(3, *(len(str(bound)) for bound in bounds)), str)
    if part.dtype.kind != "f":
        texts = [repr(str(item))[1:-1] for item in part.reshape(-1)[:1000].tolist()]
        width = max(4, min(_WIDEST_TEXT, max(map(len, texts), default=0)))
        return Format(width, lambda item: printable(str(item)), to_the_left=True)
    if low is None or high is None:
        finite = part[np.isfinite(part)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return _of_floats(low, high, digits)


def _of_floats(low: float, high: float, digits: int) -> Format:
    largest = max(abs(low), abs(high))
    sign = 1 if low < 0 else 0
    if largest == 0 or _FIXED[0] <= largest < _FIXED[1]:
        width = max(sign + len(str(int(largest))) + 1 + digits, 5)
        return Format(width, lambda item: _fixed(item, digits, width), f".{digits}f")
    width = sign + 2 + digits + (5 if largest >= 1e100 or (low == high and largest < 1e-99) else 4)
    return Format(width, lambda item: _exponent(item, digits), f".{digits}e")


def _fixed(item: float, digits: int, width: int) -> str:
    if not math.isfinite(item):
        return number_text(item)
    text = f"{item:.{digits}f}"
    # What is not zero must not look like it.
    if item and float(text) == 0:
        short = f"{item:.0e}".replace("e-0", "e-")
        return short if len(short) <= width else "~0" if item > 0 else "-~0"
    return text


def _exponent(item: float, digits: int) -> str:
    if not math.isfinite(item):
        return number_text(item)
    return f"{item:.{digits}e}" if item else f"{0:.{digits}f}"


def difference_format(part: Array, digits: int) -> Format:
    """Return the format of differences (f64); where nothing changed there is a dot."""
    whole = part[np.isfinite(part)]
    if whole.size and bool((whole == np.rint(whole)).all()) and float(np.abs(whole).max()) < 1e15:
        width = max(4, *(len(f"{int(bound):+d}") for bound in (whole.min(), whole.max())))
        return Format(width, lambda item: "·" if item == 0 else number_text(item) if item - item else f"{int(item):+d}")
    inner = format_of(part, digits)
    width = inner.width + (float(whole.min(initial=0.0)) >= 0)

    def write(item: float) -> str:
        return "·" if item == 0 else ("+" if item > 0 else "") + inner.write(item)

    return Format(width, write, inner.note)


def exact(element: Array) -> str:
    """Return one element with all that it has: as many digits as tell it from its neighbours."""
    item = readable(element).reshape(-1)[0]
    if isinstance(item, (bool, np.bool_)):
        return "true" if item else "false"
    if isinstance(item, np.floating):
        value = float(item)
        return number_text(value) if not math.isfinite(value) else str(item)
    return printable(str(item))


class NumberGrid:
    """A window on the numbers. It follows the cursor; the wheel moves it away."""

    def __init__(self, inspected: Inspected) -> None:
        self._seen = inspected
        self.top = self.left = 0
        self.format = Format(6, str)
        self._cursor: tuple[int, int] | None = None
        self._label = 4
        self._shown = (1, 1)
        self._wraps = 1

    def lines(self, width: int, height: int) -> list[Row]:
        """Return a line of labels, then as many rows of numbers as there is room for."""
        seen = self._seen
        array, plane = seen.array, seen.plane
        if array is None or height < 2:
            return []
        self._label = max(3, len(str(plane.row_label(plane.height - 1)))) + 2
        tall = min(height - 1, plane.height)
        self.top = self._in_sight(self.top, tall, plane.height, 0)
        self.format = self._format(array, tall)
        across = max(1, (width - self._label) // (self.format.width + 1))
        self._wraps = min(height // 2, -(-plane.width // across)) if plane.height == 1 else 1
        if self._wraps > 1:
            first, at = self.left // across, seen.place[1] // across
            if self._cursor != seen.place:
                first = min(max(first, at - self._wraps + 1), at)
            self.left = max(0, min(first, -(-plane.width // across) - self._wraps)) * across
        else:
            self.left = self._in_sight(self.left, across, plane.width, 1)
        self._cursor, self._shown = seen.place, (tall, across)
        rows, found = range(self.top, min(self.top + tall, plane.height)), []
        for begin in range(self.left, self.left + self._wraps * across, across):
            columns = range(begin, min(begin + across, plane.width))
            is_gap = seen.against and seen.is_numeric()
            items = seen.block(rows, columns) if is_gap else readable(plane.block(array, rows, columns))
            if items is None:
                return [[(f" fetching {seen.other_name} ...", "dim")]]
            found += [self._labels(columns), *self._rows(items, rows, columns)]
        return found

    def _in_sight(self, first: int, room: int, count: int, axis: int) -> int:
        """Return where the window begins, so that a cursor that has moved is in it."""
        at = self._seen.place[axis]
        if self._cursor is None or self._cursor[axis] != at:
            is_near = first - 2 < at < first + room + 1
            first = min(max(first, at - room + 1), at) if is_near else at - room // 2
        return max(0, min(first, count - room))

    def scroll(self, down: int, across: int) -> None:
        """Look elsewhere; the cursor stays."""
        self.top += down
        self.left += across + (down * self._shown[1] if self._wraps > 1 else 0)

    def step(self) -> tuple[int, int]:
        """Return how many rows and columns an arrow goes."""
        return 1, 1

    def page(self) -> int:
        """Return how many rows one goes at once."""
        return max(1, self._shown[0] - 1)

    def place_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Row and column of the element that is drawn in a cell."""
        if y < 1 or x < self._label:
            return None
        column = (x - self._label) // (self.format.width + 1)
        if self._wraps > 1:
            is_there = column < self._shown[1] and y // 2 < self._wraps
            return (0, self.left + y // 2 * self._shown[1] + column) if is_there else None
        return self.top + y - 1, self.left + column

    # --- what stands in the cells --------------------------------------------------------------------------------

    def _format(self, array: Array, tall: int) -> Format:
        """Return one format for all of the tensor where its extremes are known, else for the rows that are seen.

        It is wide enough for the labels above the numbers, too.
        """
        seen, plane = self._seen, self._seen.plane
        rows, columns = range(self.top, self.top + tall), range(self.left, min(self.left + 64, plane.width))
        if seen.against and seen.is_numeric():
            part = seen.block(rows, columns)
            form = Format(6, str) if part is None else difference_format(part, seen.digits)
        else:
            survey = seen.survey()
            low, high = (None, None) if survey is None else (survey.statistics.min, survey.statistics.max)
            form = format_of(readable(plane.block(array, rows, columns)), seen.digits, low, high)
        label = len(str(plane.column_label(plane.width - 1)))
        return form if label <= form.width else Format(label, form.write, form.note, form.to_the_left)

    def _changed(self, rows: range, columns: range) -> list[list[bool]] | None:
        """Return which cells are others than before the last movement."""
        seen = self._seen
        array, earlier = seen.array, seen.earlier
        if array is None or earlier is None or earlier.shape != array.shape or earlier.dtype != array.dtype:
            return None
        now, then = (np.ascontiguousarray(seen.plane.block(one, rows, columns)) for one in (array, earlier))
        if element_types.of(array) is not STRING:
            now, then = codes(now).reshape(now.shape), codes(then).reshape(then.shape)
        found: list[list[bool]] = (now != then).tolist()
        return found

    def _labels(self, columns: range) -> Row:
        plane, column = self._seen.plane, self._seen.place[1]
        row: Row = [(" " * self._label, "")]
        for at in columns:
            text = padded(str(plane.column_label(at)), self.format.width, right=not self.format.to_the_left)
            row.append((f"{text} ", "title-on" if at == column else "dim"))
        return row

    def _rows(self, items: Array, rows: range, columns: range) -> list[Row]:
        plane, place = self._seen.plane, self._seen.place
        changed = self._changed(rows, columns)
        found: list[Row] = []
        for down, values in enumerate(items.tolist()):
            at = rows[down]
            label = f"{plane.row_label(at):>{self._label - 1}} " if plane.height > 1 else " " * self._label
            row: Row = [(label, "title-on" if at == place[0] else "dim")]
            for across, item in enumerate(values):
                if not plane.is_there(at, columns[across]):
                    break
                is_new = changed is not None and changed[down][across]
                tone = "now" if (at, columns[across]) == place else self._tone(item, is_new=is_new)
                row += [(self.format.cell(item), tone), (" ", "")]
            found.append(row)
        return found

    def _tone(self, item: Any, *, is_new: bool) -> str:
        if isinstance(item, float) and not math.isfinite(item):
            return "bad"
        return "strong" if is_new else "dim" if not item or self._seen.shown.is_old else ""


class TensorPane(Pane):
    """A view of a value; `grid` draws it."""

    DEFAULT_CSS = "TensorPane { height: 1fr; min-height: 3; }"
    kind: ClassVar[str] = "tensor"
    help_text: ClassVar[str] = (
        "A value: two of its axes (↓ and → in the heading) as colours or numbers, of every other axis one index.\n"
        "Colours: the ground is zero; where a cell stands for several elements, their mean, or (V) the largest\n"
        "magnitude or rms of them; a NaN or Inf always shows. Numbers: bold are those that the last movement changed.\n"
        "[0,:,3:8] with `slice`. The difference is to the baseline, else to the iteration before.\n"
        "The same value stays while the run moves."
    )

    def __init__(self, host: StepperApp, inspected: Inspected, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.inspected = inspected
        self.numbers = NumberGrid(inspected)
        self.heat = HeatGrid(inspected, self)
        self._axes: list[tuple[int, int, int]] = []
        self._below = 0

    # --- what is drawn -------------------------------------------------------------------------------------------

    @property
    def grid(self) -> NumberGrid | HeatGrid:
        """The grid that draws the view."""
        return self.heat if self.inspected.view == "colours" and self.inspected.is_numeric() else self.numbers

    def wanted(self) -> int | None:
        """Return the lines that the colours of a small value take; None of another view."""
        seen, width = self.inspected, self.size.width
        if self.grid is self.numbers or not seen.is_few or not width:
            return None
        lines, cells = 2 + self.heat.wanted(width), _NUMBERED * seen.plane.width
        return lines if cells < width else lines + 1 + _LEGEND + 2 * -(-2 * cells // width)

    def heading(self, width: int) -> list[Row]:
        """Return name and iteration, the axes, and the views; below it what it is."""
        self.count(width)  # the rows choose the format that the heading names
        shown = self.inspected.shown
        mark: Cell = (GLYPHS["focus"] if self.has_focus else " ", "accent")
        iteration = "" if shown.iteration is None else f"@{shown.iteration}"
        left: Row = [mark, (printable(f"{shown.name}{iteration}"), "title-on" if self.has_focus else "title")]
        left += [("   ", ""), *self._axes_row(width_of(left) + 3)]
        views = ("colours", "numbers", "difference")
        names = views if width >= width_of(left) + 40 else (self._view_name,)
        right: Row = [(f"{name}  ", "strong" if name == self._view_name else "dim") for name in names]
        return [spread(left, [*right, ("v", "key")], width), self._facts(width)]

    @property
    def _view_name(self) -> str:
        return "difference" if self.inspected.against else self.inspected.view

    def _axes_row(self, begin: int) -> Row:
        """Return the shape with what is shown of each axis; where each stands is kept for the mouse."""
        plane = self.inspected.plane
        self._axes = []
        if self.inspected.shown.array is None:
            return []
        row: Row = [("[", "dim")]
        at = begin + 1
        for axis, size in enumerate(plane.shape):
            text = str(plane.index[axis])
            if axis in (plane.rows, plane.columns):
                text = f"{'↓' if axis == plane.rows else '→'} {self._part(axis, size)}"
            picked = axis == self.inspected.axis and len(plane.shape) > 2
            row.append((text, "cursor strong" if picked else ""))
            self._axes.append((at, at + len(text), axis))
            row.append((", " if axis < len(plane.shape) - 1 else "", "dim"))
            at += len(text) + 2
        return [*row, ("]", "dim")]

    def _part(self, axis: int, size: int) -> str:
        part = self.inspected.plane.parts[axis]
        if part == slice(None):
            return str(size)
        text = ":".join("" if bound is None else str(bound) for bound in (part.start, part.stop))
        return f"{text}{'' if part.step in (None, 1) else f':{part.step}'} of {size}"

    def _facts(self, width: int) -> Row:
        seen = self.inspected
        shown, array = seen.shown, seen.shown.array
        if array is None:
            return [(f"  {printable(shown.why)}", "dim")]
        size, unit = float(array.nbytes), 0
        while size >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        amount = f"{size:.{int(size < 10 and unit > 0)}f} {_UNITS[unit]}"
        left: Row = [(f"  {printable(shown.role)}   ", "dim"), (f"{form_text(array)}   {amount}", "")]
        if shown.others > 1:
            left += [("   i", "key"), (" inputs", "dim")]
        right: Row = []
        if shown.is_old:
            right = [(f"of the iteration before: {printable(shown.why)} ", "edit")]
        elif seen.against:
            problem = seen.before().problem
            right = [(f"no difference: {problem} " if problem else f"minus {seen.other_name} ", "accent")]
        elif self.grid is self.numbers and width >= 100:
            right = [(f"{self.numbers.format.note}  ", "note"), ("+ -", "key"), (" digits ", "dim")]
        return spread(left, right, width)

    def rows(self, width: int) -> list[Row]:
        """Return the visible part of the grid; below colours that leave room the numbers, or a row as columns."""
        seen, array = self.inspected, self.inspected.shown.array
        if array is None:
            return []
        if not array.size:
            return [[], [("  it has no elements", "dim")]]
        if seen.against and seen.before().problem:
            return [[], [(f"  {seen.before().problem}", "dim")]]
        height = max(self.size.height - 2, 1)
        lines = self.grid.lines(width, height)
        self._below = len(lines) + 1
        room = height - self._below
        if self.grid is self.numbers:
            return lines
        has_companion = self.screen.query_one("#companion").display
        if not has_companion and not self.heat.has_numbers and room >= _LEAST_BELOW - seen.is_few:
            return [*lines, [], *self.numbers.lines(width, room)]
        return lines if seen.is_few else [*lines, [], *self.heat.profile(room)]

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def look_on(self, direction: int) -> None:
        """The next view; or (-1) another number for the elements of a cell."""
        seen = self.inspected
        if direction < 0:
            seen.choose_statistic()
        else:
            seen.view, seen.against = VIEWS[(VIEWS.index((seen.view, seen.against)) + 1) % len(VIEWS)]
        self._changed_all()

    def zoom_by(self, by: int) -> None:
        """More digits, or a part of the colours larger."""
        seen = self.inspected
        if self.grid is self.heat:
            seen.zoom = max(0, min(seen.zoom + by, max(seen.plane.height, seen.plane.width).bit_length()))
        else:
            seen.digits = max(0, min(seen.digits + by, 17))
        self._changed_all()

    def _changed_all(self) -> None:
        for pane in self.screen.query(Pane):
            pane.changed()

    def step(self) -> tuple[int, int]:
        """Return how many rows and columns an arrow goes."""
        return self.grid.step()

    def page(self) -> int:
        """Return how many rows one goes at once."""
        return self.grid.page()

    def scroll_rows(self, by: int) -> None:
        """The wheel; the cursor stays."""
        self._scroll(by, 0)

    def _scroll(self, down: int, across: int) -> None:
        self.grid.scroll(down, across)
        self._changed_all()

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Sideways."""
        self._scroll(0, 2)
        event.stop()

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Sideways."""
        self._scroll(0, -2)
        event.stop()

    def wheel(self, event: events.MouseEvent, way: int) -> None:
        """Further down or up; with Shift or Ctrl further right or left; over an axis its index."""
        axis = self._axis_at(event)
        if axis is not None:
            self.inspected.axis = axis
            self.post_line(f"axis {way:+d}")
        elif event.shift or event.ctrl:
            self._scroll(0, 2 * way)
        else:
            super().wheel(event, way)

    def _axis_at(self, event: events.MouseEvent) -> int | None:
        x = event.x - self.gutter.left
        return next((axis for begin, end, axis in self._axes if event.y == 0 and begin <= x < end), None)

    def on_click(self, event: events.Click) -> None:
        """An element gets the cursor; an axis is picked, with a second click goes down the rows; a view is shown."""
        axis = self._axis_at(event)
        x, y = event.x - self.gutter.left, event.y - 2
        if axis is not None:
            again = axis == self.inspected.axis and event.chain == 2
            self.inspected.axis = axis
            self.post_line("axis rows" if again else f"axis {axis}")
        elif event.y == 0 and x > self.size.width - 38:
            self.look_on(1)
        elif self.grid is self.heat and y >= self._below:
            self._point(self.numbers.place_at(x, y - self._below))
        else:
            self._point(self.grid.place_at(x, y))

    def _point(self, place: tuple[int, int] | None) -> None:
        if place is not None:
            self.inspected.point_at(*place)
            self._changed_all()


class Companion(TensorPane, can_focus=False):
    """Numbers beside colours, colours beside numbers, of the same plane."""

    kind: ClassVar[str] = "companion"

    @property
    def grid(self) -> NumberGrid | HeatGrid:
        """The other one."""
        return self.heat if super().grid is self.numbers and self.inspected.is_numeric() else self.numbers

    def heading(self, width: int) -> list[Row]:
        """Return which it is, and where the cursor stands."""
        self.count(width)  # as above
        is_numbers = self.grid is self.numbers
        element = "[" + ",".join(map(str, self.inspected.cursor)) + "]"
        note = f"{element}   {self.numbers.format.note}" if is_numbers else element
        return [spread([(" ", ""), ("numbers" if is_numbers else "colours", "title")], [(note, "note")], width)]

    def rows(self, width: int) -> list[Row]:
        """Return the visible part of the grid."""
        seen = self.inspected
        if seen.array is None or (seen.against and seen.before().problem):
            return []
        return self.grid.lines(width, max(self.size.height - 1, 1))

    def on_click(self, event: events.Click) -> None:
        """An element gets the cursor."""
        self._point(self.grid.place_at(event.x - self.gutter.left, event.y - 1))
