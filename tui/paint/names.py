"""The names of layers on the screen: short ones (stepper/query/short_names.py), without what would move the cursor."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final
from weakref import ref

from stepper.debug.overview.facts import Row as LoopRow
from stepper.debug.overview.facts import RowKind
from stepper.engine.program import mark_of
from stepper.query import short_names
from stepper.tensors.number_text import fitted
from stepper.tensors.statistics import statistic_name
from tui.paint.rows import clip, printable

if TYPE_CHECKING:
    from stepper.debug.inspection.views import FrameView
    from stepper.engine.program import Program
    from stepper.ir.model import Layer, LayerSite

_ADDRESS: Final = re.compile(r"(?:`[^`]*`::)*`[^`]*`")
_WITH_BODIES: Final = ("Loop", "TensorIterator", "If")
"""Types of which an output has no name of its own."""
GROWS: Final = " +"
"""Sign of a value that grows: what each iteration joins to it is shown."""
_KNOWN: Final[dict[int, tuple[ref[Program], tuple[str, ...]]]] = {}
"""By the identity of the program, as long as there is one: a program is compared and hashed by all that is in it."""


def operation_names(program: Program) -> tuple[str, ...]:
    """Return the short names of a graph's operations, in their order."""
    key = id(program)
    if key not in _KNOWN:
        names = short_names.short_names_of(program.graph)
        printed = tuple(printable(names[operation.layer.id]) for operation in program.operations)
        _KNOWN[key] = ref(program, lambda _gone: _KNOWN.pop(key)), printed
    return _KNOWN[key][1]


def running_name(frame: FrameView) -> str:
    """Return the name of the operation of a frame that runs: of the loop, or the If, that the next frame is of."""
    return operation_names(frame.program)[frame.running or 0]


def partner_mark(program: Program, index: int) -> str:
    """The mark of an operation that somebody else than numpy computes, with a blank before it; empty for most."""
    computed_by = program.operations[index].computed_by
    return f" {mark_of(computed_by)}" if computed_by else ""


def listed_mark(program: Program, index: int) -> str:
    """The same beside what an operation gives over the iterations, with the sign of one that grows by a piece."""
    return (GROWS if index in program.joined_pieces else "") + partner_mark(program, index)


def marked_name(program: Program, index: int, room: int) -> str:
    """Return the short name of an operation in so many cells, with its marks at the end."""
    mark = listed_mark(program, index)
    return clip(operation_names(program)[index], room - len(mark)) + mark


def statistic_word(statistic: str, program: Program, index: int) -> str:
    """Return the word for the number that stands for an operation's value."""
    port = program.operations[index].layer.outputs[0]
    return "value" if math.prod(port.dims) == 1 else statistic_name(statistic, str(port.element_type or ""))


def statistic_text(value: float | None, program: Program, index: int) -> str:
    """Return the number that stands for an operation's value; of a single boolean T or F."""
    is_number = value is None or not math.isfinite(value) or not is_truth(program, index)
    return fitted(value) if is_number else "T" if value else "F"


def is_truth(program: Program, index: int) -> bool:
    """Return True if an operation gives a single boolean."""
    port = program.operations[index].layer.outputs[0] if program.operations[index].layer.outputs else None
    return port is not None and math.prod(port.dims) == 1 and str(port.element_type) == "boolean"


def nothing_inside(layer: Layer) -> str:
    """Return that an operation cannot be opened in place."""
    return f"{layer_name(layer)} has nothing inside: loops, Ifs and groups of shape arithmetic open"


def layer_name(layer: Layer | LayerSite) -> str:
    """Return a layer's name in lists where it stands alone."""
    return _last_part(layer.name)


def carried_name(layer: Layer | LayerSite) -> str:
    """Return a Parameter's name: `h` for `h.9`, which a converter numbered."""
    return printable(short_names.without_number(layer.name))


def row_name(row: LoopRow) -> str:
    """Return the name of a value that is followed over the iterations of a loop: `h'` is what each carries on as h."""
    if row.kind is RowKind.BACK_EDGE and not row.appends:
        return f"{carried_name(row.inner)}'"
    if row.kind in (RowKind.BACK_EDGE, RowKind.SLICE, RowKind.CONDITION):
        return carried_name(row.inner)
    producer = row.producer
    if producer is None or producer.type in _WITH_BODIES:
        return carried_name(row.inner).removesuffix("_result")
    return layer_name(producer)


def expression_name(text: str) -> str:
    """Return an expression for where there is little room: each quoted address by the last part of its name."""
    return printable(_ADDRESS.sub(lambda found: _last_part(found[0].rstrip("`").rpartition("`")[2]), text))


def _last_part(name: str) -> str:
    return printable(short_names.parts_that_tell(name)[0])
