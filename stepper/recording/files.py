"""Opening the SQLite file of a recording so that nothing in it does harm, and saying in a sentence what is wrong."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stepper.errors import SessionError, StepperError, UsageError
from stepper.files.kinds import is_case
from stepper.files.output import cannot_be_written, usual_mode
from stepper.recording import schema, versions
from stepper.recording.versions import CheckedConnection
from stepper.wording import excerpt, no_such_file, printable

_MAGIC: Final = b"SQLite format 3\0"
_LEAST_LENGTH: Final = 2**20
_LONGEST_STATEMENT: Final = 200_000
_STEPS_BETWEEN_LOOKS: Final = 100_000
_LONGEST_MESSAGE: Final = 300

PAGE_SIZE: Final = 8192
PAGE_SIZE_OF_VALUES: Final = 32768
"""Bytes. Where many large values are written, small pages take half as long again."""

LONGEST_QUERY: Final = 60.0
"""Seconds after which a query is given up: only a file made to do so asks for more."""

_WRITING: Final = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM))
_READING: Final = frozenset(
    (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
)
_SAID: Final = {
    sqlite3.SQLITE_FULL: "no space left on the disk",
    sqlite3.SQLITE_READONLY: "it may not be written (Permission denied)",
    sqlite3.SQLITE_BUSY: "another program is writing to it",
    sqlite3.SQLITE_LOCKED: "another program is writing to it",
}

_IN_FUNCTION: Final = "user-defined function raised exception"
_UNREADABLE: Final = (sqlite3.Error, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, struct.error)


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
        if is_about_writing(error):
            raise cannot_be_written(path, writing_reason(error)) from None
        raise SessionError(f"{path}: cannot be read as a recording: {_reason(error)}") from None


def is_about_writing(error: Exception) -> bool:
    """True for an error of SQLite that comes of the disk rather than of what is in the file."""
    code = getattr(error, "sqlite_errorcode", None)  # None: of Python's own checks
    return code is not None and code & 0xFF in _WRITING and code not in _READING


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
            _limit(connection)
            if not writable:
                # No value is longer than the file, whatever it says.
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _length_with_log(path))
            version = versions.check(connection)
            if writable:
                versions.prepare_writing(connection, version)
            else:
                versions.check_rows(connection, version)
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


def _length_with_log(path: Path) -> int:
    log = path.with_name(path.name + "-wal")
    length = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return min(max(length, _LEAST_LENGTH), 10**9)


def _limit(connection: sqlite3.Connection) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "recursive_triggers = OFF"):
        connection.execute(f"PRAGMA {pragma}")


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
        raise UsageError(f"{path} exists already; --resume goes on with it, or choose another name")
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
            schema.create(connection)
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
