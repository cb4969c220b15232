"""The visible part of a grid, worked out for all its cells at once."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from stepper.debug.iteration_tiles import Tile
from stepper.element_types import Array

LEVELS: Final = 12
"""Shades."""
UNKNOWN: Final = -2
CHANGED: Final = 100
ODD: Final = 200
"""Codes of cells: a level, -1 for a value without a number; CHANGED more where the shape is another than before; from
ODD on NaN and Inf: twice the kind (1 Inf, 2 NaN), and 1 more where it begins."""


class GridPart:
    """`codes[operation][iteration]` of what is visible; line 0 of the tile is the iteration before that."""

    def __init__(self, tile: Tile, left: int, top: int) -> None:
        self.left, self.top, self.columns = left, top, len(tile.numbers) - 1
        numbers, known = tile.numbers, tile.known
        kinds = np.where(known, np.isnan(numbers) * 2 + np.isinf(numbers), 0)
        seen = tile.shapes[:-1] >= 0
        begins = np.zeros(known.shape, bool)
        begins[1:] = (kinds[1:] > 0) & seen & (kinds[1:] != kinds[:-1])
        changes = np.zeros(known.shape, bool)
        changes[1:] = seen & (tile.shapes[1:] >= 0) & (tile.shapes[1:] != tile.shapes[:-1])
        levels = _levels(numbers, known & (kinds == 0))
        first = np.arange(left - 1, left - 1 + len(numbers))[:, None] == 0
        odd = ODD + 2 * kinds + (begins | first)
        usual = np.where(changes, levels + CHANGED, levels)
        codes = np.where(kinds > 0, odd, np.where(tile.shapes < 0, UNKNOWN, usual))
        self.codes: list[list[int]] = codes[1:].T.tolist()


def _levels(numbers: Array, finite: Array) -> Array:
    """The place of each number between the least and the largest of its operation; -1 where there is none."""
    if not numbers.size:
        return np.zeros(numbers.shape, np.int64)
    low = np.where(finite, numbers, math.inf).min(axis=0)
    high = np.where(finite, numbers, -math.inf).max(axis=0)
    with np.errstate(all="ignore"):
        span = high / 2 - low / 2  # halved, so that it does not overflow
        share = np.where(span > 0, (numbers / 2 - low / 2) / span, 0.0)
    found: Array = np.where(finite, np.clip(np.nan_to_num(share), 0.0, 1.0) * (LEVELS - 1) + 0.5, -1).astype(np.int64)
    return found
