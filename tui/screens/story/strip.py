"""The strip as rows of cells: the placement of a story with the cursor, scrolled, names and heads fixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.style import Style

from stepper.debug.causes.cause import Scalar
from stepper.debug.story.facts import Story
from stepper.debug.story.strip.canvas import BAD_WIRE, WIRE, StoryCanvas
from stepper.debug.story.strip.layout import CHIP, Placement, Tone
from tui.paint.rows import Row, Token, spark
from tui.theme import GLYPHS

TOKENS: Final[dict[str, str]] = {
    "": "",
    Tone.PLAIN: "",
    Tone.STRONG: "strong",
    Tone.DIM: "dim",
    Tone.NOTE: "note",
    Tone.FAINT: "faint",
    Tone.TITLE: "title",
    Tone.NOW: "now",
    Tone.BAD: "bad",
    Tone.BAD_THIN: "bad-thin",
    Tone.BORN: "badbg",
    Tone.CHIP: "chip",
    Tone.BAD_CHIP: "bad-chip",
    Tone.HISTORY: "bar",
    WIRE: "fresh",
    BAD_WIRE: "bad-thin",
}
"""By tone: the token of tui.paint.styles."""

_GROUNDS: Final = frozenset({"badbg", "chip", "bad-chip", "now"})


class StripCursor(NamedTuple):
    """A row, and a column of the story or an iteration beside it."""

    row: int
    path: tuple[int, ...]
    column: int | None


class Strip:
    """A placed story as rows; made anew where the story or the room for it is another."""

    def __init__(self, story: Story, placement: Placement, *, plain: bool) -> None:
        self.story, self.placement = story, placement
        self._canvas = StoryCanvas(placement)
        for history in placement.histories:
            numbers = _thinned([_measured(value) for value in story.rows[history.row].history], history.width)
            for place, bar in enumerate(spark(_levelled(numbers))):
                tone = Tone.BAD_THIN if bar in "NI" else Tone.HISTORY
                self._canvas.put(history.x + place, history.y, bar, tone)
        if plain:
            for chip in placement.chips:
                self._canvas.put(chip.x, chip.y, f"[{chip.text.rstrip()[-CHIP + 2 :]:>{CHIP - 2}}]", chip.tone)

    def offset(self, width: int, cursor: StripCursor | None) -> int:
        """Return by how much what is right of the names is scrolled, so that the cursor is to be seen."""
        placed = None if cursor is None else self.placement.column_of(cursor.path, cursor.column)
        if self.placement.width <= width or placed is None:
            return 0
        end = min(placed.x + placed.width, self.placement.width)
        return max(0, min(end - width, placed.x - self.placement.names))

    def rows(self, width: int, height: int, cursor: StripCursor | None) -> list[Row]:
        """Return so many rows, with the heads at the top."""
        placement = self.placement
        offset = self.offset(width, cursor)
        lines = list(range(placement.head))
        room = height - len(lines)
        rest = range(placement.head, placement.height)
        top = placement.head
        if cursor is not None and len(rest) > room:
            at = placement.line_of(cursor.row)
            top = max(placement.head, min(at - room // 2, placement.height - room))
        lines += list(range(top, min(top + room, placement.height)))
        return [self._row(y, width, offset, cursor) for y in lines]

    def _row(self, y: int, width: int, offset: int, cursor: StripCursor | None) -> Row:
        cells: list[tuple[str, Token]] = [(text, TOKENS[tone]) for text, tone in self._canvas.cells[y]]
        names = self.placement.names
        if cursor is not None and y == self.placement.line_of(cursor.row):
            self._mark(cells, cursor)
        shown = cells[:names] + cells[names + offset :]
        if offset and names < len(shown):
            shown[names - 1] = ("‹", "note")
        if len(shown) > width:
            shown = [*shown[: width - 1], ("›", "note")]
        return _joined(shown)

    def _mark(self, cells: list[tuple[str, Token]], cursor: StripCursor) -> None:
        """Show the cursor in a row: at its begin, and at the cell."""
        placed = self.placement.column_of(cursor.path, cursor.column)
        begin = self.placement.names if placed is None else placed.x
        end = begin if placed is None else placed.x + placed.width - 1
        is_chip = cursor.column is not None and self.story.at(cursor.row, cursor.column) is not None
        for x in [*range(min(begin, len(cells))), *range(begin, min(end, len(cells)))]:
            text, token = cells[x]
            if token == "chip" and is_chip and x < begin + CHIP and x >= begin:
                cells[x] = (text, "now")
            elif not isinstance(token, Style) and not _GROUNDS & set(token.split()):
                cells[x] = (text, f"{token} cursor".strip())
        cells[0] = (GLYPHS["focus"], "accent cursor")
        if placed is not None and 0 < placed.x <= len(cells):
            cells[placed.x - 1] = (GLYPHS["focus"], "accent cursor")


def _joined(cells: Sequence[tuple[str, Token]]) -> Row:
    row: Row = []
    for text, token in cells:
        if row and row[-1][1] == token:
            row[-1] = (row[-1][0] + text, token)
        else:
            row.append((text, token))
    return row


def _measured(value: Scalar | None) -> float | None:
    if isinstance(value, str):
        return math.nan if value == "NaN" else math.inf
    return None if value is None else float(value)


def _thinned(numbers: list[float | None], width: int) -> list[float | None]:
    """Return at most so many numbers: of several that share a cell the one that is not finite, else the largest."""
    if len(numbers) <= width:
        return numbers
    found: list[float | None] = []
    for place in range(width):
        part = [
            one
            for one in numbers[place * len(numbers) // width : (place + 1) * len(numbers) // width]
            if one is not None
        ]
        odd = next((one for one in part if not math.isfinite(one)), None)
        found.append(odd if odd is not None else max(part, key=abs, default=None))
    return found


def _levelled(numbers: list[float | None]) -> list[float | None]:
    """Return the logarithms of magnitudes with their signs where one number would flatten all others."""
    sizes = sorted(abs(one) for one in numbers if one is not None and math.isfinite(one) and one)
    if not sizes or sizes[-1] < 100 * sizes[len(sizes) // 2]:
        return numbers
    return [
        one if one is None or not math.isfinite(one) else math.copysign(math.log1p(abs(one)), one) for one in numbers
    ]
