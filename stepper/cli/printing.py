"""Text for a terminal: how wide it is, and the line of progress.

That line is the place of a run, without an end that a bar could show; `rich` would take as long to load as numpy.
"""

from __future__ import annotations

import sys
import textwrap
import threading
from shutil import get_terminal_size
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from stepper.wording import printable

if TYPE_CHECKING:
    from stepper.engine.machine import Machine


def output_width(file: TextIO | None = None) -> int:
    """Return how many columns stdout (or another stream) has: those of the terminal, or 80."""
    return get_terminal_size().columns if (file or sys.stdout).isatty() else 80


def wrapped(text: str, file: TextIO | None = None) -> list[str]:
    """Return a line as the terminal has room for it, cut between words; as it is where there is no terminal."""
    width = output_width(file)
    if not (file or sys.stdout).isatty() or len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    lines = textwrap.wrap(text, max(width, 2 * len(indent)), subsequent_indent=indent, break_on_hyphens=False)
    return lines or [text]


_FIRST_AFTER, _EACH = 0.5, 0.2


class Progress:
    """Shows a machine's place several times a second while a block runs; nothing where stderr is not a terminal."""

    def __init__(self, machine: Machine, *, wanted: bool) -> None:
        self._machine = machine
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True) if wanted and sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        wait = _FIRST_AFTER
        shown = False
        while not self._done.wait(wait):
            # The stack is read while the run goes on: it may be a moment old, and a frame may just be leaving.
            from stepper.engine.frames import place  # few runs take so long

            machine = next(iter(self._machine.followers), self._machine)
            show_progress(place(list(machine.stack)) if machine.stack else "finishing")
            shown, wait = True, _EACH
        if shown:
            show_progress("")


def show_progress(text: str) -> None:
    """Replace the line on the terminal that says how far a command is; an empty text takes it away."""
    sys.stderr.write(f"\r\x1b[2K{printable(text)[: get_terminal_size().columns - 1]}")
    sys.stderr.flush()
