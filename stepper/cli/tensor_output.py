"""Tensors as text, as JSON and as .npz."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import StepperError, UsageError
from stepper.files.file_kinds import ARRAYS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.plain_values import answer_json, json_text, storable, tensor_json, write_arrays
from stepper.tensors.number_text import number_text
from stepper.terminal import say

_SHOWN: Final = 8


def excerpt(value: Array) -> str:
    """Return the first few numbers, and how many there are in all."""
    flat = storable(value).reshape(-1)
    shown = " ".join(repr(item) if isinstance(item, str) else number_text(item, 6) for item in flat[:_SHOWN].tolist())
    return shown + (f" ... ({flat.size:,} in all)" if flat.size > _SHOWN else "")


def print_json(report: Mapping[str, Any], *, in_a_line: bool = False) -> None:
    """Print an answer, with the version of its shape, in characters that the encoding of stdout has."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    indent = None if in_a_line else 2
    print(json_text(answer_json(report), indent, plain=plain), flush=in_a_line)


def print_answer(options: Namespace, data: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print an answer as JSON where that is asked for, else as text."""
    if options.json:
        print_json(data)
        return
    for line in lines:
        say(line)


def error_data(error: StepperError) -> dict[str, Any]:
    """Return an error as answers have it: its kind, message and exit code, and where it is, as far as that is known."""
    found = error.place
    return {
        **failure_data(error.kind, str(error), error.exit_code),
        **({} if found is None else {"file": found.file, "line": found.line or None}),
        "layer": None if found is None or found.layer is None else found.layer._asdict(),
        "candidates": [one._asdict() for one in error.candidates],
        "path": [] if found is None else [{**one._asdict(), "layer": one.layer._asdict()} for one in found.path],
    }


def failure_data(kind: str, message: str, exit_code: int) -> dict[str, Any]:
    """Return an error without a place."""
    found: dict[str, Any] = {"kind": kind, "message": message, "exit_code": exit_code}
    return {**found, "file": None, "line": None, "layer": None, "path": [], "candidates": []}


def as_json(name: str, value: Array) -> dict[str, Any]:
    """Return name, type, shape and the numbers in row-major order (null above a thousand)."""
    return {"name": name, **tensor_json(value)}


def write_npz(target: OutputFile | None, arrays: Mapping[str, Array]) -> None:
    """Write an .npz to a file, which appears whole or not at all, or to stdout for None. Raises OutputError."""
    if target is None:
        write_arrays(sys.stdout.buffer, arrays)
        return
    with target.writing() as file:
        write_arrays(file, arrays)


def states_target(options: Namespace, protected: ProtectedFiles) -> OutputFile | None:
    """Return where `--save-states` writes; None where it is not given. Raises UsageError for stdout, OutputError."""
    if options.save_states is None:
        return None
    if options.save_states == "-":
        raise UsageError("--save-states writes a file, not stdout; name one")
    target = OutputFile(Path(options.save_states), ARRAYS, protected, "--save-states")
    target.check()
    return target


def state_arrays(states: Mapping[str, Any]) -> dict[str, Array]:
    """Return the variables of a run as arrays; how far a random stream has come is a number."""
    return {name: np.asarray(value) for name, value in states.items()}
