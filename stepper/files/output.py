"""Write files, whole or not at all, and never over files that the run reads.

    target = OutputFile("out.npz", ARRAYS, protected, option="-o")
    target.check()                                   # before a long run, so that it does not end in a refusal
    target.write(content)                            # checked again; an old file stays whole until the new one is

The content goes into a file beside the target, is flushed to the disk, and takes the target's name at the end. A full
disk or a killed process leaves the old file unchanged. A device or a pipe, for example /dev/null, is written directly.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from stepper.errors import OutputError
from stepper.files.file_kinds import OWNERS, RECORDING, SESSION, WEIGHTS_SUFFIX, FileKind
from stepper.files.locks import lock, try_lock
from stepper.records import Record

_SQLITE = b"SQLite format 3\0"
_LONGEST_PREFIX = 40
_UNFINISHED = ".part"
_ASIDE = ".old"
_OLD_S = 3600.0
_LONGEST_COMMIT = 30.0
"""Seconds for another process to put its files in their places."""


SESSION_FILE = "the session"
REFERENCE_FILE = "the reference"
RECORDING_FILE = "the recording"
"""Uses of files that a run may write itself: a session may be kept in each of them."""


class ProtectedFile(Record):
    """A file that must not be written over; `what` it is for the run, such as "the weights file of the model"."""

    path: Path
    what: str

    def is_at(self, path: Path) -> bool:
        """True if the path leads to this file: by links, through another spelling, or from another folder, too."""
        try:
            return path.samefile(self.path)
        except OSError:
            # One of them is not there yet: a session to be kept, the weights of a model that has none.
            return _spelled(path) == _spelled(self.path)


class ProtectedFiles(Record):
    """The files that a run reads or that belong to its model."""

    files: tuple[ProtectedFile, ...] = ()

    @classmethod
    def of_model(cls, path: str | Path, what: str = "the model") -> ProtectedFiles:
        """Return a model's file and its weights."""
        path = Path(path)
        weights = ProtectedFile(path.with_suffix(WEIGHTS_SUFFIX) if path.name else path, f"the weights file of {what}")
        return cls((ProtectedFile(path, what), weights))

    @classmethod
    def of_file(cls, path: str | Path, what: str) -> ProtectedFiles:
        """Return one file."""
        return cls((ProtectedFile(Path(path), what),))

    def but(self, *whats: str) -> ProtectedFiles:
        """Without those that are this for the run."""
        return ProtectedFiles(tuple(one for one in self.files if one.what not in whats))

    def __add__(self, others: ProtectedFiles) -> ProtectedFiles:
        return ProtectedFiles(tuple(dict.fromkeys((*self.files, *others.files))))

    def at(self, path: Path) -> ProtectedFile | None:
        """Return the protected file to which a path leads."""
        return next((one for one in self.files if one.is_at(path)), None)


def _spelled(path: Path) -> str:
    try:
        return os.path.realpath(path).casefold()
    except (OSError, ValueError):
        return str(path).casefold()


class OutputFile(Record):
    """A file to write: what kind it is to be, and what must not be written over; `option` names it in messages."""

    path: Path
    kind: FileKind
    protected: ProtectedFiles = ProtectedFiles()
    option: str = ""

    def __str__(self) -> str:
        return f"{self.option} {self.path}".strip()

    def check(self) -> None:
        """Raise OutputError where the file may not be written, as far as that is known before."""
        self.check_protected()
        self._check_suffix()
        with _errors(self.path):
            self._check_place()

    def check_protected(self) -> None:
        """Raise OutputError where it is a file that must not be written over."""
        if "\0" in str(self.path):
            raise OutputError(f"{str(self.path)!r} is not the name of a file")
        found = self.protected.at(self.path)
        if found is not None:
            raise OutputError(f"{self}: that is {found.what}; choose another file")

    def _check_suffix(self) -> None:
        suffix = self.path.suffix.lower()
        if suffix not in self.kind.suffixes and suffix in OWNERS:
            usual = f"{self.path.stem}{self.kind.suffixes[0]}"
            raise OutputError(
                f"{self}: {suffix} is the suffix of {OWNERS[suffix]}, and {self.kind.name} would be written; "
                f"choose another name, such as {usual}"
            )

    def _check_place(self) -> None:
        path = Path(os.path.realpath(self.path))
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if path.exists():
            if not path.is_file():
                return
            if not os.access(path, os.W_OK) and path.exists():  # another process may have moved it away
                raise PermissionError(13, "it may not be written (Permission denied)")
            if self.kind not in (RECORDING, SESSION):
                self._check_content(path)
        if not path.parent.is_dir():
            raise FileNotFoundError(2, f"there is no folder '{path.parent}'")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(13, f"nothing may be written into the folder '{path.parent}' (Permission denied)")

    def _check_content(self, path: Path) -> None:
        with contextlib.suppress(PermissionError, FileNotFoundError), path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                raise OutputError(f"{self}: that is a recording, a session or another database; choose another file")

    @contextlib.contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Yield a file to write, which takes its name at the end, or never. OutputError where it cannot."""
        with writing_all([self]) as (file,):
            yield file

    def write(self, content: bytes) -> None:
        """Write this. Raises OutputError."""
        with self.writing() as file:
            file.write(content)


@contextlib.contextmanager
def writing_all(targets: Iterable[OutputFile]) -> Iterator[tuple[IO[bytes], ...]]:
    """Yield a file to write for each target; all take their names at the end, or none. Raise OutputError."""
    targets = tuple(targets)
    for target in targets:
        target.check()
    with contextlib.ExitStack() as stack:
        parts = tuple(stack.enter_context(_part(target.path)) for target in targets)
        first = targets[0].path
        with _errors(first):
            yield tuple(part.file for part in parts)
        for part in parts:
            with _errors(part.path):
                part.complete()
        _commit(parts)


def _commit(parts: Sequence[_Part]) -> None:
    """Put all files in their places. A fault puts the old files back.

    The first file takes its place last. If the process is killed before that, the first file is missing, so files of
    two runs never look like one set, and the old files are kept under hidden names.
    """
    if len(parts) == 1:
        parts[0].commit()
        return
    with lock(parts[0].path, wait=_LONGEST_COMMIT), contextlib.ExitStack() as undoing:
        for part in parts:
            undoing.callback(part.put_back)
            part.set_aside()
        for part in reversed(parts):
            part.commit()
        undoing.pop_all()
        for part in parts:
            part.drop_aside()


class _Part:
    """File that will be a target. `temporary` is its place until then, None for a device."""

    def __init__(self, path: Path, file: IO[bytes], temporary: Path | None) -> None:
        self.path, self.file = path, file
        self._target, self._temporary = Path(os.path.realpath(path)), temporary
        self._aside: Path | None = None
        self._is_new = False

    def complete(self) -> None:
        """Flush the file to the disk, with the rights of the file that it replaces."""
        self.file.flush()
        if self._temporary is not None:
            os.fsync(self.file.fileno())
            mode = _mode_of(self._target)  # None also where another writer of a set has moved it away
            self._temporary.chmod(usual_mode() if mode is None else stat.S_IMODE(mode))

    def set_aside(self) -> None:
        """Move the old file away, whose rights the new one takes."""
        if self._temporary is not None:
            aside = self._temporary.with_suffix(_ASIDE)
            with _errors(self.path), contextlib.suppress(FileNotFoundError):
                self._target.replace(aside)
                self._aside = aside
                self._temporary.chmod(stat.S_IMODE(aside.stat().st_mode))

    def commit(self) -> None:
        """Put it in the target's place."""
        with _errors(self.path):
            if self._temporary is None:
                import shutil

                self.file.seek(0)
                with self.path.open("wb") as device:
                    shutil.copyfileobj(self.file, device)
                return
            self.file.close()
            self._temporary.replace(self._target)
            self._is_new = True
            _sync_folder(self._target.parent)

    def put_back(self) -> None:
        """Restore the old file."""
        with contextlib.suppress(OSError):
            if self._aside is not None:
                self._aside.replace(self._target)
            elif self._is_new:
                self._target.unlink()

    def drop_aside(self) -> None:
        """Remove the old file."""
        if self._aside is not None:
            with contextlib.suppress(OSError):
                self._aside.unlink()


@contextlib.contextmanager
def _part(path: Path) -> Iterator[_Part]:
    import tempfile  # a start that writes nothing need not wait for it

    with contextlib.ExitStack() as ending:
        with _errors(path):
            if _is_special(path):
                part = _Part(path, ending.enter_context(tempfile.TemporaryFile()), None)
            else:
                target = Path(os.path.realpath(path))
                prefix = f".{target.name[:_LONGEST_PREFIX]}."
                _remove_leftovers(target.parent, prefix)
                handle, name = tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=_UNFINISHED)
                ending.callback(_removed, Path(name))
                part = _Part(path, os.fdopen(handle, "w+b"), Path(name))
                ending.callback(_closed, part.file)
                try_lock(handle)
        yield part


def _removed(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _closed(file: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # what did not fit waits in its buffer
        file.close()


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove unfinished files of killed processes. A living process locks its file soon after it makes it."""
    import time

    with contextlib.suppress(OSError):
        for one in folder.iterdir():
            if one.name.startswith(prefix) and one.name.endswith(_UNFINISHED):
                with contextlib.suppress(OSError), one.open("r+b") as file:
                    is_old = time.time() - os.fstat(file.fileno()).st_mtime > _OLD_S
                    if is_old and try_lock(file.fileno()):
                        one.unlink()


def _is_special(path: Path) -> bool:
    """True for what is there and no regular file: a device, a pipe."""
    mode = _mode_of(path)
    return mode is not None and not stat.S_ISREG(mode)


def _mode_of(path: Path) -> int | None:
    """Return the mode of what has this name, asked for once, as other processes write too; None for nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk, where the system can do so."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise cannot_be_written(path, error.strerror or str(error)) from None


def cannot_be_written(path: str | Path, reason: str) -> OutputError:
    """Return the error for a file that cannot be written."""
    return OutputError(f"{path}: cannot be written: {reason}")


def usual_mode() -> int:
    """Return the rights of a new file."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
