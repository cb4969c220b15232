"""Short labels for the boxes of a graph: as few letters as tell one from the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from stepper.ir.model import Graph, Layer

LONGEST = 28
_MADE_UP: Final = re.compile(r"(?:(?:constant|const|onnx)?[_:.\s]*\d*)|\d.*", re.IGNORECASE)
_LETTER: Final = re.compile(r"[^\W\d_]")
_SEPARATORS: Final = re.compile(r"(?<=[/.:])(?=[^/.:])")


def labels_of(graph: Graph) -> Mapping[int, str]:
    """A label for every layer, no two alike: the shortest unique suffix of the name, after the type where it does not
    say that; the type with the name of the one Constant that it reads (`MatMul W`) where that says more.
    """
    suffixes = unique_suffixes([layer.name for layer in graph.layers])
    types = Counter(layer.type for layer in graph.layers)
    wanted = {}
    for layer, suffix in zip(graph.layers, suffixes, strict=True):
        operand = _operand(graph, layer)
        if operand is not None and types[layer.type] > 1:
            wanted[layer.id] = f"{layer.type} {operand}"
        else:
            wanted[layer.id] = _with_type(layer, suffix)
    taken = Counter(shortened(label) for label in wanted.values())
    for layer, suffix in zip(graph.layers, suffixes, strict=True):
        if taken[shortened(wanted[layer.id])] > 1:
            wanted[layer.id] = _with_type(layer, suffix)
    return told_apart({key: shortened(label) for key, label in wanted.items()})


def unique_suffixes(names: Sequence[str]) -> list[str]:
    """For each name its shortest suffix, cut at `/`, `.` or `:`, that has a letter and that no other ends in.

    Where there is none, the whole name.
    """
    parts = [_SEPARATORS.split(name) for name in names]
    seen: Counter[str] = Counter()
    for pieces in parts:
        seen.update("".join(pieces[start:]) for start in range(len(pieces)))
    found = []
    for name, pieces in zip(names, parts, strict=True):
        ends = ("".join(pieces[start:]) for start in range(len(pieces) - 1, -1, -1))
        found.append(next((end for end in ends if seen[end] == 1 and _LETTER.search(end)), name))
    return found


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text of at most that many characters: a longer one loses its middle, never the number at its end."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) * 2 // 3
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"


def _with_type(layer: Layer, suffix: str) -> str:
    if layer.type in ("Parameter", "Constant") and _LETTER.search(suffix):
        return suffix
    return suffix if layer.type.lower() in suffix.lower() else f"{layer.type} {suffix}".rstrip()


def _operand(graph: Graph, layer: Layer) -> str | None:
    """The short name of the one Constant that an operation reads, where somebody has given it one."""
    if layer.bodies or layer.type in ("Result", "Parameter", "Constant"):
        return None
    constants = [
        graph.by_id[source.layer]
        for source in graph.sources[layer.id]
        if source is not None and graph.by_id[source.layer].type == "Constant"
    ]
    if len(constants) != 1:
        return None
    name = re.split(r"[/.:]", constants[0].name)[-1]
    return None if _MADE_UP.fullmatch(name) or layer.type.lower() in name.lower() else name


def told_apart(labels: Mapping[int, str]) -> dict[int, str]:
    """The labels, with the layer's id after those that are still alike."""
    count = Counter(labels.values())
    return {key: f"{label} #{key}" if count[label] > 1 else label for key, label in labels.items()}
