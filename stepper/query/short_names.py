"""Short names: of each operation of a graph the shortest that tells it from the others and still reads like its own.

Screens show them, and addresses take them (address_resolution.py): what is seen can be typed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from stepper.engine.program import Program
from stepper.ir.model import Layer

_MOST_PARTS: Final = 32
"""Of a name that are looked at, from its end; a file may have one of a million."""


def called(program: Program, name: str) -> Iterator[Layer]:
    """The layers of a graph that go by a short name: an operation by that of its own, others without their number."""
    layers = [operation.layer for operation in program.operations]
    yield from (layer for layer, short in zip(layers, short_names_of(program), strict=True) if short == name)
    computed = {layer.id for layer in layers}
    for layer in program.graph.layers:
        if layer.id not in computed and without_number(layer.name) == name:
            yield layer


def short_names_of(program: Program) -> list[str]:
    """The short names of a graph's operations, in their order."""
    computed = [operation.layer for operation in program.operations]
    ids = {layer.id for layer in computed}
    other = [layer.name for layer in program.graph.layers if layer.id not in ids]
    tensors = [name for layer in program.graph.layers for port in layer.outputs for name in port.names]
    return short_names([layer.name for layer in computed], {*other, *tensors})


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
    """The last part, and what stands behind each point in it: what an address takes for the end of the name."""
    last = name.rpartition("/")[2]
    pieces = last.rsplit(".", _MOST_PARTS)
    return {".".join(pieces[at:]) for at in range(len(pieces))}


def parts_that_tell(name: str) -> list[str]:
    """The last part; then the last part behind each earlier one, the nearest first; then longer ends."""
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
