"""The lists: breakpoints, watches, events, variables; what they show, and what keys and mouse do in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.debug.breakpoints.data_breakpoints import specification
from stepper.debug.debugger import Debugger
from tests.diagnosis.check.test_check import rows_through
from tests.tui.driven import DECODER, Driven, drive
from tests.tui.screens.overview.test_overview_screen import click_on
from tui.paint.list_pane import ListPane
from tui.theme import Look
from tui.worker.event_log import LogKind

STOPS = (
    f"run-to {DECODER}@0",
    f"break {DECODER}@3",
    "break nan",
    "break changes h.9 hit 2",
    f"break {DECODER}@* if max(h.9) > 2 once",
    "disable 2",
    "watch iter",
    "watch max(h.9)",
    "watch h.9",
    "watch prev(h.9)",
    "iter 1",
)


def listed(driven: Driven) -> ListPane:  # type: ignore[type-arg]
    pane = driven.app.focused_pane
    assert isinstance(pane, ListPane)
    return pane


async def look_at_all(driven: Driven, name: str) -> None:
    for key, view in (("B", "breakpoints"), ("W", "watches"), ("E", "events"), ("dollar_sign", "variables")):
        await driven.press(key)
        await driven.filled()
        more = [pane.id for pane in driven.app.screen.query(".more") if pane.display and pane.id]
        driven.golden(f"{view}_{name}", view, *more)
        await driven.press("q")
    assert not driven.app._faults


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48), (200, 60)], ids="{0[0]}x{0[1]}".format)
def test_the_lists_at_every_size(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await look_at_all(driven, f"{size[0]}x{size[1]}")

    drive("date_normaliser", script, size=size, lines=STOPS)


def test_the_lists_in_ascii_say_the_same() -> None:
    async def script(driven: Driven) -> None:
        await look_at_all(driven, "ascii_120x40")
        assert driven.text("operations").isascii()

    drive("date_normaliser", script, size=(120, 40), lines=STOPS, look=Look(ascii=True, plain=True))


# --- breakpoints ----------------------------------------------------------------------------------------------------


def test_a_breakpoint_is_switched_changed_ignored_and_deleted_by_keys() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("B", "down", "space")
        assert [one.enabled for one in driven.state.breaks] == [True, False]
        await driven.press("space")
        assert [one.enabled for one in driven.state.breaks] == [True, True]
        await driven.press("up", "enter")
        prompt = driven.app.front.prompt
        assert prompt.value == f"change 1 {DECODER}@3 "
        prompt.value += "if max(h.9) > 0"
        await driven.press("enter")
        assert driven.state.breaks[0].description.condition == "max(h.9) > 0"
        await driven.press("i", "2", "enter")
        assert driven.state.breaks[0].description.ignore == 2
        await driven.press("down", "delete")
        assert [one.number for one in driven.state.breaks] == [1]
        await driven.press("delete", "delete")
        assert not driven.state.breaks and "no row" in driven.text("answer")
        assert driven.app.front.view_name == "breakpoints"

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", f"break {DECODER}@3", "break nan"))


def test_enter_and_two_clicks_on_an_empty_list_ask_for_its_first_row() -> None:
    async def script(driven: Driven) -> None:
        for view, word in (("breakpoints", "break "), ("watches", "watch ")):
            await driven.type(f"view {view}")
            assert "none; a" in driven.text(view)
            await driven.press("enter")
            assert driven.app.front.prompt.value == word and driven.app.front.prompt.has_focus
            await driven.press("escape")
            await driven.pilot.click(f"#{view}", offset=(3, 1), times=2)
            await driven.settle()
            assert driven.app.front.prompt.value == word
            await driven.press("escape", "q")

    drive("date_normaliser", script)


def test_a_breakpoint_that_is_changed_to_nonsense_stays_what_it_was() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("change 1 no_such_thing")
        assert "no_such_thing" in driven.text("answer")
        assert driven.state.breaks[0].text == "nan"
        await driven.type("change 7 nan")
        assert "there is no breakpoint 7" in driven.text("answer")

    drive("date_normaliser", script, lines=("break nan",))


@pytest.mark.parametrize(
    "text",
    ["@2 if iter > 1 hit 3 exactly once", "when max(h.9) > 2 hit 2", "nan", "grow>10", "changes h.9 once",
     f"{DECODER}@1"],
)  # fmt: skip
def test_what_a_breakpoint_says_of_itself_sets_the_same_again(text: str) -> None:
    from stepper.debug.breakpoints.data_breakpoints import break_description

    description = break_description(text)
    assert break_description(specification(description)) == description


def test_the_mouse_chooses_switches_and_opens() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("B")
        pilot = driven.pilot
        await pilot.click("#breakpoints", offset=(20, 3))
        await driven.settle()
        assert listed(driven).cursor == 1 and driven.state.breaks[1].enabled
        await pilot.click("#breakpoints", offset=(2, 3))
        await driven.settle()
        assert not driven.state.breaks[1].enabled
        await pilot.click("#breakpoints", offset=(20, 2), times=2)
        await driven.settle()
        assert driven.app.front.prompt.value == f"change 1 {DECODER}@3 "

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", f"break {DECODER}@3", "break nan"))


def test_below_the_breakpoints_stands_where_the_chosen_one_sits_and_has_stopped() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("c", "c", "B")
        text = driven.text("detail")
        assert "breakpoint 1" in text and "in the model's own graph" in text
        assert text.index("has stopped") < text.index(f"tick {driven.state.view.tick} ")  # type: ignore[union-attr]
        assert sum("ran in" in line or "and at" in line for line in text.splitlines()) == 2
        await driven.press("down")
        text = driven.text("detail")
        assert "an operation gives a NaN and had none in its inputs" in text and "nowhere yet" in text
        await driven.press("down")
        text = driven.text("detail")
        assert "max(h) > 9 becomes true" in text and "once, then it goes" in text and "from the hit number 3" in text
        assert "how breaks are written" in text
        await driven.press("down")
        assert "when an iteration begins in Loop 'prim::Loop/Loop'" in driven.text("detail")

    once = "break when max(h) > 9 hit 3 once"
    lines = (f"run-to {DECODER}@0", "break MatMul", "break nan", once, "break @7", "first")
    drive("date_normaliser", script, size=(160, 60), lines=lines)


# --- watches --------------------------------------------------------------------------------------------------------


def test_a_watch_shows_now_and_before_and_is_opened_and_deleted() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("right_square_bracket", "right_square_bracket", "W")
        row = driven.text("watches").splitlines()[2]
        assert row.startswith("▌") and row[1:].split()[:5] == ["◦", "1", "iter", "2", "1"]
        await driven.press("down", "enter")
        assert driven.text("card").splitlines()[0].startswith(" print h.9")
        await driven.press("escape", "delete")
        assert [watch.text for watch in driven.state.watches] == ["iter"]
        await driven.press("a")
        assert driven.app.front.prompt.value == "watch "

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "watch iter", "watch h.9"))


def test_a_watch_is_drawn_over_all_iterations_also_those_that_were_passed() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("W")
        await driven.looked_through()
        row = driven.text("watches").splitlines()[2]
        bars = row.split()[5].rstrip("·")
        assert row.split()[3:5] == ["70", "60"] and len(bars) == 8, "before and the picture know them, too"
        assert list(bars) == sorted(bars) and len(set(bars)) == 6

    drive("date_normaliser", script, size=(200, 60), lines=(f"run-to {DECODER}@0", "watch 10*iter", "iter 7"))


def test_a_low_screen_has_the_list_alone() -> None:
    async def script(driven: Driven) -> None:
        for key in ("W", "B"):
            await driven.press(key)
            assert not any(pane.display for pane in driven.app.screen.query(".more"))

    drive("for_loop", script, size=(80, 20), lines=("watch 1",))


def test_at_80x24_a_list_tells_more_of_its_row() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("M")
        told = " ".join(driven.text("detail").split())
        assert "Inf is born in Exp 'exp_key': exp(89.2) > f32 maximum exp(88.72)" in told
        assert "do keep the argument in range" in told
        await driven.press("q", "enter", "w", "enter")
        assert driven.text("summary").splitlines()[0].startswith(" min ")
        assert "over iterations" in driven.text("over") and "▀▀▀" in driven.text("over")
        assert "iterations" not in driven.text("summary")  # they have a picture of their own

    drive("rwkv_overflow", script, size=(80, 24), runs=True)


# --- events ---------------------------------------------------------------------------------------------------------


def test_the_log_keeps_what_happened_and_leads_back_to_it() -> None:
    async def script(driven: Driven) -> None:
        stopped_at = driven.state.view.tick
        await driven.press("c")
        await driven.type("nonsense")
        kinds = [entry.kind for entry in driven.state.lists.log]
        assert kinds == [LogKind.SET, LogKind.STOPPED, LogKind.MOVED, LogKind.REFUSED]
        await driven.press("E")
        assert listed(driven).cursor == 3
        await driven.press("up", "up", "enter")
        assert driven.state.view.tick == stopped_at and driven.state.iteration == 3

    drive("date_normaliser", script, lines=(f"break {DECODER}@3", "continue"))


def test_lines_of_logpoints_keep_the_place_at_which_they_were_written() -> None:
    async def script(driven: Driven) -> None:
        written = [entry for entry in driven.state.lists.log if entry.kind is LogKind.LOGGED]
        assert [entry.text for entry in written] == [f"at {count}" for count in range(len(written))]
        assert len(written) > 3
        assert [entry.place.rpartition("#")[2] for entry in written] == [str(count) for count in range(len(written))]
        assert sorted(entry.tick for entry in written) == [entry.tick for entry in written]

    lines = (f"run-to {DECODER}@0", "first", f'log {DECODER}@* "at {{iter}}"', "continue")
    drive("date_normaliser", script, lines=lines)


# --- variables ------------------------------------------------------------------------------------------------------


def test_the_values_of_the_frame_are_those_of_the_run() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("dollar_sign")
        text = driven.text("variables")
        frame = driven.state.frame
        names = [parameter.name for parameter in frame.graph.parameters]
        assert all(any(name in line for line in text.splitlines()) for name in names)
        assert "merged" in text and "f32[1,64]" in text
        await driven.press("space")
        assert "what came in" in driven.text("variables") and "h.9" not in driven.text("variables")
        await driven.press("down", "down", "q")
        assert not driven.app._faults

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@1",))


# --- findings -------------------------------------------------------------------------------------------------------


def test_findings_are_marked_on_their_card_listed_and_lead_to_their_moment() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        assert "time_mixing  1 error" in driven.text("overview")
        await driven.press("M")
        assert "D202" in driven.text("findings") and "time_mixing @7" in driven.text("findings")
        assert "keep the argument in range" in driven.text("detail")
        await driven.press("enter")
        await driven.settle()
        stop = driven.app.state.stop
        assert stop is not None and "#7" in stop.place and "exp_key" in str(stop)
        assert driven.app.front.view_name == "", "the moment is seen, not the list"
        await driven.type("goto 3")
        await driven.press("E")
        assert "goto 3" in driven.text("events") and "exp_key@7" in driven.text("events").splitlines()[2]
        assert await driven.pilot.click("#events", offset=(20, 2), times=2)
        await driven.settle()
        assert driven.app.front.view_name == "" and "#7" in driven.app.state.stop.place  # type: ignore[union-attr]
        await driven.press("0")
        await click_on(driven, "1 error", 2)
        assert driven.app.front.view_name == "findings"

    drive("rwkv_overflow", script, size=(120, 40))


def test_notes_of_the_run_stand_on_the_overview_and_the_list_says_what_was_checked(tmp_path: Path) -> None:
    """Row 1 of 3 overflows i32."""
    product = np.array([[2, 3], [70_000, 70_000], [4, 5]], np.int32)
    net, inputs = rows_through("ReduceProd", product, np.array([1]), dims=(1, 1), keep_dims="true")

    async def script(driven: Driven) -> None:
        await driven.press("0")
        await driven.ran()
        await driven.filled()
        assert "note at 1: ReduceProd 'guilty' leaves the range of i32: 4,900,000,000" in driven.text("overview")
        await driven.press("M")
        assert "D204" in driven.text("findings")
        assert "checked: NaN, Inf, shapes, recurrence, integer overflow" in driven.text("findings")

    drive(Debugger(net.read(tmp_path), inputs), script, size=(160, 40))
