"""A recorded run as the reference: the values that it holds, and how its loops ended."""

from __future__ import annotations

import bisect
import json
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.compare.references.protocol import LoopOutcome, PlacedFrame, PlacedRun, SyncKind, SyncPoint
from stepper.debug.reference_values import GraphPath
from stepper.element_types import Array
from stepper.engine.program import CompiledModel
from stepper.errors import SessionError
from stepper.ir.model import Layer
from stepper.recording.reading import Recording

Stack = tuple[int, int, int, int, str, int]
"""The first id, how many, whether one tensor stands for all, its blob, the shape of each, where in the blob it begins.
"""


class RecordingReference(PlacedRun):
    """An open recording, of the same model or of one with the same layers (found by the ids that lead to a graph).

    SessionError for a damaged file.
    """

    is_exact = True
    knows_all_iterations = True

    def __init__(self, path: Path, _compiled: CompiledModel, _inputs: Sequence[Array]) -> None:
        self.title = path.name
        self._recording = Recording(path)
        weakref.finalize(self, self._recording.close)
        with self._recording.reading():
            self._levels = self._read_levels()
            self._ports = self._read_ports()
            self._activations = self._read_activations()
            self._runs = self._read_runs()
            self._stacks = self._read_stacks()
        self._kept: dict[int, tuple[Any, Any]] = {}

    def at(self, point: SyncPoint) -> PlacedFrame | None:
        """Return its values; None where the recorded loop has no such iteration."""
        if not point.path:
            return PlacedFrame(self, (), None)
        found = self._activation(point.path)
        if found is None:
            return None
        _number, iterations, ended = found
        step = point.path[-1]
        known = step.iteration is not None and iterations is not None
        if point.kind is SyncKind.ITERATION and known and (step.iteration or 0) >= (iterations or 0):
            return None
        outcome = None
        if point.kind is SyncKind.LEFT and known and iterations is not None:
            outcome = LoopOutcome(iterations, ended or "")
        return PlacedFrame(self, point.path, outcome)

    def outputs(self) -> Mapping[int, Array]:
        """Return the outputs, if the recorded run came to its end."""
        return dict(enumerate(self._recording.outputs().values()))

    def value(self, path: GraphPath, layer: Layer, output: int, shift: int) -> Array | None:
        """Return the recorded value at a place, `shift` iterations later."""
        found = self._activation(path) if path else None
        if found is None:
            return None
        level = self._levels.get(_level_key(path))
        port = self._ports.get((level, layer.id, output)) if level is not None else None
        if port is None:
            return None
        wanted = None if path[-1].iteration is None else path[-1].iteration + shift
        with self._recording.reading():
            number = self._number(found[0], wanted)
            return None if number is None else self._tensor(port, number)

    def _number(self, activation: int, iteration: int | None) -> int | None:
        """Return the id of an iteration (None: of the run of a branch)."""
        begins, runs = self._runs.get(activation, ([], []))
        wanted = iteration or 0
        index = bisect.bisect_right(begins, wanted) - 1
        if index < 0 or wanted >= begins[index] + runs[index][1]:
            return None
        return runs[index][0] + wanted - begins[index]

    def _tensor(self, port: int, iteration: int) -> Array | None:
        firsts, stacks = self._stacks.get(port, ([], []))
        index = bisect.bisect_right(firsts, iteration) - 1
        if index < 0:
            return None
        first, count, repeated, blob, shape, start = stacks[index]
        if iteration >= first + count:
            return None
        if self._kept.get(port, (None,))[0] != (blob, shape):  # the stack of this port that was asked for last
            stack = self._recording.tensor(blob)
            self._kept[port] = ((blob, shape), stack.reshape(len(stack), *json.loads(shape)))
        return np.asarray(self._kept[port][1][start + (0 if repeated else iteration - first)])

    # --- what is in the file -------------------------------------------------------------------------------------

    def _read_levels(self) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for number, path, layers in self._recording.query("SELECT id, path, layers FROM levels"):
            side = next((word for word in ("then", "else") if str(path).endswith(f" ({word})")), "")
            found[(tuple(json.loads(layers)), side)] = number
        return found

    def _read_ports(self) -> dict[tuple[int, int, int], int]:
        rows = self._recording.query("SELECT level, layer, output, id FROM ports")
        return {(level, layer, output): number for level, layer, output, number in rows}

    def _read_runs(self) -> dict[int, tuple[list[int], list[tuple[int, int]]]]:
        """Return, by activation, the iterations with which its runs begin, and the first id and length of each."""
        found: dict[int, tuple[list[int], list[tuple[int, int]]]] = {}
        rows = self._recording.query("SELECT activation, coalesce(iteration, 0), id, count FROM runs ORDER BY 1, 2")
        for activation, begin, first, count in rows:
            begins, runs = found.setdefault(activation, ([], []))
            begins.append(begin)
            runs.append((first, count))
        return found

    def _read_stacks(self) -> dict[int, tuple[list[int], list[Stack]]]:
        """Return, by port, the ids of the iterations with which its stacks begin, ascending, and the stacks."""
        found: dict[int, tuple[list[int], list[Stack]]] = {}
        for port, *stack in self._recording.query(
            "SELECT s.port, s.first, s.count, s.repeated, s.blob, f.shape, s.start FROM stacks AS s "
            "LEFT JOIN forms AS f ON f.id = s.form ORDER BY s.port, s.first"
        ):
            if stack[4] is None:
                raise SessionError("refers to a form that is missing")
            firsts, stacks = found.setdefault(port, ([], []))
            firsts.append(stack[0])
            stacks.append((stack[0], stack[1], stack[2], stack[3], stack[4], stack[5]))
        return found

    def _read_activations(self) -> dict[Any, tuple[int, int | None, str | None]]:
        """Return activations by level, the activation around, and the iteration there."""
        rows = self._recording.query(
            "SELECT id, level, parent, parent_iteration, iterations, ended FROM activations ORDER BY id"
        )
        found: dict[Any, tuple[int, int | None, str | None]] = {}
        for number, level, parent, iteration, iterations, ended in rows:
            found.setdefault((level, parent, iteration), (number, iterations, ended))
        return found

    def _activation(self, path: GraphPath) -> tuple[int, int | None, str | None] | None:
        """Return the recorded run of the graph to which a path leads."""
        parent: int | None = None
        iteration: int | None = None
        found = None
        for depth, step in enumerate(path):
            level = self._levels.get(_level_key(path[: depth + 1]))
            found = self._activations.get((level, parent, iteration))
            if found is None:
                return None
            parent, iteration = found[0], step.iteration
        return found


def _level_key(path: GraphPath) -> Any:
    side = {"then_body": "then", "else_body": "else"}.get(path[-1].role, "") if path else ""
    return tuple(step.layer.id for step in path), side
