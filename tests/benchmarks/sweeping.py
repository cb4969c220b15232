"""What a sweep costs beside plain runs, and what two processes give: `python -m tests.benchmarks.sweeping [--json]`.

Inputs from files, with none of which anything is wrong: read and run one after the other by `stepper.run`, and by what
a process of a sweep does, in one thread, in turn, the best of each. Then whole sweeps with their file, in one process
and in two, beside the plain runs, which two processes share as well: what two cores cost each other is no cost of the
sweep. All in processor time: where two processes take as much as one, two cores take half as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import stepper
from stepper.files.output import ProtectedFiles
from stepper.ir.reader import read
from stepper.sweep.sweep_inputs import InputReader, SweepInput, SweepJob, files_inputs, identity, keyed, stamp
from stepper.sweep.sweep_results import SweepAbout, SweepWriter, read_rows
from stepper.sweep.sweeping import LocalWorkers, Sweep, sweep_chunk
from tests.benchmarks import timing

MODEL = Path(__file__).parents[2] / "sample_models" / "rwkv_overflow" / "model.xml"
PLAIN = "read and run by stepper.run"
WIDTH = 8


def written(folder: Path, count: int, steps: int) -> list[SweepInput]:
    """Sequences of so many steps, quiet enough to overflow nowhere."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    for number in range(count):
        np.savez(folder / f"{number:05}.npz", embedded=generator.uniform(-0.1, 0.1, (steps, WIDTH)).astype(np.float32))
    return files_inputs([str(folder)])


def job_for(breaks: tuple[str, ...]) -> SweepJob:
    job = SweepJob(str(MODEL), InputReader(folder=str(Path.cwd())), breaks=breaks)
    return keyed(job, identity(job, read(MODEL)))


def plain_runs(inputs: Sequence[SweepInput]) -> Callable[[], None]:
    """What has to be done in any case."""
    compiled = stepper.compile_model(stepper.read_model(MODEL))

    def plain() -> None:
        for one in inputs:
            with np.load(one.name) as arrays:
                stepper.run(compiled, dict(arrays))

    plain()
    return plain


def run_plainly(inputs: Sequence[SweepInput]) -> None:
    """The same once, in a process of its own."""
    plain_runs(inputs)


def one_process(folder: Path, rounds: int, count: int, steps: int) -> timing.Report:
    """A chunk beside the plain runs of its inputs."""
    inputs = written(folder / f"steps{steps}", count, steps)
    candidates = {PLAIN: plain_runs(inputs)}
    for breaks in (("nan",), ("nan", "inf")):
        job = job_for(breaks)
        assert {row.outcome for row in sweep_chunk(job, inputs).rows} == {"nothing"}
        candidates[f"swept for {' and '.join(breaks)}"] = lambda job=job: sweep_chunk(job, inputs)  # type: ignore[misc]
    return timing.report(f"{count} inputs of {steps} iterations", timing.side_by_side(candidates, rounds), PLAIN)


def whole(folder: Path, rounds: int, count: int, steps: int) -> timing.Report:
    """A whole sweep with one process and with two."""
    inputs, job = written(folder / "whole", count, steps), job_for(("nan",))
    stamps = [stamp(one, job.reader.folder) for one in inputs]
    about = SweepAbout(str(MODEL), job.reader.folder, count, identity(job, read(MODEL)))

    def sweep(jobs: int) -> None:
        file = folder / f"{jobs}-{time.monotonic_ns()}.sqlite"
        with SweepWriter(file, about, ProtectedFiles()) as writer, LocalWorkers(jobs) as workers:
            Sweep(job, inputs, stamps, writer, workers).run()
        assert len(read_rows(file)) == count

    def shared() -> None:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            list(pool.map(run_plainly, (inputs[::2], inputs[1::2])))

    candidates: dict[str, Callable[[], None]] = {PLAIN: plain_runs(inputs), f"{PLAIN} in 2 processes": shared}
    candidates |= {"swept in 1 process": lambda: sweep(1), "swept in 2 processes": lambda: sweep(2)}
    return timing.report(
        f"a whole sweep of {count} inputs of {steps} iterations", timing.side_by_side(candidates, rounds), PLAIN
    )


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    if quick:
        return [one_process(folder, 1, 3, 12), whole(folder, 1, 5, 12)]
    return [one_process(folder, 15, 60, 12), one_process(folder, 15, 30, 150), whole(folder, 2, 10_000, 150)]


if __name__ == "__main__":
    timing.main(__doc__, reports)
