"""The cursor of the overview: a card, a row, a run of the loop, an iteration; and where a movement puts it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from stepper.debug.moments.moment import MomentKind
from stepper.tensors.pictures import Form
from tui.pictures.drawing import first_bad
from tui.screens.overview.cards import Card, Line, LinePart

if TYPE_CHECKING:
    from stepper.debug.moments.moment import Moment
    from tui.pictures.axis import Axis
    from tui.state import State


class Place(NamedTuple):
    """The cursor: a card and a row by their place, a kept run of the loop, and an iteration."""

    card: int
    line: int
    run: int
    iteration: int


UNCHANGED_FROM: Final = 1_000
"""Iterations without any change from which on that is said."""
NOWHERE = Place(0, 0, 0, 0)
"""The cursor where there is no card."""


def line_at(cards: Sequence[Card], at: Place) -> Line | None:
    """Return the row of the cursor; None where there is none."""
    if not cards or at.line >= len(cards[at.card].lines):
        return None
    return cards[at.card].lines[at.line]


def iterations_at(cards: Sequence[Card], at: Place) -> int:
    """Return how many iterations the run of the cursor has."""
    card = cards[at.card] if at.card < len(cards) else None
    return card.runs[at.run].iterations if card is not None and at.run < len(card.runs) else 0


def bounded(cards: Sequence[Card], at: Place) -> Place:
    """Return the nearest place that there is."""
    if not cards:
        return NOWHERE
    place = max(0, min(at.card, len(cards) - 1))
    card = cards[place]
    run = max(0, min(at.run, len(card.runs) - 1))
    at = Place(place, max(0, min(at.line, len(card.lines) - 1)), run, at.iteration)
    return at._replace(iteration=max(0, min(at.iteration, iterations_at(cards, at) - 1)))


def beside(cards: Sequence[Card], axis: Axis | None, at: Place, by: int) -> Place:
    """Return the place so many columns further on an axis; past its end that in the next run."""
    if axis is None or not axis.slots:
        return at
    index = axis.index_of(at.iteration) + by
    if not 0 <= index < len(axis.slots) or axis.slots[index].first >= iterations_at(cards, at):
        return passed(cards, at, -1 if index < 0 else iterations_at(cards, at))
    return at._replace(iteration=axis.slots[index].first)


def passed(cards: Sequence[Card], at: Place, iteration: int) -> Place:
    """Return the place of an iteration, which may be one of the run before or after."""
    runs = len(cards[at.card].runs) if cards else 0
    if iteration < 0 and at.run > 0:
        before = at._replace(run=at.run - 1)
        return before._replace(iteration=max(iterations_at(cards, before) - 1, 0))
    if iteration >= iterations_at(cards, at) and at.run < runs - 1:
        return at._replace(run=at.run + 1, iteration=0)
    return at._replace(iteration=iteration)


def run_near(cards: Sequence[Card], at: Place, number: int) -> Place:
    """Return the place in the kept run of the cursor's loop that is nearest to the one of this number."""
    runs = cards[at.card].runs
    return at._replace(run=min(range(len(runs)), key=lambda k: abs(runs[k].number - number), default=0))


def on_row(cards: Sequence[Card], at: Place, card: int, line: int) -> Place:
    """Return the place on another row: in the same iteration; of an inner loop in the run of that iteration."""
    if card == at.card:
        return at._replace(line=line)
    runs = cards[card].runs if card < len(cards) else ()
    if not runs:
        return Place(card, line, 0, at.iteration)
    if cards[card].facts.parent != cards[at.card].index:
        return Place(card, line, len(runs) - 1, at.iteration)
    run = min(range(len(runs)), key=lambda k: abs(runs[k].outer[-1] - at.iteration) if runs[k].outer else 0)
    return Place(card, line, run, at.iteration)


def first_picture(card: Card) -> int:
    """Return the first row that is a picture, else the first one of numbers."""
    for forms in ((Form.PICTURE,), (Form.BARS, Form.NUMBERS)):
        for k, line in enumerate(card.lines):
            if line.form in forms:
                return k
    return 0


def moments(cards: Sequence[Card], state: State) -> Iterable[Place]:
    """Return where the debugger stands in the loops, by card and run; the row is the first picture."""
    return () if state.iteration is None else places_of_run(cards, state, state.iteration)


def places_of_run(cards: Sequence[Card], state: State, iteration: int) -> Iterator[Place]:
    """Return an iteration of the run of the loop that is shown, by card and run; the row is the first picture."""
    here = state.loop_run
    if here is None:
        return
    outer = tuple(one for _, one in here.around if one is not None)
    for place, card in enumerate(cards):
        if card.program is not None and card.program is state.loop_program:
            for run, activation in enumerate(card.runs):
                if activation.outer == outer:
                    yield Place(place, first_picture(card), run, iteration)


def place_of(cards: Sequence[Card], moment: Moment) -> Place | None:
    """Return where the iteration of a pinned moment is; None where no card has it. The row is the first picture."""
    if moment.kind is not MomentKind.ITERATION:
        return None
    last = max((k for k, step in enumerate(moment.place) if step.iteration is not None), default=-1)
    steps = moment.place[: last + 1]
    layers, iterations = [step.layer for step in steps], [one for step in steps if (one := step.iteration) is not None]
    for place, card in enumerate(cards):
        if iterations and card.program is not None and [layer.id for layer in card.program.path] == layers:
            for run, activation in enumerate(card.runs):
                if [*activation.outer] == iterations[:-1]:
                    return Place(place, first_picture(card), run, iterations[-1])
    return None


def first_place(cards: Sequence[Card], now: Sequence[Place]) -> Place:
    """Return where the debugger stands, else the first NaN or Inf, else the last iteration of the first loop."""
    for place in (*now, *findings(cards)):
        return place
    card = cards[0]
    return Place(0, first_picture(card), 0, max(card.runs[0].iterations - 1, 0) if card.runs else 0)


def findings(cards: Sequence[Card], *, all_kinds: bool = False) -> list[Place]:
    """Return the rows in which NaN or Inf appears, in time, the birth before what it spoils.

    With `all_kinds` also where shapes change first, and the last change of values that stay the same for long then.
    """
    found = []
    around = 0  # the loop of the model's own graph, of those inside of it too
    for place, card in enumerate(cards):
        around = place if not card.facts.depth else around
        for k, line in enumerate(card.lines):
            for run, activation in enumerate(card.runs):
                history = card.history(line, run)
                if history is not None and line.form is not Form.WORDS:
                    iterations = [first_bad(history)]
                    iterations += _other_findings(card, line, run) if all_kinds else []
                    for iteration in {one for one in iterations if one is not None}:
                        key = around, *activation.outer, iteration, inf, not line.is_born  # an outer one ends later
                        found.append((key, Place(place, k, run, iteration)))
    return [place for _, place in sorted(found, key=lambda pair: pair[0])]


def _other_findings(card: Card, line: Line, run: int) -> list[int]:
    """Return the first change of the shape of a value, and its last change before it stays the same for long."""
    history = card.runs[run].values[line.row] if line.part in (LinePart.VALUE, LinePart.GROWTH) else None
    if history is None or (line.part is LinePart.VALUE and card.has_growth(line)):
        return []  # they are found in the row of what it grows by
    found = [one.iteration for one in history.shapes[:1]]
    since = history.unchanged_since
    return [*found, since] if since and history.count - since >= UNCHANGED_FROM else found
