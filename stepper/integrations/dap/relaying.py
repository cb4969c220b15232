"""A client that attaches to an application on a port through an adapter of its own: messages go through as they are."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from typing import IO, Final

import msgspec

from stepper.integrations.dap.adapter import Adapter, RunElsewhere
from stepper.integrations.dap.messages import (
    HOST,
    EventMessage,
    Unframed,
    framed,
    read_message,
    send_at_once,
    with_token,
)
from stepper.records import Record

_PATIENCE: Final = 5.0
"""Seconds in which a connection is made."""
_ENDED: Final = msgspec.json.encode(EventMessage(0, "terminated"))


class _Said(Record):
    """A message, as far as that tells which it is."""

    command: str = ""
    event: str = ""
    success: bool = True
    message: str = ""


def relay(
    adapter: Adapter, there: RunElsewhere, waiting: queue.Queue[bytes | None], send: Callable[[bytes], None]
) -> None:
    """Hand on what waits and what is answered, until one of both ends is gone.

    Where nothing listens the client is told, and the session is over.
    """
    try:
        connection = socket.create_connection((HOST, there.port), timeout=_PATIENCE)
    except OSError as error:
        reason = error.strerror or str(error) or "no answer"
        adapter.refuse(
            there.attaching,
            f"no application on port {there.port}: {reason}; start one: stepper MODEL --dap {there.port}",
        )
        send(_ENDED)
        return
    connection.settimeout(None)
    send_at_once(connection)
    with connection, connection.makefile("rb") as reader:
        answers = threading.Thread(
            target=_hand_back,
            args=(reader, adapter, there, waiting, send),
            daemon=True,
            name="answers of the application",
        )
        answers.start()
        with contextlib.suppress(OSError):
            for content in (there.greeting, with_token(there.attaching, there.port)):
                connection.sendall(framed(content))
            while (said := waiting.get()) is not None:
                connection.sendall(framed(said))
            connection.shutdown(socket.SHUT_WR)  # what the application says last is still to come
        answers.join(_PATIENCE)


def _hand_back(
    reader: IO[bytes],
    adapter: Adapter,
    there: RunElsewhere,
    waiting: queue.Queue[bytes | None],
    send: Callable[[bytes], None],
) -> None:
    """Hand back all but the answer to the greeting, which was given; at the end say that there is one.

    Where the application does not take the client, that is the answer to its request to attach.
    """
    has_ended = is_greeted = is_answered = False
    reason = "it ended the conversation"
    with contextlib.suppress(OSError, ValueError, Unframed):
        while (content := read_message(reader)) is not None:
            said = msgspec.json.decode(content, type=_Said)
            if not is_greeted and said.command == "initialize":
                is_greeted = True
                reason = reason if said.success else said.message
                continue
            is_answered = is_answered or said.command == "attach"
            has_ended = has_ended or said.event == "terminated"
            send(content)
    if not is_answered:
        adapter.refuse(there.attaching, f"the application on port {there.port}: {reason}")
    if not has_ended:
        send(_ENDED)
    waiting.put(None)
