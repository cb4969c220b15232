"""Time along the bottom: one slot an iteration while they fit, else bins that keep the largest and every anomaly."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from msgspec import Struct

from stepper.debug.labels import label_of
from stepper.debug.stop_scope import WatchReading
from tui.paint.names import carried_name, expression_name, layer_name
from tui.paint.rows import Row, clip, number, padded, printable, short_count, spark, spread
from tui.screens.main.frames import COUNTED
from tui.screens.timeline.time_axis import TimeAxisPane
from tui.screens.timeline.track_values import carried_value, measured, number_in, value_of
from tui.state import State, TimelineEvent, TimelineEventKind
from tui.theme import GLYPHS

_STEPS: Final = tuple(digit * 10**power for power in range(9) for digit in (1, 2, 5))
EVENT_MARKS: Final = {
    TimelineEventKind.STOP: (GLYPHS["break-if"], "edit"),
    TimelineEventKind.EDIT: (GLYPHS["edit"], "edit"),
    TimelineEventKind.FAILURE: ("✗", "bad"),
}


class Track(Struct, frozen=True):
    """One row of the timeline: a name and what is known of it, by iteration; `labels` are the words for its numbers."""

    name: str
    values: dict[int, float]
    labels: tuple[str, ...] = ()


class TimelineScale(Struct, frozen=True):
    """Iterations in cells: `bins` of `slot` cells each stand for `total` iterations."""

    total: int
    bins: int
    slot: int

    @staticmethod
    def fitting(total: int, room: int) -> TimelineScale:
        """As wide as fits."""
        total = max(total, 1)
        return TimelineScale(total, max(min(total, room), 1), max(1, min(6, room // total)))

    def at(self, iteration: int) -> int:
        """Return the first cell of an iteration."""
        return min(iteration * self.bins // self.total, self.bins - 1) * self.slot

    def iteration(self, cell: int) -> int:
        """Return the iteration in a cell."""
        return max(0, min(-(-(cell // self.slot) * self.total // self.bins), self.total - 1))


class TimelineBar(TimeAxisPane):
    """The iterations of the loop around what is looked at: a number line, one row a watched value, events."""

    follows_selection: ClassVar[bool] = False
    DEFAULT_CSS = "TimelineBar { border-top: solid $foreground 14%; height: auto; }"
    kind: ClassVar[str] = "timeline"
    title = "timeline"
    note = "last "
    shows_running: ClassVar[bool] = True
    help_text: ClassVar[str] = (
        "Iterations from left to right; the moment is marked. A click or a drag goes to an iteration.\n"
        "Rows: watches, else what is carried. Dotted: not computed yet, or jumped over."
    )
    NAME_WIDTHS: ClassVar[tuple[tuple[int, int], ...]] = ((180, 20), (140, 14), (0, 9))
    tracks_shown: int = 3
    is_short = False

    def heading(self, width: int) -> list[Row]:
        """None where there is little room."""
        return [] if self.is_short else super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the number line, the tracks and the events; a short one has two tracks alone."""
        if self.state.loop is None:
            shown = self._outside(width)
            return shown[:2] if self.is_short else shown
        scale = self.scale(width)
        tracks = self._tracks()[: 2 if self.is_short else self._most]
        rows = [self._track_row(track, scale, width) for track in tracks]
        if self.is_short:
            return [*rows, [], []][:2]
        blank: list[Row] = [[] for _ in range(self.tracks_shown - len(rows))]
        return [self._axis(scale, width), *rows, *blank, self._events_row(scale, width)]

    @property
    def _most(self) -> int:
        """How many tracks there is room for; where the pane has all the screen, more than elsewhere."""
        height = self.styles.height
        fills = height is not None and not height.is_auto
        return max(self.size.height - 3, self.tracks_shown) if fills else self.tracks_shown

    def _outside(self, width: int) -> list[Row]:
        text = outside_text(self.state)
        return [[(f" {text}", "dim")], *([[] for _ in range(self.tracks_shown)]), []]

    # --- the scale -----------------------------------------------------------------------------------------------

    def scale(self, width: int) -> TimelineScale:
        """How iterations are laid out."""
        loop = self.state.loop
        assert loop is not None
        known = loop.trip.total if loop.trip.total is not None else loop.trip.limit
        seen = self.seen() + 1
        if known is None or known > COUNTED:
            # Without a limit, to the next step of a scale that grows slowly, so that slots seldom move.
            known = next(step for step in _STEPS if step >= max(seen + 1, 20))
        return TimelineScale.fitting(max(known, seen), width - self.name_width(width) - 8)

    def seen(self) -> int:
        """Return the last iteration of which a carried value is known."""
        history = self.state.loop_history
        known = [int(one.iterations[-1]) for one in history.carried if len(one.iterations)] if history else []
        return max([*known, self.state.iteration or 0])

    def _axis(self, scale: TimelineScale, width: int) -> Row:
        names = (" " * self.name_width(width), "")
        now = self.state.iteration
        text, at = ("", -1) if now is None else (str(now), scale.at(now))
        every = next((step for step in _STEPS if step * scale.bins / scale.total * scale.slot >= 5), _STEPS[-1])
        cells = [" "] * (scale.bins * scale.slot + 8)
        for iteration in range(0, scale.total + 1, every):
            label = short_count(iteration)
            start = iteration * scale.bins // scale.total * scale.slot
            # Whole or not at all; nothing touches the moment's number.
            if start + len(label) < at or start > at + len(text) or not text:
                cells[start : start + len(label)] = label
        line = "".join(cells)
        if not text:
            return [names, (line, "dim")]
        return [names, (line[:at], "dim"), (text, "now"), (line[at + len(text) :], "dim")]

    # --- the tracks ----------------------------------------------------------------------------------------------

    def _tracks(self) -> list[Track]:
        room = self.name_width(self.size.width) - 2
        found = [
            Track(measured(expression_name(watch.text), value_of(watch), room), _readings(watch.iterations))
            for watch in self.state.watches
        ]
        loop, history = self.state.loop, self.state.loop_history
        if loop is not None and history is not None and len(found) < self._most:
            collected = loop.collected
            carried = [one for one in history.carried if one.parameter.id not in collected]
            if len(found) + len(carried) > self._most:
                carried = [one for one in carried if not one.is_counter]
            found += [
                Track(
                    measured(carried_name(one.parameter), carried_value(self.state, one.parameter), room),
                    dict(zip(one.iterations.tolist(), one.numbers.tolist(), strict=True)),
                    self.state.labels_of(self.state.loop_program, one.parameter),
                )
                for one in carried
            ]
        return found

    def _track_row(self, track: Track, scale: TimelineScale, width: int) -> Row:
        values: list[float | None] = [None] * scale.bins
        for iteration, value in track.values.items():
            if iteration < scale.total:
                place = scale.at(iteration) // scale.slot
                values[place] = _worse(values[place], value)
        bars = spark(values)
        as_numbers = _are_figures(values, scale.slot - 1)
        now = self.state.iteration
        at = -1 if now is None else scale.at(now) // scale.slot
        row: Row = [(f" {padded(track.name, self.name_width(width) - 2)} ", "dim")]
        for place, (known, letter) in enumerate(zip(values, bars, strict=True)):
            here = " cursor" if place == at else ""
            tone = "ghost" if known is None else "bad" if letter in "NI" else "accent" if place == at else "bar"
            shown = "╌" if known is None else letter
            text = shown * (scale.slot - 1) + " " if scale.slot > 1 else shown
            if known is not None and track.labels and scale.slot > 1:
                word = printable(label_of(track.labels, known))
                tone, text = ("strong" if place == at else ""), padded(clip(word, scale.slot - 1), scale.slot)
            elif known is not None and as_numbers:
                tone, text = ("strong" if place == at else ""), f"{int(known):<{scale.slot}}"
            row.append((text, f"{tone}{here}"))
        last = None if now is None else track.values.get(now)
        word = f"'{printable(label_of(track.labels, last))}'" if track.labels and last is not None else number(last)
        return spread(row, [(f"{clip(word, 6):>6} ", "")], width)

    # --- events --------------------------------------------------------------------------------------------------

    def _events_row(self, scale: TimelineScale, width: int) -> Row:
        run, now = self.state.loop_run, self.state.iteration
        found = {event.iteration: event for event in self.state.events if event.run == run}
        names = self.name_width(width)
        row: Row = [(" events".ljust(names), "dim")]
        cell = 0
        places = sorted({*found, *(() if now is None else (now,))})
        for iteration in places:
            text, tone = self._event(found.get(iteration), is_now=iteration == now)
            at = scale.at(iteration)
            if at >= cell and names + at + 2 < width:  # what has no room is in the list of stops
                row += [(" " * (at - cell), ""), (text, tone)]
                cell = at + len(text) + 1
                row.append((" ", ""))
        return row

    def _event(self, event: TimelineEvent | None, *, is_now: bool) -> tuple[str, str]:
        if event is None:
            return f"{GLYPHS['now']} now", "accent"
        glyph, tone = EVENT_MARKS[event.kind]
        words = {"breakpoint": "b"}
        first = event.text.split(":")[0].split()
        label = words.get(first[0], first[0]) + (first[1] if len(first) > 1 and first[0] == "breakpoint" else "")
        return f"{glyph} {label}", "accent" if is_now and event.kind is TimelineEventKind.STOP else tone

    # --- the mouse -----------------------------------------------------------------------------------------------

    def iteration_in(self, cell: int) -> int | None:
        """Return the iteration of a slot."""
        scale = self.scale(self.size.width)
        return scale.iteration(cell) if 0 <= cell < scale.bins * scale.slot else None


def outside_text(state: State) -> str:
    """Return a sentence for the place of iterations, outside of all loops."""
    if state.view is None or state.view.outputs is None:
        return state.without_loops or "no loop around this; s steps into one"
    last = None if state.ending is None else state.ending.last
    enter = "" if last is None else f"Enter: {clip(layer_name(last.layer), 30)}@{last.iteration}, "
    return f"the run has ended; {enter}S: a step back, g: the start"


def _readings(readings: tuple[WatchReading, ...]) -> dict[int, float]:
    """Return those of a watch that can be one number."""
    found = {}
    for reading in readings:
        known = number_in(reading)
        if reading.iteration is not None and known is not None:
            found[reading.iteration] = known
    return found


def _worse(known: float | None, value: float) -> float:
    """Return the one of two numbers that a bin shows: NaN before Inf before the larger magnitude."""
    if known is None or math.isnan(value):
        return value
    return known if math.isnan(known) or abs(known) >= abs(value) else value


def _are_figures(values: list[float | None], room: int) -> bool:
    """True if all values are whole numbers that fit their slots, to be read like a text."""
    known = [value for value in values if value is not None]
    return (
        room > 0
        and bool(known)
        and all(math.isfinite(value) and value == int(value) and len(str(int(value))) <= room for value in known)
    )
