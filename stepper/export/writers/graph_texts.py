"""Figures as text from which other programs draw: DOT for Graphviz, which draws them here too, Mermaid and Markdown.

The trace of a loop as JSON and CSV: what each iteration got, computed and carried.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from stepper.engine.loops import output_role, roles_of
from stepper.errors import UsageError
from stepper.export.figures.drawn_graph import ValueSummary, statistics_text
from stepper.export.figures.figure import (
    BACKWARD,
    Arrangement,
    Cluster,
    EdgeKind,
    Figure,
    FigureEdge,
    FigureNode,
    Lines,
    NodeKind,
)
from stepper.export.figures.loop_trace import IterationTrace, LoopTrace
from stepper.export.layout.arrangements import arrange_iterations
from stepper.export.layout.figure_layout import BoxShape, FigureLayout, columns
from stepper.export.options import Theme
from stepper.export.picture import FigureContent, Picture
from stepper.export.styles import ROUNDED, Palette, classes_of, palette, properties_of
from stepper.ir.model import Layer, Slicing, layer_site
from stepper.plain_values import answer_json, cell, json_number, json_text
from stepper.records import as_data
from stepper.wording import excerpt

HEAVY = 1000
CELL = 7.0
"""Points for a cell of our layout."""

ROW = 14.0
INCH = 72


def write_dot(picture: Picture) -> str:
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
    found = properties_of("box", classes_of(node), colours)
    styles = ["filled", *["rounded"] * (node.kind in ROUNDED), *["dashed"] * ("stroke-dasharray" in found)]
    attributes = [
        f"label={_label(node.texts)}",
        f"style={quoted(','.join(styles))}",
        f"fillcolor={quoted(found['fill'])}",
        f"color={quoted(colours['mark'] if node.marks else found['stroke'])}",
        f"penwidth={2 if node.marks else 0.8 * float(found['stroke-width']):g}",
        *place,
    ]
    if node.title:
        attributes.append(f"tooltip={quoted(node.title)}")
    return f"{quoted(node.id)} [{', '.join(attributes)}];"


def _edge(figure: Figure, edge: FigureEdge, colours: Palette) -> str:
    attributes = []
    ends = []
    for word, end in (("ltail", edge.source), ("lhead", edge.target)):
        is_frame = end in figure.clusters_by_id and figure.clusters_by_id[end].kind is not NodeKind.ELLIPSIS
        attributes += [f"{word}={quoted(f'cluster_{end}')}"] * is_frame
        ends.append(quoted(_any_node(figure, end) if is_frame else end))
    if edge.label or edge.details:
        attributes.append(f"label={_label([text for text in (edge.label, *edge.details) if text])}")
    found = properties_of("wire", edge.kind, colours)
    if found["stroke"] != colours["wire"]:
        attributes.append(f"color={quoted(found['stroke'])}")
    if dashes := found.get("stroke-dasharray"):
        attributes.append(f"style={'dotted' if float(dashes.split()[0]) < 2 else 'dashed'}")
    if edge.kind in BACKWARD and figure.arrangement is not Arrangement.PORT_LISTS:
        attributes.append("constraint=false")
    if figure.arrangement is Arrangement.ITERATIONS and edge.kind is not EdgeKind.DATA:
        attributes.append("weight=0")
    listed = f" [{', '.join(attributes)}]" if attributes else ""
    return f"{' -> '.join(ends)}{listed};"


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


def _label(texts: Lines | list[str], end: str = "n") -> str:
    """Return the lines of a label, each with Graphviz's line end: centred (n) or on the left (l)."""
    escaped = [_escaped(text) for text in texts]
    return '"' + (f"\\{end}".join(escaped) + ("\\l" if end == "l" else "")) + '"'


def quoted(text: str) -> str:
    """Return a text as an identifier of the DOT language."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


INSTALL = "install it with `apt install graphviz`, `brew install graphviz` or from graphviz.org"

MOST_AROUND = 150
"""Nodes at positions round which Graphviz routes edges within a second; more take much longer."""


def laid_out_by_dot(picture: Picture, format: str) -> bytes:
    """Return the figure as Graphviz lays it out: svg, png or pdf. Raise UsageError where it is missing, or fails."""
    figure = picture.figure
    has_places = figure.arrangement is Arrangement.ITERATIONS and len(figure.nodes) <= MOST_AROUND
    return drawn(write_dot(picture), format, is_placed=has_places)


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


_LONGEST = 50_000
"""Characters of Mermaid text; its `maxTextSize` if nothing else is set."""
_MOST_EDGES = 500
"""Edges of a diagram; its `maxEdges` if nothing else is set."""

_BRACKETS = dict.fromkeys(ROUNDED, ("([", "])")) | {
    NodeKind.CONCATENATION: ("[[", "]]"),
    NodeKind.END: ("{{", "}}"),
}
_DOTTED = (*BACKWARD, EdgeKind.ENDS)
_UNSAFE = re.compile(r"[^\w .,:;/+*=~!?@'()\[\]{}←→×⋯…·-]")


def write_mermaid(picture: Picture) -> str:
    """Return the figure as a flowchart; warn of one that is beyond the limits of Mermaid."""
    text = flowchart(picture.figure, picture.request.theme)
    beyond = []
    if len(text) > _LONGEST:
        beyond.append(f"{len(text):,} characters (Mermaid draws {_LONGEST:,})")
    if len(picture.figure.edges) > _MOST_EDGES:
        beyond.append(f"{len(picture.figure.edges):,} edges (Mermaid draws {_MOST_EDGES})")
    if beyond:
        less = (
            "--iters 0:2, --carried"
            if picture.figure.arrangement is Arrangement.ITERATIONS
            else "--blocks once, --depth 0"
        )
        said = f"the flowchart has {' and '.join(beyond)}, which GitHub and GitLab refuse"
        picture.request.warn(
            f"{said}: draw less with --around OP, {less}, or write svg; a page of your own can raise its limits "
            "(maxTextSize, maxEdges)"
        )
    return text


def flowchart(figure: Figure, theme: Theme = Theme.AUTO, *, below: bool = True) -> str:
    """Return the figure as a flowchart; the lines that stand below it are a box of their own, if wanted.

    Its colours are those of the other formats, for light pages where the theme is auto.
    """
    lines = [
        "flowchart LR" if figure.arrangement is Arrangement.PORT_LISTS else "flowchart TD",
        f"  accTitle: {_plain(figure.title)}",
        f"  accDescr: {_plain(figure.description)}",
        *_boxes_inside(figure, "", "  "),
        *(f"  {line}" for line in _edges(figure)),
        *(f"  {line}" for line in _styles(figure, theme)),
    ]
    if below and figure.below_in_text:
        lines += [f"  below[{_text(*figure.below_in_text)}]", "  style below fill:none,stroke:none,text-align:left"]
    return "\n".join([*lines, ""])


def _styles(figure: Figure, theme: Theme) -> Iterator[str]:
    """Yield the classes of boxes and frames, and the styles of wires, with literal colours."""
    colours = palette(theme)
    looks: dict[str, list[str]] = {}

    def add(shape: FigureNode | Cluster, kind: str) -> None:
        properties = properties_of(kind, classes_of(shape), colours) | {"color": colours["ink"]}
        if isinstance(shape, FigureNode) and shape.marks and not shape.highlighted:
            properties |= {"stroke": colours["mark"], "stroke-width": "3"}
        look = ",".join(f"{name}:{value}" for name, value in properties.items())
        looks.setdefault(look, []).append(_id(shape.id))

    for node in figure.nodes:
        add(node, "box")
    for frame in figure.clusters:
        add(frame, "frame")
    for number, (look, ids) in enumerate(looks.items()):
        yield f"classDef s{number} {look}"
        yield f"class {','.join(ids)} s{number}"
    wires: dict[str, list[str]] = {}
    for index, edge in enumerate(figure.edges):
        if edge.kind not in (EdgeKind.DATA, EdgeKind.PORT):
            wires.setdefault(properties_of("wire", edge.kind, colours)["stroke"], []).append(str(index))
    yield f"linkStyle default stroke:{colours['wire']}"
    for colour, indices in wires.items():
        yield f"linkStyle {','.join(indices)} stroke:{colour}"


def _boxes_inside(figure: Figure, cluster: str, indent: str) -> Iterator[str]:
    for node in figure.nodes_in[cluster]:
        opening, closing = _BRACKETS.get(node.kind, ("[", "]"))
        yield f"{indent}{_id(node.id)}{opening}{_text(*node.texts)}{closing}"
    for inner in figure.clusters_in[cluster]:
        if inner.kind is NodeKind.ELLIPSIS:
            yield f"{indent}{_id(inner.id)}[{_text(inner.label)}]"
            continue
        yield f"{indent}subgraph {_id(inner.id)}[{_text(inner.label, *inner.lines)}]"
        yield from _boxes_inside(figure, inner.id, f"{indent}  ")
        yield f"{indent}end"


def _edges(figure: Figure) -> Iterator[str]:
    for edge in figure.edges:
        arrow = "-.->" if edge.kind in _DOTTED else "==>" if edge.kind is EdgeKind.CARRIED else "-->"
        words = [text for text in (edge.label, *edge.details) if text]
        label = f"|{_text(*words)}|" if words else ""
        yield f"{_id(edge.source)} {arrow}{label} {_id(edge.target)}"


def _id(id: str) -> str:
    """Return an id without dots; `end` is a word of the language."""
    return f"x_{id.replace('.', '_')}"


def _text(*lines: str) -> str:
    """Return quoted text, in which quotes and markup are character codes."""
    return '"' + "<br/>".join(_UNSAFE.sub(lambda match: f"#{ord(match[0])};", line) for line in lines) + '"'


def _plain(text: str) -> str:
    """Return text for outside of quotes, without markup and delimiters."""
    return _UNSAFE.sub(" ", text).translate(str.maketrans(";{}", ",()"))


def write_markdown(picture: Picture) -> str:
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


def _port_rows(layer: Layer) -> list[Lines]:
    """Return the port map of a loop as rows: direction, body layer, role, outer port, slicing."""
    body, roles = layer.bodies[0], roles_of(layer)
    names = {inner.id: excerpt(inner.name) for inner in body.graph.layers}

    def row(way: str, key: int, role: str, word: str, port: int | None, slicing: Slicing | None) -> Lines:
        return way, names[key], role, "" if port is None else f"{word} {port}", "" if slicing is None else str(slicing)

    rows = [row("in", one.parameter, roles.role_of(one), "input", one.input, one.slicing) for one in body.inputs]
    rows += [row("out", one.result, output_role(one), "output", one.output, one.slicing) for one in body.outputs]
    rows += [("back edge", f"{names[tail]} → {names[head]}", "", "", "") for head, tail in roles.merged_from.items()]
    return rows


def _trace_rows(trace: LoopTrace) -> tuple[list[str], list[Lines]]:
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


COLUMNS = (
    *("iteration", "id", "type", "name", "output", "element_type", "shape"),
    *("min", "max", "mean", "std", "nan", "inf", "numbers", "marks", "computed_by"),
)


def write_json(picture: Picture) -> str:
    """Return all facts of the iterations kept, as JSON with a schema number."""
    trace, content = _traced(picture), picture.request.content
    layer, roles = trace.loop.layer, roles_of(trace.loop.layer)
    report = {
        "loop": {**as_data(layer_site(layer, trace.file)), "path": trace.loop.name},
        "around": list(trace.around),
        "iterations": trace.count,
        "ended": trace.ended,
        "left_out": [[begin, end - 1] for begin, end in trace.left_out],
        "back_edges": [{"from": tail, "to": head} for head, tail in roles.merged_from.items()],
        "outputs": [_output_json(trace, index) for index in range(len(trace.loop.body.outputs))],
        "trace": [
            {
                "iteration": iteration.number,
                "condition": iteration.condition,
                "slices": [
                    {"parameter": id, "axis": cut.axis, "begin": cut.begin, "end": cut.end, "extent": cut.extent}
                    for id, cut in iteration.slices.items()
                ],
                "values": [
                    {
                        "layer": as_data(layer_site(layer, trace.file)),
                        "output": output,
                        **_value_json(value),
                        "computed_by": _computed_by(trace, layer, content) or None,
                    }
                    for layer, output, value in _traced_values(trace, iteration)
                ],
            }
            for iteration in trace.iterations
        ],
    }
    return json_text(answer_json(report), 1) + "\n"


def _output_json(trace: LoopTrace, index: int) -> dict[str, Any]:
    entry = trace.loop.body.outputs[index]
    scan = trace.scan(entry.output)
    found = {"output": entry.output, "result": entry.result, "role": output_role(entry)}
    return {**found, "slicing": as_data(entry.slicing), "order": None if scan is None else scan.order}


def _computed_by(trace: LoopTrace, layer: Layer, content: FigureContent) -> str:
    """Return the partners that computed a value."""
    return ", ".join(content.computed_by(trace.loop.body.graph, [layer.id]))


def _value_json(value: ValueSummary) -> dict[str, Any]:
    found = value.statistics
    numbers = {} if found is None else {key: getattr(found, key) for key in ("min", "max", "mean", "std", "nan")}
    return {
        "element_type": value.type,
        "shape": list(value.shape),
        **{key: json_number(number) for key, number in numbers.items()},
        "inf": None if found is None else found.infinite,
        "numbers": value.numbers or None,
        "marks": [str(mark) for mark in value.marks],
    }


def _traced_values(trace: LoopTrace, iteration: IterationTrace) -> Iterator[tuple[Layer, int, ValueSummary]]:
    """Yield the values of an iteration in the order of the file; Constants and Results have none of their own."""
    for layer in trace.loop.body.graph.layers:
        if layer.type in ("Constant", "Result"):
            continue
        for output in range(len(layer.outputs)):
            value = iteration.values.get((layer.id, output))
            if value is not None:
                yield layer, output, value


def write_csv(picture: Picture) -> str:
    """Return a row for each value of each iteration kept."""
    trace, content = _traced(picture), picture.request.content
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for iteration in trace.iterations:
        for layer, output, value in _traced_values(trace, iteration):
            row = {"id": layer.id, "type": layer.type, "name": layer.name, "output": output, **_value_json(value)}
            shape, marks = "x".join(map(str, value.shape)), "; ".join(map(str, value.marks))
            cells = {**row, "iteration": iteration.number, "shape": shape, "marks": marks}
            cells["computed_by"] = _computed_by(trace, layer, content)
            found = [cells.get(column) for column in COLUMNS]
            writer.writerow([cell(one) if isinstance(one, str) else one for one in found])
    return text.getvalue()


def _traced(picture: Picture) -> LoopTrace:
    assert picture.trace is not None, "a format of Subject.RUN"
    return picture.trace
