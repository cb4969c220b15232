"""Bodies of more than 1,000 operations: the neighbourhood of the selected one in place of the whole graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from stepper.debug.debugger import Debugger
from stepper.export.figures.drawn_graph import drawn_graph
from tests.tui.driven import Driven, drive
from tests.tui.wide_models import chain_loop, wide_loop
from tui.screens.graph.drawing import Drawing
from tui.screens.graph.labels import body_of
from tui.screens.graph.neighbourhood import MOST_BOXES, REACHES, Surroundings
from tui.screens.graph.pane import BodyGraph
from tui.theme import Look

LINKS = 1_203


def chain(at: str = "link_600", iteration: int = 3) -> Debugger:
    debugger = chain_loop(LINKS)
    debugger.run_to(f"chain::{at}@{iteration}")
    return debugger


def graph_of(driven: Driven) -> BodyGraph:
    pane = driven.pane("graph")
    assert isinstance(pane, BodyGraph)
    return pane


async def mapped(driven: Driven) -> None:
    """Until the map of the whole body is there."""
    for _ in range(200):
        await driven.filled()
        if "▸" in driven.text("graph"):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the map did not come")


def shown(driven: Driven) -> str:
    """The operation that is selected."""
    frame, cursor = driven.state.frame, driven.state.cursor
    assert frame is not None and cursor is not None
    return frame.layers[cursor].name


def place_of(driven: Driven, word: str) -> tuple[int, int]:
    """Column and row of a word in the pane, a little to the right of its beginning."""
    pane = driven.pane("graph")
    rows = [pane.render_line(y).text for y in range(1, pane.size.height)]
    return next((row.index(word) + 2, y) for y, row in enumerate(rows, 1) if word in row)


# --- what is drawn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
def test_the_body_pane_shows_what_is_near(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        if size[0] < 100:
            await driven.press("shift+tab")
        await mapped(driven)
        driven.golden(f"neighbourhood_{size[0]}x{size[1]}", "graph")

    drive(chain(), script, size=size)


def test_the_selected_operation_is_in_the_middle() -> None:
    async def script(driven: Driven) -> None:
        pane = driven.pane("graph")
        for _ in range(3):
            await driven.press("n")
            _, y = place_of(driven, f" {shown(driven)} ")
            assert abs(y - pane.size.height // 2) <= 2

    drive(chain("link_603"), script)


def test_a_terminal_without_symbols_gets_ascii_alone() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()  # the graph is laid out beside
        assert driven.text("graph").isascii() and "link_600" in driven.text("graph")

    drive(chain(), script, look=Look(ascii=True, plain=True))


def test_a_body_of_fewer_operations_is_drawn_whole() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        assert "around" not in driven.text("graph").splitlines()[0]
        assert "1004 nodes · lines" in driven.text("graph"), "998 operations, two ports at each end, the rest folded"

    debugger = chain_loop(998)
    debugger.run_to("chain::hub@0")
    drive(debugger, script)


def test_of_many_readers_the_nearest_are_drawn_and_the_others_counted() -> None:
    drawing = _around(chain(), "hub", 4)
    labels = list(drawing.labels.values())
    assert {"hub", "link_1", "link_2", "link_10", "link_70"} <= set(labels) and "link_80" not in labels
    # link_1 and every tenth of 1,200 read it; those up to link_70 are drawn.
    assert f"… {1 + (LINKS - 3) // 10 - 8} more" in labels


def test_a_back_edge_with_both_ends_near_has_a_lane_and_one_with_one_end_a_sign() -> None:
    near = _around(chain(), "turned", 4)
    assert [lane.name for lane in near.lanes] == ["turn"] and not near.signs
    start, end = _around(chain(), "hub", 4), _around(chain(), "h_next", 4)
    assert "↺ h_next" in start.labels.values() and "↺ h" in end.labels.values()
    assert not start.lanes and not end.lanes


def wide() -> Debugger:
    debugger = wide_loop(1_500, 3)
    debugger.run_to("wide@0")
    return debugger


MODELS: dict[str, Callable[[], Debugger]] = {"chain": chain, "wide": wide}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("reach", range(len(REACHES)))
def test_every_wire_of_a_box_goes_to_a_box_or_to_a_sign(model: str, reach: int) -> None:
    program = MODELS[model]().machine.stack[-1].program
    whole, surroundings = drawn_graph(program.graph, body_of(program)), Surroundings(program)
    for layer in program.layers[:: len(program.layers) // 12]:
        drawing = surroundings.around(surroundings.box_of(layer.id), REACHES[reach])
        boxes = drawing.layout.boxes.keys() - drawing.signs
        assert len(boxes) <= MOST_BOXES and whole.box_of[layer.id] in boxes
        between = {(edge.source, edge.target) for edge in drawing.graph.edges}
        for edge in whole.edges:
            if edge.source in boxes and edge.target in boxes:
                assert (edge.source, edge.target) in between
            elif edge.source in boxes:
                assert any(source == edge.source and target in drawing.signs for source, target in between)
            elif edge.target in boxes:
                assert any(target == edge.target and source in drawing.signs for source, target in between)


def _around(debugger: Debugger, name: str, reach: int) -> Drawing:
    program = debugger.machine.stack[-1].program
    surroundings = Surroundings(program)
    layer = next(layer for layer in program.layers if layer.name == name)
    return surroundings.around(surroundings.box_of(layer.id), REACHES[reach])


# --- how one moves -------------------------------------------------------------------------------------------------


def test_arrows_go_along_wires_and_what_they_reach_comes_into_the_middle() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        tick = driven.state.view.tick
        await driven.press("down")
        assert shown(driven) == "link_601" and "around link_601" in driven.text("graph")
        await driven.press("up", "up")
        assert shown(driven) == "link_599" and driven.state.view.tick == tick
        await driven.press("escape")
        assert "around link_600" in driven.text("graph")

    drive(chain(), script)


def test_stepping_and_search_and_another_iteration_are_followed() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("n")
        assert "around link_601" in driven.text("graph")
        await driven.press("N", "N")
        assert "around link_599" in driven.text("graph")
        await driven.press("right_square_bracket")
        assert driven.state.iteration == 4 and "around link_599" in driven.text("graph")
        await driven.type("search link_1111")
        assert "around link_1111" in driven.text("graph") and " link_1110 " in driven.text("graph")

    drive(chain(), script)


def test_a_click_selects_a_box_or_what_is_behind_a_sign_and_two_clicks_open() -> None:
    async def script(driven: Driven) -> None:
        await driven.pilot.click("#graph", offset=place_of(driven, "120 more"))
        await driven.settle()
        assert shown(driven) == "link_1" and "around link_1 " in driven.text("graph")
        await driven.pilot.click("#graph", offset=place_of(driven, "┃ hub"))
        await driven.settle()
        assert shown(driven) == "hub" and "around hub" in driven.text("graph")
        await driven.pilot.click("#graph", offset=place_of(driven, "↺ h_next"))
        await driven.settle()
        assert shown(driven) == "h_next"
        await driven.pilot.click("#graph", offset=place_of(driven, "link_1199"), times=2)
        await driven.settle()
        assert shown(driven) == "link_1199" and driven.app.screen.view_name == "value"  # type: ignore[attr-defined]

    drive(chain(), script)


def test_smaller_boxes_show_more_levels_and_larger_ones_fewer() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        assert "2 levels" in driven.text("graph") and "│ link_603" not in driven.text("graph")
        await driven.press("minus", "minus")
        assert "3 levels" in driven.text("graph") and "[ link_603" in driven.text("graph")
        await driven.press("minus", "minus", "minus")
        assert "1209 nodes · map" in driven.text("graph").splitlines()[0]
        await driven.press("plus")
        assert graph_of(driven).choice.reach == 0 and "6 levels" in driven.text("graph")
        await driven.press(*["plus"] * 8)
        assert "1 level " in driven.text("graph") and "f32[1×4]" in driven.text("graph")
        assert "│ link_602" not in driven.text("graph")

    drive(chain(), script)


def test_a_breakpoint_and_the_moment_are_seen_in_the_neighbourhood() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("b")
        assert "●" in driven.text("graph")

    drive(chain(), script)


def test_at_the_end_of_the_run_the_end_of_a_large_graph_is_shown() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("c")
        assert driven.state.frame is None and "chain" in driven.text("graph")

    drive(chain(), script)


def test_a_click_on_the_map_of_a_large_body_selects_what_is_there() -> None:
    async def script(driven: Driven) -> None:
        await mapped(driven)
        pane = graph_of(driven)
        await driven.pilot.click("#graph", offset=(pane.size.width - 8, pane.size.height - 2))
        await driven.settle()
        assert int(shown(driven).rpartition("_")[2]) > 1_000 and f"around {shown(driven)}" in driven.text("graph")
        await driven.pilot.click("#graph", offset=(pane.size.width - 8, 3))
        await driven.settle()
        assert int(shown(driven).rpartition("_")[2]) < 200

    drive(chain(), script)
