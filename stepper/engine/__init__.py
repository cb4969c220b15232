"""Execution of a model: Model to CompiledModel to Machine."""

from stepper.engine.compiler import compile_model
from stepper.engine.events import Event, EventKind, Every
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.engine.run import LoopSummary, Outputs, run

__all__ = ["Event", "EventKind", "Every", "LoopSummary", "Machine", "Outputs", "Rules", "compile_model", "run"]
