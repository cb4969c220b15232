"""Write the state of a machine as JSON, and read it back: all that a run needs to continue.

    {"tick": 17, "frames": [...], "states": {...}, "notes": [[place, text], ...], "outputs": null}

The JSON has nothing that follows from the model. A frame has `pc`, `phase` and `values` (by slot; constants are the
model's). All but the first have an `activation`: its number in the file, the layer's id, `iteration`, `condition`,
`ended`, `casts`, and how many pieces each `scans` has. The graph of a frame, its limit and its slices follow from the
frame around it: the loop is entered anew. A tensor is a reference (see blobs.py). The reader checks the data it reads
like any untrusted data.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from stepper import element_types
from stepper.element_types import Array, Ints
from stepper.engine import transitions
from stepper.engine.frames import Activation, Frame, Phase, Snapshot
from stepper.engine.loops import EndReason, Scan
from stepper.engine.machine import Machine
from stepper.engine.program import LoopPlan, Operation, OpKind
from stepper.errors import SessionError
from stepper.recording.blobs import OF_RECORDING, OF_STATES, BlobReader, BlobWriter, Reference, blobs_of, content_hash
from stepper.recording.iterations import Activations, stacks
from stepper.records import Record

Pieces = Callable[[int, int, int], Iterable[Any]]
"""The pieces of a scan: by activation, index of the scan, and how many."""

_LONGEST_TEXT = 2000
_MOST_NOTES = 10_000
_Whole = Annotated[int, Meta(ge=0, le=2**62)]


class ActivationState(Record):
    """An activation under way, with its number in the file and how many pieces each scan has."""

    number: Annotated[int, Meta(ge=1, le=2**62)]
    layer: int
    iteration: Annotated[int, Meta(ge=-1, lt=2**62)]
    condition: Any
    ended: EndReason | None
    casts: tuple[tuple[int, str], ...]
    scans: Ints


class FrameState(Record):
    """A frame; only the first has no activation."""

    pc: _Whole
    phase: str
    values: dict[str, Any]
    activation: ActivationState | None


class MachineState(Record):
    """The state of a machine; without frames it has its outputs."""

    tick: _Whole
    frames: tuple[FrameState, ...]
    states: dict[str, Any]
    notes: tuple[tuple[str, str], ...]
    outputs: tuple[Any, ...] | None


# --- to JSON -----------------------------------------------------------------------------------------------------


def state_of(machine: Machine, activations: Sequence[int], writer: BlobWriter) -> MachineState:
    """Return the state of a machine now. `activations` are the numbers in the file of all frames but the first."""
    frames = zip(machine.stack, (0, *activations), strict=False)
    outputs = machine.outputs
    return MachineState(
        machine.tick,
        tuple(_frame(frame, number, writer) for frame, number in frames),
        {key: value if _is_plain(value) else writer.refer(value) for key, value in machine.states.items()},
        tuple((note.place[:_LONGEST_TEXT], note.text[:_LONGEST_TEXT]) for note in machine.notes)[:_MOST_NOTES],
        None if outputs is None else tuple(map(writer.refer, outputs)),
    )


def _is_plain(value: Any) -> bool:
    """Return True for a variable that is no tensor: the stream of a random operation is a number."""
    return value is None or isinstance(value, int)


def _frame(frame: Frame, number: int, writer: BlobWriter) -> FrameState:
    values = {
        str(slot): writer.refer(value)
        for slot, (value, constant) in enumerate(zip(frame.values, frame.program.template, strict=True))
        if value is not None and value is not constant
    }
    state, activation = None, frame.activation
    if activation is not None:
        state = ActivationState(
            number,
            activation.operation.layer.id,
            activation.iteration,
            activation.condition,
            activation.ended,
            tuple((slot, element_types.of_dtype(dtype).name) for slot, dtype in activation.casts),
            tuple(scan.length for scan in activation.scans),
        )
    return FrameState(frame.pc, frame.phase.name, values, state)


def values_of(machine: Machine) -> list[Any]:
    """Return all values that a state refers to."""
    found = [value for frame in machine.stack for value in frame.values if value is not None]
    return [*found, *machine.states.values()]


# --- from JSON ---------------------------------------------------------------------------------------------------


def restore(machine: Machine, text: str, connection: sqlite3.Connection, pieces: Pieces) -> list[int]:
    """Put a machine, newly made, into the state that `text` describes; the numbers of its activations.

    Raises SessionError, or what errors_named makes one of, for everything that cannot be the state of this model.
    """
    return _Restoring(machine, connection, pieces).restore(msgspec.json.decode(text, type=MachineState))


class _Restoring:
    def __init__(self, machine: Machine, connection: sqlite3.Connection, pieces: Pieces) -> None:
        self.machine, self.pieces = machine, pieces
        self.readers = {False: BlobReader(connection, OF_STATES), True: BlobReader(connection, OF_RECORDING)}
        self.numbers: list[int] = []

    def restore(self, state: MachineState) -> list[int]:
        frames: list[Frame] = []
        for data in state.frames:
            frames.append(self._frame(data, frames[-1] if frames else None))
        states = {key: value if _is_plain(value) else self._value(value) for key, value in state.states.items()}
        outputs = None if state.outputs is None else tuple(np.asarray(self._value(one)) for one in state.outputs)
        if (outputs is None) != bool(frames):
            raise SessionError("its state is neither at the end nor inside of a graph")
        if outputs is not None and len(outputs) != len(self.machine.compiled.main.results):
            raise SessionError("its state has another number of outputs than the model")
        for place, text in state.notes[:_MOST_NOTES]:
            self.machine.notes.add(place[:_LONGEST_TEXT], text[:_LONGEST_TEXT])
        self.machine.restore(Snapshot(state.tick, tuple(frames), states, outputs))
        return self.numbers

    def _frame(self, data: FrameState, outer: Frame | None) -> Frame:
        if (outer is None) != (data.activation is None):
            raise SessionError("its state begins with the frame of a loop, or has another that is of none")
        if outer is None or data.activation is None:
            main = self.machine.compiled.main
            frame = Frame(main, list(main.template))
        else:
            frame = self._inner(data.activation, outer)
        frame.phase = Phase[data.phase]
        if frame.activation is not None and data.activation is not None and frame.activation.scans:
            self._append_pieces(frame, frame.activation, data.activation.scans)
        if data.pc > len(frame.program.code):
            raise SessionError(f"its state has the impossible program counter {data.pc}")
        frame.pc = data.pc
        frame.values = list(frame.program.template)
        for slot, reference in data.values.items():
            if not slot.isdecimal() or not int(slot[:12]) < len(frame.values):
                raise SessionError(f"its state has a value for the slot '{slot:.20}', which does not exist")
            frame.values[int(slot)] = self._value(reference)
        _check_phase(frame)
        if missing := missing_slots(frame):
            raise SessionError(f"its state lacks values of {frame.program.name} (slots {sorted(missing)[:10]})")
        _specialise(frame)
        return frame

    def _inner(self, data: ActivationState, outer: Frame) -> Frame:
        operation = _operation_at(outer)
        if data.layer != operation.layer.id:
            raise SessionError(f"its state is in layer {data.layer}, where the model has {operation.layer}")
        self.numbers.append(data.number)
        rules = self.machine.rules
        try:
            if operation.kind is not OpKind.LOOP:
                return transitions.enter_branch(operation, outer.values, rules)
            frame = transitions.enter_loop(operation, outer.values, rules, lambda _text: None)
        except Exception as error:
            raise SessionError(f"its state cannot be inside of {operation.layer}: {error}") from None
        activation = frame.active
        plan = activation.plan
        assert isinstance(plan, LoopPlan), "the operation is a loop"
        if activation.limit is not None and data.iteration >= activation.limit:
            raise SessionError(f"its state has the impossible iteration {data.iteration}")
        activation.iteration, activation.ended = data.iteration, data.ended
        activation.condition = data.condition is True
        if not {slot for slot, _name in data.casts} <= {entry.parameter for entry in plan.merged}:
            raise SessionError("its state casts a value that no back edge carries")
        activation.casts = tuple((slot, element_types.ELEMENT_TYPES[name].dtype) for slot, name in data.casts)
        return frame

    def _append_pieces(self, frame: Frame, activation: Activation, lengths: Sequence[int]) -> None:
        closed = activation.iteration + (frame.phase is not Phase.RUNNING)
        if any(length != closed for length in lengths) or len(lengths) != len(activation.scans):
            raise SessionError("a concatenated output has another number of pieces than its loop has iterations")
        for index, scan in enumerate(activation.scans):
            for piece in self.pieces(self.numbers[-1], index, closed):
                scan.append(piece)
            if scan.length != closed:
                raise SessionError("pieces of a concatenated output are missing")

    def _value(self, reference: Any) -> Any:
        return self.readers["recorded" in reference].value(reference)


def _operation_at(outer: Frame) -> Operation:
    """Return the loop or branch that a frame is in the middle of."""
    if outer.phase is Phase.RUNNING and outer.pc < len(outer.program.operations):
        operation = outer.program.operations[outer.pc]
        if operation.plans:
            return operation
    raise SessionError(f"its state has a frame inside of {outer.program.name}, which is not at a loop or branch")


def _check_phase(frame: Frame) -> None:
    activation = frame.activation
    if activation is None or frame.loop is None:
        fits = frame.phase is Phase.RUNNING
    elif frame.phase is Phase.RUNNING:
        fits = activation.iteration >= 0 and activation.ended is None
    else:
        fits = (activation.ended is None) == (frame.phase is Phase.BETWEEN)
    if not fits:
        raise SessionError(f"its state has a frame of {frame.program.name} in the phase {frame.phase.name}")


def _specialise(frame: Frame) -> None:
    """Use the faster code that a loop's first iteration has shown to fit, where that is over."""
    activation, program, values = frame.activation, frame.program, frame.values
    if activation is None or frame.loop is None or not program.straight:
        return
    closed = activation.iteration + (frame.phase is not Phase.RUNNING)
    inputs = {slot for operation in program.operations for slot in operation.inputs if slot >= 0}
    if closed > 0 and all(values[slot] is not None for slot in inputs):
        activation.code = program.specialised(values, program.code)


def missing_slots(frame: Frame) -> set[int]:
    """Return the slots that are empty and will be read before anything is written to them."""
    program, activation = frame.program, frame.activation
    present = {slot for slot, value in enumerate(frame.values) if value is not None}
    plan = frame.loop
    is_begun = activation is not None and activation.iteration >= 0
    if frame.phase is Phase.LEAVING:
        return {entry.result for entry in (plan.last_values if plan is not None and is_begun else ())} - present
    missing: set[int] = set()
    begin = frame.pc
    if frame.phase is Phase.BETWEEN:
        begin = 0
        if plan is not None:  # back edges are read when the next iteration begins, and parameters written
            merged = plan.merged if is_begun else ()
            missing = {entry.result for entry in merged} - present
            present |= {entry.parameter for entry in plan.sliced} | {entry.parameter for entry in merged}
            present |= {slot for slot, _numbered in plan.current_iteration}
    for operation in program.operations[begin:]:
        missing |= {slot for slot in operation.inputs if slot >= 0} - present
        present |= set(operation.outputs)
    return missing | (set(program.results) - present)


# The snapshots of a recording: from each of them the run can go on. Few are kept, the newest always.

_MOST_SNAPSHOTS = 32
_MOST_PIECES = 2**16
"""In one row: far more than a scan ever has in a part."""


class SnapshotWriter:
    """Writes the states of one machine, of each scan only the pieces that are new."""

    def __init__(self, connection: sqlite3.Connection, blobs: BlobWriter) -> None:
        self._connection, self._blobs = connection, blobs
        self._values = BlobWriter(connection, OF_STATES)
        self._pieces: dict[tuple[int, int], int] = {}

    def share(self, tensors: Sequence[Any], references: Sequence[Reference]) -> None:
        """Note that these tensors are in the file already, beside the snapshots."""
        self._values.share(tensors, references)

    def resume(self, activations: Activations) -> None:
        """Note that the pieces of these activations are in the file already."""
        for entry in activations.open:
            for index, scan in enumerate(_scans(entry.frame.activation)):
                self._pieces[entry.number, index] = scan.length

    def write(self, machine: Machine, activations: Activations, iterations: int) -> None:
        """Add a snapshot of the present; within a transaction of the caller's."""
        written = {}
        for entry in activations.open:
            for index, scan in enumerate(_scans(entry.frame.activation)):
                self._write_pieces(entry.number, index, scan)
                written[entry.number, index] = scan.length
        self._pieces = written
        state = state_of(machine, [entry.number for entry in activations.open], self._values)
        text = json.dumps(msgspec.to_builtins(state), allow_nan=False, separators=(",", ":"))
        row = (machine.tick, iterations, activations.count, text, checksum(machine.tick, text))
        self._connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", row)
        self._values.forget(values_of(machine))
        thin_out(self._connection)

    def _write_pieces(self, activation: int, index: int, scan: Scan) -> None:
        first = self._pieces.get((activation, index), 0)
        for part in scan.parts(first):
            for count, tensor in _stacked(part):
                row = (activation, index, first, count, self._blobs.store(tensor))
                seal = _pieces_checksum(*row)
                self._connection.execute("INSERT OR REPLACE INTO scan_pieces VALUES (?, ?, ?, ?, ?, ?)", (*row, seal))
                first += count


def _scans(activation: Any) -> list[Scan]:
    return [] if activation is None else activation.scans


def _stacked(part: Any) -> Iterator[tuple[int, Array]]:
    """Yield how many pieces, and they as one tensor."""
    if isinstance(part, np.ndarray):
        yield len(part), part
        return
    for stack in stacks(part):
        yield stack.count, np.repeat(stack.tensor, stack.count, axis=0) if stack.repeated else stack.tensor


def pieces_from(connection: sqlite3.Connection, activation: int, index: int, count: int) -> Iterator[Any]:
    """Yield the first `count` pieces of a scan that are in the file.

    Raise SessionError where some are missing or a row is damaged: one changed bit names another tensor of the file.
    """
    query = "SELECT first, count, blob, checksum FROM scan_pieces WHERE activation = ? AND scan = ? ORDER BY first"
    done = 0
    for first, number, blob, seal in connection.execute(query, (activation, index)).fetchall():
        if done == count:
            return
        if seal != _pieces_checksum(activation, index, first, number, blob):
            raise SessionError("pieces of a concatenated output are damaged")
        tensor = BlobReader(connection, OF_RECORDING).tensor(blob)
        if first != done or not tensor.ndim or len(tensor) != number or not 0 < number <= _MOST_PIECES:
            break
        for piece in tensor[: count - done]:
            yield piece
            done += 1
    if done != count:
        raise SessionError("pieces of a concatenated output are missing")


def thin_out(connection: sqlite3.Connection) -> None:
    """Drop every second of too many snapshots, but neither of the last two; and the values that only they had."""
    ticks = [int(tick) for (tick,) in connection.execute("SELECT tick FROM snapshots ORDER BY tick")]
    if len(ticks) <= _MOST_SNAPSHOTS:
        return
    connection.executemany("DELETE FROM snapshots WHERE tick = ?", [(tick,) for tick in ticks[1:-2:2]])
    used: set[int] = set()
    for (text,) in connection.execute("SELECT state FROM snapshots").fetchall():
        used |= blobs_of(json.loads(text))
    present = {int(identity) for (identity,) in connection.execute("SELECT id FROM state_values")}
    connection.executemany("DELETE FROM state_values WHERE id = ?", [(identity,) for identity in present - used])


def _pieces_checksum(*row: int) -> str:
    return content_hash(repr(row).encode()).hex()


def checksum(tick: int, text: str) -> str:
    """Return the hash by which a damaged snapshot is found."""
    return content_hash(f"{tick}\n{text}".encode()).hex()
