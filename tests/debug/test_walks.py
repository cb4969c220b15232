"""A few of the random walks of `walks.py`, of which hundreds are run by hand."""

from __future__ import annotations

from pathlib import Path

from tests.debug import walks
from tests.tables import each_row


@each_row("seed", range(1000, 1016))
def test_a_walk_with_pauses_is_the_walk_without(seed: int) -> None:
    walks.walked(seed)


@each_row("seed", [1000, 1001])
def test_a_walk_goes_on_after_a_kill(seed: int, tmp_path: Path) -> None:
    walks.killed(seed, tmp_path)
