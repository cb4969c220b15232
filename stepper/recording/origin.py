"""Origin of a recording: its model, rules and inputs, in the tables meta, inputs and outputs."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, field

from stepper import __version__
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import SessionError, UsageError
from stepper.ir.calls import with_calls
from stepper.ir.lowering import has_opened
from stepper.ir.model import Calls, Model
from stepper.ir.reader import open_sequences
from stepper.name_patterns import Pattern, PatternError, regex
from stepper.ops.operands import form_text
from stepper.recording import file
from stepper.recording.blobs import (
    OF_RECORDING,
    BlobWriter,
    Reference,
    blobs_of,
    content_hash,
    file_hashes,
    with_checksum,
)
from stepper.records import Record, as_data

if TYPE_CHECKING:
    from collections.abc import Callable


# Options of a recording: how much of each value, of which operations, in which iterations.

T = TypeVar("T")
_MOST_RANGES = 100
_RANGE = re.compile(r"(-?[0-9]{1,15})?(?:(:)(-?[0-9]{1,15})?)?")


class Amount(StrEnum):
    """How much is recorded of the values of bodies; the statistics with everything but NONE."""

    ALL = "all"
    CARRIED = "carried"
    STATS = "stats"
    NONE = "none"


class Iterations(Record):
    """A choice of iterations: ranges as Python's slices, a negative bound counted from the end of the loop's run."""

    text: str = ""
    ranges: tuple[tuple[int | None, int | None], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Iterations:
        """Read ranges such as `0:10,-1`; an empty text is all. UsageError for anything else."""
        ranges: list[tuple[int | None, int | None]] = []
        for part in text.replace(" ", "").split(",") if text.strip() else []:
            match = _RANGE.fullmatch(part)
            if match is None or not part or len(ranges) == _MOST_RANGES:
                raise UsageError(f"'{part}' is not a range of iterations; write for example 0:10,-1")
            first = None if match[1] is None else int(match[1])
            last = None if match[3] is None else int(match[3])
            if match[2] is None:
                assert first is not None, "a part without a colon is one number"
                last = None if first == -1 else first + 1
            if first is not None and last is not None and (first < 0) == (last < 0) and last <= first:
                raise UsageError(f"'{part}' has no iterations: it ends before it begins")
            ranges.append((first, last))
        return cls(text, tuple(ranges))

    @property
    def everything(self) -> bool:
        """True if all iterations are chosen."""
        return not self.ranges

    @property
    def tail(self) -> int:
        """For how many of the latest iterations it stays open whether they are chosen, until the loop has ended."""
        return max((-bound for pair in self.ranges for bound in pair if bound is not None and bound < 0), default=0)

    def includes(self, iteration: int, count: int) -> bool:
        """Return True if an iteration of a loop that ran `count` of them is chosen."""
        return not self.ranges or any(_within(iteration, count, *pair) for pair in self.ranges)


def _within(iteration: int, count: int, first: int | None, last: int | None) -> bool:
    begin = 0 if first is None else first + count if first < 0 else first
    end = count if last is None else last + count if last < 0 else last
    return begin <= iteration < end


class RecordingOptions(Record):
    """Values to record. `operations` is searched for in the names of layers (None: all).

    Iterations counted from the end are known only when the loop has ended. A run that continues from a snapshot records
    the iterations after the snapshot.
    """

    amount: Amount = Amount.CARRIED
    operations: Pattern | None = None
    iterations: Iterations = field(default_factory=Iterations)

    @classmethod
    def parse(
        cls, amount: str = Amount.CARRIED, operations: str | None = None, iterations: str = ""
    ) -> RecordingOptions:
        """Read the words of the command line. UsageError."""
        if amount not in list(Amount):
            raise UsageError(f"there is no amount '{amount}' to record; choose {', '.join(Amount)}")
        try:
            pattern = None if operations is None else regex(operations)
        except PatternError as error:
            raise UsageError(f"'{operations}' is not a regular expression: {error}") from None
        return cls(Amount(amount), pattern, Iterations.parse(iterations))

    def names(self, layer: str) -> bool:
        """Return True if the layer of this name is chosen."""
        return self.operations is None or self.operations.found_in(layer)

    def to_json(self) -> str:
        """Return the text for the file."""
        pattern = None if self.operations is None else self.operations.text
        return json.dumps({"amount": self.amount, "operations": pattern, "iterations": self.iterations.text})

    @classmethod
    def from_json(cls, data: Any) -> RecordingOptions:
        """Read a file's JSON; ValueError, TypeError, KeyError or UsageError for other data."""
        return cls.parse(str(data["amount"]), data["operations"], str(data["iterations"]))


class PendingIterations(Generic[T]):
    """Items of the latest iterations of each activation, as long as the end of the loop may still choose them."""

    def __init__(self, iterations: Iterations) -> None:
        self._iterations, self._tail = iterations, iterations.tail
        self._waiting: dict[int, deque[tuple[int, T]]] = {}

    def decided(self, activation: int, iteration: int, item: T, *, ended: bool) -> Iterator[T]:
        """Yield the chosen items about which this new one decides, and that the loop has `ended` with it."""
        waiting = self._waiting.setdefault(activation, deque())
        waiting.append((iteration, item))
        while waiting and (ended or len(waiting) > self._tail):
            number, oldest = waiting.popleft()
            # Not among the last `tail`: no bound that counts from the end is reached, however long the loop goes on.
            if self._iterations.includes(number, iteration + 1):
                yield oldest
        if ended:
            del self._waiting[activation]

    def is_certain(self, iteration: int | None) -> bool:
        """True if an iteration is chosen whatever comes after it; the iteration of no loop is."""
        return iteration is None or self._iterations.includes(iteration, iteration + 1 + self._tail)


_LONGEST_META = 4_000_000


class RunOrigin(Record):
    """Origin of a run: model, rules, way of running. `model` is the path of the .xml from the recording's folder.

    `engine` says which partner computed what; empty where all kernels were our own. `calls` is the plan of the calls
    over which the model is a loop, as JSON; empty where it is the file's.
    """

    schema: int
    product: str
    numpy: str
    model: str
    xml: str | None
    bin: str | None
    rules: str
    max_iterations: Annotated[int, Meta(gt=0, le=2**63 - 1)] | None
    open_sequences: bool
    keep_values: bool
    choice: str
    engine: str = ""
    calls: str = ""

    @classmethod
    def of(cls, machine: Machine, options: RecordingOptions, folder: Path) -> RunOrigin:
        """Return the origin of the run of a machine, for a recording in a folder."""
        model = machine.compiled.model
        opened = has_opened(model)
        hashes = file_hashes(model.path)
        return cls(
            file.VERSION, __version__, np.__version__, _seen_from(folder, model.path), hashes["xml"], hashes["bin"],
            machine.rules.value, machine.max_iterations, opened, machine.keep_values, options.to_json(),
            machine.compiled.engine, _plan_text(model.calls),
        )  # fmt: skip

    def write(self, connection: sqlite3.Connection) -> None:
        """Fill the table meta."""
        rows = {name: json.dumps(value) for name, value in as_data(self).items()}
        rows["checksum"] = json.dumps(_checksum(rows))
        connection.executemany("INSERT INTO meta VALUES (?, ?)", list(rows.items()))

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> RunOrigin:
        """Read the table meta. SessionError where it is damaged."""
        rows: dict[str, str] = {}
        for name, value in connection.execute("SELECT name, value FROM meta LIMIT 100"):
            if not isinstance(value, str) or len(value) > _LONGEST_META:
                raise SessionError("is damaged (its meta data)")
            rows[name] = value
        seal = rows.pop("checksum", "")
        if seal != json.dumps(_checksum(rows)):
            raise SessionError("is damaged (its meta data)")
        try:  # the types, too: a checksum finds damage, not ill will
            origin = msgspec.convert({name: json.loads(value) for name, value in rows.items()}, cls)
        except msgspec.ValidationError:
            raise SessionError("has meta data of the wrong types") from None
        Rules(origin.rules)
        _ = origin.plan_of_calls
        return origin

    @property
    def plan_of_calls(self) -> Calls | None:
        """The calls over which the model is a loop; None where it is the file's. SessionError for a damaged plan."""
        if not self.calls:
            return None
        try:
            return msgspec.json.decode(self.calls, type=Calls)
        except (msgspec.DecodeError, RecursionError):
            raise SessionError("is damaged (its meta data)") from None

    def in_form(self, model: Model) -> Model:
        """Return the file's model as the run had it: over its calls, with its sequences opened. SessionError."""
        if (calls := self.plan_of_calls) is not None:
            try:
                model = with_calls(model, calls)
            except UsageError as error:
                raise SessionError(f"does not fit its model: {error}") from None
        return open_sequences(model) if self.open_sequences else model

    def options(self) -> RecordingOptions:
        """Return which values are recorded."""
        return RecordingOptions.from_json(json.loads(self.choice))

    def model_path(self, folder: Path) -> Path:
        """Return where the model should be, for a recording in this folder."""
        written = PurePosixPath(self.model)
        if written.is_absolute() or written.suffix != ".xml" or "\0" in self.model:
            raise SessionError("does not name an .xml as its model")
        return folder / written

    def check_run(self, machine: Machine) -> None:
        """Raise SessionError where a machine runs another model, or otherwise; the message says what differs."""
        self.check_model(machine.compiled.model.path)
        if machine.rules.value != self.rules:
            raise SessionError(f"the run was under --rules {self.rules}, this one is under {machine.rules}")
        if has_opened(machine.compiled.model) is not self.open_sequences:
            was, now = ("with", "without") if self.open_sequences else ("without", "with")
            raise SessionError(f"the run was {was} --open-sequences, this one is {now}")
        if self.calls != _plan_text(machine.compiled.model.calls):
            raise SessionError("the run was of other calls (--calls, --carry) than this one")
        self.check_engine(machine.compiled.engine)

    def check_engine(self, engine: str) -> None:
        """Raise SessionError where other kernels would go on with the run than began it."""
        if engine != self.engine:
            began, now = (text or "numpy alone" for text in (self.engine, engine))
            raise SessionError(f"was recorded with {began}; {now} would give other values: continue with {began}")

    def check_model(self, path: Path) -> None:
        """Raise SessionError where the model's files are not those of the recording; the message says which."""
        if not path.is_file():
            raise SessionError(f"the model {path} is not there; say where it is with --model PATH")
        found = file_hashes(path)
        changed = [
            f"{path.with_suffix('.' + kind).name} {_difference(recorded, found[kind])}"
            for kind, recorded in (("xml", self.xml), ("bin", self.bin))
            if recorded != found[kind]
        ]
        if changed:
            raise SessionError(f"the model is not the one that was recorded: {' and '.join(changed)}")


def _plan_text(calls: Calls | None) -> str:
    return "" if calls is None else msgspec.json.encode(calls).decode()


def _difference(recorded: str | None, found: str | None) -> str:
    if found is None:
        return "is missing"
    return "was not there then" if recorded is None else "has other contents"


def _checksum(rows: Mapping[str, str]) -> str:
    return content_hash("\n".join(f"{name}={rows[name]}" for name in sorted(rows)).encode()).hex()


def _seen_from(folder: Path, model: Path) -> str:
    """Return a path that says as little as possible about the machine: relative, or the name alone on another drive."""
    try:
        return PurePath(os.path.relpath(model.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return model.name


def write_origin(
    connection: sqlite3.Connection, path: Path, machine: Machine, inputs: Sequence[Array], options: RecordingOptions
) -> tuple[BlobWriter, list[Reference]]:
    """Write the origin of a run into an empty file; the writer of its blobs, and references to the inputs."""
    RunOrigin.of(machine, options, path.parent).write(connection)
    blobs = BlobWriter(connection, OF_RECORDING)
    names = (layer.name for layer in machine.compiled.model.graph.parameters)
    references = write_tensors(connection, "inputs", zip(names, inputs, strict=True), blobs)
    states = ((name, np.asarray(value)) for name, value in machine.initial_states.items())
    write_tensors(connection, "inputs", states, blobs, are_states=True)
    return blobs, references


def write_tensors(
    connection: sqlite3.Connection,
    table: str,
    tensors: Iterable[tuple[str, Array]],
    blobs: BlobWriter,
    *,
    are_states: bool = False,
) -> list[Reference]:
    """Fill inputs or outputs; references to the tensors. The variables of a run are inputs at negative positions."""
    assert table in ("inputs", "outputs"), "names of tables cannot be bound to a statement"
    references: list[Reference] = []
    for number, (name, tensor) in enumerate(tensors):
        references.append(blobs.refer(tensor))
        row = with_checksum((-1 - number if are_states else number, name, json.dumps(references[-1])))
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", row)
    blobs.forget([])
    return references


def check_states(recorded: Mapping[str, Array], states: Mapping[str, Any]) -> None:
    """Raise SessionError where a run begins with other variables than the recording; the message says which."""
    for name in (*recorded, *states):
        if name not in states or name not in recorded:
            began, now = ("a value", "none") if name in recorded else ("no value", "one")
            raise SessionError(f"began with {began} for the variable '{name}' (--states), this run with {now}")
        if difference := _tensor_difference(recorded[name], np.asarray(states[name])):
            raise SessionError(f"the variable '{name}' is not the one that was recorded: {difference}")


def check_inputs(model: Model, recorded: Mapping[str, Array], given: Sequence[Array]) -> None:
    """Raise SessionError where inputs are not those of the recording; the message says which and how."""
    if len(recorded) != len(given):
        raise SessionError("has other inputs than the model")
    for parameter, tensor in zip(model.graph.parameters, given, strict=True):
        before = recorded.get(parameter.name)
        if before is None:
            raise SessionError(f"the input '{parameter.name}' is not one that was recorded")
        if difference := _tensor_difference(before, tensor):
            raise SessionError(f"the input '{parameter.name}' is not the one that was recorded: {difference}")


def _tensor_difference(before: Array, now: Any) -> str:
    types = [form_text(array) for array in (before, now)]
    if types[0] != types[1]:
        return f"it was {types[0]}, this is {types[1]}"
    if before.dtype.kind == "T":
        same = bool((before == now).all())
    else:
        same = np.ascontiguousarray(before).tobytes() == np.ascontiguousarray(now).tobytes()
    return "" if same else "its values differ"


# The table `kept`: what else there is to know of a run than the run itself, as rows of JSON of several kinds.

Rows = Mapping[str, Sequence[Any]]
"""By kind, what json can write."""


def replace_kept(connection: sqlite3.Connection, kind: str, rows: Sequence[str]) -> None:
    """Keep these rows of one kind instead of the rows that were there."""
    connection.execute("DELETE FROM kept WHERE kind = ?", (kind,))
    connection.executemany(
        "INSERT INTO kept VALUES (?, ?, ?, ?)",
        [with_checksum((kind, position, row)) for position, row in enumerate(rows)],
    )


def create(path: Path, machine: Machine, inputs: Sequence[Array], rows: Callable[[BlobWriter], Rows]) -> None:
    """Create a file that keeps rows about a run, and nothing of the run itself but its origin. UsageError."""
    with file.new_file(path) as connection:
        blobs, _references = write_origin(connection, path, machine, inputs, RecordingOptions(Amount.NONE))
        _write(connection, rows(blobs))


def update(path: Path, rows: Callable[[BlobWriter], Rows]) -> None:
    """Keep rows in a file that is there; whether it is of the same run was seen to. SessionError."""
    with file.errors_named(path):
        connection = file.connect(path, writable=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            kept = rows(BlobWriter(connection, OF_RECORDING))
            _write(connection, kept)
            _forget_values(connection, kept)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise file.writing_error(path, error) from None
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
    inputs = [json.loads(text) for (text,) in connection.execute("SELECT value FROM inputs")]
    used = blobs_of([inputs, *rows.values()])
    present = [identity for (identity,) in connection.execute("SELECT id FROM blobs")]
    connection.executemany("DELETE FROM blobs WHERE id = ?", [(one,) for one in present if one not in used])
