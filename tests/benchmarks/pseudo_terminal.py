"""A process of its own in a pseudo-terminal: what it writes there, and when a wanted text came."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.timing import Share, own_time, share
from tests.terminals import is_readable

SIZE: Final = (160, 48)
PATIENCE: Final = 20.0
"""Seconds after which nothing comes any more."""


@dataclass
class Shown:
    """What a process wrote to its terminal: when the wanted text came, all until its end, and its exit code.

    `own` are the seconds until the text without those in which other processes had the processor.
    """

    seconds: float
    own: float
    output: bytes
    code: int


def shown(
    arguments: Sequence[str],
    wanted: bytes,
    end: bytes | signal.Signals,
    size: tuple[int, int] = SIZE,
    compiled: str = "",
) -> Shown:
    """Start Python with these arguments in a terminal, wait for a text, and end it by keys or a signal.

    `compiled`: a folder for compiled modules, which an installed program has.
    """
    begin = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        # A home of its own: what is kept of the session goes nowhere.
        kept = tempfile.mkdtemp()
        environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "XDG_STATE_HOME": kept}
        if compiled:
            environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        os.execve(sys.executable, [sys.executable, *arguments], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    output, seconds, own = b"", 0.0, 0.0
    try:
        while time.perf_counter() - begin < PATIENCE:
            chunk = _read(terminal)
            if chunk == b"":
                break
            output += chunk or b""
            if not seconds and wanted in output:
                seconds = time.perf_counter() - begin
                own = own_time(seconds, Share(0, 0), share(child))
                if isinstance(end, signal.Signals):
                    os.kill(child, end)
                else:
                    os.write(terminal, end)
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(terminal)
    assert seconds, f"{wanted!r} never came: {output[-2000:]!r}"
    return Shown(seconds, own, output, code)


def _read(terminal: int) -> bytes | None:
    """What there is to read; None for nothing yet, empty at the end."""
    if not is_readable(terminal, 0.5):
        return None
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""
