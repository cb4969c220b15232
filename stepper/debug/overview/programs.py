"""The programs behind the facts of loops and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    return [next(iter(bodies(index)), None) for index in range(len(overview.loops))]


def parent_loop(overview: Overview, index: int) -> int | None:
    """Return the index of the loop directly around a loop; None of one in an If too."""
    parent = overview.loops[index].parent
    return parent if parent is not None and parent < len(overview.loops) else None
