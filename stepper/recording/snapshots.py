"""The snapshots of a recording: from each of them the run can go on. Few are kept, the newest always."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.engine.loops import Scan
from stepper.engine.machine import Machine
from stepper.errors import SessionError
from stepper.recording.blobs import OF_STATES, RECORDED, BlobReader, BlobWriter, Reference
from stepper.recording.hashes import content_hash
from stepper.recording.iterations.activations import Activations
from stepper.recording.iterations.stacks import stacks
from stepper.recording.states import blobs_of, state_of, values_of

_MOST_SNAPSHOTS: Final = 32
_MOST_PIECES: Final = 2**16
"""In one row: far more than a scan ever has in a part."""


class SnapshotWriter:
    """Writes the states of one machine, of each scan only the pieces that are new."""

    def __init__(self, connection: sqlite3.Connection, blobs: BlobWriter) -> None:
        self._connection, self._blobs = connection, blobs
        self._values = BlobWriter(connection, OF_STATES)
        self._pieces: dict[tuple[int, int], int] = {}

    def share(self, tensors: Sequence[Any], references: Sequence[Reference]) -> None:
        """Note that these tensors are in the file already, beside the snapshots."""
        self._values.share(tensors, references)

    def resume(self, activations: Activations) -> None:
        """Note that the pieces of these activations are in the file already."""
        for entry in activations.open:
            for index, scan in enumerate(_scans(entry.frame.activation)):
                self._pieces[entry.number, index] = scan.length

    def write(self, machine: Machine, activations: Activations, iterations: int) -> None:
        """Add a snapshot of the present; within a transaction of the caller's."""
        written = {}
        for entry in activations.open:
            for index, scan in enumerate(_scans(entry.frame.activation)):
                self._write_pieces(entry.number, index, scan)
                written[entry.number, index] = scan.length
        self._pieces = written
        state = state_of(machine, [entry.number for entry in activations.open], self._values)
        text = json.dumps(state, allow_nan=False, separators=(",", ":"))
        row = (machine.tick, iterations, activations.count, text, checksum(machine.tick, text))
        self._connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", row)
        self._values.forget(values_of(machine))
        thin_out(self._connection)

    def _write_pieces(self, activation: int, index: int, scan: Scan) -> None:
        first = self._pieces.get((activation, index), 0)
        for part in scan.parts(first):
            for count, tensor in _stacked(part):
                row = (activation, index, first, count, self._blobs.store(tensor))
                seal = _pieces_checksum(*row)
                self._connection.execute("INSERT OR REPLACE INTO scan_pieces VALUES (?, ?, ?, ?, ?, ?)", (*row, seal))
                first += count


def _scans(activation: Any) -> list[Scan]:
    return [] if activation is None else activation.scans


def _stacked(part: Any) -> Iterator[tuple[int, Array]]:
    """Yield how many pieces, and they as one tensor."""
    if isinstance(part, np.ndarray):
        yield len(part), part
        return
    for stack in stacks(part):
        yield stack.count, np.repeat(stack.tensor, stack.count, axis=0) if stack.repeated else stack.tensor


def pieces_from(connection: sqlite3.Connection, activation: int, index: int, count: int) -> Iterator[Any]:
    """Yield the first `count` pieces of a scan that are in the file.

    Raise SessionError where some are missing or a row is damaged: one changed bit names another tensor of the file.
    """
    query = "SELECT first, count, blob, checksum FROM scan_pieces WHERE activation = ? AND scan = ? ORDER BY first"
    done = 0
    for first, number, blob, seal in connection.execute(query, (activation, index)).fetchall():
        if done == count:
            return
        if seal != _pieces_checksum(activation, index, first, number, blob):
            raise SessionError("pieces of a concatenated output are damaged")
        tensor = BlobReader(connection, RECORDED).tensor(blob)
        if first != done or not tensor.ndim or len(tensor) != number or not 0 < number <= _MOST_PIECES:
            break
        for piece in tensor[: count - done]:
            yield piece
            done += 1
    if done != count:
        raise SessionError("pieces of a concatenated output are missing")


def thin_out(connection: sqlite3.Connection) -> None:
    """Drop every second of too many snapshots, but neither of the last two; and the values that only they had."""
    ticks = [int(tick) for (tick,) in connection.execute("SELECT tick FROM snapshots ORDER BY tick")]
    if len(ticks) <= _MOST_SNAPSHOTS:
        return
    connection.executemany("DELETE FROM snapshots WHERE tick = ?", [(tick,) for tick in ticks[1:-2:2]])
    used: set[int] = set()
    for (text,) in connection.execute("SELECT state FROM snapshots").fetchall():
        used |= blobs_of(json.loads(text))
    present = {int(identity) for (identity,) in connection.execute("SELECT id FROM state_values")}
    connection.executemany("DELETE FROM state_values WHERE id = ?", [(identity,) for identity in present - used])


def _pieces_checksum(*row: int) -> str:
    return content_hash(repr(row).encode()).hex()


def checksum(tick: int, text: str) -> str:
    """Return the hash by which a damaged snapshot is found."""
    return content_hash(f"{tick}\n{text}".encode()).hex()
