"""Tests that take minutes and add little to each run: `pytest -m slow`, as the second part of `.ci/run` does."""

from __future__ import annotations

from typing import Final

SLOW: Final = (
    # the real runtime, real clients, every renderer, the pages of the documentation, what is packed
    "conformance",
    "export/renderers",
    "export/writers/test_colours.py",
    "integrations/notebook",
    "integrations/pytest_plugin",
    "integrations/test_a_users_repository.py",
    "pages",
    "real",
    "test_docs.py",
    "test_packaging.py",
    # time, bytes in every environment, damage by the thousand, signals and kills
    "benchmarks",
    "cli/commands/test_completion.py",
    "cli/test_sweep.py",
    "debug/test_endless_loops.py",
    "diagnosis/lint/test_damaged_files.py",
    "export/layout/test_layout.py",
    "export/reading_back",
    "export/test_figure_bytes.py",
    "export/test_fitting.py",
    "faults",
    "mutation",
    "recording/test_breaks.py",
    "recording/test_kill.py",
    "recording/test_trust.py",
    "test_collector.py",
    # whole applications beyond one of each screen and key family
    "tui/keys/test_any_keys.py",
    "tui/screens/grid/test_grid_room.py",
    "tui/screens/grid/test_grid_rows.py",
    "tui/screens/main/test_end_card.py",
    "tui/screens/main/test_graph_fits.py",
    "tui/screens/main/test_loop_card.py",
    "tui/screens/main/test_neighbourhood.py",
    "tui/screens/main/test_node_properties.py",
    "tui/screens/main/test_values_in_time.py",
    "tui/screens/overview/test_beside_a.py",
    "tui/screens/overview/test_branch_cards.py",
    "tui/screens/overview/test_clicks.py",
    "tui/screens/overview/test_rows_of_numbers.py",
    "tui/screens/overview/test_told_values.py",
    "tui/screens/test_addresses_at_cursor.py",
    "tui/screens/test_compare_screen.py",
    "tui/screens/test_other_runs.py",
    "tui/screens/test_two_moments.py",
    "tui/test_anywhere.py",
    "tui/test_conveniences.py",
    "tui/test_links.py",
    "tui/test_picks.py",
    "tui/test_tour.py",
)
"""Files and folders of tests."""


def is_slow(relative: str) -> bool:
    """True for a file of tests, as its path below the folder of tests."""
    relative = relative.partition("::")[0].removesuffix("/")
    return any(relative == one or relative.startswith(f"{one}/") for one in SLOW)
