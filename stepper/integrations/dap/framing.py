"""Frames of the protocol: a head with `Content-Length`, an empty line, and so many bytes of JSON.

    Content-Length: 119\r\n\r\n{"seq": 1, "type": "request", ...}

A head with anything else in it is none of a client: browsers, too, send heads with a Content-Length to local ports.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import IO, Final

HOST: Final = "127.0.0.1"
"""Programs of this machine alone may ask: a client has the rights of whoever started the adapter."""
LARGEST: Final = 2**22
"""Bytes of a message; a client never sends as many."""
_MOST_SKIPPED: Final = 2**26
"""Bytes of a message that is passed over; a head that says more is broken, and what stands behind it is no message."""
_LONGEST_LINE: Final = 1000
_MOST_LINES: Final = 8
_LENGTH: Final = re.compile(rb"content-length:[ \t]*([0-9]{1,18})", re.IGNORECASE)
_TYPE: Final = re.compile(rb"content-type:[^\r\n]*", re.IGNORECASE)
_CHUNK: Final = 2**16


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
