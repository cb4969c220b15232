"""The port map full screen: roles, slices and places in words and pictures, as the specification's formulas say."""

from __future__ import annotations

import numpy as np
import pytest

from stepper.debug.inspection.views import SliceView
from stepper.engine.loops import slice_walk
from stepper.engine.rules import Rules
from stepper.ir.model import Slicing
from tests.tui.driven import DECODER, Driven, drive
from tui.screens.ports.axis_picture import picture_of_scan, picture_of_slice
from tui.screens.ports.port_map import PortMap
from tui.screens.ports.rows import PortArrow, PortSide
from tui.screens.value.screen import ValueScreen
from tui.theme import Look

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)
REVERSED = ("run-to from_the_end@0", "iter 3", "view ports")


def map_of(driven: Driven) -> PortMap:
    pane = driven.pane("ports")
    assert isinstance(pane, PortMap)
    return pane


def port_called(driven: Driven, side: PortSide, role: str) -> PortArrow:
    return next(port for port in map_of(driven).ports if (port.side, port.role) == (side, role))


def text_of(picture: object) -> str:
    return "".join(text for text, _ in picture.row(100))  # type: ignore[attr-defined]


@SIZES
def test_the_port_map_of_the_decoder(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.golden(f"ports_{size[0]}x{size[1]}", "ports", "port")

    lines = (f"run-to {DECODER}@0", "iter 7", "view ports")
    drive("date_normaliser", script, size=size, lines=lines)


def test_the_port_map_of_a_loop_that_goes_backward() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        driven.golden("ports_reverse_120x40", "ports", "port")

    drive("reverse", script, size=(120, 40), lines=REVERSED)


def test_each_iteration_names_the_slice_and_the_place_that_the_specification_gives_it() -> None:
    """start -1, end 0, stride -1 over 8 elements: iteration i reads element 7 - i, and writes place 7 - i."""

    async def script(driven: Driven) -> None:
        for iteration in range(8):
            assert driven.state.iteration == iteration
            place = 7 - iteration
            assert port_called(driven, PortSide.IN, "slice").words[0] == f"piece {place} of 0–7, axis 1, stride -1"
            written = port_called(driven, PortSide.OUT, "piece").words[0]
            assert written == f"will be place {place}, axis 1, backward"
            cells = text_of(port_called(driven, PortSide.IN, "slice").below)
            assert cells == "".join(2 * ("█" if at == place else "▒" if at > place else "░") for at in range(8))
            if iteration < 7:
                await driven.press("right_square_bracket")

    drive("reverse", script, lines=("run-to from_the_end@0", "view ports"))


def test_of_a_long_axis_a_cell_stands_for_many_elements_and_the_present_one_is_seen() -> None:
    walk = slice_walk(Slicing(0, 0, -1, 1, None), (1000,), Rules.SPEC, is_loop=False)
    for iteration in (0, 1, 500, 999):
        cells = text_of(picture_of_slice(SliceView(iteration, 1000, walk)))
        assert len(cells) == 24 and cells.count("█") == 1 and cells.index("█") == iteration * 24 // 1000


def test_an_output_of_unknown_length_shows_the_places_that_there_are() -> None:
    forward, backward = Slicing(0, 0, -1, 1, None), Slicing(0, -1, 0, -1, None)
    assert text_of(picture_of_scan(forward, 3, None, now=3)).replace("██", "█") == "▒▒▒▒▒▒█ …"
    assert text_of(picture_of_scan(backward, 2, None, now=2)).startswith("██▒▒")


def test_it_follows_the_moment_and_says_what_is_known_already() -> None:
    async def script(driven: Driven) -> None:
        assert "not yet" in driven.text("ports")
        await driven.press("n", "n")
        edge = port_called(driven, PortSide.OUT, "carried")
        assert edge.outer.name == "later_return@4" and edge.outer.type == "f32[1,1,1]"
        assert "not yet" not in driven.text("ports")
        await driven.press("G", "f")
        assert port_called(driven, PortSide.OUT, "carried").words[0] == "no iteration follows"

    drive("reverse", script, lines=REVERSED)


def test_arrows_choose_an_entry_which_is_explained_and_enter_opens_its_value() -> None:
    async def script(driven: Driven) -> None:
        assert "later_return" in driven.text("port")
        await driven.press("down")
        assert "elements [4, 5) of 8 along axis 1" in driven.text("port")
        assert 'axis="1" start="-1" end="0" stride="-1" part_size="1"' in driven.text("port")
        await driven.press("enter")
        screen = driven.app.screen
        assert isinstance(screen, ValueScreen) and driven.text("tensor").startswith("▌reward")
        frame = driven.state.frames[-1]
        reward = next(layer for layer in frame.graph.parameters if layer.name == "reward")
        expected = np.array(frame.value(reward.id).array)
        assert screen.inspected.array is not None and np.array_equal(screen.inspected.array, expected)
        await driven.press("left_square_bracket")
        assert driven.text("tensor").startswith("▌reward") and not np.array_equal(screen.inspected.array, expected)
        await driven.press("J")
        assert not driven.text("tensor").startswith("▌reward"), "another selection shows another value"
        await driven.press("right_square_bracket", "q")
        assert map_of(driven).chosen is port_called(driven, PortSide.IN, "slice")
        await driven.press("right")
        assert map_of(driven).chosen is port_called(driven, PortSide.OUT, "piece")
        await driven.press("escape", "q")
        assert not driven.app.screen.query(PortMap)

    drive("reverse", script, lines=REVERSED)


def test_the_mouse_chooses_an_entry() -> None:
    async def script(driven: Driven) -> None:
        await driven.pilot.click("#ports", offset=(150, 6))
        await driven.settle()
        assert map_of(driven).chosen is port_called(driven, PortSide.OUT, "piece")

    drive("reverse", script, lines=REVERSED, size=(160, 40))


def test_trip_count_condition_and_iteration_number_have_their_arrows() -> None:
    async def script(driven: Driven) -> None:
        assert port_called(driven, PortSide.IN, "count").words == ("the number 4",)
        assert port_called(driven, PortSide.IN, "limit").words[0] == "10 iterations"
        assert port_called(driven, PortSide.OUT, "condition").words[0] == "true: there is another"

    drive("for_loop", script, lines=("run-to years@4", "view ports"))


def test_outside_of_loops_it_says_which_one_comes_next() -> None:
    async def script(driven: Driven) -> None:
        assert "no loop" in driven.text("ports") and "from_the_end" in driven.text("ports")
        await driven.press("s", "s", "s")
        assert "body" in driven.text("ports")

    drive("reverse", script, lines=("view ports",))


def test_a_terminal_without_symbols_gets_ascii_alone() -> None:
    async def script(driven: Driven) -> None:
        for pane in ("ports", "port"):
            assert driven.text(pane).isascii(), pane

    drive("reverse", script, size=(80, 24), lines=REVERSED, look=Look(ascii=True, plain=True))


def test_outside_of_loops_the_port_map_is_that_of_the_nearest_one() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in ("goto first", "continue"):
            await driven.type(line)
            await driven.type("view ports")
            await driven.filled()
            shown = driven.text("ports")
            assert "time_mixing, its last iteration · 4 in · 2 out · 2 back edges" in shown.splitlines()[0]
            assert "into body, iteration 11 · 21 operations" in shown and "piece 11 of 0–11, axis 0" in shown

    drive("rwkv_overflow", script, size=(80, 24), runs=True)
