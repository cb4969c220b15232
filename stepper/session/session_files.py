"""Keeping a debugging session: what a user has set up and where the run stands, saved to a file and put back.

    save_session(debugger, "work.session")            # a new file, one of an earlier save, or a recording of this run
    restore_session(debugger, "work.session")         # in another process, on the same model and inputs

Kept are breakpoints and logpoints with their hits, watches, marks, expected NaN, labels, branches with the values that
were changed in them, and the place. A file of its own has the tables of a recording, with the hashes of the model's
files and the inputs. Restoring runs to the places anew: that takes as long as the run took to there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from stepper.debug.branches.branches import condition_edit, edit_again, trip_count_edit
from stepper.debug.branches.edits import ORIGINAL, Edit
from stepper.debug.breakpoints.breakpoint import Counted
from stepper.debug.debugger import Debugger
from stepper.debug.stop import describe
from stepper.debug.timeline import Timeline
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.errors import Paused, SessionError, UsageError
from stepper.files.kinds import SESSION
from stepper.files.locks import lock
from stepper.files.output import RECORDING_FILE, REFERENCE_FILE, SESSION_FILE, OutputFile, ProtectedFiles
from stepper.recording import open_recording, session_rows
from stepper.recording.blobs import BlobWriter
from stepper.recording.files import errors_named
from stepper.recording.reading.recording import Recording
from stepper.session.content import (
    SavedBranch,
    SavedEdit,
    SavedLabels,
    SavedLoopEdit,
    SavedSession,
    from_rows,
    present,
    stops_from_rows,
    to_rows,
)

LARGEST_LAYOUT: Final = 2**16
"""Characters of the JSON of a layout."""

_FIRST_STRIDE: Final = 16
_SECONDS: Final = 0.1
_LONGEST_WAIT: Final = 2.0
"""Seconds for another program to finish its own saving."""

Progress = Callable[[int, int], object]
"""Called several times a second with the number of ticks that have been run again, and of how many."""


class RestoredSession(Struct, frozen=True):
    """Result of restoring. `empty`: the file keeps no session. `layout` is the caller's own, or None."""

    empty: bool
    layout: dict[str, Any] | None


# --- saving ---------------------------------------------------------------------------------------------------------


def save_session(
    debugger: Debugger, path: str | Path, layout: Mapping[str, Any] | None = None, *, known: bool = False
) -> None:
    """Save the session into a file: a new one, or one of the same run, which may be a recording.

    `layout` is anything that JSON can write, at most LARGEST_LAYOUT characters; None leaves what is in the file.
    `known`: the file is one of this run, because the caller saved it there and nobody else could write to it since.
    OutputError where the file cannot be written, FileInUse where another program has it,
    SessionError where it is of another run.
    """
    path, machine = Path(path), debugger.machine
    _check_layout(layout)
    session_target(path, debugger.protected).check()

    def rows(blobs: BlobWriter) -> session_rows.Rows:
        found = to_rows(present(debugger), machine.compiled, blobs)
        return found if layout is None else {**found, "layout": [dict(layout)]}

    with lock(path, wait=_LONGEST_WAIT):
        if path.exists():
            if not known:
                with open_recording(path) as recording:
                    recording.check_run(machine, debugger.inputs)
            session_rows.update(path, rows)
        else:
            session_rows.create(path, machine, debugger.inputs, rows)
    debugger.branches.keep_edits()


def session_target(path: Path, protected: ProtectedFiles) -> OutputFile:
    """Return a file as target of a session: none that the run reads, unless it is a session or a recording."""
    return OutputFile(path, SESSION, protected.but(SESSION_FILE, RECORDING_FILE, REFERENCE_FILE))


def _check_layout(layout: Mapping[str, Any] | None) -> None:
    try:
        length = 0 if layout is None else len(json.dumps(dict(layout), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"a layout is what JSON can write: {error}") from None
    if length > LARGEST_LAYOUT:
        raise UsageError(f"a layout has at most {LARGEST_LAYOUT} characters as JSON, this one {length}")


# --- restoring ------------------------------------------------------------------------------------------------------


def restore_session(
    debugger: Debugger, path: str | Path, progress: Progress | None = None, *, is_own: bool = False
) -> RestoredSession:
    """Put a session back in place of what the debugger has. What is in the file is checked first.

    Commands of breakpoints wait for `debugger.breakpoints.trust`, unless the file `is_own`: only the user writes there.

    SessionError where it is of another run (the message says what differs), cannot be, or was paused on the way; the
    debugger then has what it had before. Raises what the run raises.
    """
    with open_recording(path) as recording:
        recording.check_run(debugger.machine, debugger.inputs)
        saved = _fitting(recording, debugger.machine.compiled, is_own=is_own)
        layout = read_layout(recording)
    if saved is None:
        return RestoredSession(True, layout)
    before = present(debugger)
    try:
        with errors_named(Path(path)), debugger.working():
            _put_back(debugger, saved, progress)
            debugger.branches.keep_edits()
    except BaseException as error:
        debugger.machine.max_iterations = before.max_iterations
        _put_back(debugger, before, None)
        if isinstance(error, UsageError):
            raise _not_fitting(recording, error) from None
        raise
    return RestoredSession(False, layout)


def restore_stops(
    debugger: Debugger, path: str | Path, *, is_own: bool = False
) -> tuple[RestoredSession, tuple[str, ...]]:
    """Put back breakpoints, expected NaN, watches, labels of another run: on other inputs, or a model changed since.

    They are counted from the present on; the place stays. Also gives sentences on what does not fit and is left out.
    SessionError for a file that cannot be read.
    """
    with open_recording(path) as recording:
        kept = stops_from_rows(recording, debugger.machine.compiled, is_own=is_own)
        layout = read_layout(recording)
    tick = debugger.machine.tick
    fresh = Counted(tick, tick, 0, None)
    problems = list(kept.problems)
    debugger.breakpoints.clear()
    debugger.watches.clear()
    breakpoints, watches = debugger.breakpoints, debugger.watches
    for pattern, where in kept.expected:
        _tried(problems, f"except {pattern}", partial(breakpoints.expect, pattern, where))
    for one in kept.breakpoints:
        known = replace(one.description, ignored_from=tick)
        put_back = partial(breakpoints.put_back, one.number, known, one.where, (fresh, fresh))
        _tried(problems, f"breakpoint {one.number}", put_back)
    for number, text, format in kept.watches:
        _tried(problems, f"watch {number}", partial(watches.put_back, number, text, debugger.timeline, format))
    _put_labels(debugger, kept.labels)
    empty = not (kept.breakpoints or kept.watches or kept.expected or kept.labels)
    return RestoredSession(empty, layout), tuple(problems)


def _tried(problems: list[str], what: str, put_back: Callable[[], object]) -> None:
    try:
        put_back()
    except UsageError as error:
        problems.append(f"{what} is left out: {error}")


def _not_fitting(recording: Recording, error: UsageError) -> SessionError:
    return SessionError(f"{recording.path}: what is kept there does not fit the run: {error}")


def read_layout(recording: Recording) -> dict[str, Any] | None:
    """Return the layout in a file, of which nothing is known but that it is a JSON object."""
    with recording.reading():
        rows = recording.kept("layout")
        if not rows:
            return None
        if len(rows) > 1 or not isinstance(rows[0], dict) or len(json.dumps(rows[0])) > LARGEST_LAYOUT:
            raise SessionError("keeps a damaged layout")
        return rows[0]


def _fitting(recording: Recording, compiled: CompiledModel, *, is_own: bool) -> SavedSession | None:
    try:
        return from_rows(recording, compiled, is_own=is_own)
    except UsageError as error:
        raise _not_fitting(recording, error) from None


# --- into the debugger ----------------------------------------------------------------------------------------------


def _put_back(debugger: Debugger, saved: SavedSession, progress: Progress | None) -> None:
    _clear(debugger)
    machine, branches, timeline = debugger.machine, debugger.branches, debugger.timeline
    if machine.max_iterations is None:
        machine.max_iterations = saved.max_iterations
    journey = _Journey(timeline, saved.branches, progress)
    others = [branch for branch in saved.branches if branch.name != ORIGINAL]
    for branch in others:
        if branches.name != ORIGINAL:
            branches.go(ORIGINAL)
        timeline.goto(0)
        branches.go(branch.name)
        branches.put_back(branch.name, branch.parent, branch.parted)
        for edit in branch.edits:
            journey.to(edit.tick)
            timeline.edit(_edit_again(machine, edit))
        journey.to(branch.tick)
    if branches.name != ORIGINAL:
        branches.go(ORIGINAL)
    journey.to(saved.original.tick)
    if saved.branch != ORIGINAL:
        branches.go(saved.branch)
    debugger.marks.update(saved.marks)
    for pattern, where in saved.expected:
        debugger.breakpoints.expect(pattern, where)
    for one in saved.breakpoints:
        debugger.breakpoints.put_back(one.number, one.description, one.where, one.counts)
    debugger.breakpoints.last_number = saved.last_number
    debugger.stop = describe(machine, saved.reason, saved.causes)
    timeline.show()
    for number, text, format in saved.watches:
        debugger.watches.put_back(number, text, timeline, format)
    _put_labels(debugger, saved.labels)


def _edit_again(machine: Machine, kept: SavedEdit | SavedLoopEdit) -> Edit:
    if isinstance(kept, SavedEdit):
        return edit_again(machine, kept.target, kept.value)
    if isinstance(kept.value, bool):
        return condition_edit(machine, holds=kept.value, loop=kept.program)
    return trip_count_edit(machine, -1 if kept.value is None else kept.value, kept.program)


def _put_labels(debugger: Debugger, labels: tuple[SavedLabels, ...]) -> None:
    debugger.labels.clear()
    for one in labels:
        debugger.labels.put(one.target, one.labels)


def _clear(debugger: Debugger) -> None:
    debugger.breakpoints.clear()
    debugger.watches.clear()
    debugger.marks.clear()
    debugger.branches.leave_all()
    debugger.timeline.goto(0)


class _Journey:
    """Runs to ticks, saying how far it is."""

    def __init__(self, timeline: Timeline, branches: tuple[SavedBranch, ...], progress: Progress | None) -> None:
        self._timeline, self._progress = timeline, progress
        self._total = sum(branch.tick for branch in branches)
        self._done = 0

    def to(self, tick: int) -> None:
        """Stand at a tick of the branch that goes on. SessionError where a pause, or the end of the run, is before."""
        machine, stride = self._timeline.machine, _FIRST_STRIDE
        if tick < machine.tick:
            self._timeline.goto(tick)
        while machine.tick < tick:
            present, began = machine.tick, perf_counter()
            aim = min(tick, present + stride)
            with suppress(Paused):
                self._timeline.goto(aim)
            if machine.tick < aim:
                why = "the run ends" if machine.finished else "it was paused"
                raise SessionError(f"the session cannot be restored: {why} at tick {machine.tick}, before {tick}")
            self._done += machine.tick - present
            if self._progress is not None:
                self._progress(self._done, max(self._total, self._done))
            stride = stride * 2 if perf_counter() - began < _SECONDS else max(stride // 2, 1)
