"""Execution of a model: Model to CompiledModel to Machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from typing import Any as _Any

    from stepper.engine.compiler import compile_model as compile_model
    from stepper.engine.frames import Event as Event
    from stepper.engine.frames import EventKind as EventKind
    from stepper.engine.frames import Every as Every
    from stepper.engine.machine import Machine as Machine
    from stepper.engine.rules import Rules as Rules

_HOMES = {
    "compile_model": "compiler",
    "Event": "frames",
    "EventKind": "frames",
    "Every": "frames",
    "Machine": "machine",
    "Rules": "rules",
}
"""Each public name and its module, which is imported with the name: who reads a model need not wait for the rest."""

__all__ = ["Event", "EventKind", "Every", "Machine", "Rules", "compile_model"]


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stepper.engine' has no attribute '{name}'")
    return getattr(import_module(f"stepper.engine.{_HOMES[name]}"), name)
