"""Options of the command line count after the inputs were chosen on the screen, as they do where they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from stepper_tui.app import StepperApp
from stepper_tui.screens.inputs import InputsScreen

from stepper.cli import main
from stepper.cli.commands import tui as tui_command
from stepper.engine.rules import Rules
from tests.debug.debugged import SAMPLES
from tests.tui.driven import Driven

Started = Callable[[Callable[[Driven], Awaitable[None]], list[str]], int]
DATES, LOOP = (str(SAMPLES / name / "model.xml") for name in ("date_normaliser", "for_loop"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """`stepper ARGUMENTS` on a terminal, with a script in place of a user."""
    monkeypatch.setattr(tui_command, "_is_terminal", lambda _stream: True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def start(script: Callable[[Driven], Awaitable[None]], arguments: list[str]) -> int:
        async def driving(app: StepperApp) -> None:
            async with app.run_test(size=(120, 40)) as pilot:
                driven = Driven(app, pilot)
                await driven.settle()
                await script(driven)
                app.leave()

        monkeypatch.setattr(StepperApp, "run", lambda app: asyncio.run(driving(app)))
        return main(["tui", *arguments])

    return start


async def run_on_zeros(driven: Driven) -> None:
    """Choose, and begin."""
    assert isinstance(driven.app.screen, InputsScreen)
    for line in ("input * zeros", "dim * 3", "start"):
        if line != "dim * 3" or (driven.app.inputs is not None and driven.app.inputs.dimensions):
            await driven.type(line)
    await driven.settle()
    await driven.settle()


def test_rules_memory_limits_and_open_sequences_count(started: Started) -> None:
    seen = []

    async def script(driven: Driven) -> None:
        await run_on_zeros(driven)
        debugger = driven.app.driver._debugger
        layers = [layer for _path, graph in debugger.model.graphs() for layer in graph.layers]
        opened = any(layer.opened_from for layer in layers)
        machine = debugger.machine
        seen.append((machine.rules, machine.max_iterations, debugger.timeline.history.budget, opened))
        assert driven.state.rules == "openvino"

    options = ["--rules", "openvino", "--max-iterations", "7", "--memory", "64MB", "--open-sequences"]
    assert started(script, [DATES, *options]) == 0
    assert seen == [(Rules.OPENVINO, 7, 64 * 2**20, True)]


def test_a_script_and_a_place_come_after_the_inputs(started: Started, tmp_path: Path) -> None:
    commands = tmp_path / "begin"
    commands.write_text("break nan\nwatch max(balance)\n", encoding="utf-8")

    async def script(driven: Driven) -> None:
        await run_on_zeros(driven)
        state = driven.state
        assert state.iteration == 2 and len(state.breaks) == 1
        assert "max(balance)" in await driven.do(":info watches")

    assert started(script, [LOOP, "--script", str(commands), "--at", "years@2"]) == 0


def test_inputs_of_the_command_line_and_the_reference_are_there(started: Started) -> None:
    async def script(driven: Driven) -> None:
        assert driven.app.inputs is not None
        assert [choice.spec for choice in driven.app.inputs.choices] == ["[1,2,3]", ""]
        await run_on_zeros(driven)
        debugger = driven.app.driver._debugger
        assert [array.tolist() for array in debugger.inputs] == [[1, 2, 3], [0, 0, 0]]
        assert debugger.reference is not None

    assert started(script, [LOOP, "--input", "principal=[1,2,3]", "--reference", LOOP]) == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine-for", "Nothing=numpy"], "no operation of the model has the type 'Nothing'"),
        (["--device", "GPU"], "--device is for OpenVINO"),
        (["--input", "nobody=zeros"], "the model has no input 'nobody'"),
        (["--shape", "principal=x"], "not a list of sizes"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anybody_chooses(
    started: Started, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def script(driven: Driven) -> None:
        raise AssertionError("the screen has opened")

    assert started(script, [LOOP, *options]) == 2
    assert says in capsys.readouterr().err
