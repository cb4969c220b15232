"""The overview driven by keys, and read cell by cell beside the values of the data layer."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.overview import runs
from stepper.debug.overview.facts import RunState
from stepper.session.input_choices import Opening
from stepper.tensors.histories import ValueHistory
from stepper.tensors.pictures import Form
from tests.benchmarks.models import newton_model
from tests.debug.debugged import SAMPLES
from tests.debug.debugged import opened as debugger_of
from tests.debug.loops_to_break import clock, recurrence
from tests.models import Graph, Side, carried, last
from tests.tui.driven import DECODER, Driven, debugger_of_sample, drive, key_event
from tui.app import StepperApp
from tui.messages import OverviewGrew
from tui.paint.rows import width_of
from tui.pictures.drawing import row_scale
from tui.screens.overview import pane as overview_pane
from tui.screens.overview.pane import OverviewPane
from tui.theme import Look
from tui.worker import background_run

SIZES = pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (160, 48), (200, 60)], ids=str)


def pane_of(driven: Driven) -> OverviewPane:
    pane = driven.pane("overview")
    assert isinstance(pane, OverviewPane)
    return pane


async def opened(driven: Driven) -> OverviewPane:
    """Open it, and wait until the run is made."""
    await driven.press("0")
    await driven.ran()
    return pane_of(driven)


def cells(driven: Driven, name: str) -> str:
    """The line of a row, by its name."""
    lines = [line.replace("▌", " ").replace("▐", " ") for line in driven.text("overview").splitlines()]
    return next(line for line in lines if line.split()[1:2] == [name])


@SIZES
@pytest.mark.parametrize("sample", ["date_normaliser", "rwkv_overflow", "nested_loop"])
def test_nothing_overflows_and_every_card_is_in_sight(sample: str, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        rows = pane.visible_lines(*pane.size)
        assert len(rows) == pane.size.height and all(width_of(row) <= size[0] for row in rows)
        shown = driven.text("overview")
        assert all(card.name in shown for card in pane.cards)
        for key in ("left", "down", "up", "plus", "minus", "v", "V", "space", "tab", "home", "end"):
            await driven.press(key)
        assert all(width_of(row) <= size[0] for row in pane.visible_lines(*pane.size)) and not driven.app._faults

    drive(sample, script, size=size)


def test_the_loop_says_what_ended_it_and_shows_its_values() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        assert pane.overview is not None
        (loop,) = pane.overview.loops
        (run,) = loop.activations
        shown = driven.text("overview")
        assert "tok' = 12, so NotEqual(tok', 12) is false" in shown and "11 iterations of at most 20" in shown
        line = next(one for one in pane.cards[0].lines if one.name == "tok'")
        history = run.values[line.row]
        assert history is not None
        assert cells(driven, "tok'").split()[3:15] == ["11", *(str(int(one)) for one in history.numbers[0, :, 0])][:12]
        verdicts = cells(driven, "on?").split()[3:14]
        assert verdicts == ["T"] * (run.iterations - 1) + ["F"]

    drive("date_normaliser", script, size=(160, 48))


def test_the_value_at_the_cursor_is_that_of_the_run() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        await driven.press("home", "right", "right", "right")
        at = pane.at
        card = pane.cards[at.card]
        assert at.iteration == 3 and card.lines[at.line].name == "h'"
        other = debugger_of_sample("date_normaliser")
        other.goto(f"{DECODER}::`aten::add/Add_3`@3")
        value = np.asarray(other.value(f"{DECODER}::`aten::add/Add_3`@3"))
        detail = driven.text("overview").splitlines()[-1].split()
        assert [float(one) for one in detail[:5]] == pytest.approx(value.ravel()[:5].tolist(), abs=5e-4)
        assert f"{np.sqrt(np.square(value).mean()):.3f}" in driven.text("overview")
        assert ", largest" not in driven.text("overview")
        await driven.press("v", "enter", "0")
        assert ", largest" in driven.text("overview"), "what was chosen for a row stays"

    drive("date_normaliser", script, size=(160, 48))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=str)
def test_enter_lands_after_the_operation_that_made_the_value(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        await driven.press("left_square_bracket", "left_square_bracket")
        at, card = pane.at, pane.cards[pane.at.card]
        row = card.facts.rows[card.lines[at.line].row]
        assert driven.state.stop is not None and driven.state.stop.tick == 0
        await driven.press("enter")
        frame, cursor = driven.state.frame, driven.state.cursor
        assert driven.app.front.view_name == "" and frame is not None and cursor is not None
        assert row.producer is not None and frame.layers[cursor].id == row.producer.id
        assert driven.state.iteration == at.iteration == 8
        await driven.press("0")
        assert pane_of(driven).at.iteration == 8

    drive("date_normaliser", script, size=size)


def test_enter_goes_into_an_inner_run() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        await driven.press("tab", "home")
        await driven.press("left_square_bracket")
        run = pane.cards[pane.at.card].runs[pane.at.run]
        assert pane.at.run == 1 and pane.at.iteration == run.iterations - 1 == 2
        await driven.press("left_square_bracket", "enter")
        iterations = [frame.iteration for frame in driven.state.frames[1:]]
        assert iterations == [run.outer[0], 1]

    drive("nested_loop", script, size=(120, 40))


def test_nan_and_inf_are_letters_where_the_data_layer_says() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        card = pane.cards[0]
        line = next(k for k, one in enumerate(card.lines) if one.name == "wkv")
        history = card.history(card.lines[line], 0)
        assert history is not None and history.first_nan == 8
        while pane.at.line != line:
            await driven.press("x")
        assert pane.at.iteration == history.first_nan
        shown = driven.text("overview")
        assert "NaN" in shown and "born in Exp exp_key@7" in shown and "NaN in 4 of 96" in shown
        first = card.history(card.lines[0], 0)
        assert first is not None and first.first_infinite == 7
        letters = [line.replace("▀", " ").replace("▌", " ").replace("▐", " ").split() for line in shown.splitlines()]
        assert max(line.count("I") for line in letters) >= 4 and max(line.count("N") for line in letters) >= 3

    drive("rwkv_overflow", script, size=(160, 48))


def test_without_colours_each_element_is_a_figure() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        assert all(line.isascii() for line in driven.text("overview").splitlines())
        card = pane.cards[0]
        line = next(one for one in card.lines if one.name == "wkv")
        assert line.form is Form.PICTURE
        assert sum(text.split().count("N") for text in driven.text("overview").splitlines()) >= 4

    drive("rwkv_overflow", script, size=(160, 48), look=Look(ascii=True, plain=True))


def test_a_loop_that_did_not_begin_says_so() -> None:
    model = stepper.read_model(SAMPLES / "while_loop" / "model.xml")
    debugger = Debugger(model, {"start": np.array(1, np.int64)})

    async def script(driven: Driven) -> None:
        await opened(driven)
        shown = driven.text("overview")
        assert "did not begin" in shown and "0 iterations" in shown
        await driven.press("enter")
        assert "no iteration ran here" in driven.text("answer")

    drive(debugger, script, size=(120, 40))


def test_the_run_is_made_anew_after_an_edit_and_the_present_stays() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        before: Any = pane.overview
        await driven.type("run-to key@2")
        tick = driven.state.stop.tick if driven.state.stop is not None else 0
        await driven.type("set key[0,3] = 1000")
        for _ in range(400):
            if pane.overview is not before and pane.overview is not None and pane.overview.births_complete:
                break
            await driven.pilot.pause(0.01)
        assert pane.overview is not None and pane.overview is not before
        assert pane.overview.births[0].cause.location.iteration == 2
        assert driven.state.stop is not None and driven.state.stop.tick == tick > 0

    drive("rwkv_overflow", script, size=(120, 40))


def test_a_click_puts_the_cursor_and_q_goes_back() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        lines = driven.text("overview").splitlines()
        y = next(k for k, line in enumerate(lines) if line.strip().startswith("iteration"))
        x = lines[y].index(" 4 ") + 1
        await driven.pilot.click("#overview", offset=(x, y + 2))
        await driven.settle()
        assert pane.at.iteration == 4
        await driven.press("q")
        assert driven.app.front.view_name == ""

    drive(debugger_of_sample("date_normaliser"), script, size=(160, 48))


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_loop_without_end_is_paused_and_goes_on(
    is_shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_run, "ENDLESS_SECONDS", 0.3)
    if not is_shown:
        monkeypatch.setattr("tui.app._SHARE_BEHIND", 1e9)  # no picture while it runs

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        assert pane.overview is not None and pane.overview.state is RunState.OUT_OF_TIME
        ran = pane.overview.iterations
        shown = driven.text("overview")
        assert "can never end" in shown and "c goes on" in shown and f"{ran:,} iterations, no limit" in shown
        assert pane.at.iteration == ran - 1
        await driven.press("home")
        driven.app.post_message(key_event("c"))  # what it asks for has no end
        for _ in range(400 if is_shown else 40):
            if pane.overview.iterations > ran:
                break
            await asyncio.sleep(0.01)
        assert is_shown == (pane.overview.iterations > ran)
        await driven.press("escape")  # what was asked for goes on until somebody holds it
        for _ in range(400):
            if pane.overview.state is RunState.PAUSED:
                break
            await driven.pilot.pause(0.01)
        assert pane.overview.iterations > ran and driven.state.stop is not None and driven.state.stop.tick == 0
        await driven.filled()
        assert pane.at.iteration == pane.overview.iterations - 1, "the cursor has followed the run to its end"
        await driven.press("home", "enter")
        assert driven.state.iteration == 0 and driven.state.stop.tick < 10

    drive(debugger_of(tmp_path, recurrence("Minimum", 3.0, -1, 7.0)), script, size=(120, 40))


def test_a_condition_that_nothing_changes_is_told_while_the_run_goes_on_beside_the_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview_pane, "_YOUNG", 0.1)

    async def script(driven: Driven) -> None:
        await driven.press("0")
        pane = pane_of(driven)
        for _ in range(600):
            if driven.app.screen.query("#loop-body") and "not_done" in driven.text("loop-body"):
                break
            await driven.pilot.pause(0.01)
        shown = driven.text("overview")
        assert "can never end: there is no trip count, and not_done stays true: no back edge leads to t" in shown
        assert "not_done" in driven.text("loop-body")
        assert pane.overview is not None and pane.overview.state is RunState.RUNNING
        await driven.press("escape")

    drive(debugger_of(tmp_path, clock(is_carried=False), np.float32(0), np.float32(0)), script, size=(120, 40))


def test_news_of_a_run_waits_many_times_as_long_as_its_last_picture_took_but_not_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        assert pane.overview is not None
        clock, driven.app._progress_due = count(), 0.0
        monkeypatch.setattr("tui.app.thread_time", lambda: next(clock))  # a picture takes a second at least
        shown = []
        for state, ran in ((RunState.RUNNING, 5), (RunState.RUNNING, 6), (RunState.FINISHED, 7)):
            news = replace(pane.overview, state=state, loops=(), outputs=(), iterations=ran)
            driven.app.post_message(OverviewGrew(news))
            await driven.settle()
            shown.append(pane.overview.iterations)
        assert shown == [5, 5, 7]

    drive(debugger_of_sample("date_normaliser"), script, size=(160, 48))


def test_escape_pauses_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_run, "SECONDS", 60.0)

    async def script(driven: Driven) -> None:
        driven.app.perform("overview")
        for _ in range(400):
            await driven.pilot.pause(0.01)
            known = pane_of(driven).overview if driven.app.front.view_name == "overview" else None
            if known is not None and known.state is RunState.RUNNING and known.iterations:
                break
        await driven.press("escape")
        await driven.settle()
        pane = pane_of(driven)
        assert pane.overview is not None and pane.overview.state is RunState.PAUSED
        assert f"paused at {pane.overview.iterations:,}, c goes on" in driven.text("overview")

    drive(debugger_of(tmp_path, recurrence("Add", 1.0)), script, size=(120, 40))


def test_births_are_looked_for_in_a_run_that_was_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_run, "SECONDS", 60.0)

    async def script(driven: Driven) -> None:
        driven.app.perform("overview")
        for _ in range(2000):
            await driven.pilot.pause(0.01)
            known = pane_of(driven).overview if driven.app.front.view_name == "overview" else None
            if known is not None and known.state is RunState.RUNNING and known.iterations > 20_000:
                break
        await driven.press("escape")
        await driven.settle()
        pane = pane_of(driven)
        for _ in range(2000):
            if pane.overview is not None and pane.overview.looked_through:
                break
            await driven.pilot.pause(0.01)
        found = pane.overview
        assert found is not None and found.state is RunState.PAUSED and found.looked_through
        with np.errstate(over="ignore"):
            powers = np.cumprod(np.full(2000, 2.0**0.1, np.float32), dtype=np.float32)
        assert [birth.cause.location.iteration for birth in found.births] == [int(np.isinf(powers).argmax())]
        assert "Inf" in driven.text("overview")

    drive(debugger_of(tmp_path, recurrence("Multiply", 2.0**0.1)), script, size=(120, 40))


async def click_on(driven: Driven, text: str, times: int) -> None:
    lines = driven.text("overview").splitlines()
    row = next(at for at, line in enumerate(lines) if text in line)
    assert await driven.pilot.click("#overview", offset=(lines[row].index(text) + 1, row), times=times)
    await driven.settle()


@pytest.mark.parametrize(
    ("sample", "name", "iteration"),
    [("rwkv_overflow", "exp_key@7", 7), ("date_normaliser", "tok' = 12", 10), ("date_normaliser", "NotEqual(", 10)],
)
def test_names_in_sentences_lead_to_their_moment_by_two_clicks(sample: str, name: str, iteration: int) -> None:
    async def script(driven: Driven) -> None:
        await opened(driven)
        await click_on(driven, name, 1)
        assert driven.app.front.view_name == "overview"
        await click_on(driven, name, 2)
        assert driven.app.front.view_name == "" and driven.state.iteration == iteration
        frame = driven.state.frame
        wanted = name.split("@")[0].split(" =")[0].strip("(")
        assert frame is not None and frame.last >= 0
        done = frame.layers[frame.last]
        assert wanted in (done.name, done.type) or wanted == "tok'"

    drive(sample, script, size=(160, 48))


def test_names_of_rows_in_sentences_choose_them_and_an_error_is_gone_to(tmp_path: Path) -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        line = driven.text("overview").splitlines()
        row, after = next((at, one) for at, one in enumerate(line) if one.startswith(" after"))
        name = after.split(" = ")[1].split()[0]
        await driven.press("home", "up", "up")
        place = (after.index(f" = {name}") + 3, row)
        assert await driven.pilot.click("#overview", offset=place)
        await driven.settle()
        chosen = pane.cards[pane.at.card].lines[pane.at.line]
        assert driven.app.front.view_name == "overview" and chosen.name == name

    drive("date_normaliser", script, size=(160, 48))

    async def failing(driven: Driven) -> None:
        await opened(driven)
        row = next(one for one in driven.text("overview").splitlines() if " failed" in one)
        await click_on(driven, row.split(" failed")[0].split(": ")[-1], 2)
        assert driven.app.front.view_name == "" and driven.state.failure

    model = stepper.read_model(newton_model(tmp_path, 100))
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    drive(Debugger(model, inputs, max_iterations=10), failing, size=(160, 48))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=str)
def test_of_many_inner_runs_one_is_shown(tmp_path: Path, size: tuple[int, int]) -> None:
    inputs = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
    model = stepper.read_model(newton_model(tmp_path, 100, 3))

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        assert "in 100 runs" in driven.text("overview")
        await driven.press("tab", "left_square_bracket", "left_square_bracket", "left_square_bracket")
        assert not driven.app._faults and pane.cards[pane.at.card].facts.depth == 1
        run = pane.cards[pane.at.card].runs[pane.at.run]
        assert f"run {run.number + 1} of 100 (@{run.outer[0]})" in driven.text("overview")
        assert all(width_of(row) <= size[0] for row in pane.visible_lines(*pane.size))

    drive(Debugger(model, inputs), script, size=size)


def test_a_model_without_loops_says_what_it_has(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(3,))
    net.result(net.apply("Log", net.apply("Abs", x)), "out")

    async def script(driven: Driven) -> None:
        await opened(driven)
        shown = driven.text("overview")
        assert "no loop" in shown and "2 operations" in shown and "Inf in 1 of 3" in shown
        drawn = driven.text("loop-body")
        assert "the model's graph" in drawn and "4 nodes" in drawn
        for word in ("card", "row", "iteration", "why it ended", "taller"):
            assert word not in driven.text("keys"), "no key of cards where there are none"
        assert "0 moment" in driven.text("keys")
        for key in ("down", "right", "tab", "plus", "v"):
            await driven.press(key)
        assert not driven.app._faults
        await driven.press("space")
        assert "nothing folds here" in driven.text("answer")
        await driven.press("enter")
        assert driven.app.front.view_name == "", "the main screen, where the Inf is born"

    drive(debugger_of(tmp_path, net, np.array([1, 0, 2], np.float32)), script, size=(120, 40))


def test_the_brackets_say_where_the_iterations_end() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        await driven.press("end", "right_square_bracket")
        assert "there is no iteration 11: Loop ran 11 iterations" in driven.text("answer")
        assert pane.at.iteration == 10
        await driven.press("home", "left_square_bracket")
        assert "there is no iteration before 0" in driven.text("answer")

    drive("date_normaliser", script, size=(120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_without_inputs_the_cards_are_those_of_the_file_and_what_is_missing_is_said(size: tuple[int, int]) -> None:
    model = stepper.read_model(SAMPLES / "date_normaliser" / "model.xml")
    opening = Opening(model, {}, {}, lambda values: Debugger(model, values))

    async def script(driven: Driven) -> None:
        await driven.press("0")
        for _ in range(2000):
            if driven.app.front.view_name == "overview" and pane_of(driven).overview is not None:
                break
            await asyncio.sleep(0.005)
            await driven.settle()
        shown = driven.text("overview")
        for name in ("Loop 58", "ctx", "toks", "not run"):
            assert name in shown, name
        assert "src.1 is missing" in shown or "1 input missing" in shown
        for word in ("why it ended", "goes there", "go on"):
            assert word not in driven.text("keys")
        await driven.press("down", "right_square_bracket")
        assert "no iteration ran here" in driven.text("answer")
        await driven.press("v", "plus", "o", "T", "W")
        assert driven.app.front.view_name == "overview" and "does not run yet" in driven.text("answer")
        await driven.press("0")
        assert driven.app.front.view_name == "inputs"
        for line in ("sheet", "rows all", "view sheet"):
            await driven.type(line)
            assert driven.app.front.view_name == "inputs" and "does not run yet" in driven.text("answer"), line
        await driven.press("i")
        assert driven.app.front.view_name == "inputs" and "does not run yet" in driven.text("answer")
        await driven.press("0", "q")
        assert driven.app.front.view_name == "inputs" and not driven.app._faults

    drive(opening, script, size=size, runs=True)


def test_enter_on_a_slice_goes_to_the_beginning_of_its_iteration() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        card = pane.cards[0]
        place = next(k for k, line in enumerate(card.lines) if line.name == "token")
        assert "2 more slices (Space)" in driven.text("overview")
        await driven.press("space")
        for _ in card.lines:
            if pane.at.line != place:
                await driven.press("down")
        assert pane.at.line == place
        await driven.press("home", "right_square_bracket", "right_square_bracket", "enter")
        assert driven.state.iteration == 2 and driven.state.frame is not None and driven.state.frame.last == -1

    drive("rwkv_overflow", script, size=(160, 48))


def test_whole_numbers_with_labels_are_read_as_words() -> None:
    vocabulary = SAMPLES / "date_normaliser" / "vocab.json"

    async def script(driven: Driven) -> None:
        await opened(driven)
        words = cells(driven, "tok'").split()
        assert words[4:14] == list("2026-11-20") and "so NotEqual(tok', 12) is false" in driven.text("overview")
        await driven.press("up", "up", "home")
        assert "'2'" in driven.text("overview").splitlines()[-1]

    drive("date_normaliser", script, size=(160, 48), lines=(f'labels tok.13 "{vocabulary}" output',))


def test_a_label_as_wide_as_its_column_is_marked_where_the_cursor_is(tmp_path: Path) -> None:
    """At 80 columns 11 iterations have five cells each: a word of four leaves no room for a mark at its left."""
    words = ["zero", "one", "twoo", "tree", "four", "five", "sixx", "seven", "eight", "nine", "dash", "e", "stop"]
    vocabulary = tmp_path / "words.json"
    vocabulary.write_text(json.dumps(words))

    def marked(driven: Driven) -> str:
        pane = pane_of(driven)
        row = next(row for row in pane.visible_lines(*pane.size) if "twoo" in "".join(text for text, _ in row))
        return "".join(text for text, token in row if token == "on").strip()

    async def script(driven: Driven) -> None:
        await opened(driven)
        assert marked(driven) == "stop"
        await driven.press("left", "left", "left")
        assert marked(driven) == "dash"

    drive("date_normaliser", script, size=(80, 24), lines=(f"labels tok.13 {vocabulary}",))


def test_a_double_click_goes_there() -> None:
    async def script(driven: Driven) -> None:
        await opened(driven)
        lines = driven.text("overview").splitlines()
        y = next(k for k, line in enumerate(lines) if line.strip().startswith("iteration"))
        x = lines[y].index(" 4 ") + 1
        await driven.pilot.click("#overview", offset=(x, y + 5), times=2)
        await driven.settle()
        assert driven.app.front.view_name == "" and driven.state.iteration == 4

    drive("date_normaliser", script, size=(160, 48))


def test_what_entered_from_far_off_hides_nothing() -> None:
    numbers = np.array([[-1.0, -2.0], [-3.0, -4.0]])
    spans = np.array([[0, 1], [1, 2]])
    history = ValueHistory("f32", (2,), 2, True, spans, numbers[None], np.array([[0.0, -1e9]]))
    scale = row_scale([history], "mean", None)
    assert scale.full == 4 and scale.signed
    only_entered = ValueHistory("f32", (2,), 2, True, spans, -numbers[None], np.array([[0.0, -1e9]]))
    assert row_scale([only_entered], "mean", None).signed


def test_space_opens_sequences_as_loops_and_closes_them() -> None:
    vocabulary = SAMPLES / "date_normaliser" / "vocab.json"

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        shown = driven.text("overview")
        assert '"20 November 2026"' in shown and "GRUSequence (Space opens it as a loop)" in shown
        lines = shown.splitlines()
        top = next(k for k, line in enumerate(lines) if line.split()[1:2] == ["atts"])
        letters = "".join(line[25:27].strip() for line in lines[top : top + 16])
        assert letters == "20␣November␣2026", "the elements are named by the input whose length is as open as theirs"
        await driven.press("space")
        await driven.ran()
        pane = pane_of(driven)
        assert [card.facts.opened_from for card in pane.cards] == ["GRUSequence", "GRUSequence", None]
        assert "GRUSequence is open: Space closes it" in driven.text("overview")
        assert cells(driven, "position").split()[3:6] == ["counts", "0,", "1,"]
        await driven.press("space", "space")  # rows that are only counted are shown first
        for _ in range(20):
            await driven.filled()
            pane = pane_of(driven)
            if len(pane.cards) == 1:
                break
        await driven.ran()
        assert len(pane.cards) == 1 and pane.cards[0].runs[0].iterations == 11

    drive("date_normaliser", script, size=(160, 60), lines=(f'labels src.1 "{vocabulary}" input',))


def test_e_tells_why_the_loop_ended_and_o_where_a_nan_comes_from() -> None:
    async def script(driven: Driven) -> None:
        await opened(driven)
        assert "NaN, Inf" in driven.text("top"), "what is wrong stands in the first line"
        await driven.press("e")
        assert "time_mixing" in driven.text("sheet") and driven.state.stop is not None
        assert driven.state.stop.tick == 0, "the moment stays"
        await driven.press("q", "x", "x", "o")
        assert "89.2" in driven.text("sheet") and not driven.app._faults

    drive("rwkv_overflow", script, size=(160, 48))


def test_the_operation_in_which_inf_is_born_has_a_row_and_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        lines = driven.text("overview").splitlines()
        born = next(line for line in lines if "exp_key" in line and "born here" in line)
        assert born.replace("▌", " ").split()[:3] == [
            "I",
            "exp_key",
            "born",
        ] and "2 more slices (Space)" in driven.text("overview")
        assert pane.at.iteration == 7 and pane.cards[0].lines[pane.at.line].is_born

    drive("rwkv_overflow", script, size=(160, 48))


def test_sides_of_an_if_stand_beside_the_iterations() -> None:
    async def script(driven: Driven) -> None:
        await opened(driven)
        numbers, number = [], 27
        while number != 1:
            numbers.append(number)
            number = number // 2 if number % 2 == 0 else 3 * number + 1
        row = next(line for line in driven.text("overview").splitlines() if "then?" in line)
        sides = "".join(letter for letter in row[25:] if letter in "TF")
        even = ["T" if one % 2 == 0 else "F" for one in numbers]
        assert sides[:30] == "".join(even[:30]) and sides[-30:] == "".join(even[-30:])

    drive("while_loop", script, size=(160, 48))


@pytest.mark.parametrize("name", ["even", "is_the_remainder_of_this_zero"])
@pytest.mark.parametrize("size", [(60, 18), (80, 24), (100, 30), (120, 40), (160, 48)])
def test_the_row_of_an_if_asks_which_side_ran_at_any_width(tmp_path: Path, size: tuple[int, int], name: str) -> None:
    """k of the iteration: x is halved in the first two, and then grows by one; inside of another loop, and alone."""
    net = Graph()
    outer = net.body()
    y = outer.parameter("y", dims=(1,))
    body = outer.body()
    x, k = body.parameter("x", dims=(1,)), body.parameter("k", "i64", ())
    sides = []
    for kind, number in (("Multiply", 0.5), ("Add", 1.0)):
        side = body.body()
        given = side.parameter("given", dims=(1,))
        made = side.result(side.apply(kind, given, side.constant([number])), "made")
        sides.append(Side(side, [(x, given)], [made]))
    early = body.apply("Less", k, body.constant(np.int64(2)), type="boolean", dims=())
    (chosen,) = body.branch(name, early, *sides)
    after = body.result(chosen, "x_next")
    inner = outer.loop("inner", body, 4, True, [carried(y, x, after)], [last(after)], iteration=k)
    below = outer.result(inner[0], "y_next")
    (end,) = net.loop("outer", outer, 2, True, [carried(net.parameter("y0", dims=(1,)), y, below)], [last(below)])
    net.result(end, "end")

    async def script(driven: Driven) -> None:
        await opened(driven)
        rows = [line for line in driven.text("overview").splitlines() if "then?" in line]
        assert len(rows) == 1 and "".join(letter for letter in rows[0] if letter in "TF").startswith("TTFF")
        label = rows[0][: rows[0].index("then?")].strip(" ▌")
        assert not label or label.startswith(name[0])

    drive(debugger_of(tmp_path, net, np.ones(1, np.float32)), script, size=size)


def test_many_loops_are_a_list_with_findings_first(tmp_path: Path) -> None:
    net = Graph()
    value = net.parameter("x", dims=(1, 4))
    for k in range(12):
        body = net.body()
        x = body.parameter("x", dims=(1, 4))
        apply, constant = ("Multiply", 1e30) if k == 7 else ("Add", 0.5)
        grown = body.apply(apply, x, body.constant([[constant]]), name=f"step_{k}")
        out = body.result(body.apply("Divide", grown, grown) if k == 8 else grown, "x_next")
        (value,) = net.loop(f"layer_{k}", body, 3, True, [carried(value, x, out)], [last(out)])
    net.result(value, "y")

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        names = [line.split()[0].lstrip("▌") for line in driven.text("overview").splitlines() if "layer_" in line]
        assert names[0] == "layer_7", "the loop in which Inf is born is open, and first"
        listed = [line for line in driven.text("overview").splitlines() if line.strip().startswith("layer_8")]
        assert "NaN at 0" in listed[0] and "3 iterations of 3" in listed[0]
        quiet = next(line for line in driven.text("overview").splitlines() if line.strip().startswith("layer_0"))
        assert "NaN" not in quiet and names.index("layer_0") > names.index("layer_8")
        await driven.press("tab")
        assert pane.cards[pane.at.card].name == "layer_8"
        await driven.press(*["down"] * 6, "shift+tab")
        assert not driven.app._faults

    drive(debugger_of(tmp_path, net, np.ones((1, 4), np.float32)), script, size=(120, 40))


def test_a_value_that_settles_has_its_changes_and_one_that_grows_what_it_grows_by(tmp_path: Path) -> None:
    net = Graph()
    half, tokens, body = net.parameter("half", dims=(4,)), net.parameter("start", "i64", (-1,)), net.body()
    x, toks = body.parameter("x", dims=(4,)), body.parameter("toks", "i64", (-1,))
    less = body.result(body.apply("Multiply", x, body.constant([0.25])), "x_next")
    zero = body.constant([0], np.int64)
    first = body.apply("Gather", toks, zero, body.constant(0, np.int64))
    twice = body.apply("Concat", toks, body.apply("Add", first, body.constant([5], np.int64)), axis=0)
    more = body.result(body.apply("Reshape", twice, body.constant([-1], np.int64), special_zero="false"), "toks_next")
    outs = net.loop(
        "loop", body, 12, True, [carried(half, x, less), carried(tokens, toks, more)], [last(less), last(more)]
    )
    for name, out in zip(("x", "toks"), outs, strict=True):
        net.result(out, name)

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        shown = driven.text("overview")
        assert "x' settles from 4 on: less than 1 % of its change" in shown and "Δ x' change" in shown
        (grown,) = [line for line in shown.splitlines() if line.strip().startswith("~ toks")]
        assert grown.split()[2] == "3–15" and grown.count("+8") == 12 + 1  # with the value at the cursor
        line = next(one for one in pane.cards[0].lines if one.name == "x' change")
        changes = pane.cards[0].history(line, 0)
        assert changes is not None and changes.numbers[0, :, 0] == pytest.approx(8 * 0.75 * 0.25 ** np.arange(12.0))

    values = (np.array([1, -8, 2, 4], np.float32), np.array([3, 5, 7], np.int64))
    drive(debugger_of(tmp_path, net, *values), script, size=(160, 48))


def test_what_lies_blank_shows_the_body_of_the_loop_of_the_cursor() -> None:
    """Every operation of the file's body is named, by Tab of the other loop; a low terminal has no room for one."""

    def names(driven: Driven, loop: str) -> set[str]:
        layer = next(one for _path, graph in driven.app.driver.compiled.model.graphs() for one in graph.layers
                     if one.name == loop)  # fmt: skip
        return {one.name for one in layer.bodies[0].graph.layers if one.type not in ("Parameter", "Result", "Constant")}

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        await driven.filled()
        shown = driven.text("loop-body")
        assert "body of passes" in shown and all(name in shown for name in names(driven, "passes"))
        assert pane.size.height == pane.needed, "the cards have what they need"
        await driven.press("tab")
        await driven.filled()
        assert "body of pairs_of_neighbours" in driven.text("loop-body")

    drive("nested_loop", script, size=(200, 60))

    async def low(driven: Driven) -> None:
        await opened(driven)
        await driven.filled()
        assert not driven.app.screen.query("#loop-body")

    drive("nested_loop", low, size=(120, 40))


def test_the_body_stands_beside_the_cards_where_it_has_no_room_below_them() -> None:
    async def script(driven: Driven) -> None:
        await driven.ran()
        await driven.filled()
        assert driven.pane("loop-body").has_class("-beside")
        assert "body of until_above_limit" in driven.text("loop-body") and "go on?" in driven.text("loop-body")
        overview, body = driven.pane("overview"), driven.pane("loop-body")
        assert overview.size.width + body.outer_size.width <= 200 and overview.size.width > 100
        lines = driven.text("overview").splitlines()
        assert any("iterations of" in line for line in lines) and any("Enter goes there" in line for line in lines)

    drive("for_with_condition", script, size=(200, 34), starts_up=True, runs=True)


def test_loops_whose_last_part_is_the_same_are_called_by_the_part_that_tells(tmp_path: Path) -> None:
    net = Graph()
    value = net.parameter("start", dims=(2,))
    for name in ("encoder/loop", "decoder/loop"):
        body = net.body()
        h = body.parameter("h", dims=(2,))
        twice = body.result(body.apply("Add", h, h, name="twice"), "h_next")
        value = net.loop(name, body, 3, True, [carried(value, h, twice)], [last(twice)])[0]
    net.result(value, "out")

    async def script(driven: Driven) -> None:
        pane = await opened(driven)
        assert [card.name for card in pane.cards] == ["encoder/loop", "decoder/loop"]
        assert "encoder/loop" in driven.text("overview") and "decoder/loop" in driven.text("overview")
        assert "Tab card" in driven.text("keys")
        await driven.press("tab", "enter")
        assert "decoder/loop" in driven.text("top") and "decoder/loop" in driven.text("frames")

    drive(debugger_of(tmp_path, net, np.ones(2, np.float32)), script, size=(160, 48))


def test_at_the_prompt_of_the_overview_a_name_means_the_iteration_of_the_cursor() -> None:
    async def script(driven: Driven) -> None:
        await opened(driven)
        await driven.press("home")
        await driven.type("print order")  # after one pass of bubble sort over 5 1 4 2 8, as its row shows it
        assert "[1., 4., 2., 5., 8.]" in driven.text("card")
        assert "passes::pairs_of_neighbours:0@0" in driven.text("card"), "where that is computed"
        await driven.press("right")
        await driven.type("print order@1")  # what enters the next pass, as everywhere
        assert "[1., 4., 2., 5., 8.]" in driven.text("card")
        await driven.type("print order[0] - values[0]")
        assert "-4." in driven.text("answer")
        await driven.press("escape")
        await driven.type("print swaps@*")
        assert "passes@1::pairs_of_neighbours::swaps@*" in driven.text("card"), "of the run in the pass of the cursor"
        await driven.press("escape", "tab", "end")
        await driven.type("print swaps@*")
        assert "passes@1::pairs_of_neighbours::swaps@*" in driven.text("card"), "of the run in that pass"

    drive("nested_loop", script, size=(120, 40))


def test_tab_is_offered_where_it_leads_to_another_card() -> None:
    async def one(driven: Driven) -> None:
        await opened(driven)
        assert "Enter goes there" in driven.text("keys") and "Tab" not in driven.text("keys")

    async def two(driven: Driven) -> None:
        await opened(driven)
        assert "Tab card" in driven.text("keys")

    drive("rwkv_overflow", one, size=(120, 40))
    drive("nested_loop", two, size=(120, 40))


@pytest.mark.parametrize("interval", [0.0, 60.0])
def test_the_cursor_stands_at_the_moment_however_often_the_run_behind_tells_of_itself(
    monkeypatch: pytest.MonkeyPatch, interval: float
) -> None:
    """A slow run tells of itself before it has come to the iteration at which the debugger stands."""
    monkeypatch.setattr(runs, "_INTERVAL", interval)
    monkeypatch.setattr(StepperApp, "_wait_with_progress", lambda *_given: None)

    async def script(driven: Driven) -> None:
        await driven.type("view overview")
        await driven.ran()
        assert pane_of(driven)._at.iteration == 7 and "v mean, max, rms" in driven.text("keys")

    drive("date_normaliser", script, size=(160, 40), lines=(f"run-to {DECODER}@0", "iter 7"))
