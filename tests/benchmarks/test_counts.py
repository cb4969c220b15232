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
from textual.geometry import Region
from textual.widget import Widget

from tests.benchmarks import key_latency, terminal_models
from tests.benchmarks.terminal_models import SAMPLE
from tests.tui.wide_models import wide_loop
from tui.app import StepperApp
from tui.messages import StateChanged
from tui.paint.pane import Pane
from tui.pictures.drawing import RowPicture

_LOADED: Final = """
import os, sys
from textual.app import App
from tui.app import StepperApp
shown = StepperApp._display
def display(self, screen, renderable):
    shown(self, screen, renderable)
    names = [name for name in sys.modules if name.partition(".")[0] in ("stepper", "tui")]
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
    "stepper.debug.branches.branches",
    "stepper.debug.breakpoints",
    "stepper.debug.causes.locations",
    "stepper.debug.debugger",
    "stepper.debug.iterations",
    "stepper.debug.overview.runs",
    "stepper.debug.stop",
    "stepper.debug.story.facts",
    "stepper.engine.compiler",
    "stepper.engine.machine",
    "stepper.export",
    "stepper.html_tables",
    "stepper.integrations.dap.joining",
    "stepper.ops.elementwise",
    "stepper.query.address_resolution",
    "stepper.recording",
    "tui.actions.main",
    "tui.screens.graph",
    "tui.screens.inputs",
    "tui.screens.main.screen",
    "tui.screens.sheet",
    "tui.screens.value.screen",
    "tui.worker.snapshot",
)
"""Modules that are loaded while the first picture is there already."""
_MOST: Final = 169
"""With the packages themselves."""


def test_the_first_picture_needs_no_debugger_no_kernels_and_no_other_screen(tmp_path: Path) -> None:
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
        await watched.focus(key_latency.MAIN)
        for key in ("]", "[", "]", "["):
            await watched.press(key, lambda before, now: now is not before)
            await watched.rest()
            monkeypatch.setattr(Pane, "changed", count)  # the first ones may ask for values, and focus late
        monkeypatch.undo()

    key_latency.watch(terminal_models.sample(), script)
    often = {name: times for (name, _), times in built.items() if times > 1 + (name == "AnswerLine")}
    assert len(built) > 20 and not often, often  # the answer is put where it stood


def test_an_iteration_that_was_shown_before_is_shown_without_drawing_a_value_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []
    lines = RowPicture.lines

    def count(picture: RowPicture, *rest: Any) -> Any:
        drawn.append(picture.way)
        return lines(picture, *rest)

    async def script(watched: key_latency.Watched) -> None:
        await watched.focus(key_latency.MAIN)
        monkeypatch.setattr(RowPicture, "lines", count)
        for keys, is_first in (("][][", True), ("][][", False)):
            drawn.clear()
            for key in keys:
                await watched.press(key, lambda before, now: now is not before)
                await watched.rest()
            assert bool(drawn) is is_first
        await watched.press("]", lambda before, now: now is not before)
        await watched.press("]", lambda before, now: now is not before)
        await watched.rest()
        assert drawn  # there are more values than in any moment before

    key_latency.watch(terminal_models.middle_of(wide_loop(40, 20)), script)


@pytest.mark.parametrize("where", [key_latency.MAIN, key_latency.BESIDE_A], ids=["main", "beside-a"])
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
        for key in "][][":
            await watched.press(key, lambda before, now: now is not before)
            await watched.rest()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(StepperApp, "on_state_changed", counted)
            for key in "][":
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
        await watched.focus(key_latency.MAIN)
        hidden = [pane for pane in watched.app.screen.query(Pane) if not pane.display]
        assert len(hidden) > 5
        with monkeypatch.context() as patched:
            patched.setattr(Widget, "refresh", noted)
            for key in "][":
                await watched.press(key, lambda before, now: now is not before)
                await watched.rest()
        assert painted and all(is_seen for _, is_seen in painted), painted

    key_latency.watch(terminal_models.middle_of(wide_loop(40, 20)), script)


_ENTERED: Final = """
import asyncio, sys, threading
import tui.app
from tests.benchmarks.terminal_models import long_loop
settled, settle = threading.Event(), tui.app._settle
def told():
    settle()
    settled.set()
tui.app._settle = told
def ours():
    return {name for name in sys.modules if name.partition(".")[0] in ("stepper", "tui")}
async def run():
    app = tui.app.StepperApp(long_loop(10_000_000, at=0), "subject", runs=True)
    async with app.run_test(size=(160, 48)) as pilot:
        while not settled.is_set():
            await asyncio.sleep(0.02)
        before = ours()
        await pilot.press("enter")
        while app.front.view_name == "overview":
            await asyncio.sleep(0.02)
        await pilot.pause()
        print("loaded", app.front.view_name or "main", *sorted(ours() - before), flush=True)
        app.driver.close()
asyncio.run(asyncio.wait_for(run(), 60))
"""


def test_the_first_dive_from_the_overview_loads_nothing_beside_a_run_that_goes_on() -> None:
    found = subprocess.run([sys.executable, "-c", _ENTERED], capture_output=True, text=True, timeout=90, check=False)
    assert found.stdout.split() == ["loaded", "main"], found.stdout + found.stderr
