"""Which cards and rows of the overview are shown in so many cells, on which axes, how tall: without colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from stepper.debug.overview.facts import Overview, RowKind, RunState
from stepper.debug.overview.programs import parent_loop
from stepper.tensors.pictures import Form, ScaleKind
from tui.pictures.axis import ENTERED, Axis, nested, plain
from tui.pictures.drawing import first_bad, form_on, height_wanted
from tui.pictures.heights import Want, heights
from tui.screens.overview.cards import MOST_CARDS, Card, LinePart, Rank, RowKey
from tui.screens.overview.cursor import Place, on_row
from tui.screens.overview.words import limit_of

LOW: Final = 28
"""Lines of the terminal below which everything folds."""
_BODY: Final = 10
"""Lines that the body below the cards takes."""
_SMALL: Final = 16
"""Elements of a picture that A beside it does not reduce."""
_STEPS: Final = tuple(digit * 10**power for power in range(1, 9) for digit in (2, 5, 10))


class Widths(NamedTuple):
    """Cells for labels, for the value at the cursor, and for pictures; the widest slot."""

    label: int
    value: int
    picture: int
    slot: int


_WIDEST: Final = 24
"""Cells of an iteration where there is much room and the loop's body has its own below."""
_TALL: Final = 44


def widths(width: int, height: int) -> Widths:
    """Return how so many cells are shared, in a pane of so many lines."""
    label = 15 if width < 100 else 19 if width < 150 else 25
    value = 0 if width < 100 else 20 if width < 150 else 30
    slot = 6 if width < 150 else 9 if width < 190 else 12 if height < _TALL else _WIDEST
    return Widths(label, value, width - label - value - (3 if value else 1), slot)


class Shown(NamedTuple):
    """A card as it is shown. `runs` are the kept runs drawn, each on its axis; `lines` those with a row of their own.

    `told` are rows that are words in one row, `folded` those that are only counted. `heights` and `aired` are by line.
    `strip` is the axis of all runs, where one of many is shown. `is_listed`: the card is one line, a row of a list.
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
    strip: Axis | None = None
    has_ending: bool = True
    has_ruler: bool = True
    has_body: bool = False
    is_listed: bool = False

    @property
    def fixed(self) -> int:
        """Return how many lines it has beside its rows."""
        if self.is_listed:
            return 0
        folds = bool(self.told) + bool(self.folded) + self.has_body
        return 1 + self.has_ending + (self.strip is not None) + self.has_ruler + folds


def lines_used(shown: Sequence[Shown], *, is_low: bool) -> int:
    """Return how many lines cards have as they are arranged."""
    return sum(1 if one.is_listed else one.fixed + sum(one.heights) + len(one.aired) + (not is_low) for one in shown)


def is_as_whole(one: Shown, other: Shown) -> bool:
    """True if all rows of another arrangement of a card are shown, but for slices, and no small picture is reduced."""
    lines, heights = other.card.lines, dict(zip(one.lines, one.heights, strict=True))
    for place, height in zip(other.lines, other.heights, strict=True):
        size = max((known.elements for known in other.card.histories(lines[place])), default=0)
        least = min(height, -(-size // 2)) if lines[place].form is Form.PICTURE and size <= _SMALL else 1
        if heights.get(place, 0 if lines[place].rank is not Rank.SLICE else least) < least:
            return False
    return True


class Wishes(NamedTuple):
    """Choices of the user: cards that are unfolded; by row further lines, the number shown, the scale."""

    unfolded: set[int]
    taller: dict[RowKey, int]
    ways: dict[RowKey, str]
    scales: dict[RowKey, ScaleKind | None]


class ListedCards:
    """Cards as lines of a list, those with NaN or Inf first; each is arranged once."""

    def __init__(self, overview: Overview, cards: Sequence[Card]) -> None:
        self._overview, self._cards = overview, cards
        self._known: dict[tuple[int, Widths], Shown] = {}
        self._order: list[int] | None = None

    @property
    def order(self) -> list[int]:
        """Return the cards by their place, in the order of the list."""
        if self._order is None:
            self._order = sorted(range(len(self._cards)), key=lambda place: not _is_bad(self._cards[place]))
        return self._order

    def line(self, place: int, share: Widths) -> Shown:
        """Return a card as a line; one of which nothing is drawn has a line as well."""
        if (place, share) not in self._known:
            card = self._cards[place]
            one = _alone(self._overview, card, place, max(len(card.runs) - 1, 0), share, is_low=False)
            compact = _compact(one)
            self._known[place, share] = compact._replace(
                lines=compact.lines or ((0,) if card.lines else ()), heights=(1,), is_listed=True
            )
        return self._known[place, share]


class _CardLimits(NamedTuple):
    """The terminal and what is asked for: columns and lines, lines for the cards, the look, the user's choices."""

    size: tuple[int, int]
    room: int
    wishes: Wishes
    plain_look: bool

    @property
    def is_low(self) -> bool:
        """True if everything folds."""
        return self.size[1] < LOW

    def need(self, views: Sequence[Shown]) -> int:
        """Return how many lines cards need at least."""
        return sum(one.fixed + len(one.lines) + (0 if self.is_low else 1) for one in views)

    def lacks(self, views: Sequence[Shown], at: Place) -> bool:
        """True if a picture does not get the lines it needs for all its elements."""
        wants = [_want(one, line, at, 0) for one in views for line in one.lines]
        more = sum(
            (one.size if one.is_born and one.size <= 8 else one.half(tall=False, plain=self.plain_look)) - 1
            for one in wants
        )
        return self.need(views) + more > self.room


def arranged(
    overview: Overview,
    cards: Sequence[Card],
    at: Place,
    size: tuple[int, int],
    room: int,
    wishes: Wishes,
    listed: ListedCards,
    *,
    plain_look: bool,
) -> list[Shown]:
    """Return the cards as they are shown in so many lines, in their order on the page.

    `size` is that of the terminal. What does not fit is left out in this order: rows that are words go into one,
    slices are counted, cards that are not selected keep one picture, then none; rows of the selected one are counted,
    the least important first. More than a few cards are a list, those with NaN or Inf first.
    """
    limits, share = _CardLimits(size, room, wishes, plain_look), widths(*size)
    if len(cards) > MOST_CARDS:
        run = min(at.run, max(len(cards[at.card].runs) - 1, 0))
        chosen = [_alone(overview, cards[at.card], at.card, run, share, is_low=limits.is_low)]
        limits = limits._replace(room=max(room * 2 // 3, 8))
        found = _tall(_fitting(chosen, at, limits), at, limits)
        return [found[0] if place == at.card else listed.line(place, share) for place in listed.order]
    shown = _placed(overview, cards, at, share, is_low=limits.is_low)
    return _tall(_fitting(shown, at, limits), at, limits)


def _fitting(shown: list[Shown], at: Place, limits: _CardLimits) -> list[Shown]:
    """Leave out what does not fit."""
    room, need, unfolded = limits.room, limits.need, limits.wishes.unfolded
    if limits.lacks(shown, at):
        shown = [one if one.place in unfolded else _without_slices(one, at) for one in shown]
        if need(shown) + sum(len(one.lines) for one in shown) > room and len(shown) > 1:
            whole, shown = shown, [one if one.place == at.card else _compact(one) for one in shown]
            if need(shown) > room:
                shown = [one if one.place == at.card else one._replace(lines=()) for one in shown]
            else:
                shown = _given_back(whole, shown, at, limits)
    chosen = next((one for one in shown if one.place == at.card), None)
    if chosen is None or at.card in unfolded:
        return shown
    around = need([one for one in shown if one is not chosen])
    excess = need([chosen]) - max(room - around, 8)
    return [_folded(one, excess, at) if one is chosen and excess > 0 else one for one in shown]


def _given_back(whole: list[Shown], compact: list[Shown], at: Place, limits: _CardLimits) -> list[Shown]:
    """Give cards of one picture as many of their rows again as there is room for, when each picture has its lines."""
    found = list(compact)
    for place, one in enumerate(whole):
        for kept in range(len(one.lines), 1, -1) if compact[place] is not one else ():
            more = one if kept == len(one.lines) else _folded(one, len(one.lines) - kept - (not one.folded), at)
            tried = [*found[:place], more, *found[place + 1 :]]
            if not limits.lacks(tried, at):
                found = tried
                break
    return found


def _tall(shown: list[Shown], at: Place, limits: _CardLimits) -> list[Shown]:
    """Give each row its lines, and leave air between groups where there is room."""
    taller = limits.wishes.taller
    wants = [
        _want(one, line, at, taller.get(one.card.key(one.card.lines[line]), 0)) for one in shown for line in one.lines
    ]
    air = [] if limits.is_low else [(one.place, line) for one in shown if one.has_ruler for line in _airy(one)]
    left = max(limits.room - limits.need(shown), 0)
    found = heights(wants, left + len(wants), len(air), tall=limits.size[1] >= 56, plain=limits.plain_look, below=_BODY)
    given = iter(found.lines)
    tall = [one._replace(heights=tuple(next(given) for _ in one.lines)) for one in shown]
    if not found.is_aired:
        return tall
    return [one._replace(aired=frozenset(k for place, k in air if place == one.place)) for one in tall]


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
        run = on_row(cards, at, place, 0).run if card.runs else 0
        one = _alone(overview, card, place, min(run, max(len(card.runs) - 1, 0)), share, is_low=is_low)
        known = axes.get(card.index)
        found.append(one if known is None else one._replace(axes=known[0], runs=known[1], strip=None))
    return found


def _alone(overview: Overview, card: Card, place: int, run: int, share: Widths, *, is_low: bool) -> Shown:
    """Return a card with one of its runs on an axis of its own."""
    words = tuple(k for k, line in enumerate(card.lines) if line.form is Form.WORDS)
    folds = is_low and len(words) > 1 and bool(card.facts.total)
    return Shown(
        card,
        place,
        card.facts.depth,
        axes=(_axis(overview, card, run, share),),
        runs=(run,),
        lines=tuple(k for k in range(len(card.lines)) if not (folds and k in words)),
        told=words if folds else (),
        strip=plain(card.facts.runs, share.picture, share.slot) if card.facts.runs > 1 else None,
        has_body=bool(card.runs) and not card.facts.total and not is_low,
    )


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


def _best(one: Shown) -> tuple[int, ...]:
    """Return the largest back edge that changes, else another picture."""
    drawn = [k for k in one.lines if one.card.lines[k].form is not Form.WORDS]
    edges = [k for k in drawn if one.card.lines[k].kind is RowKind.BACK_EDGE] or drawn
    sized = [(k, max((h.elements for h in one.card.histories(one.card.lines[k])), default=0)) for k in edges]
    best = max(sized, key=lambda pair: pair[1], default=None)
    return () if best is None else (best[0],)


def _compact(one: Shown) -> Shown:
    """Keep the heading and one picture."""
    return one._replace(lines=_best(one), told=(), folded=(), strip=None, has_ending=False, has_ruler=False)


def _is_bad(card: Card) -> bool:
    return any(first_bad(one) is not None for line in card.lines for one in card.histories(line))


def _without_slices(one: Shown, at: Place) -> Shown:
    """Count the slices; not the selected one, and not where nothing else is drawn."""
    lines = one.card.lines
    slices = [k for k in one.lines if lines[k].rank is Rank.SLICE and (one.place, k) != (at.card, at.line)]
    kept = tuple(k for k in one.lines if k not in slices)
    if not any(lines[k].form is not Form.WORDS for k in kept) or not slices:
        return one
    return one._replace(lines=kept, folded=tuple(sorted({*one.folded, *slices})))


def _folded(one: Shown, excess: int, at: Place) -> Shown:
    """Count the least important rows instead of showing them; the selected one stays."""
    by_rank = sorted(one.lines, key=lambda k: (k != at.line, one.card.lines[k].rank, k))
    keep = max(len(one.lines) - excess - (not one.folded), 1)
    kept = tuple(sorted(by_rank[:keep]))
    rest = tuple(sorted({*one.folded, *(k for k in one.lines if k not in kept)}))
    return one._replace(lines=kept, folded=rest)


def _want(shown: Shown, place: int, at: Place, taller: int) -> Want:
    line = shown.card.lines[place]
    histories = shown.card.histories(line)
    if line.part is LinePart.GROWTH:
        return Want(1, is_picture=False)
    form = form_on(line.form, line.labels, histories, shown.axes[0])
    if form not in (Form.PICTURE, Form.BARS):
        return Want(1, is_picture=False)
    return Want(
        height_wanted(form, histories, sum(len(axis.slots) for axis in shown.axes)),
        is_picture=form is Form.PICTURE,
        is_labelled=bool(line.places),
        is_bad=any(first_bad(one) is not None for one in histories),
        is_born=line.is_born,
        is_selected=(shown.place, place) == (at.card, at.line),
        taller=taller,
    )


def _airy(one: Shown) -> list[int]:
    """Return the rows above which a line is left free: the first of a group, a picture or a change below a picture."""
    found = []
    lines = one.card.lines
    for before, this in zip(one.lines, one.lines[1:], strict=False):
        is_change = LinePart.CHANGE in (lines[before].part, lines[this].part)
        both = lines[before].form is Form.PICTURE and (lines[this].form is Form.PICTURE or is_change)
        if lines[before].group is not lines[this].group or both:
            found.append(this)
    return found
