"""Whose turn it is: one thread at a time works with a debugger, and a pause is for what is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from stepper.errors import UsageError

_ELSEWHERE: Final = (
    "the debugger is at work in the thread '{}'; only pause() may be called meanwhile: wait until it is done there, or "
    "give each thread a debugger of its own"
)


class ThreadGuard:
    """The turns that threads take at one debugger. `pause` asks the run under way to pause, or takes that back."""

    def __init__(self, pause: Callable[[bool], None]) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Work with the debugger in this block; blocks may be inside of one another.

        A pause that was asked for before the outermost one is forgotten, and so is what none of it has heeded.
        UsageError where another thread is at work.
        """
        me = threading.current_thread()
        if self._worker is me:
            yield
            return
        if not self._lock.acquire(blocking=False):
            worker = self._worker
            raise UsageError(_ELSEWHERE.format("another" if worker is None else worker.name))
        self._worker = me
        self._pause(False)
        try:
            with np.errstate(all="ignore"):  # values of a run are looked at as they are, NaN and Inf among them
                yield
        finally:
            self._pause(False)
            self._worker = None
            self._lock.release()
