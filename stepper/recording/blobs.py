"""Tensors in the tables of a recording: each content once, found by its hash; checked against it when it is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stepper.element_types import Array
from stepper.errors import SessionError
from stepper.recording.hashes import content_hash
from stepper.recording.reading.values import Layout, decoded, encoded, laid_out, layout_of

Reference = dict[str, Any]
"""JSON that names a tensor: `blob`; `scalar` where it is a numpy scalar, `strides` where not in row-major order.

In a state also `recorded`: the blob is one of the table `blobs`, not of `state_values`.
"""

RECORDED: Final = "blobs"
OF_STATES: Final = "state_values"

_REMEMBERED: Final = 4096


class BlobWriter:
    """Stores tensors in one of the two tables of blobs."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        assert table in (RECORDED, OF_STATES), "names of tables cannot be bound to a statement"
        self._connection = connection
        self._find = f"SELECT id FROM {table} WHERE hash = ?"
        self._add = f"INSERT INTO {table} (hash, content) VALUES (?, ?)"
        # The array itself is kept beside its id, or another could take its place in memory, and its identity with it.
        self._known: dict[int, tuple[Any, Reference]] = {}

    def store(self, array: Array) -> int:
        """The id of the blob with this tensor, which is added if there is none."""
        content = encoded(array)
        digest = content_hash(content)
        row = self._connection.execute(self._find, (digest,)).fetchone()
        if row is not None:
            return int(row[0])
        identity = self._connection.execute(self._add, (digest, content)).lastrowid
        assert identity is not None, "a row was added"
        return identity

    def refer(self, value: Any) -> Reference:
        """A reference to a machine's value, its layout included; one that was stored shortly before is not again."""
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        layout = layout_of(value)
        reference: Reference = {"blob": self.store(np.asarray(value))}
        if layout.scalar:
            reference["scalar"] = True
        if layout.strides is not None:
            reference["strides"] = list(layout.strides)
        self._known[id(value)] = (value, reference)
        return reference

    def share(self, values: Sequence[Any], references: Sequence[Reference]) -> None:
        """These values are in the table `blobs` already."""
        for value, reference in zip(values, references, strict=True):
            self._known[id(value)] = (value, reference | {"recorded": True})

    def forget(self, keep: list[Any]) -> None:
        """Let go of all values but these, which may come again."""
        identities = {id(value) for value in keep[:_REMEMBERED]}
        self._known = {identity: known for identity, known in self._known.items() if identity in identities}


class BlobReader:
    """Reads tensors from one of the two tables of blobs; each once, however often it is named."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        assert table in (RECORDED, OF_STATES), "names of tables cannot be bound to a statement"
        self._connection = connection
        self._find = f"SELECT hash, content FROM {table} WHERE id = ?"
        self._known: dict[int, Array] = {}

    def tensor(self, identity: Any) -> Array:
        """The tensor of a blob. SessionError or ValueError where there is none, or a damaged one."""
        if type(identity) is not int:
            raise SessionError("names a blob by something that is no number")
        if identity not in self._known:
            row = self._connection.execute(self._find, (identity,)).fetchone()
            if row is None:
                raise SessionError(f"the blob {identity} is missing")
            digest, content = row
            if not isinstance(content, bytes) or content_hash(content) != digest:
                raise SessionError(f"the blob {identity} is damaged")
            self._known[identity] = decoded(content)
        return self._known[identity]

    def value(self, reference: Any) -> Any:
        """The value that a reference names, in its layout."""
        if not isinstance(reference, dict) or not reference.keys() <= {"blob", "scalar", "strides", "recorded"}:
            raise SessionError("has a reference to a tensor that is none")
        strides = reference.get("strides")
        if strides is not None:
            if not isinstance(strides, list) or not all(type(step) is int and abs(step) < 2**40 for step in strides):
                raise SessionError("has strides that are no list of numbers")
            strides = tuple(strides)
        return laid_out(self.tensor(reference.get("blob")), Layout(reference.get("scalar") is True, strides))
