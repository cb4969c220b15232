"""Cells: one number for each operation of a body and each iteration, kept in tiles of some iterations; bounded.

A tile is filled piece by piece while the run goes by. Whoever looks gets tiles that no longer change, so they can be
shown by another thread while the run goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.program import Program
from stepper.records import Brief
from stepper.tensors.histories import ValueHistory

BLOCK: Final = 64
"""Iterations in a tile."""
MOST_CELLS: Final = 2 * 2**20
"""Cells of one run that are kept, of 13 bytes each; the tiles that were used longest ago go first."""


class Cell(NamedTuple):
    """Cell of the grid: one operation in one iteration; in the order of time."""

    iteration: int
    operation: int


class Tile(Struct, frozen=True, eq=False):
    """The operations in BLOCK iterations: arrays of shape [iterations, operations].

    `numbers` hold where `known`. `shapes` are equal where the shapes of the values are; -1: not seen yet.
    """

    numbers: Array
    known: Array
    shapes: Array

    @staticmethod
    def empty(iterations: int, operations: int) -> Tile:
        """Nothing is known."""
        size = iterations, operations
        return Tile(np.zeros(size), np.zeros(size, bool), np.full(size, -1, np.int32))

    def copy(self) -> Tile:
        """Return one that does not change with this one."""
        return Tile(self.numbers.copy(), self.known.copy(), self.shapes.copy())

    def put(
        self, rows: slice | int, columns: slice | Array, other: Tile, source: slice | int, taken: slice | Array
    ) -> None:
        """Take over a part of another one."""
        for mine, theirs in zip(self._arrays(), other._arrays(), strict=True):
            mine[rows, columns] = theirs[source, taken]

    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.numbers, self.known, self.shapes


class TileStore:
    """The tiles of one run of a graph with so many operations."""

    def __init__(self, operations: int, most_cells: int = MOST_CELLS) -> None:
        self.operations = operations
        self.firsts: dict[str, Cell] = {}
        self._most = max(most_cells // (BLOCK * max(operations, 1)), 4)
        self._tiles: OrderedDict[int, Tile] = OrderedDict()
        self._complete: dict[int, Array] = {}
        self._shown: dict[int, Tile] = {}

    @property
    def cells(self) -> int:
        """Return how many there is room for in the tiles that are kept."""
        return len(self._tiles) * BLOCK * self.operations

    def missing(self, iteration: int, begin: int, end: int) -> Array:
        """Which operations from `begin` up to but not `end` were not seen yet in an iteration: their indices."""
        block, line = divmod(iteration, BLOCK)
        return np.flatnonzero(self._tile(block).shapes[line, begin:end] < 0) + begin

    def put(self, iteration: int, operations: Array, row: Tile) -> None:
        """These operations of an iteration, by index, of a row of all."""
        block, line = divmod(iteration, BLOCK)
        self._tile(block).put(line, operations, row, 0, operations)
        self._shown.pop(block, None)
        for kind, test in (("NaN", np.isnan), ("Inf", np.isinf)):
            odd = np.flatnonzero(test(row.numbers[0, operations]) & row.known[0, operations])
            if odd.size:
                found = Cell(iteration, int(operations[odd[0]]))
                self.firsts[kind] = min(found, self.firsts.get(kind, found))

    def close(self, iteration: int) -> None:
        """All operations of the iteration have run, and were seen."""
        block, line = divmod(iteration, BLOCK)
        self._tile(block)
        self._complete[block][line] = True

    def lacks(self, iteration: int) -> bool:
        """True if the iteration was not seen when it was closed, with all its values there."""
        complete = self._complete.get(iteration // BLOCK)
        return complete is None or not complete[iteration % BLOCK]

    def view(self, first: int, last: int) -> Mapping[int, Tile]:
        """Return the tiles of these iterations by block, as they are now, without those of which nothing is known."""
        found = {}
        for block in range(max(first, 0) // BLOCK, max(last, 0) // BLOCK + 1):
            tile = self._tiles.get(block)
            if tile is not None:
                self._tiles.move_to_end(block)
                if block not in self._shown:
                    self._shown[block] = tile.copy()
                found[block] = self._shown[block]
        self._shown = {block: tile for block, tile in self._shown.items() if block in found}
        return found

    def _tile(self, block: int) -> Tile:
        tile = self._tiles.get(block)
        if tile is None:
            tile = self._tiles[block] = Tile.empty(BLOCK, self.operations)
            self._complete[block] = np.zeros(BLOCK, bool)
            while len(self._tiles) > self._most:
                gone, _ = self._tiles.popitem(last=False)
                del self._complete[gone]
        self._tiles.move_to_end(block)
        return tile


class CellsView(Brief, Struct, frozen=True, eq=False):
    """The operations of one run of a graph over a window of its iterations.

    `tiles` by block. `firsts`: of what is known of the whole run, the first cells with NaN and with Inf. `ended` is the
    number of the first iteration that there is not, where that is known. `values` are the operations that somebody
    looks at, by index.
    """

    unshown: ClassVar = ("program", "tiles", "values")

    program: Program
    statistic: str
    tiles: Mapping[int, Tile]
    firsts: Mapping[str, Cell]
    ended: int | None
    values: Mapping[int, ValueHistory]

    def window(self, first: int, iterations: int, operations: Array | None = None) -> Tile:
        """Return a part of it: arrays of shape [iterations, operations]; before iteration 0 nothing is known.

        `operations` are indices, all where None.
        """
        taken = slice(None) if operations is None else operations
        found = Tile.empty(iterations, len(self.program.operations) if operations is None else len(operations))
        for block, tile in self.tiles.items():
            begin, end = max(first, block * BLOCK), min(first + iterations, (block + 1) * BLOCK)
            if begin < end:
                source = slice(begin - block * BLOCK, end - block * BLOCK)
                found.put(slice(begin - first, end - first), slice(None), tile, source, taken)
        return found

    def number(self, cell: Cell) -> float | None:
        """Return the number of a cell; None where it is not known."""
        tile = self.tiles.get(cell.iteration // BLOCK)
        line = cell.iteration % BLOCK
        if tile is None or cell.iteration < 0 or not tile.known[line, cell.operation]:
            return None
        return float(tile.numbers[line, cell.operation])

    def odd(self, iteration: int, kind: str) -> int | None:
        """In how many operations of an iteration there is NaN, or for Inf either; None where not all of it is known."""
        tile = self.tiles.get(iteration // BLOCK)
        line = iteration % BLOCK
        if tile is None or iteration < 0 or not (tile.shapes[line] >= 0).all():
            return None
        numbers = tile.numbers[line]
        found = np.isnan(numbers) if kind == "NaN" else ~np.isfinite(numbers)
        return int((found & tile.known[line]).sum())

    def anomaly(self, after: Cell, *, backward: bool = False) -> Cell | None:
        """Return the next cell in time where NaN or Inf appears in an operation, or its shape changes; else None.

        Of what is known; a cell whose iteration before is not known counts for none.
        """
        blocks = sorted(self.tiles, reverse=backward)
        for block in blocks:
            begin = block * BLOCK
            part = self.window(begin - 1, BLOCK + 1)
            found = [Cell(begin + int(row), int(index)) for row, index in np.argwhere(_turns(part, begin == 0))]
            fitting = [cell for cell in found if (cell < after if backward else cell > after)]
            if fitting:
                return fitting[-1] if backward else fitting[0]
        return None


def _turns(part: Tile, is_first: bool) -> Array:
    """Return where something begins, from the second row on; what is there in iteration 0 begins there."""
    kinds = np.where(part.known, np.isnan(part.numbers) * 2 + np.isinf(part.numbers), 0)
    seen = (part.shapes[1:] >= 0) & (part.shapes[:-1] >= 0)
    begins = seen & (kinds[1:] != kinds[:-1]) & (kinds[1:] > 0)
    changes = seen & (part.shapes[1:] != part.shapes[:-1])
    if is_first:
        begins[0] = kinds[1] > 0
    found: Array = begins | changes
    return found
