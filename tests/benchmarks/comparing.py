"""What a comparison costs, beside a plain run: `python -m tests.benchmarks.comparing [--json]`.

The two loops of tests.benchmarks.loops beside themselves, in lock step, with every value of every operation compared;
and beside OpenVINO, which computes each operation and each body once more (reading and compiling included). Then models
as one compares them: the whole process of `stepper compare --with openvino`, and its worker's, beside that of `stepper
run`, in processor time (of systems other than Unix it says nothing) and by the clock, for which nothing else may run on
its two cores. These are samples, the two loops with as many iterations as tests.benchmarks.recording has, and the
networks of tests.real that are scripts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import stepper
from stepper.compare.comparison import RunComparison, compare_models, compare_with
from stepper.compare.references.reference_opening import open_reference
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.machine import Machine
from stepper.openvino.conversion import converted
from stepper.openvino.partner import OPENVINO
from tests.benchmarks import others, recording, timing
from tests.benchmarks.others import Run
from tests.real.recipes import RECIPES, Script

PLAIN, TWO_RUNS, TWO_MODELS, WITH_OPENVINO = (
    "stepper.run",
    "stepper.run of both",
    "two models in lock step",
    "beside OpenVINO",
)
STEPPER_RUN, STEPPER_COMPARE = "stepper run", "stepper compare --with openvino"
SAMPLES = Path(__file__).parents[2] / "sample_models"
COMPARED = ("for_loop", "nested_loop", "growing_tensor", "while_loop", "rwkv_overflow", "date_normaliser")
SIZES = {"newton_iterations": 2_000, "lstm_iterations": 200}


@dataclass(frozen=True)
class Compared:
    """One model, which is run plainly and compared."""

    title: str
    path: Path
    inputs: dict[str, Array]

    def candidates(self) -> dict[str, Run]:
        """Everything that is measured; each checks that nothing differs and that all was compared."""
        ours, theirs = stepper.read_model(self.path), stepper.read_model(self.path)
        inputs = stepper.bind_inputs(ours, self.inputs)

        def plain() -> list[Array]:
            return list(stepper.run(ours, self.inputs).values())

        def lock_step() -> list[Array]:
            return checked(compare_models(ours, theirs, inputs))

        def beside_openvino() -> list[Array]:
            compiled = compile_model(ours)
            return checked(compare_with(Machine(compiled, inputs), open_reference(OPENVINO, compiled, inputs)))

        runs: dict[str, Run] = {PLAIN: plain, TWO_RUNS: lambda: plain() + plain(), TWO_MODELS: lock_step}
        return runs | ({WITH_OPENVINO: beside_openvino} if others.HAS_OPENVINO else {})

    def measure(self, rounds: int) -> timing.Report:
        """The ratios."""
        return timing.report(self.title, timing.side_by_side(self.candidates(), rounds, time.perf_counter), PLAIN)


@dataclass(frozen=True)
class ComparedProcess:
    """A model that the command line runs and compares."""

    title: str
    path: Path
    inputs: Path

    def candidates(self) -> dict[str, Callable[[], object]]:
        """Both commands."""
        given = [str(self.path), "--inputs", str(self.inputs), "--quiet"]
        words = {STEPPER_RUN: ["run", *given], STEPPER_COMPARE: ["compare", *given, "--with", "openvino"]}
        return {title: partial(_process, command) for title, command in words.items()}

    def measure(self, rounds: int) -> timing.Reports:
        """The ratio of processor times, and that of times by the clock: the worker has a core of its own."""
        clocks = {"whole processes": _time_of_processes, "by the clock": time.perf_counter}
        return [
            timing.report(f"{self.title}, {name}", timing.side_by_side(self.candidates(), rounds, clock), STEPPER_RUN)
            for name, clock in clocks.items()
        ]


def samples(names: Sequence[str]) -> Iterator[ComparedProcess]:
    """Samples by their names."""
    for name in names:
        folder = SAMPLES / name
        yield ComparedProcess(f"the sample {name}", folder / "model.xml", folder / "inputs.npz")


def loops(folder: Path) -> Iterator[ComparedProcess]:
    """Both loops."""
    for one in recording.recordings(folder):
        yield _with_inputs(one.title, one.path, one.inputs)


def networks(folder: Path) -> Iterator[ComparedProcess]:
    """The networks that are scripts."""
    for recipe in RECIPES:
        if isinstance(recipe.source, Script):
            path = converted(recipe.source.fetch(folder, recipe.name), shapes=recipe.shapes())
            yield _with_inputs(f"{recipe.name} (random weights)", path, recipe.arrays())


def _with_inputs(title: str, path: Path, inputs: Mapping[str, Array]) -> ComparedProcess:
    given = path.with_suffix(".npz")
    np.savez(given, **inputs)  # type: ignore[arg-type]  # names of inputs, none of which is an option
    return ComparedProcess(title, path, given)


def _process(words: list[str]) -> None:
    command = [sys.executable, "-m", "stepper", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=SAMPLES.parent)


def _time_of_processes() -> float:
    """Processor time of all processes that ended, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def checked(found: RunComparison) -> list[Array]:
    """Nothing, where nothing differs and all was compared."""
    iterations = sum(record.iterations for record in found.observations.loops.values())
    assert not found.differs and found.observations.compared > 2 * iterations, "both sides run the same model"
    return []


def comparisons(folder: Path, **sizes: int) -> Iterator[Compared]:
    """Both loops, with as many iterations as are named."""
    for one in recording.recordings(folder, **(sizes or SIZES)):
        yield Compared(one.title, one.path, one.inputs)


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    sizes = {"newton_iterations": 200, "lstm_iterations": 20} if quick else SIZES
    found = [one.measure(rounds=1 if quick else 5) for one in comparisons(folder, **sizes)]
    if not others.HAS_OPENVINO:
        return found
    processes = list(samples(COMPARED[:1] if quick else COMPARED))
    if not quick:
        processes += [*loops(folder), *networks(folder)]
    return found + [report for one in processes for report in one.measure(rounds=1 if quick else 5)]


if __name__ == "__main__":
    timing.main(__doc__, reports)
