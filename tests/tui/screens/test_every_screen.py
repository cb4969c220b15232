"""What holds on every screen: ASCII alone where that is asked for, and nothing cut off without an ellipsis."""

from __future__ import annotations

import pytest
from stepper_tui.command_line import VIEWS
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import wrapped
from stepper_tui.theme import Look, in_ascii
from textual.screen import Screen
from textual.strip import Strip

from tests.tui.driven import DECODER, Driven, check_golden, drive, key_event

PLAIN = Look(ascii=True, plain=True)
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)


@SIZES
def test_every_screen_is_ascii_where_that_is_asked_for_and_esc_closes_it(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":break nan", ":break years@* if max(balance) > 9", ":watch max(balance)", ":goto years@3")
        for view in VIEWS:
            shown = await driven.do(f":view {view}")
            assert not [line for line in shown.splitlines() if not line.isascii()], view
            await driven.do("escape")
            assert driven.app.front.view_name == "sheet", f"Esc closes {view}"
        shown = await driven.do(":help break", "colon")
        assert shown.isascii() and "Up Down history" in driven.text("keys")
        await driven.do("escape", "escape", "ctrl+p")
        lines = driven.screen.splitlines()
        assert all(map(str.isascii, lines)) and "{" not in driven.screen, "palette"

    drive("for_loop", script, size=size, look=PLAIN)
    assert in_ascii("Variadi…plit") == "Variadi~plit" and in_ascii("counts 1, 2, … 11") == "counts 1, 2,.. 11"


def test_in_ascii_arrow_keys_are_words_that_a_click_presses() -> None:
    async def script(driven: Driven) -> None:
        assert driven.text("keys").strip().startswith("Right Left iteration   Down Up row")
        before = driven.at[1] or 0
        await driven.click("keys", "eft")
        assert driven.at[1] == before - 1

    drive("date_normaliser", script, size=(120, 40), look=PLAIN, runs=True)


def test_the_first_and_the_last_line_of_every_screen() -> None:
    """Where one is, and the keys that are of use there; what has no room is left out."""
    lines: dict[str, list[str]] = {"top": [], "keys": []}

    async def script(driven: Driven) -> None:
        for known in lines.values():
            known.append(f"--- {driven.app.size.width} columns")
        for view in VIEWS:
            await driven.do(f":view {view}")
            for pane, known in lines.items():
                known.append(f"{view + ':':13}{driven.text(pane)}")
            await driven.do(":view sheet")

    for width in (80, 120, 160):
        drive("date_normaliser", script, size=(width, 40), runs=True, lines=(f"goto {DECODER}@7", "break nan"))
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
        for view in VIEWS:
            styled.clear()
            await driven.do(f":view {view}")
            assert len(styled) <= 2, (view, styled)
            styled.clear()
            await driven.do(":view sheet")
            assert not styled, view

    drive("while_loop", script, lines=("goto 5",), runs=True)


def test_a_row_that_is_too_long_ends_in_an_ellipsis() -> None:
    async def script(driven: Driven) -> None:
        pane = driven.pane("sheet")
        assert Strip(pane.segments_of([("abc", ""), ("defgh", "bad")], 6)).text == "abcde…"
        assert Strip(pane.segments_of([("abcdef", ""), ("   ", "")], 6)).text == "abcdef"
        assert Strip(pane.segments_of([("abc", "")], 6)).text == "abc   "

    drive("for_loop", script, size=(80, 24))
    assert wrapped("  one two three", 10) == ["  one two", "    three"] and wrapped("short", 10) == ["short"]


def test_an_answer_of_several_lines_is_read_on_every_screen() -> None:
    async def script(driven: Driven) -> None:
        for screen in ("sheet", "value", "graph"):
            await driven.do(f":view {screen}", ":print tok@*")
            front, lines = driven.app.front, driven.text("card").splitlines()
            assert lines[0].startswith(" print tok@*") and lines[1].split() == ["@0", "i64[1]", "[11]"], (screen, lines)
            await driven.do("escape")
            assert not driven.pane("card").display and driven.app.front is front and driven.app.focused is not None
            await driven.do(":view sheet")

    drive("date_normaliser", script, size=(120, 40), lines=(f"goto {DECODER}@5",), runs=True)


def test_keys_that_are_typed_while_a_screen_opens_are_not_lost() -> None:
    async def script(driven: Driven) -> None:
        driven.app.perform("view graph")
        for key in ("colon", *"goto", "space", "2", "enter"):
            driven.app.post_message(key_event(key))
        await driven.filled()
        assert driven.state.iteration == 2 and not driven.app._faults

    drive("for_loop", script, size=(80, 24))


SCREENS = ("goto 5", "rows all", "why tok@5", "sheet h", "view graph", "value h@5", "view help", "view inputs")


@pytest.mark.parametrize("line", SCREENS)
def test_screens_are_drawn_whole_at_every_size_that_a_terminal_gets_on_the_way(line: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.do(f":{line}")
        for size in ((80, 24), (200, 60), (61, 20), (120, 40), (40, 10), (20, 6), (160, 48)):
            await driven.pilot.resize_terminal(*size)
            await driven.settle()
            assert not driven.app._faults, (size, driven.app._faults)
            for pane in driven.app.screen.query(Pane):
                if pane.is_on_screen and pane.size.width:
                    assert pane.region.right <= size[0]
                    lines = [pane.render_line(y).cell_length for y in range(pane.size.height)]
                    assert set(lines) <= {pane.size.width}, pane

    drive("date_normaliser", script, size=(140, 40), runs=True)
