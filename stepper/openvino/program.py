"""OpenVINO's worker program, by name: so that it can be started before anything else is imported."""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING

from stepper.processes.programs import WorkerProgram

if TYPE_CHECKING:
    from stepper.processes.worker import Worker

OPENVINO = "openvino"
"""Its name where a user chooses an engine or a reference."""

PROGRAM = WorkerProgram("OpenVINO", "stepper.openvino.service", (("OPENBLAS_NUM_THREADS", "1"),))
"""numpy computes nothing there, and need not start its threads."""


def is_installed() -> bool:
    """Return True if openvino can be imported; does not import it."""
    return importlib.util.find_spec("openvino") is not None


def start_loading() -> None:
    """Let OpenVINO load in its process from now on, where it is installed."""
    from stepper.processes.starting import start_early  # OpenVINO's process starts no other

    if is_installed():
        start_early(PROGRAM)


@functools.cache
def shared_worker() -> Worker:
    """Return the one worker of the program: what is asked of it is small, and starting one takes half a second."""
    from stepper.processes.worker import Worker  # a process of OpenVINO starts early, and no other

    return Worker(PROGRAM)
