"""The pane of the overview: cards on one axis of time, a cursor by row and iteration, the selected value below."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import ClassVar, Final, NamedTuple

import numpy as np
from textual import events
from textual.message import Message

from stepper.debug.overview.facts import Overview, RunState
from stepper.element_types import Array
from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import Form, ScaleKind
from tui.paint.axis import ENTERED, Axis
from tui.paint.palette import Palette
from tui.paint.pane import Host, Pane
from tui.paint.pictures import (
    SCALES,
    WAYS,
    RowPicture,
    Strip,
    column,
    entered,
    first_bad,
    laid,
    put_rails,
    row_of,
    ruler_strips,
    truth,
)
from tui.paint.rows import Cell, Row, clip, overlaid, spread, width_of
from tui.screens.overview import words
from tui.screens.overview.arrangement import LOW, Place, Shown, Wishes, arranged, widths
from tui.screens.overview.cards import Card, Line, address, cards_of, is_true_over, short_address
from tui.state import State
from tui.theme import GLYPHS
from tui.worker.requests import RunOverview, ShowOverview

SECONDS = 2.0
"""Seconds for which the run of the overview goes on by itself."""
MEMORY = 2**29
"""Bytes that it may keep by itself."""


_SHARE: Final = 20
"""A picture of a run under way is drawn again after so many times as long as the last one took."""


class OverviewGrew(Message):
    """More is known of the run."""

    def __init__(self, overview: Overview) -> None:
        super().__init__()
        self.overview = overview


class _PageLine(NamedTuple):
    """A line of the page, and the card and row that a click on it selects."""

    row: Row
    card: int = -1
    line: int = -1


class OverviewPane(Pane):
    """Everything that is known of the run, iterations from left to right."""

    DEFAULT_CSS = "OverviewPane { height: 1fr; padding: 0; }"
    kind: ClassVar[str] = "overview"
    follows_selection: ClassVar[bool] = False
    help_text: ClassVar[str] = (
        "Each loop is a card; column k is what iteration k made: verdict, back edges, outputs, slices.\n"
        "What entered the loop stands once at the left. Zero is the ground; N and I are NaN and Inf.\n"
        "The moment of the debugger stays where it is until Enter goes to the cursor's."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.overview: Overview | None = None
        self._cards: list[Card] = []
        self._at = Place(0, 0, 0, 0)
        self._is_placed = False
        self._due = 0.0
        self._follows = False
        self._asked = False
        self._unfolded: set[int] = set()
        self._taller: dict[tuple[int, int], int] = {}
        self._ways: dict[tuple[int, int], str] = {}
        self._scales: dict[tuple[int, int], ScaleKind | None] = {}
        self._drawn: dict[object, tuple[list[list[Strip]], str, str]] = {}
        self._palette: Palette | None = None
        self._shown: list[Shown] = []
        self._visible: list[_PageLine] = []

    # --- what is known -------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Have the facts shown from now on."""
        self.host.driver.adjust(ShowOverview(True))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        self.host.driver.adjust(ShowOverview(False))

    def update(self, state: State) -> None:
        """The run may be another one, as after an edit; then it is made anew."""
        labels, self.state = self.state.labels, state
        known = state.overview
        if known is not None:
            self._take(known, is_other=labels != state.labels)
            if known.state is RunState.NOT_RUN and not self._asked:
                self.run()
        self.changed()

    def run(self) -> None:
        """Have the run made, or go on with it."""
        self._asked = True
        question = RunOverview(SECONDS, MEMORY, lambda overview: self.post_message(OverviewGrew(overview)))
        self._follows = True
        self.host.driver.ask(question, self._ran, title="overview", gives_way=True)

    def _ran(self, overview: Overview) -> None:
        self._asked = False
        self._take(overview)
        self.changed()

    def on_overview_grew(self, message: OverviewGrew) -> None:
        """More is known."""
        began = perf_counter()
        if self._asked and (began >= self._due or message.overview.state is not RunState.RUNNING):
            self._take(message.overview)
            self.changed()
            now = perf_counter()
            self._due = now + _SHARE * (now - began)

    def _take(self, overview: Overview, *, is_other: bool = False) -> None:
        if overview is self.overview and not is_other:
            return
        self.overview = overview
        self._drawn.clear()
        self._cards = cards_of(overview, self.host.driver.compiled, self.state.labels)
        if not self._is_placed and self._cards and overview.state is not RunState.NOT_RUN:
            self._at = self._first_place()
            self._is_placed = overview.state is not RunState.RUNNING
        self._at = self._bounded(self._at)
        if self._follows and overview.state is RunState.RUNNING:
            self._at = self._at._replace(iteration=max(self._count(self._at) - 1, 0))

    def _first_place(self) -> Place:
        """Return where the moment is, else the first NaN or Inf, else the last iteration of the first loop."""
        for place, card in enumerate(self._cards):
            for run in range(len(card.runs)):
                iteration = self._moment(card, run)
                if iteration is not None:
                    return Place(place, self._picture(card), run, iteration)
        findings = self._findings()
        if findings:
            return findings[0]
        card = self._cards[0]
        return Place(0, self._picture(card), 0, max(card.runs[0].iterations - 1, 0) if card.runs else 0)

    def _moment(self, card: Card, run: int) -> int | None:
        """Return the iteration in which the debugger stands, if it is in this run of the loop."""
        here = self.state.loop_run
        if here is None or card.program is None or card.program is not self.state.loop_program:
            return None
        outer = tuple(one for _, one in here.around if one is not None)
        return self.state.iteration if run < len(card.runs) and card.runs[run].outer == outer else None

    def _picture(self, card: Card) -> int:
        """Return the first row that is a picture, else the first one of numbers."""
        for forms in ((Form.PICTURE,), (Form.BARS, Form.NUMBERS)):
            for k, line in enumerate(card.lines):
                if line.form in forms:
                    return k
        return 0

    def _findings(self) -> list[Place]:
        """Return the rows in which NaN or Inf appears, in time."""
        found = []
        for place, card in enumerate(self._cards):
            for k, line in enumerate(card.lines):
                for run, activation in enumerate(card.runs):
                    history = card.history(line, run)
                    bad = None if history is None or line.form is Form.WORDS else first_bad(history)
                    if bad is not None:
                        found.append(((*activation.outer, bad), Place(place, k, run, bad)))
        return [place for _, place in sorted(found, key=lambda pair: pair[0])]

    # --- the cursor ----------------------------------------------------------------------------------------------

    @property
    def at(self) -> Place:
        """The cursor."""
        return self._at

    @property
    def cards(self) -> Sequence[Card]:
        """The cards, in their order."""
        return self._cards

    def _count(self, at: Place) -> int:
        card = self._cards[at.card] if at.card < len(self._cards) else None
        return card.runs[at.run].iterations if card is not None and at.run < len(card.runs) else 0

    def _bounded(self, at: Place) -> Place:
        if not self._cards:
            return Place(0, 0, 0, 0)
        place = max(0, min(at.card, len(self._cards) - 1))
        card = self._cards[place]
        run = max(0, min(at.run, len(card.runs) - 1))
        at = Place(place, max(0, min(at.line, len(card.lines) - 1)), run, at.iteration)
        return at._replace(iteration=max(0, min(at.iteration, self._count(at) - 1)))

    def put(self, at: Place) -> None:
        """Put the cursor there, as near as there is such a place."""
        self._at = self._bounded(at)
        self._follows, self._is_placed = False, True
        self.changed()

    def move(self, way: str, count: int) -> None:
        """Move the cursor: up and down by rows, left and right by columns, back and on by iterations, home, end."""
        at = self._at
        if way in ("up", "down"):
            self._move_rows(count if way == "down" else -count)
        elif way in ("left", "right"):
            self.put(self._beside(at, count if way == "right" else -count))
        elif way in ("back", "on"):
            self.put(self._passed(at, at.iteration + (count if way == "on" else -count)))
        else:
            self.put(at._replace(iteration=0 if way == "home" else self._count(at) - 1))
            self._follows = way == "end" and self._is_running
        self.host.show_keys()

    @property
    def _is_running(self) -> bool:
        return self.overview is not None and self.overview.state is RunState.RUNNING

    def _move_rows(self, by: int) -> None:
        rows = [(one.place, line) for one in self._shown for line in one.lines]
        if not rows:
            self.move_card(by)
            return
        here = (self._at.card, self._at.line)
        index = rows.index(here) if here in rows else 0
        card, line = rows[max(0, min(index + by, len(rows) - 1))]
        self._select(card, line)

    def _select(self, card: int, line: int) -> None:
        at = self._at
        if card == at.card:
            self.put(at._replace(line=line))
            return
        run = 0
        if card < len(self._cards):
            runs = self._cards[card].runs
            inside = [k for k, one in enumerate(runs) if one.outer and one.outer[-1] == at.iteration]
            run = inside[0] if inside and self._cards[card].facts.parent == self._cards[at.card].index else 0
        self.put(Place(card, line, run, at.iteration))

    def _beside(self, at: Place, by: int) -> Place:
        axis = self._axis_of(at)
        if axis is None or not axis.slots:
            return at
        index = axis.index_of(at.iteration) + by
        if not 0 <= index < len(axis.slots) or axis.slots[index].first >= self._count(at):
            return self._passed(at, -1 if index < 0 else self._count(at))
        return at._replace(iteration=axis.slots[index].first)

    def _passed(self, at: Place, iteration: int) -> Place:
        """Return the iteration, which may be one of the run before or after."""
        runs = len(self._cards[at.card].runs) if self._cards else 0
        if iteration < 0 and at.run > 0:
            before = at._replace(run=at.run - 1)
            return before._replace(iteration=max(self._count(before) - 1, 0))
        if iteration >= self._count(at) and at.run < runs - 1:
            return at._replace(run=at.run + 1, iteration=0)
        return at._replace(iteration=iteration)

    def _axis_of(self, at: Place) -> Axis | None:
        for shown in self._shown:
            if shown.place == at.card and at.run in shown.runs:
                return shown.axes[shown.runs.index(at.run)]
        return None

    def move_card(self, by: int) -> bool:
        """Select the next card, or the one before; False where there is none other."""
        if len(self._cards) < 2:
            return False
        place = (self._at.card + by) % len(self._cards)
        self._select(place, self._picture(self._cards[place]))
        return True

    def seek(self, *, backward: bool) -> bool:
        """Put the cursor to the next NaN or Inf in time; False if there is none."""
        findings = self._findings()
        here = self._at
        if here in findings:
            index = findings.index(here) + (-1 if backward else 1)
        else:
            index = len(findings) - 1 if backward else 0
        if not 0 <= index < len(findings):
            return False
        self.put(findings[index])
        return True

    # --- what the keys change ------------------------------------------------------------------------------------

    def zoom_by(self, by: int) -> None:
        """Give the selected row more lines, or fewer."""
        key = self._key
        self._taller[key] = max(-64, min(self._taller.get(key, 0) + by, 64))
        self.changed()

    def look_on(self, direction: int) -> None:
        """Show the selected row by another number of several, or with another scale (-1)."""
        key = self._key
        if direction > 0:
            self._ways[key] = WAYS[(WAYS.index(self._ways.get(key, WAYS[0])) + 1) % len(WAYS)]
        else:
            self._scales[key] = SCALES[(SCALES.index(self._scales.get(key)) + 1) % len(SCALES)]
        self._drawn.clear()
        self.changed()

    def fold(self) -> None:
        """Show the rows of the card that are only counted, or count them again."""
        self._unfolded ^= {self._at.card}
        self.changed()

    @property
    def _key(self) -> tuple[int, int]:
        line = self._line
        card = self._cards[self._at.card].index if self._cards else -1
        return card, -1 if line is None else line.row

    @property
    def _line(self) -> Line | None:
        if not self._cards or self._at.line >= len(self._cards[self._at.card].lines):
            return None
        return self._cards[self._at.card].lines[self._at.line]

    def line_to_open(self) -> str:
        """Return the line that goes to the moment of the cursor; empty where there is none."""
        if not self._cards or not self._count(self._at):
            return ""
        at = self._at
        found = address(self._cards[at.card], self._line, at.run, at.iteration, self.host.driver.compiled)
        return f"goto {found}" if found else ""

    # --- the mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor, a second one goes there."""
        if not 0 <= event.y < len(self._visible):
            return
        target = self._visible[event.y]
        if target.card < 0:
            return
        if target.line >= 0:
            self._select(target.card, target.line)
        else:
            self._select(target.card, self._at.line if target.card == self._at.card else 0)
        for shown in self._shown:
            if shown.place != target.card:
                continue
            for run, axis in zip(shown.runs, shown.axes, strict=True):
                slot = axis.slot_at(event.x - widths(self.size.width).label)
                if slot is not None:
                    self.put(self._at._replace(run=run, iteration=slot.first))
        if event.chain >= 2:
            self.host.perform("overview open")

    # --- the page ------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Paint with another theme."""
        super().notify_style_update()
        self._palette = None
        self._drawn.clear()

    @property
    def palette(self) -> Palette:
        """The colours of pictures."""
        if self._palette is None:
            self._palette = Palette(self.colour, self.look)
        return self._palette

    def scroll_rows(self, by: int) -> None:
        """Move the cursor by rows."""
        self._move_rows(1 if by > 0 else -1)

    def visible_lines(self, width: int, height: int) -> list[Row]:
        """Return the page, scrolled so that the selected row is in sight, and below it what was found and the value."""
        overview = self.overview
        if overview is None or overview.state is RunState.NOT_RUN:
            self._visible = []
            waiting: list[Row] = [[], [(" the run is being made ...", "dim")], *([[]] * height)]
            return waiting[:height]
        is_low = self.app.size.height < LOW
        top = self._above(overview, width, is_low=is_low)
        bottom = self._below(overview, width, is_low=is_low)
        outputs = [] if is_low else [words.after(overview, self._cards, width)]
        room = height - len(top) - len(bottom) - len(outputs)
        room -= sum(one.parent is None for one in overview.branches)
        page = self._card_lines(overview, width, room)
        page += [_PageLine(row) for row in outputs]
        space = height - len(top) - len(bottom)
        first = self._scrolled(page, space)
        visible = page[first : first + space]
        visible += [_PageLine([])] * (space - len(visible))
        self._visible = [*(_PageLine(row) for row in top), *visible, *(_PageLine(row) for row in bottom)][:height]
        return [one.row for one in self._visible]

    def _scrolled(self, page: Sequence[_PageLine], space: int) -> int:
        if len(page) <= space:
            self.top = 0
            return 0
        mine = [k for k, one in enumerate(page) if (one.card, one.line) == (self._at.card, self._at.line)]
        mine = mine or [k for k, one in enumerate(page) if one.card == self._at.card] or [0]
        self.top = max(min(self.top, mine[0] - 1), mine[-1] - space + 1, 0)
        self.top = min(self.top, mine[0], len(page) - space)
        return max(self.top, 0)

    def _above(self, overview: Overview, width: int, *, is_low: bool) -> list[Row]:
        right = words.status(overview, short=is_low)
        left = words.before(overview, width - width_of(right), short=is_low)
        room = width - width_of(right) - 2
        if width_of(left) > room:
            left = _cut(left, room)
        row = spread(left, right, width)
        return [row] if is_low else [[], row, []]

    def _below(self, overview: Overview, width: int, *, is_low: bool) -> list[Row]:
        found = [_cut(row, width - 1) for row in words.found(overview, self._cards, short=is_low)]
        detail = self._detail(width, is_low=is_low)
        rule: list[Row] = [] if is_low else [[("─" * width, "ghost")]]
        return [*found, *rule, *detail]

    def _detail(self, width: int, *, is_low: bool) -> list[Row]:
        line, at = self._line, self._at
        if line is None:
            return [[]] if is_low else [[], []]
        card = self._cards[at.card]
        name = (
            f" {short_address(self._cards, card, line, at.run, at.iteration)}" if self._count(at) else f" {line.name}"
        )
        history, values = self._values(card, line, at)
        if history is None or values is None:
            text = "" if not self._count(at) else words.doing(line, at.iteration)
            head: Row = [(name, "strong"), (f"   {text}", "dim")]
            return [head] if is_low else [head, []]
        kind = "" if history.is_whole else f"{history.elements} buckets by {self._way(card, line)}: "
        if is_low:
            room = width - len(name) - 2
            return [[(f"{name}  ", "strong"), (kind + words.numbers_in(values, room - len(kind)), "")]]
        going = "follows the run " if self._follows and self._is_running else "Enter goes there "
        head = [
            (name, "strong"),
            (f"   {words.type_text(history)}", "dim"),
            (f"   {words.doing(line, at.iteration)}", ""),
        ]
        bad = not np.isfinite(values).all()
        tone = "bad" if bad and values.size == 1 else ""
        label = words.labels_in(line, values)
        return [
            spread(_cut(head, width - 20), [(going, "dim")], width),
            [
                ("   ", ""),
                (kind, "dim"),
                (words.numbers_in(values, width - 3 - len(kind) - len(label)), tone),
                (label, "strong"),
            ],
        ]

    def _values(self, card: Card, line: Line, at: Place) -> tuple[ValueHistory | None, Array | None]:
        history = card.history(line, at.run)
        if history is None:
            return None, None
        return history, column(history, at.iteration, at.iteration + 1, self._way(card, line))

    def _way(self, card: Card, line: Line) -> str:
        return self._ways.get((card.index, line.row), WAYS[0]) if line.form is Form.PICTURE else "largest"

    # --- cards ---------------------------------------------------------------------------------------------------

    def _card_lines(self, overview: Overview, width: int, room: int) -> list[_PageLine]:
        size = self.app.size
        wishes = Wishes(self._unfolded, self._taller)
        self._shown, _ = arranged(
            overview, self._cards, self._at, (size.width, size.height), room, wishes, plain_look=self.look.plain
        )
        lines: list[_PageLine] = []
        is_low = size.height < LOW
        if not self._cards:
            lines.append(_PageLine([(" this model has no loop", "dim")]))
        lines += [_PageLine(_cut(words.branch(one), width)) for one in overview.branches if one.parent is None]
        for shown in self._shown:
            lines += self._card(overview, shown, width)
            if not is_low:
                lines.append(_PageLine([], shown.place))
        return lines

    def _card(self, overview: Overview, shown: Shown, width: int) -> list[_PageLine]:
        card, place = shown.card, shown.place
        is_on = place == self._at.card
        share = widths(width)
        pad = "  " * min(shown.depth, 3)
        reach = max((axis.reach for one in self._shown for axis in one.axes), default=share.picture)
        area = min(share.picture, max(reach, 40) + 1) if share.value else share.picture
        count = words.count_of(card.facts, is_running=self._is_running)
        head: Row = [(GLYPHS["focus"] if is_on else " ", "accent"), (pad, "")]
        head.append((clip(card.name, max(width // 3, 12)), "title-on" if is_on else "title"))
        rest = width - width_of(head) - width_of(count) - 4
        head.append((f"  {words.about(card.facts)}"[: max(rest, 0)], "dim"))
        found = [_PageLine(spread(head, [*count, (" ", "")], width), place)]
        if shown.has_ending:
            labels = {card.facts.rows[line.row].inner.id: line.labels for line in card.lines if line.labels}
            run = self._at.run if is_on else shown.runs[-1] if shown.runs else 0
            which = words.which_run(card, run) if len(shown.runs) == 1 else []
            room = width - 2 - len(pad) - width_of(which)
            ended = [*which, *words.ended(card, overview, run, labels, room=room)]
            found.append(_PageLine([(f" {pad}", ""), *_cut(ended, width - 2 - len(pad))], place))
        if shown.has_ruler:
            found.append(self._ruler(shown, share.label, area, share.value))
        for line, height in zip(shown.lines, shown.heights, strict=True):
            if line in shown.aired:
                found.append(self._air(shown, line, share.label, area))
            found += self._line_rows(shown, line, height, share.label, area, share.value)
        if shown.told:
            told = " · ".join(f"{card.lines[k].name} {card.lines[k].words}" for k in shown.told)
            row: Row = [("   " + pad, ""), (clip(told, width - 5), "dim")]
            found.append(_PageLine(row, place, shown.told[0]))
        if shown.folded:
            more = len(shown.folded)
            still = sum(card.lines[k].form is Form.WORDS for k in shown.folded)
            also = f", {still} of them in words" if still else ""
            found.append(_PageLine([("   " + pad, ""), (f"… {more} more rows{also} (Space)", "dim")], place))
        return found

    def _marked(self, shown: Shown, strips: Sequence[Strip], area: int, *, on: bool, words_only: bool = False) -> Row:
        cells = laid(strips, area)
        if shown.place == self._at.card and not words_only:
            axis = self._axis_of(self._at)
            index = -1 if axis is None else axis.index_of(self._at.iteration)
            if axis is not None and index >= 0:
                put_rails(cells, axis.slots[index], self.palette, is_selected=on)
        return row_of(cells)

    def _ruler(self, shown: Shown, label: int, area: int, value: int) -> _PageLine:
        is_on = shown.place == self._at.card
        pad = "  " * min(shown.depth, 3)
        strips: list[Strip] = []
        for run, axis in zip(shown.runs, shown.axes, strict=True):
            cursor = self._at.iteration if is_on and run == self._at.run and axis.slots else None
            strips += ruler_strips(axis, cursor)
            now = self._moment(shown.card, run)
            if now is not None and axis.slots:
                slot = axis.slots[axis.index_of(now)]
                strips.append((slot.start if slot.width > 3 else slot.start - 1, GLYPHS["now"], "accent"))
        row: Row = [(f" {pad}", ""), (f"{'iteration':<{label - 1 - len(pad)}}", "dim"), *row_of(laid(strips, area))]
        if value and is_on and self._count(self._at):
            row.append((f"  at {self._at.iteration:,}", "accent"))
        return _PageLine(row, shown.place)

    def _air(self, shown: Shown, line: int, label: int, area: int) -> _PageLine:
        lines = shown.card.lines
        index = shown.lines.index(line)
        group = lines[line].group
        text = group if lines[shown.lines[index - 1]].group != group else ""
        pad = "  " * min(shown.depth, 3)
        row: Row = [(f"   {pad}", ""), (f"{text:<{label - 3 - len(pad)}}", "dim")]
        return _PageLine([*row, *self._marked(shown, [], area, on=False)], shown.place)

    def _line_rows(self, shown: Shown, place: int, height: int, label: int, area: int, value: int) -> list[_PageLine]:
        card = shown.card
        line = card.lines[place]
        is_on = (shown.place, place) == (self._at.card, self._at.line)
        drawn, note, unit = self._picture_of(shown, line, height)
        names = self._names(line, label - 4 - 2 * min(shown.depth, 3), height, note, unit)
        beside = self._beside_picture(shown, line, height, value)
        found = []
        for y in range(height):
            row = self._label(shown, line, names[y] if y < len(names) else [], label, is_on=is_on, is_first=y == 0)
            row += self._marked(shown, drawn[y], area, on=is_on, words_only=line.form is Form.WORDS)
            if y < len(beside):
                row += [("  ", ""), *beside[y]]
            found.append(_PageLine(row, shown.place, place))
        return found

    def _label(self, shown: Shown, line: Line, name: Row, width: int, *, is_on: bool, is_first: bool) -> Row:
        pad = "  " * min(shown.depth, 3)
        row: Row = [(GLYPHS["focus"] if is_on else " ", "accent"), (pad, "")]
        row += [((line.glyph if is_first else " ") + " ", "accent" if is_on else "dim"), *name]
        row = _cut(row, width - 1)
        row.append((" " * (width - width_of(row)), ""))
        return [row[0], *overlaid(row[1:], "cursor")] if is_on and is_first else row

    def _names(self, line: Line, room: int, height: int, note: str, unit: str) -> list[Row]:
        """Return the lines of a label: name and shape, scale, how many numbers stand in how many lines."""
        small = self.size.width < 100
        bold = "strong" if line.form is not Form.WORDS else ""
        name = clip(line.name, room)
        if small:
            rows: list[Row] = [[(name, bold)]]
        elif len(name) + len(line.shape) + 1 > room and height > 1:
            rows = [[(name, bold)], [(line.shape, "dim")]]
        else:
            rows = [[(f"{name:<{min(9, room)}}", bold), (f" {line.shape}", "dim")]]
        rows += [[(text, "dim")] for text in (note, unit) if text]
        return rows

    def _beside_picture(self, shown: Shown, line: Line, height: int, width: int) -> list[Row]:
        at = self._at
        if not width or shown.place != at.card or line.form is Form.WORDS or not self._count(at):
            return []
        if line.form is Form.TRUTH:
            run = shown.card.runs[at.run]
            history, values = self._values(shown.card, line, at)
            holds = at.iteration < run.iterations - 1 or bool(run.condition)
            if history is not None and values is not None:
                holds = bool(values[0])
            return [[("true" if holds else "false", "")]]
        history, values = self._values(shown.card, line, at)
        if history is None or values is None:
            return []
        previous = self._values(shown.card, line, at._replace(iteration=at.iteration - 1))[1] if at.iteration else None
        if not at.iteration:
            previous = entered(history, self._way(shown.card, line))
        rows = words.value_lines(line, history, values, previous)
        if height == 1 and len(rows) > 1 and width_of(rows[0]) + width_of(rows[1]) + 2 <= width:
            return [[*rows[0], ("  ", ""), *rows[1]]]
        return [_cut(row, width - 1) for row in rows]

    # --- pictures, kept ------------------------------------------------------------------------------------------

    def _picture_of(self, shown: Shown, line: Line, height: int) -> tuple[list[list[Strip]], str, str]:
        """Return the strips of a row, and the words for its scale and for how many numbers a line stands."""
        if line.form is Form.WORDS:
            return [[(ENTERED + 1, line.words, "dim")], *([[]] * (height - 1))], "", ""
        card = shown.card
        key = card.index, line.row
        how, way = self._scales.get(key), self._way(card, line)
        kept = (key, height, way, how, shown.axes, shown.runs)
        if kept not in self._drawn:
            self._drawn[kept] = self._draw(shown, line, height, way, how)
        return self._drawn[kept]

    def _draw(
        self, shown: Shown, line: Line, height: int, way: str, how: ScaleKind | None
    ) -> tuple[list[list[Strip]], str, str]:
        card, small = shown.card, self.size.width < 100
        histories = [one for run in range(len(card.runs)) if (one := card.history(line, run)) is not None]
        drawn = RowPicture(histories, shown.axes[0], line.form, line.labels, way, how)
        found: list[list[Strip]] = [[] for _ in range(height)]
        for run, axis in zip(shown.runs, shown.axes, strict=True):
            history = card.history(line, run)
            parts: list[list[Strip]] = []
            if history is not None:
                parts = drawn.lines(history, axis, height, self.palette)
            elif drawn.form is Form.TRUTH and card.runs:
                verdicts = [(slot, is_true_over(card.runs[run], slot.first, slot.last)) for slot in axis.slots]
                parts = [truth(verdicts, rare=False)]
            for y, part in enumerate(parts[:height]):
                found[y] += part
        note = drawn.note(small=small) if height > 1 else ""
        unit = self._unit(histories[0], height, way) if height > 1 and drawn.form is Form.PICTURE else ""
        return found, note, unit

    def _unit(self, history: ValueHistory, height: int, way: str) -> str:
        """Return how many elements stand in how many rows of a picture; empty where each has its own."""
        size = history.elements if history.shape_changes else int(np.prod(history.shape, dtype=np.int64))
        rows = height if self.look.plain or history.elements <= height else 2 * height
        if size <= rows:
            return ""
        if self.size.width < 100:
            return f"{size} in {rows}"
        return f"{size} in {min(rows, history.elements)} rows" if way == WAYS[0] else f"{size} in {rows}, {way}"


def _cut(row: Row, width: int) -> Row:
    """Return a row that ends in an ellipsis where it is longer than so many cells."""
    if width_of(row) <= width:
        return row
    found: Row = []
    left = width
    for text, token in row:
        if len(text) >= left:
            cell: Cell = (f"{text[: max(left - 1, 0)]}…" if left > 0 else "", token)
            return [*found, cell]
        found.append((text, token))
        left -= len(text)
    return found
