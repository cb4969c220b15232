"""The colours of an SVG are there for every program that draws one, not for browsers alone."""

from __future__ import annotations

import importlib
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator

import pytest
from lxml import etree

from stepper.export.options import Theme
from stepper.export.styles import PALETTES
from tests.export.runs import NAMES, picture

VIEWS = ["model", "rolled", "ports", "unrolled"]
LITERAL = re.compile(r"#[0-9a-f]{6}|none")
SHAPES = ("rect", "path", "circle", "text")
RSVG = shutil.which("rsvg-convert")


def shapes(text: str) -> Iterator[etree._Element]:
    root = etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False))
    yield from (element for element in root.iter() if etree.QName(element).localname in SHAPES)


@pytest.mark.parametrize("theme", list(Theme))
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_every_shape_has_literal_colours_of_its_theme(name: str, view: str, theme: Theme) -> None:
    text = picture(name, view, theme=theme, values="thumbnails" if view == "unrolled" else "none").text("svg")
    colours = {*PALETTES[theme.fixed].values(), "none"}
    seen = set()
    for shape in shapes(text):
        fill, stroke = shape.get("fill"), shape.get("stroke")
        assert fill in colours and stroke in (*colours, None), etree.tostring(shape)
        assert fill != "none" or stroke != "none", "it would not be seen"
        if shape.get("class") in ("box", "frame", "wire"):
            assert stroke in colours - {"none"}, etree.tostring(shape)
        seen |= {fill, stroke}
    assert len(seen - {"none", None}) >= 4
    assert "var(" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def test_only_themes_that_follow_reader_or_page_have_a_style_sheet_and_it_holds_on_screens_alone() -> None:
    for theme in Theme:
        text = picture("while_loop", "rolled", theme=theme).text("svg")
        sheet = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        assert (sheet is not None) == (theme in (Theme.AUTO, Theme.PAGE))
        if sheet is not None:
            assert re.fullmatch(r"@media screen \{.*\}", sheet[1].strip(), re.DOTALL)
            names = set(re.findall(r"\.(s[0-9a-f]{8})", sheet[1]))
            assert len(names) == 1 and f'class="stepper {names.pop()}"' in text
            assert set(re.findall(r"var\(--([a-z-]+)\)", sheet[1])) <= set(PALETTES[Theme.DARK])


def test_what_is_highlighted_or_did_not_run_is_coloured_so_without_a_style_sheet() -> None:
    colours = PALETTES[Theme.LIGHT]
    made = picture("while_loop", "unrolled", iterations="0", depth=1)
    tree = etree.fromstring(made.text("svg").encode())
    idle = [node.id for node in made.figure.nodes if node.idle]
    assert idle
    for id in idle:
        (group,) = tree.xpath("//*[substring-after(@id, '.') = $id]", id=id)
        box = group.find("{*}rect")
        assert (box.get("fill"), box.get("stroke"), box.get("stroke-dasharray")) == (
            colours["body"],
            colours["body-edge"],
            "2 3",
        )


def png_colours(data: bytes) -> set[tuple[int, ...]]:
    """The colours of the pixels of a PNG of 8 bits without interlacing (PNG specification, sections 9.2 and 11.2)."""
    at, header, packed = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        content = data[at + 8 : at + 8 + length]
        header, packed = (content if kind == b"IHDR" else header), packed + (content if kind == b"IDAT" else b"")
        at += 12 + length
    width, _height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    assert (depth, interlaced) == (8, 0)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[kind]
    lines, step = zlib.decompress(packed), width * channels
    before, found = bytearray(step), set()
    for start in range(0, len(lines), step + 1):
        filter, line = lines[start], bytearray(lines[start + 1 : start + 1 + step])
        for index in range(step):
            left = line[index - channels] if index >= channels else 0
            corner = before[index - channels] if index >= channels else 0
            line[index] = (line[index] + predicted(filter, left, before[index], corner)) & 255
        found |= {tuple(line[index : index + channels]) for index in range(0, step, channels)}
        before = line
    return found


def predicted(filter: int, left: int, up: int, corner: int) -> int:
    if filter < 4:
        return (0, left, up, (left + up) // 2)[filter]
    guess = left + up - corner
    return min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]


def drawn_by_rsvg(text: str) -> bytes:
    if RSVG is None:
        pytest.skip("rsvg-convert is not installed")
    return subprocess.run(
        [RSVG, "--zoom", "0.5"], input=text.encode(), capture_output=True, check=True, timeout=60
    ).stdout


def drawn_by_cairosvg(text: str) -> bytes:
    try:
        cairosvg = importlib.import_module("cairosvg")
    except (ImportError, OSError):
        pytest.skip("CairoSVG is not installed")
    return bytes(cairosvg.svg2png(bytestring=text.encode(), scale=0.5))


@pytest.mark.parametrize("drawn", [drawn_by_rsvg, drawn_by_cairosvg])
@pytest.mark.parametrize("theme", list(Theme))
def test_programs_without_css_variables_draw_the_colours(theme: Theme, drawn: object) -> None:
    assert callable(drawn)
    for view in ("rolled", "ports"):
        found = {colour[:3] for colour in png_colours(drawn(picture("reverse", view, theme=theme).text("svg")))}
        colours = PALETTES[theme.fixed]
        for word in ("page", "in", "out", *(["body"] if view == "rolled" else [])):
            assert bytes.fromhex(colours[word][1:]) in {bytes(colour) for colour in found}, (view, word)
        assert len(found) > 30
