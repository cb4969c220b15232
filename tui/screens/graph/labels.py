"""Content of the boxes of a graph: names in so many letters, types, the words of an opened box."""

from __future__ import annotations

from typing import Final

from stepper import element_types
from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import DrawnNode
from stepper.export.figures.figure import NodeKind
from stepper.ir.model import Body, Layer
from tui.paint.names import carried_name, operation_names, partner_mark
from tui.paint.rows import cell_len, clip, printable, shape_of
from tui.theme import GLYPHS

_COUNTED: Final = (NodeKind.ACCUMULATOR, NodeKind.SHAPES, NodeKind.GROUP)
_LEAST: Final = 9
"""Letters that a box with several operations has at least."""


def body_of(program: Program) -> Body | None:
    """Return the body of a port map that a program is of; None for the model's own graph."""
    if not program.path:
        return None
    return next(body for body in program.path[-1].bodies if body.graph is program.graph)


def label_of(program: Program, node: DrawnNode) -> str:
    """Return the text of a box."""
    return printable(_label(program, node))


def label_in(program: Program, node: DrawnNode, letters: int, *, signed: bool) -> str:
    """Return the text of a box in so many letters; `signed`: ports say whether a back edge comes in or goes out."""
    label = label_of(program, node)
    mark = ""
    if signed and node.kind in (NodeKind.PARAMETER, NodeKind.RESULT):
        body = body_of(program)
        edges = () if body is None else body.back_edges
        ends = {end for edge in edges for end in (edge.from_layer, edge.to_layer)}
        mark = GLYPHS["back"] if node.key in ends else ""
    room = letters - (2 if mark else 0)
    if node.kind is NodeKind.GROUP:
        label = label_of_folded(program, node, node.key, room)
    elif node.kind in _COUNTED:
        label = label if cell_len(label) <= room else clip(printable(node.name), max(room, _LEAST))
    else:
        label = _clipped(label, room)
    if mark:
        return f"{mark} {label}" if node.kind is NodeKind.PARAMETER else f"{label} {mark}"
    return label


def label_of_folded(program: Program, node: DrawnNode, layer: int, room: int = 10**6) -> str:
    """Return the text of a box with several operations: the name of one of them, and how many more there are."""
    index = program.computed_at.get(program.slots[layer, 0]) if (layer, 0) in program.slots else None
    name = program.graph.by_id[layer].type if index is None else operation_names(program)[index]
    count = f" +{len(node.layers) - 1}"
    return _clipped(printable(name), max(room - len(count), 4)) + count


def _clipped(name: str, room: int) -> str:
    """Return a name in so many letters: first without what is around it, then without its middle."""
    return name if cell_len(name) <= room else clip(name.rpartition("/")[2] or name, room)


def _label(program: Program, node: DrawnNode) -> str:
    layer = program.graph.by_id[node.key]
    if node.kind is NodeKind.PARAMETER:
        return node.label
    if node.kind is NodeKind.RESULT:
        return _result_label(program, layer, node.label)
    label = node.label
    if node.kind is NodeKind.ACCUMULATOR:
        return label
    if node.kind is NodeKind.GROUP:
        return label_of_folded(program, node, node.key)
    if node.kind in (NodeKind.OPERATION, NodeKind.LOOP, NodeKind.BRANCH) and (node.key, 0) in program.slots:
        index = program.computed_at.get(program.slots[node.key, 0])
        label = label if index is None else operation_names(program)[index] + partner_mark(program, index)
    return f"{label} ▾{len(layer.bodies)}" if layer.bodies else label


def _result_label(program: Program, layer: Layer, label: str) -> str:
    """A Result is called as the Parameter into which a back edge carries it."""
    body = body_of(program)
    edges = () if body is None else body.back_edges
    target = next((edge.to_layer for edge in edges if edge.from_layer == layer.id), None)
    parameter = program.graph.by_id.get(target) if target is not None else None
    if parameter is not None:
        return carried_name(parameter)
    entry = next((entry for entry in body.outputs if entry.result == layer.id), None) if body is not None else None
    return "go on?" if entry is not None and entry.purpose == "execution_condition" else label


def type_of(program: Program, node: DrawnNode) -> str:
    """Return element type and shape of what a box gives, as the file declares them."""
    layer = program.graph.by_id[node.key]
    if not layer.outputs:
        return ""
    port = layer.outputs[0]
    name = port.element_type.name if port.element_type is not None else ""
    shape = shape_of(port.dims)
    return f"{name}[{shape}]" if port.dims or name not in element_types.ELEMENT_TYPES else f"{name}[]"
