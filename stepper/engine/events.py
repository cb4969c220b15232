"""Events of a running machine: one for each move that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from stepper.engine.frames import Activation, Frame


class Every(IntEnum):
    """Granularity of the events of a run, from nothing but the end to every operation."""

    END = 0
    LOOP = 1
    ITERATION = 2
    OPERATION = 3


class EventKind(IntEnum):
    """Kind of an event. The tens are the coarsest `Every` under which it is yielded."""

    FINISHED = 0
    PAUSED = 1
    STOPPED = 2
    REACHED = 3
    ENTERED = 10
    LEFT = 11
    ITERATION = 20
    OPERATION = 30
    BEGUN = 31

    def is_told(self, every: Every) -> bool:
        """Return True if a run that asks for `every` hears of it."""
        return self // 10 <= every


class Watcher(Protocol):
    """Looks on while a machine runs and may stop it; asked only about what it names, so that the rest costs nothing."""

    @property
    def stops(self) -> Mapping[int, tuple[int, ...]]:
        """By `id` of a program, ascending: the operations after which `after_operation` is asked.

        -1: after an iteration has got its inputs, and after a frame was opened (a loop's, without an iteration yet).
        """

    @property
    def watches_iterations(self) -> bool:
        """True if `after_iteration` is to be asked."""

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool] | None:
        """`after_iteration` for this frame alone, as fast as may be; None where its iterations are of no interest."""

    def after_operation(self, frame: Frame, index: int) -> bool:
        """Return an operation that it named has run; whether to stop."""

    def after_iteration(self, frame: Frame) -> bool:
        """Take note of a closed iteration of a loop. Return True to stop."""


_NUMPY_FALSE: Final = np.False_
"""What comparisons of numpy's scalars give where they do not hold; there is one such object."""


@dataclass(frozen=True, slots=True)
class ValueWatch:
    """An iteration watch that has to be asked only where some values say so.

    `read` gets the values in a tuple, in the order of `slots`, and after them the number of the iteration. The watch
    need not be asked where that gives False, or what it gives is judged false; it is where either raises an exception.
    """

    ask: Callable[[Frame], bool]
    read: Callable[[tuple[Any, ...]], object]
    judged: Callable[[Any], bool]
    slots: tuple[int, ...]

    def is_due(self, frame: Frame) -> bool:
        """Return True if it is to be asked about an iteration that was closed."""
        assert frame.activation is not None
        try:
            value = self.read((*map(frame.values.__getitem__, self.slots), frame.activation.iteration))
            return value is not _NUMPY_FALSE and value is not False and self.judged(value)
        except Exception:  # it says itself what is wrong
            return True

    def __call__(self, frame: Frame, /) -> bool:
        """Return True to stop; to be called after an iteration."""
        return self.is_due(frame) and self.ask(frame)


class Taps(NamedTuple):
    """Values of a straight body to be handed over after each of up to `most` iterations: (function, slot) pairs.

    `done` is called when so many were made, or fewer.
    """

    values: Sequence[tuple[Callable[[Any], object], int]]
    most: int
    done: Callable[[], None]


class RunObserver:
    """Told of the loops and branches of a run as they begin, go on and end; it never stops the run.

    The last frame of `stack` is that of the loop or branch; after it was left, the one around it.
    """

    def entered(self, stack: Sequence[Frame]) -> None:
        """A loop or a branch was entered."""

    def iteration_closed(self, frame: Frame) -> None:
        """An iteration of a loop was closed."""

    def taps(self, frame: Frame) -> Taps | None:
        """Return what it wants of the next iterations of a straight body, of which `iteration_closed` does not tell.

        A watcher that is an observer, too, is not asked about iterations that its taps are handed.
        """
        return None

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """A loop was left."""

    def branch_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """A branch was left."""

    def changed(self, frame: Frame, slot: int | None) -> None:
        """The value of a slot of a frame was changed by hand; None: how long its loop goes on."""


class LoopEndObserver(RunObserver):
    """Calls a function with (stack, activation) when a loop was left."""

    def __init__(self, call: Callable[[Sequence[Frame], Activation], None]) -> None:
        self._call = call

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """Call the function."""
        self._call(stack, activation)


class Event(NamedTuple):
    """A move of the machine, just made.

    PAUSED: a pause was asked for; STOPPED: the watcher did so; REACHED: the tick that was asked for has come.
    ENTERED and LEFT: a loop or a branch of an If; BEGUN: an iteration has got its inputs; ITERATION: it has run, its
    pieces are recorded, and whether it was the last is known; OPERATION: one operation has run.
    `tick` is the number of moves so far, the same in every replay. `frame` is where it happened: live state, to be
    looked at before the next event.
    """

    kind: EventKind
    tick: int
    frame: Frame
