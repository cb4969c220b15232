"""Changes of the outputs of a model between two courses of its run: row by row where a loop gives them in rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from stepper.debug.moments.difference import Change, Difference, difference
from stepper.debug.scopes import target_in
from stepper.element_types import Array
from stepper.engine.program import CompiledModel, LoopPlan, Program, Value
from stepper.engine.run import output_names
from stepper.ir.model import Layer

MOST_ROWS: Final = 4_096
"""Rows that differ of which each is looked at."""


class RowChange(NamedTuple):
    """A row of an output that differs, by the iteration that gave it."""

    iteration: int
    difference: Difference


class OutputChange(Struct, frozen=True):
    """An output of the model in A and now.

    Where a loop gives a piece of it in each iteration, `rows` is how many both have (`lengths`: in A, and now), and
    `changed` are the first of those that differ, of `different` in all, in the order of the iterations. `rows` is None
    of another output.
    """

    name: str
    difference: Difference
    rows: int | None = None
    lengths: tuple[int, int] = (0, 0)
    different: int = 0
    changed: tuple[RowChange, ...] = ()

    @property
    def first(self) -> int | None:
        """Return the first iteration in which it differs."""
        return self.changed[0].iteration if self.changed else None

    def rows_that(self, change: Change) -> tuple[RowChange, ...]:
        """Return the rows with this kind of change."""
        return tuple(row for row in self.changed if row.difference.change is change)

    @property
    def within(self) -> tuple[RowChange, ...]:
        """Return the rows whose bits differ, but which stay within the tolerance."""
        return tuple(row for row in self.changed if row.difference.is_within)


class _Pieces(NamedTuple):
    """Way in which a loop joins an output: along which axis, how many elements in each iteration, from the end on."""

    axis: int
    size: int
    is_backward: bool


def output_changes(
    compiled: CompiledModel, a: Sequence[Value | None] | None, b: Sequence[Value] | None
) -> tuple[OutputChange, ...]:
    """Return how the outputs of a model differ, as far as both sides have them."""
    if a is None or b is None:
        return ()
    names = output_names(compiled.model)
    return tuple(
        output_change(name, np.asarray(one), np.asarray(other), _pieces(compiled, index))
        for index, (name, one, other) in enumerate(zip(names, a, b, strict=True))
        if one is not None
    )


def output_sources(main: Program) -> list[tuple[Layer, int]]:
    """Return the layer and the output of it that gives each output of a model."""
    return [(target.layer, target.output) for target in (target_in(main, slot) for slot in main.results)]


def output_change(name: str, a: Array, b: Array, pieces: _Pieces | None) -> OutputChange:
    """Return how one output differs."""
    whole = difference(a, b)
    if pieces is None or a.ndim != b.ndim or a.dtype != b.dtype or not a.ndim:
        return OutputChange(name, whole)
    left, right = _by_row(a, pieces), _by_row(b, pieces)
    lengths = len(left), len(right)
    rows = min(lengths)
    if left.shape[1:] != right.shape[1:]:
        return OutputChange(name, whole)
    differing = _differing(left[:rows], right[:rows])
    changed = [RowChange(int(row), difference(left[row], right[row])) for row in differing[:MOST_ROWS]]
    found = tuple(row for row in changed if row.difference.change is not Change.SAME)
    many = len(found) + max(len(differing) - MOST_ROWS, 0)
    return OutputChange(name, whole, rows, lengths, many, found)


def _by_row(array: Array, pieces: _Pieces) -> Array:
    """Return the elements of an output with a row for each iteration, in the order of these."""
    moved = np.moveaxis(array, pieces.axis, 0)
    if pieces.is_backward:
        moved = moved[::-1]
    count = len(moved) // pieces.size
    return moved[: count * pieces.size].reshape(count, -1)


def _differing(a: Array, b: Array) -> Array:
    if a.dtype.kind in "OTSU" or a.dtype.names is not None:
        return np.arange(len(a))
    left, right = (np.ascontiguousarray(side).view(np.uint8).reshape(len(side), -1) for side in (a, b))
    return np.flatnonzero((left != right).any(axis=1))


def _pieces(compiled: CompiledModel, index: int) -> _Pieces | None:
    """Return how a loop joins an output of the model; None where no loop gives it in pieces."""
    main = compiled.main
    slot = main.results[index]
    place = main.computed_at.get(slot)
    if place is None:
        return None
    operation = main.operations[place]
    plan = operation.plans[0] if len(operation.plans) == 1 else None
    if not isinstance(plan, LoopPlan):
        return None
    number = operation.outputs.index(slot)
    entry = next((one for one in plan.concatenated if one.output == number), None)
    if entry is None:
        return None
    slicing = entry.slicing
    size = slicing.part_size or abs(slicing.stride) or 1
    return _Pieces(slicing.axis, size, slicing.stride < 0)
