"""Limits of time for runs: one thread of a process pauses each machine that takes too long.

An operation that does not come to its end cannot be paused. A process that does nothing but sweep then ends itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from stepper.engine.machine import Machine
from stepper.errors import LimitReached

OVERDUE: Final = 76
"""The exit code of a process that an operation kept for longer than the limit of time allows."""
_LOOKS_EACH: Final = 0.1
_GRACE: Final = 10.0


class LimitedRun(Struct):
    """A machine that runs, until when it may, and if it was stopped for that."""

    machine: Machine
    deadline: float
    is_overdue: bool = False


_watched: dict[int, LimitedRun] = {}
"""The machines that run now, by thread."""
_watching = threading.Lock()
_may_exit = False
_thread: list[threading.Thread] = []


@contextmanager
def limited(machine: Machine, seconds: float) -> Iterator[LimitedRun]:
    """Pause a machine that is still at work after so many seconds; one thread looks after all of a process."""
    watched = LimitedRun(machine, time.monotonic() + seconds)
    key = threading.get_ident()
    if not _thread:
        _begin_watching()
    _watched[key] = watched
    try:
        yield watched
    finally:
        del _watched[key]


def _begin_watching() -> None:
    with _watching:
        if not _thread:
            thread = threading.Thread(target=_watch, name="limits of a sweep", daemon=True)
            _thread.append(thread)
            thread.start()


def _watch() -> None:
    while True:
        time.sleep(_LOOKS_EACH)
        now = time.monotonic()
        for watched in list(_watched.values()):
            if now > watched.deadline:
                watched.is_overdue = True
                watched.machine.request_pause()
            if _may_exit and now > watched.deadline + _GRACE:
                os._exit(OVERDUE)  # an operation does not come to its end: the one who started this notes that


def let_end() -> None:
    """Have this process end where an operation in it does not."""
    global _may_exit
    _may_exit = True


def overdue(seconds: float) -> LimitReached:
    """Return the error of a run that took too long."""
    return LimitReached(f"the run did not end within {seconds:g} s, the limit for each input")
