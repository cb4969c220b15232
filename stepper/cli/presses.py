"""Ctrl+C that is pressed twice in a row, or held: it means one interrupt, which is heeded in order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_TOGETHER: Final = 1.0
"""Seconds behind a press within which others mean the same."""


class _Presses:
    """When Ctrl+C was last heeded."""

    last = -_TOGETHER

    def is_another(self) -> bool:
        """Return False for a press that means the same as the one before it."""
        now = time.monotonic()
        if now - self.last < _TOGETHER:
            return False
        self.last = now
        return True


PRESSES: Final = _Presses()


@contextmanager
def pressed_once(*, until_the_end: bool) -> Iterator[None]:
    """Have Ctrl+C raise KeyboardInterrupt in a block, once for presses that follow each other at once.

    `until_the_end`: behind the block, too, while the program ends. Nothing changes where another one handles it.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
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
