"""How `stepper debug` keeps a session: put back at the start, saved while one works and at the end.

It is kept in the file of --session, or at a terminal by model, as the application on the whole terminal does.
"""

from __future__ import annotations

import contextlib
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepper.cli.printing import Progress
from stepper.cli.specs import protected_files
from stepper.errors import StepperError
from stepper.files.file_kinds import SESSION
from stepper.files.locks import lock
from stepper.files.output import RECORDING_FILE, REFERENCE_FILE, SESSION_FILE, OutputFile
from stepper.session.autosave import Autosave, restored_text
from stepper.terminal import say

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger


def exists(options: Namespace) -> bool:
    """Return True if there is a session to go on with."""
    return options.session is not None and Path(options.session).exists()


def adopt(options: Namespace) -> dict[str | int, Any]:
    """Run as the session did where the options leave it open; return its inputs by position. SessionError."""
    if not exists(options):
        return {}
    from stepper.recording import open_recording  # most start without a session, and need not wait for SQLite

    with open_recording(options.session) as recording:
        recording.model_path(options.model)  # the model is looked at first: another one has other inputs
        options.rules = options.rules or recording.origin.rules
        options.open_sequences = options.open_sequences or recording.origin.open_sequences
        options.kept_calls = recording.origin.plan_of_calls
        options.kept_states = recording.states()  # what variables began with, where the options do not say
        return dict(enumerate(recording.inputs().values()))


def check_target(options: Namespace) -> None:
    """Raise OutputError where the session may not be kept in the file that is named."""
    protected = protected_files(options).but(SESSION_FILE, RECORDING_FILE, REFERENCE_FILE)
    OutputFile(Path(options.session), SESSION, protected, "--session").check()


@contextlib.contextmanager
def locked(options: Namespace) -> Iterator[None]:
    """Lock the session for a block. FileInUse where another program has it."""
    if options.session is None:
        yield
        return
    check_target(options)
    with lock(options.session, advice="close it there, or name another file: --session OTHER") as found:
        if found.note:
            say(f"stepper: {found.note}", file=sys.stderr)
        yield


class CommandLineSession:
    """The session of one conversation. `by_model`: where no file is named it is kept in the user's state folder."""

    def __init__(self, options: Namespace, debugger: Debugger, *, by_model: bool) -> None:
        self._file: str | None = options.session
        self._debugger = debugger
        self._autosave = None
        if not options.no_keep and (by_model or self._file is not None):
            file = None if self._file is None else Path(self._file)
            self._autosave = Autosave(file=file, fresh=options.fresh)
        self._fresh: bool = options.fresh
        self._trusts: bool = options.trust_session
        self.failure = ""
        """Why the session by model could not be saved at the end."""

    def restore(self) -> str:
        """Put back the session that there is; what to tell the user. SessionError for one of a file that is named."""
        if self._autosave is None:
            return ""
        if self._file is None:
            with Progress(self._debugger.machine, wanted=True):
                return self._autosave.restore(self._debugger).sentence
        if self._fresh or not Path(self._file).exists():
            return f"a new session, to be kept in {self._file}"
        from stepper.session.session_files import restore_session

        with Progress(self._debugger.machine, wanted=True):
            restored = restore_session(self._debugger, self._file)
        if self._trusts:
            self._debugger.breakpoints.trust()
        if restored.empty:
            return f"{self._file} keeps no session yet"
        return f"session restored from {self._file}: {restored_text(self._debugger)}"

    def keep_up(self, *, due: bool = False) -> None:
        """Save what has changed, a place every few seconds; print what is wrong with that once."""
        if self._autosave is not None and (trouble := self._autosave.keep_up(self._debugger, due=due)):
            say(f"stepper: {trouble}", file=sys.stderr)

    @property
    def is_due(self) -> bool:
        """True if a place is to be saved a little later."""
        return self._autosave is not None and self._autosave.is_due(self._debugger)

    def keep(self) -> str:
        """Save it at the end; what to tell of that. UsageError or SessionError for a file that is named."""
        if self._autosave is None:
            return "no session is kept"
        try:
            self._autosave.save(self._debugger)
        except StepperError as error:
            if self._file is not None:
                raise
            self.failure = f"the session is not saved: {error}"
            return self.failure
        finally:
            self._autosave.close()
        return f"the session is kept in {self._autosave.name}"
