"""Which cards and rows of the overview are shown in so many cells, on which axes, how tall: without colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from stepper.debug.overview.facts import Overview, RowKind, RunState
from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import Form, ScaleKind
from tui.pictures.axis import ENTERED, Axis, nested, plain
from tui.pictures.drawing import first_bad, form_on, height_wanted
from tui.pictures.heights import Want, heights
from tui.screens.overview.cards import Card, Line, parent_loop
from tui.screens.overview.cursor import Place
from tui.screens.overview.words import limit_of

LOW: Final = 28
"""Lines of the terminal below which everything folds."""
_MOST_CARDS: Final = 8
_STEPS: Final = tuple(digit * 10**power for power in range(1, 9) for digit in (2, 5, 10))


class Widths(NamedTuple):
    """Cells for labels, for the value at the cursor, and for pictures; the widest slot."""

    label: int
    value: int
    picture: int
    slot: int


def widths(width: int) -> Widths:
    """Return how so many cells are shared."""
    label = 15 if width < 100 else 19 if width < 150 else 25
    value = 0 if width < 100 else 20 if width < 150 else 30 if width < 190 else 40
    return Widths(
        label, value, width - label - value - (3 if value else 1), 6 if width < 150 else 9 if width < 190 else 12
    )


class Shown(NamedTuple):
    """A card as it is shown. `runs` are the kept runs drawn, each on its axis; `lines` those with a row of their own.

    `told` are rows that are words in one row, `folded` those that are only counted. `heights` and `aired` are by line.
    """

    card: Card
    place: int
    depth: int
    axes: tuple[Axis, ...]
    runs: tuple[int, ...]
    lines: tuple[int, ...]
    told: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    heights: tuple[int, ...] = ()
    aired: frozenset[int] = frozenset()
    has_ending: bool = True
    has_ruler: bool = True

    @property
    def fixed(self) -> int:
        """Return how many lines it has beside its rows."""
        return 1 + self.has_ending + self.has_ruler + bool(self.told) + bool(self.folded)


class Wishes(NamedTuple):
    """Choices of the user: cards that are unfolded; by (card, row) further lines, the number shown, the scale."""

    unfolded: set[int]
    taller: dict[tuple[int, int], int]
    ways: dict[tuple[int, int], str]
    scales: dict[tuple[int, int], ScaleKind | None]


def arranged(
    overview: Overview,
    cards: Sequence[Card],
    at: Place,
    size: tuple[int, int],
    room: int,
    wishes: Wishes,
    *,
    plain_look: bool,
) -> tuple[list[Shown], int]:
    """Return the cards as they are shown in so many lines, and how many lines are left.

    `size` is that of the terminal. What does not fit is left out in this order: rows that are words go into one, cards
    that are not selected keep one picture, then none; last rows of the selected one are counted.
    """
    is_low, share = size[1] < LOW, widths(size[0])
    shown = _placed(overview, cards, at, share, is_low=is_low)
    gap = 0 if is_low else 1

    def need(views: Sequence[Shown]) -> int:
        return sum(one.fixed + len(one.lines) + gap for one in views)

    if need(shown) > room and len(shown) > 1:
        shown = [one if one.place == at.card else _compact(one) for one in shown]
        if len(shown) > _MOST_CARDS or need(shown) > room:
            shown = [one if one.place == at.card else one._replace(lines=()) for one in shown]
    if need(shown) > room and at.card not in wishes.unfolded:
        shown = [_folded(one, need(shown) - room, at) if one.place == at.card else one for one in shown]
    wants = [
        _want(one.card, line, one, at, wishes.taller.get((one.card.index, one.card.lines[line].row), 0))
        for one in shown
        for line in one.lines
    ]
    air = [] if is_low else [(one.place, line) for one in shown if one.has_ruler for line in _airy(one)]
    left = room - need(shown)
    pictures = sum(want.size > 1 for want in wants)
    if left < len(air) + 3 * pictures:
        air = air if left >= len(air) + pictures and pictures <= 4 else []
    found, left = heights(wants, left - len(air) + len(wants), tall=size[1] >= 56, plain=plain_look)
    given = iter(found)
    tall = [one._replace(heights=tuple(next(given) for _ in one.lines)) for one in shown]
    return [one._replace(aired=frozenset(k for place, k in air if place == one.place)) for one in tall], left


def _placed(overview: Overview, cards: Sequence[Card], at: Place, share: Widths, *, is_low: bool) -> list[Shown]:
    axes: dict[int, tuple[tuple[Axis, ...], tuple[int, ...]]] = {}
    for card in cards:
        inner = None if card.facts.depth != 1 else _on_outer(overview, cards, card, share)
        parent = parent_loop(overview, card.index)
        if inner is not None and parent is not None and parent not in axes:
            outer, groups, runs = inner
            axes[parent] = (outer,), (0,)
            axes[card.index] = groups, runs
    found = []
    for place, card in enumerate(cards):
        known = axes.get(card.index)
        if known is None:
            run = at.run if place == at.card else max(len(card.runs) - 1, 0)
            known = (_axis(overview, card, run, share),), (min(run, max(len(card.runs) - 1, 0)),)
        words = tuple(k for k, line in enumerate(card.lines) if line.form is Form.WORDS)
        folds = is_low and len(words) > 1
        lines = tuple(k for k in range(len(card.lines)) if not (folds and k in words))
        has_ruler = bool(card.facts.total)
        shown = Shown(card, place, card.facts.depth, *known, lines, words if folds else (), has_ruler=has_ruler)
        found.append(shown)
    return found


def _on_outer(
    overview: Overview, cards: Sequence[Card], card: Card, share: Widths
) -> tuple[Axis, tuple[Axis, ...], tuple[int, ...]] | None:
    """Return the outer axis, and those of the inner runs on it; None where they cannot all be shown so."""
    parent = parent_loop(overview, card.index)
    if parent is None:
        return None
    outer = next(one for one in cards if one.index == parent)
    runs = card.runs
    if (
        not runs
        or len(outer.runs) != 1
        or len(runs) != card.facts.runs
        or len({run.outer for run in runs}) != len(runs)
    ):
        return None
    by_outer = {run.outer[-1]: place for place, run in enumerate(runs)}
    count = outer.runs[0].iterations
    if any(key >= count for key in by_outer):  # one under way has no column of the outer loop yet
        count = max(by_outer) + 1
    counts = [runs[by_outer[k]].iterations if k in by_outer else 0 for k in range(count)]
    made = nested(counts, share.picture, share.slot)
    if made is None:
        return None
    axis, groups = made
    return axis, tuple(groups[k] for k in sorted(by_outer)), tuple(by_outer[k] for k in sorted(by_outer))


def _axis(overview: Overview, card: Card, run: int, share: Widths) -> Axis:
    if run >= len(card.runs):
        return plain(0, share.picture, share.slot)
    activation = card.runs[run]
    count = activation.iterations
    if activation.ending is None and overview.state is RunState.RUNNING:
        limit = limit_of(activation)
        room = share.picture - ENTERED - 1
        known = limit if limit is not None and limit <= room else next(one for one in _STEPS if one >= count)
        if known <= room:
            return plain(known, share.picture, share.slot)
        return plain(count, share.picture, share.slot, grows=True)
    return plain(count, share.picture, share.slot)


def _compact(one: Shown) -> Shown:
    """Keep the largest back edge that changes."""
    drawn = [k for k in one.lines if one.card.lines[k].form is not Form.WORDS]
    edges = [k for k in drawn if one.card.lines[k].kind is RowKind.BACK_EDGE] or drawn
    sized = [(k, max((h.elements for h in _histories(one.card, one.card.lines[k])), default=0)) for k in edges]
    best = max(sized, key=lambda pair: pair[1], default=None)
    return one._replace(lines=() if best is None else (best[0],), told=(), has_ending=False, has_ruler=False)


def _folded(one: Shown, excess: int, at: Place) -> Shown:
    """Count the last rows instead of showing them; the selected one stays."""
    keep = max(len(one.lines) - excess - 1, 1)
    kept = [*one.lines[:keep]]
    if at.line in one.lines and at.line not in kept:
        kept[-1] = at.line
    rest = tuple(k for k in one.lines if k not in kept)
    return one._replace(lines=tuple(kept), folded=rest) if rest else one


def _histories(card: Card, line: Line) -> list[ValueHistory]:
    known = (card.history(line, run) for run in range(len(card.runs)))
    return [one for one in known if one is not None]


def _want(card: Card, place: int, shown: Shown, at: Place, taller: int) -> Want:
    line, histories = card.lines[place], _histories(card, card.lines[place])
    form = form_on(line.form, line.labels, histories, shown.axes[0])
    if form not in (Form.PICTURE, Form.BARS):
        return Want(1)
    return Want(
        height_wanted(form, histories, sum(len(axis.slots) for axis in shown.axes)),
        form is Form.PICTURE,
        any(first_bad(one) is not None for one in histories),
        (shown.place, place) == (at.card, at.line),
        taller,
    )


def _airy(one: Shown) -> list[int]:
    """Return the rows above which a line is left free: the first of a group, and a picture below another one."""
    found = []
    lines = one.card.lines
    for before, this in zip(one.lines, one.lines[1:], strict=False):
        both = lines[before].form is Form.PICTURE and lines[this].form is Form.PICTURE
        if lines[before].group != lines[this].group or both:
            found.append(this)
    return found
