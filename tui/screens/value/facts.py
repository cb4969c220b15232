"""Beside a value: how often which magnitude occurs, its statistics, and one element, over the iterations too."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from msgspec.structs import replace
from textual import events

from stepper.element_types import Array
from stepper.tensors.changing_shapes import ShapedHistory
from stepper.tensors.difference import signed_differences
from stepper.tensors.element_forms import bits_of, smaller_forms
from stepper.tensors.histories import ValueHistory
from stepper.tensors.number_text import fitted, number_text
from stepper.tensors.pictures import Form
from stepper.tensors.planes import is_numeric, readable
from stepper.tensors.statistics import Statistics
from stepper.tensors.surveys import Survey
from tui.paint.pane import Host, Pane
from tui.paint.rows import Cell, Row, clip, clip_end, spread, width_of
from tui.pictures.axis import Axis, Slot
from tui.pictures.drawing import (
    RowPicture,
    Strip,
    bar_scale_ends,
    gaps,
    laid,
    put_rails,
    row_of,
    ruler_strips,
    scale_words,
)
from tui.pictures.palette import Palette
from tui.screens.timeline.far_title import line_to_iteration
from tui.screens.value.formats import exact
from tui.screens.value.inquiries import ElementSeries
from tui.screens.value.inspected import Inspected
from tui.theme import GLYPHS

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_PATTERN: Final = "dim"
_LABEL: Final = 8
"""Cells left of a picture over the iterations."""
_WIDEST_LABEL: Final = 16
_SLOT: Final = 12
_TALLEST: Final = 3
"""Lines of an element, where there is room."""
_BARS_HIGH: Final = 16
_LEAST_BARS: Final = 5
"""Lines left below a picture from which on the element of the cursor stands there as bars."""


class FactsPane(Pane, can_focus=False):
    """A pane about the value that is looked at."""

    def __init__(self, host: Host, inspected: Inspected, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.inspected = inspected


class HowOften(FactsPane):
    """The histogram of the finite elements."""

    DEFAULT_CSS = "HowOften { height: 1fr; min-height: 4; }"
    title = "how often"

    def rows(self, width: int) -> list[Row]:
        """Columns as high as there is room, the axis below."""
        found = self.inspected.survey()
        self.note = ""
        if self.inspected.array is None:
            return []
        if found is None:
            return [[(" looking through the elements ...", "dim")]]
        if self.inspected.array.size == 1:
            return [[(" it has one element", "dim")]]
        if not len(found.counts):
            return [[(" nothing finite to count", "dim")]]
        self.note = f"{len(found.counts)} bins "
        return histogram_rows(found, width, max(self.size.height - 3, 1))


def histogram_rows(found: Survey, width: int, tall: int) -> list[Row]:
    """Return how often the numbers are in each bin as so many lines of columns, and the axis in two more."""
    together = -(-len(found.counts) // max(width - 9, 1))
    shown = np.add.reduceat(found.counts, np.arange(0, len(found.counts), together))
    wide = max(1, min((width - 9) // len(shown), 4))
    most = int(shown.max())
    rows: list[Row] = []
    for row in range(tall, 0, -1):
        levels = np.clip(shown / most * tall - (row - 1), 0, 1) * 8
        # What occurs at all is seen.
        least = (shown > 0) & (row == 1)
        eighths = np.where(least, np.maximum(np.ceil(levels), 1), np.rint(levels)).astype(int).tolist()
        label = fitted(most) if row == tall else ""
        rows.append([(f"{label:>7} ", "dim"), ("".join(_EIGHTHS[level] * wide for level in eighths), "bar")])
    low, high = float(found.edges[0]), float(found.edges[-1])
    room = len(shown) * wide
    # Halved, so that the distance of the largest numbers does not overflow; the last bin may be a narrower one.
    share = (0 - low / 2) / (high / 2 - low / 2) * len(found.counts) / (len(shown) * together)
    zero = int(share * room) if low < 0 < high else -1
    axis = "".join("┴" if place == zero else "─" for place in range(room))
    ends = fitted(float(found.statistics.min or 0)), fitted(float(found.statistics.max or 0))
    text = ends[0].ljust(room)
    if zero > len(ends[0]) and zero < room - len(ends[1]) - 1:
        text = text[:zero] + "0" + text[zero + 1 :]
    has_room = room > len(ends[0]) + len(ends[1])
    text = text[: room - len(ends[1])] + ends[1] if has_room else clip_end(" to ".join(ends), width - 9)
    return [*rows, [(" " * 8, ""), (axis, "faint")], [(" " * 8, ""), (text, "dim")]]


class OverIterations(FactsPane):
    """The value over the iterations: of at most 64 elements all of them, else the one under the cursor."""

    DEFAULT_CSS = "OverIterations { height: 9; }"
    title = "over iterations"
    _axis: Axis | None = None
    """The iterations of the picture."""
    _label: int = _LABEL
    """Cells left of the picture."""

    def on_click(self, event: events.Click) -> None:
        """Go to the iteration of the column under the mouse."""
        place = event.get_content_offset(self)
        is_below = place is not None and self.row_at(place.y) is not None
        slot = self._axis.slot_at(place.x - self._label) if place is not None and is_below and self._axis else None
        state = self.inspected.state
        if slot is not None and state.running is None and slot.first != state.iteration:
            self.post_line(line_to_iteration(state, self.host.driver.compiled, slot.first))

    def rows(self, width: int) -> list[Row]:
        """Return the picture and the iterations; the moment is marked, and the element under the cursor."""
        seen, self._axis = self.inspected, None
        self.title = "over iterations" if seen.is_few else f"{_element(seen)} over iterations"
        self.note = ""
        if seen.array is None or not is_numeric(seen.array.dtype):
            return []
        found = seen.over_iterations()
        if found.problem:
            return [[], [(f" {clip(found.problem, width - 2)}", "dim")]]
        values = found.answer if found.done else seen.inquiries.last(ElementSeries)
        if isinstance(values, ShapedHistory):
            self._tell_shapes(values)
            return self._course(values.history, width, values)
        if not isinstance(values, ValueHistory) or values.elements != (seen.array.size if seen.is_few else 1):
            told = " its rank changes" if found.done else " going through the iterations ..."
            return [[], [(told, "dim")]]
        return self._course(values, width)

    def _tell_shapes(self, values: ShapedHistory) -> None:
        """Say in the heading that the shape changes, and of how many elements a row stands."""
        self.title = "over iterations"
        each = "" if values.axis is None else f", a row an index of axis {values.axis}"
        self.note = f"its shape changes{each} "

    def _course(self, values: ValueHistory, width: int, shaped: ShapedHistory | None = None) -> list[Row]:
        seen = self.inspected
        names = _names(values.shape) if 1 < values.elements <= self.size.height - 3 else ()
        self._label = min(max(_LABEL, *map(len, names), 0) + 2, _WIDEST_LABEL) if names else _LABEL
        room = width - self._label - 1
        now = seen.shown.iteration
        first, last = int(values.spans[0, 0]), int(values.spans[-1, 1])
        wide = max(1, min(_SLOT, room // (last - first)))
        first = max(first, last - room // wide)
        slots = tuple(Slot((one - first) * wide, wide, one, one + 1) for one in range(first, last))
        axis = self._axis = Axis(slots, None)
        drawn = RowPicture([values], axis)
        if drawn.form is Form.CATEGORIES:  # letters are for rows of one or two lines
            drawn = RowPicture([values], axis, Form.BARS)
        tall = max(self.size.height - 3, 1)
        if drawn.form is Form.PICTURE:
            is_whole = values.elements <= tall
            tall = min(tall, values.elements if is_whole or self.look.plain else -(-values.elements // 2))
        else:
            is_whole = False
            tall = min(tall, _BARS_HIGH) if drawn.form is Form.BARS else 1
        chosen = self._chosen_row(values.shape, None if shaped is None else shaped.axis)
        labels = self._labels(values, drawn, tall, chosen if is_whole else None)
        each = max(1, min(_TALLEST, (self.size.height - 3) // tall)) if is_whole else 1
        marks = [(one, True) for one in seen.state.iterations_of_a if first <= one < last]
        marks += [(now, False)] if now is not None and first <= now < last else []
        rows: list[Row] = []
        for line, strips in enumerate(drawn.lines(values, axis, tall * each, self.palette)):
            y, part = divmod(line, each)
            is_middle = part == (each - 1) // 2
            gap = gaps(values, axis, last) if y == tall - 1 and is_middle else []
            cells = laid([*strips, *gap, *_absent(shaped, axis, y, tall)], room)
            for iteration, is_a in marks:
                put_rails(cells, slots[iteration - first], self.palette, is_selected=True, is_a=is_a)
            rows.append([labels[y] if is_middle else (" " * self._label, ""), *row_of(cells)])
        numbers = [*ruler_strips(axis, now), *(_numbered(slots[one - first], "a-on") for one, is_a in marks if is_a)]
        rows.append([(" " * self._label, ""), *row_of(laid(numbers, room + 1))])
        left = self.size.height - len(rows) - 3
        if drawn.form is not Form.PICTURE or left < _LEAST_BARS or values.type == "boolean":
            return rows
        return [*rows, [], *self._of_element(values, shaped, axis, chosen, min(left, _BARS_HIGH), room)]

    def _of_element(
        self, values: ValueHistory, shaped: ShapedHistory | None, axis: Axis, row: int, tall: int, room: int
    ) -> list[Row]:
        """Return a row of the picture as bars below it, in the same columns."""
        there = slice(None) if shaped is None else shaped.there[:, row]
        numbers = values.numbers[:, there, row : row + 1]
        one = replace(values, shape=(), spans=values.spans[there], numbers=numbers)
        drawn = RowPicture([one], axis, Form.BARS)
        labels = self._labels(one, drawn, tall, None)
        axis_row = shaped is not None and shaped.axis is not None
        name = f"[{row}] of axis {shaped.axis}" if shaped is not None and axis_row else _element(self.inspected)
        rows: list[Row] = [[(f" {name} over iterations", "title")]]
        for label, strips in zip(labels, drawn.lines(one, axis, tall, self.palette), strict=True):
            rows.append([label, *row_of(laid(strips, room))])
        return rows

    def _chosen_row(self, shape: tuple[int, ...], axis: int | None) -> int:
        """Return the row of the element under the cursor, where rows are all elements, or the indices of an axis."""
        cursor = self.inspected.cursor
        if axis is not None:
            return cursor[axis]
        return int(np.ravel_multi_index(cursor, shape)) if shape and len(cursor) == len(shape) else 0

    def _labels(self, values: ValueHistory, drawn: RowPicture, tall: int, chosen: int | None) -> list[Cell]:
        """Return what stands left of each line: the element, or (`chosen` None) the ends of the scale."""
        scale = drawn.bar_scale
        if scale is not None:
            low, high = bar_scale_ends(scale)
            ends = {0: high, tall - 1: low} if scale.high > scale.low else {tall // 2: high}
            if not scale.share:
                ends = {}
            elif tall > 2:
                ends.setdefault(1, scale_words(scale, self._label - 2))
            return [(f"{ends.get(y, ''):>{self._label - 1}} ", "dim") for y in range(tall)]
        if chosen is None or values.elements == 1:
            note = drawn.note(self._label - 2, names_log=tall == 1)
            notes = [note, "log" if drawn.is_log else "", *[""] * tall]
            return [(f" {clip(notes[y], self._label - 2):<{self._label - 1}}", "dim") for y in range(tall)]
        names = _names(values.shape)
        found: list[Cell] = [
            (f"{clip(names[y], self._label - 1):>{self._label - 1}} ", "accent" if y == chosen else "dim")
            for y in range(min(tall, len(names)))
        ]
        return found + [(" " * self._label, "")] * (tall - len(found))


def _names(shape: tuple[int, ...]) -> list[str]:
    """Return the indices of all elements."""
    return [f"[{','.join(map(str, index))}]" for index in np.ndindex(shape)]


def _absent(shaped: ShapedHistory | None, axis: Axis, line: int, lines: int) -> list[Strip]:
    """Return dots for the iterations of which no element stands in a line, since the value does not reach there."""
    if shaped is None:
        return []
    columns = {int(begin): column for column, begin in enumerate(shaped.history.spans[:, 0])}
    count = shaped.there.shape[1]
    part = slice(line * count // lines, max((line + 1) * count // lines, line * count // lines + 1))
    return [
        (slot.start, (GLYPHS["free"] * max(slot.width - (slot.width > 2), 1)).ljust(slot.width), "faint")
        for slot in axis.slots
        if slot.first in columns and not shaped.there[columns[slot.first], part].any()
    ]


def _numbered(slot: Slot, token: str) -> Strip:
    text = str(slot.first)
    return slot.start + max(0, (slot.width - len(text)) // 2), text, token


class InNumbers(FactsPane):
    """The statistics, with where extremes and the first NaN are."""

    title = "statistics"

    def rows(self, width: int) -> list[Row]:
        """Return a line a number."""
        array = self.inspected.shown.array
        self.note = "" if array is None else f"over {array.size:,} element{'s' * (array.size != 1)} "
        found = self.inspected.survey()
        if array is None:
            return []
        if found is None:
            return [[(" looking through the elements ...", "dim")], *[[] for _ in range(8)]]
        if array.size == 1 and not found.statistics.nan and not found.statistics.infinite:
            return [[(" it has one element", "dim")]]
        return _statistics(found, width)


def _statistics(found: Survey, width: int) -> list[Row]:
    numbers = found.statistics
    size = numbers.finite
    rms = None if numbers.norm is None or not size else numbers.norm / math.sqrt(size)
    rows = [
        _line("min", fitted(numbers.min, 8), _place(numbers, numbers.argmin)),
        _line("max", fitted(numbers.max, 8), _place(numbers, numbers.argmax)),
    ]
    rows += [_line(word, fitted(value, 8)) for word, value in (("mean", numbers.mean), ("std", numbers.std))]
    rows += [_line("rms", fitted(rms, 8)), _line("zeros", f"{numbers.zeros:,}")]
    for word, count, first in (("NaN", numbers.nan, found.first_nan), ("Inf", numbers.infinite, found.first_infinity)):
        place = f"first {_place(numbers, first)}" if count else ""
        place = place if len(place) <= width - 22 else place.removeprefix("first ")
        rows.append(_line(word, f"{count:,}", place, bad=count > 0))
    return [*rows, _line("subnormal", f"{numbers.subnormals:,}")]


def _line(word: str, text: str, place: str = "", *, bad: bool = False) -> Row:
    return [(f" {word:<10}", "dim"), (f"{text:>9}", "bad" if bad else ""), (f"  {place}", "bad" if bad else "dim")]


def _place(numbers: Statistics, flat: int | None) -> str:
    if flat is None or numbers.size < 2:
        return ""
    return "[" + ",".join(str(int(at)) for at in np.unravel_index(flat, numbers.shape)) + "]"


class ElementCard(FactsPane):
    """The element under the cursor: exactly, before, in smaller types, bit by bit; perhaps over the iterations."""

    title = "element"

    def rows(self, width: int) -> list[Row]:
        """Return a line a fact."""
        seen = self.inspected
        self.title, self.note = f"element {_element(seen)}", ""
        element = seen.element()
        if element is None:
            return []
        rows: list[Row] = [[], _fact("value", exact(element), "strong"), _before(seen, element)]
        rows += [
            _fact(f"as {form.type}", f"{number_text(form.value, 8):<14}", off=form.off)
            for form in smaller_forms(element)
        ]
        bits = bits_of(element)
        if bits is not None:
            pattern = " ".join(bits.parts)
            room = width - 14 - len(bits.hexadecimal)
            rows.append([*_fact("bits", f"{bits.hexadecimal}  "), (clip(pattern, room), _PATTERN)])
        if self.has_class("with-series"):
            rows.append(_series_row(seen, width, self.palette))
        return rows[1:]


def _fact(word: str, text: str, tone: str = "", *, off: float | None = None) -> Row:
    row: Row = [(f" {word:<11}", "dim"), (text, tone)]
    if off is not None:
        row.append(("exact" if off == 0 else f"off {off:.1e}", "dim"))
    return row


def _before(seen: Inspected, element: Array) -> Row:
    found = seen.before()
    if found.problem or found.answer is None:
        return _fact("in A" if seen.is_beside_a else "before", found.problem or "...", "dim")
    before = found.answer[tuple(slice(at, at + 1) for at in seen.cursor)].reshape(1)
    row = _fact("in A" if seen.is_beside_a else "before", exact(before), "a" if seen.is_beside_a else "")
    now, then = (readable(one)[0] for one in (element, before))
    if not is_numeric(element.dtype):
        return row
    if element.dtype == np.bool_:
        return [*row, ("   unchanged" if now == then else "   changed", "dim")]
    change = float(signed_differences(np.array([now]), np.array([then]))[0])
    same = now == then or (now != now and then != then)
    return [*row, ("   unchanged" if same else f"   change {'+' if change > 0 else ''}{fitted(change)}", "dim")]


def _series_row(seen: Inspected, width: int, palette: Palette) -> Row:
    if seen.array is None or not is_numeric(seen.array.dtype):
        return []
    found = seen.over_iterations()
    values = found.answer if found.done else seen.inquiries.last(ElementSeries)
    if isinstance(values, ShapedHistory):
        values = values.history
    if found.problem or not isinstance(values, ValueHistory):
        return _fact("iterations", clip(found.problem, width - 13) if found.problem else "...", "dim")
    first, last, now = int(values.spans[0, 0]), int(values.spans[-1, 1]), seen.shown.iteration
    room = max(width - 32, 4)
    first = max(first, last - room)
    axis = Axis(tuple(Slot(one - first, 1, one, one + 1) for one in range(first, last)), None)
    cells = laid(RowPicture([values], axis).lines(values, axis, 1, palette)[0], last - first)
    if now is not None and first <= now < last:
        put_rails(cells, axis.slots[now - first], palette, is_selected=True)
    return [(f" {'iterations':<11}", "dim"), (f"{first} ", "dim"), *row_of(cells), (f" {last - 1}", "dim")]


class SummaryLines(FactsPane):
    """All of that in two or three lines, where there is no room for more."""

    def rows(self, width: int) -> list[Row]:
        """Statistics; the element; the element over iterations."""
        seen = self.inspected
        element = seen.element()
        if element is None:
            return []
        found = seen.survey()
        return [
            [(" looking through the elements ...", "dim")] if found is None else _short_statistics(found, width),
            _short_element(seen, element, width),
            *([_series_row(seen, width, self.palette)] if self.has_class("with-series") else []),
        ]


def _short_statistics(found: Survey, width: int) -> Row:
    numbers = found.statistics
    if numbers.size == 1 and not numbers.nan and not numbers.infinite:
        return [(" one element", "dim")]
    row: Row = []
    for word, value in (("min", numbers.min), ("max", numbers.max), ("mean", numbers.mean), ("std", numbers.std)):
        row += [(f" {word} ", "dim"), (f"{fitted(value)} ", "")]
    for word, count, first in (("NaN", numbers.nan, found.first_nan), ("Inf", numbers.infinite, found.first_infinity)):
        text = f"{count} at {_place(numbers, first)}" if count and width_of(row) < width - 24 else str(count)
        row += [(f" {word} ", "dim"), (f"{text} ", "bad" if count else "dim")]
    return row


def _short_element(seen: Inspected, element: Array, width: int) -> Row:
    row: Row = [(f" {_element(seen)} ", "accent"), (exact(element), "strong")]
    row += [("  in A " if seen.is_beside_a else "  before ", "dim"), *_before(seen, element)[1:]]
    bits = bits_of(element)
    if bits is None:
        return row
    return spread(row, [(f"{bits.hexadecimal} ", "dim")], width) if width_of(row) < width - 20 else row


def _element(seen: Inspected) -> str:
    return "[" + ",".join(map(str, seen.cursor)) + "]"
