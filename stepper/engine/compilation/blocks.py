"""Products with a large matrix in a narrow type, by blocks: each is converted when it is its turn, and none is kept.

A run that keeps all values converts the whole matrix, and has the same numbers to the last bit: its products are made
by the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from stepper.element_types import Array

if TYPE_CHECKING:
    from stepper.ir.model import Layer

_LARGE: Final = 2**24
"""Elements of a matrix above which products are made by blocks."""
_BLOCK: Final = 2**22
"""Elements that are converted at once: 16 MB of f32, which stay in the processor's cache until they are multiplied."""


class ProductByBlocks:
    """A MatMul with a large matrix on the right, by blocks of the columns of the product: `function` of each block."""

    def __init__(self, function: Callable[[Array, Array], Array], *, transposed: bool) -> None:
        self.function, self._axis = function, 0 if transposed else 1

    def __call__(self, a: Array, b: Array) -> Array:
        """Return the product of two arrays."""
        return self.of_table(a, b, lambda block: block)

    def of_table(self, a: Array, table: Array, to_type: Callable[[Array], Array]) -> Array:
        """Return the product with a matrix that is converted block by block. Fails as that with the whole one does."""
        try:
            products = [self.function(a, to_type(block)) for block in self._blocks(table)]
        except Exception:
            return self.function(a, to_type(table))
        return np.concatenate(products, axis=-1)

    def _blocks(self, table: Array) -> Iterator[Array]:
        columns = table.shape[self._axis]
        each = max(_BLOCK * columns // table.size, 1)
        for first in range(0, columns, each):
            yield table[first : first + each] if self._axis == 0 else table[:, first : first + each]


def by_blocks(layer: Layer, function: Callable[..., Any], converted: Array | None) -> Callable[..., Any]:
    """Return the function of a layer; by blocks where it multiplies by a large matrix, `converted` on the way to it."""
    if converted is None or layer.type != "MatMul" or converted.ndim != 2 or converted.size <= _LARGE:
        return function
    return ProductByBlocks(function, transposed=layer.is_set("transpose_b"))
