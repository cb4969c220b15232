"""Elements of a story over the iterations, as bars: that of the link, and beside it others on its path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from stepper.debug.causes.cause import Scalar
from stepper.debug.causes.texts import element_text
from stepper.debug.story.facts import LinkRole, Story, StoryLink, is_bad
from stepper.debug.story.texts import number
from stepper.tensors.pictures import BarScale, bar_scale, heights
from tui.paint.rows import Cell, Row, padded_row, spark, width_of
from tui.pictures.axis import Slot
from tui.pictures.drawing import Strip, bar_scale_ends, laid, row_of, truth
from tui.screens.timeline.time_axis import STEPS

_TALLEST: Final = 26
"""Lines of bars of the course that is asked about."""
_LEAST: Final = 7
"""Lines of a course beside others: its name, the bars, the iterations, one blank."""
_HIGHEST, _HIGHEST_ALONE = 18, 32
"""Lines of a course with others below it, and of one with none."""
_WIDEST, _WIDE = 20, 100
"""Cells of an iteration at most in a course of so many cells or more; else 8."""
_NARROWEST: Final = 44


def course_of_link(story: Story, link: StoryLink, width: int, height: int) -> list[Row]:
    """Return the element that a link is made of over the iterations; what it exceeded is told."""
    row = _shown_row(story, link)
    rows = _course(story, link, row, width, min(height - (link.limit is not None), _TALLEST + 2))
    if not rows or link.limit is None:
        return rows
    values = [_measured(value) for value in story.rows[row].history]
    over = [path for path, one in zip(story.iterations, values, strict=False) if one is not None and one > link.limit]
    times = "once" if len(over) == 1 else f"{len(over)} times"
    at = f", at {', '.join(str(path[-1]) for path in over[:4])}" if over else ""
    return [*rows, [(f"limit {link.limit:.2f} ", "dim"), (f"exceeded {times}", ""), (at, "dim")]]


def other_courses(story: Story, link: StoryLink, width: int, height: int) -> list[Row]:
    """Return the other elements on the path over the iterations, the nearest causes first, as many as have room.

    Of those that only move another one, with the same numbers, one is drawn.
    """
    most = (height // _LEAST) * (width // _NARROWEST)
    courses = {story.rows[_shown_row(story, link)].history}
    found: list[int] = []
    for row in _nearest_first(story, link):
        if _is_known(story, row) and story.rows[row].history not in courses and len(found) < most:
            courses.add(story.rows[row].history)
            found.append(row)
    if not found:
        return []
    across = min(width // _NARROWEST, len(found))
    down = -(-len(found) // across)
    wide, tall = (width - 1) // across, min(height // down, _HIGHEST if down > 1 else _HIGHEST_ALONE)
    rows: list[Row] = []
    for begin in range(0, len(found), across):
        drawn = [_course(story, link, row, wide - 2, tall - 1) for row in found[begin : begin + across]]
        for line in range(max(map(len, drawn))):
            cells: Row = [(" ", "")]
            for one in drawn:
                cells += padded_row(one[line] if line < len(one) else [], wide)
            rows.append(cells)
        rows.append([])
    return rows[:-1]


def _nearest_first(story: Story, link: StoryLink) -> Iterator[int]:
    """Return the rows of the links behind a link, then all others but its own."""
    seen = {_shown_row(story, link)}
    reached: set[int] = set()
    waiting = [link]
    for here in waiting:
        if here.row not in seen:
            seen.add(here.row)
            yield here.row
        behind = [one.link for one in here.operands if one.link is not None and one.link not in reached]
        reached.update(behind)
        waiting += [story.links[number] for number in behind]
    yield from (row for row in range(len(story.rows)) if row not in seen)


def _is_known(story: Story, row: int) -> bool:
    return any(value is not None for value in story.rows[row].history)


def _course(story: Story, link: StoryLink, row: int, width: int, height: int) -> list[Row]:
    """Return the element of a row over the iterations, as bars."""
    if not _is_known(story, row):
        return []
    values = story.rows[row].history
    name = f"{story.rows[row].name}{element_text(story.rows[row].element)}"
    limit = link.limit if row == _shown_row(story, link) else None
    numbers = [_measured(value) for value in values]
    slot = max(1, min(_WIDEST if width >= _WIDE else 8, (width - 7) // max(len(numbers), 1)))
    count = (width - 7) // slot
    path = story.columns[link.column].path
    here = story.iterations.index(path) if path in story.iterations else len(numbers) - 1
    begin = max(0, min(here - count // 2, len(numbers) - count))
    numbers, paths = numbers[begin : begin + count], story.iterations[begin : begin + count]
    if all(value is None or isinstance(value, bool) for value in values):
        return [[(f"{name} over iterations", "title")], _verdicts(numbers, slot), _below(paths, story, slot)]
    known = [one for one in numbers if one is not None and math.isfinite(one)]
    scale = bar_scale(np.array(known))
    low, high = scale.low, scale.high
    ends = bar_scale_ends(scale)
    notes: Row = [("   log", "dim")] if scale.log else []
    notes += _beyond(list(zip(paths, numbers, strict=True)), scale, path)
    told = f"{name} over iterations"
    rows: list[Row] = [[(told if len(told) + width_of(notes) <= width else name, "title"), *notes]]
    levels = max(2, height - 2) if low < high else 1
    for level in reversed(range(levels)):
        label = ends[1] if level == levels - 1 else ends[0] if level == 0 and low < high else ""
        cells: Row = [(f"{label:>6} ", "dim")]
        for value in numbers:
            cells += _column(value, scale, level, levels, slot, limit)
        rows.append(cells)
    return [*rows, _below(paths, story, slot)]


def _beyond(known: Sequence[tuple[tuple[int, ...], float | None]], scale: BarScale, path: tuple[int, ...]) -> Row:
    """Return which number is beyond the scale, the link's own first, and how many more are."""
    found = [(at, value) for at, value in known if value is not None and _side(value, scale)]
    if not found:
        return []
    at, value = min(found, key=lambda one: one[0] != path)
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [(f"   {_side(value, scale)} {number(value)} at {at[-1]}{more}", "warm")]


def _side(value: float, scale: BarScale) -> str:
    """Return the sign of a number beyond the scale, of which the bar is cut; empty for all others."""
    if not math.isfinite(value) or scale.low >= scale.high:
        return ""
    return "▲" if value > scale.high else "▼" if value < scale.low else ""


def _verdicts(numbers: Sequence[float | None], slot: int) -> Row:
    """Return T and F, the rarer one bold."""
    verdicts = [(Slot(k * slot, 1, k, k + 1), None if one is None else bool(one)) for k, one in enumerate(numbers)]
    known = [one for _, one in verdicts if one is not None]
    strips = truth(verdicts, rare=2 * sum(known) < len(known))
    return [("       ", ""), *row_of(laid(strips, len(numbers) * slot + 4))]


def _below(paths: Sequence[tuple[int, ...]], story: Story, slot: int) -> Row:
    """Return the numbers of the iterations."""
    return [("       ", ""), *row_of(laid(_numbered(paths, story.present, slot), len(paths) * slot + 4))]


def _numbered(paths: Sequence[tuple[int, ...]], present: tuple[int, ...], slot: int) -> list[Strip]:
    """Return the numbers below columns that do not touch one another: that of the present one, the last, round ones."""
    longest = max((len(str(path[-1])) for path in paths), default=1) + 1
    step = next((one for one in STEPS if one * slot >= longest), STEPS[-1])
    order = [k for k, path in enumerate(paths) if path[-1] % step == 0 or path == present or k == len(paths) - 1]
    order.sort(key=lambda k: (paths[k] != present, k != len(paths) - 1, k))
    found: list[Strip] = []
    taken: set[int] = set()
    for k in order:
        text, start = str(paths[k][-1]), k * slot
        cells = range(start, start + len(text))
        if not taken & {*cells, start - 1, start + len(text)}:
            taken.update(cells)
            found.append((start, text, "now" if paths[k] == present else "dim"))
    return found


def _column(value: float | None, scale: BarScale, level: int, levels: int, slot: int, limit: float | None) -> Row:
    """Return one iteration's part of a line of bars."""
    wide = max(1, slot - 1)
    blank: Cell = (" " * (slot - wide), "")
    if value is None:
        return [(" " * slot, "")]
    if not math.isfinite(value):
        return [(("N" if math.isnan(value) else "I") * wide if not level else " " * wide, "bad-thin"), blank]
    side = _side(value, scale)
    if side and level == (levels - 1 if side == "▲" else 0):
        return [(side.ljust(wide, "█" if side == "▲" else "▁"), "warm"), blank]
    share = (float(heights(np.array(value), scale)) if scale.low < scale.high else 0.0) * levels - level
    token = "bad" if limit is not None and value > limit else "bar"
    if share >= 1:
        return [("█" * wide, token), blank]
    if share <= 0:
        return [("▁" * wide if not level else " " * wide, token), blank]
    return [(spark([share], 0.0, 1.0) * wide, token), blank]


def _shown_row(story: Story, link: StoryLink) -> int:
    """Return the row whose course is shown: of a birth what was too large, else the link's own."""
    if link.role is LinkRole.BORN:
        behind = next((one.link for one in link.operands if one.link is not None), None)
        return link.row if behind is None else story.links[behind].row
    return link.row


def _measured(value: Scalar | None) -> float | None:
    if value is None:
        return None
    if is_bad(value):
        return math.nan if value == "NaN" else math.inf
    return float(value)
