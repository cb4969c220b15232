"""The inspector: everything about the cell of the cursor, always in the same place."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from stepper.debug.causes.cause import LinkForm, PartRole
from stepper.debug.overview.facts import RowKind
from stepper.debug.story.facts import LinkRole, Story, StoryLink
from stepper.debug.story.texts import (
    exceeded_by,
    factor_text,
    followed,
    formula,
    number,
    percent,
    source_lines,
    suggestion,
)
from stepper.debug.table.columns import ColumnDetail, SheetColumn, SheetView
from stepper.tensors.histories import plain_numbers
from stepper.tensors.pictures import BarScale, bar_scale, heights
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, padded, padded_row, printable, shortened
from tui.pictures.drawing import bar_scale_ends, scale_words
from tui.screens.sheet.cells import cell_text, truth_text
from tui.screens.sheet.model import SheetModel

_NUMBER: Final = 10
_LOWEST, _HIGHEST = 8, 16
"""Lines of the row over the iterations, with title and axis."""
_NUMBERS: Final = 4
_LEAST_WIDE: Final = 90
_LEFT: Final = 52
"""Columns from which on the row over the iterations stands beside the cell, and those of the cell then."""
_MOST_ELEMENTS: Final = 64
_WIDEST: Final = 10
"""Cells of an iteration, of which one is blank."""
_SHOWN, _OUT, _ZERO = "■", "○", "╌"


class Inspector(Pane, can_focus=False):
    """The cell of the cursor: how it follows from its operands, its whole value, and its row over the iterations."""

    DEFAULT_CSS = "Inspector { width: 56; height: 1fr; }"
    follows_selection: ClassVar[bool] = False

    def __init__(self, host: Host, model: SheetModel, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.model = model

    def rows(self, width: int) -> list[Row]:
        """Return the parts; in few lines those of the cell alone."""
        view, column, at = self.model.view, self.model.at, self.model.iteration
        if view is None or column is None or self.model.is_none:
            return []
        height = self.size.height
        cell = self._cell(view, column, at, width)
        left = height - len(cell) - 1
        detail = view.detail
        if detail is None or detail.column != self.model.level.row or view.total < 2:
            return cell
        if width >= _LEAST_WIDE and height < 2 * _LOWEST:
            chart = self._course(detail, width - _LEFT, max(height - 2, 3))
            return _beside_each_other(cell, chart, _LEFT, height)
        if left < _LOWEST:
            return cell
        rows = [*cell, [], *self._course(detail, width, max(3, min(left - 3, _HIGHEST)))]
        if height - len(rows) >= _NUMBERS:
            rows += [[], *_numbers(detail, self._writer(), self._writer(of_means=True))]
        return rows

    def _cell(self, view: SheetView, column: SheetColumn, at: int | None, width: int) -> list[Row]:
        target = view.topic.values[column.value].target
        place = f" @{at:,}" if at is not None and view.topic.body.path else ""
        element = f" [{','.join(map(str, column.first))}]" if column.first else ""
        form = view.forms[column.value]
        name = clip(printable(view.topic.values[column.value].name), width - 24)
        head: Row = [(name, "title"), (f"{place}{element}", "strong"), (f"   {target.layer.type}", "note")]
        rows: list[Row] = [head, *self._port(column)]
        found = self.model.inspected
        link = None
        if found is not None and found.story is not None and found.story.links:
            story = found.story
            link = story.links[story.asked]
            told = (_formula_row(link), _beside_row(link), *_made_of(link), _goes_to(link), _attempt_row(story, link))
            rows += [row[1:] if row and not row[0][0].strip() else row for row in told if row]
            rows += [[(line.strip(), "dim")] for line in source_lines(story.sources)] if story.sources else []
        else:
            rows.append([(self._writer()(self.model.number, 12), "strong")])
        rows += self._beside_a()
        if found is not None and found.value is not None and found.value.size > 1:
            shape = ",".join(map(str, found.value.shape))
            rows += [[(f"value {form.type}[{shape}]", "dim")], *self._elements(found.value, width)]
        return [shortened(row, width) for row in rows]

    def _beside_a(self) -> list[Row]:
        """Return the number of A in this row, and how far that of the cursor is from it."""
        look, now = self.model.level.look, self.model.number
        if look is None or look.a is None:
            return []
        a = look.a
        if a.problem:
            return [[("A ", "a-on"), (f" {a.problem}", "dim")]]
        held = a.numbers.get(self.model.level.row)
        place = "" if a.iteration is None else f"@{a.iteration:,}"
        return [
            [
                (f"A {place} ", "a-on"),
                (f" {self._writer()(held, 10)}", ""),
                (f"   {difference_text(held, now, self._writer(of_means=True))}", "strong"),
            ]
        ]

    def _port(self, column: SheetColumn) -> list[Row]:
        """Return by which entry of the loop's port map a value goes in, round or out."""
        found = self.model.found
        mark = None if found is None or column.value >= len(found.marks) else found.marks[column.value]
        if mark is None or not mark.line:
            return []
        end = "input" if mark.kind in (RowKind.SLICE, RowKind.BACK_EDGE) else "output"
        port = "" if mark.port is None else f", {end} {mark.port} of the loop"
        axis = "" if mark.axis is None else f", axis {mark.axis}"
        return [[(f"{mark.kind}{port}{axis}, line {mark.line}", "dim")]]

    def _elements(self, value: Any, width: int) -> list[Row]:
        """Return the numbers of the whole value, as many as two lines have room for, that of the cursor marked."""
        each, numbers = 9, plain_numbers(np.asarray(value).reshape(-1)[:_MOST_ELEMENTS])
        column = self.model.at
        index = None if column is None else column.index
        picked = -1 if index is None else int(np.ravel_multi_index(index, np.shape(value)))
        per_line = max(width // each, 1)
        rows: list[Row] = []
        for line in range(min(2, -(-len(numbers) // per_line))):
            part = numbers[line * per_line : (line + 1) * per_line].tolist()
            tones = (
                "now" if line * per_line + k == picked else "bad" if one != one else "" for k, one in enumerate(part)
            )
            rows.append(
                [(f"{cell_text(one, each - 1):>{each - 1}} ", tone) for one, tone in zip(part, tones, strict=True)]
            )
        more = math.prod(np.shape(value)) - 2 * per_line
        return [*rows, [(f"and {more:,} more", "dim")]] if more > 0 else rows

    def _writer(self, *, of_means: bool = False) -> Callable[..., str]:
        """Return what writes numbers of the row in so much room; means of booleans are numbers."""
        view, column = self.model.view, self.model.level.row
        if view is not None and view.is_truth(column) and not of_means:
            return lambda value, room=1: truth_text(value)
        facts = None if view is None else view.facts.get(column)
        return partial(cell_text, whole=facts is not None and facts.is_whole)

    def _course(self, detail: ColumnDetail, width: int, tall: int) -> list[Row]:
        """Draw each iteration, or the strongest of several, at its height; what is beyond the scale at its ends."""
        look, view = self.model.level.look, self.model.view
        title: Row = [("over the iterations", "title")]
        if detail.low is None or look is None or view is None:
            return [title, [("no finite number", "dim")]]
        scale = bar_scale(detail.numbers)
        low, high = scale.low, scale.high
        ends = bar_scale_ends(scale, partial(self._writer(), room=8))
        if told := scale_words(scale):
            title.append((f"   {told}", "note"))
        room = max(width - _NUMBER - 1, 4)
        count = min(room, len(detail.numbers))
        slot = max(min(room // max(count, 1), _WIDEST), 1)
        edges = np.arange(count + 1) * len(detail.numbers) // count
        marks = {"cursor": self.model.iteration, "now": look.now, "a": None}
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
        view = self.model.view
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


def difference_text(a: Any, now: Any, written: Callable[..., str]) -> str:
    """Return now minus A with its sign; `fixed` or `broken` where only one of them is finite."""
    if a is None or now is None:
        return ""
    if isinstance(a, bool) or isinstance(now, bool) or a == now or (a != a and now != now):
        return "the same" if bool(a == now) or a != a else "another"
    if math.isfinite(a) != math.isfinite(now):
        return "fixed" if math.isfinite(now) else "broken"
    return f"{'+' if now > a else '-'}{written(abs(now - a), 10).lstrip('+')}"


def _numbers(detail: ColumnDetail, written: Callable[..., str], mean: Callable[..., str]) -> list[Row]:
    left = [
        ("min", written(detail.low, 10)),
        ("median", (written if detail.median in (detail.low, detail.high) else mean)(detail.median, 10)),
        ("max", written(detail.high, 10)),
    ]
    right = [("mean", mean(detail.mean, 10)), ("std", mean(detail.deviation, 10)), ("NaN", f"{detail.nan:,}")]
    rows: list[Row] = [
        [(f"{name:<8}", "dim"), (f"{text:>10}", ""), ("      ", ""), (f"{other:<6}", "dim"), (f"{told:>10}", "")]
        for (name, text), (other, told) in zip(left, right, strict=True)
    ]
    rows[-1].append((f"   Inf {detail.infinite:,}", ""))
    return rows


def _beside_each_other(left: list[Row], right: list[Row], width: int, height: int) -> list[Row]:
    """Return two blocks of lines beside each other, the first of so many cells."""
    return [
        [
            *padded_row(shortened(left[line], width - 2) if line < len(left) else [], width),
            *(right[line] if line < len(right) else []),
        ]
        for line in range(min(max(len(left), len(right)), height))
    ]


def _formula_row(link: StoryLink) -> Row:
    """Return how a link follows from its operands, and its value."""
    told = formula(link)
    tone = "bad" if link.is_bad and told.left else "strong"
    row: Row = [("  ", ""), (f"{told.left} {told.sign} " if told.left else "", ""), (told.value, tone)]
    if link.limit is not None:
        row += [(f"   exp overflows {link.type} above ", "dim"), (f"{link.limit:.3f}", "strong")]
    elif link.role is LinkRole.BORN and link.formula:
        row += [(f"   {link.formula}", "dim")]
    return row


def _beside_row(link: StoryLink) -> Row:
    """By how much a limit was exceeded, and how the other elements are; the share of what was asked about."""
    parts = []
    over = exceeded_by(link)
    if over is not None:
        parts.append(f"{percent(over)} too much")
    if link.role is LinkRole.BORN and math.prod(link.shape) > 1:
        others = math.prod(link.shape) - 1
        which = f"{link.finite_beside:,} of the other {others:,}" if link.finite_beside < others else "all others"
        parts.append(f"{which} are finite")
    if link.share is not None and link.share != 1.0:
        parts.append(f"{percent(link.share)} of what was asked about")
    if link.times > 1:
        parts.append(f"{link.times} iterations that do the same, first {number(link.first)}")
    return [("  ", ""), ("; ".join(parts), "dim")] if parts else []


def _made_of(link: StoryLink) -> list[Row]:
    """Return the largest parts that a link is made of, a line each."""
    rows: list[Row] = []
    shown = [one for one in link.operands if one.role not in (PartRole.COMPARED, PartRole.INDEX, PartRole.CONDITION)]
    ordered = [*followed(link), *(one for one in shown if one.link is None)]
    for place, one in enumerate(ordered[:3]):
        word = "made of" if not place else ""
        note = (
            f"   {percent(one.share)}"
            if one.share is not None
            else "   decides"
            if one.role is PartRole.DECIDES
            else ""
        )
        rows.append(_named(word, factor_text(one.factor), f" = {number(one.factor.value)}{note}"))
    if rows and link.count > len(ordered[:3]) and link.form is not LinkForm.CHOICE:
        rows[-1].append((f"   {min(len(ordered), 3)} of {link.count}", "dim"))
    for role, word in ((PartRole.INDEX, "where from"), (PartRole.CONDITION, "because")):
        apart = [one for one in link.operands if one.role is role and one.factor.element is not None]
        if apart:
            told = ", ".join(f"{factor_text(one.factor)} = {number(one.factor.value)}" for one in apart[:2])
            rows.append(_named(word, told, "   an index" if role is PartRole.INDEX else ""))
    return rows


def _named(word: str, strong: str, rest: str) -> Row:
    return [("  ", ""), (word.ljust(11), "dim"), (strong, ""), (rest, "dim")]


def _goes_to(link: StoryLink) -> Row:
    """Return the operations that read a link."""
    names = ", ".join(link.readers[:4])
    return _named("goes to", names, f"   {len(link.readers)}" if len(link.readers) > 1 else "") if names else []


def _attempt_row(story: Story, link: StoryLink) -> Row:
    """Return the command that shows whether another value helps."""
    line = suggestion(story, link)
    return [("  ", ""), ("try        ", "dim"), (f":{line}", "key"), ("   and what follows", "dim")] if line else []
