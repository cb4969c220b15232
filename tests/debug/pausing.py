"""Pauses at a moment that is the same every time: after the machine has looked so many times whether to pause."""

from __future__ import annotations

from stepper.debug.debugger import Debugger
from stepper.engine.machine import Machine

_NEVER = 10**12


class PausingMachine(Machine):
    """A machine that is asked once to pause, after so many looks."""

    looks, patience, asked = 0, _NEVER, False

    @property
    def pause_requested(self) -> bool:
        self.looks += 1
        return self.asked or self.looks > self.patience

    @pause_requested.setter
    def pause_requested(self, wanted: bool) -> None:
        self.asked = wanted
        if self.looks > self.patience:  # it was heeded
            self.patience = _NEVER

    def twin(self) -> Machine:
        other = super().twin()
        assert isinstance(other, PausingMachine)
        other.patience = _NEVER
        return other


def pause_after(debugger: Debugger, looks: int) -> None:
    """Pause the next verb of a debugger once the machine has looked so many times whether it is to."""
    machine = debugger.machine
    machine.__class__ = PausingMachine
    assert isinstance(machine, PausingMachine)
    machine.looks, machine.patience = 0, looks


def is_pending(debugger: Debugger) -> bool:
    """True if the pause was not heeded yet; it is taken back."""
    machine = debugger.machine
    assert isinstance(machine, PausingMachine)
    pending, machine.patience = machine.patience != _NEVER, _NEVER
    return pending
