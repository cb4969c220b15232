"""Below the page of the overview: the selected value, what it is, and its exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepper.debug.overview.facts import RowKind
from stepper.tensors.number_text import fitted
from tui.paint.rows import Row, printable, shortened, spread, width_of
from tui.pictures.drawing import way_in
from tui.screens.overview import words
from tui.screens.overview.arrangement import LOW, Wishes
from tui.screens.overview.cards import Card, Line, LinePart
from tui.screens.overview.cursor import Place, iterations_at, line_at
from tui.screens.overview.links import short_address
from tui.screens.overview.row_pictures import growth_at, value_at, way_of

if TYPE_CHECKING:
    from stepper.debug.overview.facts import Failure
    from stepper.element_types import Array
    from stepper.tensors.histories import ValueHistory
    from tui.screens.overview.page import Sight


def failure_detail(failure: Failure, width: int, *, is_low: bool) -> list[Row]:
    """Return the same where the cursor is on the error that ended the run."""
    told: Row = [(" ", ""), *words.failed_at(failure)]
    if is_low:
        return [shortened([*told, (": ", ""), (printable(failure.reason), "bad")], width - 1)]
    going = "Enter goes there "
    return [
        spread(shortened(told, width - 20), [(going, "dim")], width),
        shortened([("   ", ""), (printable(failure.reason or failure.message), "bad")], width - 1),
    ]


def detail(sight: Sight, cards: Sequence[Card], wishes: Wishes, width: int, *, follows: bool) -> list[Row]:
    """Return two lines, of a low terminal one; `follows`: the cursor goes with the run."""
    is_low, at = sight.size[1] < LOW, sight.at
    line = line_at(cards, at)
    if line is None:
        return [[]] if is_low else [[], []]
    card = cards[at.card]
    count = iterations_at(cards, at)
    name = f" {short_address(cards, card, line, at.run, at.iteration) if count else line.name}"
    history, values = value_at(card, line, at, wishes)
    if history is None or values is None:
        head, more = _without_numbers(card, line, at, history, name) if count else _entered(card, line, name, width)
        lead: Row = [("   " if more and not is_low else "  " if more else "", "")]
        return [shortened([*head, *lead, *more], width - 1)] if is_low else [head, [*lead, *more]]
    strongest = next((f"{text}: " for text in words.strongest_of(history, at.iteration)[1 if is_low else 0 :]), "")
    if line.part is LinePart.GROWTH:
        told = strongest + growth_at(card, line, at, values)
        return [[(f"{name}  ", "strong"), (told, "")]] if is_low else [[(name, "strong")], [(f"   {told}", "")]]
    written = words.writer_of(history)
    kind = strongest + words.reduced_by(history, way_in(history, way_of(wishes, card, line)))
    beside = sight.beside_a if sight.beside_a is not None and sight.beside_a.is_beside(at) else None
    theirs = None if beside is None else beside.value(card, line, at, wishes)
    differs = "" if beside is None else beside.told(card, line, at, values, theirs)
    absent = "" if beside is None else beside.absent(card, line, at)
    if is_low and (theirs is not None or differs):
        if theirs is None or beside is None:
            mine, a = words.numbers_in(values, width - len(name) - len(kind) - len(differs) - 24, written), absent
        else:  # there is room for one number of each: that which differs most
            one = beside.worst(values, theirs)
            where = f"[{','.join(map(str, np.unravel_index(one, history.shape)))}] " if history.is_whole else ""
            mine, a = where + written(float(values[one])), written(float(theirs[one]))
        head = [(f"{name}  ", "strong"), (kind, "dim"), (f"now {mine}", ""), ("   A ", "a"), (a, "")]
        return [shortened([*head, (f"   {differs}", "strong")], width - 1)]
    if is_low:
        room = width - len(name) - 2
        head = [(f"{name}  ", "strong"), (kind + _shown(line, values, room - len(kind), written), "")]
        slices = _slices_beside(card, line, at, wishes)
        return [[*head, *slices] if width_of(head) + width_of(slices) < width else head]
    going = "follows the run " if follows and sight.is_running else "Enter goes there "
    of_value = line.part is not LinePart.CHOICE  # whose numbers are of the condition
    head = [
        (name, "strong"),
        (f"   {words.type_text(history, at.iteration)}" if of_value else "", "dim"),
        (f"   {words.doing(card, line, at.run, at.iteration)}", ""),
    ]
    known = history.at(at.iteration)
    has_change = history.type != "boolean" and values.size > 1
    if has_change and known is not None and known.change is not None and np.isfinite(known.change):
        head.append((f"   change {fitted(known.change)}", "dim"))
    tone = "bad" if values.size == 1 and not np.isfinite(values).all() else ""
    label = words.labels_in(line, values)
    before = "   " if beside is None else "   now  "
    rows: list[Row] = [
        spread(shortened(head, width - 20), [(going, "dim")], width),
        [
            (before, ""),
            (kind, "dim"),
            (_shown(line, values, width - len(before) - len(kind) - len(label), written), tone),
            (label, "strong"),
        ],
    ]
    if beside is not None:
        room = width - len(before) - len(kind) - len(differs) - 4
        a = absent if theirs is None else words.numbers_in(theirs, max(room, 12), written)
        label = "" if theirs is None else words.labels_in(line, theirs)
        row: Row = [("   A    ", "a"), (kind if theirs is not None else "", "dim"), (a, ""), (label, "strong")]
        rows.append(shortened([*row, (f"   {differs}", "strong")], width - 1))
    return rows


def _without_numbers(card: Card, line: Line, at: Place, history: ValueHistory | None, name: str) -> tuple[Row, Row]:
    """Return what is told of a value without numbers: where it comes from, and that it is empty where it is."""
    did = f"   {words.doing(card, line, at.run, at.iteration)}"
    shape = None if history is None else history.shape_at(at.iteration)
    if history is None or shape is None or 0 not in shape:
        return [(name, "strong"), (did, "dim")], []
    kind = f"   {words.type_text(history, at.iteration)}"
    return [(name, "strong"), (kind, "dim"), (did, "dim")], [("no elements", "")]


def _entered(card: Card, line: Line, name: str, width: int) -> tuple[Row, Row]:
    """Return what came into a loop of which no iteration has run."""
    head: Row = [(name, "strong"), (f"   {words.entered(card, line)}", "dim")]
    return head, words.numbers_entered(card, line, width - 4)


def _shown(line: Line, values: Array, room: int, written: Callable[[float], str]) -> str:
    """Return the numbers of a value; of an If the side."""
    if line.part is LinePart.CHOICE:
        return "then" if values[0] else "else"
    return words.numbers_in(values, room, written)


def _slices_beside(card: Card, line: Line, at: Place, wishes: Wishes) -> Row:
    """Return where the slice of the row lies; of another row the slices that its iteration got, as far as numbers."""
    row: Row = []
    for other in card.lines:
        places = words.place_of_slice(card, other, at.run, at.iteration)
        if not places or (line is not other and line.kind is RowKind.SLICE):
            continue
        if line is not other:
            history, values = value_at(card, other, at, wishes)
            is_one = history is not None and values is not None and values.size == 1
            is_own = is_one and history is not None and history.bin_of(at.iteration) is None
            told = fitted(float(values[0])) if is_own and values is not None else ""
            row += [("   ← ", "dim"), (other.name, "strong"), (f" {told}".rstrip(), "")]
        row.append((f"   {places[-2]}", "dim"))
    return row
