"""Two moments in words and as data for JSON."""

from __future__ import annotations

from typing import Any

from stepper.debug.moments.difference import Change, Difference
from stepper.debug.moments.moment import Moment, MomentKind
from stepper.debug.moments.views import MomentView
from stepper.engine.program import Program
from stepper.plain_values import json_number
from stepper.records import as_data


def moment_text(moment: Moment, iteration: int | None = None) -> str:
    """Return a moment in words; `iteration` is that of A where it follows now."""
    match moment.kind:
        case MomentKind.ITERATION:
            numbers = " > ".join(str(step.iteration) for step in moment.place if step.iteration is not None)
            return f"iteration {numbers}"
        case MomentKind.BEFORE:
            return "the iteration before" if iteration is None else f"iteration {iteration}, the one before"
        case MomentKind.BRANCH:
            return f"branch {moment.branch}"
    return "the reference"


def difference_text(found: Difference) -> str:
    """Return a difference in words."""
    match found.change:
        case Change.SAME:
            return "same bits"
        case Change.SHAPE:
            return "another shape or type"
        case Change.NUMBER:
            within = "" if found.beyond else ", within the tolerance"
            numbers = f"rms {found.rms:.6g}, largest {found.largest:.6g}"
            return f"{found.different:,} of {found.size:,} differ, {numbers}{within}"
    counts = ((found.mended, "mended"), (found.broken, "broken"))
    return ", ".join(f"{count:,} of {found.size:,} {word}" for count, word in counts if count)


def view_lines(found: MomentView, program: Program) -> list[str]:
    """Return A beside now in lines: what it is, then each operation of this graph that differs."""
    lines = [f"A is {moment_text(found.moment, found.iteration)}" + (f": {found.title}" if found.title else "")]
    if found.problem:
        return [*lines, found.problem]
    compared = {index: one.difference for index, one in sorted(found.operations.items()) if one.difference is not None}
    names = {index: program.operations[index].layer.name for index in compared}
    width = max(map(len, names.values()), default=0)
    differ = [(index, one) for index, one in compared.items() if one.change is not Change.SAME]
    lines.append(f"{len(differ):,} of {len(compared):,} operations that have run differ")
    return [*lines, *(f"  {names[index].ljust(width)}  {difference_text(one)}" for index, one in differ)]


def view_data(found: MomentView, program: Program) -> dict[str, Any]:
    """Return the same for JSON."""
    operations = [
        {"name": program.operations[index].layer.name, "index": index, **_plain(one.difference)}
        for index, one in sorted(found.operations.items())
        if one.difference is not None
    ]
    carried = [
        {"name": program.graph.by_id[layer].name if layer in program.graph.by_id else str(layer), **_plain(one)}
        for layer, one in found.carried.items()
    ]
    return {
        "moment": moment_data(found.moment),
        "iteration": found.iteration,
        "reference": found.title,
        "problem": found.problem,
        "operations": operations,
        "carried": carried,
    }


def moment_data(moment: Moment) -> dict[str, Any]:
    """Return a moment for JSON."""
    iterations = [step.iteration for step in moment.place if step.iteration is not None]
    return {"kind": str(moment.kind), "branch": moment.branch, "iterations": iterations, "tick": moment.tick}


def _plain(found: Difference) -> dict[str, Any]:
    data: dict[str, Any] = as_data(found)
    return {name: json_number(value) if isinstance(value, float) else value for name, value in data.items()}
