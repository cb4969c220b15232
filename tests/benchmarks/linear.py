"""Whether a loop's time is linear in its iterations: `python -m tests.benchmarks.linear [--json]`.

The time for one iteration must not grow with their number: neither by the pieces of the scan output, nor by what the
run remembers. Measured for a flat loop and for one with another loop in its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

import stepper
from stepper.element_types import Array
from stepper.ir.model import Model
from tests.benchmarks import models, timing

INPUTS = {"number": np.array([2], np.float32), "guess": np.array([1], np.float32)}
ITERATIONS = (1_000, 10_000, 100_000)
INNER = 2


def loops(folder: Path, iterations: Sequence[int], inner: int) -> dict[int, Model]:
    """The loop with each number of iterations, every one with `inner` iterations of another loop (0: without it)."""
    return {count: stepper.read_model(models.newton_model(folder, count, inner)) for count in iterations}


def run(model: Model) -> list[Array]:
    """All outputs: the root, and the roots on the way."""
    return list(stepper.run(model, INPUTS).values())


def check(model: Model, iterations: int) -> None:
    """Raise AssertionError where the outputs are not those of the loop by hand."""
    expected = models.newton_by_hand(*INPUTS.values(), iterations)
    for given, wanted in zip(run(model), expected, strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-5)


def measure(folder: Path, iterations: Sequence[int], rounds: int) -> timing.Reports:
    """The time for one iteration, as a ratio to that in the shortest run."""
    reports = []
    for title, inner in (("flat loop", 0), (f"loop with a loop of {INNER} iterations in its body", INNER)):
        found = loops(folder, iterations, inner)
        for count, model in found.items():
            check(model, count)
        candidates = {f"{count} iterations": partial(run, model) for count, model in found.items()}
        seconds = timing.side_by_side(candidates, rounds)
        each = {name: value / count for (name, value), count in zip(seconds.items(), found, strict=True)}
        reports.append(timing.report(f"One iteration of a {title}", each, next(iter(each))))
    return reports


def reports(folder: Path, *, quick: bool) -> timing.Reports:
    """Everything, measured."""
    return measure(folder, ITERATIONS[:2] if quick else ITERATIONS, rounds=1 if quick else 5)


if __name__ == "__main__":
    timing.main(__doc__, reports)
