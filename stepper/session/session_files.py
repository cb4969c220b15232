"""Save a debugging session to a file and restore it: what a user set up, where the run stands.

    save_session(debugger, "work.session")            # a new file, one of an earlier save, or a recording of this run.
    restore_session(debugger, "work.session")         # in another process, on the same model and inputs.

Kept are breakpoints and logpoints with their hits, watches, marks, expected NaN, labels, and the place. Branches are
kept with the values that were changed in them. A file of its own has the tables of a recording, with the hashes of the
model's files and the inputs. Restoring runs to the places anew: that takes as long as the run took to there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType, ValidationError, convert
from msgspec.structs import asdict, replace

from stepper.debug.branches import condition_edit, edit_again, trip_count_edit
from stepper.debug.breakpoints.breakpoint import BreakDescription, Counted
from stepper.debug.breakpoints.breakpoints import Counts
from stepper.debug.breakpoints.data_breakpoints import kinds
from stepper.debug.causes.cause import Cause, cause_data
from stepper.debug.debugger import Debugger
from stepper.debug.scopes import target_in
from stepper.debug.stop import Mark, Reason, describe
from stepper.debug.timeline import ORIGINAL, ConditionEdit, ConstantEdit, Edit, Timeline, TripCountEdit, ValueEdit
from stepper.element_types import STRING
from stepper.engine.machine import Machine
from stepper.errors import Paused, SessionError, UsageError
from stepper.files.file_kinds import SESSION
from stepper.files.locks import lock
from stepper.files.output import RECORDING_FILE, REFERENCE_FILE, SESSION_FILE, OutputFile
from stepper.query.address_resolution import address_of, resolve
from stepper.query.address_syntax import parse_address
from stepper.recording import open_recording, origin
from stepper.recording.blobs import BlobWriter
from stepper.recording.file import errors_named
from stepper.recording.reading import Recording
from stepper.records import Record
from stepper.wording import excerpt


def _classes(base: type[Cause]) -> Iterator[type[Cause]]:
    for found in base.__subclasses__():
        yield found
        yield from _classes(found)


if TYPE_CHECKING:
    AnyCause = Cause
else:
    kinds()  # a cause is defined where its kind is
    AnyCause = reduce(or_, sorted(_classes(Cause), key=lambda one: one.__name__))
"""All causes together, those of every kind of data breakpoint too."""

# Content of a debugging session: its rows, as they are kept, by kind. Names in them are resolved where it is put back.

VERSION = 1

_Whole = Annotated[int, Meta(ge=0, lt=2**62)]
_Number = Annotated[int, Meta(ge=1, lt=2**62)]
_MOST_BRANCHES = 1000
_LONGEST_REASON = 200


class ValueStore(Protocol):
    """Store of the values of a session: a file's blobs, or memory."""

    def refer(self, value: Any, /) -> Any:
        """Store a value; return the JSON that refers to it."""


class SavedState(Record):
    """The present branch; `reason` and `causes` say why it stands where it does."""

    version: int
    branch: str
    reason: Reason
    max_iterations: _Number | None
    causes: Any = ()  # an older program kept sentences
    last_number: _Whole = 0  # an older program kept none


class SavedBreakpoint(BreakDescription, kw_only=True):
    """A breakpoint with its number, the graph from which its names are seen, and what was counted."""

    number: _Number
    where: _Whole
    counts: Counts
    hit: _Whole = 0
    ignore: _Whole = 0
    ignored_from: _Whole = 0
    need_trust: bool = True

    @property
    def description(self) -> BreakDescription:
        """The breakpoint as it was asked for."""
        return BreakDescription(**{name: getattr(self, name) for name in BreakDescription.__struct_fields__})


class SavedExpected(Record):
    """A pattern of operations in which NaN and Inf are expected, and the graph from which it is seen."""

    pattern: str
    where: _Whole


class SavedWatch(Record):
    """A watch."""

    number: _Number
    text: str
    format: str = ""


class SavedMark(Record):
    """A named position of the run."""

    name: str
    tick: _Whole
    branch: str


class SavedEdit(Record, omit_defaults=True):
    """A change at a tick: the value at an address, or condition or trip count of the loop that runs a body."""

    tick: _Whole
    address: str = ""
    value: Any = UNSET
    body: _Whole | UnsetType = UNSET
    condition: bool | UnsetType = UNSET
    trip_count: _Whole | UnsetType | None = UNSET


class SavedBranch(Record):
    """A course of the run: where it stands, and its edits in the order of time.

    `parent` is the branch that it left at the tick `parted`, empty for the original.
    """

    name: str
    tick: _Whole
    edits: tuple[SavedEdit, ...]
    parent: str = ""
    parted: _Whole = 0


class SavedLabels(Record):
    """The words for the numbers of a value."""

    address: str
    words: Any


class SavedSession(Record):
    """All rows of a session, by kind; `session` is one row."""

    session: tuple[SavedState, ...] = ()
    breakpoint: tuple[SavedBreakpoint, ...] = ()
    expected: tuple[SavedExpected, ...] = ()
    watch: tuple[SavedWatch, ...] = ()
    mark: tuple[SavedMark, ...] = ()
    branch: tuple[SavedBranch, ...] = ()
    labels: tuple[SavedLabels, ...] = ()


# --- from a debugger ------------------------------------------------------------------------------------------------


def present(debugger: Debugger, values: ValueStore) -> SavedSession:
    """Return the present session; values go into the store."""
    branches, breakpoints, compiled = debugger.branches, debugger.breakpoints, debugger.machine.compiled
    numbers = {id(program): number for number, program in enumerate(compiled.programs)}
    stop, limit = debugger.stop, debugger.machine.max_iterations
    causes = [cause_data(cause) for cause in stop.causes]

    def saved(tick: int, edit: Edit) -> Iterator[SavedEdit]:
        if isinstance(edit, ValueEdit | ConstantEdit):
            address = str(address_of(target_in(edit.program, edit.slot), compiled))
            yield SavedEdit(tick, address, values.refer(edit.value))
        elif isinstance(edit, TripCountEdit):
            yield SavedEdit(tick, body=numbers[id(edit.program)], trip_count=edit.count)
        elif isinstance(edit, ConditionEdit):
            yield SavedEdit(tick, body=numbers[id(edit.program)], condition=edit.holds)

    def edits(branch: str) -> tuple[SavedEdit, ...]:
        made = sorted(branches.edits(branch).items())
        return tuple(one for tick, edits in made for edit in edits for one in saved(tick, edit))

    def labels() -> Iterator[SavedLabels]:
        for (program, slot), words in debugger.labels.given().items():
            address = str(address_of(target_in(compiled.programs[numbers[program]], slot), compiled))
            yield SavedLabels(address, values.refer(np.array(words, STRING.dtype)))

    return SavedSession(
        (SavedState(VERSION, branches.name, stop.reason, limit, causes, breakpoints.last_number),),
        tuple(
            SavedBreakpoint(
                **asdict(one.description), number=one.number, where=numbers[id(one.where)], counts=one.counts
            )
            for one in breakpoints
        ),
        tuple(SavedExpected(one.pattern, numbers[id(one.where)]) for one in breakpoints.expected),
        tuple(SavedWatch(watch.number, watch.text, watch.format) for watch in debugger.watches),
        tuple(SavedMark(name, mark.tick, mark.branch) for name, mark in debugger.marks.items()),
        tuple(SavedBranch(one.name, one.tick, edits(one.name), one.parent, one.parted) for one in branches),
        tuple(labels()),
    )


class Stamp(Record):
    """State of a session at a moment, to be compared with a later one.

    `setup` is the user's part: breakpoints, watches, marks, branches, edits; `place` is all else.
    """

    setup: str
    place: str
    values: ValuesInMemory
    """Held, because values are compared by identity."""


def stamp(debugger: Debugger) -> Stamp:
    """Return the state of the present session; read no tensor."""
    values = ValuesInMemory()
    rows = msgspec.to_builtins(present(debugger, values))
    setup = {
        **rows,
        "session": [],
        "breakpoint": [{**row, "counts": None} for row in rows["breakpoint"]],
        "branch": [{**row, "tick": None} for row in rows["branch"]],
    }
    return Stamp(json.dumps(setup), json.dumps(rows), values)


class ValuesInMemory:
    """Stands for a file: refers to values by their identity, to labels, which are new each time, by their words."""

    def __init__(self) -> None:
        self._values: dict[int, Any] = {}

    def refer(self, value: Any) -> dict[str, Any]:
        """Return a reference to a value, which is held."""
        self._values[id(value)] = value
        return {"value": id(value)} if value.dtype != STRING.dtype else {"texts": value.tolist()}

    def value(self, reference: Any) -> Any:
        """Return the value of a reference."""
        found = reference.get("texts")
        return self._values[reference["value"]] if found is None else np.array(found, STRING.dtype)


# --- from a file ----------------------------------------------------------------------------------------------------


def from_rows(recording: Recording, *, is_own: bool) -> SavedSession | None:
    """Return the session in a file, None where there is none. SessionError.

    Commands of breakpoints need the user's agreement, unless the file `is_own`: in a folder where only the user writes.
    """
    with recording.reading():
        rows = recording.kept("session")
        if not rows:
            return None
        if len(rows) > 1 or not isinstance(rows[0], dict):
            raise SessionError("keeps a damaged session")
        version = rows[0].get("version")
        if version != VERSION:
            raise SessionError(
                f"keeps a session of version {version!r:.20}, and this stepper knows {VERSION}: install a newer one"
            )
        kept = {kind: recording.kept(kind) for kind in SavedSession.__struct_fields__}
        saved = _trusted(_converted(kept), is_own=is_own)
        _check_branches(saved.session[0].branch, saved.branch)
        return saved


def _converted(rows: dict[str, Any]) -> SavedSession:
    try:
        return msgspec.convert(rows, SavedSession)
    except ValidationError as error:
        raise SessionError(f"keeps a damaged session: {excerpt(str(error), _LONGEST_REASON)}") from None


def _trusted(saved: SavedSession, *, is_own: bool) -> SavedSession:
    return replace(
        saved,
        breakpoint=tuple(
            replace(one, need_trust=bool(one.commands) and (one.need_trust or not is_own)) for one in saved.breakpoint
        ),
    )


def stops_from_rows(recording: Recording, problems: list[str]) -> SavedSession:
    """Return breakpoints, expected NaN, watches and labels; sentences on rows that cannot be read are `problems`.

    The file is in a folder where only the user writes: commands of breakpoints need no new agreement.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for kind in ("breakpoint", "expected", "watch", "labels"):
        for row in recording.kept(kind):
            try:
                with recording.reading():
                    found[kind] = (*found.get(kind, ()), *getattr(_converted({kind: [row]}), kind))
            except SessionError as error:
                problems.append(str(error))
    return _trusted(SavedSession(**found), is_own=True)


def _check_branches(present: str, branches: tuple[SavedBranch, ...]) -> None:
    parents = {branch.name: branch.parent for branch in branches}
    if len(parents) != len(branches) or present not in parents or len(parents) > _MOST_BRANCHES:
        raise SessionError("keeps damaged branches")
    for branch in branches:
        ticks = [edit.tick for edit in branch.edits]
        if ticks != sorted(ticks):
            raise SessionError("keeps edits that are not in the order of time")
        if ticks and branch.name == ORIGINAL:
            raise SessionError("keeps edits of the original branch, which has none")
        name, seen = branch.name, set()
        while name and name != ORIGINAL:
            if name in seen or name not in parents:
                raise SessionError("keeps branches that descend from none")
            seen.add(name)
            name = parents[name]
    if ORIGINAL not in parents:
        raise SessionError("keeps edits of the original branch, which has none")


LARGEST_LAYOUT = 2**16
"""Characters of the JSON of a layout."""

_LONGEST_WAIT = 2.0
"""Seconds for another program to finish its own saving."""


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
        raise UsageError(f"expected a layout that JSON can write: {error}") from None
    if length > LARGEST_LAYOUT:
        raise UsageError(f"a layout has at most {LARGEST_LAYOUT} characters as JSON, this one {length}")
    OutputFile(path, SESSION, debugger.protected.but(SESSION_FILE, RECORDING_FILE, REFERENCE_FILE)).check()

    def rows(blobs: BlobWriter) -> origin.Rows:
        found: dict[str, Any] = msgspec.to_builtins(present(debugger, blobs))
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


def restore_session(debugger: Debugger, path: str | Path, *, is_own: bool = False) -> RestoredSession:
    """Put a session back instead of what the debugger has.

    The contents of the file are checked first. Commands of breakpoints wait for `debugger.breakpoints.trust`, unless
    the file `is_own`: only the user writes there.

    SessionError if the session is of another run (the message says what differs), cannot be restored, or was paused on
    the way; the debugger then has what it had before. Raises what the run raises.
    """
    with open_recording(path) as recording:
        recording.check_run(debugger.machine, debugger.inputs)
        saved = from_rows(recording, is_own=is_own)
        layout = read_layout(recording)
        if saved is None:
            return RestoredSession(True, layout)
        values = ValuesInMemory()
        before, limit = present(debugger, values), debugger.machine.max_iterations
        try:
            with errors_named(recording.path), debugger.working():
                _put_back(debugger, saved, recording.kept_value)
                debugger.branches.keep_edits()
        except BaseException as error:
            debugger.machine.max_iterations = limit
            _put_back(debugger, before, values.value)
            if isinstance(error, UsageError):
                raise SessionError(f"{path}: what is kept there does not fit the run: {error}") from None
            raise
    return RestoredSession(False, layout)


def restore_stops(debugger: Debugger, path: str | Path) -> tuple[RestoredSession, tuple[str, ...]]:
    """Put back breakpoints, expected NaN, watches, labels of another run: on other inputs, or a model changed since.

    They are counted from the present on; the place stays. Also gives sentences on what does not fit and is left out.
    SessionError for a file that cannot be read.
    """
    problems: list[str] = []
    debugger.breakpoints.clear()
    debugger.watches.clear()
    debugger.labels.clear()
    tick = debugger.machine.tick
    with open_recording(path) as recording:
        kept = stops_from_rows(recording, problems)
        layout = read_layout(recording)
        fresh = Counted(tick, tick, 0, None)
        breakpoints = tuple(replace(one, ignored_from=tick, counts=(fresh, fresh)) for one in kept.breakpoint)
        for what, put_back in _stops(debugger, replace(kept, breakpoint=breakpoints), recording.kept_value):
            try:
                with recording.reading():
                    put_back()
            except (UsageError, SessionError) as error:
                problems.append(f"{what} is left out: {error}" if what else str(error))
    empty = not (kept.breakpoint or kept.watch or kept.expected or debugger.labels.given())
    return RestoredSession(empty, layout), tuple(problems)


def read_layout(recording: Recording) -> dict[str, Any] | None:
    """Return the layout in a file; nothing is checked but that it is a JSON object."""
    with recording.reading():
        rows = recording.kept("layout")
        if not rows:
            return None
        if len(rows) > 1 or not isinstance(rows[0], dict) or len(json.dumps(rows[0])) > LARGEST_LAYOUT:
            raise SessionError("keeps a damaged layout")
        return rows[0]


# --- into the debugger ----------------------------------------------------------------------------------------------

_ValueOf = Callable[[Any], Any]
"""Gives the value of a reference."""


def _put_back(debugger: Debugger, saved: SavedSession, value_of: _ValueOf) -> None:
    (state,) = saved.session
    try:
        causes: tuple[Cause, ...] = convert(state.causes, tuple[AnyCause, ...], strict=False)  # "NaN" for a number
    except ValidationError:
        raise SessionError("keeps damaged causes of its stop") from None
    debugger.breakpoints.clear()
    debugger.watches.clear()
    debugger.marks.clear()
    debugger.labels.clear()
    debugger.branches.leave_all()
    debugger.timeline.goto(0)
    machine, branches, timeline = debugger.machine, debugger.branches, debugger.timeline
    if machine.max_iterations is None:
        machine.max_iterations = state.max_iterations
    for branch in sorted(saved.branch, key=lambda branch: branch.name == ORIGINAL):  # the original last
        if branches.name != ORIGINAL:
            branches.go(ORIGINAL)
        if branch.name != ORIGINAL:
            timeline.goto(0)
            branches.go(branch.name)
            branches.put_back(branch.name, branch.parent, branch.parted)
        for edit in branch.edits:
            _run_to(timeline, edit.tick)
            timeline.edit(_edit_again(machine, edit, value_of))
        _run_to(timeline, branch.tick)
    if state.branch != ORIGINAL:
        branches.go(state.branch)
    debugger.marks.update({one.name: Mark(one.tick, one.branch) for one in saved.mark})
    debugger.stop = describe(machine, state.reason, causes)
    timeline.show()
    for _what, put_back in _stops(debugger, saved, value_of):
        put_back()
    debugger.breakpoints.last_number = state.last_number


def _edit_again(machine: Machine, edit: SavedEdit, value_of: _ValueOf) -> Edit:
    if edit.body is UNSET:
        return edit_again(machine, resolve(parse_address(edit.address), machine.compiled), value_of(edit.value))
    program = machine.compiled.programs[edit.body]
    if edit.condition is not UNSET:
        return condition_edit(machine, holds=edit.condition, loop=program)
    count = edit.trip_count
    return trip_count_edit(machine, -1 if count is None or count is UNSET else count, program)


def _stops(debugger: Debugger, saved: SavedSession, value_of: _ValueOf) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what does not depend on the run, in words, and what puts it back."""
    breakpoints, compiled = debugger.breakpoints, debugger.machine.compiled
    for expected in saved.expected:
        put_back = lambda one=expected: breakpoints.expect(one.pattern, compiled.programs[one.where])  # noqa: E731
        yield f"except {expected.pattern}", put_back
    for one in saved.breakpoint:
        yield f"breakpoint {one.number}", partial(_put_breakpoint, debugger, one)
    for watch in saved.watch:
        put_watch = partial(debugger.watches.put_back, watch.number, watch.text, debugger.timeline, watch.format)
        yield f"watch {watch.number}", put_watch
    for labels in saved.labels:
        yield "", partial(_put_labels, debugger, labels, value_of)


def _put_breakpoint(debugger: Debugger, one: SavedBreakpoint) -> None:
    where = debugger.machine.compiled.programs[one.where]
    debugger.breakpoints.put_back(one.number, one.description, where, one.counts)


def _put_labels(debugger: Debugger, labels: SavedLabels, value_of: _ValueOf) -> None:
    words = value_of(labels.words)
    if words.dtype != STRING.dtype or words.ndim != 1 or not words.size:
        raise SessionError("keeps damaged labels")
    target = resolve(parse_address(labels.address), debugger.machine.compiled)
    debugger.labels.put(target, tuple(map(str, words.tolist())))


def _run_to(timeline: Timeline, tick: int) -> None:
    """Stand at a tick of the present branch.

    SessionError if a pause, or the end of the run, is before.
    """
    machine = timeline.machine
    with suppress(Paused):
        timeline.goto(tick)
    if machine.tick < tick:
        why = "the run ends" if machine.finished else "it was paused"
        raise SessionError(f"the session cannot be restored: {why} at tick {machine.tick}, before {tick}")
