"""Error made here, told from error carried in: our operation once more, on the inputs that the reference has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stepper.compare.metrics import agree_exactly, measure
from stepper.compare.observations import Difference, Made
from stepper.compare.reference import Counterpart
from stepper.compare.tolerances import Tolerances
from stepper.engine.arithmetic import outside_int32
from stepper.engine.frames import Frame
from stepper.engine.program import Kind, Operation
from stepper.ops.departures import Use, departures


def made(
    frame: Frame,
    operation: Operation,
    output: int,
    found: Counterpart,
    difference: Difference,
    tolerances: Tolerances,
) -> tuple[Made, bool]:
    """Where the difference of an output comes from, and whether the inputs agree within their tolerances.

    An input that the reference does not have (a layer of ours that has no partner) counts as part of the operation.
    """
    results, agree, moved = recomputed(frame, operation, found, tolerances)
    if not moved:
        return Made.HERE, agree
    if operation.kind is not Kind.KERNEL or operation.function is None:
        return (Made.HERE if agree else Made.UNKNOWN), agree
    if results is None:
        return Made.UNKNOWN, agree
    again = results[output]
    tolerance = tolerances.of(operation.layer, np.asarray(difference.theirs).dtype)
    left = measure(again, difference.theirs, tolerance)
    return (Made.HERE if left is not None and left.differs else Made.CARRIED), agree


def recomputed(
    frame: Frame, operation: Operation, found: Counterpart, tolerances: Tolerances
) -> tuple[Sequence[Any] | None, bool, bool]:
    """Our operation's outputs on the reference's inputs, None where it does not take them or is none that computes.

    Also whether the inputs agree with ours within their tolerances, and whether any is not the same.
    """
    inputs, agree, moved = _inputs(frame, operation, found, tolerances)
    if not moved or operation.kind is not Kind.KERNEL or operation.function is None:
        return None, agree, moved
    try:
        with np.errstate(all="ignore"):
            results = operation.function(*inputs)
    except Exception:  # the reference's inputs may be of another type or shape, which the kernel does not take
        return None, agree, moved
    return results if operation.several_outputs else (results,), agree, moved


def departure(operation: Operation, ours: Any) -> Made | None:
    """What OpenVINO is known to do otherwise with such values: overflow beyond 32 bits, or what ops.departures says."""
    if outside_int32(np.asarray(ours)):
        return Made.OVERFLOW
    layer = operation.layer
    types = frozenset(port.element_type.name for port in (*layer.inputs[:1], *layer.outputs) if port.element_type)
    if types and types <= _FLOATS:
        return None  # rounding of floats is not that far off
    known = departures([Use(layer.type, layer.definition, layer.attributes, types)])
    return Made.DEPARTURE if known else None


def is_rounded_integer(value: Any) -> bool:
    """Whether a tensor has integers that f32 does not hold, through which OpenVINO passes those of some operations."""
    array = np.asarray(value)
    return array.dtype.kind in "iu" and array.size > 0 and int(np.abs(array.astype(np.float64)).max()) > 2**24


_FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})


def _inputs(
    frame: Frame, operation: Operation, found: Counterpart, tolerances: Tolerances
) -> tuple[list[Any], bool, bool]:
    """The reference's inputs of our operation; whether they agree with ours; whether any is not the same."""
    graph = frame.program.graph
    inputs: list[Any] = []
    agree, moved = True, False
    for source, slot in zip(graph.sources[operation.layer.id], operation.inputs, strict=True):
        ours = frame.values[slot] if slot >= 0 else None
        theirs = None
        if source is not None and ours is not None and frame.program.template[slot] is None:
            theirs = found.value(graph.by_id[source.layer], source.output)
        if theirs is None or source is None:
            inputs.append(ours)
            continue
        distance = measure(ours, theirs, tolerances.of(graph.by_id[source.layer], np.asarray(theirs).dtype))
        moved |= not agree_exactly(ours, theirs)
        agree &= distance is None or not distance.differs
        inputs.append(theirs)
    return inputs, agree, moved
