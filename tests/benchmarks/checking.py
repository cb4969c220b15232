"""What a check costs beside a plain run: `python -m tests.benchmarks.checking [MODEL.xml...] [--json]`.

All of it in processor time of one process: `check` reads the file, holds it against the rules of files, makes one
watched run and asks the rules of runs; beside it the same file is read and run. Of models that are named, the inputs
are the inputs.npz beside them. And the rules of a file with 20,000 layers, beside reading it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

import stepper
from stepper.diagnosis.check.checking import check_run
from stepper.diagnosis.lint.linting import lint
from stepper.element_types import Array
from stepper.ir.reader import read_all_faults
from tests.benchmarks import recording, timing
from tests.benchmarks.others import Run
from tests.models import Graph, Value, joined, sliced

PLAIN: Final = "reading and stepper.run"
CHECKED: Final = "check"
READING: Final = "reading the file"
RULES: Final = "lint, which reads it"


def check(path: Path, inputs: dict[str, Array]) -> dict[str, Run]:
    """A plain run and a check of a file."""

    def plain() -> list[Array]:
        return list(stepper.run(stepper.read_model(path), inputs).values())

    def checked() -> list[Array]:
        lint(path)
        assert check_run(stepper.Debugger(stepper.read_model(path), inputs)).overview.outputs
        return []

    return {PLAIN: plain, CHECKED: checked}


def rules(path: Path) -> dict[str, Run]:
    """Reading a file and holding it against the rules."""

    def read() -> list[Array]:
        read_all_faults(path)
        return []

    def linted() -> list[Array]:
        assert not lint(path), "the model is sound"
        return []

    return {READING: read, RULES: linted}


def large(folder: Path, layers: int) -> Iterator[tuple[str, Path]]:
    """Models with so many layers in one body: of arithmetic, of movements, and of attention, as in a transformer.

    The layers of the latter two have Constants of their own, as in files that OpenVINO writes.
    """
    for name, piece, width in (("arithmetic", scaled, 4), ("movements", moved, 4), ("attention", attended, 8)):
        net = Graph()
        xs, body = net.parameter("xs", dims=(4, width)), net.body()
        x = value = body.parameter("x", dims=(1, width))
        while len(body.layers) < layers:
            value = piece(body, value)
        (out,) = net.tensor_iterator("loop", body, [sliced(xs, x)], [joined(body.result(value))])
        net.result(out, "out")
        (folder / name).mkdir()
        yield f"{layers} layers of {name}", net.write(folder / name)


def scaled(body: Graph, value: Value) -> Value:
    """Return a value after arithmetic with one Constant."""
    factor = body.constant([[1.0] * 4])
    for _ in range(1000):
        value = body.apply("Multiply", body.apply("Tanh", value), factor)
    return value


def moved(body: Graph, value: Value) -> Value:
    """Return a value after six movements that leave it as it is."""
    axis, axes = body.constant([1], np.int64), body.constant([0, 1], np.int64)
    value = body.apply("Transpose", value, axes, dims=(1, 4))
    value = body.apply("Reshape", value, body.constant([1, 4], np.int64), dims=(1, 4), special_zero="true")
    value = body.apply("Squeeze", body.apply("Unsqueeze", value, axis, dims=(1, 1, 4)), axis, dims=(1, 4))
    both = body.apply("Concat", value, value, dims=(1, 8), axis=1)
    ends = [body.constant([one], np.int64) for one in (0, 4, 1)]
    return body.apply("Slice", both, *ends, axis, dims=(1, 4), version="opset8")


def attended(body: Graph, value: Value) -> Value:
    """Return a value after a projection, attention of two halves to each other, a residual and a mean taken off."""
    plain = {"transpose_a": "false", "transpose_b": "false"}
    made = body.apply("MatMul", value, body.constant(np.full((8, 8), 0.1)), dims=(1, 8), **plain)
    made = body.apply("Add", made, body.constant([[0.5] * 8]), dims=(1, 8))
    halves = body.apply("Reshape", made, body.constant([1, 2, 4], np.int64), dims=(1, 2, 4), special_zero="false")
    turned = body.apply("Transpose", halves, body.constant([0, 2, 1], np.int64), dims=(1, 4, 2))
    scores = body.apply("MatMul", halves, turned, dims=(1, 2, 2), **plain)
    scores = body.apply("Multiply", scores, body.constant([[[0.5]]]), dims=(1, 2, 2))
    scores = body.apply("Softmax", scores, dims=(1, 2, 2), axis=-1)
    made = body.apply("MatMul", scores, halves, dims=(1, 2, 4), **plain)
    made = body.apply("Reshape", made, body.constant([1, 8], np.int64), dims=(1, 8), special_zero="false")
    made = body.apply("Add", made, value, dims=(1, 8))
    mean = body.apply("ReduceMean", made, body.constant([-1], np.int64), dims=(1, 1), keep_dims="true")
    return body.apply("Subtract", made, mean, dims=(1, 8))


def measure(folder: Path, named: list[Path], rounds: int, layers: int = 20_000, **sizes: int) -> timing.Reports:
    """The ratios of processor time."""
    models = [(one.title, one.path, one.inputs) for one in recording.recordings(folder, **sizes)] if not named else []
    for path in named:
        with np.load(path.with_name("inputs.npz")) as file:
            models.append((str(path), path, dict(file)))
    reports = [
        timing.report(title, timing.side_by_side(check(path, inputs), rounds), PLAIN) for title, path, inputs in models
    ]
    for title, path in [] if named else large(folder, layers):
        reports.append(timing.report(title, timing.side_by_side(rules(path), rounds), READING))
    return reports


def reports(folder: Path, *, quick: bool, models: Sequence[Path] = ()) -> timing.Reports:
    """Everything, measured; of models that are named, these alone."""
    if quick:
        return measure(folder, list(models), 1, layers=2_000, newton_iterations=2_000, lstm_iterations=100)
    return measure(folder, list(models), rounds=3)


if __name__ == "__main__":
    timing.main(__doc__, reports, models="MODEL.xml")
