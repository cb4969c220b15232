"""Detail of one link: how it follows from its operands, what it is made of, its element over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from stepper.debug.causes.cause import Scalar
from stepper.debug.causes.texts import element_text
from stepper.debug.story.facts import LinkRole, Story, StoryLink, is_bad
from stepper.debug.story.forms import LinkForm, PartRole
from stepper.debug.story.texts import (
    exceeded_by,
    factor_text,
    followed,
    formula,
    link_name,
    number,
    percent,
    suggestion,
)
from tui.paint.rows import Cell, Row, clip, padded, shortened, spark, width_of
from tui.paint.rows import number as shortest
from tui.pictures.drawing import Strip, laid, row_of
from tui.screens.timeline.time_axis import STEPS
from tui.theme import GLYPHS

_FIVE: Final = 5


def detail_rows(story: Story, link: StoryLink, width: int, height: int) -> list[Row]:
    """Return the detail of a link in so many rows: two or three parts beside each other, in few rows lines."""
    if height < 1:
        return []
    if height >= 6:
        return _beside_each_other(story, link, width, height)
    return [shortened(row, width) for row in _lines(story, link, width)[:height]]


def _head(story: Story, link: StoryLink) -> Row:
    operation = link.location.operation
    kind = "" if operation is None else operation.type
    shape = f"{link.type}[{','.join(map(str, link.shape))}]"
    return [
        (GLYPHS["focus"], "accent"),
        (f" {link_name(story, link)}", "title-on"),
        (f"   {kind}   {shape}", "note"),
    ]


def _formula_row(link: StoryLink) -> Row:
    told = formula(link)
    tone = "bad" if link.is_bad and told.left else "strong"
    row: Row = [("  ", ""), (f"{told.left} {told.sign} " if told.left else "", ""), (told.value, tone)]
    if link.limit is not None:
        row += [(f"   {link.type} has no exp above ", "dim"), (f"{link.limit:.3f}", "strong")]
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
        parts.append(f"{link.finite_beside} of the other {math.prod(link.shape) - 1} elements are finite")
    if link.share is not None and link.share != 1.0:
        parts.append(f"{percent(link.share)} of what was asked about")
    if link.times > 1:
        parts.append(f"{link.times} iterations that do the same, first {number(link.first)}")
    return [("  ", ""), ("; ".join(parts), "dim")] if parts else []


def _made_of(link: StoryLink) -> list[Row]:
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
    names = ", ".join(link.readers[:4])
    return _named("goes to", names, f"   {len(link.readers)}" if len(link.readers) > 1 else "") if names else []


def _try(story: Story, link: StoryLink) -> Row:
    line = suggestion(story, link)
    return [("  ", ""), ("try        ", "dim"), (f":{line}", "key"), ("   and what follows", "dim")] if line else []


def _line(link: StoryLink) -> Row:
    operation = link.location.operation
    if operation is None:
        return []
    name = f'<layer id="{operation.id}" name="{operation.name}" type="{operation.type}" …>'
    return [("  ", ""), (f"line {operation.line}".ljust(11), "dim"), (name, "")]


def _lines(story: Story, link: StoryLink, width: int) -> list[Row]:
    """Return the most important in few lines."""
    head, attempt, line = _head(story, link), _try(story, link), _line(link)
    if width >= 110:
        head = [*head, (" " * max(2, 72 - width_of(head)), ""), *line[1:]]
        told = _formula_row(link)
        if attempt:
            told = [*told, (" " * max(2, 72 - width_of(told)), ""), *attempt[2:]]
        return [head, told, _sentence(link), _beside_row(link), _goes_to(link)]
    if width >= 100:
        return [head, _formula_row(link), _sentence(link)]
    told = [*_formula_row(link), ("   ", ""), *_sentence(link)[1:]]
    return [told, line, *(row for row in (_beside_row(link), _goes_to(link), attempt) if row)]


def _sentence(link: StoryLink) -> Row:
    """Return what it is made of in one line."""
    row: Row = [("  ", ""), ("made of ", "dim")]
    terms = [one for one in link.operands if one.share is not None]
    if link.form is LinkForm.SUM and link.count > 2 and terms:
        for one in terms[:3]:
            row += [(f"{factor_text(one.factor)} ", ""), (percent(one.share or 0), "strong"), (", ", "dim")]
        rest = 1 - sum(one.share or 0 for one in terms[:3])
        row.append((f"{link.count - len(terms[:3])} others {percent(rest)}", "dim"))
        return row
    compared = [one for one in link.operands if one.role is PartRole.COMPARED]
    shown = [one for one in link.operands if one not in compared][:3]
    row += [(", ".join(f"{factor_text(one.factor)} = {number(one.factor.value)}" for one in shown), "")]
    if compared:
        row.append((f"   compared with {', '.join(number(one.factor.value) for one in compared[:4])}", "dim"))
    return row if link.operands else []


# --- parts beside each other ----------------------------------------------------------------------------------------


def _beside_each_other(story: Story, link: StoryLink, width: int, height: int) -> list[Row]:
    """Return what the link is, the terms of the sum behind it where there is room, its element over the iterations."""
    is_wide = width >= 140
    first = 56 if is_wide else width * 11 // 20
    second = min(54, (width - 56) * 3 // 5) if is_wide else 0
    third = width - first - second - (4 if is_wide else 2)
    left = [row for row in (_head(story, link), _formula_row(link), _beside_row(link), *_made_of(link)) if row]
    left += [row for row in (_goes_to(link), _try(story, link), _line(link)) if row]
    beside = [(_parts(story, link, second), second)] if is_wide else []
    beside.append((_course(story, link, third, height), third))
    beside = [(rows, room) for rows, room in beside if rows]
    first = width - sum(room + 2 for _, room in beside)
    columns = [_fitted(left, first, height), *(_fitted(rows, room, height) for rows, room in beside)]
    rule: Cell = ("│ ", "faint")
    return [
        [*parts[0], *(cell for part in parts[1:] for cell in (rule, *part))] for parts in zip(*columns, strict=True)
    ]


def _fitted(rows: list[Row], width: int, height: int) -> list[Row]:
    found = [shortened(row, width) for row in rows[:height]]
    found += [[] for _ in range(height - len(found))]
    return [[*row, (" " * max(0, width - width_of(row)), "")] for row in found]


def _parts(story: Story, link: StoryLink, width: int) -> list[Row]:
    """Return the largest terms of the nearest sum behind a link, or the rivals of a choice, with bars."""
    shown = _nearest_sum(story, link)
    if shown is None:
        return []
    title = f"{link_name(story, shown)} = {number(shown.value)}"
    if shown.form is LinkForm.CHOICE:
        return [[(title, "title"), (f"   of {shown.count}", "note")], *_rivals(shown, width)]
    kind = "products" if shown.operands and shown.operands[0].beside is not None else "terms"
    rows: list[Row] = [[(title, "title"), (f"   sum of {shown.count} {kind}", "note")]]
    terms = [one for one in shown.operands if one.amount is not None][:_FIVE]
    most = max((abs(one.amount or 0) for one in terms), default=0.0)
    total = sum(one.amount or 0 for one in shown.operands) + (shown.rest or 0)
    for place, one in enumerate(terms):
        rows.append(
            _bar(factor_text(one.factor), one.amount or 0.0, most, one.share, width, first=not place, total=total)
        )
    others = shown.count - len(terms)
    if others > 0:
        rest = total - sum(one.amount or 0 for one in terms)
        share = rest / total if total else None
        rows.append(_bar(f"{others} others", rest, most, share, width, dashed=True, total=total))
    for place, group in enumerate(shown.groups[:2]):
        if not place:
            rows.append([("no term stands out, so by tensor:", "dim")])
        most = abs(shown.groups[0].amount)
        rows.append(
            _bar(f"{group.count} of {group.name}", group.amount, most, group.share, width, first=not place, total=total)
        )
    if shown.cancelled is not None and shown.cancelled >= 0.1:
        rows.append([(f"above zero {shown.positive} of {shown.count}; cancelled {percent(shown.cancelled)}", "dim")])
    return rows


def _bar(
    name: str,
    amount: float,
    most: float,
    share: float | None,
    width: int,
    *,
    first: bool = False,
    dashed: bool = False,
    total: float = 0.0,
) -> Row:
    room = max(4, width - 36)
    size = max(1, min(room, round(abs(amount) / most * room))) if most else 1
    token = "dim" if dashed else "warm" if amount * total < 0 else "accent" if first else "bar"
    return [
        (padded(clip(name, 16), 17), ""),
        (f"{number(amount):>9}  ", "strong" if first else ""),
        (("╌" if dashed else "━") * size, token),
        (f" {percent(share)}" if share is not None else "", "dim"),
    ]


def _rivals(link: StoryLink, width: int) -> list[Row]:
    values = [one for one in link.operands if isinstance(one.factor.value, (int, float))][: _FIVE + 1]
    most = max((abs(float(one.factor.value or 0)) for one in values), default=0.0)
    rows: list[Row] = []
    for one in values:
        decided = one.role is PartRole.DECIDES
        value = float(one.factor.value or 0)
        rows.append(_bar(element_text(one.factor.element), value, most, None, width, first=decided, dashed=value < 0))
    return rows


def _nearest_sum(story: Story, link: StoryLink) -> StoryLink | None:
    """Return this link or the nearest behind it that is a sum of several terms, or a choice among several."""
    here: StoryLink | None = link
    for _ in range(len(story.links)):
        if here is None or (here.form in (LinkForm.SUM, LinkForm.CHOICE) and here.count > 2):
            return here
        behind = next((one.link for one in here.operands if one.link is not None), None)
        here = None if behind is None else story.links[behind]
    return None


def _course(story: Story, link: StoryLink, width: int, height: int) -> list[Row]:
    """Return the element that a link is made of over the iterations, as bars; what it exceeded is told."""
    row, name = _shown_row(story, link)
    values = story.rows[row].history if row is not None else ()
    if row is None or not any(value is not None for value in values):
        return []
    numbers = [_measured(value) for value in values]
    slot = max(1, min(8, (width - 7) // max(len(numbers), 1)))
    count = (width - 7) // slot
    path = story.columns[link.column].path
    here = story.iterations.index(path) if path in story.iterations else len(numbers) - 1
    begin = max(0, min(here - count // 2, len(numbers) - count))
    numbers, paths = numbers[begin : begin + count], story.iterations[begin : begin + count]
    known = [one for one in numbers if one is not None and math.isfinite(one)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    are_verdicts = all(value is None or isinstance(value, bool) for value in values)
    rows: list[Row] = [[(f"{name} over iterations", "title")]]
    levels = max(2, min(20, height - 3))
    for level in reversed(range(levels)):
        end = high if level == levels - 1 else low
        is_end = level == levels - 1 or (level == 0 and low < high)
        label = "" if not is_end else str(bool(end)).lower() if are_verdicts else shortest(end)
        cells: Row = [(f"{label:>6} ", "dim")]
        for value in numbers:
            cells += _column(value, low, high, level, levels, slot, link.limit)
        rows.append(cells)
    rows.append([("       ", ""), *row_of(laid(_numbered(paths, story.present, slot), len(paths) * slot + 4))])
    if link.limit is not None:
        over = [path for path, one in zip(paths, numbers, strict=True) if one is not None and one > link.limit]
        times = "once" if len(over) == 1 else f"{len(over)} times"
        at = f", at {', '.join(str(path[-1]) for path in over[:4])}" if over else ""
        rows.append([(f"limit {link.limit:.2f} ", "dim"), (f"exceeded {times}", ""), (at, "dim")])
    return rows


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


def _column(
    value: float | None, low: float, high: float, level: int, levels: int, slot: int, limit: float | None
) -> Row:
    """Return one iteration's part of a line of bars."""
    wide = max(1, slot - 1)
    blank: Cell = (" " * (slot - wide), "")
    if value is None:
        return [(" " * slot, "")]
    if not math.isfinite(value):
        return [(("N" if math.isnan(value) else "I") * wide if not level else " " * wide, "bad-thin"), blank]
    span = (high - low) or 1.0
    share = (value - low) / span * levels - level
    token = "bad" if limit is not None and value > limit else "bar"
    if share >= 1:
        return [("█" * wide, token), blank]
    if share <= 0:
        return [("▁" * wide if not level else " " * wide, token), blank]
    return [(spark([share], 0.0, 1.0) * wide, token), blank]


def _shown_row(story: Story, link: StoryLink) -> tuple[int | None, str]:
    """Return the row whose course is shown: of a birth what was too large, else the link's own."""
    shown = link
    if link.role is LinkRole.BORN:
        behind = next((one.link for one in link.operands if one.link is not None), None)
        shown = link if behind is None else story.links[behind]
    row = story.rows[shown.row]
    return shown.row, f"{row.name}{element_text(row.element)}"


def _measured(value: Scalar | None) -> float | None:
    if value is None:
        return None
    if is_bad(value):
        return math.nan if value == "NaN" else math.inf
    return float(value)
