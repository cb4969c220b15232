"""Speak the Debug Adapter Protocol with VS Code, Neovim, Emacs and other clients.

    bytes --framing--> a message --messages--> a request --adapter--> Debugger, Interpreter, check

The protocol shows a run of a model as a program. The source is the listing of the model, a stack frame is a level of
loops, its variables are the values there.

This file defines how an application and an editor that joins its run know each other. An application imports no more
than this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stepper.records import Record

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger


class Visited(Record):
    """Result of a visit: whether there is anything else to be shown now, and with which error it ended."""

    is_other: bool = False
    failure: str = ""


class Visit(Record, eq=False):
    """Something that an editor wants of the run; what moves it has a title.

    `work` is called in the thread of the run, and `done` is set when it has come back.
    """

    work: Callable[[Debugger], Visited]
    title: str
    done: threading.Event


class RunHost(Protocol):
    """The application that has the run, as seen from the thread of an editor."""

    @property
    def is_moving(self) -> bool:
        """True while it moves the run itself."""
        ...

    @property
    def has_ended(self) -> bool:
        """True if its run is over, and what waits for it is never done."""
        ...

    def visit(self, visit: Visit) -> None:
        """Have this done with the run, when it is its turn. UsageError where there is no run yet."""

    def tell_editor(self, *, joined: bool) -> None:
        """An editor has come, or has left."""
