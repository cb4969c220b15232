"""A recorded run as the reference: the values that it holds, and how its loops ended."""

from __future__ import annotations

import bisect
import json
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.compare.references.protocol import LoopOutcome, PlacedFrame, PlacedRun, SyncKind, SyncPoint
from stepper.debug.scopes import GraphPath, loop_steps
from stepper.element_types import Array, Indices
from stepper.engine.array_files import MOST_READ, read_archive
from stepper.engine.frames import Frame
from stepper.engine.program import CompiledModel
from stepper.engine.run import output_names
from stepper.errors import InputError, UsageError
from stepper.ir.model import Layer
from stepper.query.address_resolution import Target, resolve
from stepper.query.address_syntax import Address, IterationRange, parse_address
from stepper.recording.reading import Column, Recording

# --- Values of another program, in an .npz, as the reference ---------------------------------------------------------
#
# A key names a value, in the words of addresses (query/address_syntax.py):
#
#     h_next@7                       of the layer h_next in iteration 7 of the one loop that has it
#     outer@3::inner@0::h            nested: iteration 0 of the run of `inner` in iteration 3 of `outer`
#     loop::h_next:1@*               all iterations, along a new first axis (of output 1)
#     h_next                         of the model's own graph, or one of its outputs by name; out_0, out_1 by position
#
# and, for whole traces, `tr:LOOPS|LAYER|OUTPUT`: all iterations along a new first axis, or with `#7` behind it those of
# iteration 7 alone; LOOPS is `loop`, nested `outer@3>inner`.


_TRACE = re.compile(r"tr:(.*)\|(.*)\|([0-9]{1,6})(?:#([0-9]{1,9}))?", re.DOTALL)
_OUTPUT = re.compile(r"out_([0-9]{1,6})")
_MOST_KEPT = MOST_READ // 4
_STEP = re.compile(r"(.*)@([0-9]{1,9})", re.DOTALL)

Place = tuple[Indices, Indices, int, int]
"""Ids of the loops around (branches left out), iterations of all but the innermost, layer id, output."""


class ArchiveReference(PlacedRun):
    """An open .npz; arrays are read when they are asked for, one at a time. Raises InputError for a damaged file."""

    def __init__(self, path: Path, compiled: CompiledModel) -> None:
        self.title = path.name
        self.compiled = compiled
        self._keys: dict[Place, list[tuple[int | None, str]]] = {}
        self._whole: dict[tuple[Indices, Indices], list[str]] = {}
        self._outputs: dict[int, str] = {}
        self._stack: dict[str, Array] = {}
        self._size = 0
        self._file = read_archive(path)
        unknown = [key for key in self._file if not self._register(key)]
        if unknown and not self._keys and not self._outputs:
            raise InputError(
                f"{path}: none of its {len(unknown)} keys names a value of the model, such as '{unknown[0]}'"
            )
        given = {layer.id for layer in compiled.model.graph.parameters}
        if not self._outputs and all(not ids and layer in given for ids, _loops, layer, _output in self._keys):
            what = "holds inputs of the model alone" if self._keys else "is empty"
            raise InputError(f"{path} {what}; a reference has outputs, or values that the model computes")
        self.unknown = tuple(unknown)

    def at(self, point: SyncPoint) -> PlacedFrame:
        """Return a frame for every point, maybe without any value."""
        outcome = self._outcome(point.path) if point.kind is SyncKind.LEFT else None
        return PlacedFrame(self, point.path, outcome)

    def _outcome(self, path: GraphPath) -> LoopOutcome | None:
        """Return the outcome of a loop that has whole traces: as many iterations as these have."""
        iterations = tuple(step.iteration or 0 for step in loop_steps(path))
        keys = self._whole.get((tuple(step.layer.id for step in path), iterations[:-1]))
        return None if not keys or not path[-1].layer.is_loop else LoopOutcome(max(map(self._length, keys)), "")

    def _length(self, key: str) -> int:
        match = _TRACE.fullmatch(key)
        if match and match[4] is not None:
            return int(match[4]) + 1
        return (*self._file[key].shape, 0)[0]

    def outputs(self) -> Mapping[int, Array]:
        """Return the outputs that the archive has."""
        return {position: self._array(key) for position, key in self._outputs.items()}

    def value(self, path: GraphPath, layer: Layer, output: int, shift: int) -> Array | None:
        """Return the value at a place, `shift` iterations later; None where the archive has none."""
        steps = loop_steps(path)
        iterations = tuple(step.iteration or 0 for step in steps)
        ids = tuple(step.layer.id for step in path)
        entries = self._keys.get((ids, iterations[:-1], layer.id, output))
        if entries is None:
            return None
        wanted = iterations[-1] + shift if iterations else 0
        for iteration, key in entries:
            array = self._array(key)
            if iteration is None and steps and 0 <= wanted < len(array):
                return np.asarray(array[wanted])
            if iteration == wanted or not steps:
                return array
        return None

    # --- keys ----------------------------------------------------------------------------------------------------

    def _array(self, key: str) -> Array:
        """Return an array; the latest few stay, for whole traces are asked for in every iteration."""
        if key not in self._stack:
            self._size += self._file[key].nbytes
            if len(self._stack) >= 4096 or self._size > _MOST_KEPT:
                self._stack.clear()
                self._size = self._file[key].nbytes
            self._stack[key] = np.asarray(self._file[key])
        return self._stack[key]

    def _register(self, key: str) -> bool:
        """Register what a key means; False where it means nothing in this model."""
        names = output_names(self.compiled.model)
        if key in names:  # first, for an output may be called `out_1`
            self._outputs[names.index(key)] = key
            return True
        if match := _OUTPUT.fullmatch(key):
            if int(match[1]) < len(self.compiled.main.results):
                self._outputs.setdefault(int(match[1]), key)
                return True
            return False
        match = _TRACE.fullmatch(key)
        if match is None:
            places = self._of_address(key)
        else:  # a number alone has no axis of iterations
            places = self._of_trace(*match.groups()) if match[4] or self._file[key].shape else iter(())
        found = False
        for place, iteration in places:
            self._keys.setdefault(place, []).append((iteration, key))
            if key.startswith("tr:") or (iteration is None and place[0]):
                self._whole.setdefault(place[:2], []).append(key)
            found = True
        return found

    def _of_trace(
        self, loops: str, name: str, output: str, iteration: str | None
    ) -> Iterator[tuple[Place, int | None]]:
        steps = [_STEP.fullmatch(part) for part in loops.split(">")]
        names = [part if step is None else step[1] for part, step in zip(loops.split(">"), steps, strict=True)]
        outer = tuple(int(step[2]) for step in steps if step is not None)
        for program in self.compiled.programs:
            around = [layer for layer in program.path if layer.is_loop]
            if [layer.name for layer in around] != names or len(outer) != len(around) - 1:
                continue
            for layer in program.graph.layers:
                if layer.name == name and int(output) < max(1, len(layer.outputs)) and layer.type != "Result":
                    ids = tuple(one.id for one in program.path)
                    yield (ids, outer, layer.id, int(output)), None if iteration is None else int(iteration)

    def _of_address(self, key: str) -> Iterator[tuple[Place, int | None]]:
        try:
            address: Address = parse_address(key)
            target: Target = resolve(address, self.compiled)
        except UsageError:
            return
        loops = [asked for layer, asked in zip(target.program.path, target.iterations, strict=True) if layer.is_loop]
        ids = tuple(layer.id for layer in target.program.path)
        *outer, inner = loops or [None]
        if all(isinstance(one, int) and one >= 0 for one in outer):
            place = (ids, tuple(int(one) for one in outer if isinstance(one, int)), target.layer.id, target.output)
            if not loops or isinstance(inner, int):
                yield place, inner if isinstance(inner, int) else None
            elif isinstance(inner, IterationRange) and not inner.start and inner.stop is None and self._file[key].shape:
                yield place, None


# ---------------------------------------------------------------------------------------------------------------------


class RecordingReference(PlacedRun):
    """An open recording, of the same model or of one with the same layers (found by the ids that lead to a graph).

    SessionError for a damaged file.
    """

    is_exact = True

    def __init__(self, path: Path, compiled: CompiledModel, _inputs: Sequence[Array]) -> None:
        self.title, self.compiled = path.name, compiled
        self._recording = Recording(path)
        weakref.finalize(self, self._recording.close)
        with self._recording.reading():
            self._levels = self._read_levels()
            rows = self._recording.query("SELECT level, layer, output, id FROM ports")
            self._ports = {(level, layer, output): number for level, layer, output, number in rows}
            self._activations = self._read_activations()
            self._runs = self._read_runs()
        self._columns: dict[int, tuple[Column, int]] = {}
        """By port, each with the moment that it was asked for last: it goes forward alone."""

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

    def has_loop(self, path: GraphPath, _frame: Frame) -> bool:
        """Return True if the run of this loop was recorded."""
        return self._activation(path) is not None

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
        begins, runs = self._runs.get(found[0], ([], []))
        wanted = 0 if path[-1].iteration is None else path[-1].iteration + shift
        index = bisect.bisect_right(begins, wanted) - 1
        if index < 0 or wanted >= begins[index] + runs[index][1]:
            return None
        moment = runs[index][0] + wanted - begins[index]
        column, latest = self._columns.get(port, (None, 0))
        if column is None or moment < latest:
            column = Column(self._recording, port)
        self._columns[port] = column, moment
        known = column.value(moment)
        return None if known is None else np.asarray(known)

    # --- what is in the file -------------------------------------------------------------------------------------

    def _read_levels(self) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for number, layers, role in self._recording.query("SELECT id, layers, role FROM levels"):
            found[tuple(json.loads(layers)), role] = number
        return found

    def _read_runs(self) -> dict[int, tuple[list[int], list[tuple[int, int]]]]:
        """Return, by activation, the iterations with which its runs begin, and the first id and length of each."""
        found: dict[int, tuple[list[int], list[tuple[int, int]]]] = {}
        rows = self._recording.query("SELECT activation, coalesce(iteration, 0), id, count FROM runs ORDER BY 1, 2")
        for activation, begin, first, count in rows:
            begins, runs = found.setdefault(activation, ([], []))
            begins.append(begin)
            runs.append((first, count))
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
    return tuple(step.layer.id for step in path), path[-1].role
