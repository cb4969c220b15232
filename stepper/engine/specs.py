"""What a SPEC means for an input: a file, a way to fill, or a literal; asked by command line and inputs screen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from stepper import element_types
from stepper.element_types import F32, STRING_DTYPE, Array, ElementType
from stepper.engine.array_files import Reading, read_array, read_member
from stepper.engine.feeds import input_names
from stepper.engine.roles import parameter_type
from stepper.errors import TensorTooLarge, UsageError
from stepper.ir.model import Layer, parameter_shape
from stepper.ops.limits import ensure_allocatable


def value_of(
    parameter: Layer, text: str, shape: tuple[int, ...] | None = None, reading: Reading | None = None
) -> Array:
    """The tensor that a SPEC means for a Parameter. UsageError or InputError with the parameter's name.

    A `reading` is told how far a file is read.
    """
    text = text.strip()
    kind, _, argument = text.partition(":")
    if kind in _FILLERS and (not argument or kind == "rand"):
        return _filled(parameter, kind, argument, shape)
    if text.startswith(("[", '"')) or text in ("true", "false") or _is_number(text):
        return _literal(parameter, text)
    path, colon, key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        return read_member(Path(path), key, reading)
    if text.endswith(".npy"):
        return read_array(Path(text), reading)
    wanted = "expected FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal"
    raise UsageError(f"input '{parameter.name}': '{text}' is no value; {wanted}")


def file_of(text: str) -> Path | None:
    """Return the file that a SPEC reads, None where it reads none."""
    text = text.strip()
    path, colon, _key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        return Path(path)
    return Path(text) if text.endswith(".npy") and not text.startswith(("[", '"')) else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
