"""The terminal as the application leaves it."""

from __future__ import annotations

import os
import pty
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from stepper_tui.app import clearing
from stepper_tui.theme import Look
from textual.driver import Driver

from tests.debug.debugged import SAMPLES
from tests.terminals import is_readable
from tests.tui.driven import Driven, drive


class _Terminal(Driver):
    """A driver that keeps what is written."""

    written: list[str]

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.written = []
        self._file = sys.stderr

    def write(self, data: str) -> None:
        self.written.append(data)

    def start_application_mode(self) -> None:
        """Nothing."""

    def disable_input(self) -> None:
        """Nothing."""

    def stop_application_mode(self) -> None:
        self.written.append("normal screen")


def test_what_is_painted_is_cleared_before_the_normal_screen_comes_back() -> None:
    driver: Any = clearing(_Terminal)(None)
    driver.stop_application_mode()
    assert driver.written == ["\x1b[H\x1b[2J", "normal screen"]


def test_ctrl_z_gives_the_terminal_back_also_while_one_types() -> None:
    async def script(driven: Driven) -> None:
        stopped: list[str] = []
        driven.app.action_suspend_process = lambda: stopped.append(driven.app.front.prompt.value)  # type: ignore[method-assign]
        await driven.press("ctrl+z")
        await driven.press("colon", "n")
        await driven.press("ctrl+z")
        assert stopped == ["", "n"]

    drive("nested_loop", script)


def test_an_application_whose_terminal_is_closed_ends(tmp_path: Path) -> None:
    sample = SAMPLES / "nested_loop"
    arguments = ["-m", "stepper", str(sample / "model.xml"), "--inputs", str(sample / "inputs.npz")]
    child, terminal = pty.fork()
    if child == 0:
        environment = os.environ | {"TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path)}
        os.execve(sys.executable, [sys.executable, *arguments], environment)
    written, begin, code = b"", time.monotonic(), None
    while b"ended at" not in written and time.monotonic() < begin + 60:
        written += os.read(terminal, 1 << 16) if is_readable(terminal, 0.5) else b""
    os.close(terminal)
    while code is None and time.monotonic() < begin + 90:
        pid, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if pid else None
        time.sleep(0.05)
    if code is None:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert b"ended at" in written and code == 129


@pytest.mark.parametrize(
    ("environment", "is_plain"),
    [
        ({"TERM": "linux"}, True),
        ({"TERM": "xterm"}, True),
        ({"TERM": "screen"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True),
    ],
    ids=str,
)
def test_with_sixteen_colours_shades_carry_a_figure_as_without_any(
    environment: dict[str, str], is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Look.of_environment().plain is is_plain
