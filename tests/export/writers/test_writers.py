"""Every format is what its readers expect: well-formed, complete, free of markup from the model, the same each time."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from msgspec.structs import replace

import stepper
from stepper.errors import UsageError
from stepper.export.composing import composed
from stepper.export.exporter import draw
from stepper.export.figures.drawn_graph import summary, value_lines
from stepper.export.figures.figure import EdgeKind, Figure
from stepper.export.fonts import LABEL_SIZE, SMALL_SIZE, advance
from stepper.export.layout.arrangements import arranged
from stepper.export.layout.figure_layout import CELL
from stepper.export.options import LayoutEngine, Theme, ValueDetail
from stepper.export.picture import FigureRequest, Picture, writer_of
from stepper.export.styles import PALETTES
from stepper.export.writers.drawings import svg
from stepper.files.file_kinds import FORMATS
from tests.export.runs import NAMES, SAMPLES, picture
from tests.models import Graph, carried, joined, last
from tests.tables import each_row

VIEWS = ["model", "rolled", "ports", "unrolled"]
NASTY = '</text><script>alert(1)</script> "quoted" \\ end; --> ]]> %d {x} | #'
DOT = shutil.which("dot")


def nasty(folder: Path) -> Picture:
    graph = Graph()
    x = graph.parameter("x", "f32", (1,))
    body = graph.body()
    state = body.parameter("state", "f32", (1,))
    result = body.result(body.apply("Relu", state, name="NAME"), "next")
    for value in graph.loop("LOOP", body, 3, True, [carried(x, state, result)], [last(result), joined(result)]):
        graph.result(value)
    path = graph.write(folder)
    escaped = NASTY.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    path.write_text(path.read_text().replace("NAME", escaped).replace("LOOP", escaped))
    return draw(stepper.read_model(path), {"x": np.ones(1, np.float32)}, values="full")


def svg_tree(text: str) -> etree._Element:
    return etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False))


@each_row("view", VIEWS)
@each_row("name", NAMES, quick=4)
def test_svg_is_well_formed_and_has_every_node_once(name: str, view: str) -> None:
    made = picture(name, view)
    root = svg_tree(made.text("svg"))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert len({id.partition(".")[0] for id in ids if "." in id}) == 1, "all begin with the name of the figure"
    own = {id.partition(".")[2] for id in ids}
    is_list = view == "ports"  # in which words stand for what is outside of the body
    nodes = [node for node in made.figure.nodes if node.cluster or not is_list]
    assert {node.id for node in nodes} <= own
    assert is_list or {cluster.id for cluster in made.figure.clusters} <= own
    texts = {text.text for text in root.iter("{*}text")}
    assert {line for node in nodes for line in node.texts} <= texts
    assert root.find("{*}title").text == made.figure.title  # type: ignore[union-attr]
    assert root.find("{*}desc").text == made.figure.description  # type: ignore[union-attr]
    assert root.get("role") == "img"


@each_row("view", VIEWS)
def test_a_figure_says_nothing_of_time_or_place(view: str) -> None:
    for format in ("svg", "dot", "mermaid", "md"):
        text = picture("for_loop", view).written(format).decode()
        assert not re.search(r"20[0-9]{2}-[0-9]{2}|/home|/tmp|sample_models", text)


def test_each_format_has_a_writer_and_suffixes_of_its_own() -> None:
    assert all(callable(writer_of(format)) for format in FORMATS.values())
    suffixes = [suffix for format in FORMATS.values() for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))


def test_an_unknown_format_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match=r"'svgg' is none of svg, html, .* and numpy; near is svg"):
        picture("for_loop", "rolled").written("svgg")
    with pytest.raises(UsageError, match="numpy is written from a model"):
        picture("for_loop", "rolled").written("numpy")


@each_row("format", sorted(set(FORMATS) - {"numpy"}))
def test_the_same_run_gives_the_same_bytes(format: str) -> None:
    first, second = (picture("nested_loop", "unrolled", values="stats").written(format) for _ in range(2))
    assert first == second


@each_row("name", NAMES)
def test_text_stays_within_its_box(name: str) -> None:
    drawing = arranged(picture(name, "unrolled", values="full").figure)
    for box in drawing.boxes:
        label, *others = box.node.texts
        assert advance(label, LABEL_SIZE) + 2 <= box.width * CELL
        assert all(advance(text, SMALL_SIZE, bold=True) + 2 <= box.width * CELL for text in others)


def test_without_graphviz_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    made = picture("reverse", "rolled")
    for format in ("svg", "png", "pdf"):
        with pytest.raises(UsageError, match=r"`dot` is not installed; install it with .* it is not needed$"):
            replace(made, request=replace(made.request, layout=LayoutEngine.DOT)).written(format)
        assert made.written(format)


def test_names_of_the_model_are_never_markup(tmp_path: Path) -> None:
    made = nasty(tmp_path)
    root = svg_tree(made.text("svg"))
    assert not list(root.iter("{*}script"))
    page = made.written("html").decode()
    assert page.count("<script>") == 1 and page.count("</script>") == 1
    assert "<script>" not in made.text("mermaid") and '"quoted"' not in made.text("mermaid")
    assert "<script>" not in re.sub(r"\\<", "", made.written("md").decode())
    if DOT is not None:
        subprocess.run([DOT, "-Tsvg"], input=made.text("dot").encode(), capture_output=True, check=True, timeout=60)


@each_row("view", VIEWS)
@each_row("name", NAMES)
def test_mermaid_has_every_node_and_edge(name: str, view: str) -> None:
    made = picture(name, view)
    lines = made.text("mermaid").splitlines()
    arrows = [line for line in lines if re.search(r" (-->|==>|-\.->)(\|| )", line)]
    assert len(arrows) == len(made.figure.edges)
    assert sum(line.strip().startswith("subgraph ") for line in lines) == sum(line.strip() == "end" for line in lines)
    for line in arrows:
        assert re.fullmatch(r'  x_\w+ (?:-->|==>|-\.->)(?:\|"[^"]*"\|)? x_\w+', line)
    for node in made.figure.nodes:
        assert (
            sum(
                line.strip().startswith(f"x_{node.id.replace('.', '_')}" + opening)
                for line in lines
                for opening in "([{"
            )
            == 1
        )


def test_markdown_has_the_flowchart_the_port_map_and_the_iterations() -> None:
    text = picture("reverse", "unrolled", values="full").written("md").decode()
    assert text.index("```mermaid") < text.index("## Port map") < text.index("## Iterations")
    assert "| in | reward | sliced | input 1 | axis 1, start -1, end 0, stride -1, part\\_size 1 |" in text
    assert "| 0 | \\[7:8\\] f32\\[1,1,1\\] 10 | f32\\[1,1,1\\] 0 |" in text


def test_json_has_what_the_run_did() -> None:
    data = json.loads(picture("reverse", "unrolled", iterations="").written("json"))
    assert (data["schema"], data["iterations"], data["left_out"]) == (1, 8, [])
    assert [step["slices"][0]["begin"] for step in data["trace"]] == list(range(7, -1, -1))
    assert data["outputs"][1]["order"] == "S[7], S[6], ..., S[0]"
    with np.load(SAMPLES / "reverse" / "inputs.npz") as inputs:
        rewards = inputs["rewards"].reshape(-1)
    got = [
        next(value for value in step["values"] if value["layer"]["name"] == "reward")["mean"] for step in data["trace"]
    ]
    np.testing.assert_allclose(got, rewards[::-1])


def test_csv_has_a_row_for_each_value_of_each_iteration() -> None:
    rows = list(csv.DictReader(io.StringIO(picture("for_loop", "unrolled", iterations="").written("csv").decode())))
    years = [row for row in rows if row["name"] == "year_index"]
    assert [int(row["numbers"]) for row in years] == list(range(10))
    assert len({row["name"] for row in rows}) * 10 == len(rows)


def test_a_cell_of_csv_is_no_formula(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (1,))
    body = graph.body()
    state = body.parameter("=1+1", "f32", (1,))
    result = body.result(body.apply("Relu", state, name="next"), "next_result")
    graph.result(graph.loop("loop", body, 1, True, [carried(x, state, result)], [last(result)])[0])
    text = draw(graph.read(tmp_path), {"x": np.ones(1, np.float32)}).written("csv").decode()
    assert ",'=1+1," in text


@each_row("theme", list(Theme))
def test_a_theme_follows_the_reader_where_asked(theme: Theme) -> None:
    text = picture("reverse", "rolled", theme=theme).text("svg")
    assert ("prefers-color-scheme: dark) { .s" in text) == (theme is Theme.AUTO)
    assert ("light-dark(" in text) == (theme is Theme.PAGE)


@each_row("theme", [Theme.LIGHT, Theme.DARK, Theme.PRINT])
def test_text_and_lines_have_contrast_on_whatever_they_stand_on(theme: Theme) -> None:
    """WCAG 2 asks 4.5 to 1 for text of this size, and 3 for lines that say something."""
    colours = PALETTES[theme]
    fills = ("page", "box", "in", "out", "body", "now", "carried", "fault")
    for ink, grounds in {
        "ink": fills,
        "quiet": fills,
        "mark": ("box", "page", "body", "fault"),
        "back": ("body", "page", "carried"),
        "in-edge": ("page", "in", "body"),
        "out-edge": ("page", "out", "body"),
    }.items():
        for ground in grounds:
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for line in ("wire", "edge", "body-edge", "now-edge"):
        assert contrast(colours[line], colours["page"]) >= 3, line
        assert contrast(colours[line], colours["body"]) >= 3, line


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_a_notebook_shows_the_objects_themselves() -> None:
    made = picture("reverse", "rolled")
    assert made._repr_svg_().startswith("<svg")
    assert made._repr_html_().startswith("<svg")
    assert made._repr_markdown_().startswith("```mermaid\n")


@each_row(
    ("array", "lines"),
    [
        (np.array([1.5, -2.0] * 8, np.float32), ("f32[16]", "-2 to 1.5, mean -0.25")),
        (np.zeros((4, 4), np.int64), ("i64[4,4]", "all 0")),
        (np.array([[np.nan]], np.float32), ("f32[1,1] NaN",)),
        (np.full(16, np.inf, np.float32), ("f32[16]", "no finite element")),
        (np.array(True), ("boolean[] true",)),
        (np.zeros((0, 3), np.float32), ("f32[0,3]", "empty")),
    ],
)
def test_statistics_of_a_value_in_a_line(array: np.ndarray, lines: tuple[str, ...]) -> None:
    assert value_lines(summary(array, None, ValueDetail.STATS), ValueDetail.STATS) == lines


def test_a_flowchart_longer_than_github_draws_is_warned_about() -> None:
    figure = picture("date_normaliser", "unrolled", iterations="", values="full").figure
    said: list[str] = []
    Picture(figure, FigureRequest(warn=said.append)).text("mermaid")
    assert "characters (Mermaid draws 50,000) and" in said[0] and "edges (Mermaid draws 500)" in said[0]
    assert "draw less with --around OP, --iters 0:2" in said[0]


def test_thumbnails_are_drawn_as_lines_and_shades(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (3, 4))
    body = graph.body()
    state = body.parameter("state", "f32", (3, 4))
    flat = body.apply("Reshape", state, body.constant(np.array([12])), dims=(12,), special_zero="false", name="flat")
    kept = body.result(flat, "flat_result")
    result = body.result(body.apply("Relu", state, name="next"), "next_result")
    outputs = graph.loop("loop", body, 2, True, [carried(x, state, result)], [last(result), joined(kept)])
    for value in outputs:
        graph.result(value)
    made = draw(graph.read(tmp_path), {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}, values="thumbnails")
    text = made.text("svg")
    assert 'class="spark"' in text
    shades = re.search(r'<g id="s[0-9a-f]+\.i0\.n0".*?</g>', text, re.DOTALL)
    assert shades is not None
    opacities = [float(number) for number in re.findall(r'class="shade".*?opacity="([0-9.]+)"', shades[0])]
    assert opacities == sorted(opacities) and len(opacities) == 12


def test_a_back_edge_is_dashed_and_a_folded_iteration_too() -> None:
    made = picture("while_loop", "rolled", legend=False)
    backs = [edge for edge in made.figure.edges if edge.kind is EdgeKind.BACK]
    assert len(re.findall(r'<g class="back">', made.text("svg"))) == len(backs) == 3


def test_the_figure_of_a_figure_is_not_lost_in_svg(tmp_path: Path) -> None:
    empty = Figure("nothing", "there is nothing", (), ())
    assert svg_tree(svg(composed(empty, arranged(empty)))) is not None
