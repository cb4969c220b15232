"""Short names: of each operation of a graph the shortest that tells it from the others and still reads like its own.

Screens and figures show them, and addresses take them (address_resolution.py): what is seen can be typed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from stepper.ir.model import kept_with_graph
from stepper.operation_types import DEFINITIONS, NO_OPERATIONS

if TYPE_CHECKING:
    from stepper.ir.model import Graph, Layer

_MOST_PARTS = 32
"""Maximum number of parts of a name that are read, from its end; a file may have a million."""

_AUTOMATIC = re.compile(r"(.*?)(?:[._]?[0-9]+)*")
_OF_CONVERTERS = ("SequenceMark", "Const", "Not", "And", "Or", "Cast", "Mul", "Sub", "Div", "Pow", "Shape")
_TYPES = frozenset(name.lower() for name in (*DEFINITIONS, *_OF_CONVERTERS))


def called(graph: Graph, name: str) -> Iterator[Layer]:
    """Yield the layers of a graph with a short name; Parameters, Results and Constants also without their number."""
    yield from _by_short_name(graph).get(name, ())


@kept_with_graph
def _by_short_name(graph: Graph) -> Mapping[str, Sequence[Layer]]:
    short = short_names_of(graph)
    found: dict[str, list[Layer]] = {}
    for layer in graph.layers:
        others = [without_number(layer.name)] if layer.type in NO_OPERATIONS else []
        for name in dict.fromkeys([short[layer.id], *others]):
            found.setdefault(name, []).append(layer)
    return found


@kept_with_graph
def short_names_of(graph: Graph) -> Mapping[int, str]:
    """Return the short name of each layer of a graph, by id.

    Those of operations are unique wherever their names are; those of Parameters, Results and Constants have no number.
    """
    operations = [layer for layer in graph.layers if layer.type not in NO_OPERATIONS]
    values = [layer for layer in graph.layers if layer.type in NO_OPERATIONS]
    tensors = {name for layer in graph.layers for port in layer.outputs for name in port.names}
    found: dict[int, str] = {}
    for layers, others in ((operations, values), (values, operations)):
        names = short_names([layer.name for layer in layers], {*(layer.name for layer in others), *tensors})
        found.update(zip((layer.id for layer in layers), names, strict=True))
    return MappingProxyType(found | {layer.id: without_number(found[layer.id]) for layer in values})


def short_names(names: Sequence[str], others: Collection[str] = ()) -> list[str]:
    """`Softmax` for `aten::softmax/Softmax`, and `q/MatMul` where there are more of them: the part that tells.

    No two are the same unless the names are, and none is the end of more than one of the names, or of `others`.
    """
    candidates = [parts_that_tell(name) for name in names]
    foreign = sorted(set(others).difference(names))
    ends = Counter(end for name in (*names, *foreign) for end in _ends(name))
    claims = Counter(option for options in (*candidates, *map(parts_that_tell, foreign)) for option in set(options))
    found: list[str | None] = []
    for options in candidates:
        wanted = options[:1] if ends[options[0]] == 1 else options[1:]
        found.append(next((option for option in wanted if ends[option] == 1 or claims[option] == 1), None))
    # A name of which every part is in others too takes the shortest that none of them has taken.
    left = Counter(
        option for options, name in zip(candidates, found, strict=True) if name is None for option in options[1:]
    )
    taken = {*found, *foreign}
    return [
        name or next((option for option in options[1:] if left[option] == 1 and option not in taken), full)
        for name, options, full in zip(found, candidates, names, strict=True)
    ]


def _ends(name: str) -> set[str]:
    """Return the last part, and what stands behind each point in it: what an address takes for the end of the name."""
    last = name.rpartition("/")[2]
    pieces = last.rsplit(".", _MOST_PARTS)
    return {".".join(pieces[at:]) for at in range(len(pieces))}


def parts_that_tell(name: str) -> list[str]:
    """Return the last part; then the last part behind each earlier one, the nearest first; then longer ends."""
    parts = [part for part in name.rsplit("/", _MOST_PARTS) if part] or [name]
    last = parts[-1]
    found = [last]
    for part in reversed(parts[:-1]):
        word = part.rpartition("::")[2].rpartition(".")[2] or part
        found.append(f"{word}/{last}")
    found += ["/".join(parts[-count:]) for count in range(2, len(parts) + 1)]
    return list(dict.fromkeys(found))


def without_number(name: str) -> str:
    """`h` for `h.9`, which a converter numbered."""
    stem, dot, digits = name.rpartition(".")
    return stem if dot and digits.isdigit() and stem else name


def last_part(name: str) -> str:
    """Return a name without the scopes that converters write before it, separated by slashes."""
    parts = [part for part in name.split("/") if re.search("[A-Za-z]", part)]
    return parts[-1] if parts else name


def is_automatic(layer: Layer) -> bool:
    """True if the name of the layer is a converter's: a type of operation with a number, or a number alone."""
    return is_numbered(layer.name)


def is_numbered(name: str) -> bool:
    """True if a name is a converter's: a type of operation with a number, or a number alone."""
    part = re.sub(r"_output(_[0-9]+)?$", "", last_part(name))
    match = _AUTOMATIC.fullmatch(part)
    stem = match[1] if match else part
    return not stem or "::" in stem or bool({stem.replace("_", "").lower(), part.lower()} & _TYPES)
