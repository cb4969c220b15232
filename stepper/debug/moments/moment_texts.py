"""Two moments in words and as data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stepper.debug.moments.moment import Moment, MomentKind
from stepper.debug.moments.spread import MomentView, OutputChange, SpreadView
from stepper.engine.program import Program
from stepper.plain_values import record_data
from stepper.query.short_names import is_numbered, last_part, without_number
from stepper.tensors.difference import Change, Difference
from stepper.tensors.number_text import in_columns, number_text
from stepper.wording import counted


def path_text(path: Iterable[int | None]) -> str:
    """Return an iteration with those of the loops around it: `0 > 2`; None is an If."""
    return " > ".join(str(iteration) for iteration in path if iteration is not None)


def moment_text(moment: Moment, iteration: int | None = None) -> str:
    """Return a moment in words.

    `iteration` is the iteration of the baseline, if the baseline follows the present.
    """
    match moment.kind:
        case MomentKind.ITERATION:
            return f"iteration {path_text(step.iteration for step in moment.place)}"
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
            numbers = f"rms {number_text(found.rms, 6)}, largest {number_text(found.largest, 6)}"
            return f"{found.different:,} of {found.size:,} differ, {numbers}{within}"
        case Change.TRUTH if found.size == 1:
            return "became true" if found.became_true else "became false"
    counts = (
        (found.mended, "fixed"),
        (found.broken, "new NaN or Inf"),
        (found.became_true, "became true"),
        (found.became_false, "became false"),
    )
    return ", ".join(f"{count:,} of {found.size:,} {word}" for count, word in counts if count)


def view_lines(found: MomentView, program: Program) -> list[str]:
    """Return A beside now in lines: what it is, then what entered the iteration and each operation that differs."""
    lines = [f"A is {moment_text(found.moment, found.iteration)}" + (f": {found.title}" if found.title else "")]
    if found.problem:
        return [*lines, found.problem]
    compared = dict(sorted(found.operations.items()))
    names = {index: program.operations[index].layer.name for index in compared}
    by_id = program.graph.by_id
    entered = [
        (by_id[layer].name if layer in by_id else str(layer), one)
        for layer, one in found.carried.items()
        if one.change is not Change.SAME
    ]
    if found.carried:
        lines.append(f"{len(entered):,} of {counted(len(found.carried), 'value')} that entered the iteration differ")
        lines += _difference_lines(entered)
    if not compared:
        return [*lines, "no operation has run here yet in both"]
    differ = [(names[index], one) for index, one in compared.items() if one.change is not Change.SAME]
    return [
        *lines,
        f"{len(differ):,} of {len(compared):,} operations that have run differ",
        *_difference_lines(differ),
    ]


def _difference_lines(found: Sequence[tuple[str, Difference]]) -> list[str]:
    return [f"  {line}" for line in in_columns((name, difference_text(one)) for name, one in found)]


def view_data(found: MomentView, program: Program) -> dict[str, Any]:
    """Return the same for JSON."""
    operations = [
        {"name": program.operations[index].layer.name, "index": index, **record_data(one)}
        for index, one in sorted(found.operations.items())
    ]
    carried = [
        {"name": program.graph.by_id[layer].name if layer in program.graph.by_id else str(layer), **record_data(one)}
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


def spread_sentence(found: SpreadView) -> str:
    """Return what became of the outputs of the model, in a sentence; empty as long as that is not known."""
    if found.parted is None:
        return f"{found.b} and {found.a} do not differ"
    if not found.is_complete:
        return ""
    if found.is_reference and found.ends[1]:
        return f"the outputs cannot be compared: {found.ends[1]}"
    if any(found.ends):
        ended = next(name for name, end in zip((found.a, found.b), found.ends, strict=True) if end)
        return f"the outputs cannot be compared: {ended} ends with an error"
    alike: dict[tuple[Any, ...], list[OutputChange]] = {}
    for one in found.outputs:
        if one.difference.change is not Change.SAME:
            alike.setdefault(_told(one), []).append(one)
    if not found.outputs:
        return ""
    if not alike:
        many = "the output has" if len(found.outputs) == 1 else "all outputs have"
        return f"{many} the same bits"
    return "; ".join(_outputs_text(some, is_reference=found.is_reference) for some in alike.values())


def _outputs_text(found: Sequence[OutputChange], *, is_reference: bool) -> str:
    """Return what became of outputs of the model, all in the same way."""
    *others, last = map(_output_name, found)
    names = f"outputs {', '.join(others)} and {last}" if others else f"output {last}"
    return f"{names} {_became(found[0], several=bool(others), is_reference=is_reference)}"


def _output_name(found: OutputChange) -> str:
    """Return the name of an output; behind one that a converter numbered what it is in its loop."""
    source = without_number(last_part(found.source))
    return f"{source} ({found.name})" if source and is_numbered(found.name) else found.name


def _told(found: OutputChange) -> tuple[Any, ...]:
    """Return the facts that `_became` puts into words; outputs with equal facts share one text."""
    whole = found.difference
    if found.rows is not None:
        return whole.change is Change.SHAPE, found.rows, found.different, found.first, found.lengths
    if whole.change is Change.SHAPE:
        return (whole.change,)
    return whole.different, whole.size, None if whole.beyond else whole.largest


def _became(found: OutputChange, *, several: bool, is_reference: bool) -> str:
    whole, has = found.difference, "have" if several else "has"
    verb = "changed" if not is_reference else "differ" if several else "differs"
    if found.rows is None:
        if whole.change is Change.SHAPE:
            return f"{has} another shape"
        only = "" if whole.beyond or whole.largest is None else f", only by {_short(whole.largest)}"
        return f"{verb} in {whole.different:,} of {counted(whole.size, 'element')}{only}"
    rows = f"{found.different:,} of {counted(found.rows, 'row')}"
    lengths = f"{found.lengths[1]:,} rows, not {found.lengths[0]:,}"
    if whole.change is Change.SHAPE and not found.different:
        return f"{has} {lengths}"
    more = f" (and {has} {lengths})" if found.lengths[0] != found.lengths[1] else ""
    first = "" if found.first is None else f", first in iteration {found.first}"
    return f"{verb} in {rows}{first}{more}"


def outputs_data(found: Sequence[OutputChange]) -> list[dict[str, Any]]:
    """Return what became of the outputs of the model for JSON."""
    return [
        {
            "name": one.name,
            "source": one.source or None,
            "rows": one.rows,
            "different_rows": None if one.rows is None else one.different,
            "first_iteration": one.first,
            **record_data(one.difference),
        }
        for one in found
    ]


def _short(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e+")


def moment_data(moment: Moment) -> dict[str, Any]:
    """Return a moment for JSON."""
    iterations = [step.iteration for step in moment.place if step.iteration is not None]
    return {"kind": str(moment.kind), "branch": moment.branch, "iterations": iterations, "tick": moment.tick}
