"""Recording a run while it goes on: `Recorder` looks on at the machine and writes one SQLite file.

The file is whole at every moment: rows and snapshots go into it in transactions, so a process that is killed leaves a
recording that ends a little earlier. Iterations are collected and written many at a time; once in a while, and never
for more than a small part of the time, the state of the machine is added as a snapshot, from which the run can go on.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import MappingProxyType, TracebackType
from typing import Final

from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.events import Event, EventKind, Every, RunObserver, Taps
from stepper.engine.frames import Frame, Phase
from stepper.engine.machine import Machine
from stepper.engine.program import BranchPlan, LoopPlan
from stepper.engine.run import output_names
from stepper.errors import SessionError, StepperError
from stepper.files.locks import FileLock
from stepper.recording import files, session_rows
from stepper.recording.blobs import RECORDED, BlobWriter, Reference
from stepper.recording.iterations.activations import Activations, RecordedActivation
from stepper.recording.iterations.batches import Batch, BatchWriter, Row
from stepper.recording.iterations.levels import levels_of
from stepper.recording.options import PendingIterations, RecordingOptions
from stepper.recording.origin import write_tensors
from stepper.recording.snapshots import SnapshotWriter

_COST_FACTOR: Final = 20.0
_OPERATIONS_BETWEEN_LOOKS: Final = 2**15
"""At the clock, where an operation is one of numbers, which is over at once."""
_NO_STOPS: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType({})


class Pace(Struct, frozen=True):
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
        blobs = BlobWriter(connection, RECORDED)
        self._blobs = blobs
        self._batches = {key: Batch(level) for key, level in levels.items() if level.ports}
        self._rows = BatchWriter(connection, blobs, 0)
        self._activations = Activations(levels)
        self._snapshots = SnapshotWriter(connection, blobs)
        self._selection = None if options.iterations.everything else PendingIterations[Row](options.iterations)
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

    def share(self, tensors: Sequence[Array], references: Sequence[Reference]) -> None:
        """Note that these tensors are in the file already; a snapshot need not hold them again."""
        self._snapshots.share(tensors, references)

    def begin(self, iterations: int, activations: Activations) -> None:
        """Take the file, which holds so much already; any other writer notices."""
        self._rows.iterations = iterations
        self._activations = activations
        self._snapshots.resume(activations)
        with self._errors(), self._transaction(taking=True):
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
            self._activations.follow(self.machine.stack, event.tick)
        elif event.kind is EventKind.LEFT and self._activations.open:
            self._left_behind(self._activations.close(event.tick), event)
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
        if (batch is not None and batch.form is None) or frame is not self._frame or not is_free:
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
                if batch.form is None:
                    batch.values.append(batch.take(frame.values))
                    batch.ticks.append(self.machine.tick)
                else:
                    for extend, slot in batch.taps:
                        extend(frame.values[slot])
                if batch.count >= batch.full and batch.is_full():
                    self._write(batch)
            else:
                self._select(batch, frame, self._selection)
        self._left -= 1
        if self._left == 0 or monotonic() >= self._due:
            self.snapshot()
        return False

    def _turn_to(self, frame: Frame) -> None:
        self._activations.follow(self.machine.stack)
        self._frame, self._number = frame, self._activations.open[-1].number
        self._batch = batch = self._batches.get(id(frame.program))
        if batch is not None and self._selection is None:
            form = batch.form_of(frame)
            if form is not batch.form:
                if batch.count:
                    self._write(batch)
                batch.turn_to(form)
            assert frame.activation is not None, "a loop has one"
            batch.begin(self._number, frame.activation.iteration, self.machine.tick)

    def _select(self, batch: Batch, frame: Frame, selection: PendingIterations[Row]) -> None:
        activation = frame.activation
        assert activation is not None, "a loop has one"
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
        with self._errors(), self._transaction():
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
        machine, known = self.machine, self._activations.open
        if len(known) == len(machine.stack):
            self.after(Event(EventKind.LEFT, machine.tick, known[-1].frame))
        self.realign()
        if len(known) < len(machine.stack) - 1:
            self.after(Event(EventKind.ENTERED, machine.tick, machine.stack[-1]))
        self.snapshot()
        if for_good:
            with self._errors(), self._transaction():
                for entry in self._activations.open:
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
        for entry, frame in zip(self._activations.open, self.machine.stack[1:], strict=False):
            entry.frame = frame
        self._frame = None

    def flush(self) -> None:
        """Write everything that waits, without a snapshot."""
        with self._errors(), self._transaction():
            self._flush()

    def finish(self) -> None:
        """Write the outputs of a run that has ended, and the last snapshot."""
        machine = self.machine
        assert machine.outputs is not None, "the run has ended"
        names = output_names(machine.compiled.model)
        with self._errors(), self._transaction():
            references = write_tensors(self._connection, "outputs", names, machine.outputs, self._blobs)
            self._snapshots.share(machine.outputs, references)
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
        with self._errors(), self._transaction():
            self._activations.write(self._connection)
            self._rows.write(batch)

    def _flush(self) -> None:
        self._activations.follow(self.machine.stack)
        self._activations.write(self._connection)
        for batch in self._batches.values():
            self._rows.write(batch)

    def _snapshot(self) -> None:
        self._flush()
        self._snapshots.write(self.machine, self._activations, self._rows.iterations)

    @contextlib.contextmanager
    def _transaction(self, *, taking: bool = False) -> Iterator[None]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            if taking:
                session_rows.replace_kept(connection, "writer", [self._token])
            elif connection.execute("SELECT content FROM kept WHERE kind = 'writer'").fetchone() != (self._token,):
                raise SessionError("another run has taken over the file")
            yield
            connection.execute("COMMIT")
        except BaseException:
            self._is_whole = False  # what was taken back is still taken for written
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise files.writing_error(self.path, error) from None
        except SessionError as error:
            raise SessionError(f"{self.path}: {error}") from None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An interruption may come between two columns of a row; an error of the run comes between two moves.
        between = kind is None or issubclass(kind, StepperError)
        if between and self._is_whole and not self.machine.finished:
            with contextlib.suppress(SessionError):
                self.flush()
        self.close()
