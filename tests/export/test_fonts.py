"""The table of widths holds what the font itself says, read by fontTools."""

from __future__ import annotations

import json

import pytest
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

from stepper.export.fonts import BOLD, FOLDER, REGULAR, advance, missing


@pytest.mark.parametrize(("file", "name"), [(REGULAR, "regular"), (BOLD, "bold")])
def test_widths_are_those_of_the_font(file: object, name: str) -> None:
    font = TTFont(file)
    letters, widths = font.getBestCmap(), font["hmtx"]
    runs = json.loads((FOLDER / "advances.json").read_text())[name]
    held = {first + index: width for first, count, width in runs for index in range(count)}
    assert held == {code: widths[glyph][0] for code, glyph in letters.items()}
    assert font["head"].unitsPerEm == 2048


def test_the_width_of_a_text_is_the_sum_of_its_letters() -> None:
    assert advance("iWi", 20.48) == pytest.approx((455 * 2 + 1933) / 100)  # hmtx of i is 455, of W 1933
    assert advance("日本", 10) == 20
    assert missing("a→日") == "日"
