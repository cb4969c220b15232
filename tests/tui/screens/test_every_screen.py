"""What holds on every screen: ASCII alone where that is asked for, and nothing cut off without an ellipsis."""

from __future__ import annotations

import pytest
from textual.screen import Screen
from textual.strip import Strip

from tests.tui.driven import DECODER, Driven, check_golden, drive, key_event
from tests.tui.test_links import click
from tui.paint.pane import Pane
from tui.paint.rows import wrapped
from tui.registry import VIEWS
from tui.screens.overview.pane import OverviewPane
from tui.theme import Look, in_ascii

PLAIN = Look(ascii=True, plain=True)
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)


def screen_text(driven: Driven) -> list[str]:
    """All that is painted, the lines between panes and what lies over the screen too."""
    return [strip.text for strip in driven.app.screen._compositor.render_strips()]


def test_in_ascii_arrow_keys_are_words_that_a_click_presses_and_what_is_left_out_is_no_full_stop() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        assert driven.text("keys").strip().startswith("Right Left iteration   Down Up row")
        pane = driven.app.focused_pane
        assert isinstance(pane, OverviewPane)
        before = pane.at
        await click(driven, "keys", " Left")
        assert pane.at == before
        await click(driven, "keys", "eft")
        assert pane.at.iteration == before.iteration - 1
        await driven.press("colon")
        assert "Up Down history" in driven.text("keys")
        await driven.press("escape", "question_mark")
        assert any(row.split()[:2] == ["Down", "j"] for row in driven.text("help").splitlines())

    drive("date_normaliser", script, size=(120, 40), look=PLAIN, runs=True)
    assert in_ascii("Variadi…plit") == "Variadi~plit" and in_ascii("counts 1, 2, … 11") == "counts 1, 2,.. 11"


@SIZES
def test_every_screen_is_ascii_where_that_is_asked_for(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        for line in ("break nan", "break years@* if max(balance) > 9", "watch max(balance)", "run-to years@3"):
            await driven.type(line)
        for view in VIEWS:
            await driven.type(f"view {view}")
            assert not [line for line in screen_text(driven) if not line.isascii()], view
            if view != "overview":  # there Esc pauses the run alone
                await driven.press("escape", *["escape"] * (view == "sheet"))  # out of the loop first
                assert not driven.app.front.view_name, f"Esc closes {view}"
            await driven.type("view main")
        await driven.type("help break")
        assert not [line for line in screen_text(driven) if not line.isascii()], "an answer"
        await driven.press("ctrl+p")
        await driven.pilot.pause(0.1)
        assert not [line for line in screen_text(driven) if not line.isascii()], "palette"

    drive("for_loop", script, size=size, look=PLAIN)


def test_the_first_and_the_last_line_of_every_screen() -> None:
    """Where one is, and the keys that are of use there; what has no room is left out."""
    lines: dict[str, list[str]] = {"top": [], "keys": []}

    async def script(driven: Driven) -> None:
        for known in lines.values():
            known.append(f"--- {driven.app.size.width} columns")
        for view in VIEWS:
            await driven.type(f"view {view}")
            if view == "overview":
                await driven.ran()  # until then other keys are of use
            for pane, known in lines.items():
                known.append(f"{view + ':':13}{driven.text(pane)}")
            await driven.type("view main")

    for width in (80, 120, 160):
        drive("date_normaliser", script, size=(width, 40), lines=(f"run-to {DECODER}@0", "iter 7", "break nan"))
    for pane, known in lines.items():
        check_golden(pane, "\n".join([*known, ""]))


def test_a_screen_is_styled_as_a_whole_once_more_at_most_while_it_opens_and_never_when_one_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time costs as much as all that is painted."""
    styled: list[str] = []
    style = Screen.update_node_styles

    def noted(screen: Screen[object], animate: bool = True) -> None:
        styled.append(type(screen).__name__)
        style(screen, animate)

    monkeypatch.setattr(Screen, "update_node_styles", noted)

    async def script(driven: Driven) -> None:
        await driven.filled()
        for view in VIEWS:
            styled.clear()
            await driven.type(f"view {view}")
            assert len(styled) <= (2 if view == "value" else 1), (view, styled)
            styled.clear()
            await driven.type("view main")
            assert not styled, view

    drive("while_loop", script, lines=("goto 5",))


@SIZES
def test_the_palette_has_a_frame_in_ascii_too(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("ctrl+p")
        for _ in range(50):
            await driven.pilot.pause(0.01)
            lines = screen_text(driven)
            edges = [line for line in lines if line.startswith("+--") and line.rstrip().endswith("--+")]
            if len(edges) >= 3:
                break
        assert len(edges) == 3, "above the line, between, below the list"
        inside = lines[lines.index(edges[0]) + 1 : len(lines) - lines[::-1].index(edges[2]) - 1]
        assert all(line.startswith(("|", "+")) and line.rstrip().endswith(("|", "+")) for line in inside)
        assert "{" not in "".join(lines)

    drive("for_loop", script, size=size, look=PLAIN)


def test_a_row_that_is_too_long_ends_in_an_ellipsis() -> None:
    async def script(driven: Driven) -> None:
        pane = driven.pane("operations")
        assert Strip(pane.segments_of([("abc", ""), ("defgh", "bad")], 6)).text == "abcde…"
        assert Strip(pane.segments_of([("abcdef", ""), ("   ", "")], 6)).text == "abcdef"
        assert Strip(pane.segments_of([("abc", "")], 6)).text == "abc   "

    drive("for_loop", script, size=(80, 24))


def test_an_answer_is_wrapped_and_takes_the_keys_where_there_are_tabs() -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@1")
        await driven.shown_tab("loop")
        await driven.press("e")
        card = driven.pane("card")
        shown = driven.text("card")
        assert card.has_focus and "↓ ↑ scroll" in shown and "Esc close" in driven.text("keys")
        await driven.press("down", "down")
        assert card.top == 2
        await driven.press("escape")
        assert driven.app.front.tab == "loop" and driven.pane("edges").has_focus  # type: ignore[attr-defined]

    drive("date_normaliser", script, size=(80, 24))


def test_keys_that_are_typed_while_a_screen_opens_are_not_lost() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("view sheet")
        assert not driven.app.front.is_ready
        for key in ("colon", *"goto", "space", "2", "enter"):
            driven.app.post_message(key_event(key))
        await driven.settle()
        assert driven.app.front.view_name == "sheet" and driven.state.iteration == 2
        assert not driven.app._faults

    drive("for_loop", script, size=(80, 24))


def test_an_answer_of_several_lines_is_read_on_every_screen() -> None:
    async def script(driven: Driven) -> None:
        assert driven.text("value").split()[-4:] == ["one", "iteration", "before:", "6"]
        for screen in ("overview", "sheet", "watches"):
            await driven.type(f"view {screen}")
            front = driven.app.front
            await driven.type("print tok@*")
            lines = driven.text("card").splitlines()
            assert lines[0].startswith(" print tok@*") and lines[1].split() == ["@0", "i64[1]", "[11]"], (screen, lines)
            if screen == "overview":
                await driven.press("tab")
                assert driven.pane("card").has_focus and "Esc close" in driven.text("keys")
            await driven.press("escape")
            assert not driven.pane("card").display and driven.app.front is front
            assert not driven.pane("card").has_focus and driven.app.focused is not None

    drive("date_normaliser", script, size=(120, 40), lines=(f"goto {DECODER}@5",))


def test_the_help_is_wrapped_and_esc_closes_it() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("question_mark")
        text = driven.text("help")
        assert "rows 1 to" in text and "what is remarkable" in " ".join(text.split()) and "…" not in text
        await driven.press("escape")
        assert driven.app.front.view_name == ""

    drive("for_loop", script, size=(80, 24))


def test_the_help_stands_in_two_columns_where_there_is_room() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("question_mark")
        lines = driven.text("help").splitlines()
        line = next(line for line in lines if line.split()[:2] == ["n", "F10"])
        assert any("at the prompt" in line and line.index("at the prompt") > 90 for line in lines[:5])
        assert "next operation" in line and "next N" in line and len(line) > 110
        assert "…" not in driven.text("help")

    drive("for_loop", script, size=(200, 60))


def test_at_the_start_it_is_said_what_one_may_do() -> None:
    async def script(driven: Driven) -> None:
        assert "s steps" in driven.text("answer") and "? lists all keys" in driven.text("answer")
        assert "what a loop carries on" in driven.text("edges") and "collects" in driven.text("scans")
        await driven.press("n")
        assert "lists all keys" not in driven.text("answer")

    drive("for_loop", script)


def test_before_a_loop_its_run_is_seen_and_entered_at_a_column_of_a_picture() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("0")
        await driven.filled()
        loop = driven.text("loop")
        assert "next is passes" in loop and "as it will run" in loop and "3 done" in loop and "TTF" in loop
        assert "0 to 8" in driven.text("edges") and "order_row" in driven.text("scans")
        edges = driven.pane("edges")
        driven.app.front.set_focus(edges)
        await driven.press("left")
        assert "1: Enter goes there" in driven.text("edges")
        await driven.press("enter")
        assert driven.state.iteration == 1 and "as it" not in driven.text("loop")
        await driven.press("f", "f")  # after the loop, as it ran
        await driven.filled()
        assert driven.state.iteration is None

    drive("nested_loop", script, starts_up=True, runs=True)


def test_the_last_line_names_the_keys_of_the_prompt_while_one_types() -> None:
    async def script(driven: Driven) -> None:
        await driven.pilot.press("colon")
        await driven.pilot.pause()
        assert "Tab complete" in driven.text("keys")
        await driven.press("escape")
        assert "Tab complete" not in driven.text("keys")

    drive("for_loop", script)


def test_the_time_tab_shows_all_that_is_carried() -> None:
    async def script(driven: Driven) -> None:
        await driven.type(f"run-to {DECODER}@3")
        assert len([line for line in driven.text("time").splitlines() if line.strip()]) == 2
        await driven.shown_tab("time")
        await driven.filled()
        names = [line.split()[0] for line in driven.text("time").splitlines()[2:] if line.strip()]
        assert [name for name in names if name.strip("'").isalpha()] == [
            "ctx'",
            "h'",
            "i'",
            "tok'",
            "atts",
            "conf",
            "events",
        ]

    drive("date_normaliser", script, size=(80, 24))


@SIZES
def test_the_inputs_screen_ends_at_the_edge_of_the_screen(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("view inputs")
        for pane in driven.app.screen.query(Pane):
            assert pane.region.right <= size[0], pane

    drive("for_loop", script, size=size)


def test_a_long_line_goes_on_further_in() -> None:
    assert wrapped("  one two three", 10) == ["  one two", "    three"]
    assert wrapped("short", 10) == ["short"]


SCREENS = ("goto 5", "goto 5; view sheet", "rows all", "why tok@5", "sheet h", "overview", "goto 5; open h")


@pytest.mark.parametrize("lines", SCREENS)
def test_screens_are_drawn_at_every_size_that_a_terminal_gets_on_the_way(lines: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        for line in lines.split("; "):
            await driven.type(line)
        for size in ((80, 24), (200, 60), (61, 20), (120, 40), (40, 10), (20, 6), (160, 48)):
            await driven.pilot.resize_terminal(*size)
            await driven.settle()
            assert not driven.app._faults, (size, driven.app._faults)

    drive("date_normaliser", script, size=(140, 40), starts_up=True, runs=True)
