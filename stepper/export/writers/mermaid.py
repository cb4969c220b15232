"""Mermaid: a figure as a flowchart in text, which GitHub and others draw where it stands in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from stepper.export.drawing.styles import classes_of, palette, properties_of
from stepper.export.figures.figure import BACKWARD, Arrangement, Cluster, EdgeKind, Figure, FigureNode, NodeKind
from stepper.export.options import Theme
from stepper.export.picture import Picture

_LONGEST: Final = 50_000
"""Characters of Mermaid text; its `maxTextSize` if nothing else is set."""
_MOST_EDGES: Final = 500
"""Edges of a diagram; its `maxEdges` if nothing else is set."""

_BRACKETS: Final = {
    NodeKind.PARAMETER: ("([", "])"),
    NodeKind.INPUT: ("([", "])"),
    NodeKind.RESULT: ("([", "])"),
    NodeKind.OUTPUT: ("([", "])"),
    NodeKind.CONCATENATION: ("[[", "]]"),
    NodeKind.END: ("{{", "}}"),
}
_DOTTED: Final = (*BACKWARD, EdgeKind.ENDS)
_WIRES: Final = {
    **dict.fromkeys((EdgeKind.BACK, EdgeKind.CARRIED), "back"),
    EdgeKind.ENDS: "ink",
    EdgeKind.NO_EFFECT: "quiet",
    EdgeKind.SLICE: "in-edge",
    EdgeKind.PIECE: "out-edge",
}
"""Names of the colours of wires that have one of their own."""
_UNSAFE: Final = re.compile(r"[^\w .,:;/+*=~!?@'()\[\]{}←→×⋯…·-]")


def write(picture: Picture) -> str:
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
        "flowchart LR" if figure.arrangement is Arrangement.PORT_MAP else "flowchart TD",
        f"  accTitle: {_plain(figure.title)}",
        f"  accDescr: {_plain(figure.description)}",
        *_inside(figure, "", "  "),
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
        looks.setdefault(_look(properties), []).append(_id(shape.id))

    for node in figure.nodes:
        add(node, "box")
    for frame in figure.clusters:
        add(frame, "frame")
    for number, (look, ids) in enumerate(looks.items()):
        yield f"classDef s{number} {look}"
        yield f"class {','.join(ids)} s{number}"
    wires: dict[str, list[str]] = {}
    for index, edge in enumerate(figure.edges):
        if edge.kind in _WIRES:
            wires.setdefault(_WIRES[edge.kind], []).append(str(index))
    yield f"linkStyle default stroke:{colours['wire']}"
    for colour, indices in wires.items():
        yield f"linkStyle {','.join(indices)} stroke:{colours[colour]}"


def _look(properties: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{value}" for name, value in properties.items())


def _inside(figure: Figure, cluster: str, indent: str) -> Iterator[str]:
    for node in figure.nodes_in[cluster]:
        yield f"{indent}{_node(node)}"
    for inner in figure.clusters_in[cluster]:
        if inner.kind is NodeKind.ELLIPSIS:
            yield f"{indent}{_id(inner.id)}[{_text(inner.label)}]"
            continue
        yield f"{indent}subgraph {_id(inner.id)}[{_text(inner.label, *inner.lines)}]"
        yield from _inside(figure, inner.id, f"{indent}  ")
        yield f"{indent}end"


def _node(node: FigureNode) -> str:
    opening, closing = _BRACKETS.get(node.kind, ("[", "]"))
    return f"{_id(node.id)}{opening}{_text(*node.texts)}{closing}"


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
    return '"' + "<br/>".join(_UNSAFE.sub(_code, line) for line in lines) + '"'


def _code(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};"


def _plain(text: str) -> str:
    """Return text for outside of quotes, without markup and delimiters."""
    return _UNSAFE.sub(" ", text).translate(str.maketrans(";{}", ",()"))
