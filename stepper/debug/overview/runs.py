"""The run behind an overview, beside the present, to be paused and continued; where its NaN and Inf first appear."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from math import inf
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Breakpoint, Causes, Check, Guard
from stepper.debug.breakpoints.breakpoints import BreakpointWatcher
from stepper.debug.breakpoints.kinds.non_finite import non_finite_checks
from stepper.debug.causes.cause import Element, NonFinite, NonFiniteKind, OperandValue
from stepper.debug.causes.element_walks import birth_of
from stepper.debug.causes.run_walk import EarlierFrames, ValueSpot
from stepper.debug.loop_runs import Enough
from stepper.debug.overview.overview_facts import (
    Birth,
    ConstantFacts,
    Failure,
    ModelPortFacts,
    Overview,
    RunState,
    port_facts,
)
from stepper.debug.overview.run_recorder import RunRecorder
from stepper.debug.provenance.operation_at import file_of, program_of
from stepper.debug.provenance.question import element_asked
from stepper.debug.timeline import Edit, Timeline, same_by_tick
from stepper.element_types import FLOATING, Array, is_floating
from stepper.engine.frames import Constants, EventKind, Frames, Snapshot
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Value
from stepper.engine.run import output_names
from stepper.errors import Paused, StepperError
from stepper.ir.model import LayerSite, layer_site
from stepper.query.address_syntax import Address
from stepper.tensors.statistics import chunks

if TYPE_CHECKING:
    from stepper.engine.frames import Constants
    from stepper.engine.program import Program
    from stepper.ir.weights import Weights

MOST_BIRTHS = 64
MOST_RELATED = 4
"""First origins of NaN or Inf that are checked for an earlier origin they come from."""
MOST_FOLLOWED = 4
"""Origins of a loop whose operations get rows."""


class BirthSearch:
    """Looks through a run for operations that give NaN or Inf for inputs that have none.

    `found` are those known so far; up to `tick` everything was looked through.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._tried_later = False
        self._related: set[int] = set()
        self._watcher: BreakpointWatcher | None = None
        self.found: list[Birth] = []
        self.tick = 0

    def look(self, end: int, later: int | None, enough: Enough) -> None:
        """Look on up to a tick, in the machine of the timeline; whoever calls puts it back.

        First from where it was left; if that is `enough` before any was found, and a row is known to have one `later`,
        then from there as well.
        """
        machine = self._timeline.machine
        if self._watcher is None:
            self._watcher = births_watcher(machine, self.found)
        watcher = self._watcher
        machine.observers = ()
        self.tick = self._look(watcher, self.tick, end, enough)
        if not self.found and later is not None and later > self.tick and not self._tried_later:
            self._tried_later = True
            self._look(watcher, later, end, lambda: bool(self.found))
        self.found.sort(key=lambda birth: birth.tick)

    def _look(self, watcher: BreakpointWatcher, begin: int, end: int, enough: Enough) -> int:
        """Return the tick up to which it was looked."""
        timeline, machine = self._timeline, self._timeline.machine
        if begin >= end:
            return begin
        timeline.return_to(begin)
        machine.watcher = watcher
        watcher.forward()
        try:
            for event in timeline.stretches(end):
                watcher.examine()
                if len(self.found) >= MOST_BIRTHS:
                    return end
                if event.kind is EventKind.PAUSED or enough():
                    break
        except Paused:
            pass
        except StepperError:
            watcher.examine()
            return end
        return machine.tick

    @property
    def are_related(self) -> bool:
        """True if it is known which of the first origins come from other origins."""
        return all(birth.tick in self._related for birth in self.found[1:MOST_RELATED])

    def relate(self) -> None:
        """Find out which of the first origins come from others; whoever calls puts the machine back."""
        self._timeline.machine.watcher, self._timeline.machine.observers = None, ()
        for place, birth in enumerate(self.found[:MOST_RELATED]):
            if not place or birth.tick in self._related:
                continue
            try:
                origin = None if all(one.is_finite for one in birth.cause.operands) else self._origin(birth)
            except Paused:  # found out another time
                self._timeline.machine.request_pause(wanted=False)
                return
            self._related.add(birth.tick)
            earlier = (one for one in self.found[:place] if one.cause.location.operation == origin)
            after = next(earlier, None) if origin is not None else None
            if after is not None:
                self.found[place] = replace(birth, after=after.tick)

    def _origin(self, birth: Birth) -> LayerSite | None:
        """Return the operation where the NaN or Inf that an origin was given first appeared.

        None if no operation is found.
        """
        timeline = self._timeline
        timeline.return_to(birth.tick)
        with closing(EarlierFrames(timeline)) as frames:
            seat = frames.present
            frame = frames.frame(seat)
            site = birth.cause.location.operation
            operation = frame.program.operations[frame.pc - 1] if frame.pc else None
            if site is None or operation is None or operation.layer.id != site.id:
                return None
            for one in birth.cause.operands:
                slot = operation.inputs[one.input]
                element = _bad_element(np.asarray(frame.values[slot]), one)
                if element is not None:
                    spot = ValueSpot(seat, slot, element)
                    found = birth_of(frames, timeline, spot)
                    return None if found is None else found.location.operation
        return None

    def followed(self) -> dict[int, tuple[tuple[int, int, int], ...]]:
        """Return the outputs of operations that deserve a row, by the `id` of the program of their loop's body.

        Each is (index of the operation, of its output, slot). Inside of an If there is no row.
        """
        found: dict[int, list[tuple[int, int, int]]] = {}
        for birth in self.found:
            place = birth.cause.location
            if place.operation is None or not place.path or place.path[-1].iteration is None:
                continue
            program, output = program_of(place, self._timeline.machine.compiled), place.output or 0
            index = program.indices.get(place.operation.id)
            if index is None:
                continue
            one = index, output, program.operations[index].outputs[output]
            known = found.setdefault(id(program), [])
            if one not in known and len(known) < MOST_FOLLOWED:
                known.append(one)
        return {key: tuple(places) for key, places in found.items()}


def _bad_element(value: Array, operand: OperandValue) -> Element | None:
    """Return the element of an operand that is NaN or infinite: the one that counts, else the first of several."""
    if operand.is_finite:
        return None
    if operand.element is None:
        return element_asked(value, Address())
    is_bad = value.dtype in FLOATING and not bool(np.isfinite(value[operand.element]))
    return operand.element if is_bad else None


def births_watcher(machine: Machine, found: list[Birth]) -> BreakpointWatcher:
    """Return a watcher that stops nothing, and notes the first NaN and the first Inf of each operation."""
    watcher = BreakpointWatcher(machine)
    watcher.watch([_Births(found, machine.compiled)])
    return watcher


class _Births(Breakpoint):
    """A breakpoint that notes the first NaN and the first Inf of each operation, and never stops."""

    def __init__(self, found: list[Birth], compiled: CompiledModel) -> None:
        self._found, self._held = found, list[NonFinite]()
        words = tuple(NonFiniteKind)
        guards: dict[int, Guard] = {}
        found_by = [one for word in words for one in non_finite_checks(word, compiled, frozenset(), guards)]
        checks = [self._noting(one) for one in found_by]
        super().__init__(0, BreakDescription(BreakKind.WHEN, "nan"), checks, (), 0, compiled.main)

    def _noting(self, check: Check) -> Check:
        is_known = False

        def test(stack: Frames) -> Causes | None:
            nonlocal is_known
            causes = None if is_known else check.test(stack)
            if causes is None:
                return None
            is_known = True
            self._held = [cause for cause in causes if isinstance(cause, NonFinite)]
            return causes

        return replace(check, test=test)

    def passed(self, tick: int, *, forward: bool) -> bool:
        """Note what held; it stops nothing."""
        for cause in self._held:
            same = (
                place
                for place, one in enumerate(self._found)
                if (one.cause.kind, one.cause.location.operation) == (cause.kind, cause.location.operation)
            )
            known = next(same, None)
            if known is None:
                self._found.append(Birth(tick, cause))
            elif tick < self._found[known].tick:
                self._found[known] = Birth(tick, cause)
        return False


_BLOCK = 2**20
"""Elements that are looked at together."""
_LARGE = 2**24
"""Bytes of a value whose pages of the file are let go once they were looked at."""


class _Count(NamedTuple):
    """How many elements of a value are not finite."""

    size: int = 0
    nan: int = 0
    infinite: int = 0


_FINITE = _Count()
_Counts = dict[tuple[int, int], _Count]
"""By the `id` of the program, and slot; finite values have none."""


class ConstantSearch:
    """Looks through the constants that a model's programs begin with, each value once, in blocks.

    A search continues where it was left. A run shows none of them: values computed from Constants alone in a body are
    computed before the run.
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._counts: _Counts = {}
        self._blocks = self._look()
        self.is_over = False

    def look(self, enough: Enough) -> None:
        """Look on to the end, or until that is `enough`; one block at least."""
        for _block in self._blocks:
            if enough():
                return
        self.is_over = True

    def _look(self) -> Iterator[None]:
        for program in self._compiled.programs:
            for slot, value in enumerate(program.template):
                if value is None or not is_floating(value.dtype):
                    continue
                found = _FINITE
                for count in _counted(np.asarray(value), self._compiled.model.weights):
                    found = count
                    yield
                if found.nan or found.infinite:
                    self._counts[id(program), slot] = found

    def found(self, changed: Mapping[int, Constants]) -> tuple[ConstantFacts, ...]:
        """Return what is not finite so far; `changed` are constants that a user has set, by the `id` of the program."""
        counts = self._counts if not changed else self._with(changed)
        return tuple(one for program in self._compiled.programs for one in self._facts(program, counts))

    def _with(self, changed: Mapping[int, Constants]) -> _Counts:
        counts = dict(self._counts)
        for key, constants in changed.items():
            for slot, value in constants.values.items():
                blocks: Iterable[_Count] = _counted(np.asarray(value), None) if is_floating(value.dtype) else ()
                *_, counts[key, slot] = _FINITE, *blocks
        return counts

    def _facts(self, program: Program, counts: _Counts) -> Iterator[ConstantFacts]:
        """Yield the Constants of a program, and the operations that make NaN or Inf of others that have none."""
        key, file = id(program), file_of(self._compiled)
        for layer in program.graph.layers:
            size, nan, infinite = counts.get((key, program.slots.get((layer.id, 0), -1)), _FINITE)
            if layer.type == "Constant" and (nan or infinite):
                yield ConstantFacts(layer_site(layer, file), size, nan, infinite)
        for operation in program.folded:
            before = [counts.get((key, slot), _FINITE) for slot in operation.inputs]
            for output, slot in enumerate(operation.outputs):
                size, nan, infinite = counts.get((key, slot), _FINITE)
                nan = 0 if any(one.nan for one in before) else nan
                infinite = 0 if any(one.infinite for one in before) else infinite
                if nan or infinite:
                    site = layer_site(operation.layer, file)
                    yield ConstantFacts(site, size, nan, infinite, output)


def _counted(value: Array, weights: Weights | None) -> Iterator[_Count]:
    """Yield what is not finite among more and more of the elements; pages of the file do not stay in memory for it."""
    nan = infinite = 0
    for block in chunks(value, _BLOCK):
        if not np.isfinite(block).all():
            nan += int(np.isnan(block).sum())
            infinite += int(np.isinf(block).sum())
        if weights is not None and value.nbytes >= _LARGE:
            weights.let_go(block)
        yield _Count(value.size, nan, infinite)


BIRTH_SECONDS = 0.4
"""For how many seconds NaN and Inf origins are looked for after a run that has a limit."""
_INTERVAL = 1 / 8  # seconds; each picture takes the interpreter from the run
_SHARE = 60
"""A picture for `progress` is made again after so many times as long as the last one took."""

Progress = Callable[[Overview], object]
Followed = dict[int, tuple[tuple[int, int, int], ...]]


_ENDED = (RunState.FINISHED, RunState.FAILED)


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
    """The overview of a debugger's run with its present edits.

    `go` fills the overview, and may be called again to continue.
    """

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
        """Run on from where it was left; the present of the debugger stays.

        `births`: look for origins, too.
        """
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
        """Look further for origins of NaN and Inf in what has run and through constants.

        Operations that are origins get rows. The present stays. Nothing was kept of these operations, so the run is
        recorded once more, with them.
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
