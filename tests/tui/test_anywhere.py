"""Iterations, loops and values are reached from wherever the run stands; and nothing leaves a loop unasked."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from stepper.debug.debugger import Debugger
from tests.debug.debugged import opened
from tests.debug.loops_to_break import recurrence
from tests.models import Graph, carried, last
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.test_links import click


def late_loop(folder: Path, before: int = 27) -> Debugger:
    """A loop of four iterations behind so many operations."""
    net = Graph()
    value = net.constant([1.0])
    x = net.parameter("x", dims=(1,))
    for number in range(before):
        x = net.apply("Abs" if number else "Sin", x, name=f"before_{number}")
    body = net.body()
    state = body.parameter("carried_sum", dims=(1,))
    out = body.result(body.apply("Add", state, body.constant([2.0]), name="inner_add"), "next_state")
    (final,) = net.loop("late", body, 4, True, [carried(x, state, out)], [last(out)])
    net.result(net.apply("Add", final, value, name="after"), "final")
    return opened(folder, net, [0.5])


def test_a_loop_behind_many_operations_is_one_key_away(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("right_square_bracket")
        assert "late 0" in driven.text("top")
        await driven.press("right_square_bracket")
        assert "late 1" in driven.text("top")
        await driven.type("last")
        await driven.type("view main")
        await driven.press("left_square_bracket")
        assert "late 3" in driven.text("top")
        await driven.press("right_square_bracket")
        assert "late 3" in driven.text("top") and "there is no iteration 4" in driven.text("answer")
        await driven.type("first")
        await driven.press("left_square_bracket")
        assert "no loop has run an iteration before" in driven.text("answer")
        await driven.type("goto 2")
        assert "late 2" in driven.text("top")
        await driven.type("goto 4")
        assert "late 2" in driven.text("top") and "there is no iteration 4" in driven.text("answer")

    drive(late_loop(tmp_path), script, size=(120, 40))


def test_a_search_finds_a_loop_an_operation_and_a_value_of_a_body_and_t_lands_there(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        for sought, seen in (("late", "late 0"), ("loop", "late 0"), ("inner_add", "inner_add"), ("carried", "late 0")):
            await driven.press("slash", *sought, "enter")
            assert "1 of 1" in driven.text("answer"), driven.text("answer")
            await driven.press("t")
            assert seen in driven.text("top"), (sought, driven.text("top"))
            await driven.type("first")
        await driven.press("slash", *"before_26", "enter", "t")
        assert "before_26" in driven.text("top") and "late" not in driven.text("top")

    drive(late_loop(tmp_path), script, size=(120, 40))


def test_what_was_searched_from_the_overview_is_meant_until_its_cursor_moves(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        assert driven.app.filled("{op}") == "late::inner_add@3"
        await driven.press("slash", *"before_3", "enter")
        assert "t runs to it" in driven.text("answer")
        before = driven.app.filled("{op}")
        assert before.endswith("before_3")
        await driven.press("b", "t")
        assert "before_3" in driven.text("top")
        assert [one.description.text for one in driven.state.breaks] == [before]
        await driven.press("0", "slash", *"inner_add", "enter")
        assert driven.app.filled("{op}") == "late::inner_add"
        await driven.press("left")
        assert driven.app.filled("{op}") == "late::inner_add@2"

    drive(late_loop(tmp_path), script, size=(120, 40), runs=True)


def test_t_on_a_card_of_the_overview_goes_into_the_first_iteration() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("t")
        assert driven.state.frames[1].iteration == 0 and len(driven.state.frames) == 2
        await driven.press("0", "end", "t")
        assert driven.state.frames[1].iteration == 0, "also backward"
        await driven.press("0", "end", "T")
        assert driven.state.frames[1].iteration == 2, driven.text("answer")

    drive("nested_loop", script, size=(120, 40), runs=True)


def test_t_on_what_lies_behind_stays_and_says_what_goes_back() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto order_row@2")
        tick = driven.state.stop.tick
        await driven.press("K", "K", "t")
        assert driven.state.stop.tick == tick and driven.app.front.view_name == ""
        assert "goto passes::pairs_left goes back to it" in driven.text("answer")

    drive("nested_loop", script, size=(120, 40))


def test_in_a_branch_and_where_a_loop_was_only_entered_the_brackets_work() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto is_even@2")
        await driven.press("s")
        assert len(driven.state.frames) == 3
        await driven.press("right_square_bracket")
        assert driven.state.iteration == 3
        await driven.press("left_square_bracket")
        assert driven.state.iteration == 2
        await driven.type("goto is_even@2")
        await driven.press("F")
        assert "entered" in driven.text("frames")
        await driven.press("right_square_bracket")
        assert driven.state.iteration == 0

    drive("while_loop", script, size=(120, 40))


def test_the_last_line_follows_what_the_run_does() -> None:
    async def script(driven: Driven) -> None:
        assert "s S into" in driven.text("keys")
        await driven.type(f"goto {DECODER}@3")
        assert "n N op" in driven.text("keys")
        await driven.press("colon")
        assert driven.text("keys").startswith("Enter run")
        await driven.press("escape", "m")
        assert "its name" in driven.text("keys")
        await driven.press("a")
        await driven.type("break atts@6")
        await driven.press("c")
        assert "o origin" in driven.text("keys")
        await driven.type("last")
        await driven.type("view main")
        assert "0 overview" in driven.text("keys") and "n N op" not in driven.text("keys")

    drive("date_normaliser", script, size=(120, 40))


def test_each_step_through_an_iteration_and_back_is_seen() -> None:
    async def script(driven: Driven) -> None:
        for key in ("n", "N"):
            seen = [driven.text("operations")]
            for _ in range(9):
                await driven.press(key)
                seen.append(driven.text("operations"))
            assert all(before != now for before, now in pairwise(seen)), key
        await driven.press("right_square_bracket", "f")
        assert "▸ end of iteration 110: condi" in driven.text("operations")

    drive("while_loop", script, size=(120, 40), lines=("goto is_even@2",))


def test_in_a_wide_column_names_are_whole() -> None:
    async def script(driven: Driven) -> None:
        lines = driven.text("operations").splitlines()[1:]
        assert not any("…" in line for line in lines) and any("squeeze/Squeeze" in line for line in lines)

    drive("date_normaliser", script, size=(200, 60), lines=(f"goto {DECODER}@3",))


def test_while_it_runs_the_last_line_says_how_to_pause_it(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("continue")
        for _ in range(400):
            await asyncio.sleep(0.01)
            if driven.state.running is not None:
                break
        assert driven.text("keys").startswith("Esc pause") and "op back" not in driven.text("keys")
        await click(driven, "keys", "pause")
        assert "paused" in driven.text("top") and "n N op" in driven.text("keys")

    drive(opened(tmp_path, recurrence("Add", 1.0)), script, size=(120, 40), lines=("iter +1",))


def test_space_says_where_nothing_opens_in_place() -> None:
    async def script(driven: Driven) -> None:
        for pane in ("operations", "graph"):
            driven.pane(pane).focus()
            await driven.press("space")
            assert "remainder has nothing inside" in driven.text("answer"), pane
            await driven.press("escape")
        await driven.type("select 2")
        driven.pane("graph").focus()
        await driven.press("space")
        assert "nothing inside" not in driven.text("answer") and "then" in driven.text("graph")
        await driven.type("select 0")

    drive("while_loop", script, size=(120, 40), lines=("goto remainder@2",))


@pytest.mark.parametrize(
    ("model", "text", "told"),
    [
        ("date_normaliser", "src.1", "src, an input, in the model's own graph; :open model::src.1 shows it"),
        ("date_normaliser", "Result_525", "Loop, the output Result_525; t goes into its first iteration"),
        ("nested_loop", "sorted", "passes, the output sorted; t goes into its first iteration"),
        ("rwkv_overflow", "embedded", "embedded, an input,"),
    ],
)
def test_a_search_finds_inputs_and_outputs_of_the_model(model: str, text: str, told: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type(f"search {text}")
        found = driven.text("answer")
        if told not in found:
            await driven.type("search-next")
        assert told in driven.text("answer"), found

    drive(model, script, size=(160, 48), starts_up=True, runs=True)


def test_goto_a_name_of_an_input_that_a_loop_has_as_well_goes_into_the_loop() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("goto values")
        assert driven.state.iteration == 0 and len(driven.state.frames) == 3

    drive("nested_loop", script, size=(120, 40), starts_up=True, runs=True)


def test_the_name_of_a_page_alone_shows_it() -> None:
    async def script(driven: Driven) -> None:
        for page in ("watches", "findings", "overview"):
            await driven.type(page)
            assert driven.app.front.view_name == page
        await driven.type("main")
        assert driven.app.front.view_name == ""
        await driven.type("help")
        assert "lines" in driven.text("card").splitlines()[0], "which is a command of its own"

    drive("rwkv_overflow", script, lines=("run-to key@5",), runs=True)
