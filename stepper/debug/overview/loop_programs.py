"""The programs behind the facts of loops and branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.overview.overview_facts import ModelPortFacts
from stepper.element_types import FLOATING, Array
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program

if TYPE_CHECKING:
    from stepper.debug.causes.cause import Scalar
    from stepper.engine.program import Value


def loops_of(compiled: CompiledModel) -> Iterator[tuple[Program, Operation, LoopPlan]]:
    """Yield the loops of a model, outer before inner: the graph of each, its operation, and what it does."""
    for program in sorted(compiled.programs, key=lambda one: len(one.path)):
        for operation in program.operations:
            if operation.plans and isinstance(operation.plans[0], LoopPlan):
                yield program, operation, operation.plans[0]


def programs_of(compiled: CompiledModel) -> list[Program]:
    """Return the programs of the bodies of all loops, in the order in which an overview has them."""
    return [plan.program for _, _, plan in loops_of(compiled)]


def in_order(compiled: CompiledModel) -> list[int]:
    """Return the indices of the loops in the order of the model, inner ones behind the outer one."""
    from stepper.debug.moments.run_pairs import order_at

    bodies = programs_of(compiled)
    return sorted(range(len(bodies)), key=lambda k: order_at(compiled, bodies[k], (None,) * len(bodies[k].path)))


def address_in_loop(program: Program, outer: Sequence[int], iteration: int, compiled: CompiledModel) -> str:
    """Return the address of an iteration of a loop's body, empty for a body without operations.

    `outer` are the iterations of the loops around it, from the outside inwards.
    """
    from stepper.debug.iterations.loop_runs import address_in_run  # the first picture has no address
    from stepper.query.address_resolution import Atlas, from_main, layer_address

    if not program.operations:
        return ""
    *around, loop = program.path
    full = layer_address(loop, Atlas(compiled).ancestor(program, len(around)), compiled)
    known = iter(outer)
    iterations = [next(known, None) if layer.is_loop else None for layer in around]
    return str(address_in_run(from_main(full), program, iterations, iteration))


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
