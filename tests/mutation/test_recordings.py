"""A few mutants of recordings and sessions; many more are `outcome` of other seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.recordings import bases, describe, lay_out, make, outcome, read

COUNT = 60


@pytest.mark.parametrize("name", bases())
def test_the_commands_read_a_sound_file(tmp_path: Path, name: str) -> None:
    base = bases()[name]
    for words in base.commands:
        lay_out(base, tmp_path)
        _code, _answer, found = read(words, tmp_path)
        assert found.kind == "ran" or "ran 2 iterations at most" in found.text or "has no iterations" in found.text


def test_a_seed_gives_the_same_mutant_again(tmp_path: Path) -> None:
    for seed in range(30):
        assert make(seed, tmp_path).read_bytes() == make(seed, tmp_path).read_bytes()


def test_no_mutant_gives_a_traceback_or_another_answer() -> None:
    found = {seed: outcome(seed) for seed in range(COUNT)}
    assert not {seed: (describe(seed), one) for seed, one in found.items() if one.is_fault}
    assert {one.kind for one in found.values()} == {"ran", "refused"}
