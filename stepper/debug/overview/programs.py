"""The programs behind the facts of loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stepper.debug.overview.facts import RowKind
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Program

if TYPE_CHECKING:
    from stepper.debug.overview.facts import BranchFacts, LoopFacts, Overview


def in_order(overview: Overview) -> list[int]:
    """Return the indices of the loops in the order of the model, inner ones behind the outer one."""
    return sorted(range(len(overview.loops)), key=lambda index: _way(overview, index))


def _way(overview: Overview, index: int) -> tuple[int, ...]:
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
