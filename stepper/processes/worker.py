"""Ask a worker process from the program's side: `Worker`.

    worker = Worker(WorkerProgram("OpenVINO", "stepper.openvino.service"))   # it starts with the first request.
    worker.ask(CheckDevice(facts), subject="the device CPU")
    begun = worker.begin(act, subject="the model m.xml")                     # beside others, and beside work here.
    worker.collect(begun, subject="the model m.xml", limits=Limits())

Whatever happens to the process becomes one of the exceptions of `endings`; the next request starts another process.
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
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final, TypeVar

import msgspec

from stepper.element_types import Array
from stepper.errors import (
    ExecutionError,
    KernelError,
    ModelError,
    StepperError,
    UnsupportedOperation,
    UsageError,
)
from stepper.processes import process_messages
from stepper.processes.process_messages import (
    ENDED,
    LOADING,
    RUNNING,
    CallFunction,
    Completed,
    Definition,
    EndKind,
    OutOfMemory,
    ProcessEnd,
    Rejected,
    Replaced,
    Reply,
    StageBegan,
    WorkRequest,
    error_of,
    printed_of_end,
)
from stepper.processes.programs import WorkerProgram
from stepper.processes.starting import memory_of_the_machine, started
from stepper.records import Record

LONGEST = 600.0
"""Seconds that each of reading, converting, compiling and running may take, where nothing else is said."""

_LONGEST_START = 60.0
_KNOWN: Final[Mapping[str, type[Exception]]] = {
    kind.__name__: kind for kind in (UsageError, ExecutionError, KernelError, ModelError, UnsupportedOperation)
}


T = TypeVar("T")


class Limits(Record):
    """Seconds for each stage, and for running alone where that is another matter."""

    seconds: float = LONGEST
    running: float | None = None

    def of(self, stage: str) -> float:
        """Return the seconds that a stage may take; the start of a program is none of the things that a user bounds."""
        if stage == LOADING:
            return max(self.seconds, _LONGEST_START)
        return self.running if self.running is not None and stage == RUNNING else self.seconds


class ActProgress:
    """How far an act has come: its stage, how many have begun, and the answer once it is there.

    `ticket` is 0 for the one that is asked for; others are performed beside it.
    """

    def __init__(self, stage: str, ticket: int = 0) -> None:
        self.stage, self.ticket = stage, ticket
        self.stages = 0
        self.answer: tuple[Reply, list[Array]] | None = None

    def take(self, reply: Reply, arrays: list[Array]) -> None:
        """Take note of what the process says of it."""
        if isinstance(reply, StageBegan):
            self.stage = reply.stage
            self.stages += 1
        else:
            self.answer = reply, arrays


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
        self._under_way: dict[int, weakref.ref[ActProgress]] = {}
        """Acts that were begun and not yet answered, by ticket."""
        self._tickets = itertools.count(1)
        self._asked_for = ActProgress(RUNNING)
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
            asked_for = self._asked_for
            while asked_for.answer is None:
                self._await(asked_for, subject, limits or Limits())
            return self._given(asked_for, subject)

    def begin(self, act: Any, arrays: Sequence[Any] = (), *, subject: str) -> ActProgress | None:
        """Have an act performed beside others; None where each is to be performed by itself.

        It is given up where nobody keeps what is returned. Raises what `ask` raises where there was no process and none
        can be started.
        """
        with self._lock:
            self._running()
            if not self._may_begin:
                return None
            begun = ActProgress(self._first_stage(act), next(self._tickets))
            self._under_way[begun.ticket] = weakref.ref(begun)
            weakref.finalize(begun, self._drop, begun.ticket, self.generation)
            self._write(act, arrays, subject, begun.ticket)
            return begun

    def collect(self, begun: ActProgress, *, subject: str, limits: Limits) -> list[Array] | None:
        """Return the arrays of the answer to what was begun; None where that must be asked for once more, by itself.

        So it is where the process has ended at several things. Raises as `ask` does.
        """
        with self._lock:
            try:
                while begun.answer is None:
                    if begun.ticket not in self._under_way:
                        self._may_begin = False
                        return None
                    self._await(begun, subject, limits)
                return self._given(begun, subject)[1]
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

    def send(self, act: Any, arrays: Sequence[Any] = (), *, subject: str) -> None:
        """Send a request without waiting for the answer. The process is started where there is none."""
        self._asked_for = ActProgress(self._first_stage(act))
        self._write(act, arrays, subject)

    def define(self, definition: Definition, arrays: Sequence[Any] = (), *, subject: str) -> None:
        """Define a function in the process that is `ready`; its first call reports its errors."""
        self._write(definition, arrays, subject)

    def _first_stage(self, act: Any) -> str:
        """Return the stage that an act begins with: a call may be what a process is started for."""
        has_loaded = self._process is not None and self._process.has_answered
        return RUNNING if isinstance(act, CallFunction) and has_loaded else LOADING

    def _write(self, act: Any, arrays: Sequence[Any], subject: str, ticket: int = 0) -> None:
        process = self._process
        if process is None or not isinstance(act, CallFunction):  # a function is defined in that process alone
            process = self._running()
        request = WorkRequest(act, subject, tuple(self._forgotten), tuple(self._dropped), ticket)
        self._forgotten.clear()
        self._dropped.clear()
        try:
            process_messages.write(process.requests, request, arrays)
        except OSError:
            pass  # it has ended: the answer says how
        except BaseException:
            self.close()
            raise

    def _await(self, wanted: ActProgress, subject: str, limits: Limits) -> None:
        """Wait until the answer is there, or the next stage begins; end the process where that takes too long."""
        stages, seconds = wanted.stages, limits.of(wanted.stage)
        deadline = time.monotonic() + seconds
        while wanted.answer is None and wanted.stages == stages:
            if not self._hear(wanted, subject, max(0.0, deadline - time.monotonic())):
                raise self._overdue(wanted, subject, seconds)

    def wait(self, subject: str, seconds: float) -> list[Array] | None:
        """Return the arrays of the answer to what was sent; None after these seconds, and where a stage begins."""
        self._hear(self._asked_for, subject, seconds)
        return None if self._asked_for.answer is None else self._given(self._asked_for, subject)[1]

    def _hear(self, wanted: ActProgress, subject: str, seconds: float) -> bool:
        """Take one message of the process, whatever it is about; False where there is none in these seconds."""
        process = self._process
        assert process is not None, "something was sent"
        try:
            reply = process.next_reply(seconds)
        except _Ended as ended:
            raise self._end_of(ended, wanted, subject) from None
        except BaseException:  # an interrupt: what is under way there is nobody's any more
            self.close()
            raise
        if reply is None:
            return False
        ticket = reply[0].ticket
        if wanted.ticket and not ticket and isinstance(reply[0], OutOfMemory):  # it could not even read a request
            raise self._end_of(_Ended(EndKind.MEMORY), wanted, subject)
        found = self._under_way.get(ticket)
        progress = self._asked_for if not ticket else None if found is None else found()
        if progress is not None:  # else nobody waits for it
            progress.take(*reply)
            if progress.answer is not None:
                self._under_way.pop(ticket, None)
        return True

    def _given(self, answered: ActProgress, subject: str) -> tuple[bytes, list[Array]]:
        """Return the facts and arrays of an answer; raise what it is instead."""
        match answered.answer:
            case Completed() as completed, arrays:
                return completed.facts, arrays
            case Rejected() as rejected, _:
                raise _KNOWN.get(rejected.error, RuntimeError)(rejected.text)
        raise self._end_of(_Ended(EndKind.MEMORY), answered, subject)

    def _end_of(self, ended: _Ended, wanted: ActProgress, subject: str) -> StepperError:
        """Take leave of the process; return the exception that says how it ended."""
        process = self._process
        self._under_way.pop(wanted.ticket, None)
        self._has_ended_at_several = bool(self._under_way)
        if process is not None and process.goes_on:
            process.goes_on = False
            self._forgotten.clear()
            self.generation += 1
        else:
            self.close()
        limit = self._memory if ended.kind is EndKind.MEMORY else 0
        name, stage = self.program.name, wanted.stage
        return error_of(ProcessEnd(ended.kind, name, stage, subject, ended.code, limit, ended.printed))

    def overdue(self, subject: str, seconds: float) -> StepperError:
        """End the process, which has not answered in time; return the exception that says so."""
        return self._overdue(self._asked_for, subject, seconds)

    def _overdue(self, wanted: ActProgress, subject: str, seconds: float) -> StepperError:
        self._under_way.pop(wanted.ticket, None)
        # One of which no stage was heard may have waited for the others; one that has begun took too long itself.
        self._has_ended_at_several = bool(self._under_way) and not wanted.stages
        self.close()
        return error_of(ProcessEnd(EndKind.TIME, self.program.name, wanted.stage, subject, limit=seconds))

    def forget(self, key: int) -> None:
        """Have it drop what was defined under this key, with the next request."""
        self._forgotten.append(key)

    def _drop(self, ticket: int, generation: int) -> None:
        """Have it forget what was begun and not answered, with the next request."""
        if generation == self.generation and self._under_way.pop(ticket, None) is not None:
            self._dropped.append(ticket)

    def locked(self) -> threading.RLock:
        """Return the lock under which several requests belong together."""
        return self._lock

    @property
    def stage(self) -> str:
        """The stage that began last."""
        return self._asked_for.stage

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

    def printed(self) -> str:
        """Return the end of what the process has printed on its standard error since the last time."""
        return "" if self._process is None else self._process.printed()

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
    """End of the process: its kind, the number of a signal or an exit code, and what it said of that."""

    def __init__(self, kind: EndKind, code: int = 0, printed: str = "") -> None:
        super().__init__(kind, code, printed)
        self.kind, self.code, self.printed = kind, code, printed


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
        self.has_answered = False
        threading.Thread(target=_listen, args=(self._process.stdout, self._replies), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def printed(self) -> str:
        """Return the end of what it has printed since the last time."""
        self._messages.seek(0, os.SEEK_END)
        self._messages.seek(max(self._heard, self._messages.tell() - 4000))
        said = self._messages.read()
        self._heard = self._messages.tell()
        return said.decode(errors="replace")

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
                raise _Ended(found)
            case None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(10)
                code = self._process.returncode or 0
            case _:
                self.has_answered = True
                return found
        printed, kind = self.printed(), EndKind.SIGNAL if code < 0 else EndKind.EXIT
        if code < 0 and "bad_alloc" in printed:
            raise _Ended(EndKind.MEMORY)
        raise _Ended(kind, abs(code), printed_of_end(kind, printed))

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
                found = process_messages.read_reply(stream)
            except (process_messages.Garbled, MemoryError):
                replies.put(EndKind.GARBLED)
                return
            except (OSError, ValueError):
                found = None
            replies.put(found)
            if found is None:
                return


_open: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """End the processes of all workers; the next request of each starts another."""
    for worker in list(_open):
        worker.close()


# Functions from arrays to arrays that are defined in a worker process.
#
# layer = RemoteFunction(worker, define, "MatMul 'proj' (layer 3)", limits)
# layer(x)                                           # defined anew where the process had to be started again
# outputs = layer.begin(x); ...; outputs()           # beside others, and beside what goes on here

_MOST_CRASHES = 3


class BegunCall:
    """A call of a function that a worker may have begun."""

    def __init__(self, function: RemoteFunction, inputs: tuple[Any, ...], begun: ActProgress | None) -> None:
        self._function, self._inputs, self._begun = function, inputs, begun

    def __call__(self) -> tuple[Array, ...]:
        """Return its outputs, when they are there; to be asked once. Raises as `Worker.ask` does."""
        begun, self._begun = self._begun, None
        found = None if begun is None else self._function.collected(begun, self._inputs)
        return self._function(*self._inputs) if found is None else found


class RemoteFunction:
    """Function from arrays to arrays that is defined in a worker.

    `define` gives its definition under a key, with its arrays. What ended the process once is not tried again
    on inputs of the same types and shapes, and after a few times not at all: the same exception is raised.
    """

    _keys: Final = itertools.count(1)

    def __init__(
        self, worker: Worker, define: Callable[[int], tuple[Definition, Sequence[Any]]], subject: str, limits: Limits
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
        """Start the computation beside other calls that were begun, and beside local work."""
        begun = None
        if self._earlier_end(inputs) is None:
            # what goes wrong here does so again when the outputs are asked for
            with contextlib.suppress(StepperError, KernelError, RuntimeError), self._worker.locked():
                self._ensure_defined()
                begun = self._worker.begin(CallFunction(self._key), inputs, subject=self.subject)
        return BegunCall(self, inputs, begun)

    def collected(self, begun: ActProgress, inputs: tuple[Any, ...]) -> tuple[Array, ...] | None:
        """Return the outputs of a call that was begun on these inputs; None where it must be called once more."""
        try:
            found = self._worker.collect(begun, subject=self.subject, limits=self.limits)
        except ENDED as error:
            self._ended[_signature(inputs)] = error
            raise
        return None if found is None else tuple(found)

    def _called(self, inputs: tuple[Any, ...], *, wanted: bool) -> tuple[Array, ...]:
        if (earlier := self._earlier_end(inputs)) is not None:
            copy = type(earlier)(str(earlier))
            copy.end = earlier.end  # type: ignore[attr-defined]  # each of ENDED has one
            raise copy
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
            definition, arrays = self._define(self._key)
            self._worker.define(definition, arrays, subject=self.subject)
            self._generation = self._worker.generation

    def _earlier_end(self, inputs: tuple[Any, ...]) -> StepperError | None:
        """Return how the process ended at this before, if it did."""
        if len(self._ended) >= _MOST_CRASHES:
            return next(reversed(self._ended.values()))
        return self._ended.get(_signature(inputs))


def _signature(inputs: Sequence[Any]) -> Any:
    return tuple((array.dtype, array.shape) for array in inputs)
