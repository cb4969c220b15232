"""What OpenVINO makes of a model, pass by pass: its own serialisation of the model after each transformation.

The runtime writes a whole model after every pass, some hundreds of them, into the folder where it runs. So it runs in a
process of its own, in a temporary folder, and is stopped (not ended) while more is there than the limit; whoever takes
the passes deletes them by taking the next.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stepper.errors import ExecutionError
from stepper.openvino.runtime import complaint

_MOST_BYTES: Final = 2**31
_EACH: Final = 0.02
_FILE: Final = re.compile(r"(.*?)_(\d{3,})_(.*)\.xml")
_COMPILE: Final = """
import sys, openvino
path, device, precision = sys.argv[1:]
core = openvino.Core()
core.compile_model(core.read_model(path), device, {"INFERENCE_PRECISION_HINT": precision})
"""


class TracedPass(NamedTuple):
    """A pass and the .xml of the model after it. `number` counts all passes, `name` is OpenVINO's name for it.

    `model` tells the models that passes run on apart: a body, or a piece of the model, is another one.
    """

    number: int
    name: str
    model: str
    path: Path


def traced_passes(model: Path, device: str, precision: str) -> Iterator[TracedPass]:
    """Each pass while OpenVINO compiles the model; its files go when the next is taken.

    ExecutionError where OpenVINO refuses the model, after the passes up to there.
    """
    with tempfile.TemporaryDirectory(prefix="stepper-passes-") as name:
        folder = Path(name)
        command = [sys.executable, "-c", _COMPILE, str(model.resolve()), device, precision]
        environment = {**os.environ, "OV_ENABLE_SERIALIZE_TRACING": "true"}
        with (folder / "messages").open("wb") as messages:
            child = subprocess.Popen(command, cwd=folder, env=environment, stdout=messages, stderr=messages)
        try:
            yield from _passes(folder, child)
        finally:
            _end(child)
        if child.returncode:
            said = (folder / "messages").read_text("utf-8", "replace")[-4000:]
            raise ExecutionError(f"OpenVINO refuses the model: {complaint(RuntimeError(said))}")


def _passes(folder: Path, child: subprocess.Popen[bytes]) -> Iterator[TracedPass]:
    done: set[str] = set()
    paused = False
    while True:
        ended = child.poll() is not None
        found = sorted(
            (int(match[2]), match[3], match[1], path)
            for path in folder.iterdir()
            if path.name not in done and (match := _FILE.fullmatch(path.name))
        )
        # The last one may not be whole as long as the process writes.
        for number, name, model, path in found if ended else found[:-1]:
            paused = _throttle(child, paused=paused, wanted=_size(folder) > _MOST_BYTES)
            yield TracedPass(number, name, model, path)
            done.add(path.name)
            for file in (path, path.with_suffix(".bin")):
                with contextlib.suppress(OSError):
                    file.unlink()
        if ended:
            return
        # All that is whole was taken: now it must go on, however large a single one may be.
        paused = _throttle(child, paused=paused, wanted=False)
        time.sleep(_EACH)


def _size(folder: Path) -> int:
    """The bytes in the folder; files may come and go meanwhile."""
    size = 0
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


def _throttle(child: subprocess.Popen[bytes], *, paused: bool, wanted: bool) -> bool:
    """Let the process wait, or go on; whether it waits now. Not where signals cannot do that."""
    if wanted == paused or not hasattr(signal, "SIGSTOP"):
        return paused
    child.send_signal(signal.SIGSTOP if wanted else signal.SIGCONT)
    return wanted


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
