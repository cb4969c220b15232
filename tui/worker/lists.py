"""What the lists show beyond the state of the moment: variables, marks, expected NaN, the log. Taken in the worker."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.list_views import MarkView, Variables, VariableView, mark_views
from tui.worker.event_log import Entry, EventLog


class Lists(Struct, frozen=True, eq=False):
    """Part of State. `expected` are the patterns of operations in which NaN and Inf stop nothing."""

    variables: tuple[VariableView, ...] = ()
    marks: tuple[MarkView, ...] = ()
    expected: tuple[str, ...] = ()
    log: tuple[Entry, ...] = ()


NO_LISTS: Final = Lists()


class ListsTaker:
    """Takes them from a debugger."""

    def __init__(self, debugger: Debugger, log: EventLog) -> None:
        self._debugger, self._log = debugger, log
        self._variables = Variables(debugger.machine.compiled)

    def take(self) -> Lists:
        """As they are now."""
        debugger = self._debugger
        variables = self._variables.views(debugger.machine.states)
        return Lists(variables, mark_views(debugger), debugger.breakpoints.exceptions, self._log.entries())
