"""Every sample model runs under both rule books and gives what OpenVINO computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import stepper
from tests.tables import each_row

SAMPLES = Path(__file__).parents[1] / "sample_models"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("*/model.xml"))


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as arrays:
        return dict(arrays)


def test_there_are_sample_models() -> None:
    assert len(FOLDERS) >= 11


@each_row("rules", ["spec", "openvino"])
@each_row("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_sample_model_gives_the_recorded_outputs(folder: Path, rules: str) -> None:
    inputs, expected = arrays_of(folder / "inputs.npz"), arrays_of(folder / "expected.npz")
    outputs = stepper.run(stepper.read_model(folder / "model.xml"), inputs, rules=rules)
    assert list(outputs) == list(expected) and outputs.loops
    for name, value in expected.items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(outputs[name], value, rtol=1e-4, atol=1e-5, err_msg=name, strict=True)
        else:
            np.testing.assert_array_equal(outputs[name], value, err_msg=name, strict=True)


def test_the_stale_twin_of_the_while_loop_runs_once_more_from_one() -> None:
    """Its condition reads 2 in the iteration that gives 1; the next one gives 4, after which it reads 1."""
    folder = SAMPLES / "while_loop"
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "expected.npz") as expected:
        given, wanted = dict(inputs), list(expected["numbers"])
    outputs = stepper.run(stepper.read_model(folder / "stale.xml"), given)
    assert outputs["numbers"].tolist() == [*wanted, 4]
