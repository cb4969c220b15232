"""Rows of a sweep: what came of each input, as plain data."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class SweepOutcome(StrEnum):
    """Result of an input."""

    NOTHING = "nothing"
    STOPPED = "stopped"
    FINDING = "finding"
    DIFFERS = "differs"
    ERROR = "error"
    LIMIT = "limit"
    UNREADABLE = "unreadable"
    KILLED = "killed"


OUTCOMES: Final = {
    SweepOutcome.NOTHING: "nothing was found",
    SweepOutcome.STOPPED: "a breakpoint stopped the run",
    SweepOutcome.FINDING: "check found something",
    SweepOutcome.DIFFERS: "it differs from the reference",
    SweepOutcome.ERROR: "the run failed",
    SweepOutcome.LIMIT: "a limit of iterations, time or memory ended the run",
    SweepOutcome.UNREADABLE: "the input cannot be read, or does not fit the model",
    SweepOutcome.KILLED: "the process that ran it was killed",
}
"""The outcomes, and what each says."""


class LoopCount(Struct, frozen=True, array_like=True):
    """A loop in a run: how often it was entered, its iterations in all, and what ended it, each reason once."""

    path: str
    entered: int
    iterations: int
    ended: tuple[str, ...]


class SweepRow(Struct, frozen=True):
    """Result of an input, which has a `name`.

    `what` is the kind of what was found: nan, the name of a rule, values, the kind of an error. `operation` and `type`
    name the layer (or the loop) that it shows in, `path` the loops around that, the outermost first, and `iterations`
    those of them in which it shows. `address` is what to look at in the debugger, `text` one sentence. `loops` are
    those of a run that came to its end.
    """

    name: str
    outcome: SweepOutcome
    what: str = ""
    operation: str = ""
    type: str = ""
    path: tuple[str, ...] = ()
    iterations: tuple[int, ...] = ()
    address: str = ""
    text: str = ""
    loops: tuple[LoopCount, ...] = ()

    @property
    def iteration(self) -> int | None:
        """Return the iteration of the innermost loop; None where it shows in none."""
        return self.iterations[-1] if self.iterations else None
