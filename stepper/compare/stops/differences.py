"""Differences of a frame's values from another run: how large, made here or carried in; the first of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from stepper.compare.references.protocol import LoopOutcome
from stepper.compare.run.metrics import Distance, measure
from stepper.compare.run.origin_of_error import recomputed
from stepper.compare.run.rounding import inputs_of, measure_output
from stepper.debug.reference_values import ReferenceValues, ValuePlace, path_of
from stepper.debug.scopes import is_loop
from stepper.element_types import Array
from stepper.engine.frames import EventKind, Every, Frame, LoopRun, Phase, loop_run, place
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan
from stepper.errors import StepperError
from stepper.ir.model import Layer
from stepper.records import Brief
from stepper.tensors.tolerances import Tolerance, Tolerances

Values = Callable[[Layer, int], Array | None]
"""Value of the other run for an output of a layer; None where it has none."""


class Standing(StrEnum):
    """Relation of a value to the other run's: same bits, within or above the tolerance, and where it comes from."""

    SAME = "same"
    WITHIN = "within"
    HERE = "made here"
    CARRIED = "carried in"
    ABOVE = "above"


class ValueDifference(Brief, Struct, frozen=True, eq=False):
    """Difference of an operation's output that is furthest from the other's.

    `distance` is the largest absolute difference, `made_here` what is left of it when the operation runs on the other's
    inputs (None: these are not known). `measure` is None for the same bits.
    """

    unshown: ClassVar = ("layer",)

    index: int
    layer: Layer
    output: int
    standing: Standing
    distance: float
    made_here: float | None
    measure: Distance | None
    tolerance: Tolerance

    @property
    def is_born(self) -> bool:
        """True if the operation differs on the other's inputs, too."""
        return self.standing is Standing.HERE

    @property
    def is_above(self) -> bool:
        """True if the difference is outside of the tolerance."""
        return self.standing in (Standing.HERE, Standing.CARRIED, Standing.ABOVE)

    @property
    def allowed(self) -> float:
        """Largest difference within the tolerance, of the number that is furthest off."""
        theirs = None if self.measure is None else self.measure.theirs
        magnitude = abs(float(theirs)) if theirs is not None and np.asarray(theirs).dtype.kind in "fiub" else 0.0
        relative = self.tolerance.relative * (magnitude if math.isfinite(magnitude) else 0.0)
        return self.tolerance.absolute + relative

    @property
    def share_made_here(self) -> float | None:
        """Part of the difference that is made in the operation, 0 to 1; None where it is not known."""
        if self.made_here is None or not 0 < self.distance < math.inf or self.made_here > self.distance:
            return None
        return self.made_here / self.distance


class _Found(Struct, frozen=True):
    """Values of the other run as a counterpart, which `recomputed` asks."""

    values: Values
    outcome: LoopOutcome | None = None
    branch: bool | None = None

    def value(self, layer: Layer, output: int) -> Array | None:
        return self.values(layer, output)

    def earlier(self, layer: Layer, output: int) -> Array | None:
        return None


def values_of(reference: ReferenceValues, stack: Sequence[Frame]) -> Values:
    """Return the reference's values for the innermost of these frames, at its present iteration."""
    path, frame = path_of(stack), stack[-1]
    return lambda layer, output: reference.value_at(ValuePlace(path, layer, output, frame))


def tolerances_for(reference: ReferenceValues) -> Tolerances:
    """Return the default tolerances: of runs with the same kernels, or with other ones."""
    return Tolerances(exact=bool(getattr(reference, "is_exact", False)))


def frame_differences(
    frame: Frame, theirs: Values, tolerances: Tolerances, *, origins: bool = True, latest_first: bool = False
) -> Iterator[ValueDifference]:
    """Yield the difference of each operation that has run in this iteration and that the other run has a value of.

    `origins`: run each once more on the other's inputs, for what it makes itself.
    """
    done = frame.pc if frame.phase is Phase.RUNNING else len(frame.program.operations)
    for index in reversed(range(done)) if latest_first else range(done):
        found = _operation_difference(frame, index, theirs, tolerances, origins=origins)
        if found is not None:
            yield found


def _operation_difference(
    frame: Frame, index: int, theirs: Values, tolerances: Tolerances, *, origins: bool
) -> ValueDifference | None:
    operation = frame.program.operations[index]
    worst: tuple[float, int, Distance | None, Any] | None = None
    for output, slot in enumerate(operation.outputs):
        ours, other = frame.values[slot], theirs(operation.layer, output)
        if ours is None or other is None:
            continue
        tolerance = tolerances.of(operation.layer, np.asarray(other).dtype)
        inputs = inputs_of(frame, operation)
        found = measure_output(operation, output, inputs, np.asarray(ours), np.asarray(other), tolerance)
        rank = -1.0 if found is None else found.ratio
        if worst is None or rank > worst[0]:
            worst = rank, output, found, other
    if worst is None:
        return None
    _, output, found, other = worst
    tolerance = tolerances.of(operation.layer, np.asarray(other).dtype)
    if found is None:
        return ValueDifference(index, operation.layer, output, Standing.SAME, 0.0, 0.0, None, tolerance)
    made = _made_here(frame, index, output, theirs, other, tolerances) if origins else None
    standing = Standing.WITHIN
    if found.differs:
        standing = Standing.ABOVE if made is None else Standing.HERE if made[1] else Standing.CARRIED
    distance = found.absolute
    return ValueDifference(
        index, operation.layer, output, standing, distance, None if made is None else made[0], found, tolerance
    )


def _made_here(
    frame: Frame, index: int, output: int, theirs: Values, other: Any, tolerances: Tolerances
) -> tuple[float, bool] | None:
    """Return how far our operation on the other's inputs is from the other's value, and True if above tolerance.

    None where the other side does not know an input that was computed or carried. Other inputs from outside, such as
    those of the model, are taken to be the same.
    """
    operation = frame.program.operations[index]
    results, inputs = recomputed(frame, operation, _Found(theirs), tolerances)
    carried = _carried_ids(frame) if inputs.unknown else frozenset()
    if any(layer.type != "Parameter" or layer.id in carried for layer in inputs.unknown):
        return None
    if not inputs.moved:
        results = [frame.values[slot] for slot in operation.outputs]
    if results is None or output >= len(results):
        return None
    tolerance = tolerances.of(operation.layer, np.asarray(other).dtype)
    left = measure_output(operation, output, inputs.values, np.asarray(results[output]), np.asarray(other), tolerance)
    return (0.0, False) if left is None else (left.absolute, left.differs)


def _carried_ids(frame: Frame) -> frozenset[int]:
    """Return the ids of the Parameters that back edges lead to."""
    plan = None if frame.activation is None else frame.activation.plan
    merged = plan.merged if isinstance(plan, LoopPlan) else ()
    return frozenset(frame.program.parameter(entry.parameter).id for entry in merged)


# --- what is carried ------------------------------------------------------------------------------------------------


class CarriedDifference(Struct, frozen=True):
    """Difference of a carried Parameter from the reference's when an iteration began."""

    distance: float
    is_above: bool


def carried_differences(
    stack: Sequence[Frame], reference: ReferenceValues, tolerances: Tolerances
) -> dict[int, CarriedDifference]:
    """Return the difference of each carried Parameter, by id, for the iteration of the innermost frame (a loop's)."""
    frame = stack[-1]
    if frame.activation is None or not isinstance(frame.activation.plan, LoopPlan):
        return {}
    theirs = values_of(reference, stack)
    found = {}
    for entry in frame.activation.plan.merged:
        layer = frame.program.parameter(entry.parameter)
        ours, other = frame.values[entry.parameter], theirs(layer, 0)
        if ours is None or other is None:
            continue
        distance = measure(np.asarray(ours), np.asarray(other), tolerances.of(layer, np.asarray(other).dtype))
        found[layer.id] = (
            CarriedDifference(0.0, False)
            if distance is None
            else CarriedDifference(distance.absolute, distance.differs)
        )
    return found


# --- the first ------------------------------------------------------------------------------------------------------


class FirstDifference(Struct, frozen=True, eq=False):
    """First value of a run outside of its tolerance; `difference` is None where there is none.

    `place`, `iteration` and `run` are those of the innermost loop around it. `compared` is the number of values before
    it, `before` the largest difference among them. `complete` is False where the search was given up.
    """

    difference: ValueDifference | None
    place: str
    iteration: int | None
    compared: int
    before: float
    complete: bool
    tick: int = 0
    run: LoopRun | None = None


def first_difference(
    machine: Machine,
    reference: ReferenceValues,
    tolerances: Tolerances,
    enough: Callable[[], bool] = lambda: False,
    patience: float | None = None,
) -> FirstDifference:
    """Run a machine that stands at its beginning beside the reference up to the first value outside of its tolerance.

    The search is given up when `enough` is True, after `patience` seconds, and where our own run fails. Raises
    StepperError where the reference fails.
    """
    deadline = math.inf if patience is None else time.monotonic() + patience
    compared, before = 0, 0.0
    while not machine.finished:
        try:
            event = machine.advance(Every.ITERATION)
        except StepperError:
            return FirstDifference(None, place(machine.stack), None, compared, before, complete=False)
        stack = list(machine.stack)
        if event.kind is EventKind.ENTERED:
            stack = stack[:-1]
        elif event.kind is EventKind.FINISHED or (event.kind is EventKind.LEFT and not is_loop(event.frame)):
            stack = [*stack, event.frame]
        elif event.kind is not EventKind.ITERATION:
            continue
        frame = stack[-1]
        for found in frame_differences(frame, values_of(reference, stack), tolerances):
            if found.is_above:
                iteration = None if frame.activation is None else frame.activation.iteration
                run, tick = loop_run(stack), event.tick
                where = place(stack)
                return FirstDifference(found, where, iteration, compared, before, complete=True, tick=tick, run=run)
            compared += 1
            before = max(before, found.distance)
            if enough():
                return FirstDifference(None, place(stack), None, compared, before, complete=False)
        if time.monotonic() > deadline or enough():
            return FirstDifference(None, place(stack), None, compared, before, complete=False)
    return FirstDifference(None, "", None, compared, before, complete=True)
