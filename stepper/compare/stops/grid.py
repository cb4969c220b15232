"""Grid of differences from the reference: a cell for each operation and iteration of a body that was compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.compare.stops.differences import ValueDifference
from stepper.debug.iterations.cell_store import Cell
from stepper.element_types import Array
from stepper.engine.program import Program
from stepper.records import Brief

NOT_COMPARED: Final = -1
SAME: Final = 0
WITHIN: Final = 1
ABOVE: Final = 2
"""Standings of a cell; NOT_COMPARED also where the reference has no value."""


class LargestDifference(NamedTuple):
    """Largest absolute difference of one or several operations; `is_above` if any is outside of its tolerance."""

    distance: float
    is_above: bool


class DifferenceGrid(Brief, Struct, frozen=True, eq=False):
    """One execution of a graph beside the reference.

    `lines` map an iteration to the absolute differences of all operations and to their standings, `worst` are the
    largest of each over all iterations: arrays of shape [operations].
    """

    unshown: ClassVar = ("program", "lines", "worst")

    program: Program
    lines: Mapping[int, tuple[Array, Array]]
    worst: tuple[Array, Array]

    def window(self, first: int, iterations: int, operations: Array) -> tuple[Array, Array]:
        """Return differences and standings of these operations, arrays of shape [iterations, operations]."""
        distances = np.zeros((iterations, len(operations)))
        standings = np.full(distances.shape, NOT_COMPARED, np.int8)
        for row in range(iterations):
            line = self.lines.get(first + row)
            if line is not None:
                distances[row], standings[row] = line[0][operations], line[1][operations]
        return distances, standings

    def worst_of(self, operations: Sequence[int]) -> LargestDifference | None:
        """Return the largest over all known iterations; None where none of these operations was compared."""
        at = list(operations)
        distances, standings = self.worst[0][at], self.worst[1][at]
        if not at or int(standings.max()) == NOT_COMPARED:
            return None
        return LargestDifference(float(distances.max()), int(standings.max()) == ABOVE)

    def at(self, cell: Cell) -> LargestDifference | None:
        """Return the difference of one cell; None where it was not compared."""
        line = self.lines.get(cell.iteration)
        if line is None or int(line[1][cell.operation]) == NOT_COMPARED:
            return None
        return LargestDifference(float(line[0][cell.operation]), int(line[1][cell.operation]) == ABOVE)

    def next_above(self, after: Cell, *, backward: bool = False) -> Cell | None:
        """Return the next known cell in time that leaves its tolerance and did not one iteration before."""
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


class DifferenceGridBuilder:
    """Collects the cells of one execution of a graph."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lines: dict[int, tuple[Array, Array]] = {}
        self._worst = self._empty()
        self._complete: set[int] = set()
        self._view: DifferenceGrid | None = None
        self.ended: int | None = None
        """Number of iterations of the loop, once it is known."""

    def _empty(self) -> tuple[Array, Array]:
        count = len(self._program.operations)
        return np.zeros(count), np.full(count, NOT_COMPARED, np.int8)

    @property
    def count(self) -> int:
        """Number of iterations that are kept."""
        return len(self._lines)

    def lacking(self, first: int, last: int) -> list[int]:
        """Return those of these iterations, the last included, of which not all operations were compared."""
        end = last + 1 if self.ended is None else min(last + 1, self.ended)
        return [iteration for iteration in range(max(first, 0), end) if iteration not in self._complete]

    def put(self, iteration: int, found: Iterable[ValueDifference], *, closed: bool) -> None:
        """Add differences of an iteration; `closed`: all of its operations have run and were compared."""
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

    def view(self) -> DifferenceGrid:
        """Return the grid as it is now; it does not change later."""
        if self._view is None:
            self._view = DifferenceGrid(self._program, dict(self._lines), self._worst)
        return self._view


def _copy(line: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return a copy, so that a grid that was given out does not change."""
    return line[0].copy(), line[1].copy()
