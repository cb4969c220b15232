"""Text that somebody looked at, held against what is printed now, but for the last digits of computed numbers.

Another processor adds up a matrix product in another order, so that the last digit shown of a value, and its bits, may
be others, and with them the blanks that follow.
"""

from __future__ import annotations

import re
from itertools import zip_longest

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])|\b[0-9a-f]{8}\b|\b[01]{4,}[…~][01]{4}\b")
_BITS = re.compile(r"[0-9a-f]{8}")
_CUT_BITS = re.compile(r"([01]+)[…~]([01]+)")


def difference(found: str, expected: str) -> str:
    """The first line that differs, both ways; nothing where all agree."""
    for number, (ours, golden) in enumerate(zip_longest(found.split("\n"), expected.split("\n")), 1):
        if ours is None or golden is None or not agree(ours, golden):
            return f"line {number}\n  golden {golden!r}\n  found  {ours!r}"
    return ""


def agree(ours: str, golden: str) -> bool:
    """True if two lines are the same but for last digits."""
    if ours == golden:
        return True
    words, numbers = _taken_apart(ours)
    golden_words, golden_numbers = _taken_apart(golden)
    return words == golden_words and all(map(_close, numbers, golden_numbers))


def _taken_apart(line: str) -> tuple[list[str], list[str]]:
    """What stands between the numbers, blanks at their sides as one; and the numbers."""
    words = [re.sub(r"^ +| +$", " ", text) for text in _NUMBER.split(line)]
    return words, _NUMBER.findall(line)


def _close(ours: str, golden: str) -> bool:
    if _BITS.fullmatch(ours) and _BITS.fullmatch(golden):
        return abs(int(ours, 16) - int(golden, 16)) <= 64  # steps of its type
    if _CUT_BITS.fullmatch(ours) and _CUT_BITS.fullmatch(golden):
        return ours[:4] == golden[:4]  # the whole of them stands beside, in eight letters
    unit = max(_unit_of_last_place(ours), _unit_of_last_place(golden))
    return abs(float(ours) - float(golden)) <= max(1.01 * unit, 4e-6 * abs(float(golden)))


def _unit_of_last_place(number: str) -> float:
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
