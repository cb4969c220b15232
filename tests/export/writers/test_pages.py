"""PDF and PNG show what the SVG shows: other programs read them back, and two that draw agree on the picture."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pytest
from lxml import etree
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from stepper.cli import main
from stepper.errors import UsageError
from stepper.export.options import Theme
from stepper.export.picture import FigureRequest, Picture
from tests.export.runs import picture
from tests.tables import each_row

CASES = [
    ("while_loop", "rolled", {}),
    ("nested_loop", "ports", {}),
    ("rwkv_overflow", "model", {}),
    ("growing_tensor", "unrolled", {"values": "thumbnails", "iterations": "0:2,-1"}),
]


def page(content: bytes) -> Any:
    document = pdfium.PdfDocument(content)
    assert len(document) == 1
    return document[0]


def pixels(image: Image.Image) -> np.ndarray[Any, Any]:
    return np.asarray(image.convert("RGB"), np.float64)


@each_row(("name", "view", "options"), CASES)
def test_two_programs_draw_the_same_picture(name: str, view: str, options: dict[str, Any]) -> None:
    """PDFium draws the PDF, resvg the PNG: blocks of 8 pixels differ by antialiasing and hinting alone."""
    made = picture(name, view, **options)
    png = Image.open(io.BytesIO(made.written("png")))
    drawn = pixels(page(made.written("pdf")).render(scale=96 / 72).to_pil().resize(png.size))
    wide, high = png.width // 8 * 8, png.height // 8 * 8
    blocks = [part[:high, :wide].reshape(high // 8, 8, wide // 8, 8, 3).mean((1, 3)) for part in (pixels(png), drawn)]
    assert blocks[0].std() > 3, "there is a picture"
    far = np.abs(blocks[0] - blocks[1]).max(2) > 48
    assert far.mean() < 0.01


@each_row(("name", "view", "options"), CASES)
def test_the_text_of_a_pdf_is_text_in_a_font_that_is_in_the_file(name: str, view: str, options: dict[str, Any]) -> None:
    made = picture(name, view, **options)
    content = made.written("pdf")
    read = page(content).get_textpage().get_text_bounded()
    texts = ["".join(text.itertext()) for text in etree.fromstring(made.written("svg")).iter("{*}text")]
    found = {word for text in texts for word in text.split() if word.isascii()}
    assert found and not [word for word in found if word not in re.sub(r"[\r\n]", " ", read)]
    document = pdfium.PdfDocument(content)
    assert document.get_metadata_dict()["Title"] == made.figure.title
    assert document.is_tagged()
    assert b"/FontFile2" in content and b"/Alt" in content and b"/Lang" in content


@pytest.mark.parametrize(("format", "module"), [("png", "resvg_py"), ("pdf", "fpdf")])
def test_without_what_draws_a_page_one_sentence_says_what_to_install(
    format: str, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    model = Path(__file__).parents[3] / "sample_models" / "for_loop" / "model.xml"
    assert main(["export", str(model), "--as", format]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "pip install 'loop-stepper[figures]'; --as svg needs nothing" in said


def test_a_png_has_the_pixels_of_its_scale_and_width() -> None:
    made = picture("while_loop", "rolled")
    root = etree.fromstring(made.written("svg"))
    wide, high = float(root.get("width", 0)), float(root.get("height", 0))
    for scale in (0.5, 1, 3):
        request = FigureRequest(scale=scale)
        size = Image.open(io.BytesIO(Picture(made.figure, request).written("png"))).size
        assert size == pytest.approx((wide * scale, high * scale), abs=1)
    said = Image.open(io.BytesIO(made.written("png")))
    assert isinstance(said, PngImageFile)
    said.load()
    assert said.text == {"Title": made.figure.title, "Description": made.figure.description}
    narrow = Image.open(io.BytesIO(picture("while_loop", "rolled", width=900).written("png")))
    assert narrow.width <= 900
    with pytest.raises(UsageError, match=r"a PNG has at most 32,767 along a side"):
        Picture(made.figure, FigureRequest(scale=50)).written("png")


@each_row("theme", list(Theme))
def test_pages_have_the_ground_of_their_theme(theme: Theme) -> None:
    made = picture("reverse", "rolled", theme=theme)
    ground = (13, 17, 23) if theme is Theme.DARK else (255, 255, 255)
    assert Image.open(io.BytesIO(made.written("png"))).convert("RGB").getpixel((2, 2)) == ground
    assert page(made.written("pdf")).render().to_pil().convert("RGB").getpixel((2, 2)) == ground
