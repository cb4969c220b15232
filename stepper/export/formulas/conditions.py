"""Conditions as expressions of the names of what they compare: `start ≠ 1`, `i < n and error > tolerance`."""

from __future__ import annotations

from typing import Final

from stepper.export.figures.labels import shortened
from stepper.export.figures.operands import constant_symbol
from stepper.export.formulas.notation import Term, keeps_its_numbers, number, written
from stepper.ir.model import Graph, Layer, Model
from stepper.operation_types import COMPARISON_SIGNS
from stepper.query.short_names import is_automatic, last_part, short_names_of
from stepper.wording import excerpt

_LOGICAL: Final = frozenset({"LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot"})
_ARITHMETIC: Final = frozenset({"Add", "Subtract", "Multiply", "Abs", "Negative"})
_DEEPEST: Final = 3
_LONGEST: Final = 44
_LONGEST_NAME: Final = 20


def condition_text(model: Model, graph: Graph, layer: Layer) -> str:
    """Return the condition that a layer gives as an expression; empty where it compares nothing, or is too long."""
    root = _numbers_of(graph, layer)
    if root is None or not (root.type in COMPARISON_SIGNS or root.type in _LOGICAL):
        return ""
    text = _term(model, graph, root, _DEEPEST).text
    return text if len(text) <= _LONGEST else ""


def _term(model: Model, graph: Graph, layer: Layer, depth: int) -> Term:
    """Return what a layer gives: what it compares, or its name; arithmetic that only a converter has named as it is."""
    if layer.type == "Constant":
        return number(constant_symbol(model, layer))
    is_expression = layer.type in COMPARISON_SIGNS or layer.type in _LOGICAL
    is_written = is_expression or (layer.type in _ARITHMETIC and is_automatic(layer))
    sources = graph.sources[layer.id]
    read = [None if one is None else _numbers_of(graph, graph.by_id[one.layer]) for one in sources]
    operands = [one for one in read if one is not None]
    if not (is_written and depth and operands and len(operands) == len(read)):
        return Term(shortened(excerpt(last_part(short_names_of(graph)[layer.id])), _LONGEST_NAME))
    return written(layer, [_term(model, graph, one, depth - 1) for one in operands])


def _numbers_of(graph: Graph, layer: Layer) -> Layer | None:
    """Return the layer that computes the numbers that a layer gives; None where nothing is connected."""
    while keeps_its_numbers(layer):
        before = graph.sources[layer.id][0]
        if before is None:
            return None
        layer = graph.by_id[before.layer]
    return layer
