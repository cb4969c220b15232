"""Signals while commands are carried out: in the main thread, and beside it where that is inside one long call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from stepper.cli import interruptions
from stepper.cli.interruptions import Interruptions
from stepper.cli.presses import Ended, ended_in_order, pressed_once
from stepper.debug.stop import Reason
from tests.debug.debugged import sample


def test_ctrl_c_pauses_a_command_however_often_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    debugger = sample("while_loop")
    with Interruptions(debugger, insistent=False) as interrupted, interrupted.while_busy():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.came and debugger.continue_().reason is Reason.PAUSED
    assert debugger.continue_().reason is Reason.END


def test_ctrl_c_that_the_thread_beside_hears_of_late_does_not_pause_the_next_command() -> None:
    debugger = sample("while_loop")
    with Interruptions(debugger, insistent=False) as interrupted:
        with interrupted.while_busy():
            interrupted._interrupt(signal.SIGINT, None)
            assert debugger.continue_().reason is Reason.PAUSED
        with interrupted.while_busy():
            interrupted._heard(signal.SIGINT)
            assert debugger.step(3).reason is Reason.MOVED
        with interrupted.while_busy():
            interrupted._heard(signal.SIGINT)  # another one, of which the main thread has not heard yet
            assert debugger.continue_().reason is Reason.PAUSED


def test_ctrl_c_at_the_prompt_and_a_second_one_in_a_script_are_for_the_caller() -> None:
    debugger = sample("while_loop")
    with Interruptions(debugger, insistent=True) as interrupted:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert not interrupted.forced
        with pytest.raises(KeyboardInterrupt), interrupted.while_busy():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.forced


def test_a_long_operation_is_named_as_what_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruptions, "_PATIENCE", 0.0)
    debugger = sample("while_loop")
    debugger.step(3)
    told = ""
    with Interruptions(debugger, insistent=False) as interrupted, interrupted.while_busy():
        os.kill(os.getpid(), signal.SIGINT)
        deadline = time.monotonic() + 20
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
            told = capsys.readouterr().err
    assert told == ("stepper: it stops as soon as the operation that runs in model > Loop 'until_one' #0 is done\n")


def test_sigterm_ends_after_the_command_that_it_paused() -> None:
    debugger = sample("while_loop")
    with Interruptions(debugger, insistent=False) as interrupted:
        with pytest.raises(Ended) as ended, interrupted.while_busy():
            os.kill(os.getpid(), signal.SIGTERM)
            stop = debugger.continue_()
        assert stop.reason is Reason.PAUSED and ended.value.code == 143 and str(ended.value) == "SIGTERM"


def test_a_signal_that_is_ignored_stays_so() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruptions(sample("while_loop"), insistent=False):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, previous)


def test_presses_in_a_row_are_one_interrupt_and_a_later_one_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("stepper.cli.presses.time.monotonic", lambda: now)
    with pressed_once(until_the_end=False):
        for now in (100.0, 102.0):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            now += 0.5
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_models" / "for_loop"
SIGNALLED_AT_AN_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs the tests may have it ignored
name, number = sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]
class Signal:
    def find_spec(self, found, path=None, target=None):
        if found == name:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Signal())
from stepper.cli import main
sys.exit(main())
"""


def signalled(folder: Path, module: str, number: int, *words: str) -> tuple[int, str]:
    """Exit code and stderr of a run that gets a signal when it imports a module."""
    command = [sys.executable, "-c", SIGNALLED_AT_AN_IMPORT, module, str(int(number)), "run", str(SAMPLE / "model.xml")]
    command += ["--inputs", str(SAMPLE / "inputs.npz"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return found.returncode, found.stderr


@pytest.mark.parametrize("module", ["stepper.cli.cli_program", "stepper.cli.commands.run", "numpy"])
def test_ctrl_c_while_the_program_is_loaded_ends_it_without_a_word(tmp_path: Path, module: str) -> None:
    assert signalled(tmp_path, module, signal.SIGINT) == (-signal.SIGINT, "")


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_a_signal_while_a_command_works_is_one_line_and_leaves_nothing(
    tmp_path: Path, number: int, code: int, message: str
) -> None:
    words = ("--trace", "run.sqlite", "-q")
    assert signalled(tmp_path, "sqlite3", number, *words) == (code, f"stepper: {message}\n")
    assert not list(tmp_path.iterdir())


def test_a_signal_that_ends_a_command_has_temporary_folders_removed() -> None:
    with pytest.raises(Ended), ended_in_order(), tempfile.TemporaryDirectory() as folder:
        signal.raise_signal(signal.SIGTERM)
    assert not Path(folder).exists() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
