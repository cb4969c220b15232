"""Markdown: a figure as a Mermaid flowchart between its title and its tables, as GitHub shows them."""

from __future__ import annotations

from stepper.export.figures.figure import Figure
from stepper.export.figures.loop_trace import LoopTrace
from stepper.export.figures.places import LoopPlace
from stepper.export.writers.mermaid import mermaid
from stepper.export.writers.tables import markdown_table, plain_markdown, port_rows, trace_rows


def markdown(figure: Figure, place: LoopPlace | None, trace: LoopTrace | None) -> str:
    """The whole page: title, what is seen, the flowchart, the port map of a loop, the iterations of a run."""
    lines = [f"# {plain_markdown(figure.title)}", "", plain_markdown(figure.description), ""]
    lines += ["```mermaid", mermaid(figure, below=False).rstrip("\n"), "```", ""]
    lines += [f"- {plain_markdown(fact)}" for fact in figure.below]
    if place is not None and place.layer.is_loop:
        head = ("", "in the body", "role", "outside", "slicing")
        lines += ["", "## Port map", "", *markdown_table(head, port_rows(place.layer))]
    if trace is not None:
        lines += ["", "## Iterations", "", *markdown_table(*trace_rows(trace))]
    return "\n".join(lines).rstrip("\n") + "\n"
