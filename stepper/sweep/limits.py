"""Limits of time for runs: one thread of a process pauses each machine that takes too long.

An operation that does not come to its end cannot be paused. A process that does nothing but sweep then ends itself.
What is not ours is called in another thread, which is left to itself where it does not return.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

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


# --- functions that are not ours ------------------------------------------------------------------------------------


class NotReturned(Exception):
    """A function did not return within its time."""


class _FunctionEnd(NamedTuple):
    """End of a function: what it returned, or raised."""

    returned: Any = None
    raised: BaseException | None = None


class Helper:
    """A thread that calls functions for another one, one at a time, which waits no longer than it wants to."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[_FunctionEnd] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="functions of a sweep", daemon=True)
        self._thread.start()
        self.is_left = False

    def returned(self, seconds: float | None, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, and raise what it raises. NotReturned where it takes too long."""
        self._asked.put((function, arguments))
        try:
            found = self._ended.get(timeout=seconds)
        except queue.Empty:
            self._leave()
            raise NotReturned from None
        if found.raised is not None:
            raise found.raised
        return found.returned

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            function, arguments = asked
            try:
                self._ended.put(_FunctionEnd(function(*arguments)))
            except (Exception, SystemExit) as error:
                self._ended.put(_FunctionEnd(raised=error))
            except BaseException as error:  # no Ctrl+C of anybody's: that comes to the main thread
                self._ended.put(_FunctionEnd(raised=RuntimeError(f"it raised {type(error).__name__}")))

    def _leave(self) -> None:
        """End the thread as soon as it is in Python again, be it in an endless loop."""
        self.is_left = True
        self._asked.put(None)
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(SystemExit))


def helper_of_this_thread() -> Helper:
    """Return the helper of the calling thread: the same one as long as its functions return."""
    found: Helper | None = getattr(_helpers, "helper", None)
    if found is None or found.is_left:
        found = _helpers.helper = Helper()
    return found


_helpers = threading.local()
