"""Open the port on which an editor joins the run of an application: both move one run.

The application carries out the editor's requests where it holds the run, one after another. It reports its own
movements to the editor.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import IO, Any

from stepper.debug.breakpoints.breakpoint import BreakDescription
from stepper.debug.debugger import Debugger
from stepper.errors import UsageError
from stepper.integrations.dap import RunHost, Visit, Visited
from stepper.integrations.dap.answering import REQUESTS
from stepper.integrations.dap.dap_server import Adapter, ClientPort, Lead, command_of, serve_streams
from stepper.integrations.dap.dap_session import OpenedRun

_LOOK = 0.05
"""Seconds between two looks whether what is waited for will never come."""
_OTHER_MOVES = "the application moves the run; pause it, or wait until it stands"


class RunPort(Lead):
    """The port of an application; one editor at a time joins its run."""

    def __init__(self, port: int) -> None:
        """Listen on a port of this machine, 0 on any that is free. UsageError for one that is taken."""
        self._door = ClientPort(port, "--dap")
        self._host: RunHost | None = None
        self._adapter: Adapter | None = None
        self._debugger: Debugger | None = None
        self._brought: frozenset[BreakDescription] = frozenset()
        """Breakpoints that an editor had set in the previous run, copied to this run."""

    @property
    def number(self) -> int:
        """The port."""
        return self._door.number

    # --- for the application -------------------------------------------------------------------------------------

    def open(self, host: RunHost) -> None:
        """Let editors in."""
        self._host = host
        threading.Thread(target=self._door.serve, args=(self._serve,), daemon=True, name="debug adapter").start()

    def begins(self) -> None:
        """The application begins to move the run; in the thread of that."""
        if (adapter := self._joined) is not None:
            adapter.session.tell_moving()

    def stands(self, failure: str = "") -> None:
        """The application has done something with the run, which may have failed; in the thread of that."""
        if (adapter := self._joined) is not None:
            adapter.session.tell_others(failure)

    def end_session(self, *, restarts: bool) -> None:
        """End the session of the editor that is there; `restarts`: there will be another run, which it may join."""
        if (adapter := self._adapter) is not None and not adapter.ended:
            is_asked_back = restarts and adapter.session.is_shared
            if is_asked_back:  # the run that follows has them, too
                self._brought = adapter.session.run.breakpoints.brought
            body = {"restart": True} if is_asked_back else None
            adapter.session.send("terminated", body)
            adapter.session.ended = True
            self._door.hang_up()

    def leave_run(self) -> None:
        """The run is over: end the session of the editor, and take out of the run what it has set there."""
        adapter = self._adapter
        self.end_session(restarts=False)
        if adapter is not None and adapter.session.is_shared:
            adapter.session.run.leave()

    def close(self) -> None:
        """End the session of the editor, and listen no longer."""
        self.end_session(restarts=False)
        self._door.close()

    @property
    def _joined(self) -> Adapter | None:
        """The adapter of the editor that has the run before it; None where there is none."""
        adapter = self._adapter
        is_there = adapter is not None and adapter.session.is_shared and adapter.session.is_configured
        return adapter if is_there and not adapter.is_leaving else None  # type: ignore[union-attr]

    # --- in the thread of the editor -----------------------------------------------------------------------------

    def _serve(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        serve_streams(reader, writer, self._opened, token=self._door.token, lead=self)

    def _opened(self, _arguments: Mapping[str, Any], attach: bool) -> OpenedRun:
        if not attach:
            raise UsageError("an application runs the model here already: attach to it")
        if self._debugger is None:
            raise UsageError("there is no run to attach to")
        return OpenedRun(self._debugger, shared=True)

    def joined(self, adapter: Adapter) -> None:
        """An editor is there."""
        adapter.session.is_joining = True
        self._adapter = adapter
        self._told(joined=True)

    def left(self, adapter: Adapter) -> None:
        """It is gone: what it has set in the run goes, too."""
        self._adapter = None
        if adapter.session.is_shared:
            self._visit(_leaving(adapter))
        self._told(joined=False)

    def carry_out(self, adapter: Adapter, content: bytes | None) -> None:
        """Answer a message when it is the turn of the editor. A movement is refused while the application moves."""
        command = "" if content is None else command_of(content)
        kind = REQUESTS.get(command)
        if content is not None and (kind is None or not kind.needs_run):
            adapter.handle(content)
            return
        moves = kind is None or kind.moves
        host = self._host
        if moves and host is not None and host.is_moving:
            self._refuse(adapter, content, _OTHER_MOVES)
            return
        asked = _TurnAwaited(self, adapter, content, moves=moves)
        visit = Visit(asked.answer, f"editor: {command or 'continue'}" if moves else "", threading.Event())
        refusal = self._visit(visit)
        if refusal:
            self._refuse(adapter, content, refusal)
            return
        while not visit.done.wait(_LOOK):
            if (host is None or host.has_ended or adapter.is_leaving) and asked.is_given_up():
                return

    def _refuse(self, adapter: Adapter, content: bytes | None, reason: str) -> None:
        if content is not None:
            adapter.refuse(content, reason)
        else:
            adapter.session.suspended = None

    def _visit(self, visit: Visit) -> str:
        """Have something done; return why that cannot be, empty where it can."""
        if self._host is None:
            return "there is no run yet"
        try:
            self._host.visit(visit)
        except UsageError as error:
            return str(error)
        return ""

    def _told(self, *, joined: bool) -> None:
        if self._host is not None:
            self._host.tell_editor(joined=joined)

    def answered(self, adapter: Adapter, content: bytes | None, debugger: Debugger, *, moves: bool) -> Visited:
        """Answer a message; in the thread of the run."""
        session, was_shared = adapter.session, adapter.session.is_shared
        self._debugger = debugger
        super().carry_out(adapter, content)
        if not session.is_shared:
            return Visited()
        if not was_shared:
            session.run.breakpoints.claim(self._brought)
            self._brought = frozenset()
        failure = session.run.failure if moves else ""
        return Visited(session.note() or bool(failure), failure)


class _TurnAwaited:
    """A message that waits for its turn, which never comes where it is given up before."""

    def __init__(self, port: RunPort, adapter: Adapter, content: bytes | None, *, moves: bool) -> None:
        self._port, self._adapter, self._content, self._moves = port, adapter, content, moves
        self._turn = threading.Lock()
        """The first taker wins: the thread of the run, or the editor's thread, which gives up."""

    def answer(self, debugger: Debugger) -> Visited:
        """Answer it."""
        if not self._turn.acquire(blocking=False):
            return Visited()
        return self._port.answered(self._adapter, self._content, debugger, moves=self._moves)

    def is_given_up(self) -> bool:
        """Give it up; False if it is being answered."""
        return self._turn.acquire(blocking=False)


def _leaving(adapter: Adapter) -> Visit:
    """Return what is to be done with the run when an editor has left."""

    def leave(_debugger: Debugger) -> Visited:
        adapter.session.run.leave()
        return Visited(is_other=True)

    return Visit(leave, "", threading.Event())
