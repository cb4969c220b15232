"""The worker's side: it takes requests from its standard input and answers on its standard output.

Only `worker.Worker` starts it. It announces each stage that it begins with, so that the other side knows what it was
at when it ends. It ends with the process that started it, and deletes what was being written for that one.

For tests, STEPPER_FAULT="stage:fault" makes it fail when it begins with a stage: the name of a signal, or one of
`hang`, `spin`, `exit`, `garbage` and `memory`. A third part makes it fail only if the subject has these words.
"""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NoReturn, Protocol

import msgspec
from msgspec.structs import replace

from stepper.element_types import Array
from stepper.errors import KernelError, StepperError
from stepper.processes import process_messages
from stepper.processes.process_messages import (
    Completed,
    Definition,
    OutOfMemory,
    Rejected,
    Replaced,
    Reply,
    StageBegan,
    WorkRequest,
)

# Acts that a worker performs beside others, each in a thread of its own.

_AT_ONCE = 2
"""Acts: what is begun while others wait keeps two cores busy, and of what each needs not much is held at once."""


class BegunActs:
    """Run acts that were begun; `perform` performs an act and answers."""

    def __init__(self, perform: Callable[[WorkRequest[Any], list[Array]], None]) -> None:
        self._perform = perform
        self._pool: ThreadPoolExecutor | None = None
        self._acts: dict[int, Future[None]] = {}
        self._given_up: set[int] = set()
        self._lock = threading.Lock()
        self._of_thread = threading.local()

    @property
    def current(self) -> WorkRequest[Any] | None:
        """The one that this thread performs; None where it performs none."""
        return getattr(self._of_thread, "request", None)

    @property
    def works_in_vain(self) -> bool:
        """True while something is performed that nobody waits for any more."""
        return bool(self._given_up)

    def begin(self, request: WorkRequest[Any], arrays: list[Array]) -> None:
        """Have a request performed as soon as a thread is free."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AT_ONCE)

        def performed() -> None:
            self._of_thread.request = request
            try:
                self._perform(request, arrays)
            finally:
                with self._lock:
                    self._acts.pop(request.ticket, None)
                    self._given_up.discard(request.ticket)

        with self._lock:
            self._acts[request.ticket] = self._pool.submit(performed)

    def drop(self, ticket: int) -> None:
        """Forget one that nobody waits for any more: what has not begun yet never will."""
        with self._lock:
            if (act := self._acts.get(ticket)) is None:
                return
            if act.cancel():
                del self._acts[ticket]
            else:
                self._given_up.add(ticket)


FAULT = "STEPPER_FAULT"
_OUT_OF_MEMORY = ("bad_alloc", "bad allocation", "out of memory", "Cannot allocate memory", "Failed to allocate")


Announce = Callable[[str], None]
"""Says that a stage begins."""


class Service(Protocol):
    """Performs acts with a runtime. `acts` is the union of their types, with those of definitions.

    A service without definitions has `define` and `forget` from here, which do nothing.
    """

    acts: Any

    def __init__(self, announce: Announce) -> None:
        """Load the runtime."""

    def define(self, definition: Any, arrays: list[Array]) -> None:
        """Take note of what a function is; it is made when it is first called, so that a call says what is wrong."""
        return  # not abstract

    def perform(self, act: Any, arrays: list[Array]) -> tuple[Any, Sequence[Any]]:
        """Return facts, which msgpack can hold, and arrays. Acts that are begun come from several threads.

        May raise StepperError, KernelError, MemoryError, and RuntimeError with the runtime's own words.
        """

    def forget(self, key: int) -> None:
        """Drop what was defined under a key."""
        return


def serve(make: type[Service], *, in_children: bool = False) -> NoReturn:
    """Answer requests with a service until the other side is gone; the memory limit is the program's argument.

    `in_children`: a child answers, and where it ends another one, so that what this process has loaded is not loaded
    again. Nothing that was loaded may have started a thread that a child needs. Where the system has no fork, or one
    that libraries do not survive, this process answers itself.
    """
    answers = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    # Libraries that print must not write into an answer.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    _limit_memory(int(sys.argv[1]))
    if in_children and sys.platform == "linux":
        _go_on_in_children(requests, answers)
    _Server(requests, answers, make).run()


def _go_on_in_children(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Return in a child; it is forked when there is a request. The parent says how each ended, but for the last."""
    while True:
        select.select([requests], [], [])
        child = os.fork()
        if not child:
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            with contextlib.suppress(BrokenPipeError):
                process_messages.write(answers, Replaced(code))
                continue
        os._exit(0)  # the other side is gone


def is_out_of_memory(error: BaseException) -> bool:
    """True if an exception of a runtime says that memory did not suffice."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY)


def _limit_memory(size: int) -> None:
    if not size:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        least = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (least, hard))


class _Server:
    def __init__(self, requests: IO[bytes], answers: IO[bytes], make: type[Service]) -> None:
        self._requests, self._answers, self._acts = requests, answers, make.acts
        self._waiting: queue.SimpleQueue[tuple[WorkRequest[Any], list[Array]] | None] = queue.SimpleQueue()
        self._subject = self._folder = ""
        self._forgotten: list[int] = []
        self._answering = threading.Lock()
        self._begun = BegunActs(self._perform)
        # In another thread, so that the end of the other side is seen whatever this one is at, and large requests are
        # there when all is loaded.
        threading.Thread(target=self._listen, daemon=True).start()
        self._service = make(self._begin)

    def run(self) -> NoReturn:
        """Perform what is asked for, in the order in which it comes, and have what is begun performed beside it."""
        gc.freeze()  # what was loaded stays
        gc.enable()
        while True:
            found = self._waiting.get()
            if found is None:  # the request did not fit into memory, and what follows of it cannot be told apart
                self._answer(OutOfMemory())
                os._exit(0)
            request, arrays = found
            for ticket in request.dropped:
                self._begun.drop(ticket)
            if isinstance(request.act, Definition):
                self._service.define(request.act, arrays)
            elif request.ticket:
                self._begun.begin(request, arrays)
            else:
                self._subject = request.subject
                self._perform(request, arrays)
                self._folder = ""
            self._forgotten += request.forget
            if not self._begun.works_in_vain:  # a call that was given up may not have looked up its function yet
                for key in self._forgotten:
                    self._service.forget(key)
                self._forgotten.clear()

    def _listen(self) -> None:
        while True:
            try:
                found = process_messages.read_request(self._requests, self._acts)
            except MemoryError:
                self._waiting.put(None)
                return
            except (process_messages.Garbled, OSError):
                found = None
            if found is None:
                self._leave()
            self._folder = getattr(found[0].act, "folder", "")
            self._waiting.put(found)

    def _leave(self) -> NoReturn:
        """End, since the other side is gone, and leave nothing of what was being written for it."""
        if self._folder:
            import shutil  # most write nothing

            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)

    def _answer(self, reply: Reply, arrays: Sequence[Any] = ()) -> None:
        try:
            with self._answering:
                process_messages.write(self._answers, reply, arrays)
        except OSError:
            self._leave()

    def _begin(self, stage: str) -> None:
        begun = self._begun.current
        subject = self._subject if begun is None else begun.subject
        self._answer(StageBegan(stage, 0 if begun is None else begun.ticket))
        stage_wanted, _, rest = os.environ.get(FAULT, "").partition(":")
        fault, _, where = rest.partition(":")
        if stage_wanted == stage and where in subject:
            _fail(fault, self._answers)

    def _perform(self, request: WorkRequest[Any], arrays: list[Array]) -> None:
        try:
            reply, outputs = self._performed(request, arrays)
            self._answer(replace(reply, ticket=request.ticket) if request.ticket else reply, outputs)
        except Exception:  # a thread of the pool would end alone, and its request never be answered
            sys.excepthook(*sys.exc_info())
            os._exit(1)

    def _performed(self, request: WorkRequest[Any], arrays: list[Array]) -> tuple[Reply, Sequence[Any]]:
        try:
            facts, outputs = self._service.perform(request.act, arrays)
            return Completed(msgspec.msgpack.encode(facts)), outputs
        except (StepperError, KernelError) as error:
            return Rejected(type(error).__name__, str(error)), ()
        except (RuntimeError, MemoryError) as error:
            return OutOfMemory() if is_out_of_memory(error) else Rejected("", str(error)), ()


def _fail(fault: str, answers: IO[bytes]) -> None:
    """Fail in the way that a test asks for."""
    if fault == "hang":
        time.sleep(3600)
    elif fault == "spin":
        while True:
            pass
    elif fault == "exit":
        os._exit(7)
    elif fault == "garbage":
        answers.write(b"this is not a message at all, however long one reads it")
        answers.flush()
    elif fault == "memory":
        raise MemoryError
    elif fault:
        signal.pthread_kill(threading.get_ident(), getattr(signal, fault))
