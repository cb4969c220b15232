"""Run the adapter on streams or on a local port: one thread reads, this thread works.

The server serves one client at a time. The adapter takes a message and sends messages. It answers every message, and no
message ends it.

`hear` is for the reading thread: requests that must not wait for the current movement act at once. `handle` is for the
working thread: it answers messages in the order in which they came.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import socket
import struct
import threading
from collections.abc import Callable
from typing import IO, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.answering import REQUESTS, RequestKind
from stepper.integrations.dap.dap_session import DapSession, OpenRun
from stepper.integrations.dap.messages import (
    HOST,
    NO_TOKEN,
    CancelArguments,
    EventMessage,
    Request,
    Response,
    Unframed,
    decoded,
    forget,
    framed,
    has_token,
    keep,
    new_token,
    read_message,
    send_at_once,
    with_token,
)
from stepper.records import Record
from stepper.wording import excerpt, near_text

_LEAVING = frozenset({"disconnect", "terminate"})
_INTERRUPTING = frozenset({
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setDataBreakpoints",
    "setExceptionBreakpoints",
    "threads",
    "loadedSources",
    "source",
    "breakpointLocations",
})  # fmt: skip
"""Requests that interrupt a movement to the next stop; it continues after their answers."""


_QUIET = frozenset({
    "evaluate",
    "completions",
    "stackTrace",
    "scopes",
    "variables",
    "exceptionInfo",
    "readMemory",
    "stepper/stop",
    "stepper/values",
    "stepper/figure",
    "stepper/overview",
})  # fmt: skip
"""Requests whose errors need no message box: the client shows the error in place, or asked about an older stop."""


class Adapter:
    """An adapter for one client; `send` gets each message, from any thread."""

    def __init__(self, open_run: OpenRun, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._sequence = itertools.count(1)
        self._sending = threading.Lock()
        self._heard = self._handled = 0
        self._paused_to = self._interrupted_to = self._answered_to = 0
        self._greeting = b""
        self.is_leaving = False
        """True as soon as the client wants to leave, or has gone."""
        self.elsewhere: RunElsewhere | None = None
        self.session = DapSession(open_run, self._event)
        self.session.is_pause_wanted = lambda: self._handled <= self._paused_to
        self.session.is_interrupted = lambda: self._handled < self._interrupted_to

    @property
    def ended(self) -> bool:
        """True if the session is over."""
        return self.session.ended

    def hear(self, content: bytes) -> None:
        """Take note of a message that `handle` will be given."""
        self._heard += 1
        command = command_of(content)
        if command == "pause" or (command == "cancel" and self._is_cancelled(content)):
            self.pause()
        elif command in _LEAVING:
            self.leave()
        elif command in _INTERRUPTING:
            self._interrupted_to = self._heard
            if self.session.is_going_on:
                self._stop_movement()

    def _is_cancelled(self, content: bytes) -> bool:
        """True if a request to cancel is for the movement under way, or for a request that is still to be answered."""
        request = decoded(content, Request)
        asked = None if request is None else decoded(request.arguments, CancelArguments)
        if asked is None:
            return False
        is_movement = bool(asked.progress_id) and asked.progress_id == self.session.progress
        return is_movement or (asked.request_id is not None and asked.request_id > self._answered_to)

    def pause(self) -> None:
        """Have the movement under way, and those that were asked for before, end at once."""
        self._paused_to = self._heard
        self._stop_movement()

    def leave(self) -> None:
        """Handle the client's departure.

        A movement of the client ends at once; a movement of an application that shows the run continues.
        """
        self.is_leaving = True
        self._paused_to = self._heard
        if not self.session.is_shared or self.session.is_moving:
            self._stop_movement()

    def _stop_movement(self) -> None:
        if self.session.has_run:
            self.session.run.debugger.pause()

    def handle(self, content: bytes) -> None:
        """Answer one message."""
        self._handled += 1
        try:
            request = msgspec.json.decode(content, type=Request)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self.session.say(f"a message could not be read: {excerpt(str(error))}", "stderr")
            return
        if request.type != "request":
            return  # nothing is asked of a client that it could answer
        session = self.session
        session.after = None
        if request.command == "initialize":
            self._greeting = content
        if request.command == "attach" and (port := _port(request)) is not None and not session.is_joining:
            self.elsewhere = RunElsewhere(port, self._greeting, content)
            return
        try:
            body = self._answered(request)
        except StepperError as error:
            self._refuse(request, str(error), error.exit_code)
        except MemoryError:
            self._refuse(request, "out of memory", 4)
        except Exception as error:
            self._refuse(request, f"an error of the adapter itself: {type(error).__name__}: {excerpt(str(error), 300)}")
        else:
            self._respond(request, body)
        self._answered_to = request.seq
        self._carry_on()
        if session.has_run:
            session.tell_breakpoints()

    def refuse(self, content: bytes, text: str) -> None:
        """Answer a message with the reason why it is not carried out, instead of `handle`."""
        self._handled += 1
        if (request := decoded(content, Request)) is None:
            self.session.say(text, "stderr")
        else:
            self._refuse(request, text)

    @property
    def is_suspended(self) -> bool:
        """Return True if a movement was interrupted; `resume` continues it."""
        return self.session.suspended is not None

    def resume(self) -> None:
        """Go on with a movement that was interrupted; nothing where there is none."""
        if self.is_suspended:
            self.session.after = self.session.resume
            self._carry_on()

    def _carry_on(self) -> None:
        """Do what is to be done behind an answer."""
        after, self.session.after = self.session.after, None
        if after is None:
            return
        try:
            after()
        except Exception as error:
            self.session.say(f"an error of the adapter itself: {type(error).__name__}: {error}", "stderr")
            if self.session.has_run:
                self.session.tell_stop("pause")

    def _answered(self, request: Request) -> Any:
        kind = self._kind(request.command)
        try:
            raw = bytes(request.arguments)
            arguments = msgspec.json.decode(b"{}" if raw.strip() == b"null" else raw, type=kind.arguments)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise BadArguments(f"{request.command}: {excerpt(str(error), 300)}") from None
        return kind.answer(self.session, arguments)

    def _kind(self, command: str) -> RequestKind:
        if command not in REQUESTS:
            near = near_text(command[:60], REQUESTS)
            raise BadArguments(f"there is no request '{excerpt(command)}' here{f'; {near}' if near else ''}")
        return REQUESTS[command]

    # --- sending -------------------------------------------------------------------------------------------------

    def _event(self, name: str, body: Any) -> None:
        self._put(lambda number: EventMessage(number, name, UNSET if body is None else body))

    def _respond(self, request: Request, body: Any) -> None:
        shown = {} if body is None else body
        self._put(lambda number: Response(number, request.seq, success=True, command=request.command, body=shown))

    def _refuse(self, request: Request, text: str, code: int = 1) -> None:
        body = {"error": {"id": code, "format": text, "showUser": request.command not in _QUIET}}
        message: str | UnsetType = text.splitlines()[0] if text else "it failed"
        self._put(
            lambda number: Response(
                number, request.seq, success=False, command=request.command, message=message, body=body
            )
        )

    def _put(self, made: Callable[[int], Response | EventMessage]) -> None:
        with self._sending:
            self._send(msgspec.json.encode(made(next(self._sequence))))


class BadArguments(StepperError):
    """A request that there is not, or whose arguments are not those of the protocol."""

    exit_code = 2


class RunElsewhere(Record):
    """Identify an application on another port that has the run.

    `greeting` and `attaching` are the first messages to the application.
    """

    port: int
    greeting: bytes
    attaching: bytes


class _Port(Record):
    """The argument of `attach` that names an application."""

    port: Annotated[int, Meta(ge=1, le=65535)] | None = None


def _port(request: Request) -> int | None:
    """Return the port that a request to attach names; None where it names none, or what is none."""
    found = decoded(request.arguments, _Port)
    return None if found is None else found.port


def command_of(content: bytes) -> str:
    """Return the command of a message; empty where it is no request."""
    request = decoded(content, Request)
    return "" if request is None else request.command


def refusal(content: bytes, text: str) -> bytes | None:
    """Return the answer that refuses a request for this reason; None to what is none."""
    request = decoded(content, Request)
    if request is None:
        return None
    body = {"error": {"id": 2, "format": text, "showUser": True}}
    return msgspec.json.encode(
        Response(1, request.seq, success=False, command=request.command, message=text, body=body)
    )


_MOST_WAITING = 64
"""Messages that are read before those before are answered."""
_MOST_TOLD = 20
"""Number of stream faults that the client hears of."""
_MOST_WAITING_CLIENTS = 8
_LEAVING_SECONDS = 1.0
"""Seconds that a session may take to end where the next client is there already."""
_UNREAD = 10.0
"""Seconds after which a client that does not read what it is sent is gone."""
_PATIENCE = 5.0
"""Seconds in which a client that is not served says anything."""


class Lead:
    """Who carries out what a client asks: whoever serves it; an application that has the run as well overrides it."""

    def joined(self, adapter: Adapter) -> None:
        """A client is there."""

    def carry_out(self, adapter: Adapter, content: bytes | None) -> None:
        """Answer a message; None: go on with the movement that was interrupted."""
        if content is None:
            adapter.resume()
        else:
            adapter.handle(content)

    def left(self, adapter: Adapter) -> None:
        """The client is gone."""


_DIRECT = Lead()


def serve_streams(
    reader: IO[bytes], writer: IO[bytes], open_run: OpenRun, *, token: str = "", lead: Lead = _DIRECT
) -> None:
    """Serve one client until it leaves or ends the session.

    `token`: it is to bring this one before anything is done but to greet it, else it is refused. What is no message
    ends the session, too, as long as there was none, since then it is no client: a browser, for one.
    """
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
        target=_read, args=(reader, adapter, waiting, token), daemon=True, name="reader of the debug adapter"
    ).start()
    lead.joined(adapter)
    try:
        while not adapter.ended and not gone.is_set():
            if adapter.is_suspended and waiting.empty():
                lead.carry_out(adapter, None)
                continue
            content = waiting.get()
            if content is None:
                return
            lead.carry_out(adapter, content)
            if adapter.elsewhere is not None:
                relay(adapter, adapter.elsewhere, waiting, send)
                return
    finally:
        lead.left(adapter)


def _read(reader: IO[bytes], adapter: Adapter, waiting: queue.Queue[bytes | None], token: str) -> None:
    faults = 0
    is_client = is_admitted = not token
    while True:
        try:
            content = read_message(reader)
            is_client = is_client or bool(content and command_of(content))
        except Unframed as error:
            faults += 1
            if faults <= _MOST_TOLD:
                adapter.session.say(f"a message could not be read: {error}", "stderr")
            if is_client:
                continue
            content = None
        except (OSError, ValueError):
            content = None
        if content is not None and not is_admitted:
            is_admitted = has_token(content, token)
            if not is_admitted and command_of(content) != "initialize":
                adapter.refuse(content, NO_TOKEN)
                content = None
        if content is None:
            adapter.leave()
            waiting.put(None)
            return
        adapter.hear(content)
        waiting.put(content)


# --- a port ---------------------------------------------------------------------------------------------------------


class ClientPort:
    """A port of this machine, on which clients are served one after another; a second one at a time is refused."""

    def __init__(self, port: int, option: str = "--port") -> None:
        """Listen; port 0 is any that is free. UsageError for a port that is taken, with the option that named it."""
        try:
            self._server = socket.create_server((HOST, port))
        except OSError as error:
            raise UsageError(f"{option} {port}: {error.strerror or error}; 0 takes one that is free") from None
        self.number: int = self._server.getsockname()[1]
        self.token = new_token()
        keep(self.number, self.token)
        self.is_closed = False
        self._clients: queue.Queue[socket.socket] = queue.Queue()
        self._seat = threading.Semaphore()
        self._client: socket.socket | None = None

    def serve(self, served: Callable[[IO[bytes], IO[bytes]], None]) -> None:
        """Have clients served, by this function with what they say and hear, until the port is closed."""
        threading.Thread(
            target=_accept,
            args=(self._server, self._clients, self._seat),
            daemon=True,
            name="door of the adapter",
        ).start()
        while (client := self._next()) is not None:
            self._client = client
            try:
                self._serve(client, served)
            except OSError:
                pass  # it was gone before all that it was told had gone out
            finally:
                self._seat.release()

    def _serve(self, client: socket.socket, served: Callable[[IO[bytes], IO[bytes]], None]) -> None:
        with client, client.makefile("rb") as reader, client.makefile("wb") as writer:
            try:
                served(reader, writer)
            finally:
                self._client = None
                _hang_up(client)

    def _next(self) -> socket.socket | None:
        while not self.is_closed:
            with contextlib.suppress(queue.Empty):
                return self._clients.get(timeout=0.2)  # so that an interruption is heard on every system
        return None

    def hang_up(self) -> None:
        """End the conversation with the client that is served; from any thread."""
        client = self._client
        if client is not None:
            _hang_up(client)

    def close(self) -> None:
        """Listen no longer; the client that is served hears nothing more."""
        self.is_closed = True
        forget(self.number)
        _hang_up(self._server)  # which wakes the thread that waits for clients
        self._server.close()
        self.hang_up()


def _hang_up(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def serve_port(port: int, open_run: OpenRun, listening: Callable[[ClientPort], None]) -> None:
    """Serve clients until the program is interrupted; call `listening` with the port.

    Raises UsageError for a taken port.
    """
    door = ClientPort(port)
    try:
        listening(door)
        door.serve(lambda reader, writer: serve_streams(reader, writer, open_run, token=door.token))
    finally:
        door.close()


def _accept(server: socket.socket, clients: queue.Queue[socket.socket], seat: threading.Semaphore) -> None:
    doors = threading.BoundedSemaphore(_MOST_WAITING_CLIENTS)
    while True:
        try:
            client = server.accept()[0]
        except OSError:
            return
        send_at_once(client)
        _bound_sending(client)
        if seat.acquire(blocking=False):
            clients.put(client)
        elif doors.acquire(blocking=False):
            threading.Thread(target=_let_wait, args=(client, clients, seat, doors), daemon=True).start()
        else:
            client.close()


def _bound_sending(client: socket.socket) -> None:
    """Have a client that reads nothing taken for gone, where the system can tell: else a run would wait for it."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_UNREAD), 0))


def _let_wait(
    client: socket.socket,
    clients: queue.Queue[socket.socket],
    seat: threading.Semaphore,
    doors: threading.BoundedSemaphore,
) -> None:
    """Serve a client as soon as the one before has gone; where it stays, tell the new one why it is not served."""
    try:
        if seat.acquire(timeout=_LEAVING_SECONDS):
            clients.put(client)
        else:
            _turn_away(client)
    finally:
        doors.release()


def _turn_away(client: socket.socket) -> None:
    """Answer the first request of a second client."""
    text = "another client debugs with this adapter; end that session first"
    with client, contextlib.suppress(OSError, Unframed), client.makefile("rb") as reader:
        client.settimeout(_PATIENCE)
        content = read_message(reader)
        answer = None if content is None else refusal(content, text)
        if answer is not None:
            client.sendall(framed(answer))


_ENDED = msgspec.json.encode(EventMessage(0, "terminated"))


class _Said(Record):
    """A message, as far as that tells which it is."""

    command: str = ""
    event: str = ""
    success: bool = True
    message: str = ""


def relay(
    adapter: Adapter, there: RunElsewhere, waiting: queue.Queue[bytes | None], send: Callable[[bytes], None]
) -> None:
    """Forward waiting messages and answers until one of both ends is gone.

    If nothing listens on the port, the client gets an error and the session ends.
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
