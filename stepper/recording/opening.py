"""Beginning a recording, opening one, and going on with one that was interrupted."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.engine.program import Partner
from stepper.engine.run import LoopLog
from stepper.files.kinds import RECORDING
from stepper.files.locks import FileLock, lock
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.recording import files
from stepper.recording.blobs import OF_RECORDING, BlobWriter, Reference
from stepper.recording.hashes import with_checksum
from stepper.recording.iterations.activations import CLOSE, Activations
from stepper.recording.iterations.batches import insert_many
from stepper.recording.iterations.levels import levels_of
from stepper.recording.options import RecordingOptions
from stepper.recording.origin import RunOrigin, write_states, write_tensors
from stepper.recording.reading.recording import Recording, RestoredMachine
from stepper.recording.recorder import Pace, Recorder
from stepper.recording.schema import RUN_LENGTH
from stepper.recording.snapshots import SnapshotWriter
from stepper.recording.versions import CheckedConnection

Beginning = tuple[list[Reference], Activations]
"""References to the inputs in the file, and the activations that are under way."""

_LARGEST_LOG: Final = 32 * 2**20
_SMALLEST_LOG: Final = 2**20
_SHARE_OF_DISK: Final = 16
"""The log beside the file is written into it when it has this part of the free space, within the bounds above."""


def record(
    machine: Machine,
    inputs: Sequence[Array],
    path: str | Path,
    options: RecordingOptions | None = None,
    pace: Pace | None = None,
) -> Recorder:
    """Begin to record the run of a machine, which got these inputs, into a new file.

        with record(machine, inputs, "run.sqlite", RecordingOptions.parse("all")) as recorder:
            recorder.run()

    UsageError where the file is there already or cannot be made. Until the recorder is closed no other program can
    go on with the file, or keep a session in it.
    """
    path, options = Path(path), options or RecordingOptions()
    OutputFile(path, RECORDING, ProtectedFiles.of_model(machine.compiled.model.path)).check()
    taken = lock(path)
    try:
        with files.new_file(path, files.PAGE_SIZE_OF_VALUES) as connection:
            references, activations = _fill(connection, path, machine, inputs, options)
        connection = _logged(path)
        try:
            recorder = Recorder(machine, connection, path, options, pace or Pace(), taken)
            recorder.share(inputs, references)
            recorder.begin(0, activations)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        taken.release()
        raise
    return recorder


def open_recording(path: str | Path) -> Recording:
    """Return a recording to look at; SessionError where it is none."""
    return Recording(path)


def resume(
    path: str | Path,
    model: str | Path | None = None,
    inputs: Mapping[str | int, Any] | None = None,
    *,
    max_iterations: int | None = None,
    pace: Pace | None = None,
    partner: Partner | None = None,
) -> tuple[Recorder, LoopLog]:
    """Go on with an interrupted run from its last snapshot, in the same file; with what loops did up to there.

    SessionError where the model, or an input that is given, or the `partner`, is not the one that was recorded;
    FileInUse where another program records into the file.
    """
    path = Path(path)
    taken = lock(path, advice="it goes on there; wait for its end, or end it")
    try:
        return _resumed(path, model, inputs, max_iterations, pace or Pace(), partner, taken)
    except BaseException:
        taken.release()
        raise


def _resumed(
    path: Path,
    model: str | Path | None,
    inputs: Mapping[str | int, Any] | None,
    max_iterations: int | None,
    pace: Pace,
    partner: Partner | None,
    taken: FileLock,
) -> tuple[Recorder, LoopLog]:
    with Recording(path) as recording:
        restored = recording.restored(model, inputs=inputs, max_iterations=max_iterations, partner=partner)
        options = recording.options()
        log = recording.loop_log(restored.machine.compiled, restored.tick)
    connection = _logged(path)
    try:
        with files.errors_named(path):
            _take_back(connection, restored)
            recorder = Recorder(restored.machine, connection, path, options, pace, taken)
            recorder.begin(restored.iterations, _activations(restored, options))
    except BaseException:
        connection.close()
        raise
    return recorder, log


def _activations(restored: RestoredMachine, options: RecordingOptions) -> Activations:
    levels = {id(level.program): level for level in levels_of(restored.machine.compiled, options)}
    activations = Activations(levels, restored.activations)
    activations.resume(restored.machine.stack, list(restored.numbers))
    return activations


def _take_back(connection: sqlite3.Connection, restored: RestoredMachine) -> None:
    """Delete what was recorded after the snapshot: it will be recorded again."""
    iterations, activations, tick = restored.iterations, restored.activations, restored.tick
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM runs WHERE id > ?", (iterations,))
    for table in ("number_series", "tensor_series", "stacks"):
        connection.execute(f"DELETE FROM {table} WHERE first > ?", (iterations,))
    for table, series, each in (("numbers", "number_series", RUN_LENGTH), ("tensors", "tensor_series", 1)):
        last = f"SELECT coalesce(max((start + count - 1) / {each}), -1) FROM {series}"
        connection.execute(f"DELETE FROM {table} WHERE id > ({last})")
    connection.execute("DELETE FROM activations WHERE id > ?", (activations,))
    connection.execute("DELETE FROM snapshots WHERE tick > ?", (tick,))
    reopened = connection.execute("SELECT NULL, NULL, NULL, id FROM activations WHERE closed > ?", (tick,)).fetchall()
    connection.executemany(CLOSE, reopened)
    connection.execute("COMMIT")


def _logged(path: Path) -> CheckedConnection:
    """Open a file to write ahead: what a killed process has not finished does not show, and nothing waits for the disk.

    On a disk with little room the log stays small.
    """
    with files.errors_named(path):
        connection = files.connect(path, writable=True)
        free = shutil.disk_usage(path.parent).free
        size = min(max(free // _SHARE_OF_DISK, _SMALLEST_LOG), _LARGEST_LOG)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {size // files.PAGE_SIZE_OF_VALUES}")
        connection.execute(f"PRAGMA journal_size_limit = {size}")
        return connection


def _fill(
    connection: sqlite3.Connection, path: Path, machine: Machine, inputs: Sequence[Array], options: RecordingOptions
) -> Beginning:
    RunOrigin.of(machine, options, path.parent).write(connection)
    names = [layer.name for layer in machine.compiled.model.graph.parameters]
    blobs = BlobWriter(connection, OF_RECORDING)
    references = write_tensors(connection, "inputs", names, inputs, blobs)
    write_states(connection, machine.initial_states, blobs)
    levels = levels_of(machine.compiled, options)
    for level in levels:
        insert_many(connection, "levels", 9, [with_checksum(level.row)])
        insert_many(connection, "ports", 11, (with_checksum(port.row(level.id)) for port in level.ports))
    activations = Activations({id(level.program): level for level in levels})
    activations.follow(machine.stack)
    activations.write(connection)
    snapshots = SnapshotWriter(connection, blobs)
    snapshots.share(inputs, references)
    snapshots.write(machine, activations, 0)
    return references, activations
