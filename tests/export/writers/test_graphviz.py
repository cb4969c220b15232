"""Graphviz reads what is written for it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from msgspec.structs import replace

from stepper.export.figures.figure import NodeKind
from stepper.export.options import LayoutEngine
from tests.export.runs import NAMES, picture

VIEWS = ["model", "rolled", "ports", "unrolled"]
DOT = shutil.which("dot")


@pytest.mark.skipif(DOT is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_graphviz_reads_what_is_written_for_it_and_finds_every_edge(name: str, view: str) -> None:
    made = picture(name, view)
    result = subprocess.run(
        [str(DOT), "-Tplain"], input=made.text("dot").encode(), capture_output=True, check=True, timeout=120
    )
    assert not result.stderr
    lines = result.stdout.decode().splitlines()
    drawn = [line for line in lines if line.startswith("edge ") and " invis " not in line]
    assert len(drawn) == len(made.figure.edges)
    ellipses = sum(cluster.kind is NodeKind.ELLIPSIS for cluster in made.figure.clusters)
    assert sum(line.startswith("node ") for line in lines) == len(made.figure.nodes) + ellipses


@pytest.mark.skipif(DOT is None, reason="Graphviz is not installed")
@pytest.mark.parametrize(("format", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_graphviz_draws_png_and_pdf_where_it_is_to_lay_them_out(format: str, magic: bytes) -> None:
    for view in VIEWS:
        made = picture("reverse", view)
        laid_out = replace(made, request=replace(made.request, layout=LayoutEngine.DOT))
        assert laid_out.written(format).startswith(magic)


SMALL = [name for name in NAMES if name != "date_normaliser"]  # of which Graphviz takes half a minute


@pytest.mark.skipif(DOT is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("name", SMALL)
def test_graphviz_draws_all_iterations_alike(name: str) -> None:
    """`neato -n2` keeps every place in an iteration, `dot` every row."""
    text = picture(name, "unrolled", iterations="0:2,-1", values="full", depth=1).text("dot")
    first, *others = (relative(shape) for shape in iterations_drawn(text, "-Kneato", "-n2"))
    assert len(others) == 2
    for other in others:
        assert other == pytest.approx(first, abs=0.01)
    rows = [rows_of(shape) for shape in iterations_drawn(text, "-Kdot")]
    assert len(rows) == 3
    assert rows[0] == rows[1] == rows[2]


Places = dict[str, tuple[float, float]]


def iterations_drawn(text: str, *program: str) -> list[Places]:
    """Where Graphviz put the boxes of each iteration, in inches, by the part of the id that iterations share."""
    drawn = subprocess.run(
        [str(DOT), *program, "-Tplain"], input=text.encode(), capture_output=True, check=True, timeout=60
    )
    found: dict[str, Places] = {}
    for line in drawn.stdout.decode().splitlines():
        words = line.split(" ")
        stage, dot, tail = words[1].strip('"').partition(".") if words[0] == "node" else ("", "", "")
        if dot:
            found.setdefault(stage, {})[tail] = (float(words[2]), float(words[3]))
    return list(found.values())


def relative(places: Places) -> dict[tuple[str, int], float]:
    """Each number of each place, beside that of the first."""
    first = next(iter(places.values()))
    return {(tail, k): place[k] - first[k] for tail, place in places.items() for k in (0, 1)}


def rows_of(places: Places) -> list[set[str]]:
    """What stands beside each other, from above."""
    rows: dict[float, set[str]] = {}
    for tail, (_, y) in places.items():
        rows.setdefault(round(-y, 2), set()).add(tail)
    return [rows[y] for y in sorted(rows)]
