"""What the cursor or the mouse is on answers: back edges, outputs, frames, names on cards, words of the last line."""

from __future__ import annotations

import asyncio

from textual import events

from tests.tui.driven import DECODER, Driven, drive
from tui.paint.pane import Pane
from tui.screens.graph.pane import BodyGraph
from tui.theme import GLYPHS

FOCUS = GLYPHS["focus"]


def line_with(driven: Driven, pane: str, text: str) -> tuple[int, int]:
    """Where a text stands in a pane, as column and line of the widget, its border and padding included."""
    widget = driven.pane(pane)
    for y, line in enumerate(driven.text(pane).splitlines()):
        if text in line:
            return line.index(text) + widget.gutter.left, y + widget.gutter.top
    raise AssertionError(f"{text!r} is not in\n{driven.text(pane)}")


async def click(driven: Driven, pane: str, text: str, times: int = 1) -> None:
    """Click on a text of a pane."""
    await driven.pilot.click(f"#{pane}", offset=line_with(driven, pane, text), times=times)
    await driven.settle()


async def tab_to(driven: Driven, pane: str) -> None:
    """Press Tab until the pane has the focus."""
    for _ in range(12):
        if driven.pane(pane).has_focus:
            return
        await driven.press("tab")
    raise AssertionError(f"Tab does not lead to {pane}")


def test_the_focus_is_marked_by_a_glyph_and_the_last_line_says_where_tab_leads() -> None:
    async def script(driven: Driven) -> None:
        titles = []
        for _ in range(8):
            marked = [
                pane.id
                for pane in driven.app.screen.query(Pane)
                if pane.size.height and pane.id not in ("keys", "answer") and pane.render_line(0).text[0] == FOCUS
            ]
            focused = driven.app.focused
            assert focused is not None and marked == [focused.id]
            named = driven.text("keys").partition("Tab ")[2].partition("   ")[0]
            titles.append(named)
            await driven.press("tab")
            now = driven.app.focused
            assert isinstance(now, Pane) and named == now.name_for_tab
        assert len(set(titles)) == 8 and {"frames", "back edges", "outputs", "timeline"} < set(titles)

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@3",))


def test_enter_on_a_back_edge_or_an_output_opens_its_value_and_keys_mean_it() -> None:
    async def script(driven: Driven) -> None:
        await tab_to(driven, "edges")
        first = driven.text("edges").splitlines()[1]
        assert first.startswith(FOCUS)
        await driven.press("down", "w")
        chosen = next(line for line in driven.text("edges").splitlines()[1:] if line.startswith(FOCUS))
        name = chosen.split()[1]
        assert name in chosen and chosen != first
        assert [watch.text for watch in driven.state.watches] and name in driven.state.watches[-1].text
        await driven.press("enter")
        assert driven.app.front.view_name == "value" and name in driven.text("top") + driven.text("tensor")
        await driven.press("q")
        row = driven.text("scans").splitlines()[1].split()[1]
        await click(driven, "scans", row, times=2)
        assert driven.app.front.view_name == "value"
        await driven.press("q")
        await click(driven, "edges", first.split()[1], times=2)
        assert driven.app.front.view_name == "value"

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@3",))


def test_what_is_opened_is_shown_whatever_is_selected_until_something_else_is() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("select 3")
        selected = driven.text("top")
        await click(driven, "edges", "h 1×64", times=2)
        assert driven.text("tensor").split()[0] == f"{FOCUS}h@3"
        await driven.press("J")
        assert "h@3" not in driven.text("tensor").splitlines()[0] and driven.text("top") != selected
        await driven.press("q")
        await driven.type("select 3")
        await driven.type("open TopK")
        assert "TopK" in driven.text("tensor").splitlines()[0]

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@3",))


def test_a_fact_of_the_stop_leads_to_its_moment() -> None:
    async def script(driven: Driven) -> None:
        await tab_to(driven, "stop")
        for _ in range(8):
            if any(line.startswith(FOCUS) and "born" in line for line in driven.text("stop").splitlines()[1:]):
                break
            await driven.press("down")
        await driven.press("enter")
        assert driven.text("top").count("exp_key") == 1 and driven.state.iteration == 7
        await driven.press("c")
        await click(driven, "stop", "numerator_now", times=2)
        assert driven.app.front.view_name == "value" and "numerator_now" in driven.text("top")

    drive("rwkv_overflow", script, lines=("break nan", "continue"))


def test_words_of_the_last_line_and_of_cards_are_buttons() -> None:
    async def script(driven: Driven) -> None:
        await click(driven, "keys", "iteration")
        assert driven.state.iteration == 4
        await click(driven, "keys", "[")
        assert driven.state.iteration == 3
        await click(driven, "keys", "prompt")
        assert driven.app.focused is driven.app.front.prompt
        await click(driven, "keys", "leave")
        assert driven.pane("operations").has_focus
        await click(driven, "keys", "help")
        assert driven.app.front.view_name == "help"
        await driven.press("q")
        await driven.type("last")
        await click(driven, "keys", "start" if "start" in driven.text("keys") else "first")
        assert driven.state.view is not None and driven.state.view.tick == 0

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@3",))


def test_a_frame_is_looked_at_by_enter_and_by_two_clicks() -> None:
    async def script(driven: Driven) -> None:
        depth = driven.state.depth
        await tab_to(driven, "frames")
        await driven.press("up", "enter")
        assert driven.state.depth == 0
        await click(driven, "frames", "└", times=2)
        assert driven.state.depth == depth == 1

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@3",))


def test_where_there_are_tabs_tab_comes_by_every_pane() -> None:
    async def script(driven: Driven) -> None:
        seen = []
        for _ in range(14):
            focused = driven.app.focused
            assert isinstance(focused, Pane) and focused.id is not None
            seen.append(focused.id)
            named = driven.text("keys").partition("Tab ")[2].partition("  ")[0]
            await driven.press("tab")
            assert not named or named in (driven.app.front.tab, getattr(driven.app.focused, "name_for_tab", ""))
        assert {"operations", "graph", "loop", "edges", "scans", "time"} <= set(seen)
        assert seen[0] in seen[1:], "it goes round"

    drive("date_normaliser", script, size=(80, 24), lines=(f"run-to {DECODER}@3",))


def test_the_end_of_the_run_and_the_first_line_answer() -> None:
    async def script(driven: Driven) -> None:
        await click(driven, "end", "Result_525", times=2)
        assert driven.app.front.view_name == "value" and "output 1" in driven.text("top") + driven.text("tensor")
        await driven.press("q")
        await tab_to(driven, "end")
        await driven.press("down", "down", "enter")
        assert driven.state.iteration == 10
        await click(driven, "top", "date_normaliser")
        assert driven.state.depth == 0
        await click(driven, "top", "paused")
        assert "explain" in driven.text("card")

    drive("date_normaliser", script, lines=("last", "view main"))


def test_a_click_on_a_parameter_in_the_graph_tells_its_value_and_a_second_one_opens_it() -> None:
    async def script(driven: Driven) -> None:
        await click(driven, "graph", "↺ steps")
        assert "i64[] 2" in driven.text("answer"), "two iterations were done"
        assert driven.state.selected is None
        await asyncio.sleep(1)  # so that what follows is no third click
        await click(driven, "graph", "↺ number", times=2)
        assert driven.app.front.view_name == "value" and "number@2" in driven.text("tensor")

    drive("while_loop", script, size=(120, 40), lines=("goto is_even@2",))


def test_a_click_on_the_body_below_the_cards_selects_nothing_and_two_go_there() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        await click(driven, "loop-body", "remainder")
        assert driven.state.selected is None and not driven.text("answer")
        await asyncio.sleep(1)
        await click(driven, "loop-body", "is_even", times=2)
        assert "until_one 110" in driven.text("top"), "in the iteration of the cursor, the last one: 27 takes 111 steps"

    drive("while_loop", script, size=(200, 60))


def test_two_clicks_below_the_cards_go_to_the_value_that_is_told_there() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await click(driven, "overview", "carried on by iteration 10", 1)
        assert driven.state.iteration is None
        await click(driven, "overview", "Enter goes there", 2)
        await driven.filled()
        assert driven.state.iteration == 10

    drive("date_normaliser", script, runs=True, size=(160, 48))


def wheel(driven: Driven, selector: str, *, down: bool = True, ctrl: bool = False, shift: bool = False) -> None:
    """Turn the wheel by one step over the middle of a pane."""
    pane = driven.pane(selector)
    kind = events.MouseScrollDown if down else events.MouseScrollUp
    x, y = pane.size.width // 2, pane.size.height // 2
    pane.post_message(kind(pane, x, y, 0, 0, 0, shift, False, ctrl))


def test_a_step_of_the_wheel_scrolls_once() -> None:
    async def script(driven: Driven) -> None:
        graph = driven.pane("graph")
        assert isinstance(graph, BodyGraph)
        await driven.press("plus", "plus")
        graph.view.top = 0
        for down, top in ((True, 3), (True, 6), (False, 3)):
            wheel(driven, "graph", down=down)
            await driven.settle()
            assert graph.view.top == top

    drive("date_normaliser", script, size=(120, 40), lines=(f"goto {DECODER}@5",))
