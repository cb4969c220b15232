"""Run a sweep from its inputs to its table: chunks go out, rows come back and into the file.

A single process writes. A chunk is as large as to take most of a second. A chunk that ended a process is done again in
halves, until the input is found that ends its process: it gets a row that says so.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from stepper.element_types import Array, Ints
from stepper.engine.inputs import bind_states
from stepper.errors import LimitReached, StepperError, UsageError, memory_reason
from stepper.files.file_kinds import is_model_path
from stepper.processes.process_messages import ENDED, EndKind, ended_at_its_start, signal_name
from stepper.processes.programs import WorkerProgram
from stepper.processes.starting import cores
from stepper.processes.worker import Limits, Worker
from stepper.records import Record
from stepper.sweep import sweep_results
from stepper.sweep.sweep_inputs import OVERDUE, Prepared, SweepInput, SweepJob
from stepper.sweep.sweep_results import (
    IterationCount,
    LoopSpread,
    PlaceCount,
    StoredRow,
    SweepOutcome,
    SweepRow,
    SweepSummary,
    SweepWriter,
)
from stepper.tensors.number_text import in_columns
from stepper.terminal import say
from stepper.wording import counted, duration_text, excerpt, install_line

# The work of a sweep: inputs in, rows out. A pure function, for whatever process or machine is to carry it out.
#
# The model is compiled once a process. An input runs on a plain machine first, with a debugger only where that gives
# cause; with which rows come out the same as with a debugger for each.


class Judge(Protocol):
    """Runs the model on an input and says what came of it."""

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the row. Raises the errors of a run."""


def judge_of(prepared: Prepared) -> Judge:
    """Return the judge of a job. ModelError where it compares with a model that cannot be opened or compiled."""
    job = prepared.job
    if job.checks:
        from stepper.sweep.judges import CheckJudge

        return CheckJudge(prepared)
    if job.reference:
        from stepper.sweep.comparing_judges import ModelJudge, ReferenceJudge

        return ModelJudge(prepared) if is_model_path(job.reference) else ReferenceJudge(prepared)
    from stepper.sweep.judges import BreakJudge

    return BreakJudge(prepared)


class ChunkResult(Record):
    """Rows of a chunk, in the order of its inputs, and the seconds that they took."""

    rows: tuple[SweepRow, ...]
    seconds: float


def sweep_chunk(job: SweepJob, chunk: Sequence[SweepInput]) -> ChunkResult:
    """Return a row for each input, in their order. ModelError where the model cannot be opened or compiled."""
    begun = time.perf_counter()
    prepared, judge = _prepared(job.key, _Unkeyed(job))
    rows = tuple(_row(prepared, judge, one) for one in chunk)
    return ChunkResult(rows, time.perf_counter() - begun)


class _Unkeyed:
    """A job that is no part of the key of a cache."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unkeyed)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2)
def _prepared(_key: str, held: _Unkeyed) -> tuple[Prepared, Judge]:
    prepared = Prepared(held.job)
    return prepared, judge_of(prepared)


def _row(prepared: Prepared, judge: Judge, one: SweepInput) -> SweepRow:
    name = one.name
    try:
        inputs, given = prepared.job.reader.read(one, prepared.model, prepared.job.seconds)
        states = bind_states(prepared.compiled, given)
    except StepperError as error:
        return sweep_results.error_row(name, error, reads=not isinstance(error, LimitReached))
    except MemoryError as error:
        return sweep_results.limit_row(name, "memory", f"while it was read: {memory_reason(error)}")
    try:
        return judge.row(name, inputs, states)
    except StepperError as error:
        return sweep_results.error_row(name, error)
    except MemoryError as error:
        return sweep_results.limit_row(name, "memory", memory_reason(error))


# Where the work of a sweep is done: in processes of this machine, or on the workers of Dask.
#
# Both are a `concurrent.futures.Executor` of `sweep_chunk`.

DASK = "dask://"
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LONGEST = 200
_PROGRAM = WorkerProgram("the sweep", "stepper.sweep.chunk_service", tuple((variable, "1") for variable in _THREADS))
"""Each process has one thread of linear algebra: the cores are taken by inputs."""
_NO_LIMIT = Limits(1e9)
"""Limits of a chunk: each input in it has a limit of its own."""


class SweepChunk(Struct, frozen=True, tag=True):
    """Return the rows of these inputs. The arrays of the message are what the job gives to all runs.

    They are inputs at the positions `fixed`, and then variables by the names `states`.
    """

    job: SweepJob
    inputs: tuple[SweepInput, ...]
    fixed: Ints
    states: tuple[str, ...]


class Workers(Protocol):
    """An executor and what becomes of it; a context manager."""

    @property
    def executor(self) -> Executor:
        """Return what takes the work."""

    @property
    def count(self) -> int:
        """Return how many workers there are."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_exception: object) -> None:
        """End all work, at once where an exception ends it."""

    def lost(self, error: BaseException) -> ProcessLost | None:
        """Return how the process has ended that was at a future, by the error of that; None for another error."""


class ProcessLost(Exception):
    """Report a process that ended instead of giving an answer; the text says how.

    `is_overdue`: a limit of time of ours ended it.
    """

    def __init__(self, text: str, *, is_overdue: bool = False) -> None:
        super().__init__(text)
        self.is_overdue = is_overdue


_EACH_END = 0.1
"""Seconds in which a thread ends whose process was ended; one that has begun another meanwhile loses that, too."""


class LocalWorkers(ThreadPoolExecutor):
    """Processes of this machine, each with a thread that asks it."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        self.count, self.executor = jobs, self
        self._workers: list[Worker] = []
        self._of_thread = threading.local()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have `sweep_chunk` called in a process."""
        return super().submit(self._swept, *args, **kwargs)

    def _swept(self, job: SweepJob, chunk: Sequence[SweepInput]) -> ChunkResult:
        worker: Worker | None = getattr(self._of_thread, "worker", None)
        if worker is None:
            worker = self._of_thread.worker = Worker(_PROGRAM, memory=0)
            self._workers.append(worker)
        fixed, states = job.reader.fixed, job.reader.states
        bare = replace(job, reader=replace(job.reader, fixed={}, states={}))
        act = SweepChunk(bare, tuple(chunk), tuple(fixed), tuple(states))
        arrays = [*fixed.values(), *states.values()]
        found = worker.ask_for(ChunkResult, act, arrays, subject="inputs", limits=_NO_LIMIT)[0]
        for line in worker.printed().splitlines():  # by a function of --generate
            say(line, file=sys.stderr)
        return found

    def __exit__(self, _kind: object = None, error: object = None, *_rest: object) -> None:
        self.shutdown(wait=error is None, cancel_futures=True)  # first: whoever is free takes what waits
        for thread in self._threads:
            while thread.is_alive():
                self._close()
                thread.join(_EACH_END)
        self._close()

    def _close(self) -> None:
        for worker in self._workers:
            worker.close()

    def lost(self, error: BaseException) -> ProcessLost | None:
        """Return how a process has ended; one that cannot begin is no lost one."""
        if not isinstance(error, ENDED) or ended_at_its_start(error):
            return None
        end = error.end  # type: ignore[attr-defined]  # each of ENDED has it
        if end.kind is EndKind.EXIT and end.code == OVERDUE:
            return ProcessLost("an operation did not come to its end within the limit of time", is_overdue=True)
        how = signal_name(end.code) if end.kind is EndKind.SIGNAL else f"exit code {end.code}"
        return ProcessLost(f"the process that ran it ended{f' ({how})' if end.code else ''}")


class DaskWorkers:
    """The workers of a Dask cluster, which see the same files under the same paths."""

    def __init__(self, address: str) -> None:
        self._address = f"tcp://{address.removeprefix(DASK)}"
        self.count = 1

    def __enter__(self) -> Self:
        try:
            from distributed import Client
        except ImportError:
            raise UsageError(f"--on dask://... needs Dask: {install_line('dask')}") from None
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

    def __exit__(self, *_exception: object) -> None:
        with contextlib.suppress(Exception):  # a scheduler that has gone away
            self.executor.shutdown(wait=False)
            self._client.close()

    def lost(self, error: BaseException) -> ProcessLost | None:
        """Return the end of the workers that were given the work."""
        has_died = type(error).__name__ in ("KilledWorker", "NoValidWorkerError")
        # A worker may die while its result is on the way: Dask's executor takes that result apart like an error.
        was_on_the_way = isinstance(error, TypeError) and ChunkResult.__name__ in str(error)
        return ProcessLost("the workers that ran it died") if has_died or was_on_the_way else None


def workers_of(on: str, jobs: int | None) -> Workers:
    """Return the workers that `--on` and `--jobs` mean. UsageError for an address that is none."""
    if not on:
        return LocalWorkers(jobs or cores())
    if not on.startswith(DASK) or ":" not in on.removeprefix(DASK):
        raise UsageError(f"--on {on}: expected dask://HOST:PORT, the address of a scheduler of Dask")
    if jobs is not None:
        raise UsageError("--jobs is for processes of this machine; with --on there are as many as Dask has")
    return DaskWorkers(on)


_CHUNK_SECONDS = 0.7
_LARGEST_CHUNK = 2000
_AHEAD = 2
"""Chunks for each worker: the one that it is at, and the next."""
_RATE_OVER = 20.0
"""Seconds over which the rate is taken."""


class SweepProgress(Record):
    """How far a sweep has come: inputs that are done, of how many, a second, seconds left (None: not known yet)."""

    done: int
    count: int
    rate: float
    left: float | None
    outcomes: dict[SweepOutcome, int]


class Sweep:
    """Run a sweep: `run` it once, in a block of the writer and the workers."""

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
        self._times: deque[tuple[float, int]] = deque()
        """When how many were done, from the first on: the workers begin before that."""
        self._at_work: dict[Future[ChunkResult], list[int]] = {}
        self._again: list[list[int]] = []
        """Chunks with which a process ended, in halves."""
        self._alone: list[int] = []
        """Inputs with which a process ended: each has another, last, when no other input can end that."""
        self._had_one: set[int] = set()

    @property
    def done(self) -> int:
        """Return how many inputs have a row."""
        return self._done

    def run(self) -> None:
        """Work until every input has a row. KeyboardInterrupt leaves what is done in the file."""
        self._tell()
        while self._waiting or self._again or self._alone or self._at_work:
            self._send()
            finished, _ = wait(self._at_work, return_when=FIRST_COMPLETED)
            for future in finished:
                numbers = self._at_work.pop(future)
                error = future.exception()
                if error is None:
                    found = future.result()
                    self._seconds_each = max(found.seconds / len(numbers), 1e-6)
                    self._store(zip(numbers, found.rows, strict=True))
                elif (lost := self._workers.lost(error)) is not None:
                    self._do_again(numbers, lost)
                else:
                    raise error
            self._tell()

    def _send(self) -> None:
        while (self._waiting or self._again) and len(self._at_work) < _AHEAD * self._workers.count:
            size = min(self._chunk_size(), len(self._waiting))
            self._submit(self._again.pop(0) if self._again else [self._waiting.popleft() for _ in range(size)])
        if self._alone and not self._at_work:
            self._submit([self._alone.pop(0)])

    def _submit(self, numbers: list[int]) -> None:
        chunk = [self._inputs[number - 1] for number in numbers]
        self._at_work[self._workers.executor.submit(sweep_chunk, self._job, chunk)] = numbers

    def _chunk_size(self) -> int:
        """Return how many inputs take as long as a chunk should; at the end all workers get a share of the rest."""
        if not self._seconds_each:
            return 1
        wanted = max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / self._seconds_each)))
        return max(1, min(wanted, -(-len(self._waiting) // (_AHEAD * self._workers.count))))

    def _store(self, pairs: Iterable[tuple[int, SweepRow]]) -> None:
        rows = [StoredRow(number, row, self._inputs[number - 1], self._stamps[number - 1]) for number, row in pairs]
        self._writer.add(rows)
        self._done += len(rows)
        self._outcomes.update(stored.row.outcome for stored in rows)

    def _do_again(self, numbers: list[int], lost: ProcessLost) -> None:
        """Do inputs again with which a process ended: each half of them, or the one alone."""
        if len(numbers) > 1:
            half = len(numbers) // 2
            self._again += [numbers[:half], numbers[half:]]
        elif not (lost.is_overdue or numbers[0] in self._had_one):
            self._had_one.update(numbers)
            self._alone += numbers
        else:
            name = self._inputs[numbers[0] - 1].name
            row = (
                sweep_results.limit_row(name, "time", str(lost))
                if lost.is_overdue
                else SweepRow(name, SweepOutcome.KILLED, "process", text=str(lost))
            )
            self._store([(numbers[0], row)])

    def _tell(self) -> None:
        now = time.monotonic()
        times = self._times
        if self._outcomes or times:
            times.append((now, self._done))
        while len(times) > 2 and now - times[0][0] > _RATE_OVER:
            times.popleft()
        if self._progress is None:
            return
        begun, before = times[0] if times else (now, self._done)
        seconds = now - begun
        rate = (self._done - before) / seconds if begun < now and seconds else 0.0
        left = (len(self._inputs) - self._done) / rate if rate else None
        self._progress(SweepProgress(self._done, len(self._inputs), rate, left, dict(self._outcomes)))


# The words of a sweep: its report, a histogram of iterations and operations, and the line of progress.

_MOST_COLUMNS = 8
_MOST_PLACES = 20
_MOST_LENGTHS = 6
_MOST_LOOPS = 12
_MOST_NUMBERS = 8
_LONGEST_TEXT = 60

_OTHERS = (SweepOutcome.ERROR, SweepOutcome.LIMIT, SweepOutcome.UNREADABLE, SweepOutcome.KILLED)


def report_lines(summary: SweepSummary, file: str) -> list[str]:
    """Return the report of a sweep; `file` is named in the command that opens an input."""
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    left = "" if summary.done == summary.count else f" ({summary.count - summary.done:,} not done yet)"
    lines = [f"{counted(summary.done, 'input')}{left}: {counts or 'nothing yet'}"]
    lines += _histogram(summary.places)
    lines += _loop_lines(summary)
    first = summary.places[0].first if summary.places else summary.unusual[0] if summary.unusual else None
    if first is not None:
        lines.append(f"open one: stepper sweep {file} --open {first}")
    return lines


def place_title(place: PlaceCount) -> str:
    """Return what shows, and in which layer: `nan in Divide 'wkv'`."""
    what = place.what if place.outcome not in _OTHERS else " ".join(dict.fromkeys((str(place.outcome), place.what)))
    layer = f"{place.type} '{excerpt(place.operation, _LONGEST)}'" if place.operation or place.type else ""
    return f"{what} in {layer}" if layer else what


def _histogram(places: Sequence[PlaceCount]) -> list[str]:
    if not places:
        return []
    shown = places[:_MOST_PLACES]
    columns = _columns(shown)
    rows = [["", *(title for title, _ in columns), "inputs", "first"]]
    for place in shown:
        sums = [_sum(place.iterations, low, high) for _, (low, high) in columns]
        rows.append([place_title(place), *sums, f"{place.inputs:,}", str(place.first)])
    by = ", by iteration" if any(title != "-" for title, _ in columns) else ""
    lines = [f"what shows{by}", *(f"  {line}" for line in in_columns(rows, right=1))]
    if len(places) > len(shown):
        lines.append(f"  and {counted(len(places) - len(shown), 'more place')}")
    return lines


Span = tuple[int | None, int | None]


def _columns(places: Sequence[PlaceCount]) -> list[tuple[str, Span]]:
    """Return titles and ranges of iterations: each iteration, or as many ranges as there is room for."""
    known = sorted({one.iteration for place in places for one in place.iterations if one.iteration is not None})
    outside = any(one.iteration is None for place in places for one in place.iterations)
    found: list[tuple[str, Span]] = [("-", (None, None))] if outside else []
    if len(known) <= _MOST_COLUMNS:
        return found + [(f"{number:,}", (number, number)) for number in known]
    low, high = known[0], known[-1]
    step = -(-(high - low + 1) // _MOST_COLUMNS)
    bounds = [(begin, min(begin + step - 1, high)) for begin in range(low, high + 1, step)]
    return found + [(f"{begin:,}-{end:,}" if begin < end else f"{begin:,}", (begin, end)) for begin, end in bounds]


def _sum(counts: Sequence[IterationCount], low: int | None, high: int | None) -> str:
    if low is None or high is None:
        total = sum(one.inputs for one in counts if one.iteration is None)
    else:
        total = sum(one.inputs for one in counts if one.iteration is not None and low <= one.iteration <= high)
    return f"{total:,}" if total else "."


def _loop_lines(summary: SweepSummary) -> list[str]:
    if not summary.loops:
        return []
    lines = ["iterations of runs that came to their end"]
    lines += [f"  {_spread(one)}" for one in summary.loops[:_MOST_LOOPS]]
    if len(summary.loops) > _MOST_LOOPS:
        lines.append(f"  and {counted(len(summary.loops) - _MOST_LOOPS, 'more loop')}")
    if summary.unusual:
        numbers = ", ".join(str(number) for number in summary.unusual[:_MOST_NUMBERS])
        more = ", ..." if len(summary.unusual) > _MOST_NUMBERS else ""
        lines.append(f"  unlike most: {counted(len(summary.unusual), 'input')} ({numbers}{more})")
    return lines


def _spread(spread: LoopSpread) -> str:
    path = spread.path.removeprefix("model > ")
    lengths = spread.lengths
    if len(lengths) == 1:
        only = lengths[0]
        return f"{path}: {only.iterations:,} with each of {counted(only.inputs, 'input')}"
    shown = lengths[:_MOST_LENGTHS]
    parts = [f"{one.iterations:,} with {counted(one.inputs, 'input')}" for one in shown]
    fewest = min(one.iterations for one in lengths)
    most = max(one.iterations for one in lengths)
    rest = f", ... ({fewest:,} to {most:,})" if len(lengths) > len(shown) else ""
    return f"{path}: {', '.join(parts)}{rest}"


def progress_text(progress: SweepProgress) -> str:
    """Return how far a sweep has come, in one line."""
    share = 100 * progress.done // max(progress.count, 1)
    text = f"{progress.done:,} of {progress.count:,} ({share} %)"
    if progress.left is not None:
        text += f", {progress.rate:,.0f} a second, {duration_text(progress.left)} left"
    found = [
        f"{count:,} {outcome}" for outcome, count in progress.outcomes.items() if outcome is not SweepOutcome.NOTHING
    ]
    return f"{text}; {', '.join(found)}" if found else text
