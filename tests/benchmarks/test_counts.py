"""What makes the terminal application quick, as counts: they are the same on each machine, which times are not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from stepper_tui.app import StepperApp
from stepper_tui.paint.pane import Pane
from stepper_tui.state import StateChanged
from textual.geometry import Region
from textual.widget import Widget

from tests.benchmarks import key_latency, terminal_models
from tests.benchmarks.terminal_models import SAMPLE
from tests.tui.wide_models import wide_loop

_LOADED: Final = """
import os, sys
from textual.app import App
from stepper_tui.app import StepperApp
shown = StepperApp._display
def display(self, screen, renderable):
    shown(self, screen, renderable)
    names = [name for name in sys.modules if name.partition(".")[0] in ("stepper", "stepper_tui")]
    print("loaded", *names, file=sys.__stdout__, flush=True)
    os._exit(0)
StepperApp._display = display
App.run = lambda self, run=App.run: run(self, headless=True, size=(160, 48))
import stepper.cli.commands.tui as command
command._is_terminal = lambda _stream: True
from stepper.cli import main
main()
"""
_LATER: Final = (
    "stepper.commands",
    "stepper.compare",
    "stepper.debug.overview.runs",
    "stepper.export",
    "stepper.integrations.dap.joining",
    "stepper.recording",
    "stepper_tui.actions.main",
    "stepper_tui.screens.graph",
    "stepper_tui.screens.inputs",
    "stepper_tui.screens.value.screen",
    "stepper_tui.worker.snapshot",
)
"""Modules that are loaded while the first picture is there already."""
_MOST: Final = 192
"""With the packages themselves."""


def test_the_first_picture_needs_no_command_and_no_other_screen(tmp_path: Path) -> None:
    arguments = [str(SAMPLE / "model.xml"), "--inputs", str(SAMPLE / "inputs.npz"), "--no-keep"]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", _LOADED, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    loaded = found.stdout.rpartition("loaded")[2].split()
    too_early = [name for name in loaded if name.startswith(tuple(f"{one}." for one in _LATER)) or name in _LATER]
    assert not too_early and 50 < len(loaded) <= _MOST, (len(loaded), too_early, found.stderr)


def test_an_iteration_on_or_back_builds_the_lines_of_each_pane_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: Counter[tuple[str, int]] = Counter()
    states = []
    changed = Pane.changed

    def count(pane: Pane) -> None:
        built[type(pane).__name__, id(pane.state)] += 1
        states.append(pane.state)  # so that its id is not given to another one
        changed(pane)

    async def script(watched: key_latency.Watched) -> None:
        await watched.focus(key_latency.STEPS)
        for key in ("n", "N", "n", "N"):
            await watched.press(key, lambda before, now: now is not before)
            await watched.rest()
            monkeypatch.setattr(Pane, "changed", count)  # the first ones may ask for values, and focus late
        monkeypatch.undo()

    key_latency.watch(terminal_models.sample(), script)
    # The answer is put where it stood. The sheet is built before its numbers come, and when they are there; the
    # inspector once more with the closer look at the cell.
    most = {"AnswerLine": 2, "TopBar": 2, "Headline": 2, "SheetPane": 2, "Inspector": 3}
    often = {name: times for (name, _), times in built.items() if times > most.get(name, 1)}
    assert len(built) > 20 and not often, often


@pytest.mark.parametrize("where", [key_latency.STEPS, key_latency.BESIDE_A], ids=["main", "beside-a"])
def test_showing_another_iteration_calls_nothing_for_each_operation_of_the_body(where: key_latency.Keys) -> None:
    few, many = (_calls_of_a_key(operations, where) for operations in (300, 1_200))
    assert few["DebugScreen.show"] == many["DebugScreen.show"] > 0
    # Two keys: a call for each operation is 1,800 more. What is drawn depends on which values have come, not on those.
    more = {name: times - few[name] for name, times in many.items() if times - few[name] > 900}
    assert not more, more


def _calls_of_a_key(operations: int, where: key_latency.Keys) -> Counter[str]:
    """Return how often each function is called while the screen takes an iteration on and one back."""
    found: Counter[str] = Counter()
    taken = StepperApp.on_state_changed

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            found[frame.f_code.co_qualname] += 1

    def counted(app: StepperApp, message: StateChanged) -> None:
        sys.setprofile(None if message.reply is None else note)
        try:
            taken(app, message)
        finally:
            sys.setprofile(None)

    async def script(watched: key_latency.Watched) -> None:
        await watched.focus(where)
        for key in "nNnN":
            await watched.press(key, lambda before, now: now is not before)
            await watched.rest()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(StepperApp, "on_state_changed", counted)
            for key in "nN":
                await watched.press(key, lambda before, now: now is not before)
                await watched.rest()

    key_latency.watch(terminal_models.middle_of(wide_loop(operations, 20)), script)
    return found


def test_a_key_paints_no_pane_that_is_not_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    painted: list[tuple[str, bool]] = []
    refresh = Widget.refresh

    def noted(widget: Widget, *regions: Region, **options: Any) -> Widget:
        painted.append((type(widget).__name__, bool(widget.size.width)))
        return refresh(widget, *regions, **options)

    async def script(watched: key_latency.Watched) -> None:
        await watched.focus(key_latency.STEPS)
        hidden = [pane for pane in watched.app.screen.query(Pane) if not pane.display]
        assert len(hidden) > 2
        with monkeypatch.context() as patched:
            patched.setattr(Widget, "refresh", noted)
            for key in "nN":
                await watched.press(key, lambda before, now: now is not before)
                await watched.rest()
        assert painted and all(is_seen for _, is_seen in painted), painted

    key_latency.watch(terminal_models.middle_of(wide_loop(40, 20)), script)


_ENTERED: Final = """
import asyncio, sys, threading
import stepper_tui.app
from tests.benchmarks.terminal_models import long_loop
settled, settle = threading.Event(), stepper_tui.app._settle
def told():
    settle()
    settled.set()
stepper_tui.app._settle = told
def ours():
    return {name for name in sys.modules if name.partition(".")[0] in ("stepper", "stepper_tui")}
async def run():
    app = stepper_tui.app.StepperApp(long_loop(10_000_000, at=0), "subject", runs=True)
    async with app.run_test(size=(160, 48)) as pilot:
        while not settled.is_set():
            await asyncio.sleep(0.02)
        before = ours()
        await pilot.press("n")
        while app.state.view is None or not app.state.view.tick:
            await asyncio.sleep(0.02)
        await pilot.pause()
        print("loaded", app.front.view_name, *sorted(ours() - before), flush=True)
        app.driver.close()
asyncio.run(asyncio.wait_for(run(), 60))
"""


def test_the_first_step_from_the_sheet_loads_nothing_beside_a_run_that_goes_on() -> None:
    found = subprocess.run([sys.executable, "-c", _ENTERED], capture_output=True, text=True, timeout=90, check=False)
    assert found.stdout.split() == ["loaded", "sheet"], found.stdout + found.stderr
