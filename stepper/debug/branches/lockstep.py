"""Two courses of a run side by side: the iterations of their loops in pairs, by their place in the order of execution.

Both run on machines of their own. One that ends a loop earlier is paired as far as both go.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from stepper.debug.timeline import Timeline
from stepper.engine.frames import Activation, EventKind, Every, Frame, LoopEndObserver, LoopRun, loop_run
from stepper.engine.program import LoopPlan
from stepper.errors import StepperError

Order = tuple[float, ...]


class ClosedIteration(Struct, frozen=True, eq=False):
    """An iteration that was closed, with its frame as it stands until its side goes on.

    `numbers` are the iterations of the loops around, `run` is that of its own loop. Without them it is the model's own
    graph at the end of the run.
    """

    order: Order
    frame: Frame
    numbers: tuple[int, ...]
    run: LoopRun | None
    stack: Sequence[Frame]


Pair = tuple[ClosedIteration, ClosedIteration]


class Lockstep:
    """Two timelines that run from where they stand to their ends, the earlier one first.

    `ends` says how each ended, empty where it came to its end; `counts` are the iterations of each side by the
    identity of the loop's program.
    """

    def __init__(self, a: Timeline, b: Timeline) -> None:
        self._sides = (a, b)
        self._ends = ["", ""]
        self.counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self.is_finished = False

    @property
    def ends(self) -> tuple[str, str]:
        """Return the errors with which the two ended."""
        return self._ends[0], self._ends[1]

    def pairs(self) -> Iterator[Pair | None]:
        """Yield the iterations that both run, and None for each that one of them runs alone."""
        for one, other in self.closed():
            yield None if one is None or other is None else (one, other)

    def closed(self) -> Iterator[tuple[ClosedIteration | None, ClosedIteration | None]]:
        """Yield the iterations that both run, and with None in place of the other side those that one runs alone."""
        left, right = self._closed(0), self._closed(1)
        one, other = next(left, None), next(right, None)
        while one is not None or other is not None:
            forward_left = one is not None and (other is None or one.order <= other.order)
            forward_right = other is not None and (one is None or other.order <= one.order)
            yield one if forward_left else None, other if forward_right else None
            one = next(left, None) if forward_left else one
            other = next(right, None) if forward_right else other
        self.is_finished = True

    def _closed(self, side: int) -> Iterator[ClosedIteration]:
        timeline, counts = self._sides[side], self.counts[side]

        def ended(_stack: Sequence[Frame], activation: Activation) -> None:
            counts[id(activation.plan.program)] += activation.iteration + 1

        def failed(message: str) -> None:
            self._ends[side] = message

        timeline.machine.observers = (LoopEndObserver(ended),)
        return closed_iterations(timeline, failed)


def closed_iterations(timeline: Timeline, failed: Callable[[str], None]) -> Iterator[ClosedIteration]:
    """Yield the iterations that a timeline closes on its way to the end, and then the model's own graph.

    An error ends them: `failed` is told.
    """
    events = timeline.events(Every.ITERATION)
    while True:
        try:
            event = next(events, None)
        except StepperError as error:
            failed(str(error))
            return
        if event is None:
            return
        frame, plan = event.frame, None if event.frame.activation is None else event.frame.activation.plan
        if event.kind is EventKind.FINISHED:
            yield ClosedIteration((math.inf,), frame, (), None, (frame,))
        elif event.kind is EventKind.ITERATION and isinstance(plan, LoopPlan):
            stack = tuple(timeline.machine.stack)
            yield ClosedIteration(_order(stack), frame, _numbers(stack), loop_run(stack), stack)


def _order(stack: Sequence[Frame]) -> Order:
    """Of two iterations of one run the earlier has the smaller one; so it says which of two runs is behind."""
    found: list[float] = []
    for frame, inner in itertools.pairwise(stack):
        assert inner.activation is not None
        found += [frame.pc, inner.activation.iteration]
    return (*found, math.inf)


def _numbers(stack: Sequence[Frame]) -> tuple[int, ...]:
    """Return the iterations of the loops around, from the outermost inwards."""
    activations = [frame.activation for frame in stack if frame.activation is not None]
    return tuple(one.iteration for one in activations if isinstance(one.plan, LoopPlan))
