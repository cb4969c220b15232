"""Work of a body in few words: its recurrent cell, or the types of operations that do most of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from stepper.export.numpy_code.movement import EMITTERS as MOVEMENT
from stepper.ir.model import Graph, Layer
from stepper.operation_types import CELLS

_HEAVY: Final = ("MatMul", "Einsum", "ScaledDotProductAttention")
_HEAVY_ENDS: Final = ("Cell", "Sequence", "Convolution", "ConvolutionBackpropData")
_ARITHMETIC: Final = ("Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod", "Power", "Negative", "Abs", "Select")
_TRUE_OR_FALSE: Final = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr")
_MOVING: Final = frozenset((*MOVEMENT, "Convert"))


class RecurrentCell(NamedTuple):
    """Cell that a body is built round: its type, and how many units it has."""

    type: str
    units: int


def recurrent_cell(graph: Graph) -> RecurrentCell | None:
    """Return the cell of a body that has just one; None of another body."""
    found = [layer for layer in graph.operations if layer.type in CELLS]
    units = found[0].attributes.get("hidden_size", "") if len(found) == 1 else ""
    return RecurrentCell(found[0].type, int(units)) if units.isdigit() else None


def main_types(layers: Iterable[Layer]) -> tuple[tuple[str, int], ...]:
    """Return the types of operations with their counts: those that cost most first, then the most frequent.

    What only moves or converts numbers is left out, unless there is nothing else.
    """
    counts = Counter(layer.type for layer in layers)
    told = {type: count for type, count in counts.items() if type not in _MOVING} or counts
    return tuple(sorted(told.items(), key=lambda one: (_place(one[0]), -one[1])))


def _place(type: str) -> int:
    if type in _HEAVY or type.endswith(_HEAVY_ENDS) or type in ("If", "Loop", "TensorIterator"):
        return 0
    return 2 if type in _ARITHMETIC else 3 if type in _TRUE_OR_FALSE else 1
