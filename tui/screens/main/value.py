"""The value of the selected operation in a few lines; Enter opens it full screen."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np

from stepper import element_types
from stepper.debug.inspection.views import ValueView
from stepper.debug.labels import labelled
from stepper.element_types import Array
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.tensors.number_text import fitted, short_exponent
from stepper.tensors.pictures import scale_of, shades
from stepper.tensors.planes import row_shape
from stepper.tensors.statistics import Statistics, statistics
from stepper.tensors.surveys import bin_range, largest_of
from tui.paint.names import operation_names, partner_mark, statistic_word
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, padded, printable, spark, width_of
from tui.screens.value.profile import LEAST, profile
from tui.state import State
from tui.theme import GLYPHS

_INDEX: Final = 4
_WRAPPED: Final = 8
"""Cells of the index at the left of a row in several lines, and of each of its numbers."""
MOST_AT_ONCE = 200_000
"""Elements of which the statistics are computed while one waits."""


class ValueStrip(Pane):
    """Name and type, the statistics, then the last axis as shades with a label above and the number below."""

    DEFAULT_CSS = "ValueStrip { border-top: solid $foreground 14%; }"
    kind: ClassVar[str] = "value"
    opened_by: ClassVar[str | None] = "open"
    help_text: ClassVar[str] = "The value of the selected operation: its statistics, and its last axis as shades."

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._known: tuple[Array, Statistics] | None = None

    def heading(self, width: int) -> list[Row]:
        """Return the value's name and type."""
        value = self._value()
        self.title, self.note = "value", ""
        if value is not None:
            self.title = self._title()
            if value.array is not None:
                name = element_types.name_of(value.array.dtype)
                frame, cursor = self.state.frame, self.state.cursor
                is_edited = frame is not None and cursor is not None and frame.is_edited(cursor)
                edited = f"{self.look.edited} edited   " if is_edited else ""
                opens = "" if self.state.is_far else "   Enter opens"
                self.note = f"{edited}{name}{shape_text(value.array.shape)}{opens}"
        return super().heading(width)

    def _value(self) -> ValueView | None:
        frame, cursor = self.state.frame, self.state.cursor
        if frame is None or cursor is None or not frame.layers[cursor].outputs:
            return None
        return frame.output(cursor)

    def _title(self) -> str:
        frame, cursor = self.state.frame, self.state.cursor
        assert frame is not None and cursor is not None
        name, mark = operation_names(frame.program)[cursor], partner_mark(frame.program, cursor)
        iteration = "" if frame.iteration is None else f"@{frame.iteration}"
        return f"{name}:0{iteration}{mark}"

    def rows(self, width: int) -> list[Row]:
        """Return four rows, whatever the value is; where it has a tab of its own, as many as there is room for."""
        value = self._value()
        if value is None:
            return [[], [], [], []]
        array = value.array
        height = self.styles.height
        room = 4 if height is None or height.is_auto else max(self.size.height - 1, 4)
        if array is None:
            frame, cursor = self.state.frame, self.state.cursor
            before = None if frame is None or cursor is None else frame.held(cursor)
            found: list[Row] = [[(" ", ""), (value.absent, "dim")]]
            if before is not None:
                words = "one iteration before:"
                fits = len(value.absent) + len(words) + 4 <= width
                found = [[*found[0], (f"; {words}", "dim")]] if fits else [*found, [(f" {words}", "dim")]]
                shown = vector_rows(self, before, width, room - len(found))
                found += shown[len(found) + len(shown) > room :]  # rather numbers than what stands above them
            return _four(found, room)
        found = [
            [*self._statistics_row(array, width), *self._labels(array)],
            *vector_rows(self, array, width, room - 1),
        ]
        rest = room - len(found)
        columns = column_rows(array, width, rest - 1)
        found += [[], *columns] if columns else column_rows(array, width, rest)
        return _four([*found, *history_rows(self.state, width, room - len(found))], room)

    def _labels(self, array: Array) -> Row:
        """Return the words for the numbers, where the value has labels."""
        frame, cursor = self.state.frame, self.state.cursor
        layer = None if frame is None or cursor is None else frame.layers[cursor]
        words = labelled(self.state.labels_of(None if frame is None else frame.program, layer), array)
        return [("  ", ""), (printable(words), "strong")] if words else []

    def _statistics_row(self, array: Array, width: int) -> Row:
        if array.size > MOST_AT_ONCE and (self._known is None or self._known[0] is not array):
            return [(f" {array.size:,} elements", "dim")]
        if self._known is None or self._known[0] is not array:
            self._known = array, statistics(array)
        return statistics_row(self._known[1], width)


def history_rows(state: State, width: int, lines: int) -> list[Row]:
    """Return the last iterations as columns or in a row of bars, where there is room for them below the value."""
    frame, cursor, history = state.frame, state.cursor, state.history
    if frame is None or cursor is None or history is None or frame.iteration is None or lines < 3:
        return []
    last = frame.iteration if frame.is_done(cursor) else frame.iteration - 1
    numbers = history.of(cursor, last, (width - 10) // 2)
    begin = next((place for place in range(len(numbers), 0, -1) if numbers[place - 1] is None), 0)
    known = [one for one in numbers[begin:] if one is not None]
    if len(known) < 2:
        return []
    word = statistic_word(history.statistic, frame.program, cursor)
    title = f" {word} in iterations {last + 1 - len(known)} to {last}"
    wide = max(1, min((width - 10) // len(known), 6))
    if _is_verdict(frame.output(cursor)):
        letters = "".join(f"{GLYPHS['true' if one else 'false']:^{wide}}" for one in known)
        return [[], [(title, "dim")], [(" ", ""), (letters.rstrip(), "strong")]]
    columns = profile(known, wide, 1, lines - 2)
    bars = "".join(bar * (wide - 1) + " " if wide > 1 else bar for bar in spark(known))
    return [[], [(title, "dim")], *(columns or [[(" ", ""), (bars, "bar")]])]


def _is_verdict(value: ValueView | None) -> bool:
    """True if a value is true or false, and not a tensor of such."""
    array = None if value is None else value.array
    return array is not None and array.size == 1 and array.dtype == np.bool_


def statistics_row(found: Statistics, width: int) -> Row:
    """Extremes with their places, how many elements are not ordinary, and the mean where there is room for it."""
    if found.min is None:
        shown: Row = [(f" {found.size} element{'s' * (found.size != 1)}", "dim")]
    elif found.type == "boolean":
        return [(" true ", "dim"), (f"{found.size - found.zeros:,}", ""), (f" of {found.size:,}", "dim")]
    elif found.size == 1 and not found.nan and not found.infinite:
        return [(" one element", "dim")]
    else:
        whole = " of all: min " if math.prod(row_shape(found.shape)[:-1]) > 1 else " min "
        shown = [(whole, "dim"), (fitted(found.min), ""), ("  max ", "dim"), (fitted(found.max), "")]
        if found.argmax is not None and found.size > 1:
            place = np.unravel_index(found.argmax, found.shape or (1,))
            shown += [(f" at [{','.join(str(int(at)) for at in place)}]", "dim")]
    odd: tuple[tuple[str, int], ...] = () if found.type[0] in "iu" else (("NaN", found.nan), ("Inf", found.infinite))
    least = 2 * len(odd) + sum(len(word) + len(str(count)) + 1 for word, count in odd)
    if width_of(shown) + least > width:
        odd = tuple((word, count) for word, count in odd if count)
    for word, count in odd:
        shown += [(f"  {word} ", "dim"), (str(count), "bad" if count else "dim")]
    mean: Row = [("  mean ", "dim"), (fitted(found.mean), "")]
    return [*shown, *mean] if found.mean is not None and width_of(shown) + width_of(mean) <= width else shown


_LONG: Final = 11
_LEAST_LONG: Final = 1e5
"""Cells of a number from this one on, where all have room for them."""


def vector_rows(pane: Pane, array: Array, width: int, lines: int = 3) -> list[Row]:
    """Return the first row along the last axis in at most so many lines: labels, shades, numbers.

    One that is too long for these goes on in the next line, numbers upon their shades; of many elements a cell shows
    the largest.
    """
    plain = _in_rows(array)
    if plain.dtype.kind not in "fiub" or not plain.size:
        shown = printable(np.array2string(plain, threshold=8)) if plain.size else "no elements"
        return [[(f" {shown.splitlines()[0][: width - 2]}", "")]]
    vector = plain.reshape(-1, plain.shape[-1])[0] if plain.ndim else plain.reshape(1)
    values = vector.astype(np.float64)
    room = width - 2
    widths = (_LONG, 6, 4, 2) if bool((np.abs(values) >= _LEAST_LONG).any()) else (6, 4, 2)
    cell = next((size for size in widths if size * len(values) <= room), 0)
    scale = scale_of(values)
    levels, signed = shades(values, scale), scale.signed
    row_of_all = f"in row [{','.join('0' * (plain.ndim - 1))}]  " if vector.size < plain.size else ""
    best = int(np.nanargmax(values)) if not np.isnan(values).all() else -1
    is_rough = cell < 4 or (cell == 4 and not _are_short(values))
    if is_rough and len(values) <= lines * ((room - _INDEX) // _WRAPPED):
        return _wrapped_rows(pane, values, room, levels, signed, best)
    if not cell:
        bins = [largest_of(part) for part in np.array_split(values, room)] if len(values) > room else values.tolist()
        tiles: Row = [pane.tile(level, 1, signed=signed) for level in shades(np.array(bins), scale).tolist()]
        return [
            _axis(len(values), len(bins)),
            [(" ", ""), *tiles],
            *([(" ", ""), *row] for row in _spread_rows(values, room, lines - 2, row_of_all)),
        ]
    every = next(step for step in (1, 2, 5, 10, 20, 50, 100) if step * cell > len(str(len(values))))
    labels: Row = [
        (f"{index:<{every * cell}}" if cell == 2 else f"{index:^{cell}}", "strong" if index == best else "dim")
        for index in range(0, len(values), every)
    ]
    found = [labels, [pane.tile(level, cell, signed=signed) for level in levels.tolist()]]
    if cell >= 4:
        texts = [_in_cell(value, cell - 1) for value in values.tolist()]
        if plain.dtype.kind == "b":
            texts = [GLYPHS["true" if value else "false"] for value in vector.tolist()]
        found.append(
            [
                (padded(text, cell - 1, right=True) + " ", _tone(value, index == best))
                for index, (text, value) in enumerate(zip(texts, values.tolist(), strict=True))
            ]
        )
    else:
        found += _spread_rows(values, room, lines - 2, row_of_all)
    return [[(" ", ""), *row] for row in found]


def _in_rows(array: Array) -> Array:
    """Return a value whose last axis has more than one element, if any has."""
    plain = storable(array)
    return plain.reshape(row_shape(plain.shape))


def column_rows(array: Array, width: int, lines: int) -> list[Row]:
    """Return the same row of elements as columns, where there is room for them."""
    plain = _in_rows(array)
    if lines < LEAST or plain.dtype.kind not in "fiub" or not plain.ndim or plain.shape[-1] < 2 or not plain.size:
        return []
    values = plain.reshape(-1, plain.shape[-1])[0].astype(np.float64)
    room = width - 10
    shown = [largest_of(part) for part in np.array_split(values, room)] if len(values) > room else values.tolist()
    return profile(shown, max(1, min(room // len(shown), 6)), 1, lines)


def _wrapped_rows(pane: Pane, values: Array, room: int, levels: Array, signed: bool, best: int) -> list[Row]:
    """Return a long row in several lines: the number on its shade, the index of the first at the left."""
    across = (room - _INDEX) // _WRAPPED
    rows: list[Row] = []
    for begin in range(0, len(values), across):
        row: Row = [(f"{begin:>{_INDEX}} ", "dim")]
        for index, value in enumerate(values[begin : begin + across].tolist(), start=begin):
            _, shade = pane.tile(float(levels[index]), 1, signed=signed)
            text = padded(_in_cell(value, _WRAPPED - 2), _WRAPPED - 1, right=True)
            row += [(f"{text}{'<' if index == best else ' '}", shade)]
        rows.append(row)
    return rows


def _spread_rows(values: Array, room: int, lines: int, which: str) -> list[Row]:
    """How often the numbers of a row that has no room to be written occur, from the least to the largest."""
    finite = values[np.isfinite(values)]
    if lines < 1 or not finite.size or float(finite.min()) == float(finite.max()):
        return []
    with np.errstate(all="ignore"):
        scale = float(np.abs(finite).max())
        shares, bins = finite / scale, max(min(room - 30 - len(which), 48), 8)
        counts, _ = np.histogram(shares, bins, bin_range(float(shares.min()), float(shares.max()), bins))
    bars = spark([None if count == 0 else float(count) for count in counts], 0.0)
    low, high = fitted(float(finite.min())), fitted(float(finite.max()))
    return [[(f"how often  {which}", "dim"), (low, ""), (f" {bars} ", "bar"), (high, "")]]


def _tone(value: float, best: bool) -> str:
    if not math.isfinite(value):
        return "badbg"
    return "strong" if best else "dim"


def _are_short(values: Array) -> bool:
    """Return True if three cells are enough for whole numbers, and for what is none."""
    known = values[np.isfinite(values)]
    return bool(((known == np.trunc(known)) & (known > -100) & (known < 1000)).all())


def _in_cell(value: float, room: int) -> str:
    """Return a number in three or five cells."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"[:room]
    for decimals in (3, 2, 1, 0):
        text = f"{value:.{decimals}f}"
        text = text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
        if value == int(value):
            text = str(int(value))
        if len(text) <= room:
            return text
    texts = (short_exponent(f"{value:.{decimals}e}") for decimals in (2, 1, 0))
    return next((text for text in texts if len(text) <= room), "…")


def _axis(size: int, cells: int) -> Row:
    """Return some indices along an axis, where they stand."""
    text = [" "] * cells
    for at in range(0, cells - 6, 12):
        label = str(at * size // cells)
        text[at : at + len(label)] = label
    return [(" ", ""), ("".join(text), "dim")]


def _four(rows: list[Row], room: int = 4) -> list[Row]:
    """Return so many rows, that nothing moves when another value is shown; with more room more."""
    return [*rows, [], [], [], []][: max(room, 4)]
