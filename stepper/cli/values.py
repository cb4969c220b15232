"""Tensors as text and as JSON."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any, Final

from stepper.element_types import Array
from stepper.errors import StepperError
from stepper.plain_values import answer_json, json_text, storable, tensor_json
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
