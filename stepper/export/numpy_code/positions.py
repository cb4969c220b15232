"""Where the slices of a sliced input lie, as code: boundaries counted from the start of an axis or from its end."""

from __future__ import annotations

from typing import NamedTuple

from stepper.errors import UsageError
from stepper.ir.model import Slicing


class Position(NamedTuple):
    """A place along an axis: so many times its extent (0 or 1), and so many elements more."""

    of_extent: int
    offset: int

    def minus(self, other: Position) -> Position:
        """Return the distance from the other one."""
        return Position(self.of_extent - other.of_extent, self.offset - other.offset)

    def text(self, extent: str, more: str = "") -> str:
        """Return the position as code; `more` are further terms, such as ` - iteration`."""
        if not self.of_extent:
            first = str(self.offset)
        elif self.of_extent < 0:
            first = f"{self.offset} - {extent}"
        else:
            first = extent if not self.offset else f"{extent} {'-' if self.offset < 0 else '+'} {abs(self.offset)}"
        return f"{first}{more}"


def position(value: int) -> Position:
    """Return a boundary between elements: -1 is the last one (semantics 1.3)."""
    return Position(0, value) if value >= 0 else Position(1, value + 1)


def range_of(slicing: Slicing, iteration: str, extent: str) -> tuple[str, str]:
    """Begin and end of the slice that an iteration gets (semantics 1.4): chunk after chunk from `start` on."""
    size, start = abs(slicing.stride), position(slicing.start)
    if size == 0:
        raise UsageError("a stride is 0, so the loop would never advance")
    chunks = iteration if size == 1 else f"{size} * {iteration}"
    following = start._replace(offset=start.offset + size)
    before = start._replace(offset=start.offset - size)
    if slicing.stride < 0:
        return before.text(extent, f" - {chunks}"), start.text(extent, f" - {chunks}")
    if start == (0, 0):
        return chunks, f"{chunks} + {size}"
    if not start.of_extent:
        return f"{chunks} + {start.offset}", f"{chunks} + {following.offset}"
    return start.text(extent, f" + {chunks}"), following.text(extent, f" + {chunks}")


def count_of(slicing: Slicing, extent: str) -> str:
    """Return the number of slices (semantics 1.3)."""
    start, end = position(slicing.start), position(slicing.end)
    low, high = (start, end) if slicing.stride > 0 else (end, start)
    length, size = high.minus(low), abs(slicing.stride)
    if length.of_extent == 0:
        return str(length.offset // size)
    text = length.text(extent)
    return text if size == 1 else f"{f'({text})' if ' ' in text else text} // {size}"
