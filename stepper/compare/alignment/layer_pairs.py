"""The file that names which layers stand for each other: JSON, or lines `ours = theirs`."""

from __future__ import annotations

import json
from pathlib import Path

from stepper.errors import InputError
from stepper.wording import json_fault, reason_of, size_text

_LARGEST = 16 * 2**20


def read_pairs(path: Path) -> dict[str, str]:
    """Return pairs of layer names: those of our model, those of the reference.

    JSON is an object of names. In lines, what is behind a # at the beginning of a line or after a blank counts for
    nothing; a name with ` = ` in it needs JSON. InputError with the line for what cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {reason_of(path, error)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    if len(content) > _LARGEST:
        raise InputError(f"{path}: is larger than {size_text(_LARGEST)}")
    return _of_json(path, text) if text.lstrip().startswith("{") else _of_lines(path, text)


def _of_json(path: Path, text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON: {json_fault(text, error)}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InputError(f'{path}: expected an object of names, such as {{"our_layer": "its_layer"}}')
    return found


def _of_lines(path: Path, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        written = line.split(" #")[0].strip()
        if not written or written.startswith("#"):
            continue
        ours, equals, theirs = written.partition(" = ")
        if not equals:
            ours, equals, theirs = written.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise InputError(f"{path}, line {number}: expected 'our layer = its layer', found '{written[:80]}'")
        found[ours.strip()] = theirs.strip()
    return found
