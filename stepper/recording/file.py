"""The tables of a recording: one SQLite file that anyone may query.

Two views answer most questions:

    SELECT iteration, min, max FROM statistics WHERE name = 'h_next' AND nan > 0 ORDER BY tick
    SELECT * FROM events ORDER BY tick

`statistics` has one row for each recorded value: tick, activation, iteration, loop (the path of the graph in which it
is), port, layer (its id), name, type, output, dtype, shape; min, max, mean, std of its finite elements (NULL where
there are none); nan, inf, zero (how many elements are that); computed_by (who computed it instead of numpy, or '').
`events` has tick, kind, path, depth, iteration.

Below them:

meta            name, value (as JSON): schema, product, numpy, model (a path, seen from this file), hashes of .xml and
                .bin, rules, max_iterations; what else a run depends on; a checksum of all others
inputs, outputs the tensors of the model's Parameters and Results; `value` is JSON that names a blob (see states.py).
                Inputs with negative positions are the variables that the run began with
levels          the graphs of the model: 0 is its own, the others are bodies; `path` in words, `layers` as ids; the
                level in which the loop or If is (`parent`); its index in the order of execution (`position`); its type
                and name; which of its bodies this is (`role`)
ports           the recorded outputs of the layers of each level; `position` in its order of execution (-1: Parameters),
                the tensor `names` of the output and the `results` that it feeds ([id, name]) as JSON; who computed it
                instead of numpy, in words (`computed_by`, '' for numpy)
forms           an element type with a shape
activations     each time that a body began: the activation and iteration around it, ticks, iterations, why it ended
runs            recorded iterations that follow one another: `count` of them, the first with this id, number and tick,
                each `step` ticks after the one before; of a branch its one run, without a number. The view `iterations`
                has a row for each: id (which counts them), activation, iteration, tick
numbers         values of one element, 64 in a row: the number 130 is `n2` of the row with the id 2; NULL is NaN. So a
                loop over numbers takes a few bytes for each
tensors         the statistics of one value of any other size
number_series   values of a port: the `count` iterations from the id `first` on have the numbers from `start` on
tensor_series   their statistics: the rows of `tensors` from the id `start` on. A carried value has equal rows in both
                iterations; equal values share rows
stacks          values of `count` iterations from the id `first` on, in the tensor of a blob from the index `start` on;
                each has the shape of `form`; with `repeated` all have one tensor
blobs           tensors as .npy (see blobs.py), each content once; `hash` is of 16 bytes (see blobs.py).
scan_pieces     the pieces of concatenated outputs as far as snapshots need them, each row with a checksum.
snapshots       the state of the run at a tick (see states.py), from which it can continue
state_values    what snapshots hold; goes with them, in the form of blobs
kept            a debugging session: breakpoints, watches, marks, branches, ... (see origin.py): JSON, in order

Each row of most tables has a `checksum`: the CRC-32 of its other columns, in their order, as a MessagePack array. A
changed bit in a row is found when the row is read (see below).

A file that holds a debugging session and no run has the same tables; only meta, inputs and kept are filled.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, NoReturn

from stepper.errors import SessionError, StepperError, UsageError
from stepper.files.file_kinds import is_case
from stepper.files.output import cannot_be_written, usual_mode
from stepper.recording.blobs import row_checksum
from stepper.tensors.statistics import RECORDED
from stepper.wording import excerpt, no_such_file, printable

VERSION = 6
APPLICATION_ID = 0x53545052
RUN_LENGTH = 64
"""How many numbers one row of `numbers` holds."""

_NUMBER_COLUMNS = ", ".join(f"n{k}" for k in range(RUN_LENGTH))

_IS_INFINITE = "coalesce(n = 9e999 OR n = -9e999, 0)"
_FINITE = f"CASE WHEN {_IS_INFINITE} THEN NULL ELSE n END"
STATISTICS = {
    "min": ("min", _FINITE),
    "max": ("max", _FINITE),
    "mean": ("mean", _FINITE),
    "std": ("std", f"CASE WHEN n IS NULL OR {_IS_INFINITE} THEN NULL ELSE 0.0 END"),
    "nan": ("nan INTEGER", "n IS NULL"),
    "inf": ("inf INTEGER", _IS_INFINITE),
    "zero": ("zero INTEGER", "coalesce(n = 0, 0)"),
}
"""Column of each recorded statistic, and its SQL for a value `n` of one element."""
_COLUMNS = ", ".join(STATISTICS[name][0] for name in RECORDED)
_OF_A_NUMBER = ", ".join(STATISTICS[name][1] for name in RECORDED)

CHECKSUM = "checksum INTEGER NOT NULL"
"""Last column of a table whose rows are checked one by one."""
_SERIES = (
    "port INTEGER NOT NULL, form INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, "
    f"start INTEGER NOT NULL, {CHECKSUM}"
)

TABLES = {
    "meta": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "blobs": "id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, content BLOB NOT NULL",
    "inputs": f"position INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, {CHECKSUM}",
    "outputs": f"position INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, {CHECKSUM}",
    "levels": "id INTEGER PRIMARY KEY, path TEXT NOT NULL, layers TEXT NOT NULL, parent INTEGER, position INTEGER, "
    f"type TEXT, name TEXT, role TEXT, {CHECKSUM}",
    "ports": "id INTEGER PRIMARY KEY, level INTEGER NOT NULL, layer INTEGER NOT NULL, name TEXT NOT NULL, "
    "type TEXT NOT NULL, output INTEGER NOT NULL, position INTEGER NOT NULL, names TEXT NOT NULL, "
    f"results TEXT NOT NULL, computed_by TEXT NOT NULL, {CHECKSUM}",
    "forms": f"id INTEGER PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL, {CHECKSUM}",
    "activations": "id INTEGER PRIMARY KEY, level INTEGER NOT NULL, depth INTEGER NOT NULL, parent INTEGER, "
    f"parent_iteration INTEGER, entered INTEGER, closed INTEGER, iterations INTEGER, ended TEXT, {CHECKSUM}",
    "runs": "id INTEGER PRIMARY KEY, count INTEGER NOT NULL, activation INTEGER NOT NULL, iteration INTEGER, "
    f"tick INTEGER NOT NULL, step INTEGER NOT NULL, {CHECKSUM}",
    "numbers": f"id INTEGER PRIMARY KEY, {_NUMBER_COLUMNS}, {CHECKSUM}",
    "number_series": _SERIES,
    "tensors": f"id INTEGER PRIMARY KEY, {_COLUMNS}, {CHECKSUM}",
    "tensor_series": _SERIES,
    "stacks": "port INTEGER NOT NULL, form INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, "
    f"repeated INTEGER NOT NULL, blob INTEGER NOT NULL, start INTEGER NOT NULL, {CHECKSUM}",
    "scan_pieces": "activation INTEGER NOT NULL, scan INTEGER NOT NULL, first INTEGER NOT NULL, "
    "count INTEGER NOT NULL, blob INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (activation, scan, first)",
    "snapshots": "tick INTEGER PRIMARY KEY, iterations INTEGER NOT NULL, activations INTEGER NOT NULL, "
    "state TEXT NOT NULL, checksum TEXT NOT NULL",
    "state_values": "id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, content BLOB NOT NULL",
    "kept": "kind TEXT NOT NULL, position INTEGER NOT NULL, content TEXT NOT NULL, "
    f"{CHECKSUM}, PRIMARY KEY (kind, position)",
}

NUMBERS_OF_SERIES = (
    f"number_series AS s CROSS JOIN numbers AS n "
    f"ON n.id BETWEEN s.start / {RUN_LENGTH} AND (s.start + s.count - 1) / {RUN_LENGTH}"
)
TENSORS_OF_SERIES = "tensor_series AS s CROSS JOIN tensors AS t ON t.id BETWEEN s.start AND s.start + s.count - 1"
"""Series with their rows, one series after the other."""

_EACH_TENSOR = (
    f"SELECT s.port, s.form, s.first + t.id - s.start AS iteration, {', '.join(f't.{name}' for name in RECORDED)} "
    f"FROM {TENSORS_OF_SERIES}"
)
_EACH_NUMBER = " UNION ALL ".join(
    f"SELECT s.port, s.form, s.first + n.id * {RUN_LENGTH} + {k} - s.start AS iteration, n.n{k} AS n "
    f"FROM {NUMBERS_OF_SERIES} WHERE n.id * {RUN_LENGTH} + {k} BETWEEN s.start AND s.start + s.count - 1"
    for k in range(RUN_LENGTH)
)

VIEWS = {
    "iterations": """
WITH RECURSIVE each(id, activation, iteration, tick, step, more) AS (
    SELECT id, activation, iteration, tick, step, count - 1 FROM runs
    UNION ALL
    SELECT id + 1, activation, iteration + 1, tick + step, step, more - 1 FROM each WHERE more > 0)
SELECT id, activation, iteration, tick FROM each""",
    "statistics": f"""
SELECT r.tick + (s.iteration - r.id) * r.step AS tick, r.activation, r.iteration + s.iteration - r.id AS iteration,
       l.path AS loop, s.port, p.layer, p.name, p.type, p.output, f.dtype, f.shape,
       {", ".join(f"s.{name}" for name in RECORDED)}, p.computed_by
FROM ({_EACH_TENSOR}
      UNION ALL
      SELECT port, form, iteration, {_OF_A_NUMBER} FROM ({_EACH_NUMBER})) AS s
JOIN runs AS r ON r.id = (SELECT max(id) FROM runs WHERE id <= s.iteration)
JOIN ports AS p ON p.id = s.port JOIN levels AS l ON l.id = p.level JOIN forms AS f ON f.id = s.form""",
    "events": """
SELECT a.entered AS tick, 'ENTERED' AS kind, l.path, a.depth, NULL AS iteration
FROM activations AS a JOIN levels AS l ON l.id = a.level WHERE a.entered IS NOT NULL
UNION ALL
SELECT i.tick, 'ITERATION', l.path, a.depth, i.iteration
FROM iterations AS i JOIN activations AS a ON a.id = i.activation JOIN levels AS l ON l.id = a.level
WHERE i.iteration IS NOT NULL
UNION ALL
SELECT a.closed, 'LEFT', l.path, a.depth, NULL
FROM activations AS a JOIN levels AS l ON l.id = a.level WHERE a.closed IS NOT NULL""",
}


def as_sql(number: Any) -> Any:
    """Return a number as SQLite takes it: an integer of 64 bits without a sign as a float where it must be."""
    return float(number) if type(number) is int and number >= 2**63 else number


def columns(definition: str) -> dict[str, str]:
    """Return the type of each column of a table by name, without the checksum."""
    listed = definition.partition(", PRIMARY KEY")[0].removesuffix(f", {CHECKSUM}").split(", ")
    return {name: rest for name, _, rest in (one.partition(" ") for one in listed)}


def statements(tables: Mapping[str, str] = TABLES, views: Mapping[str, str] = VIEWS) -> dict[tuple[str, str], str]:
    """Return the SQL that makes each table and view, by its kind and name."""
    found = {("table", name): f"CREATE TABLE {name} ({columns})" for name, columns in tables.items()}
    return found | {("view", name): f"CREATE VIEW {name} AS {text.strip()}" for name, text in views.items()}


def create(connection: sqlite3.Connection) -> None:
    """Make all tables and views in an empty database."""
    for statement in statements().values():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


# Versions of the schema: reading a recording of an earlier one, and the check of every row that is read.
#
# A step of STEPS makes the tables of a version from those of the version before, by SELECTs. A file that is only read
# stays as it is: temporary views stand in front of its tables. A file that is written to is upgraded in one
# transaction.
#
# A new version is a new VERSION, a step here, and files that the code before it made in
# tests/recording/versions.

_MOST_KINDS = 1000
_MOST_SHOWN = 3


class Step(NamedTuple):
    """A step from one version of the schema to the next.

    `before` are the definitions of the tables that the next version changes, as they were; None for a new table.
    `selects` give the rows of the next version, without checksums, from `{table}`: a table of the version before.
    """

    before: Mapping[str, str | None]
    selects: Mapping[str, str]


_NUMBERS = ", ".join(name for name in columns(TABLES["numbers"]) if name != "id")
_STATISTICS = ", ".join(f"{name} {kind}".strip() for name, kind in columns(TABLES["tensors"]).items() if name != "id")
_VALUES = "port INTEGER NOT NULL, form INTEGER NOT NULL, "
_ITERATIONS = "first INTEGER NOT NULL, count INTEGER NOT NULL"

STEPS: Mapping[int, Step] = {
    4: Step(
        {
            "numbers": f"{_VALUES}{_ITERATIONS}, {_NUMBER_COLUMNS}",
            "number_series": None,
            "tensors": f"{_VALUES}iteration INTEGER NOT NULL, {_STATISTICS}",
            "tensor_series": None,
            "stacks": f"{_VALUES}{_ITERATIONS}, repeated INTEGER NOT NULL, blob INTEGER NOT NULL",
        },
        {
            "numbers": f"SELECT rowid AS id, {_NUMBER_COLUMNS} FROM {{numbers}}",
            "number_series": f"SELECT port, form, first, count, rowid * {RUN_LENGTH} AS start FROM {{numbers}}",
            "tensors": f"SELECT rowid AS id, {', '.join(RECORDED)} FROM {{tensors}}",
            "tensor_series": "SELECT port, form, iteration AS first, 1 AS count, rowid AS start FROM {tensors}",
            "stacks": "SELECT port, form, first, count, repeated, blob, 0 AS start FROM {stacks}",
        },
    ),
    5: Step({name: text.replace(f", {CHECKSUM}", "") for name, text in TABLES.items() if CHECKSUM in text}, {}),
}
"""By the version that a step begins from."""


class DamagedRow(NamedTuple):
    """A row by columns, and what is wrong with it."""

    table: str
    row: Mapping[str, Any]
    why: str


class CheckedConnection(sqlite3.Connection):
    """A connection that knows on which row a query ended: an error in a function called by SQLite has no message."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.damaged: list[DamagedRow] = []

    def damage(self) -> str:
        """Return what is wrong with the row on which the last query ended; empty where that is unknown."""
        rows = self.damaged.copy()
        self.damaged.clear()
        return f"is damaged: {rows[0].why} ({_place(self, rows[0].table, rows[0].row)})" if rows else ""


def tables_of(version: int) -> dict[str, str]:
    """Return the definitions of the tables of a version by name."""
    found: dict[str, str | None] = dict(TABLES)
    for number in reversed(range(version, VERSION)):
        found |= STEPS[number].before
    return {name: text for name, text in found.items() if text is not None}


def check(connection: sqlite3.Connection) -> int:
    """Return the version of a recording, which has the tables of that version and nothing hung onto them. SessionError.

    Further tables and views are a user's own affair: they are never touched.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise SessionError("is an SQLite database, but not a recording of a run")
    if version > VERSION:
        raise SessionError(
            f"has version {version} of the schema, and this stepper knows {VERSION}: install a newer one"
        )
    if version < min(STEPS):
        oldest = f"this stepper reads {min(STEPS)} to {VERSION}"
        raise SessionError(f"has version {version} of the schema, and {oldest}: record the run again")
    tables = tables_of(version)
    expected = statements(tables, VIEWS if version == VERSION else {})
    found: dict[tuple[str, str], str] = {}
    for kind, name, table, text in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"):
        if table in tables and (kind not in ("table", "index") or (kind == "index" and text is not None)):
            raise SessionError(f"has the {kind} '{name}' on the table '{table}', which does not belong there")
        found[kind, name] = text
    for (kind, name), text in expected.items():
        if found.get((kind, name), "").split() != text.split():
            raise SessionError(f"has another {kind} '{name}' than a recording has")
    return int(version)


def check_rows(connection: CheckedConnection, version: int) -> None:
    """Have queries of tables read checked rows of the present version, whatever version the file has."""
    connection.execute("PRAGMA temp_store = MEMORY")
    rows = _rows(connection, {name: f"main.{name}" for name in tables_of(version)}, version)
    for name, source in rows.items():
        if source != f"main.{name}":
            connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {source}")
    if version < VERSION:
        for name, text in VIEWS.items():
            connection.execute(f"CREATE TEMP VIEW {name} AS {text}")


def check_all(connection: sqlite3.Connection) -> None:
    """Check every row at once: the views of the file read its tables themselves, and each row many times."""
    for name, text in TABLES.items():
        if CHECKSUM in text:
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()


def prepare_writing(connection: CheckedConnection, version: int) -> None:
    """Upgrade a file to the present version in one transaction. SessionError for damaged rows."""
    connection.create_function("row_checksum", -1, lambda *row: row_checksum(row), deterministic=True)
    if version == VERSION:
        return
    connection.execute("PRAGMA legacy_alter_table = ON")  # leaves the views of a user alone
    connection.execute("BEGIN IMMEDIATE")
    try:
        _upgrade(connection, version)
        connection.execute("COMMIT")
    except sqlite3.Error:
        with contextlib.suppress(sqlite3.Error):  # a full disk has ended the transaction already
            connection.execute("ROLLBACK")
        if damage := connection.damage():
            raise SessionError(damage) from None
        raise


def _upgrade(connection: CheckedConnection, version: int) -> None:
    before = tables_of(version)
    changed = [name for name, text in TABLES.items() if before.get(name) != text]
    for name in VIEWS:
        connection.execute(f"DROP VIEW IF EXISTS {name}")
    for name in changed:
        if name in before:
            connection.execute(f"ALTER TABLE {name} RENAME TO before_{name}")
    names = {name: f"before_{name}" if name in changed else name for name in before}
    rows = _rows(connection, names, version)
    for (_kind, name), statement in statements().items():
        if name in changed or name in VIEWS:
            connection.execute(statement)
    for name in changed:
        listed = ", ".join(columns(TABLES[name]))
        checksum = f", row_checksum({listed})" if CHECKSUM in TABLES[name] else ""
        connection.execute(f"INSERT INTO {name} SELECT {listed}{checksum} FROM {rows[name]}")
    for name in changed:
        if name in before:
            connection.execute(f"DROP TABLE before_{name}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _rows(connection: CheckedConnection, names: Mapping[str, str], version: int) -> dict[str, str]:
    """Return what to select the rows of each table of the present version from, by table."""
    found = dict(names)
    for name, text in tables_of(version).items():
        if CHECKSUM in text:
            found[name] = _checked(connection, name, text, names[name], "checksum")
    for number in range(version, VERSION):
        found |= {name: f"({select.format(**found)})" for name, select in STEPS[number].selects.items()}
    if version < VERSION:
        for name, text in TABLES.items():
            if CHECKSUM in text:
                found[name] = _checked(connection, name, text, found[name], "-1")
    return found


# --- one row --------------------------------------------------------------------------------------------------------

_KEY = "INTEGER PRIMARY KEY"
_KINDS: Mapping[str, frozenset[type]] = {
    _KEY: frozenset((int,)),
    "INTEGER NOT NULL": frozenset((int,)),
    "INTEGER": frozenset((int, NoneType)),
    "TEXT NOT NULL": frozenset((str,)),
    "TEXT": frozenset((str, NoneType)),
    "": frozenset((int, float, NoneType)),
}
"""Types of values that a column may hold, by the type of the column."""


def _checked(connection: CheckedConnection, table: str, definition: str, source: str, checksum: str) -> str:
    """Return a SELECT of a source's rows after a check of each row; a checksum of -1 is none."""
    kinds = columns(definition)
    function = f"checked_{table}" if checksum == "-1" else f"intact_{table}"
    connection.create_function(function, -1, _check_of(connection.damaged, table, kinds), deterministic=True)
    # SQLite puts the constant of `WHERE name = 'h'` for the column wherever it stands, but not for the key of a row,
    # which it looks up. Behind a plus it does not.
    listed = ", ".join(name if kind == _KEY else f"+{name} AS {name}" for name, kind in kinds.items())
    given = ", ".join(f"CAST({name} AS INTEGER)" if kind == _KEY else name for name, kind in kinds.items())
    return f"(SELECT {listed} FROM {source} WHERE {function}({checksum}, {given}))"


def _check_of(found: list[DamagedRow], table: str, kinds: Mapping[str, str]) -> Callable[..., bool]:
    allowed = [_KINDS[kind] for kind in kinds.values()]
    fitting: set[tuple[type, ...]] = set()

    def damaged(row: tuple[Any, ...], why: str) -> NoReturn:
        found.append(DamagedRow(table, dict(zip(kinds, row, strict=True)), why))
        raise SessionError(why)

    def check(checksum: int, *row: Any) -> bool:
        types = tuple(map(type, row))
        if types not in fitting:
            for name, value, some in zip(kinds, row, allowed, strict=True):
                if type(value) not in some:
                    damaged(row, f"'{name}' has a value of the wrong type")
            if len(fitting) < _MOST_KINDS:
                fitting.add(types)
        if checksum != -1 and checksum != row_checksum(row):
            damaged(row, "a row changed after it was written")
        return True

    return check


def _place(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> str:
    """Return where a row is: its table and keys, and the value and iteration that it is of, if that is known."""
    keys = list(row)[: 1 if "id" in row or "position" in list(row)[:1] else _MOST_SHOWN]
    place = f"table {table}, " + ", ".join(f"{name} {excerpt(str(row[name]))}" for name in keys)
    with contextlib.suppress(sqlite3.Error):
        return place + _value_text(connection, table, row)
    return place


def _value_text(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> str:
    port, iteration = row.get("port"), row.get("first")
    if table in ("numbers", "tensors"):
        each = RUN_LENGTH if table == "numbers" else 1
        series = f"SELECT port, max(first, first + ?1 * {each} - start) FROM main.{table[:-1]}_series"
        found = connection.execute(
            f"{series} WHERE ?1 BETWEEN start / {each} AND (start + count - 1) / {each}", (row["id"],)
        )
        port, iteration = found.fetchone() or (None, None)
    runs = "main.runs AS r ON r.id = (SELECT max(id) FROM main.runs WHERE id <= ?1)"
    query = f"SELECT p.name, r.iteration + ?1 - r.id FROM main.ports AS p LEFT JOIN {runs} WHERE p.id = ?2"
    for name, number in connection.execute(query, (iteration, port)):
        return f": '{excerpt(str(name))}'" + (f" from iteration {number} on" if type(number) is int else "")
    return ""


_MAGIC = b"SQLite format 3\0"
_LEAST_LENGTH = 2**20
_LONGEST_STATEMENT = 200_000
_STEPS_BETWEEN_LOOKS = 100_000
_LONGEST_MESSAGE = 300

PAGE_SIZE = 8192
PAGE_SIZE_OF_VALUES = 32768
"""Bytes. Where many large values are written, small pages take half as long again."""

LONGEST_QUERY = 60.0
"""Seconds after which a query is given up: only a file made to do so asks for more."""

_WRITING = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM))
_READING = frozenset((sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS))
_SAID = {
    sqlite3.SQLITE_FULL: "no space left on the disk",
    sqlite3.SQLITE_READONLY: "it may not be written (Permission denied)",
    sqlite3.SQLITE_BUSY: "another program is writing to it",
    sqlite3.SQLITE_LOCKED: "another program is writing to it",
}

_IN_FUNCTION = "user-defined function raised exception"
_UNREADABLE = (sqlite3.Error, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, struct.error)


@contextlib.contextmanager
def errors_named(path: Path, connection: CheckedConnection | None = None) -> Iterator[None]:
    """Turn everything that a damaged or hostile file can cause into a SessionError with the file's name.

    `connection` knows what is wrong with a row of the file.
    """
    try:
        yield
    except SessionError as error:
        text = str(error)
        raise (error if text.startswith(str(path)) else SessionError(f"{path}: {text}")) from None
    except StepperError:
        raise
    except MemoryError:
        raise SessionError(f"{path}: asks for more memory than there is") from None
    except _UNREADABLE as error:
        if connection is not None and (damage := connection.damage()):
            raise SessionError(f"{path}: {damage}") from None
        if _IN_FUNCTION in str(error):  # before the check of a row, which gets its texts from SQLite
            raise SessionError(f"{path}: is damaged: a text is not UTF-8") from None
        code = getattr(error, "sqlite_errorcode", None)  # None: of Python's own checks
        if code is not None and code & 0xFF in _WRITING and code not in _READING:
            raise cannot_be_written(path, writing_reason(error)) from None
        raise SessionError(f"{path}: cannot be read as a recording: {_reason(error)}") from None


def writing_error(path: Path, error: sqlite3.Error) -> StepperError:
    """Return the error for one that SQLite raises while a file is written."""
    return cannot_be_written(path, writing_reason(error))


def writing_reason(error: Exception) -> str:
    """Return why a file cannot be written."""
    code = getattr(error, "sqlite_errorcode", None)
    return _reason(error) if code is None else _SAID.get(code & 0xFF, _reason(error))


def _reason(error: Exception) -> str:
    return excerpt(" ".join(str(error).split()) or type(error).__name__, _LONGEST_MESSAGE)


def connect(path: Path, *, writable: bool) -> CheckedConnection:
    """Return a connection to a recording whose schema has been checked; what it reads are checked rows. SessionError.

    A file that is to be written to is upgraded to the present version.
    """
    with errors_named(path):
        _check_beginning(path)
        mode = "rw" if writable or _was_left(path) else "ro"
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            factory=CheckedConnection,
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "recursive_triggers = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            if not writable:
                # No value is longer than the file, whatever it says.
                log = path.with_name(path.name + "-wal")
                length = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(length, _LEAST_LENGTH), 10**9))
            version = check(connection)
            if writable:
                prepare_writing(connection, version)
            else:
                check_rows(connection, version)
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection


def _was_left(path: Path) -> bool:
    """Return True if a process that writes, or one that was killed, has a log beside the file.

    What such a one left only a connection that may write can put in order.
    """
    logs = (path.with_name(path.name + ending) for ending in ("-wal", "-journal"))
    return any(log.exists() for log in logs) and os.access(path, os.W_OK)


def _no_file_text(path: Path) -> str:
    if is_case(path):
        return f"is a case, no recording of a run; stepper run {printable(str(path))} --trace FILE makes one"
    return "is not a file" if path.exists() else no_such_file(path)


def _check_beginning(path: Path) -> None:
    try:
        if not path.is_file():
            raise SessionError(_no_file_text(path))
        with path.open("rb") as file:
            beginning = file.read(len(_MAGIC))
    except OSError as error:
        raise SessionError(f"cannot be read: {error.strerror}") from None
    if beginning != _MAGIC:
        raise SessionError(
            "is not a recording of a run (it is not an SQLite database); stepper run MODEL --trace FILE makes one"
        )


@contextlib.contextmanager
def time_bound(connection: sqlite3.Connection, seconds: float = LONGEST_QUERY) -> Iterator[None]:
    """Give up on queries of the block that take longer together."""
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


@contextlib.contextmanager
def new_file(path: Path, page_size: int = PAGE_SIZE) -> Iterator[sqlite3.Connection]:
    """Open a connection to fill a file, which appears with all that the block writes, or not at all.

    UsageError where it is there already or cannot be made.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists already; --resume continues it, or choose another name")
    for leftover in (path.with_name(path.name + ending) for ending in ("-wal", "-journal")):
        if leftover.exists():  # SQLite would take it for what the new file has not got yet
            raise UsageError(f"{leftover}: is left over from another file of this name; remove it first")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise cannot_be_written(path, error.strerror or str(error)) from None
    os.close(handle)
    try:
        connection = sqlite3.connect(name, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute(f"PRAGMA page_size = {page_size}")
            connection.execute("PRAGMA synchronous = OFF")  # nobody sees the file yet
            connection.execute("BEGIN")
            create(connection)
            yield connection
            connection.execute("COMMIT")
        Path(name).chmod(usual_mode())
        os.link(name, path)  # unlike a renamed file, a link does not replace one that appeared meanwhile
    except OSError as error:
        raise cannot_be_written(path, error.strerror or str(error)) from None
    except sqlite3.Error as error:
        raise writing_error(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()
