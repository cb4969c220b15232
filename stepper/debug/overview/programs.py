"""The programs behind the facts of loops and branches."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.overview.facts import ModelPortFacts, Overview, RowKind
from stepper.element_types import FLOATING, Array, Indices, Shape
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Program
from stepper.ir.model import Layer
from stepper.query.address_syntax import Address, Level, Name, NameKind

if TYPE_CHECKING:
    from stepper.debug.causes.cause import Scalar
    from stepper.debug.overview.facts import BranchFacts, LoopFacts
    from stepper.engine.program import Value


def in_order(overview: Overview) -> list[int]:
    """Return the indices of the loops in the order of the model, inner ones behind the outer one."""
    return sorted(range(len(overview.loops)), key=lambda index: _way(overview, index))


def _way(overview: Overview, index: int) -> Indices:
    """Return the positions of a loop and of all that it is in, from the outside inwards."""
    around = _around(overview)
    found, at = [], index
    while True:
        found.append(around[at].position)
        parent = around[at].parent
        if parent is None:
            return (*reversed(found), index)
        at = parent


def _around(overview: Overview) -> tuple[LoopFacts | BranchFacts, ...]:
    return (*overview.loops, *overview.branches)


def programs_of(overview: Overview, compiled: CompiledModel) -> list[Program | None]:
    """Return the programs of the bodies of all loops."""
    bodies = _bodies(overview, compiled)
    return [next(iter(bodies(index)), None) for index in range(len(overview.loops))]


def program_around(overview: Overview, branch: int, compiled: CompiledModel) -> Program | None:
    """Return the program that an If stands in, by its index."""
    facts = overview.branches[branch]
    for program in _bodies(overview, compiled)(facts.parent):
        if any(one.layer.id == facts.layer.id and one.layer.name == facts.layer.name for one in program.operations):
            return program
    return None


def _bodies(overview: Overview, compiled: CompiledModel) -> Callable[[int | None], tuple[Program, ...]]:
    """Return what gives the bodies of a loop or If by its index, and for None the model's own graph."""
    around = _around(overview)
    known: dict[int | None, tuple[Program, ...]] = {None: (compiled.main,)}

    def bodies(index: int | None) -> tuple[Program, ...]:
        if index is not None and index not in known:
            facts = around[index]
            known[index] = tuple(
                plan.program
                for program in bodies(facts.parent)
                for operation in program.operations[facts.position : facts.position + 1]
                if operation.layer.id == facts.layer.id
                for plan in operation.plans
                if isinstance(plan, LoopPlan | BranchPlan)
            )
        return known[index]

    return bodies


def births_in(overview: Overview, compiled: CompiledModel) -> dict[int, tuple[tuple[int, int, int], ...]]:
    """Return by the `id` of a loop's program which outputs of operations have a row because NaN or Inf is born there.

    Each is (index of the operation, of its output, slot).
    """
    found = {}
    for program, facts in zip(programs_of(overview, compiled), overview.loops, strict=True):
        if program is None:
            continue
        rows = [row for row in facts.rows if row.kind is RowKind.BIRTH and row.producer is not None]
        places = [(program.indices[row.producer.id], row.output) for row in rows if row.producer is not None]
        if places:
            found[id(program)] = tuple((at, one, program.operations[at].outputs[one]) for at, one in places)
    return found


def parent_loop(overview: Overview, index: int) -> int | None:
    """Return the index of the loop directly around a loop; None of one in an If too."""
    parent = overview.loops[index].parent
    return parent if parent is not None and parent < len(overview.loops) else None


def address_in_loop(
    program: Program,
    outer: Sequence[int],
    iteration: int,
    compiled: CompiledModel,
    layer: Layer | None = None,
    output: int = 0,
) -> str:
    """Return the address of an iteration of a loop's body, or of an output of a layer in it.

    It is empty for a body without operations.
    `outer` are the iterations of the loops around it, from the outside inwards.
    """
    from stepper.query.address_resolution import MAIN, Target, moment_address  # the first picture has no address

    if not program.operations:
        return ""
    named = program.operations[0].layer if layer is None else layer
    slot = program.slots.get((named.id, output), -1)
    place = moment_address(Target(program, named, output, slot, named, (None,) * len(program.path)), compiled)
    around_it, main = iter(outer), Level(Name(NameKind.PLAIN, MAIN))
    levels, known = [], iter(place.levels)
    if place.levels[0] == main:
        levels.append(next(known))
    for around in program.path:
        level = next(known)
        if around.type == "If":
            levels += [level, next(known)]
        else:
            levels.append(Level(level.name, None if around is program.path[-1] else next(around_it, None)))
    if layer is None:
        return str(Address(tuple(levels[:-1]) or (main,), levels[-1].name, None, iteration))
    return str(Address(tuple(levels), place.operation, place.port, iteration))


MOST_NUMBERS: Final = 64
"""Elements of a value that is given with all of them."""
MOST_LETTERS: Final = 256


def port_facts(name: str, value: Value | None) -> ModelPortFacts:
    """Return the facts of an input or output of the model."""
    from stepper.debug.causes.locations import brief_of  # the first picture is of no run

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


def _declared_dims(program: Program, layer: int, shape: Sequence[int]) -> Shape:
    """Return the dims that the file has for an output of a layer, of the first one of this rank; empty without any."""
    ports = (port.dims for one in program.graph.layers if one.id == layer for port in one.outputs)
    return next((dims for dims in ports if len(dims) == len(shape)), ())


def _is_open(dims: Sequence[int], shape: Sequence[int]) -> bool:
    """True if all elements are along one axis, the length of which the model leaves open."""
    return len(dims) == len(shape) and any(
        declared < 0 and size == math.prod(shape) for declared, size in zip(dims, shape, strict=True)
    )
