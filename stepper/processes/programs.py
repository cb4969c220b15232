"""The programs that run in worker processes, by name: nothing of what they do is imported for it."""

from __future__ import annotations

from typing import NamedTuple


class WorkerProgram(NamedTuple):
    """A program that runs in worker processes: its name in messages, and the module whose `main()` serves.

    `environment` are variables with which it always runs.
    """

    name: str
    module: str
    environment: tuple[tuple[str, str], ...] = ()
