"""The graph fits its pane: its form follows the room, no box is cut, every wire arrives; and how one moves in it."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepper_tui.screens.graph.drawing import BOXES, FORMS, LINES, NAMES, Drawing
from stepper_tui.screens.graph.pane import BodyGraph, BodyGroups, Fitting, fits, fitted, part_width, rows_of_parts
from stepper_tui.theme import Look

import stepper
from stepper.engine.program import Program
from stepper.export.figures.drawn_graph import DrawnGraph
from tests.debug.debugged import SAMPLES
from tests.export.drawings import faults
from tests.models import Graph, carried, joined, last
from tests.tui.driven import Driven, drive

AT_SOFTMAX = ("view graph", "search aten::softmax/Softmax")


def random_body(seed: int, operations: int) -> Program:
    """A loop's body of so many operations that read each other at random, with two back edges."""
    rng = random.Random(seed)
    net = Graph()
    body = net.body()
    pool = [body.parameter(name, "f32", (1, 4)) for name in ("h", "state_of_the_cell")]
    first = list(pool)
    for index in range(operations):
        kind = rng.choice(["Add", "Multiply", "Tanh", "Sigmoid"])
        inputs = [rng.choice(pool[-8:]) for _ in range(2 if kind in ("Add", "Multiply") else 1)]
        pool.append(body.apply(kind, *inputs, name=f"block_{index // 10}/{kind.lower()}_{index}"))
    results = [body.result(one, f"out_{place}") for place, one in enumerate(pool[-2:])]
    outer = [net.parameter(name, "f32", (1, 4)) for name in ("h0", "c0")]
    entries = [carried(*each) for each in zip(outer, first, results, strict=True)]
    for index, output in enumerate(net.loop("loop", body, 3, True, entries, [last(results[0]), joined(results[1])])):
        net.result(output, f"r_{index}")
    with tempfile.TemporaryDirectory() as folder:
        return stepper.compile_model(net.read(Path(folder))).programs[1]


def opened(groups: BodyGroups, width: int, height: int) -> frozenset[str]:
    return frozenset(groups.usual(rows_of_parts(width, height)))


def fitted_in(program: Program, width: int, height: int, form: int | None = None) -> Drawing:
    groups = BodyGroups(program)
    return fitted(groups, Fitting(width, height, opened(groups, width, height), form))


def check(drawing: Drawing, graph: DrawnGraph, width: int) -> None:
    """Boxes lie apart and whole in the width, each edge of the graph arrives at its box."""
    sizes = {key: (1, box.height) for key, box in drawing.layout.boxes.items()}
    if drawing.manner.form != LINES:  # these are read back from what is painted: test_graph_lines.py
        assert faults(drawing.layout, list(graph.edges), sizes) == []
    assert drawing.layout.boxes.keys() == {node.key for node in graph.nodes}
    for box in drawing.layout.boxes.values():
        assert box.x >= 0 and box.x + box.width + drawing.gutter <= part_width(width, drawing.manner.parts)
    assert all(drawing.labels.values())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 120), st.sampled_from([(45, 20), (76, 30), (97, 42)]))
def test_no_box_is_cut_and_every_wire_arrives_in_the_form_that_fits(
    seed: int, operations: int, size: tuple[int, int]
) -> None:
    groups = BodyGroups(random_body(seed, operations))
    drawing = fitted(groups, Fitting(*size, opened(groups, *size)))
    check(drawing, groups.folded(opened(groups, *size)), size[0])
    larger = drawing.manner.form + 1
    if fits(drawing, *size) and larger < len(FORMS):
        other = fitted(groups, Fitting(*size, opened(groups, *size), larger))
        assert other.manner.form < larger or not fits(other, *size), "the largest that is seen whole is taken"


def program_of(name: str, place: int) -> Program:
    return stepper.compile_model(stepper.read_model(SAMPLES / name / "model.xml")).programs[place]


@pytest.mark.parametrize("width", [45, 76, 97])
@pytest.mark.parametrize("form", [NAMES, BOXES])
def test_a_real_body_keeps_to_the_width_in_every_form(width: int, form: int) -> None:
    program = program_of("date_normaliser", 1)
    drawing = fitted_in(program, width, 20, form)
    check(drawing, drawing.graph, width)
    assert drawing.manner.form == form or (width == 45 and drawing.manner.form < form)


def test_more_room_never_gives_less_detail_to_a_graph_that_is_seen_whole() -> None:
    sizes = ((45, 20), (76, 30), (97, 42), (140, 60))
    for sample, place in (("while_loop", 1), ("nested_loop", 0), ("nested_loop", 2), ("rwkv_overflow", 1)):
        program = program_of(sample, place)
        forms = [fitted_in(program, *size) for size in sizes]
        whole = [fits(one, *size) for one, size in zip(forms, sizes, strict=True)]
        seen = [one.manner.form for one, is_whole in zip(forms, whole, strict=True) if is_whole]
        assert seen == sorted(seen) and whole == sorted(whole), sample
        assert whole[-1] and seen[-1] >= NAMES, sample


# --- on the screen -------------------------------------------------------------------------------------------------


def pane_of(driven: Driven) -> BodyGraph:
    pane = driven.pane("graph")
    assert isinstance(pane, BodyGraph)
    return pane


def name_of(driven: Driven) -> str:
    assert driven.state.frame is not None and driven.state.cursor is not None
    return driven.state.frame.layers[driven.state.cursor].name


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_the_graph_screen_shows_the_whole_body(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.golden(f"graph_{size[0]}x{size[1]}", "graph")

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=size)


def test_boxes_become_larger_and_smaller() -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        assert "lines" in driven.text("graph").splitlines()[0] and "exp_key" in driven.text("graph")
        await driven.press("plus")
        assert "names · a part" in driven.text("graph") and "{ weighted_now }" in driven.text("graph")
        await driven.press("plus", "plus")
        assert "┃ weighted_now" in driven.text("graph") and pane.form == BOXES
        await driven.press(*["minus"] * 4)
        assert pane.form == LINES

    drive("rwkv_overflow", script, lines=("view graph", "search weighted_now"), size=(80, 24))


def test_what_is_selected_is_shown_with_its_way() -> None:
    async def script(driven: Driven) -> None:
        shown = driven.text("graph")
        assert "{Softmax}" in shown and "{v/MatMul}" in shown and "┃" in shown
        assert "{Squeeze_1}" not in shown and "Squeeze_1" in shown, "what is not on the way has thin lines"
        await driven.type("select now")
        assert "{Softmax}" not in driven.text("graph") and "┃" not in driven.text("graph")

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40))


def test_the_graph_scrolls_by_keys_wheel_and_drag() -> None:
    async def script(driven: Driven) -> None:
        pane, selected = pane_of(driven), driven.state.selected
        await driven.press("plus")
        top = pane.top
        await driven.press("shift+down")
        assert pane.top == top + 3
        await driven.press("shift+up", "shift+up")
        assert pane.top == top - 3
        before = pane.top
        await driven.filled()
        driven.app.front.show(driven.state)
        assert pane.top == before, "a later picture of the same moment scrolls nothing"
        await driven.pilot.mouse_down("#graph", offset=(10, 12))
        await driven.pilot.hover("#graph", offset=(10, 8))
        await driven.pilot.mouse_up("#graph", offset=(10, 8))
        await driven.settle()
        assert pane.top == before + 4 and driven.state.selected == selected, "a drag selects nothing"

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40))


def test_a_click_selects_and_the_pane_tells_who_asked_for_that() -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        rows = driven.text("graph").splitlines()
        y = next(y for y, row in enumerate(rows) if "exp_key" in row)
        at = pane.gutter.left + rows[y].index("exp_key")
        await driven.pilot.click("#graph", offset=(at, y))
        await driven.settle()
        assert name_of(driven) == "exp_key"
        told: list[int] = []
        pane._on_chosen = told.append
        await driven.press("up")
        (key,) = told
        assert driven.state.frame is not None and driven.state.frame.program.graph.by_id[key].name == "key"
        assert name_of(driven) == "exp_key" and pane.chosen_address.endswith("key"), "the cursor is the other's"
        pane.set_layer(None)
        assert not pane.chosen_address

    drive("rwkv_overflow", script, lines=("view graph", "search wkv"), size=(120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
def test_no_box_of_a_body_is_cut_at_the_sides_of_the_pane(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        for _ in range(6):
            await driven.press("n")
            drawing, room = pane._drawing, pane.room.width
            assert drawing is not None
            for box in drawing.layout.boxes.values():
                assert pane.left <= box.x and box.x + box.width <= pane.left + room

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=size)


def test_without_symbols_the_graph_is_told_in_ascii() -> None:
    async def script(driven: Driven) -> None:
        assert driven.text("graph").isascii() and "Softmax" in driven.text("graph")
        await driven.press("plus", "down")
        assert driven.text("graph").isascii() and "?" not in driven.text("graph").replace("go on?", "")

    drive(
        "date_normaliser",
        script,
        lines=AT_SOFTMAX,
        size=(120, 40),
        look=Look(ascii=True, plain=True),
    )
