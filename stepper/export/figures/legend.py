"""Legend of a figure: of its lines and boxes those that occur in it, with words."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from stepper.export.figures.figure import EdgeKind, Figure, FigureNode, LegendEntry, LegendSign, NodeKind, PortRole

_WORDS: Final = MappingProxyType({
    LegendSign.VALUE: ("line", "value"),
    LegendSign.SLICE: ("blue line", "slice of an input"),
    LegendSign.BACK: ("dashed line", "back edge: the value in the next iteration"),
    LegendSign.NO_EFFECT: ("crossed line", "back edge without effect"),
    LegendSign.CARRIED: ("orange line", "carried from iteration to iteration"),
    LegendSign.PIECE: ("green line", "piece of an output"),
    LegendSign.ENDS: ("dotted line", "what ends the loop"),
    LegendSign.PORTS: ("square", "port of a frame"),
    LegendSign.MERGED: ("orange box", "carried Parameter"),
    LegendSign.PARAMETER: ("blue box", "input, other Parameter"),
    LegendSign.RESULT: ("green box", "Result, output"),
    LegendSign.CONDITION: ("white round box", "goes on? true or false"),
    LegendSign.GROUP: ("dashed box", "several operations"),
    LegendSign.ACCUMULATOR: ("orange box", "grows in each iteration"),
    LegendSign.BLOCK: ("pile", "block that repeats"),
    LegendSign.IDLE: ("pale box", "did not run"),
    LegendSign.OPERAND: ("·", "an operand that comes by wire, left to right"),
    LegendSign.STEP: ("S[k]", "piece of iteration k"),
    LegendSign.CUT: ("…", "the rest was cut off"),
})  # fmt: skip
"""How each sign looks, for formats of text, and what it means."""
_BOXES: Final = MappingProxyType({
    NodeKind.PARAMETER: LegendSign.PARAMETER,
    NodeKind.INPUT: LegendSign.PARAMETER,
    NodeKind.RESULT: LegendSign.RESULT,
    NodeKind.OUTPUT: LegendSign.RESULT,
    NodeKind.CONCATENATION: LegendSign.RESULT,
    NodeKind.GROUP: LegendSign.GROUP,
    NodeKind.SHAPES: LegendSign.GROUP,
    NodeKind.CUT_ABOVE: LegendSign.CUT,
    NodeKind.CUT_BELOW: LegendSign.CUT,
})  # fmt: skip
_ROLES: Final = MappingProxyType({PortRole.CARRIED: LegendSign.MERGED, PortRole.CONDITION: LegendSign.CONDITION})
_LINES: Final = MappingProxyType({
    EdgeKind.DATA: LegendSign.VALUE,
    EdgeKind.PORT: LegendSign.VALUE,
    EdgeKind.SLICE: LegendSign.SLICE,
    EdgeKind.PIECE: LegendSign.PIECE,
    EdgeKind.BACK: LegendSign.BACK,
    EdgeKind.NO_EFFECT: LegendSign.NO_EFFECT,
    EdgeKind.CARRIED: LegendSign.CARRIED,
    EdgeKind.ENDS: LegendSign.ENDS,
})  # fmt: skip


def legend_of(figure: Figure) -> tuple[LegendEntry, ...]:
    """Return the entries for what occurs in a figure, lines first."""
    found = set(_signs(figure))
    return tuple(LegendEntry(sign, *_WORDS[sign]) for sign in LegendSign if sign in found)


def _signs(figure: Figure) -> Iterator[LegendSign]:
    yield from (_LINES[edge.kind] for edge in figure.edges if edge.source != edge.target)  # else it is not drawn
    for node in figure.nodes:
        yield from _signs_of_node(node)
    for frame in figure.clusters:
        if frame.idle:
            yield LegendSign.IDLE
        if frame.ports:
            yield LegendSign.PORTS
        if frame.kind is NodeKind.BLOCK:
            yield LegendSign.BLOCK


def _signs_of_node(node: FigureNode) -> Iterator[LegendSign]:
    if node.kind is NodeKind.END:
        yield LegendSign.ENDS
    if node.brief:  # then the label is a formula
        yield LegendSign.OPERAND
    if node.joins and node.lines:
        yield LegendSign.STEP
    if node.idle:
        yield LegendSign.IDLE
    elif node.kind is NodeKind.ACCUMULATOR:
        yield LegendSign.ACCUMULATOR
    elif node.kind in _BOXES and node.role is not PortRole.COMPUTED:
        yield _ROLES.get(node.role, _BOXES[node.kind])
