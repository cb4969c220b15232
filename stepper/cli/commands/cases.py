"""`stepper cases DIR`: the cases of a folder, with what went wrong in each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stepper.cases.case import Case, cases_in
from stepper.cases.texts import trigger_text
from stepper.cli.printing import say
from stepper.cli.values import print_json
from stepper.engine.array_files import archive_shapes
from stepper.errors import UsageError
from stepper.records import as_data
from stepper.wording import counted


def execute(options: argparse.Namespace) -> int:
    """List them; UsageError where there are none."""
    folder = Path(options.folder)
    cases = cases_in(folder)
    if not cases:
        raise UsageError(f"{folder} has no cases: folders with a model.xml, as stepper capture and reduce write them")
    if options.json:
        print_json({"folder": options.folder, "cases": [case_data(case) for case in cases]})
        return 0
    for line in case_lines(cases):
        say(line)
    return 0


def case_lines(cases: list[Case]) -> list[str]:
    """Return two lines a case: its folder and what went wrong, then what it has."""
    width = max(len(str(case.folder)) for case in cases)
    lines = []
    for case in cases:
        facts = case.facts
        what = "" if facts is None else f"call {facts.call:,}: {trigger_text(facts.trigger)}"
        lines.append(f"{case.folder!s:{width}}  {what}".rstrip())
        lines += [f"{'':{width}}  {text}" for text in (_files_text(case), *(facts.trouble if facts else ())) if text]
    return lines


def _files_text(case: Case) -> str:
    parts = []
    for title, path in (("inputs", case.inputs), ("variables", case.states), ("outputs", case.outputs)):
        if path is not None:
            shapes = archive_shapes(path)
            parts.append(f"{title} {', '.join(f'{key}{list(shape)}' for key, shape in shapes.items())}")
    if case.calls is not None:
        carried = [] if case.facts is None else [f"{output} to {input}" for output, input in case.facts.carried]
        handed_on = f", which carry {', '.join(carried)}" if carried else ""
        parts.append(f"with {counted(sum(1 for _ in case.calls.glob('*.npz')), 'call')} up to it{handed_on}")
    return "; ".join(parts)


def case_data(case: Case) -> dict[str, Any]:
    """Return a case for an answer as JSON."""
    files = {
        "model": case.model,
        "inputs": case.inputs,
        "states": case.states,
        "outputs": case.outputs,
        "calls": case.calls,
    }
    return {
        "folder": str(case.folder),
        **{name: None if path is None else str(path) for name, path in files.items()},
        "facts": None if case.facts is None else as_data(case.facts),
    }
