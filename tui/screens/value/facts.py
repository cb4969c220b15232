"""Beside a value: how often which magnitude occurs, its statistics, and one element, over the iterations too."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np

from stepper.debug.results import Series
from stepper.element_types import Array
from stepper.tensors.element_forms import bits_of, smaller_forms
from stepper.tensors.planes import is_numeric, readable
from stepper.tensors.statistics import Statistics
from stepper.tensors.surveys import Survey
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, clip_end, number, spark, spread, width_of
from tui.screens.value.formats import exact, letters
from tui.screens.value.inquiries import ElementSeries
from tui.screens.value.inspected import Inspected

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_PATTERN: Final = "dim"


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
        if not len(found.counts):
            return [[(" nothing finite to count", "dim")]]
        self.note = f"{len(found.counts)} bins "
        return _columns(found, width, max(self.size.height - 3, 1))


def _columns(found: Survey, width: int, tall: int) -> list[Row]:
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
        label = number(most) if row == tall else ""
        rows.append([(f"{label:>7} ", "dim"), ("".join(_EIGHTHS[level] * wide for level in eighths), "bar")])
    low, high = float(found.edges[0]), float(found.edges[-1])
    room = len(shown) * wide
    # Halved, so that the distance of the largest numbers does not overflow; the last bin may be a narrower one.
    share = (0 - low / 2) / (high / 2 - low / 2) * len(found.counts) / (len(shown) * together)
    zero = int(share * room) if low < 0 < high else -1
    axis = "".join("┴" if place == zero else "─" for place in range(room))
    ends = number(float(found.statistics.min or 0)), number(float(found.statistics.max or 0))
    text = ends[0].ljust(room)
    if zero > len(ends[0]) and zero < room - len(ends[1]) - 1:
        text = text[:zero] + "0" + text[zero + 1 :]
    has_room = room > len(ends[0]) + len(ends[1])
    text = text[: room - len(ends[1])] + ends[1] if has_room else clip_end(" to ".join(ends), width - 9)
    return [*rows, [(" " * 8, ""), (axis, "faint")], [(" " * 8, ""), (text, "dim")]]


class OverIterations(FactsPane):
    """The element under the cursor over the iterations."""

    DEFAULT_CSS = "OverIterations { height: 9; }"
    title = "over iterations"
    BARS_HIGH: ClassVar = 5

    def rows(self, width: int) -> list[Row]:
        """Columns, the moment's in the accent, iterations below."""
        seen = self.inspected
        self.title = f"{_element(seen)} over iterations"
        self.note = ""
        if seen.array is None or not is_numeric(seen.array.dtype):
            return []
        found = seen.over_iterations()
        if found.problem:
            return [[], [(f" {clip(found.problem, width - 2)}", "dim")]]
        series = found.answer if found.done else seen.inquiries.last(ElementSeries)
        if not isinstance(series, Series) or not series.values:
            return [[], [(" going through the iterations ..." if not found.done else " no values", "dim")]]
        return _over_iterations(series, seen.shown.iteration, width, self.BARS_HIGH)


def _over_iterations(series: Series, now: int | None, width: int, tall: int) -> list[Row]:
    values = [_float(value) for value in series.values]
    wide = 3 if 3 * len(values) <= width - 9 else 2 if 2 * len(values) <= width - 9 else 1
    kept = (width - 9) // wide
    iterations, values = series.iterations[-kept:], values[-kept:]
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    rows: list[Row] = []
    for row in range(tall, 0, -1):
        label = number(high) if row == tall else number(low) if row == 1 and high > low else ""
        line: Row = [(f"{label:>7} ", "dim")]
        for iteration, value in zip(iterations, values, strict=True):
            tone = "accent" if iteration == now else "bar"
            if not math.isfinite(value):
                text = ("N" if math.isnan(value) else "I") if row == 1 else " "
                line.append((text.ljust(wide), "bad"))
                continue
            share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
            level = min(max(share * (tall - 0.15) + 0.15 - (row - 1), 0.0), 1.0)
            line.append(((_EIGHTHS[round(level * 8)] * max(wide - 1, 1)).ljust(wide), tone))
        rows.append(line)
    return [*rows, _iteration_labels(iterations, now, wide)]


def _iteration_labels(iterations: tuple[int, ...], now: int | None, wide: int) -> Row:
    """Return the moment, and others where there is room beside it."""
    cells = [" "] * (len(iterations) * wide + 6)
    at = None if now is None or now not in iterations else iterations.index(now) * wide
    label = str(now)
    step = max(5 if wide < 3 else 2, -(-(len(str(iterations[-1])) + 1) // wide))
    for place in range(0, len(iterations), step):
        text = str(iterations[place])
        begin = place * wide
        if at is None or begin + len(text) < at or begin > at + len(label):
            cells[begin : begin + len(text)] = text
    if at is None:
        return [(" " * 8, ""), ("".join(cells).rstrip(), "dim")]
    after = "".join(cells[at + len(label) :]).rstrip()
    return [(" " * 8, ""), ("".join(cells[:at]), "dim"), (label, "title-on"), (after, "dim")]


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
        return _statistics(found, width)


def _statistics(found: Survey, width: int) -> list[Row]:
    numbers = found.statistics
    size = numbers.finite
    rms = None if numbers.norm is None or not size else numbers.norm / math.sqrt(size)
    rows = [
        _line("min", number(numbers.min, 8), _place(numbers, numbers.argmin)),
        _line("max", number(numbers.max, 8), _place(numbers, numbers.argmax)),
    ]
    rows += [_line(word, number(value, 8)) for word, value in (("mean", numbers.mean), ("std", numbers.std))]
    rows += [_line("rms", number(rms, 8)), _line("zeros", f"{numbers.zeros:,}")]
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
            _fact(f"as {form.type}", f"{_number(form.value):<14}", off=form.off) for form in smaller_forms(element)
        ]
        bits = bits_of(element)
        if bits is not None:
            pattern = " ".join(bits.parts)
            room = width - 14 - len(bits.hexadecimal)
            rows.append([*_fact("bits", f"{bits.hexadecimal}  "), (clip(pattern, room), _PATTERN)])
        if self.has_class("with-series"):
            rows.append(_series_row(seen, width))
        return rows[1:]


def _fact(word: str, text: str, tone: str = "", *, off: float | None = None) -> Row:
    row: Row = [(f" {word:<11}", "dim"), (text, tone)]
    if off is not None:
        row.append(("exact" if off == 0 else f"off {off:.1e}", "dim"))
    return row


def _before(seen: Inspected, element: Array) -> Row:
    found = seen.before()
    if found.problem or found.answer is None:
        return _fact("before", found.problem or "...", "dim")
    before = found.answer[tuple(slice(at, at + 1) for at in seen.cursor)].reshape(1)
    row = _fact("before", exact(before))
    now, then = (readable(one)[0] for one in (element, before))
    if not is_numeric(element.dtype):
        return row
    with np.errstate(all="ignore"):
        change = float(now) - float(then)
    same = now == then or (now != now and then != then)
    return [*row, ("   unchanged" if same else f"   change {'+' if change > 0 else ''}{number(change)}", "dim")]


def _series_row(seen: Inspected, width: int) -> Row:
    if seen.array is None or not is_numeric(seen.array.dtype):
        return []
    found = seen.over_iterations()
    series = found.answer if found.done else seen.inquiries.last(ElementSeries)
    if found.problem or not isinstance(series, Series) or not series.values:
        return _fact("iterations", clip(found.problem, width - 13) if found.problem else "...", "dim")
    kept = max(width - 32, 4)
    values = [_float(value) for value in series.values][-kept:]
    iterations = series.iterations[-kept:]
    now = iterations.index(seen.shown.iteration) if seen.shown.iteration in iterations else len(values)
    bars = spark(values)
    row: Row = [(f" {'iterations':<11}", "dim"), (f"{iterations[0]} ", "dim"), (bars[:now], "bar")]
    return [*row, (bars[now : now + 1], "accent"), (bars[now + 1 :], "bar"), (f" {iterations[-1]}", "dim")]


class SummaryLines(FactsPane):
    """All of that in three lines, where there is no room for more."""

    DEFAULT_CSS = "SummaryLines { height: 3; }"

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
            _series_row(seen, width),
        ]


def _short_statistics(found: Survey, width: int) -> Row:
    numbers = found.statistics
    row: Row = []
    for word, value in (("min", numbers.min), ("max", numbers.max), ("mean", numbers.mean), ("std", numbers.std)):
        row += [(f" {word} ", "dim"), (f"{number(value)} ", "")]
    for word, count, first in (("NaN", numbers.nan, found.first_nan), ("Inf", numbers.infinite, found.first_infinity)):
        text = f"{count} at {_place(numbers, first)}" if count and width_of(row) < width - 24 else str(count)
        row += [(f" {word} ", "dim"), (f"{text} ", "bad" if count else "dim")]
    return row


def _short_element(seen: Inspected, element: Array, width: int) -> Row:
    row: Row = [(f" {_element(seen)} ", "accent"), (exact(element), "strong")]
    row += [("  before ", "dim"), *_before(seen, element)[1:]]
    bits = bits_of(element)
    if bits is None:
        return row
    return spread(row, [(f"{bits.hexadecimal} ", "dim")], width) if width_of(row) < width - 20 else row


def _element(seen: Inspected) -> str:
    return "[" + ",".join(map(str, seen.cursor)) + "]"


def _float(value: Array) -> float:
    return float(readable(np.asarray(value).reshape(1))[0])


def _number(value: float) -> str:
    return f"{value:.8g}" if math.isfinite(value) else letters(value)
