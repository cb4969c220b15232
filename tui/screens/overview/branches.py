"""Ifs outside of loops as cards: which side ran, why in values, and what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stepper.debug.overview.facts import BranchFacts, Overview, branches_outside
from stepper.tensors.histories import KeptStatistic
from stepper.wording import counted
from tui.paint.names import layer_name, row_name
from tui.paint.rows import Row, clip, overlaid, shortened, spread, width_of
from tui.screens.overview import words
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.tensors.histories import ValueHistory

_MOST_OUTPUTS: Final = 4
"""Outputs that have lines of their own."""
MOST_ABOVE: Final = 8
"""Ifs that stand above the cards of loops; more stand below them."""
_NAME: Final = 24


class ShownBranch(NamedTuple):
    """An If as it is shown: its index among those of the overview, and its lines; one, or as many as it has facts."""

    branch: int
    height: int


def branches_shown(overview: Overview, selected: int | None, room: int, *, is_low: bool) -> list[ShownBranch]:
    """Return the Ifs outside of loops in so many lines: all with all their facts where they fit, else the selected one.

    On a low terminal each is a line, and below the page the selected one has another.
    """
    found = branches_outside(overview)
    whole = {index: _height(overview.branches[index]) for index in found}
    fits = sum(whole.values()) <= room
    return [ShownBranch(index, whole[index] if not is_low and (fits or index == selected) else 1) for index in found]


def _height(facts: BranchFacts) -> int:
    outputs = len(facts.rows) if facts.runs else 0
    return 2 + min(outputs, _MOST_OUTPUTS) + (outputs > _MOST_OUTPUTS) + 1


def branch_rows(facts: BranchFacts, height: int, width: int, label: int, *, is_on: bool) -> list[Row]:
    """Return the lines of an If; a `label` of so many cells stands before the values of an output."""
    if height == 1:
        return [_line(facts, width, is_on=is_on)]
    rows = [_heading(facts, width, is_on=is_on), shortened([(f" {_pad(facts)}", ""), *_why(facts, width - 2)], width)]
    for row, history in list(zip(facts.rows, facts.values, strict=False))[:_MOST_OUTPUTS] if facts.runs else ():
        lead = f" {_pad(facts)}{GLYPHS['scan']} "
        name = f"{lead}{clip(row_name(row), label - len(lead) - 1)}"
        kind = "" if history is None else f"{words.type_text(history, 0)}  "
        head: Row = [(f"{name:<{label}}", ""), (kind, "dim")]
        rows.append(shortened([*head, *_numbers(history, width - width_of(head) - 1)], width))
    if len(facts.rows) > _MOST_OUTPUTS and facts.runs:
        rows.append([(f" {_pad(facts)}  … {counted(len(facts.rows) - _MOST_OUTPUTS, 'more output')}", "dim")])
    return [*rows, []]


def branch_detail(facts: BranchFacts, width: int, *, is_low: bool) -> list[Row]:
    """Return what stands below the page for the selected If: two lines, on a low terminal one."""
    history = next((one for one in facts.values if one is not None), None)
    head: Row = [(f" {clip(layer_name(facts.layer), _NAME)}", "strong")]
    kind = "" if history is None else words.type_text(history, 0)
    if is_low:
        head.append(("  ", ""))
        told = _numbers(history, width - width_of(head) - 1) if facts.runs else [("did not run", "dim")]
        return [shortened([*head, *told], width - 1)]
    going: Row = [("Enter goes there   o where its value comes from ", "dim")] if facts.runs else []
    told = _numbers(history, width - 4) if facts.runs else [("no side of it ran", "dim")]
    return [spread(shortened([*head, (f"   {kind}", "dim")], width - 50), going, width), [("   ", ""), *told]]


def _heading(facts: BranchFacts, width: int, *, is_on: bool) -> Row:
    name = clip(layer_name(facts.layer), max(width // 3, 12))
    head: Row = [
        (GLYPHS["focus"] if is_on else " ", "accent"),
        (_pad(facts), ""),
        (name, "title-on" if is_on else "title"),
        (f"  If {facts.layer.id} · {_sides(facts)}", "dim"),
    ]
    return spread(head, [*_taken(facts), (" ", "")], width)


def _line(facts: BranchFacts, width: int, *, is_on: bool) -> Row:
    """Return all of it in one line: its name, the side, why, and what came out."""
    name = clip(layer_name(facts.layer), max(width // 5, 12))
    row: Row = [
        (GLYPHS["focus"] if is_on else " ", "accent"),
        (_pad(facts), ""),
        (name, "title-on" if is_on else "title"),
    ]
    if is_on:
        row = [row[0], *overlaid(row[1:], "cursor")]
    row += [("  If  ", "dim"), *_why(facts, width - width_of(row) - 8)]
    history = next((one for one in facts.values if one is not None), None)
    room = width - width_of(row) - 5
    if facts.runs and history is not None and room > _NAME:
        row += [("  →  ", "faint"), *_numbers(history, room)]
    return shortened(row, width)


def _why(facts: BranchFacts, room: int) -> Row:
    """Return which side ran, and what its condition was, in values."""
    if not facts.runs:
        return [("did not run", "dim")]
    row: Row = [("then" if facts.then_runs else "else", "strong"), (": ", "")]
    if facts.verdict is None:
        return row[:1]
    told = words.verdict(facts.verdict, (), {})
    if width_of(row) + width_of(told) > room:
        told = words.verdict(facts.verdict, (), {}, is_short=True)
    return [*row, *told]


def _taken(facts: BranchFacts) -> Row:
    counts = (("then", facts.then_runs), ("else", facts.else_runs))
    times = [f"{side} ran {'once' if count == 1 else f'{count:,} times'}" for side, count in counts if count]
    return [(", ".join(times) or "did not run", "" if times else "dim")]


def _sides(facts: BranchFacts) -> str:
    return f"then {facts.then_operations}, else {counted(facts.else_operations, 'operation')}"


def _numbers(history: ValueHistory | None, room: int) -> Row:
    """Return the values that came out last: all numbers that fit, of many elements a bucket each."""
    if history is None or not history.count:
        return [("no numbers", "dim")]
    if 0 in history.shape:
        return [("no elements", "dim")]
    numbers = history.numbers[0 if history.is_whole else KeptStatistic.MEAN, -1]
    tone = "" if np.isfinite(numbers).all() else "bad"
    buckets = "" if history.is_whole else f"{len(numbers)} buckets by mean: "
    return [(buckets, "dim"), (words.numbers_in(numbers, max(room - len(buckets), 12)), tone)]


def _pad(facts: BranchFacts) -> str:
    return "  " * min(facts.depth, 3)
