"""The gallery shows what the program draws today."""

from __future__ import annotations

import re
from pathlib import Path

from sample_models import picture
from stepper.cli import main
from stepper.cli.commands.figures import figure_list, page_of
from tests.tables import each_row
from tests.test_docs import FENCE

ROOT = Path(__file__).parents[1]
LIST = ROOT / "sample_models" / "figures.toml"
NAMES = [one.name for one in figure_list(LIST).figures]


def test_every_sample_model_is_in_the_gallery() -> None:
    samples = {path.parent.name for path in (ROOT / "sample_models").glob("*/model.xml")}
    for view in ("model", "rolled", "ports", "unrolled"):
        assert {f"{name}/{view}" for name in samples} <= set(NAMES)


@each_row("name", NAMES)
def test_a_figure_of_the_gallery_is_current(name: str) -> None:
    assert main(["figures", "--file", str(LIST), "--check", name]) == 0, "`stepper figures` in sample_models draws it"


def test_the_picture_of_the_readme_is_current() -> None:
    text = picture.FILE.read_text(encoding="utf-8")
    assert picture.is_current(text), "python -m sample_models.picture draws it"
    for pattern, new in ((">end<", ">stop<"), ('opacity="0.9[0-9]*"', 'opacity="0.5"')):
        changed = re.sub(pattern, new, text, count=1)
        assert changed != text
        assert not picture.is_current(changed)


def test_the_page_of_the_gallery_is_current() -> None:
    listed = figure_list(LIST)
    page = LIST.parent / listed.page
    assert page_of(listed, LIST.parent) == page.read_text(encoding="utf-8"), (
        "`stepper figures` in sample_models writes it"
    )


def test_every_figure_of_the_pages_is_made_by_the_list() -> None:
    """But for screens of applications, the picture of the README, and the one diagram of the program itself."""
    made = {(LIST.parent / file).resolve() for one in figure_list(LIST).figures for file in one.files}
    others = re.compile(r"tour(_\w+)?\.svg|data_line\.svg|(notebook|vscode)_\w+\.png")
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "sample_models").glob("*.md")):
        for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", FENCE.sub("", page.read_text(encoding="utf-8"))):
            path = (page.parent / link).resolve()
            assert path.is_file(), (page, link)
            is_made = path in made or path.parent in made or path == picture.FILE.resolve()
            assert is_made or others.fullmatch(path.name), (page, link)
