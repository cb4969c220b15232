"""Another debugger takes over from one whose files or inputs have changed: what of the old run is put back.

Imported when it is called for: sessions need SQLite, which takes its time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from stepper.debug.branches.edits import ORIGINAL
from stepper.debug.debugger import Debugger
from stepper.errors import StepperError
from stepper.session.session_files import restore_session, restore_stops, save_session


def reopened(
    old: Debugger, reopen: Callable[[], Debugger], keep: Callable[[Debugger], str]
) -> tuple[Debugger, str, bool]:
    """Return a debugger of the files as they are now, as far as possible where the old one was; a sentence on that, and
    whether the place is the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rerun.session"
        save_session(old, path)
        new = reopen()
        try:
            restore_session(new, path, is_own=True)
        except StepperError:
            begun = "read anew; the run is another one and begins at its start"
            return *_followed(old, reopen(), path, keep, begun), False
    return new, f"read anew, run to tick {new.machine.tick}", True


def followed(old: Debugger, make: Callable[[], Debugger], keep: Callable[[Debugger], str]) -> tuple[Debugger, str]:
    """A debugger of another run, at its start, with breakpoints and watches of the old one; and a sentence on that."""
    new = make()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "before.session"
        save_session(old, path)
        return _followed(old, new, path, keep, "runs on these inputs, at its start")


def _followed(
    old: Debugger, new: Debugger, path: Path, keep: Callable[[Debugger], str], sentence: str
) -> tuple[Debugger, str]:
    found, problems = restore_stops(new, path, is_own=True)
    kept = [] if found.empty else ["breakpoints and watches are set again"]
    return new, "; ".join(one for one in (sentence, *kept, *problems, _left_out(old), keep(old)) if one)


def _left_out(old: Debugger) -> str:
    """Return a sentence on the marks and branches of the old run, which mean nothing in another."""
    branches = [branch.name for branch in old.branches if branch.name != ORIGINAL]
    groups = (("mark", "marks", sorted(old.marks)), ("branch", "branches", branches))
    parts = [f"{one if len(names) == 1 else many} {', '.join(names)}" for one, many, names in groups if names]
    return f"left out, as of the run before: {' and '.join(parts)}" if parts else ""
