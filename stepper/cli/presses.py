"""Signals that end a command: Ctrl+C, where several presses in a row mean one interrupt, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_TOGETHER = 1.0
"""Seconds behind a press within which others mean the same."""


ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(BaseException):
    """A signal ends the program; `code` is its exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number, self.code = number, 128 + number


class _Presses:
    """When Ctrl+C was last heeded."""

    last = -_TOGETHER

    @property
    def came(self) -> bool:
        """True if Ctrl+C was heeded."""
        return self.last >= 0

    def is_another(self) -> bool:
        """Return False for a press that means the same as the one before it."""
        now = time.monotonic()
        if now - self.last < _TOGETHER:
            return False
        self.last = now
        return True


PRESSES = _Presses()


def end_at_once() -> None:
    """Let Ctrl+C kill this process without a message, while the program loads."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt_again() -> None:
    """Let Ctrl+C raise KeyboardInterrupt, which is Python's default."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise Ended in a block, so that temporary folders are removed. Other handlers stay."""
    ours = [number for number in ENDING if _is_main() and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) in (_end, signal.SIG_IGN):
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # the end is on its way
    raise Ended(number)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def pressed_once(*, until_the_end: bool) -> Iterator[None]:
    """Have Ctrl+C raise KeyboardInterrupt in a block, once for presses that follow each other at once.

    `until_the_end`: behind the block, too, while the program ends. Nothing changes where another one handles it.
    """
    if not _is_main() or signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, signal.SIG_DFL):
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        if not until_the_end and signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    if PRESSES.is_another():
        raise KeyboardInterrupt
