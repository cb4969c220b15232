"""Passes of OpenVINO over a model: its own serialisation of the model after each transformation.

The runtime writes a whole model after every pass, some hundreds of them, into the folder where it runs. So it has a
process for this alone, in a temporary folder, and is stopped (not ended) while more is there than the limit; whoever
takes the passes deletes them by taking the next.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stepper.errors import ExecutionError, StepperError
from stepper.openvino.acts import CompileFile, RuntimeFacts
from stepper.openvino.program import PROGRAM
from stepper.openvino.runtime import complaint
from stepper.processes.endings import ENDED
from stepper.processes.worker import LONGEST, Limits, Worker
from stepper.wording import excerpt

_MOST_BYTES: Final = 2**31
_EACH: Final = 0.02
_FILE: Final = re.compile(r"(.*?)_(\d{3,})_(.*)\.xml")
_TRACING: Final = {"OV_ENABLE_SERIALIZE_TRACING": "true"}


class TracedPass(NamedTuple):
    """A pass and the .xml of the model after it. `number` counts all passes, `name` is OpenVINO's name for it.

    `model` tells the models that passes run on apart: a body, or a piece of the model, is another one.
    """

    number: int
    name: str
    model: str
    path: Path


def traced_passes(model: Path, device: str, precision: str, timeout: float | None = None) -> Iterator[TracedPass]:
    """Yield each pass while OpenVINO compiles the model; its files go when the next is taken.

    `timeout` is how many seconds there may be between two of them. ExecutionError where OpenVINO refuses the model or
    crashes, WorkerLimit where it goes on for longer; both after the passes up to there.
    """
    subject = f"the model {excerpt(model.name)}"
    with tempfile.TemporaryDirectory(prefix="stepper-passes-") as name:
        folder, worker = Path(name), Worker(PROGRAM, _TRACING)
        try:
            facts = RuntimeFacts(device, precision, (), {})
            worker.send(CompileFile(facts, str(model.resolve()), str(folder.resolve())), subject=subject)
            yield from _passes(folder, worker, subject, Limits(timeout or LONGEST))
        except RuntimeError as error:
            raise ExecutionError(f"OpenVINO refuses the model: {complaint(error)}") from None
        finally:
            worker.close()


def _passes(folder: Path, worker: Worker, subject: str, limits: Limits) -> Iterator[TracedPass]:
    done: set[str] = set()
    ended, problem, since, stage = False, None, time.monotonic(), worker.stage
    while True:
        try:
            ended = worker.wait(subject, _EACH) is not None
        except (StepperError, RuntimeError) as error:
            ended, problem = True, error
        found = sorted(
            (int(match[2]), match[3], match[1], path)
            for path in folder.iterdir()
            if path.name not in done and (match := _FILE.fullmatch(path.name))
        )
        # The last one may not be whole as long as the process writes, and not at all where it crashed.
        whole = found if ended and not isinstance(problem, ENDED) else found[:-1]
        for number, name, model, path in whole:
            _throttle(worker, wanted=_size(folder) > _MOST_BYTES)
            yield TracedPass(number, name, model, path)
            done.add(path.name)
            for file in (path, path.with_suffix(".bin")):
                with contextlib.suppress(OSError):
                    file.unlink()
        if problem is not None:
            raise problem
        if ended:
            return
        if whole or stage != worker.stage:
            since, stage = time.monotonic(), worker.stage
        elif time.monotonic() - since > limits.of(stage):
            raise worker.overdue(subject, limits.of(stage))
        # All that is whole was taken: now it must go on, however large a single one may be.
        _throttle(worker, wanted=False)


def _size(folder: Path) -> int:
    """Return the bytes in the folder; files may come and go meanwhile."""
    size = 0
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


def _throttle(worker: Worker, *, wanted: bool) -> None:
    """Let the process wait, or go on. Not where signals cannot do that."""
    if hasattr(signal, "SIGSTOP") and (pid := worker.pid()) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if wanted else signal.SIGCONT)
