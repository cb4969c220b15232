"""The inputs of a sweep: each is a file, a case, an index along leading axes, a seed, or a call of a function.

An input is plain data that goes to another process or machine, which reads it there.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.arguments import LARGEST_SEED
from stepper.cases.case import cases_in
from stepper.element_types import Array
from stepper.engine.array_files import MOST_READ, read_archive
from stepper.engine.inputs import bind_inputs, positions_of_keys, value_of
from stepper.errors import InputError, UsageError
from stepper.files.kinds import ARRAYS, CASE_INPUTS, is_case
from stepper.ir.model import Model
from stepper.sweep.functions import arrays_called
from stepper.wording import excerpt, printable, reason_of, size_text

MOST: Final = 10_000_000
"""How many inputs a sweep may have."""


class FileInput(Struct, frozen=True, tag="file", omit_defaults=True):
    """The arrays of an .npz, by name or position; `states` is another, of what variables begin with."""

    path: str
    states: str = ""

    @property
    def name(self) -> str:
        """Return its name in the table: the file, or the folder of a case."""
        folder, _slash, file = self.path.rpartition("/")
        return folder if file == CASE_INPUTS and is_case(folder) else self.path


class SliceInput(Struct, frozen=True, tag="slice"):
    """Elements at an index of the first axis of each array of an .npz."""

    path: str
    index: int

    @property
    def name(self) -> str:
        """Return its name in the table."""
        return f"{self.path}[{self.index}]"


class SeedInput(Struct, frozen=True, tag="seed"):
    """Random numbers: those of `--input '*=rand:SEED'`."""

    seed: int

    @property
    def name(self) -> str:
        """Return its name in the table: the SPEC."""
        return f"rand:{self.seed}"


class CallInput(Struct, frozen=True, tag="call"):
    """Arrays that a function returns for a number."""

    number: int

    @property
    def name(self) -> str:
        """Return its name in the table."""
        return f"call {self.number}"


SweepInput = FileInput | SliceInput | SeedInput | CallInput


# --- which there are ------------------------------------------------------------------------------------------------


def files_inputs(patterns: Sequence[str], *, leading_axis: bool = False) -> list[SweepInput]:
    """Return the inputs that patterns name: .npz files, folders of these, and folders of cases; each once, by name.

    `leading_axis`: each index of the first axis of the arrays of a file is an input. UsageError where there are none.
    """
    found: dict[str, FileInput] = {}
    for pattern in patterns:
        paths = [pattern] if Path(pattern).exists() else _matching(pattern)
        inside = [one for path in paths for one in _inputs_at(path)]
        if not inside:
            raise UsageError(f"--inputs {pattern}: there is no .npz and no case there")
        for one in inside:
            _ensure_text(one.path)
            found[one.path] = one
    files = [found[path] for path in sorted(found)]
    return [part for one in files for part in _parts(one.path)] if leading_axis else list(files)


def _ensure_text(path: str) -> None:
    """Raise UsageError for a name that is no text, which no table can have."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{printable(path)}: its name is not UTF-8, as the table of a sweep has names") from None


def _matching(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  # which takes patterns from the root on, too


def _inputs_at(path: str) -> list[FileInput]:
    place = Path(path)
    if not place.is_dir():
        return [FileInput(path)]
    cases = cases_in(place)
    damage = next((one.damage for one in cases if one.damage), "")
    if damage:
        raise InputError(damage)
    found = [FileInput(str(one.inputs), str(one.states or "")) for one in cases if one.inputs is not None]
    if found:
        return found
    try:
        return [FileInput(str(one)) for one in sorted(place.iterdir()) if one.suffix in ARRAYS.suffixes]
    except OSError as error:
        raise UsageError(f"--inputs {path}: cannot be read: {reason_of(place, error)}") from None


def _parts(path: str) -> list[SliceInput]:
    shapes = {key: array.shape for key, array in read_archive(Path(path)).items()}
    lengths = {key: shape[0] if shape else 0 for key, shape in shapes.items()}
    if len(set(lengths.values())) != 1 or min(lengths.values()) < 1:
        sizes = ", ".join(f"{excerpt(key)} {length}" for key, length in lengths.items())
        raise InputError(f"{path}: its arrays have no leading axis of one length ({sizes or 'it has none'})")
    length = next(iter(lengths.values()))
    if length > MOST:
        raise InputError(f"{path}: has {length:,} inputs, of which at most {MOST:,} are taken")
    return [SliceInput(path, index) for index in range(length)]


def random_inputs(count: int, seed: int) -> list[SweepInput]:
    """Return as many inputs of random numbers, from a seed on. UsageError for too many and for too large seeds."""
    _ensure_not_too_many("--random", count)
    if seed + count - 1 > LARGEST_SEED:
        raise UsageError(f"--seed {seed}: the last of {count:,} seeds would be larger than {LARGEST_SEED}")
    return [SeedInput(seed + index) for index in range(count)]


def called_inputs(count: int) -> list[SweepInput]:
    """Return as many calls of a function. UsageError for too many."""
    _ensure_not_too_many("--count", count)
    return [CallInput(number) for number in range(count)]


def _ensure_not_too_many(option: str, count: int) -> None:
    if count > MOST:
        raise UsageError(f"{option} {count:,}: a sweep has at most {MOST:,} inputs")


def stamp(one: SweepInput, folder: str) -> str:
    """Return what changes where the content of an input does; empty for one that is not in files, or not there."""
    paths = [one.path, one.states] if isinstance(one, FileInput) else [one.path] if isinstance(one, SliceInput) else []
    return " ".join(_file_stamp(folder, path) for path in paths if path)


def is_of_files(one: SweepInput) -> bool:
    """True if an input is read from files."""
    return isinstance(one, FileInput | SliceInput)


def _file_stamp(folder: str, path: str) -> str:
    try:
        found = (Path(folder) / path).stat()
    except OSError:
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}"


# --- their values ---------------------------------------------------------------------------------------------------


class InputReader(Struct, frozen=True):
    """How the inputs of a sweep are read: what all of them have in common.

    `fixed` are arrays by position that every run gets, `shapes` those of random inputs by position; `folder` is where
    relative paths begin, `function` is `pkg.module:function`, which a CallInput calls.
    """

    folder: str
    fixed: dict[int, Any] = {}
    states: dict[str, Any] = {}
    shapes: dict[int, tuple[int, ...]] = {}
    function: str = ""

    def read(self, one: SweepInput, model: Model, seconds: float | None = None) -> tuple[list[Array], dict[str, Any]]:
        """Return the arrays of the model's Parameters, and the variables. Raises StepperError for what is no input.

        LimitReached for a function that does not return within so many seconds.
        """
        states = read_archive(self._at(one.states)) if isinstance(one, FileInput) and one.states else {}
        given: dict[Any, Any] = {}
        match one:
            case FileInput():
                given.update(_by_position(model, read_archive(self._at(one.path))))
            case SliceInput():
                given.update(_by_position(model, self._slice(one)))
            case SeedInput():
                parameters = enumerate(model.graph.parameters)
                given.update(
                    (position, value_of(parameter, one.name, self.shapes.get(position)))
                    for position, parameter in parameters
                    if position not in self.fixed
                )
            case CallInput():
                given.update(_by_position(model, arrays_called(self.function, one.number, seconds)))
        return bind_inputs(model, {**given, **dict(self.fixed.items())}), {**states, **self.states}

    def arrays(self, one: SweepInput, model: Model) -> dict[str, Array]:
        """Return the arrays of an input alone, with positions as names. Raises StepperError for what is no input."""
        match one:
            case SliceInput():
                found = _by_position(model, self._slice(one))
            case CallInput():
                found = _by_position(model, arrays_called(self.function, one.number))
            case _:
                found = dict(enumerate(self.read(one, model)[0]))
        return {str(position): np.asarray(value) for position, value in sorted(found.items())}

    def _at(self, path: str) -> Path:
        return Path(os.path.join(self.folder, path))  # noqa: PTH118  # a tenth of what one by one takes

    def _slice(self, one: SliceInput) -> dict[str, Array]:
        arrays = _archive(str(self._at(one.path)), stamp(one, self.folder))
        short = next((key for key, array in arrays.items() if not array.ndim or len(array) <= one.index), None)
        if short is not None:
            raise InputError(f"{one.path}: '{excerpt(short)}' has no index {one.index}")
        return {key: array[one.index] for key, array in arrays.items()}


@lru_cache(maxsize=1)
def _archive(path: str, _stamp: str) -> dict[str, Array]:
    arrays = read_archive(Path(path))
    size = sum(array.nbytes for array in arrays.values())
    if size > MOST_READ:
        raise InputError(f"{path}: takes {size_text(size)}, more than the {size_text(MOST_READ)} that are read")
    return {key: np.asarray(array) for key, array in arrays.items()}


def _by_position(model: Model, arrays: Mapping[str, Any]) -> dict[int, Any]:
    return {position: arrays[key] for position, key in positions_of_keys(model.graph.parameters, arrays).items()}
