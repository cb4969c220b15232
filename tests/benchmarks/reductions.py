"""How small `stepper reduce` makes models with a known fault, and in which time.

    python -m tests.benchmarks.reductions [MODEL.xml INPUTS.npz ...]

The cases are those of the first trial of delta debugging (whose results stand beside them), samples, and random loops
on which OpenVINO and our engine disagree, by their seeds. Each case is written, and its script is run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stepper.diagnosis.hunt.hunt_service import PROGRAM, BuildModel, BuiltModel, Profile
from stepper.diagnosis.reduce.reduced_case import case_targets, write_case
from stepper.diagnosis.reduce.reducing import reduce_model
from stepper.diagnosis.reduce.trials import FaultCondition, RunSettings, StopsAt
from stepper.files.output import ProtectedFiles
from stepper.processes.worker import Limits, Worker
from stepper.wording import counted

SAMPLES = Path(__file__).parents[2] / "sample_models"
SEEDS = (266, 322, 355, 657)
"""Random loops of the profile `loops` on which OpenVINO disagrees."""


class Case(NamedTuple):
    """A model with a fault; `before` is what the first trial made of it."""

    title: str
    path: Path
    inputs: dict[str | int, Any]
    condition: FaultCondition | None = None
    rules: str = "spec"
    before: str = ""


def of_the_runtime(folder: Path) -> Iterator[Case]:
    """Models on which the runtime is wrong, each for one reason."""
    import openvino

    from tests.conformance import runtime_faults

    random = np.random.default_rng(1)
    models = (
        ("attention over 20 keys", runtime_faults.attention(20), "42 -> 14 in 49 s"),
        ("slices that nobody reads", runtime_faults.unused_slices(), ""),
        ("a square constant read twice, in a loop", runtime_faults.shared_square(in_a_loop=True), ""),
    )
    for number, (title, model, before) in enumerate(models):
        path = folder / f"fault{number}.xml"
        openvino.serialize(model, path)
        inputs = {k: random.standard_normal(list(one.shape)).astype(np.float32) for k, one in enumerate(model.inputs)}
        yield Case(title, path, dict(inputs), before=before)


def random_loops(folder: Path) -> Iterator[Case]:
    """Random loops, as a hunt makes them."""
    worker = Worker(PROGRAM, memory=4 * 2**30)
    try:
        for seed in SEEDS:
            path = folder / f"seed{seed}.xml"
            act = BuildModel(Profile.LOOPS, seed, str(path))
            _, arrays = worker.ask_for(BuiltModel, act, subject=f"seed {seed}", limits=Limits(60))
            before = "24 to 41 -> 1 to 6 in 5 to 7 s"
            yield Case(f"random loop {seed}", path, dict(enumerate(arrays)), rules="openvino", before=before)
    finally:
        worker.close()


def samples() -> Iterator[Case]:
    """Faults of samples."""
    folder = SAMPLES / "rwkv_overflow"
    inputs: dict[str | int, Any] = dict(np.load(folder / "inputs.npz"))
    yield Case("rwkv_overflow, --break nan", folder / "model.xml", inputs, StopsAt("nan"))


def row(case: Case, folder: Path) -> str:
    """Reduce, write, run the script; a line of the table."""
    found = reduce_model(case.path, case.inputs, case.condition, RunSettings(case.rules, 1000))
    if found is None:
        return f"| {case.title} | {case.before} | no fault here | | | |"
    folder.mkdir()
    write_case(found, case_targets(folder, ProtectedFiles(), "-o"), title=case.path.name)
    script = subprocess.run([sys.executable, folder / "reproduce.py"], capture_output=True, timeout=120, check=False)
    kinds = ", ".join(dict.fromkeys(layer.type for _address, layer in found.model.operations()))
    before, after = found.operations
    size = f"{before} -> {after} ({kinds}) in {found.seconds:.1f} s, {counted(found.trials, 'trial')}"
    needs = "OpenVINO alone" if b"import stepper" not in (folder / "reproduce.py").read_bytes() else "stepper"
    shown = f"{needs}, exit code {script.returncode}"
    return f"| {case.title} | {case.before} | {size} | {found.fault.kind} | {shown} |"


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("given", nargs="*", help="models and their inputs, in pairs")
    given = parser.parse_args().given
    print("| case | the first trial | now | fault | reproduce.py needs |", "|---|---|---|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = [
            Case(Path(model).stem, Path(model), dict(np.load(inputs)))
            for model, inputs in zip(given[::2], given[1::2], strict=True)
        ]
        cases = iter(pairs) if pairs else (*samples(), *of_the_runtime(folder), *random_loops(folder))
        for number, case in enumerate(cases):
            print(row(case, folder / f"case{number}"), flush=True)


if __name__ == "__main__":
    main()
