"""How far each value of a body is from the reference's: a cell for each operation and iteration that was compared.

Kept for each run of a graph while pictures of it are taken; what was jumped over is filled in when there is time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.compare.run.moments import ValueDifference
from stepper.debug.iterations.tiles import Cell
from stepper.element_types import Array
from stepper.engine.program import Program
from stepper.records import Brief

NOT_COMPARED: Final = -1
SAME: Final = 0
WITHIN: Final = 1
ABOVE: Final = 2
"""How a cell stands to the reference; not compared also where the reference has no value."""


class Worst(NamedTuple):
    """The largest difference of an operation, or of several; `is_above` where any leaves its tolerance."""

    distance: float
    is_above: bool


class DifferenceCells(Brief, Struct, frozen=True, eq=False):
    """One run of a graph beside the reference: by iteration the distances of all operations, and their standings."""

    unshown: ClassVar = ("program", "lines", "worst")

    program: Program
    lines: Mapping[int, tuple[Array, Array]]
    worst: tuple[Array, Array]

    def window(self, first: int, iterations: int, operations: Array) -> tuple[Array, Array]:
        """Distances and standings of these operations, as arrays of shape [iterations, operations]."""
        distances = np.zeros((iterations, len(operations)))
        standings = np.full(distances.shape, NOT_COMPARED, np.int8)
        for row in range(iterations):
            line = self.lines.get(first + row)
            if line is not None:
                distances[row], standings[row] = line[0][operations], line[1][operations]
        return distances, standings

    def worst_of(self, operations: Sequence[int]) -> Worst | None:
        """Over all iterations that are known; None where none of these operations was compared."""
        at = list(operations)
        distances, standings = self.worst[0][at], self.worst[1][at]
        if not at or int(standings.max()) == NOT_COMPARED:
            return None
        return Worst(float(distances.max()), int(standings.max()) == ABOVE)

    def at(self, cell: Cell) -> Worst | None:
        """One cell; None where it was not compared."""
        line = self.lines.get(cell.iteration)
        if line is None or int(line[1][cell.operation]) == NOT_COMPARED:
            return None
        return Worst(float(line[0][cell.operation]), int(line[1][cell.operation]) == ABOVE)

    def next_above(self, after: Cell, *, backward: bool = False) -> Cell | None:
        """The next cell in time that leaves its tolerance, where it did not one iteration before; of what is known."""
        for iteration in sorted(self.lines, reverse=backward):
            here = self.lines[iteration][1] == ABOVE
            before = self.lines.get(iteration - 1)
            if before is not None:
                here = here & (before[1] != ABOVE)
            cells = [Cell(iteration, int(index)) for index in np.flatnonzero(here)]
            fitting = [cell for cell in cells if (cell < after if backward else cell > after)]
            if fitting:
                return fitting[-1] if backward else fitting[0]
        return None


class DifferenceStore:
    """The cells of one run of a graph, as they become known."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lines: dict[int, tuple[Array, Array]] = {}
        self._worst = self._empty()
        self._complete: set[int] = set()
        self._view: DifferenceCells | None = None
        self.ended: int | None = None
        """The first iteration that there is not, where that was found out."""

    def _empty(self) -> tuple[Array, Array]:
        count = len(self._program.operations)
        return np.zeros(count), np.full(count, NOT_COMPARED, np.int8)

    @property
    def count(self) -> int:
        """How many iterations are kept."""
        return len(self._lines)

    def lacking(self, first: int, last: int) -> list[int]:
        """Of these iterations those of which not all operations were compared."""
        end = last + 1 if self.ended is None else min(last + 1, self.ended)
        return [iteration for iteration in range(max(first, 0), end) if iteration not in self._complete]

    def put(self, iteration: int, found: Iterable[ValueDifference], *, closed: bool) -> None:
        """What was compared of an iteration; `closed`: all of its operations have run."""
        if iteration in self._complete:
            return
        known = self._lines.get(iteration)
        line = self._empty() if known is None else _copy(known)
        self._worst = _copy(self._worst)
        for one in found:
            for distances, standings in (line, self._worst):
                distances[one.index] = max(distances[one.index], one.distance)
                standing = ABOVE if one.is_above else SAME if one.measure is None else WITHIN
                standings[one.index] = max(standings[one.index], standing)
        self._lines[iteration] = line
        self._view = None
        if closed:
            self._complete.add(iteration)

    def view(self) -> DifferenceCells:
        """As it is now."""
        if self._view is None:
            self._view = DifferenceCells(self._program, dict(self._lines), self._worst)
        return self._view


def _copy(line: tuple[Array, Array]) -> tuple[Array, Array]:
    """So that a view that was given out does not change."""
    return line[0].copy(), line[1].copy()
