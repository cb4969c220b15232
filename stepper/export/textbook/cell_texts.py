"""Words in the box of a body: its cell, its formula, or how many operations it has and which do most of the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from stepper.export.fonts import wrapped
from stepper.export.formulas.main_operations import RecurrentCell

_WIDTHS: Final = (44.0, 56.0, 70.0, 86.0)
"""Points of a line of a formula in a box: the narrowest in which it has few lines."""
_MOST_LINES: Final = 5
_MOST_TYPES: Final = 3
TITLE: Final = "body"


class CellText(NamedTuple):
    """A title or the lines of a formula, and lines below it. `has_types`: the figure need not tell types below."""

    title: str
    lines: tuple[str, ...]
    formula: tuple[str, ...] = ()
    has_types: bool = False

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """All lines, each with its style."""
        above = (("formula", line) for line in self.formula) if self.formula else (("number", self.title),)
        return (*above, *(("aside", line) for line in self.lines))


NUMBER_ALONE: Final = CellText("", ())
"""For boxes in which nothing but the number of the iteration has room."""


class BodyWork(NamedTuple):
    """Work of a body in an iteration: the number of its operations, types with counts, its cell, and its equations."""

    operations: int
    types: tuple[tuple[str, int], ...] = ()
    cell: RecurrentCell | None = None
    formula: tuple[str, ...] = ()

    @property
    def types_told(self) -> str:
        """All types with their counts: `6 MatMul, 2 Softmax`."""
        return ", ".join(map(_counted, self.types))


def formula_text(work: BodyWork, size: float, room: int) -> CellText | None:
    """Return the formula of a body in letters of a size; None where it has none, or one of more than `room` lines."""
    for width in _WIDTHS:
        lines = tuple(line for text in work.formula for line in wrapped(text, width, size))
        if work.cell is None and 0 < len(lines) < max(room, _MOST_LINES):
            return CellText("", (f"{work.operations:,} ops",), lines, has_types=True)
    return None


def cell_texts(work: BodyWork, room: int, *, is_wide: bool) -> Iterator[CellText]:
    """Yield what may stand in a box without a formula, the most first; it has `room` lines below the title."""
    count = f"{work.operations:,}"
    ops = (f"{count} ops",) if is_wide else (count, "ops")
    if work.cell is not None:
        units = f"{work.cell.units:,}"
        yield CellText(work.cell.type, (f"{units} units", *ops), has_types=True)
        yield CellText(work.cell.type.removesuffix("Cell"), (units, "units"), has_types=True)
    types = tuple(map(_counted, work.types[: min(_MOST_TYPES, room - 1)]))
    if is_wide and types and work.operations > 1 and not work.formula:
        yield CellText(TITLE, (*ops, *types), has_types=True)
    yield CellText(TITLE, ops)


def _counted(type: tuple[str, int]) -> str:
    name, count = type
    return name if count == 1 else f"{count} {name}"
