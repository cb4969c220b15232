"""Autosave of a session: saves it by model, or in a file that the user names, and restores it.

By model means in the user's state folder, under the hashes of the model and of the inputs: on the same inputs all comes
back, on others the breakpoints, watches and layout of the last session on this model. Nothing is written elsewhere.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper.debug.timeline import ORIGINAL
from stepper.errors import OutputError, StepperError, UsageError
from stepper.files.configuration import sessions_folder
from stepper.files.locks import FileInUse, FileLock, lock
from stepper.ir.lowering import has_opened
from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.breakpoints.breakpoints import Breakpoints
    from stepper.debug.debugger import Debugger
    from stepper.session.session_files import Stamp

MOST_KEPT = 200
"""Sessions in the state folder; the oldest go first."""
_LETTERS = 16
EVERY = 2.0
"""Seconds between two savings of a place."""


class RestoreResult(Record):
    """Result of restoring: the layout, a sentence for the user (empty: nothing was kept), and whether it failed."""

    layout: Mapping[str, Any] | None = None
    sentence: str = ""
    failed: bool = False


class Autosave:
    """Saves and restores the session of a debugger. With a `file` there, else by model in `folder`.

    `only_stops`: the place stays, because the user asked for another one. `fresh`: nothing is put back.
    `trusts`: the user agrees to the commands of breakpoints in `file`.
    """

    def __init__(
        self,
        *,
        file: Path | None = None,
        folder: Path | None = None,
        fresh: bool = False,
        only_stops: bool = False,
        trusts: bool = False,
    ) -> None:
        self._file = file
        self._trusts = trusts
        self._folder = folder
        self._fresh, self._only_stops = fresh, only_stops
        self._closed = ""
        """Why the session is not kept in its file; empty where it is."""
        self._path: Path | None = file
        self._lock: FileLock | None = None
        self._stamp: Stamp | None = None
        """The session as it was saved or begun; None where it has not begun."""
        self._is_ours = False
        """True if this autosave saved what is in the file."""
        self._aside: Path | None = None
        self._saved_at = 0.0
        self._trouble = ""

    @property
    def name(self) -> str:
        """The path of the file; empty where none is chosen yet."""
        return "" if self._path is None else str(self._path)

    @property
    def keeps(self) -> bool:
        """True if the session is kept; False where another program keeps one in the file, it is of another run, or it
        cannot be written."""
        return not self._closed and not self._trouble

    def path(self, debugger: Debugger) -> Path:
        """Return the file of this run; reads the model's files once."""
        if self._path is None:
            self._path = (self._folder or sessions_folder()) / f"{_model_name(debugger)}-{_run_name(debugger)}.session"
        return self._path

    # --- restoring -----------------------------------------------------------------------------------------------

    def restore(self, debugger: Debugger) -> RestoreResult:
        """Put back what is kept; whatever is wrong with it is a sentence."""
        path = self.path(debugger)
        in_use = self._take(path)
        found = RestoreResult() if self._fresh else self._restored(debugger, path)
        if not in_use:
            return found
        return RestoreResult(found.layout, "; ".join(one for one in (in_use, found.sentence) if one), failed=True)

    def _restored(self, debugger: Debugger, path: Path) -> RestoreResult:
        try:
            if path.is_file() and not self._only_stops:
                from stepper.session.session_files import (
                    restore_session,  # with SQLite; most runs begin without a session
                )

                found = restore_session(debugger, path, is_own=self._file is None)
                if self._trusts:
                    debugger.breakpoints.trust()
                return RestoreResult(
                    found.layout, "" if found.empty else f"session restored: {restored_text(debugger)}"
                )
            return RestoreResult() if self._file is not None else self._of_another_run(debugger, path)
        except StepperError as error:
            # A file that the user named may be of use elsewhere; it is not written over.
            if self._file is not None:
                self._closed = f"{path} holds a session that could not be restored, and stays"
            return RestoreResult(sentence=f"the session is not restored: {error}{self._put_aside(path)}", failed=True)

    def _put_aside(self, path: Path) -> str:
        """Have a session that could not be restored go elsewhere before this one takes its place; what to tell."""
        if self._file is not None or self._lock is None or not path.is_file():
            return ""
        self._aside = path.with_suffix(".unrestored.session")
        return f"; once this one is saved that one is in {self._aside}"

    def _of_another_run(self, debugger: Debugger, path: Path) -> RestoreResult:
        others = sorted(path.parent.glob(f"{path.name[:_LETTERS]}-*.session"), key=_time, reverse=True)
        if not others:
            return RestoreResult()
        from stepper.session.session_files import restore_stops

        found, problems = restore_stops(debugger, path if path in others else others[0])
        sentence = "" if found.empty else "breakpoints and watches of the last session on this model are set again"
        return RestoreResult(found.layout, "; ".join([*([sentence] if sentence else []), *problems]))

    # --- saving --------------------------------------------------------------------------------------------------

    def keep_up(self, debugger: Debugger, *, due: bool = False) -> str:
        """Save what has changed since the last time: at once what the user has set up, a place every few seconds.

        `due`: a place, too. The first time is the beginning. Returns what is wrong where it cannot be saved, once.
        """
        if self._closed or self._is_kept(_stamp(debugger), due):
            return ""
        try:
            self.save(debugger)
        except StepperError as error:
            trouble, self._saved_at = f"the session is not saved: {error}", monotonic()
        else:
            trouble = ""
        self._trouble, before = trouble, self._trouble
        return "" if trouble == before else trouble

    def _is_kept(self, now: Stamp, due: bool) -> bool:
        if self._stamp is None:
            self._stamp = now
        if now.setup != self._stamp.setup:
            return False
        return now.place == self._stamp.place or not (due or monotonic() - self._saved_at >= EVERY)

    def is_due(self, debugger: Debugger) -> bool:
        """True if the place is not saved yet; `keep_up` with `due` does that."""
        return not self._closed and self._stamp is not None and _stamp(debugger).place != self._stamp.place

    def save(self, debugger: Debugger, layout: Mapping[str, Any] | None = None) -> Path:
        """Keep it all. UsageError where it cannot be written, SessionError for a file of another run."""
        from stepper.session.session_files import save_session

        path = self.path(debugger)
        if self._take(path) or self._closed:
            raise UsageError(self._closed)
        now, known = _stamp(debugger), self._is_ours and path.is_file()
        if self._file is not None or known:
            save_session(debugger, path, layout, known=known)
            self._stamp, self._saved_at, self._is_ours = now, monotonic(), True
            return path
        part = path.with_suffix(f".{os.getpid()}.part")
        aside, self._aside = self._aside, None
        try:
            if aside is not None:
                path.replace(aside)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.unlink(missing_ok=True)
            save_session(debugger, part, layout)
            part.replace(path)
            self._stamp, self._saved_at, self._is_ours = now, monotonic(), True
            self._thin(path.parent)
        except OSError as error:
            raise UsageError(f"{path}: the session cannot be kept: {error.strerror}") from None
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        return path

    def go_on(self) -> None:
        """Keep a run that is opened anew, perhaps of a changed model, by what it is now."""
        if self._file is None:
            self._path, self._closed, self._stamp, self._is_ours = None, "", None, False
            self.close()

    def close(self) -> None:
        """Let other programs keep their sessions in the file."""
        if self._lock is not None:
            self._lock.release()
        self._lock = None

    def _take(self, path: Path) -> str:
        """Have the file to oneself; what to say where another program has it, which keeps its own session there."""
        if self._lock is not None or self._closed:
            return ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = lock(path)
        except FileInUse as error:
            who = error.holder or "another program"
            self._closed = f"this session is not kept (session save FILE keeps it): it is open in {who}"
        except (OSError, OutputError):
            pass  # saving will say what is wrong with the place
        return self._closed

    def part(self, debugger: Debugger, layout: Mapping[str, Any]) -> str:
        """Keep the session of a run that ends here, and from now on the session of another run.

        The session of the other run is kept by model; a file that the user named belongs to the first run. Return the
        message for the user.
        """
        named = "" if self._path is None else self._path.name
        try:
            # A model that has changed on the disk since is not the one that ran.
            if self._file is not None or named.startswith(_model_name(debugger)):
                self.save(debugger, layout)
            message = (
                f"{self._file} keeps the session before, this one is kept by model" if self._file is not None else ""
            )
        except StepperError as error:
            message = f"the session before is not saved: {error}"
        self._file = self._path = self._stamp = None
        self._is_ours = False
        self._closed = ""
        self.close()
        return message

    def _thin(self, folder: Path) -> None:
        for path in sorted(folder.glob("*-*.session"), key=_time, reverse=True)[MOST_KEPT:]:
            path.unlink(missing_ok=True)


def where(debugger: Debugger) -> str:
    """Return where a run stands, in a few words: tick, place, and the branch unless it is the original."""
    branch = debugger.branches.name
    named = "" if branch == ORIGINAL else f", branch {branch}"
    return f"tick {debugger.machine.tick}, {debugger.stop.place}{named}"


def restored_text(debugger: Debugger) -> str:
    """Return where a restored run stands, and which commands out of the file need the user's agreement."""
    return "; ".join((where(debugger), *distrusted_lines(debugger.breakpoints)))


def distrusted_text(number: int, commands: Sequence[str]) -> str:
    """Return the commands of a breakpoint that came out of a file, and how the user agrees to them."""
    return f"breakpoint {number} has commands of the file; `trust {number}` lets it do: {'; '.join(commands)}"


def distrusted_lines(breakpoints: Breakpoints) -> list[str]:
    """Return a line for each breakpoint whose commands need the user's agreement."""
    return [distrusted_text(one.number, one.description.commands) for one in breakpoints.distrusted]


def _stamp(debugger: Debugger) -> Stamp:
    from stepper.session.session_files import stamp  # with SQLite

    return stamp(debugger)


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _model_name(debugger: Debugger) -> str:
    from stepper.recording.blobs import content_hash, file_hashes

    hashes = file_hashes(debugger.model.path)
    return content_hash(f"{hashes['xml']} {hashes['bin']}".encode()).hex()[:_LETTERS]


def _run_name(debugger: Debugger) -> str:
    """Return of what else a run depends on: the inputs, the rules, whether sequences were opened, and the calls."""
    from stepper.recording.blobs import content_hash

    machine = debugger.machine
    parts = [str(machine.rules).encode()]
    parts.append(str(has_opened(debugger.model)).encode())
    if debugger.model.calls is not None:
        parts.append(repr(debugger.model.calls).encode())
    for value in debugger.inputs:
        array = np.asarray(value)
        parts.append(f"{array.dtype}{array.shape}".encode())
        parts.append(repr(array.tolist()).encode() if array.dtype.kind in "TO" else array.tobytes())
    return content_hash(b"\0".join(parts)).hex()[:_LETTERS]
