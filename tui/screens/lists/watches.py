"""The watches: an expression, what it is now and was one iteration before; below them, each over all iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from stepper.debug.inspection.views import WatchView
from stepper.debug.iterations.far_runs import loop_of_body
from stepper.debug.iterations.sweep import TrackView
from stepper.debug.overview.facts import RunState
from stepper.debug.overview.programs import programs_of
from stepper.debug.stop_scope import WatchReading
from stepper.ops.operands import form_text
from stepper.tensors.number_text import fitted
from stepper.wording import counted
from tui.paint.columns import TableColumn, written
from tui.paint.list_pane import ListPane
from tui.paint.names import layer_name
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, elements, printable
from tui.pictures.axis import window
from tui.pictures.value_rows import Looks, RowColumns, value_rows
from tui.screens.list_screen import ListScreen
from tui.screens.timeline.tracks import watch_row, watched
from tui.theme import GLYPHS
from tui.worker.requests import ShowRun, ShowWatches

if TYPE_CHECKING:
    from stepper.debug.iterations.loop_runs import Outer
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer
    from tui.state import State

_GLYPH: Final = 2
_NUMBER: Final = 4
_BARS: Final = 24


class WatchList(ListPane[WatchView]):
    """One row a watch."""

    kind: ClassVar[str] = "watches"
    looks_inside: ClassVar[bool] = True
    title = "watches"
    asked_when_empty: ClassVar[str] = "prompt watch "
    when_empty: ClassVar[str] = "none; a adds one, w watches the selected value, such as: watch max(abs(h))"
    help_text: ClassVar[str] = (
        "Expressions that are evaluated at every stop. Before: what it was one iteration before, or where the run\n"
        "last stopped in an earlier one. The pictures are the last iterations, this one at the right."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._looks = Looks()
        self._wanted: tuple[Program, Outer] | None = None

    def entries(self) -> Sequence[WatchView]:
        """All, in the order in which they were set."""
        return self.state.watches

    def changed(self) -> None:
        """The iterations are those of the loop in which the chosen one reads, where the run stands in another."""
        super().changed()
        chosen = self.chosen
        body = None if chosen is None else chosen.body
        run = None
        if body is not None and body is not self.host.state.loop_program:
            around = [(frame.program, frame.iteration) for frame in self.host.state.frames]
            run = loop_of_body(body, around, () if chosen is None else chosen.outer)
        wanted = None if run is None else (run.body, run.outer)
        if wanted != self._wanted:
            self._wanted = wanted
            self.host.driver.adjust(ShowRun(run))

    def on_mount(self) -> None:
        """All watches are filled, those of other loops too."""
        self.host.driver.adjust(ShowWatches(True))

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        self.host.driver.adjust(ShowWatches(False))
        self.host.driver.adjust(ShowRun(None))

    def heading(self, width: int) -> list[Row]:
        """Return how many there are."""
        self.note = f"{len(self.state.watches)} " if self.state.watches else ""
        return super().heading(width)

    def columns(self) -> Sequence[TableColumn[WatchView]]:
        """Glyph, number, expression, its values, bars."""
        return (
            TableColumn("", _GLYPH, lambda _one, _width: [(f"{GLYPHS['watch']} ", "accent")]),
            TableColumn("no", _NUMBER, lambda one, width: written(str(one.number), width, "strong")),
            TableColumn("expression", _words_width, _expression),
            TableColumn("now", None, self._now),
            TableColumn("before", _before_width, self._earlier_value),
            TableColumn("iterations", _bars_width, self._bars),
        )

    def _bars(self, item: WatchView, width: int) -> Row:
        """Return the last iterations: of all that were looked through, else of those with a stop."""
        if item.body is None or item.body is self.state.loop_program:
            now, values = self.state.iteration, watched(self.state, item)
        else:
            values = self.state.watch_runs.get(item.number)
            if values is None:
                return written(clip(f"in {layer_name(item.body.path[-1])}", width - 1), width, "dim")
            frame = next((one for one in self.state.frames if one.program is item.body), None)
            now = values.count - 1 if frame is None else frame.iteration
        total = None if self.state.loop is None else self.state.loop.trip.total
        if item.body is not None and item.body is not self.state.loop_program and values is not None:
            total = values.count
        axis = window(max(now or 0, 0), total, width - 1, 1)
        one = watch_row(item, values, (now or 0) + 1)
        columns = RowColumns(1, width - 1, 0)
        return value_rows(one._replace(name=("", "")), axis, 1, columns, self._looks, self.palette).rows[0]

    def _now(self, item: WatchView, width: int) -> Row:
        reading = item.now
        if reading is not None and reading.elsewhere is not None:
            return written(self._last(item, reading.elsewhere, width - 1), width, "dim")
        tone = "dim" if reading is None else "bad" if reading.error else ""
        return written(reading_text(reading, width - 1), width, tone)

    def _last(self, item: WatchView, loop: Layer, room: int) -> str:
        """The last value of all that are known, of a watch in a loop that does not run here."""
        is_shown = item.body is self.state.loop_program
        values = watched(self.state, item) if is_shown else self.state.watch_runs.get(item.number)
        last = None if values is None else values.number(values.count - 1)
        if values is None or last is None:
            return clip(f"in {layer_name(loop)}, not here", room)
        return clip(f"{fitted(last)}{' rms' if values.elements > 1 else ''} at {values.count - 1}, the last", room)

    def _track(self, item: WatchView) -> TrackView | None:
        sweep = self.state.sweep
        tracks = () if sweep is None else (*sweep.close, *sweep.tracks)
        return next((track for track in tracks if track.kind == "watch" and track.name == item.text), None)

    def _earlier_value(self, item: WatchView, width: int) -> Row:
        return written(self._before(item, width - 1), width, "dim")

    def _before(self, item: WatchView, room: int) -> str:
        """The value one iteration before, where the run has stopped there; else the number that is known of it."""
        track, now = self._track(item), self.state.iteration
        reading = self._earlier(item)
        values = None if track is None or track.step > 1 else track.values
        known = None if values is None or now is None else values.number(now - 1)
        if known is None or values is None or (reading is not None and reading.iteration == (now or 0) - 1):
            return reading_text(reading, room)
        return clip(fitted(known) + (" rms" if values.elements > 1 else ""), room)

    def _earlier(self, item: WatchView) -> WatchReading | None:
        """Return the last reading of an iteration before this one."""
        now = self.state.iteration
        earlier = [one for one in item.iterations if now is not None and (one.iteration or 0) < now]
        return earlier[-1] if earlier else None

    def name_of(self, item: WatchView) -> str:
        """Return its number."""
        return str(item.number)

    @property
    def chosen_address(self) -> str:
        """The addresses of what the chosen watch reads."""
        chosen = self.chosen
        return "" if chosen is None else ", ".join(chosen.addresses)

    def line_to_open(self, item: WatchView) -> str:
        """Return all of its value; of one in a loop that does not run here over the iterations."""
        is_elsewhere = item.now is not None and item.now.elsewhere is not None
        return f"sheet {', '.join(item.addresses)}" if is_elsewhere else f"print {item.text}"


def _bars_width(width: int) -> int:
    return 0 if width < 69 else 12 if width < 109 else _BARS


def _room(width: int) -> int:
    """Return the cells for the expression and its values."""
    return width - _GLYPH - _NUMBER - _bars_width(width)


def _words_width(width: int) -> int:
    return max(min(_room(width) * 2 // 5, 48), 12)


def _before_width(width: int) -> int:
    return (_room(width) - _words_width(width)) // 3 if width >= 89 else 0


def _expression(item: WatchView, width: int) -> Row:
    return written(clip(printable(item.text), width - 1), width)


def sentence_elsewhere(watch: WatchView, state: State, compiled: CompiledModel, key: str) -> str:
    """Return what there is of a watch that reads in a loop which does not run here; `key` opens the list of watches."""
    overview, loop = state.overview, None if watch.now is None else watch.now.elsewhere
    assert loop is not None
    bodies = [] if overview is None else programs_of(overview, compiled)
    facts = (
        next((overview.loops[at] for at, body in enumerate(bodies) if body is watch.body), None) if overview else None
    )
    head, shows = f"watch {watch.number}  {watch.title}: a value of {layer_name(loop)}", key or "view watches"
    if overview is None or facts is None or not facts.total:
        return f"{head}, which does not run here; {shows} shows all iterations"
    runs, is_running = f" in {counted(facts.runs, 'run')}" if facts.runs > 1 else "", overview.state is RunState.RUNNING
    ran = f"{counted(facts.total, facts.iteration_word)}{runs}{' so far' if is_running else ''}"
    all_of_them = "those of a run" if runs else "all of them"
    return f"{head}, which {'has run' if is_running else 'runs'} {ran}; {shows} shows {all_of_them}"


def reading_text(reading: WatchReading | None, room: int) -> str:
    """Return a value in one line: a number as in lists, else its type, shape and numbers; or why there is none."""
    if reading is None:
        return GLYPHS["free"]
    if reading.shown:
        return clip(printable(reading.shown), room)
    value = reading.value
    if value is None or value.dtype.names is not None:
        return clip(printable(reading.text.splitlines()[0] if reading.text else ""), room)
    head = f"{form_text(value)} " if value.ndim else ""
    return clip(head + elements(value, room - len(head)), room)


class WatchesScreen(ListScreen):
    """The watches, with what they are and were."""

    view_name = "watches"
    pane_class = WatchList
