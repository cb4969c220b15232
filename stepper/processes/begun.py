"""Acts that a worker performs beside others: each is begun, and its answer kept until it is collected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from stepper.element_types import Array
from stepper.processes.messages import Rejected, Reply, WorkRequest

_AT_ONCE: Final = 2
"""Acts: what is begun while others wait keeps two cores busy, and of what each needs not much is held at once."""

Answer = tuple[Reply, Sequence[Any]]


class BegunAct:
    """One of them. The stages that it announces are passed on when somebody waits for it."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.answer: Future[Answer]
        self._stage = ""
        self._pass_on: Callable[[str], None] | None = None
        self._lock = threading.Lock()

    def announce(self, stage: str) -> None:
        """Take note that a stage begins."""
        with self._lock:
            self._stage = stage
            if self._pass_on is not None:
                self._pass_on(stage)

    def awaited(self, pass_on: Callable[[str], None]) -> Answer:
        """Return its answer; hand on the stage that it is at, and those that follow."""
        with self._lock:
            self._pass_on = pass_on
            if self._stage:
                pass_on(self._stage)
        return self.answer.result()


class BegunActs:
    """All that were begun and neither collected nor dropped, by their tickets."""

    def __init__(self, perform: Callable[[WorkRequest[Any], list[Array]], Answer]) -> None:
        self._perform = perform
        self._pool: ThreadPoolExecutor | None = None
        self._acts: dict[int, BegunAct] = {}
        self._of_thread = threading.local()

    @property
    def current(self) -> BegunAct | None:
        """The one that this thread performs; None where it performs none."""
        return getattr(self._of_thread, "act", None)

    def begin(self, request: WorkRequest[Any], arrays: list[Array]) -> None:
        """Have a request performed in a thread of its own, as soon as one is free."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AT_ONCE)
        act = self._acts[request.ticket] = BegunAct(request.subject)

        def performed() -> Answer:
            self._of_thread.act = act
            return self._perform(request, arrays)

        act.answer = self._pool.submit(performed)

    def collected(self, ticket: int, pass_on: Callable[[str], None]) -> Answer:
        """Return the answer, when it is there; stages are passed on until then."""
        act = self._acts.pop(ticket, None)
        if act is None:
            return Rejected("", "nothing was begun with this ticket"), ()
        return act.awaited(pass_on)

    def drop(self, ticket: int) -> None:
        """Forget one that nobody waits for any more; what has not begun yet never will."""
        if (act := self._acts.pop(ticket, None)) is not None:
            act.answer.cancel()
