"""Acts that a worker performs beside others, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from stepper.element_types import Array
from stepper.processes.messages import WorkRequest

_AT_ONCE: Final = 2
"""Acts: what is begun while others wait keeps two cores busy, and of what each needs not much is held at once."""


class BegunActs:
    """Those that were begun; `perform` performs one, and answers."""

    def __init__(self, perform: Callable[[WorkRequest[Any], list[Array]], None]) -> None:
        self._perform = perform
        self._pool: ThreadPoolExecutor | None = None
        self._acts: dict[int, Future[None]] = {}
        self._given_up: set[int] = set()
        self._lock = threading.Lock()
        self._of_thread = threading.local()

    @property
    def current(self) -> WorkRequest[Any] | None:
        """The one that this thread performs; None where it performs none."""
        return getattr(self._of_thread, "request", None)

    @property
    def works_in_vain(self) -> bool:
        """True while something is performed that nobody waits for any more."""
        return bool(self._given_up)

    def begin(self, request: WorkRequest[Any], arrays: list[Array]) -> None:
        """Have a request performed as soon as a thread is free."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AT_ONCE)

        def performed() -> None:
            self._of_thread.request = request
            try:
                self._perform(request, arrays)
            finally:
                with self._lock:
                    self._acts.pop(request.ticket, None)
                    self._given_up.discard(request.ticket)

        with self._lock:
            self._acts[request.ticket] = self._pool.submit(performed)

    def drop(self, ticket: int) -> None:
        """Forget one that nobody waits for any more: what has not begun yet never will."""
        with self._lock:
            if (act := self._acts.get(ticket)) is None:
                return
            if act.cancel():
                del self._acts[ticket]
            else:
                self._given_up.add(ticket)
