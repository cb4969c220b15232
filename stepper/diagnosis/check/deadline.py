"""How long further runs may take, in seconds of the processor: a busy machine finds what an idle one does."""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import Final

_MOST_TIMES: Final = 4.0
"""Times as long that it may take where something else is waited for."""


class Deadline:
    """So many seconds of work from now on."""

    def __init__(self, seconds: float) -> None:
        self._work, self._wall = thread_time() + seconds, perf_counter() + _MOST_TIMES * seconds

    @property
    def left(self) -> float:
        """Return how many seconds are left; 0 or less where there are none."""
        return min(self._work - thread_time(), (self._wall - perf_counter()) / _MOST_TIMES)

    @property
    def is_over(self) -> bool:
        """True if no time is left."""
        return self.left <= 0
