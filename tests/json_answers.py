"""Answers of the program as JSON, checked against the schemas of the project."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from stepper.schemas import schema, schema_names


@cache
def validator(name: str, part: str = "") -> Any:
    """A validator for a schema, or for one of its parts."""
    jsonschema = pytest.importorskip("jsonschema")
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resources = [(f"{one}.json", DRAFT202012.create_resource(schema(one))) for one in schema_names()]
    registry: Any = Registry().with_resources(resources)
    reference = f"{name}.json" + (f"#/$defs/{part}" if part else "")
    return jsonschema.Draft202012Validator({"$ref": reference}, registry=registry)


def checked(command: str, text: str) -> Any:
    """The answer, which follows the schema of the command. AssertionError with the first fault else."""
    answer = json.loads(text, parse_constant=_refused)
    _check(validator(command), answer)
    return answer


def checked_lines(text: str) -> list[Any]:
    """The answers of `stepper debug --json`, each of which follows its schema, and its command's."""
    found = [checked("debug", line) for line in text.splitlines()]
    for line in found:
        if "answer" in line and "(paused)" not in line["answer"]["lines"][:1]:
            _check(validator("debug-answers", line["name"] or "nothing"), line["answer"])
    return found


def _check(found: Any, answer: Any) -> None:
    faults = sorted(found.iter_errors(answer), key=lambda error: len(error.absolute_path))
    assert not faults, _deepest(faults[0])


def _deepest(error: Any) -> str:
    """The fault of the alternative that came nearest."""
    while error.context:
        alternatives: dict[int, list[Any]] = {}
        for inner in error.context:
            alternatives.setdefault(inner.schema_path[0], []).append(inner)
        nearest = min(alternatives.values(), key=lambda found: (len(found), -len(found[0].absolute_path)))
        error = nearest[0]
    return f"{error.json_path}: {error.message[:500]}"


def _refused(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")
