"""One breakpoint: what it is, at which moments it stops the run, and which moments it has counted.

What counts are moments of the run (ticks), not visits: a moment that is replayed is never counted again, and whether a
moment stops the run does not depend on how one came there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.breakpoints.checks import Check
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.causes.cause import Cause, Trigger
from stepper.engine.frames import Frame
from stepper.engine.program import Program
from stepper.wording import excerpt


class BreakKind(StrEnum):
    """Kind of a breakpoint: it waits for a place of the program, something about values, or a place to write a line."""

    AT = "break"
    WHEN = "when"
    LOG = "log"


class BreakDescription(Struct, frozen=True):
    """A breakpoint as it was asked for, to be shown, kept and set again.

    `hit`: it stops from the N-th moment on, or with `exactly` at that one alone, counted from where the run stood when
    it was set. `ignore`: how many of the moments after `ignored_from` do not stop. `once`: it goes after one stop.
    `line` is what a logpoint writes. `commands` are carried out by a prompt whenever it stops, but not while they
    `need_trust`: they came out of a file, and the user has not agreed to them.
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

    @property
    def specification(self) -> str:
        """Return what stands behind `break` or `log` to have it again; without what was to be ignored."""
        condition = f"if {self.condition}" if self.condition else ""
        if self.kind is BreakKind.LOG:
            parts = [self.text, f'"{self.line}"', condition]
        else:
            from stepper.debug.breakpoints.data_breakpoints import data_breakpoint

            is_expression = self.kind is BreakKind.WHEN and data_breakpoint(self.text) is None
            parts = [f"when {self.text}" if is_expression else self.text, condition]
            parts += [f"hit {self.hit}{' exactly' if self.exactly else ''}" if self.hit else ""]
        return " ".join(part for part in (*parts, "once" if self.once else "") if part)


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


Observer = Callable[[Sequence[Frame], int], None]


class Breakpoint:
    """A breakpoint of one run, or (number 0) what one movement waits for. `log` makes it a logpoint: it writes and
    never stops.

    `where` is the graph from which the names in it are seen: the one that ran when it was set. `note` is what there was
    to say about it then; it may be empty.
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
