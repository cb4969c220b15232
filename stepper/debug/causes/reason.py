"""Reason why a movement ended where it did."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason why a movement ended where it did."""

    MOVED = "moved"
    BREAK = "break"
    PAUSED = "paused"
    END = "end of the run"
    START = "start of the run"
    NOWHERE = "nothing to move to"
