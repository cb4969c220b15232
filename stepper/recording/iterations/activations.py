"""Activations: the runs of bodies that are under way, with their numbers in the file, and how they ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from stepper.engine.frames import Frame
from stepper.engine.program import LoopPlan
from stepper.recording.hashes import with_checksum
from stepper.recording.iterations.batches import insert_many
from stepper.recording.iterations.levels import GraphLevel
from stepper.recording.schema import TABLES, columns

_COLUMNS: Final = tuple(columns(TABLES["activations"]))
CLOSE: Final = (
    "UPDATE activations SET closed = ?1, iterations = ?2, ended = ?3, "
    f"checksum = row_checksum({', '.join(_COLUMNS[:-3])}, ?1, ?2, ?3) WHERE id = ?4"
)
"""Says how an activation ended: tick, iterations, reason, its id."""


class RecordedActivation(Struct):
    """One activation: its number, its frame while it runs, and a row of the table `activations`."""

    number: int
    frame: Frame
    level: GraphLevel
    depth: int
    parent: int | None
    parent_iteration: int | None
    entered: int | None = None
    closed: int | None = None
    iterations: int | None = None
    ended: str | None = None
    is_written: bool = False

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns of the table."""
        outer = (self.number, self.level.id, self.depth, self.parent, self.parent_iteration)
        return (*outer, self.entered, self.closed, self.iterations, self.ended)


class Activations:
    """Follows the stack of a machine. `count` is the highest number given so far."""

    def __init__(self, levels: Mapping[int, GraphLevel], count: int = 0) -> None:
        self._levels = levels
        self.count = count
        self.open: list[RecordedActivation] = []
        self._touched: dict[int, RecordedActivation] = {}

    def resume(self, stack: list[Frame], numbers: list[int]) -> None:
        """Take up activations that are in the file already."""
        for frame, number in zip(stack[1:], numbers, strict=True):
            self.open.append(RecordedActivation(number, frame, self._level(frame), 0, None, None, is_written=True))

    def follow(self, stack: list[Frame], entered: int | None = None) -> None:
        """Give numbers to the frames that are new; `entered` is the tick of the topmost, if it was just entered."""
        if entered is None and self.open and len(self.open) == len(stack) - 1 and self.open[-1].frame is stack[-1]:
            return
        for depth, frame in enumerate(stack[1:]):
            if depth < len(self.open) and self.open[depth].frame is frame:
                continue
            del self.open[depth:]
            self._enter(stack, depth, frame)
        del self.open[len(stack) - 1 :]
        if entered is not None and self.open:
            self.open[-1].entered = entered

    def _enter(self, stack: list[Frame], depth: int, frame: Frame) -> None:
        self.count += 1
        outer = self.open[-1].number if self.open else None
        around = stack[depth].activation
        iteration = around.iteration if around is not None and isinstance(around.plan, LoopPlan) else None
        entry = RecordedActivation(self.count, frame, self._level(frame), depth + 1, outer, iteration)
        self.open.append(entry)
        self._touched[entry.number] = entry

    def _level(self, frame: Frame) -> GraphLevel:
        return self._levels[id(frame.program)]

    def close(self, tick: int) -> RecordedActivation:
        """Return the innermost activation has been left."""
        entry = self.open.pop()
        entry.closed = tick
        activation = entry.frame.activation
        if activation is not None and isinstance(activation.plan, LoopPlan):
            entry.iterations = activation.iteration + 1
            entry.ended = activation.ended
        self._touched[entry.number] = entry
        return entry

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what is new since the last time."""
        new = [entry for entry in self._touched.values() if not entry.is_written]
        insert_many(connection, "activations", 10, (with_checksum(entry.row) for entry in new))
        for entry in self._touched.values():
            if entry.is_written:
                ending = (entry.closed, entry.iterations, entry.ended, entry.number)
                connection.execute(CLOSE, ending)
            entry.is_written = True
        self._touched.clear()
