"""Lock a session or a recording, so that a single program writes it at a time.

The lock beside the file says who writes the file, and since when.

    with lock("work.session"):
        ...                                          # another program gets FileInUse

The system frees a lock when its process ends, whatever ends it, so the lock of a dead process is no obstacle. A process
may lock a file several times; the file is free when all these locks are released.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from stepper.errors import OutputError, UsageError
from stepper.records import Record
from stepper.wording import printable

_flock: Callable[[int], None] | None
try:
    import fcntl
except ImportError:  # pragma: no cover  # not a Unix
    _flock = None
else:

    def _flock(handle: int) -> None:
        """Lock an open file; BlockingIOError where another process has done so."""
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


_UNSUPPORTED = frozenset(
    getattr(errno, name) for name in ("ENOSYS", "EOPNOTSUPP", "ENOTSUP", "ENOLCK", "EINVAL") if hasattr(errno, name)
)
_LONGEST_COMMAND = 200
_LARGEST_FILE = 4096
_LONGEST_NAME = 60
_BETWEEN_LOOKS = 0.05
_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Not through a link, not for child processes, and without waiting for the other end of a pipe."""
_BEGINNING = b'{"pid": '
"""How the content of each lock begins."""


class Holder(Record):
    """Holder of a lock: its process, on which machine, the time at which it took the lock, and how it was called."""

    pid: int
    host: str
    since: str
    command: str

    def __str__(self) -> str:
        called = f" ({self.command})" if self.command else ""
        return f"process {self.pid} on {self.host} since {self.since}{called}"

    @classmethod
    def present(cls) -> Holder:
        """This process."""
        import shlex  # most starts lock nothing, and need not wait for these
        import socket

        words = [Path(sys.argv[0] if sys.argv else "python").name, *sys.argv[1:]]
        command = shlex.join(words)
        if len(command) > _LONGEST_COMMAND:
            command = f"{command[:_LONGEST_COMMAND]} ..."
        return cls(os.getpid(), socket.gethostname(), time.strftime("%Y-%m-%d %H:%M:%S"), command)


class FileInUse(UsageError):
    """Another program writes to the file; `holder` is None where that does not say who it is."""

    def __init__(self, path: Path, holder: Holder | None, advice: str) -> None:
        super().__init__(f"{path} is in use by {holder or 'another program'}; {advice}")
        self.holder = holder


class _Held:
    """A lock of this process, taken `count` times."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self.handle, self.count = path, handle, 1


_held: dict[Path, _Held] = {}
_guard: Final = threading.Lock()


class FileLock:
    """A lock that this process has, to be released; `note` says what is not so, and is empty where all is well."""

    def __init__(self, key: Path, note: str = "") -> None:
        self.note = note
        self._key: Path | None = None if note else key

    def release(self) -> None:
        """Let go of the file; a second time does nothing."""
        key, self._key = self._key, None
        if key is None:
            return
        with _guard:
            held = _held.get(key)
            if held is None:  # a child of the process that locked it
                return
            held.count -= 1
            if not held.count:
                _free(_held.pop(key))

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self.release()


def lock(path: str | Path, *, advice: str = "close it there, or choose another file", wait: float = 0.0) -> FileLock:
    """Lock a file, which need not be there yet, against other programs.

    Raise FileInUse where another one has it (after so many seconds of waiting), OutputError where there can be no lock
    beside it. `advice` says in the message what to do. Where the file system has no locks, the lock has a `note`.
    """
    path = Path(path)
    key = Path(os.path.realpath(path))
    end = time.monotonic() + wait
    while True:
        with _guard:
            held = _held.get(key)
            if held is not None:
                held.count += 1
                return FileLock(key)
            found = _taken(path, key)
            if isinstance(found, _Held):
                _held[key] = found
                return FileLock(key)
        if isinstance(found, str):
            return FileLock(key, found)
        if time.monotonic() >= end:
            raise FileInUse(path, found.holder, advice)
        time.sleep(_BETWEEN_LOOKS)


class _Busy(Record):
    """Another process has the lock."""

    holder: Holder | None


def _taken(path: Path, key: Path) -> _Held | _Busy | str:
    """Return the lock, who has it, or why there can be none."""
    place = lock_path(key)
    if _flock is None:
        return _note(path)
    while True:
        try:
            handle = os.open(place, os.O_RDWR | os.O_CREAT | _CAREFUL, 0o666)
        except OSError as error:
            reason = "it is a link; delete it" if place.is_symlink() else error.strerror
            raise OutputError(f"{path}: cannot be locked: {place}: {reason}") from None
        try:
            _flock(handle)
            if _is_still_there(place, handle):
                _check_ours(path, place, handle)
                with contextlib.suppress(OSError):  # a full disk: the holder stays unknown
                    _describe(handle)
                return _Held(place, handle)
        except OutputError:
            os.close(handle)
            raise
        except BlockingIOError:
            found = _read(handle)
            os.close(handle)
            return _Busy(found)
        except OSError as error:
            os.close(handle)
            if error.errno in _UNSUPPORTED:
                return _note(path)
            raise OutputError(f"{path}: cannot be locked: {place}: {error.strerror}") from None
        os.close(handle)  # it was released, and removed, in between


def try_lock(handle: int) -> bool:
    """Lock an open file until it is closed. Return False if another process has, or files cannot be locked."""
    if _flock is None:
        return False
    try:
        _flock(handle)
    except OSError:
        return False
    return True


def lock_path(path: Path) -> Path:
    """Return the file beside another one that is locked for it."""
    return path.with_name(f".{path.name[:_LONGEST_NAME]}.lock")


def _note(path: Path) -> str:
    return f"{path} cannot be locked on this file system; let no other program write to it meanwhile"


def _is_still_there(place: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), place.stat())
    except OSError:
        return False


def _check_ours(path: Path, place: Path, handle: int) -> None:
    """Raise OutputError for a file that is not a lock. A lock would overwrite it, and delete it at the end."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > _LARGEST_FILE:
        is_ours = False
    else:
        is_ours = os.pread(handle, len(_BEGINNING), 0) in (b"", _BEGINNING)
    if not is_ours:
        raise OutputError(f"{path}: cannot be locked: {place} is not a lock of stepper; move it away")


def _describe(handle: int) -> None:
    import json

    holder = Holder.present()
    content = json.dumps({name: getattr(holder, name) for name in Holder.__struct_fields__}).encode()
    os.ftruncate(handle, 0)
    os.pwrite(handle, content, 0)


def _read(handle: int) -> Holder | None:
    """Return the content of a lock file, which any program may have written."""
    import json

    try:
        content: Any = json.loads(os.pread(handle, _LARGEST_FILE, 0))
        return Holder(
            pid=int(content["pid"]),
            host=_plain(content["host"]),
            since=_plain(content["since"]),
            command=_plain(content["command"]),
        )
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None


def _plain(text: Any) -> str:
    return printable(str(text)[: _LONGEST_COMMAND + 4])


def _free(held: _Held) -> None:
    with contextlib.suppress(OSError):
        if _is_still_there(held.path, held.handle):
            held.path.unlink()  # while it is locked: no one else can have taken it
    with contextlib.suppress(OSError):
        os.close(held.handle)


@atexit.register
def _free_all() -> None:
    with _guard:
        while _held:
            _free(_held.popitem()[1])


def _forget_all() -> None:
    """A child process has no locks; those of its parent stay."""
    for held in _held.values():
        with contextlib.suppress(OSError):
            os.close(held.handle)
    _held.clear()
    if _guard.locked():  # by a thread that the child does not have
        _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
