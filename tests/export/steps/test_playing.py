"""Chromium plays an SVG in steps, in an <img> as well; it stands still in print and where no motion is wanted."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pytest
from PIL import Image

from stepper.export.options import Theme
from stepper.export.styles import palette
from stepper.export.writers.drawings import animated_svg
from tests.export.steps.pages import CHROMIUM, chromium
from tests.export.steps.test_steps import textbook, texts

AMBER = tuple(bytes.fromhex(palette(Theme.LIGHT)["now"][1:]))

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


def has_amber(picture: Image.Image) -> bool:
    colours = picture.convert("RGB").getcolors(1 << 24) or []
    return any(
        count > 100 and all(abs(a - b) < 4 for a, b in zip(colour, AMBER, strict=True)) for count, colour in colours
    )


def test_it_shows_each_step_at_its_seconds(tmp_path: Path) -> None:
    drawing = textbook("while_loop")
    seconds = [0.5, 2.5, 3.5, 5.5, len(drawing.steps)]  # after its steps stands the whole
    script = f"const seconds = {json.dumps(seconds)};"
    script += """
    const found = [];
    for (const second of seconds) {
      for (const one of document.getAnimations()) { one.pause(); one.currentTime = 1000 * second; }
      found.push([...document.querySelectorAll("text")].filter(one => one.textContent
        && getComputedStyle(one).visibility === "visible").map(one => one.textContent));
    }
    document.body.innerHTML = "<pre></pre>";
    document.querySelector("pre").textContent = JSON.stringify(found);
    """
    (tmp_path / "page.html").write_text(
        f"<meta charset=utf-8><body>{animated_svg(drawing, 1)}<script>{script}</script>", encoding="utf-8"
    )
    dom = chromium("--dump-dom", str(tmp_path / "page.html"))
    match = re.search(r"<pre>(.*)</pre>", dom, re.DOTALL)
    assert match is not None
    pages = [*(drawing.at(index) for index in (0, 2, 3, 5)), drawing.page]
    assert [sorted(one) for one in json.loads(match[1])] == [
        sorted(text.text for text in texts(page.items)) for page in pages
    ]


def test_it_plays_in_an_img_and_stands_still_where_it_should(tmp_path: Path) -> None:
    (tmp_path / "figure.svg").write_text(animated_svg(textbook("while_loop"), 20, Theme.LIGHT), encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text('<body><img src="figure.svg" alt="a loop">')

    def shot(*words: str) -> Image.Image:
        chromium(*words, f"--screenshot={tmp_path / 'shot.png'}", "--window-size=900,500", str(page))
        return Image.open(io.BytesIO((tmp_path / "shot.png").read_bytes()))

    assert has_amber(shot())
    assert not has_amber(shot("--force-prefers-reduced-motion"))
    chromium(f"--print-to-pdf={tmp_path / 'page.pdf'}", str(tmp_path / "figure.svg"))
    printed = pdfium.PdfDocument(str(tmp_path / "page.pdf"))[0].render(scale=1.5).to_pil()
    assert not has_amber(printed)
    assert len(printed.convert("RGB").getcolors(1 << 24) or []) > 20
