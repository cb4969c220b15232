"""A worker process that has loaded when a file is there, or ends while it loads."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from stepper.processes.server import Announce, serve
from tests.processes import served_at_once

TOLD: Final = "STEPPER_TEST_TOLD"
"""The path of the file; empty: it ends instead."""


class Played(served_at_once.Played):
    """Waits before it serves."""

    def __init__(self, announce: Announce) -> None:
        super().__init__(announce)
        if not (told := os.environ[TOLD]):
            os._exit(7)
        deadline = time.monotonic() + 30
        while not Path(told).exists():
            if time.monotonic() > deadline:
                os._exit(8)
            time.sleep(0.01)


def main() -> None:
    """Answer requests until there are no more."""
    serve(Played)
