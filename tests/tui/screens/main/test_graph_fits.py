"""The graph fits its pane: the level of detail follows the room, no box is cut, every wire arrives, a map is beside."""

from __future__ import annotations

import random
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepper
from stepper.debug.debugger import Debugger
from stepper.engine.program import Program
from tests.debug.debugged import SAMPLES
from tests.export.drawings import faults
from tests.models import Graph, carried, joined, last
from tests.tui.driven import DECODER, Driven, drive
from tui.screens.graph.drawing import Drawing, graph_of
from tui.screens.graph.fitting import Fitting, fits, fitted, map_width, part_starts, part_width
from tui.screens.graph.levels import BOXES, LEVELS, LINES, MAP, NAMES, SHORT, TYPES
from tui.screens.graph.pane import BodyGraph
from tui.theme import Look

AT_SOFTMAX = (f"run-to {DECODER}@0", "iter 7", "run-to `aten::softmax/Softmax`")


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


def check(drawing: Drawing, program: Program, width: int) -> None:
    """Boxes lie apart and whole in the width, each edge of the graph arrives at its box."""
    graph = graph_of(program, drawing.manner)
    sizes = {key: (1, box.height) for key, box in drawing.layout.boxes.items()}
    if drawing.manner.level != LINES:  # these are read back from what is painted: test_graph_lines.py
        assert faults(drawing.layout, list(graph.edges), sizes) == []
    assert drawing.layout.boxes.keys() == {node.key for node in graph.nodes}
    for box in drawing.layout.boxes.values():
        assert box.x >= 0 and box.x + box.width + drawing.gutter <= width
    assert all(drawing.labels.values())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.sampled_from([(45, 20), (76, 30), (97, 42)]))
def test_no_box_is_cut_and_every_wire_arrives_at_the_level_that_fits(
    seed: int, operations: int, size: tuple[int, int]
) -> None:
    program = random_body(seed, operations)
    drawing = fitted(program, Fitting(*size))
    check(drawing, program, size[0])
    larger = drawing.manner.level + 1
    if fits(drawing, *size) and larger < len(LEVELS):
        assert not fits(fitted(program, Fitting(*size, larger)), *size), "the largest that is seen whole is taken"


def program_of(name: str, place: int) -> Program:
    return stepper.compile_model(stepper.read_model(SAMPLES / name / "model.xml")).programs[place]


@pytest.mark.parametrize(
    ("width", "level"), [(30, SHORT), (30, BOXES), *((wide, at) for wide in (45, 76, 97) for at in range(SHORT, 6))]
)
def test_a_real_body_keeps_to_the_width_at_every_level(width: int, level: int) -> None:
    program = program_of("date_normaliser", 1)
    drawing = fitted(program, Fitting(width, 20, level))
    assert drawing.manner.level == level
    check(drawing, program, width)


def test_more_room_never_gives_less_detail_to_a_graph_that_is_seen_whole() -> None:
    for sample, place in (("while_loop", 1), ("nested_loop", 0), ("nested_loop", 2), ("rwkv_overflow", 1)):
        program = program_of(sample, place)
        levels = [fitted(program, Fitting(w, h)) for w, h in ((45, 20), (76, 30), (97, 42), (140, 60))]
        whole = [fits(one, w, h) for one, (w, h) in zip(levels, ((45, 20), (76, 30), (97, 42), (140, 60)), strict=True)]
        seen = [one.manner.level for one, is_whole in zip(levels, whole, strict=True) if is_whole]
        assert seen == sorted(seen) and whole == sorted(whole), sample
        assert whole[-1] and seen[-1] >= BOXES, sample


def test_a_map_is_beside_a_graph_that_does_not_fit_and_has_room() -> None:
    program = program_of("date_normaliser", 1)
    drawing = fitted(program, Fitting(45, 20, SHORT))
    assert not fits(drawing, 45, 20) and drawing.width + drawing.gutter + map_width(45) <= 45


def test_a_graph_goes_on_beside_itself_where_that_shows_all_of_it() -> None:
    program = program_of("date_normaliser", 1)
    drawing = fitted(program, Fitting(158, 44))
    assert drawing.manner.parts > 1 and fits(drawing, 158, 44)
    check(drawing, program, part_width(158, drawing.manner.parts))
    starts = part_starts(drawing, 0, 44)
    assert starts[0] == 0 and all(0 < later - earlier <= 44 for earlier, later in pairwise(starts))
    assert starts[-1] + 44 >= drawing.height
    assert all(start - 1 in drawing.boxes for start in starts[1:]), "each part but the first begins below boxes"


# --- on the screen -------------------------------------------------------------------------------------------------


def pane_of(driven: Driven) -> BodyGraph:
    pane = driven.pane("graph")
    assert isinstance(pane, BodyGraph)
    return pane


def test_boxes_become_larger_and_smaller_down_to_the_map_and_follow_the_size_again() -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        pane.focus()
        await driven.settle()
        usual = driven.text("graph")
        assert "60 nodes in 39 · lines" in usual and "·Softmax" in usual
        await driven.press("minus")
        whole = driven.text("graph")
        assert "60 nodes · map" in whole and "▸" in whole and "Softmax" in whole
        await driven.press("minus", "plus")
        assert driven.text("graph") == usual and pane.choice.level is None
        await driven.press("plus")
        assert "60 nodes · short names · a part" in driven.text("graph") and "[Softmax]" in driven.text("graph")
        await driven.press("plus", "plus")
        assert "│ Softmax │" in driven.text("graph") and pane.choice.level == BOXES
        await driven.press(*["plus"] * 5)
        assert "f32[" in driven.text("graph") and pane.choice.level == TYPES
        await driven.press(*["minus"] * 9)
        assert pane.choice.level == MAP

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40))


def test_what_is_selected_is_shown_with_its_way_and_alone() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        await driven.press("plus")
        assert "┃" not in _without_map(driven)
        await driven.press("down", "down")
        shown = _without_map(driven)
        assert "{Softmax}" in shown and "{Unsq…ze_1}" in shown and "{MatMul}" in shown
        assert "[atts +]" in shown and "[Squeeze_1]" in shown, "what is not on the way has thin lines"
        await driven.press("v")
        shown = driven.text("graph")
        assert "its inputs, readers, cycle" in shown and "bmm/…tMul" in shown and "atts +" in shown
        assert "toks" not in shown
        await driven.press("v", "escape")
        assert "{" not in _without_map(driven)

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40))


def branch_of(driven: Driven) -> int:
    """The operation of the frame that is an If."""
    return next(index for index, layer in enumerate(driven.state.frame.layers) if layer.type == "If")


def loop_of(driven: Driven) -> int:
    """The operation of the frame that is a loop."""
    return next(index for index, layer in enumerate(driven.state.frame.layers) if layer.is_loop)


def _without_map(driven: Driven) -> str:
    wide = driven.pane("graph").size.width - map_width(driven.pane("graph").size.width)
    return "\n".join(line[:wide] for line in driven.text("graph").splitlines())


def test_loops_and_ifs_and_shape_arithmetic_open_in_place() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        await driven.press("J", "space")
        shown = driven.text("graph")
        assert "┃" in shown and "pairs_of_neighbours ▾1" in shown and "( order ↺ )" in shown
        assert "values" in shown and "( sorted )" in shown, "what is around stays"
        await driven.press("space")
        assert "pairs_of_neighbours" not in driven.text("graph")

    drive("nested_loop", script, lines=("next 3",), size=(200, 60))


def test_a_branch_opens_with_both_sides_and_the_values_of_the_one_that_runs() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        driven.app.perform(f"select {branch_of(driven)}")
        await driven.settle()
        await driven.press("space")
        assert "then" in driven.text("graph") and "else" in driven.text("graph")

    drive("while_loop", script, lines=("step 4",), size=(160, 48))


def test_an_opened_branch_is_seen_whole_in_lines_where_boxes_do_not_fit() -> None:
    """120 columns have 21 rows for the graph; in boxes this one needs 28."""

    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        await driven.type(f"select {branch_of(driven)}")
        driven.pane("graph").focus()
        await driven.press("space")
        pane = pane_of(driven)
        lines = driven.text("graph").splitlines()
        assert "lines" in lines[0] and "a part" not in lines[0] and not pane.view.map_width
        for name in (
            "remainder",
            "is_even",
            "number_next ▾2",
            "then",
            "else",
            "half",
            "triple",
            "keep_going",
            "(go on?)",
        ):
            assert any(name in line for line in lines), name
        row = next(y for y, line in enumerate(lines) if "● half" in line)
        assert "● triple" in lines[row], "side by side"
        for name in ("triple", "half"):
            await driven.pilot.click("#graph", offset=(lines[row].index(name) + pane.gutter.left, row))
            await driven.settle()
            assert pane.chosen_address.endswith(name), "a click on a line inside of the box selects it"
            assert f"{{{name}}}" in driven.text("graph") and f"{name} (" in driven.text("answer"), "it is seen"
        await driven.press("up")
        assert pane.chosen_address.endswith("even")
        await driven.press("right", "down")
        assert pane.chosen_address.endswith("triple"), "from side to side, and along a wire"
        await driven.press("left", "up")
        driven.pane("graph").focus()
        await driven.press("space")
        assert "▾2 ━" not in driven.text("graph"), "it is closed again"
        for is_open in (True, False):
            lines = driven.text("graph").splitlines()
            row = next(y for y, line in enumerate(lines) if "▾2" in line)
            await driven.pilot.click("#graph", offset=(lines[row].index("▾") + pane.gutter.left, row))
            await driven.settle()
            assert ("▾2 ━" in driven.text("graph")) is is_open, "a click on the sign opens it, or closes it"

    drive("while_loop", script, lines=("goto is_even@2",), size=(120, 40))


@pytest.mark.parametrize("size", [(120, 40), (160, 48), (200, 60)], ids=str)
def test_no_box_that_is_open_is_cut_where_the_graph_goes_on_beside_itself(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        await driven.type(f"select {loop_of(driven)}")
        driven.pane("graph").focus()
        await driven.press("space")
        drawing, view = pane_of(driven)._drawing, pane_of(driven).view
        assert drawing is not None and drawing.sides
        (key,) = drawing.sides
        box = drawing.layout.boxes[key]
        begin, end = box.y + drawing.margin, box.y + drawing.margin + box.height
        assert not any(begin < start < end for start in view.starts()[1:])

    drive("nested_loop", script, lines=("goto order@1",), size=size)


def test_the_graph_scrolls_by_keys_wheel_drag_and_its_map() -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        pane.focus()
        await driven.press("plus")
        top = pane.view.top
        await driven.press("shift+down")
        assert pane.view.top == top + 3
        await driven.press("shift+up", "pageup")
        assert pane.view.top < top
        before = pane.view.top
        await driven.filled()
        driven.app.front.show(driven.state)
        assert pane.view.top == before, "a later picture of the same moment scrolls nothing"
        await driven.pilot.mouse_down("#graph", offset=(10, 12))
        await driven.pilot.hover("#graph", offset=(10, 8))
        await driven.pilot.mouse_up("#graph", offset=(10, 8))
        await driven.settle()
        assert pane.view.top == before + 4 and driven.state.selected is None, "a drag selects nothing"
        await driven.pilot.click("#graph", offset=(pane.size.width - 3, pane.size.height - 1))
        assert pane.view.top + pane.size.height > pane._drawing.height - 6, "the end of the graph"
        await driven.pilot.click("#graph", offset=(pane.size.width - 3, 1))
        assert pane.view.top == 0

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40))


def test_alone_on_the_screen_the_whole_body_is_seen_and_answers_in_all_its_parts() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        assert "60 nodes in 39 · lines" in driven.text("graph")
        await driven.press("z")
        rows = driven.text("graph").splitlines()
        assert "60 nodes · short names" in rows[0] and "a part" not in rows[0]
        for name in ("(↺ tok)", "[Softmax]", "[NotEqual]", "(go on?)", "[Mult…ly_2]"):
            assert any(name in row for row in rows), name
        assert driven.app.screen.query_one("#keys").is_on_screen, "the keys stay"
        painted: list[object] = []
        pane, refresh = driven.pane("graph"), driven.pane("graph").refresh
        pane.refresh = lambda *regions, **how: (painted.extend(regions), refresh(*regions, **how))[1]  # type: ignore[method-assign]
        await driven.press("n")
        assert painted, "it paints itself"
        await driven.press("N")
        rows = driven.text("graph").splitlines()
        for name, layer in (("NotEqual", "ne/NotEqual"), ("Tanh_1", "tanh/Tanh_1"), ("Gather", "embedding/Gather")):
            y = next(y for y, row in enumerate(rows) if f"[{name}]" in row)
            await driven.pilot.click("#graph", offset=(rows[y].index(f"[{name}]") + 3, y))
            await driven.settle()
            assert driven.state.frame.layers[driven.state.cursor].name.endswith(layer.partition("/")[2])
            rows = driven.text("graph").replace("{", "[").replace("}", "]").splitlines()

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
def test_no_box_of_a_body_is_cut_at_the_sides_of_the_pane(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        if size[0] < 100:
            await driven.press("shift+tab")
        pane = pane_of(driven)
        for _ in range(6):
            await driven.press("n")
            drawing, room = pane._drawing, pane.view.room.width
            assert drawing is not None
            for box in drawing.layout.boxes.values():
                assert pane.view.left <= box.x and box.x + box.width <= pane.view.left + room

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=size)


def test_without_symbols_map_and_way_are_told_in_ascii() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        await driven.press("plus", "down")
        assert driven.text("graph").isascii() and "{Softmax}" in driven.text("graph")
        await driven.press("minus")
        assert driven.text("graph").isascii() and ".Softmax" in driven.text("graph").replace("{", ".")
        await driven.press("minus")
        assert driven.text("graph").isascii() and "?" not in driven.text("graph")

    drive("date_normaliser", script, lines=AT_SOFTMAX, size=(120, 40), look=Look(ascii=True, plain=True))


def test_a_debugger_without_a_graph_pane_wide_enough_still_shows_the_one_selected() -> None:
    """Forty wires side by side fit no pane: the neighbourhood of the selected one is drawn instead."""
    net = Graph()
    body = net.body()
    h = body.parameter("h", "f32", (4,))
    spread = [body.apply("Tanh", h, name=f"wide_{index}") for index in range(40)]
    total = spread[0]
    for one in spread[1:]:
        total = body.apply("Add", one, total)
    for one in spread:
        total = body.apply("Add", total, one)
    end = body.result(total, "end")
    outer = net.parameter("h0", "f32", (4,))
    for index, output in enumerate(net.loop("wide", body, 2, True, [carried(outer, h, end)], [last(end)])):
        net.result(output, f"r_{index}")
    with tempfile.TemporaryDirectory() as folder:
        debugger = Debugger(net.read(Path(folder)), {0: np.ones(4, np.float32)})

    async def script(driven: Driven) -> None:
        await driven.filled()
        assert "around" in driven.text("graph").splitlines()[0] and "wide_3" in driven.text("graph")

    drive(debugger, script, lines=("run-to wide_3@0",), size=(120, 40))


def test_levels_are_named_and_ordered() -> None:
    assert [LEVELS[at].height for at in (SHORT, NAMES, BOXES, TYPES)] == [1, 1, 3, 4]


def test_arrows_lead_into_an_open_box_from_side_to_side_and_out_again() -> None:
    async def script(driven: Driven) -> None:
        pane = pane_of(driven)
        pane.focus()
        await driven.type("select 2")
        pane.focus()
        await driven.press("space", "down", "down")
        assert pane.chosen_address.endswith("::half"), "Parameter, then the operation that reads it"
        await driven.press("right", "down", "down")
        assert pane.chosen_address.endswith("::triple_plus_one")
        await driven.press("b")
        assert any("triple_plus_one" in one.text for one in driven.state.breaks)
        await driven.press("enter")
        assert driven.app.front.view_name == "value"
        await driven.press("q")
        driven.pane("graph").focus()
        await driven.press("down", "down")
        assert not pane.chosen_address and driven.state.frame.layers[driven.state.cursor].name != "number_next"
        await driven.press("up")
        assert driven.state.frame.layers[driven.state.cursor].name == "number_next"
        rows = driven.text("graph").splitlines()
        y = next(y for y, row in enumerate(rows) if "half " in row)
        await driven.pilot.click("#graph", offset=(rows[y].index("half ") + 2, y))
        await driven.settle()
        assert pane.chosen_address.endswith("::half")

    drive("while_loop", script, lines=("step 4",), size=(160, 48))
