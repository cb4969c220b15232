"""The column of the cursor: its numbers, how often which are in it, its course over the iterations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from stepper.debug.table.columns import ColumnDetail, ColumnHead
from stepper.tensors.pictures import BarScale, bar_scale, heights
from stepper.wording import counted
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, padded, padded_row, printable
from tui.pictures.drawing import bar_scale_ends, scale_words
from tui.screens.table.cells import cell_text, truth_text
from tui.screens.table.topic import TableTopic

_NUMBER: Final = 10
_LOWEST, _HIGHEST = 8, 16
_ABOVE: Final = 26
LEAST_WIDE: Final = 90
LEAST_UNDER: Final = 11
"""Columns from which on the numbers stand beside the course, and the rows that this takes."""
_LEFT: Final = 50
_LEAST_HISTOGRAM: Final = 30
_LEAST_BESIDE: Final = 20
"""Lines from which on there is room for the histogram, too, and the same where the course stands beside the numbers."""
_WIDEST: Final = 10
"""Cells of an iteration, of which one is blank."""
_SHOWN, _OUT, _ZERO = "■", "○", "╌"


class ColumnPane(Pane, can_focus=False):
    """Everything of one column."""

    DEFAULT_CSS = "ColumnPane { width: 50; height: 1fr; }"
    follows_selection: ClassVar[bool] = False

    def __init__(self, host: Host, topic: TableTopic, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.topic = topic

    def rows(self, width: int) -> list[Row]:
        """Return the parts."""
        view, column, at = self.topic.view, self.topic.level.column, self.topic.iteration
        detail = None if view is None else view.detail
        if self.topic.is_none:
            return []
        if view is None or column < 0:
            return [[("@", "title")], [], [("the iterations, in the order of the run", "dim")]] if view else []
        name = clip(printable(view.columns[column].name), width - 30)
        place = "" if at is None else f", cursor at @{at}"
        head: list[Row] = [[(name, "title"), (f"   column of {view.total:,}{place}", "note")], []]
        if detail is None or detail.column != column:
            return [*head, [("its numbers are read when it is sorted by (> <)", "dim")]]
        value = self._value(column)
        is_wide = width >= LEAST_WIDE
        written = self._writer(column)
        rows = [*head, *_numbers(detail, value, view.passed, written, self._writer(column, of_means=True)), []]
        least = _LEAST_BESIDE if is_wide else _LEAST_HISTOGRAM
        bars = view.heads.get(column) if self.size.height >= least else None
        if bars is not None and len(bars.counts):
            note = f"   shown | filtered out{'   log' * bars.log}"
            room = _LEFT - 2 if is_wide else width
            rows += [[("how often", "title"), (note, "note")], *_histogram(bars, value, room, written), []]
        if is_wide:
            return self._in_width(rows, detail, width)
        return rows + self._course(detail, width, max(_LOWEST, min(self.size.height - _ABOVE, _HIGHEST)))

    def _writer(self, column: int, *, of_means: bool = False) -> Callable[..., str]:
        """Return what writes numbers of a column in so much room; means of booleans are numbers."""
        view = self.topic.view
        if view is not None and view.is_truth(column) and not of_means:
            return lambda value, room=1: truth_text(value)
        facts = None if view is None else view.facts.get(column)
        return partial(cell_text, whole=facts is not None and facts.is_whole)

    def _in_width(self, left: list[Row], detail: ColumnDetail, width: int) -> list[Row]:
        """Return the numbers, and beside them the course in the whole height."""
        right = self._course(detail, width - _LEFT, self.size.height - 3)
        return [
            [
                *padded_row(left[place] if place < len(left) else [], _LEFT),
                *(right[place] if place < len(right) else []),
            ]
            for place in range(max(len(left), len(right)))
        ]

    def _value(self, column: int) -> Any:
        view, place = self.topic.view, self.topic.level.place
        numbers = None if view is None else view.numbers.get(column)
        at = 0 if view is None else place - view.top
        return None if numbers is None or not 0 <= at < len(numbers) else numbers[at]

    def _course(self, detail: ColumnDetail, width: int, tall: int) -> list[Row]:
        """Draw each iteration, or the strongest of several, at its height; what is beyond the scale at its ends."""
        look, view = self.topic.level.look, self.topic.view
        title: Row = [("over the iterations", "title"), ("   rows that are shown in colour", "note")]
        if detail.low is None or look is None or view is None:
            return [title, [("no finite number", "dim")]]
        scale = bar_scale(detail.numbers)
        low, high = scale.low, scale.high
        ends = bar_scale_ends(scale, partial(self._writer(detail.column), room=8))
        if told := scale_words(scale):
            title.append((f"   {told}", "note"))
        room = max(width - _NUMBER - 1, 4)
        count = min(room, len(detail.numbers))
        slot = max(min(room // max(count, 1), _WIDEST), 1)
        edges = np.arange(count + 1) * len(detail.numbers) // count
        marks = {"cursor": self.topic.iteration, "now": look.now, "a": None}
        if look.a is not None and not look.a.is_elsewhere:
            marks["a"] = look.a.iteration
        places = {
            name: (one - view.begin) // detail.step * count // max(len(detail.numbers), 1)
            for name, one in marks.items()
            if one is not None
        }
        grid: list[list[tuple[str, str]]] = [[(" ", "")] * count for _ in range(tall)]
        if (scale.unit or not scale.log) and low <= 0 <= high and low < high:
            grid[_line(0.0, scale, tall)] = [(_ZERO, "faint")] * count
        for column in range(count):
            part = detail.numbers[edges[column] : edges[column + 1]].astype(np.float64)
            finite = part[np.isfinite(part)]
            tone = "accent" if places.get("cursor") == column else ""
            tone = "now" if places.get("now") == column else "a-on" if places.get("a") == column else tone
            if len(finite) < len(part):
                grid[0][column] = ("N" if np.isnan(part).any() else "I", "bad")
            if not finite.size:
                continue
            strongest = float(finite[int(np.argmax(np.abs(finite)))])
            line = _line(strongest, scale, tall)
            passes = bool(detail.passes[edges[column] : edges[column + 1]].any())
            grid[line][column] = (_SHOWN if passes else _OUT, tone or ("bar" if passes else "dim"))
        rows: list[Row] = [title]
        for line, cells in enumerate(grid):
            label = ends[1] if line == 0 else ends[0] if line == tall - 1 else ""
            wide = [(text * max(slot - 1, 1) + " " * (slot > 1), tone) for text, tone in cells]
            rows.append([(padded(label, _NUMBER - 1, right=True), "dim"), (" ", ""), *wide])
        return [*rows, self._axis({name: place * slot for name, place in places.items()}, marks, count, slot)]

    def _axis(self, places: dict[str, int], marks: dict[str, int | None], count: int, slot: int) -> Row:
        view = self.topic.view
        assert view is not None
        last = str(view.begin + view.total - 1)
        end_of = (count - 1) * slot if slot > 1 else count - len(last)
        texts = [(0, str(view.begin), "dim"), (end_of, last, "dim")]
        if "a" in places:
            texts.append((places["a"], "A", "a-on"))
        if "now" in places:
            texts.append((places["now"], str(marks["now"]), "now"))
        row: Row = [(" " * _NUMBER, "")]
        end = 0
        wanted = sorted(texts, key=lambda one: one[0])
        strong = [one for one in wanted if one[2] != "dim"]
        for at, text, tone in wanted:
            clashes = tone == "dim" and any(abs(at - other) <= max(len(text), len(word)) for other, word, _ in strong)
            if at < end or clashes:
                continue
            row += [(" " * (at - end), ""), (text, tone)]
            end = at + len(text)
        return row


def _line(number: float, scale: BarScale, tall: int) -> int:
    """Return the line of so many in which a number is drawn."""
    return tall - 1 - round(float(heights(np.array(number), scale)) * (tall - 1))


def _numbers(
    detail: ColumnDetail, value: Any, passed: int, written: Callable[..., str], mean: Callable[..., str]
) -> list[Row]:
    left = [
        ("value", written(value, 10)),
        ("min", written(detail.low, 10)),
        ("median", (written if detail.median in (detail.low, detail.high) else mean)(detail.median, 10)),
        ("max", written(detail.high, 10)),
        ("mean", mean(detail.mean, 10)),
        ("std", mean(detail.deviation, 10)),
    ]
    right = [
        ("shown", counted(passed, "row")),
        ("their mean", mean(detail.shown_mean, 9)),
        ("distinct", f"{detail.distinct:,}"),
        ("NaN Inf", f"{detail.nan:,} {detail.infinite:,}"),
    ]
    rows: list[Row] = []
    for place, (name, text) in enumerate(left):
        row: Row = [(f"{name:<8}", "dim"), (f"{text:>10}", "" if place else "strong")]
        if place < len(right):
            row += [("      ", ""), (f"{right[place][0]:<11}", "dim"), (right[place][1], "")]
        rows.append(row)
    return rows


def _histogram(head: ColumnHead, value: Any, width: int, written: Callable[..., str]) -> list[Row]:
    most = max(int(head.counts.max()), 1)
    room = max(width - _NUMBER - 9, 4)
    rows: list[Row] = []
    last = len(head.counts) - 1
    for place, (count, shown) in enumerate(zip(head.counts.tolist(), head.shown.tolist(), strict=True)):
        low, high = float(head.edges[place]), float(head.edges[place + 1])
        is_here = isinstance(value, bool | int | float) and low <= value and (value < high or place == last)
        full, part = round(count / most * room), round(shown / most * room)
        part = max(part, 1) if shown else 0
        full = max(full, part + (1 if count > shown else 0)) if count else 0
        rows.append(
            [
                (padded(written(low + 0.5 if head.whole else low, 8), _NUMBER - 1, right=True), "dim"),
                (" " if head.whole else "–", "dim"),
                ("━" * part, "accent" if is_here else "bar"),
                ("╌" * (full - part), "dim"),
                (f" {count:,}", "accent" if is_here else "dim"),
            ]
        )
    if not head.whole:
        rows.append([(padded(written(float(head.edges[-1]), 8), _NUMBER - 1, right=True), "dim")])
    return rows
