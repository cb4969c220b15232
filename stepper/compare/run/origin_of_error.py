"""Error made here, told from error carried in: our operation once more, on the inputs that the reference has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.compare.references.protocol import ReferenceFrame
from stepper.compare.run.metrics import measure
from stepper.compare.run.observations import ErrorOrigin, ValueMismatch
from stepper.compare.run.rounding import left_by, measure_output
from stepper.engine.arithmetic import outside_int32
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, OpKind
from stepper.ir.model import Graph, Layer, Source
from stepper.ops.departures import Use, departures
from stepper.tensors.closeness import agree_exactly
from stepper.tensors.tolerances import Tolerances


class TracedOrigin(NamedTuple):
    """Where a difference comes from, whether the inputs agree within their tolerances, and which computed inputs the
    reference does not have.
    """

    origin: ErrorOrigin
    inputs_agree: bool
    unknown: tuple[Layer, ...]


class ReferenceInputs(NamedTuple):
    """An operation's inputs as the reference has them, ours where it has none; `moved`: any is not the same."""

    values: list[Any]
    agree: bool
    moved: bool
    unknown: tuple[Layer, ...]


def trace_origin(
    frame: Frame,
    operation: Operation,
    output: int,
    found: ReferenceFrame,
    difference: ValueMismatch,
    tolerances: Tolerances,
) -> TracedOrigin:
    """Return where the difference of an output comes from.

    An input that the reference does not have (a layer of ours that has no partner) counts as part of the operation.
    """
    results, inputs = recomputed(frame, operation, found, tolerances)
    if not inputs.moved:
        return TracedOrigin(ErrorOrigin.HERE, inputs.agree, inputs.unknown)
    if operation.kind is not OpKind.KERNEL or operation.function is None:
        return TracedOrigin(ErrorOrigin.HERE if inputs.agree else ErrorOrigin.UNKNOWN, inputs.agree, inputs.unknown)
    if results is None:
        return TracedOrigin(ErrorOrigin.UNKNOWN, inputs.agree, inputs.unknown)
    tolerance = tolerances.of(operation.layer, np.asarray(difference.theirs).dtype)
    behind = partial(left_by, frame, operation, output, inputs.unknown)
    left = measure_output(operation, output, inputs.values, results[output], difference.theirs, tolerance, behind)
    is_here = left is not None and left.differs
    return TracedOrigin(ErrorOrigin.HERE if is_here else ErrorOrigin.CARRIED, inputs.agree, inputs.unknown)


def recomputed(
    frame: Frame, operation: Operation, found: ReferenceFrame, tolerances: Tolerances
) -> tuple[Sequence[Any] | None, ReferenceInputs]:
    """Return our operation's outputs on the reference's inputs (None: ours, or not taken), and these inputs."""
    inputs = _inputs(frame, operation, found, tolerances)
    if not inputs.moved or operation.kind is not OpKind.KERNEL or operation.function is None:
        return None, inputs
    try:
        with np.errstate(all="ignore"):
            results = operation.function(*inputs.values)
    except Exception:  # the reference's inputs may be of another type or shape, which the kernel does not take
        return None, inputs
    return results if operation.several_outputs else (results,), inputs


def departure(operation: Operation, ours: Any) -> ErrorOrigin | None:
    """Return what OpenVINO is known to do otherwise: overflow of 32 bits, or what ops.departures says."""
    if outside_int32(np.asarray(ours)):
        return ErrorOrigin.OVERFLOW
    layer = operation.layer
    types = frozenset(port.element_type.name for port in (*layer.inputs[:1], *layer.outputs) if port.element_type)
    if types and types <= _FLOATS:
        return None  # rounding of floats is not that far off
    known = departures([Use(layer.type, layer.definition, layer.attributes, types)])
    return ErrorOrigin.DEPARTURE if known else None


def is_rounded_integer(value: Any) -> bool:
    """True if a tensor has integers that f32 does not hold, through which OpenVINO passes those of some operations."""
    array = np.asarray(value)
    return array.dtype.kind in "iu" and array.size > 0 and int(np.abs(array.astype(np.float64)).max()) > 2**24


_MOST_UNKNOWN: Final = 8
_FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})


def _inputs(frame: Frame, operation: Operation, found: ReferenceFrame, tolerances: Tolerances) -> ReferenceInputs:
    graph = frame.program.graph
    inputs: list[Any] = []
    unknown: list[Layer] = []
    agree, moved = True, False
    for source, slot in zip(graph.sources[operation.layer.id], operation.inputs, strict=True):
        ours = frame.values[slot] if slot >= 0 else None
        theirs = None
        if source is not None and ours is not None and frame.program.template[slot] is None:
            theirs = found.value(graph.by_id[source.layer], source.output)
            if theirs is None:
                unknown.append(graph.by_id[source.layer])
        if theirs is None or source is None:
            inputs.append(ours)
            continue
        distance = measure(ours, theirs, tolerances.of(graph.by_id[source.layer], np.asarray(theirs).dtype))
        moved |= not agree_exactly(ours, theirs)
        agree &= distance is None or not distance.differs
        inputs.append(theirs)
    return ReferenceInputs(inputs, agree, moved, _with_what_is_behind(frame, unknown, found))


def unknown_inputs(frame: Frame, operation: Operation, found: ReferenceFrame | None) -> tuple[Layer, ...]:
    """Return the layers that compute the inputs of an operation of which the reference has no value, and what is
    behind."""
    graph = frame.program.graph
    layers = _computed_sources(frame, operation.layer.id)
    return _with_what_is_behind(
        frame, [graph.by_id[s.layer] for s in layers if found is None or _value(graph, s, found) is None], found
    )


def _with_what_is_behind(frame: Frame, unknown: list[Layer], found: ReferenceFrame | None) -> tuple[Layer, ...]:
    """Return these layers, and against the flow of values all others up to those that the reference knows."""
    graph, layers = frame.program.graph, dict.fromkeys(layer.id for layer in unknown)
    for identity in list(layers):
        waiting = [identity]
        while waiting and len(layers) < _MOST_UNKNOWN and found is not None:
            for source in _computed_sources(frame, waiting.pop(0)):
                if source.layer not in layers and _value(graph, source, found) is None:
                    layers[source.layer] = None
                    waiting.append(source.layer)
    return tuple(graph.by_id[identity] for identity in layers)


def _computed_sources(frame: Frame, layer: int) -> list[Source]:
    """Return the operations' outputs among the sources of a layer: neither Constants nor Parameters."""
    program = frame.program
    sources = (source for source in program.graph.sources[layer] if source is not None)
    return [s for s in sources if program.slots.get((s.layer, s.output)) in program.computed_at]


def _value(graph: Graph, source: Source, found: ReferenceFrame) -> Any:
    return found.value(graph.by_id[source.layer], source.output)
