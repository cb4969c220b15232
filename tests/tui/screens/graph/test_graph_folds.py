"""Groups of a large graph: by the prefix of names, or stretches; what is searched, what the cursor opens."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.screens.graph.drawing import LINES
from stepper_tui.screens.graph.pane import MOST_BESIDE, BodyGroups, fits

from stepper.debug.debugger import Debugger
from stepper.engine.program import Program
from stepper.export.figures.figure import NodeKind
from tests.models import Graph, carried, last
from tests.tui.driven import Driven, drive
from tests.tui.screens.graph.test_graph_fits import fitted_in, name_of, opened, pane_of, random_body
from tests.tui.wide_models import chain_loop, wide_loop

LINKS = 1_203


def chain() -> Debugger:
    debugger = chain_loop(LINKS)
    debugger.run_to("chain::link_600@3")
    return debugger


def decoder() -> Debugger:
    """A Loop over a decoder of twelve layers, each of two modules of six operations."""
    net = Graph()
    body = net.body()
    h = one = body.parameter("h", "f32", (1, 4))
    for layer in range(12):
        for module in ("attention", "mlp"):
            begin = one
            for index in range(5):
                one = body.apply("Tanh", one, name=f"decoder.layers.{layer}.{module}/aten::tanh/Tanh_{index}")
            one = body.apply("Add", begin, one, name=f"decoder.layers.{layer}.{module}/aten::add/Add")
    following = body.result(body.apply("Tanh", one, name="h_next"), "h_out")
    outer = net.parameter("h0", "f32", (1, 4))
    (output,) = net.loop("deep", body, 3, True, [carried(outer, h, following)], [last(following)])
    net.result(output, "out")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {0: np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)})


def body_of(debugger: Debugger) -> Program:
    return debugger.machine.compiled.programs[1]


# --- what is drawn -------------------------------------------------------------------------------------------------


def test_a_graph_that_is_seen_whole_has_no_group_but_shape_arithmetic() -> None:
    drawing = fitted_in(random_body(3, 30), 97, 42)
    assert all(node.kind is not NodeKind.GROUP for node in drawing.graph.nodes)


def test_a_group_of_operations_that_sizes_and_constants_settle_is_one_box(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    h = body.parameter("h", "f32", (1,))
    eye = body.apply("Exp", body.constant([1.0]), name="eye/first")
    settled = body.apply("Tanh", eye, name="eye/second")
    following = body.result(body.apply("Add", h, body.apply("Add", eye, settled, name="sum"), name="h_next"), "h_out")
    (output,) = net.loop(
        "deep", body, 3, True, [carried(net.parameter("h0", "f32", (1,)), h, following)], [last(following)]
    )
    net.result(output, "out")
    groups = BodyGroups(body_of(Debugger(net.read(tmp_path), {0: np.zeros(1, np.float32)})))
    graph = groups.folded(frozenset())
    (box,) = (node for node in graph.nodes if node.kind is NodeKind.GROUP)
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= set(graph.by_key)
    assert box.name == "eye" and box.key in {edge.source for edge in graph.edges}


@pytest.mark.parametrize("seed", range(12))
def test_every_operation_is_in_a_box_whatever_is_folded(seed: int) -> None:
    program = random_body(seed, 400)
    groups = BodyGroups(program)
    for height in (10, 30, 60):
        graph = groups.folded(opened(groups, 60, height))
        inside = [layer for node in graph.nodes for layer in node.layers]
        assert sorted(inside) == sorted(layer for node in groups.graph.nodes for layer in node.layers)
        assert {(edge.source, edge.target) for edge in graph.edges} == {
            (graph.box_of[edge.source], graph.box_of[edge.target])
            for edge in groups.graph.edges
            if graph.box_of[edge.source] != graph.box_of[edge.target]
        }
    drawing = fitted_in(program, 97, 42)
    assert drawing.manner.form == LINES and len(drawing.graph.nodes) < 3 * 42


def test_modules_are_groups_by_the_prefix_of_their_names() -> None:
    groups = BodyGroups(body_of(decoder()))

    def folded(*opened: str) -> list[str]:
        graph = groups.folded(frozenset(opened))
        return [node.label for node in graph.nodes if node.kind is NodeKind.GROUP]

    assert folded() == ["decoder"]
    (key,) = [node.key for node in groups.graph.nodes if "3.mlp/aten::add" in _name(groups, node.key)]
    outer, layer, module, *_ = groups.around[key]
    assert folded(outer) == [f"layers.{layer}" for layer in range(12)]
    assert folded(outer, layer) == [
        *(f"layers.{one}" for one in range(3)),
        "3.attention",
        "3.mlp",
        *(f"layers.{one}" for one in range(4, 12)),
    ]
    assert folded(outer, layer, module)[3:5] == ["3.attention", "aten::tanh"]


def _name(groups: BodyGroups, key: int) -> str:
    return groups.program.graph.by_id[key].name


def test_many_boxes_without_a_prefix_are_stretches_of_equal_length() -> None:
    groups = BodyGroups(body_of(chain_loop(LINKS)))
    closed = groups.folded(frozenset())
    folded = [node for node in closed.nodes if node.kind is NodeKind.GROUP]
    assert len(folded) <= MOST_BESIDE and {len(node.layers) for node in folded[:-1]} == {len(folded[0].layers)}
    assert folded[1].label.startswith("link_") and " … " in folded[1].label


# --- on the screen -------------------------------------------------------------------------------------------------


def test_groups_unfold_and_fold_and_the_cursor_opens_its_own() -> None:
    async def script(driven: Driven) -> None:
        shown = driven.text("graph")
        assert "{Tanh_2}" in shown and "8.mlp ▸6" in shown, "the group of the cursor is open"
        await driven.press("minus", "minus")
        assert "{Tanh_2}" not in driven.text("graph") and "7.attention ▸6" in driven.text("graph")
        await driven.press("minus")
        assert "7.attention ▸6" not in driven.text("graph") and "layers.7 ▸12" in driven.text("graph")
        before = name_of(driven)
        await driven.press("down")
        assert name_of(driven) != before and "8.attention ▸6" in driven.text("graph"), "a group stays closed"
        await driven.press("up", "plus")
        assert "7.attention ▸6" in driven.text("graph")
        await driven.press("minus", "minus", "minus", "minus")
        assert "decoder ▸144" in driven.text("graph")
        await driven.press("space")
        assert "layers.7 ▸12" in driven.text("graph") and driven.app.front.view_name == "graph"

    drive(
        decoder(),
        script,
        lines=("view graph", "search layers.7.attention/aten::tanh/Tanh_2"),
        size=(80, 24),
    )


def test_a_click_selects_a_group_and_two_clicks_unfold_it() -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        rows = driven.text("graph").splitlines()
        y = next(y for y, row in enumerate(rows) if "3.mlp ▸6" in row)
        await driven.pilot.click("#graph", offset=(rows[y].index("3.mlp") + pane.gutter.left, y), times=2)
        await driven.settle()
        assert "3.mlp ▸6" not in driven.text("graph") and driven.app.front.view_name == "graph"

    drive(
        decoder(),
        script,
        lines=("view graph", "search layers.7.attention/aten::tanh/Tanh_2"),
        size=(80, 24),
    )


def test_what_is_searched_is_marked_and_listed_and_the_next_is_gone_to() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        await driven.type("search add")
        assert "with 'add'" in driven.text("graph").splitlines()[0]
        first = name_of(driven)
        assert "aten::add" in first
        await driven.press("full_stop")
        second = name_of(driven)
        assert "aten::add" in second and second != first
        listed = driven.text("hits").splitlines()
        assert len([line for line in listed if "Add" in line]) >= 10 and "type" in listed[1]
        await driven.type("search no_such_name")
        assert "nothing in this graph has" in driven.text("answer")

    drive(decoder(), script, lines=("view graph",), size=(120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_a_body_of_a_thousand_operations_is_seen_whole_in_groups(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        pane = pane_of(driven)
        drawing = pane._drawing
        assert drawing is not None and fits(drawing, pane.size.width, pane.size.height - 1)
        assert "link_600" in driven.text("graph") and "1,2" in driven.text("graph").splitlines()[0]
        await driven.press("down")
        assert name_of(driven) == "link_601" and "link_601" in driven.text("graph")
        await driven.type("search link_1111")
        assert "link_1111" in driven.text("graph") and fits(drawing, pane.size.width, pane.size.height - 1)

    drive(chain(), script, size=size, lines=("view graph", "search link_600"))


def test_a_breakpoint_in_a_group_is_seen_and_the_end_of_the_run_shows_the_models_graph() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        await driven.press("c")
        assert driven.state.frame is None and "chain" in driven.text("graph")

    drive(chain(), script, lines=("view graph",))


def test_the_groups_of_a_large_body_are_found_by_the_worker() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert "1,505 nodes in" in driven.text("graph") and " … " in driven.text("graph")

    debugger = wide_loop(1_500, 3)
    debugger.run_to("wide::h_next@0")
    drive(debugger, script, lines=("view graph",), size=(120, 40))
