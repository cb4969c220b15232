"""Graphviz reads what is written for it, and draws it as our own layout has it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import stepper.export.writers.graphviz as graphviz_module
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.arrangement import arranged
from stepper.export.options import Theme
from stepper.export.writers.graphviz import placed_dot
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
def test_graphviz_draws_png_and_pdf(format: str, magic: bytes) -> None:
    for view in VIEWS:
        assert picture("reverse", view).written(format).startswith(magic)


@pytest.mark.skipif(DOT is None, reason="Graphviz is not installed")
def test_graphviz_leaves_every_box_where_our_layout_put_it() -> None:
    made = picture("while_loop", "unrolled", values="full")
    drawing = arranged(made.figure)
    text = placed_dot(made.figure, drawing, Theme.LIGHT)
    result = subprocess.run(
        [str(DOT), "-Kneato", "-n2", "-Tplain"], input=text.encode(), capture_output=True, check=True, timeout=60
    )
    assert not result.stderr
    places = {}
    for line in result.stdout.decode().splitlines():
        words = line.split()
        if words[0] == "node":
            places[words[1].strip('"')] = (float(words[2]), float(words[3]))
    first = drawing.boxes[0]
    for box in drawing.boxes:
        across = (box.x + box.width / 2 - first.x - first.width / 2) * graphviz_module.CELL / 72
        down = (box.y + box.height / 2 - first.y - first.height / 2) * graphviz_module.ROW / 72
        x, y = (places[box.node.id][k] - places[first.node.id][k] for k in (0, 1))
        assert (x, y) == pytest.approx((across, -down), abs=0.01)


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
