"""Views beside a stop, as plain frozen data: breakpoints and where they sit, watches, a run under way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from msgspec import Struct

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Breakpoint
from stepper.debug.inspection.explanations import never_ends
from stepper.debug.stop_scope import WatchReading
from stepper.debug.watches import Watch, Watches
from stepper.engine.frames import Frame, LoopRun
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from stepper.ir.model import Layer
from stepper.records import Brief

MOST_PLACES: Final = 50
"""Of a breakpoint that are told one by one."""


class BreakView(Brief, Struct, frozen=True, eq=False):
    """A breakpoint; `places` are the operations at which it sits, as (id of the program, index).

    Of one that waits for something about values wherever it happens there are none. `first_places` are the first of
    them with their programs, as a Check has them. `ignored` is how many moments of those that it is to ignore have gone
    by.
    """

    unshown: ClassVar = ("places", "first_places")

    number: int
    kind: BreakKind
    text: str
    sentence: str
    conditional: bool
    enabled: bool
    hits: int
    ignored: int
    description: BreakDescription
    places: frozenset[tuple[int, int]]
    first_places: tuple[tuple[Program, int], ...] = ()

    def is_at(self, program: Program, index: int) -> bool:
        """True if it sits at this operation."""
        return (id(program), index) in self.places


def break_views(breakpoints: Iterable[Breakpoint]) -> tuple[BreakView, ...]:
    """Return all breakpoints of a run."""
    return tuple(_break_view(breakpoint) for breakpoint in breakpoints)


def _break_view(breakpoint: Breakpoint) -> BreakView:
    description = breakpoint.description
    checks = breakpoint.checks if description.kind is not BreakKind.WHEN else ()
    return BreakView(
        number=breakpoint.number,
        kind=description.kind,
        text=description.text,
        sentence=str(description),
        conditional=bool(description.condition or description.hit),
        enabled=description.enabled,
        hits=breakpoint.hits,
        ignored=breakpoint.counts[1].seen,
        description=description,
        places=frozenset((id(check.program), check.index) for check in checks),
        first_places=tuple((check.program, check.index) for check in checks[:MOST_PLACES]),
    )


class WatchView(Struct, frozen=True, eq=False):
    """A watch: what it is now, and what it was in the iterations of this run of the loop at which one has stopped.

    `addresses` are those of the values that it reads; `body` is that of the innermost loop which has one of them, and
    `outer` the iterations around that which it names.
    `grows`: it is a value to which each iteration joins a piece, and is shown by these.
    `title` is the expression with its format.
    """

    number: int
    text: str
    now: WatchReading | None
    iterations: tuple[WatchReading, ...]
    addresses: tuple[str, ...] = ()
    body: Program | None = None
    grows: bool = False
    title: str = ""
    outer: tuple[int | None, ...] = ()


def watch_views(watches: Watches, run: LoopRun | None, where: Program) -> tuple[WatchView, ...]:
    """Return all watches seen from the graph `where`; `run` is that of the loop whose iterations are wanted."""
    return tuple(
        WatchView(
            watch.number,
            watch.text,
            watch.now,
            _readings(watch, run),
            _addresses(watch),
            watches.body(watch, where),
            watches.piece(watch, where) is not None,
            watch.title,
            watches.outer(watch, where),
        )
        for watch in watches
    )


def _addresses(watch: Watch) -> tuple[str, ...]:
    return tuple(str(address) for address in watch.expression.addresses)


def _readings(watch: Watch, run: LoopRun | None) -> tuple[WatchReading, ...]:
    found = {
        reading.iteration: reading for reading in watch.readings if reading.iteration is not None and reading.run == run
    }
    return tuple(found[iteration] for iteration in sorted(found))


class Glance(Struct, frozen=True):
    """Place of a run while it goes on: integers that were read one after another, so they may be of near moments.

    `loop` is the innermost loop, `endless` the outermost one that nothing can end.
    """

    tick: int
    iterations: tuple[int | None, ...]
    loop: Layer | None = None
    endless: Layer | None = None

    @property
    def iteration(self) -> int | None:
        """Return the iteration of the innermost loop; None outside of loops."""
        return next((one for one in reversed(self.iterations) if one is not None), None)


def glance(machine: Machine) -> Glance:
    """Return how far a machine has come; may be asked from any thread while another one runs it, and never waits."""
    tick, stack = machine.tick, list(machine.stack)
    running = [frame.activation for frame in stack if frame.activation is not None]
    loops = [one for one in running if one.operation.layer.is_loop]
    endless = next((one.operation.layer for one in loops if never_ends(one)), None)
    loop = loops[-1].operation.layer if loops else None
    return Glance(tick, tuple(_iteration(frame) for frame in stack), loop, endless)


def _iteration(frame: Frame) -> int | None:
    activation = frame.activation
    return activation.iteration if activation is not None and activation.operation.layer.is_loop else None
