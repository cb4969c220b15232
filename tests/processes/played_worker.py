"""A program in a worker process that fails as it is asked to."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from msgspec import Struct

from stepper.processes import process_messages
from stepper.processes.process_messages import (
    COMPILING,
    CallFunction,
    Completed,
    Definition,
    OutOfMemory,
    Rejected,
    StageBegan,
    WorkRequest,
)


class Fail(Struct, frozen=True, tag=True):
    """End in some way; nothing happens for an empty one."""

    way: str


class Define(Definition, frozen=True, tag=True):
    """A function that gives its inputs back, where none of them is negative."""


Act = Fail | Define | CallFunction


def main() -> None:
    """Answer requests until there are no more."""
    while (found := process_messages.read_request(sys.stdin.buffer, Act)) is not None:
        request, arrays = found
        if isinstance(request.act, Definition):
            continue
        process_messages.write(sys.stdout.buffer, StageBegan(COMPILING))
        process_messages.write(sys.stdout.buffer, *answer(request, arrays))


def end_as(way: str) -> None:
    """End this process by a signal or with an exit code, or hang; nothing for another way."""
    if way.startswith("SIG"):
        signal.pthread_kill(threading.get_ident(), getattr(signal, way))  # at once, whatever other threads are at
    if way == "exit":
        os._exit(7)
    if way == "hang":
        time.sleep(60)


def answer(
    request: WorkRequest[Act], arrays: list[process_messages.Array]
) -> tuple[process_messages.Reply, list[process_messages.Array]]:
    """What is asked for, or the end."""
    fault = request.act.way if isinstance(request.act, Fail) else ""
    if isinstance(request.act, CallFunction) and any(array.dtype.kind == "f" and (array < 0).any() for array in arrays):
        fault = "SIGSEGV"
    if fault.startswith("print "):
        print("terminate called\n  what():  no such kernel\nand then \x1b[31mthis", file=sys.stderr, flush=True)
    end_as(fault.removeprefix("print "))
    if fault == "garbage":
        sys.stdout.buffer.write(b"nothing that could be read as a message")
    if fault == "memory":
        return OutOfMemory(), []
    if fault == "refuse":
        return Rejected("UsageError", "there is no such device"), []
    if fault == "complain":
        return Rejected("", "Exception from src/a.cpp:1:\nIt is too large."), []
    return Completed(), arrays
