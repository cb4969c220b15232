"""Names for whole numbers: a value that counts in a vocabulary is shown with the words that its user gives for it.

Nothing is guessed: the user says which value, and names the file with its labels. Wherever the same numbers go, over
back edges, ports, and operations that only give them another shape or type, the words go with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.debug.causes.loop_ends import PASSING
from stepper.element_types import Array
from stepper.engine.program import BranchPlan, Operation, Program
from stepper.errors import UsageError
from stepper.query.address_resolution import Target
from stepper.wording import json_fault, reason_of

LARGEST_FILE = 2**24
_MOST_LABELS = 2**20
_MOST_NAMED = 6
"""Keys of a file that are named where another one was asked for."""
_MOST_WRITTEN = 64

Slot = tuple[int, int]


class Labels:
    """Remember which values have labels, by (id of the program, slot)."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self._given: dict[Slot, tuple[str, ...]] = {}
        self._known: dict[Slot, tuple[str, ...]] | None = None
        self._ways: dict[Slot, list[Slot]] | None = None

    def put(self, target: Target, labels: tuple[str, ...]) -> None:
        """From now on the numbers of this value, wherever they go, are these; none of them: numbers again."""
        place = id(target.program), target.slot
        for other in self._with_the_same(place):
            self._given.pop(other, None)
        if labels:
            self._given[place] = labels
        self._known = None

    def of(self, target: Target) -> tuple[str, ...]:
        """Return those of a value; empty where it has none."""
        return self.view().get((id(target.program), target.slot), ())

    def clear(self) -> None:
        """No value has any."""
        self._given.clear()
        self._known = None

    def given(self) -> Mapping[Slot, tuple[str, ...]]:
        """Return those that were put, as they are now."""
        return dict(self._given)

    def view(self) -> Mapping[Slot, tuple[str, ...]]:
        """Return all, as they are now: those that were put, and of values with the same numbers."""
        if self._known is None:
            self._known = {
                other: labels for place, labels in self._given.items() for other in self._with_the_same(place)
            }
        return self._known

    def _with_the_same(self, place: Slot) -> list[Slot]:
        """Return all that hold the same numbers as a slot, itself first."""
        if self._ways is None:
            self._ways = _ways(self._programs)
        found = {place: None}
        waiting = [place]
        for slot in waiting:
            fresh = [other for other in self._ways.get(slot, ()) if other not in found]
            found.update(dict.fromkeys(fresh))
            waiting += fresh
        return list(found)


def _ways(programs: Sequence[Program]) -> dict[Slot, list[Slot]]:
    """Return by slot those that hold the same numbers."""
    found: dict[Slot, list[Slot]] = {}
    for program in programs:
        for here, there in (pair for operation in program.operations for pair in _pairs(program, operation)):
            found.setdefault(here, []).append(there)
            found.setdefault(there, []).append(here)
    return found


def _pairs(program: Program, operation: Operation) -> Iterator[tuple[Slot, Slot]]:
    """Yield pairs of slots with the same numbers: of an operation, of a body and what is around it."""
    outer = id(program)
    if operation.layer.type in PASSING and operation.inputs:
        yield (outer, operation.inputs[0]), (outer, operation.outputs[0])
    for plan in operation.plans:
        inner = id(plan.program)
        if isinstance(plan, BranchPlan):
            yield from (((outer, operation.inputs[port]), (inner, slot)) for port, slot in plan.inputs)
            yield from (((inner, slot), (outer, operation.outputs[port])) for port, slot in plan.outputs)
            continue
        taken = [
            (one.input, one.parameter) for entries in (plan.merged, plan.sliced, plan.invariant) for one in entries
        ]
        given = [(one.output, one.result) for entries in (plan.last_values, plan.concatenated) for one in entries]
        yield from (((outer, operation.inputs[port]), (inner, slot)) for port, slot in taken)
        yield from (((inner, slot), (outer, operation.outputs[port])) for port, slot in given)
        for parameter, result in plan.carried:
            yield (inner, parameter), (inner, result)
            yield (inner, plan.program.shown_slot(result)), (inner, result)


def label_of(labels: tuple[str, ...], number: float) -> str:
    """Return the label of a number; the number itself where it has none."""
    whole = int(number) if number == number and abs(number) < 2**53 else -1
    return labels[whole] if whole == number and 0 <= whole < len(labels) else f"{number:g}"


def labelled(labels: tuple[str, ...], value: Array) -> str:
    """Return the labels of a value's elements, one after another; empty where they are not whole numbers."""
    if not labels or value.dtype.kind not in "iu":
        return ""
    shown = [f"'{label_of(labels, one)}'" for one in value.reshape(-1)[:_MOST_WRITTEN].tolist()]
    return " ".join([*shown, "..."] if value.size > _MOST_WRITTEN else shown)


def read_labels(path: Path, key: str = "") -> tuple[str, ...]:
    """Return a file of labels: a line each, or as JSON a list of texts, one text (a label a character), or text ->
    number.

    `key` picks a part of a JSON object. Raise UsageError for a file that is none.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"'{path}' has more than {LARGEST_FILE} bytes, too many for a list of labels")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(path, error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"'{path}' cannot be read: {reason}") from None
    if path.suffix != ".json":
        return tuple(text.splitlines())
    import json

    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not valid JSON: {json_fault(text, error)}") from None
    if key:
        keys = tuple(map(str, content)) if isinstance(content, dict) else ()
        if key not in keys:
            known = (
                f"it has {', '.join(keys[:_MOST_NAMED])}{', …' * (len(keys) > _MOST_NAMED)}"
                if keys
                else "it is no object"
            )
            raise UsageError(f"'{path}' has no key '{key}': {known}")
        content = content[key]
    return _labels(content, path)


def _labels(content: Any, path: Path) -> tuple[str, ...]:
    if isinstance(content, str):
        return tuple(content)
    if isinstance(content, list) and all(isinstance(one, str) for one in content):
        return tuple(content)
    numbers = content.values() if isinstance(content, dict) else ()
    if numbers and all(type(one) is int and 0 <= one < _MOST_LABELS for one in numbers):
        found = np.full(max(numbers) + 1, "", object)
        for text, number in content.items():
            found[number] = text
        return tuple(text or str(number) for number, text in enumerate(found))
    raise UsageError(f"'{path}' has no list of labels there: expected texts, or an object of text and number")
