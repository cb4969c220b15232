"""Lacks of a loop or If with which a run failed: extents of its inputs that are cut, or the shape of a condition.

Told from the values themselves, as the moves of a loop ask for them (stepper/engine/transitions.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element, LinkForm
from stepper.debug.provenance.operation_at import Contribution, Contributions, Factor
from stepper.debug.provenance.rules import MOST_PARTS
from stepper.engine import loops
from stepper.engine.frames import Activation, Frame
from stepper.engine.program import BranchPlan, LoopPlan, Operation, Value
from stepper.engine.rules import Rules
from stepper.errors import KernelError


class InputExtent(NamedTuple):
    """The extent of an operation's input along an axis."""

    input: int
    axis: int


def lacking_slices(activation: Activation) -> tuple[InputExtent, ...]:
    """Return the extents along which the next iteration of a loop finds no slice; none where all have one."""
    plan, iteration = activation.plan, activation.iteration + 1
    if not isinstance(plan, LoopPlan):
        return ()
    taken = zip(plan.sliced, activation.slices, strict=True)
    return tuple(InputExtent(entry.input, one.walk.axis) for entry, one in taken if iteration >= one.walk.count)


def lacking_at_entry(operation: Operation, values: Sequence[Value | None], rules: Rules) -> tuple[InputExtent, ...]:
    """Return the extents for which a loop or If does not begin; none where these are not the reason.

    `values` are those of its inputs.
    """
    plan = operation.plans[0] if operation.plans else None
    if isinstance(plan, BranchPlan):
        return _several(0, values[0])
    if not isinstance(plan, LoopPlan):
        return ()
    counts = []
    for entry in plan.sliced:
        value = values[entry.input]
        if value is None:
            return ()
        count = _slice_count(plan, entry, value, rules)
        if count is None:
            return _cut(entry, value)
        counts.append(count)
    if plan.is_loop:
        controls = [one for one in (plan.trip_count, plan.condition) if one is not None]
        return next((found for one in controls if (found := _several(one, values[one]))), ())
    other = next((k for k, count in enumerate(counts) if count != counts[0]), None)
    return () if other is None else tuple(_both_cut([plan.sliced[0], plan.sliced[other]], values))


def unfit_condition(frame: Frame) -> tuple[int, Element] | None:
    """Return the slot of a body's condition that is not one element, and an axis of it for which it is not.

    None where the condition is one element, or has no axis.
    """
    plan = None if frame.activation is None else frame.activation.plan
    slot = plan.condition_result if isinstance(plan, LoopPlan) else None
    found = () if slot is None else _several(0, frame.values[slot])
    return (slot, (found[0].axis,)) if slot is not None and found else None


def failed_making(values: Sequence[Value], lacking: Sequence[InputExtent] = ()) -> Contributions:
    """Return what an operation that failed was given: elements where they are few whole numbers, else extents.

    The extents that are `lacking` come first. Of inputs of one rank then those in which they differ, for these mostly
    do not fit.
    """
    elements: list[Contribution] = []
    extents: list[Contribution] = []
    for index, value in enumerate(values):
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.kind in "biu" and 0 < array.size <= MOST_PARTS:
            elements += [Contribution(Factor(index, at, array[at])) for at in np.ndindex(array.shape)]
        extents += [
            Contribution(Factor(index, (axis,), size, is_shape=True))
            for axis, size in enumerate(array.shape)
            if array.dtype.kind not in "biu" or array.size > MOST_PARTS
        ]
    differ = _differing_axes([np.shape(values[one]) for one in sorted({part.factor.input for part in extents})])
    extents.sort(key=lambda part: part.factor.element is not None and part.factor.element[0] not in differ)
    first = [
        Contribution(Factor(one.input, (one.axis,), np.shape(values[one.input])[one.axis], is_shape=True))
        for one in lacking
    ]
    extents = [part for part in extents if part not in first]
    parts = [*first, *extents[: MOST_PARTS // 2], *elements, *extents[MOST_PARTS // 2 :]]
    return Contributions(LinkForm.WHOLE, tuple(parts[:MOST_PARTS]), len(parts))


def _differing_axes(shapes: Sequence[tuple[int, ...]]) -> set[int]:
    """Return the axes along which shapes of one rank differ; none where the ranks differ."""
    if len({len(shape) for shape in shapes}) != 1:
        return set()
    return {axis for axis, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1}


def _several(index: int, value: Value | None) -> tuple[InputExtent, ...]:
    """Return the extents for which a value that should be a single element is none."""
    if value is None or loops.is_single(value):
        return ()
    shape = np.shape(value)
    axes = [axis for axis, size in enumerate(shape) if size != 1] or range(len(shape))
    return tuple(InputExtent(index, axis) for axis in axes)


def _slice_count(plan: LoopPlan, entry: loops.SlicedInput, value: Value, rules: Rules) -> int | None:
    """Return how many slices an input gives; None where it cannot be cut."""
    try:
        count = loops.slice_walk(entry.slicing, np.shape(value), rules, is_loop=plan.is_loop).count
    except KernelError:
        return None
    return None if not plan.is_loop and not count and rules is Rules.OPENVINO else count


def _cut(entry: loops.SlicedInput, value: Value) -> tuple[InputExtent, ...]:
    """Return the extent of an input along the axis that is cut; all of them where it has no such axis."""
    rank, axis = np.ndim(value), entry.slicing.axis
    axes = [axis % rank] if -rank <= axis < rank else range(rank)
    return tuple(InputExtent(entry.input, one) for one in axes)


def _both_cut(entries: Sequence[loops.SlicedInput], values: Sequence[Value | None]) -> Iterator[InputExtent]:
    for entry in entries:
        value = values[entry.input]
        if value is not None:
            yield from _cut(entry, value)
