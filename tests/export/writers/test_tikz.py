"""TikZ compiles, and the page shows the shapes and texts of the SVG."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pytest
from lxml import etree

from stepper.export.exporter import draw
from stepper.export.figures.figure import EdgeKind, Figure, FigureEdge, FigureNode, NodeKind
from stepper.export.picture import Picture
from tests.export.runs import SAMPLES, picture, sample

LATEX = shutil.which("pdflatex")
PAGE = r"""\documentclass{article}
\usepackage[T1]{fontenc}\usepackage{tikz,textcomp}
\usepackage[margin=1cm,paperwidth=90cm,paperheight=120cm]{geometry}
\begin{document}\thispagestyle{empty}
\noindent\input{figure.tikz}
\end{document}
"""


def compiled(text: str, folder: Path) -> pdfium.PdfDocument:
    (folder / "figure.tikz").write_text(text, encoding="utf-8")
    (folder / "page.tex").write_text(PAGE, encoding="utf-8")
    command = [str(LATEX), "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    return pdfium.PdfDocument(folder / "page.pdf")


@pytest.mark.skipif(LATEX is None, reason="LaTeX is not installed")
@pytest.mark.parametrize(
    ("name", "view", "options"),
    [("while_loop", "rolled", {}), ("growing_tensor", "unrolled", {"iterations": "0:2", "values": "thumbnails"})],
)
def test_latex_sets_the_figure(name: str, view: str, options: dict[str, str], tmp_path: Path) -> None:
    made = picture(name, view, **options)
    document = compiled(made.text("tikz"), tmp_path)
    read = re.sub(r"\s+", " ", document[0].get_textpage().get_text_bounded())
    texts = ["".join(text.itertext()) for text in etree.fromstring(made.written("svg")).iter("{*}text")]
    words = {word for text in texts for word in re.findall(r"[A-Za-z]{3,}", text) if "f" not in word}  # no ligatures
    assert len(words) > 10 and not [word for word in words if word not in read]


@pytest.mark.skipif(LATEX is None, reason="LaTeX is not installed")
def test_names_of_the_model_are_never_commands(tmp_path: Path) -> None:
    label = r"\input{x} %$#&_{}~^<>|\end{tikzpicture} 日本 äß → ' \" --- ]"
    nodes = tuple(FigureNode(f"n{k}", NodeKind.OPERATION, label, (label,)) for k in range(2))
    figure = Figure(label, label, nodes, (FigureEdge("n0", "n1", EdgeKind.DATA),))
    document = compiled(Picture(figure).text("tikz"), tmp_path)
    assert len(document) == 1
    assert "end{tikzpicture}" in document[0].get_textpage().get_text_bounded().replace("\r\n", "")


USED = "·…→←−×⋯▼–›Σᵀ≤≥≠∞√±²αβγδεθλμνπρσςτφχψωΓΔΘΛΞΠΥΦΨΩäß"
"""Letters beyond ASCII that figures write themselves, and those of formulas."""


@pytest.mark.skipif(LATEX is None, reason="LaTeX is not installed")
def test_letters_of_figures_and_of_formulas_are_letters_in_latex(tmp_path: Path) -> None:
    label = f"{USED} end"
    figure = Figure("letters", "", (FigureNode("n", NodeKind.OPERATION, label, (label,)),), ())
    text = Picture(figure).text("tikz")
    assert "?" not in text.partition("tikzpicture")[2]
    read = compiled(text, tmp_path)[0].get_textpage().get_text_bounded()
    assert "end" in read and "Missing character" not in (tmp_path / "page.log").read_text(errors="replace")


def test_texts_of_all_samples_have_letters_in_latex() -> None:
    texts = [picture("for_loop", view).text("tikz") for view in ("rolled", "unrolled")]
    with np.load(SAMPLES / "rwkv_overflow" / "inputs.npz") as inputs:
        texts.append(draw(sample("rwkv_overflow"), dict(inputs), why="wkv@8[0,3]").text("tikz"))
    asked = [line for text in texts for line in text.partition("tikzpicture")[2].splitlines() if "?" in line]
    assert [line for line in asked if "goes on" not in line] == []
