"""A legend explains each line and box that a figure has, and nothing else; title and caption reach every format."""

from __future__ import annotations

import io
import re
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from lxml import etree

from stepper.cli import main
from tests.export.runs import NAMES, SAMPLES, picture
from tests.tables import each_row

SVG = {"svg": "http://www.w3.org/2000/svg"}
KINDS = {
    *("data", "port", "slice", "piece", "back", "carried", "ends"),
    *("parameter", "input", "result", "output", "concatenation", "group", "shapes", "accumulator", "idle"),
    *("merged", "condition", "block"),
}
ALIKE = {"port": "data", "input": "parameter", "output": "result", "concatenation": "result", "shapes": "group"}
"""Classes that look the same as another, which has the entry."""


def classes(tree: Any, *, legend: bool) -> set[str]:
    """The kinds of lines and boxes inside or outside of the legend."""
    groups = tree.xpath("//svg:g[svg:path or svg:rect]", namespaces=SVG)
    found = set()
    for group in groups:
        within = any("legend" in (one.get("class") or "") for one in group.iterancestors())
        if within is legend:
            words = (group.get("class") or "").split()
            told = [word for word in ("idle", "accumulator", "merged", "condition") if word in words][:1]
            found |= {ALIKE.get(word, word) for word in told or words} & KINDS
    squares = tree.xpath("//svg:rect[@class='square']", namespaces=SVG)
    within = [any("legend" in (up.get("class") or "") for up in square.iterancestors()) for square in squares]
    return found | ({"square"} if legend in within else set())


@each_row("view", ["model", "rolled", "ports", "unrolled"])
@each_row("name", NAMES, quick=3)
def test_a_legend_has_what_occurs_and_no_more(name: str, view: str) -> None:
    tree = etree.fromstring(picture(name, view).text("svg").encode())
    assert classes(tree, legend=True) == classes(tree, legend=False)
    texts = [text.text or "" for text in tree.xpath("//svg:text", namespaces=SVG)]
    assert any(re.search(r"S\[\d", text) for text in texts) == ("S[k]" in texts)
    bare = etree.fromstring(picture(name, view, legend=False).text("svg").encode())
    assert classes(bare, legend=True) == set() and classes(bare, legend=False) == classes(tree, legend=False)


FORMATS = ["svg", "html", "pdf", "tikz", "dot", "mermaid", "md"]


@each_row("format", FORMATS)
def test_title_caption_and_legend_are_in_every_format_that_readers_see(format: str, tmp_path: Any) -> None:
    file = tmp_path / "figure"
    words = ["export", str(SAMPLES / "reverse" / "model.xml"), "--inputs", str(SAMPLES / "reverse" / "inputs.npz")]
    words += ["--as", format, "--view", "unrolled", "-q", "-o", str(file)]
    told = ["--title", "Returns (discounted)", "--caption", "From the last reward to the first"]
    assert main([*words, *told]) == 0
    content = file.read_bytes()
    if format == "pdf":
        with pdfium.PdfDocument(io.BytesIO(content)) as document:
            about = document.get_metadata_dict()
            assert about["Title"] == "Returns (discounted)" and "From the last reward to the first" in about["Subject"]
            text = document[0].get_textpage().get_text_bounded()
    else:
        text = content.decode()
        assert "From the last reward to the first" in text
    assert "Returns" in text and "other Parameter" in text
    assert main([*words, *told, "--legend", "off"]) == 0
    assert b"other Parameter" not in file.read_bytes()
