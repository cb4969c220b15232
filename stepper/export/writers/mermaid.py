"""Mermaid: a figure as a flowchart in text, which GitHub and others draw where it stands in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stepper.export.figures.figure import Arrangement, EdgeKind, Figure, FigureNode, NodeKind
from stepper.export.picture import Picture

_LONGEST: Final = 50_000
"""Characters of Mermaid text; its `maxTextSize` if nothing else is set."""

_BRACKETS: Final = {
    NodeKind.PARAMETER: ("([", "])"),
    NodeKind.INPUT: ("([", "])"),
    NodeKind.RESULT: ("([", "])"),
    NodeKind.OUTPUT: ("([", "])"),
    NodeKind.CONCATENATION: ("[[", "]]"),
    NodeKind.END: ("{{", "}}"),
}
_DOTTED: Final = (EdgeKind.BACK, EdgeKind.ENDS)
_UNSAFE: Final = re.compile(r"[^\w .,:;/+*=~!?@'()\[\]{}←→×⋯…·-]")


def write(picture: Picture) -> str:
    """Return the figure as a flowchart; warn of one that GitHub does not draw."""
    text = flowchart(picture.figure)
    if len(text) > _LONGEST:
        picture.request.warn(f"the flowchart has {len(text):,} characters; GitHub draws {_LONGEST:,} at most")
    return text


def flowchart(figure: Figure, *, below: bool = True) -> str:
    """Return the figure as a flowchart; the lines that stand below it are a box of their own, if wanted."""
    lines = [
        "flowchart LR" if figure.arrangement is Arrangement.PORT_MAP else "flowchart TD",
        f"  accTitle: {_plain(figure.title)}",
        f"  accDescr: {_plain(figure.description)}",
        *_inside(figure, "", "  "),
        *(f"  {line}" for line in _edges(figure)),
        "  classDef highlighted stroke-width:4px",
        "  classDef marked stroke-width:3px,stroke:#cf222e",
    ]
    idle = [_id(frame.id) for frame in figure.clusters if frame.idle]
    idle += [_id(node.id) for node in figure.nodes if node.idle]
    highlighted = [_id(node.id) for node in figure.nodes if node.highlighted]
    marked = [_id(node.id) for node in figure.nodes if node.marks and not node.highlighted]
    if highlighted:
        lines.append(f"  class {','.join(highlighted)} highlighted")
    if marked:
        lines.append(f"  class {','.join(marked)} marked")
    if idle:
        lines += ["  classDef idle stroke-dasharray:3 3,opacity:0.6", f"  class {','.join(idle)} idle"]
    if below and figure.below:
        lines += [f"  below[{_text(*figure.below)}]", "  style below fill:none,stroke:none,text-align:left"]
    return "\n".join([*lines, ""])


def _inside(figure: Figure, cluster: str, indent: str) -> Iterator[str]:
    for node in figure.nodes_in[cluster]:
        yield f"{indent}{_node(node)}"
    for inner in figure.clusters_in[cluster]:
        if inner.kind is NodeKind.ELLIPSIS:
            yield f"{indent}{_id(inner.id)}[{_text(inner.label)}]"
            continue
        yield f"{indent}subgraph {_id(inner.id)}[{_text(inner.label)}]"
        yield from _inside(figure, inner.id, f"{indent}  ")
        yield f"{indent}end"


def _node(node: FigureNode) -> str:
    opening, closing = _BRACKETS.get(node.kind, ("[", "]"))
    return f"{_id(node.id)}{opening}{_text(*node.texts)}{closing}"


def _edges(figure: Figure) -> Iterator[str]:
    for edge in figure.edges:
        arrow = "-.->" if edge.kind in _DOTTED else "==>" if edge.kind is EdgeKind.CARRIED else "-->"
        label = f"|{_text(edge.label)}|" if edge.label else ""
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
