"""Pages, help, messages and rules are in plain English (`python -m docs.words` lists what is not), and short."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import words

ROOT = Path(__file__).parents[1]
MOST_WORDS = 20_000
"""Words of README and docs without the reference."""


def test_pages_help_messages_and_rules_are_plain() -> None:
    assert [str(place) for place in words.places()] == []


def test_the_pages_outside_of_the_reference_are_short() -> None:
    pages = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts)]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= MOST_WORDS


@pytest.mark.parametrize(("text", "found"), [
    ("The engine copies no array.", []),
    ("NaN is born in Exp.", ["born"]),
    ("The gravest comes first: the run goes on.", ["gravest", "goes on"]),
    ("Of a queue the last calls are lost.", ["Of "]),
    ("The graph is drawn by the program.", ["The graph is drawn by"]),
    ("Two " * 25, []),
    ("Two " * 26, [f"{('Two ' * 26)[:40]}... (26 words)"]),
    (f"Read {', '.join('`a`' for _ in range(26))}.", []),
    ("Every tick is one of these: it tells that the loop ended.", ["one of these", "tells that"]),
    ("What ended the loop?", []),
    ("## What ended the loop", []),
    ("`--view story` draws the path.", []),
])  # fmt: skip
def test_what_is_not_plain_is_found(text: str, found: list[str]) -> None:
    assert [place.found for place in words.found_in("here", text)] == found


def test_paragraphs_cells_and_strings_are_told_apart(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("# One\nTwo\nlines\n\n* three\n\n| four | five |\n\n```\nsix\n```\n<!-- seven -->\n")
    assert list(words.paragraphs(page)) == [(1, "# One"), (2, "Two lines"), (5, "three"), (7, "| four"), (7, "| five")]
    module.write_text('"""A text of the module."""\nname = "a name"\nsaid = f"{name} has the value {1} here"\n')
    assert list(words.strings(module)) == [(3, "X has the value X here")]
