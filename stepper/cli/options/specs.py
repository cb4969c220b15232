"""Values of inputs and variables from the options `--input`, `--inputs`, `--shape`, `--state` and `--states`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stepper.engine.array_files import archive_keys, read_archive
from stepper.engine.inputs import bind_inputs, input_names, missing_lines, position_of
from stepper.engine.specs import value_of
from stepper.engine.variables import listed, variables_of
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
_COUNTED: Final = re.compile(r"(?:in|input|arr)_?([0-9]{1,6})")


def given_inputs(model: Model, specs: list[str], archive: str | None, shapes: list[str]) -> dict[str | int, Any]:
    """Return arrays by position from the options; an `--input` goes before the same key of `--inputs`."""
    parameters = model.graph.parameters
    fixed = {position: _shape(text) for position, text in _by_position(parameters, pairs(shapes, "--shape")).items()}
    found: dict[str | int, Any] = {}
    if archive is not None:
        arrays = read_archive(Path(archive))
        found.update(_by_position(parameters, {_plain_key(parameters, key): arrays[key] for key in arrays}).items())
    texts = pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    for position, text in _by_position(parameters, texts).items():
        found[position] = value_of(parameters[position], text, fixed.get(position))
    if rest is not None:
        for position, parameter in enumerate(parameters):
            if position not in found:
                found[position] = value_of(parameter, rest, fixed.get(position))
    _check_shapes(parameters, fixed, found)
    return found


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


def given_states(model: Model, specs: list[str], archive: str | None) -> dict[str, Any]:
    """Return values by variable from the options; a `--state` goes before the same key of `--states`.

    UsageError for what is not a variable, which lists those that there are.
    """
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


def bound_inputs(model: Model, given: Mapping[str | int, Any]) -> list[Array]:
    """Return one array for each Parameter, as `bind_inputs` does. MissingInputs names the options that give them."""
    try:
        return bind_inputs(model, given)
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
        keys = [_plain_key(parameters, key) for key in archive_keys(path)]
        return len(_by_position(parameters, dict.fromkeys(keys))) == len(parameters)
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
        keys = {_plain_key(parameters, key): f"{archive}:{key}" for key in archive_keys(Path(archive))}
        found.update(_by_position(parameters, keys))
    texts = pairs(specs, "--input")
    rest = texts.pop(EVERYTHING_ELSE, None)
    found.update(_by_position(parameters, texts))
    if rest is not None:
        found = dict.fromkeys(range(len(parameters)), rest) | found
    return found, fixed


def _plain_key(parameters: tuple[Layer, ...], key: str) -> str:
    """Return the key of an archive; of one that only counts (`in_0`, numpy's `arr_0`) the position."""
    number = _COUNTED.fullmatch(key)
    if number is None or any(key in input_names(parameter) for parameter in parameters):
        return key
    return number[1]


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
