"""A value in iterations that are seen in any order: what is known of it, in bounded memory.

Of each iteration the same numbers are kept as in a history: of at most 64 elements each, else of 64 buckets the largest
magnitude, mean and root mean square. They stand in blocks of iterations, of which the ones that were used longest ago
go first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from stepper import element_types
from stepper.element_types import Shape
from stepper.tensors.histories import ValueHistory, numbers_of, summary

if TYPE_CHECKING:
    from stepper.element_types import Array

BLOCK: Final = 64
"""Iterations in a block."""
_BLOCKS: Final = (16, 128)
"""Of which there are so many at least and at most, whatever they take."""


class _Block:
    """Numbers [statistic, iteration, element] of BLOCK iterations, where `known`."""

    def __init__(self, statistics: int, elements: int, dtype: np.dtype[Any]) -> None:
        self.numbers = np.zeros((statistics, BLOCK, elements), dtype)
        self.known = np.zeros(BLOCK, bool)


class KnownValues:
    """A value by iteration, with what came in before the first; `most` bytes of numbers are kept."""

    def __init__(self, most: int = 2**18) -> None:
        self._most = most
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        self._entered: Array | None = None
        self._type = ""
        self._shape: Shape = ()
        self._changes = 0
        self._is_whole = True
        self._form: tuple[int, int] | None = None
        self._dtype: np.dtype[Any] = np.dtype(np.float64)
        self._last: tuple[Any, Array | None] = (None, None)
        self._shown: ValueHistory | None = None

    def knows(self, iteration: int) -> bool:
        """True if the value of this iteration is known."""
        block = self._blocks.get(iteration // BLOCK)
        return block is not None and bool(block.known[iteration % BLOCK])

    def enter(self, value: Any) -> None:
        """Take what came in before the first iteration."""
        if self._entered is None:
            self._entered = numbers_of(value)
            self._shown = None

    def see(self, iteration: int, value: Any) -> bool:
        """Take the value of an iteration; True if it was not known, and has numbers."""
        if self.knows(iteration):
            return False
        numbers = self._last[1] if value is self._last[0] else numbers_of(value)
        self._last = value, numbers
        if numbers is None:
            return False
        array = np.asarray(value)
        if self._form is not None and array.shape != self._shape:
            self._changes += 1
        self._type, self._shape = element_types.name_of(array.dtype), array.shape
        self._put(iteration, numbers)
        return True

    def view(self) -> ValueHistory | None:
        """Return what is known; None where nothing is."""
        if self._shown is None and self._form is not None:
            self._shown = self._view(self._form)
        return self._shown

    # --- the blocks ----------------------------------------------------------------------------------------------

    def _put(self, iteration: int, numbers: Array) -> None:
        form = numbers.shape[0], numbers.shape[1]
        if self._form is None:
            self._form, self._dtype, self._is_whole = form, numbers.dtype, form[0] == 1
        elif form != self._form:
            if self._form != (3, 1) or self._is_whole:
                self._summarise()
            numbers = summary(numbers[:, None])[:, 0]
        if numbers.dtype != self._dtype:
            self._dtype = np.promote_types(self._dtype, numbers.dtype)
            for block in self._blocks.values():
                block.numbers = block.numbers.astype(self._dtype)
        block = self._block(iteration // BLOCK)
        block.numbers[:, iteration % BLOCK] = numbers
        block.known[iteration % BLOCK] = True
        self._shown = None

    def _block(self, index: int) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            assert self._form is not None
            block = self._blocks[index] = _Block(*self._form, self._dtype)
            each = block.numbers.nbytes
            while len(self._blocks) > min(max(self._most // each, _BLOCKS[0]), _BLOCKS[1]):
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(index)
        return block

    def _summarise(self) -> None:
        """From now on the three numbers of all elements, since their number changes."""
        self._form, self._is_whole, self._dtype = (3, 1), False, np.dtype(np.float64)
        for block in self._blocks.values():
            block.numbers = summary(block.numbers)

    def _view(self, form: tuple[int, int]) -> ValueHistory:
        blocks = sorted(self._blocks.items())
        known = np.concatenate([one.known for _, one in blocks])
        begins = np.concatenate([np.arange(BLOCK) + index * BLOCK for index, _ in blocks])[known].astype(np.int64)
        entered = self._entered
        if entered is not None and entered.shape != form:
            entered = summary(entered[:, None])[:, 0] if form == (3, 1) else None
        numbers = np.concatenate([one.numbers for _, one in blocks], axis=1)[:, known]
        strongest = numbers[0]
        bad = [begins[np.flatnonzero(mask.any(axis=1))] for mask in (np.isnan(strongest), np.isinf(strongest))]
        return ValueHistory(
            type=self._type,
            shape=self._shape,
            count=int(begins[-1]) + 1,
            is_whole=self._is_whole,
            spans=np.stack([begins, begins + 1], axis=1),
            numbers=numbers,
            entered=entered,
            first_nan=int(bad[0][0]) if bad[0].size else None,
            first_infinite=int(bad[1][0]) if bad[1].size else None,
            shape_changes=self._changes,
        )
