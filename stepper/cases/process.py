"""The capture of a whole process, which `stepper capture -- COMMAND` begins in each process of Python that it starts.

The settings come in the environment; what each process has counted goes into a file in the folder of the cases, from
where the command reads it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from stepper.cases.capture import MOST, Capture
from stepper.errors import StepperError
from stepper.files.kinds import FORMATS
from stepper.files.output import OutputFile

VARIABLE: Final = "STEPPER_CAPTURE"
STARTUP: Final = Path(__file__).parent / "startup"
"""Folder on PYTHONPATH whose sitecustomize begins the capture."""
_PREFIX: Final = ".process-"


class CaptureSettings(Struct, frozen=True):
    """Settings of a capture: what is kept, and where.

    `packages` are folders in which this program and what it needs are found.
    """

    when: tuple[str, ...]
    to: str
    most: int = MOST
    packages: tuple[str, ...] = ()
    calls: int = 1


class ProcessReport(Struct, frozen=True):
    """Calls of a process so far, those that a condition held for, and what could not be kept."""

    calls: int = 0
    hits: int = 0
    troubles: tuple[str, ...] = ()


def begin(settings: str) -> None:
    """Begin the capture of this process; it ends with it. `settings` are CaptureSettings as JSON."""
    found = msgspec.json.decode(settings, type=CaptureSettings)
    capture = Capture(found.when, found.to, found.most, calls=found.calls)
    _report(capture)  # first: what cannot be written there is known before anything is touched
    capture.__enter__()

    def end() -> None:
        with contextlib.suppress(StepperError):
            capture.__exit__(None, None, None)
            _report(capture)

    atexit.register(end)


def _report(capture: Capture) -> None:
    report = ProcessReport(capture.calls, capture.hits, tuple(capture.troubles))
    target = capture.folder / f"{_PREFIX}{os.getpid()}.json"
    OutputFile(target, FORMATS["json"].kind).write(msgspec.json.encode(report))


def taken_reports(folder: Path) -> list[ProcessReport]:
    """Return what the processes have reported, and remove their files."""
    reports = []
    for path in sorted(folder.glob(f"{_PREFIX}*.json")):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            reports.append(msgspec.json.decode(path.read_bytes(), type=ProcessReport))
        with contextlib.suppress(OSError):
            path.unlink()
    return reports
