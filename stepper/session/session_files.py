"""Keeping a debugging session: what a user has set up and where the run stands, saved to a file and put back.

    save_session(debugger, "work.session")            # a new file, one of an earlier save, or a recording of this run
    restore_session(debugger, "work.session")         # in another process, on the same model and inputs

Kept are breakpoints and logpoints with their hits, watches, marks, expected NaN, labels, branches with the values that
were changed in them, and the place. A file of its own has the tables of a recording, with the hashes of the model's
files and the inputs. Restoring runs to the places anew: that takes as long as the run took to there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from msgspec import ValidationError
from msgspec.structs import replace

from stepper.debug.branches.branches import condition_edit, edit_again, trip_count_edit
from stepper.debug.branches.edits import ORIGINAL, ConditionEdit, ConstantEdit, Edit, TripCountEdit, ValueEdit
from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind, Counted, Expected
from stepper.debug.breakpoints.breakpoints import Counts
from stepper.debug.causes.cause import Cause, cause_data
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import target_in
from stepper.debug.stop import Mark, Reason, describe
from stepper.debug.timeline import Timeline
from stepper.element_types import STRING
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Program
from stepper.errors import Paused, SessionError, UsageError
from stepper.files.kinds import SESSION
from stepper.files.locks import lock
from stepper.files.output import RECORDING_FILE, REFERENCE_FILE, SESSION_FILE, OutputFile
from stepper.query.address_resolution import Target, address_of, resolve
from stepper.query.address_syntax import parse_address
from stepper.query.formats import ensure_format
from stepper.recording import open_recording, origin
from stepper.recording.blobs import BlobWriter
from stepper.recording.file import errors_named
from stepper.recording.reading import Recording
from stepper.records import Record, as_data

if TYPE_CHECKING:
    from stepper.recording.origin import Rows


# Content of a debugging session, resolved in its model: from a debugger, to rows of JSON, and from them.

VERSION: Final = 1


class ValueStore(Protocol):
    """Store of the values of a session: a file's blobs."""

    def refer(self, value: Any, /) -> Any:
        """Store a value; return the JSON that refers to it."""


_LARGEST: Final = 2**62
_MOST_BRANCHES: Final = 1000


class SavedEdit(Record):
    """A value that was changed at a tick: the whole of what the slot holds since."""

    tick: int
    target: Target
    value: Any


class SavedLoopEdit(Record):
    """A trip count (None: no limit) or a condition that was changed at a tick, of the loop that runs the body."""

    tick: int
    program: Program
    value: int | bool | None


class SavedBranch(Record):
    """A course of the run: where it stands, and its edits in the order of time.

    `parent` is the branch that it left at the tick `parted`, empty for the original.
    """

    name: str
    tick: int
    edits: tuple[SavedEdit | SavedLoopEdit, ...]
    parent: str = ""
    parted: int = 0


class SavedBreakpoint(Record):
    """A breakpoint with its number, the graph from which its names are seen, and what was counted."""

    number: int
    description: BreakDescription
    where: Program
    counts: Counts


class SavedLabels(Record):
    """The words for the numbers of a value."""

    target: Target
    labels: tuple[str, ...]


class SavedSession(Record):
    """A session; `branch` is the one that goes on, `reason` and `causes` say why it stands where it does."""

    branch: str
    reason: Reason
    causes: tuple[Cause, ...]
    max_iterations: int | None
    breakpoints: tuple[SavedBreakpoint, ...]
    expected: tuple[Expected, ...]
    watches: tuple[tuple[int, str, str], ...]
    marks: dict[str, Mark]
    branches: tuple[SavedBranch, ...]
    labels: tuple[SavedLabels, ...]
    last_number: int = 0

    @property
    def original(self) -> SavedBranch:
        """The branch without edits, with which every run begins."""
        return next(branch for branch in self.branches if branch.name == ORIGINAL)


# --- from a debugger ------------------------------------------------------------------------------------------------


def present(debugger: Debugger) -> SavedSession:
    """Return the session as it is now."""
    branches = debugger.branches
    return SavedSession(
        branches.name,
        debugger.stop.reason,
        debugger.stop.causes,
        debugger.machine.max_iterations,
        tuple(SavedBreakpoint(one.number, one.description, one.where, one.counts) for one in debugger.breakpoints),
        debugger.breakpoints.expected,
        tuple((watch.number, watch.text, watch.format) for watch in debugger.watches),
        dict(debugger.marks),
        tuple(
            SavedBranch(one.name, one.tick, tuple(_edits(debugger, one.name)), one.parent, one.parted)
            for one in branches
        ),
        tuple(_labels_now(debugger)),
        debugger.breakpoints.last_number,
    )


def _edits(debugger: Debugger, branch: str) -> Iterator[SavedEdit | SavedLoopEdit]:
    for tick, edits in sorted(debugger.branches.edits(branch).items()):
        for edit in edits:
            if isinstance(edit, ValueEdit | ConstantEdit):
                yield SavedEdit(tick, target_in(edit.program, edit.slot), edit.value)
            elif isinstance(edit, TripCountEdit):
                yield SavedLoopEdit(tick, edit.program, edit.count)
            elif isinstance(edit, ConditionEdit):
                yield SavedLoopEdit(tick, edit.program, edit.holds)


def _labels_now(debugger: Debugger) -> Iterator[SavedLabels]:
    programs = {id(program): program for program in debugger.machine.compiled.programs}
    for (identity, slot), labels in debugger.labels.given().items():
        yield SavedLabels(target_in(programs[identity], slot), labels)


class Stamp(Record):
    """State of a session at a moment, to be compared with a later one.

    `setup` is what the user has made of it: breakpoints, watches, marks, branches, edits; `place` all else.
    """

    setup: str
    place: str
    values: tuple[Any, ...]
    """Held, because values are compared by identity."""


def stamp(debugger: Debugger) -> Stamp:
    """Return the session as it is now; reads no tensor."""
    seen = _Identities()
    rows = to_rows(present(debugger), debugger.machine.compiled, seen)
    setup = {
        **rows,
        "session": [],
        "breakpoint": [{**row, "counts": None} for row in rows["breakpoint"]],
        "branch": [{**row, "tick": None} for row in rows["branch"]],
    }
    return Stamp(json.dumps(setup), json.dumps(rows), tuple(seen.values))


class _Identities:
    """Stands for a writer of blobs; writes nothing."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def refer(self, value: Any) -> dict[str, Any]:
        """Return a value, by its identity; labels are new each time and have their words."""
        self.values.append(value)
        is_text = value.dtype.kind == "T"
        return {"value": value.tolist() if is_text else id(value)}


# --- to rows --------------------------------------------------------------------------------------------------------


def to_rows(kept: SavedSession, compiled: CompiledModel, blobs: ValueStore) -> Rows:
    """Return the session as JSON, by kind; values go into blobs."""
    numbers = {id(program): number for number, program in enumerate(compiled.programs)}
    session = {
        "version": VERSION,
        "branch": kept.branch,
        "reason": kept.reason,
        "causes": [cause_data(cause) for cause in kept.causes],
        "max_iterations": kept.max_iterations,
        "last_number": kept.last_number,
    }
    return {
        "session": [session],
        "breakpoint": [
            as_data(one.description) | {"number": one.number, "where": numbers[id(one.where)], "counts": one.counts}
            for one in kept.breakpoints
        ],
        "expected": [{"pattern": one.pattern, "where": numbers[id(one.where)]} for one in kept.expected],
        "watch": [{"number": number, "text": text, "format": format} for number, text, format in kept.watches],
        "mark": [{"name": name, **as_data(mark)} for name, mark in kept.marks.items()],
        "branch": [
            {
                "name": branch.name,
                "tick": branch.tick,
                "parent": branch.parent,
                "parted": branch.parted,
                "edits": [_edit_row(edit, compiled, blobs) for edit in branch.edits],
            }
            for branch in kept.branches
        ],
        "labels": [
            {"address": str(address_of(one.target, compiled)), "words": blobs.refer(np.array(one.labels, STRING.dtype))}
            for one in kept.labels
        ],
    }


def _edit_row(edit: SavedEdit | SavedLoopEdit, compiled: CompiledModel, blobs: ValueStore) -> dict[str, Any]:
    if isinstance(edit, SavedLoopEdit):
        what = "condition" if isinstance(edit.value, bool) else "trip_count"
        body = next(number for number, program in enumerate(compiled.programs) if program is edit.program)
        return {"tick": edit.tick, "body": body, what: edit.value}
    address = str(address_of(edit.target, compiled))
    return {"tick": edit.tick, "address": address, "value": blobs.refer(edit.value)}


# --- from rows ------------------------------------------------------------------------------------------------------


def from_rows(recording: Recording, compiled: CompiledModel, *, is_own: bool) -> SavedSession | None:
    """Return the session in a file, None where there is none. SessionError; UsageError for an unknown name.

    Commands of breakpoints need the user's agreement, unless the file `is_own`: in a folder where only the user writes.
    """
    with recording.reading():
        rows = recording.kept("session")
        if not rows:
            return None
        session = rows[0]
        if len(rows) > 1 or not isinstance(session, dict):
            raise SessionError("keeps a damaged session")
        if session.get("version") != VERSION:
            raise SessionError(
                f"keeps a session of version {session.get('version')!r:.20}, and this stepper knows {VERSION}: "
                "install a newer one"
            )
        kept = SavedSession(
            _text(session["branch"]),
            Reason(session["reason"]),
            _causes(session.get("causes", [])),  # an older program kept sentences
            None if session["max_iterations"] is None else _integer(session["max_iterations"], 1),
            tuple(_breakpoint(row, compiled, is_own=is_own) for row in recording.kept("breakpoint")),
            tuple(Expected(_text(row["pattern"]), _program(row, compiled)) for row in recording.kept("expected")),
            tuple(map(_watch, recording.kept("watch"))),
            {_text(row["name"]): Mark(_integer(row["tick"]), _text(row["branch"])) for row in recording.kept("mark")},
            tuple(_branch(row, recording, compiled) for row in recording.kept("branch")),
            tuple(_labels(row, recording, compiled) for row in recording.kept("labels")),
            _integer(session.get("last_number", 0)),  # an older program kept none
        )
        _check_branches(kept)
        return kept


class SavedStops(Record):
    """Part of a session that does not depend on the inputs; `problems` are sentences on rows that do not fit."""

    breakpoints: tuple[SavedBreakpoint, ...]
    expected: tuple[Expected, ...]
    watches: tuple[tuple[int, str, str], ...]
    labels: tuple[SavedLabels, ...]
    problems: tuple[str, ...]


def stops_from_rows(recording: Recording, compiled: CompiledModel, *, is_own: bool) -> SavedStops:
    """Return what fits of a session of another run or a changed model; rows that cannot be read are left out.

    `is_own` as in `from_rows`.
    """
    problems: list[str] = []

    def read(kind: str, made: Callable[[dict[str, Any]], Any]) -> tuple[Any, ...]:
        found = []
        for row in recording.kept(kind):
            try:
                with recording.reading():
                    found.append(made(row))
            except (SessionError, UsageError) as error:
                problems.append(str(error))
        return tuple(found)

    return SavedStops(
        read("breakpoint", lambda row: _breakpoint(row, compiled, is_own=is_own)),
        read("expected", lambda row: Expected(_text(row["pattern"]), _program(row, compiled))),
        read("watch", _watch),
        read("labels", lambda row: _labels(row, recording, compiled)),
        tuple(problems),
    )


def _check_branches(kept: SavedSession) -> None:
    names = [branch.name for branch in kept.branches]
    original = [branch for branch in kept.branches if branch.name == ORIGINAL]
    if len(set(names)) != len(names) or kept.branch not in names or len(names) > _MOST_BRANCHES:
        raise SessionError("keeps damaged branches")
    if len(original) != 1 or original[0].edits:
        raise SessionError("keeps edits of the original branch, which has none")
    for branch in kept.branches:
        parents = {one.name: one.parent for one in kept.branches}
        name, seen = branch.name, set()
        while name and name != ORIGINAL:
            if name in seen or name not in parents:
                raise SessionError("keeps branches that descend from none")
            seen.add(name)
            name = parents[name]


def _breakpoint(row: dict[str, Any], compiled: CompiledModel, *, is_own: bool) -> SavedBreakpoint:
    flags = ("exactly", "once", "enabled")
    if not all(isinstance(row[name], bool) for name in flags):
        raise SessionError("keeps a damaged breakpoint")
    description = BreakDescription(
        BreakKind(row["kind"]),
        _text(row["text"]),
        _text(row["condition"]),
        _integer(row["hit"]),
        row["exactly"],
        _integer(row["ignore"]),
        _integer(row["ignored_from"]),
        row["once"],
        row["enabled"],
        _text(row["line"]),
        commands := tuple(map(_text, row.get("commands", ()))),
        need_trust=bool(commands) and (not is_own or row.get("need_trust") is not False),
    )
    hits, ignored = row["counts"]
    counts = (_counted(hits), _counted(ignored))
    return SavedBreakpoint(_integer(row["number"], 1), description, _program(row, compiled), counts)


def _watch(row: dict[str, Any]) -> tuple[int, str, str]:
    return _integer(row["number"], 1), _text(row["text"]), ensure_format(_text(row.get("format", "")))


def _counted(data: Any) -> Counted:
    base, covered, seen, reached = data
    return Counted(_integer(base), _integer(covered), _integer(seen), None if reached is None else _integer(reached))


def _branch(row: dict[str, Any], recording: Recording, compiled: CompiledModel) -> SavedBranch:
    edits = tuple(_edit(edit, recording, compiled) for edit in row["edits"])
    ticks = [edit.tick for edit in edits]
    if ticks != sorted(ticks):
        raise SessionError("keeps edits that are not in the order of time")
    parent, parted = _text(row.get("parent", "")), _integer(row.get("parted", 0))
    return SavedBranch(_text(row["name"]), _integer(row["tick"]), edits, parent, parted)


def _edit(row: dict[str, Any], recording: Recording, compiled: CompiledModel) -> SavedEdit | SavedLoopEdit:
    tick = _integer(row["tick"])
    if "body" not in row:
        return SavedEdit(
            tick, resolve(parse_address(_text(row["address"])), compiled), recording.kept_value(row["value"])
        )
    program = compiled.programs[_integer(row["body"])]
    if "condition" not in row:
        return SavedLoopEdit(tick, program, None if row["trip_count"] is None else _integer(row["trip_count"]))
    if not isinstance(row["condition"], bool):
        raise SessionError("keeps a damaged condition")
    return SavedLoopEdit(tick, program, row["condition"])


def _labels(row: dict[str, Any], recording: Recording, compiled: CompiledModel) -> SavedLabels:
    target = resolve(parse_address(_text(row["address"])), compiled)
    words = recording.kept_value(row["words"])
    if words.dtype != STRING.dtype or words.ndim != 1 or not words.size:
        raise SessionError("keeps damaged labels")
    return SavedLabels(target, tuple(map(str, words.tolist())))


def _program(row: dict[str, Any], compiled: CompiledModel) -> Program:
    return compiled.programs[_integer(row["where"])]


def _causes(data: Any) -> tuple[Cause, ...]:
    from stepper.debug.causes.any_cause import causes_of  # all kinds of breakpoints

    try:
        return causes_of(data)
    except ValidationError:
        raise SessionError("keeps damaged causes of its stop") from None


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise SessionError("keeps something else where a text belongs")
    return data


def _integer(data: Any, least: int = 0) -> int:
    if type(data) is not int or not least <= data < _LARGEST:
        raise SessionError("keeps something else where a number belongs")
    return data


LARGEST_LAYOUT: Final = 2**16
"""Characters of the JSON of a layout."""

_FIRST_STRIDE: Final = 16
_SECONDS: Final = 0.1
_LONGEST_WAIT: Final = 2.0
"""Seconds for another program to finish its own saving."""

Progress = Callable[[int, int], object]
"""Called several times a second with the number of ticks that have been run again, and of how many."""


class RestoredSession(Record):
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
    try:
        length = 0 if layout is None else len(json.dumps(dict(layout), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"a layout is what JSON can write: {error}") from None
    if length > LARGEST_LAYOUT:
        raise UsageError(f"a layout has at most {LARGEST_LAYOUT} characters as JSON, this one {length}")
    OutputFile(path, SESSION, debugger.protected.but(SESSION_FILE, RECORDING_FILE, REFERENCE_FILE)).check()

    def rows(blobs: BlobWriter) -> origin.Rows:
        found = to_rows(present(debugger), machine.compiled, blobs)
        return found if layout is None else {**found, "layout": [dict(layout)]}

    with lock(path, wait=_LONGEST_WAIT):
        if path.exists():
            if not known:
                with open_recording(path) as recording:
                    recording.check_run(machine, debugger.inputs)
            origin.update(path, rows)
        else:
            origin.create(path, machine, debugger.inputs, rows)
    debugger.branches.keep_edits()


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
    debugger.breakpoints.clear()
    debugger.watches.clear()
    debugger.marks.clear()
    debugger.branches.leave_all()
    debugger.timeline.goto(0)
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
