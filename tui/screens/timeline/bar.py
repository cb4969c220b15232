"""Time along the bottom: one slot an iteration while they fit, else bins that keep the largest and every anomaly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from stepper.debug.inspection.views import LoopView
from tui.paint.names import layer_name
from tui.paint.pane import Host
from tui.paint.rows import Row, clip
from tui.pictures.heights import Want, heights
from tui.pictures.value_rows import Looks, RowColumns, ValueRow, size_wanted, value_rows
from tui.screens.main.frames import COUNTED
from tui.screens.moments.marks import spread_cells, worst_strip
from tui.screens.timeline.time_axis import STEPS, TimeAxisPane, TimeSpan
from tui.screens.timeline.tracks import drawn_rows, loop_row, watch_row, watched
from tui.state import State, TimelineEvent, TimelineEventKind
from tui.theme import GLYPHS

EVENT_MARKS: Final = {
    TimelineEventKind.STOP: (GLYPHS["break-if"], "edit"),
    TimelineEventKind.EDIT: (GLYPHS["edit"], "edit"),
}


def numbers_word(state: State) -> str:
    """Return of when the numbers at the right are: of now, or of the last iteration of a run that is looked at."""
    return "last " if state.is_far else "now "


_WIDEST: Final = ((180, 24), (0, 12))
"""Widths of the pane, falling, and cells of a column of one iteration at most from there on."""


class TimelineBar(TimeAxisPane):
    """The iterations of the loop around what is looked at: a number line, one row a watched value, events."""

    follows_selection: ClassVar[bool] = False
    DEFAULT_CSS = "TimelineBar { border-top: solid $foreground 14%; height: auto; }"
    kind: ClassVar[str] = "timeline"
    looks_inside: ClassVar[bool] = True
    title = "timeline"
    shows_running: ClassVar[bool] = True
    help_text: ClassVar[str] = (
        "Iterations from left to right; the moment is marked. A click or a drag goes to an iteration.\n"
        "Rows: watches, else what each iteration handed on, and put out; at the right, what this one did.\n"
        "Dotted: not computed yet, or jumped over."
    )
    NAME_WIDTHS: ClassVar[tuple[tuple[int, int], ...]] = ((180, 20), (140, 16), (0, 12))
    lines_shown: int = 3
    is_short = False

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._looks = Looks()

    def heading(self, width: int) -> list[Row]:
        """None where there is little room."""
        self.note = numbers_word(self.state)
        return [] if self.is_short else super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the number line, the tracks and the events; a short one has two tracks alone."""
        if self.state.loop is None or none_ran(self.state.loop):
            shown = self._outside(width)
            return shown[:2] if self.is_short else shown
        span = self.span(width)
        room = 2 if self.is_short else self._room
        ones = self._tracks(room)
        cells = spread_cells(self.state)
        tracks = room if cells is None or room < 3 else room - 1
        rows = self._track_rows(ones[:tracks], span, width, tracks)
        if cells is not None and tracks < room:
            names = self.name_width(width)
            rows.append([(" differs".ljust(names), "a"), *worst_strip(self, cells, span.axis, width - names - 8)])
        if self.is_short:
            return [*rows, [], []][:2]
        blank: list[Row] = [[] for _ in range(self.lines_shown - len(rows))]
        return [
            [(" " * self.name_width(width), ""), *span.ruler(self.marks())],
            *rows,
            *blank,
            self._events_row(span, width),
        ]

    @property
    def _room(self) -> int:
        """How many lines the tracks have; where the pane has all the screen, more than elsewhere."""
        height = self.styles.height
        fills = height is not None and not height.is_auto
        return max(self.size.height - 3, self.lines_shown) if fills else self.lines_shown

    def _outside(self, width: int) -> list[Row]:
        text = outside_text(self.state)
        return [[(f" {text}", "dim")], *([[] for _ in range(self.lines_shown)]), []]

    # --- the scale -----------------------------------------------------------------------------------------------

    def span(self, width: int) -> TimeSpan:
        """How iterations are laid out."""
        loop = self.state.loop
        assert loop is not None
        known = loop.trip.total if loop.trip.total is not None else loop.trip.limit
        seen = self.seen() + 1
        if known is None or known > COUNTED:
            # Without a limit, to the next step of a scale that grows slowly, so that slots seldom move.
            known = next(step for step in STEPS if step >= max(seen + 1, 20))
        widest = next(cells for least, cells in _WIDEST if width >= least)
        return TimeSpan.fitting(0, max(known, seen), width - self.name_width(width) - 8, widest)

    def seen(self) -> int:
        """Return the last iteration of which a value is known."""
        history = self.state.loop_history
        known = [one.values.count - 1 for one in history.rows if one.values is not None] if history else []
        return max([*known, self.state.iteration or 0])

    # --- the tracks ----------------------------------------------------------------------------------------------

    def _tracks(self, most: int) -> list[ValueRow]:
        made = self.seen() + 1
        found = [watch_row(watch, watched(self.state, watch), made) for watch in self.state.watches]
        history = self.state.loop_history
        if history is not None and len(found) < most:
            rows = drawn_rows(history.rows, most - len(found))
            found += [loop_row(self.state, one.row, one.values, made) for one in rows]
        return found

    def _track_rows(self, ones: Sequence[ValueRow], span: TimeSpan, width: int, room: int) -> list[Row]:
        names, axis, now = self.name_width(width), span.axis, self.state.iteration
        columns = RowColumns(names, width - names - 8, 7)
        wants = [Want(*size_wanted(one.values, axis, one.labels, is_ruled=True)) for one in ones]
        tall = heights(wants, room, plain=self.look.plain).lines
        marked, a = [] if now is None else [now], self.state.iterations_of_a
        rows: list[Row] = []
        for one, lines in zip(ones, tall, strict=True):
            beside: Row = [(f"{clip(one.last(now), 6):>6} ", "")]
            rows += value_rows(
                one._replace(beside=(beside,)),
                axis,
                lines,
                columns,
                self._looks,
                self.palette,
                marked=marked,
                a=a,
                is_ruled=True,
            ).rows
        return rows

    # --- events --------------------------------------------------------------------------------------------------

    def _events_row(self, span: TimeSpan, width: int) -> Row:
        run, now = self.state.loop_run, self.state.iteration
        found = {event.iteration: event for event in self.state.events if event.run == run}
        names = self.name_width(width)
        row: Row = [(" events".ljust(names), "dim")]
        cell = 0
        a = self.state.iterations_of_a
        places = sorted({*found, *(() if now is None else (now,)), *a})
        for iteration in places:
            text, tone = self._event(found.get(iteration), is_now=iteration == now)
            if iteration in a and iteration not in found:
                text, tone = " A ", "a-on"
            at = span.at(iteration)
            if at >= cell and names + at + 2 < width:  # what has no room is in the list of stops
                row += [(" " * (at - cell), ""), (text, tone)]
                cell = at + len(text) + 1
                row.append((" ", ""))
        return row

    def _event(self, event: TimelineEvent | None, *, is_now: bool) -> tuple[str, str]:
        if event is None:
            return f"{GLYPHS['now']} now", "accent"
        glyph, tone = EVENT_MARKS[event.kind]
        return f"{glyph} {event_label(event)}", "accent" if is_now and event.kind is TimelineEventKind.STOP else tone

    # --- the mouse -----------------------------------------------------------------------------------------------

    def iteration_in(self, cell: int) -> int | None:
        """Return the first iteration of a column."""
        span = self.span(self.size.width)
        return span.covered(cell)[0] if 0 <= cell < span.bins * span.slot else None


def event_label(event: TimelineEvent) -> str:
    """Return an event in a word."""
    return "edited" if event.breakpoint is None else f"b{event.breakpoint}"


def none_ran(loop: LoopView) -> bool:
    """True if a run of a loop has ended without an iteration."""
    return loop.trip.ended is not None and not loop.trip.executed


def outside_text(state: State) -> str:
    """Return a sentence for the place of iterations, where there are none."""
    if state.loop is not None:
        return f"{layer_name(state.loop.layer)} ran no iteration: {state.loop.trip.ended}"
    if state.view is None or state.view.outputs is None:
        return state.without_loops or "no loop around this; s steps into one"
    last = None if state.ending is None else state.ending.last
    enter = "" if last is None else f"Enter: {clip(layer_name(last.layer), 30)}@{last.iteration}, "
    return f"the run has ended; {enter}S: a step back, g: the start"
