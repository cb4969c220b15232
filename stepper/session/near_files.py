"""Values near to what was typed: files in the folder that the path names, and a literal in more brackets.

Of a file only the header is read. At most so many files are looked at; whatever is damaged is left out.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.engine.array_files import header_of, read_archive
from stepper.engine.inputs import converted, value_of
from stepper.errors import InputError, StepperError
from stepper.ir.model import Layer, parameter_shape, parameter_type

_MOST_ENTRIES: Final = 500
_MOST_FILES: Final = 24
_MOST_MEMBERS: Final = 50


class Near(Struct, frozen=True):
    """Something that may be meant: the words for it, type and shape, bytes (0: not known), and how it fits.

    `swapped` are two axes which, swapped, have the shape of the input.
    """

    spec: str
    type: str
    bytes: int
    verdict: str
    fits: bool = False
    swapped: tuple[int, int] | None = None


def near_files(parameter: Layer, text: str, model_folder: Path, most: int = 8) -> list[Near]:
    """Arrays that may be meant, those that fit first, then by how alike the names are."""
    found = [near for path in _paths(text, model_folder) for near in _arrays(parameter, path)]
    plain = text.strip()
    alike = {
        near.spec: difflib.SequenceMatcher(None, plain, near.spec, autojunk=False).ratio()
        + (1.0 if plain and near.spec.startswith(plain) else 0.0)
        + (0.4 if near.spec.endswith(f":{parameter.name}") else 0.0)
        for near in found
    }
    return sorted(found, key=lambda near: (not near.fits, -alike[near.spec], near.spec))[:most]


def fitting_values(parameters: Sequence[Layer], model_folder: Path) -> dict[int, str]:
    """Return a value for each input, by position, all of one .npz beside the model; empty where none has them all.

    By name; in a file that is called inputs or the like an input may be the only array left that fits.
    """
    archives = [path for path in _paths(f"{model_folder}{os.sep}", model_folder) if path.suffix == ".npz"]
    for path in sorted(archives, key=lambda path: ("input" not in path.stem, path.name)):
        if found := _values_of(parameters, path, by_name="input" not in path.stem):
            return found
    return {}


def _values_of(parameters: Sequence[Layer], path: Path, *, by_name: bool) -> dict[int, str]:
    fitting = [[near.spec for near in _arrays(one, path) if near.fits] for one in parameters]
    named = [f"{path}:{one.name}" for one in parameters]
    found = {position: spec for position, spec in enumerate(named) if spec in fitting[position]}
    for position, specs in enumerate(fitting):
        if position not in found:
            left = [spec for spec in specs if spec not in found.values()]
            if by_name or len(left) != 1:
                return {}
            found[position] = left[0]
    return found


def near_literals(parameter: Layer, text: str) -> list[Near]:
    """Return the same literal in more brackets, where that fits."""
    dimensions = parameter_shape(parameter).dimensions
    for more in range(1, len(dimensions or ()) + 1):
        spec = f"{'[' * more}{text.strip()}{']' * more}"
        try:
            array = converted(parameter, value_of(parameter, spec))
        except StepperError:
            continue
        return [Near(spec, _type(array.dtype, array.shape), 0, "fits")]
    return []


def _paths(text: str, model_folder: Path) -> list[Path]:
    """Return the files of the folder that the text names; without one, here and beside the model."""
    head = Path(text.strip().partition(".npz:")[0] or ".")
    named = head if text.endswith(("/", os.sep)) else head.parent
    folders = [named] if str(named) != "." else [Path(), model_folder]
    found: dict[Path, Path] = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                    if entry.name.endswith((".npy", ".npz")) and entry.is_file():
                        path = folder / entry.name
                        found.setdefault(path.resolve(), path)
        except OSError:
            continue
    wanted = head.name
    ranked = sorted(found.values(), key=lambda path: -difflib.SequenceMatcher(None, wanted, path.name).ratio())
    return ranked[:_MOST_FILES]


def _arrays(parameter: Layer, path: Path) -> Iterator[Near]:
    try:
        if path.suffix == ".npy":
            with path.open("rb") as file:
                header = header_of(file)
            yield _near(str(path), header.bytes, parameter, header.shape, header.dtype)
            return
        for key, array in list(read_archive(path).items())[:_MOST_MEMBERS]:
            yield _near(f"{path}:{key}", array.nbytes, parameter, array.shape, array.dtype)
    except (OSError, ValueError, InputError):
        return


def _type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{element_types.name_of(dtype)}[{','.join(map(str, shape))}]"


def _near(spec: str, size: int, parameter: Layer, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Near:
    declared, type = parameter_shape(parameter), _type(dtype, shape)
    if not declared.accepts(shape):
        for axis in range(len(shape) - 1):
            turned = (*shape[:axis], shape[axis + 1], shape[axis], *shape[axis + 2 :])
            if declared.accepts(turned):
                verdict = f"axes {axis} and {axis + 1} swapped?"
                return Near(spec, type, size, verdict, swapped=(axis, axis + 1))
        return Near(spec, type, size, "another shape")
    kind = parameter_type(parameter)
    fits = kind is None or kind.dtype == dtype
    return Near(spec, type, size, "fits" if fits else f"is {element_types.name_of(dtype)}", fits)
