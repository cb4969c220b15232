"""Detail of one link: how it follows from its operands, what it is made of, its element over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from stepper.debug.causes.cause import LinkForm, PartRole
from stepper.debug.causes.texts import element_text
from stepper.debug.story.facts import LinkRole, Story, StoryLink
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
from tui.paint.rows import Cell, Row, clip, padded, padded_row, shortened, width_of
from tui.screens.story.courses import course_of_link, other_courses
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
    shape = f"{link.type}[{','.join(map(str, link.shape))}]" if link.type else ""
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
        others = math.prod(link.shape) - 1
        which = f"{link.finite_beside:,} of the other {others:,}" if link.finite_beside < others else "all others"
        parts.append(f"{which} are finite")
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
    parts = _parts(story, link, second) if is_wide else []
    course = course_of_link(story, link, third, height)
    room = width - third - 2 if course else width
    top = min(height, max(len(left), len(parts)))
    told = _joined([(left, room - second - 2), (parts, second)], top) if parts else _fitted(left, room, top)
    if course and len(course) <= top:  # T and F: what follows has the whole width
        upper = _joined([(told, room), (course, third)], top)
        return _fitted([*upper, [], *other_courses(story, link, width, height - top - 1)], width, height)
    others = other_courses(story, link, room, height - top - 2)
    told += [[], [], *others] if others else []
    return _joined([(told, room), (course, third)], height) if course else _fitted(told, room, height)


def _joined(columns: list[tuple[list[Row], int]], height: int) -> list[Row]:
    """Return columns of so many cells each beside each other, with a line between."""
    rule: Cell = ("│ ", "faint")
    fitted = [_fitted(rows, room, height) for rows, room in columns]
    return [[*parts[0], *(cell for part in parts[1:] for cell in (rule, *part))] for parts in zip(*fitted, strict=True)]


def _fitted(rows: list[Row], width: int, height: int) -> list[Row]:
    found = [padded_row(row, width) for row in rows[:height]]
    blank: Row = [(" " * width, "")]
    return [*found, *([blank] * (height - len(found)))]


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
    most = _longest(one.amount for one in terms)
    total = sum(one.amount or 0 for one in shown.operands) + (shown.rest or 0)
    for place, one in enumerate(terms):
        rows.append(
            _bar(factor_text(one.factor), one.amount or 0.0, most, one.share, width, first=not place, total=total)
        )
    others = shown.count - len(terms)
    if others > 0 and shown.rest is None:
        rows.append([(f"{others} others", "dim")])
    elif others > 0:
        rest = total - sum(one.amount or 0 for one in terms)
        share = rest / total if total else None
        rows.append(_bar(f"{others} others", rest, most, share, width, dashed=True, total=total))
    for place, group in enumerate(shown.groups[:2]):
        if not place:
            rows.append([("no term stands out, so by tensor:", "dim")])
            most = _longest(group.amount for group in shown.groups[:2])
        rows.append(
            _bar(f"{group.count} of {group.name}", group.amount, most, group.share, width, first=not place, total=total)
        )
    if shown.cancelled is not None and shown.cancelled >= 0.1:
        rows.append([(f"above zero {shown.positive} of {shown.count}; cancelled {percent(shown.cancelled)}", "dim")])
    return rows


def _longest(amounts: Iterable[float | None]) -> float:
    """Return the amount whose bar is as long as there is room: the largest that is finite."""
    return max((abs(one) for one in amounts if one is not None and math.isfinite(one)), default=0.0)


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
    """Return a line of a term: an infinite one has the longest bar, one that is no number a single cell."""
    room = max(4, width - 36)
    size = room if math.isinf(amount) else 1
    if most and math.isfinite(amount):
        size = max(1, min(room, round(abs(amount) / most * room)))
    token = "dim" if dashed else "warm" if amount * total < 0 else "accent" if first else "bar"
    if not math.isfinite(amount):
        token = "bad-thin"
    return [
        (padded(clip(name, 16), 17), ""),
        (f"{number(amount):>9}  ", "strong" if first else ""),
        (("╌" if dashed else "━") * size, token),
        (f" {percent(share)}" if share is not None else "", "dim"),
    ]


def _rivals(link: StoryLink, width: int) -> list[Row]:
    values = [one for one in link.operands if isinstance(one.factor.value, (int, float))][: _FIVE + 1]
    most = _longest(float(one.factor.value or 0) for one in values)
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
