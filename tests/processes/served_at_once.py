"""A worker process whose functions meet, wait, fail or give their inputs back, as their first number says."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.processes.process_messages import COMPILING, RUNNING, CallFunction, Definition
from stepper.processes.server import Announce, serve
from tests.processes.played_worker import Act, Fail, end_as

ECHO: Final = 0
MEET: Final = 1
"""Wait for another that does the same."""
CRASH: Final = 2
HANG: Final = 3
REFUSE: Final = 4
NO_MEMORY: Final = 5


class Played:
    """Performs calls, several at once where they are begun."""

    acts = Act

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._meeting = threading.Barrier(2)
        self._forgotten: list[int] = []

    def define(self, _definition: Definition, _arrays: list[Array]) -> None:
        """All functions are the same."""

    def forget(self, key: int) -> None:
        """Take note of it."""
        self._forgotten.append(key)

    def perform(self, act: Act, arrays: list[Array]) -> tuple[Any, Sequence[Any]]:
        """Do what the first number of a call says; tell what was forgotten."""
        if isinstance(act, Fail):
            return None, [np.array(self._forgotten, np.int64)]
        if isinstance(act, CallFunction):
            self._announce(COMPILING)
            wanted = int(arrays[0][0])
            if wanted == REFUSE:
                raise RuntimeError("it is too large")
            if wanted == NO_MEMORY:
                raise MemoryError
            end_as({CRASH: "SIGSEGV", HANG: "hang"}.get(wanted, ""))
            self._announce(RUNNING)
            if wanted == MEET:
                self._meeting.wait(30)
        return None, arrays


def main() -> None:
    """Answer requests until there are no more."""
    serve(Played)
