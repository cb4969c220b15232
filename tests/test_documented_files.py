"""The files and folders that the documentation names are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tables import each_row

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
NAMED = re.compile(r"`((?:stepper|tui|tests|docs|sample_models)/[\w./-]+)`")

OF_USERS = {"stepper/init", "stepper/keys.toml", "stepper/cli/commands/loops.py"}
"""Files in the folder of a user's settings, and what a page on a change to the program adds."""


@each_row("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = set(NAMED.findall(page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named - OF_USERS) if not (ROOT / name).exists()] == []
