"""Short names: of each layer of a graph the shortest that tells it from the others and still reads like its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from stepper.engine.partners import mark_of
from stepper.engine.program import Program
from stepper.ir.model import Layer
from tui.rows import clip, printable

_ADDRESS: Final = re.compile(r"(?:`[^`]*`::)*`[^`]*`")
_KNOWN: Final[dict[int, tuple[Program, tuple[str, ...]]]] = {}


def operation_names(program: Program) -> tuple[str, ...]:
    """The short names of a graph's operations, in their order."""
    known = _KNOWN.get(id(program))
    if known is None:
        names = short_names([operation.layer.name for operation in program.operations])
        known = _KNOWN[id(program)] = program, tuple(names)
    return known[1]


def partner_mark(program: Program, index: int) -> str:
    """The mark of an operation that somebody else than numpy computes, with a blank before it; empty for most."""
    computed_by = program.operations[index].computed_by
    return f" {mark_of(computed_by)}" if computed_by else ""


def marked_name(program: Program, index: int, room: int) -> str:
    """The short name of an operation in so many cells, with the mark of who else computes it at its end."""
    mark = partner_mark(program, index)
    return clip(operation_names(program)[index], room - len(mark)) + mark


def short_names(names: Sequence[str]) -> list[str]:
    """`Softmax` for `aten::softmax/Softmax`, and `q/MatMul` where there are more of them: the part that tells."""
    candidates = [_candidates(name) for name in names]
    ends = Counter(options[0] for options in candidates)
    claims = Counter(option for options in candidates for option in set(options))
    found: list[str | None] = []
    for options in candidates:
        wanted = options[:1] if ends[options[0]] == 1 else options[1:]
        found.append(next((option for option in wanted if ends[option] == 1 or claims[option] == 1), None))
    # A name of which every part is in others too takes the shortest that none of them has taken.
    left = Counter(
        option for options, name in zip(candidates, found, strict=True) if name is None for option in options
    )
    taken = set(found)
    return [
        name or next((option for option in options if left[option] == 1 and option not in taken), printable(full))
        for name, options, full in zip(found, candidates, names, strict=True)
    ]


def _candidates(name: str) -> list[str]:
    """The last part; then the last part behind each earlier one, the nearest first; then longer ends."""
    parts = [part for part in printable(name).split("/") if part] or [printable(name)]
    last = parts[-1]
    found = [last]
    for part in reversed(parts[:-1]):
        word = part.rpartition("::")[2].rpartition(".")[2] or part
        found.append(f"{word}/{last}")
    found += ["/".join(parts[-count:]) for count in range(2, len(parts) + 1)]
    return list(dict.fromkeys(found))


def layer_name(layer: Layer) -> str:
    """A layer's name in lists where it stands alone."""
    return _candidates(layer.name)[0]


def carried_name(layer: Layer) -> str:
    """A Parameter's name: `h` for `h.9`, which a converter numbered."""
    name = printable(layer.name)
    stem, dot, digits = name.rpartition(".")
    return stem if dot and digits.isdigit() and stem else name


def expression_name(text: str) -> str:
    """An expression for where there is little room: each quoted address by the last part of its name."""
    return printable(_ADDRESS.sub(lambda found: _candidates(found[0].rstrip("`").rpartition("`")[2])[0], text))
