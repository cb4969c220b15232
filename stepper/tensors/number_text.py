"""Write numbers and tensors as text; every other module calls this module.

| function | for |
|---|---|
| `number_text` | sentences and tables: significant digits; |
| `fitted` | cells of a screen or figure: at most so many characters; |
| `decimal_text` | a column of a figure: equal decimals in each row; |
| `exact_text` | numbers that are read back; |
| `array_text`, `numbers_text`, `nested_text` | tensors, in one line; |
| `in_columns` | tables of texts. |

NaN and the infinities are `NaN`, `Inf`, `-Inf` everywhere, with `+Inf` where numbers stand in cells.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.ops.operands import form_text
from stepper.plain_values import storable
from stepper.wording import excerpt

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MOST_NUMBERS = 6
_LONGEST_VALUE = 100
_LONGEST_NESTED = 60


def number_text(value: Any, digits: int = 4) -> str:
    """Return a number of Python, numpy or JSON in so many significant digits; `-` for None."""
    if value is None:
        return "-"
    plain = storable(value).item() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(plain, str):
        if plain not in _NON_FINITE:
            return plain
        plain = _NON_FINITE[plain]
    if not isinstance(plain, float):
        return str(plain).lower() if isinstance(plain, bool) else str(plain)
    if math.isfinite(plain):
        return f"{plain:.{digits}g}"
    return "NaN" if math.isnan(plain) else "Inf" if plain > 0 else "-Inf"


def fitted(value: float | bool | str | None, width: int = 6, *, keep_decimals: bool = False) -> str:
    """Return a number in at most `width` (6 or more) cells, at most three decimals, so that points stand under points.

    A whole number of type float has no decimals, unless `keep_decimals` is set. Empty for None.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        value = _NON_FINITE[value]
    if isinstance(value, bool) or not math.isfinite(value):
        return f"{'+' if value == math.inf else ''}{number_text(value)}"
    if value == int(value) and len(str(int(value))) <= width and not (keep_decimals and isinstance(value, float)):
        return str(int(value))
    if 1e-3 <= abs(value) < 1e5 or value == 0:
        # The noise of 32 bits must not decide which way a tie is rounded: it is another on every processor.
        steady = float(f"{value:.7g}")
        for decimals in (3, 2, 1, 0):
            text = f"{steady:.{decimals}f}"
            if len(text) <= width:
                return text
    for decimals in (2, 1, 0):
        text = short_exponent(f"{value:.{decimals}e}")
        if len(text) <= width:
            return text
    return text


def short_exponent(text: str) -> str:
    """Return a number as text without a sign and zeros in front of its exponent."""
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent.lstrip("+-").isdigit() else text


def decimal_text(value: float | None, decimals: int) -> str:
    """Return a number with so many decimals; whole ones without, large and small ones with a power of ten."""
    if value is None or isinstance(value, bool):
        return "" if value is None else number_text(value)
    if isinstance(value, int) or value == 0:
        text = f"{int(value):d}" if abs(value) < 10**7 else f"{value:.1e}"
    elif abs(value) >= 10**5 or abs(value) < 0.5 * 10**-decimals:
        text = short_exponent(f"{value:.0e}")
    else:
        text = f"{value:.{decimals}f}"
    return text.replace("-", "\u2212")


def exact_text(value: Any) -> str:
    """Return a number in the fewest digits that give the same number of its own type again."""
    return str(np.asarray(value)[()])


# --- tensors --------------------------------------------------------------------------------------------------------


def array_text(array: Array, room: int | None = None) -> str:
    """Type and shape of a tensor, and its numbers where they are few; in `room` characters, where that is possible."""
    text = form_text(array)
    if array.size > _MOST_NUMBERS or array.dtype.names is not None:
        return text
    if room is None:
        return f"{text} {excerpt(np.array2string(array, separator=', ', precision=6), _LONGEST_VALUE)}"
    return f"{text} {numbers_text(array, room - len(text) - 1)}".rstrip()


def numbers_text(array: Array, room: int) -> str:
    """Return the numbers in one line: all of them, or some of the first and last, or none, as there is room."""
    for edge in (_MOST_NUMBERS, 2, 1):
        threshold = 1 if edge < _MOST_NUMBERS else _MOST_NUMBERS
        text = np.array2string(
            array, separator=", ", precision=6, max_line_width=_LONGEST_VALUE, threshold=threshold, edgeitems=edge
        )
        if len(text) <= room:
            return excerpt(text, _LONGEST_VALUE)
    return ""


def nested_text(array: Array, longest: int = _LONGEST_NESTED) -> str:
    """Return the numbers of a small tensor, rows in brackets; the middle of a long text is left out."""
    plain = storable(array)
    text = _nested(plain.item() if plain.size == 1 else plain.tolist())
    words = text.split(" ")
    if len(text) <= longest or max(map(len, words)) > longest // 3:
        return excerpt(text, longest)
    kept = len(words) - 1
    while len(text := " ".join((*words[: (kept + 1) // 2], "…", *words[len(words) - kept // 2 :]))) > longest:
        kept -= 1
    return text


def _nested(item: Any) -> str:
    if isinstance(item, list):
        return f"[{' '.join(map(_nested, item))}]"
    return repr(item) if isinstance(item, str) else number_text(item)


def in_columns(rows: Iterable[Sequence[str]], right: int = sys.maxsize) -> list[str]:
    """Return a line for each row, every column as wide as its widest; those from `right` on stand at the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ((f"{text:{'>' if at >= right else '<'}{widths[at]}}" for at, text in enumerate(row)) for row in rows)
    return ["  ".join(line).rstrip() for line in lines]
