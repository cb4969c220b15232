"""What the tests of recordings share: samples and subjects as machines, and a recorded run of one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.element_types import Array
from stepper.engine.frames import EventKind, Every
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.ir.model import Model
from stepper.recording import Pace, Recorder, Recording, RecordingOptions, file, open_recording, record
from stepper.recording.blobs import content_hash, row_checksum
from stepper.recording.iterations import levels_of
from stepper.recording.reading import Catalogue, Column, moments
from stepper.recording.recorded_states import checksum

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
        return record(self.machine(), self.inputs, path, RecordingOptions.parse(choice, **chosen), pace)

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
    connection = sqlite3.connect(path)
    for view in ("statistics", "events"):
        rows = connection.execute(f"SELECT * FROM {view}").fetchall()
        yield view, sorted(rows, key=repr)
    connection.close()


def walked(subject: Case) -> Iterator[tuple[int, int | None, str, int, int, Array]]:
    """tick, iteration, place, layer, output and value of everything that bodies compute, from a walk of its own."""
    levels = {id(level.program): level for level in levels_of(subject.compiled, RecordingOptions.parse("all"))}
    machine = subject.machine()
    for event in machine.run(Every.ITERATION):
        frame = event.frame
        is_branch = frame.activation is not None and not frame.activation.operation.layer.is_loop
        if event.kind is EventKind.ITERATION or (event.kind is EventKind.LEFT and is_branch):
            assert frame.activation is not None
            iteration = None if is_branch else frame.activation.iteration
            for port in levels[id(frame.program)].ports:
                value = np.asarray(frame.values[port.slot])
                yield event.tick, iteration, levels[id(frame.program)].path, port.layer.id, port.output, value


def check_values(subject: Case, path: Path) -> None:
    """Record a run with all values into a new file: read again, they are those that a walk sees."""
    subject.recorded(path)
    expected: dict[tuple[str, int], list[tuple[int | None, Array]]] = {}
    names = {level.path: level for level in levels_of(subject.compiled, RecordingOptions.parse("all"))}
    for _tick, iteration, loop, layer, output, value in walked(subject):
        layer_name = next(port.layer.name for port in names[loop].ports if port.layer.id == layer)
        expected.setdefault((layer_name, output), []).append((iteration, value))
    with open_recording(path) as recording:
        for (layer_name, output), values in expected.items():
            found = list(values_of(recording, layer_name, output))
            assert sorted(map(_key, found)) == sorted(map(_key, values))


def _key(pair: tuple[int | None, Array]) -> tuple[str, str]:
    return str(pair[0]), f"{pair[1].dtype}{pair[1].shape}{pair[1].tolist()}"


def statistics(recording: Recording, name: str) -> list[dict[str, Any]]:
    """The rows of the view `statistics` for the layers of a name, in the order of time; columns by name."""
    columns = [str(row[1]) for row in recording.query("PRAGMA table_info(statistics)")]
    rows = recording.query("SELECT * FROM statistics WHERE name = ? ORDER BY tick, output", (name,))
    return [dict(zip(columns, row, strict=True)) for row in rows]


def values_of(recording: Recording, name: str, output: int = 0) -> Iterator[tuple[int | None, Array]]:
    """The recorded values of the layers of a name, in the order of time: iteration and value."""
    catalogue = Catalogue(recording)
    for (port,) in recording.query("SELECT id FROM ports WHERE name = ? AND output = ?", (name, output)):
        program = catalogue.port(port).program
        column, everywhere = Column(recording, port), (None,) * len(program.path)
        for moment in moments(recording, catalogue.level(program), program.path, everywhere):
            value = column.value(moment.id)
            if value is not None:
                yield moment.numbers[-1], np.asarray(value)


def seal(connection: sqlite3.Connection) -> None:
    """Give all rows the checksums of what they hold."""
    connection.create_function("row_checksum", -1, lambda *row: row_checksum(row))
    connection.create_function("text_checksum", 2, lambda tick, text: checksum(tick, str(text)))
    for table, text in file.TABLES.items():
        names = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        if file.CHECKSUM in text and "checksum" in names:
            listed = ", ".join(file.columns(text))
            connection.execute(f"UPDATE OR IGNORE {table} SET checksum = row_checksum({listed})")
    connection.execute("UPDATE snapshots SET checksum = text_checksum(tick, state)")
    rows = dict(connection.execute("SELECT name, value FROM meta WHERE name <> 'checksum'"))
    whole = content_hash("\n".join(f"{name}={rows[name]}" for name in sorted(rows, key=str)).encode()).hex()
    connection.execute("UPDATE meta SET value = ? WHERE name = 'checksum'", (json.dumps(whole),))
