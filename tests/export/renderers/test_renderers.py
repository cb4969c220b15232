"""The same SVG is the same picture in every program that draws it: blocks of pixels against the figure's own PNG.

STEPPER_RENDERERS=all draws all figures, as .ci/run does; else two of them are drawn.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from stepper.export.exporter import draw
from tests.export.reading_back.cases import case
from tests.export.reading_back.drawing import Drawing
from tests.export.renderers.programs import PROGRAMS, Pixels, has_font, pdf_of_weasyprint, pixels
from tests.export.runs import picture, sample

BLOCK = 6
FIGURES = [
    ("reverse", {"view": "ports", "theme": "print"}),
    ("while_loop", {"view": "unrolled", "direction": "right", "width": 642, "theme": "auto"}),
    ("while_loop", {"view": "rolled", "theme": "auto"}),
    ("nested_loop", {"view": "model", "depth": 2, "theme": "dark"}),
    ("rwkv_overflow", {"view": "unrolled", "values": "full", "iterations": "0,-1", "depth": 1, "theme": "light"}),
    ("growing_tensor", {"view": "unrolled", "values": "thumbnails", "iterations": "0:2,-1", "theme": "auto"}),
]


def differing(one: Pixels, other: Pixels) -> float:
    """The share of blocks whose colours are far from each other."""
    high, wide = (min(pair) // BLOCK * BLOCK for pair in zip(one.shape[:2], other.shape[:2], strict=True))
    shape = (high // BLOCK, BLOCK, wide // BLOCK, BLOCK, 3)
    blocks = [part[:high, :wide].reshape(shape).mean((1, 3)) for part in (one, other)]
    assert blocks[0].std() > 3, "there is a picture"
    return float((np.abs(blocks[0] - blocks[1]).max(2) > 48).mean())


def drawn(name: str, options: dict[str, object]) -> tuple[str, Pixels]:
    """The SVG of a figure, and the pixels of its PNG."""
    inputs = case(name).inputs if options["view"] == "unrolled" else None
    made = draw(sample(name), inputs, **options)  # type: ignore[arg-type]
    return made.text("svg"), pixels(made.written("png"))


@pytest.mark.parametrize("program", list(PROGRAMS))
def test_every_program_draws_the_same_picture(program: str) -> None:
    draws = PROGRAMS[program]
    if draws is None:
        pytest.skip(f"{program} is not installed")
    if not has_font():
        pytest.skip("fontconfig has no font with the widths of Liberation Sans")
    shares = {}
    for name, options in FIGURES if os.environ.get("STEPPER_RENDERERS") == "all" else FIGURES[:2]:
        svg, png = drawn(name, options)
        other = draws(svg)
        assert abs(np.subtract(png.shape, other.shape)).max() <= 2, (name, options, png.shape, other.shape)
        shares[f"{name} {options}"] = differing(png, other)
    assert max(shares.values()) < 0.01, shares


def test_texts_stand_where_the_figure_has_them() -> None:
    """WeasyPrint's PDF is read by PDFium: each text begins and ends where the SVG says."""
    if PROGRAMS["WeasyPrint"] is None:
        pytest.skip("WeasyPrint is not installed")
    if not has_font():
        pytest.skip("fontconfig has no font with the widths of Liberation Sans")
    svg = picture("while_loop", "rolled").text("svg")
    drawing, page = Drawing(svg), pdf_of_weasyprint(svg)
    text, high, found = page.get_textpage(), page.get_height(), 0
    for words in drawing.words:
        if not words.text.isascii() or len(words.text) < 4:
            continue
        area = words.area
        box = (area.x - 3, high - (area.bottom + 3) * 0.75, area.right + 3, high - (area.y - 3) * 0.75)
        box = (box[0] * 0.75, box[1], box[2] * 0.75, box[3])
        assert words.text in text.get_text_bounded(*box), words
        found += 1
    assert found > 20
