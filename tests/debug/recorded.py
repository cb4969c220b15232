"""What the tests of recordings share: samples and subjects as machines, and a recorded run of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.debug.recording import Choice, Pace, Recorder, record
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.ir.model import Model

SAMPLES = Path(__file__).parents[2] / "sample_models"


@dataclass(frozen=True)
class Case:
    """A model and its inputs."""

    compiled: CompiledModel
    inputs: tuple[Array, ...]

    def machine(self, **options: Any) -> Machine:
        return Machine(self.compiled, self.inputs, keep_values=False, **options)

    def outputs(self) -> list[bytes]:
        machine = self.machine()
        for _event in machine.run(stepper.Every.END):
            pass
        return outputs_of(machine)

    def recorder(self, path: Path, choice: str = "all", pace: Pace | None = None, **chosen: Any) -> Recorder:
        return record(self.machine(), self.inputs, path, Choice.parse(choice, **chosen), pace)

    def recorded(self, path: Path, choice: str = "all", pace: Pace | None = None, **chosen: Any) -> Machine:
        with self.recorder(path, choice, pace, **chosen) as recorder:
            assert recorder.run()
            return recorder.machine


def case(model: Model, inputs: dict[Any, Any], rules: str = "spec") -> Case:
    compiled = stepper.compile_model(model, Rules(rules))
    return Case(compiled, tuple(stepper.bind_inputs(model, inputs)))


def sample(name: str, rules: str = "spec") -> Case:
    with np.load(SAMPLES / name / "inputs.npz") as given:
        return case(stepper.read_model(SAMPLES / name / "model.xml"), dict(given), rules)


def sample_names() -> list[str]:
    return sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


def outputs_of(machine: Machine) -> list[bytes]:
    """The outputs to the bit, with type and shape."""
    assert machine.outputs is not None
    return [f"{output.dtype}{output.shape}".encode() + _bytes(output) for output in machine.outputs]


def _bytes(array: Array) -> bytes:
    return repr(array.tolist()).encode() if array.dtype.kind == "T" else np.ascontiguousarray(array).tobytes()


def finish(machine: Machine) -> list[bytes]:
    while not machine.finished:
        machine.advance(stepper.Every.END)
    return outputs_of(machine)


def tables(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """What a recording says of its run, in an order of its own; not how the rows came to be."""
    import sqlite3

    connection = sqlite3.connect(path)
    for view in ("statistics", "events"):
        rows = connection.execute(f"SELECT * FROM {view}").fetchall()
        yield view, sorted(rows, key=repr)
    connection.close()
