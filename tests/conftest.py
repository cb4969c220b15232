"""The tests behave alike however they were started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Ctrl+C is heeded, here and in every program that a test starts, also where the shell had us ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
