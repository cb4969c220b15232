"""A sweep from its inputs to its table: chunks go out, rows come back and into the file, in one process that writes.

A chunk is as large as to take most of a second. What was under way when a process ended is done again in processes of
their own, in halves, until the one input is found that ends its process: it gets a row that says so.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Final

from msgspec import Struct

from stepper.sweep import row_making
from stepper.sweep.executors import ProcessLost, Workers
from stepper.sweep.inputs import SweepInput
from stepper.sweep.job import SweepJob
from stepper.sweep.rows import SweepOutcome, SweepRow
from stepper.sweep.table_file import StoredRow, SweepWriter
from stepper.sweep.worker import ChunkResult, sweep_chunk

_CHUNK_SECONDS: Final = 0.7
_LARGEST_CHUNK: Final = 2000
_AHEAD: Final = 2
"""Chunks for each worker: the one that it is at, and the next."""
_RATE_OVER: Final = 20.0
"""Seconds over which the rate is taken."""


class SweepProgress(Struct, frozen=True):
    """How far a sweep has come: inputs that are done, of how many, a second, seconds left (None: not known yet)."""

    done: int
    count: int
    rate: float
    left: float | None
    outcomes: dict[SweepOutcome, int]


class Sweep:
    """One sweep under way: `run` it once, in a block of the writer and the workers."""

    def __init__(
        self,
        job: SweepJob,
        inputs: Sequence[SweepInput],
        stamps: Sequence[str],
        writer: SweepWriter,
        workers: Workers,
        progress: Callable[[SweepProgress], object] | None = None,
    ) -> None:
        self._job, self._inputs, self._stamps = job, inputs, stamps
        self._writer, self._workers, self._progress = writer, workers, progress
        kept = writer.kept(inputs, stamps)
        self._waiting = deque(number for number in range(1, len(inputs) + 1) if number not in kept)
        self._done = len(kept)
        self._seconds_each = 0.0
        self._outcomes: Counter[SweepOutcome] = Counter()
        self._times: deque[tuple[float, int]] = deque([(time.monotonic(), self._done)])
        self._at_work: dict[Future[ChunkResult], list[int]] = {}

    @property
    def done(self) -> int:
        """Return how many inputs have a row."""
        return self._done

    def run(self) -> None:
        """Work until every input has a row. KeyboardInterrupt leaves what is done in the file."""
        self._tell()
        while self._waiting or self._at_work:
            self._send()
            finished, _ = wait(self._at_work, return_when=FIRST_COMPLETED)
            lost: list[int] = []
            for future in finished:
                numbers = self._at_work.pop(future)
                error = future.exception()
                if error is None:
                    self._take(numbers, future.result())
                elif self._workers.is_lost(error):
                    lost += numbers
                else:
                    raise error
            if lost:
                self._do_again(lost)
            self._tell()

    def _send(self) -> None:
        while self._waiting and len(self._at_work) < _AHEAD * self._workers.count:
            size = self._chunk_size()
            numbers = [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]
            try:
                self._at_work[self._submitted(numbers)] = numbers
            except Exception as error:  # of a pool that broke in between
                if not self._workers.is_lost(error):
                    raise
                self._waiting.extendleft(reversed(numbers))
                return

    def _submitted(self, numbers: Sequence[int]) -> Future[ChunkResult]:
        chunk = [self._inputs[number - 1] for number in numbers]
        return self._workers.executor.submit(sweep_chunk, self._job, chunk)

    def _chunk_size(self) -> int:
        """Return how many inputs take as long as a chunk should; at the end all workers get a share of the rest."""
        if not self._seconds_each:
            return 1
        wanted = max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / self._seconds_each)))
        return max(1, min(wanted, -(-len(self._waiting) // (_AHEAD * self._workers.count))))

    def _take(self, numbers: Sequence[int], found: ChunkResult) -> None:
        self._seconds_each = max(found.seconds / len(numbers), 1e-6)
        self._store(zip(numbers, found.rows, strict=True))

    def _store(self, pairs: Iterable[tuple[int, SweepRow]]) -> None:
        rows = [StoredRow(number, row, self._inputs[number - 1], self._stamps[number - 1]) for number, row in pairs]
        self._writer.add(rows)
        self._done += len(rows)
        self._outcomes.update(stored.row.outcome for stored in rows)

    def _do_again(self, lost: list[int]) -> None:
        """Do again what was under way when a process ended."""
        for future in [one for one in self._at_work if one.done() and self._is_lost(one)]:
            lost += self._at_work.pop(future)
        if self._at_work:
            wait(self._at_work)
            for future, numbers in list(self._at_work.items()):
                if self._is_lost(future):
                    lost += numbers
                else:
                    self._take(numbers, future.result())
            self._at_work.clear()
        self._workers.ensure_begins()  # else each input would seem to end its process
        self._workers.renewed()
        self._rescue(sorted(lost))

    def _rescue(self, numbers: list[int]) -> None:
        """Do inputs again in a process of their own; where it ends, each half of them."""
        chunk = [self._inputs[number - 1] for number in numbers]
        try:
            found: ChunkResult = self._workers.alone(sweep_chunk, self._job, chunk)
        except ProcessLost as lost:
            if len(numbers) > 1:
                half = len(numbers) // 2
                self._rescue(numbers[:half])
                self._rescue(numbers[half:])
                return
            name = chunk[0].name
            is_time = lost.is_overdue
            row = row_making.limit_row(name, "time", str(lost)) if is_time else row_making.killed_row(name, str(lost))
            self._store([(numbers[0], row)])
        else:
            self._take(numbers, found)
        self._tell()

    def _is_lost(self, future: Future[ChunkResult]) -> bool:
        error = future.exception()
        return error is not None and self._workers.is_lost(error)

    def _tell(self) -> None:
        now = time.monotonic()
        self._times.append((now, self._done))
        while len(self._times) > 2 and now - self._times[0][0] > _RATE_OVER:
            self._times.popleft()
        if self._progress is None:
            return
        (begun, before), seconds = self._times[0], now - self._times[0][0]
        rate = (self._done - before) / seconds if begun < now and seconds else 0.0
        left = (len(self._inputs) - self._done) / rate if rate else None
        self._progress(SweepProgress(self._done, len(self._inputs), rate, left, dict(self._outcomes)))
