"""A plane as colours: an element two cells wide, else half blocks, each the mean, largest or rms of what it stands for.

A cell with a NaN or an infinity in it is that letter, always; the first one is reversed. Zero is the ground; the scale
is that of all pictures of values, so that one outlier does not hide the rest.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from rich.style import Style
from textual.color import Color

from stepper.element_types import Array
from stepper.records import Record
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import ScaleKind, scale_of, shades
from stepper.tensors.surveys import CellStatistic, edges
from tui.paint.pane import Pane
from tui.paint.rows import Cell, Row
from tui.screens.value.inspected import Inspected, PictureSide
from tui.screens.value.profile import profile

_SHADES: Final = 40
_LEGEND: Final = 2
"""Rows below the picture."""
_LEGEND_FROM: Final = 8
"""Lines from which on a legend has room."""
_WORDS: Final = {
    CellStatistic.MEAN: "their mean",
    CellStatistic.LARGEST: "the largest magnitude of them",
    CellStatistic.RMS: "their root mean square",
}
_NARROWEST: Final = 44
"""Cells that a legend needs."""
_NUMBERED: Final = 8
_SIZES: Final = (2, 3, 4, 6, _NUMBERED)
"""Cells of an element from which on its number stands in them."""


class _Scale(Record):
    """How elements become cells: `wide` cells across, `halves` elements down in a cell, or `tall` cells an element."""

    wide: int
    halves: int
    tall: int
    rows: Array
    columns: Array

    def fits(self, other: _Scale) -> bool:
        """True if the same cells stand for the same elements."""
        same = (self.wide, self.halves, self.tall) == (other.wide, other.halves, other.tall)
        return same and np.array_equal(self.rows, other.rows) and np.array_equal(self.columns, other.columns)

    @property
    def is_reduced(self) -> bool:
        """True if a cell stands for more than one element."""
        return bool(len(self.rows) and (np.diff(self.rows).max() > 1 or np.diff(self.columns).max() > 1))


class _Drawn(Struct, eq=False):
    """The last drawing, without the cursor."""

    scale: _Scale
    tiles: Array
    values: list[list[float]]
    levels: list[list[int]]
    first: tuple[int, ...] | None
    rows: list[list[Row]] = field(default_factory=list)


class HeatGrid:
    """A window on the colours: the whole plane at first, + shows a part larger."""

    def __init__(self, inspected: Inspected, pane: Pane, side: PictureSide | None = None) -> None:
        """Of one of the sides; by default of what is shown."""
        self._side = side
        self._seen = inspected
        self._pane = pane
        self._styles: dict[tuple[Any, ...], Style] = {}
        self._theme: Any = None
        self._label = 4
        self._scale: _Scale | None = None
        self._before: tuple[_Scale, Array] | None = None
        self._part: tuple[range, range] = range(0), range(0)
        self._scaling = scale_of(np.zeros(0))
        self._scaled_of: Array | None = None
        self._drawn: _Drawn | None = None
        self._across = 0
        """Numbers in a line, where those of a long row stand below its shades."""

    # --- what is drawn -------------------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Row]:
        """Return a line of labels, the picture, and a legend where there is room for one."""
        seen, plane = self._seen, self._seen.plane
        if seen.array is None or height < 2 or not seen.is_numeric():
            return (
                [] if seen.is_numeric() or seen.array is None else [[(" texts have no colours; v shows them", "dim")]]
            )
        self._forget_styles()
        self._label = max(3, len(str(plane.row_label(plane.height - 1)))) + 2
        tall = height - 1 - (_LEGEND if height >= _LEGEND_FROM else 0)
        scale = self._scaled(max(width - self._label - 1, 2), max(tall, 1))
        tiles = seen.tiles(scale.rows, scale.columns, self._side)
        waits = tiles is None
        if tiles is not None:
            # The same tiles in the same cells keep what was drawn of them.
            if self._before is not None and self._before[1] is tiles and self._before[0].fits(scale):
                scale = self._before[0]
            self._before = scale, tiles
        elif self._before is not None:
            scale, tiles = self._before
        self._scale = scale
        if tiles is None:
            return [[(" looking through the elements ...", "dim")]]
        if tiles is not self._scaled_of:
            self._scaled_of, self._scaling = tiles, scale_of(self._scaled_together(scale, tiles))
        found = [self._labels(scale), *self._picture(scale, tiles)]
        found += self._in_lines(width, tall + 1 - len(found))
        if height >= _LEGEND_FROM:
            found += [[], self._legend(scale, tiles, width, waits=waits)]
        return found

    def _scaled_together(self, scale: _Scale, tiles: Array) -> Array:
        """Return what one scale is for: A and now share theirs."""
        if self._side not in (PictureSide.A, PictureSide.NOW):
            return tiles
        other = PictureSide.NOW if self._side is PictureSide.A else PictureSide.A
        beside = self._seen.tiles(scale.rows, scale.columns, other)
        return tiles if beside is None else np.concatenate((tiles.reshape(-1), beside.reshape(-1)))

    @property
    def has_numbers(self) -> bool:
        """True if the cells have their numbers in them, or below them."""
        return self._scale is not None and (self._scale.wide == _NUMBERED or self._across > 0)

    def wanted(self, width: int, *, has_numbers: bool = True) -> int:
        """Return the lines of the labels, of all elements as large as they may be, and of the legend.

        Those of a long row stand below it as numbers, if it `has_numbers`.
        """
        plane = self._seen.plane
        wide = max(size for size in _SIZES if size == 2 or size * plane.width <= width - self._label - 1)
        is_long = plane.height == 1 and wide < _NUMBERED and has_numbers
        below = -(-plane.width // self._numbers_across(width)) if is_long else 0
        lines = 1 + plane.height * min(wide // 2, 3) + below
        return lines + 1 + (_LEGEND if lines + 1 + _LEGEND >= _LEGEND_FROM else 0)

    @property
    def widest(self) -> int:
        """Return the cells in which all elements have their numbers in them."""
        return max(self._label + _NUMBERED * self._seen.plane.width + 1, _NARROWEST)

    def columns(self, height: int) -> list[Row]:
        """Return the numbers of the cells as columns below them: those of the only row, or of the one of the cursor."""
        drawn, plane = self._drawn, self._seen.plane
        if drawn is None or self._scale is None:
            return []
        if plane.height == 1:
            return profile(drawn.values[0], self._scale.wide, self._label, height)
        down = int(np.searchsorted(drawn.scale.rows, self._seen.place[0], "right")) - 1
        if drawn.scale.is_reduced or not 0 <= down < len(drawn.values):
            return []
        values = drawn.values[down]
        rows = profile(values, drawn.scale.wide, self._label, height - 1)
        if not rows:
            return []
        finite = [value for value in values if math.isfinite(value)]
        note = f"   that of the cursor, {fitted(min(finite))} to {fitted(max(finite))}"
        title: Row = [(" " * self._label, ""), (f"row {plane.row_label(self._seen.place[0])}", "title"), (note, "note")]
        return [title, *(row[:-1] for row in rows)]  # beside the columns there may be no room for the extremes

    def _scaled(self, width: int, tall: int) -> _Scale:
        """Return the largest cells with which all that is to be seen is seen."""
        rows, columns = self._window()
        self._part = rows, columns
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
        return _Scale(wide, halves, repeated, down, across)

    def _numbers_across(self, width: int) -> int:
        return max((width - self._label - 1) // _NUMBERED, 1)

    def _in_lines(self, width: int, lines: int) -> list[Row]:
        """Return the numbers of a row of few elements that is too long for them, on their shades, in several lines."""
        drawn, plane, self._across = self._drawn, self._seen.plane, 0
        across = self._numbers_across(width)
        is_long = drawn is not None and plane.height == 1 and drawn.scale.wide < _NUMBERED
        if drawn is None or not is_long or not self._seen.is_few or drawn.scale.is_reduced:
            return []
        values, columns, chosen = drawn.values[0], drawn.scale.columns.tolist(), self._seen.place[1]
        begins = range(0, len(values), across)
        if len(begins) > lines:
            return []
        self._across = across
        rows: list[Row] = []
        for begin in begins:
            label = str(plane.column_label(columns[begin]))
            row: Row = [(f"{label:>{self._label - 1}} ", "dim")]
            for place in range(begin, min(begin + across, len(values))):
                text = f"{self._written(values[place]):>{_NUMBERED - 1}} "
                is_bad = not math.isfinite(values[place])
                style = self._quiet_bad() if is_bad else self._style(drawn.levels[0][place])
                row.append((text, "now" if columns[place] == chosen else style))
            rows.append(row)
        return rows

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

    def _labels(self, scale: _Scale) -> Row:
        plane = self._seen.plane
        step = 8 if scale.wide == 2 else 14 if scale.wide == 1 else 8 // scale.wide
        text, room = "", (len(scale.columns) - 1) * scale.wide
        for cell in range(0, len(scale.columns) - 1, step):
            label = str(plane.column_label(int(scale.columns[cell])))
            if cell * scale.wide + len(label) <= max(room, len(label)):
                text = text.ljust(cell * scale.wide) + label
        return [(" " * self._label, ""), (text, "dim")]

    def _picture(self, scale: _Scale, tiles: Array) -> list[Row]:
        """Return all rows; where only the cursor has moved, those of before but two."""
        row_at, column_at = self._seen.place
        down = int(np.searchsorted(scale.rows, row_at, "right")) - 1
        across = int(np.searchsorted(scale.columns, column_at, "right")) - 1
        if self._drawn is None or self._drawn.tiles is not tiles or self._drawn.scale is not scale:
            bad = np.argwhere(~np.isfinite(tiles))
            first = tuple(bad[0].tolist()) if len(bad) else None
            self._drawn = _Drawn(scale, tiles, tiles.tolist(), self._levels(tiles), first)
            self._drawn.rows = [self._lines_at(top, None, across) for top in range(0, len(tiles), scale.halves)]
        found = list(self._drawn.rows)
        if 0 <= down < len(tiles):
            found[down // scale.halves] = self._lines_at(down // scale.halves * scale.halves, down, across)
        return [row for rows in found for row in rows]

    def _lines_at(self, top: int, down: int | None, across: int) -> list[Row]:
        """Return the lines of one row of elements, or of two in half blocks; `down` is the row of the cursor."""
        drawn = self._drawn
        assert drawn is not None
        scale, count = drawn.scale, len(drawn.values)
        row: Row = [self._row_label(scale, top, here=down is not None)]
        lower = top + 1 if scale.halves == 2 and top + 1 < count else None
        plane, last = self._seen.plane, top + scale.halves >= count
        for column in range(len(drawn.values[0])):
            if last and not plane.is_there(int(scale.rows[top]), int(scale.columns[column])):
                break
            row.append(self._cell(drawn, top, lower, column, down if column == across else None))
        if scale.tall == 1:
            return [_merged(row)]
        blank = [
            (" " * len(text) if place == 0 else " " * scale.wide, token) for place, (text, token) in enumerate(row)
        ]
        return [_merged(row if line == (scale.tall - 1) // 2 else blank) for line in range(scale.tall)]

    def _row_label(self, scale: _Scale, top: int, *, here: bool) -> Cell:
        plane = self._seen.plane
        spaced = scale.halves == 1 or top % 8 == 0
        if plane.height == 1 or not (spaced or here):
            return " " * self._label, ""
        at = self._seen.place[0] if here else int(scale.rows[top])
        return f"{plane.row_label(at):>{self._label - 1}} ", "title-on" if here else "dim"

    def _written(self, value: float) -> str:
        array = self._seen.array
        is_gap = self._side is PictureSide.DIFFERENCE
        return fitted(bool(value) if array is not None and array.dtype == np.bool_ and not is_gap else value, 6)

    def _cell(self, drawn: _Drawn, top: int, lower: int | None, column: int, cursor: int | None) -> Cell:
        """Return one cell: of one element (or bin), or of two above one another; `cursor` is its row if it is here."""
        scale, values, levels = drawn.scale, drawn.values, drawn.levels
        for row in (top,) if lower is None else (top, lower):
            value = values[row][column]
            if not math.isfinite(value):
                letter = "N" if math.isnan(value) else "I"
                if cursor is not None:
                    return f"{letter}<".ljust(scale.wide)[: scale.wide], "now"
                return letter.ljust(scale.wide), "badbg" if (row, column) == drawn.first else self._quiet_bad()
        if scale.halves == 1:
            return self._tile(values[top][column], levels[top][column], scale.wide, here=cursor is not None)
        under = 0 if lower is None else levels[lower][column]
        edge = None if cursor is None else "upper" if cursor == top else "lower"
        return "▀" * scale.wide, self._half(levels[top][column], under, edge, has_lower=lower is not None)

    def _tile(self, value: float, level: int, wide: int, *, here: bool) -> Cell:
        if here:
            return ("[]" if wide < _NUMBERED else f"{self._written(value):>{wide - 1}} ").ljust(wide), "now"
        if wide == _NUMBERED:
            return f"{self._written(value):>{wide - 1}} ", self._style(level)
        text = ""
        if self._pane.look.plain and level:
            figure = min(9, abs(level) * 10 // _SHADES)
            text = f"{'-' if value < 0 else ''}{figure}" if figure else ""
        return text.rjust(wide), self._style(level)

    # --- colours -------------------------------------------------------------------------------------------------

    def _levels(self, tiles: Array) -> list[list[int]]:
        share = np.nan_to_num(shades(tiles, self._scaling), nan=0.0, posinf=0.0, neginf=0.0)
        levels: list[list[int]] = np.rint(share * _SHADES).astype(np.int64).tolist()
        return levels

    def shade(self, level: int) -> Color:
        """Return the shade of a level between -_SHADES and _SHADES."""
        return self._pane.palette.shade(level / _SHADES, is_signed=self._scaling.signed)

    def _style(self, level: int) -> Style:
        key = ("tile", level, self._scaling.signed)
        style = self._styles.get(key)
        if style is None:
            shade = self.shade(level)
            style = Style(bgcolor=shade.rich_color, color=shade.get_contrast_text().rich_color)
            self._styles[key] = style
        return style

    def _half(self, above: int, under: int, cursor: str | None, *, has_lower: bool) -> Style:
        key = ("half", above, under, cursor, has_lower, self._scaling.signed)
        style = self._styles.get(key)
        if style is None:
            now = self._pane.colour("primary")
            upper = now if cursor == "upper" else self.shade(above)
            lower = now if cursor == "lower" else self.shade(under)
            ground = lower if has_lower else self._pane.colour("background")
            style = self._styles[key] = Style(color=upper.rich_color, bgcolor=ground.rich_color)
        return style

    def _quiet_bad(self) -> Style:
        style = self._styles.get(("bad",))
        if style is None:
            error = self._pane.colour("error")
            ground = self._pane.colour("background").blend(error, 0.22)
            style = Style(color=error.rich_color, bgcolor=ground.rich_color, bold=True)
            self._styles["bad",] = style
        return style

    def _forget_styles(self) -> None:
        theme = self._pane.app.theme
        if theme != self._theme:
            self._theme = theme
            self._drawn = None
            self._styles.clear()

    # --- beside the picture --------------------------------------------------------------------------------------

    def _legend(self, scale: _Scale, tiles: Array, width: int, *, waits: bool) -> Row:
        signed = bool((tiles < 0).any())
        steps = range(-_SHADES if signed else 0, _SHADES + 1, 5)
        most = fitted(self._scaling.full, 8)
        row: Row = [(" " * self._label, "")]
        row += [(f"-{most} " if signed else "0 ", "dim"), *[(" ", self._style(level)) for level in steps]]
        has_more = bool((np.abs(tiles[np.isfinite(tiles)]) > self._scaling.full).any())
        row.append((f" {most}{' and more' if has_more else ''}", "dim"))
        row.append((" log" if self._scaling.kind is ScaleKind.LOG else "", "dim"))
        if not np.isfinite(tiles).all():
            row += [("   ", ""), ("N", self._quiet_bad()), (" NaN  ", "dim"), ("I", self._quiet_bad()), (" Inf", "dim")]
        text = ""
        if scale.is_reduced:
            text = f"   {self.reduction}"
        elif width > 90:
            text = "   zero is the ground"
        return [*row, ("   computing ..." if waits else text, "dim")]

    @property
    def statistic(self) -> CellStatistic:
        """Return the number that stands for several elements."""
        return self._seen.statistic_of(self._side)

    @property
    def reduction(self) -> str:
        """Return how many elements a cell stands for, and by which number; empty where it is one."""
        scale = self._scale
        if scale is None or not scale.is_reduced:
            return ""
        down, across = (int(np.diff(one).max()) for one in (scale.rows, scale.columns))
        part = "half a cell" if scale.halves == 2 else "a cell"
        return f"{part} is {down} × {across} elements: {_WORDS[self.statistic]}"

    @property
    def reach(self) -> str:
        """Return the magnitude of the full shade, in words."""
        log = " log" if self._scaling.kind is ScaleKind.LOG else ""
        return f"{'±' if self._scaling.signed else 'to '}{fitted(self._scaling.full, 8)}{log}"

    def place_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Row and column of an element that is drawn in a cell: the first of those that it stands for."""
        scale = self._scale
        if scale is None or y < 1 or x < self._label:
            return None
        line = (y - 1) // scale.tall
        if self._across and line:
            column = (line - 1) * self._across + (x - self._label) // _NUMBERED
            is_in_line = (x - self._label) // _NUMBERED < self._across
            return (0, int(scale.columns[column])) if is_in_line and column < len(scale.columns) - 1 else None
        down, across = line * scale.halves, (x - self._label) // scale.wide
        if down >= len(scale.rows) - 1 or across >= len(scale.columns) - 1:
            return None
        return int(scale.rows[down]), int(scale.columns[across])

    def step(self) -> tuple[int, int]:
        """Return how many rows and columns one goes with an arrow: as many as are drawn together."""
        scale = self._scale
        if scale is None or len(scale.rows) < 2 or len(scale.columns) < 2:
            return 1, 1
        return max(1, int(np.diff(scale.rows).max())), max(1, int(np.diff(scale.columns).max()))

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
