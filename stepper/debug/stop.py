"""A stop: frozen description of one moment of a run, for whoever shows or compares it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stepper.debug.causes.cause import Cause, Trigger
from stepper.debug.causes.cause import Reason as Reason
from stepper.element_types import Shape
from stepper.engine.frames import Event, EventKind, Frame, Phase, Snapshot, place
from stepper.records import Record
from stepper.wording import excerpt

if TYPE_CHECKING:
    import hashlib

    from stepper.element_types import Array
    from stepper.engine.machine import Machine
    from stepper.engine.program import Operation

_LONGEST_REPR = 300


class SearchedRange(Record):
    """Range in which a search backward that was paused has looked: from `tick` on, up to where the run stands.

    `place` and `iteration` describe the tick; `iteration` is None if the tick is not in the present loop. `verb` is the
    command that continues from there. `passed` counts the repeats in the range; None if the search is for a stop, and
    the range has none.
    """

    tick: int
    place: str
    iteration: int | None
    verb: str
    passed: int | None = None


class Stop(Record):
    """A moment at which the debugger stands, and why.

    `done` is the operation that was just executed, `next` the one that comes next in the same frame; both None where
    the frame is between iterations, begins or ends. `closed` says that the iteration has just been closed: its pieces
    are recorded, and whether it was the last is known. `causes` are what held where a breakpoint, or the aim of the
    movement, stopped it. `searched`: a search backward was paused, the run stands where that began.
    """

    tick: int
    reason: Reason
    place: str
    depth: int
    iteration: int | None
    done: Operation | None
    next: Operation | None
    closed: bool
    causes: tuple[Cause, ...] = ()
    searched: SearchedRange | None = None

    def __repr__(self) -> str:
        why = f": {'; '.join(self.details)}" if self.details else ""
        return f"<Stop at tick {self.tick} ({self.reason}): {self._where()}{excerpt(why, _LONGEST_REPR)}>"

    def _repr_html_(self) -> str:
        """Return the place and the reasons, for notebooks."""
        from html import escape  # notebooks alone need it

        lines = "".join(f"<li>{escape(line)}</li>" for line in self.details)
        return f"<p>tick {self.tick}, {escape(str(self.reason))}: {escape(self._where())}</p><ul>{lines}</ul>"

    def _where(self) -> str:
        done = "" if self.done is None else f", after {self.done.layer.type} '{excerpt(self.done.layer.name)}'"
        return excerpt(self.place, _LONGEST_REPR) + done

    @property
    def cause(self) -> Cause | None:
        """Return the first of the causes: one that was waited for before the aim of a movement; None without any."""
        waited = (cause for cause in self.causes if cause.trigger is not Trigger.AIM)
        return next(waited, self.causes[0] if self.causes else None)

    @property
    def is_interrupted(self) -> bool:
        """True if a breakpoint or an anomaly stopped the run, not the aim of the movement."""
        return self.reason is Reason.BREAK and any(cause.trigger is not Trigger.AIM for cause in self.causes)

    @property
    def details(self) -> tuple[str, ...]:
        """Return the causes in sentences."""
        from stepper.debug.causes.cause_texts import stop_sentences  # a run begins without any

        return stop_sentences(self.causes)


class Mark(Record):
    """A named position of the run."""

    tick: int
    branch: str


def describe(
    machine: Machine, reason: Reason, causes: tuple[Cause, ...] = (), searched: SearchedRange | None = None
) -> Stop:
    """Return the moment at which a machine stands now."""
    if not machine.stack:
        return Stop(machine.tick, reason, "model", 0, None, None, None, False, causes, searched)
    frame = machine.stack[-1]
    running = frame.phase is Phase.RUNNING
    operations = frame.program.operations
    done = operations[frame.pc - 1] if (running or is_branch(frame)) and frame.pc > 0 else None
    following = operations[frame.pc] if running and frame.pc < len(operations) else None
    iteration = iteration_of(frame)
    closed = not running and iteration is not None
    where = place(machine.stack)
    return Stop(machine.tick, reason, where, len(machine.stack), iteration, done, following, closed, causes, searched)


def iteration_of(frame: Frame) -> int | None:
    """Return the iteration that a loop's frame is in or has just closed; None before the first and for other frames."""
    activation = frame.activation
    if activation is None or not activation.operation.layer.is_loop or activation.iteration < 0:
        return None
    return activation.iteration


def is_branch(frame: Frame) -> bool:
    """True for the frame of a side of an If."""
    return frame.activation is not None and not frame.activation.operation.layer.is_loop


def reason_of(machine: Machine, event: Event | None, found_at: int | None) -> Reason:
    """Return why a movement ended here, by its last event; `found_at` is the tick of a breakpoint's stop."""
    if machine.finished:
        return Reason.END
    if event is not None and event.kind is EventKind.PAUSED:
        return Reason.PAUSED
    if machine.tick == 0:
        return Reason.START
    if event is None:
        return Reason.MOVED
    return Reason.BREAK if found_at == machine.tick else Reason.MOVED


_SMALL = 1 << 12
"""Bytes up to which values are put together before they are hashed."""
_NUMBERS = np.typecodes["AllFloat"] + np.typecodes["AllInteger"] + "?"
_WHOLE = 1 << 20
"""Bytes up to which every bit of a value goes into a fingerprint."""
_PIECES, _PIECE = 64, 512
"""Pieces of a larger value, and elements in each piece."""


def fingerprint(state: Snapshot) -> bytes:
    """Return a hash of the whole state: equal at the same tick of every replay.

    Every bit of a value counts; of one above 1 MB its type, its shape and 64 pieces that are spread over it, so that a
    stop takes no longer for all that is in its scope.
    """
    from hashlib import blake2b  # for few stops

    digest = blake2b(digest_size=16)
    digest.update(state.tick.to_bytes(8, "little"))
    for frame in state.frames:
        _update_frame(digest, frame)
    for key in sorted(state.states):
        digest.update(key.encode())
        if state.states[key] is not None:
            _update(digest, state.states[key])
    for output in state.outputs or ():
        _update(digest, output)
    for changed in sorted(state.constants, key=lambda constants: constants.program.name):
        digest.update(changed.program.name.encode())
        for slot in sorted(changed.values):
            digest.update(str(slot).encode())
            _update(digest, changed.values[slot])
    return digest.digest()


def is_same_state(kept: Snapshot, now: Snapshot) -> bool:
    """Return True if a replay came to the state that was kept at this tick.

    Values that the kept state lacks are left out: a run that keeps only what is still needed may have taken it.
    """
    if fingerprint(kept) == fingerprint(now):
        return True
    if len(kept.frames) != len(now.frames):
        return False
    frames = tuple(frame.copy() for frame in now.frames)
    for frame, known in zip(frames, kept.frames, strict=True):
        for slot, value in enumerate(known.values):
            if value is None:
                frame.values[slot] = None
    return fingerprint(kept) == fingerprint(replace(now, frames=frames))


def _update_frame(digest: hashlib.blake2b, frame: Frame) -> None:
    activation = frame.activation
    iteration = None if activation is None else activation.iteration
    digest.update(f"{frame.program.name}|{frame.pc}|{frame.phase.name}|{iteration}".encode())
    small: list[bytes] = []  # a body is mostly of these
    dtype, shape = None, ()
    for value, constant in zip(frame.values, frame.program.template, strict=True):
        if value is not None and value is not constant:
            if type(value) is np.ndarray and value.nbytes <= _SMALL and value.dtype.char in _NUMBERS:
                if value.dtype is not dtype or value.shape != shape:  # written where it is not that of the one before
                    dtype, shape = value.dtype, value.shape
                    small.append(_kind_of(dtype, shape))
                small.append(value.tobytes())
            else:
                _update(digest, value)
    digest.update(b"".join(small))
    if activation is not None:
        digest.update(f"{activation.condition}|{activation.ended}|{activation.limit}".encode())
        if activation.decided is not None:
            digest.update(f"decided {activation.decided}".encode())
        digest.update("|".join(str(scan.length) for scan in activation.scans).encode())


def _update(digest: hashlib.blake2b, value: object) -> None:
    array = np.asarray(value)
    digest.update(_kind_of(array.dtype, array.shape))
    if array.dtype.kind in "TO":
        digest.update(repr(array.tolist()).encode())
    elif array.nbytes <= _WHOLE:
        digest.update(array.tobytes())
    else:
        for piece in _spread(array):
            digest.update(piece.tobytes())


@lru_cache(maxsize=4096)
def _kind_of(dtype: np.dtype[Any], shape: Shape) -> bytes:
    """Type and shape of a value; to write a type takes numpy longer than all the rest of a small value."""
    return f"{dtype}{shape}".encode()


def _spread(array: Array) -> Iterator[Array]:
    """Pieces of a large array, evenly spread and the last among them; nothing of the rest is read or copied."""
    if not array.flags.c_contiguous:
        least = max(1, array.size // (_PIECES * _PIECE))
        axis = int(np.argmax(array.shape))
        yield array[(slice(None),) * axis + (slice(None, None, min(least, array.shape[axis])),)]
        return
    flat = array.reshape(-1)
    for start in np.linspace(0, flat.size - _PIECE, _PIECES, dtype=np.int64):
        yield flat[start : start + _PIECE]
