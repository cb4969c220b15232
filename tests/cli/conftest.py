"""How the tests of the command line call it: in this process, or as a program of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stepper.cli import main
from tests.engine.subjects import sums

ROOT = Path(__file__).parents[2]


class Called(NamedTuple):
    """What a call gave back."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """`stepper` with these words, in this process; no traceback and, where it failed, nothing on stdout.

    A report of a run that came to its end is printed even where its outputs cannot be written.
    """

    def once(*words: object) -> Called:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:  # argparse ends the program by itself
            code = int(end.code or 0)
        captured = capsys.readouterr()
        answers = "--json" in words or "json" in words  # an error is an answer, too
        assert "Traceback" not in captured.err and (
            code in (0, 1) or answers or not captured.out or "cannot be written" in captured.err
        )
        return Called(code, captured.out, captured.err)

    return once


def program(*words: object, **options: Any) -> subprocess.Popen[bytes]:
    """`python -m stepper` with these words, its streams piped unless something else is said."""
    state = Path(tempfile.gettempdir(), f"stepper-tests-{os.getpid()}")  # removed at the end of the tests
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(state), **options.pop("env", {})}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-m", "stepper", *map(str, words)]
    return subprocess.Popen(command, env=environment, preexec_fn=_heeding_hangups, **streams)


def _heeding_hangups() -> None:
    """Also where the tests run under nohup, which must not end with their terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _no_state_stays() -> Iterator[None]:
    yield
    shutil.rmtree(Path(tempfile.gettempdir(), f"stepper-tests-{os.getpid()}"), ignore_errors=True)


def ended(process: subprocess.Popen[bytes]) -> Called:
    """Waits for the program; no traceback whatever happened."""
    with process:
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()  # or it is waited for without a limit
    called = Called(process.returncode, (out or b"").decode(), (err or b"").decode())
    assert "Traceback" not in called.err and "Exception ignored" not in called.err
    return called


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """One input x: f32[5], outputs final and scan, a Loop 'sums' of 5 iterations (see tests/engine/subjects.py)."""
    return sums().write(tmp_path)
