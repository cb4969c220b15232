"""The story of a value, or of the end of a loop: its strip as a drawing, and as a graph for formats of text."""

from __future__ import annotations

from stepper.debug.causes.texts import element_text
from stepper.debug.story.facts import LinkRole, Story, StoryColumn
from stepper.debug.story.texts import column_text, entry_text, extent, number, reason, title, value_text, verdict
from stepper.export.figures.figure import Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind


def story_figure(story: Story, model: str, notes: tuple[str, ...] = ()) -> Figure:
    """Return a story as nodes `op@iteration` in a cluster for each iteration; `model` is the name of the model.

    `notes` stand below.
    """
    told, more = verdict(story)
    return Figure(
        title=f"why {title(story)}",
        description=f"{told}{more}. {extent(story)}.",
        nodes=tuple(_nodes(story)),
        edges=tuple(_edges(story)),
        clusters=tuple(
            Cluster(f"c{place}", NodeKind.ITERATION, _head(column)) for place, column in enumerate(story.columns)
        ),
        facts=(*((model,) if model else ()), *notes),
    )


def _head(column: StoryColumn) -> str:
    if not column.path:
        return "model" if not column.phase else f"model, {'before' if column.phase < 0 else 'after'} the loop"
    outer = f"{'>'.join(map(str, column.path[:-1]))}>" if len(column.path) > 1 else ""
    when = "" if not column.phase else ", before" if column.phase < 0 else ", after"
    return f"iteration {outer}{column_text(column)}{when}"


def _nodes(story: Story) -> list[FigureNode]:
    nodes = []
    for place, link in enumerate(story.links):
        row = story.rows[link.row]
        words = [word for word in (reason(link),) if word]
        if link.entry is not None:
            nodes.append(
                FigureNode(f"e{place}", NodeKind.INPUT, entry_text(link.entry), cluster="", title=str(link.entry.layer))
            )
        nodes.append(
            FigureNode(
                id=f"n{place}",
                kind=NodeKind.OPERATION,
                label=f"{row.name}{element_text(link.element)} = {value_text(link)}",
                lines=tuple(words),
                marks=("born here",) if link.role is LinkRole.BORN else (),
                title=f"{row.layer}, line {row.layer.line}",
                cluster=f"c{link.column}",
                highlighted=link.role is LinkRole.ASKED,
            )
        )
    return nodes


def _edges(story: Story) -> list[FigureEdge]:
    edges = [
        FigureEdge(f"e{place}", f"n{place}", EdgeKind.SLICE)
        for place, link in enumerate(story.links)
        if link.entry is not None
    ]
    for edge in story.edges:
        back = edge.back
        kind = EdgeKind.DATA if back is None else EdgeKind.CARRIED
        label = "" if back is None else f"{back.name} {number(story.links[edge.source].value)}"
        edges.append(FigureEdge(f"n{edge.source}", f"n{edge.target}", kind, label))
    return edges
