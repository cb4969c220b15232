"""Stories on the screen: opened by keys and lines, walked along, and the same facts at every size."""

from __future__ import annotations

from pathlib import Path
from time import sleep

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from tests.debug.story.test_failures import failing
from tests.models import Graph, carried, last
from tests.tui.driven import DECODER, Driven, drive
from tui.app import StepperApp
from tui.screens.story.pane import StoryPane
from tui.theme import Look
from tui.worker.driver import Driver


def story_of(driven: Driven) -> StoryPane:
    pane = driven.pane("story")
    assert isinstance(pane, StoryPane)
    return pane


def test_a_stop_at_a_nan_leads_by_one_key_to_its_birth_and_o_walks_to_its_cause() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break nan")
        await driven.press("c", "o")
        text = driven.text("story")
        assert "why wkv@8[0,3] is NaN" in text and "11 links, 2 of 12 iterations, 2 back edges" in text
        assert "exp(89.2) > f32 maximum exp(88.72): the Inf of iteration 7 came over 2 back edges" in text
        rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
        assert "born here" in text and "Inf / Inf stop" in text
        assert "-4.126" in text and "▼ embedded[7,6]" in text and "↺ numerator +Inf" in text
        assert "21.870" in rows["wkv"]  # the last clean one
        assert "exp_key@7[0,3]" in text and "shifted[0,6]        33.500" in text and ":set key[0,3] = 80" in text
        story = story_of(driven)
        walked = []
        for _ in range(4):
            await driven.press("o")
            walked.append(story.chosen_address)
        assert walked == [
            f"time_mixing@7::{name}" for name in ("key[0,3]", "shifted[0,6]", "token_part[0,6]", "token[0,6]")
        ]
        await driven.press("o")
        assert "the story begins here" in driven.text("answer")
        for _ in range(5):
            await driven.press("O")
        assert story.chosen_address == "time_mixing@7::weighted[0,3]" or "next" in story.chosen_address
        await driven.press("down", "left", "left")
        assert "not on the path" in driven.text("story")
        await driven.press("enter")
        assert driven.state.iteration == 5 and not driven.app.front.query("#story")

    drive("rwkv_overflow", script, size=(160, 48))


@pytest.mark.parametrize(("size", "look"), [((80, 24), Look(ascii=True, plain=True)), ((120, 40), Look(plain=True))])
def test_smaller_screens_and_those_without_colours_tell_the_same(size: tuple[int, int], look: Look) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break nan")
        await driven.press("c", "o")
        text = driven.text("story")
        for told in (
            "why wkv@8[0,3] is NaN",
            "exp(89.2) > f32",
            "born here",
            "Inf / Inf",
            "stop",
            "[     +Inf]",
            "[  -20.892]",
        ):
            assert told in text, told
        for name in ("token_part", "exp_key", "weighted", "numerator_next", "denominator_now"):
            assert name in text
        assert all(len(line) <= size[0] for line in text.splitlines())
        await driven.press("v", "v") if size[0] > 100 else await driven.press("v")
        assert "iteration 7" in driven.text("story")

    drive("rwkv_overflow", script, size=size, look=look)


def test_why_end_needs_no_moment_within_the_loop_and_more_operands_are_followed_by_a_key() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("why nothing_so_called")
        assert "nothing called" in driven.text("story") and "looking back" not in driven.text("story")
        await driven.type("why end")
        text = driven.text("story")
        assert "why did Loop end after iteration 10 of at most 20" in text
        assert "12 = 12" in text and "[0,12] beat [0,10] by 8.98; Less was not asked" in text
        assert "3.479" in text and "-4.431" in text
        story = story_of(driven)
        assert story.story is not None
        before = len(story.story.links)
        await driven.press("o", "o", "o", "o", "o", "plus")
        assert len(story.story.links) > before
        await driven.press("minus")
        assert len(story.story.links) == before
        await driven.press("enter")
        assert driven.state.iteration == 10

    drive("date_normaliser", script, size=(160, 48), starts_up=True, runs=True)


def test_at_80x24_chips_stand_below_one_another_and_the_course_is_around_the_moment() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("why `aten::add/Add_4`[0,0,0]")
        await driven.filled()
        lines = driven.text("story").splitlines()
        assert "0% from" not in lines[1] and "69% new in iteration 3, -8% from 0" in lines[1]
        links = [line for line in lines if "●" in line]
        chips = {one.index(number) for one in links for number in (" 1.790 ", " 1.905 ", " 3.366 ") if number in one}
        assert len(chips) == 1
        assert lines[0].split()[-2:] == ["back", "edges"]  # whole words, as many as fit

    drive("date_normaliser", script, size=(80, 24), lines=(f"run-to {DECODER}@0", "iter 3", "run-to `aten::add/Add_4`"))


def test_the_overview_leads_by_one_key_to_the_first_nan_and_to_why_a_loop_ended() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o")
        text = driven.text("story")
        assert "why wkv@8[0,3] is NaN" in text and "exp_key@7[0,3]" in text
        assert driven.state.stop is not None and driven.state.stop.tick == 0
        await driven.press("q", "e")
        assert "why did time_mixing end after iteration 11 of at most 12" in driven.text("story")
        assert "trip count reached: it allows 12 iterations, for length is 12" in driven.text("story")
        await driven.press("q")
        assert driven.app.front.view_name == "overview"
        await driven.press("x", "x", "o")  # a cell that is not finite
        title = next(line for line in driven.text("story").splitlines() if "why " in line)
        assert ("is +Inf" in title or "is NaN" in title) and "wkv@8[0,3]" not in title

    drive("rwkv_overflow", script, size=(120, 40), starts_up=True, runs=True)


def test_a_click_puts_the_cursor_and_two_go_to_the_moment_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepperApp, "CLICK_CHAIN_TIME_THRESHOLD", 0.0)  # each click by itself

    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o")
        await driven.filled()
        lines = driven.text("story").splitlines()
        y = next(at for at, line in enumerate(lines) if line.lstrip().startswith("weighted "))
        at = (lines[y].index("+Inf") + 1, y)
        for _ in range(2):  # one on what is chosen already does nothing more
            assert await driven.pilot.click("#story", offset=at)
            await driven.settle()
            assert driven.app.front.view_name == "story" and "weighted@7[0,3]" in driven.text("story")
        monkeypatch.setattr(StepperApp, "CLICK_CHAIN_TIME_THRESHOLD", 60.0)
        assert await driven.pilot.click("#story", offset=at, times=2)
        await driven.settle()
        assert driven.app.front.view_name == "" and driven.state.iteration == 7
        stop = driven.state.stop
        assert stop is not None and "weighted" in str(stop)

    drive("rwkv_overflow", script, size=(120, 40), runs=True)


def test_an_inner_loop_is_asked_about_in_the_run_of_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("why sorted[2]")
        text = driven.text("story")
        assert "it is values[2], initial value, which came through 5 iterations" in text
        assert "[2] 4.000" in text and "4 only passed it on" in text
        await driven.press("q", "e")
        text = driven.text("story")
        assert "why did passes end after iteration 2 of at most 4" in text and "0 > 0" in text
        heads = [line for line in text.splitlines() if "2 after" in line]
        assert heads and heads[0].index("0") < heads[0].index("2 after")

    drive("nested_loop", script, size=(160, 48), starts_up=True, runs=True)


def test_a_stop_whose_cause_is_in_another_iteration_opens_its_story_by_itself() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.type("break nan")
        await driven.press("c")
        assert driven.app.front.view_name == "story"
        text = driven.text("story")
        assert "why wkv@8[0,3] is NaN" in text and "8  NaN is born · now" in text
        await driven.press("q")
        assert not driven.app.front.view_name
        assert "exp_key@7[0,3]" in driven.text("stop") and "exp(89.2) > f32 maximum" in driven.text("stop")
        await driven.press("c")
        assert driven.state.stop is not None

    drive("rwkv_overflow", script, size=(160, 48), starts_up=True, runs=True)


def test_an_edit_at_a_chip_is_made_there_and_previews_what_follows_in_the_same_strip() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break nan")
        await driven.press("c", "o")
        before = story_of(driven).story
        await driven.type("set key[0,3] = 80")
        shown = story_of(driven).story
        assert shown is not None and before is not None and shown.is_preview and driven.state.iteration == 7
        text = driven.text("story")
        assert "with this edit it is 21.870, was NaN: 8 of 11 links changed, 7 mended" in text
        assert "was 89.200" in text and "80.000" in text and "born here" not in text and "exp(89" not in text
        assert [link.row for link in shown.links] == [link.row for link in before.links]
        exp = next(link for link in shown.links if link.before == "Infinity" and shown.rows[link.row].name == "exp_key")
        assert isinstance(exp.value, float) and abs(exp.value / np.exp(80.0) - 1) < 1e-5
        await driven.type("why nothing_so_called")
        assert "nothing called" in driven.text("answer") and story_of(driven).story is shown
        await driven.type("branch original")
        assert story_of(driven).story is before and "born here" in driven.text("story")

    drive("rwkv_overflow", script, size=(160, 48))


def test_what_is_on_the_path_is_drawn_over_the_iterations_where_there_is_room() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.press("o")
        await driven.filled()
        text = driven.text("story")
        assert text.count("[0,0] over iterations") == 3
        assert "Add_3[0,0] over" in text and "Multiply_1[0,0] over" in text and "Subtract[0,0] over" in text
        lines = text.splitlines()
        below = next(k for k, line in enumerate(lines) if "Multiply_1[0,0] over" in line)
        assert sum("█" in line for line in lines[below:]) > 12

    drive("date_normaliser", script, size=(200, 60), starts_up=True, runs=True)


def test_the_path_of_a_nan_is_walked_to_its_end_with_terms_that_are_not_finite() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break nan")
        await driven.press("c", "o")
        story = story_of(driven)
        seen = set()
        for key in "OOOOooooooOOOOO":
            await driven.press(key)
            seen.add(story.chosen_address)
        assert "time_mixing@8::wkv[0,3]" in seen and len(seen) > 5
        for key in ("down", "up", "left", "right") * 6:
            await driven.press(key)
        assert "why wkv@8[0,3] is NaN" in driven.text("story")

    drive("rwkv_overflow", script, size=(200, 60))


def test_an_edit_that_is_undone_leaves_nothing_of_it_in_the_story() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("break nan")
        await driven.press("c", "o")
        told = driven.text("story")
        for edited in ("80", "70"):
            await driven.type(f"set key[0,3] = {edited}")
            text = driven.text("story")
            assert "with this edit it is" in text and f"{edited}.000" in text and "was 89.200" in text
            await driven.type("undo")
            assert driven.text("story") == told
        await driven.type("set key[0,3] = 60")
        await driven.type("set key[0,3] = 50")
        assert " 50.000" in driven.text("story")
        await driven.type("undo")
        assert " 60.000" in driven.text("story") and " 50.000" not in driven.text("story")

    drive("rwkv_overflow", script, size=(160, 48))


def test_where_links_were_not_looked_at_the_story_says_so_and_how_to_see_more(tmp_path: Path) -> None:
    net = Graph()
    x0, body = net.parameter("x", dims=(1,)), net.body()
    state = body.parameter("state", dims=(1,))
    grown = body.result(body.apply("Add", state, body.constant([1.0]), name="grown"), "grown_out")
    net.result(net.loop("grows", body, 200, True, [carried(x0, state, grown)], [last(grown)])[0])
    debugger = Debugger(net.read(tmp_path), {0: np.full(1, 900.0, np.float32)})

    async def script(driven: Driven) -> None:
        await driven.type("continue")
        await driven.type("why grown@199[0]")
        story = story_of(driven)
        assert story.story is not None
        links = sum(link.times for link in story.story.links)
        await driven.press("o", "o", "o")
        assert "state[0] was not followed further: + follows it, :story more follows 1" in driven.text("answer")
        lines = driven.text("story").splitlines()
        more = next(y for y, line in enumerate(lines) if "1 more, not looked at" in line)
        await driven.pilot.click("#story", offset=(8, more))
        await driven.settle()
        assert story.story is not None
        assert sum(link.times for link in story.story.links) == links + 40  # as many as it shows at first

    drive(debugger, script, size=(80, 34))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_an_error_of_the_run_has_a_story_on_the_overview_and_at_the_stop(tmp_path: Path, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        for keys in (("o",), ("e",)):
            await driven.press(*keys)
            await driven.filled()
            shown = driven.text("story")
            assert "why rows@3 failed" in shown and "cannot take the shape [4,-1]" in shown and "failed" in shown
            assert all(name in shown for name in ("size", "shape", "half.shape")) and "[]" not in shown
            await driven.press("q")
        await driven.press("o", "enter")
        assert driven.state.iteration == 3 and driven.state.stop is not None
        await driven.type("continue")
        assert driven.state.failure
        await driven.press("o")
        await driven.filled()
        assert "why rows@3 failed" in driven.text("story")

    drive(failing(tmp_path), script, size=size, starts_up=True, runs=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_a_model_without_loops_that_fails_leads_to_where_and_why(tmp_path: Path, size: tuple[int, int]) -> None:
    net = Graph()
    x, given = net.parameter("x", dims=(6,)), net.parameter("given", "i64", (2,))
    rows = net.apply("Add", given, net.constant([1, 0], np.int64), name="rows")
    net.result(net.apply("Reshape", x, rows, name="shaped", special_zero="false", dims=(-1, -1)), "out")
    run = Debugger(net.read(tmp_path), {0: np.zeros(6, np.float32), 1: np.array([3, -1], np.int64)})

    async def script(driven: Driven) -> None:
        await driven.ran()
        assert "cannot take the shape [4,-1]" in driven.text("overview")
        await driven.press("o")
        await driven.filled()
        assert "why shaped failed" in driven.text("story") and "model input" in driven.text("story")
        await driven.press("q", "enter")
        assert driven.app.front.view_name == "" and driven.state.failure

    drive(run, script, size=size, starts_up=True, runs=True)


def test_what_the_run_has_not_come_to_is_told_when_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    is_held, goes_on = [True], Driver._run_on
    monkeypatch.setattr(Driver, "_run_on", lambda driver: sleep(0.002) is None if is_held[0] else goes_on(driver))

    async def script(driven: Driven) -> None:
        await driven.type("why token_part@7[0,6]")
        assert "'time_mixing' has not run here" in driven.text("story")
        is_held[0] = False
        await driven.ran()
        assert "why token_part@7[0,6] is -17.609" in driven.text("story")

    drive("rwkv_overflow", script, runs=True)
