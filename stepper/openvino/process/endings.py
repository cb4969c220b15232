"""How the process that runs OpenVINO may end while it is at something, as facts and as one sentence."""

from __future__ import annotations

import signal
from enum import StrEnum
from typing import Final

from msgspec import Struct

from stepper.errors import ExecutionError, LimitReached, ModelError, StepperError
from stepper.openvino.process.messages import CONVERTING


class How(StrEnum):
    """What ended it."""

    SIGNAL = "signal"
    EXIT = "exit"
    TIME = "time"
    MEMORY = "memory"
    GARBLED = "garbled"


class Ending(Struct, frozen=True):
    """An end while something was done: at which stage, what that was in words, and how.

    `code` is the number of the signal or the exit code, `limit` the seconds or the bytes of a limit that was met.
    """

    how: How
    stage: str
    subject: str
    code: int = 0
    limit: float = 0.0

    @property
    def is_limit(self) -> bool:
        """Whether a limit of ours was met, so that it is no fault of OpenVINO's alone."""
        return self.how in (How.TIME, How.MEMORY)

    def __str__(self) -> str:
        doing = f"{self.stage} {self.subject}"
        match self.how:
            case How.TIME:
                return f"OpenVINO did not end within {self.limit:.3g} s while {doing}"
            case How.MEMORY:
                limit = f" (limit {self.limit / 2**30:.3g} GB)" if self.limit else ""
                return f"OpenVINO ran out of memory{limit} while {doing}"
            case How.GARBLED:
                return f"OpenVINO's process answered with something unreadable while {doing}"
            case How.EXIT:
                return f"OpenVINO ended with exit code {self.code} while {doing}"
        return f"OpenVINO crashed ({signal_name(self.code)}) while {doing}"


_KILLED: Final = "SIGKILL, which the system sends where memory runs out"


def signal_name(number: int) -> str:
    """SIGSEGV for 11; for one without a name its number."""
    if number == 9:
        return _KILLED
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class RuntimeEnded(ExecutionError):
    """OpenVINO ended instead of answering; `ending` has the facts."""

    ending: Ending | None = None


class RuntimeLimit(LimitReached):
    """A limit of time or memory was met on OpenVINO's side; `ending` has the facts."""

    ending: Ending | None = None


class ConversionEnded(ModelError):
    """OpenVINO ended while it converted a model; `ending` has the facts."""

    ending: Ending | None = None


def error_of(ending: Ending) -> RuntimeEnded | RuntimeLimit | ConversionEnded:
    """The exception for an ending, by its exit code: a limit, a model that cannot be converted, or anything else."""
    kind = RuntimeLimit if ending.is_limit else ConversionEnded if ending.stage == CONVERTING else RuntimeEnded
    error = kind(str(ending))
    error.ending = ending
    return error


ENDED: Final[tuple[type[StepperError], ...]] = (RuntimeEnded, RuntimeLimit, ConversionEnded)
"""Those of our exceptions that say that OpenVINO ended."""
