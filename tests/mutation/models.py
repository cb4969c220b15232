"""Damaged models: `outcome(seed)` examines one under both rule books, and with one command of the program."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.mutation.bases import bases
from tests.mutation.commands import outcome_of_command
from tests.mutation.examine import Outcome, examine
from tests.mutation.mutate import Files, mutated


def _mutant(seed: int) -> tuple[str, Files, list[str]]:
    names = list(bases())
    name = names[seed % len(names)]
    return name, *mutated(bases()[name](), seed)


def outcome(seed: int) -> Outcome:
    """Make the mutant of this seed and examine it."""
    _name, files, _done = _mutant(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = files.write(Path(folder))
        found = examine(path)
        return found.unless_fault(lambda: outcome_of_command(path, seed))


def describe(seed: int) -> str:
    """What the mutant of this seed is: `loop: change_shape, drop_attribute`."""
    name, _files, done = _mutant(seed)
    return f"{name}: {', '.join(done)}"
