"""The inspector: everything about the cell of the cursor, always in the same place."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stepper.debug.causes.cause import LinkForm, PartRole
from stepper.debug.moments.moment import MomentKind
from stepper.debug.overview.overview_facts import RowKind
from stepper.debug.story.story_facts import LinkRole, Story, StoryLink
from stepper.debug.story.story_texts import (
    exceeded_by,
    factor_text,
    followed,
    formula,
    number,
    percent,
    suggestion,
)
from stepper.debug.table.columns import ColumnDetail, SheetColumn, SheetView
from stepper.element_types import Indices
from stepper.tensors.histories import plain_numbers
from stepper.tensors.tensor_pictures import BarScale, bar_scale, heights
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.pictures import bar_scale_ends, scale_words
from stepper_tui.paint.rows import Cell, Row, clip, padded, padded_row, shortened
from stepper_tui.screens.sheet.model import SheetModel
from stepper_tui.screens.sheet.pane import cell_text, row_title, truth_text

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

_NUMBER = 10
_LOWEST, _HIGHEST = 8, 16
"""Lines of the row over the iterations, with title and axis."""
_NUMBERS = 4
_LEAST_WIDE = 90
_LEFT = 52
"""Columns from which on the row over the iterations stands beside the cell, and those of the cell then."""
_MOST_ELEMENTS = 64
_WIDEST = 10
"""Cells of an iteration, one of them blank."""
_SHOWN, _OUT, _ZERO = "■", "○", "╌"


class Inspector(Pane, can_focus=False):
    """The cell of the cursor: how it follows from its operands, its whole value, and its row over the iterations."""

    DEFAULT_CSS = "Inspector { width: 56; height: 1fr; }"
    follows_selection: ClassVar[bool] = False

    def __init__(self, host: StepperApp, model: SheetModel, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.model = model
        self._drawn: tuple[ColumnDetail, int, BarScale, list[_Point]] | None = None
        """The row over the iterations that is drawn, in how many points, their scale, and the points."""

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
        form = view.forms[column.value]
        name = clip(row_title(view, column), width - 24)
        found, element = self.model.inspected, column.first
        if found is not None and found.story is not None and found.story.links:
            story = found.story
            link = story.links[story.asked]
            element = element or link.element or ()
            told = (_formula_row(link), _beside_row(link), *_made_of(link), _goes_to(link), _attempt_row(story, link))
            rows = [row[1:] if row and not row[0][0].strip() else row for row in told if row]
        else:
            rows = [[(self._writer()(self.model.number, 12), "strong")]]
        which = f" [{','.join(map(str, element))}]" if element else ""
        head: Row = [(name, "title"), (f"{place}{which}", "strong"), (f"   {target.layer.type}", "note")]
        rows = [head, *self._port(column), *rows, *self._beside_a(element)]
        if found is not None and found.value is not None and found.value.size > 1:
            shape = ",".join(map(str, found.value.shape))
            rows += [[(f"value {form.type}[{shape}]", "dim")], *self._elements(found.value, width, element)]
        return [shortened(row, width) for row in rows]

    def _beside_a(self, element: Indices) -> list[Row]:
        """Return the number of A for this element, else for this row, and how far the number now is from it."""
        look, now, found = self.model.level.look, self.model.number, self.model.inspected
        if look is None or look.a is None:
            return []
        a = look.a
        if a.problem:
            return [[("A ", "a-on"), (f" {a.problem}", "dim")]]
        held, view = a.numbers.get(self.model.level.row), self.model.view
        sides = () if found is None or found.a is None or found.value is None else (found.a, found.value)
        if element and sides and sides[0].shape == sides[1].shape:
            held, now = (plain_numbers(np.asarray(one)[element]).item() for one in sides)
        if view is not None and view.is_truth(self.model.level.row) and None not in (held, now):
            held, now = bool(held), bool(now)
        if held is None and a.kind is MomentKind.REFERENCE:
            return []  # one that computes each operation from our values has none of its own
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
        found = self.model.found_in_view
        mark = None if found is None or column.value >= len(found.marks) else found.marks[column.value]
        if mark is None or not mark.line:
            return []
        end = "input" if mark.kind in (RowKind.SLICE, RowKind.BACK_EDGE) else "output"
        port = "" if mark.port is None else f", {end} {mark.port} of the loop"
        axis = "" if mark.axis is None else f", axis {mark.axis}"
        return [[(f"{mark.kind}{port}{axis}, line {mark.line}", "dim")]]

    def _elements(self, value: Any, width: int, element: Indices) -> list[Row]:
        """Return the numbers of the whole value, as many as two lines have room for, one element of them marked."""
        each, numbers = 9, plain_numbers(np.asarray(value).reshape(-1)[:_MOST_ELEMENTS])
        is_of_it = len(element) == np.ndim(value)
        picked = int(np.ravel_multi_index(element, np.shape(value))) if is_of_it else -1
        per_line, is_truth = max(width // each, 1), np.asarray(value).dtype == np.bool_
        rows: list[Row] = []
        for line in range(min(2, -(-len(numbers) // per_line))):
            part = numbers[line * per_line : (line + 1) * per_line].tolist()
            tones = (
                "now" if line * per_line + k == picked else "bad" if one != one else "" for k, one in enumerate(part)
            )
            texts = (truth_text(one) if is_truth else cell_text(one, each - 1) for one in part)
            rows.append([(f"{text:>{each - 1}} ", tone) for text, tone in zip(texts, tones, strict=True)])
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
        room = max(width - _NUMBER - 1, 4)
        count = min(room, len(detail.numbers))
        if self._drawn is None or self._drawn[0] is not detail or self._drawn[1] != count:
            self._drawn = detail, count, *_points(detail, count)
        scale, points = self._drawn[2:]
        low, high = scale.low, scale.high
        ends = bar_scale_ends(scale, partial(self._writer(), room=8))
        if told := scale_words(scale):
            title.append((f"   {told}", "note"))
        slot = max(min(room // max(count, 1), _WIDEST), 1)
        marks = {"cursor": self.model.iteration, "a": None}
        if look.a is not None and not look.a.is_elsewhere:
            marks["a"] = look.a.iteration
        places = {
            name: (one - view.begin) // detail.step * count // max(len(detail.numbers), 1)
            for name, one in marks.items()
            if one is not None
        }
        grid: list[list[Cell]] = [[(" ", "")] * count for _ in range(tall)]
        if (scale.unit or not scale.log) and low <= 0 <= high and low < high:
            grid[_line(0.0, scale, tall)] = [(_ZERO, "faint")] * count
        levels = heights(np.array([one.strongest for one in points]), scale).tolist()
        for column, (one, level) in enumerate(zip(points, levels, strict=True)):
            tone = "now" if places.get("cursor") == column else "a-on" if places.get("a") == column else ""
            if one.letter:
                grid[0][column] = (one.letter, "bad")
            if not math.isnan(level):
                shown = (_SHOWN, tone or "bar") if one.passes else (_OUT, tone or "dim")
                grid[tall - 1 - round(level * (tall - 1))][column] = shown
        rows: list[Row] = [title]
        for line, cells in enumerate(grid):
            label = ends[1] if line == 0 else ends[0] if line == tall - 1 else ""
            wide: Row = [
                ("".join(text * max(slot - 1, 1) + " " * (slot > 1) for text, _ in run), tone)
                for tone, run in groupby(cells, itemgetter(1))
            ]
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
        if "cursor" in places:
            texts.append((places["cursor"], str(marks["cursor"]), "now"))
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


class _Point(NamedTuple):
    """Neighbouring iterations of a row: the strongest finite number (NaN: none), N or I, whether any is shown."""

    strongest: float
    letter: str
    passes: bool


def _points(detail: ColumnDetail, count: int) -> tuple[BarScale, list[_Point]]:
    """Return a row over the iterations in so many points, and their scale."""
    points = []
    edges = np.arange(count + 1) * len(detail.numbers) // count
    for begin, end in pairwise(edges.tolist()):
        part = detail.numbers[begin:end].astype(np.float64)[detail.known[begin:end]]
        finite = part[np.isfinite(part)]
        letter = "" if len(finite) == len(part) else "N" if np.isnan(part).any() else "I"
        strongest = float(finite[np.abs(finite).argmax()]) if finite.size else math.nan
        points.append(_Point(strongest, letter, bool(detail.passes[begin:end].any())))
    return bar_scale(detail.numbers), points


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
        ("min", written(detail.low, 9)),
        ("median", (written if detail.median in (detail.low, detail.high) else mean)(detail.median, 9)),
        ("max", written(detail.high, 9)),
    ]
    right = [("mean", mean(detail.mean, 9)), ("std", mean(detail.deviation, 9)), ("NaN", f"{detail.nan:,}")]
    rows: list[Row] = [
        [(f"{name:<7}", "dim"), (f"{text:>9}", ""), ("   ", ""), (f"{other:<5}", "dim"), (f"{told:>9}", "")]
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
