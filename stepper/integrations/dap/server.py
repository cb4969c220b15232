"""The adapter on streams, or on a port of this machine: a thread reads, this one works, one client at a time."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from typing import IO, Final

from stepper.errors import UsageError
from stepper.integrations.dap.adapter import Adapter, refusal
from stepper.integrations.dap.framing import Unframed, framed, read_message
from stepper.integrations.dap.session import OpenRun

HOST: Final = "127.0.0.1"
"""Programs of this machine alone may ask: a client has the rights of whoever started the adapter."""
_MOST_WAITING: Final = 64
"""Messages that are read before those before are answered."""
_MOST_TOLD: Final = 20
"""Faults of a stream that its client is told."""
_MOST_WAITING_CLIENTS: Final = 8
_LEAVING: Final = 1.0
"""Seconds that a session may take to end where the next client is there already."""
_PATIENCE: Final = 5.0
"""Seconds in which a client that is not served says anything."""


def serve_streams(reader: IO[bytes], writer: IO[bytes], open_run: OpenRun, *, strict: bool = False) -> None:
    """Serve one client until it leaves or ends the session; `strict`: a message without its frame ends it, too."""
    gone = threading.Event()

    def send(content: bytes) -> None:
        if gone.is_set():
            return
        try:
            writer.write(framed(content))
            writer.flush()
        except (OSError, ValueError):  # the client is gone
            gone.set()

    adapter = Adapter(open_run, send)
    waiting: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
    threading.Thread(
        target=_read, args=(reader, adapter, waiting, strict), daemon=True, name="reader of the debug adapter"
    ).start()
    while not adapter.ended and not gone.is_set():
        if waiting.empty() and adapter.resume():
            continue
        content = waiting.get()
        if content is None:
            return
        adapter.handle(content)


def _read(reader: IO[bytes], adapter: Adapter, waiting: queue.Queue[bytes | None], strict: bool) -> None:
    faults = 0
    while True:
        try:
            content = read_message(reader)
        except Unframed as error:
            faults += 1
            if faults <= _MOST_TOLD:
                adapter.session.say(f"a message could not be read: {error}", "stderr")
            if not strict:
                continue
            content = None
        except (OSError, ValueError):
            content = None
        if content is None:
            adapter.pause()
            waiting.put(None)
            return
        adapter.hear(content)
        waiting.put(content)


# --- a port ---------------------------------------------------------------------------------------------------------


def serve_port(port: int, open_run: OpenRun, listening: Callable[[str, int], None]) -> None:
    """Serve clients one after another until the program is interrupted; a second one at a time is refused.

    `listening` is told where; port 0 is any that is free. UsageError for a port that is taken.
    """
    try:
        server = socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror or error}; 0 takes one that is free") from None
    with server:
        listening(*server.getsockname()[:2])
        clients: queue.Queue[socket.socket] = queue.Queue()
        seat = threading.Semaphore()
        threading.Thread(
            target=_accept, args=(server, clients, seat), daemon=True, name="door of the debug adapter"
        ).start()
        while True:
            with _next(clients) as client, client.makefile("rb") as reader, client.makefile("wb") as writer:
                try:
                    serve_streams(reader, writer, open_run, strict=True)
                finally:
                    with contextlib.suppress(OSError):
                        client.shutdown(socket.SHUT_RDWR)
            seat.release()


def _next(clients: queue.Queue[socket.socket]) -> socket.socket:
    while True:
        with contextlib.suppress(queue.Empty):
            return clients.get(timeout=0.2)  # so that an interruption is heard on every system


def _accept(server: socket.socket, clients: queue.Queue[socket.socket], seat: threading.Semaphore) -> None:
    doors = threading.BoundedSemaphore(_MOST_WAITING_CLIENTS)
    while True:
        try:
            client = server.accept()[0]
        except OSError:
            return
        if seat.acquire(blocking=False):
            clients.put(client)
        elif doors.acquire(blocking=False):
            threading.Thread(target=_let_wait, args=(client, clients, seat, doors), daemon=True).start()
        else:
            client.close()


def _let_wait(
    client: socket.socket,
    clients: queue.Queue[socket.socket],
    seat: threading.Semaphore,
    doors: threading.BoundedSemaphore,
) -> None:
    """Serve a client as soon as the one before has gone; where it stays, tell the new one why it is not served."""
    try:
        if seat.acquire(timeout=_LEAVING):
            clients.put(client)
        else:
            _turn_away(client)
    finally:
        doors.release()


def _turn_away(client: socket.socket) -> None:
    """Answer the first request of a second client."""
    text = "another client debugs with this adapter; end that session, or start an adapter with another --port"
    with client, contextlib.suppress(OSError, Unframed), client.makefile("rb") as reader:
        client.settimeout(_PATIENCE)
        content = read_message(reader)
        answer = None if content is None else refusal(content, text)
        if answer is not None:
            client.sendall(framed(answer))
