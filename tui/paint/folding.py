"""The rows of the operations list: one an operation, and one for each group of shape arithmetic that is folded."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from stepper.records import Record
from tui.paint.rows import printable

if TYPE_CHECKING:
    from stepper.engine.program import Program

_STEP: Final = 32
"""Rows by which it changes which operations are near."""


class OperationEntry(Record):
    """A row: one operation by its index, or a folded group, which stands where its first operation does."""

    indices: tuple[int, ...]
    title: str = ""

    @property
    def is_folded(self) -> bool:
        """True if several operations are in it."""
        return bool(self.title)


class Listing(Record, eq=False):
    """All rows of a program; `row_of` says in which an operation is, `groups` which operations fold together."""

    program: Program
    entries: tuple[OperationEntry, ...]
    row_of: dict[int, int]
    groups: tuple[tuple[int, ...], ...]

    def group_of(self, index: int) -> int | None:
        """Return the group that an operation belongs to, folded or not."""
        return next((number for number, group in enumerate(self.groups) if index in group), None)

    def operations_near(self, top: int, room: int) -> tuple[int, ...]:
        """Return the operations with a row of their own among `room` rows from `top` on, and some around these."""
        begin, end = top // _STEP * _STEP, -(-(top + room) // _STEP) * _STEP
        return tuple(entry.indices[0] for entry in self.entries[begin:end] if not entry.is_folded)


class Folding:
    """Which groups are open, the same in every pane that lists operations."""

    def __init__(self) -> None:
        self._open: dict[int, set[int]] = {}
        self._listed: dict[int, Listing] = {}

    def listing(self, program: Program) -> Listing:
        """Return the rows of a program as they are now."""
        found = self._listed.get(id(program))
        if found is None or found.program is not program:
            found = self._listed[id(program)] = listing_of(program, self._open.get(id(program), set()))
        return found

    def open_layers(self, program: Program) -> frozenset[int]:
        """Return the layers of the groups that are open, by their ids."""
        open_groups = self._open.get(id(program))
        if not open_groups:
            return frozenset()
        groups = self.listing(program).groups
        return frozenset(program.operations[index].layer.id for number in open_groups for index in groups[number])

    def toggle(self, program: Program, index: int) -> bool:
        """Unfold the group of an operation, or fold it again; True if it is in one."""
        number = self.listing(program).group_of(index)
        if number is None:
            return False
        self._open.setdefault(id(program), set()).symmetric_difference_update({number})
        del self._listed[id(program)]
        return True


def listing_of(program: Program, open_groups: AbstractSet[int]) -> Listing:
    """Return the rows of a program; groups whose number is in `open_groups` are not folded."""
    from stepper.export.figures.folding import shape_groups  # no operations are listed in the first picture

    index_of = {operation.layer.id: index for index, operation in enumerate(program.operations)}
    found = [
        tuple(sorted(index_of[layer] for layer in group if layer in index_of)) for group in shape_groups(program.graph)
    ]
    groups = tuple(group for group in found if len(group) > 1)
    folded = {index: number for number, group in enumerate(groups) if number not in open_groups for index in group}
    entries: list[OperationEntry] = []
    row_of: dict[int, int] = {}
    seen: dict[int, int] = {}
    for index in range(len(program.operations)):
        number = folded.get(index)
        if number is None:
            row_of[index] = len(entries)
            entries.append(OperationEntry((index,)))
            continue
        if number not in seen:
            seen[number] = len(entries)
            entries.append(OperationEntry(groups[number], _title(program, groups[number])))
        row_of[index] = seen[number]
    return Listing(program, tuple(entries), row_of, groups)


def _title(program: Program, group: tuple[int, ...]) -> str:
    """Return the part that the names of a group have in common, or simply shapes."""
    heads = {program.operations[index].layer.name.rpartition("/")[0] for index in group}
    common = heads.pop() if len(heads) == 1 else ""
    word = printable(common.rpartition("::")[2].rpartition("/")[2])
    return word or "shapes"
