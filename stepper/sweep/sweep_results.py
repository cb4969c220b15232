"""Define the file of a sweep: SQLite, with a row for each input that is done.

A single process writes; any program may read. A row is there or it is not: each chunk is one transaction. So whatever
ends the program loses only the chunk that was under way. The contents of the file are checked like the contents of any
file; nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import StrEnum
from functools import lru_cache
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from stepper.element_types import Indices, Ints
from stepper.engine.run import LoopSummary
from stepper.errors import InputError, LimitReached, OutputError, StepperError, UsageError
from stepper.files.file_kinds import RECORDING, ensure_no_pipe
from stepper.files.locks import FileLock, lock
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.ir.model import Layer, LayerSite
from stepper.records import Record
from stepper.sweep.sweep_inputs import FileInput, SliceInput, SweepIdentity, SweepInput, stamp
from stepper.wording import excerpt, near_text

# Rows of a sweep: what came of each input, as plain data.


class SweepOutcome(StrEnum):
    """Result of an input."""

    NOTHING = "nothing"
    STOPPED = "stopped"
    """A breakpoint stopped the run."""
    FINDING = "finding"
    """`check` found something."""
    DIFFERS = "differs"
    """It differs from the reference."""
    ERROR = "error"
    """The run failed."""
    LIMIT = "limit"
    """A limit of iterations, time or memory ended the run."""
    UNREADABLE = "unreadable"
    """The input cannot be read, or does not fit the model."""
    KILLED = "killed"
    """The process that ran it was killed."""


class LoopCount(Struct, frozen=True, array_like=True):
    """A loop in a run: how often it was entered, its iterations in all, and what ended it, each reason once."""

    path: str
    entered: int
    iterations: int
    ended: tuple[str, ...]


class SweepRow(Record):
    """Result of an input, which has a `name`.

    `what` is the kind of the finding: nan, the name of a rule, values, the kind of an error. `operation` and `type`
    name the layer (or the loop) that it shows in, `path` the loops around that, the outermost first. `iterations` are
    the iterations of those loops in which it shows. `address` is the address to look at in the debugger, `text` one
    sentence. `loops` are the loops of a run that came to its end.
    """

    name: str
    outcome: SweepOutcome
    what: str = ""
    operation: str = ""
    type: str = ""
    path: tuple[str, ...] = ()
    iterations: Indices = ()
    address: str = ""
    text: str = ""
    loops: tuple[LoopCount, ...] = ()

    @property
    def iteration(self) -> int | None:
        """Return the iteration of the innermost loop; None where it shows in none."""
        return self.iterations[-1] if self.iterations else None


_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x53_57_50_31
"""`SWP1`, in the header of the file."""
_LARGEST_VALUE = 2**24
_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rows (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, outcome TEXT NOT NULL, what TEXT NOT NULL, operation TEXT NOT NULL,
    type TEXT NOT NULL, path TEXT NOT NULL, iteration INTEGER, iterations TEXT NOT NULL, address TEXT NOT NULL,
    text TEXT NOT NULL, loops TEXT NOT NULL, input TEXT NOT NULL, stamp TEXT NOT NULL
);
"""
_COLUMNS = (
    "number, name, outcome, what, operation, type, path, iteration, iterations, address, text, loops, input, stamp"
)
_SEVERAL = {
    "model": "the model is another one, or was changed",
    "rules": "it was made with --rules {had}",
    "asked": "it was made with {had}",
    "limits": "it was made with other limits",
    "engine": "it was made with another engine",
    "given": "other inputs were given to all runs",
    "function": "the function of --generate is another one, or its file was changed",
    "program": "it was made by version {had} of the program",
}
"""Why a sweep cannot go on, by the field of the identity that differs."""


class SweepOptions(Struct, frozen=True, omit_defaults=True):
    """Options of all runs of a sweep, in the words of the command line, with which one of them is opened again."""

    input: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    states: str = ""
    rules: str = "spec"
    engine: str = "numpy"
    engine_for: tuple[str, ...] = ()
    device: str = ""
    precision: str = ""
    open_sequences: bool = False
    max_iterations: int | None = None
    reference: str = ""
    generate: str = ""


class SweepAbout(Record):
    """Origin of a sweep: the model as it was named, its folder, and how its runs were made.

    `count` is the number of its inputs.
    """

    model: str
    folder: str
    count: int
    identity: SweepIdentity
    options: SweepOptions = SweepOptions()


class StoredRow(Record):
    """A row with the number of its input, from 1, and what the input is."""

    number: int
    row: SweepRow
    input: SweepInput
    stamp: str


class SweepWriter:
    """A file that is written: rows are added in transactions; a context manager, which holds the lock."""

    def __init__(self, path: Path, about: SweepAbout, protected: ProtectedFiles) -> None:
        """Open it, or make it. UsageError where it has another sweep, or is in use; OutputError."""
        OutputFile(path, RECORDING, protected, "--out").check()
        self.path, self._folder = path, about.folder
        self._lock: FileLock = lock(path, advice="let it end, or choose another file with --out")
        try:
            with _errors(path):
                is_new = not path.exists() or path.stat().st_size == 0
                if not is_new:
                    had = read_about(path)
                    for field, words in _SEVERAL.items():
                        was = getattr(had.identity, field)
                        if was != getattr(about.identity, field):
                            why = words.format(had=excerpt(was))
                            raise UsageError(
                                f"{path} has another sweep: {why}; choose another file with --out, or remove that one"
                            )
                self._connection = sqlite3.connect(path, isolation_level=None)
                self._prepare(about, is_new=is_new)
        except BaseException:
            self._lock.release()
            raise

    def _prepare(self, about: SweepAbout, *, is_new: bool) -> None:
        connection = self._connection
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        if is_new:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            for statement in _TABLES.strip().split(";"):
                if statement.strip():
                    connection.execute(statement)
        content = msgspec.json.encode(about).decode()
        connection.execute("INSERT OR REPLACE INTO about VALUES ('sweep', ?)", (content,))
        connection.execute("COMMIT")

    def __enter__(self) -> SweepWriter:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._connection.close()
        self._lock.release()

    def kept(self, inputs: Sequence[SweepInput], stamps: Sequence[str]) -> set[int]:
        """Keep the rows of these inputs, under their new numbers, and no others; return the numbers.

        If the set has changed, numbers change with it: the table has the rows of these inputs alone. UsageError if rows
        of inputs that are still there would go.
        """
        wanted = {(one.name, stamp): number for number, (one, stamp) in enumerate(zip(inputs, stamps, strict=True), 1)}
        connection = self._connection
        with _errors(self.path):
            self._ensure_none_lost({one.name for one in inputs})
            found = connection.execute("SELECT number, name, stamp FROM rows").fetchall()
            moved = {number: wanted.get((name, stamp)) for number, name, stamp in found}
            if any(number != new for number, new in moved.items()):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(
                    "DELETE FROM rows WHERE number = ?", [(number,) for number, new in moved.items() if new is None]
                )
                pairs = [(-new, number) for number, new in moved.items() if new is not None]
                connection.executemany("UPDATE rows SET number = ? WHERE number = ?", pairs)
                connection.execute("UPDATE rows SET number = -number")
                connection.execute("COMMIT")
        return {new for new in moved.values() if new is not None}

    def _ensure_none_lost(self, names: Set[str]) -> None:
        """Raise UsageError for rows of inputs that are there, but not among these: hours may be in them."""
        rows = self._connection.execute("SELECT name, input FROM rows")
        left = [(name, msgspec.json.decode(kept, type=SweepInput)) for name, kept in rows if name not in names]
        lost = [name for name, one in left if not isinstance(one, FileInput | SliceInput) or stamp(one, self._folder)]
        if lost:
            more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
            raise UsageError(
                f"{self.path} has rows of inputs that are not among these: {excerpt(lost[0])}{more}; name them too, "
                "choose another file with --out, or remove that one"
            )

    def add(self, rows: Iterable[StoredRow]) -> None:
        """Add rows, all of them or none."""
        with _errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                marks = ", ".join("?" * len(_COLUMNS.split(",")))
                self._connection.executemany(f"INSERT OR REPLACE INTO rows VALUES ({marks})", map(_values, rows))
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


@lru_cache(maxsize=256)
def _listed(value: tuple[Any, ...]) -> str:
    """Return a list as JSON: most rows have the same few."""
    return msgspec.json.encode(value).decode()


def _values(stored: StoredRow) -> list[str | int | None]:
    given = msgspec.json.encode(stored.input).decode()
    own = {"number": stored.number, "iteration": stored.row.iteration, "input": given, "stamp": stored.stamp}
    values = asdict(stored.row) | own
    return [_listed(one) if isinstance(one := values[name], tuple) else one for name in _COLUMNS.split(", ")]


# --- reading --------------------------------------------------------------------------------------------------------


def is_sweep(path: str | Path) -> bool:
    """Return True for a file that says of itself to be a sweep."""
    try:
        ensure_no_pipe(path)
        with Path(path).open("rb") as file:
            head = file.read(72)
    except (OSError, ValueError):
        return False
    return head.startswith(_MAGIC) and head[68:72] == _APPLICATION.to_bytes(4, "big")


def read_about(path: Path) -> SweepAbout:
    """Return what a sweep is of. InputError for a file that is none."""
    with _reading(path) as connection:
        found = connection.execute("SELECT value FROM about WHERE key = 'sweep'").fetchone()
        if found is None:
            raise InputError(f"{path}: is no sweep")
        return msgspec.json.decode(found[0], type=SweepAbout)


def read_rows(path: Path) -> list[StoredRow]:
    """Return all rows in the order of their numbers. InputError for a file that is none, or damaged."""
    with _reading(path) as connection:
        return [_stored(values) for values in connection.execute(f"SELECT {_COLUMNS} FROM rows ORDER BY number")]


def read_row(path: Path, number: int) -> StoredRow:
    """Return one row. UsageError where there is none of this number."""
    with _reading(path) as connection:
        query = f"SELECT {_COLUMNS} FROM rows WHERE number = ?"
        values = connection.execute(query, (number,)).fetchone()
        if values is None:
            most = connection.execute("SELECT max(number) FROM rows").fetchone()[0]
            raise UsageError(f"{path} has no input {number}; its inputs are 1 to {most or 0}")
        return _stored(values)


def _stored(values: Sequence[object]) -> StoredRow:
    found: dict[str, Any] = dict(zip(_COLUMNS.split(", "), values, strict=True))
    found |= {name: msgspec.json.decode(found[name]) for name in ("path", "iterations", "loops", "input")}
    return msgspec.convert({**found, "row": found}, StoredRow)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with _errors(path):
        if not path.is_file():
            raise InputError(f"{path}: cannot be read: there is no such file")
        if not is_sweep(path):
            raise UsageError(f"{path} is no sweep: stepper sweep MODEL --out writes one")
        left = path.with_name(f"{path.name}-journal").exists()  # of a process that was killed
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={'rw' if left else 'ro'}", uri=True)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            yield connection
        finally:
            connection.close()


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except StepperError:
        raise
    except (OSError, sqlite3.OperationalError) as error:
        raise OutputError(f"{path}: cannot be used: {excerpt(str(error), 200)}") from None
    except (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a sweep: {excerpt(str(error), 200)}") from None


# Rows of runs that come to their end or fail; those of what is asked for are made by who judges it.

_LONGEST = 400


def clean_row(name: str, loops: Sequence[LoopCount]) -> SweepRow:
    """Return the row of an input with which nothing is wrong."""
    return SweepRow(name, SweepOutcome.NOTHING, loops=tuple(loops))


def error_row(name: str, error: StepperError, *, reads: bool = False) -> SweepRow:
    """Return the row of an input that cannot be read (`reads`), or with which the run fails."""
    if reads:
        outcome = SweepOutcome.UNREADABLE
    else:
        outcome = SweepOutcome.LIMIT if isinstance(error, LimitReached) else SweepOutcome.ERROR
    operation = type = ""
    path: tuple[str, ...] = ()
    numbers: Ints = ()
    place = error.place
    if place is not None:
        path = tuple(f"{one.layer.type} '{one.layer.name}'" for one in place.path)
        numbers = tuple(one.iteration for one in place.path if one.iteration is not None)
        if place.layer is not None:
            operation, type = place.layer.name, place.layer.type
    return SweepRow(name, outcome, error.kind, operation, type, path, numbers, text=row_text(str(error)))


def limit_row(name: str, what: str, text: str) -> SweepRow:
    """Return the row of an input whose run a limit of ours ended."""
    return SweepRow(name, SweepOutcome.LIMIT, what, text=text)


def counts_of_run(summaries: Iterable[LoopSummary]) -> tuple[LoopCount, ...]:
    """Return the loops of a run, by their paths."""
    found = [
        LoopCount(one.path, one.executions, one.iterations, tuple(sorted(map(str, one.ended)))) for one in summaries
    ]
    return tuple(sorted(found, key=lambda one: one.path))


def name_and_type(layer: Layer | LayerSite | None) -> tuple[str, str]:
    """Return name and type of the layer in which something shows; empty where it shows in none."""
    return ("", "") if layer is None else (layer.name, layer.type)


def row_text(text: str) -> str:
    """Return a text as a row has it: of one line, and not too long."""
    return excerpt(" ".join(text.split()), _LONGEST)


# Facts of a whole sweep: outcomes by count, where and in which iteration, and which inputs run on or end early.


class IterationCount(Record):
    """How many inputs show something in an iteration of the innermost loop; None: in no loop."""

    iteration: int | None
    inputs: int


class PlaceCount(Record):
    """A place where something shows: what, in which layer, with how many inputs, in which iterations.

    `first` is the number of the first input with it.
    """

    outcome: SweepOutcome
    what: str
    operation: str
    type: str
    path: tuple[str, ...]
    inputs: int
    iterations: tuple[IterationCount, ...]
    first: int


class LengthCount(Record):
    """How many inputs make a loop run so many iterations in all."""

    iterations: int
    inputs: int
    first: int


class LoopSpread(Record):
    """The iterations of a loop over all inputs with which the run came to its end, the most frequent first."""

    path: str
    lengths: tuple[LengthCount, ...]


class SweepSummary(Record):
    """The facts of a sweep: `count` inputs, and `done` of them have a row.

    `unusual` are the numbers of inputs that show nothing, but whose loops ran otherwise than with most inputs: other
    numbers of iterations, or another end.
    """

    count: int
    done: int
    outcomes: dict[SweepOutcome, int]
    places: tuple[PlaceCount, ...]
    loops: tuple[LoopSpread, ...]
    unusual: Ints

    @property
    def found(self) -> int:
        """Return how many inputs show something."""
        return self.done - self.outcomes.get(SweepOutcome.NOTHING, 0)


_PLACES = """
SELECT json_object('outcome', outcome, 'what', what, 'operation', operation, 'type', type, 'path', json(path),
    'inputs', sum(inputs), 'first', min(first),
    'iterations', json_group_array(json_object('iteration', iteration, 'inputs', inputs)))
FROM (SELECT outcome, what, operation, type, path, iteration, count(*) AS inputs, min(number) AS first
    FROM rows WHERE outcome <> 'nothing'
    GROUP BY outcome, what, operation, type, path, iteration ORDER BY iteration)
GROUP BY outcome, what, operation, type, path ORDER BY sum(inputs) DESC, min(first)
"""
_LOOPS = """
SELECT json_object('path', path, 'lengths', json_group_array(
    json_object('iterations', iterations, 'inputs', inputs, 'first', first)))
FROM (SELECT json_extract(value, '$[0]') AS path, json_extract(value, '$[2]') AS iterations, count(*) AS inputs,
    min(number) AS first FROM rows, json_each(loops) GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2)
GROUP BY path ORDER BY path
"""
_UNUSUAL = """
SELECT number FROM rows WHERE outcome = 'nothing' AND loops <> (
    SELECT loops FROM rows WHERE outcome = 'nothing' GROUP BY loops ORDER BY count(*) DESC, min(number) LIMIT 1)
ORDER BY number
"""


def summary(path: Path, count: int) -> SweepSummary:
    """Return the facts of the rows of a file, of so many inputs."""
    with _reading(path) as connection:
        counts = dict(connection.execute("SELECT outcome, count(*) FROM rows GROUP BY outcome").fetchall())
        return SweepSummary(
            count,
            sum(counts.values()),
            {outcome: counts[outcome] for outcome in SweepOutcome if outcome in counts},
            tuple(msgspec.json.decode(text, type=PlaceCount) for (text,) in connection.execute(_PLACES)),
            tuple(msgspec.json.decode(text, type=LoopSpread) for (text,) in connection.execute(_LOOPS)),
            tuple(number for (number,) in connection.execute(_UNUSUAL)),
        )


# The table of a sweep as a list: its columns, sorted by one of them, and filtered.
#
# SweepListing(rows).shown(sort="iteration", filter="outcome=stopped iteration>7 wkv")

Cell = str | int | None

_CELLS: dict[str, Callable[[StoredRow], Cell]] = {
    "input": lambda stored: stored.number,
    "outcome": lambda stored: str(stored.row.outcome),
    "what": lambda stored: stored.row.what,
    "operation": lambda stored: stored.row.operation,
    "iteration": lambda stored: stored.row.iteration,
    "iterations": lambda stored: sum(loop.iterations for loop in stored.row.loops) if stored.row.loops else None,
    "name": lambda stored: stored.row.name,
    "type": lambda stored: stored.row.type,
    "text": lambda stored: stored.row.text,
}
COLUMNS = tuple(_CELLS)
"""The columns: `iteration` is the one in which something shows, `iterations` those of all loops of a whole run."""

_TERM = re.compile(r"([a-z]+)(=|!=|<=|>=|<|>)(.*)")


class Listed(Record):
    """A row of the list: the row itself, and its cells in the order of COLUMNS."""

    stored: StoredRow
    cells: tuple[Cell, ...]


class SweepListing:
    """Hold all rows of a sweep, and show some of them in an order."""

    def __init__(self, rows: Sequence[StoredRow]) -> None:
        self.rows = [Listed(stored, tuple(read(stored) for read in _CELLS.values())) for stored in rows]

    def shown(self, sort: str = "", filter: str = "", *, descending: bool = False) -> list[Listed]:
        """Return the rows that a filter leaves, sorted by a column; those without a value come last.

        A filter is words: each word is in some cell, or it is about a column: `outcome=stopped`, `iteration>7`.
        UsageError for a column that does not exist, and for an order of cells that are no numbers.
        """
        tests = [_test(term) for term in filter.split()]
        found = [row for row in self.rows if all(test(row.cells) for test in tests)]
        if not sort:
            return found
        column = _column(sort)
        empty = [row for row in found if row.cells[column] in (None, "")]
        filled = [row for row in found if row.cells[column] not in (None, "")]
        return sorted(filled, key=lambda row: _ordered(row.cells[column]), reverse=descending) + empty


def _ordered(cell: Cell) -> tuple[int, str]:
    return (cell, "") if isinstance(cell, int) else (0, str(cell))


def _column(name: str) -> int:
    if name not in COLUMNS:
        near = near_text(name, COLUMNS)
        raise UsageError(f"there is no column '{name}'; {near or 'there are ' + ', '.join(COLUMNS)}")
    return COLUMNS.index(name)


def _test(term: str) -> Callable[[tuple[Cell, ...]], bool]:
    match = _TERM.fullmatch(term)
    if match is None:
        word = term.lower()
        return lambda cells: any(word in str(cell).lower() for cell in cells if cell is not None)
    column, sign, value = _column(match[1]), match[2], match[3]
    if sign in ("=", "!="):
        wanted = value.lower()
        return lambda cells: (("" if cells[column] is None else str(cells[column])).lower() == wanted) == (sign == "=")
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise UsageError(f"{term}: a number is expected behind {sign}")
    number, compare = int(value), _ORDERS[sign]

    def holds(cells: tuple[Cell, ...]) -> bool:
        cell = cells[column]
        return isinstance(cell, int) and compare(cell, number)

    return holds


_ORDERS: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
