"""Places and values of a running machine as the plain data of causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepper import element_types
from stepper.debug.causes.cause import Carried, Enclosure, Location, TensorBrief, ValueChange
from stepper.debug.provenance.operation_at import differing
from stepper.ir.model import Body, Layer, layer_site
from stepper.query.address_resolution import SIDE_NAMES, Atlas, unique_name
from stepper.query.address_syntax import Address, Level, Name, NameKind
from stepper.tensors.difference import index_of
from stepper.tensors.number_text import array_text

if TYPE_CHECKING:
    from stepper.engine.frames import Frame
    from stepper.engine.loops import MergedInput
    from stepper.engine.program import CompiledModel, Operation, Program, Value


def file_of(compiled: CompiledModel) -> str:
    """Return the XML file of a model, as causes name it."""
    return str(compiled.model.path)


def location_of(frames: Sequence[Frame], file: str, layer: Layer | None = None, output: int | None = None) -> Location:
    """Return the place of a layer in the innermost of these frames, of which the first is the model's own graph."""
    site = None if layer is None else layer_site(layer, file)
    return Location(site, output, tuple(_enclosure(frame, file) for frame in frames[1:]))


def _enclosure(frame: Frame, file: str) -> Enclosure:
    activation = frame.active
    layer = activation.operation.layer
    iteration = activation.iteration if layer.is_loop and activation.iteration >= 0 else None
    return Enclosure(layer_site(layer, file), body_of_frame(frame).role, iteration)


def address_at(location: Location, compiled: CompiledModel, atlas: Atlas | None = None) -> Address | None:
    """Return the address of the place of a value, with the iterations of the loops around it; None for no operation.

    Whoever asks for many gives the atlas of the model.
    """
    if location.operation is None:
        return None
    levels: list[Level] = []
    program = compiled.main
    for inside, inner in zip(location.path, _programs_around(location, atlas or Atlas(compiled)), strict=True):
        levels.append(Level(unique_name(program.graph.by_id[inside.layer.id], program), inside.iteration))
        if inner.path[-1].type == "If":
            levels.append(Level(Name(NameKind.PLAIN, SIDE_NAMES[inside.body])))
        program = inner
    return Address(tuple(levels), unique_name(program.graph.by_id[location.operation.id], program), location.output)


def program_of(location: Location, compiled: CompiledModel) -> Program:
    """Return the program of the graph of a place."""
    return next(reversed(list(_programs_around(location, Atlas(compiled)))), compiled.main)


def _programs_around(location: Location, atlas: Atlas) -> Iterator[Program]:
    """Yield the programs of the bodies around a place, from the outside inwards."""
    program = atlas.compiled.main
    for inside in location.path:
        layer = program.graph.by_id[inside.layer.id]
        sides = [body.graph for body in layer.bodies if body.role == inside.body]
        program = next(inner for inner in atlas.bodies(layer) if inner.graph in sides)
        yield program


def body_of_frame(frame: Frame) -> Body:
    """Return the body of a loop or If that runs in a frame."""
    activation = frame.active
    return next(body for body in activation.operation.layer.bodies if body.graph is frame.program.graph)


def operation_location(frames: Sequence[Frame], file: str, operation: Operation, slot: int) -> Location:
    """Return the place of the value in a slot that an operation computes; its output is named where it has several."""
    output = output_named(operation.layer, operation.outputs.index(slot))
    return location_of(frames, file, operation.layer, output)


def output_named(layer: Layer, output: int) -> int | None:
    """Return an output where a layer has several."""
    return output if len(layer.outputs) > 1 else None


def carried_of(program: Program, entry: MergedInput, file: str) -> Carried:
    """Return the back edge of an entry of a body's port map."""
    result = program.graph.results[program.results.index(entry.result)]
    return Carried(layer_site(result, file), layer_site(program.parameter(entry.parameter), file), entry.line)


def shown(value: Value) -> str:
    """Return a value in few words: its number alone where it is one of rank 0, else with type and shape."""
    return str(value.item()) if value.ndim == 0 and value.dtype.names is None else array_text(value)


def brief_of(value: Value) -> TensorBrief:
    """Return type, shape and, where they are few, the numbers of a value."""
    return TensorBrief(element_types.name_of(value.dtype), tuple(value.shape), shown(value))


def change_of(before: Value, now: Value) -> ValueChange:
    """Return how a value differs from what it was."""
    old, new = brief_of(before), brief_of(now)
    if now.size == 1 or now.shape != before.shape or now.dtype != before.dtype:
        return ValueChange(old, new)
    a, b = np.asarray(before), np.asarray(now)
    places = np.flatnonzero(differing(a, b))
    if not places.size:
        return ValueChange(old, new, 0, int(now.size))
    first = index_of(int(places[0]), now.shape)
    return ValueChange(old, new, int(places.size), int(now.size), first, str(a[first]), str(b[first]))
