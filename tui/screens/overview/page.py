"""The page of the overview: cards as lines, with labels, pictures on their axes, the cursor, and the value at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stepper.debug.overview.facts import Overview, RunState
from stepper.element_types import Array
from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import Form
from tui.paint.rows import Row, clip, overlaid, shortened, spread, width_of
from tui.pictures.axis import ENTERED, Axis
from tui.pictures.drawing import (
    WAYS,
    RowPicture,
    Strip,
    column,
    laid,
    put_rails,
    row_of,
    ruler_strips,
    truth,
    unit_text,
)
from tui.pictures.palette import Palette
from tui.screens.overview import words
from tui.screens.overview.arrangement import LOW, Shown, Wishes, widths
from tui.screens.overview.cards import Card, Line, is_true_over
from tui.screens.overview.cursor import Place, iterations_at
from tui.theme import GLYPHS


class PageLine(NamedTuple):
    """A line of the page, and the card and row that a click on it selects."""

    row: Row
    card: int = -1
    line: int = -1


class Sight(NamedTuple):
    """The view of the page: cards as arranged, the cursor, the moments of the debugger, the size of the terminal."""

    overview: Overview
    cards: Sequence[Card]
    shown: Sequence[Shown]
    at: Place
    now: Sequence[Place]
    size: tuple[int, int]

    @property
    def is_running(self) -> bool:
        """True if the run is under way."""
        return self.overview.state is RunState.RUNNING

    @property
    def axis(self) -> Axis | None:
        """Return the axis on which the cursor is."""
        return axis_at(self.shown, self.at)


def axis_at(shown: Sequence[Shown], at: Place) -> Axis | None:
    """Return the axis on which a place is."""
    for one in shown:
        if one.place == at.card and at.run in one.runs:
            return one.axes[one.runs.index(at.run)]
    return None


class Pictures:
    """The pictures of rows, drawn once for each height, axis and choice."""

    def __init__(self) -> None:
        self._drawn: dict[object, tuple[list[list[Strip]], str, str]] = {}

    def clear(self) -> None:
        """Draw all anew."""
        self._drawn.clear()

    def of(
        self, shown: Shown, line: Line, height: int, wishes: Wishes, palette: Palette, *, small: bool
    ) -> tuple[list[list[Strip]], str, str]:
        """Return the strips of a row, and the words for its scale and for how many numbers a line stands."""
        if line.form is Form.WORDS:
            return [[(ENTERED + 1, line.words, "dim")], *([[]] * (height - 1))], "", ""
        key = shown.card.index, line.row
        kept = (key, height, way_of(wishes, shown.card, line), wishes.scales.get(key), shown.axes, shown.runs, small)
        if kept not in self._drawn:
            self._drawn[kept] = _drawn(shown, line, height, wishes, palette, small=small)
        return self._drawn[kept]


def way_of(wishes: Wishes, card: Card, line: Line) -> str:
    """Return how several numbers of a row become one."""
    return wishes.ways.get((card.index, line.row), WAYS[0]) if line.form is Form.PICTURE else "largest"


def _drawn(
    shown: Shown, line: Line, height: int, wishes: Wishes, palette: Palette, *, small: bool
) -> tuple[list[list[Strip]], str, str]:
    card, way = shown.card, way_of(wishes, shown.card, line)
    histories = [one for run in range(len(card.runs)) if (one := card.history(line, run)) is not None]
    scale = wishes.scales.get((card.index, line.row))
    drawn = RowPicture(histories, shown.axes[0], line.form, line.labels, way, scale)
    found: list[list[Strip]] = [[] for _ in range(height)]
    for run, axis in zip(shown.runs, shown.axes, strict=True):
        history = card.history(line, run)
        parts: list[list[Strip]] = []
        if history is not None:
            parts = drawn.lines(history, axis, height, palette)
        elif drawn.form is Form.TRUTH and card.runs:
            verdicts = [(slot, is_true_over(card.runs[run], slot.first, slot.last)) for slot in axis.slots]
            parts = [truth(verdicts, rare=False)]
        for y, part in enumerate(parts[:height]):
            found[y] += part
    note = drawn.note(small=small) if height > 1 else ""
    is_picture = height > 1 and drawn.form is Form.PICTURE
    return (
        found,
        note,
        unit_text(histories[0], height, way, is_plain=palette.look.plain, small=small) if is_picture else "",
    )


def value_at(card: Card, line: Line, at: Place, wishes: Wishes) -> tuple[ValueHistory | None, Array | None]:
    """Return the history of a row in the cursor's run, and its numbers in the cursor's iteration."""
    history = card.history(line, at.run)
    if history is None:
        return None, None
    return history, column(history, at.iteration, at.iteration + 1, way_of(wishes, card, line))


class Page:
    """Draws the cards for one sight."""

    def __init__(self, sight: Sight, wishes: Wishes, pictures: Pictures, palette: Palette, width: int) -> None:
        self._sight, self._wishes, self._pictures, self._palette = sight, wishes, pictures, palette
        self._width, self._share = width, widths(width)
        self._at, self._is_low = sight.at, sight.size[1] < LOW
        reach = max((axis.reach for one in sight.shown for axis in one.axes), default=self._share.picture)
        picture = self._share.picture
        self._area = min(picture, max(reach, 40) + 1) if self._share.value else picture

    def lines(self) -> list[PageLine]:
        """Return branches of the model's own graph, and the cards."""
        found: list[PageLine] = []
        if not self._sight.cards:
            found.append(PageLine([(" this model has no loop", "dim")]))
        outer = (one for one in self._sight.overview.branches if one.parent is None)
        found += [PageLine(shortened(words.branch(one), self._width)) for one in outer]
        for shown in self._sight.shown:
            found += self._card(shown)
            if not self._is_low:
                found.append(PageLine([], shown.place))
        return found

    # --- a card --------------------------------------------------------------------------------------------------

    def _card(self, shown: Shown) -> list[PageLine]:
        card, place, width = shown.card, shown.place, self._width
        pad = _pad(shown)
        found = [self._heading(shown)]
        if shown.has_ending:
            labels = {card.facts.rows[line.row].inner.id: line.labels for line in card.lines if line.labels}
            run = self._at.run if self._is_on(shown) else shown.runs[-1] if shown.runs else 0
            which = words.which_run(card, run) if len(shown.runs) == 1 else []
            room = width - 2 - len(pad) - width_of(which)
            ended = [*which, *words.ended(card, self._sight.overview, run, labels, room=room)]
            found.append(PageLine([(f" {pad}", ""), *shortened(ended, width - 2 - len(pad))], place))
        if shown.has_ruler:
            found.append(self._ruler(shown))
        for line, height in zip(shown.lines, shown.heights, strict=True):
            if line in shown.aired:
                found.append(self._air(shown, line))
            found += self._line_rows(shown, line, height)
        if shown.told:
            told = " · ".join(f"{card.lines[k].name} {card.lines[k].words}" for k in shown.told)
            row: Row = [("   " + pad, ""), (clip(told, width - 5), "dim")]
            found.append(PageLine(row, place, shown.told[0]))
        if shown.folded:
            more = len(shown.folded)
            still = sum(card.lines[k].form is Form.WORDS for k in shown.folded)
            also = f", {still} of them in words" if still else ""
            found.append(PageLine([("   " + pad, ""), (f"… {more} more rows{also} (Space)", "dim")], place))
        return found

    def _is_on(self, shown: Shown) -> bool:
        return shown.place == self._at.card

    def _heading(self, shown: Shown) -> PageLine:
        card, width, is_on = shown.card, self._width, self._is_on(shown)
        count = words.count_of(card.facts, is_running=self._sight.is_running)
        head: Row = [(GLYPHS["focus"] if is_on else " ", "accent"), (_pad(shown), "")]
        head.append((clip(card.name, max(width // 3, 12)), "title-on" if is_on else "title"))
        rest = width - width_of(head) - width_of(count) - 4
        head.append((f"  {words.about(card.facts)}"[: max(rest, 0)], "dim"))
        return PageLine(spread(head, [*count, (" ", "")], width), shown.place)

    def _marked(self, shown: Shown, strips: Sequence[Strip], *, on: bool, words_only: bool = False) -> Row:
        cells = laid(strips, self._area)
        if self._is_on(shown) and not words_only:
            axis = self._sight.axis
            index = -1 if axis is None else axis.index_of(self._at.iteration)
            if axis is not None and index >= 0:
                put_rails(cells, axis.slots[index], self._palette, is_selected=on)
        return row_of(cells)

    def _ruler(self, shown: Shown) -> PageLine:
        is_on, pad, at = self._is_on(shown), _pad(shown), self._at
        strips: list[Strip] = []
        for run, axis in zip(shown.runs, shown.axes, strict=True):
            cursor = at.iteration if is_on and run == at.run and axis.slots else None
            strips += ruler_strips(axis, cursor)
            for now in self._sight.now:
                if (now.card, now.run) == (shown.place, run) and axis.slots:
                    slot = axis.slots[axis.index_of(now.iteration)]
                    strips.append((slot.start if slot.width > 3 else slot.start - 1, GLYPHS["now"], "accent"))
        room = self._share.label - 1 - len(pad)
        row: Row = [(f" {pad}", ""), (f"{'iteration':<{room}}", "dim"), *row_of(laid(strips, self._area))]
        if self._share.value and is_on and iterations_at(self._sight.cards, at):
            row.append((f"  at {at.iteration:,}", "accent"))
        return PageLine(row, shown.place)

    def _air(self, shown: Shown, line: int) -> PageLine:
        lines, pad = shown.card.lines, _pad(shown)
        index = shown.lines.index(line)
        group = lines[line].group
        text = group if lines[shown.lines[index - 1]].group != group else ""
        row: Row = [(f"   {pad}", ""), (f"{text:<{self._share.label - 3 - len(pad)}}", "dim")]
        return PageLine([*row, *self._marked(shown, [], on=False)], shown.place)

    # --- a row ---------------------------------------------------------------------------------------------------

    def _line_rows(self, shown: Shown, place: int, height: int) -> list[PageLine]:
        line = shown.card.lines[place]
        is_on = (shown.place, place) == (self._at.card, self._at.line)
        small = self._width < 100
        drawn, note, unit = self._pictures.of(shown, line, height, self._wishes, self._palette, small=small)
        names = self._names(line, self._share.label - 4 - len(_pad(shown)), height, note, unit)
        beside = self._beside_picture(shown, line, height)
        found = []
        for y in range(height):
            row = self._label(shown, line, names[y] if y < len(names) else [], is_on=is_on, is_first=y == 0)
            row += self._marked(shown, drawn[y], on=is_on, words_only=line.form is Form.WORDS)
            if y < len(beside):
                row += [("  ", ""), *beside[y]]
            found.append(PageLine(row, shown.place, place))
        return found

    def _label(self, shown: Shown, line: Line, name: Row, *, is_on: bool, is_first: bool) -> Row:
        width = self._share.label
        row: Row = [(GLYPHS["focus"] if is_on else " ", "accent"), (_pad(shown), "")]
        row += [((line.glyph if is_first else " ") + " ", "accent" if is_on else "dim"), *name]
        row = shortened(row, width - 1)
        row.append((" " * (width - width_of(row)), ""))
        return [row[0], *overlaid(row[1:], "cursor")] if is_on and is_first else row

    def _names(self, line: Line, room: int, height: int, note: str, unit: str) -> list[Row]:
        """Return the lines of a label: name and shape, scale, how many numbers stand in how many lines."""
        bold = "strong" if line.form is not Form.WORDS else ""
        name = clip(line.name, room)
        if self._width < 100:
            rows: list[Row] = [[(name, bold)]]
        elif len(name) + len(line.shape) + 1 > room and height > 1:
            rows = [[(name, bold)], [(line.shape, "dim")]]
        else:
            rows = [[(f"{name:<{min(9, room)}}", bold), (f" {line.shape}", "dim")]]
        rows += [[(text, "dim")] for text in (note, unit) if text]
        return rows

    def _beside_picture(self, shown: Shown, line: Line, height: int) -> list[Row]:
        """Return what stands at the right of a row: the value at the cursor in few numbers."""
        at, width, card = self._at, self._share.value, shown.card
        if not width or not self._is_on(shown) or line.form is Form.WORDS or not iterations_at(self._sight.cards, at):
            return []
        history, values = value_at(card, line, at, self._wishes)
        if line.form is Form.TRUTH:
            run = card.runs[at.run]
            holds = at.iteration < run.iterations - 1 or bool(run.condition)
            if history is not None and values is not None:
                holds = bool(values[0])
            return [[("true" if holds else "false", "")]]
        if history is None or values is None:
            return []
        found = history.at(at.iteration)
        rows = [] if found is None else words.value_lines(line, history, values, found)
        if height == 1 and len(rows) > 1 and width_of(rows[0]) + width_of(rows[1]) + 2 <= width:
            return [[*rows[0], ("  ", ""), *rows[1]]]
        return [shortened(row, width - 1) for row in rows]


def _pad(shown: Shown) -> str:
    return "  " * min(shown.depth, 3)
