"""The whole life of a loop: iterations along the axis, a band a watch or carried value, what happened, anomalies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import numpy as np
from textual import events
from textual.app import ComposeResult

from stepper.debug.iterations.sweep import MOST_BINS, TrackView
from stepper.engine.loops import is_backward
from stepper.tensors.histories import ValueHistory
from tui.paint.names import layer_name
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, padded, printable, spread
from tui.pictures.axis import Axis
from tui.pictures.drawing import gaps, laid, put_rails, row_of, truth
from tui.pictures.heights import fill_up
from tui.pictures.value_rows import Looks, RowColumns, ValueRow, size_wanted, value_rows
from tui.screens.base import DebugScreen
from tui.screens.far_runs import carried_in_far_run, is_left_at_once
from tui.screens.main.frames import COUNTED
from tui.screens.moments.marks import histories_of_a, is_beside_run, site_strip, spread_cells
from tui.screens.timeline.bar import EVENT_MARKS, event_label, none_ran, numbers_word, outside_text
from tui.screens.timeline.far_title import far_title
from tui.screens.timeline.time_axis import STEPS, TimeAxisPane, TimeSpan
from tui.screens.timeline.tracks import is_shown, loop_row, reads_in_loop, watch_row, with_stops
from tui.state import State
from tui.theme import GLYPHS
from tui.worker.requests import ShowRun, ShowTime

_VALUE: Final = 8
_TALLEST: Final = 16
_WIDEST: Final = 40
_NUMBERED: Final = 7
"""Cells of a column from which on it has its number below."""
_EVENT_ROWS: Final = 3
_GLYPHS: Final = {"carried": GLYPHS["back"], "output": GLYPHS["scan"], "slice": "→"}
_LEAST_SPAN: Final = 5


class TimelineChart(TimeAxisPane):
    """The iterations of the loop around what is looked at, from 5 to millions.

    A column is one iteration while they fit, else many: then it shows NaN before Inf before the largest magnitude.
    """

    DEFAULT_CSS = "TimelineChart { height: 1fr; margin-top: 1; }"
    kind: ClassVar[str] = "chart"
    looks_inside: ClassVar[bool] = True
    title = "timeline"
    shows_running: ClassVar[bool] = True
    help_text: ClassVar[str] = (
        "Iterations from left to right; the moment is marked, arrows, a click or a drag move it.\n"
        "One band a watch, a value that is handed on (↺), an output (⊞), and where there is room a slice (→); zero is\n"
        "the ground. T and F: the condition.\n"
        "Column k is what iteration k made. V: linear or logarithmic, as it suits or as one chooses.\n"
        "Where a column is many iterations it shows NaN before Inf before the largest magnitude.\n"
        "Dotted: not reached yet, or not yet looked through. + and - zoom, H and L scroll;\n"
        "the wheel as well, with Ctrl and with Shift."
    )

    NAME_WIDTHS: ClassVar[tuple[tuple[int, int], ...]] = ((180, 22), (0, 16))
    bands: ClassVar[tuple[str, ...]] = ("watch", "carried", "output", "slice", "condition")
    """The kinds of tracks that are shown, in this order."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._zoom = 0
        self._begin = 0
        self._asked: tuple[int, int] | None = None
        self._drawn: tuple[object, list[Row]] | None = None
        self._looks = Looks()
        self._turned = 0

    # --- which iterations ----------------------------------------------------------------------------------------

    def span(self, width: int) -> TimeSpan:
        """Return the iterations that are visible."""
        total = self._total()
        visible = max(total >> self._zoom, min(total, _LEAST_SPAN))
        begin = max(0, min(self._begin, total - visible))
        return TimeSpan.fitting(begin, begin + visible, width - self.name_width(width) - _VALUE, _WIDEST)

    def _total(self) -> int:
        loop, seen = self.state.loop, self.seen() + 1
        if loop is None:
            return 1
        known = loop.trip.total if loop.trip.total is not None else loop.trip.limit
        if known is None or known > COUNTED:
            known = next(step for step in STEPS if step >= max(seen, 20))
        return max(known, seen)

    @property
    def selects_nothing(self) -> str:
        """The timeline of a loop in which the run does not stand shows nothing that could be selected there."""
        body = self.state.loop_program
        if body is None or not body.path or not self.state.is_far:
            return ""
        return f"the timeline is of {layer_name(body.path[-1])}, in which the run does not stand: ] goes there"

    @property
    def carried_addresses(self) -> str:
        """The addresses of what the loop carries that is looked at from elsewhere."""
        return carried_in_far_run(self.state, self.host.driver.compiled)

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
        if not self.size.width or not self.is_mounted:
            return
        if self.state.loop is None:
            self._ask((0, _LEAST_SPAN))
            return
        span = self.span(self.size.width)
        # In halves of itself, so that going on does not ask for another stretch each time.
        grain = max((span.end - span.begin) // 2, 1)
        wanted = span.begin // grain * grain, -(-span.end // grain) * grain
        self._ask(wanted)

    def _ask(self, wanted: tuple[int, int]) -> None:
        if wanted != self._asked and self.state.running is None:
            self._asked = wanted
            self.host.driver.adjust(ShowTime(wanted))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        self.host.driver.adjust(ShowTime(None))
        self.host.driver.adjust(ShowRun(None))

    # --- rows ----------------------------------------------------------------------------------------------------

    def heading(self, width: int) -> list[Row]:
        """Return the title, what a column is, and the number line."""
        if self.state.loop is None or none_ran(self.state.loop):
            self.note = ""
            return super().heading(width)
        span = self.span(width)
        each = (span.end - span.begin) / span.bins
        self.note = f"a column is {each:,.0f} iterations   " if span.slot == 1 and each > 1 else ""
        self.note += f"{self._known()}{numbers_word(self.state)}"
        head = super().heading(width)
        if self.state.is_far and head:
            head = [spread([*head[0][:2], *far_title(self.state, width // 2)], [(self.note, "note")], width)]
        return [*head, [(" " * self.name_width(width), ""), *span.ruler(self.marks())]]

    def _known(self) -> str:
        sweep = self.state.sweep
        if sweep is None or sweep.complete:
            return ""
        return f"looked through to {sweep.reached:,}   "

    def rows(self, width: int) -> list[Row]:
        """Return the bands, and what happened."""
        state = self.state
        if state.loop is None or none_ran(state.loop):
            return [[(f" {outside_text(state)}", "dim")]]
        span = self.span(width)
        tracks = self._fitting(list(self._tracks()), span.axis)
        key = (
            state.sweep,
            span,
            width,
            self.size.height,
            self.marks(),
            state.events,
            self.look,
            self._turned,
            spread_cells(state),
        )
        if self._drawn is None or self._drawn[0] != key:
            bands = self._bands(tracks, span, width)
            self._drawn = key, [*bands, *self._event_rows(tracks, span, width), [], self._here(span)]
        return self._drawn[1]

    def _tracks(self) -> Iterator[TrackView]:
        """Watches, carried values and the condition; in each the closest that is known."""
        sweep, loop = self.state.sweep, self.state.loop
        if sweep is None or loop is None:
            return
        close = {(track.kind, track.name): track for track in sweep.close}
        shown: list[ValueHistory] = []
        elsewhere = {one.text for one in self.state.watches if not reads_in_loop(self.state, one)}
        for kind in self.bands:
            for track in sweep.tracks if kind != "condition" or loop.condition is not None else ():
                values = track.values
                if track.kind != kind or (kind == "watch" and track.name in elsewhere):
                    continue
                if kind == "output" and values is not None and is_shown(values, shown):
                    continue
                shown += [] if values is None else [values]
                yield close.get((kind, track.name), track)

    def _fitting(self, tracks: list[TrackView], axis: Axis) -> list[TrackView]:
        """Return all, or those that are not slices, where the slices would take the room of the others."""
        sizes = [size_wanted(track.values, axis, is_ruled=True) for track in tracks]
        wanted = sum(min(-(-size // 2), _TALLEST) + 1 if is_picture else size for size, is_picture in sizes)
        fits = wanted <= self.size.height - 4 - _EVENT_ROWS
        return tracks if fits else [track for track in tracks if track.kind != "slice"]

    def _bands(self, tracks: Sequence[TrackView], span: TimeSpan, width: int) -> list[Row]:
        names, axis = self.name_width(width), span.axis
        columns = RowColumns(names, width - names - _VALUE, 7)
        ones = [self._row_of(track) for track in tracks if track.kind != "condition"]
        sizes = [size_wanted(one.values, axis, one.labels, is_ruled=True) for one in ones]
        flat = sum(size <= 2 and not is_picture for size, is_picture in sizes)
        places = [one for one in ones if self._place_in_loop(one) >= 0]
        extra = 0 if spread_cells(self.state) is None else len(places) * (3 if is_beside_run(self.state) else 1)
        room = self.size.height - 4 - _EVENT_ROWS - (len(tracks) - len(ones)) - 2 * flat - extra
        each = max(room // max(len(ones) - flat, 1), 1)
        is_airy = each >= 4
        numbered = span.slot >= _NUMBERED and each > 4
        tall = [_height(size, each - is_airy, is_picture, plain=self.look.plain) for size, is_picture in sizes]
        spare = room + 2 * flat - sum(lines + (is_airy and lines > 1) for lines in tall)
        tall = fill_up([size if is_picture else 0 for size, is_picture in sizes], tall, spare)
        now, marked = self.state.iteration, [mark.iteration for mark in self.marks() if mark.token == "now"]
        rows: list[Row] = []
        theirs = histories_of_a(self.state)
        for one, lines, (_, is_picture) in zip(ones, tall, sizes, strict=True):
            other = theirs.get(self._place_in_loop(one)) if theirs else None
            below = numbered and not is_picture and lines > 2
            beside: tuple[Row, ...] = ([(f"{clip(one.last(now), 6):>6} ", "")],)
            rows += value_rows(
                one._replace(beside=beside, shared=() if other is None else (other,)),
                axis,
                lines - below,
                columns,
                self._looks,
                self.palette,
                marked=marked,
                a=self.state.iterations_of_a,
                is_ruled=True,
            ).rows
            rows += [self._numbered(one, axis)] if below else []
            rows += self._beside_a(one, axis, min(lines, max(lines // 2, 2)), columns)
            rows += [[]] if is_airy and lines > 1 else []
        return [*rows, *(self._condition(track, axis, width) for track in tracks if track.kind == "condition")]

    def _beside_a(self, one: ValueRow, axis: Axis, lines: int, columns: RowColumns) -> list[Row]:
        """Return the same value in A, where that is another run, and in which iterations it differs from A."""
        index = self._place_in_loop(one)
        cells, history = spread_cells(self.state), self.state.loop_history
        if index < 0 or cells is None or history is None:
            return []
        names = columns.name
        theirs = histories_of_a(self.state).get(index)
        rows: list[Row] = []
        if theirs is not None:
            shared = () if one.values is None else (one.values,)
            a = one._replace(key=(one.key, "A"), name=("A", "a"), shape="", values=theirs, beside=(), shared=shared)
            self._looks.follow(a.key, one.key)
            rows += value_rows(a, axis, lines, columns, self._looks, self.palette, is_ruled=True).rows
        strip = site_strip(self, cells, history.rows[index].row, axis, columns.picture)
        return [*rows, [(" from A".ljust(names), "dim"), *strip]] if strip else rows

    def _place_in_loop(self, one: ValueRow) -> int:
        """Return which of the loop's rows a band shows; -1 for a watch."""
        history = self.state.loop_history
        keys = [] if history is None else [loop_row(self.state, known.row, None, 0).key for known in history.rows]
        return keys.index(one.key) if one.key in keys else -1

    def _row_of(self, track: TrackView) -> ValueRow:
        made = self.seen() + 1
        if track.row is not None:
            row, backward = track.row, track.row.slicing is not None and is_backward(track.row.slicing)
            arrow = "←" if backward else _GLYPHS[track.kind]
            return loop_row(self.state, row, track.values, made)._replace(glyph=(f" {arrow} ", "dim"))
        watch = next((one for one in self.state.watches if one.text == track.name), None)
        if watch is None:
            return ValueRow(track.name, (" ", ""), (printable(track.name), "dim"), "", track.values, made=made)
        shown = watch_row(watch, with_stops(track.values, watch), made)
        return shown if len(self.bands) == 1 else shown._replace(glyph=(f" {GLYPHS['watch']} ", "dim"))

    def _numbered(self, one: ValueRow, axis: Axis) -> Row:
        """Return the number of each column."""
        row: Row = [(" " * self.name_width(self.size.width), "")]
        now = self.state.iteration
        for slot in axis.slots:
            text = one.at(slot.first)
            tone = "bad" if text in ("NaN", "+Inf", "-Inf") else "strong" if slot.first == now else "dim"
            row.append((padded(text, slot.width), tone))
        return row

    def _condition(self, track: TrackView, axis: Axis, width: int) -> Row:
        """Return T where the loop went on, F where it ended."""
        names, values, now = self.name_width(width), track.values, self.state.iteration
        ended = [] if values is None else [(slot, values.over(slot.first, slot.last)) for slot in axis.slots]
        verdicts = [(slot, None if found is None else not found[0]) for slot, found in ended]
        cells = laid([*truth(verdicts, rare=False), *gaps(values, axis, self.seen() + 1)], width - names - _VALUE)
        for mark in self.marks():
            for slot in axis.slots:
                if slot.first <= mark.iteration < slot.last:
                    put_rails(cells, slot, self.palette, is_selected=True)
        known = [] if values is None or now is None else [values.over(at, at + 1) for at in (now, now - 1)]
        here = next((one for one in known if one is not None), None)
        shown = "" if here is None else GLYPHS["false" if here[0] else "true"]
        return [(f" {padded('go on', names - 2)} ", "dim"), *row_of(cells), (f"{shown:>7} ", "")]

    # --- what happened -------------------------------------------------------------------------------------------

    def _happened(self, tracks: list[TrackView]) -> list[tuple[int, str, str]]:
        """Iteration, text and tone."""
        run, now = self.state.loop_run, self.state.iteration
        found = []
        for event in self.state.events:
            if event.run == run:
                glyph, tone = EVENT_MARKS[event.kind]
                found.append((event.iteration, f"{glyph} {event_label(event)}", tone))
        odd = [(track.first_odd, track) for track in tracks if track.first_odd is not None]
        found += [
            (first, f"✗ {clip(self._row_of(track).name[0], 12)} NaN or Inf", "bad")
            for first, track in odd
            if first is not None
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

    def _here(self, span: TimeSpan) -> Row:
        """Return the iterations of the moment's column, in words."""
        now, sweep = self.state.iteration, self.state.sweep
        if now is None or not span.begin <= now < span.end or sweep is None:
            return []
        begin, end = span.covered(span.at(now))
        if end - begin <= 1:
            return []
        known = max(0, min(sweep.reached, end) - begin)
        text = f"this column: iterations {begin:,} to {end - 1:,}, {known:,} of {end - begin:,} known"
        if span.end - span.begin <= MOST_BINS and not sweep.complete:
            text += "; looking closer"
        return [(f" {text}", "dim")]

    # --- keys and mouse ------------------------------------------------------------------------------------------

    def look_on(self, _direction: int) -> None:
        """Show the bands with another scale."""
        for track in self._tracks():
            self._looks.look_on(self._row_of(track).key, -1)
        self._turned += 1
        self.changed()

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

    def wheel(self, event: events.MouseEvent, way: int) -> None:
        """The wheel scrolls; with Shift, or where all rows are seen, to other iterations; with Ctrl it zooms."""
        width, height = self.size
        if event.ctrl:
            self.zoom_by(-way)
        elif event.shift or self.line_count(width) <= height:
            span = self.span(width)
            self._begin = max(0, min(span.begin + way * max((span.end - span.begin) // 8, 1), self._total()))
            self.changed()
        else:
            super().wheel(event, way)

    def pan(self, by: int) -> None:
        """See other iterations; half a screen at a time."""
        span = self.span(self.size.width)
        self._begin = max(0, min(span.begin + by * max((span.end - span.begin) // 2, 1), self._total()))
        self.changed()

    def unpick(self) -> bool:
        """Look at the run of the moment again; False if that is what is shown."""
        is_chosen = self.state.far is not None and self.state.far.is_chosen
        if not is_chosen or is_left_at_once(self.host.state, self.host.driver.compiled):
            return False
        self.post_line("loop-run out")
        return True

    def seek_anomaly(self, *, backward: bool) -> str:
        """Return the line that goes to the next iteration in which something odd begins; empty where none is known."""
        now = self.state.iteration
        if now is None:
            return ""
        found: set[int] = set()
        for track in self._tracks():
            found |= {track.first_odd} if track.first_odd is not None else set()
            values = track.values
            if track.kind != "condition" and track.step == 1 and values is not None:
                odd = ~np.isfinite(values.numbers[0]).all(axis=1)
                found |= set(values.spans[1:, 0][odd[1:] & ~odd[:-1]].tolist())
        fitting = [one for one in found if (one < now if backward else one > now)]
        return f"iter {max(fitting) if backward else min(fitting)}" if fitting else ""

    def iteration_in(self, cell: int) -> int | None:
        """Return the first iteration of a column."""
        span = self.span(self.size.width)
        return span.covered(cell)[0] if 0 <= cell < span.bins * span.slot else None


def _height(size: int, room: int, is_picture: bool, *, plain: bool) -> int:
    """Return how many lines a band has, of so many: a line or half a line an element, so that none is empty."""
    if not is_picture:
        return max(1, min(size if size <= 2 else _TALLEST, room))
    return size if size <= room else max(1, min(size if plain else -(-size // 2), room))


class TimelineScreen(DebugScreen):
    """All iterations of the loop."""

    view_name = "timeline"

    def body(self) -> ComposeResult:
        """The one pane."""
        yield TimelineChart(self.host, id="chart")

    def close_card(self) -> bool:
        """Close an answer, or look at the run of the moment again."""
        return super().close_card() or self.query_one(TimelineChart).unpick()
