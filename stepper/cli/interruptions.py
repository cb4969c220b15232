"""Ctrl+C, and the signals that end a program, while commands are carried out on a debugger.

Ctrl+C pauses the command that runs; at the prompt it clears the line. SIGTERM and SIGHUP pause it, too, and then end
the program in order. Python runs handlers between two of its own operations only: while the engine is inside one long
call of numpy, a thread hears of signals, asks for the pause and says what it waits for. No library does that: asyncio's
handlers, too, wait for the main thread.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from stepper.cli.presses import ENDING, Ended
from stepper.debug.debugger import Debugger
from stepper.engine.frames import place
from stepper.terminal import say

_PATIENCE = 0.7
"""Seconds in which a pause takes effect as a rule; after that a message says what it waits for."""
_SOON, _TRIES = 0.1, 10
_GRACE = 8.0
"""Seconds after which a program that is to end does so in the midst of an operation."""


class Interruptions:
    """Handles signals in a block, as the commands on a debugger need it.

    `insistent`: a second Ctrl+C in one command raises KeyboardInterrupt, as in a script, which nobody watches.
    """

    def __init__(self, debugger: Debugger, *, insistent: bool) -> None:
        self.came = self.forced = False
        self.ended_by: int | None = None
        self._debugger = debugger
        self._insistent = insistent
        self._busy = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._told_to_end = threading.Event()
        self._handled = self._heard_of = 0  # how often Ctrl+C came, by the main thread and by that of the listener
        self._is_ending = False
        self._previous: dict[int, Any] = {}
        self._listener: _Listener | None = None

    def __enter__(self) -> Interruptions:
        with contextlib.suppress(ValueError):  # only the main thread may do so
            for number in (signal.SIGINT, *ENDING):
                previous = signal.getsignal(number)
                if previous is not signal.SIG_IGN:  # nohup, or a command in the background
                    handler = self._interrupt if number is signal.SIGINT else self._end
                    self._previous[number] = signal.signal(number, handler)
            self._listener = _Listener(self._heard)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._listener is not None:
            self._listener.close()
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    @property
    def is_busy(self) -> bool:
        """True while a command runs."""
        return self._busy.is_set()

    # --- in the main thread, between two operations of Python -----------------------------------------------------

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._handled += 1
        is_busy = self._busy.is_set()
        if not is_busy or (self.came and self._insistent):
            self.forced = is_busy  # in the middle of something, so there is no moment to keep
            raise KeyboardInterrupt
        self.came = True
        self._debugger.pause()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._told_to_end.set()
        is_second = self.ended_by is not None
        self.ended_by = number
        self._debugger.pause()
        if self._busy.is_set() and not is_second:
            return  # it ends when the command has paused
        if not self._is_ending:
            self.forced = self._busy.is_set()
            self._is_ending = True
            raise Ended(number)

    @contextlib.contextmanager
    def while_busy(self) -> Iterator[None]:
        """Run a command in a block. Raises Ended after it where the program is to end."""
        with self._debugger.working():  # a pause that comes too late must not pause the next command
            self.came = False
            self._idle.clear()
            self._busy.set()
            try:
                yield
            finally:
                self._busy.clear()
                self._idle.set()
        self.check()

    def check(self) -> None:
        """Raise Ended where a signal has come that ends the program."""
        if self.ended_by is not None and not self._is_ending:
            self._is_ending = True
            raise Ended(self.ended_by)

    # --- in a thread of its own, whatever the main one does -------------------------------------------------------

    def _heard(self, number: int, count: int = 1) -> None:
        if number not in self._previous:
            return
        if number == signal.SIGINT and self._is_for_the_command_before(count):
            return
        if not self._busy.is_set():
            if number != signal.SIGINT:
                self._wake(number)
            return
        self._debugger.pause()
        if self._idle.wait(_PATIENCE):
            return
        stack = list(self._debugger.machine.stack)
        where = f" in {place(stack)}" if stack else ""
        say(f"stepper: it stops as soon as the operation that runs{where} is done", file=sys.stderr)
        sys.stderr.flush()
        if number != signal.SIGINT and not self._idle.wait(_GRACE):
            name = signal.Signals(number).name
            say(f"stepper: ended by {name} in the midst of it; the session is kept as it was before", file=sys.stderr)
            sys.stderr.flush()
            os._exit(128 + number)

    def _is_for_the_command_before(self, count: int) -> bool:
        """True if this thread comes so late that the main one has handled Ctrl+C and begun another command."""
        handled = self._handled
        heard_of = self._heard_of + count
        self._heard_of = min(heard_of, handled + 1)  # several may be handled as one
        return heard_of <= handled and not self.came

    def _wake(self, number: int) -> None:
        """Send the signal once more where it came just before the main thread began to wait for a line."""
        for _ in range(_TRIES):
            if self._told_to_end.wait(_SOON) or self._busy.is_set():
                return
            signal.pthread_kill(threading.main_thread().ident or 0, number)


class _Listener:
    """Calls a function in a thread for each signal that comes to the program."""

    def __init__(self, heard: Any) -> None:
        self._heard = heard
        self._theirs, self._ours = os.pipe()
        if os.name == "posix":
            os.set_blocking(self._ours, False)
        self._previous = signal.set_wakeup_fd(self._ours, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with os.fdopen(self._theirs, "rb", buffering=0) as theirs:
            while numbers := theirs.read(64):
                for number in dict.fromkeys(numbers):
                    self._heard(number, numbers.count(number))

    def close(self) -> None:
        """Listen no longer."""
        signal.set_wakeup_fd(self._previous)
        os.close(self._ours)
        self._thread.join(_PATIENCE)
