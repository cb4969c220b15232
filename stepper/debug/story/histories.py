"""Elements of a story in all iterations around its path: one replay of the loop, bounded in iterations and time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element, Scalar
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.iterations.loop_runs import go_to_latest
from stepper.debug.timeline import Timeline
from stepper.debug.visits import before_iteration
from stepper.engine.frames import Event, EventKind, Every, Frame
from stepper.engine.program import LoopPlan, Program
from stepper.errors import Paused, StepperError

MOST_BEFORE: Final = 256
"""Iterations before the path of which something is shown."""
MOST_SHOWN: Final = 1024
SECONDS: Final = 0.5
"""For how long iterations are computed anew."""

Path = tuple[int, ...]


class HistoryWish(NamedTuple):
    """An element of what a slot of a program holds; `is_shape`: of its shape, by axis."""

    program: Program
    slot: int
    element: Element
    is_shape: bool = False

    @property
    def key(self) -> tuple[int, int, Element, bool]:
        """Return what tells it from others."""
        return id(self.program), self.slot, self.element, self.is_shape


def path_of(frames: Iterable[Frame]) -> Path:
    """Return the iterations in which these frames stand, from the outermost loop inwards."""
    activations = (frame.activation for frame in frames)
    return tuple(one.iteration for one in activations if one is not None and isinstance(one.plan, LoopPlan))


class ElementHistories:
    """The iterations of a loop around those of a path, and elements in them.

    The loop runs `total` iterations (of nested loops: those of the innermost), with that in which an error ends it;
    unless `counts_all`, at least so many.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._owner = timeline.machine
        self._scout = copy.copy(timeline)
        self._scout.machine = timeline.machine.twin()
        self.iterations: list[Path] = []
        self.total = 0
        self.counts_all = False
        self._values: dict[tuple[int, int, Element, bool], dict[Path, Scalar | None]] = {}
        self._ticks: dict[Path, int] = {}

    def record(self, wanted: Iterable[HistoryWish], entered: int, paths: list[Path]) -> None:
        """Read elements in the run of the loop that was entered at a tick, around the iterations of `paths`.

        A pause or a lack of time ends it early.
        """
        programs: dict[int, list[HistoryWish]] = {}
        for one in wanted:
            programs.setdefault(id(one.program), []).append(one)
            self._values[one.key] = {}
        deepest = max((len(path) for path in paths), default=0)
        self._owner.followers = (*self._owner.followers, self._scout.machine)
        try:
            self._go(entered, paths)
            self._read(programs, deepest, max(paths, default=()))
        except (Paused, StepperError):
            self._owner.request_pause(wanted=False)
        finally:
            self._owner.followers = tuple(one for one in self._owner.followers if one is not self._scout.machine)

    def _go(self, entered: int, paths: list[Path]) -> None:
        """Stand shortly before the first iteration that is shown."""
        self._scout.goto(entered)
        first = min((path[0] for path in paths if path), default=0)
        begin = max(0, first - (MOST_BEFORE if max(map(len, paths), default=0) < 2 else 4))
        depth = next((k for k, frame in enumerate(self._scout.machine.stack) if path_of([frame])), None)
        if begin and depth is not None:
            before_iteration(self._scout, depth, begin)

    def _read(self, programs: dict[int, list[HistoryWish]], deepest: int, last: Path) -> None:
        machine, started = self._scout.machine, perf_counter()
        outermost = next((k for k, frame in enumerate(machine.stack) if path_of([frame])), len(machine.stack))
        begins, counts_alone = path_of(machine.stack)[:1] in ((), (-1,)), False

        def see(event: Event) -> bool:
            if event.kind is EventKind.LEFT and len(machine.stack) <= outermost:
                self.counts_all = begins or deepest == 1
                return True
            is_late = perf_counter() - started > SECONDS or machine.pause_requested
            path, frame = path_of(machine.stack), machine.stack[-1]
            if counts_alone:
                self.total = max(self.total, path[0] + 1)
                return is_late
            if event.kind is not EventKind.ITERATION:
                return False
            if len(path) == deepest:
                self.iterations.append(path)
            self._ticks[path] = event.tick
            for one in programs.get(id(frame.program), ()):
                self._values[one.key][path] = _element(frame.values[one.slot], one)
            return path > last and (len(self.iterations) >= MOST_SHOWN or is_late)

        has_failed = self._has_failed(see)
        self.total = self.iterations[-1][0] + 1 if deepest == 1 and self.iterations else len(self.iterations)
        if not has_failed and deepest == 1 and not self.counts_all and not machine.finished:
            go_to_latest(self._scout, outermost)
            counts_alone = True
            has_failed = self._has_failed(see)
        if has_failed:
            self._count_the_last(outermost, deepest, begins=begins)

    def _has_failed(self, see: Callable[[Event], bool]) -> bool:
        """Run on until an event is the one that is looked for; True if an error of the run comes before."""
        try:
            self._scout.forward(Every.ITERATION, see)
        except Paused:
            raise
        except StepperError:
            return True
        return False

    def _count_the_last(self, outermost: int, deepest: int, *, begins: bool) -> None:
        """Count the iterations of a loop that an error has ended, with the one in which that was."""
        stack = self._scout.machine.stack
        path = path_of(stack)
        if len(stack) <= outermost or not path:
            return
        if deepest == 1:
            self.total, self.counts_all = path[0] + 1, True
        else:
            is_open = len(path) == deepest and path[-1] >= 0 and path not in self._ticks
            self.total, self.counts_all = len(self.iterations) + is_open, begins

    def of(self, wanted: HistoryWish) -> tuple[Scalar | None, ...]:
        """Return an element in all iterations, None where it is not known."""
        known = self._values.get(wanted.key, {})
        depth = sum(layer.is_loop for layer in wanted.program.path)
        return tuple(known.get(path[:depth]) for path in self.iterations)

    def closed_at(self, path: Path) -> int:
        """Return the tick at which an iteration was closed; 0 where it was not seen."""
        return self._ticks.get(path, 0)


def _element(value: Any, wanted: HistoryWish) -> Scalar | None:
    if value is None:
        return None
    element = wanted.element
    array = np.array(np.shape(value), np.int64) if wanted.is_shape else np.asarray(value)
    if array.ndim != len(element) or any(at >= size for at, size in zip(element, array.shape, strict=True)):
        return None
    return scalar_of(array[element])
