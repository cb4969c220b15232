"""Changes of the outputs of a model between two courses of its run: row by row where a loop gives them in rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.moments.difference import Change, Difference, difference
from stepper.debug.scopes import target_in
from stepper.element_types import Array
from stepper.engine.loops import ConcatenatedOutput, LastValueOutput
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program, Value
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
    of another output. `source` is the name of the value of the loop that it is, where a loop gives it.
    """

    name: str
    difference: Difference
    rows: int | None = None
    lengths: tuple[int, int] = (0, 0)
    different: int = 0
    changed: tuple[RowChange, ...] = ()
    source: str = ""

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
    """Way in which a loop joins an output: along which axis, how many elements in each iteration, from the end on.

    `before` elements were there before the first iteration.
    """

    axis: int
    size: int
    is_backward: bool
    before: int = 0


def output_changes(
    compiled: CompiledModel, a: Sequence[Value | None] | None, b: Sequence[Value] | None
) -> tuple[OutputChange, ...]:
    """Return how the outputs of a model differ, as far as both sides have them."""
    if a is None or b is None:
        return ()
    names = output_names(compiled.model)
    found = []
    for index, (name, one, other) in enumerate(zip(names, a, b, strict=True)):
        if one is not None:
            given = _given(compiled, index)
            pieces = None if given is None else _pieces(given)
            change = output_change(name, np.asarray(one), np.asarray(other), pieces)
            found.append(change if given is None else replace(change, source=given.name))
    return tuple(found)


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
    moved = moved[pieces.before :]
    count = len(moved) // pieces.size
    return moved[: count * pieces.size].reshape(count, -1)


def _differing(a: Array, b: Array) -> Array:
    if a.dtype.kind in "OTSU" or a.dtype.names is not None:
        return np.arange(len(a))
    left, right = (np.ascontiguousarray(side).view(np.uint8).reshape(len(side), -1) for side in (a, b))
    return np.flatnonzero((left != right).any(axis=1))


class _LoopOutput(NamedTuple):
    """An output of a model that is one of a loop: the loop's operation and plan, and what it is there."""

    main: Program
    operation: Operation
    plan: LoopPlan
    entry: ConcatenatedOutput | LastValueOutput

    @property
    def name(self) -> str:
        """Return the name of the value inside of the loop: of what is carried that of the Parameter."""
        program = self.plan.program
        merged = self.entry.merged if isinstance(self.entry, LastValueOutput) else None
        if merged is not None:
            return program.parameter(merged).name
        return target_in(program, self.entry.result).layer.name


def _given(compiled: CompiledModel, index: int) -> _LoopOutput | None:
    """Return how a loop gives an output of the model; None where none does."""
    main = compiled.main
    slot = main.results[index]
    place = main.computed_at.get(slot)
    operation = None if place is None else main.operations[place]
    plan = operation.plans[0] if operation is not None and len(operation.plans) == 1 else None
    if operation is None or not isinstance(plan, LoopPlan):
        return None
    number = operation.outputs.index(slot)
    entries: list[ConcatenatedOutput | LastValueOutput] = [*plan.concatenated, *plan.last_values]
    entry = next((one for one in entries if one.output == number), None)
    return None if entry is None else _LoopOutput(main, operation, plan, entry)


def _pieces(given: _LoopOutput) -> _Pieces | None:
    """Return how a loop joins an output; None of one of which an iteration gives no piece."""
    if isinstance(given.entry, LastValueOutput):
        return _appended_pieces(given, given.entry)
    slicing = given.entry.slicing
    size = slicing.part_size or abs(slicing.stride) or 1
    return _Pieces(slicing.axis, size, slicing.stride < 0)


def _appended_pieces(given: _LoopOutput, entry: LastValueOutput) -> _Pieces | None:
    """Return how the body itself joins a piece to the value; None where it does not, or the file says no sizes."""
    program = given.plan.program
    carried = next((one for one in given.plan.merged if one.parameter == entry.merged), None)
    index = program.computed_at.get(entry.result, -1)
    piece = program.joined_pieces.get(index)
    if carried is None or piece is None:
        return None
    axis = str(program.operations[index].layer.attributes.get("axis", ""))
    came = target_in(given.main, given.operation.inputs[carried.input])
    added, begun = program.graph.by_id[piece.layer].outputs[piece.output].dims, came.layer.outputs[came.output].dims
    if not axis.isdecimal() or int(axis) >= min(len(added), len(begun)):
        return None
    size, before = added[int(axis)], begun[int(axis)]
    is_first = program.graph.sources[program.operations[index].layer.id][0] == piece
    return _Pieces(int(axis), size, is_first, before) if size > 0 and before >= 0 else None
