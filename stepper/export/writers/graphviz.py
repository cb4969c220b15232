"""Figures that Graphviz lays out and draws, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from stepper.errors import UsageError
from stepper.export.drawing.styles import ROUNDED, Palette, classes_of, palette, properties_of
from stepper.export.figures.figure import (
    BACKWARD,
    Arrangement,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    NodeKind,
)
from stepper.export.layout.arrangements import arrange_iterations
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, columns
from stepper.export.picture import Picture

HEAVY: Final = 1000
CELL: Final = 7.0
"""Points for a cell of our layout."""

ROW: Final = 14.0
INCH: Final = 72


def write(picture: Picture) -> str:
    """Return the figure in the DOT language; the same figure gives the same text."""
    figure = picture.figure
    colours, ordering = palette(picture.request.theme), _Ordering(figure)
    direction = "LR" if figure.arrangement is Arrangement.PORT_LISTS else "TB"
    font = 'fontname="Liberation Sans,Arimo,Arial,Helvetica,sans-serif"'
    lines = [
        *(("// `neato -n2` draws all iterations alike",) if ordering.rows else ()),
        "digraph stepper {",
        f"  rankdir={direction}; compound=true; newrank=true; splines=true; labelloc=t; labeljust=l;",
        f"  bgcolor={quoted(colours['page'])}; label={_label([figure.title, *figure.below_in_text], 'l')};",
        f"  tooltip={quoted(figure.description)};",
        f"  graph [{font}, fontsize=12, fontcolor={quoted(colours['ink'])}];",
        f"  node [shape=box, {font}, fontsize=11, fontcolor={quoted(colours['ink'])}];",
        f"  edge [{font}, fontsize=9, fontcolor={quoted(colours['quiet'])}, color={quoted(colours['wire'])}];",
        *_inside(figure, "", colours, "  ", ordering),
        *(f"  {_edge(figure, edge, colours)}" for edge in figure.edges),
        *(f"  {line}" for line in ordering.between()),
        "}",
    ]
    return "\n".join([*lines, ""])


def _inside(figure: Figure, cluster: str, colours: Palette, indent: str, ordering: _Ordering) -> Iterator[str]:
    for node in figure.nodes_in[cluster]:
        yield f"{indent}{_node(node, colours, *ordering.place(node.id))}"
    for inner in figure.clusters_in[cluster]:
        yield from _cluster(figure, inner, colours, indent, ordering)
    yield from (f"{indent}{line}" for line in ordering.within(cluster))


def _cluster(figure: Figure, cluster: Cluster, colours: Palette, indent: str, ordering: _Ordering) -> Iterator[str]:
    if cluster.kind is NodeKind.ELLIPSIS:
        node = FigureNode(cluster.id, NodeKind.ELLIPSIS, cluster.label)
        yield f"{indent}{_node(node, colours, *ordering.place(node.id))}"
        return
    edge = colours["now-edge" if cluster.highlighted else "body-edge"]
    yield f"{indent}subgraph {quoted(f'cluster_{cluster.id}')} {{"
    look = "rounded,dashed" if cluster.idle else "rounded,filled"
    yield f'{indent}  label={_label([cluster.label, *cluster.lines], "l")}; style="{look}";'
    yield f"{indent}  fillcolor={quoted(colours['body'])}; color={quoted(edge)};"
    yield from (f"{indent}  {line}" for line in ordering.frame(cluster.id))
    yield from _inside(figure, cluster.id, colours, f"{indent}  ", ordering)
    yield f"{indent}}}"


def _node(node: FigureNode, colours: Palette, *place: str) -> str:
    attributes = [f"label={_label(node.texts)}", *box_attributes(node, colours, shows_marks=True), *place]
    if node.title:
        attributes.append(f"tooltip={quoted(node.title)}")
    return f"{quoted(node.id)} [{', '.join(attributes)}];"


def box_attributes(node: FigureNode, colours: Palette, *, shows_marks: bool = False) -> list[str]:
    """Return the style of a node's box as attributes; `shows_marks`: a box with marks has a border of their colour."""
    found = properties_of("box", classes_of(node), colours)
    styles = ["filled", *["rounded"] * (node.kind in ROUNDED), *["dashed"] * ("stroke-dasharray" in found)]
    is_marked = shows_marks and bool(node.marks)
    return [
        f"style={quoted(','.join(styles))}",
        f"fillcolor={quoted(found['fill'])}",
        f"color={quoted(colours['mark'] if is_marked else found['stroke'])}",
        f"penwidth={2 if is_marked else 0.8 * float(found['stroke-width']):g}",
    ]


def edge_style(kind: EdgeKind, colours: Palette, *, is_idle: bool = False) -> tuple[str, str]:
    """Return colour and style of an edge's line."""
    found = properties_of("wire", f"{kind}{' idle' if is_idle else ''}", colours)
    dashes = found.get("stroke-dasharray", "")
    return found["stroke"], "solid" if not dashes else "dotted" if float(dashes.split()[0]) < 2 else "dashed"


def _edge(figure: Figure, edge: FigureEdge, colours: Palette) -> str:
    attributes = []
    ends = []
    for word, end in (("ltail", edge.source), ("lhead", edge.target)):
        is_frame = _is_frame(figure, end)
        attributes += [f"{word}={quoted(f'cluster_{end}')}"] * is_frame
        ends.append(quoted(_any_node(figure, end) if is_frame else end))
    if edge.label or edge.details:
        attributes.append(f"label={_label([text for text in (edge.label, *edge.details) if text])}")
    colour, style = edge_style(edge.kind, colours)
    if colour != colours["wire"]:
        attributes.append(f"color={quoted(colour)}")
    if style != "solid":
        attributes.append(f"style={style}")
    if edge.kind in BACKWARD and figure.arrangement is not Arrangement.PORT_LISTS:
        attributes.append("constraint=false")
    if figure.arrangement is Arrangement.ITERATIONS and edge.kind is not EdgeKind.DATA:
        attributes.append("weight=0")
    listed = f" [{', '.join(attributes)}]" if attributes else ""
    return f"{' -> '.join(ends)}{listed};"


def _is_frame(figure: Figure, id: str) -> bool:
    cluster = figure.clusters_by_id.get(id)
    return cluster is not None and cluster.kind is not NodeKind.ELLIPSIS


def _any_node(figure: Figure, cluster: str) -> str:
    """Return some node in a cluster, for an edge that ends at its frame."""
    nodes = figure.nodes_in[cluster]
    if nodes:
        return nodes[0].id
    return next((_any_node(figure, inner.id) for inner in figure.clusters_in[cluster]), cluster)


class _Ordering:
    """Places and rows of a figure with iterations; empty for any other."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.drawing = arrange_iterations(figure) if figure.arrangement is Arrangement.ITERATIONS else FigureLayout()
        marks = (BoxShape(one.node, one.x, one.y, columns(one.node.label), 1) for one in self.drawing.marks)
        boxes = sorted([*self.drawing.boxes, *marks], key=lambda box: (box.y, box.x))
        self.rows = _rows(boxes)
        self.boxes = {box.node.id: box for box in boxes}
        self.frames = {frame.cluster.id: frame for frame in self.drawing.frames}

    def place(self, id: str) -> Iterator[str]:
        """Yield the size and the place of a box, in inches and points, as attributes."""
        box = self.boxes.get(id)
        if box is not None:
            x, y = (box.x + box.width / 2) * CELL, self._y(box.y + box.height / 2)
            yield f"width={box.width * CELL / INCH:.2f}, height={(box.height * ROW - 4) / INCH:.2f}"
            yield f'pos="{x:g},{y:g}"'

    def frame(self, id: str) -> Iterator[str]:
        """Yield the place of a cluster and of its label, as attributes."""
        frame = self.frames.get(id)
        if frame is not None:
            left, right = frame.x * CELL, (frame.x + frame.width) * CELL
            top, bottom = self._y(frame.y), self._y(frame.y + frame.height)
            wide = columns(frame.cluster.label, bold=True) * CELL
            yield f'bb="{left:g},{bottom:g},{right:g},{top:g}"; lp="{left + wide / 2 + 6:g},{top - ROW:g}";'

    def _y(self, row: float) -> float:
        return (self.drawing.height - row) * ROW

    def within(self, iteration: str) -> Iterator[str]:
        """Yield lines for the cluster of an iteration."""
        rows = self.rows.get(iteration, [])
        for row in rows:
            yield f"{{ rank=same; {' '.join(f'{quoted(node)};' for node in row)} }}"
            yield from (_invisible(left, right) for left, right in pairwise(row))
        yield from (_invisible(above[0], below[0]) for above, below in pairwise(rows))

    def between(self) -> Iterator[str]:
        """Yield lines for the whole graph: iterations in order, inputs above, outputs below."""
        if not self.rows:
            return
        for before, after in pairwise(self.figure.clusters_in[""]):
            last = self.rows[before.id][-1][0] if before.id in self.rows else before.id
            first = self.rows[after.id][0][0] if after.id in self.rows else after.id
            yield _invisible(last, first)
        outside = self.figure.nodes_in[""]
        for inputs in (True, False):
            nodes = [node.id for node in outside if (node.kind is NodeKind.INPUT) is inputs]
            if nodes:
                yield f"{{ rank=same; {' '.join(f'{quoted(node)};' for node in nodes)} }}"


def _rows(boxes: list[BoxShape]) -> dict[str, list[list[str]]]:
    """Return the nodes of each iteration by rows, from left to right."""
    found: dict[str, dict[int, list[str]]] = {}
    for box in boxes:
        place = box.node.place
        if place is not None:
            found.setdefault(place.stage, {}).setdefault(box.y, []).append(box.node.id)
    return {id: list(rows.values()) for id, rows in found.items()}


def _invisible(source: str, target: str) -> str:
    return f"{quoted(source)} -> {quoted(target)} [style=invis, weight={HEAVY}];"


def _label(texts: tuple[str, ...] | list[str], end: str = "n") -> str:
    """Return the lines of a label, each with Graphviz's line end: centred (n) or on the left (l)."""
    escaped = [_escaped(text) for text in texts]
    return '"' + (f"\\{end}".join(escaped) + ("\\l" if end == "l" else "")) + '"'


def quoted(text: str) -> str:
    """Return a text as an identifier of the DOT language."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


INSTALL: Final = "install it with `apt install graphviz`, `brew install graphviz` or from graphviz.org"

MOST_AROUND: Final = 150
"""Nodes at positions round which Graphviz routes edges within a second; more take much longer."""


def laid_out_by_dot(picture: Picture, format: str) -> bytes:
    """Return the figure as Graphviz lays it out: svg, png or pdf. Raise UsageError where it is missing, or fails."""
    figure = picture.figure
    has_places = figure.arrangement is Arrangement.ITERATIONS and len(figure.nodes) <= MOST_AROUND
    return drawn(write(picture), format, is_placed=has_places)


def drawn(text: str, format: str, *, is_placed: bool) -> bytes:
    """Return DOT text drawn as svg, png or pdf, with the positions in the text where it `is_placed`, else laid out.

    Raise UsageError where Graphviz is not installed, or fails.
    """
    import graphviz  # type: ignore[import-untyped]  # it has no types, and loads only where it is needed

    try:
        engine = {"engine": "neato", "neato_no_op": 2} if is_placed else {"engine": "dot"}
        made: bytes = graphviz.Source(text).pipe(format=format, quiet=True, **engine)
    except graphviz.ExecutableNotFound:
        raise UsageError(
            f"{format} is drawn by Graphviz, but its program `dot` is not installed; {INSTALL}. "
            "without `--layout dot` it is not needed"
        ) from None
    except graphviz.CalledProcessError as error:
        raise UsageError(f"Graphviz could not draw the figure: {str(error).splitlines()[0]}") from None
    return made
