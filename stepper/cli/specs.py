"""What a user writes after `--input NAME=`: a file, a way to fill, or a literal; and the files of `--inputs`."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from stepper import element_types
from stepper.element_types import F32, STRING_DTYPE, Array, ElementType
from stepper.engine.feeds import input_names, position_of
from stepper.engine.roles import parameter_type
from stepper.errors import InputError, TensorTooLarge, UsageError
from stepper.ir.model import Layer, Model, parameter_shape
from stepper.ops.limits import ensure_allocatable

T = TypeVar("T")
EVERYTHING_ELSE: Final = "*"
_COUNTED: Final = re.compile(r"(?:in|input|arr)_?([0-9]{1,6})")


def given_inputs(model: Model, specs: list[str], archive: str | None, shapes: list[str]) -> dict[str | int, Any]:
    """Position -> array from the options of the command line; an `--input` goes before the same key of `--inputs`."""
    parameters = model.graph.parameters
    fixed = {position: _shape(text) for position, text in _by_position(parameters, _pairs(shapes, "--shape")).items()}
    found: dict[str | int, Any] = {}
    if archive is not None:
        arrays = _archive(Path(archive))
        found.update(_by_position(parameters, {_plain_key(parameters, key): arrays[key] for key in arrays}).items())
    texts = _pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    for position, text in _by_position(parameters, texts).items():
        found[position] = value_of(parameters[position], text, fixed.get(position))
    if rest is not None:
        for position, parameter in enumerate(parameters):
            if position not in found:
                found[position] = value_of(parameter, rest, fixed.get(position))
    return found


def _plain_key(parameters: tuple[Layer, ...], key: str) -> str:
    """The key of an archive; one that is no name and only counts (`in_0`, numpy's own `arr_0`) as the position."""
    number = _COUNTED.fullmatch(key)
    if number is None or any(key in input_names(parameter) for parameter in parameters):
        return key
    return number[1]


def _by_position(parameters: tuple[Layer, ...], named: Mapping[str, T]) -> dict[int, T]:
    """By position of the input what is there by one of its names; UsageError for two names of one input."""
    found: dict[int, T] = {}
    for name, value in named.items():
        position = position_of(parameters, name)
        if position in found:
            raise UsageError(f"input '{name}' is given twice, by two of its names")
        found[position] = value
    return found


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=") if text.count("=") == 1 else text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} '{text}' is no NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} gives '{name}' twice")
        pairs[name] = value
    return pairs


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.strip("[]").split(",")] if text.strip("[] ") else []
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise UsageError(f"--shape '{text}' is no list of sizes, such as 1,5,4")
    return tuple(int(part) for part in parts)


def value_of(parameter: Layer, text: str, shape: tuple[int, ...] | None = None) -> Array:
    """The tensor that a SPEC means for a Parameter. UsageError or InputError with the parameter's name."""
    text = text.strip()
    kind, _, argument = text.partition(":")
    if kind in _FILLERS and (not argument or kind == "rand"):
        return _filled(parameter, kind, argument, shape)
    if text.startswith(("[", '"')) or text in ("true", "false") or _is_number(text):
        return _literal(parameter, text)
    path, colon, key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        arrays = _archive(Path(path))
        if key not in arrays:
            raise UsageError(f"{path} has no array '{key}', only {', '.join(arrays) or 'none'}")
        return arrays[key]
    if text.endswith(".npy"):
        return _array(Path(text))
    wanted = "expected FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal"
    raise UsageError(f"input '{parameter.name}': '{text}' is no value; {wanted}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _array(path: Path) -> Array:
    # Mapped, not read: a header that promises more than the file has is refused at once.
    array = _loaded(path, ".npy", lambda: np.lib.format.open_memmap(path, mode="r"))
    return np.asarray(array)


def _archive(path: Path) -> dict[str, Array]:
    def arrays() -> dict[str, Array]:
        # numpy leaves a file open that it opened and could not make sense of.
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is no archive of arrays")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}

    return _loaded(path, ".npz", arrays)


def _loaded(path: Path, kind: str, load: Callable[[], T]) -> T:
    """InputError for whatever numpy, zipfile and the parsers below them raise for a file that is damaged or forged."""
    try:
        return load()
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) else None
        lines = (reason or str(error) or type(error).__name__).splitlines()
        raise InputError(f"{path}: cannot be read as {kind}: {lines[0][:200]}") from None


def _literal(parameter: Layer, text: str) -> Array:
    """A JSON literal in the Parameter's type: a decimal fraction means the nearest number of that type."""
    try:
        raw = np.array(json.loads(text) if not _is_number(text) else _number(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"input '{parameter.name}': '{text[:60]}' is no tensor: {error}") from None
    element_type = parameter_type(parameter)
    if element_type is None or raw.dtype == element_type.dtype:
        return raw
    dtype = element_type.dtype
    if raw.dtype.kind == "U" and dtype == STRING_DTYPE:
        return raw.astype(STRING_DTYPE)
    if raw.dtype.kind in "iuf" and element_types.is_floating(dtype):
        with np.errstate(all="ignore"):
            return raw.astype(dtype)
    return raw  # whether it fits is judged as for any other array


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _filled(parameter: Layer, kind: str, argument: str, shape: tuple[int, ...] | None) -> Array:
    declared = parameter_shape(parameter)
    size = declared.static if shape is None else shape
    if size is None:
        name = input_names(parameter)[0]
        raise UsageError(f"input '{name}' has the open shape {declared}: say which one with --shape '{name}=...'")
    element_type = parameter_type(parameter) or F32
    try:
        ensure_allocatable(size, element_type.dtype)
    except TensorTooLarge as error:
        raise UsageError(f"input '{parameter.name}': {error}") from None
    return _FILLERS[kind](parameter, argument, size, element_type)


def _zeros(_parameter: Layer, _argument: str, shape: tuple[int, ...], element_type: ElementType) -> Array:
    return np.zeros(shape, element_type.dtype)


def _ones(parameter: Layer, _argument: str, shape: tuple[int, ...], element_type: ElementType) -> Array:
    if element_type.dtype == STRING_DTYPE:
        raise UsageError(f"input '{parameter.name}' is of type string, which has no ones")
    return np.ones(shape, element_type.dtype)


def _random(parameter: Layer, argument: str, shape: tuple[int, ...], element_type: ElementType) -> Array:
    """Floats from -1 to 1, integers from 0 to 9, booleans; the same for the same seed and name."""
    if not argument.isdecimal() or len(argument) > 18:
        raise UsageError(f"input '{parameter.name}': 'rand:{argument}' has no seed; write for example rand:0")
    generator = np.random.default_rng([int(argument), *parameter.name.encode()])
    dtype = element_type.dtype
    if element_types.is_floating(dtype):
        return generator.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype == STRING_DTYPE or dtype.names:
        raise UsageError(f"input '{parameter.name}' is of type {element_type}, which cannot be drawn at random")
    high = 2 if dtype == np.bool_ else min(10, 1 << max(1, element_type.bits - 1))
    return generator.integers(0, high, shape).astype(dtype)


_FILLERS: Final[Mapping[str, Callable[[Layer, str, tuple[int, ...], ElementType], Array]]] = {
    "zeros": _zeros,
    "ones": _ones,
    "rand": _random,
}
