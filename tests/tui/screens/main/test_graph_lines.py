"""The graph in lines, read back from what is painted: which operations are joined, in any room."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import stepper
from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import WHOLE_EXPRESSIONS, drawn_graph
from stepper.export.figures.figure import NodeKind
from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven, drive
from tests.tui.screens.main.test_graph_fits import random_body
from tui.paint.names import operation_names
from tui.screens.graph.cells import Indices, Painter, Scene
from tui.screens.graph.drawing import Drawing, draw, drawn, graph_of
from tui.screens.graph.fitting import Fitting, fits, fitted
from tui.screens.graph.labels import body_of
from tui.screens.graph.levels import LINES, Manner
from tui.screens.graph.pane import BodyGraph

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
LINKS = {glyph: links for links, glyph in enumerate(" ╵╶└╷│┌├╴┘─┴┐┤┬┼")}


def painted(program: Program, drawing: Drawing) -> list[str]:
    scene = Scene(program, None, None, False, lambda _index: ())
    painter = Painter(scene, drawing, Indices(program, drawing), {})
    return ["".join(painter.cells(y, 0, drawing.width)[0]) for y in range(drawing.height)]


def joined(rows: list[str]) -> set[tuple[int, int]]:
    """Which rows are joined with which below: read from the characters alone."""
    dots = [row.index("●") for row in rows]
    found = set()
    for y, x in enumerate(dots):
        arrives = {x} if y and (dots[y - 1] == x or LINKS.get(rows[y - 1][x], 0) & DOWN) else set()
        for way in (-1, 1):
            arrives |= {at for at in _beside(rows[y], x, way) if LINKS[rows[y][at]] & UP}
        found |= {(_from(rows, dots, at, y - 1), y) for at in arrives}
    return found


def _beside(row: str, x: int, way: int) -> list[int]:
    """Where the horizontal line that begins at a dot turns off; it goes on behind what crosses it."""
    towards, onwards, found = (RIGHT, LEFT, []) if way < 0 else (LEFT, RIGHT, [])
    at = x + way
    while 0 <= at < len(row):
        links = LINKS.get(row[at], 0)
        if links == UP | DOWN:  # another wire: what lies behind it?
            at += way
            continue
        if not links & towards:
            break
        found += [at] if links & (UP | DOWN) else []
        if not links & onwards:
            break
        at += way
    return found


def _from(rows: list[str], dots: list[int], x: int, y: int) -> int:
    while dots[y] != x and LINKS[rows[y][x]] & UP:
        y -= 1
    return y


def check(program: Program, drawing: Drawing) -> None:
    graph = graph_of(program, drawing.manner)
    row = {key: box.y for key, box in drawing.layout.boxes.items()}
    assert sorted(row.values()) == list(range(len(graph.nodes)))
    assert joined(painted(program, drawing)) == {(row[edge.source], row[edge.target]) for edge in graph.edges}


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.sampled_from([None, 60, 20]),
    st.sampled_from([0, 2, 3, WHOLE_EXPRESSIONS]),
)
def test_what_is_joined_is_what_is_read(seed: int, operations: int, room: int | None, expressions: int) -> None:
    program = random_body(seed, operations)
    manner = Manner(LINES, room, expressions=expressions)
    drawing = draw(program, manner)
    check(program, drawing)
    for node in (node for node in drawing.graph.nodes if node.is_folded):
        opened = draw(program, replace(manner, entered=frozenset(node.layers)))
        check(program, opened)
        kept = drawing.layout.boxes.keys() - {node.key}
        assert opened.layout.boxes.keys() == kept | set(node.layers), "all others are folded as they were"


@pytest.mark.parametrize("name", ["date_normaliser", "rwkv_overflow", "nested_loop", "reverse", "while_loop"])
@pytest.mark.parametrize("room", [None, 38, 21])
def test_bodies_of_the_samples_are_joined_as_they_are(name: str, room: int | None) -> None:
    for program in stepper.compile_model(stepper.read_model(SAMPLES / name / "model.xml")).programs:
        drawing = drawn(program, drawn_graph(program.graph, body_of(program)), Manner(LINES, room))
        check(program, drawing)
        assert room is None or drawing.width <= max(room, 2 * 12)


def test_a_body_that_has_no_room_for_boxes_is_seen_whole_as_lines() -> None:
    (body,) = [
        one
        for one in stepper.compile_model(stepper.read_model(SAMPLES / "rwkv_overflow" / "model.xml")).programs
        if one.path
    ]
    drawing = fitted(body, Fitting(46, 22))
    assert drawing.manner.level == LINES and drawing.manner.parts == 2 and fits(drawing, 46, 22)

    async def script(driven: Driven) -> None:
        graph = driven.app.screen.query_one(BodyGraph)
        shown = driven.text("graph")
        assert "lines" in shown.splitlines()[0] and "a part" not in shown and "exp_key" in shown
        graph.focus()
        before = driven.state.cursor
        await driven.press("up")
        assert driven.state.cursor not in (None, before)
        await driven.press("minus")
        assert "map" in driven.text("graph").splitlines()[0]
        await driven.press("plus", "plus")
        assert "short names" in driven.text("graph").splitlines()[0]

    drive("rwkv_overflow", script, lines=("run-to wkv@5",), size=(120, 40))


def test_lines_in_the_middle_of_a_pane_have_the_values_beside_the_names() -> None:
    async def script(driven: Driven) -> None:
        shown = driven.text("graph").splitlines()
        assert "lines" in shown[0]
        (smaller,) = [line for line in shown if "smaller" in line]
        held = driven.state.frame.output(driven.state.cursor).array
        assert smaller.split()[-1] == f"{float(held[0]):g}" and "●" in smaller

    drive("nested_loop", script, lines=("run-to smaller",), size=(120, 40))


def test_a_body_of_sixty_operations_is_seen_whole_and_opens_where_the_cursor_is() -> None:
    """Each operation has a line of its own while the cursor is there, and nothing gets out of sight by that."""

    async def script(driven: Driven) -> None:
        pane = driven.app.screen.query_one(BodyGraph)
        pane.focus()
        await driven.settle()
        frame, room = driven.state.frame, pane.size
        names = operation_names(frame.program)
        folded = 0
        for index, layer in enumerate(frame.layers):
            driven.app.perform(f"select {index}")
            await driven.settle()
            drawing = pane._drawing
            assert drawing is not None and fits(drawing, room.width, room.height - 1), names[index]
            node = drawing.graph.node(drawing.graph.box_of[layer.id])
            assert node.kind in (NodeKind.SHAPES, NodeKind.ACCUMULATOR) or node.layers == (layer.id,), names[index]
            if layer.id in drawing.manner.entered:
                folded += 1
                assert f"·{drawing.labels[layer.id]}" in driven.text("graph").replace("{", "·"), names[index]
        assert folded > 20, "no operation was folded"
        assert "60 nodes in" in driven.text("graph") and "a part" not in driven.text("graph")

    drive("date_normaliser", script, lines=("run-to `aten::softmax/Softmax`",), size=(120, 40))


def test_arrows_and_clicks_go_into_what_is_folded() -> None:
    async def script(driven: Driven) -> None:
        graph = driven.app.screen.query_one(BodyGraph)
        graph.focus()

        def name() -> str:
            return operation_names(driven.state.frame.program)[driven.state.cursor]

        async def click(text: str) -> None:
            rows = driven.text("graph").splitlines()
            y = next(y for y, row in enumerate(rows) if text in row)
            await driven.pilot.click("#graph", offset=(rows[y].index(text) + 1, y))
            await driven.settle()

        driven.app.perform("select 0")
        await driven.settle()
        await click("Softmax +2")
        assert name() == "Softmax" and "+2" not in next(
            row for row in driven.text("graph").splitlines() if "Softmax" in row
        )
        names = [name()]
        for key in ("up", "up", "up", "down", "down", "down", "down"):
            await driven.press(key)
            names.append(name())
        within = ["v/MatMul", "v/Add", "squeeze/Squeeze", "Softmax"]
        assert names == [*within[::-1], *within[1:], "Unsqueeze_1"], "into the next box where that reads this one"
        assert "{Unsqueeze_1}" in driven.text("graph") and "·bmm/MatMul" in driven.text("graph")
        assert "Softmax +2" in driven.text("graph")
        await click("·bmm/MatMul")
        assert name() == "bmm/MatMul"
        await driven.press("enter")
        assert driven.app.front.view_name == "value"

    drive("date_normaliser", script, lines=("run-to `aten::softmax/Softmax`",), size=(120, 40))
