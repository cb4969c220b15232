"""A process in the place of OpenVINO's that fails as it is asked to: by the name of the device to look for."""

from __future__ import annotations

import os
import signal
import sys
import time

from stepper.openvino.process import messages
from stepper.openvino.process.messages import COMPILING, Began, Call, Check, Done, OutOfMemory, Refused, Request


def main() -> None:
    """Answer requests until there are no more."""
    while (found := messages.read_request(sys.stdin.buffer)) is not None:
        request, arrays = found
        messages.write(sys.stdout.buffer, Began(COMPILING))
        messages.write(sys.stdout.buffer, *answer(request, arrays))


def answer(request: Request, arrays: list[messages.Array]) -> tuple[messages.Reply, list[messages.Array]]:
    """What is asked for, or the end. A call gives its inputs back, where none of them is negative."""
    if isinstance(request.act, Call):
        fault = "SIGSEGV" if any(array.dtype.kind == "f" and (array < 0).any() for array in arrays) else ""
    else:
        fault = request.act.runtime.device if isinstance(request.act, Check) else ""
    if fault.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, fault))
    if fault == "exit":
        os._exit(7)
    if fault == "hang":
        time.sleep(60)
    if fault == "garbage":
        sys.stdout.buffer.write(b"nothing that could be read as a message")
    if fault == "memory":
        return OutOfMemory(), []
    if fault == "refuse":
        return Refused("UsageError", "there is no such device"), []
    if fault == "complain":
        return Refused("", "Exception from src/a.cpp:1:\nIt is too large."), []
    return Done(), arrays
