"""A run compared with another one, value by value in every iteration: tallies of all, details of what is shown."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from msgspec import Struct, field

from stepper.debug.moments.difference import Change, Difference, difference
from stepper.debug.reference_values import GraphPath, ReferenceValues, ValuePlace, path_of, step_of
from stepper.element_types import Array
from stepper.engine.events import Event, EventKind, Every
from stepper.engine.frames import Frame
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Program
from stepper.errors import StepperError
from stepper.export.figures.value_summaries import MOST_ELEMENTS, ValueSummary, summary
from stepper.export.options import ValueDetail
from stepper.ir.model import Graph
from stepper.tensors.number_text import nested_text
from stepper.tensors.tolerances import Tolerances

SECONDS: Final = 30.0
"""For how long two runs are compared."""

ValueOfGraph = tuple[int, int, int]
"""A value of a graph: the graph by its identity, the id of the layer that computes it, the index of the output."""
Numbers = tuple[int, ...]
"""The iterations of the loops around a value, from the outermost inwards."""


class ValueBeside(Struct, frozen=True):
    """A value in both runs: how it differs, what it is in the other one, and, of few numbers, each difference."""

    difference: Difference
    theirs: ValueSummary
    gaps: str = ""


class DifferenceTally(Struct):
    """How often a value was compared, how often it was another one, and how: `first` is where first."""

    compared: int = 0
    different: int = 0
    within: int = 0
    mended: int = 0
    broken: int = 0
    largest: float = 0.0
    first: Numbers | None = None

    def add(self, found: Difference, numbers: Numbers) -> bool:
        """Add one comparison; True if the value is another one, beyond the tolerance."""
        self.compared += 1
        if found.change is Change.SAME:
            return False
        if found.is_within:
            self.within += 1
            return False
        self.different += 1
        self.mended += found.change is Change.MENDED
        self.broken += found.change is Change.BROKEN
        self.largest = max(self.largest, found.largest or 0.0)
        if self.first is None:
            self.first = numbers
        return True


class PartingPlace(Struct, frozen=True):
    """The first value in the order of execution that is another one."""

    value: ValueOfGraph
    name: str
    numbers: Numbers


class RunDifferences(Struct, frozen=True, eq=False):
    """A run beside another one, which has a `title`. `pairs` are those of the iterations that were to be kept.

    `counts` are the iterations of each run of a loop, by its body's graph and the iterations around it.
    `ends` are the errors that ended the runs. `is_complete`: both were compared to their ends.
    """

    title: str
    tallies: Mapping[ValueOfGraph, DifferenceTally]
    pairs: Mapping[tuple[Numbers, ValueOfGraph], ValueBeside]
    first: PartingPlace | None
    counts: Mapping[tuple[int, Numbers], int]
    ends: tuple[str, ...] = ()
    is_complete: bool = True

    def tally(self, graph: Graph, layer: int, output: int) -> DifferenceTally | None:
        """Return the tally of a value; None where it was not compared."""
        return self.tallies.get((id(graph), layer, output))


class _Walk(Struct):
    """A comparison under way."""

    reference: ReferenceValues
    keeps: Callable[[Numbers], bool]
    tolerances: Tolerances
    tallies: dict[ValueOfGraph, DifferenceTally] = field(default_factory=dict)
    pairs: dict[tuple[Numbers, ValueOfGraph], ValueBeside] = field(default_factory=dict)
    first: PartingPlace | None = None
    order: tuple[float, ...] = ()
    counts: dict[tuple[int, Numbers], int] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    places: dict[int, Mapping[int, int]] = field(default_factory=dict)

    def compare(self, frame: Frame, path: GraphPath, outer: tuple[Program, ...], *, is_whole: bool = True) -> None:
        """Compare the values of a graph that has run, or as far as it has (not `is_whole`)."""
        numbers = tuple(step.iteration for step in path if step.iteration is not None)
        if path and path[-1].iteration is not None:
            self.counts[id(frame.program.graph), numbers[:-1]] = numbers[-1] + 1
        around: list[float] = []
        for program, step in zip(outer, path, strict=True):
            around += [self._place(program, step.layer.id), -1 if step.iteration is None else step.iteration]
        is_kept = self.keeps(numbers)
        for (layer_id, output), slot in frame.program.slots.items():
            layer = frame.program.graph.by_id[layer_id]
            if layer.type in ("Constant", "Result") or not (is_whole or frame.is_current(slot)):
                continue
            ours = frame.values[slot]
            theirs = self.reference.value_at(ValuePlace(path, layer, output, frame))
            if theirs is None or ours is None:
                continue
            found = difference(theirs, ours, self.tolerances.of(layer, np.asarray(ours).dtype))
            key = id(frame.program.graph), layer_id, output
            tally = self.tallies.setdefault(key, DifferenceTally())
            if tally.add(found, numbers):
                order = (*around, self._place(frame.program, layer_id), math.inf)  # a loop behind what is in it
                if self.first is None or order < self.order:
                    self.first, self.order = PartingPlace(key, layer.name, numbers), order
            if is_kept:
                shown = summary(theirs, None, ValueDetail.FULL, measured=True)
                self.pairs[numbers, key] = ValueBeside(found, shown, _gaps(np.asarray(theirs), np.asarray(ours)))

    def _place(self, program: Program, layer: int) -> int:
        """Return the place of a layer in the order of execution; -1 for what is there from the beginning."""
        if id(program) not in self.places:
            self.places[id(program)] = {one.layer.id: at for at, one in enumerate(program.operations)}
        return self.places[id(program)].get(layer, -1)


def compare_runs(machine: Machine, reference: ReferenceValues, keeps: Callable[[Numbers], bool]) -> RunDifferences:
    """Return a run, which is made here, beside another one; `keeps` says of which iterations details are kept."""
    tolerances = Tolerances(exact=bool(getattr(reference, "is_exact", False)))
    walk, begin, is_complete = _Walk(reference, keeps, tolerances), time.monotonic(), True
    try:
        for event in machine.run(Every.ITERATION):
            _see(walk, machine, event)
            if time.monotonic() - begin > SECONDS:
                is_complete = False
                break
    except StepperError as error:
        walk.ends.append(str(error).splitlines()[0])
        _compare_stack(walk, machine)
    return RunDifferences(
        reference.title, walk.tallies, walk.pairs, walk.first, walk.counts, tuple(walk.ends), is_complete
    )


def _see(walk: _Walk, machine: Machine, event: Event) -> None:
    frame, stack = event.frame, machine.stack
    plan = None if frame.activation is None else frame.activation.plan
    if event.kind is EventKind.FINISHED:
        walk.compare(frame, (), ())
    elif event.kind is EventKind.ITERATION and isinstance(plan, LoopPlan):
        walk.compare(frame, path_of(stack), tuple(one.program for one in stack[:-1]))
    elif event.kind is EventKind.LEFT and not isinstance(plan, LoopPlan):
        outer = [one for one in stack if one is not frame]
        walk.compare(frame, (*path_of(outer), step_of(frame)), tuple(one.program for one in outer))


def _compare_stack(walk: _Walk, machine: Machine) -> None:
    """Compare what had been computed where a run failed."""
    stack = machine.stack
    try:
        for depth, frame in enumerate(stack):
            walk.compare(
                frame, path_of(stack[: depth + 1]), tuple(one.program for one in stack[:depth]), is_whole=False
            )
    except StepperError as error:
        walk.ends.append(str(error).splitlines()[0])


def _gaps(theirs: Array, ours: Array) -> str:
    """Return the difference of each element of a small tensor of numbers."""
    if ours.size > MOST_ELEMENTS or ours.shape != theirs.shape or ours.dtype.kind not in "fiu":
        return ""
    with np.errstate(all="ignore"):
        if ours.dtype.kind == "f":
            return nested_text(ours.astype(np.float64) - theirs.astype(np.float64))
        return nested_text(np.asarray(ours.astype(object) - theirs.astype(object), object).astype(np.int64))
