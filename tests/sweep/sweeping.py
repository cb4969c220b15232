"""Sweeps in this process, for tests: a model, jobs, and workers that are none."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Self

import numpy as np

from stepper.files.output import ProtectedFiles
from stepper.ir.reader import read
from stepper.sweep.sweep_inputs import InputReader, SweepInput, SweepJob, identity, stamp
from stepper.sweep.sweep_results import StoredRow, SweepAbout, SweepWriter, read_rows
from stepper.sweep.sweeping import ProcessLost, Sweep, Workers
from tests.models import Graph, carried, joined, last, sliced


class Here(Executor):
    """Does the work when it is handed over."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class NoProcesses:
    """Workers that are this process."""

    count = 1

    def __init__(self, executor: Executor | None = None) -> None:
        self.executor: Executor = executor or Here()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def lost(self, error: BaseException) -> ProcessLost | None:
        return error if isinstance(error, ProcessLost) else None


def balances(folder: Path, steps: int = 5) -> Path:
    """A loop that divides what it carries by each piece of x: 0/0 is NaN in the iteration of the piece.

    balance[i] = balance[i - 1] / x[i] - x[i], from `start`; and while its condition holds: balance < 1000.
    """
    graph = Graph()
    x = graph.parameter("x", dims=(steps, 2))
    start = graph.parameter("start", dims=(1, 2))
    body = graph.body()
    piece, balance = body.parameter("piece", dims=(1, 2)), body.parameter("balance", dims=(1, 2))
    ratio = body.apply("Divide", balance, piece, name="ratio")
    new = body.apply("Subtract", ratio, piece, name="new_balance")
    top = body.apply("ReduceMax", new, body.constant([0, 1], np.int64), dims=(), name="top")
    less = body.apply("Less", top, body.constant(1000.0), type="boolean", dims=(), name="is_less")
    not_nan = body.apply("Equal", top, top, type="boolean", dims=(), name="is_number")
    nan = body.apply("LogicalNot", not_nan, type="boolean", dims=(), name="is_nan")
    going = body.result(body.apply("LogicalOr", less, nan, type="boolean", dims=(), name="goes_on"), "going")
    out = body.result(new, "new_result")
    values = graph.loop(
        "months", body, steps, True, [sliced(x, piece), carried(start, balance, out)], [last(out), joined(out)], going
    )
    for value, name in zip(values, ("final", "course"), strict=True):
        graph.result(value, name)
    return graph.write(folder)


def written_inputs(folder: Path, count: int, steps: int = 5) -> list[str]:
    """Archives for `balances`: each third has a 0 behind a 0 in one place, each seventh grows beyond 1000."""
    paths = []
    for number in range(count):
        x, start = np.full((steps, 2), 2.0, np.float32), np.full((1, 2), 8.0, np.float32)
        if number % 3 == 2:
            x[number % steps, 1] = 0.0
            start[0, 1] = 0.0
        elif number % 7 == 3:
            x[1] = 1e-4
        path = folder / f"in{number:03}.npz"
        np.savez(path, x=x, start=start)
        paths.append(str(path))
    return paths


def job_of(model: Path, **options: Any) -> SweepJob:
    reader = options.pop("reader", None) or InputReader(folder=str(Path.cwd()))
    return SweepJob(str(model), reader, key=f"{model} {sorted(options.items())} {reader!r}", **options)


def swept(job: SweepJob, inputs: Sequence[SweepInput], file: Path, workers: Workers | None = None) -> list[StoredRow]:
    """The rows of a sweep that goes on from what the file has."""
    stamps = [stamp(one, job.reader.folder) for one in inputs]
    about = SweepAbout(job.model, job.reader.folder, len(inputs), identity(job, read(job.model)))
    with SweepWriter(file, about, ProtectedFiles()) as writer, workers or NoProcesses() as at_work:
        Sweep(job, inputs, stamps, writer, at_work).run()
    return read_rows(file)
