"""Processes that examine mutants: limited in memory, killed when one takes too long, replaced when they die."""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.mutation.examine import Outcome

WHAT = ("models", "operands", "recordings", "archives")
"""The modules of this package with a function `outcome(seed)`, each imported when it is asked for."""
ADDRESS_SPACE = 3 * 2**30
LARGEST_RESIDENT = 2 * 2**20  # KB, as getrusage counts
SECONDS = 20.0
"""Processor time of a hang: a busy machine makes none."""
PATIENCE = 10 * SECONDS

_CONTEXT = multiprocessing.get_context("spawn")


def describe(what: str, seed: int) -> str:
    """What the mutant of this seed is, where its module says."""
    told = getattr(importlib.import_module(f"tests.mutation.{what}"), "describe", None)
    return "" if told is None else str(told(seed))


def _work(connection: Connection, folder: str, what: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module = importlib.import_module(f"tests.mutation.{what}")
    with (Path(folder) / "stack.txt").open("w+") as stack:
        faulthandler.enable(stack)
        while (seed := connection.recv()) is not None:
            stack.seek(0)
            stack.truncate()
            faulthandler.dump_traceback_later(PATIENCE * 0.9, file=stack)
            begin = time.process_time()
            outcome = module.outcome(seed)
            faulthandler.cancel_dump_traceback_later()
            if (took := time.process_time() - begin) > SECONDS:
                outcome = Outcome("hang", f"{took:.0f} s; {outcome.kind}: {outcome.text}")
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if peak > LARGEST_RESIDENT:
                outcome = Outcome("memory", f"{peak // 1024} MB; {outcome.kind}: {outcome.text}")
            connection.send((outcome.kind, outcome.text, peak // 1024))
            if outcome.kind == "memory":
                return


class _Worker:
    """One process with what it is about."""

    def __init__(self, what: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.connection, other = _CONTEXT.Pipe()
        self._process: Any = _CONTEXT.Process(target=_work, args=(other, self._folder.name, what), daemon=True)
        self._process.start()
        other.close()
        self.seed = -1
        self.deadline = float("inf")

    def give(self, seed: int) -> None:
        self.seed, self.deadline = seed, time.monotonic() + PATIENCE
        self.connection.send(seed)

    def stack(self) -> str:
        return (Path(self._folder.name) / "stack.txt").read_text()

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._folder.cleanup()


class Series:
    """The mutants of some seeds, examined in processes. `peak` is the most memory of a process so far, in MB."""

    def __init__(self, what: str, seeds: Iterable[int], processes: int = 2) -> None:
        self._what, self._seeds, self._processes = what, list(seeds), processes
        self.peak = 0

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Yield each seed with what came of it, in the order in which they are done."""
        waiting = iter(self._seeds)
        idle = [self._started() for _ in range(min(self._processes, len(self._seeds)))]
        busy: list[_Worker] = []
        try:
            while True:
                while idle and (seed := next(waiting, None)) is not None:
                    worker = idle.pop()
                    worker.give(seed)
                    busy.append(worker)
                if not busy:
                    return
                wait([worker.connection for worker in busy], max(0.0, min(w.deadline for w in busy) - time.monotonic()))
                for worker in list(busy):
                    if (outcome := self._outcome(worker)) is not None:
                        yield worker.seed, outcome
                        busy.remove(worker)
                        is_lost = outcome.kind in ("hang", "death", "memory")
                        idle.append(self._replaced(worker) if is_lost else worker)
        finally:
            for worker in (*idle, *busy):
                worker.stop()

    def _outcome(self, worker: _Worker) -> Outcome | None:
        """What the worker says, that it died or has taken too long; None while it may go on."""
        if worker.connection.poll():
            try:
                kind, text, peak = worker.connection.recv()
            except EOFError:
                return Outcome("death", worker.stack())
            self.peak = max(self.peak, peak)
            return Outcome(kind, text)
        return Outcome("hang", worker.stack()) if time.monotonic() > worker.deadline else None

    def _started(self) -> _Worker:
        """A worker that has imported everything: its first mutant must not pay for that."""
        worker = _Worker(self._what)
        worker.connection.send(0)
        worker.connection.recv()
        return worker

    def _replaced(self, worker: _Worker) -> _Worker:
        worker.stop()
        return self._started()


def counted(found: list[tuple[int, Outcome]]) -> str:
    """How many of each kind, for a report."""
    return ", ".join(f"{count} {kind}" for kind, count in Counter(outcome.kind for _, outcome in found).most_common())
