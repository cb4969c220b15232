"""Inputs and outputs of the model in short: their numbers where they are few, texts as text."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from stepper.debug.causes.locations import brief_of
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.overview.facts import ModelPortFacts, Overview
from stepper.debug.overview.programs import programs_of
from stepper.element_types import FLOATING, Array

if TYPE_CHECKING:
    from stepper.debug.causes.cause import Scalar
    from stepper.engine.program import CompiledModel, Program, Value

MOST_NUMBERS: Final = 64
"""Elements of a value that is given with all of them."""
MOST_LETTERS: Final = 256


def port_facts(name: str, value: Value | None) -> ModelPortFacts:
    """Return the facts of an input or output of the model."""
    if value is None:
        return ModelPortFacts(name, None)
    array = np.asarray(value)
    may_be_bad = array.dtype in FLOATING and not np.isfinite(array).all()
    return ModelPortFacts(
        name,
        brief_of(value),
        _numbers_of(array),
        text_of(array),
        int(array.size),
        int(np.isnan(array).sum()) if may_be_bad else 0,
        int(np.isinf(array).sum()) if may_be_bad else 0,
    )


def _numbers_of(value: Array) -> tuple[Scalar, ...]:
    if value.size > MOST_NUMBERS:
        return ()
    return tuple(found for one in value.reshape(-1) if (found := scalar_of(one)) is not None)


def text_of(value: Array) -> str:
    """Return texts as one; empty for numbers, and where it is long."""
    if not 0 < value.size <= MOST_NUMBERS or value.dtype.kind not in "UT":
        return ""
    text = " ".join(value.reshape(-1).tolist())
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


def places_named(overview: Overview, compiled: CompiledModel, named: Collection[int]) -> dict[tuple[int, int], int]:
    """Return the rows of loops whose elements stand for those of an input of the model, by (loop, row): its index.

    Of the `named` inputs, those whose length the model leaves open; and rows with an axis of the same length that is
    left open as well: what has this length in every run is about something else.
    """
    lengths = {index: length for index in named if (length := _open_length(overview, compiled, index)) > 1}
    by_length = {length: index for index, length in lengths.items()}
    found: dict[tuple[int, int], int] = {}
    if not lengths or len(by_length) != len(lengths):
        return found  # one could not tell them apart
    for place, (loop, program) in enumerate(zip(overview.loops, programs_of(overview, compiled), strict=True)):
        for index, row in enumerate(loop.rows):
            history = next((one for run in loop.activations if (one := run.values[index]) is not None), None)
            if program is None or history is None or row.producer is None or history.changes_shape:
                continue
            source = by_length.get(math.prod(history.shape))
            dims = _declared_dims(program, row.producer.id, history.shape)
            if source is not None and history.is_whole and _is_open(dims, history.shape):
                found[place, index] = source
    return found


def _open_length(overview: Overview, compiled: CompiledModel, index: int) -> int:
    brief, layer = overview.inputs[index].brief, compiled.model.graph.parameters[index]
    if brief is None or not layer.outputs or not _is_open(layer.outputs[0].dims, brief.shape):
        return 0
    return math.prod(brief.shape)


def _declared_dims(program: Program, layer: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the dims that the file has for an output of a layer, of the first one of this rank; empty without any."""
    ports = (port.dims for one in program.graph.layers if one.id == layer for port in one.outputs)
    return next((dims for dims in ports if len(dims) == len(shape)), ())


def _is_open(dims: Sequence[int], shape: Sequence[int]) -> bool:
    """True if all elements are along one axis, the length of which the model leaves open."""
    return len(dims) == len(shape) and any(
        declared < 0 and size == math.prod(shape) for declared, size in zip(dims, shape, strict=True)
    )
