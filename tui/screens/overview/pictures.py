"""Rows of the overview as strips (column, text, token), and the painter that lays overlapping strips into cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from rich.style import Style
from textual.color import Color

from stepper.debug.labels import label_of
from stepper.debug.overview.facts import ActivationFacts
from stepper.debug.overview.histories import ValueHistory
from stepper.element_types import Array
from stepper.tensors.pictures import BarScale, Scale, ScaleKind, bar_scale, digits, heights, scale_of, shades
from tui.paint.rows import Row, Token, cell_len, clip, printable
from tui.screens.overview.axis import ENTERED, Axis, Slot, ruler
from tui.screens.overview.cards import Form, Line, column, entered, is_true_over
from tui.theme import GLYPHS, Look

Strip = tuple[int, str, Token]
Cells = list[tuple[str, Token]]

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_NUMBERED: Final = 6
"""Cells of a slot from which on whole lines have the number itself."""
_DIGITS: Final = 6
_GRAIN: Final = 64
_RAILED: Final = 5
"""Cells of a slot from which on rails fit beside the picture."""


class Palette:
    """Colours of a theme for pictures; shades are kept."""

    def __init__(self, colour: Callable[[str], Color], look: Look) -> None:
        self.look = look
        self.background = colour("background")
        self.primary = colour("primary")
        self._colour = colour
        self._ground = self.background.blend(colour("foreground"), 0.07)
        self._shades: dict[tuple[int, bool], Color] = {}
        self._styles: dict[object, Style] = {}

    def shade(self, level: float, *, is_signed: bool, is_first: bool = False) -> Color:
        """Return the colour of a shade; of NaN and Inf that of errors, loud in the first column that has any."""
        if not math.isfinite(level):
            return self._colour("error") if is_first else self.background.blend(self._colour("error"), 0.38)
        key = round(level * _GRAIN), is_signed
        found = self._shades.get(key)
        if found is None:
            found = self._shades[key] = self._shaded(key[0] / _GRAIN, is_signed=is_signed)
        return found

    def _shaded(self, level: float, *, is_signed: bool) -> Color:
        if is_signed:
            return self._ground.blend(self._colour("warm" if level >= 0 else "cool"), abs(level) * 0.9)
        middle, end = self._colour("secondary"), self._colour("foreground")
        return self._ground.blend(middle, level / 0.7) if level < 0.7 else middle.blend(end, (level - 0.7) / 0.3 * 0.8)

    def pair(self, top: Color, bottom: Color) -> Style:
        """Return the style of an upper half block."""
        key = top, bottom
        if key not in self._styles:
            self._styles[key] = Style(color=top.rich_color, bgcolor=bottom.rich_color)
        return self._styles[key]

    def on(self, ground: Color, *, bold: bool = False) -> Style:
        """Return the style of text on a shade."""
        key = ground, bold
        if key not in self._styles:
            ink = ground.get_contrast_text(0.85)
            self._styles[key] = Style(color=(ground + ink).rich_color, bgcolor=ground.rich_color, bold=bold or None)
        return self._styles[key]

    def letter(self, *, is_first: bool) -> Style:
        """Return the style of an N or I."""
        error = self._colour("error")
        ground = error if is_first else self.background.blend(error, 0.38)
        ink = self.background if is_first else error
        return Style(color=ink.rich_color, bgcolor=ground.rich_color, bold=is_first or None)


# --- pictures of a row ----------------------------------------------------------------------------------------------


def first_bad(history: ValueHistory) -> int | None:
    """Return the first iteration with a NaN or Inf."""
    return min((one for one in (history.first_nan, history.first_infinite) if one is not None), default=None)


WAYS: Final = ("mean", "largest", "rms")
"""How several numbers become one where there is not a line each."""
SCALES: Final[tuple[ScaleKind | None, ...]] = (None, ScaleKind.LINEAR, ScaleKind.LOG)
"""The scales of a row that can be chosen; None: what suits its numbers."""


def row_scale(histories: Sequence[ValueHistory], way: str, kind: ScaleKind | None) -> Scale:
    """Return the scale of a row over all of its runs; what entered has only its sign in it, as it may be far off."""
    statistic = {"mean": 1, "rms": 2}.get(way, 0)
    numbers = [one.numbers[0 if one.is_whole else statistic] for one in histories]
    found = scale_of(np.concatenate([np.zeros(0), *(np.ravel(one).astype(np.float64) for one in numbers)]), kind)
    came = (entered(one, way) for one in histories)
    return replace(found, signed=found.signed or any(one is not None and bool((one < 0).any()) for one in came))


def reduced(numbers: Array, count: int, way: str) -> Array:
    """Return a column in at most so many numbers: of neighbours the mean, the largest or the rms; NaN before Inf."""
    wide = np.asarray(numbers, np.float64)
    if len(wide) <= count:
        return wide
    found = []
    for part in np.array_split(wide, count):
        finite = np.isfinite(part)
        if not finite.all():
            found.append(np.nan if np.isnan(part).any() else part[~finite][0])
        elif way == "largest":
            found.append(part[np.abs(part).argmax()])
        else:
            found.append(part.mean() if way == "mean" else np.sqrt(np.square(part).mean()))
    return np.array(found, np.float64)


def picture(
    history: ValueHistory,
    axis: Axis,
    height: int,
    scale: Scale,
    way: str,
    palette: Palette,
    *,
    words: Sequence[str] = (),
) -> list[list[Strip]]:
    """Return a value over the iterations as shades: a line an element where they fit, else a half line each."""
    plain = palette.look.plain
    size = history.elements
    whole = plain or size <= height
    count = min(size, height if whole else 2 * height)
    bad = first_bad(history)
    lines: list[list[Strip]] = [[] for _ in range(height)]
    columns: list[tuple[int, int, Array | None, bool, bool]] = [
        (axis.entered, ENTERED, entered(history, way), False, True)
    ]
    columns += [
        (
            slot.start,
            slot.width,
            column(history, slot.first, slot.last, way),
            bad is not None and slot.first <= bad < slot.last,
            False,
        )
        for slot in axis.slots
    ]
    for start, width, numbers, is_first, came_in in columns:
        if numbers is None:
            continue
        few = reduced(numbers, count, way)
        levels = shades(few, scale)
        for y in range(height):
            part = slice(y, y + 1) if whole else slice(2 * y, 2 * y + 2)
            if len(few[part]):
                cell = _Cell(start, width, few[part].tolist(), levels[part].tolist(), scale.signed, is_first)
                has_number = whole and width >= _NUMBERED and not came_in and size <= 16
                lines[y] += _picture_cell(cell, palette, is_whole=whole, has_number=has_number)
    return lines


class _Cell(NamedTuple):
    """The numbers and shades in one line of a slot: one, or two in half blocks."""

    start: int
    width: int
    numbers: Sequence[float]
    levels: Sequence[float]
    is_signed: bool
    is_first: bool


def _picture_cell(cell: _Cell, palette: Palette, *, is_whole: bool, has_number: bool) -> list[Strip]:
    start, width = cell.start, cell.width
    bad = [one for one in cell.numbers if not math.isfinite(one)]
    letter = "" if not bad else "N" if any(math.isnan(one) for one in bad) else "I"
    colours = [palette.shade(one, is_signed=cell.is_signed, is_first=cell.is_first) for one in cell.levels]
    top = colours[0]
    if palette.look.plain:
        text = letter or _figure(cell.levels[0], width)
        token: Token = ("bad" if bad else "") if palette.look.ascii else palette.on(top, bold=bool(bad))
        return [(start, f"{text:>{(width + 2) // 2}}".ljust(width)[:width], token)]
    if has_number and not bad:
        text = fitting_number(cell.numbers[0], min(width - 1, _DIGITS))
        return [(start, f"{text:>{(width + 5) // 2}}".ljust(width)[:width], palette.on(top))]
    low = colours[-1] if len(colours) > 1 or is_whole else palette.background
    found: list[Strip] = [(start, (" " if top == low else "▀") * width, palette.pair(top, low))]
    if letter:
        found.append((start + (width - 1) // 2, letter, palette.letter(is_first=cell.is_first)))
    return found


def fitting_number(value: float, room: int) -> str:
    """Return a number in at most so many cells, with at least one digit of it; empty where there is no such text."""
    texts = [f"{value:.{decimals}f}" for decimals in (3, 2, 1, 0)] if abs(value) < 10.0**room else []
    texts = [text for text in texts if value == 0 or float(text) != 0]
    for decimals in (2, 1, 0):
        mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
        texts.append(f"{mantissa}e{int(exponent)}")
    whole = [str(int(value))] if value == int(value) and abs(value) < 10.0**room else []
    return next((text for text in [*whole, *texts] if len(text) <= room), "")


def _figure(level: float, width: int) -> str:
    figure = int(digits(np.array([level]))[0])
    return f"{figure if width > 1 else abs(figure)}" if figure else "·"


def bar_row_scale(histories: Sequence[ValueHistory], kind: ScaleKind | None) -> BarScale:
    """Return the scale of a row of single numbers over all of its runs."""
    numbers = [np.zeros(0), *(np.ravel(one.numbers[0]).astype(np.float64) for one in histories)]
    different = np.unique(np.concatenate(numbers))  # a run that has settled is more than its way there
    return bar_scale(different, log=None if kind is None else kind is ScaleKind.LOG)


def bars(history: ValueHistory, axis: Axis, height: int, scale: BarScale) -> list[list[Strip]]:
    """Return single numbers over the iterations as bars of so many lines; NaN and Inf are letters."""
    lines: list[list[Strip]] = [[] for _ in range(height)]
    bad = first_bad(history)
    top = height * 8 - 2
    for slot in axis.slots:
        numbers = column(history, slot.first, slot.last, "largest")
        if numbers is None:
            continue
        value = float(numbers[0])
        width = slot.width - (slot.width >= 3)
        if not math.isfinite(value):
            is_first = bad is not None and slot.first <= bad < slot.last
            lines[-1].append((slot.start, "N" if math.isnan(value) else "I", "badbg" if is_first else "bad"))
            continue
        level = 1 + round(float(heights(np.array([value]), scale)[0]) * (top - 1))
        for y in range(height):
            eighths = max(0, min(level - 8 * (height - 1 - y), 8))
            if eighths:
                lines[y].append((slot.start, _EIGHTHS[eighths] * width, "bar"))
    return lines


def truth(history: ValueHistory | None, run: ActivationFacts, axis: Axis) -> list[Strip]:
    """Return T and F over the iterations; the rarer one is bold: F of a condition, T of anything else."""
    found: list[Strip] = []
    for slot in axis.slots:
        if history is None:
            holds = is_true_over(run, slot.first, slot.last)
        else:
            numbers = column(history, slot.first, slot.last, "largest")
            holds = None if numbers is None else bool(numbers[0])
        if holds is not None:
            is_rare = holds is not (history is None)
            found.append(
                (
                    slot.start + (slot.width - 1) // 2,
                    GLYPHS["true" if holds else "false"],
                    "strong" if is_rare else "bar",
                )
            )
    return found


def form_on(line: Line, histories: Sequence[ValueHistory], axis: Axis) -> Form:
    """Return how a row is drawn on an axis: whole numbers, or their labels, that have no room in the slots are bars."""
    if line.form is not Form.NUMBERS or not axis.slots:
        return line.form
    if line.labels:
        return Form.BARS if any(slot.is_bin for slot in axis.slots) else Form.NUMBERS
    ends = (int(one) for history in histories for one in (history.numbers.min(), history.numbers.max()))
    longest = max((len(str(one)) for one in ends), default=1)
    return Form.NUMBERS if longest < axis.slots[0].width else Form.BARS


def texts(line: Line, history: ValueHistory, axis: Axis) -> list[Strip]:
    """Return whole numbers, or the words for them, over the iterations."""
    found: list[Strip] = []
    came = entered(history, "largest")
    if came is not None:
        found.append((axis.entered, f"{_word(line, came[0])[:ENTERED]:>{ENTERED}}", "dim"))
    for slot in axis.slots:
        numbers = column(history, slot.first, slot.last, "largest")
        if numbers is not None:
            text = clip(_word(line, numbers[0]), slot.width)
            found.append((slot.start + (slot.width - cell_len(text)) // 2, text, "strong"))
    return found


def _word(line: Line, value: float) -> str:
    return printable(label_of(line.labels, float(value))) if line.labels else str(int(value))


def ruler_strips(axis: Axis, cursor: int | None) -> list[Strip]:
    """Return the numbers of the iterations, and the word over what entered."""
    marks: list[Strip] = [(one.column, one.text, "now" if one.is_cursor else "dim") for one in ruler(axis, cursor)]
    return [(axis.entered, "in", "dim"), *marks]


def height_wanted(form: Form, histories: Sequence[ValueHistory], columns: int) -> int:
    """Return how many lines, or halves, a row could use."""
    if form is Form.PICTURE:
        return max((one.elements for one in histories), default=1)
    if form is Form.BARS:
        return 6 if columns > 20 else 2
    return 1


# --- the painter ----------------------------------------------------------------------------------------------------


def laid(strips: Sequence[Strip], width: int) -> Cells:
    """Return strips as cells; of overlapping ones the later wins."""
    cells: Cells = [(" ", "")] * width
    for start, text, token in strips:
        for place, letter in enumerate(text, start):
            if 0 <= place < width:
                cells[place] = letter, token
    return cells


def row_of(cells: Cells) -> Row:
    """Return cells as a row."""
    row: Row = []
    run, last = "", cells[0][1] if cells else ""
    for letter, token in cells:
        if token is not last and token != last:
            row.append((run, last))
            run, last = "", token
        run += letter
    return [*row, (run, last)] if run else row


def put_rails(cells: Cells, slot: Slot, palette: Palette, *, is_selected: bool) -> None:
    """Mark the slot of the cursor in the cells of a line: rails at both sides, or a tint where it is narrow."""
    if slot.width < _RAILED:
        share = 0.45 if is_selected else 0.28
        for place in range(slot.start, min(slot.start + slot.width, len(cells))):
            letter, token = cells[place]
            if isinstance(token, Style) and token.color is not None and token.bgcolor is not None:
                top, low = (
                    Color.from_rich_color(one).blend(palette.primary, share) for one in (token.color, token.bgcolor)
                )
                cells[place] = letter, palette.pair(top, low)
            elif letter != " " and token not in ("bad", "badbg"):
                cells[place] = letter, "accent"
        return
    rail = palette.primary if is_selected else palette.background.blend(palette.primary, 0.6)
    for place, glyph in ((slot.start, "▌"), (slot.start + slot.width - 1, "▐")):
        if place >= len(cells):
            continue
        letter, token = cells[place]
        if letter not in "▀" and letter not in _EIGHTHS:
            continue
        under = palette.background
        if isinstance(token, Style) and token.bgcolor is not None:
            under = Color.from_rich_color(token.bgcolor)
            if letter == "▀" and token.color is not None:
                under = under.blend(Color.from_rich_color(token.color), 0.5)
        cells[place] = glyph, palette.pair(rail, under)
