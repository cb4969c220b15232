"""Values of inputs and variables from the options `--input`, `--inputs`, `--shape`, `--state` and `--states`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stepper.engine.array_files import read_archive
from stepper.engine.inputs import (
    bind_inputs,
    converted,
    listed,
    missing_lines,
    position_of,
    positions_of_keys,
    value_of,
    variables_of,
)
from stepper.errors import MissingInputs, StepperError, UsageError
from stepper.ops.operands import shape_text
from stepper.wording import excerpt

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.ir.model import Layer, Model

_EXAMPLES: Final = {"--state": "h=h0.npy", "--input": "x=[1,2,3] or x=x.npy", "--shape": "x=1,5,4"}
T = TypeVar("T")
Shape = tuple[int, ...]
EVERYTHING_ELSE: Final = "*"


def given_inputs(model: Model, options: argparse.Namespace) -> dict[str | int, Any]:
    """Return arrays by position from the options; an `--input` goes before the same key of `--inputs`.

    UsageError for an input that has its value from `--calls` and is given as well.
    """
    specs, archive, shapes = options.input, options.inputs, options.shape
    parameters = model.graph.parameters
    of_calls: Mapping[str | int, Any] = {} if model.calls is None else getattr(options, "call_inputs", {})
    fixed = {position: _shape(text) for position, text in _by_position(parameters, pairs(shapes, "--shape")).items()}
    found: dict[str | int, Any] = {}
    if archive is not None:
        arrays = read_archive(Path(archive))
        keys = positions_of_keys(parameters, arrays)
        twice = next((position for position in keys if position in of_calls), None)
        if twice is not None:
            name = parameters[twice].name
            raise UsageError(
                f"--inputs {archive}: '{name}' has its values from the calls; --calls 1 runs one of a case"
            )
        found.update((position, arrays[key]) for position, key in keys.items())
    found.update(of_calls)
    texts = pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    for position, text in _by_position(parameters, texts).items():
        if position in of_calls:
            raise UsageError(f"input '{parameters[position].name}' has its values from the calls; leave --input out")
        found[position] = value_of(parameters[position], text, fixed.get(position))
    if rest is not None:
        for position, parameter in enumerate(parameters):
            if position not in found:
                found[position] = value_of(parameter, rest, fixed.get(position))
    _check_shapes(parameters, fixed, found)
    return found


def without(other: Model, model: Model, specs: list[str]) -> list[str]:
    """Return options NAME=... of inputs but for those that mean an input which the other model alone has."""
    return [text for text in specs if _is_of(model, text) or not _is_of(other, text)]


def inputs_of_other(other: Model, model: Model, options: argparse.Namespace) -> dict[int, Array]:
    """Return the inputs of a model beside another one, by position, that it does not share with that one.

    They are its parts of calls, and each `--input` of a name that it alone has.
    """
    parameters = other.graph.parameters
    found: dict[int, Array] = dict(getattr(options, "call_inputs", {})) if other.calls is not None else {}
    texts = pairs([text for text in options.input if _is_of(other, text) and not _is_of(model, text)], "--input")
    shapes = pairs(options.shape, "--shape")
    for name, text in texts.items():
        position = position_of(parameters, name)
        shape = None if name not in shapes else _shape(shapes[name])
        found[position] = converted(parameters[position], value_of(parameters[position], text, shape))
    return found


def _is_of(model: Model, text: str) -> bool:
    """Return True if an `--input` means an input of the model."""
    try:
        (name,) = pairs([text], "--input")
        return name == EVERYTHING_ELSE or position_of(model.graph.parameters, name) >= 0
    except UsageError:
        return False


def given_shapes(texts: list[str]) -> dict[str, Shape]:
    """Return the sizes of each `--shape` by the name that is given. UsageError for what is not NAME=1,5,4."""
    return {name: _shape(text) for name, text in pairs(texts, "--shape").items()}


def _check_shapes(parameters: tuple[Layer, ...], fixed: Mapping[int, Shape], found: Mapping[str | int, Any]) -> None:
    """Raise UsageError for a --shape of an input that is given with another shape."""
    for position, shape in fixed.items():
        if position in found and found[position].shape != shape:
            name = parameters[position].name
            raise UsageError(
                f"--shape {name}={','.join(map(str, shape))}: input '{name}' is given, with the shape "
                f"{shape_text(found[position].shape)}; --shape is for zeros, ones and rand"
            )


def given_states(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Return values by variable from the options; a `--state` goes before the same key of `--states`.

    UsageError for what is not a variable, which lists those that there are.
    """
    specs, archive = options.state, options.states
    if not specs and archive is None:
        return {}
    known = {variable.name: variable for variable in variables_of(model)}
    found: dict[str, Any] = {} if archive is None else dict(read_archive(Path(archive)))
    texts = pairs(specs, "--state")
    rest = texts.pop(EVERYTHING_ELSE, None)
    for name, text in texts.items():
        if name not in known:
            raise UsageError(f"the model has no variable '{excerpt(name)}'; {listed(known)}")
        found[name] = value_of(known[name].parameter, text)
    if rest is not None:
        found |= {name: value_of(one.parameter, rest) for name, one in known.items() if name not in found}
    return found


def bound_inputs(model: Model, options: argparse.Namespace, kept: Mapping[str | int, Any] | None = None) -> list[Array]:
    """Return one array for each Parameter; `kept` are by position, for those that the options do not give.

    MissingInputs names the options that give them.
    """
    try:
        return bind_inputs(model, {**(kept or {}), **given_inputs(model, options)})
    except MissingInputs as error:
        lines = missing_lines(error.missing, error.inputs)
        name = excerpt(error.missing[0].name)
        lines.append(f"give each with --input '{name}=FILE.npy' (or zeros, ones, rand:SEED, a JSON literal),")
        lines.append("or all in one file with --inputs FILE.npz; --input '*=rand:0' fills those that are missing")
        beside = (model.path.with_name(name) for name in ("inputs.npz", f"{model.path.stem}.npz"))
        found = next((path for path in beside if path.is_file() and _has_inputs(path, model)), None)
        if found is not None:
            lines.append(f"beside the model lies one: --inputs {shlex.quote(str(found))}")
        raise MissingInputs("\n".join(lines), error.missing, error.inputs) from None


def _has_inputs(path: Path, model: Model) -> bool:
    """Return True if an archive has the inputs of a model, and nothing else."""
    parameters = model.graph.parameters
    try:
        return len(positions_of_keys(parameters, read_archive(path))) == len(parameters)
    except StepperError:
        return False


def given_texts(
    model: Model, specs: list[str], archive: str | None, shapes: list[str]
) -> tuple[dict[int, str], dict[int, tuple[int, ...]]]:
    """Return SPECs and shapes by position from the same options; reads nothing but the keys of the archive."""
    parameters = model.graph.parameters
    fixed = {position: _shape(text) for position, text in _by_position(parameters, pairs(shapes, "--shape")).items()}
    found: dict[int, str] = {}
    if archive is not None:
        keys = positions_of_keys(parameters, read_archive(Path(archive)))
        found.update((position, f"{archive}:{key}") for position, key in keys.items())
    texts = pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    found.update(_by_position(parameters, texts))
    if rest is not None:
        found = dict.fromkeys(range(len(parameters)), rest) | found
    return found, fixed


def _by_position(parameters: tuple[Layer, ...], named: Mapping[str, T]) -> dict[int, T]:
    """Return by position of the input what is there by one of its names; UsageError for two names of one input."""
    found: dict[int, T] = {}
    for name, value in named.items():
        position = position_of(parameters, name)
        if position in found:
            raise UsageError(f"input '{name}' is given twice, by two of its names")
        found[position] = value
    return found


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """Return the values by name of options written NAME=VALUE. UsageError for others, and for a name given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=") if text.count("=") == 1 else text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: NAME=VALUE is expected, such as {_EXAMPLES[option]}")
        if name in found:
            raise UsageError(f"{option} gives '{name}' twice")
        found[name] = value
    return found


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.strip("[]").split(",")] if text.strip("[] ") else []
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise UsageError(f"--shape '{text}' is not a list of sizes, such as 1,5,4")
    return tuple(int(part) for part in parts)
