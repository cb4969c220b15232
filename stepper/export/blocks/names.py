"""One name for the corresponding things of all copies of a block: `layers.{0..23}.norm`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_TOKENS: Final = re.compile(r"\d+|\D+")
_NUMBERED: Final = re.compile(r"(?:^|[./_])\d{1,9}(?=[./_]|$)")
_MOST_LISTED: Final = 4


def shared_name(names: Sequence[str]) -> str:
    """Return one name for several; the numbers in which they differ as a range, or what else differs as `…`."""
    if len(set(names)) == 1:
        return names[0]
    tokens = [_TOKENS.findall(name) for name in names]
    if all(len(found) == len(tokens[0]) for found in tokens):
        columns = list(zip(*tokens, strict=True))
        if all(len(set(column)) == 1 or all(map(_is_number, column)) for column in columns):
            return "".join(column[0] if len(set(column)) == 1 else _range(column) for column in columns)
    begin = _beginning(names)
    end = _beginning([name[len(begin) :][::-1] for name in names])[::-1]
    return f"{begin}…{end}" if begin or end else f"{names[0]}, …"


def block_name(members: Sequence[Sequence[str]]) -> str:
    """Return the name of a block, of which each copy has members of these names; "" where they share no number.

    It is what most members have in common up to the number that counts the copies.
    """
    found: Counter[str] = Counter()
    for names in zip(*members, strict=True):
        for ends in zip(*([match.end() for match in _NUMBERED.finditer(name)] for name in names), strict=False):
            shared = shared_name([name[:end] for name, end in zip(names, ends, strict=True)])
            if shared.endswith("}") and shared.count("{") == 1 and "…" not in shared:
                found[shared] += 1
                break
    if not found:
        return ""
    name, count = max(found.items(), key=lambda item: (item[1], -len(item[0])))
    return name if 2 * count > len(members[0]) // 2 else ""


def _beginning(names: Sequence[str]) -> str:
    """Return what all begin with."""
    low, high = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return low[:same]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _range(column: Sequence[str]) -> str:
    numbers = [int(text) for text in column]
    if all(after == before + 1 for before, after in pairwise(numbers)):
        return f"{{{column[0]}..{column[-1]}}}"
    if len(column) <= _MOST_LISTED:
        return f"{{{','.join(column)}}}"
    return f"{{{column[0]},{column[1]}..{column[-1]}}}"
