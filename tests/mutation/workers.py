"""Processes that examine mutants: limited in memory, killed when one takes too long, replaced when they die."""

from __future__ import annotations

import faulthandler
import multiprocessing
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from stepper.ops.operands import LARGEST_TENSOR
from tests.mutation.bases import bases
from tests.mutation.examine import Outcome, examine
from tests.mutation.mutate import mutated

ADDRESS_SPACE = 1536 * 2**20
LARGEST_RESIDENT = 1024 * 2**10  # KB, as getrusage counts
SECONDS = 5.0

_CONTEXT = multiprocessing.get_context("spawn")


def examine_seed(seed: int, folder: Path) -> Outcome:
    """Make the mutant of this seed in the folder and examine it."""
    names = list(bases())
    name = names[seed % len(names)]
    files, _done = mutated(bases()[name], seed)
    path = folder / "model.xml"
    path.write_bytes(files.xml)
    path.with_suffix(".bin").write_bytes(files.weights)
    return examine(path)


def describe(seed: int) -> str:
    """What the mutant of this seed is: `loop: change_shape, drop_attribute`."""
    names = list(bases())
    name = names[seed % len(names)]
    return f"{name}: {', '.join(mutated(bases()[name], seed)[1])}"


def _work(connection: Connection, folder: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    LARGEST_TENSOR.set(LARGEST_RESIDENT * 2**10 // 8)
    with (Path(folder) / "stack.txt").open("w+") as stack:
        faulthandler.enable(stack)
        while (seed := connection.recv()) is not None:
            stack.seek(0)
            stack.truncate()
            faulthandler.dump_traceback_later(SECONDS * 0.9, file=stack)
            outcome = examine_seed(seed, Path(folder))
            faulthandler.cancel_dump_traceback_later()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if peak > LARGEST_RESIDENT:
                outcome = Outcome("memory", f"{peak // 1024} MB; {outcome.kind}: {outcome.text}")
            connection.send((outcome.kind, outcome.text))
            if outcome.kind == "memory":
                return


class _Worker:
    """One process with what it is about."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.connection, other = _CONTEXT.Pipe()
        self._process: Any = _CONTEXT.Process(target=_work, args=(other, self._folder.name), daemon=True)
        self._process.start()
        other.close()
        self.seed = -1
        self.deadline = float("inf")

    def give(self, seed: int) -> None:
        self.seed, self.deadline = seed, time.monotonic() + SECONDS
        self.connection.send(seed)

    def stack(self) -> str:
        return (Path(self._folder.name) / "stack.txt").read_text()

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._folder.cleanup()


def outcomes(seeds: range, processes: int = 2) -> Iterator[tuple[int, Outcome]]:
    """Examine the mutant of each seed; in the order in which they are done."""
    waiting = iter(seeds)
    idle = [_started() for _ in range(min(processes, len(seeds)))]
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
                if (outcome := _outcome(worker)) is not None:
                    yield worker.seed, outcome
                    busy.remove(worker)
                    idle.append(_replaced(worker) if outcome.kind in ("hang", "death", "memory") else worker)
    finally:
        for worker in (*idle, *busy):
            worker.stop()


def _outcome(worker: _Worker) -> Outcome | None:
    """What the worker says, that it died or has taken too long; None while it may go on."""
    if worker.connection.poll():
        try:
            return Outcome(*worker.connection.recv())
        except EOFError:
            return Outcome("death", worker.stack())
    return Outcome("hang", worker.stack()) if time.monotonic() > worker.deadline else None


def _started() -> _Worker:
    """A worker that has imported everything: its first mutant must not pay for that."""
    worker = _Worker()
    worker.connection.send(0)
    worker.connection.recv()
    return worker


def _replaced(worker: _Worker) -> _Worker:
    worker.stop()
    return _started()


def counted(found: list[tuple[int, Outcome]]) -> str:
    """How many of each kind, for a report."""
    return ", ".join(f"{count} {kind}" for kind, count in Counter(outcome.kind for _, outcome in found).most_common())
