"""An unrolled figure says which side of an If ran, how often an inner loop did, and what controls the loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stepper.export.exporter import draw
from stepper.export.figures.figure import Figure, InnerBody, NodeKind
from stepper.export.layout.arrangements import arrange_iterations
from stepper.export.options import ConstantStyle, ValueDetail
from stepper.export.picture import FigureContent
from stepper.ir.model import Graph as ModelGraph
from tests.export.runs import NAMES, SAMPLES, sample, unrolled
from tests.export.steps.pages import page_data, states_at
from tests.models import Graph, Side, Value, carried, last
from tests.tables import each_row

DEEP = FigureContent(depth=9, values=ValueDetail.FULL)


def collatz(start: int, count: int) -> list[int]:
    numbers = [start]
    for _ in range(count):
        numbers.append(numbers[-1] // 2 if numbers[-1] % 2 == 0 else 3 * numbers[-1] + 1)
    return numbers


def sides(figure: Figure) -> dict[str, list[tuple[str, bool]]]:
    found: dict[str, list[tuple[str, bool]]] = {}
    for frame in figure.clusters:
        if frame.kind is NodeKind.SIDE:
            found.setdefault(frame.id.partition(".")[0], []).append((frame.label, frame.idle))
    return found


def test_the_side_of_an_if_that_ran_is_drawn_with_its_values_and_the_other_is_idle() -> None:
    figure = unrolled("while_loop", "0:12", DEEP)
    numbers = collatz(27, 12)
    for step, stage in enumerate(f"i{k}" for k in range(12)):
        even = numbers[step] % 2 == 0
        ran, idle = ("then", "else") if even else ("else", "then")
        assert sorted(sides(figure)[stage]) == sorted([(f"{ran} ran", False), (f"{idle} did not run", True)])
        inside = [
            node for node in figure.nodes if node.cluster.startswith(f"{stage}.") and node.kind is NodeKind.RESULT
        ]
        assert {node.idle for node in inside} == {True, False}
        (result,) = (node for node in inside if not node.idle)
        assert result.cluster.endswith(ran)
        assert result.lines == (f"i64[] {numbers[step + 1]}",)
        assert all(not node.lines for node in inside if node.idle)


def test_a_folded_if_says_which_side_ran() -> None:
    figure = unrolled("while_loop", "0:12")
    shown = [node.lines[0] for node in figure.nodes if node.kind is NodeKind.BRANCH]
    assert shown == ["then ran" if number % 2 == 0 else "else ran" for number in collatz(27, 11)]


def test_a_group_of_operations_is_no_if() -> None:
    figure = unrolled("date_normaliser", "0:2", FigureContent(depth=0, carried=True))
    groups = [node for node in figure.nodes if node.kind is NodeKind.GROUP]
    assert groups and not any(node.lines for node in groups)


@each_row("depth", [0, 1])
def test_an_inner_loop_says_how_often_it_ran(depth: int) -> None:
    """Bubble sort: each pass compares one pair less."""
    figure = unrolled("nested_loop", "0:3", FigureContent(depth=depth))
    if depth:
        shown = [frame.label for frame in figure.clusters if frame.kind is NodeKind.LOOP]
    else:
        shown = [node.lines[0] for node in figure.nodes if node.kind is NodeKind.LOOP]
    assert [re.findall(r"[0-9] iterations$", text) for text in shown] == [
        ["4 iterations"],
        ["3 iterations"],
        ["2 iterations"],
    ]


@each_row("values", list(ValueDetail))
@each_row("name", NAMES, quick=4)
def test_iterations_with_bodies_inside_are_drawn_alike(name: str, values: ValueDetail) -> None:
    drawing = arrange_iterations(unrolled(name, "0:3,-1", FigureContent(depth=9, values=values)))
    outer = {frame.cluster.id: frame for frame in drawing.frames if not frame.cluster.parent}
    shapes: dict[str, list[tuple[object, ...]]] = {}
    for id, shape in [
        *((box.node.id, box) for box in drawing.boxes),
        *((frame.cluster.id, frame) for frame in drawing.frames),
    ]:
        stage, _, tail = id.partition(".")
        if tail:
            frame = outer[stage]
            place = (shape.x - frame.x, shape.y - frame.y, shape.width, shape.height)
            shapes.setdefault(stage, []).append((tail, *place))
    first, *others = shapes.values()
    assert all(other == first for other in others)


Maker = Callable[[Graph, Value], Value]


def choose(graph: Graph, value: Value, limit: float, then: Maker, otherwise: Maker) -> Value:
    """An If: what is made of a value above the limit, and of another."""
    above = graph.apply("Greater", value, graph.constant(np.float32(limit)), type="boolean", name=f"above_{limit:g}")
    sides = []
    for make in (then, otherwise):
        side = graph.body()
        inner = side.parameter("inner", "f32", ())
        sides.append(Side(side, [(value, inner)], [side.result(make(side, inner))]))
    return graph.branch(f"choice_{limit:g}", above, *sides)[0]


def less(amount: float) -> Maker:
    return lambda side, value: side.apply("Subtract", value, side.constant(np.float32(amount)))


def test_an_if_in_an_if_is_idle_with_the_side_that_it_stands_in(tmp_path: Path) -> None:
    """-1, 3, 9, 15, 0: what is above 0 grows by 6, but above 10 it loses 15; any other gains 4."""
    graph = Graph()
    x = graph.parameter("x", "f32", ())
    body = graph.body()
    state = body.parameter("state", "f32", ())
    after = choose(body, state, 0, lambda side, value: choose(side, value, 10, less(15), less(-6)), less(-4))
    result = body.result(after, "next")
    graph.result(graph.loop("loop", body, 5, True, [carried(x, state, result)], [last(result)])[0])
    made = draw(graph.read(tmp_path), {"x": np.float32(-1)}, iterations="", depth=9, values="full")
    ran = [[label for label, idle in found if not idle] for found in sides(made.figure).values()]
    assert [sorted(labels) for labels in ran] == [
        ["else ran"],
        ["else ran", "then ran"],
        ["else ran", "then ran"],
        ["then ran", "then ran"],
        ["else ran"],
    ]
    assert all(len(found) == 4 for found in sides(made.figure).values())
    for frame in made.figure.clusters:
        if frame.parent and made.figure.clusters_by_id[frame.parent].idle:
            assert frame.idle, frame.id


def test_trip_count_and_condition_lead_into_the_first_iteration_with_their_values() -> None:
    boxes = FigureContent(depth=0, constants=ConstantStyle.BOX)
    figure = unrolled("while_loop", "0:2", boxes)
    found = {edge.label: edge for edge in figure.edges if edge.label in ("trip count", "initial condition")}
    assert {edge.target for edge in found.values()} == {"i0"}
    texts = [figure.by_id[found[name].source].lines[0] for name in ("trip count", "initial condition")]
    assert texts == ["trip count -1: no limit", "initial condition true"]
    largest = {line for node in unrolled("torch_power_iteration", "0", boxes).nodes for line in node.lines}
    assert "trip count: the largest i64, no limit" in largest
    (years,) = (edge for edge in unrolled("for_loop", "5", boxes).edges if edge.label == "trip count")
    assert years.target == "e0", "iterations left out are what it enters where they are the first"


def test_what_controls_a_loop_is_in_words_where_it_is_constant_and_a_box_where_it_is_computed(tmp_path: Path) -> None:
    """A trip count of 3 that comes from outside; the condition of the body and the initial one are true."""
    graph = Graph()
    x, count = graph.parameter("x", "f32", ()), graph.parameter("count", "i64", ())
    body = graph.body()
    state = body.parameter("state", "f32", ())
    result = body.result(body.apply("Relu", state), "next")
    fixed = body.result(body.constant(np.array([2.5], np.float32)), "fixed")
    outs = graph.loop("loop", body, count, True, [carried(x, state, result)], [last(result), last(fixed)])
    for out in outs:
        graph.result(out)
    model, inputs = graph.read(tmp_path), {"x": np.float32(1), "count": np.int64(3)}
    made = {view: draw(model, inputs, view=view).figure for view in ("rolled", "unrolled")}
    for figure in made.values():
        assert not any(node.kind is NodeKind.CONSTANT for node in figure.nodes)
        assert not {"true", "2.5"} & {node.label for node in figure.nodes}
    (loop,) = (layer for layer in model.graph.layers if layer.bodies)
    ends = {entry.purpose: entry.result for entry in loop.bodies[0].outputs if entry.purpose}
    rolled, run = made["rolled"].by_id, made["unrolled"].by_id
    assert rolled[f"{loop.id}.n{ends['execution_condition']}"].lines == ("execution condition", "= true")
    assert rolled[f"{loop.id}.n{fixed.layer}"].lines[-1] == "= 2.5"
    assert run[f"i0.n{ends['execution_condition']}"].lines == ("condition: true",)
    assert any(line == "= 2.5" for line in run[f"i1.n{fixed.layer}"].lines)
    assert [edge.label for edge in made["unrolled"].edges if edge.target == "i0"] == ["trip count"]
    assert {"starts always", "no condition ends it"} <= {*made["unrolled"].facts}
    boxed = draw(model, inputs, view="unrolled", constants="box").figure
    assert {edge.label for edge in boxed.edges if edge.target == "i0"} == {"trip count", "initial condition"}
    assert sum(node.kind is NodeKind.CONSTANT for node in boxed.nodes) == 2 * 3


def test_a_condition_that_is_false_from_the_beginning_is_drawn_without_an_iteration(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", ())
    body = graph.body()
    state = body.parameter("state", "f32", ())
    result = body.result(body.apply("Relu", state), "next")
    graph.result(graph.loop("loop", body, 5, False, [carried(x, state, result)], [last(result)])[0])
    made = draw(graph.read(tmp_path), {"x": np.float32(1)}, view="unrolled")
    assert "initial condition false" in made.figure.facts
    assert "initial condition false" in made.text("svg")


def test_the_page_with_the_slider_says_which_side_ran() -> None:
    with np.load(SAMPLES / "while_loop" / "inputs.npz") as arrays:
        made = draw(sample("while_loop"), dict(arrays), iterations="0:5", depth=1)
    data = page_data(made.text("html"))
    shown = [
        [title for look, title in states_at(data["frames"], index) if "side" in look and "idle" not in look]
        for index in range(5)
    ]
    assert shown == [["then ran"] if number % 2 == 0 else ["else ran"] for number in collatz(27, 4)]
    assert '<g class="data idle">' not in made.text("html")
    assert '<g class="data idle">' in made.text("svg")


@each_row("name", NAMES)
def test_what_is_drawn_of_a_body_says_which_bodies_lead_to_it(name: str) -> None:
    """The bodies are those of the file around a layer; ids follow from them, and nothing reads ids."""
    model = sample(name)
    figure = draw(model, view="model", depth=9, blocks="all").figure
    graphs: list[tuple[tuple[InnerBody, ...], ModelGraph]] = [((), model.graph)]
    for inside, graph in graphs:
        boxes = [node for node in figure.nodes if node.site.inside == inside and node.id.rpartition(".")[2][0] == "n"]
        assert {node.title.partition(" '")[0] for node in boxes} <= {f"layer {layer.id}" for layer in graph.layers}
        assert len(boxes) + sum(frame.site.inside == inside for frame in figure.clusters) > 0
        for layer in graph.layers:
            for body in layer.bodies:
                shown = InnerBody(layer.id, body.role)
                graphs.append(((*inside, shown), body.graph))
                (frame,) = (one for one in figure.clusters if one.site.inside == inside and one.shows == shown)
                assert frame.kind is (NodeKind.LOOP if layer.is_loop else NodeKind.SIDE)
    assert all(one.site.id == one.id for one in (*figure.nodes, *figure.clusters))
