"""`stepper cases DIR`: the cases of a folder, with what went wrong in each."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from stepper.cases.case import Case, cases_in, trigger_text
from stepper.cli.printing import print_answer
from stepper.engine.array_files import read_archive
from stepper.errors import FINDING, InputError, UsageError
from stepper.records import as_data
from stepper.wording import counted, excerpt

_MOST_ARRAYS = 20


def execute(options: Namespace) -> int:
    """List them; FINDING where one is damaged. UsageError where there are none."""
    folder = Path(options.folder)
    cases = cases_in(folder)
    if not cases:
        raise UsageError(f"{folder} has no cases: folders with a model.xml, as stepper capture and reduce write them")
    data = {"folder": options.folder, "cases": [case_data(case) for case in cases]}
    print_answer(options, data, case_lines(cases))
    return FINDING if any(case.damage for case in cases) else 0


def case_lines(cases: list[Case]) -> list[str]:
    """Return two lines a case: its folder and what went wrong, then what it has."""
    width = max(len(str(case.folder)) for case in cases)
    lines = []
    for case in cases:
        facts = case.facts
        what = case.damage if facts is None else f"call {facts.call:,}: {trigger_text(facts.trigger)}"
        lines.append(f"{case.folder!s:{width}}  {what}".rstrip())
        told = (_files_text(case), *map(excerpt, facts.trouble if facts else ()))
        lines += [f"{'':{width}}  {text}" for text in told if text]
    return lines


def _files_text(case: Case) -> str:
    parts = []
    for title, path in (("inputs", case.inputs), ("variables", case.states), ("outputs", case.outputs)):
        if path is not None:
            parts.append(f"{title} {_arrays_text(path)}")
    if case.calls is not None:
        carried = [] if case.facts is None else [f"{output} to {input}" for output, input in case.facts.carried]
        handed_on = f", which carry {', '.join(carried)}" if carried else ""
        kept = () if case.facts is None else case.facts.unchanged
        handed_on += "".join(f"; input {one} was the same in all: is {output} to go there?" for output, one in kept)
        parts.append(f"with {counted(sum(1 for _ in case.calls.glob('*.npz')), 'call')} up to it{handed_on}")
    return "; ".join(parts)


def _arrays_text(path: Path) -> str:
    try:
        arrays = list(read_archive(path).items())
        texts = [f"{excerpt(key)}{list(array.shape)}" for key, array in arrays[:_MOST_ARRAYS]]
    except InputError:
        return "that cannot be read"
    return ", ".join([*texts, *([f"and {len(arrays) - _MOST_ARRAYS:,} more"] if arrays[_MOST_ARRAYS:] else [])])


def case_data(case: Case) -> dict[str, Any]:
    """Return a case for an answer as JSON."""
    files = {name: getattr(case, name) for name in ("model", "inputs", "states", "outputs", "calls")}
    return {
        "folder": str(case.folder),
        **{name: None if path is None else str(path) for name, path in files.items()},
        "facts": None if case.facts is None else as_data(case.facts),
        "damage": case.damage or None,
    }
