"""Labels for the boxes of a graph: the short names that screens show, with the type where the name does not say it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from stepper.ir.model import Graph, Layer, Source, kept_with_graph
from stepper.operation_types import NO_OPERATIONS
from stepper.query.short_names import is_automatic, short_names_of
from stepper.wording import excerpt

LONGEST: Final = 28
_BETWEEN_WORDS: Final = re.compile(r"[._:…-]+")
_LETTER: Final = re.compile(r"[^\W\d_]")


@kept_with_graph
def labels_of(graph: Graph) -> Mapping[int, str]:
    """Return a label for every layer, no two alike.

    An operation that only a converter has named has the name of the one Constant that it reads behind its own, where
    that is the only one of its name.
    """
    names, constants = short_names_of(graph), _constant_names(graph)
    labels = {}
    for layer in graph.layers:
        operands = (
            [] if layer.bodies or layer.type in NO_OPERATIONS or not is_automatic(layer) else graph.sources[layer.id]
        )
        read = [constants[source.layer] for source in operands if source is not None and source.layer in constants]
        operand = f" ({read[0]})" if len(read) == 1 and read[0] else ""
        labels[layer.id] = shortened(named_with_type(layer, names[layer.id]) + operand)
    return told_apart(labels)


@kept_with_graph
def references_of(graph: Graph) -> Mapping[int, str]:
    """Return for every layer what a text calls it: its short name, of an operation without the type.

    One whose name is a converter's number alone has its type before that. All views call the Parameters and Results of
    a body so, and what is outside of it.
    """
    names, labels = short_names_of(graph), labels_of(graph)
    short = shortened_names(names.values())
    return told_apart(
        {
            layer.id: short[names[layer.id]]
            if layer.type not in NO_OPERATIONS and _LETTER.search(names[layer.id])
            else labels[layer.id]
            for layer in graph.layers
        }
    )


def readers_of(outer: Graph, layer: Layer, output: int) -> tuple[Layer, ...]:
    """Return what reads an output of a loop or If in the graph around it, Results first: these are what it becomes."""
    wanted = Source(layer.id, output)
    found = (one for one in outer.layers if wanted in outer.sources[one.id])
    return tuple(sorted(found, key=lambda one: one.type != "Result"))


def reader_names(outer: Graph, layer: Layer, output: int, longest: int = LONGEST) -> tuple[str, ...]:
    """Return what reads an output of a loop or If in the graph around it, by name."""
    names = references_of(outer)
    return tuple(shortened(excerpt(names[one.id]), longest) for one in readers_of(outer, layer, output))


def output_name(outer: Graph, layer: Layer, output: int, longest: int = LONGEST) -> str:
    """Return what an output of a loop or If is called around it: as the Result that it becomes, else as its tensor.

    Empty where it has no name of its own; what an operation computes from it is another value.
    """
    results = [one for one in readers_of(outer, layer, output) if one.type == "Result"]
    tensors = [name for name in layer.outputs[output].names if _LETTER.search(name)]
    found = references_of(outer)[results[0].id] if results else tensors[0] if tensors else ""
    return shortened(excerpt(found), longest)


def type_and_name(layer: Layer, name: str) -> tuple[str, str]:
    """Return the two lines of an operation's box: its type and its name, or the name alone where that says the type."""
    if says_type(layer, name):
        return shortened(excerpt(name)), ""
    return excerpt(layer.type), shortened(excerpt(name))


def _constant_names(graph: Graph) -> dict[int, str]:
    """Return the last part of each Constant's name; empty for one that only a converter has named, or of several."""
    layers = [layer for layer in graph.layers if layer.type == "Constant"]
    names = {layer.id: re.split(r"[/.:]", layer.name)[-1] for layer in layers}
    count = Counter(names.values())
    return {
        layer.id: name if count[name] == 1 and _LETTER.match(name) and not is_automatic(layer) else ""
        for layer, name in zip(layers, names.values(), strict=True)
    }


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most that many characters: a longer one loses its middle, never the number at its end."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) * 2 // 3
    return f"{text[: longest - 1 - tail].rstrip('…')}…{text[-tail:].lstrip('…')}"


def shortened_names(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """Return for each name one of at most that many characters: of a long one its last words, `…function_state_in`.

    Where these tell nothing, or fit another name as well, it loses its middle.
    """
    ends = {name: _last_words(name, longest) for name in names}
    count = Counter(ends.values()) + Counter(name for name in ends if len(name) <= longest)
    return {name: f"…{end}" if end and count[end] == 1 else shortened(name, longest) for name, end in ends.items()}


def _last_words(name: str, longest: int) -> str:
    """Return the end of a long name at which a word begins; empty for a short one, and where that would say little."""
    if len(name) <= longest:
        return ""
    scoped = "/" in name or " " in name  # it has a scope, or a type, because its end does not tell
    ends = () if scoped else (name[found.end() :] for found in _BETWEEN_WORDS.finditer(name))
    fitting = next((end for end in ends if len(end) < longest), "")
    return fitting if len(fitting) >= longest // 3 and _LETTER.search(fitting) else ""


def named_with_type(layer: Layer, name: str) -> str:
    """Return a name for a layer, with its type where the name does not say that."""
    if layer.type in NO_OPERATIONS and _LETTER.search(name):
        return name
    return name if says_type(layer, name) else f"{layer.type} {name}".rstrip()


def says_type(layer: Layer, name: str) -> bool:
    """True if the type of the layer is in a name."""
    return layer.type.lower() in name.lower()


def told_apart(labels: Mapping[int, str]) -> dict[int, str]:
    """Return the labels, with the layer's id after those that are still alike."""
    count = Counter(labels.values())
    return {key: f"{label} #{key}" if count[label] > 1 else label for key, label in labels.items()}
