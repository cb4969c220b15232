"""Specs of inputs: a file, a way to fill, or a literal, for the command line and the inputs screen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper import element_types
from stepper.arguments import LARGEST_SEED
from stepper.element_types import F32, STRING_DTYPE, Array, ElementType
from stepper.engine.inputs.array_files import ReadProgress, StoredArray, member_of, read_array
from stepper.engine.inputs.binding import input_names
from stepper.errors import KernelError, LimitReached, UsageError, memory_reason
from stepper.ir.model import Layer, parameter_shape, parameter_type
from stepper.ops.operands import ensure_allocatable
from stepper.wording import counted, json_fault


def value_of(
    parameter: Layer, text: str, shape: tuple[int, ...] | None = None, reading: ReadProgress | None = None
) -> Array | StoredArray:
    """Return the tensor that a SPEC means for a Parameter. UsageError or InputError with the parameter's name.

    A `reading` is told how far a file is read; without one the array of an .npz is not read yet.
    """
    text = text.strip()
    kind, _, argument = text.partition(":")
    if kind in _FILLERS and (not argument or kind == "rand"):
        return _filled(parameter, kind, argument, shape)
    if text.startswith(("[", '"')) or text in ("true", "false") or _is_number(text):
        return _literal(parameter, text)
    path, colon, key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        stored = member_of(Path(path), key)
        return stored if reading is None else stored.read(reading)
    if text.endswith(".npy"):
        return read_array(Path(text), reading)
    wanted = "expected FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal"
    raise UsageError(f"{_called(parameter)}: '{text}' is not a value; {wanted}")


def is_filler(text: str) -> bool:
    """Return True for a SPEC that fills a tensor of whatever shape."""
    return text.strip().partition(":")[0] in _FILLERS


def file_of(text: str) -> Path | None:
    """Return the file that a SPEC reads, None where it reads none."""
    text = text.strip()
    path, colon, _key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        return Path(path)
    return Path(text) if text.endswith(".npy") and not text.startswith(("[", '"')) else None


def _called(parameter: Layer) -> str:
    """Return the subject of a value for messages: an input, or (of a layer that stands for a variable) that."""
    return f"{'input' if parameter.type == 'Parameter' else 'variable'} '{parameter.name}'"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _literal(parameter: Layer, text: str) -> Array:
    """Return a JSON literal in the Parameter's type: a decimal fraction means the nearest number of that type."""
    shown = f"{text[:60]} ..." if len(text) > 60 else text
    raw = _raw(f"{_called(parameter)}: '{shown}'", text)
    element_type = parameter_type(parameter)
    if element_type is None or raw.dtype == element_type.dtype:
        return raw
    dtype = element_type.dtype
    if raw.dtype.kind == "U" and dtype == STRING_DTYPE:
        return raw.astype(STRING_DTYPE)
    if raw.dtype.kind in "iuf" and element_types.is_floating(dtype):
        with np.errstate(all="ignore"):
            found = raw.astype(dtype)
        _ensure_held(_called(parameter), raw, found, str(element_type))
        return found
    return raw  # whether it fits is judged as for any other array


def _raw(what: str, text: str) -> Array:
    """Return the array of a JSON literal or a number. UsageError, beginning with `what`, for what is none."""
    try:
        content = json.loads(text, parse_float=_decimal) if not _is_number(text) else _number(text)
    except _TooLarge as error:
        raise UsageError(f"{what} has {error}; write Infinity if that is meant") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not a JSON literal, such as [1,2,3]: {json_fault(text, error)}") from None
    fault = _fault(content)
    if fault:
        raise UsageError(f"{what} is not a tensor: {fault}")
    try:
        return np.array(content)
    except (ValueError, RecursionError):  # more dimensions than numpy has
        raise UsageError(f"{what} is not a tensor: it has more dimensions than there may be") from None


class _TooLarge(ValueError):
    """A number that no floating-point type holds."""


def _decimal(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _TooLarge(f"the number {text}, which is larger than f64 holds")
    return value


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        is_named = text.strip().lstrip("+-").lower().startswith("inf")
        return float(text) if is_named else _decimal(text)


def _fault(content: Any) -> str:
    """Return why nested lists are no tensor; empty where they are one."""
    level: list[tuple[str, Any]] = [("", content)]
    while level and isinstance(level[0][1], list):
        first_place, first = level[0]
        for place, part in level:
            if not isinstance(part, list):
                return f"{_place(place)} is {_kind(part)}, and {_place(first_place)} is a list"
            if len(part) != len(first):
                count = counted(len(part), "element")
                return f"{_place(place)} has {count}, and {_place(first_place)} has {len(first)}"
        level = [(f"{place}[{index}]", inner) for place, part in level for index, inner in enumerate(part)]
    kinds = {"text" if isinstance(part, str) else "number" for _place_, part in level}
    for place, part in level:
        if part is None or isinstance(part, dict | list):
            return f"{_place(place)} is {_kind(part)}, and {'a number or a text' if place else 'a value'} is expected"
        if len(kinds) > 1 and isinstance(part, str) != isinstance(level[0][1], str):
            return f"{_place(place)} is {_kind(part)}, and {_place(level[0][0])} is {_kind(level[0][1])}"
        if isinstance(part, int) and not -(2**63) <= part < 2**64:
            return f"{_place(place)} is an integer of more than 64 bits"
    return ""


def _place(place: str) -> str:
    return f"element {place}" if place else "it"


def _kind(part: Any) -> str:
    if isinstance(part, list):
        return "a list"
    names = {type(None): "null", dict: "an object", str: "a text", bool: "a boolean"}
    return names.get(type(part), "a number")


def _ensure_held(what: str, raw: Array, found: Array, type: str) -> None:
    """Raise UsageError for a finite number that the type holds as Inf alone."""
    if raw.dtype.kind == "f" or raw.dtype.kind in "iu":
        wide = found.astype(np.float64)
        lost = np.isfinite(raw.astype(np.float64)) & ~np.isfinite(wide)
        if lost.any():
            number = raw[lost].reshape(-1)[0]
            raise UsageError(f"{what}: {number} is larger than {type} holds; write Infinity if that is meant")


def _filled(parameter: Layer, kind: str, argument: str, shape: tuple[int, ...] | None) -> Array:
    declared = parameter_shape(parameter)
    size = declared.static if shape is None else shape
    if size is None:
        if parameter.type != "Parameter":
            raise UsageError(f"{_called(parameter)} has the open shape {declared}: give an array or a JSON literal")
        name = input_names(parameter)[0]
        raise UsageError(f"input '{name}' has the open shape {declared}: say which one with --shape '{name}=...'")
    element_type = parameter_type(parameter) or F32
    try:
        ensure_allocatable(size, element_type.dtype)
    except KernelError as error:
        raise UsageError(f"{_called(parameter)}: {error}") from None
    try:
        return _FILLERS[kind](parameter, argument, size, element_type)
    except MemoryError as error:
        raise LimitReached(f"{_called(parameter)}: {memory_reason(error)}") from None


def _ones(parameter: Layer, _argument: str, shape: tuple[int, ...], element_type: ElementType) -> Array:
    if element_type.dtype == STRING_DTYPE:
        raise UsageError(f"{_called(parameter)} is of type string, which has no ones")
    return np.ones(shape, element_type.dtype)


def _random(parameter: Layer, argument: str, shape: tuple[int, ...], element_type: ElementType) -> Array:
    """Return floats from -1 to 1, integers from 0 to 9, booleans; the same for the same seed and name."""
    if not argument.isdecimal():
        raise UsageError(f"{_called(parameter)}: 'rand:{argument}' has no seed; write for example rand:0")
    if len(argument) > 40 or int(argument) > LARGEST_SEED:
        raise UsageError(f"{_called(parameter)}: the seed of 'rand:{argument}' is larger than {LARGEST_SEED}")
    generator = np.random.default_rng([int(argument), *parameter.name.encode()])
    dtype = element_type.dtype
    if element_types.is_floating(dtype):
        return generator.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype == STRING_DTYPE or dtype.names:
        raise UsageError(f"{_called(parameter)} is of type {element_type}, which cannot be drawn at random")
    high = 2 if dtype == np.bool_ else min(10, 1 << max(1, element_type.bits - 1))
    return generator.integers(0, high, shape).astype(dtype)


_FILLERS: Final[Mapping[str, Callable[[Layer, str, tuple[int, ...], ElementType], Array]]] = {
    "zeros": lambda _parameter, _argument, shape, element_type: np.zeros(shape, element_type.dtype),
    "ones": _ones,
    "rand": _random,
}
