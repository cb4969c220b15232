"""Four pages made with figures build, and show them: colours are counted in their pictures, words in their PDFs.

They need the extra `docs`, Chromium, and LaTeX; what is not installed is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pytest
from PIL import Image

from stepper.export.options import Theme
from stepper.export.styles import PALETTES
from tests.pages import build

pytestmark = pytest.mark.skipif(not build.HAS_SPHINX, reason="Sphinx, of the extra docs, is not installed")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pages")
    build.figures(out)
    return out


def made(found: Mapping[str, Path], name: str) -> Path:
    if name not in found:
        pytest.skip("a program that this page needs is not installed")
    return found[name]


def pixels(picture: Path, part: tuple[float, float, float, float] = (0, 0, 1, 1)) -> Mapping[str, int]:
    """How many pixels of each colour a part of a picture has; the part in shares of its size."""
    with Image.open(picture) as image:
        wide, high = image.size
        shown = image.convert("RGB").crop(
            (int(part[0] * wide), int(part[1] * high), int(part[2] * wide), int(part[3] * high))
        )
        return {f"#{r:02x}{g:02x}{b:02x}": count for count, (r, g, b) in shown.getcolors(1 << 24)}  # type: ignore[misc]


def shows(found: Mapping[str, int], theme: Theme, least: int, fills: tuple[str, ...] = ("in", "out", "body")) -> None:
    """The fills of a theme are there, and lines and letters in its colours; of the other themes hardly any are."""
    colours = PALETTES[theme]
    for fill in fills:
        assert found.get(colours[fill], 0) > least, fill
    for line in ("ink", "wire", "back", "in-edge", "out-edge"):
        assert found.get(colours[line], 0) > 40, line
    others = [other for other in PALETTES if other is not theme]
    for other in others:
        for fill in {PALETTES[other][fill] for fill in ("in", "out", "carried")} - set(colours.values()):
            assert found.get(fill, 0) < least / 10, (other, fill)


def words(document: Path) -> str:
    with pdfium.PdfDocument(document) as opened:
        text = " ".join(page.get_textpage().get_text_bounded() for page in opened)
    return re.sub(r"\s+", " ", text)


def test_a_readme_shows_figures_for_a_light_and_a_dark_page(pages: Path) -> None:
    found = build.readme(pages)
    for scheme, theme in (("light", Theme.LIGHT), ("dark", Theme.DARK)):
        picture = made(found, scheme)
        shows(pixels(picture, (0, 0, 1, 0.6)), theme, 3_000)  # <img> that follows the reader
        shows(pixels(picture, (0, 0.7, 1, 1)), theme, 1_000, ("out", "body"))  # <picture> with a file for each scheme


def test_sphinx_shows_figures_as_html_and_as_pdf(pages: Path) -> None:
    found = build.documentation(pages)
    html = (pages / "html" / "index.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 2 and "The loop &#x27;passes&#x27; with the loop over pairs" in html
    if "pdf" in found:
        text = words(found["pdf"])
        for part in ("pairs_of_neighbours", "ended after 8 iterations", "later_return"):
            assert part in text, part
        assert "Overfull" not in (pages / "latex" / "loops.log").read_text(encoding="utf-8", errors="replace")
    light = pixels(made(found, "html"))
    shows(light, Theme.LIGHT, 3_000)
    assert pixels(made(found, "html for readers of dark pages")) == light, "the theme knows no dark page"


def test_a_paper_of_two_columns_has_figures_that_fit_them(pages: Path) -> None:
    document = made(build.paper(pages), "pdf")
    text = words(document)
    for part in (
        "ended after 11 iterations",
        "0.99977",
        "not drawn",
        "into the body",
        "number_next_result",
        "Figure 4",
    ):
        assert part in text, part
    log = (pages / "paper" / "paper.log").read_text(encoding="utf-8", errors="replace")
    assert "Overfull" not in log, "84 mm fit into a column, 170 mm across"
    with pdfium.PdfDocument(document) as opened:
        opened[0].render(scale=1.5).to_pil().save(pages / "paper.png")
    shown = pixels(pages / "paper.png", (0, 0.1, 1, 0.5))
    assert shown.get(PALETTES[Theme.PRINT]["out"], 0) > 3_000


def test_a_slide_shows_its_title_and_figure_on_both_grounds(pages: Path) -> None:
    picture = made(build.slide(pages), "png")
    shows(pixels(picture, (0, 0, 1, 0.5)), Theme.LIGHT, 5_000, ("out", "body"))
    shows(pixels(picture, (0, 0.5, 1, 1)), Theme.DARK, 5_000, ("out", "body"))
    assert pixels(picture, (0, 0, 0.6, 0.05)).get(PALETTES[Theme.LIGHT]["ink"], 0) > 500, "the title"
