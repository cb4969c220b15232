"""Values of another program, in an .npz, as the reference.

A key names a value, in the words of addresses (query/address_syntax.py):

    h_next@7                       of the layer h_next in iteration 7 of the one loop that has it
    outer@3::inner@0::h            nested: iteration 0 of the run of `inner` in iteration 3 of `outer`
    loop::h_next:1@*               all iterations, along a new first axis (of output 1)
    h_next                         of the model's own graph, or one of its outputs by name; out_0, out_1 by position

and, for whole traces, `tr:LOOPS|LAYER|OUTPUT`: all iterations along a new first axis, or with `#7` behind it those of
iteration 7 alone; LOOPS is `loop`, nested `outer@3>inner`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from stepper.compare.references.protocol import LoopOutcome, PlacedFrame, PlacedRun, SyncKind, SyncPoint
from stepper.debug.reference_values import GraphPath, loop_steps
from stepper.element_types import Array
from stepper.engine.array_files import MOST_READ, read_archive
from stepper.engine.program import CompiledModel
from stepper.engine.run import output_names
from stepper.errors import InputError, UsageError
from stepper.ir.model import Layer
from stepper.query.address_resolution import Target, resolve
from stepper.query.address_syntax import Address, IterationRange, parse_address

_TRACE: Final = re.compile(r"tr:(.*)\|(.*)\|([0-9]{1,6})(?:#([0-9]{1,9}))?", re.DOTALL)
_OUTPUT: Final = re.compile(r"out_([0-9]{1,6})")
_MOST_KEPT: Final = MOST_READ // 4
_STEP: Final = re.compile(r"(.*)@([0-9]{1,9})", re.DOTALL)

Place = tuple[tuple[int, ...], tuple[int, ...], int, int]
"""Ids of the loops around (branches left out), iterations of all but the innermost, layer id, output."""


class ArchiveReference(PlacedRun):
    """An open .npz; arrays are read when they are asked for, one at a time. Raises InputError for a damaged file."""

    def __init__(self, path: Path, compiled: CompiledModel) -> None:
        self.title = path.name
        self._path, self._compiled = path, compiled
        self._keys: dict[Place, list[tuple[int | None, str]]] = {}
        self._whole: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
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
        """Return the outcome of a loop of which there are whole traces: as many iterations as these have."""
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
        if match := _OUTPUT.fullmatch(key):
            if int(match[1]) < len(self._compiled.main.results):
                self._outputs[int(match[1])] = key
                return True
            return False
        names = output_names(self._compiled.model)
        if key in names:
            self._outputs[names.index(key)] = key
            return True
        places = self._of_trace(*match.groups()) if (match := _TRACE.fullmatch(key)) else self._of_address(key)
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
        for program in self._compiled.programs:
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
            target: Target = resolve(address, self._compiled)
        except UsageError:
            return
        loops = [asked for layer, asked in zip(target.program.path, target.iterations, strict=True) if layer.is_loop]
        ids = tuple(layer.id for layer in target.program.path)
        *outer, inner = loops or [None]
        if all(isinstance(one, int) and one >= 0 for one in outer):
            place = (ids, tuple(int(one) for one in outer if isinstance(one, int)), target.layer.id, target.output)
            if not loops or isinstance(inner, int):
                yield place, inner if isinstance(inner, int) else None
            elif isinstance(inner, IterationRange) and not inner.start and inner.stop is None:
                yield place, None
