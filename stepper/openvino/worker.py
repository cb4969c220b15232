"""OpenVINO in a worker process: the worker that is shared. `acts` are what it performs.

shared_worker().ask(CheckDevice(facts), subject="the device CPU")
"""

from __future__ import annotations

import functools

from stepper.openvino.program import PROGRAM
from stepper.processes.worker import Worker


@functools.cache
def shared_worker() -> Worker:
    """Return the one worker of the program: what is asked of it is small, and starting one takes half a second."""
    return Worker(PROGRAM)
