"""Graphviz: a figure as DOT text, which needs no program; and drawn by `dot`, where that is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stepper.errors import UsageError
from stepper.export.figures.figure import Arrangement, Cluster, Edge, EdgeKind, Figure, Kind, Node
from stepper.export.writers.dot_order import Ordering
from stepper.export.writers.themes import Palette, Theme, palette

INSTALL: Final = "install it with `apt install graphviz`, `brew install graphviz` or from graphviz.org"

_SHAPES: Final = {
    Kind.PARAMETER: "rounded,filled",
    Kind.RESULT: "rounded,filled,bold",
    Kind.INPUT: "rounded,filled",
    Kind.OUTPUT: "rounded,filled,bold",
    Kind.GROUP: "filled,dashed",
    Kind.SHAPES: "filled,dashed",
    Kind.ELLIPSIS: "filled,dashed",
}
_FILLS: Final = {
    Kind.PARAMETER: "in",
    Kind.INPUT: "in",
    Kind.RESULT: "out",
    Kind.OUTPUT: "out",
    Kind.CONCATENATION: "out",
}
_COLOURS: Final = {
    EdgeKind.BACK: "back",
    EdgeKind.CARRIED: "back",
    EdgeKind.ENDS: "back",
    EdgeKind.SLICE: "in-edge",
    EdgeKind.PIECE: "out-edge",
}


def dot(figure: Figure, theme: Theme = Theme.AUTO) -> str:
    """The figure in the DOT language; the same figure gives the same text."""
    colours, ordering = palette(theme), Ordering(figure)
    direction = "LR" if figure.arrangement is Arrangement.COLUMNS else "TB"
    font = 'fontname="DejaVu Sans Mono,Menlo,Consolas,monospace"'
    lines = [
        *(("// `neato -n2` draws all iterations alike",) if ordering.rows else ()),
        "digraph stepper {",
        f"  rankdir={direction}; compound=true; newrank=true; splines=true; labelloc=t; labeljust=l;",
        f"  bgcolor={_quoted(colours['page'])}; label={_label([figure.title, *figure.below], 'l')};",
        f"  graph [{font}, fontsize=12, fontcolor={_quoted(colours['ink'])}];",
        f"  node [shape=box, {font}, fontsize=11, fontcolor={_quoted(colours['ink'])}];",
        f"  edge [{font}, fontsize=9, fontcolor={_quoted(colours['quiet'])}, color={_quoted(colours['wire'])}];",
        *_inside(figure, "", colours, "  ", ordering),
        *(f"  {_edge(figure, edge, colours)}" for edge in figure.edges),
        *(f"  {line}" for line in ordering.between()),
        "}",
    ]
    return "\n".join([*lines, ""])


def _inside(figure: Figure, cluster: str, colours: Palette, indent: str, ordering: Ordering) -> Iterator[str]:
    for node in figure.nodes_in[cluster]:
        yield f"{indent}{_node(node, colours, *ordering.place(node.id))}"
    for inner in figure.clusters_in[cluster]:
        yield from _cluster(figure, inner, colours, indent, ordering)
    yield from (f"{indent}{line}" for line in ordering.within(cluster))


def _cluster(figure: Figure, cluster: Cluster, colours: Palette, indent: str, ordering: Ordering) -> Iterator[str]:
    if cluster.kind is Kind.ELLIPSIS:
        node = Node(cluster.id, Kind.ELLIPSIS, cluster.label)
        yield f"{indent}{_node(node, colours, *ordering.place(node.id))}"
        return
    edge = colours["now-edge" if cluster.highlighted else "body-edge"]
    yield f"{indent}subgraph {_quoted(f'cluster_{cluster.id}')} {{"
    look = "rounded,dashed" if cluster.idle else "rounded,filled"
    yield f'{indent}  label={_label([cluster.label, *cluster.lines], "l")}; style="{look}";'
    yield f"{indent}  fillcolor={_quoted(colours['body'])}; color={_quoted(edge)};"
    yield from (f"{indent}  {line}" for line in ordering.frame(cluster.id))
    yield from _inside(figure, cluster.id, colours, f"{indent}  ", ordering)
    yield f"{indent}}}"


def _node(node: Node, colours: Palette, *place: str) -> str:
    fill = _FILLS.get(node.kind, "box")
    fill, edge = (fill, f"{fill}-edge" if fill != "box" else "edge")
    style = _SHAPES.get(node.kind, "filled")
    if node.highlighted:
        fill, edge, style = "now", "now-edge", f"{style},bold"
    if node.idle:
        fill, edge, style = "body", "body-edge", "filled,dashed"
    attributes = [
        f"label={_label(node.texts)}",
        f'style="{style}"',
        f"fillcolor={_quoted(colours[fill])}",
        f"color={_quoted(colours['mark' if node.marks else edge])}",
    ]
    attributes += place
    if node.marks:
        attributes.append("penwidth=2")
    if node.title:
        attributes.append(f"tooltip={_quoted(node.title)}")
    return f"{_quoted(node.id)} [{', '.join(attributes)}];"


def _edge(figure: Figure, edge: Edge, colours: Palette) -> str:
    attributes = []
    source, target = edge.source, edge.target
    if _is_frame(figure, source):
        attributes.append(f"ltail={_quoted(f'cluster_{source}')}")
        source = _any_node(figure, source)
    if _is_frame(figure, target):
        attributes.append(f"lhead={_quoted(f'cluster_{target}')}")
        target = _any_node(figure, target)
    if edge.label:
        attributes.append(f"label={_quoted(edge.label)}")
    if edge.kind in _COLOURS:
        attributes.append(f"color={_quoted(colours[_COLOURS[edge.kind]])}")
    if edge.kind is EdgeKind.BACK:
        attributes += ["style=dashed", *(() if figure.arrangement is Arrangement.COLUMNS else ("constraint=false",))]
    if edge.kind is EdgeKind.ENDS:
        attributes.append("style=dotted")
    if figure.arrangement is Arrangement.STACK and edge.kind is not EdgeKind.DATA:
        attributes.append("weight=0")
    listed = f" [{', '.join(attributes)}]" if attributes else ""
    return f"{_quoted(source)} -> {_quoted(target)}{listed};"


def _is_frame(figure: Figure, id: str) -> bool:
    cluster = figure.clusters_by_id.get(id)
    return cluster is not None and cluster.kind is not Kind.ELLIPSIS


def _any_node(figure: Figure, cluster: str) -> str:
    """Some node in a cluster, for an edge that ends at its frame."""
    nodes = figure.nodes_in[cluster]
    if nodes:
        return nodes[0].id
    return next((_any_node(figure, inner.id) for inner in figure.clusters_in[cluster]), cluster)


def _label(texts: tuple[str, ...] | list[str], end: str = "n") -> str:
    """Lines of a label, each ended as Graphviz wants it: centred (n) or on the left (l)."""
    escaped = [_escaped(text) for text in texts]
    return '"' + (f"\\{end}".join(escaped) + ("\\l" if end == "l" else "")) + '"'


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def drawn_by_dot(text: str, format: str, *, placed: bool = False) -> bytes:
    """DOT text drawn by Graphviz as svg, png or pdf; `placed`: with the places that the text gives, else laid out.

    UsageError where Graphviz is not installed, or fails.
    """
    import graphviz  # type: ignore[import-untyped]  # it has no types, and loads only where it is needed

    try:
        engine = {"engine": "neato", "neato_no_op": 2} if placed else {"engine": "dot"}
        made: bytes = graphviz.Source(text).pipe(format=format, quiet=True, **engine)
    except graphviz.ExecutableNotFound:
        raise UsageError(
            f"{format} is drawn by Graphviz, but its program `dot` is not installed; {INSTALL}. "
            "`--as svg` and `--as dot` work without it"
        ) from None
    except graphviz.CalledProcessError as error:
        raise UsageError(f"Graphviz could not draw the figure: {str(error).splitlines()[0]}") from None
    return made
