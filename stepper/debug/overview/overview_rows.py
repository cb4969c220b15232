"""Which values of a loop are followed over its iterations, and from which slots of the body's frame they are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stepper.debug.overview.overview_facts import Row, RowKind
from stepper.engine.program import LoopPlan, Program
from stepper.ir.model import Layer, LayerSite, Slicing, growth_of, layer_site

_VIEWS: Final = frozenset(("Squeeze", "Unsqueeze", "Reshape"))
"""Types of operations that give the elements of their first input in another shape."""


class LoopRows:
    """Rows of a loop, and from which slot each one's values are taken; a slot of several rows is kept once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.taken: list[int | None] = []
        self.slots: list[int] = []

    def add(self, row: Row, slot: int | None) -> None:
        """Add a row; without a slot nothing is kept of it."""
        if slot is not None and slot not in self.slots:
            self.slots.append(slot)
        self.rows.append(row)
        self.taken.append(None if slot is None else self.slots.index(slot))

    def separate(self, kind: RowKind) -> None:
        """Keep the values of rows of a kind beside those of other rows of the same slot."""
        for index, (row, place) in enumerate(zip(self.rows, self.taken, strict=True)):
            others = (at for at, other in enumerate(self.rows) if other.kind is not kind and self.taken[at] == place)
            if row.kind is kind and place is not None and next(others, None) is not None:
                self.slots.append(self.slots[place])
                self.taken[index] = len(self.slots) - 1

    def follow(self, program: Program, followed: Sequence[tuple[int, int, int]], file: str) -> None:
        """Add rows for outputs of operations that no other row shows: (index of the operation, of its output, slot)."""
        for index, output, slot in followed:
            if slot not in self.slots:
                site = layer_site(program.operations[index].layer, file)
                self.add(Row(RowKind.BIRTH, site, producer=site, port=output, line=site.line, output=output), slot)

    def viewed(self, program: Program) -> dict[int, int]:
        """Return by place in `slots` the place of another one that has the same elements, in another shape.

        What is handed on has its own, since something entered.
        """
        rows = zip(self.rows, self.taken, strict=True)
        handed_on = {place for row, place in rows if row.kind is RowKind.BACK_EDGE}
        found = {}
        for place, origin in enumerate(self.slots):
            if place in handed_on:
                continue
            while (index := program.computed_at.get(origin)) is not None:
                operation = program.operations[index]
                if operation.layer.type not in _VIEWS:
                    break
                origin = operation.inputs[0]
                if origin in self.slots:
                    found[place] = self.slots.index(origin)
        return found

    def shown(self) -> dict[int, int]:
        """Return by slot the first row that shows it as it is, of other kinds than back edges."""
        found: dict[int, int] = {}
        for index, (row, place) in enumerate(zip(self.rows, self.taken, strict=True)):
            if place is not None and row.kind is not RowKind.BACK_EDGE:
                found.setdefault(self.slots[place], index)
        return found


def loop_rows(layer: Layer, plan: LoopPlan, file: str) -> LoopRows:
    """Return the rows of a loop: condition, back edges, outputs, slices."""
    program, body, slots = plan.program, layer.bodies[0], LoopRows()

    def result(slot: int) -> LayerSite:
        return layer_site(program.graph.results[program.results.index(slot)], file)

    def add(
        kind: RowKind,
        inner: LayerSite,
        made: int,
        into: LayerSite | None = None,
        *,
        port: int | None = None,
        line: int,
        slicing: Slicing | None = None,
    ) -> None:
        """Add a row of what is `made`, or of the piece that this grows by."""
        piece = pieces.get(made) if slicing is None else None
        slot = made if piece is None else piece
        axis = None if slicing is None else slicing.axis
        if piece is not None:
            axis = _joined_along(program, made)
        producer, output, index = None, 0, program.computed_at.get(slot)
        if index is not None:
            operation = program.operations[index]
            producer, output = layer_site(operation.layer, file), operation.outputs.index(slot)
        row = Row(kind, inner, into, producer, port, line, axis, piece is not None, output=output)
        slots.add(row, None if kind is RowKind.CONDITION else slot)

    pieces = {entry.result: appended(program, entry.parameter, entry.result) for entry in plan.merged}
    if plan.condition_result is not None:
        line = next((one.line for one in body.outputs if one.output is None), 0)
        add(RowKind.CONDITION, result(plan.condition_result), plan.condition_result, line=line)
    for entry in plan.merged:
        parameter = program.parameter(entry.parameter)
        line = next((edge.line for edge in body.back_edges if edge.to_layer == parameter.id), 0)
        site, into = layer_site(parameter, file), result(entry.result)
        add(RowKind.BACK_EDGE, site, entry.result, into, port=entry.input, line=line)
    for scan in plan.concatenated:
        site = result(scan.result)
        add(RowKind.CONCATENATED, site, scan.result, port=scan.output, line=scan.line, slicing=scan.slicing)
    for last in plan.last_values:
        add(RowKind.LAST_VALUE, result(last.result), last.result, port=last.output, line=last.line)
    for sliced in plan.sliced:
        site = layer_site(program.parameter(sliced.parameter), file)
        row = Row(RowKind.SLICE, site, None, site, sliced.input, sliced.line, sliced.slicing.axis)
        slots.add(row, sliced.parameter)
    return slots


def appended(program: Program, parameter: int, result: int) -> int | None:
    """Return the slot of the piece where a body gives back its Parameter with a piece joined to it."""
    layer = program.graph.results[program.results.index(result)]
    growth = growth_of(program.graph, layer.id, program.parameter(parameter).id)
    piece = None if growth is None else growth.piece
    return None if piece is None else program.slots.get((piece.layer, piece.output))


def _joined_along(program: Program, result: int) -> int | None:
    """Return the axis along which a body joins a piece to its Parameter; None where it is counted from the end."""
    axis = str(program.operations[program.computed_at[result]].layer.attributes.get("axis", ""))
    return int(axis) if axis.isdecimal() else None
