"""The gallery shows what the program draws today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sample_models import gallery, picture

ROOT = Path(__file__).parents[1]
FIGURES = [(name, drawn) for name in gallery.UNROLLED for _, drawn in gallery.figures(name)]


def test_every_sample_model_is_in_the_gallery() -> None:
    assert set(gallery.UNROLLED) == {path.parent.name for path in (ROOT / "sample_models").glob("*/model.xml")}


@pytest.mark.parametrize(("name", "drawn"), FIGURES, ids=[f"{name}-{drawn.file.stem}" for name, drawn in FIGURES])
def test_a_figure_of_the_gallery_is_current(name: str, drawn: gallery.Drawn) -> None:
    assert gallery.draw(drawn, check=True) == 0, f"{drawn.command}  # python -m sample_models.gallery draws all"


def test_the_picture_of_the_readme_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gallery.draw_picture(check=True) == 0, "python -m sample_models.gallery draws it"
    text = picture.FILE.read_text(encoding="utf-8")
    monkeypatch.setattr(picture, "FILE", tmp_path / "loop.svg")
    assert gallery.draw_picture(check=True) == 1
    for pattern, new in ((">end<", ">stop<"), ('opacity="0.9[0-9]*"', 'opacity="0.5"')):
        changed = re.sub(pattern, new, text, count=1)
        assert changed != text
        picture.FILE.write_text(changed, encoding="utf-8")
        assert gallery.draw_picture(check=True) == 1


def test_the_page_of_the_gallery_is_current() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()


def test_every_picture_of_the_pages_exists() -> None:
    for page in (ROOT / "README.md", ROOT / "sample_models" / "README.md", gallery.PAGE):
        for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), path
