"""Messages between the program and a worker process: typed facts, with arrays as their bytes.

A message is a head of fixed length, a msgpack text of one of the types below, and the bytes of its arrays one after the
other. Nothing is ever executed that comes over the pipe. What does not follow the format raises `Garbled`.

An act is a tagged Struct of the service that performs it. One with a field `folder` names a temporary folder: the
worker deletes it if the program ends while the act is performed.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import IO, Any, Final, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.element_types import STRING, STRING_DTYPE, Array, DType, Ints, Shape
from stepper.errors import ExecutionError, LimitReached, ModelError, StepperError
from stepper.records import Record
from stepper.wording import excerpt

_HEAD = struct.Struct("<4sIQ")
_MAGIC = b"stw2"
_LARGEST = 2**48
_ALIGNED = 64
"""Bytes: each array begins at a multiple of so many, as runtimes like it."""

_NOTHING = msgspec.msgpack.encode(None)

_PADDING = memoryview(bytes(_ALIGNED))

LOADING = "being loaded for"
READING = "reading"
CONVERTING = "converting"
COMPILING = "compiling"
RUNNING = "running"
"""Stages at which a worker may end; it announces when each begins but LOADING."""

A = TypeVar("A")
T = TypeVar("T")


class Garbled(Exception):
    """Bytes that are not a message."""


class Definition(Record):
    """A function that will be called by its key, with the arrays of the message. There is no answer."""

    key: int


class CallFunction(Struct, frozen=True, tag=True):
    """Call the function that was defined under a key on the arrays of the message; its outputs are sent if `wanted`."""

    key: int
    wanted: bool = True


class WorkRequest(Struct, Generic[A], frozen=True):
    """An act, its subject in words, and the keys of definitions and tickets that are not needed any more.

    One with a `ticket` is begun: it is performed beside others, and all that is said of it has that ticket.
    """

    act: A
    subject: str
    forget: Ints = ()
    dropped: Ints = ()
    ticket: int = 0


class StageBegan(Struct, frozen=True, tag=True):
    """Not an answer yet: a stage begins."""

    stage: str
    ticket: int = 0


class Completed(Struct, frozen=True, tag=True):
    """Report that the act was performed; `facts` is its result beside arrays, in msgpack."""

    facts: bytes = _NOTHING
    ticket: int = 0


class Rejected(Struct, frozen=True, tag=True):
    """The act failed; `error` is the name of one of our exceptions, or empty for words of the runtime's own."""

    error: str
    text: str
    ticket: int = 0


class OutOfMemory(Struct, frozen=True, tag=True):
    """Memory did not suffice; the process lives on."""

    ticket: int = 0


class Replaced(Struct, frozen=True, tag=True):
    """The process that was at it ended, by a signal (negative) or with an exit code; the next request has another."""

    code: int
    ticket: int = 0


Reply = StageBegan | Completed | Rejected | OutOfMemory | Replaced


class _ArrayFacts(Struct, frozen=True, array_like=True):
    element_type: str
    shape: Shape
    size: int
    texts: list[str] | None = None


class _Frame(Struct, Generic[T], frozen=True, array_like=True):
    message: T
    arrays: tuple[_ArrayFacts, ...]


def write(stream: IO[bytes], message: WorkRequest[Any] | Reply, arrays: Sequence[Any] = ()) -> None:
    """Write one message whole."""
    facts, parts = [], []
    for array in map(np.asarray, arrays):
        element_type, texts = element_types.of(array), None
        if element_type is STRING:
            texts = [str(text) for text in array.reshape(-1).tolist()]
        elif array.size:
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            if rest := -array.nbytes % _ALIGNED:
                parts.append(_PADDING[:rest])
        size = 0 if texts is not None else array.nbytes
        facts.append(_ArrayFacts(element_type.name, array.shape, size, texts))
    content = msgspec.msgpack.encode(_Frame(message, tuple(facts)), enc_hook=_plain)
    stream.write(_HEAD.pack(_MAGIC, len(content), sum(map(len, parts))))
    stream.write(content)
    for part in parts:
        stream.write(part)
    stream.flush()


def read_request(stream: IO[bytes], acts: Any) -> tuple[WorkRequest[Any], list[Array]] | None:
    """Read a request for one of the acts (a union of Structs) and its arrays; None at the end of the stream."""
    return _read(stream, _Frame[WorkRequest[acts]])


def read_reply(stream: IO[bytes]) -> tuple[Reply, list[Array]] | None:
    """Read a reply and its arrays; None at the end of the stream."""
    return _read(stream, _Frame[Reply])


def _read(stream: IO[bytes], kind: Any) -> tuple[Any, list[Array]] | None:
    head = _exactly(stream, _HEAD.size)
    if head is None:
        return None
    magic, length, size = _HEAD.unpack(head)
    if magic != _MAGIC or size > _LARGEST:
        raise Garbled("it has no head")
    content = _exactly(stream, length)
    payload = None if content is None else _exactly(stream, size)
    if content is None or payload is None:
        return None
    try:
        frame = msgspec.msgpack.decode(content, type=kind, dec_hook=_dtype)
        return frame.message, _arrays(frame.arrays, payload)
    except (msgspec.MsgspecError, ValueError, KeyError) as error:
        raise Garbled(str(error)) from None


def _plain(value: Any) -> Any:
    """Return what stands for a read-only mapping, or for the type of an array."""
    return dict(value) if isinstance(value, Mapping) else element_types.of_dtype(value).name


def _dtype(_kind: type, name: str) -> DType:
    return element_types.ELEMENT_TYPES[name].dtype


def _arrays(facts: Sequence[_ArrayFacts], payload: memoryview) -> list[Array]:
    found, offset = [], 0
    for fact in facts:
        dtype = element_types.ELEMENT_TYPES[fact.element_type].dtype
        if dtype == STRING_DTYPE:
            found.append(np.array(fact.texts or [], dtype).reshape(fact.shape))
            continue
        if not 0 <= fact.size <= len(payload) - offset:
            raise ValueError("an array is longer than the message")
        part = np.frombuffer(payload, np.uint8, fact.size, offset)
        found.append(part.view(dtype).reshape(fact.shape) if fact.size else np.empty(fact.shape, dtype))
        offset += fact.size + -fact.size % _ALIGNED
    return found


def _exactly(stream: IO[bytes], count: int) -> memoryview | None:
    """Return so many bytes; None where the stream ends before."""
    buffer, done = np.empty(count, np.uint8).data, 0  # a bytearray would be written once before, with zeros
    while done < count:
        got = stream.readinto(buffer[done:])  # type: ignore[attr-defined]  # streams of bytes have it
        if not got:
            return None
        done += got
    return buffer


# Ends of a worker process while it was at something, as facts, as one sentence, and as exceptions.

_LONGEST = 300
"""Characters of what a process has printed."""


class EndKind(StrEnum):
    """Cause of an end."""

    SIGNAL = "signal"
    EXIT = "exit"
    TIME = "time"
    MEMORY = "memory"
    GARBLED = "garbled"


class ProcessEnd(Record):
    """Describe the end of the process of a program (`OpenVINO`), and its stage and subject.

    A stage works on a subject, for example `the model m.xml`. `code` is the number of the signal or the exit code;
    `limit` is the limit that was reached, in seconds or bytes. `printed` is the process's own message on its end, in
    one line; empty if there is none.
    """

    kind: EndKind
    program: str
    stage: str
    subject: str
    code: int = 0
    limit: float = 0.0
    printed: str = ""

    @property
    def is_limit(self) -> bool:
        """True if a limit of ours was reached."""
        return self.kind in (EndKind.TIME, EndKind.MEMORY)

    def __str__(self) -> str:
        doing = f"{self.stage} {self.subject}"
        printed = f" (it printed: {self.printed})" if self.printed else ""
        match self.kind:
            case EndKind.TIME:
                return f"{self.program} did not finish within {self.limit:.3g} s while {doing}"
            case EndKind.MEMORY:
                limit = f" (limit {self.limit / 2**30:.3g} GB)" if self.limit else ""
                return f"{self.program} ran out of memory{limit} while {doing}"
            case EndKind.GARBLED:
                return f"{self.program} sent an unreadable answer while {doing}"
            case EndKind.EXIT:
                return f"{self.program} ended with exit code {self.code} while {doing}{printed}"
        return f"{self.program} crashed ({signal_name(self.code)}) while {doing}{printed}"


_WHAT = "what():"
"""Before the words of an exception that nobody has caught, where a program in C++ aborts."""


def printed_of_end(kind: EndKind, printed: str) -> str:
    """Return what a process has said of its end, of all that it printed: a crash says nothing, but for an exception.

    One that exits says why in its last line, as Python does.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if kind is EndKind.SIGNAL:
        lines = [line.removeprefix(_WHAT).strip() for line in lines if line.startswith(_WHAT)]
    is_said = kind in (EndKind.SIGNAL, EndKind.EXIT) and lines
    return excerpt(lines[-1], _LONGEST) if is_said else ""


_KILLED = "SIGKILL, which the system sends where memory runs out"


def signal_name(number: int) -> str:
    """Return SIGSEGV for 11; `signal N` for a signal without a name."""
    if number == 9:
        return _KILLED
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class WorkerEnded(ExecutionError):
    """A program ended instead of answering; `end` has the facts."""

    end: ProcessEnd | None = None


class WorkerLimit(LimitReached):
    """A program reached a limit of time or memory; `end` has the facts."""

    end: ProcessEnd | None = None


class ConversionEnded(ModelError):
    """A program ended while it converted a model; `end` has the facts."""

    end: ProcessEnd | None = None


def error_of(end: ProcessEnd) -> WorkerEnded | WorkerLimit | ConversionEnded:
    """Return the exception for an end, by its exit code: a limit, a model that cannot be converted, anything else."""
    kind = WorkerLimit if end.is_limit else ConversionEnded if end.stage == CONVERTING else WorkerEnded
    error = kind(str(end))
    error.end = end
    return error


def ended_at_its_start(error: StepperError) -> bool:
    """Return True where a program has ended before it could be asked anything, so that nothing of it is to be had."""
    end = getattr(error, "end", None)
    return isinstance(end, ProcessEnd) and end.stage == LOADING


ENDED: Final[tuple[type[StepperError], ...]] = (WorkerEnded, WorkerLimit, ConversionEnded)
"""The exceptions that say that a program ended."""
