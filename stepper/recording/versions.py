"""Versions of the schema: reading a recording of an earlier one, and the check of every row that is read.

A step of STEPS makes the tables of a version from those of the version before, by SELECTs. A file that is only read
stays as it is: temporary views stand in front of its tables. A file that is written to is upgraded in one transaction.

A new version is a new VERSION in schema.py, a step here, and files that the code before it made in
tests/recording/versions.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, NamedTuple, NoReturn

from stepper.errors import SessionError
from stepper.recording import schema
from stepper.recording.hashes import row_checksum
from stepper.recording.schema import CHECKSUM, RUN_LENGTH, TABLES, VERSION, columns
from stepper.tensors.statistics import RECORDED
from stepper.wording import excerpt

_MOST_KINDS: Final = 1000
_MOST_SHOWN: Final = 3


class Step(NamedTuple):
    """A step from one version of the schema to the next.

    `before` are the definitions of the tables that the next version changes, as they were; None for a new table.
    `selects` give the rows of the next version, without checksums, from `{table}`: a table of the version before.
    """

    before: Mapping[str, str | None]
    selects: Mapping[str, str]


_NUMBERS: Final = ", ".join(name for name in columns(TABLES["numbers"]) if name != "id")
_STATISTICS: Final = ", ".join(
    f"{name} {kind}".strip() for name, kind in columns(TABLES["tensors"]).items() if name != "id"
)
_VALUES: Final = "port INTEGER NOT NULL, form INTEGER NOT NULL, "
_ITERATIONS: Final = "first INTEGER NOT NULL, count INTEGER NOT NULL"

STEPS: Final[Mapping[int, Step]] = {
    4: Step(
        {
            "numbers": f"{_VALUES}{_ITERATIONS}, {_NUMBERS}",
            "number_series": None,
            "tensors": f"{_VALUES}iteration INTEGER NOT NULL, {_STATISTICS}",
            "tensor_series": None,
            "stacks": f"{_VALUES}{_ITERATIONS}, repeated INTEGER NOT NULL, blob INTEGER NOT NULL",
        },
        {
            "numbers": f"SELECT rowid AS id, {_NUMBERS} FROM {{numbers}}",
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
    if application != schema.APPLICATION_ID:
        raise SessionError("is an SQLite database, but not a recording of a run")
    if version > VERSION:
        raise SessionError(
            f"has version {version} of the schema, and this stepper knows {VERSION}: install a newer one"
        )
    if version < min(STEPS):
        oldest = f"this stepper reads {min(STEPS)} to {VERSION}"
        raise SessionError(f"has version {version} of the schema, and {oldest}: record the run again")
    tables = tables_of(version)
    expected = schema.statements(tables, schema.VIEWS if version == VERSION else {})
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
        for name, text in schema.VIEWS.items():
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
    for name in schema.VIEWS:
        connection.execute(f"DROP VIEW IF EXISTS {name}")
    for name in changed:
        if name in before:
            connection.execute(f"ALTER TABLE {name} RENAME TO before_{name}")
    names = {name: f"before_{name}" if name in changed else name for name in before}
    rows = _rows(connection, names, version)
    for (_kind, name), statement in schema.statements().items():
        if name in changed or name in schema.VIEWS:
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

_KEY: Final = "INTEGER PRIMARY KEY"
_KINDS: Final[Mapping[str, frozenset[type]]] = {
    _KEY: frozenset((int,)),
    "INTEGER NOT NULL": frozenset((int,)),
    "INTEGER": frozenset((int, NoneType)),
    "TEXT NOT NULL": frozenset((str,)),
    "TEXT": frozenset((str, NoneType)),
    "": frozenset((int, float, NoneType)),
}
"""Types of values that a column may hold, by the type of the column."""


def _checked(connection: CheckedConnection, table: str, definition: str, source: str, checksum: str) -> str:
    """Return a SELECT of the rows of a source, each of which has been checked; a checksum of -1 is none."""
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
