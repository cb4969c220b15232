"""A graph as it is drawn: folding loses nothing and makes no circle; every box has a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepper
from stepper.export.exporter import draw
from stepper.export.figures.drawn_graph import (
    WHOLE_EXPRESSIONS,
    FoldingOptions,
    drawn_graph,
    labels_of,
    shortened,
    shortened_names,
)
from stepper.export.figures.figure import NodeKind
from stepper.export.layout.layered import lay_out
from stepper.ir.model import Body, Graph
from stepper.query import short_names
from stepper.query.short_names import short_names_of
from tests.export.drawings import faults
from tests.export.runs import NAMES, SAMPLES, sample
from tests.models import Graph as Builder
from tests.models import Value, carried, last
from tests.tables import each_row

GRAPHS: list[tuple[str, Graph, Body | None]] = []
for name in NAMES:
    for path, graph in sample(name).graphs():
        body = next((body for body in path[-1].bodies if body.graph is graph), None) if path else None
        GRAPHS.append((f"{name}-{len(path)}", graph, body))


def foldings(graph: Graph) -> list[FoldingOptions]:
    hidden = frozenset(layer.id for layer in graph.layers if layer.id % 3)
    everything = frozenset(layer.id for layer in graph.layers)
    options = [
        FoldingOptions(),
        FoldingOptions(constants=False, accumulators=False),
        FoldingOptions(hidden=hidden),
        FoldingOptions(hidden=everything),
    ]
    return [*options, FoldingOptions(expressions=3), FoldingOptions(expressions=WHOLE_EXPRESSIONS)]


@each_row(("graph", "body"), [case[1:] for case in GRAPHS], ids=[case[0] for case in GRAPHS])
def test_folding_loses_nothing(graph: Graph, body: Body | None) -> None:
    for folding in foldings(graph):
        drawn = drawn_graph(graph, body, folding)
        held = [layer for node in drawn.nodes for layer in node.layers]
        folded = {constant for node in drawn.nodes for constant in node.constants}
        assert len(held) == len(set(held))
        assert set(held) | folded == {layer.id for layer in graph.layers}
        assert set(held).isdisjoint(folded)
        between = {(edge.source, edge.target) for edge in drawn.edges}
        for layer in graph.layers:
            for source in graph.sources[layer.id]:
                if source is not None and source.layer not in folded:
                    ends = drawn.box_of[source.layer], drawn.box_of[layer.id]
                    assert ends[0] == ends[1] or ends in between
        assert all(node.key == node.layers[0] for node in drawn.nodes)


@each_row(("graph", "body"), [case[1:] for case in GRAPHS], ids=[case[0] for case in GRAPHS])
def test_what_is_folded_can_be_drawn_without_a_fault(graph: Graph, body: Body | None) -> None:
    for folding in foldings(graph):
        drawn = drawn_graph(graph, body, folding)
        sizes = {node.key: (len(node.label) + 4, 3) for node in drawn.nodes}
        assert len({node.label for node in drawn.nodes}) == len(drawn.nodes)
        assert faults(lay_out(sizes, drawn.edges, drawn.first, drawn.last), drawn.edges, sizes) == []


def test_every_back_edge_is_kept() -> None:
    for _, graph, body in GRAPHS:
        if body is not None:
            ends = {(edge.result, edge.parameter) for edge in drawn_graph(graph, body).back_edges}
            assert ends == {(edge.from_layer, edge.to_layer) for edge in body.back_edges}


def test_the_shape_arithmetic_of_the_decoder_is_folded() -> None:
    _, graph, body = next(case for case in GRAPHS if case[0] == "date_normaliser-1")
    kinds = [node.kind for node in drawn_graph(graph, body).nodes]
    assert kinds.count(NodeKind.SHAPES) == 2
    assert kinds.count(NodeKind.ACCUMULATOR) == 3
    assert len(kinds) < len(graph.layers) * 0.6


def test_a_value_that_is_computed_with_is_no_shape_arithmetic(tmp_path: Path) -> None:
    graph = Builder()
    x = graph.parameter("x", "f32", (2, 3))
    shape = graph.apply("ShapeOf", x, type="i64", dims=(2,), name="shape")
    doubled = graph.apply("Add", shape, shape, name="doubled")
    graph.result(graph.apply("Convert", doubled, type="f32", destination_type="f32", name="number"))
    model = graph.read(tmp_path)
    assert NodeKind.SHAPES not in [node.kind for node in drawn_graph(model.graph).nodes]


def test_a_value_that_something_else_reads_is_no_accumulator(tmp_path: Path) -> None:
    graph = Builder()
    x = graph.parameter("x", "f32", (1,))
    body = graph.body()
    kept = body.parameter("kept", "f32", (-1,))
    longer = body.apply("Concat", kept, body.constant(np.ones(1, np.float32)), axis=0, name="longer")
    body.result(body.apply("Relu", kept, name="other"), "other_result")
    result = body.result(longer, "longer_result")
    graph.result(graph.loop("grow", body, 3, True, [carried(x, kept, result)], [last(result)])[0])
    layer = next(layer for layer in graph.read(tmp_path).graph.layers if layer.is_loop)
    assert NodeKind.ACCUMULATOR not in [node.kind for node in drawn_graph(layer.bodies[0].graph, layer.bodies[0]).nodes]


@each_row("name", NAMES)
def test_a_box_has_the_name_that_the_screen_shows_behind_its_type(name: str) -> None:
    for program in stepper.compile_model(sample(name)).programs:
        labels, names = labels_of(program.graph), short_names_of(program.graph)
        for layer in program.graph.layers:
            short, label = names[layer.id], labels[layer.id]
            said = (short, f"{layer.type} {short}")
            assert (
                "…" in label or label in said or label.startswith(tuple(f"{text} (" for text in said)) or "#" in label
            )


def test_an_operation_that_a_converter_named_says_which_constant_it_reads(tmp_path: Path) -> None:
    graph = Builder()
    x = graph.parameter("x", "f32", (2, 2))
    weights = [graph.constant(np.ones((2, 2), np.float32), name=f"cell.{name}") for name in ("W", "R")]
    for index, weight in enumerate(weights):
        x = graph.apply("MatMul", x, weight, name=f"MatMul_{index}")
    x = graph.apply("MatMul", x, weights[0], name="projection")
    graph.result(x)
    labels = set(labels_of(graph.read(tmp_path).graph).values())
    assert {"MatMul_0 (W)", "MatMul_1 (R)", "MatMul projection"} <= labels


def test_a_label_says_type_and_operand() -> None:
    graph = next(case[1] for case in GRAPHS if case[0] == "while_loop-1")
    labels = set(labels_of(graph).values())
    assert {"number", "FloorMod remainder", "Equal is_even", "keep_going_result"} <= labels


def test_a_long_name_loses_its_middle_and_keeps_its_number() -> None:
    short = shortened("a_very_long_name_of_an_operation_that_goes_on_42")
    assert len(short) == 28 and short.endswith("_on_42") and short.startswith("a_very")


def test_a_long_name_has_its_last_words_where_these_are_its_own() -> None:
    names = [
        "attention_expanded_function_state_in",
        "h_forward_state",
        "c_forward_state",
        "q/MatMul",
        "Parameter_98954",
    ]
    short = shortened_names(names, 11)
    assert short["attention_expanded_function_state_in"] == "…state_in"
    assert len(set(short.values())) == len(names) and max(map(len, short.values())) <= 11


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=7), st.integers(2, 5))
def test_an_expression_is_in_as_few_boxes_as_a_bound_allows(parents: list[int], most: int) -> None:
    """Held against all ways of cutting its tree: operation `i + 1` is read by one before it alone."""
    parents = [min(parent, place) for place, parent in enumerate(parents)]
    inside: dict[int, list[int]] = {}
    for child, parent in enumerate(parents, 1):
        inside.setdefault(parent, []).append(child)
    net, outputs = Builder(), dict[int, Value]()
    x = net.parameter("x", "f32", (2,))
    for node in reversed(range(len(parents) + 1)):
        read = [outputs[child] for child in inside.get(node, ())] or [x]
        outputs[node] = net.apply("Concat", *read, dims=(-1,), axis=0, name=f"at_{node}")
    net.result(outputs[0], "end")
    with TemporaryDirectory() as folder:
        graph = net.read(Path(folder)).graph

    def boxes(cut: tuple[bool, ...]) -> list[int]:
        root = [0]
        for child, parent in enumerate(parents, 1):
            root.append(child if cut[child - 1] else root[parent])
        return list(Counter(root).values())

    cuts = map(boxes, product((False, True), repeat=len(parents)))
    least = min(len(sizes) for sizes in cuts if max(sizes) <= most)
    drawn = drawn_graph(graph, None, FoldingOptions(expressions=most))
    found = [len(node.layers) for node in drawn.nodes if node.kind in (NodeKind.GROUP, NodeKind.OPERATION)]
    assert max(found) <= most and sum(found) == len(parents) + 1 and len(found) == least


def test_figures_of_a_model_derive_the_short_names_of_each_graph_once(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[Sequence[str]] = []
    derive = short_names.short_names

    def counted(names: Sequence[str], others: Collection[str] = ()) -> list[str]:
        derived.append(names)
        return derive(names, others)

    monkeypatch.setattr(short_names, "short_names", counted)
    model = stepper.read_model(SAMPLES / "while_loop" / "model.xml")
    for view in ("model", "rolled", "rolled"):
        draw(model, None, view=view)
    graphs = sum(1 for _ in model.graphs())
    assert 0 < len(derived) <= 2 * graphs, derived  # of its operations, and of its other layers
