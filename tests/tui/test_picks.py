"""Lists to pick from: what a line may become, with shapes and values, and what an ambiguous name may mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from stepper_tui.screens.prompt import PickList

from stepper.debug.debugger import Debugger
from tests.debug.debugged import opened
from tests.models import Graph, carried, last
from tests.tui.driven import DECODER, Driven, drive


def three_loops(folder: Path) -> Debugger:
    """Three loops one after another, in each an operation of the same name."""
    net = Graph()
    value = net.constant([1.0])
    for name in ("one", "two", "three"):
        body = net.body()
        state = body.parameter("state", dims=(1,))
        out = body.result(body.apply("Sin", state, name="sine"), "next_state")
        (value,) = net.loop(name, body, 4, True, [carried(value, state, out)], [last(out)])
    net.result(value, "final")
    return opened(folder, net)


def test_an_ambiguous_name_is_a_list_of_which_a_key_or_a_click_takes_one(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        for line in ("goto sine", "break sine if iter > 0", "goto sine@2"):
            await driven.type("first")
            await driven.type(line)
            rows = driven.text("picks").splitlines()
            assert [name in row for name, row in zip(("one", "two", "three"), rows[1:], strict=True)] == [True] * 3, (
                rows
            )
            assert driven.pane("picks").has_focus and "Enter this one" in driven.text("keys")
            await driven.press("escape")
            assert not driven.pane("picks").display and driven.state.view.tick == 0
        await driven.type("goto sine")
        await driven.press("down", "enter")
        assert "two" in driven.text("top") and driven.at[0] == "sine"
        await driven.do(":first", ":goto sine@2")
        await driven.pilot.click("#picks", offset=(5, 4), times=2)
        await driven.settle()
        assert "three" in driven.text("top") and driven.iterations == [2]
        await driven.press("colon", "up")
        assert driven.app.front.prompt.value.startswith("goto three::sine@2")

    drive(three_loops(tmp_path), script, size=(120, 40))


def test_why_of_an_ambiguous_name_is_a_list_to_pick_from(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("why sine@2")
        rows = driven.text("picks").splitlines()
        assert [name in row for name, row in zip(("one", "two", "three"), rows[1:], strict=True)] == [True] * 3
        await driven.press("down", "enter")
        await driven.filled()
        assert "why two@2::sine[0]" in driven.text("headline") and "sin(" in driven.text("inspector")
        for line in ("goto sine@2", "print sine@2[0]"):
            await driven.type(line)
            lines = [one.line for one in driven.app.front.query_one("#picks", PickList).entries()]
            assert lines == [line.replace("sine", f"{name}::sine") for name in ("one", "two", "three")], (
                "all that was asked"
            )
            await driven.press("escape")

    drive(three_loops(tmp_path), script, size=(120, 40), runs=True)


def test_tab_lists_names_with_shape_and_value_and_the_line_is_what_is_seen() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("colon", *"goto t", "tab")
        rows = driven.text("picks").splitlines()[1:]
        tok = next(row for row in rows if row.strip().startswith("tok "))
        assert "i64[1]" in tok and "[2]" in tok
        values = {row.split()[0]: row for row in rows if "i64[3]" in row}
        assert "[2, 0, 2]" in values["toks"]
        prompt = driven.app.front.prompt
        first = prompt.value
        await driven.press("tab")
        second = prompt.value
        await driven.press("up")
        assert prompt.value == first != second
        await driven.press("escape")
        assert prompt.value == "goto t" and not driven.pane("picks").display
        await driven.press("o", "k", "tab")
        y = next(y for y, row in enumerate(driven.text("picks").splitlines()) if row.strip().startswith("toks"))
        await driven.pilot.click("#picks", offset=(4, y + 1))
        await driven.settle()
        assert prompt.value == "goto toks"
        await driven.press("escape", "escape")
        assert driven.pane("sheet").has_focus

    drive("date_normaliser", script, size=(120, 40), lines=(f"goto {DECODER}@3",))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=str)
def test_no_line_of_the_list_is_just_below_another_one(size: tuple[int, int]) -> None:
    """Lists of each length."""

    async def script(driven: Driven) -> None:
        lengths = set()
        for text in ("run-to tok", "run-to TopK", "goto c", "goto mul", "view t", "view "):
            await driven.press("colon")
            driven.app.front.prompt.value = text
            await driven.press("tab")
            lines = driven.screen.splitlines()
            rules = [y for y, line in enumerate(lines) if set(line) == {"─"}]
            assert not [y for y in rules if y + 1 in rules], (text, lines)
            lengths.add(len(driven.app.front.query_one("#picks", PickList).entries()))
            await driven.press("escape", "escape")
        assert len(lengths) > 3, lengths

    drive("date_normaliser", script, size=size, lines=(f"goto {DECODER}@3",))


def test_the_name_that_the_screen_writes_for_a_loop_leads_into_it_and_names_of_inner_levels_are_known() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("goto Loop")
        assert driven.state.iteration == 0 and len(driven.state.frames) == 2
        await driven.type("first")
        await driven.press("colon", *"run-to toks", "tab")
        assert driven.app.front.prompt.value == "run-to toks"
        await driven.press("enter")
        assert driven.state.iteration == 0

    drive("date_normaliser", script, size=(80, 24))


def test_an_ambiguous_name_within_an_expression_and_in_a_search(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break when max(sine) > 2 and iter > 1")
        await driven.press("down", "enter")
        assert driven.app.typed[-1] == "break when max(two::sine) > 2 and iter > 1"
        await driven.press("slash", *"si", "tab")
        assert driven.app.front.prompt.value == "search sine"
        await driven.press("enter")
        assert "› two" in driven.text("top"), "the cursor stands on that of the first loop"

    drive(three_loops(tmp_path), script, size=(100, 30))


def test_the_name_that_a_list_writes_means_that_operation_even_if_it_is_a_type() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("colon", *"goto Soft", "tab", "enter")
        await driven.filled()
        assert driven.at[0] == "Softmax"
        await driven.do(f":goto {DECODER}@4", ":run-to Softmax_1")
        assert driven.iterations == [4]
        assert "·" not in " ".join(driven.row("Softmax_1")), "rows that come into sight are read"

    drive("date_normaliser", script, size=(120, 40), lines=(f"goto {DECODER}@3",))
