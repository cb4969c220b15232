"""Rows of text with their colours: clipped, padded, with names and links in them."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np
from rich.cells import cell_len as _cell_len
from rich.style import Style

from stepper.debug.overview.overview_facts import Row as LoopRow
from stepper.debug.overview.overview_facts import RowKind
from stepper.engine.program import mark_of
from stepper.query import short_names
from stepper.records import Record
from stepper.tensors.number_text import fitted, short_exponent
from stepper.tensors.tensor_pictures import BarScale, heights
from stepper_tui.keys import NAMES, Keymap, shown

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer, LayerSite


Token = str | Style
"""A token of tui/stepper_tui/paint/painter.py (several, with blanks between them, are laid over one another)."""
Cell = tuple[str, Token]
Row = list[Cell]

EIGHTHS = " ▁▂▃▄▅▆▇█"
BARS = "▁▂▃▄▅▆"
"""Six of the eight heights: the row above stays free of the bars below it."""


_wide_len = lru_cache(maxsize=8_192)(_cell_len)
"""For texts alone: a LinkText would be kept with all that it leads to."""


def cell_len(text: str) -> int:
    """Return how many cells a text takes."""
    return len(text) if text.isascii() else _wide_len(str(text))


def printable(text: str) -> str:
    """Return a name from a file without what would move the cursor; nothing in it is markup."""
    return "".join("�" if unicodedata.category(letter)[0] == "C" else letter for letter in text)


def bars_of(numbers: Array, scale: BarScale) -> str:
    """Return a bar for each number; NaN and Inf are letters, never a height."""
    return "".join(
        "N" if level != level else "I" if math.isinf(level) else BARS[int(level * 5.999)]
        for level in heights(numbers, scale).tolist()
    )


def columns(levels: Sequence[float], tall: int, wide: int, *, gap: bool = False) -> list[str]:
    """Return numbers between 0 and 1 as columns in so many lines, the highest first; NaN and Inf are letters."""
    lines = []
    for line in range(tall - 1, -1, -1):
        text = ""
        for level in levels:
            if math.isfinite(level):
                letter = EIGHTHS[max(0, min(math.ceil(level * tall * 8 - line * 8), 8))]
            else:
                letter = " " if line else "N" if math.isnan(level) else "I"
            text += letter * (wide - gap) + " " * gap
        lines.append(text)
    return lines


_BELOW_ZERO = "₀₁₂₃₄₅₆₇₈₉"


def figure(level: int, width: int) -> str:
    """Return a shade from -9 to 9 as a figure with its sign; in one cell it stands low where it is below zero."""
    return str(level) if level >= 0 or width > 1 else _BELOW_ZERO[-level]


def few_digits(value: float, digits: int) -> str:
    """Return a number rounded to so many digits: with three as everywhere, with fewer where that is shorter."""
    usual = fitted(value)
    if digits >= 3 or not math.isfinite(value):
        return usual
    rounded = f"{value:.{digits}g}"
    return min(f"{float(rounded):g}", usual, short_exponent(rounded), key=len)


def clip(name: str, width: int) -> str:
    """A long name loses its middle: the number at its end tells it from its siblings."""
    if cell_len(name) <= width:
        return name
    if 4 < width < 8 and name[-1].isdigit():
        return f"{name[: width - 3]}…{name[-2:]}"
    if width < 8:
        return name[: max(width - 1, 0)] + ("…" if width > 0 else "")
    return f"{name[: width - 5]}…{name[-4:]}"


def clip_head(name: str, width: int) -> str:
    """A long name loses its head."""
    return name if cell_len(name) <= width else ("…" + name[-(width - 1) :] if width > 1 else "")


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return the text in exactly so many cells, whatever the width of its characters."""
    short = text if cell_len(text) <= width else clip(text, width)
    blanks = " " * max(0, width - cell_len(short))
    return blanks + short if right else short + blanks


def padded_row(row: Row, width: int) -> Row:
    """Return a row in exactly so many cells."""
    short = shortened(row, width)
    return [*short, (" " * max(0, width - width_of(short)), "")]


def wrapped(line: str, width: int) -> list[str]:
    """Return a line of text in parts of so many cells at most; its blanks stay, and what follows stands further in."""
    if cell_len(line) <= width:
        return [line]
    body = line.lstrip()
    begin = line[: len(line) - len(body)][: max(width // 2, 0)]
    return textwrap.wrap(body, max(width, 8), initial_indent=begin, subsequent_indent=f"{begin}  ") or [""]


def width_of(row: Row) -> int:
    """Return how many cells a row takes."""
    return sum([len(text) if text.isascii() else _wide_len(str(text)) for text, _ in row])


def spread(left: Row, right: Row, width: int) -> Row:
    """Return one part at the left edge, one at the right."""
    return [*left, (" " * max(1, width - width_of(left) - width_of(right)), ""), *right]


def overlaid(row: Row, token: str) -> Row:
    """Return the row with another token over all of its own."""
    return [(text, f"{own} {token}".strip() if isinstance(own, str) else own) for text, own in row]


def shortened(row: Row, width: int) -> Row:
    """Return a row that ends in an ellipsis where it is longer than so many cells."""
    if width_of(row) <= width:
        return row
    found: Row = []
    left = width
    for place, (text, token) in enumerate(row):
        if len(text) >= left:
            rest = [(text[max(left - 1, 0) :], token), *row[place + 1 :]]
            if not any(part.strip() or tone for part, tone in rest):
                return [*found, (text[:left], token)]
            cell: Cell = (f"{text[: max(left - 1, 0)]}…" if left > 0 else "", token)
            return [*found, cell]
        found.append((text, token))
        left -= len(text)
    return found


def shape_of(shape: Sequence[int]) -> str:
    """Return a shape in lists: 1×16; [] for rank 0."""
    return "×".join("?" if size < 0 else str(size) for size in shape) or "[]"


def short_count(value: int) -> str:
    """Return an iteration on an axis: 5, 20k, 3M."""
    if value and value % 10**6 == 0:
        return f"{value // 10**6}M"
    if value >= 10_000 and value % 1000 == 0:
        return f"{value // 1000}k"
    return str(value)


def elements(value: np.ndarray[Any, Any], room: int) -> str:
    """Return the elements of a tensor one after another, as in lists; the first ones where there is no room for all."""
    shown = ""
    for place, element in enumerate(value.reshape(-1)[: max(room, 0)].tolist()):
        word = fitted(element) if isinstance(element, bool | int | float) else printable(str(element))
        longer = f"{shown} {word}" if place else word
        if cell_len(longer) + (2 if place + 1 < value.size else 0) > room:
            return f"{shown} …" if shown else ""
        shown = longer
    return shown if value.size else "no elements"


def clip_end(text: str, width: int) -> str:
    """A sentence loses its end."""
    return text if cell_len(text) <= width else f"{text[: max(width - 1, 0)]}…"


_ADDRESS = re.compile(r"(?:`[^`]*`::)*`[^`]*`")
_WITH_BODIES = ("Loop", "TensorIterator", "If")
"""Types whose outputs have no names of their own."""
GROWS = " +"
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


def partner_mark(program: Program, index: int) -> str:
    """The mark of an operation that somebody else than numpy computes, with a blank before it; empty for most."""
    computed_by = program.operations[index].computed_by
    return f" {mark_of(computed_by)}" if computed_by else ""


def listed_mark(program: Program, index: int) -> str:
    """The same beside what an operation gives over the iterations, with the sign of one that grows by a piece."""
    return (GROWS if index in program.joined_pieces else "") + partner_mark(program, index)


def layer_name(layer: Layer | LayerSite) -> str:
    """Return a layer's name in lists where it stands alone."""
    return _last_part(layer.name)


def carried_name(layer: Layer | LayerSite) -> str:
    """Return a Parameter's name: `h` for `h.9`, which a converter numbered."""
    return printable(short_names.without_number(layer.name))


def row_name(row: LoopRow) -> str:
    """Return the name of a value over the iterations of a loop: each iteration carries `h'` to the next as h."""
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


class LinkedValue(Record, eq=False):
    """Value that a link stands for: an output of a layer of a program."""

    program: Program
    layer: Layer
    output: int = 0

    def address(self, compiled: CompiledModel) -> str:
        """Return how it is written at the prompt, wherever the run stands."""
        slot = self.program.slots.get((self.layer.id, self.output), -1)
        steps = (None,) * len(self.program.path)
        from stepper.query.address_resolution import Target, address_of

        target = Target(self.program, self.layer, self.output, slot, self.layer, steps)
        return str(address_of(target, compiled))


class Destination(Record, eq=False):
    """Destination of a link: a line, which with `at_once` one click carries out, or the key of a button."""

    line: str = ""
    key: str = ""
    at_once: bool = False


class LinkText(str):
    """Text of a cell that leads somewhere. It is equal to the same text without a target."""

    __slots__ = ("target",)
    target: Destination

    def __new__(cls, text: str, target: Destination) -> LinkText:
        """Return the text with its target."""
        made = super().__new__(cls, text)
        made.target = target
        return made

    def __reduce__(self) -> tuple[type[LinkText], tuple[str, Destination]]:
        return LinkText, (str(self), self.target)


def linked(row: Row, target: Destination) -> Row:
    """Return a row whose cells all lead to the target, except cells that lead somewhere already.

    A target without a line leads nowhere.
    """
    if not target.line:
        return row
    return [(text if isinstance(text, LinkText) else LinkText(text, target), token) for text, token in row]


def link_in(row: Row, x: int) -> Destination | None:
    """Return where the cell of a row at a column leads."""
    end = 0
    for text, _ in row:
        end += cell_len(text)
        if x < end:
            return text.target if isinstance(text, LinkText) else None
    return None


def key_button(keys: str, word: str, keymap: Keymap, tone: Token = "dim") -> Row:
    """Return keys as they are written, such as `n N`, with a word: a click presses the key, on the word the first."""
    names = _names_in(keymap)
    parts = keys.split(" ")
    targets = [Destination(key=names.get(part, part.lower())) for part in parts]
    if keys in names:
        parts, targets = [keys], [Destination(key=names[keys])]
    row: Row = []
    for part, target in zip(parts, targets, strict=True):
        row += [(" ", "")] if row else []
        row.append((LinkText(part, target), "key"))
    return [*row, (LinkText(f" {word}", targets[0]), tone)]


_KEYS_OF: Final[dict[int, tuple[Keymap, Mapping[str, str]]]] = {}
"""By the identity of a table of keys: its keys as they are written, and their names. There are few tables in a run."""


def _names_in(keymap: Keymap) -> Mapping[str, str]:
    known = _KEYS_OF.get(id(keymap))
    if known is None or known[0] is not keymap:
        names = {shown(name): name for key in keymap for name in key.keys}
        known = _KEYS_OF[id(keymap)] = keymap, names | {text: name for name, text in NAMES.items()}
    return known[1]
