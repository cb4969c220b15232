"""Frames say which port is which, what carries nothing, what a condition implies, and where the rule books differ."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.export.exporter import draw
from stepper.export.figures.figure import EdgeKind, Figure, PortRole
from stepper.ir.model import Model
from tests.export.reading_back import geometry
from tests.export.reading_back.drawing import Drawing
from tests.export.runs import SAMPLES, picture, sample
from tests.models import Graph, carried, joined, last, sliced


def port_words(figure: Figure, frame: str) -> list[str]:
    return [port.words[0] for port in figure.clusters_by_id[frame].ports]


def test_every_port_has_its_name_and_constants_their_values() -> None:
    figure = draw(sample("while_loop"), view="model").figure
    assert port_words(figure, "c5") == [
        "condition", "input 2 'start'", "input 3 = 0", "input 4 'start'", "output 0", "output 1", "output 2",
    ]  # fmt: skip
    counted = draw(sample("for_loop"), view="model").figure
    assert "trip count 10" in port_words(counted, "c4")


def test_an_if_has_its_condition_apart_and_one_port_for_both_sides() -> None:
    figure = draw(sample("while_loop"), view="rolled", depth=2).figure
    frame = next(frame for frame in figure.clusters if frame.label.startswith("If"))
    condition, number, output = frame.ports
    assert (condition.words[0], condition.ends) == ("condition", ())
    assert [figure.by_id[end].label for end in number.ends] == ["even", "odd"]
    assert [figure.by_id[end].label for end in output.ends] == ["half_result", "triple_plus_one_result"]
    assert "from the side that ran" in draw(sample("while_loop"), view="rolled", depth=2).text("svg")


def test_a_model_has_its_inner_bodies_inside_as_far_as_it_stays_small(tmp_path: Path) -> None:
    def frames(model: Model, **options: int) -> list[str]:
        return [frame.label for frame in draw(model, view="model", **options).figure.clusters]

    both = ["Loop 'passes'", "Loop 'pairs_of_neighbours'"]
    assert frames(sample("nested_loop")) == both
    assert frames(sample("nested_loop"), depth=1) == both[:1]
    for count, wanted in ((20, ["Loop 'outer'", "Loop 'inner'"]), (120, ["Loop 'outer'"])):
        net = Graph()
        h0 = net.parameter("h0", "f32", (1,))
        body = net.body()
        h = body.parameter("h", "f32", (1,))
        inside = body.body()
        value = carry = inside.parameter("x", "f32", (1,))
        for index in range(count):
            value = inside.apply("Relu", value, name=f"relu_{index}")
        result = inside.result(value, "x_result")
        after = body.loop("inner", inside, 2, True, [carried(h, carry, result)], [last(result)])[0]
        ended = body.result(after, "h_result")
        net.result(net.loop("outer", body, 2, True, [carried(h0, h, ended)], [last(ended)])[0], "out")
        folder = tmp_path / str(count)
        folder.mkdir()
        assert frames(net.read(folder)) == wanted


def counting(folder: Path, bound: int, step: int, **cut: int) -> Model:
    """A Loop whose body adds a step to a counter and goes on below a bound; what it slices has a back edge, too."""
    net = Graph()
    x = net.parameter("x", "f32", (9,))
    body = net.body()
    part, count = body.parameter("part", "f32", (1,)), body.parameter("count", "i64", ())
    more = body.result(body.apply("Relu", part, name="more"), "more_result")
    after = body.apply("Add", count, body.constant(np.int64(step)), name="after")
    result = body.result(after, "after_result")
    small = body.apply("Less", after, body.constant(np.int64(bound)), element_type="boolean", name="small")
    goes_on = body.result(small, "small_result")
    start = net.constant(np.int64(2), name="start")
    entries = [replace(sliced(x, part, 0, **cut), back=more), carried(start, count, result)]
    net.result(net.loop("counts", body, -1, True, entries, [last(result)], goes_on)[0])
    return net.read(folder)


@pytest.mark.parametrize("view", ["model", "rolled", "ports", "unrolled"])
def test_every_view_says_what_has_no_effect_and_what_the_condition_allows(view: str, tmp_path: Path) -> None:
    """after = 5, 8, 11 in iterations 0, 1, 2; the last is not below 11."""
    inputs = {"x": np.ones(9, np.float32)} if view == "unrolled" else None
    made = draw(counting(tmp_path, 11, 3), inputs, view=view)
    lines = {line for frame in made.figure.clusters for line in frame.lines} | set(made.figure.facts)
    assert "no limit but its condition: at most 3 iterations (count + 3 < 11)" in lines
    no_effect = "back edge more_result → part has no effect: the Parameter is sliced, so each iteration gets its slice"
    assert no_effect in lines
    if view != "unrolled":
        assert [edge.kind for edge in made.figure.edges if edge.kind is EdgeKind.NO_EFFECT] == [EdgeKind.NO_EFFECT]
        assert 'class="cross"' in made.text("svg")


def test_a_figure_says_where_the_rule_books_differ(tmp_path: Path) -> None:
    figure = draw(counting(tmp_path, 11, 3, start=1), view="rolled").figure
    assert any("has start 1" in line and "OpenVINO" in line for line in figure.clusters[0].lines)
    plain = draw(counting(tmp_path, 11, 3), view="rolled").figure
    assert not any("OpenVINO" in line for line in plain.clusters[0].lines)


def test_without_an_iteration_the_port_map_has_the_values_that_go_straight_through() -> None:
    made = draw(sample("while_loop"), {"start": np.int64(1)}, view="unrolled")
    figure = made.figure
    assert [frame.label for frame in figure.clusters] == ["body of 6 operations, not run"]
    lines = {node.label: node.lines for node in figure.nodes}
    assert lines["output 0 → steps_taken"] == ("i64[] = 0",) and lines["output 1 → highest"] == ("i64[] = 1",)
    assert lines["output 2 → numbers"] == ("i64[0]",) and lines["none_yet"] == ("input 3: i64[] = 0",)
    carried = [node.lines for node in figure.nodes if node.role is PortRole.CARRIED and node.cluster]
    assert carried == [("i64[]", "first value = last value")] * 3
    assert list(geometry.faults(Drawing(made.text("svg")))) == []


def test_why_a_crossed_back_edge_has_no_effect_stands_in_its_frame(tmp_path: Path) -> None:
    net = Graph()
    x, h0, body = net.parameter("x", dims=(3, 2)), net.parameter("h0", dims=(1, 2)), net.body()
    row, h = body.parameter("row", dims=(1, 2)), body.parameter("h", dims=(1, 2))
    out = body.result(body.apply("Add", row, h, name="sum"), "row_next")
    (found,) = net.tensor_iterator("rows", body, [sliced(x, row), carried(h0, h, out)], [joined(out)])
    net.result(found, "y")
    path = net.write(tmp_path)
    text, edge = path.read_text(encoding="utf-8"), f'<edge from-layer="{out.layer}" to-layer="{row.layer}"'
    begin = text.index("<back_edges>") + len("<back_edges>")
    path.write_text(f"{text[:begin]}{edge}/>{text[begin:]}", encoding="utf-8")
    for options in ({}, {"preset": "paper"}, {"preset": "docs"}):
        drawing = Drawing(draw(path, view="rolled", **options).text("svg"))
        assert list(geometry.faults(drawing)) == []
        told = " ".join(word.text for frame in drawing.frames.values() for word in frame.words)
        assert "row_next → row has no effect: the Parameter is sliced, so each iteration gets its slice" in told
        (wire,) = [wire for wire in drawing.wires if wire.kind == "no-effect"]
        cross, *_ = drawing.root.xpath("//*[@class='cross']/@d")
        numbers = [float(one) for one in re.findall(r"[\d.]+", cross)]
        x, y = sum(numbers[::2]) / len(numbers[::2]), sum(numbers[1::2]) / len(numbers[1::2])
        assert wire.touches(x, y), options


def test_with_inputs_open_sizes_are_those_of_the_run_where_they_are_always_the_same() -> None:
    inputs = {name: dict(np.load(SAMPLES / name / "inputs.npz")) for name in ("nested_loop", "growing_tensor")}
    note = "sizes that the file leaves open are those of the run"
    wanted = stepper.run(SAMPLES / "nested_loop" / "model.xml", inputs["nested_loop"])
    declared = draw(sample("nested_loop"), view="rolled").figure
    seen = draw(sample("nested_loop"), inputs["nested_loop"], view="rolled").figure
    for node in (one for one in seen.nodes if one.id.startswith("out")):
        shape = ",".join(map(str, wanted[node.label].shape))
        assert node.lines[0].endswith(f"[{shape}]") and "?" in declared.by_id[node.id].lines[0]
    assert note in seen.notes and note not in declared.notes
    grown = draw(sample("growing_tensor"), inputs["growing_tensor"], view="rolled", values="shape").figure
    (inner,) = (node.lines for node in grown.nodes if node.label == "sequence" and node.cluster)
    assert "i64[?]" in inner, "it is longer in each iteration"
    made = stepper.run(SAMPLES / "growing_tensor" / "model.xml", inputs["growing_tensor"])["sequence"]
    assert grown.by_id["out0"].lines == (f"i64[{len(made)}]",)


@pytest.mark.parametrize(
    ("name", "loop", "said"),
    [
        ("for_loop", "years", "The body of Loop 'years': 14 layers and 1 back edge, which is dashed and leads from"),
        ("while_loop", "until_one", "17 layers and 3 back edges, which are dashed and lead from"),
        ("while_loop", "number_next", "If 'number_next': 4 layers and 6 layers. then runs if"),
    ],
)
def test_descriptions_count_layers_and_back_edges(name: str, loop: str, said: str) -> None:
    assert said in picture(name, "rolled", loop=loop).figure.description
