"""What stands above the rows is true of the run: what was found, why the loop ended, what it does, what came out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.worker import snapshot as background_run

import stepper
from stepper.debug.causes.cause_texts import how_sentence
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import RunState
from stepper.debug.story.story_texts import story_lines
from stepper.export.overview_page import overview_html
from tests.debug.debugged import SAMPLES
from tests.debug.debugged import opened as debugger_of
from tests.debug.loops_to_break import recurrence
from tests.debug.test_endless_loops import rests
from tests.models import Graph, carried, last
from tests.tui.driven import Driven, drive
from tests.tui.headline_models import (
    choosing,
    emptying,
    fading,
    failing_loop,
    gathering,
    lengthening_twice,
    looping,
    never,
    refusing,
    without_loops,
)
from tests.tui.time_models import opened

TOLD: tuple[tuple[str | Callable[[], Debugger], tuple[str, ...]], ...] = (
    # what is told, and behind a ! what is not
    (
        "date_normaliser",
        (
            "✓ no NaN, no Inf",
            "shapes stay, but toks, atts, conf grow",
            "ended at 10: tok' = 12, so NotEqual(tok', 12) is false",
            "each iteration carries ctx, h, i, tok and 3 more",
            "in src.1 i64[1,16]  →  out Result_526 i64[11]",
        ),
    ),
    (
        "rwkv_overflow",
        (
            "Inf first in Exp exp_key@7 [0,3] (overflow)  →  NaN in Divide wkv@8 [0,3]",
            "key[0,3] = 89.2: exp(89.2) > f32 maximum exp(88.72)",
            "ended at 11: 12 = 12, the trip count Gather 'length'",
            "takes a slice of token and token_before, carries numerator and denominator",
            "mixed f32[12,8] NaN in 32 of 96",
        ),
    ),
    ("while_loop", ("ended at 110: ", "number' = 1")),
    ("reverse", ("no slice is left",)),
    ("growing_tensor", ("shapes stay, but sequence grows",)),
    ("nested_loop", ("shapes stay", "!grow")),
    (without_loops, ("out f32[3] NaN  +Inf  NaN  NaN in 2 of 3, Inf in 1 of 3", "Inf first in Exp exp", "!iteration")),
    (fading, ("NaN first in Sqrt root@3", "·  NaN first in Sqrt stays@3")),
    (lambda: gathering(np.nan), ("NaN came in with Constant", "first read by Gather picked@2", "!born")),
    (lambda: gathering(-np.inf), ("Inf in 1 of 1", "Inf came in, no operation makes NaN or Inf", "!no NaN, no Inf")),
    (lambda: looping(0, [True]), ("did not begin: 0 is the trip count", "end_1 f32[1] 9", "!grow", "!empty")),
    (lambda: looping(3, [True, True]), ("ended by an error: the body's condition has shape [2]", "!not run")),
    (lengthening_twice, ("held' 2–14: grows",)),
    (
        failing_loop,
        (
            "error: Reshape cut failed in iteration 1 of walk",
            "a tensor of shape [4] cannot take the shape [2]",
            "ended by an error",
        ),
    ),
    (lambda: choosing(3), ("in x f32[1,4]", "out y f32[1,4]")),
)


@pytest.mark.parametrize(("subject", "told"), TOLD)
def test_it_tells_what_the_run_found_and_why_it_ended(
    subject: str | Callable[[], Debugger], told: tuple[str, ...]
) -> None:
    async def script(driven: Driven) -> None:
        text = driven.text("headline")
        for part in told:
            assert (part.removeprefix("!") in text) is not part.startswith("!"), (part, text)
        for width, height in ((80, 24), (120, 40)):
            await driven.pilot.resize_terminal(width, height)
            await driven.filled()
            lines = driven.text("headline").splitlines()
            assert 0 < len(lines) <= (2 if height < 30 else 5) and all(len(line) <= width for line in lines)
        assert not driven.app._faults

    drive(subject if isinstance(subject, str) else subject(), script, size=(200, 60), runs=True)


def test_a_loop_that_refuses_what_it_is_given_says_why() -> None:
    async def script(driven: Driven) -> None:
        assert "start 9 and end -1 are not a forward range of 6 elements" in driven.screen

    drive(refusing(), script, size=(160, 48), runs=True)


def test_an_input_for_which_a_loop_does_not_begin() -> None:
    model = stepper.read_model(SAMPLES / "while_loop" / "model.xml")

    async def script(driven: Driven) -> None:
        text = driven.screen
        assert "did not begin" in text and "0 of 0" not in text and driven.sheet.is_none
        assert "The loop has no iteration.   Esc the graph around it" in driven.text("sheet")
        await driven.do("o", "enter", "x", "f", "n")

    drive(Debugger(model, {"start": np.array(1, np.int64)}), script, runs=True, size=(120, 40))


@pytest.mark.parametrize("kind", ["f32", "i64"])
@pytest.mark.parametrize("dims", [(), (1,), (1, 100)])
def test_of_a_loop_that_runs_no_iteration_nothing_is_drawn(dims: tuple[int, ...], kind: str) -> None:
    async def script(driven: Driven) -> None:
        assert "did not begin: 0 is the trip count" in driven.text("headline")
        for steps in ((), ("f",), ("s", "s")):
            told = await driven.do(*steps)
            assert "▀" not in driven.text("sheet") and "fault" not in driven.answer, told

    drive(never(dims, kind), script, size=(80, 24), runs=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_a_model_without_loops_has_one_column(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        assert driven.row("exp")[-1] == "+Inf" and driven.row("log")[-1] == "NaN"
        text = await driven.do(":why log[0]")
        assert "why log[0] is NaN" in text and "log(-97.282) = NaN" in text and driven.names == ["minus", "log"]
        assert "it is in no loop" not in await driven.do("up", "n") and driven.at == ("log", 0)

    drive(without_loops(), script, size=size, runs=True)


def test_inf_of_the_file_is_told_on_the_page_too() -> None:
    debugger = gathering(-np.inf)
    page = overview_html(debugger.run_overview(), debugger.machine.compiled)
    assert "Inf came in, no operation makes NaN or Inf" in page


@pytest.mark.parametrize(("numerator", "sign"), [(-5, "-"), (5, "")])
def test_the_infinity_that_a_reason_gives_has_its_sign(numerator: float, sign: str) -> None:
    net = Graph()
    x = net.parameter("x", dims=(1,))
    net.result(net.apply("Divide", net.constant(np.float32([numerator])), x, name="ratio"), "out")
    net.result(net.apply("Log", x, name="log"), "lowest")
    debugger = opened(net, np.zeros(1, np.float32))
    told = {how_sentence(birth.cause) for birth in debugger.run_overview().births}
    assert told == {f"{numerator} / 0 gives {sign}Inf", "log(0) gives -Inf"}  # by IEEE 754
    assert f"gives {sign}Inf" in " ".join(story_lines(debugger.story("ratio")))
    assert "log(0) gives -Inf" in " ".join(story_lines(debugger.story("log")))


def test_an_iteration_whose_value_is_empty_shows_no_number() -> None:
    async def script(driven: Driven) -> None:
        await driven.do(":rows all", "home")
        assert driven.row("places")[-2] == "·" and "·" not in driven.row("places")[1:4]

    drive(emptying(), script, size=(120, 40), runs=True)


def test_ifs_say_which_side_ran_and_why() -> None:
    async def script(driven: Driven) -> None:
        text = await driven.do(":search choose_0")
        assert driven.at[0] == "choose_0" and "2" in driven.row("choose_0")[-1]
        await driven.do("enter")
        assert driven.names == ["plus"], "the sum 4 is not above 6"
        await driven.do("escape", ":search choose_1", "enter")
        assert driven.names == ["double"], "the sum 8 is"
        text = await driven.do("escape", ":why above_1")
        assert "8 > 6" in text or "sum_1 = 8" in text

    drive(choosing(3), script, size=(120, 40), runs=True)


# --- runs that do not come to an end ----------------------------------------------------------------------------------


def test_without_a_run_the_key_for_it_is_named() -> None:
    async def script(driven: Driven) -> None:
        await driven.filled()
        overview = driven.state.overview
        assert overview is not None and overview.state is RunState.NOT_RUN
        assert "not run, c runs it" in driven.text("top") and "not run yet" in driven.text("headline")
        await driven.press("c")
        await driven.ran()
        assert "complete" in driven.text("top") and "ended at 10" in driven.text("headline")

    drive("date_normaliser", script, runs=False)


def test_a_loop_without_end_is_left_after_a_while_and_can_be_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.1)

    async def script(driven: Driven) -> None:
        known = driven.state.overview
        assert known is not None and known.state is RunState.OUT_OF_TIME
        text = driven.screen
        assert (
            "can never end: there is no trip count" in text and f"paused at {known.iterations:,}, c continues" in text
        )
        assert "so far" in text and driven.state.stop is not None and driven.state.stop.tick == 0
        await driven.do(":rows carried", "home")
        assert driven.at[1] == 0 and driven.row("state'")[0] == "3.500", "the half of 7"
        assert "it can never end" in await driven.do("e")

    drive(debugger_of(tmp_path, recurrence("Multiply", 0.5, -1, 7.0)), script, runs=True, size=(120, 40))


def test_a_state_that_comes_again_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.1)

    async def script(driven: Driven) -> None:
        told = "state repeats every 2 iterations from iteration 0 on"  # 2, 1, 2, 1 ..., as powers of 2 mod 3 are
        assert f"can never end: {told}, and going depends on nothing else" in driven.text("headline")

    drive(debugger_of(tmp_path, rests(2, 3)), script, runs=True, size=(120, 40))


def test_overflow_of_whole_numbers_is_a_finding_as_check_has_it() -> None:
    """In i8 the sum of 100 and 60 is 160, which wraps to -96."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", "i8", (1,))
    out = body.result(body.apply("Add", x, body.constant(np.int8([60])), name="sum", type="i8"), "x_next")
    entries = [carried(net.parameter("x0", "i8", (1,)), x, out)]
    net.result(net.loop("sums", body, 3, True, entries, [last(out)])[0], "end")

    async def script(driven: Driven) -> None:
        text = driven.text("headline")
        assert "at 1: " in text and "160" in text and "-96" in text, text
        await driven.do("home", "x")
        assert driven.at[1] == 1 and "1 of " in driven.answer

    drive(opened(net, np.int8([40])), script, runs=True, size=(160, 48))
