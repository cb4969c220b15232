"""Random loops on trial: each is built, run by the runtime and stepped by hand, and kept if both agree.

The trial happens in a process of its own, because some models make the runtime crash or hang:
`python -m tests.conformance.candidates FIRST LAST FOLDER` writes the models that pass to the folder, and to the
standard output a line of JSON when a seed begins and one with what came of it.
"""

from __future__ import annotations

import faulthandler
import json
import random
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from stepper.diagnosis.hunt.random_loops import build, inner_graphs
from tests.conformance.agreement import disagreement
from tests.conformance.native_stepping import NotSteppable, Stepper
from tests.conformance.runtime import core, infer

PROJECT = Path(__file__).parents[2]
"""The folder from which the tests can be imported."""

PATIENCE = 60
"""Seconds after which a seed counts as hanging."""

MARGIN = 4.0
"""How much closer than in the tests the runtime and the reference kernels have to agree."""


@dataclass(frozen=True)
class Verdict:
    """What came of one seed; no reason to drop it means that it is kept."""

    seed: int
    reason: str | None = None
    detail: str = ""
    description: str = ""
    kinds: list[str] = field(default_factory=list)
    iterations: dict[str, list[int]] = field(default_factory=dict)


def first_disagreement(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str | None:
    """The first output that is not within the margin."""
    for place, (got, wanted) in enumerate(zip(actual, expected, strict=True)):
        if problem := disagreement(got, wanted, MARGIN):
            return f"output {place}: {problem}"
    return None


def nudged(seed: int, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The inputs with f32 data changed by a millionth: what jumps at this hangs on rounding."""
    rng = random.Random(seed)
    return [
        array * np.array([1 + rng.choice((-1e-6, 1e-6)) for _ in range(array.size)], np.float32).reshape(array.shape)
        if array.dtype == np.float32
        else array
        for array in inputs
    ]


def examine(seed: int, folder: Path) -> Verdict:
    """Build the model of this seed and try it; write it to the folder if it is kept."""
    try:
        candidate = build(seed)
    except Exception as error:
        return Verdict(seed, "not built", " ".join(str(error).split()))
    path = folder / f"{seed}.xml"
    ov.serialize(candidate.model, str(path), str(path.with_suffix(".bin")))
    kinds = sorted(kinds_of(candidate.model))
    verdict = tried(seed, path, candidate.inputs, ", ".join(kinds))
    if verdict.reason is not None:
        discard(path)
    return Verdict(**{**asdict(verdict), "description": ", ".join(kinds), "kinds": kinds})


def kinds_of(graph: Any, path: tuple[str, ...] = ()) -> set[str]:
    """The subgraph operations of a model, each with those around it."""
    found: set[str] = set()
    for node in graph.get_ordered_ops():
        for body in inner_graphs(node):
            inner = (*path, node.get_type_name())
            found |= {" > ".join(inner)} | kinds_of(body, inner)
    return found


def tried(seed: int, path: Path, inputs: list[np.ndarray], description: str) -> Verdict:
    """Run the written model both ways; beside it, write inputs and outputs if both agree."""
    try:
        outputs = infer(path, inputs)
    except RuntimeError as error:
        return Verdict(seed, "refused by the runtime", " ".join(str(error).split()))
    stepper = Stepper()
    model = core().read_model(str(path))
    try:
        stepped = stepper.run(model, inputs)
        again = Stepper().run(model, nudged(seed, inputs))
    except (NotSteppable, RuntimeError) as error:
        return Verdict(seed, "not steppable", " ".join(str(error).split()))
    if problem := first_disagreement(outputs, stepped):
        return Verdict(seed, "stepping disagrees", f"{problem}; {description}")
    if problem := first_disagreement(again, stepped):
        return Verdict(seed, "hangs on rounding", problem)
    if not all(np.isfinite(array).all() for array in outputs):
        return Verdict(seed, "not finite")
    arrays = {f"in_{place}": array for place, array in enumerate(inputs)}
    arrays |= {f"out_{place}": array for place, array in enumerate(outputs)}
    np.savez(path.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]
    return Verdict(seed, iterations=stepper.iterations)


def main(first: int, last: int, folder: Path) -> None:
    """Examine the seeds in order, telling on the standard output which one has begun and what came of it."""
    for seed in range(first, last):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        print(json.dumps({"seed": seed}), flush=True)
        print(json.dumps(asdict(examine(seed, folder))), flush=True)


def collect(first: int, last: int, folder: Path) -> Generator[Verdict, None, None]:
    """The verdicts on the seeds from `first` to before `last`, whatever happens to the process that examines them."""
    while first < last:
        command = [sys.executable, "-m", "tests.conformance.candidates", str(first), str(last), str(folder.resolve())]
        begun = None
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    told = json.loads(line)
                    begun = told["seed"] if len(told) == 1 else None
                    first = told["seed"] + 1
                    if begun is None:
                        yield Verdict(**told)
            except GeneratorExit:
                process.terminate()
                raise
        if begun is not None:
            discard(folder / f"{begun}.xml")
            yield Verdict(begun, "crashed or hung", f"exit code {process.returncode}")
        elif process.returncode:
            raise RuntimeError(f"the examining process ended with code {process.returncode} before seed {first}")


def discard(path: Path) -> None:
    """Remove what was written of a model."""
    for suffix in (".xml", ".bin", ".npz"):
        path.with_suffix(suffix).unlink(missing_ok=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
