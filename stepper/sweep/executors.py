"""Where the work of a sweep is done: in processes of this machine, or on the workers of Dask.

Both are a `concurrent.futures.Executor`. A sweep asks for another one where the processes of one are lost.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Final, Protocol, Self

from stepper.errors import ExecutionError, UsageError
from stepper.processes.messages import signal_name
from stepper.processes.starting import cores, environment_with
from stepper.sweep.limits import OVERDUE
from stepper.sweep.worker import begin_process, ready
from stepper.wording import excerpt

DASK: Final = "dask://"
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LONGEST: Final = 200
_LONGEST_END: Final = 5.0
_LONGEST_WORDS: Final = 2**16


class Workers(Protocol):
    """An executor and what becomes of it; a context manager."""

    @property
    def executor(self) -> Executor:
        """Return what takes the work; another one after `renewed`."""

    @property
    def count(self) -> int:
        """Return how many workers there are."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all work, at once where an exception ends it."""

    def is_lost(self, error: BaseException) -> bool:
        """Return True if a future's error says that the process that was at it has ended."""

    def renewed(self) -> None:
        """Make the executor anew if it cannot be used after that."""

    def ensure_begins(self) -> None:
        """Raise ExecutionError, with what it says, where a process ends before it has done anything."""

    def alone(self, function: Any, *arguments: Any) -> Any:
        """Return what a function returns in a process of its own; raise ProcessLost where that ends."""


class ProcessLost(Exception):
    """A process has ended in place of an answer; the text says how. `is_overdue`: a limit of time of ours ended it."""

    def __init__(self, text: str, *, is_overdue: bool = False) -> None:
        super().__init__(text)
        self.is_overdue = is_overdue


class LocalWorkers:
    """Processes of this machine, each with one thread of linear algebra: the cores are taken by inputs."""

    def __init__(self, jobs: int) -> None:
        self.count = jobs
        self.executor: Executor
        self._others = set(multiprocessing.active_children())
        self._environment = contextlib.ExitStack()

    def __enter__(self) -> Self:
        # Processes begin as they are needed.
        self._environment.enter_context(environment_with(dict.fromkeys(_THREADS, "1")))
        self.executor = _pool(self.count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._kill()
        self.executor.shutdown(wait=True, cancel_futures=True)
        self._environment.close()

    def _kill(self) -> None:
        for process in set(multiprocessing.active_children()) - self._others:
            process.kill()

    def is_lost(self, error: BaseException) -> bool:
        """Return True for a pool one of whose processes has ended; all that it was at is lost."""
        return isinstance(error, BrokenProcessPool)

    def renewed(self) -> None:
        """Make another pool."""
        self.executor.shutdown(wait=True, cancel_futures=True)
        self.executor = _pool(self.count)

    def ensure_begins(self) -> None:
        """Raise ExecutionError where no process can begin: because of the script that runs this, or of a package."""
        with _stderr_kept() as said:
            try:
                self.alone(ready)
            except ProcessLost as lost:
                raise ExecutionError(
                    f"a process of the sweep cannot begin: {_last_words(said()) or lost} (a script that starts stepper "
                    'does so below `if __name__ == "__main__":`)'
                ) from None

    def alone(self, function: Any, *arguments: Any) -> Any:
        """Return what a function returns in a process of its own. ProcessLost says by which signal that ended."""
        before = set(multiprocessing.active_children())
        with _pool(1) as executor:
            future = executor.submit(function, *arguments)
            processes = set(multiprocessing.active_children()) - before
            try:
                return future.result()
            except BrokenProcessPool:
                raise _lost(processes) from None


class _Pool(ProcessPoolExecutor):
    """Processes that never hear of Ctrl+C, be it while they begin, which they do when work is handed over."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand over work."""
        with _interrupts_held_back():
            return super().submit(fn, *args, **kwargs)


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Hold Ctrl+C back in this thread and in the processes that it starts; behind the block this thread hears of it.

    A process that has begun and is not told yet what to do would end with a traceback.
    """
    handler, came = signal.getsignal(signal.SIGINT), list[int]()
    is_main = threading.current_thread() is threading.main_thread()
    if handler is None or not is_main or not hasattr(signal, "pthread_sigmask"):  # as where there are no masks
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # which processes take over
    signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))  # as other threads hear of it, too
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came and callable(handler):
            handler(came[0], None)


def _pool(jobs: int) -> ProcessPoolExecutor:
    # Not forked: this process has threads, and may have OpenVINO.
    return _Pool(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=begin_process)


def _lost(processes: set[BaseProcess]) -> ProcessLost:
    for process in processes:
        deadline = time.monotonic() + _LONGEST_END
        while (code := process.exitcode) is None and time.monotonic() < deadline:
            time.sleep(0.01)  # the pool waits for it in a thread of its own, and may be about to note the code
        if code == OVERDUE:
            return ProcessLost("an operation did not come to its end within the limit of time", is_overdue=True)
        if code:
            how = signal_name(-code) if code < 0 else f"exit code {code}"
            return ProcessLost(f"the process that ran it ended ({how})")
    return ProcessLost("the process that ran it ended")


@contextlib.contextmanager
def _stderr_kept() -> Iterator[Callable[[], str]]:
    """Keep what this process and those that it starts write to stderr; gives a function that returns it."""
    sys.stderr.flush()
    try:
        before = os.dup(2)
    except OSError:  # it is closed
        yield lambda: ""
        return
    with tempfile.TemporaryFile() as file:

        def said() -> str:
            file.seek(0)
            return file.read(_LONGEST_WORDS).decode(errors="replace")

        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(before, 2)
            os.close(before)


def _last_words(text: str) -> str:
    """Return the error with which a program of Python ended; else its last line."""
    errors = list(re.finditer(r"^\w[\w.]*(?:Error|Exception|Exit)\b", text, re.MULTILINE))
    lines = text.strip().splitlines()
    found = text[errors[-1].start() :] if errors else lines[-1] if lines else ""
    return excerpt(" ".join(found.split()), _LONGEST)


class DaskWorkers:
    """The workers of a Dask cluster, which see the same files under the same paths."""

    def __init__(self, address: str) -> None:
        self._address = f"tcp://{address.removeprefix(DASK)}"
        self.count = 1

    def __enter__(self) -> Self:
        try:
            from distributed import Client
        except ImportError:
            raise UsageError("--on dask://... needs Dask: pip install '.[dask]'") from None
        try:
            self._client: Any = Client(self._address, timeout=5, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(f"--on {self._address}: no scheduler answers: {excerpt(str(error), _LONGEST)}") from None
        threads = self._client.nthreads().values()
        if not threads:
            self._client.close()
            raise UsageError(f"--on {self._address}: the scheduler has no workers")
        self.count = sum(threads)
        self.executor: Executor = self._client.get_executor(pure=False, retries=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(Exception):  # a scheduler that has gone away
            self.executor.shutdown(wait=False)
            self._client.close()

    def is_lost(self, error: BaseException) -> bool:
        """Return True if the workers that were given the work have died over it."""
        return type(error).__name__ in ("KilledWorker", "NoValidWorkerError")

    def renewed(self) -> None:
        """Nothing: Dask starts its workers itself."""

    def ensure_begins(self) -> None:
        """Nothing: they had begun when the sweep did."""

    def alone(self, function: Any, *arguments: Any) -> Any:
        """Return what a function returns on a worker that may die over it."""
        future: Future[Any] = self.executor.submit(function, *arguments)
        try:
            return future.result()
        except Exception as error:
            if self.is_lost(error):
                raise ProcessLost("the workers that ran it died") from None
            raise


def workers_of(on: str, jobs: int | None) -> Workers:
    """Return the workers that `--on` and `--jobs` mean. UsageError for an address that is none."""
    if not on:
        return LocalWorkers(jobs or cores())
    if not on.startswith(DASK) or ":" not in on.removeprefix(DASK):
        raise UsageError(f"--on {on}: expected dask://HOST:PORT, the address of a scheduler of Dask")
    if jobs is not None:
        raise UsageError("--jobs is for processes of this machine; with --on there are as many as Dask has")
    return DaskWorkers(on)
