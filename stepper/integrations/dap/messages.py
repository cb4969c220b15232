"""Messages of the protocol: requests with what each carries, and what is answered; names are those of the protocol.

A field that is not here is not read. What is of another type than the protocol says is refused before anything is done.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from stepper.files.own_files import roomy, user_cache
from stepper.records import Record

Number = int | str | None


class Request(Record):
    """A request; `arguments` are read when its command is known. What a client answers to us is of another type."""

    seq: int
    type: str
    command: str = ""
    arguments: Raw = Raw(b"{}")


T = TypeVar("T")


def decoded(content: bytes | Raw, kind: type[T]) -> T | None:
    """Return JSON as a record of a kind; None where it is none."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


class Response(Record):
    """Answer to a request."""

    seq: int
    request_seq: int
    success: bool
    command: str
    message: str | UnsetType = UNSET
    body: Any = UNSET
    type: str = "response"


class EventMessage(Record):
    """Something that happened."""

    seq: int
    event: str
    body: Any = UNSET
    type: str = "event"


# --- what requests carry --------------------------------------------------------------------------------------------


class _Carried(Struct, frozen=True, rename="camel"):
    """Arguments of a request."""


class InitializeArguments(_Carried, frozen=True):
    """About the client: how it counts, and what it understands."""

    lines_start_at1: bool = field(default=True, name="linesStartAt1")
    columns_start_at1: bool = field(default=True, name="columnsStartAt1")
    path_format: str = "path"
    supports_progress_reporting: bool = False
    supports_invalidated_event: bool = False


class SourceArguments(_Carried, frozen=True):
    """A source, by path or by number."""

    name: str | None = None
    path: str | None = None
    source_reference: int | None = None


class SourceRequest(_Carried, frozen=True):
    """The text of a source."""

    source: SourceArguments | None = None
    source_reference: int = 0


class LineBreakpoint(_Carried, frozen=True):
    """A breakpoint on a line."""

    line: int
    condition: str | None = None
    hit_condition: str | None = None
    log_message: str | None = None


class NamedBreakpoint(_Carried, frozen=True):
    """A breakpoint by name."""

    name: str
    condition: str | None = None
    hit_condition: str | None = None


class ValueBreakpoint(_Carried, frozen=True):
    """A breakpoint on a value."""

    data_id: str
    access_type: str | None = None
    condition: str | None = None
    hit_condition: str | None = None


class ExceptionOption(_Carried, frozen=True):
    """An exception filter with a condition."""

    filter_id: str
    condition: str | None = None


class CancelArguments(_Carried, frozen=True):
    """A request, or a movement with a progress, to leave off."""

    request_id: int | None = None
    progress_id: str | None = None


# --- what is answered -----------------------------------------------------------------------------------------------


class _Shown(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Part of an answer; what is as usual is left out."""


class ShownSource(_Shown, frozen=True):
    """A source: a file, or a text that is asked for by its number."""

    name: str
    path: str = ""
    source_reference: int = 0
    origin: str = ""


class ShownBreakpoint(_Shown, frozen=True):
    """Result for a breakpoint that was wanted."""

    verified: bool
    id: int | None = None
    message: str = ""
    source: ShownSource | None = None
    line: int | None = None


class ShownFrame(_Shown, frozen=True):
    """A stack frame."""

    id: int
    name: str
    line: int
    column: int
    source: ShownSource | None = None
    can_restart: bool | None = None


class ShownScope(_Shown, frozen=True):
    """A scope of a frame."""

    name: str
    variables_reference: int
    expensive: bool
    named_variables: int | None = None
    presentation_hint: str = ""


class VariableHint(_Shown, frozen=True):
    """How a variable is shown: of what kind it is, and whether it can be changed."""

    kind: str = ""
    attributes: tuple[str, ...] = ()


class ShownVariable(_Shown, frozen=True):
    """A variable; with a reference there are others in it."""

    name: str
    value: str
    variables_reference: int
    type: str = ""
    evaluate_name: str = ""
    indexed_variables: int | None = None
    named_variables: int | None = None
    memory_reference: str = ""
    presentation_hint: VariableHint | None = None


class ShownResult(_Shown, frozen=True):
    """The value of an expression, or the answer of a command."""

    result: str
    variables_reference: int
    type: str = ""
    indexed_variables: int | None = None
    memory_reference: str = ""


class ShownTarget(_Shown, frozen=True):
    """Somewhere to go to or to step into."""

    id: int
    label: str
    line: int
    column: int | None = None


class ShownCompletion(_Shown, frozen=True):
    """Hold a completion: `text` replaces `length` characters from `start` on."""

    label: str
    text: str
    start: int
    length: int
    detail: str = ""
    type: str = ""


CHOSEN = "STEPPER_DAP_TOKEN"
"""The variable of the environment that has the token where its user chooses it."""
_FOLDER = "ports"
_MOST_KEPT = 4096
NO_TOKEN = (
    'this port asks for its token: "token": "..." among the arguments of launch or attach; stepper dap --port prints it'
)


class _Token(Record):
    """The token among the arguments of a request."""

    token: str = ""


def new_token() -> str:
    """Return the token of a port: the one that the user has chosen, else a new one."""
    return os.environ.get(CHOSEN) or secrets.token_urlsafe()


def has_token(message: bytes, token: str) -> bool:
    """True if a request brings this token among its arguments."""
    request = decoded(message, Request)
    if request is None or (found := decoded(request.arguments, _Token)) is None:
        return False
    given = found.token.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(given, token.encode("utf-8", "surrogateescape"))


def keep(port: int, token: str) -> None:
    """Keep the token of a port for adapters of the same user.

    If the token cannot be kept, the adapters must be given the token.
    """
    forget(port)
    roomy(_file(port).parent, _MOST_KEPT)  # those of programs that were killed go
    with contextlib.suppress(OSError), open(_file(port), "x", opener=_private) as file:
        file.write(token)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def forget(port: int) -> None:
    """Take the token of a port away."""
    with contextlib.suppress(OSError):
        _file(port).unlink(missing_ok=True)


def with_token(message: bytes, port: int) -> bytes:
    """Return a request with the token that is kept of a port, unless it brings one or there is none."""
    content: dict[str, Any] = msgspec.json.decode(message)
    with contextlib.suppress(OSError, UnicodeError):
        content["arguments"] = {"token": _file(port).read_text(encoding="utf-8"), **content["arguments"]}
    return msgspec.json.encode(content)


def _file(port: int) -> Path:
    return user_cache() / _FOLDER / str(port)


HOST = "127.0.0.1"
"""Programs of this machine alone may ask: a client has the rights of whoever started the adapter."""
LARGEST = 2**22
"""Bytes of a message; a client never sends as many."""
_MOST_SKIPPED = 2**26
"""Bytes of a message that is passed over; a head that says more is broken, and what stands behind it is no message."""
_LONGEST_LINE = 1000
_MOST_LINES = 8
_LENGTH = re.compile(rb"content-length:[ \t]*([0-9]{1,18})", re.IGNORECASE)
_TYPE = re.compile(rb"content-type:[^\r\n]*", re.IGNORECASE)
_CHUNK = 2**16


class Unframed(Exception):
    """Bytes that are not the frame of a message."""


def framed(content: bytes) -> bytes:
    """Return a message in its frame."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(content), content)


def send_at_once(end: socket.socket) -> None:
    """Have small messages not wait until the other end has confirmed those before, which it puts off for 40 ms."""
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def read_message(stream: IO[bytes]) -> bytes | None:
    """Return the content of the next message; None where the stream ends.

    Raise Unframed for a head that is none of the protocol, and for a message that is too large, which is skipped where
    it can be one. What follows can be read on.
    """
    length = _read_head(stream)
    if length is None:
        return None
    if length > LARGEST:
        for _ in _skipped(stream, length if length <= _MOST_SKIPPED else 0):
            pass
        raise Unframed(f"a message of {length:,} bytes; at most {LARGEST:,} are read")
    content = _exactly(stream, length)
    return content if len(content) == length else None


def _read_head(stream: IO[bytes]) -> int | None:
    """Return the length that a head says; None where the stream ends."""
    length, fault = None, ""
    for _ in range(_MOST_LINES):
        line = stream.readline(_LONGEST_LINE)
        if not line:
            return None
        text = line.strip()
        if not text and line.endswith(b"\n"):
            break
        if match := _LENGTH.fullmatch(text):
            length = int(match[1])
        elif _TYPE.fullmatch(text) is None:
            fault = fault or f"{text[:60]!r} is no line of the head of a message"
    else:
        fault = fault or "the head of a message has no end"
    if not fault and length is None:
        fault = "the head of a message has no Content-Length"
    if fault:
        raise Unframed(fault)
    return length


def _exactly(stream: IO[bytes], length: int) -> bytes:
    return b"".join(_skipped(stream, length))


def _skipped(stream: IO[bytes], length: int) -> Iterator[bytes]:
    """Yield so many bytes in pieces; fewer where the stream ends."""
    while length and (piece := stream.read(min(length, _CHUNK))):
        length -= len(piece)
        yield piece
