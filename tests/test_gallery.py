"""The gallery shows what the program draws today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sample_models import gallery

ROOT = Path(__file__).parents[1]
FIGURES = [(name, drawn) for name in gallery.UNROLLED for _, drawn in gallery.figures(name)]


def test_every_sample_model_is_in_the_gallery() -> None:
    assert set(gallery.UNROLLED) == {path.parent.name for path in (ROOT / "sample_models").glob("*/model.xml")}


@pytest.mark.parametrize(("name", "drawn"), FIGURES, ids=[f"{name}-{drawn.file.stem}" for name, drawn in FIGURES])
def test_a_figure_of_the_gallery_is_current(name: str, drawn: gallery.Drawn) -> None:
    assert gallery.draw(drawn, check=True) == 0, f"{drawn.command}  # python -m sample_models.gallery draws all"


def test_the_page_of_the_gallery_is_current() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()


def test_every_picture_of_the_pages_exists() -> None:
    for page in (ROOT / "README.md", ROOT / "sample_models" / "README.md", gallery.PAGE):
        for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), path
