"""NaN and Inf that a model has by itself: in its Constants, and in what bodies make of Constants before they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stepper.debug.causes.locations import file_of
from stepper.debug.overview.facts import ConstantFacts
from stepper.element_types import is_floating
from stepper.ir.model import Layer, layer_site
from stepper.tensors.statistics import chunks

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.engine.frames import Constants
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.weights import Weights

_BLOCK: Final = 2**20
"""Elements that are looked at together."""
_LARGE: Final = 2**24
"""Bytes of a value whose pages of the file are let go once they were looked at."""


class _Count(NamedTuple):
    """How many elements of a value are not finite."""

    size: int = 0
    nan: int = 0
    infinite: int = 0


_FINITE: Final = _Count()
_Counts = dict[tuple[int, int], _Count]
"""By the `id` of the program, and slot; finite values have none."""


class ConstantSearch:
    """Looks through what the programs of a model begin with, each value once, in blocks; it goes on where it was left.

    A run tells nothing of it: what is computed of Constants alone in a body is computed before.
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._counts: _Counts = {}
        self._blocks = self._look()
        self.is_over = False

    def look(self, enough: Callable[[], bool]) -> None:
        """Look on to the end, or until that is `enough`; one block at least."""
        for _block in self._blocks:
            if enough():
                return
        self.is_over = True

    def _look(self) -> Iterator[None]:
        for program in self._compiled.programs:
            for slot, value in enumerate(program.template):
                if value is None or not is_floating(value.dtype):
                    continue
                found = _FINITE
                for count in _counted(np.asarray(value), self._compiled.model.weights):
                    found = count
                    yield
                if found.nan or found.infinite:
                    self._counts[id(program), slot] = found

    def found(self, changed: Mapping[int, Constants]) -> tuple[ConstantFacts, ...]:
        """Return what is not finite so far; `changed` are constants that a user has set, by the `id` of the program."""
        counts = self._counts if not changed else self._with(changed)
        return tuple(one for program in self._compiled.programs for one in self._facts(program, counts))

    def _with(self, changed: Mapping[int, Constants]) -> _Counts:
        counts = dict(self._counts)
        for key, constants in changed.items():
            for slot, value in constants.values.items():
                blocks: Iterable[_Count] = _counted(np.asarray(value), None) if is_floating(value.dtype) else ()
                *_, counts[key, slot] = _FINITE, *blocks
        return counts

    def _facts(self, program: Program, counts: _Counts) -> Iterator[ConstantFacts]:
        """Yield the Constants of a program, and the operations that make NaN or Inf of others that have none."""
        key, file = id(program), file_of(self._compiled)
        inside = tuple(layer_site(layer, file) for layer in program.path)
        for layer in _constants(program):
            size, nan, infinite = counts.get((key, program.slots[layer.id, 0]), _FINITE)
            if nan or infinite:
                yield ConstantFacts(layer_site(layer, file), inside, size, nan, infinite)
        for operation in program.folded:
            before = [counts.get((key, slot), _FINITE) for slot in operation.inputs]
            for output, slot in enumerate(operation.outputs):
                size, nan, infinite = counts.get((key, slot), _FINITE)
                nan = 0 if any(one.nan for one in before) else nan
                infinite = 0 if any(one.infinite for one in before) else infinite
                if nan or infinite:
                    site = layer_site(operation.layer, file)
                    yield ConstantFacts(site, inside, size, nan, infinite, output)


def _constants(program: Program) -> Iterator[Layer]:
    """Yield the Constants that something in the graph needs."""
    return (layer for layer in program.graph.layers if layer.type == "Constant" and (layer.id, 0) in program.slots)


def _counted(value: Array, weights: Weights | None) -> Iterator[_Count]:
    """Yield what is not finite among more and more of the elements; pages of the file do not stay in memory for it."""
    nan = infinite = 0
    for block in chunks(value, _BLOCK):
        if not np.isfinite(block).all():
            nan += int(np.isnan(block).sum())
            infinite += int(np.isinf(block).sum())
        if weights is not None and value.nbytes >= _LARGE:
            weights.let_go(block)
        yield _Count(value.size, nan, infinite)
