"""Ends of a worker process while it was at something, as facts, as one sentence, and as exceptions."""

from __future__ import annotations

import signal
from enum import StrEnum
from typing import Final

from msgspec import Struct

from stepper.errors import ExecutionError, LimitReached, ModelError, StepperError
from stepper.processes.messages import CONVERTING, LOADING
from stepper.wording import excerpt

_LONGEST: Final = 300
"""Characters of what a process has printed."""


class EndKind(StrEnum):
    """Cause of an end."""

    SIGNAL = "signal"
    EXIT = "exit"
    TIME = "time"
    MEMORY = "memory"
    GARBLED = "garbled"


class ProcessEnd(Struct, frozen=True):
    """End of the process of a program (`OpenVINO`), at a stage of working on a subject (`the model m.xml`).

    `code` is the number of the signal or the exit code, `limit` the seconds or the bytes of a limit that was reached.
    `printed` is what the process said of its end, in one line; empty where it said nothing.
    """

    kind: EndKind
    program: str
    stage: str
    subject: str
    code: int = 0
    limit: float = 0.0
    printed: str = ""

    @property
    def is_limit(self) -> bool:
        """True if a limit of ours was reached."""
        return self.kind in (EndKind.TIME, EndKind.MEMORY)

    def __str__(self) -> str:
        doing = f"{self.stage} {self.subject}"
        printed = f" (it printed: {self.printed})" if self.printed else ""
        match self.kind:
            case EndKind.TIME:
                return f"{self.program} did not finish within {self.limit:.3g} s while {doing}"
            case EndKind.MEMORY:
                limit = f" (limit {self.limit / 2**30:.3g} GB)" if self.limit else ""
                return f"{self.program} ran out of memory{limit} while {doing}"
            case EndKind.GARBLED:
                return f"{self.program} sent an unreadable answer while {doing}"
            case EndKind.EXIT:
                return f"{self.program} ended with exit code {self.code} while {doing}{printed}"
        return f"{self.program} crashed ({signal_name(self.code)}) while {doing}{printed}"


_WHAT: Final = "what():"
"""Before the words of an exception that nobody has caught, where a program in C++ aborts."""


def printed_of_end(kind: EndKind, printed: str) -> str:
    """Return what a process has said of its end, of all that it printed: a crash says nothing, but for an exception.

    One that exits says why in its last line, as Python does.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if kind is EndKind.SIGNAL:
        lines = [line.removeprefix(_WHAT).strip() for line in lines if line.startswith(_WHAT)]
    is_said = kind in (EndKind.SIGNAL, EndKind.EXIT) and lines
    return excerpt(lines[-1], _LONGEST) if is_said else ""


_KILLED: Final = "SIGKILL, which the system sends where memory runs out"


def signal_name(number: int) -> str:
    """Return SIGSEGV for 11; `signal N` for a signal without a name."""
    if number == 9:
        return _KILLED
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class WorkerEnded(ExecutionError):
    """A program ended instead of answering; `end` has the facts."""

    end: ProcessEnd | None = None


class WorkerLimit(LimitReached):
    """A program reached a limit of time or memory; `end` has the facts."""

    end: ProcessEnd | None = None


class ConversionEnded(ModelError):
    """A program ended while it converted a model; `end` has the facts."""

    end: ProcessEnd | None = None


def error_of(end: ProcessEnd) -> WorkerEnded | WorkerLimit | ConversionEnded:
    """Return the exception for an end, by its exit code: a limit, a model that cannot be converted, anything else."""
    kind = WorkerLimit if end.is_limit else ConversionEnded if end.stage == CONVERTING else WorkerEnded
    error = kind(str(end))
    error.end = end
    return error


def ended_at_its_start(error: StepperError) -> bool:
    """Return True where a program has ended before it could be asked anything, so that nothing of it is to be had."""
    end = getattr(error, "end", None)
    return isinstance(end, ProcessEnd) and end.stage == LOADING


ENDED: Final[tuple[type[StepperError], ...]] = (WorkerEnded, WorkerLimit, ConversionEnded)
"""The exceptions that say that a program ended."""
