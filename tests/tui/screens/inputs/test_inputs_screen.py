"""The inputs screen: every way to give a value by keys, what does not fit said in place, and then the same run as
`stepper run` on the same options."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.app import StepperApp
from stepper_tui.screens.inputs import InputsScreen
from stepper_tui.screens.sheet.screen import SheetScreen
from stepper_tui.theme import Look

import stepper
from stepper.cli import main
from stepper.cli.specs import given_texts
from stepper.debug.debugger import Debugger
from stepper.element_types import Array
from stepper.ir.model import Model
from stepper.session.input_choices import InputChoices, InputSource, Opening
from tests.debug.debugged import SAMPLES
from tests.models import Graph
from tests.tui.driven import Driven, drive

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 34), (200, 60)], ids=str)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Four inputs, three of them with an open dimension; files for the last one in the working folder."""
    monkeypatch.chdir(tmp_path)
    net = Graph()
    tokens, start = net.parameter("tokens", "i64", (1, -1)), net.parameter("h0", dims=(2, 1, 64))
    mask, memory = net.parameter("mask", dims=(1, -1)), net.parameter("memory", dims=(1, -1, 8))
    for value, name in ((tokens, "a"), (start, "b"), (mask, "c"), (memory, "d")):
        net.result(net.apply("Add", value, value), name)
    folder = tmp_path / "runs"
    folder.mkdir()
    values = np.arange(32, dtype=np.float32).reshape(1, 4, 8)
    np.save(folder / "memory.npy", values)
    np.save(folder / "memory_t.npy", values.transpose(1, 0, 2))
    np.savez(folder / "all.npz", memory=values, other=np.zeros(3))
    return net.read(tmp_path)


def opening(model: Model, *options: str) -> Opening:
    given = [option.partition(" ") for option in options]
    specs = [text for word, _, text in given if word == "--input"]
    shapes = [text for word, _, text in given if word == "--shape"]
    texts, fixed = given_texts(model, specs, None, shapes)
    return Opening(model, texts, fixed, lambda inputs: Debugger(model, dict(inputs.items())))


def typed(text: str) -> list[str]:
    special = {"[": "left_square_bracket", "]": "right_square_bracket", ",": "comma", ".": "full_stop", "/": "slash"}
    return [special.get(letter, letter) for letter in text]


async def put(driven: Driven, rights: int, text: str = "") -> None:
    """Choose a source by so many keys, and type its text."""
    await driven.press(*["right"] * rights)
    if text:
        await driven.press("enter", "ctrl+u", *typed(text), "enter")


def choices_of(driven: Driven) -> InputChoices:
    assert driven.app.inputs is not None
    return driven.app.inputs


async def fill_all(driven: Driven) -> None:
    """A literal, random numbers, ones of a typed size, a file."""
    await put(driven, 2, "[[8,6,1]]")
    await driven.press("down")
    await put(driven, 3, "7")
    await driven.press("down")
    await put(driven, 5)
    await driven.press("tab", "down", "enter", "5", "enter", "shift+tab", "down")
    await put(driven, 1, "runs/memory.npy")


def test_each_way_to_choose_by_keys_then_runs_to_the_outputs_of_stepper_run(model: Model, tmp_path: Path) -> None:
    outputs: list[Array] = []
    options: list[str] = []

    async def script(driven: Driven) -> None:
        assert isinstance(driven.app.screen, InputsScreen)
        await fill_all(driven)
        assert "4 inputs, 4 ready" in driven.text("answer"), driven.text("inputs")
        options.extend(choices_of(driven).command_line())
        await driven.press("f5")
        await driven.settle()
        assert isinstance(driven.app.screen, SheetScreen) and len(driven.app.screen_stack) == 1
        await driven.press("c")
        outputs.extend(driven.state.view.outputs)

    drive(opening(model), script, size=(160, 40))
    words = shlex.split(" ".join(options))
    assert main(["run", str(model.path), *words, "-o", str(tmp_path / "out.npz"), "-q"]) == 0
    with np.load(tmp_path / "out.npz") as expected:
        assert len(outputs) == len(expected.files) == 4
        for ours, name in zip(outputs, expected.files, strict=True):
            np.testing.assert_array_equal(ours, expected[name])


@SIZES
def test_all_choices_are_in_sight(model: Model, size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("down", "down", "down", "enter")
        assert all(f"{source}" in driven.text("inputs") for source in InputSource)
        driven.golden(f"inputs_{size[0]}x{size[1]}", "top", "inputs", "dimensions", "detail", "answer", "keys")

    options = ("--input tokens=[[8,6,1]]", "--input h0=zeros", "--input mask=ones", "--input memory=runs/memory.np")
    drive(opening(model, *options), script, size=size)


def test_a_wrong_path_is_answered_with_near_ones_and_tab_takes_the_first(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("down", "down", "down")
        await put(driven, 1, "runs/memory.np")
        assert "no such file" in driven.text("inputs")
        assert "is not there." in driven.text("detail")
        near = driven.text("detail")
        assert "runs/memory.npy" in near and "runs/all.npz:memory" in near and "axes 0 and 1 swapped?" in near
        await driven.press("enter", "tab", "enter")
        assert choices_of(driven).choices[3].text == "runs/memory.npy"
        assert "✓ yes" in driven.text("inputs")

    drive(opening(model), script)


def test_a_literal_of_too_few_brackets_is_offered_with_more(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await put(driven, 2, "[8,6,1]")
        assert "has shape [3], expected i64[1,?]" in " ".join(driven.text("detail").split())
        await driven.press("enter", "tab", "enter")
        assert choices_of(driven).outcome(0).array.tolist() == [[8, 6, 1]]

    drive(opening(model), script)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("input nothing zeros", "no input 'nothing'"),
        ("input h0", "expected a name and a value"),
        ("dim Z 3", "no open dimension 'Z'"),
        ("dim T x", "not a size"),
        ("dim T", "expected a letter and a size"),
        ("start", "not ready: tokens, h0, mask, memory"),
        ("next", "choose its inputs"),
        ("print h0", "choose its inputs"),
    ],
)
def test_what_cannot_be_is_said_in_place(model: Model, line: str, says: str) -> None:
    async def script(driven: Driven) -> None:
        await driven.type(line)
        assert says in driven.text("answer")

    drive(opening(model), script)


def test_one_line_fills_all_that_are_missing_and_one_all_sizes(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await driven.type("input * rand:3")
        assert "size of" in driven.text("inputs")
        await driven.type("dim * 5")
        assert choices_of(driven).ready == 4
        assert [choices_of(driven).outcome(at).array.shape for at in (0, 2)] == [(1, 5), (1, 5)]

    drive(opening(model), script)


def test_escape_forgets_what_was_typed(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await put(driven, 2, "[[1]]")
        await driven.press("enter", "ctrl+u", "9")
        assert "Esc as it was" in driven.text("keys")
        await driven.press("escape")
        assert "F5 run" in driven.text("keys")
        assert choices_of(driven).choices[0].text == "[[1]]"

    drive(opening(model), script)


def test_a_model_that_does_not_run_says_so_and_the_choices_stay(model: Model) -> None:
    def refuse(_inputs: object) -> Debugger:
        return Debugger(model, {})

    async def script(driven: Driven) -> None:
        await driven.press("f5")
        await driven.settle()
        assert isinstance(driven.app.screen, InputsScreen)
        assert "4 of the model's 4 inputs are missing" in driven.text("answer")
        assert choices_of(driven).ready == 4

    given = opening(model, "--input *=zeros", *(f"--shape {name}={shape}" for name, shape in SHAPES))
    drive(Opening(model, given.texts, given.shapes, refuse), script)


SHAPES = (("tokens", "1,3"), ("mask", "1,3"), ("memory", "1,2,8"))


def test_the_inputs_can_be_chosen_again_while_the_model_runs(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("f5")
        await driven.settle()
        await driven.type("view inputs")
        assert isinstance(driven.app.screen, InputsScreen)
        await driven.type("input h0 ones")
        assert isinstance(driven.app.screen, InputsScreen)
        await driven.press("f5")
        await driven.settle()
        assert isinstance(driven.app.screen, SheetScreen) and len(driven.app.screen_stack) == 1
        await driven.press("c")
        assert (driven.state.view.outputs[1] == 2).all()

    drive(opening(model, "--input *=zeros", *(f"--shape {name}={shape}" for name, shape in SHAPES)), script)


def test_the_mouse_chooses(model: Model) -> None:
    async def script(driven: Driven) -> None:
        text = driven.text("inputs").splitlines()
        line = next(at for at, row in enumerate(text) if " h0 " in row)
        await driven.pilot.click("#inputs", offset=(text[line].index("zeros") + 1, line))
        await driven.settle()
        assert (
            choices_of(driven).choices[1].source is InputSource.ZEROS
            and choices_of(driven).outcome(1).array is not None
        )

    drive(opening(model), script)


def test_without_symbols_ascii_alone(model: Model) -> None:
    async def script(driven: Driven) -> None:
        for pane in ("top", "inputs", "dimensions", "detail", "keys"):
            assert driven.text(pane).isascii(), pane

    options = ("--input tokens=[[8,6,1]]", "--input memory=runs/memory.np")
    drive(opening(model, *options), script, size=(80, 24), look=Look(ascii=True, plain=True))


def test_leaving_without_a_run_ends_the_application(model: Model) -> None:
    async def script(driven: Driven) -> None:
        await driven.press("q")
        assert driven.app.return_value == 0

    drive(opening(model), script)


def test_inputs_that_a_program_gave_are_shown() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("view inputs")
        lines = driven.text("inputs").splitlines()
        assert "given when the run began" in lines[0]
        assert lines[1].split() == ["values", "f32[5]", "5", "1", "4", "2", "8"]
        assert lines[2].split() == ["5", "1", "4", "2", "8"]  # upon their colours
        assert "F5" not in driven.text("keys") and "Enter" not in driven.text("keys")
        await driven.type("input values zeros")
        assert "there is nothing to choose" in driven.text("answer")

    drive("nested_loop", script, size=(80, 24))


def test_inputs_of_the_command_line_can_be_chosen_anew(tmp_path: Path) -> None:
    """The values that are there are not read again; F5 begins another run, in which breakpoints are set again."""
    model = stepper.read_model(SAMPLES / "nested_loop" / "model.xml")
    values = {0: np.array([5, 1, 4, 2, 8], np.float32)}
    texts = {0: f"{tmp_path / 'gone.npz'}:values"}

    def choosing() -> Opening:
        return Opening(model, texts, {}, lambda inputs: Debugger(model, dict(inputs.items())), values)

    async def run() -> None:
        app = StepperApp(Debugger(model, values), "nested_loop", choosing=choosing)
        async with app.run_test(size=(160, 48)) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            await driven.type("break last")
            await driven.type("view inputs")
            text = driven.text("inputs")
            assert "gone.npz:values" in text and "✓ yes" in text and "F5 begins another run" in text
            await driven.type("input values [3,2,1,0,5]")
            await driven.press("f5")
            await driven.settle()
            assert driven.app.front.view_name == "sheet" and driven.state.view.tick == 0
            assert [one.sentence for one in driven.state.breaks] == ["when last"]
            await driven.type("delete")
            await driven.press("c")
            sorted_values, *_ = driven.state.view.outputs
            assert sorted_values.tolist() == [0, 1, 2, 3, 5]

    asyncio.run(run())


def test_a_file_beside_the_model_that_fits_is_proposed_before_anything_is_typed() -> None:
    model = stepper.read_model(SAMPLES / "for_loop" / "model.xml")

    async def taken(driven: Driven) -> None:
        text = driven.text("inputs")
        assert text.count("inputs.npz:") == 2 and text.count("F5 takes it") == 2
        assert "inputs.npz beside the model fits" in driven.text("detail") and "near by" in driven.text("detail")
        assert "F5 runs on what is proposed" in driven.text("answer")
        await driven.press("f5")
        given = dict(driven.app.driver.given)
        with np.load(SAMPLES / "for_loop" / "inputs.npz") as expected:
            assert all(np.array_equal(given[name], expected[name]) for name in expected.files)

    async def refused(driven: Driven) -> None:
        await driven.press("right", "right")  # a literal, of which there is none yet
        await driven.press("f5")
        assert "not ready: principal" in driven.text("answer") and "inputs.npz:rate" in driven.text("inputs")
        await driven.press("left", "enter")
        assert "inputs.npz:principal" in driven.text("inputs")

    drive(opening(model), taken, size=(120, 40))
    drive(opening(model), refused, size=(120, 40))


def test_what_is_proposed_is_there_by_name_or_all_that_is_left(tmp_path: Path) -> None:
    net = Graph()
    for name, dims in (("a", (2,)), ("b", (3,))):
        value = net.parameter(name, dims=dims)
        net.result(net.apply("Abs", value), f"{name}_out")
    model = net.read(tmp_path)
    a, b = np.ones(2, np.float32), np.ones(3, np.float32)

    def proposed(**files: dict[str, Array]) -> list[str]:
        for path in tmp_path.glob("*.npz"):
            path.unlink()
        for name, arrays in files.items():
            np.savez(tmp_path / f"{name}.npz", **arrays)  # type: ignore[arg-type]
        return [spec.rpartition("/")[2] for spec in InputChoices(opening(model)).proposed.values()]

    assert proposed() == proposed(inputs={"a": a}) == proposed(expected={"x": a, "y": b}) == []
    assert proposed(inputs={"x": b, "y": a}) == ["inputs.npz:y", "inputs.npz:x"]
    assert proposed(expected={"a": a, "b": b}, other_inputs={"a": a}) == ["expected.npz:a", "expected.npz:b"]
    assert proposed(inputs={"x": a, "y": a, "b": b}) == [], "one of two is not chosen for the user"
