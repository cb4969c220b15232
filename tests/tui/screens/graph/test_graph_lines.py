"""The graph in lines, read back from what is painted: which operations are joined, in any room."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepper_tui.screens.graph.drawing import LINES, Drawing, Manner, Painter, Scene, body_of, drawn
from stepper_tui.screens.graph.pane import BodyGroups, fits

import stepper
from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import drawn_graph
from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven, drive
from tests.tui.screens.graph.test_graph_fits import fitted_in, random_body

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
LINKS = {glyph: links for links, glyph in enumerate(" ╵╶└╷│┌├╴┘─┴┐┤┬┼")}


def painted(program: Program, drawing: Drawing) -> list[str]:
    scene = Scene(program, None, False, lambda _index: (), {})
    painter = Painter(scene, drawing, {}, {})
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
    row = {key: box.y for key, box in drawing.layout.boxes.items()}
    assert sorted(row.values()) == list(range(len(drawing.graph.nodes)))
    assert joined(painted(program, drawing)) == {(row[edge.source], row[edge.target]) for edge in drawing.graph.edges}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([None, 60, 20]), st.booleans())
def test_what_is_joined_is_what_is_read(seed: int, operations: int, room: int | None, is_open: bool) -> None:
    program = random_body(seed, operations)
    groups = BodyGroups(program)
    shown = groups.usual(10**6) if is_open else set[str]()
    check(program, drawn(program, groups.folded(shown), Manner(LINES, room)))


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
    drawing = fitted_in(body, 46, 22)
    assert drawing.manner.form == LINES and drawing.manner.parts == 2 and fits(drawing, 46, 22)


def test_lines_in_the_middle_of_a_pane_have_the_values_beside_the_names() -> None:
    async def script(driven: Driven) -> None:
        shown = driven.text("graph").splitlines()
        assert "lines" in shown[0] and "a part" not in shown[0]
        (smaller,) = [line for line in shown if "{smaller}" in line]
        held = driven.state.frame.output(driven.state.cursor).array
        assert smaller.split()[-1] == f"{float(held[0]):g}" and "●" in smaller

    drive("nested_loop", script, lines=("goto smaller", "view graph", "search smaller"), size=(80, 24))
