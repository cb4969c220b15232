"""Names such as break formats: every file is valid to whom it is for, shows the name, and runs nothing of it."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import lxml.html
import numpy as np
import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pytest
from lxml import etree

from stepper.export.exporter import draw, export
from stepper.export.picture import FigureRequest, Picture
from stepper.files.file_kinds import FORMATS
from stepper.ir.model import Model
from tests.export.reading_back import geometry
from tests.export.reading_back.drawing import Drawing
from tests.export.renderers.programs import CHROMIUM
from tests.export.writers.hostile_names import HOSTILE, hostile_model
from tests.export.writers.test_tikz import LATEX, compiled
from tests.tables import each_row

DOT = shutil.which("dot")
VIEWS = {
    "model": {"view": "model", "depth": 2},
    "ports": {"view": "ports"},
    "unrolled": {"view": "unrolled", "values": "full", "depth": 1},
    "right": {"view": "unrolled", "direction": "right", "width": 642},
    "why": {"why": "end"},
}
_FOLDER = TemporaryDirectory(prefix="hostile-")


@cache
def model(kind: str) -> tuple[Model, dict[str | int, np.ndarray]]:
    folder = Path(_FOLDER.name) / kind.replace(" ", "_")
    folder.mkdir()
    return hostile_model(folder, HOSTILE[kind])


@cache
def made(kind: str, view: str) -> Picture:
    found, inputs = model(kind)
    options = VIEWS[view]
    return draw(found, None if view in ("model", "ports") else inputs, **options)  # type: ignore[arg-type]


def says(kind: str, words: str) -> bool:
    """Whether three letters of the name that follow each other are among words, and not for another reason."""
    name, others = HOSTILE[kind], "iterations ended output operations axis slice input condition"
    grams = {name[at : at + 3] for at in range(len(name) - 2)}
    return any(gram in words for gram in grams if gram.isprintable() and gram not in others)


@each_row("view", VIEWS)
@each_row("kind", HOSTILE)
def test_svg_is_well_formed_and_says_the_name(kind: str, view: str) -> None:
    text = made(kind, view).text("svg")
    drawing = Drawing(text)
    words = " ".join(one.text for one in drawing.words)
    assert says(kind, words), words
    assert all(one.text.isprintable() for one in drawing.words)
    assert not list(drawing.root.iter("{*}script")) and not list(drawing.root.iter("{*}image"))
    assert drawing.page.width < 6000
    if view in ("model", "ports", "unrolled"):
        assert not list(geometry.faults(drawing))


@each_row("kind", HOSTILE)
def test_pages_and_data_are_valid(kind: str) -> None:
    one = made(kind, "unrolled")
    page = one.text("html")
    document = lxml.html.fromstring(page.encode())
    assert len(list(document.iter("script"))) == 1 and len(list(document.iter("style"))) == page.count("<style")
    assert not list(document.iter("img", "b", "a"))
    data = json.loads(one.text("json"))
    assert data["loop"]["name"] == model(kind)[0].graph.by_id[data["loop"]["id"]].name
    assert HOSTILE[kind] in data["loop"]["name"]
    rows = list(csv.reader(io.StringIO(one.text("csv"))))
    assert len({len(row) for row in rows}) == 1
    assert not any(cell[:1] in ("=", "@", "+") for row in rows for cell in row)
    assert any(HOSTILE[kind] in cell.replace("\r\n", "\n") for row in rows for cell in row)
    found = export(model(kind)[0], None, FigureRequest(), FORMATS["numpy"]).content
    compile(found, "generated", "exec")
    tables = [line for line in one.text("md").splitlines() if line.startswith("|")]
    assert len(tables) > 5
    assert "\n# heading" not in one.text("md")


@each_row("kind", HOSTILE)
def test_text_for_other_programs_is_valid(kind: str) -> None:
    for view in ("model", "unrolled"):
        lines = made(kind, view).text("mermaid").splitlines()
        quoted = [re.sub(r'"[^"]*"', '""', line) for line in lines if '"' in line]
        assert quoted and all(re.fullmatch(r"[\w\s|.=>()\[\]{}<-]*\"\"[\w\s|.=>()\[\]{}<-]*", line) for line in quoted)
        assert all(line.isprintable() for line in lines)
    if DOT is not None:
        text = made(kind, "unrolled").text("dot").encode()
        done = subprocess.run([DOT, "-Tsvg"], input=text, capture_output=True, check=True, timeout=120)
        drawn = " ".join("".join(one.itertext()) for one in etree.fromstring(done.stdout).iter("{*}text"))
        assert says(kind, drawn) and not done.stderr


@pytest.mark.parametrize("kind", ["script", "latex", "markup", "controls"])
def test_pdf_and_png_are_drawn(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    one = made(kind, "ports")
    read = pdfium.PdfDocument(one.written("pdf"))[0].get_textpage().get_text_bounded()
    assert says(kind, read)
    assert one.written("png").startswith(b"\x89PNG")
    assert not capfd.readouterr().err


@pytest.mark.skipif(LATEX is None, reason="LaTeX is not installed")
@pytest.mark.parametrize("kind", ["latex", "right to left", "brackets"])
def test_latex_sets_it(kind: str, tmp_path: Path) -> None:
    assert len(compiled(made(kind, "unrolled").text("tikz"), tmp_path)) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_runs_the_slider_and_nothing_of_the_name(tmp_path: Path) -> None:
    page = (
        made("script", "unrolled")
        .text("html")
        .replace("</script>", "goByHand(1); document.title = `now ${now}`;\n</script>")
    )
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", str(tmp_path / "page.html")]
    dom = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()
    assert "<title>now 1</title>" in dom
    assert dom.count("<script") == 1
