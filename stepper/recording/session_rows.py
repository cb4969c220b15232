"""The table `kept`: what else there is to know of a run than the run itself, as rows of JSON of several kinds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.errors import SessionError
from stepper.recording import files
from stepper.recording.blobs import OF_RECORDING, BlobWriter
from stepper.recording.hashes import with_checksum
from stepper.recording.options import Amount, RecordingOptions
from stepper.recording.origin import RunOrigin, write_states, write_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ROWS: Final = 10_000
LONGEST_ROW: Final = 2**20
"""Characters of the JSON of one row."""

Rows = Mapping[str, Sequence[Any]]
"""By kind, what json can write."""


def read_kept(connection: sqlite3.Connection, kind: str) -> list[Any]:
    """Return the rows of one kind. SessionError for more, or longer ones, than anybody keeps."""
    query = "SELECT length(content), content FROM kept WHERE kind = ? ORDER BY position"
    rows: list[Any] = []
    for length, content in connection.execute(f"{query} LIMIT {MOST_ROWS + 1}", (kind,)):
        if len(rows) == MOST_ROWS or not isinstance(content, str) or length > LONGEST_ROW:
            raise SessionError(f"keeps more of the kind {kind} than there can be")
        rows.append(json.loads(content))
    return rows


def replace_kept(connection: sqlite3.Connection, kind: str, rows: Sequence[str]) -> None:
    """Keep these rows of one kind in place of those that were there."""
    connection.execute("DELETE FROM kept WHERE kind = ?", (kind,))
    connection.executemany(
        "INSERT INTO kept VALUES (?, ?, ?, ?)",
        [with_checksum((kind, position, row)) for position, row in enumerate(rows)],
    )


def create(path: Path, machine: Machine, inputs: Sequence[Array], rows: Callable[[BlobWriter], Rows]) -> None:
    """Create a file that keeps rows about a run, and nothing of the run itself but its origin. UsageError."""
    with files.new_file(path) as connection:
        RunOrigin.of(machine, RecordingOptions(Amount.NONE), path.parent).write(connection)
        names = [layer.name for layer in machine.compiled.model.graph.parameters]
        blobs = BlobWriter(connection, OF_RECORDING)
        write_tensors(connection, "inputs", names, inputs, blobs)
        write_states(connection, machine.initial_states, blobs)
        _write(connection, rows(blobs))


def update(path: Path, rows: Callable[[BlobWriter], Rows]) -> None:
    """Keep rows in a file that is there; whether it is of the same run was seen to. SessionError."""
    with files.errors_named(path):
        connection = files.connect(path, writable=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            kept = rows(BlobWriter(connection, OF_RECORDING))
            _write(connection, kept)
            _forget_values(connection, kept)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise files.writing_error(path, error) from None
        finally:
            connection.close()


def _write(connection: sqlite3.Connection, rows: Rows) -> None:
    for kind, contents in rows.items():
        replace_kept(connection, kind, [json.dumps(content, allow_nan=False) for content in contents])


def _forget_values(connection: sqlite3.Connection, rows: Rows) -> None:
    """Drop values of earlier edits. Not where a run is recorded: what that has written may be the same blob."""
    (runs,) = connection.execute(
        "SELECT (SELECT count(*) FROM snapshots) + (SELECT count(*) FROM stacks) + (SELECT count(*) FROM outputs)"
    ).fetchone()
    if runs:
        return
    used = {int(one) for (text,) in connection.execute("SELECT value FROM inputs") for one in _blobs(json.loads(text))}
    used |= {one for contents in rows.values() for content in contents for one in _blobs(content)}
    present = [identity for (identity,) in connection.execute("SELECT id FROM blobs")]
    connection.executemany("DELETE FROM blobs WHERE id = ?", [(one,) for one in present if one not in used])


def _blobs(data: Any) -> set[int]:
    """Return the blobs that JSON names."""
    found: set[int] = set()
    waiting = [data]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if type(part.get("blob")) is int:
                found.add(part["blob"])
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found
