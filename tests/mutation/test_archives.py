"""A few damaged archives; `python -m tests.mutation.run` examines thousands of all kinds."""

from __future__ import annotations

from tests.mutation.archives import damaged, outcome

COUNT = 150


def test_a_seed_gives_the_same_archive_again() -> None:
    assert all(damaged(seed) == damaged(seed) for seed in range(50))


def test_no_archive_gives_a_traceback_or_exhausts_the_memory() -> None:
    outcomes = {seed: outcome(seed) for seed in range(COUNT)}
    assert not {seed: found for seed, found in outcomes.items() if found.is_fault}
    assert any(found.kind == "ran" for found in outcomes.values())
