"""`stepper debug MODEL --session FILE`: what the file keeps is put back at the start, and kept again at the end."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepper.cli.printing import say
from stepper.cli.progress import Progress
from stepper.cli.protected import protected_files
from stepper.debug.debugger import Debugger
from stepper.file_locks import lock
from stepper.output_files import RECORDING_FILE, REFERENCE_FILE, SESSION, SESSION_FILE, Target


def is_there(options: argparse.Namespace) -> bool:
    """Whether there is a session to go on with."""
    return options.session is not None and Path(options.session).exists()


def take_up(options: argparse.Namespace) -> dict[str | int, Any]:
    """Run as the file says where the options leave it open; its inputs by position. SessionError for another model."""
    if not is_there(options):
        return {}
    from stepper.debug.recording import open_recording  # most start without a session, and need not wait for SQLite

    with open_recording(options.session) as recording:
        recording.model_path(options.model)  # the model is looked at first: another one has other inputs
        options.rules = options.rules or recording.origin.rules
        options.open_sequences = options.open_sequences or recording.origin.open_sequences
        return dict(enumerate(recording.inputs().values()))


def check_target(options: argparse.Namespace) -> None:
    """Raise OutputError where the session may not be kept in the file that is named."""
    protected = protected_files(options).but(SESSION_FILE, RECORDING_FILE, REFERENCE_FILE)
    Target(Path(options.session), SESSION, protected, "--session").check()


@contextlib.contextmanager
def locked(options: argparse.Namespace) -> Iterator[None]:
    """No other program writes to the session in this block. FileInUse where one does already."""
    if options.session is None:
        yield
        return
    check_target(options)
    with lock(options.session, advice="close it there, or name another file: --session OTHER") as found:
        if found.note:
            say(f"stepper: {found.note}", file=sys.stderr)
        yield


def restore(options: argparse.Namespace, debugger: Debugger) -> str:
    """Put the session back where there is one; what to tell the user."""
    if not is_there(options):
        return f"a new session, to be kept in {options.session}"
    from stepper.debug.sessions import restore_session

    with Progress(debugger.machine, wanted=True):
        restored = restore_session(debugger, options.session)
    return f"{options.session} keeps no session yet" if restored.empty else f"session restored from {options.session}"


def keep(options: argparse.Namespace, debugger: Debugger) -> None:
    """Keep it, at the end."""
    if options.session is not None:
        from stepper.debug.sessions import save_session

        save_session(debugger, options.session)
