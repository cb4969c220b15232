"""Markdown: a figure as a Mermaid flowchart between its title and its tables, as GitHub shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepper.engine.loops import output_role, roles_of
from stepper.export.figures.loop_trace import IterationTrace, LoopTrace
from stepper.export.figures.value_summaries import statistics_text
from stepper.export.picture import Picture
from stepper.export.writers.mermaid import flowchart
from stepper.ir.model import Layer
from stepper.wording import excerpt


def write(picture: Picture) -> str:
    """Return the page: title, description, the flowchart, the port map of a loop, the iterations of a run."""
    figure, loop, trace = picture.figure, picture.loop, picture.trace
    lines = [f"# {_plain_text(figure.title)}", "", _plain_text(figure.description), ""]
    lines += ["```mermaid", flowchart(figure, below=False).rstrip("\n"), "```", ""]
    lines += [f"- {_plain_text(fact)}" for fact in figure.below_in_text]
    if loop is not None and loop.layer.is_loop:
        head = ("", "in the body", "role", "outside", "slicing")
        lines += ["", "## Port map", "", *_table(head, _port_rows(loop.layer))]
    if trace is not None:
        lines += ["", "## Iterations", "", *_table(*_trace_rows(trace))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _port_rows(layer: Layer) -> list[tuple[str, ...]]:
    """Return the port map of a loop as rows: direction, body layer, role, outer port, slicing."""
    body, roles = layer.bodies[0], roles_of(layer)
    names = {inner.id: excerpt(inner.name) for inner in body.graph.layers}
    rows: list[tuple[str, ...]] = [
        (
            "in",
            names[entry.parameter],
            str(roles.role_of(entry)),
            "" if entry.input is None else f"input {entry.input}",
            "" if entry.slicing is None else str(entry.slicing),
        )
        for entry in body.inputs
    ]
    rows += [
        (
            "out",
            names[output.result],
            output_role(output),
            "" if output.output is None else f"output {output.output}",
            "" if output.slicing is None else str(output.slicing),
        )
        for output in body.outputs
    ]
    rows += [("back edge", f"{names[tail]} → {names[head]}", "", "", "") for head, tail in roles.merged_from.items()]
    return rows


def _trace_rows(trace: LoopTrace) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the trace as a table: a row for each iteration, a column for what each sliced or carried Parameter got."""
    layer = trace.loop.layer
    roles, by_id = roles_of(layer), trace.loop.body.graph.by_id
    wanted = [entry.parameter for entry in (*roles.sliced, *roles.merged)]
    head = ["iteration", *(excerpt(by_id[id].name) for id in wanted)]
    conditional = any(iteration.condition is not None for iteration in trace.iterations)
    rows = []
    for iteration in trace.iterations:
        cells = [_cell_text(iteration, id) for id in wanted]
        truth = [str(iteration.condition).lower()] if conditional else []
        rows.append((str(iteration.number), *cells, *truth))
    return [*head, *(["condition"] if conditional else [])], rows


def _cell_text(iteration: IterationTrace, parameter: int) -> str:
    value, cut = iteration.values.get((parameter, 0)), iteration.slices.get(parameter)
    parts = [] if cut is None else [f"[{cut.begin}:{cut.end}]"]
    if value is not None:
        parts.append(value.described)
        parts += [value.numbers] if value.numbers else []
        parts += [statistics_text(value.statistics)] if value.statistics is not None and not value.numbers else []
        parts += map(str, value.marks)
    return " ".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table of Markdown; nothing in a cell is markup."""
    lines = ["| " + " | ".join(map(_plain_text, head)) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(_plain_text, row)) + " |" for row in rows)]


def _plain_text(text: str) -> str:
    """Return text without markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)
