"""A few mutants of every base model; `python -m tests.mutation.run` examines thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.bases import bases
from tests.mutation.examine import examine
from tests.mutation.mutate import mutated
from tests.mutation.workers import Series, describe

COUNTS = {"models": 150, "operands": 150}
WHY_NOT = {
    "while_loop": "needs more than 1000 iterations",  # it waits for a number to become 1, and 0 never does
    "first_draft": "which OpenVINO refuses",
    "growing": "OpenVINO expects the stride",
}
"""The sound models that do not run on zeros under both rule books."""


@pytest.mark.parametrize("name", bases())
def test_a_sound_model_runs(tmp_path: Path, name: str) -> None:
    outcome = examine(bases()[name]().write(tmp_path))
    assert outcome.kind == "ran" or WHY_NOT[name] in outcome.text


def test_a_seed_gives_the_same_mutant_again() -> None:
    for seed in range(50):
        for files in bases().values():
            assert mutated(files(), seed) == mutated(files(), seed)


@pytest.mark.parametrize("what", COUNTS)
def test_no_mutant_gives_a_traceback_hangs_or_exhausts_the_memory(what: str) -> None:
    seeds = range(0, 97 * COUNTS[what], 97)
    found = Series(what, seeds).outcomes()
    faults = {seed: (describe(what, seed), outcome) for seed, outcome in found if outcome.is_fault}
    assert not faults
