"""The unrolled trace as a graph: every back edge between neighbours once, every slice and piece where it belongs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.export.figures.figure import BodyEnds, EdgeKind, Figure, NodeKind
from stepper.export.layout.arrangements import arrange_iterations, arranged
from stepper.export.layout.figure_layout import FigureLayout
from stepper.export.options import ValueDetail
from stepper.export.picture import FigureContent
from tests.export.drawings import cells_of
from tests.export.runs import NAMES, sample, trace, unrolled
from tests.models import Graph, backwards, carried, joined, last, sliced
from tests.tables import each_row

ITERATIONS = ["0:3,-1", "", "2:4", "-2", "0"]


def stages(figure: Figure) -> list[str]:
    return [cluster.id for cluster in figure.clusters if not cluster.parent]


def stage_of(figure: Figure, id: str) -> str:
    while id in figure.by_id or figure.clusters_by_id[id].parent:
        id = figure.parent(id)
    return id


@each_row("iterations", ITERATIONS)
@each_row("name", NAMES, quick=4)
def test_every_back_edge_joins_each_two_neighbours_exactly_once(name: str, iterations: str) -> None:
    figure = unrolled(name, iterations)
    body = trace(name, iterations).loop.body
    found = Counter(
        (stage_of(figure, edge.source), stage_of(figure, edge.target), edge.body)
        for edge in figure.edges
        if edge.kind is EdgeKind.CARRIED
    )
    wanted = {
        (before, after, BodyEnds(back.from_layer, back.to_layer))
        for before, after in pairwise(stages(figure))
        for back in body.back_edges
    }
    assert found == dict.fromkeys(wanted, 1)
    for edge in figure.edges:
        if edge.kind is EdgeKind.CARRIED:
            assert edge.body is not None
            sides = ((edge.source, edge.body.result), (edge.target, edge.body.parameter))
            for end, layer in sides:
                assert end in (f"{stage_of(figure, end)}.n{layer}", stage_of(figure, end))


@each_row("iterations", ITERATIONS)
@each_row("name", NAMES)
def test_iterations_shown_and_left_out_are_all_there_are_in_order(name: str, iterations: str) -> None:
    found = trace(name, iterations)
    figure = unrolled(name, iterations)
    numbers: list[int] = []
    for cluster in figure.clusters:
        if cluster.kind is NodeKind.ITERATION:
            numbers.append(int(cluster.id.removeprefix("i")))
        elif cluster.kind is NodeKind.ELLIPSIS:
            begin = int(cluster.id.removeprefix("e"))
            numbers += range(begin, next(end for start, end in found.left_out if start == begin))
    assert numbers == list(range(found.count))


@each_row("name", NAMES)
def test_what_enters_leads_to_the_first_iteration_alone_but_slices(name: str) -> None:
    figure = unrolled(name, "0:2,-1")
    first = stages(figure)[0]
    for edge in figure.edges:
        if edge.source.startswith("in") and edge.kind is not EdgeKind.SLICE:
            assert stage_of(figure, edge.target) == first


def test_a_slice_says_which_elements_it_has_backwards_too() -> None:
    figure = unrolled("reverse", "")
    labels = [edge.label for edge in figure.edges if edge.kind is EdgeKind.SLICE]
    assert labels == [f"[{7 - k}:{8 - k}] along axis 1" for k in range(8)]
    nodes = [node for node in figure.nodes if node.kind is NodeKind.PARAMETER and node.label == "reward"]
    assert [node.lines[0] for node in nodes] == [f"[{7 - k}:{8 - k}] of 8, axis 1" for k in range(8)]


def test_the_order_of_a_concatenation_follows_the_stride() -> None:
    reverse = next(node for node in unrolled("reverse", "").nodes if node.kind is NodeKind.CONCATENATION)
    assert reverse.lines[0] == "Concat, axis 1, reversed: S[7], S[6], ..., S[0]"
    forward = next(node for node in unrolled("onnx_moving_average", "").nodes if node.kind is NodeKind.CONCATENATION)
    assert forward.lines[0] == "Concat, axis 0: S[0], S[1], ..., S[5]"


@each_row("name", NAMES)
def test_every_piece_is_there_once_also_of_iterations_left_out(name: str) -> None:
    figure = unrolled(name, "0:2,-1")
    count = trace(name, "0").count
    for output in (node.id for node in figure.nodes if node.kind is NodeKind.CONCATENATION):
        pieces: list[int] = []
        for edge in figure.edges:
            if edge.kind is EdgeKind.PIECE and edge.target == output:
                ends = [int(word.strip("S[]")) for word in edge.label.split(" to ")]
                pieces += range(ends[0], ends[-1] + 1)
        assert pieces == list(range(count))


@each_row(
    ("name", "source", "words"),
    [
        (
            "while_loop",
            "i110.n13",
            ("condition became false", "number' = 1, so NotEqual(number', 1) is false"),
        ),
        (
            "nested_loop",
            "i2.n11",
            ("condition became false", "pairs_of_neighbours = 0, so Greater(pairs_of_neighbours, 0) is false"),
        ),
        ("reverse", "i7", ("every slice was used",)),
        ("for_loop", "i9", ("trip count reached",)),
    ],
)
def test_what_ended_the_loop_is_drawn_in_values(name: str, source: str, words: tuple[str, ...]) -> None:
    figure = unrolled(name, "0,-1")
    (edge,) = [edge for edge in figure.edges if edge.kind is EdgeKind.ENDS]
    assert (edge.source, edge.target) == (source, "end")
    assert figure.by_id["end"].lines == words


def test_what_kept_a_loop_from_beginning_is_said_in_values() -> None:
    made = draw(sample("while_loop"), {"start": np.int64(1)}, view="unrolled")
    assert "condition was false at the start" in made.figure.facts
    assert "no iteration ran: start = 1, so NotEqual(start, 1) is false" in made.figure.facts
    page = draw(sample("while_loop"), {"start": np.int64(5)}, view="unrolled", direction="right", width=317)
    assert page.page is not None and "number' = 1, so NotEqual(number', 1) is false" in page.page.description


def test_slices_of_several_elements_and_pieces_against_numpy(tmp_path: Path) -> None:
    graph = Graph()
    x, start = graph.parameter("x", "f32", (3, 6)), graph.parameter("start", "f32", (3, 2))
    body = graph.body()
    part, state = body.parameter("part", "f32", (3, 2)), body.parameter("state", "f32", (3, 2))
    total = body.apply("Add", part, state, name="total")
    result = body.result(total, "total_result")
    entries = [sliced(x, part, axis=1, **backwards(2)), carried(start, state, result)]
    for value in graph.tensor_iterator("sums", body, entries, [last(result), joined(result, axis=1, **backwards(2))]):
        graph.result(value)
    data = np.arange(18, dtype=np.float32).reshape(3, 6)
    picture = draw(graph.read(tmp_path), {"x": data, "start": np.zeros((3, 2), np.float32)}, values="full")
    labels = [edge.label for edge in picture.figure.edges if edge.kind is EdgeKind.SLICE]
    assert labels == ["[4:6] along axis 1", "[2:4] along axis 1", "[0:2] along axis 1"]
    parts = [node for node in picture.figure.nodes if node.label == "part"]
    for node, begin in zip(parts, (4, 2, 0), strict=True):
        numbers = node.lines[-1].replace("[", " ").replace("]", " ").split()
        assert [float(number) for number in numbers] == data[:, begin : begin + 2].reshape(-1).tolist()


def test_a_loop_without_an_iteration_is_a_figure_too(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (1,))
    body = graph.body()
    state = body.parameter("state", "f32", (1,))
    result = body.result(body.apply("Relu", state, name="next"), "next_result")
    graph.result(graph.loop("never", body, 0, True, [carried(x, state, result)], [last(result)])[0])
    picture = draw(graph.read(tmp_path), {"x": np.ones(1, np.float32)})
    assert "No iteration ran: trip count is 0" in picture.figure.description
    assert [frame.label for frame in picture.figure.clusters] == ["body of 1 operation, not run"]
    assert "<svg" in picture.text("svg")


def test_a_run_that_fails_is_drawn_as_far_as_it_came(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (4,))
    body = graph.body()
    row = body.parameter("row", "f32", (1,))
    result = body.result(body.apply("Relu", row, name="next"), "next_result")
    outputs = graph.loop("too_long", body, 9, True, [sliced(x, row)], [last(result), joined(result)])
    for value in outputs:
        graph.result(value)
    figure = draw(graph.read(tmp_path), {"x": np.ones(4, np.float32)}, iterations="").figure
    assert stages(figure) == ["i0", "i1", "i2", "i3"]
    assert figure.by_id["end"].label == "after 4 iterations"
    assert figure.facts[0].startswith("stopped in iteration 4: ")
    concatenation = next(node for node in figure.nodes if node.kind is NodeKind.CONCATENATION)
    assert concatenation.lines[0] == "Concat, axis 0: S[0], S[1], S[2], S[3] so far"
    assert not [node for node in figure.nodes if node.kind is NodeKind.OUTPUT]


def test_anomalies_are_marked_where_they_begin(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (2,))
    body = graph.body()
    state = body.parameter("state", "f32", (2,))
    result = body.result(body.apply("Log", state, name="log"), "log_result")
    graph.result(graph.loop("logs", body, 3, True, [carried(x, state, result)], [last(result)])[0])
    figure = draw(graph.read(tmp_path), {"x": np.array([1, 20], np.float32)}).figure
    marks = {node.id: node.marks for node in figure.nodes if node.marks}
    logs = [
        node.id for node in figure.nodes if node.label.lower().startswith("log") and node.kind is NodeKind.OPERATION
    ]
    assert [marks.get(id) for id in logs] == [None, ("1 Inf",), ("1 NaN",)]


def test_a_shape_that_changed_is_marked() -> None:
    figure = unrolled("growing_tensor", "0:3")
    changed = [node.marks for node in figure.nodes if node.label == "sequence"]
    assert changed == [(), ("shape was [2]",), ("shape was [3]",)]


def test_an_inner_loop_is_drawn_of_the_iteration_asked_for() -> None:
    first, second = (trace("nested_loop", "", loop=f"passes@{k}::pairs_of_neighbours") for k in (0, 1))
    assert (first.count, second.count) == (4, 3)
    assert (first.around, second.around) == ((0,), (1,))
    with pytest.raises(UsageError, match="never enters"):
        trace("nested_loop", "", loop="passes@9::pairs_of_neighbours")


@each_row("values", list(ValueDetail))
@each_row("name", NAMES, quick=4)
def test_all_iterations_are_drawn_alike_and_nothing_overlaps(name: str, values: ValueDetail) -> None:
    figure = unrolled(name, "0:2,-1", FigureContent(depth=0, values=values))
    drawing = arrange_iterations(figure)
    frames = {frame.cluster.id: frame for frame in drawing.frames}
    shapes: dict[str, list[tuple[str, int, int, int, int]]] = {}
    for box in drawing.boxes:
        stage, _, tail = box.node.id.partition(".")
        if tail:
            frame = frames[stage]
            shapes.setdefault(stage, []).append((tail, box.x - frame.x, box.y - frame.y, box.width, box.height))
    first, *others = shapes.values()
    assert all(other == first for other in others)
    assert_boxes_apart(drawing)


def assert_boxes_apart(drawing: FigureLayout) -> None:
    taken: dict[tuple[int, int], str] = {}
    bottom: set[tuple[int, int]] = set()
    for box in drawing.boxes:
        for x in range(box.x, box.x + box.width):
            for y in range(box.y, box.y + box.height):
                assert taken.setdefault((x, y), box.node.id) == box.node.id
            bottom.add((x, box.y + box.height - 1))
        assert box.x >= 0
        assert box.x + box.width <= drawing.width
    for line in drawing.lines:
        for segment in line.segments:
            for cell in cells_of(segment):
                assert cell not in taken or cell in bottom, f"a line runs through {taken[cell]} at {cell}"
                assert 0 <= cell[0] < drawing.width and 0 <= cell[1] < drawing.height


def test_an_if_has_no_iterations_to_unroll() -> None:
    with pytest.raises(UsageError, match="rolled"):
        trace("while_loop", "", loop="number_next")


def test_names_that_mean_nothing_or_too_much_list_what_there_is() -> None:
    from stepper.export.figures.loop_trace import find_loop

    with pytest.raises(UsageError, match=r"'passes', 'passes::pairs_of_neighbours'"):
        find_loop(sample("nested_loop"), "nothing")


def test_back_edges_without_effect_are_crossed_out_between_the_iterations(tmp_path: Path) -> None:
    graph = Graph()
    x, body = graph.parameter("x", "f32", (3, 2)), graph.body()
    row = body.parameter("row", "f32", (1, 2))
    out = body.result(body.apply("Tanh", row), "row_next")
    graph.result(graph.tensor_iterator("rows", body, [sliced(x, row)], [joined(out)])[0], "y")
    path = graph.write(tmp_path)
    edge = f'<edge from-layer="{out.layer}" to-layer="{row.layer}"/></back_edges>'
    path.write_text(path.read_text(encoding="utf-8").replace("</back_edges>", edge), encoding="utf-8")
    figure = draw(path, {"x": np.ones((3, 2), np.float32)}, view="unrolled").figure
    lost = [(one.source, one.target) for one in figure.edges if one.kind is EdgeKind.NO_EFFECT]
    assert lost == [(f"i{k}.n{out.layer}", f"i{k + 1}.n{row.layer}") for k in range(2)]
    assert sum(bool(line.crosses) for line in arranged(figure).lines) == 2


def test_a_loop_that_a_run_showed_never_begins_has_a_dashed_frame_in_static_views() -> None:
    for view in ("model", "rolled"):
        for start, idle in ((1, True), (5, False)):
            frame = draw(sample("while_loop"), {"start": np.int64(start)}, view=view).figure.clusters[0]
            assert (frame.idle, "did not start in this run" in frame.lines) == (idle, idle)
        assert not draw(sample("while_loop"), view=view).figure.clusters[0].idle


@each_row("values", [ValueDetail.SHAPE, ValueDetail.FULL])
def test_an_operation_of_several_outputs_shows_all_of_them(values: ValueDetail, tmp_path: Path) -> None:
    """Two numbers and three, which change their places."""
    net = Graph()
    x, count = net.parameter("x", "f32", (5,)), net.constant(np.int64(2))
    body = net.body()
    state = body.parameter("state", "f32", (5,))
    parts = body.constant(np.int64(0)), body.constant(np.array([2, 3]))
    first = body.apply("VariadicSplit", state, *parts, outputs=2, dims=(2,))
    second = replace(first, port=first.port + 1, dims=(3,))
    result = body.result(body.apply("Concat", second, first, dims=(5,), axis=0), "next")
    net.result(net.loop("loop", body, count, True, [carried(x, state, result)], [last(result)])[0])
    numbers = np.array([1, 2, 3, 4, 5], np.float32)
    figure = draw(net.read(tmp_path), {"x": numbers}, view="unrolled", values=values).figure
    (box,) = (node for node in figure.nodes if node.id.startswith("i0.") and "VariadicSplit" in node.title)
    if values is ValueDetail.SHAPE:
        assert box.lines == ("f32[2]", "f32[3]")
    else:
        assert box.lines == ("f32[2]", "[1 2]", "f32[3]", "[3 4 5]")
