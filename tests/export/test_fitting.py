"""Figures fit the page that is asked for: letters stay readable, what is left out is said, or the least width is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from stepper.errors import UsageError
from stepper.export.exporter import draw, opened
from stepper.export.figures.loop_trace import loops_of
from stepper.export.styles import PageDrawing
from tests.export.fitting import LEAST, MILLIMETRE, faults_of_page, texts
from tests.export.reading_back import geometry
from tests.export.reading_back.drawing import Drawing
from tests.export.runs import SAMPLES, picture, sample
from tests.models import Graph, carried, last

PAGES = [("paper", 84 * MILLIMETRE), ("paper", 170 * MILLIMETRE), ("docs", 820), ("slide", 1280)]


def held(page: PageDrawing, width: float, least: float) -> None:
    """The page is no wider (on paper no higher) than it may be, its letters are as high at least, no text leaves it."""
    highest = 225 * MILLIMETRE if least == LEAST["paper"] else 0
    assert not list(faults_of_page(page, width, least, highest))


@pytest.mark.parametrize("view", ["model", "rolled", "ports", "unrolled"])
@pytest.mark.parametrize("name", ["while_loop", "rwkv_overflow", "nested_loop", "date_normaliser"])
def test_figures_fit_their_page_or_say_the_least_width(name: str, view: str) -> None:
    for preset, width in PAGES:
        options = {"width": round(width)} if preset == "paper" else {}
        try:
            made = picture(name, view, preset=preset, **options)
        except UsageError as error:
            told = str(error)
            assert view == "model", told
            if preset == "slide":
                assert re.search(r"it needs [\d,]+ x [\d,]+", told)
                continue
            found = re.search(r"the least width is ([\d,]+) pixels", told)
            assert found, told
            least = int(found[1].replace(",", ""))
            assert least > width
            made = picture(name, view, preset=preset, width=least)
            width = least
        assert made.page is not None
        held(made.page, width, LEAST[preset])
        text = made.text("svg")
        assert float(etree.fromstring(text.encode()).get("width", 0)) <= width + 1
        drawn_here = Drawing(text)
        if view == "unrolled":
            assert not [fault for fault in geometry.faults(drawn_here) if "overlap" in fault or "leave" in fault]
        else:
            assert not list(geometry.faults(drawn_here))


def test_what_is_left_out_is_said_to_readers_and_in_the_figure() -> None:
    said: list[str] = []
    whole = picture("growing_tensor", "rolled")
    made = picture("growing_tensor", "rolled", preset="slide", warn=said.append)
    assert made.page is not None and "Not drawn:" in made.page.description and said
    drawn = {line.text for line, _, _ in texts(made.page.items)}
    groups = [text for text in drawn if re.fullmatch(r"\d+ operations", text)]
    operations = sum(node.kind == "operation" for node in whole.figure.nodes)
    assert len(groups) == 1 and int(groups[0].split()[0]) == operations
    assert len(made.figure.nodes) == len(whole.figure.nodes), "formats of text have all of it"


def test_a_slide_has_its_size_and_a_title_and_refuses_a_width() -> None:
    made = picture("while_loop", "unrolled", preset="slide", title="27 takes 111 steps")
    root = etree.fromstring(made.written("svg"))
    assert (round(float(root.get("width", 0))), round(float(root.get("height", 0)))) == (1280, 720)
    assert "27 takes 111 steps" in made.text("svg").partition("</desc>")[2]
    with pytest.raises(UsageError, match="a slide is 1280 x 720"):
        draw(sample("while_loop"), view="rolled", preset="slide", width=600)


@pytest.mark.parametrize("name", ["for_with_condition", "nested_loop"])
def test_bodies_with_long_names_fit_every_page(name: str, tmp_path: Path) -> None:
    path = SAMPLES / name / "model.xml"
    long = 'name="Range_test_of_a_converter_with_positive_delta_expanded_function_'
    (tmp_path / "model.xml").write_text(path.read_text(encoding="utf-8").replace('name="', long), encoding="utf-8")
    (tmp_path / "model.bin").write_bytes(path.with_suffix(".bin").read_bytes())
    model = opened(tmp_path / "model.xml")
    for loop in loops_of(model):
        for preset, width in PAGES:
            options = {"width": round(width)} if preset == "paper" else {}
            made = draw(model, view="rolled", loop=loop.layer.name, preset=preset, **options)  # type: ignore[arg-type]
            assert made.page is not None
            held(made.page, width, LEAST[preset])


def test_parameters_that_lead_to_the_same_are_one_box_where_a_page_is_narrow(tmp_path: Path) -> None:
    net = Graph()
    read = [net.parameter(f"an_input_of_the_model_{at}", "f32", (2,)) for at in range(9)]
    joined = net.apply("Concat", *read, dims=(18,), axis=0, name="joined")
    net.result(joined, "all")
    said: list[str] = []
    made = draw(net.read(tmp_path), view="model", preset="paper", warn=said.append)
    assert made.page is not None
    held(made.page, 84 * MILLIMETRE, LEAST["paper"])
    lines = [line.text for line, _, _ in texts(made.page.items)]
    assert "9 inputs" in lines and any("3 more" in line for line in lines)
    assert "boxes of Parameters and Results, but for one where they lead to the same" in said[0]


def test_the_list_of_many_ports_is_no_higher_than_a_page(tmp_path: Path) -> None:
    net = Graph()
    given = [net.parameter(f"state_{at}", "f32", (2,)) for at in range(12)]
    body = net.body()
    inner = [body.parameter(f"inner_{at}", "f32", (2,)) for at in range(12)]
    results = [body.result(body.apply("Relu", one), f"next_{at}") for at, one in enumerate(inner)]
    entries = [carried(*one) for one in zip(given, inner, results, strict=True)]
    for at, out in enumerate(net.loop("many", body, 3, True, entries, [last(one) for one in results])):
        net.result(out, f"out_{at}")
    said: list[str] = []
    made = draw(net.read(tmp_path), view="ports", preset="paper", warn=said.append)
    assert made.page is not None
    held(made.page, 84 * MILLIMETRE, LEAST["paper"])
    assert "Parameters and Results but for the first" in said[0]


def test_a_figure_that_stays_higher_than_a_page_is_told() -> None:
    said: list[str] = []
    made = picture("for_loop", "unrolled", preset="paper", width=730, direction="down", values="full", warn=said.append)
    assert made.page is not None
    high = made.page.height * made.page.points * 96 / 72 / MILLIMETRE
    assert high > 225 and any(f"{high:.0f} mm high, more than a page has" in one for one in said)
