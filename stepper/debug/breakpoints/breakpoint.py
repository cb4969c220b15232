"""Define a breakpoint: its checks, the moments at which it stops, and its count of moments.

A check is a question at a place of a program. An iteration window keeps what a check found in earlier iterations. A
breakpoint counts moments of the run (ticks), not visits: a replayed moment is never counted again. Whether a moment
stops the run does not depend on how the run came there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec.structs import replace

from stepper.debug.causes.cause import Cause, Trigger
from stepper.debug.loop_runs import before_iteration
from stepper.debug.scopes import is_body
from stepper.debug.timeline import Timeline
from stepper.element_types import Indices
from stepper.engine.frames import Event, EventKind, Every, Frame, Frames
from stepper.engine.program import CompiledModel, LoopPlan, Program, host_of
from stepper.ir.model import Layer
from stepper.records import Record
from stepper.wording import excerpt

BEGUN = -1
"""The place at which an iteration (or a side of an If) has got its inputs."""

Causes = tuple[Cause, ...]
Test = Callable[[Frames], Causes | None]
"""Given the stack at a moment: what holds, as data, or None where nothing does."""


class ValueTest(NamedTuple):
    """Quick test of the values of a body: it does not hold where `read` gives False, or what `judged` says is false."""

    read: Callable[[Frame], object]
    judged: Callable[[Any], bool]


class Check(Record, eq=False):
    """Test a place: after operation `index` of a program, at BEGUN, or when it is closed.

    `index` is the number of the program's operations for a place where it is closed. A test may be made later, at any
    moment until the values of the iteration are gone. So a test reads nothing that is computed after its place.
    `prompt`: the test is to be made at once, because it is likely to stop the run. `at_entry`: the test is to be made
    as well where a loop is entered that runs no iteration. `guard` is shared by many checks and says quickly whether
    any of them can hold. `may_hold` says so of this check, or raises a StepperError with the words of the test.
    `of_values` says so if the check reads only values of the body's own.
    """

    program: Program
    index: int
    test: Test
    prompt: bool = False
    at_entry: bool = False
    guard: Guard | None = None
    may_hold: Callable[[Frames], bool] | None = None
    of_values: ValueTest | None = None


class Guard(Record, eq=False):
    """Test quickly whether any check of operations `first` to `last` can hold.

    False is certain. If a check may hold, `which` names its operations (None: any of them).
    """

    may_hold: Callable[[Frames, int, int], bool]
    which: Callable[[Frames, int, int], Container[int]] | None = None


def closed(program: Program) -> int:
    """Return the place at which an iteration of this body has been closed."""
    return len(program.operations)


def body_of(layer: Layer, compiled: CompiledModel) -> Program:
    """Return the program of a loop's body."""
    return next(program for program in compiled.programs if program.path and program.path[-1] is layer)


def bodies(compiled: CompiledModel) -> list[Program]:
    """Return the bodies of all loops that a Result needs."""
    needed = {id(plan.program) for outer in compiled.programs for one in outer.operations for plan in one.plans}
    return [program for program in compiled.programs if is_body(program) and id(program) in needed]


def plan_of(program: Program, compiled: CompiledModel) -> LoopPlan:
    """Return the plan of the loop whose body this is. UsageError if no Result needs it."""
    plan = host_of(compiled, program)[1]
    assert isinstance(plan, LoopPlan)
    return plan


def iteration_in(frame: Frame) -> int:
    """Return the iteration of a loop's frame."""
    return frame.active.iteration


def named(layer: Layer) -> str:
    """Return a layer for sentences: `MatMul 'proj'`."""
    return f"{layer.type} '{layer.name}'"


def place_text(program: Program, index: int) -> str:
    """Return the place of a check for sentences: `after MatMul 'proj' in Loop 'decoder'`."""
    moments = {BEGUN: "when an iteration begins", closed(program): "when an iteration is closed"}
    what = moments.get(index) or f"after {named(program.operations[index].layer)}"
    inside = " > ".join(map(named, program.path))
    return f"{what} in {inside}" if inside else f"{what} in the model's own graph"


# --- iteration windows ----------------------------------------------------------------------------------------------


_MISSING = object()


class IterationWindow:
    """Records of the last iterations of one body; `record` makes one from the stack when an iteration is closed.

    `back` is how many iterations before the present are asked for. The first iteration's record is kept, too, where
    `keeps_first` says so. Only the latest run of the body is remembered.
    """

    def __init__(
        self,
        timeline: Timeline,
        program: Program,
        record: Callable[[Frames], Any],
        back: int = 1,
        *,
        keeps_first: bool = False,
    ) -> None:
        self.program = program
        self._timeline = timeline
        self._record = record
        self._back = back
        self._keeps_first = keeps_first
        self._depth = len(program.path)
        self._frame: Frame | None = None
        self._run: Indices = ()
        self._records: dict[int, Any] = {}
        self._complete_from: int | None = None

    def past(self, stack: Frames, back: int = 1) -> Any:
        """Return the record of `back` iterations before the present one; None where the loop has no iteration that
        early.
        """
        return self.at(stack, iteration_in(stack[self._depth]) - back)

    def at(self, stack: Frames, iteration: int) -> Any:
        """Return the record of an iteration before the present one; None for a negative number."""
        if iteration < 0:
            return None
        if stack[self._depth] is not self._frame:
            self._turn_to(stack)
        found = self._records.get(iteration, _MISSING)
        if found is _MISSING:
            self._fetch(stack, iteration)
            found = self._records[iteration]
        return found

    def note(self, stack: Frames) -> None:
        """An iteration has been closed: remember it."""
        self.put(stack, self._record(stack))

    def put(self, stack: Frames, record: Any) -> None:
        """Remember this of the present iteration."""
        if stack[self._depth] is not self._frame:
            self._turn_to(stack)
        iteration = iteration_in(stack[self._depth])
        if iteration and iteration - 1 not in self._records:
            self._complete_from = None
        self._records[iteration] = record
        old = iteration - self._back - 1
        if old > 0 or not self._keeps_first:
            self._records.pop(old, None)

    def records(self, stack: Frames) -> Collection[Any]:
        """Return the records of the last iterations, none of them left out; there may be others among them."""
        present = iteration_in(stack[self._depth])
        if stack[self._depth] is not self._frame:
            self._turn_to(stack)
        first = max(0, present - self._back)
        if self._complete_from is None or self._complete_from > first:
            for iteration in range(first, present):
                self.at(stack, iteration)
            self._complete_from = first
        return self._records.values()

    def forget(self) -> None:
        """Nothing that is known holds any longer: the run takes another course."""
        self._frame, self._run, self._records = None, (), {}

    def _turn_to(self, stack: Frames) -> None:
        """Another frame: the same run of the body after a replay, or another run of it."""
        run = tuple(-1 if frame.activation is None else frame.activation.iteration for frame in stack[: self._depth])
        if run != self._run or self._frame is None:
            self._run, self._records = run, {}
        self._frame, self._complete_from = stack[self._depth], None
        present = iteration_in(self._frame)
        near = range(present - self._back, present + 1)
        first = {0} if self._keeps_first else set()
        self._records = {at: record for at, record in self._records.items() if at in near or at in first}

    def _fetch(self, stack: Frames, wanted: int) -> None:
        """Replay the iterations that may be asked for next, on another machine; the run itself stays where it is."""
        present = iteration_in(stack[self._depth])
        first = wanted if wanted == 0 and self._keeps_first else max(0, min(wanted, present - self._back))
        last = present - 1 if first or not self._keeps_first else wanted
        scout = self._timeline.scout()
        # The stack may be that of a replay already: of the same run, at or before the present of the timeline.
        before_iteration(scout, self._depth, first)
        fetched: dict[int, Any] = {}

        def is_last(event: Event) -> bool:
            frames = scout.machine.stack
            if event.kind is not EventKind.ITERATION or len(frames) != self._depth + 1:
                return False
            iteration = iteration_in(frames[-1])
            if first <= iteration <= last:
                fetched[iteration] = self._record(frames)
            return iteration >= last

        scout.forward(Every.ITERATION, is_last)
        self._turn_to(stack)
        self._records.update(fetched)


# --- breakpoints ----------------------------------------------------------------------------------------------------


class BreakKind(StrEnum):
    """Kind of a breakpoint: it waits for a place of the program, something about values, or a place to write a line."""

    AT = "break"
    WHEN = "when"
    LOG = "log"


class BreakDescription(Record):
    """Describe a breakpoint in the form that is shown, kept and set again.

    `hit`: it stops from the N-th moment on, or with `exactly` at the N-th moment alone, counted from where the run
    stood when it was set. `ignore`: how many of the moments after `ignored_from` do not stop. `once`: it goes after one
    stop. `line` is the text that a logpoint writes. `commands` are carried out by a prompt whenever it stops, but not
    while they `need_trust`: they came out of a file, and the user has not agreed to them.
    """

    kind: BreakKind
    text: str
    condition: str = ""
    hit: int = 0
    exactly: bool = False
    ignore: int = 0
    ignored_from: int = 0
    once: bool = False
    enabled: bool = True
    line: str = ""
    commands: tuple[str, ...] = ()
    need_trust: bool = False

    def __str__(self) -> str:
        parts = [f"{self.kind} {self.text}", f"if {self.condition}" if self.condition else ""]
        parts += [f"hit {self.hit}{' exactly' if self.exactly else ''}" if self.hit else ""]
        parts += [f"ignore {self.ignore}" if self.ignore else "", "once" if self.once else ""]
        parts += [f'"{self.line}"' if self.line else "", "" if self.enabled else "(disabled)"]
        return " ".join(part for part in parts if part)


class Count:
    """Counts moments after `base`, and remembers the tick of the `wanted`-th. All up to `covered` have been counted."""

    def __init__(self, base: int, wanted: int = 0) -> None:
        self.base = self.covered = base
        self.wanted = wanted
        self.seen = 0
        self.reached: int | None = None

    def add(self, tick: int) -> None:
        """A moment; one that was counted before is not counted again."""
        if tick > self.covered:
            self.covered = tick
            self.seen += 1
            if self.seen == self.wanted:
                self.reached = tick

    def cover(self, tick: int) -> None:
        """All moments up to this tick were offered."""
        self.covered = max(self.covered, tick)

    @property
    def state(self) -> Counted:
        """Return what it has come to."""
        return Counted(self.base, self.covered, self.seen, self.reached)

    @state.setter
    def state(self, state: Counted) -> None:
        self.base, self.covered, self.seen, self.reached = state

    def forget_after(self, tick: int) -> None:
        """Later moments will be others: what was counted beyond is to be counted again."""
        if self.covered > tick:
            self.base = self.covered = min(self.base, tick)
            self.seen, self.reached = 0, None


class Counted(NamedTuple):
    """State of a count, to be kept: counted after `base` up to and with `covered`, `seen` moments."""

    base: int
    covered: int
    seen: int
    reached: int | None


Observer = Callable[[Frames, int], None]


class Breakpoint:
    """Hold a breakpoint of one run, or (number 0) the aim that one movement waits for.

    `log` makes it a logpoint: it writes and never stops. `where` is the graph from which the names in it are seen: the
    graph that ran when it was set. `note` is a remark from when it was set; it may be empty.
    """

    def __init__(
        self,
        number: int,
        description: BreakDescription,
        checks: Sequence[Check],
        windows: Sequence[IterationWindow],
        base: int,
        where: Program,
        log: Observer | None = None,
        trigger: Trigger = Trigger.BREAKPOINT,
    ) -> None:
        self.number = number
        self.trigger = trigger
        self.description = description
        self.where = where
        self.checks = tuple(checks)
        self.windows = tuple(windows)
        self.log = log
        self.note = ""
        self._hits = Count(base, description.hit)
        self._ignored = Count(description.ignored_from, description.ignore)

    def __repr__(self) -> str:
        return f"<Breakpoint {self.number}: {excerpt(str(self.description), 200)} ({self.hits} hits)>"

    @property
    def hits(self) -> int:
        """At how many moments it held, of those that were passed since it was set, each counted once."""
        return self._hits.seen

    @property
    def counts(self) -> tuple[Counted, Counted]:
        """Return how far its hits and the moments that it ignores are counted."""
        return self._hits.state, self._ignored.state

    @counts.setter
    def counts(self, counts: tuple[Counted, Counted]) -> None:
        self._hits.state, self._ignored.state = counts

    def ignore(self, count: int, tick: int) -> None:
        """Do not stop at the next `count` moments after this tick."""
        self._ignored = Count(tick, count)

    def passed(self, tick: int, *, forward: bool) -> bool:
        """It holds at this moment; whether that stops the run."""
        if forward:
            self._hits.add(tick)
        if self.description.hit:
            reached = self._hits.reached
            if reached is None or tick < reached or (self.description.exactly and tick > reached):
                return False
        if self._ignored.wanted and tick > self._ignored.base:
            # The last moment that is ignored is the one at which the count is reached.
            if forward:
                self._ignored.add(tick)
            return self._ignored.reached is not None and tick > self._ignored.reached
        return True

    def signed(self, causes: Iterable[Cause]) -> list[Cause]:
        """Return what held as the causes of its stop: with its number, or as the anomaly or the aim that was sought."""
        return [replace(cause, trigger=self.trigger, number=self.number) for cause in causes]

    # --- counting ------------------------------------------------------------------------------------------------

    @property
    def needs_counting(self) -> bool:
        """True if it depends on moments before, so that none may be left out."""
        waits_for_hit = self.description.hit > 0 and self._hits.reached is None
        return waits_for_hit or (self._ignored.wanted > 0 and self._ignored.reached is None)

    @property
    def counted_to(self) -> int:
        """Up to which tick all moments were counted."""
        ignored = self._ignored.covered if self._ignored.wanted else self._hits.covered
        return min(self._hits.covered, ignored)

    def counted(self, tick: int) -> None:
        """All moments up to this tick were looked at."""
        self._hits.cover(tick)
        self._ignored.cover(tick)

    def forget_after(self, tick: int) -> None:
        """The run takes another course from this tick on."""
        self._hits.forget_after(tick)
        self._ignored.forget_after(tick)
        for window in self.windows:
            window.forget()


class Expected(NamedTuple):
    """A pattern of operations in which NaN and Inf are expected, and the graph from which it is seen."""

    pattern: str
    where: Program
