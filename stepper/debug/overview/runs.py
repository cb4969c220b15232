"""The run behind an overview: from the start to the end beside the present, bounded, to be paused and gone on with."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from time import perf_counter, thread_time
from typing import Final, NamedTuple

from msgspec.structs import replace

from stepper.debug.branches.edits import Edit, same_by_tick
from stepper.debug.overview.births import BirthSearch, ConstantSearch
from stepper.debug.overview.loop_programs import port_facts
from stepper.debug.overview.overview_facts import (
    ConstantFacts,
    Failure,
    ModelPortFacts,
    Overview,
    RunState,
)
from stepper.debug.overview.run_recorder import RunRecorder
from stepper.debug.timeline import Timeline
from stepper.debug.visits import Enough
from stepper.engine.frames import Constants, EventKind, Snapshot
from stepper.engine.program import CompiledModel, Value
from stepper.engine.run import output_names
from stepper.errors import Paused, StepperError

BIRTH_SECONDS: Final = 0.4
"""For how long the births of NaN and Inf are looked for after a run that has a limit."""
_INTERVAL: Final = 1 / 8  # seconds; each picture takes the interpreter from the run
_SHARE: Final = 60
"""A picture for `progress` is made again after so many times as long as the last one took."""

Progress = Callable[[Overview], object]
Followed = dict[int, tuple[tuple[int, int, int], ...]]


_ENDED: Final = (RunState.FINISHED, RunState.FAILED)


def _not_run(compiled: CompiledModel) -> Overview:
    model = compiled.model
    return Overview(
        state=RunState.NOT_RUN,
        ticks=0,
        iterations=0,
        seconds=0.0,
        rate=0.0,
        bytes=0,
        inputs=tuple(port_facts(parameter.name, None) for parameter in model.graph.parameters),
        outputs=tuple(port_facts(name, None) for name in output_names(model)),
        operations=dict(Counter(layer.type for layer in model.graph.operations)),
        loops=(),
    )


class _Budget(NamedTuple):
    started: float
    seconds: float | None
    endless_seconds: float | None
    memory: int | None

    def is_out_of_time(self, now: float, *, is_endless: bool) -> bool:
        """True if the time is over that there was, or that there was for a run that nothing can end."""
        spent = now - self.started
        if is_endless and self.endless_seconds is not None and spent >= self.endless_seconds:
            return True
        return self.seconds is not None and spent >= self.seconds


class _Again(NamedTuple):
    """A run that is recorded once more: with which operations, and how far it has come."""

    followed: Followed
    recorder: RunRecorder
    stand: Snapshot


class OverviewRun:
    """The overview of a debugger's run as it is edited now, filled by `go`, which may be called again to go on."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._file = _not_run(timeline.machine.compiled)
        self._edits: dict[int, tuple[Edit, ...]] = {}
        self._constant_search = ConstantSearch(timeline.machine.compiled)
        self._begin()

    def _begin(self) -> None:
        machine = self._timeline.machine
        self._edits = dict(self._timeline.edits)
        self._recorder = RunRecorder(machine.compiled, edited=bool(self._edits))
        self._stand: Snapshot | None = None
        self._state = RunState.NOT_RUN
        self._failure: Failure | None = None
        self._births = BirthSearch(self._timeline)
        self._followed: Followed = {}
        self._again: _Again | None = None
        self._changed: Mapping[int, Constants] = {}
        self._constants: tuple[ConstantFacts, ...] | None = None
        self._ticks, self._seconds = 0, 0.0
        main = self._timeline.machine.compiled.main
        values = self._timeline.history.before(0).frames[0].values
        self._inputs = tuple(
            port_facts(parameter.name, values[slot])
            for parameter, slot in zip(main.graph.parameters, main.parameters, strict=True)
        )
        self._output_facts = self._facts_of(None)
        self._moments: deque[tuple[float, int]] = deque()
        self._is_working = False
        self._latest = self._view()

    @property
    def latest(self) -> Overview:
        """Return what is known; while `go` is at work what was known when `progress` was called last.

        May be asked from any thread.
        """
        if not self._is_working and not same_by_tick(self._edits, self._timeline.edits):
            self._begin()
        return self._latest

    def go(
        self,
        seconds: float | None,
        memory: int | None,
        progress: Progress | None,
        *,
        endless_seconds: float | None = None,
        births: bool = True,
    ) -> Overview:
        """Run on from where it was left; the present of the debugger stays. `births`: look for them, too."""
        if not same_by_tick(self._edits, self._timeline.edits):
            self._begin()
        if self._state in _ENDED and self._is_looked_through:
            return self.latest
        self._is_working = True
        with self._excursion():
            if self._state not in _ENDED:
                self._run(_Budget(perf_counter(), seconds, endless_seconds, memory), progress)
            if births and self._state is not RunState.PAUSED:
                self._publish(progress)
                self._look_through(inf if seconds is None else perf_counter() + BIRTH_SECONDS)
        self._publish(progress)
        return self.latest

    @contextmanager
    def _excursion(self) -> Iterator[None]:
        """Leave the present, unwatched by breakpoints, and come back; what was met is known to the timeline."""
        machine = self._timeline.machine
        present, watcher, observers = machine.snapshot(), machine.watcher, machine.observers
        machine.watcher = None
        try:
            yield
        finally:
            machine.watcher, machine.observers = watcher, observers
            machine.restore(present)
            self._is_working = False

    # --- the run -------------------------------------------------------------------------------------------------

    def _run(self, limits: _Budget, progress: Progress | None) -> None:
        timeline, machine = self._timeline, self._timeline.machine
        if self._stand is None:
            timeline.return_to(0)
        else:
            machine.restore(self._stand)
        machine.observers = (*machine.observers, self._recorder)
        self._state, before = RunState.RUNNING, self._seconds
        state = RunState.PAUSED
        try:
            state = self._to_the_end(limits, progress)
        except Paused:
            pass
        except StepperError as error:
            state, self._failure = RunState.FAILED, Failure(type(error).__name__, str(error), error.place, error.reason)
        finally:
            self._ticks, self._seconds = machine.tick, before + perf_counter() - limits.started
            self._state, self._output_facts = state, self._facts_of(machine.outputs)
            self._stand = None if state in _ENDED else machine.snapshot()
            self._changed, self._constants = machine.constants, None
            timeline.end = machine.snapshot() if state is RunState.FINISHED else None

    def _to_the_end(self, limits: _Budget, progress: Progress | None) -> RunState:
        """Run until the end, a pause, or a limit, in the stretches between two snapshots of the history."""
        timeline, machine = self._timeline, self._timeline.machine
        before, shown, pause = self._seconds, limits.started, _INTERVAL
        for event in timeline.stretches():
            now = perf_counter()
            self._ticks, self._seconds = machine.tick, before + now - limits.started
            if event.kind is EventKind.FINISHED:
                break
            if event.kind is EventKind.PAUSED:
                return RunState.PAUSED
            if limits.is_out_of_time(now, is_endless=self._recorder.never_ends):
                return RunState.OUT_OF_TIME
            if limits.memory is not None and self._bytes >= limits.memory:
                return RunState.OUT_OF_MEMORY
            if progress is not None and now - shown >= pause:
                begun = thread_time()  # without what it waits for other threads
                self._publish(progress)
                shown, pause = perf_counter(), max(_INTERVAL, _SHARE * (thread_time() - begun))
        return RunState.FINISHED

    @property
    def _bytes(self) -> int:
        return self._timeline.history.bytes + self._recorder.nbytes

    def _publish(self, progress: Progress | None) -> None:
        self._latest = self._view()
        if progress is not None:
            progress(self._latest)

    # --- births --------------------------------------------------------------------------------------------------

    def look_through(self, seconds: float | None) -> Overview:
        """Look further for births in what has run and through constants, and give operations with births rows.

        The present stays. Of operations in which a NaN or Inf is born nothing was kept: the run is recorded once more,
        with them.
        """
        if not same_by_tick(self._edits, self._timeline.edits) or self._is_looked_through:
            return self.latest
        self._is_working = True
        deadline = inf if seconds is None else perf_counter() + seconds
        with self._excursion():
            self._look_through(deadline)
        self._publish(None)
        return self.latest

    @property
    def _is_looked_through(self) -> bool:
        births = self._births
        is_found = births.tick >= self._ticks and births.are_related
        return is_found and self._is_followed and self._constants is not None

    @property
    def _is_followed(self) -> bool:
        """True if all operations that deserve a row have one."""
        return self._births.followed() == self._followed

    def _look_through(self, deadline: float) -> None:
        def enough() -> bool:
            return perf_counter() >= deadline

        self._births.look(self._ticks, self._recorder.first_non_finite(), enough)
        self._births.relate()
        if self._births.tick >= self._ticks and not self._is_followed:
            self._record_again(enough)
        if self._births.tick >= self._ticks and self._is_followed and self._constants is None:
            self._look_at_constants(enough)

    def _look_at_constants(self, enough: Enough) -> None:
        machine = self._timeline.machine
        self._constant_search.look(lambda: machine.pause_requested or enough())
        if self._constant_search.is_over:
            self._constants = self._constant_search.found(self._changed)
        elif machine.pause_requested:
            machine.request_pause(wanted=False)

    def _record_again(self, enough: Enough) -> None:
        timeline, machine = self._timeline, self._timeline.machine
        followed = self._births.followed()
        again = self._again
        if again is None or again.followed != followed:
            timeline.return_to(0)
            again = _Again(
                followed,
                RunRecorder(machine.compiled, edited=bool(self._edits), followed=followed),
                machine.snapshot(),
            )
        else:
            machine.restore(again.stand)
        machine.watcher, machine.observers = None, (again.recorder,)
        is_over = False
        try:
            for event in timeline.stretches(self._ticks):
                if event.kind is EventKind.PAUSED or enough():
                    break
        except Paused:
            pass
        except StepperError:
            is_over = True
        if is_over or machine.tick >= self._ticks or machine.finished:
            self._recorder, self._followed, self._again = again.recorder, followed, None
        else:
            self._again = again._replace(stand=machine.snapshot())

    # --- what is known -------------------------------------------------------------------------------------------

    def _view(self) -> Overview:
        return replace(
            self._file,
            state=self._state,
            ticks=self._ticks,
            iterations=self._recorder.iterations,
            seconds=self._seconds,
            rate=self._rate(),
            bytes=self._bytes,
            inputs=self._inputs,
            outputs=self._output_facts,
            loops=self._recorder.view(),
            births=tuple(self._births.found),
            births_tick=self._births.tick,
            constants=self._constants,
            looked_through=self._is_looked_through,
            failure=self._failure,
        )

    def _rate(self) -> float:
        moments, now = self._moments, (self._seconds, self._recorder.iterations)
        moments.append(now)
        while len(moments) > 2 and now[0] - moments[1][0] >= 1:
            moments.popleft()
        span = now[0] - moments[0][0]
        if span > 0:
            return (now[1] - moments[0][1]) / span
        return now[1] / now[0] if now[0] else 0.0

    def _facts_of(self, outputs: tuple[Value, ...] | None) -> tuple[ModelPortFacts, ...]:
        names = output_names(self._timeline.machine.compiled.model)
        return tuple(port_facts(*one) for one in zip(names, outputs or [None] * len(names), strict=True))
