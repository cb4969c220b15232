"""The whole life of a loop: iterations along the axis, a band a watch or carried value, what happened, anomalies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

import numpy as np
from rich.style import Style
from textual.app import ComposeResult

from stepper.debug.iterations.sweep import MOST_BINS, TrackView
from stepper.element_types import Array
from stepper.tensors.statistics import number_of
from tui.paint.names import carried_name
from tui.paint.pane import Host
from tui.paint.rows import BARS, Cell, Row, Token, clip, number, padded, printable, spread
from tui.screens.base import DebugScreen
from tui.screens.main.frames import COUNTED
from tui.screens.timeline.bar import EVENT_MARKS, outside_text
from tui.screens.timeline.time_axis import STEPS, TimeAxisPane, TimeSpan
from tui.screens.timeline.track_values import carried_value, measured, value_of
from tui.state import State
from tui.theme import GLYPHS
from tui.worker.requests import ShowTime

_VALUE: Final = 8
_TALLEST: Final = 16
_NUMBERED: Final = 7
"""Cells of a column from which on it has its number below."""
_EIGHTHS: Final = " ▁▂▃▄▅▆▇"
_EVENT_ROWS: Final = 3
_LEAST_SPAN: Final = 5


class _Band(NamedTuple):
    """Contents of a band: a number a column where its count is not 0, the ends of its scale, and its rows."""

    numbers: list[float]
    counts: list[int]
    low: float
    high: float
    tall: int

    def bar(self, value: float, base: int) -> str:
        """Return the part of a bar in the row `base` rows above the lowest."""
        half = self.high / 2 - self.low / 2
        share = (value / 2 - self.low / 2) / half if half > 0 else 0.0
        if self.tall == 1:  # so that it does not melt into the bands above and below
            return BARS[min(int(share * len(BARS)), len(BARS) - 1)]
        level = max(1, round(share * self.tall * 8)) - base * 8
        return "█" if level >= 8 else _EIGHTHS[max(level, 0)]


class TimelineChart(TimeAxisPane):
    """The iterations of the loop around what is looked at, from 5 to millions.

    A column is one iteration while they fit, else many: then it shows NaN before Inf before the largest magnitude.
    """

    DEFAULT_CSS = "TimelineChart { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "chart"
    title = "timeline"
    shows_running: ClassVar[bool] = True
    help_text: ClassVar[str] = (
        "Iterations from left to right; the moment is marked, arrows, a click or a drag move it.\n"
        "One band a watch or carried value, between its least and largest on the screen; T and F: the condition.\n"
        "Where a column is many iterations it shows NaN before Inf before the largest magnitude.\n"
        "Dotted: not reached yet, or not yet looked through. + and - zoom, H and L scroll."
    )

    NAME_WIDTHS: ClassVar[tuple[tuple[int, int], ...]] = ((180, 22), (0, 14))
    bands: ClassVar[tuple[str, ...]] = ("watch", "carried", "condition")
    """The kinds of tracks that are shown, in this order."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._zoom = 0
        self._begin = 0
        self._asked: tuple[int, int] | None = None
        self._drawn: tuple[object, list[Row]] | None = None

    # --- which iterations ----------------------------------------------------------------------------------------

    def span(self, width: int) -> TimeSpan:
        """Return the iterations that are visible."""
        total = self._total()
        visible = max(total >> self._zoom, min(total, _LEAST_SPAN))
        begin = max(0, min(self._begin, total - visible))
        return TimeSpan.fitting(begin, begin + visible, width - self.name_width(width) - _VALUE)

    def _total(self) -> int:
        loop, seen = self.state.loop, self.seen() + 1
        if loop is None:
            return 1
        known = loop.trip.total if loop.trip.total is not None else loop.trip.limit
        if known is None or known > COUNTED:
            known = next(step for step in STEPS if step >= max(seen, 20))
        return max(known, seen)

    def seen(self) -> int:
        """The last iteration known to have run."""
        sweep = self.state.sweep
        return max(self.state.iteration or 0, sweep.reached - 1 if sweep is not None else 0)

    def update(self, state: State) -> None:
        """The moment stays in sight."""
        before, self.state = self.state.iteration, state
        if state.iteration is not None and state.iteration != before:
            self._follow()
        self.changed()

    def _follow(self) -> None:
        now, span = self.state.iteration, self.span(self.size.width)
        if now is not None and not span.begin <= now < span.end:
            self._begin = max(0, now - (span.end - span.begin) // 2)

    def changed(self) -> None:
        """Another stretch may be visible, which has to be asked for."""
        super().changed()
        if not self.size.width or not self.is_mounted or self.state.loop is None:
            return
        span = self.span(self.size.width)
        # In halves of itself, so that going on does not ask for another stretch each time.
        grain = max((span.end - span.begin) // 2, 1)
        wanted = span.begin // grain * grain, -(-span.end // grain) * grain
        if wanted != self._asked and self.state.running is None:
            self._asked = wanted
            self.host.driver.adjust(ShowTime(wanted))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        self.host.driver.adjust(ShowTime(None))

    # --- rows ----------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the title, what a column is, and the number line."""
        if self.state.loop is None:
            self.note = ""
            return super().heading(width)
        span = self.span(width)
        each = (span.end - span.begin) / span.bins
        self.note = f"a column is {each:,.0f} iterations   " if span.slot == 1 and each > 1 else ""
        tracks = list(self._tracks())
        self.note += f"{self._known()}{'now, most, least' if tracks and self._height_of(tracks) > 2 else 'now'} "
        return [*super().heading(width), [(" " * self.name_width(width), ""), *span.axis(self.state.iteration)]]

    def _known(self) -> str:
        sweep = self.state.sweep
        if sweep is None or sweep.complete:
            return ""
        return f"looked through to {sweep.reached:,}   "

    def rows(self, width: int) -> list[Row]:
        """Return the bands, and what happened."""
        state = self.state
        if state.loop is None:
            return [[(f" {outside_text(state)}", "dim")]]
        span = self.span(width)
        tracks = list(self._tracks())
        key = state.sweep, span, width, self.size.height, state.iteration, state.events, self.look
        if self._drawn is None or self._drawn[0] != key:
            bands = [row for track in tracks for row in self._band(track, span, width, self._height_of(tracks))]
            self._drawn = key, [*bands, *self._event_rows(tracks, span, width), [], self._here(tracks, span)]
        return self._drawn[1]

    def _tracks(self) -> Iterator[TrackView]:
        """Watches, carried values and the condition; in each the closest that is known."""
        sweep, loop = self.state.sweep, self.state.loop
        if sweep is None or loop is None:
            return
        collected = loop.collected
        close = {(track.kind, track.name): track for track in sweep.close}
        for kind in self.bands:
            for track in sweep.tracks if kind != "condition" or loop.condition is not None else ():
                if track.kind == kind and (track.parameter is None or track.parameter.id not in collected):
                    yield close.get((kind, track.name), track)

    def _height_of(self, tracks: list[TrackView]) -> int:
        """Return rows of a band."""
        bands = sum(track.kind != "condition" for track in tracks)
        room = self.size.height - 4 - _EVENT_ROWS - (len(tracks) - bands)
        numbered = self.span(self.size.width).slot >= _NUMBERED
        return max(1, min(_TALLEST, room // max(bands, 1) - 1 - numbered))

    def _band(self, track: TrackView, span: TimeSpan, width: int, tall: int) -> list[Row]:
        numbers, counts = self._numbers(track, span)
        now = self.state.iteration
        here = None if now is None else self._at(track, now)
        names = self.name_width(width)
        name = f" {padded(self._called(track, names - 2), names - 2)} "
        if track.kind == "condition":
            letters = [("F" if found else "T") if known else "" for found, known in zip(numbers, counts, strict=True)]
            shown = "" if here is None else "F" if here else "T"
            cells = self._cells(span, letters, ["strong" if text else "ghost" for text in letters])
            return [spread([(name, "dim"), *cells], [(f"{shown:>6} ", "")], width)]
        finite = np.isfinite(numbers) & (counts > 0)
        low, high = (numbers[finite].min(), numbers[finite].max()) if finite.any() else (0.0, 0.0)
        band = _Band(numbers.tolist(), counts.tolist(), float(low), float(high), tall)
        rows = []
        for line in range(tall):
            value: Cell = (f"{number(here):>6} ", "") if not line else (" " * 7, "")
            if tall > 2 and line in (1, tall - 1) and finite.any():
                value = f"{number(band.high if line == 1 else band.low):>6} ", "dim"
            cells = self._line(band, span, tall - 1 - line)
            rows.append(spread([(name if not line else " " * names, "dim"), *cells], [value], width))
        if tall > 2 and span.slot >= _NUMBERED:
            texts = [number(found) if known else "" for found, known in zip(band.numbers, band.counts, strict=True)]
            tones = ["dim" if math.isfinite(found) else "bad" for found in band.numbers]
            rows.append([(" " * names, ""), *self._numbered(span, texts, tones)])
        return [*rows, []] if tall > 1 else rows

    def _numbered(self, span: TimeSpan, texts: list[str], tones: list[str]) -> Row:
        """Return the number of each column."""
        now = self.state.iteration
        at = -1 if now is None else span.at(now) // span.slot
        row: Row = []
        for place, (text, tone) in enumerate(zip(texts, tones, strict=True)):
            here = " cursor" if place == at else ""
            row.append(
                (padded(text, span.slot), ("strong cursor" if tone == "dim" else f"{tone} cursor") if here else tone)
            )
        return row

    def _line(self, band: _Band, span: TimeSpan, base: int) -> Row:
        """Return one row of a band, `base` rows above its lowest."""
        texts: list[str] = []
        tones: list[str] = []
        for found, known in zip(band.numbers, band.counts, strict=True):
            is_odd = not math.isfinite(found)
            odd = " " if base else "N" if found != found else "I"
            texts.append("" if not known else odd if is_odd else band.bar(found, base))
            tones.append("ghost" if not known else "bad" if is_odd else "bar")
        return self._cells(span, texts, tones, base=base)

    def _cells(self, span: TimeSpan, texts: list[str], tones: list[str], *, base: int = 0) -> Row:
        """Return one row of columns; an empty text is a column of which nothing is known."""
        now = self.state.iteration
        at = -1 if now is None else span.at(now) // span.slot
        row: Row = []
        for place, (text, tone) in enumerate(zip(texts, tones, strict=True)):
            here = place == at
            style: Token = f"{'accent' if here and tone == 'bar' else tone}{' cursor' if here else ''}".strip()
            if not text:
                text = "╌" if not base else " "
            if text == "█" and not self.look.plain:
                text, style = " ", self._full(here=here)
            elif tone == "bad" and not here:
                style = self._tint()
            gap = 1 if span.slot > 1 else 0
            letter = text in "TFNI"
            row.append((text.ljust(span.slot - gap) if letter else text * (span.slot - gap), style))
            if gap:
                row.append((" ", "cursor" if here else ""))
        return row

    def _full(self, *, here: bool) -> Style:
        """A full cell is a ground without a glyph: it has no seams."""
        key = f"full-{here}"
        if key not in self._styles:
            colour = self.colour("primary" if here else "secondary")
            self._styles[key] = Style(bgcolor=colour.rich_color)
        return self._styles[key]

    def _tint(self) -> Style:
        if "odd-tint" not in self._styles:
            ground, error = self.colour("background"), self.colour("error")
            tint = ground.blend(error, 0.25)
            self._styles["odd-tint"] = Style(color=error.rich_color, bgcolor=tint.rich_color, bold=True)
        return self._styles["odd-tint"]

    def _called(self, track: TrackView, room: int) -> str:
        watches = (value_of(one) for one in self.state.watches if one.text == track.name)
        is_carried = track.parameter is not None
        value = carried_value(self.state, track.parameter) if is_carried else next(watches, None)
        return measured(_name_of(track), value, room)

    def _numbers(self, track: TrackView, span: TimeSpan) -> tuple[Array, Array]:
        numbers, counts = track.spread_over(span.begin, span.end, span.bins)
        now = self.state.iteration
        here = None if now is None or not span.begin <= now < span.end else self._at(track, now)
        if now is not None and here is not None and not counts[span.at(now) // span.slot]:
            place = span.at(now) // span.slot  # the present one is not closed yet
            numbers[place], counts[place] = here, 1
        return numbers, counts

    def _at(self, track: TrackView, iteration: int) -> float | None:
        """Return the number of one iteration; of the present one also where it is not closed yet."""
        found = track.at(iteration)
        if found is None and track.kind == "watch":
            readings = (one.now for one in self.state.watches if one.text == track.name)
            reading = next(readings, None)
            if reading is None or reading.value is None or reading.iteration != iteration:
                return None
            return number_of(reading.value)
        history = self.state.loop_history
        if found is None and history is not None and track.parameter is not None:
            for one in history.carried:
                place = int(np.searchsorted(one.iterations, iteration))
                if one.parameter is track.parameter and place < len(one.iterations):
                    return float(one.numbers[place]) if one.iterations[place] == iteration else None
        return found

    # --- what happened -------------------------------------------------------------------------------------------

    def _happened(self, tracks: list[TrackView]) -> list[tuple[int, str, str]]:
        """Iteration, text and tone."""
        run, now = self.state.loop_run, self.state.iteration
        found = []
        for event in self.state.events:
            if event.run == run:
                glyph, tone = EVENT_MARKS[event.kind]
                words = event.text.partition(":")[0].split()
                label = f"b{words[1]}" if words[0] == "breakpoint" and len(words) > 1 else words[0]
                found.append((event.iteration, f"{glyph} {printable(label)}", tone))
        odd = [(track.first_odd, track) for track in tracks if track.first_odd is not None]
        found += [
            (first, f"✗ {clip(_name_of(track), 12)} NaN or Inf", "bad") for first, track in odd if first is not None
        ]
        if now is not None:
            found.append((now, f"{GLYPHS['now']} now", "accent"))
        return sorted(found, key=lambda one: (one[0], one[2] == "accent"))

    def _event_rows(self, tracks: list[TrackView], span: TimeSpan, width: int) -> list[Row]:
        """Return as many rows as are needed, up to three; what has no room is in the list of stops."""
        names = self.name_width(width)
        rows: list[Row] = [[((" events" if not place else "").ljust(names), "dim")] for place in range(_EVENT_ROWS)]
        ends = [0] * _EVENT_ROWS
        for iteration, text, tone in self._happened(tracks):
            if not span.begin <= iteration < span.end:
                continue
            at = span.at(iteration)
            line = next((place for place, end in enumerate(ends) if at >= end), None)
            if line is not None and names + at + len(text) < width:
                rows[line] += [(" " * (at - ends[line]), ""), (text, tone), (" ", "")]
                ends[line] = at + len(text) + 1
        return rows

    def _here(self, tracks: list[TrackView], span: TimeSpan) -> Row:
        """Return the iterations of the moment's column, in words."""
        now = self.state.iteration
        if now is None or not span.begin <= now < span.end or not tracks:
            return []
        begin, end = span.covered(span.at(now))
        if end - begin <= 1:
            return []
        _, counts = tracks[0].spread_over(begin, end, 1)
        known = min(int(counts[0]), end - begin)
        text = f"this column: iterations {begin:,} to {end - 1:,}, {known:,} of {end - begin:,} known"
        if tracks[0].bins.step > 1 and span.end - span.begin <= MOST_BINS:
            text += "; looking closer"
        return [(f" {text}", "dim")]

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def zoom_by(self, by: int) -> None:
        """Half as many iterations, or twice as many, around the moment."""
        total, before = self._total(), self.span(self.size.width)
        deepest = max((total // _LEAST_SPAN).bit_length() - 1, 0)
        self._zoom = max(0, min(self._zoom + by, deepest))
        now = self.state.iteration if self.state.iteration is not None else before.begin
        visible = max(total >> self._zoom, min(total, _LEAST_SPAN))
        share = (now - before.begin) / max(before.end - before.begin, 1)
        self._begin = max(0, now - int(visible * min(max(share, 0.0), 1.0)))
        self._follow()
        self.changed()

    def pan(self, by: int) -> None:
        """See other iterations; half a screen at a time."""
        span = self.span(self.size.width)
        self._begin = max(0, min(span.begin + by * max((span.end - span.begin) // 2, 1), self._total()))
        self.changed()

    def seek_anomaly(self, *, backward: bool) -> str:
        """Return the line that goes to the next iteration in which something odd begins; empty where none is known."""
        now = self.state.iteration
        if now is None:
            return ""
        found: set[int] = set()
        for track in self._tracks():
            found |= {track.first_odd} if track.first_odd is not None else set()
            if track.kind != "condition" and track.bins.step == 1:
                odd = ~np.isfinite(track.bins.numbers) & (track.bins.counts > 0)
                found |= set((np.flatnonzero(odd[1:] & ~odd[:-1]) + 1 + track.first).tolist())
        fitting = [one for one in found if (one < now if backward else one > now)]
        return f"iter {max(fitting) if backward else min(fitting)}" if fitting else ""

    def iteration_in(self, cell: int) -> int | None:
        """Return the first iteration of a column."""
        span = self.span(self.size.width)
        return span.covered(cell)[0] if 0 <= cell < span.bins * span.slot else None


def _name_of(track: TrackView) -> str:
    return printable(track.name) if track.parameter is None else carried_name(track.parameter)


class TimelineScreen(DebugScreen):
    """All iterations of the loop."""

    view_name = "timeline"

    def body(self) -> ComposeResult:
        """The one pane."""
        yield TimelineChart(self.host, id="chart")
