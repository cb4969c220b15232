"""A rolled body as one box, the cell, between what goes in and what comes out: a box for each role, on any page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from stepper.engine.loops import NoEffect, output_role, roles_of
from stepper.export.figures.builder import kind_of, loop_label
from stepper.export.figures.content import FigureContent
from stepper.export.figures.figure import SIDES, Cluster, EdgeKind, Figure, FigureEdge, FigureNode, NodeKind, PortRole
from stepper.export.figures.labels import reader_names, references_of, shortened
from stepper.export.figures.loop_facts import (
    EdgeWithoutEffect,
    differences_within,
    edges_without_effect,
    loop_facts,
)
from stepper.export.figures.loop_paths import LoopPath
from stepper.export.formulas.equations import equations
from stepper.export.loops.frame_ports import FramePorts
from stepper.ir.model import Body, Graph, InputMapping, Layer, Model
from stepper.query.short_names import is_automatic
from stepper.wording import counted, excerpt

_MOST_NAMES: Final = 4
"""Names that a box has at most."""
_MOST_TYPES: Final = 3
_LONGEST: Final = 20
WHOLE_LABEL: Final = 44
"""Letters of the label of a frame that has a page of 84 mm for itself."""


def cell_figure(model: Model, loop: LoopPath, content: FigureContent) -> Figure:
    """Return the body of a loop, or the sides of an If, as one box each."""
    layer = loop.layer
    facts = loop_facts(model, loop.outer, layer, content.limit_of(loop.outer, layer))
    inner = tuple(note for body in layer.bodies for note in differences_within(body.graph))
    id = f"c{layer.id}"
    frame = _titled(Cluster(id, kind_of(layer), layer.type), layer)
    formula = equations(model, layer) if layer.is_loop and content.formula else ()
    made = Figure(f"{loop.title}, rolled", "", (), (), (frame,), equations=formula, facts=(*facts, *inner))
    made = (
        _with_cell(made, loop, id, FramePorts(content, layer, loop.outer))
        if layer.is_loop
        else _with_sides(made, loop, id)
    )
    count = sum(len(body.graph.layers) for body in layer.bodies)
    description = (
        f"The body of {loop.title} as one box of {counted(count, 'layer')}, between what goes in and what comes out. "
        f"{'; '.join((*formula, *facts))}."
    )
    return replace(made, description=description)


def _titled(frame: Cluster, layer: Layer) -> Cluster:
    """Return the frame with a label that is not cut on narrow pages: a long name stands below the type."""
    label = loop_label(layer)
    if len(label) > WHOLE_LABEL:
        return replace(frame, label=layer.type, lines=(shortened(excerpt(layer.name), WHOLE_LABEL),))
    longer = f"{label}, one iteration" if layer.is_loop else label
    return replace(frame, label=longer if len(longer) <= WHOLE_LABEL else label)


def _with_cell(figure: Figure, loop: LoopPath, frame: str, ports: FramePorts) -> Figure:
    """Return the figure with the cell of a loop and its roles, back edges without effect, and a mark for each end."""
    body, roles = loop.body, roles_of(loop.layer)
    names = _names_of(body.graph)
    carried = [names[parameter] for parameter in roles.merged_from]
    lost = edges_without_effect(loop.layer)
    inputs = _told(
        {
            "sliced": [_with_origin(loop, entry, names) for entry in roles.sliced],
            "the same each time": [_with_origin(loop, entry, names) for entry in roles.invariant],
            "iteration number": [names[parameter] for parameter in roles.current_iteration],
            "not fed": [names[one.parameter] for one in lost if one.reason is NoEffect.NOT_FED],
        }
    )
    cell = _cell(body.graph, "cell", frame)
    nodes, edges = [cell], []
    if inputs:
        nodes.append(FigureNode("inputs", NodeKind.PARAMETER, "inputs", inputs, cluster=frame))
        edges.append(FigureEdge("inputs", cell.id, EdgeKind.DATA))
    if carried:
        now = FigureNode("carried", NodeKind.PARAMETER, "carried", (_listed(carried),), cluster=frame)
        nodes.append(replace(now, role=PortRole.CARRIED))
        edges.append(FigureEdge("carried", cell.id, EdgeKind.DATA))
    if carried or lost:
        nodes.append(FigureNode("next", NodeKind.RESULT, "next", cluster=frame))
        edges.append(FigureEdge(cell.id, "next", EdgeKind.DATA))
    if carried:
        edges.append(FigureEdge("next", "carried", EdgeKind.BACK, counted(len(carried), "carried value")))
    for head in ("carried", "inputs"):
        here = [one for one in lost if (one.reason is NoEffect.EARLIER) == (head == "carried")]
        if here and any(node.id == head for node in nodes):
            edges.append(_without_effect(head, here))
    outputs = _outputs(loop)
    if outputs:
        nodes.append(FigureNode("outputs", NodeKind.RESULT, "outputs", outputs, cluster=frame))
        edges.append(FigureEdge(cell.id, "outputs", EdgeKind.DATA))
    if _can_end(body):
        goes_on = FigureNode("condition", NodeKind.RESULT, "goes on?", cluster=frame, role=PortRole.CONDITION)
        nodes += [goes_on, FigureNode("end", NodeKind.END, "false: ends", cluster=frame)]
        edges += [FigureEdge(cell.id, "condition", EdgeKind.DATA), FigureEdge("condition", "end", EdgeKind.ENDS)]
    for way in ports.ways_to_end:
        nodes.append(FigureNode("count", NodeKind.END, way.words, cluster=frame))
    found = tuple(ports.to_mark(way, "count") for way in ports.ways_to_end)
    clusters = tuple(replace(one, ports=found) for one in figure.clusters)
    return replace(figure, nodes=tuple(nodes), edges=tuple(edges), clusters=clusters)


def _without_effect(head: str, lost: Sequence[EdgeWithoutEffect]) -> FigureEdge:
    """Return the edge for back edges without effect; where there are several, their reasons are told below."""
    told = lost[0].told if len(lost) == 1 else (f"{len(lost)} back edges,", "as told below")
    label = f"{counted(len(lost), 'back edge')}: no effect"
    return FigureEdge("next", head, EdgeKind.NO_EFFECT, label, details=told)


def _with_origin(loop: LoopPath, entry: InputMapping, names: Mapping[int, str]) -> str:
    """Return the name of a Parameter; of one that a converter has numbered also that of what it gets."""
    name, source = names[entry.parameter], None
    if entry.input is not None and is_automatic(loop.body.graph.by_id[entry.parameter]):
        source = loop.outer.sources[loop.layer.id][entry.input]
    return name if source is None else f"{name} ← {_names_of(loop.outer)[source.layer]}"


def _can_end(body: Body) -> bool:
    """True if the body has a condition that is no Constant."""
    result = next((entry.result for entry in body.outputs if output_role(entry).is_condition), None)
    source = None if result is None else body.graph.sources[result][0]
    return source is not None and body.graph.by_id[source.layer].type != "Constant"


def _with_sides(figure: Figure, loop: LoopPath, frame: str) -> Figure:
    """Return the figure with a cell for each side of an If."""
    sides = [(f"{frame}.{SIDES[body.role]}", body) for body in loop.layer.bodies]
    frames = [Cluster(id, NodeKind.SIDE, SIDES[body.role], frame, level=1) for id, body in sides]
    cells = [_side(loop, body, id) for id, body in sides]
    return replace(figure, clusters=(*figure.clusters, *frames), nodes=tuple(cells))


def _side(loop: LoopPath, body: Body, frame: str) -> FigureNode:
    names = _names_of(body.graph)
    told = _told(
        {
            "reads": [names[entry.parameter] for entry in body.inputs],
            "gives": [f"output {entry.output}" for entry in body.outputs if entry.output is not None],
        }
    )
    cell = _cell(body.graph, f"{frame}.cell", frame)
    return replace(cell, lines=(*cell.lines, *told))


def _cell(graph: Graph, id: str, frame: str) -> FigureNode:
    """Return the box of all operations of a graph, with the types that are there most often."""
    types = Counter(layer.type for layer in graph.operations)
    count = types.total()
    often = [
        f"{excerpt(type)}×{number}" if number > 1 else excerpt(type) for type, number in types.most_common(_MOST_TYPES)
    ]
    rest = count - sum(number for _, number in types.most_common(_MOST_TYPES))
    lines = (", ".join([*often, *([f"{rest} more"] if rest else [])]),) if count > 1 else ()
    return FigureNode(id, NodeKind.GROUP, counted(count, "operation"), lines, cluster=frame)


def _outputs(loop: LoopPath) -> tuple[str, ...]:
    """Return the outputs of a loop by role, each with the first that reads it."""
    found: dict[str, list[str]] = {}
    for entry in loop.body.outputs:
        if entry.output is None:
            continue
        readers = reader_names(loop.outer, loop.layer, entry.output, _LONGEST - 2)
        named = f"→{readers[0]}" if readers else ""
        role = "pieces" if output_role(entry).is_concatenated else "last value"
        found.setdefault(role, []).append(f"{entry.output}{named}")
    return _told(found)


def _told(groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the groups that have members in a line; none where all are empty."""
    text = "; ".join(f"{word}: {_listed(members)}" for word, members in groups.items() if members)
    return (text,) if text else ()


def _names_of(graph: Graph) -> Mapping[int, str]:
    """Return the names of layers as they have room here."""
    return {key: shortened(excerpt(name), _LONGEST) for key, name in references_of(graph).items()}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(
        [*names[:_MOST_NAMES], *([f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else [])]
    )
