"""Other inputs for a model that runs: the new run is at its start, with breakpoints and watches of the one before.

Marks and branches, which are of moments of that run, are left out, and that is said. Each run keeps its own session.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import numpy as np
import pytest
from stepper_tui.app import StepperApp
from stepper_tui.screens.inputs import InputsScreen
from stepper_tui.screens.sheet.screen import SheetScreen

import stepper
from stepper.debug.debugger import Debugger
from stepper.errors import InputError
from stepper.session.autosave import Autosave
from stepper.session.input_choices import Opening
from tests.debug.debugged import SAMPLES
from tests.tui.driven import DECODER, Driven, Script, drive

FILE = f"{SAMPLES / 'date_normaliser' / 'inputs.npz'}"


@pytest.fixture(autouse=True)
def _state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def opening(refused: tuple[int, ...] = ()) -> Opening:
    """The date model on its inputs; the runs of these numbers cannot be."""
    model = stepper.read_model(SAMPLES / "date_normaliser" / "model.xml")
    with np.load(FILE) as archive:
        keys = list(archive.files)
    numbers = iter(range(100))

    def make(inputs: object) -> Debugger:
        if next(numbers) in refused:
            raise InputError("these do not do")
        return Debugger(model, dict(inputs.items()))  # type: ignore[attr-defined]

    names = [parameter.name for parameter in model.graph.parameters]
    texts = {names.index(key) if key in names else at: f"{FILE}:{key}" for at, key in enumerate(keys)}
    return Opening(model, texts, {}, make)


async def set_up(driven: Driven) -> None:
    """A run with all that a user can put into it, and the inputs screen over it."""
    await driven.press("f5")
    await driven.settle()
    for line in (f"run-to {DECODER}@2", "break nan", f"break {DECODER}@* if max(h.9) > 0.5", "watch max(h.9)"):
        await driven.type(line)
    await driven.press("m", "k")
    await driven.type("view inputs")
    assert isinstance(driven.app.screen, InputsScreen)


async def other_inputs(driven: Driven) -> None:
    assert driven.app.inputs is not None
    for position, choice in enumerate(driven.app.inputs.choices):
        array = driven.app.inputs.outcome(position).array
        if array is not None and array.ndim == 2 and array.dtype.kind == "i":
            await driven.type(f"input {choice.parameter.name} {(array * 0 + 1).tolist()}".replace(", ", ","))
            return
    raise AssertionError("no input to change")


def test_breakpoints_and_watches_are_kept_and_the_run_is_at_its_start() -> None:
    async def script(driven: Driven) -> None:
        await set_up(driven)
        assert driven.state.view.tick > 0
        await other_inputs(driven)
        await driven.press("f5")
        await driven.settle()
        assert isinstance(driven.app.screen, SheetScreen) and len(driven.app.screen_stack) == 1
        state = driven.state
        assert state.view.tick == 0 and not state.lists.marks
        assert [(one.number, one.hits) for one in state.breaks] == [(1, 0), (2, 0)]
        said = driven.app.answered[0]
        assert "max(h.9)" in await driven.do(":info watches")
        assert said.startswith("runs on these inputs, at its start; breakpoints and watches are set again")
        assert "left out, as of the run before: mark k" in said
        await driven.press("c")
        assert driven.state.breaks[1].hits == 1 and not driven.app._faults

    drive(opening(), script)


def test_inputs_that_do_not_do_leave_the_run_as_it_is() -> None:
    async def script(driven: Driven) -> None:
        await set_up(driven)
        tick = driven.state.view.tick
        await driven.press("f5")
        await driven.settle()
        assert isinstance(driven.app.screen, InputsScreen) and "these do not do" in driven.text("answer")
        await driven.press("q", "n")
        assert driven.state.view.tick == tick + 1 and [mark.name for mark in driven.state.lists.marks] == ["k"]

    drive(opening(refused=(1,)), script)


def test_a_rerun_opens_the_model_on_the_inputs_that_were_chosen_last() -> None:
    async def script(driven: Driven) -> None:
        await set_up(driven)
        await other_inputs(driven)
        await driven.press("f5")
        await driven.settle()
        await driven.press("n", "n")
        await driven.press("ctrl+r")
        await driven.settle()
        assert "read again, run to tick 2" in driven.text("answer"), driven.text("answer")
        assert len(driven.state.breaks) == 2

    drive(opening(), script)


def kept_run(script: Script, autosave: Autosave) -> str:
    """A session from start to end; what it says at its end."""

    async def run() -> StepperApp:
        app = StepperApp(None, "date_normaliser", opening=opening(), autosave=autosave)
        async with app.run_test(size=(120, 40)) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            await script(driven)
            app.leave()
        return app

    return asyncio.run(run()).session.save_at_end()


@pytest.mark.parametrize("named", [False, True], ids=["by model", "in a file"])
def test_each_run_keeps_its_own_session(tmp_path: Path, named: bool) -> None:
    folder, file = tmp_path / "kept", tmp_path / "work.session"

    def autosave() -> Autosave:
        return Autosave(file=file if named else None, folder=folder)

    async def two_runs(driven: Driven) -> None:
        await set_up(driven)
        await other_inputs(driven)
        await driven.press("f5")
        await driven.settle()
        assert ("keeps the session before" in driven.app.answered[0]) is named
        await driven.press("n")

    async def first_inputs(driven: Driven) -> None:
        await driven.press("f5")
        await driven.settle()
        assert "session restored" in driven.app.answered[0], driven.app.answered
        assert driven.state.view.tick > 1 and [mark.name for mark in driven.state.lists.marks] == ["k"]

    assert kept_run(two_runs, autosave()) == ""
    assert len(list(folder.glob("*.session"))) == (1 if named else 2) and file.exists() is named
    assert kept_run(first_inputs, autosave()) == ""


def test_a_rerun_of_a_model_that_has_changed_is_kept_under_its_own_name(tmp_path: Path) -> None:
    model, folder = tmp_path / "model", tmp_path / "kept"
    shutil.copytree(SAMPLES / "for_loop", model)

    def opened() -> Debugger:
        return Debugger(stepper.read_model(model / "model.xml"), dict(np.load(model / "inputs.npz")))

    async def run() -> StepperApp:
        app = StepperApp(opened(), "for_loop", autosave=Autosave(folder=folder), reopen=opened)
        async with app.run_test(size=(120, 40)) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            await driven.type("break nan")
            text = (model / "model.xml").read_text(encoding="utf-8")
            (model / "model.xml").write_text(text.replace("years", "decades"), encoding="utf-8")
            await driven.press("ctrl+r")
            await driven.settle()
            assert "read again" in app.answered[0] and len(driven.state.breaks) == 1
            app.leave()
        return app

    app = asyncio.run(run())
    kept = set(folder.glob("*.session"))  # that of the model as it was is kept while one works
    assert app.session.save_at_end() == "" and len(kept | set(folder.glob("*.session"))) == 2
    again = opened()
    assert Autosave(folder=folder).restore(again).sentence.startswith("session restored")
