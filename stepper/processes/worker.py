"""The program's side of a worker process: `Worker`.

    worker = Worker(WorkerProgram("OpenVINO", "stepper.openvino.service"))   # it starts with the first request
    worker.ask(CheckDevice(facts), subject="the device CPU")
    layer = RemoteFunction(worker, define, "MatMul 'proj' (layer 3)", limits)
    layer(x)                                           # defined anew where the process had to be started again
    outputs = layer.begin(x); ...; outputs()           # beside others, and beside what goes on here

Whatever happens to the process becomes one of the exceptions of `endings`; the next request starts another.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import queue
import signal
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from stepper.element_types import Array
from stepper.errors import ExecutionError, KernelError, ModelError, StepperError, UnsupportedOperation, UsageError
from stepper.processes import messages
from stepper.processes.endings import ENDED, EndKind, ProcessEnd, error_of
from stepper.processes.messages import (
    LOADING,
    RUNNING,
    CallFunction,
    Collect,
    Completed,
    Rejected,
    Replaced,
    Reply,
    StageBegan,
    WorkRequest,
)
from stepper.processes.starting import WorkerProgram, memory_of_the_machine, started

LONGEST: Final = 600.0
"""Seconds that each of reading, converting, compiling and running may take, where nothing else is said."""

_MOST_CRASHES: Final = 3
_LONGEST_START: Final = 60.0
_KNOWN: Final[Mapping[str, type[Exception]]] = {
    kind.__name__: kind for kind in (UsageError, ExecutionError, KernelError, ModelError, UnsupportedOperation)
}


T = TypeVar("T")


class Limits(Struct, frozen=True):
    """Seconds for each stage, and for running alone where that is another matter."""

    seconds: float = LONGEST
    running: float | None = None

    def of(self, stage: str) -> float:
        """Return the seconds that a stage may take; the start of a program is none of the things that a user bounds."""
        if stage == LOADING:
            return max(self.seconds, _LONGEST_START)
        return self.running if self.running is not None and stage == RUNNING else self.seconds


class Worker:
    """A process in which a program runs. It is started by the first request, and again after it has ended.

    `environment` are variables for it, `memory` the bytes that it may use (None: those of the machine). One request at
    a time; requests from several threads wait for each other. What is only begun is performed beside others; where the
    process ends at several things, which of them ended it is not known: from then on each is performed by itself.
    """

    def __init__(
        self, program: WorkerProgram, environment: Mapping[str, str] | None = None, memory: int | None = None
    ) -> None:
        self.program, self._environment = program, dict(environment or {})
        self._memory = memory_of_the_machine() if memory is None else memory
        self._lock = threading.RLock()
        self._process: _Process | None = None
        self._owner = os.getpid()
        self._forgotten: list[int] = []
        self._dropped: list[int] = []
        self._under_way: set[int] = set()
        self._tickets = itertools.count(1)
        self._stage, self._begun = RUNNING, 0
        self._may_begin, self._has_ended_at_several = True, False
        self.generation = 0
        """Number of processes that there were; what was defined in an earlier one is gone."""

    def ask(self, act: Any, arrays: Sequence[Any] = (), *, subject: str, limits: Limits | None = None) -> list[Array]:
        """Perform an act; return the arrays of the answer.

        Raises RuntimeError with the runtime's words where it refuses, one of our exceptions where that was raised
        there, and those of `endings` where the process ends instead.
        """
        return self._asked(act, arrays, subject, limits)[1]

    def ask_for(
        self, facts: type[T], act: Any, arrays: Sequence[Any] = (), *, subject: str, limits: Limits | None = None
    ) -> tuple[T, list[Array]]:
        """Perform an act; return the facts of the answer, of this type, and its arrays. Raises as `ask` does."""
        content, found = self._asked(act, arrays, subject, limits)
        return msgspec.msgpack.decode(content, type=facts), found

    def _asked(self, act: Any, arrays: Sequence[Any], subject: str, limits: Limits | None) -> tuple[bytes, list[Array]]:
        with self._lock:
            self.send(act, arrays, subject=subject)
            return self._received(subject, limits or Limits())

    def begin(self, act: Any, arrays: Sequence[Any] = (), *, subject: str) -> Begun | None:
        """Have an act performed beside others; None where each is to be performed by itself.

        Raises what `ask` raises where there was no process and none can be started.
        """
        with self._lock:
            self._running()
            if not self._may_begin:
                return None
            begun = Begun(self, next(self._tickets), self.generation)
            self.send(act, arrays, subject=subject, ticket=begun.ticket)
            self._under_way.add(begun.ticket)
            return begun

    def collect(self, begun: Begun, *, subject: str, limits: Limits) -> list[Array] | None:
        """Return the arrays of the answer to what was begun; None where that must be asked for once more, by itself.

        So it is where the process has ended at several things. Raises as `ask` does.
        """
        with self._lock:
            self._under_way.discard(begun.ticket)
            if begun.generation != self.generation or self._process is None or not self._process.is_alive():
                self._may_begin = False
                return None
            try:
                return self.ask(Collect(begun.ticket), subject=subject, limits=limits)
            except ENDED:
                if self.has_ended_at_several():
                    return None
                raise

    def has_ended_at_several(self) -> bool:
        """Return True, once, where the process has ended while it was at several things."""
        found, self._has_ended_at_several = self._has_ended_at_several, False
        if found:
            self._may_begin = False
        return found

    def send(self, act: Any, arrays: Sequence[Any] = (), *, subject: str, ticket: int = 0) -> None:
        """Send a request without waiting for the answer. The process is started where there is none.

        With a ticket it is performed beside others.
        """
        process = self._running()
        self._stage = RUNNING if isinstance(act, (CallFunction, Collect)) else LOADING
        request = WorkRequest(act, subject, tuple(self._forgotten), tuple(self._dropped), ticket)
        self._forgotten.clear()
        self._dropped.clear()
        try:
            messages.write(process.requests, request, arrays)
        except OSError:
            pass  # it has ended: the answer says how
        except BaseException:
            self.close()
            raise

    def _received(self, subject: str, limits: Limits) -> tuple[bytes, list[Array]]:
        while True:
            begun, seconds = self._begun, limits.of(self._stage)
            found = self._next_answer(subject, seconds)
            if found is not None:
                return found
            if begun == self._begun:
                raise self.overdue(subject, seconds)

    def wait(self, subject: str, seconds: float) -> list[Array] | None:
        """Return the arrays of the answer to what was sent; None after these seconds, and where a stage begins."""
        found = self._next_answer(subject, seconds)
        return None if found is None else found[1]

    def _next_answer(self, subject: str, seconds: float) -> tuple[bytes, list[Array]] | None:
        process = self._process
        assert process is not None, "something was sent"
        try:
            match process.next_reply(seconds):
                case None:
                    return None
                case StageBegan() as began, _:
                    self._stage = began.stage
                    self._begun += 1
                    return None
                case Completed() as completed, arrays:
                    return completed.facts, arrays
                case Rejected() as rejected, _:
                    kind = _KNOWN.get(rejected.error, RuntimeError)
                case _:
                    raise _Ended(EndKind.MEMORY, 0)
        except _Ended as ended:
            kind_of_end, code = ended.args
            self._has_ended_at_several = bool(self._under_way)
            if process.goes_on:
                process.goes_on = False
                self._forgotten.clear()
                self.generation += 1
            else:
                self.close()
            limit = self._memory if kind_of_end is EndKind.MEMORY else 0
            raise error_of(ProcessEnd(kind_of_end, self.program.name, self._stage, subject, code, limit)) from None
        except BaseException:  # an interrupt: what is under way there is nobody's any more
            self.close()
            raise
        raise kind(rejected.text)

    def overdue(self, subject: str, seconds: float) -> StepperError:
        """End the process, which has not answered in time; return the exception that says so."""
        self._has_ended_at_several = bool(self._under_way)
        self.close()
        return error_of(ProcessEnd(EndKind.TIME, self.program.name, self._stage, subject, limit=seconds))

    def forget(self, key: int) -> None:
        """Have it drop what was defined under this key, with the next request."""
        self._forgotten.append(key)

    def drop(self, ticket: int, generation: int) -> None:
        """Have it forget what was begun, with the next request."""
        if generation == self.generation and ticket in self._under_way:
            self._under_way.discard(ticket)
            self._dropped.append(ticket)

    def locked(self) -> threading.RLock:
        """Return the lock under which several requests belong together."""
        return self._lock

    @property
    def stage(self) -> str:
        """The stage that began last."""
        return self._stage

    def ready(self) -> int:
        """Return the generation of the process; one is started where there is none."""
        self._running()
        return self.generation

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        self._under_way.clear()
        self._dropped.clear()
        if process is not None and self._owner == os.getpid():
            process.end()

    def pid(self) -> int | None:
        """Return the id of the process; None where there is none."""
        return None if self._process is None else self._process.pid

    def _running(self) -> _Process:
        if self._owner != os.getpid():  # a child by fork has no part in the pipes
            self._owner, self._process, self._lock = os.getpid(), None, threading.RLock()
        if self._process is not None and not self._process.is_alive():
            self.close()
        if self._process is None:
            self._forgotten.clear()
            self._process = _Process(self.program, self._environment, self._memory)
            _open.add(self)
            self.generation += 1
        return self._process


class _Ended(Exception):
    """End of the process: its kind, and the number of a signal or an exit code."""


class _Process:
    """A process to which requests are written; a thread of its own reads the answers."""

    def __init__(self, program: WorkerProgram, environment: Mapping[str, str], memory: int) -> None:
        self._process, self._messages = started(program, environment, memory)
        assert self._process.stdin is not None and self._process.stdout is not None
        self.requests: IO[bytes] = self._process.stdin
        self._replies: queue.Queue[tuple[Reply, list[Array]] | EndKind | None] = queue.Queue()
        self._heard = 0
        self.goes_on = False
        """True where only a child of it has ended."""
        threading.Thread(target=_listen, args=(self._process.stdout, self._replies), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def next_reply(self, seconds: float) -> tuple[Reply, list[Array]] | None:
        """Return the next answer, None after these seconds. Raise `_Ended` where the process ended."""
        try:
            found = self._replies.get(timeout=seconds)
        except queue.Empty:
            return None
        match found:
            case Replaced() as replaced, _:
                self.goes_on, code = True, replaced.code
            case EndKind():
                raise _Ended(found, 0)
            case None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(10)
                code = self._process.returncode or 0
            case _:
                return found
        if code < 0 and b"bad_alloc" in self._said():
            raise _Ended(EndKind.MEMORY, 0)
        raise _Ended(EndKind.SIGNAL if code < 0 else EndKind.EXIT, abs(code))

    def _said(self) -> bytes:
        """Return the end of what it has printed since the last time."""
        self._messages.seek(0, os.SEEK_END)
        self._messages.seek(max(self._heard, self._messages.tell() - 4000))
        said = self._messages.read()
        self._heard = self._messages.tell()
        return said

    def end(self) -> None:
        """Kill it, with its children, and wait until it is gone."""
        if os.name == "posix" and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._messages):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]  # it was asked for


def _listen(stream: IO[bytes], replies: queue.Queue[Any]) -> None:
    with stream:
        while True:
            try:
                found = messages.read_reply(stream)
            except (messages.Garbled, MemoryError):
                replies.put(EndKind.GARBLED)
                return
            except (OSError, ValueError):
                found = None
            replies.put(found)
            if found is None:
                return


class Begun:
    """An act that a worker performs beside others; it is dropped where nobody keeps this."""

    def __init__(self, worker: Worker, ticket: int, generation: int) -> None:
        self.ticket, self.generation = ticket, generation
        weakref.finalize(self, worker.drop, ticket, generation)


class BegunCall:
    """A call of a function that a worker may have begun."""

    def __init__(self, function: RemoteFunction, inputs: tuple[Any, ...], begun: Begun | None) -> None:
        self._function, self._inputs, self._begun = function, inputs, begun

    def __call__(self) -> tuple[Array, ...]:
        """Return its outputs, when they are there; to be asked once. Raises as `Worker.ask` does."""
        begun, self._begun = self._begun, None
        found = None if begun is None else self._function.collected(begun, self._inputs)
        return self._function(*self._inputs) if found is None else found


class RemoteFunction:
    """Function from arrays to arrays that is defined in a worker.

    `define` gives the act that defines it under a key, with its arrays. What ended the process once is not tried again
    on inputs of the same types and shapes, and after a few times not at all: the same exception is raised.
    """

    _keys: Final = itertools.count(1)

    def __init__(
        self, worker: Worker, define: Callable[[int], tuple[Any, Sequence[Any]]], subject: str, limits: Limits
    ) -> None:
        self._worker, self._define, self.subject, self.limits = worker, define, subject, limits
        self._key = next(self._keys)
        self._generation = 0
        self._ended: dict[Any, StepperError] = {}
        weakref.finalize(self, worker.forget, self._key)

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return its outputs. Raises as `Worker.ask` does."""
        return self._called(inputs, wanted=True)

    def survives(self, *inputs: Any) -> None:
        """Compute, and raise as `Worker.ask` does; the outputs stay there."""
        self._called(inputs, wanted=False)

    def begin(self, *inputs: Any) -> BegunCall:
        """Have it compute beside other calls that were begun, and beside what goes on here."""
        begun = None
        if self._earlier_end(inputs) is None:
            # what goes wrong here does so again when the outputs are asked for
            with contextlib.suppress(StepperError, KernelError, RuntimeError), self._worker.locked():
                self._ensure_defined()
                begun = self._worker.begin(CallFunction(self._key), inputs, subject=self.subject)
        return BegunCall(self, inputs, begun)

    def collected(self, begun: Begun, inputs: tuple[Any, ...]) -> tuple[Array, ...] | None:
        """Return the outputs of a call that was begun on these inputs; None where it must be called once more."""
        try:
            found = self._worker.collect(begun, subject=self.subject, limits=self.limits)
        except ENDED as error:
            self._ended[_signature(inputs)] = error
            raise
        return None if found is None else tuple(found)

    def _called(self, inputs: tuple[Any, ...], *, wanted: bool) -> tuple[Array, ...]:
        if (earlier := self._earlier_end(inputs)) is not None:
            raise _again(earlier)
        try:
            with self._worker.locked():
                self._ensure_defined()
                call = CallFunction(self._key, wanted)
                return tuple(self._worker.ask(call, inputs, subject=self.subject, limits=self.limits))
        except ENDED as error:
            if self._worker.has_ended_at_several():
                return self._called(inputs, wanted=wanted)
            self._ended[_signature(inputs)] = error
            raise

    def _ensure_defined(self) -> None:
        if self._generation != self._worker.ready():
            act, arrays = self._define(self._key)
            self._worker.ask(act, arrays, subject=self.subject, limits=self.limits)
            self._generation = self._worker.generation

    def _earlier_end(self, inputs: tuple[Any, ...]) -> StepperError | None:
        """Return how the process ended at this before, if it did."""
        if len(self._ended) >= _MOST_CRASHES:
            return next(reversed(self._ended.values()))
        return self._ended.get(_signature(inputs))


def _signature(inputs: Sequence[Any]) -> Any:
    return tuple((array.dtype, array.shape) for array in inputs)


def _again(error: StepperError) -> StepperError:
    """Return the exception once more, without the trace of the first time."""
    copy = type(error)(str(error))
    copy.end = error.end  # type: ignore[attr-defined]  # each of ENDED has one
    return copy


_open: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for worker in list(_open):
        worker.close()
