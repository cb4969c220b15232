"""Random healthy loops with a random edit of the catalogue, repaired: `python -m tests.repair.random_mistakes 200`."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino

from stepper.diagnosis.hunt.random_loops import build
from stepper.element_types import Array
from stepper.engine.inputs import bind_inputs
from stepper.errors import StepperError
from stepper.ir.model import Model
from stepper.openvino.opening import open_model
from stepper.repair.edit import RepairEdit, patched
from stepper.repair.expected_outputs import RepairReference, other_inputs
from stepper.repair.fix_texts import edits_text
from stepper.repair.repairing import FixStatus, edit_facts, repaired
from stepper.repair.replay import FAILED, GivenExample, Replayer
from stepper.repair.search import candidates, tried
from stepper.repair.writing import patched_ir
from stepper.tensors.tolerances import Tolerances

MOST_PRICE = 3.0
TRIALS = 400
EXAMPLES = 2


@dataclass(frozen=True)
class Outcome:
    """One loop: the mistake that was put in, and what was found."""

    seed: int
    mistake: str
    found: str
    seconds: float
    is_repaired: bool
    is_equal_elsewhere: bool


def outcomes(first: int, count: int, folder: Path, seconds: float = 60.0) -> Iterator[Outcome]:
    """Yield what becomes of the random loops from a seed on, each with a random edit that changes its outputs."""
    seed, found = first, 0
    while found < count:
        made = _faulty(seed, folder)
        if made is not None:
            found += 1
            yield _outcome(seed, *made, seconds)
        seed += 1


def _faulty(seed: int, folder: Path) -> tuple[Model, Model, str, tuple[Array, ...]] | None:
    """Return a healthy model, one with a mistake, the mistake in words, and inputs; None if there is none."""
    path = folder / f"{seed}.xml"
    built = build(seed)
    openvino.serialize(built.model, str(path), str(path.with_suffix(".bin")))
    healthy, rng = open_model(str(path)), random.Random(seed)
    inputs = tuple(bind_inputs(healthy, {str(index): value for index, value in enumerate(built.inputs)}))
    try:
        outputs = _outputs(healthy, inputs)
        replayer = Replayer(healthy, (GivenExample("inputs", inputs, outputs),), Tolerances(exact=True))
        edits = [one for one in candidates(replayer) if one.unknowns is None and one.price <= MOST_PRICE]
    except StepperError:
        return None
    for edit in rng.sample(edits, min(len(edits), TRIALS)):
        agreement = tried(replayer, edit)[1]
        if agreement.agrees or agreement == FAILED or not np.isfinite(agreement.ratio):
            continue
        faulty = _written(healthy, edit, inputs, folder / f"{seed}_faulty.xml")
        if faulty is not None:
            return healthy, faulty, edits_text([edit_facts(healthy, edit)]), inputs
    return None


def _written(model: Model, edit: RepairEdit, inputs: tuple[Array, ...], path: Path) -> Model | None:
    try:
        files = patched_ir(patched(model, (edit,)), inputs)
        path.write_bytes(files.xml)
        path.with_suffix(".bin").write_bytes(files.weights)
        made = open_model(str(path))
        _outputs(made, inputs)
    except (StepperError, ValueError, LookupError):
        return None
    return made


def _outputs(model: Model, inputs: tuple[Array, ...]) -> dict[int, Array]:
    replayer = Replayer(model, (GivenExample("inputs", inputs, {}),), Tolerances(exact=True))
    if replayer.known[0].failure:
        raise StepperError(replayer.known[0].failure)
    return replayer.known[0].outputs


def _outcome(seed: int, healthy: Model, faulty: Model, what: str, inputs: tuple[Array, ...], seconds: float) -> Outcome:
    given = [inputs, *(tuple(other_inputs(inputs, one)) for one in range(50, 49 + EXAMPLES))]
    examples = []
    for index, arrays in enumerate(given):
        try:
            examples.append(GivenExample(f"example {index}", arrays, _outputs(healthy, arrays)))
        except StepperError:
            continue
    reference = RepairReference("healthy", tuple(examples), None, is_exact=True)
    begun = time.monotonic()
    found = repaired(faulty, reference, Tolerances(exact=True), seconds=seconds)
    took = time.monotonic() - begun
    is_repaired = found.answer.status is FixStatus.REPAIRED
    text = edits_text(found.answer.repairs[0].edits) if is_repaired else found.answer.status.value
    return Outcome(seed, what, text, took, is_repaired, is_repaired and _holds(healthy, faulty, found.edits, inputs))


def _holds(healthy: Model, faulty: Model, edits: tuple[RepairEdit, ...], inputs: tuple[Array, ...]) -> bool:
    """Return True if the repaired model has the outputs of the healthy one on inputs that were not given."""
    model = patched(faulty, edits).model()
    for seed in (201, 202, 203):
        arrays = tuple(other_inputs(inputs, seed))
        try:
            expected = _outputs(healthy, arrays)
        except StepperError:
            continue
        try:
            made = _outputs(model, arrays)
        except StepperError:
            return False
        if not all(
            made[key].shape == value.shape
            and np.allclose(
                made[key].astype(np.float64), value.astype(np.float64), rtol=1e-4, atol=1e-5, equal_nan=True
            )
            for key, value in expected.items()
        ):
            return False
    return True


def main() -> None:
    """Print a line for each loop, then how many are repaired and how long it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for one in outcomes(options.seed, options.count, Path(folder)):
            found.append(one)
            mark = "equal" if one.is_equal_elsewhere else "given" if one.is_repaired else "none"
            print(f"{mark:6}{one.seed:6} {one.seconds:6.1f} s  {one.mistake}  ->  {one.found}", flush=True)
    middle = sorted(one.seconds for one in found)[len(found) // 2]
    count, equal = sum(one.is_repaired for one in found), sum(one.is_equal_elsewhere for one in found)
    print(f"{count} of {len(found)} repaired, {equal} equal on other inputs, median {middle:.1f} s")


if __name__ == "__main__":
    main()
