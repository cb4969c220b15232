"""What is no longer used is freed, however many models one process reads."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import stepper_tui.app
from stepper_tui.app import StepperApp
from stepper_tui.command_line import VIEWS
from stepper_tui.launch import SessionOptions, open_application
from stepper_tui.state import Answered, FaultFound, OverviewGrew, StateChanged

import stepper
from stepper import collector
from tests.debug.debugged import SAMPLES, sample
from tests.tui.driven import Driven, drive

pytestmark = pytest.mark.usefixtures("nothing_frozen")

ROOT = Path(__file__).parents[1]
MODEL = SAMPLES / "for_loop" / "model.xml"

_DEBUGGERS = """
import sys, pathlib, numpy, stepper
folder = pathlib.Path(sys.argv[1])
inputs = dict(numpy.load(folder / "inputs.npz"))
for _ in range(150):
    stepper.Debugger(folder / "model.xml", inputs).continue_()
print(len(list(pathlib.Path("/proc/self/fd").iterdir())))
"""


_A_COMMAND = """
import gc, sys
from stepper.cli import main
sys.argv = ["stepper", "run", sys.argv[1], "--inputs", sys.argv[2], "--quiet"]
code = main()
print(code, gc.get_freeze_count(), len(gc.get_objects()), file=sys.stderr)
"""


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts the descriptors of a process in /proc")
def test_the_files_of_debuggers_that_nobody_uses_are_closed() -> None:
    """Each has the .bin of its model mapped."""
    command = [sys.executable, "-c", _DEBUGGERS, MODEL.parent]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 50


def test_the_end_of_a_command_is_not_a_search_for_garbage() -> None:
    """What a program holds at its end goes with the process; to search it all took a fifth of a short run."""
    command = [sys.executable, "-c", _A_COMMAND, MODEL, MODEL.parent / "inputs.npz"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    code, spared, searched = map(int, done.stderr.split())
    assert code == 0
    assert spared > 20 * searched


def test_a_run_goes_with_its_debugger_and_waits_for_no_collector() -> None:
    debugger = sample("for_loop")
    debugger.break_at("balance_next")
    debugger.continue_()
    debugger.reverse_step()
    machine = weakref.ref(debugger.machine)
    gc.disable()
    try:
        del debugger
        assert machine() is None
    finally:
        gc.enable()


def test_garbage_beside_large_models_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large model goes to the oldest generation unsearched, and what stands beside it goes along."""
    monkeypatch.setattr(collector, "MANY", 1)
    monkeypatch.setattr(collector, "UNSEARCHED", 5_000)
    garbage = []
    for _ in range(60):
        garbage.append(weakref.ref(Cycle()))
        stepper.read_model(MODEL)
    assert sum(one() is not None for one in garbage) < 30


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    with collector.collector_off():
        assert not gc.isenabled()
        with collector.collector_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_nothing_stays_frozen_after_an_application(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = []

    def run(app: StepperApp) -> int:
        assert not gc.isenabled()
        stepper_tui.app._settle()
        frozen.append(gc.get_freeze_count())
        return 0

    monkeypatch.setattr(StepperApp, "run", run)
    found = sample("for_loop")
    assert open_application(lambda: found, found.model, {}, keeping=SessionOptions(keep=False)) == 0
    assert frozen[0] > 10_000 and gc.get_freeze_count() == 0 and gc.isenabled()


def test_nothing_of_a_run_stays_after_its_application() -> None:
    debugger = sample("for_loop")
    model = weakref.ref(debugger.model)

    async def script(driven: Driven) -> None:
        await driven.type("watch balance_next")
        for view in VIEWS:
            await driven.type(f"view {view}")
            await driven.filled()
            await driven.type("view sheet")

    drive(debugger, script, lines=("run-to balance_next@3",))
    del debugger
    gc.collect(), gc.collect()  # what a finaliser of the closed event loop held goes with the second search
    assert model() is None


def test_news_that_comes_after_the_last_screen_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    apps: list[StepperApp] = []

    async def script(driven: Driven) -> None:
        apps.append(driven.app)
        await driven.ran()

    drive("for_loop", script, runs=True)
    app, answers = apps[0], list[object]()
    monkeypatch.setattr(app.driver, "is_closed", False)  # it ends by itself: nobody has closed the driver yet
    known, overview = app.state, app.state.overview
    assert overview is not None and not app.screen_stack
    app.on_state_changed(StateChanged(known))
    app.on_overview_grew(OverviewGrew(overview))
    app.on_answered(Answered("cells", answers.append, 1))
    app.on_answered(Answered("cells", answers.append, 1, "there are none"))
    app.on_fault_found(FaultFound("a pane", "a fault"))
    assert app.state is known and not answers
