"""How the elements of a tensor are written, all in one format, so that points stand under points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.element_types import STRING, Array
from stepper.records import Record
from stepper.tensors.element_forms import codes
from stepper.tensors.number_text import number_text
from stepper.tensors.planes import readable
from tui.paint.rows import padded, printable

_WIDEST_TEXT: Final = 24
_FIXED: Final = (1e-3, 1e7)
"""Largest magnitudes between which numbers are written without an exponent."""


class Format(Record):
    """`width` cells an element; `write` puts an item into at most so many."""

    width: int
    write: Callable[[Any], str]
    note: str = ""
    to_the_left: bool = False

    def cell(self, item: Any) -> str:
        """Return an item in exactly so many cells."""
        return padded(self.write(item), self.width, right=not self.to_the_left)


def format_of(part: Array, digits: int, low: float | None = None, high: float | None = None) -> Format:
    """The format for elements of a readable type; `low` and `high` are the least and the largest of the tensor."""
    if part.dtype.kind == "b":
        return Format(5, lambda item: "true" if item else "false")
    if part.dtype.kind in "iu":
        bounds = [int(part.min()), int(part.max())] if low is None or high is None else [int(low), int(high)]
        return Format(max(3, *(len(str(bound)) for bound in bounds)), str)
    if part.dtype.kind != "f":
        texts = [repr(str(item))[1:-1] for item in part.reshape(-1)[:1000].tolist()]
        width = max(4, min(_WIDEST_TEXT, max(map(len, texts), default=0)))
        return Format(width, lambda item: printable(str(item)), to_the_left=True)
    if low is None or high is None:
        finite = part[np.isfinite(part)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return _of_floats(low, high, digits)


def _of_floats(low: float, high: float, digits: int) -> Format:
    largest = max(abs(low), abs(high))
    sign = 1 if low < 0 else 0
    if largest == 0 or _FIXED[0] <= largest < _FIXED[1]:
        width = max(sign + len(str(int(largest))) + 1 + digits, 5)
        return Format(width, lambda item: _fixed(item, digits, width), f".{digits}f")
    width = sign + 2 + digits + (5 if largest >= 1e100 or (low == high and largest < 1e-99) else 4)
    return Format(width, lambda item: _exponent(item, digits), f".{digits}e")


def _fixed(item: float, digits: int, width: int) -> str:
    if not math.isfinite(item):
        return number_text(item)
    text = f"{item:.{digits}f}"
    # What is not zero must not look like it.
    if item and float(text) == 0:
        short = f"{item:.0e}".replace("e-0", "e-")
        return short if len(short) <= width else "~0" if item > 0 else "-~0"
    return text


def _exponent(item: float, digits: int) -> str:
    if not math.isfinite(item):
        return number_text(item)
    return f"{item:.{digits}e}" if item else f"{0:.{digits}f}"


def difference_format(part: Array, digits: int) -> Format:
    """Return the format of differences (f64); where nothing changed there is a dot."""
    whole = part[np.isfinite(part)]
    if whole.size and bool((whole == np.rint(whole)).all()) and float(np.abs(whole).max()) < 1e15:
        width = max(4, *(len(f"{int(bound):+d}") for bound in (whole.min(), whole.max())))
        return Format(width, lambda item: "·" if item == 0 else number_text(item) if item - item else f"{int(item):+d}")
    inner = format_of(part, digits)
    width = inner.width + (float(whole.min(initial=0.0)) >= 0)

    def write(item: float) -> str:
        return "·" if item == 0 else ("+" if item > 0 else "") + inner.write(item)

    return Format(width, write, inner.note)


def bits_format(array: Array) -> Format:
    """Bit patterns: of eight bits and more as hexadecimal digits, of fewer as bits."""
    bits = element_types.of(array).bits
    if bits < 8:
        return Format(max(bits, 3), lambda item: f"{item:0{bits}b}", "bits")
    return Format(max(bits // 4, 3), lambda item: f"{item:0{bits // 4}x}", "hex")


def patterns(part: Array) -> Array:
    """Return the bit patterns of a part; texts stay texts."""
    return part if element_types.of(part) is STRING else codes(part).reshape(part.shape)


def exact(element: Array) -> str:
    """Return one element with all that it has: as many digits as tell it from its neighbours."""
    item = readable(element).reshape(-1)[0]
    if isinstance(item, (bool, np.bool_)):
        return "true" if item else "false"
    if isinstance(item, np.floating):
        value = float(item)
        return number_text(value) if not math.isfinite(value) else str(item)
    return printable(str(item))
