"""The adapter: a message in, messages out. Whatever comes in is answered, and nothing that comes in ends it.

`hear` is for the thread that reads: what must not wait for a movement under way acts at once. `handle` is for the one
that works: it answers in the order in which messages came.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stepper.errors import StepperError
from stepper.integrations.dap.answering import REQUESTS, RequestKind
from stepper.integrations.dap.dap_session import DapSession, OpenRun
from stepper.integrations.dap.messages import CancelArguments, EventMessage, Request, Response, decoded
from stepper.records import Record
from stepper.wording import excerpt, near_text

_LEAVING: Final = frozenset({"disconnect", "terminate"})
_INTERRUPTING: Final = frozenset({
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setDataBreakpoints",
    "setExceptionBreakpoints",
    "threads",
    "loadedSources",
    "source",
    "breakpointLocations",
})  # fmt: skip
"""Requests that a movement to the next stop is interrupted for; it goes on when they are answered."""


_QUIET: Final = frozenset({
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
        """The client leaves: a movement of its own ends at once, one of an application that shows the run goes on."""
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
        """Answer a message that is not carried out with the reason for that, in place of `handle`."""
        self._handled += 1
        if (request := decoded(content, Request)) is None:
            self.session.say(text, "stderr")
        else:
            self._refuse(request, text)

    @property
    def is_suspended(self) -> bool:
        """True if there is a movement that was interrupted, with which `resume` goes on."""
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
    """An application on another port that has the run; `greeting` and `attaching` are what it is told first."""

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
