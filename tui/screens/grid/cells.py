"""The cells of the grid: what is known of the visible ones, worked out for all at once, and how each is painted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from rich.style import Style

from stepper.compare.stops import ABOVE, NOT_COMPARED, SAME, WITHIN, DifferenceGrid
from stepper.debug.inspection.views import FrameView
from stepper.debug.iterations.cell_store import Cell, CellsView, Tile
from stepper.debug.moments.spread import CODES, SpreadCells
from stepper.element_types import Array
from stepper.tensors.difference import Change
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import robust_ranges
from tui.paint.folding import OperationEntry
from tui.paint.pane import Pane
from tui.paint.rows import Row, Token, width_of
from tui.screens.grid.columns import NUMBERED, PICTURED, picture_width
from tui.state import State, TimelineEventKind
from tui.theme import GLYPHS

LEVELS: Final = 12
"""Shades."""
UNKNOWN: Final = -2
FOLDED: Final = -3
CHANGED: Final = 100
ODD: Final = 200
DIFFERS: Final = 300
"""Codes of cells: a level, -1 for a value without a number; CHANGED more where the shape is another than before; from
ODD on NaN and Inf: twice the kind (1 Inf, 2 NaN), and 1 more where it begins; from DIFFERS on what is above tolerance:
twice the level, and 1 more where that begins. FOLDED is a group in which all is ordinary; else its worst one counts."""
_LOWEST: Final = -8
"""The exponent of ten of the faintest difference."""


class GridPart:
    """`codes[row][iteration]` of what is visible, a row an entry of the listing.

    `numbers` are what the codes stand for: NaN where that is none, as of a folded group.
    """

    def __init__(self, left: int, columns: int, codes: list[list[int]], numbers: list[list[float]]) -> None:
        self.left, self.columns, self.codes, self.numbers = left, columns, codes, numbers

    @staticmethod
    def of_numbers(cells: CellsView | None, entries: Sequence[OperationEntry], left: int, columns: int) -> GridPart:
        """Return the statistic of each value; unknown where there is nothing."""
        tile = _tile(cells, _operations(entries), left, columns)
        return _part(
            entries, left, columns, _number_codes(tile, left), np.where(tile.known, tile.numbers, math.nan)[1:]
        )

    @staticmethod
    def of_differences(
        cells: DifferenceGrid | None, entries: Sequence[OperationEntry], left: int, columns: int
    ) -> GridPart:
        """Return how far each value is from the reference's."""
        operations = _operations(entries)
        if cells is None:
            size = columns, len(operations)
            return _part(entries, left, columns, np.full(size, UNKNOWN), np.full(size, math.nan))
        codes, distances = _difference_codes(*cells.window(left - 1, columns + 1, operations))
        return _part(entries, left, columns, codes, distances)

    @staticmethod
    def of_spread(cells: SpreadCells, entries: Sequence[OperationEntry], left: int, columns: int) -> GridPart:
        """Return how far each value is from the other branch's, relatively; marked: more than numbers differ."""
        changes, relative = cells.window(left - 1, columns + 1, _operations(entries))
        codes, shares = _difference_codes(relative, _STANDINGS[changes])
        return _part(entries, left, columns, codes, shares)


def _operations(entries: Sequence[OperationEntry]) -> Array:
    return np.array([index for entry in entries for index in entry.indices], np.int64)


def _part(entries: Sequence[OperationEntry], left: int, columns: int, codes: Array, numbers: Array) -> GridPart:
    rows: list[list[int]] = []
    values: list[list[float]] = []
    at = 0
    for entry in entries:
        taken = codes[:, at : at + len(entry.indices)]
        rows.append((_folded(taken) if entry.is_folded else taken[:, 0]).tolist())
        values.append([math.nan] * columns if entry.is_folded else numbers[:, at].tolist())
        at += len(entry.indices)
    return GridPart(left, columns, rows, values)


def _folded(codes: Array) -> Array:
    """Return the most remarkable code of a group, in each iteration."""
    worst = codes.max(axis=1)
    remarkable = np.where(worst >= ODD, worst, np.where(worst >= CHANGED - 1, CHANGED - 1, FOLDED))
    found: Array = np.where((codes == UNKNOWN).all(axis=1), UNKNOWN, remarkable)
    return found


def _tile(cells: CellsView | None, operations: Array, left: int, columns: int) -> Tile:
    """Line 0 is the iteration before the first that is visible."""
    if cells is None:
        return Tile.empty(columns + 1, len(operations))
    return cells.window(left - 1, columns + 1, operations)


def _number_codes(tile: Tile, left: int) -> Array:
    numbers, known = tile.numbers, tile.known
    kinds = np.where(known, np.isnan(numbers) * 2 + np.isinf(numbers), 0)
    seen = tile.shapes[:-1] >= 0
    begins = np.zeros(known.shape, bool)
    begins[1:] = (kinds[1:] > 0) & seen & (kinds[1:] != kinds[:-1])
    changes = np.zeros(known.shape, bool)
    changes[1:] = seen & (tile.shapes[1:] >= 0) & (tile.shapes[1:] != tile.shapes[:-1])
    levels = _levels(numbers, known & (kinds == 0))
    first = np.arange(left - 1, left - 1 + len(numbers))[:, None] == 0
    odd = ODD + 2 * kinds + (begins | first)
    usual = np.where(changes, levels + CHANGED, levels)
    codes: Array = np.where(kinds > 0, odd, np.where(tile.shapes < 0, UNKNOWN, usual))[1:]
    return codes


def _levels(numbers: Array, finite: Array) -> Array:
    """Return the place of each number between the ends of its operation, outliers clipped; -1 where there is none."""
    if not numbers.size:
        return np.zeros(numbers.shape, np.int64)
    low, high = robust_ranges(numbers, finite)
    with np.errstate(all="ignore"):
        span = high / 2 - low / 2  # halved, so that it does not overflow
        share = np.where(span > 0, (numbers / 2 - low / 2) / span, 0.0)
    found: Array = np.where(finite, np.clip(np.nan_to_num(share), 0.0, 1.0) * (LEVELS - 1) + 0.5, -1).astype(np.int64)
    return found


_STANDINGS: Final = np.full(max(CODES.values()) + 1, ABOVE, np.int8)
"""By the code of a change in a spread: of other numbers the size is shown; NaN, Inf, booleans, other shapes, and what A
has not are marked."""
_STANDINGS[[0, CODES[Change.SAME], CODES[Change.NUMBER]]] = NOT_COMPARED, SAME, WITHIN


def _difference_codes(distances: Array, standings: Array) -> tuple[Array, Array]:
    """The shade is on a scale of powers of ten that all rows share, from 1e-8 to the largest that is seen."""
    differs = standings >= WITHIN
    with np.errstate(all="ignore"):
        exponents = np.log10(distances)
    high = max(float(exponents[differs & np.isfinite(exponents)].max(initial=_LOWEST)), _LOWEST + 1.0)
    share = np.clip((np.nan_to_num(exponents, neginf=_LOWEST, posinf=high) - _LOWEST) / (high - _LOWEST), 0.0, 1.0)
    levels = np.where(differs, 1 + share * (LEVELS - 2), -1).astype(np.int64)
    above = standings == ABOVE
    begins = np.zeros(above.shape, bool)
    begins[1:] = above[1:] & ~above[:-1]
    ordinary = np.where(standings == NOT_COMPARED, UNKNOWN, levels)
    codes: Array = np.where(above, DIFFERS + 2 * levels + begins, ordinary)[1:]
    return codes, np.where(differs, distances, math.nan)[1:]


LETTERS = "IN"
_THIN = Style(bold=False)


def event_marks(state: State, frame: FrameView | None, edited: str) -> dict[Cell, str]:
    """Return the glyphs of stops and edits in this run of a frame, by cell."""
    glyphs = {TimelineEventKind.STOP: GLYPHS["break"], TimelineEventKind.EDIT: edited}
    return {
        Cell(event.iteration, event.place[1]): glyphs[event.kind]
        for event in state.events
        if frame is not None and event.kind in glyphs and event.run == state.loop_run
        if event.place is not None and event.place[0] == id(frame.program)
    }


class CellPaint:
    """Paints the codes of a GridPart, each once."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self._cells: dict[tuple[int, int], Row] = {}

    def forget(self) -> None:
        """Another theme."""
        self._cells = {}

    def cell(self, code: int, wide: int, value: float, picture: Row, written: Callable[[float], str] = fitted) -> Row:
        """Return a cell of this code, and where it is wide the air behind it; a very wide one has the number, too.

        In place of the shade stands the `picture` of the value, where it has one; `written` says how a number is.
        """
        found = self._cells.get((code, wide))
        if found is None:
            width = wide - 1 if wide > 3 else wide
            glyph, tone = self._look_of(code)
            found = [(f"{glyph:^{width}}"[:width], tone)]
            self._cells[code, wide] = found = found if width == wide else [*found, (" ", "")]
        has_picture = bool(picture) and UNKNOWN < code < CHANGED - 1
        if wide < (PICTURED if has_picture else NUMBERED) or not math.isfinite(value):
            if not has_picture:
                return found
            blank = picture_width(wide) - width_of(picture)
            return [*picture, *([(" " * blank, "")] if blank else []), *found[1:]]
        (text, tone), *air = found
        mark = text.strip()[:1]
        tone = tone + _THIN if isinstance(tone, Style) and code < ODD else tone
        if has_picture:
            return [*picture, (f"{written(value):>{wide - 1 - width_of(picture)}}", tone), *air]
        return [(f"{' ' if mark.isdigit() else mark:1}{written(value):>{wide - 2}}", tone), *air]

    def _look_of(self, code: int) -> tuple[str, Token]:
        """Return a glyph and how it is painted."""
        if code >= DIFFERS:
            level, begins = divmod(code - DIFFERS, 2)
            figure = str(level * 9 // (LEVELS - 1)) if self._pane.look.plain else ""
            return f"{GLYPHS['diff']}{figure}", self._front(level / (LEVELS - 1), loud=bool(begins))
        if code >= ODD:
            kind, begins = divmod(code - ODD, 2)
            return LETTERS[kind - 1], self._front(loud=bool(begins))
        if code in (UNKNOWN, FOLDED):
            return GLYPHS["free"] if code == UNKNOWN else "", "faint"
        is_changed = code >= CHANGED - 1
        level = code - CHANGED if is_changed else code
        glyph = GLYPHS["shape"] if is_changed else ""
        if not glyph and self._pane.look.plain and level >= 0:
            glyph = str(level * 9 // (LEVELS - 1))
        return glyph, self._shade(level)

    def _front(self, share: float = 0.0, *, loud: bool) -> Style:
        """Return the style of an anomaly: bold where it begins, thin where it lasts; more tinted for a larger share."""
        ground, error = self._pane.colour("background"), self._pane.colour("error")
        tint = ground.blend(error, (0.30 if loud else 0.06) + 0.20 * share)
        ink = error if loud else ground.blend(error, 0.55 + 0.35 * share)
        return Style(color=ink.rich_color, bgcolor=tint.rich_color, bold=loud)

    def _shade(self, level: int) -> Style:
        """Return a level from 0; -1: there is a value, but no number."""
        share = 0.04 if level < 0 else 0.10 + 0.62 * level / (LEVELS - 1)
        ground = self._pane.colour("background").blend(self._pane.colour("secondary"), share)
        ink = ground.blend(ground.get_contrast_text(1), 0.9).rich_color
        return Style(color=ink, bgcolor=ground.rich_color, bold=not self._pane.look.plain)

    def shades(self) -> list[Style]:
        """From low to high, for the legend."""
        return [self._shade(level) for level in (0, 4, 7, LEVELS - 1)]
