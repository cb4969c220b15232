"""The main screen on the date decoder: keys and mouse move the run, and what is shown is what the run computed."""

from __future__ import annotations

import pytest

from tests.tui.driven import DECODER, Driven, drive
from tests.tui.time_models import squaring
from tui.screens.main.operations import Operations
from tui.theme import Look

AT_SOFTMAX = (f"run-to {DECODER}@0", "iter 7", "run-to `aten::softmax/Softmax`")
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids=str)


@SIZES
def test_panes_show_the_seventh_iteration(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        panes = {80: ("tabs", "operations", "time")}.get(
            size[0], ("frames", "operations", "graph", "value", "loop", "edges", "scans", "time")
        )
        driven.golden(f"main_{size[0]}x{size[1]}", *panes)

    drive("date_normaliser", script, size=size, lines=AT_SOFTMAX)


def test_every_letter_goes_forward_and_its_capital_back() -> None:
    async def script(driven: Driven) -> None:
        start = driven.state.view.tick
        for there, back in (("n", "N"), ("s", "S"), ("right_square_bracket", "left_square_bracket"), ("down", "up")):
            await driven.press(there)
            assert driven.state.view.tick > start, there
            await driven.press(back)
            assert driven.state.view.tick == start, back

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_a_count_repeats_a_movement() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("3", "right_square_bracket")
        assert driven.state.iteration == 10
        await driven.press("1", "0", "left_square_bracket")
        assert driven.state.iteration == 0

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_finish_and_entry_and_the_ends_of_the_loop() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("G")
        assert driven.state.iteration == 10
        await driven.press("g")
        assert driven.state.iteration == 0
        await driven.press("f")
        assert driven.state.stop.closed and driven.state.iteration == 10
        await driven.press("F")
        assert driven.state.iteration is None and len(driven.state.frames) == 2

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_outer_frames_are_looked_at_without_moving() -> None:
    async def script(driven: Driven) -> None:
        tick = driven.state.view.tick
        await driven.press("u")
        assert driven.state.depth == 0 and "GRUSequence" in driven.text("operations")
        await driven.press("d")
        assert driven.state.depth == 1 and "Softmax" in driven.text("operations")
        assert driven.state.view.tick == tick

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_a_nested_body_is_entered_and_left() -> None:
    async def script(driven: Driven) -> None:
        while len(driven.state.frames) < 3:
            await driven.press("s")
        assert driven.text("frames").count("└") == 2
        await driven.press("f", "f")
        assert len(driven.state.frames) < 3

    drive("nested_loop", script)


def test_a_breakpoint_is_set_stops_the_run_and_goes() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("b")
        assert [one.hits for one in driven.state.breaks] == [0]
        assert "●" in driven.text("operations")
        await driven.press("c")
        assert driven.state.iteration == 8 and "stop" in driven.text("stop") and driven.pane("stop").display
        assert not driven.pane("value").display
        await driven.press("C")
        assert driven.state.iteration == 7
        await driven.press("b")
        assert driven.state.breaks == () and "●" not in driven.text("operations")

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_the_mouse_selects_opens_scrolls_and_scrubs() -> None:
    async def script(driven: Driven) -> None:
        await driven.pilot.click("#operations", offset=(6, 3))
        await driven.settle()
        pane = driven.pane("operations")
        assert isinstance(pane, Operations)
        assert driven.state.cursor == pane.listing().entries[pane.top + 2].indices[0]
        await driven.press("escape")
        assert driven.state.selected is None
        await driven.pilot.click("#time", offset=(17 + 6 * 2, 3))
        await driven.settle()
        assert driven.state.iteration == 2

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_the_prompt_takes_commands_and_shows_what_is_wrong_in_place() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("iter 3")
        assert driven.state.iteration == 3
        await driven.type("goto nowhere")
        assert "there is nothing called 'nowhere'" in driven.text("answer")
        await driven.type("info trip")
        assert driven.pane("card").display and "trip count" in driven.text("card")
        await driven.press("escape")
        assert not driven.pane("card").display and driven.state.iteration == 3

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_at_the_end_of_the_run_one_can_go_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("c")
        assert driven.state.view.outputs is not None and driven.state.frames == ()
        assert "Result_526" in driven.text("end") and "Loop" in driven.text("graph")
        await driven.press("N")
        assert driven.state.frames

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_a_terminal_without_symbols_gets_ascii_alone() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        for pane in ("frames", "operations", "graph", "value", "loop", "edges", "scans", "time"):
            assert driven.text(pane).isascii(), pane

    drive("date_normaliser", script, size=(120, 40), lines=AT_SOFTMAX, look=Look(ascii=True, plain=True))


def test_a_terminal_that_is_too_small_gets_a_sentence() -> None:
    async def script(driven: Driven) -> None:
        assert "60x18 is needed" in driven.text("too-small")
        assert not driven.pane("operations").is_on_screen

    drive("date_normaliser", script, size=(59, 20))


def test_an_operation_is_selected_and_run_to_and_gone_back_to() -> None:
    async def script(driven: Driven) -> None:
        start = driven.state.frame.moment
        await driven.press("2", "J")
        assert driven.state.selected == start + 2 and driven.state.frame.moment == start
        await driven.press("t")
        assert driven.state.frame.moment == start + 2 and driven.state.selected is None
        assert not driven.pane("stop").display, "the aim of a movement is no breakpoint"
        await driven.press("5", "K", "T")
        assert driven.state.frame.moment == start - 3 and driven.state.iteration == 7
        await driven.press("4", "J", "T")
        assert driven.state.frame.moment == start + 1 and driven.state.iteration == 6

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_in_the_graph_the_arrows_go_along_wires() -> None:
    async def script(driven: Driven) -> None:
        driven.pane("graph").focus()
        await driven.pilot.pause()
        tick = driven.state.view.tick
        await driven.press("up")
        assert driven.state.frame.layers[driven.state.cursor].name == "aten::squeeze/Squeeze"
        await driven.press("down", "down")
        assert "Unsqueeze_1" in driven.state.frame.layers[driven.state.cursor].name
        assert driven.state.view.tick == tick
        assert "lines" in driven.text("graph").splitlines()[0] and "╭" not in driven.text("graph")
        await driven.press("plus", "plus")
        assert "{ Softmax }" in driven.text("graph") and "╭" not in driven.text("graph")
        await driven.press("plus")
        assert "╭" in driven.text("graph")

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_another_statistic_stands_in_the_list() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("V")
        assert driven.state.statistic == "mean" and "mean" in driven.text("operations").splitlines()[0]
        await driven.filled()
        value = driven.state.frame.output(driven.state.cursor).array
        row = next(line for line in driven.text("operations").splitlines() if "▸ Softmax" in line)
        assert f"{float(value.mean()):.3f}".lstrip("0") in row
        await driven.type("statistic rms")
        assert driven.state.statistic == "rms"

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_a_stop_says_how_a_nan_comes_about_and_where_its_inf_was_born() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto `__module.n.v/aten::linear/Add`")
        await driven.type("set `__module.n.v/aten::linear/Add`[0,3,0] = inf")
        await driven.type("break nan")
        await driven.press("c")
        text = " ".join(driven.text("stop").split())
        assert "16 NaN of 16 first [0,0]" in text and "1 Inf of 16" in text
        assert "Inf - Inf (the largest" in text and "v/Add@7[0,3,0]: set by the user" in text
        assert "the last finite op is v/MatMul@7" in text
        await driven.filled()
        driven.golden("stop_160x48", "operations", "graph", "stop", "time")

    drive("date_normaliser", script, lines=AT_SOFTMAX)


def test_x_shows_how_the_next_anomaly_comes_about_and_a_place_that_was_named_needs_no_card() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("x")
        assert (driven.state.iteration, driven.state.stop.done.layer.name) == (7, "exp_key")  # type: ignore[union-attr]
        assert "Inf appears in Exp" in driven.text("stop") and "exp(89.2) > f32 maximum" in driven.text("stop")
        assert "stopped: anomaly" in driven.text("top")
        await driven.type("first")
        await driven.type("run-to exp_key@7")
        assert not driven.pane("stop").display and "paused" in driven.text("top")
        await driven.type("until iter == 9")
        assert not driven.pane("stop").display
        await driven.press("X")
        assert "stopped: anomaly" in driven.text("top") and driven.pane("stop").display

    drive("rwkv_overflow", script)


@pytest.mark.parametrize(("size", "look", "mark"), [((160, 48), Look(), "*"), ((120, 40), Look(ascii=True), "#")])
def test_an_edited_value_is_marked_in_its_row_until_it_is_computed_anew(
    size: tuple[int, int], look: Look, mark: str
) -> None:
    def marked(driven: Driven) -> list[str]:
        lines = driven.text("operations").splitlines()[1:]
        return [next(word for word in line.split() if word.isalpha()) for line in lines if f" {mark} " in line]

    async def script(driven: Driven) -> None:
        assert marked(driven) == []
        await driven.type("set nothing = 3")
        assert marked(driven) == ["nothing"] and "edited" in driven.text("pair")
        await driven.press("n", "n")
        assert marked(driven) == ["nothing"]
        await driven.press("right")
        assert marked(driven) == []
        await driven.press("left")
        assert marked(driven) == ["nothing"]

    drive(squaring(4), script, size=size, look=look, lines=("run-to nothing@0",))
