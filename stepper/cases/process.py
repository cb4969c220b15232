"""The capture of a whole process, which `stepper capture -- COMMAND` begins in each process of Python that it starts.

The settings come in the environment; what each process has counted goes into a file in the folder of the cases, from
where the command reads it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from multiprocessing.util import Finalize, register_after_fork
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

    `packages` are folders in which this program and what it needs are found. `run` tells this capture from others that
    write into the same folder.
    """

    when: tuple[str, ...]
    to: str
    most: int = MOST
    packages: tuple[str, ...] = ()
    calls: int = 1
    run: str = ""


class ProcessReport(Struct, frozen=True):
    """Calls of a process so far, those that a condition held for, what could not be kept, and the folders of cases.

    `is_whole` is False where the process has not said how it ended: then there may be more.
    """

    calls: int = 0
    hits: int = 0
    troubles: tuple[str, ...] = ()
    is_whole: bool = False
    cases: tuple[str, ...] = ()


def begin(settings: str) -> None:
    """Begin the capture of this process; it ends with it. `settings` are CaptureSettings as JSON."""
    found = msgspec.json.decode(settings, type=CaptureSettings)
    capture = _ProcessCapture(found.when, found.to, found.most, calls=found.calls)
    capture.run = found.run
    capture.report()  # first: what cannot be written there is known before anything is touched
    capture.__enter__()
    atexit.register(capture.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=capture.forked)
        register_after_fork(capture, _end_with_process)


class _ProcessCapture(Capture):
    """The capture of a process, which may end at any moment without a word: each case is reported."""

    run = ""

    def written(self, folder: Path) -> None:
        """Note a case that is written."""
        super().written(folder)
        self.report()

    def end(self) -> None:
        """End it, and report that it did."""
        with contextlib.suppress(StepperError):
            self.__exit__(None, None, None)
            self.report(is_whole=True)

    def report(self, *, is_whole: bool = False) -> None:
        """Write what was counted so far."""
        cases = tuple(one.name for one in self.cases)
        report = ProcessReport(self.calls, self.hits, tuple(self.troubles), is_whole, cases)
        target = self.folder / f"{_PREFIX}{self.run}-{os.getpid()}.json"
        OutputFile(target, FORMATS["json"].kind).write(msgspec.json.encode(report))


def _end_with_process(capture: _ProcessCapture) -> None:
    """Report at the end of a process that multiprocessing has forked, which does not end as others do."""
    Finalize(None, capture.end, exitpriority=0)


def taken_reports(folder: Path, run: str) -> list[ProcessReport]:
    """Return what the processes of a capture have reported, and remove their files."""
    reports = []
    for path in sorted(folder.glob(f"{_PREFIX}{run}-*.json")):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            reports.append(msgspec.json.decode(path.read_bytes(), type=ProcessReport))
        with contextlib.suppress(OSError):
            path.unlink()
    return reports
