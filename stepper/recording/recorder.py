"""Record a run while it runs: `Recorder` watches the machine and writes one SQLite file.

The file is whole at every moment: rows and snapshots go into it in transactions. So a process that is killed leaves a
recording that ends a little earlier. Iterations are collected and written many at a time. Once in a while, and never
for more than a small part of the time, the state of the machine is added as a snapshot, from which the run can
continue.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any

from stepper.debug.breakpoints.breakpoint import BreakDescription, Breakpoint
from stepper.debug.breakpoints.breakpoints import BreakpointWatcher
from stepper.debug.debugger import Debugger
from stepper.debug.stop import Stop
from stepper.element_types import Array, Ints
from stepper.engine.frames import Event, EventKind, Every, Frame, Phase, RunObserver, Taps
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import BranchPlan, LoopPlan, Partner
from stepper.engine.run import LoopLog, output_names
from stepper.errors import SessionError, StepperError
from stepper.files.file_kinds import RECORDING
from stepper.files.locks import FileLock, lock
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.recording import file, origin
from stepper.recording.blobs import OF_RECORDING, BlobWriter, Reference, with_checksum
from stepper.recording.file import RUN_LENGTH, CheckedConnection
from stepper.recording.iterations import (
    CLOSE,
    Activations,
    Batch,
    BatchWriter,
    GraphLevel,
    RecordedActivation,
    Row,
    insert_many,
    levels_of,
)
from stepper.recording.origin import PendingIterations, RecordingOptions, write_origin, write_tensors
from stepper.recording.reading import Recording, RestoredMachine
from stepper.recording.recorded_states import SnapshotWriter
from stepper.records import Record

_COST_FACTOR = 20.0
_OPERATIONS_BETWEEN_LOOKS = 2**15
"""At the clock, where an operation is one of numbers, which is over at once."""
_NO_STOPS: Mapping[int, Ints] = MappingProxyType({})


class Pace(Record):
    """How often a snapshot is taken: after so many seconds, and (if said) after so many iterations."""

    seconds: float = 1.0
    iterations: int | None = None


class Recorder(RunObserver):
    """Records the run of a machine into a file; made by `record` and `resume`, to be used as a context manager.

    It is the machine's watcher; whatever drives the machine passes events to `after`; `run` does
    both. It follows a run that goes forward.
    """

    stops = _NO_STOPS
    watches_iterations = True

    def __init__(
        self,
        machine: Machine,
        connection: sqlite3.Connection,
        path: Path,
        options: RecordingOptions,
        pace: Pace,
        taken: FileLock,
    ) -> None:
        """`taken` is the lock of the file, which is released when the recorder is closed."""
        self._taken = taken
        self.machine, self.path, self.options, self.pace = machine, path, options, pace
        self._connection = connection
        levels = {id(level.program): level for level in levels_of(machine.compiled, options)}
        blobs = BlobWriter(connection, OF_RECORDING)
        self._blobs = blobs
        self._rows = BatchWriter(connection, blobs, 0)
        self.activations = Activations(levels)
        self.snapshots = SnapshotWriter(connection, blobs)
        self._selection = None if options.iterations.everything else PendingIterations[Row](options.iterations)
        self._batches = {key: self._batch_of(level) for key, level in levels.items() if level.ports}
        self._frame: Frame | None = None
        self._batch: Batch | None = None
        self._number = 0
        self._left = pace.iterations or -1
        """Iterations until the next snapshot; below 0 where it is not they that count."""
        self._due = monotonic() + pace.seconds
        self._token = secrets.token_hex(8)
        self._is_whole = True
        machine.watcher = self
        machine.observers = (*machine.observers, self)

    def _batch_of(self, level: GraphLevel) -> Batch:
        program = level.program
        return Batch(level, is_even=self._selection is None and program.straight and program.path[-1].is_loop)

    def begin(self, iterations: int) -> None:
        """Take the file, which holds so many iterations already; any other writer notices."""
        self._rows.iterations = iterations
        self.snapshots.resume(self.activations)
        with self._writing(taking=True):
            pass

    # --- while the machine runs ----------------------------------------------------------------------------------

    def run(self) -> bool:
        """Drive the machine to its end; False where a pause was requested before. The file can go on from there."""
        while not self.machine.finished:
            event = self.machine.advance(Every.LOOP)
            if event.kind is EventKind.PAUSED:
                self.snapshot()
                return False
            self.after(event)
        self.finish()
        return True

    def after(self, event: Event) -> None:
        """Follow a loop or branch that has been entered or left."""
        if event.kind is EventKind.ENTERED:
            self.activations.follow(self.machine.stack, event.tick)
        elif event.kind is EventKind.LEFT and self.activations.open:
            self._left_behind(self.activations.close(event.tick), event)
        else:
            return
        if monotonic() >= self._due:
            self.snapshot()

    def _left_behind(self, entry: RecordedActivation, event: Event) -> None:
        self._frame = None
        batch = self._batches.get(id(event.frame.program))
        activation = event.frame.activation
        if batch is None or activation is None or not isinstance(activation.plan, BranchPlan):
            return
        if self._selection is not None and not self._selection.is_certain(entry.parent_iteration):
            return
        self._add(batch, (entry.number, None, event.tick, batch.take(event.frame.values)))

    def after_operation(self, frame: Frame, index: int) -> bool:
        """Return False: nothing is recorded after operations."""
        return False

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool]:
        """Return what records an iteration; every one is of interest."""
        return self.after_iteration

    def taps(self, frame: Frame) -> Taps | None:
        """Return what takes the values of the iterations of a body without nested graphs."""
        batch = self._batch
        is_free = self._selection is None and self._left < 0 and self.machine.watcher is self
        if (batch is not None and not batch.is_even) or frame is not self._frame or not is_free:
            return None

        def done() -> None:
            if frame.phase is not Phase.RUNNING:  # else an error is on its way
                if batch is not None and batch.count >= batch.full and batch.is_full():
                    self._write(batch)
                if monotonic() >= self._due:
                    self.snapshot()

        most = max(_OPERATIONS_BETWEEN_LOOKS // (len(frame.program.code) + 1), 1)
        return Taps((), most, done) if batch is None else Taps(batch.taps, min(most, batch.room), done)

    def after_iteration(self, frame: Frame) -> bool:
        """Keep the values of a closed iteration; write them from time to time. Return False: never stop."""
        if frame is not self._frame:
            self._turn_to(frame)
        batch = self._batch
        if batch is not None:
            if self._selection is None:
                if not batch.is_even:
                    batch.ticks.append(self.machine.tick)
                for add, slot in batch.taps:
                    add(frame.values[slot])
                if batch.count >= batch.full and batch.is_full():
                    self._write(batch)
            else:
                self._select(batch, frame, self._selection)
        self._left -= 1
        if self._left == 0 or monotonic() >= self._due:
            self.snapshot()
        return False

    def _turn_to(self, frame: Frame) -> None:
        self.activations.follow(self.machine.stack)
        self._frame, self._number = frame, self.activations.open[-1].number
        self._batch = batch = self._batches.get(id(frame.program))
        if batch is not None and self._selection is None:
            form = batch.form_of(frame)
            if form is not batch.form:
                if batch.count:
                    self._write(batch)
                batch.turn_to(form)
            batch.begin(self._number, frame.active.iteration, self.machine.tick)

    def _select(self, batch: Batch, frame: Frame, selection: PendingIterations[Row]) -> None:
        activation = frame.active
        row = (self._number, activation.iteration, self.machine.tick, batch.take(frame.values))
        ended = activation.ended is not None
        for chosen in selection.decided(self._number, activation.iteration, row, ended=ended):
            self._add(batch, chosen)

    def _add(self, batch: Batch, row: Row) -> None:
        batch.add(row)
        if batch.count >= batch.full and batch.is_full():
            self._write(batch)

    # --- into the file -------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write everything that waits, and the state of the machine."""
        begin = monotonic()
        with self._writing():
            self._snapshot()
        now = monotonic()
        self._due = now + max(self.pace.seconds, _COST_FACTOR * (now - begin))
        self._left = self.pace.iterations or -1

    def halt(self, *, for_good: bool = False) -> None:
        """End the file with this moment, where a debugger has stopped the run, perhaps by going back a little.

        Every frame around it is known, but the event that the innermost was entered or left may be missing. Where
        nothing follows here (`for_good`), what the iterations under way have computed is in the file, too, behind the
        snapshot: a run that resumes the file records them whole.
        """
        machine, known = self.machine, self.activations.open
        if len(known) == len(machine.stack):
            self.after(Event(EventKind.LEFT, machine.tick, known[-1].frame))
        self.realign()
        if len(known) < len(machine.stack) - 1:
            self.after(Event(EventKind.ENTERED, machine.tick, machine.stack[-1]))
        self.snapshot()
        if for_good:
            with self._writing():
                for entry in self.activations.open:
                    self._write_so_far(entry)

    def _write_so_far(self, entry: RecordedActivation) -> None:
        """Write what an iteration that is not closed has computed."""

        frame = entry.frame
        batch = self._batches.get(id(frame.program))
        activation = frame.activation
        if batch is None or activation is None or frame.phase is not Phase.RUNNING:
            return
        values = tuple(frame.values[port.slot] if frame.is_current(port.slot) else None for port in batch.level.ports)
        one = Batch(batch.level)
        iteration = activation.iteration if isinstance(activation.plan, LoopPlan) else None
        one.add((entry.number, iteration, self.machine.tick, values))
        self._rows.write(one)

    def realign(self) -> None:
        """Follow the frames of the machine, which are other objects since its state was restored."""
        for entry, frame in zip(self.activations.open, self.machine.stack[1:], strict=False):
            entry.frame = frame
        self._frame = None

    def flush(self) -> None:
        """Write everything that waits, without a snapshot."""
        with self._writing():
            self._flush()

    def finish(self) -> None:
        """Write the outputs of a run that has ended, and the last snapshot."""
        machine = self.machine
        assert machine.outputs is not None, "the run has ended"
        names = output_names(machine.compiled.model)
        with self._writing():
            tensors = zip(names, machine.outputs, strict=True)
            references = write_tensors(self._connection, "outputs", tensors, self._blobs)
            self.snapshots.share(machine.outputs, references)
            self._snapshot()

    def close(self) -> None:
        """Let go of the machine and the file, which is then one file again, without a log beside it."""
        if self.machine.watcher is self:
            self.machine.watcher = None
        self.machine.observers = tuple(one for one in self.machine.observers if one is not self)
        with contextlib.suppress(sqlite3.Error):
            # Where another program is reading, the log stays until the file is opened the next time.
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()
        self._taken.release()

    def _write(self, batch: Batch) -> None:
        with self._writing():
            self.activations.write(self._connection)
            self._rows.write(batch)

    def _flush(self) -> None:
        self.activations.follow(self.machine.stack)
        self.activations.write(self._connection)
        for batch in self._batches.values():
            self._rows.write(batch)

    def _snapshot(self) -> None:
        self._flush()
        self.snapshots.write(self.machine, self.activations, self._rows.iterations)

    @contextlib.contextmanager
    def _writing(self, *, taking: bool = False) -> Iterator[None]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if taking:
                    origin.replace_kept(connection, "writer", [self._token])
                elif connection.execute("SELECT content FROM kept WHERE kind = 'writer'").fetchone() != (self._token,):
                    raise SessionError("another run has taken over the file")
                yield
                connection.execute("COMMIT")
            except BaseException:
                self._is_whole = False  # what was taken back is still taken for written
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise file.writing_error(self.path, error) from None
        except SessionError as error:
            raise SessionError(f"{self.path}: {error}") from None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        # An interruption may come between two columns of a row; an error of the run comes between two moves.
        between = kind is None or issubclass(kind, StepperError)
        if between and self._is_whole and not self.machine.finished:
            with contextlib.suppress(SessionError):
                self.flush()
        self.close()


# Beginning a recording, opening one, and going on with one that was interrupted.

Beginning = tuple[list[Reference], Activations]
"""References to the inputs in the file, and the activations that are under way."""

_LARGEST_LOG = 32 * 2**20
_SMALLEST_LOG = 2**20
_SHARE_OF_DISK = 16
"""The log beside the file is written into it when it has this part of the free space, within the bounds above."""


def record(
    machine: Machine,
    inputs: Sequence[Array],
    path: str | Path,
    options: RecordingOptions | None = None,
    pace: Pace | None = None,
) -> Recorder:
    """Begin to record the run of a machine, which got these inputs, into a new file.

        with record(machine, inputs, "run.sqlite", RecordingOptions.parse("all")) as recorder:
            recorder.run()

    UsageError where the file is there already or cannot be made. Until the recorder is closed no other program can
    go on with the file, or keep a session in it.
    """
    path, options = Path(path), options or RecordingOptions()
    OutputFile(path, RECORDING, ProtectedFiles.of_model(machine.compiled.model.path)).check()
    with contextlib.ExitStack() as undoing:
        taken = lock(path)
        undoing.callback(taken.release)
        with file.new_file(path, file.PAGE_SIZE_OF_VALUES) as connection:
            references, activations = _fill(connection, path, machine, inputs, options)
        connection = _logged(path)
        undoing.callback(connection.close)
        recorder = Recorder(machine, connection, path, options, pace or Pace(), taken)
        recorder.snapshots.share(inputs, references)
        recorder.activations = activations
        recorder.begin(0)
        undoing.pop_all()
    return recorder


def open_recording(path: str | Path) -> Recording:
    """Return a recording to look at; SessionError where it is none."""
    return Recording(path)


def resume(
    path: str | Path,
    model: str | Path | None = None,
    inputs: Mapping[str | int, Any] | None = None,
    *,
    max_iterations: int | None = None,
    pace: Pace | None = None,
    partner: Partner | None = None,
) -> tuple[Recorder, LoopLog]:
    """Go on with an interrupted run from its last snapshot, in the same file; with what loops did up to there.

    SessionError where the model, or an input that is given, or the `partner`, is not the one that was recorded;
    FileInUse where another program records into the file.
    """
    path = Path(path)
    with contextlib.ExitStack() as undoing:
        taken = lock(path, advice="it continues there; wait for its end, or end it")
        undoing.callback(taken.release)
        with Recording(path) as recording:
            restored = recording.restored(model, inputs=inputs, max_iterations=max_iterations, partner=partner)
            options = recording.options()
            log = recording.loop_log(restored.machine.compiled, restored.tick)
        connection = _logged(path)
        undoing.callback(connection.close)
        with file.errors_named(path):
            _take_back(connection, restored)
            recorder = Recorder(restored.machine, connection, path, options, pace or Pace(), taken)
            recorder.activations.resume(restored.machine.stack, restored.numbers, restored.activations)
            recorder.begin(restored.iterations)
        undoing.pop_all()
    return recorder, log


def _take_back(connection: sqlite3.Connection, restored: RestoredMachine) -> None:
    """Delete what was recorded after the snapshot: it will be recorded again."""
    iterations, activations, tick = restored.iterations, restored.activations, restored.tick
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM runs WHERE id > ?", (iterations,))
    for table in ("number_series", "tensor_series", "stacks"):
        connection.execute(f"DELETE FROM {table} WHERE first > ?", (iterations,))
    for table, series, each in (("numbers", "number_series", RUN_LENGTH), ("tensors", "tensor_series", 1)):
        last = f"SELECT coalesce(max((start + count - 1) / {each}), -1) FROM {series}"
        connection.execute(f"DELETE FROM {table} WHERE id > ({last})")
    connection.execute("DELETE FROM activations WHERE id > ?", (activations,))
    connection.execute("DELETE FROM snapshots WHERE tick > ?", (tick,))
    reopened = connection.execute("SELECT NULL, NULL, NULL, id FROM activations WHERE closed > ?", (tick,)).fetchall()
    connection.executemany(CLOSE, reopened)
    connection.execute("COMMIT")


def _logged(path: Path) -> CheckedConnection:
    """Open a file to write ahead: what a killed process has not finished does not show, and nothing waits for the disk.

    On a disk with little room the log stays small.
    """
    with file.errors_named(path):
        connection = file.connect(path, writable=True)
        free = shutil.disk_usage(path.parent).free
        size = min(max(free // _SHARE_OF_DISK, _SMALLEST_LOG), _LARGEST_LOG)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {size // file.PAGE_SIZE_OF_VALUES}")
        connection.execute(f"PRAGMA journal_size_limit = {size}")
        return connection


def _fill(
    connection: sqlite3.Connection, path: Path, machine: Machine, inputs: Sequence[Array], options: RecordingOptions
) -> Beginning:
    blobs, references = write_origin(connection, path, machine, inputs, options)
    levels = levels_of(machine.compiled, options)
    for level in levels:
        insert_many(connection, "levels", 9, [with_checksum(level.row)])
        insert_many(connection, "ports", 11, (with_checksum(port.row(level.id)) for port in level.ports))
    activations = Activations({id(level.program): level for level in levels})
    activations.follow(machine.stack)
    activations.write(connection)
    snapshots = SnapshotWriter(connection, blobs)
    snapshots.share(inputs, references)
    snapshots.write(machine, activations, 0)
    return references, activations


# A debugged run that is recorded: stops at breakpoints, and the file ends where it stopped.
#
# A machine has one watcher. The `RecordingWatcher` is both: it asks about breakpoints first and hands on to the
# recorder what lies at or before the stop. For a breakpoint may be asked late, when the iteration in which it stops has
# been closed already; the run then goes back to the stop, and what came after it has not happened and is in no file.


class RecordingWatcher(BreakpointWatcher):
    """The watcher of a run that is debugged and recorded. What a replay comes by again is not recorded twice."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.machine)
        self._recorder = recorder
        self._recorded = recorder.machine.tick

    def watch(self, owners: Iterable[Breakpoint]) -> None:
        """Ask about these breakpoints; every iteration is of interest to the recorder."""
        super().watch(owners)
        self.watches_iterations = True

    def iteration_watch(self, frame: Frame) -> Callable[[Frame], bool]:
        """Return what records an iteration; every one is of interest."""
        return self.after_iteration

    def after_iteration(self, frame: Frame) -> bool:
        """Record an iteration that has been closed, unless the stop is before its end. Return True to stop."""
        stops, tick = super().after_iteration(frame), self.machine.tick
        if tick > self._recorded and (not stops or self.found_at == tick):
            self._recorded = tick
            self._recorder.after_iteration(frame)
        return stops


@contextlib.contextmanager
def recorded(debugger: Debugger, recorder: Recorder) -> Iterator[None]:
    """Allow `continue_recorded` in a block, and no other verb; close the file at its end."""
    plain = debugger.watcher
    _watch_with(debugger, RecordingWatcher(recorder))
    try:
        with recorder:
            yield
    finally:
        _watch_with(debugger, plain)


def _watch_with(debugger: Debugger, watcher: BreakpointWatcher) -> None:
    debugger.watcher = debugger.timeline.watcher = debugger.machine.watcher = watcher
    debugger.breakpoints.watched_by(watcher)


def continue_recorded(debugger: Debugger, recorder: Recorder, *, for_good: bool = False) -> Stop:
    """Go on to the next stop of a breakpoint, to a pause or to the end; the file then goes up to there.

    `for_good`: nothing follows, and the file gets what the iterations under way have computed, too.
    """

    def hear(event: Event) -> bool:
        recorder.after(event)
        return False

    stop = debugger.continue_(hear)
    if debugger.machine.finished:
        recorder.finish()
    else:
        recorder.halt(for_good=for_good)
    return stop


def resume_debugged(
    path: str | Path,
    breaks: Iterable[BreakDescription],
    model: str | Path | None = None,
    inputs: Mapping[str | int, Any] | None = None,
    *,
    max_iterations: int | None = None,
    partner: Partner | None = None,
) -> tuple[Debugger, Recorder, LoopLog]:
    """Resume as `resume` does, with a debugger that stands where the recording ends; its past is the whole run.

    The names in breakpoints are seen from the start of the run, as when it began; their hits are counted from here.
    """
    with open_recording(path) as recording:
        recorded_inputs = recording.inputs()
    recorder, log = resume(path, model, inputs, max_iterations=max_iterations, partner=partner)
    machine = recorder.machine
    machine.keep_values = True  # a breakpoint may be asked when the operations after it have run
    bound = bind_inputs(machine.compiled.model, dict(enumerate(recorded_inputs.values())))
    present = machine.snapshot()
    machine.restore(Machine(machine.compiled, bound, states=machine.initial_states).snapshot())
    debugger = Debugger.of(machine, bound)
    try:
        for description in breaks:
            debugger.breakpoints.add(description)
    except StepperError:
        recorder.close()
        raise
    debugger.timeline.stand(present)
    debugger.watcher.counted()
    recorder.realign()
    return debugger, recorder, log
