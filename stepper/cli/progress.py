"""A line on the terminal that says where a long run is; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import threading
from shutil import get_terminal_size
from types import TracebackType

from stepper.engine.frames import place
from stepper.engine.machine import Machine

_FIRST_AFTER, _EACH = 0.5, 0.2


class Progress:
    """While the block runs, shows the machine's place several times a second."""

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
            text = place(list(self._machine.stack)) if self._machine.stack else "finishing"
            shown_text = "".join(letter if letter.isprintable() else "?" for letter in text)
            sys.stderr.write(f"\r\x1b[2K{shown_text[: get_terminal_size().columns - 1]}")
            sys.stderr.flush()
            shown, wait = True, _EACH
        if shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
