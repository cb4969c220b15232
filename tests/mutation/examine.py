"""One mutant through the whole program: what came of it, and what must not come of it."""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stepper
from stepper.element_types import STRING_DTYPE, Array
from stepper.engine.frames import EventKind
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog, collect, outline
from stepper.errors import StepperError, UsageError
from stepper.ir.model import Layer, Model, parameter_shape, parameter_type

MAX_ITERATIONS = 1000
LARGEST_INPUT = 2**22
LONGEST_MESSAGE = 1600
LONGEST_RUN = 1.0  # seconds, after which a machine must pause


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind` is ran, refused, or a fault: traceback, message, warning, hang, memory, death; `text` says more."""

    kind: str
    text: str = ""

    @property
    def is_fault(self) -> bool:
        return self.kind not in ("ran", "refused", "too large", "unclear")

    def unless_fault(self, follows: Callable[[], Outcome]) -> Outcome:
        """Return the outcome of what follows if that is a fault and this one is none."""
        if self.is_fault:
            return self
        other = follows()
        return other if other.is_fault else self


def examine(path: Path) -> Outcome:
    """Read, look through, compile and run under both rule books; StepperErrors are right, all else is a fault."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = _through(path)
        except StepperError as error:
            outcome = _refused(error, path)
        except Exception:
            outcome = Outcome("traceback", traceback.format_exc())
    if caught and not outcome.is_fault:
        return Outcome("warning", "\n".join(f"{w.filename}:{w.lineno}: {w.message}" for w in caught))
    return outcome


def _through(path: Path) -> Outcome:
    model = stepper.read_model(path)
    for layers, graph in model.graphs():
        for layer in (*layers, *graph.layers):
            assert "\n" not in str(layer)
    problem: Outcome | None = None
    outline(model)
    inputs = _inputs(model)
    if inputs is None:
        return Outcome("too large")
    try:
        _run(model, inputs)
    except StepperError as error:
        problem = _refused(error, path)
    _step(model, inputs)
    return problem or Outcome("ran")


def _run(model: Model, inputs: list[Array]) -> None:
    """What stepper.run does, but for loops in loops that run for hours, as their numbers say."""
    compiled = stepper.compile_model(model)
    machine, log = _machine(compiled, inputs, keep_values=False), LoopLog()
    machine.observers = (log,)
    if _walk(machine, stepper.Every.END):
        collect(machine, log)


def _step(model: Model, inputs: list[Array]) -> None:
    """The same under the other rules, iteration by iteration, going back once."""
    machine = _machine(stepper.compile_model(model, Rules.OPENVINO), inputs, keep_values=True)
    snapshot = machine.snapshot()
    machine.advance(stepper.Every.ITERATION)
    machine.restore(snapshot)
    _walk(machine, stepper.Every.ITERATION)


def _machine(compiled: CompiledModel, inputs: list[Array], *, keep_values: bool) -> Machine:
    bound = stepper.bind_inputs(compiled.model, dict(enumerate(inputs)))
    return Machine(compiled, bound, max_iterations=MAX_ITERATIONS, keep_values=keep_values)


def _walk(machine: Machine, every: stepper.Every) -> bool:
    """Run to the end, or for a while; whether it came to the end."""
    timer = threading.Timer(LONGEST_RUN, machine.request_pause)
    timer.start()
    try:
        return all(event.kind is not EventKind.PAUSED for event in machine.run(every))
    finally:
        timer.cancel()


def _inputs(model: Model) -> list[Array] | None:
    """Zeros for every Parameter of the model; None where they would be too large for a test."""
    shapes = [_shape(parameter) for parameter in model.graph.parameters]
    if sum(np.prod(shape, dtype=object) for shape in shapes) > LARGEST_INPUT:
        return None
    return [_zeros(parameter, shape) for parameter, shape in zip(model.graph.parameters, shapes, strict=True)]


def _shape(parameter: Layer) -> tuple[int, ...]:
    dimensions = parameter_shape(parameter).dimensions
    if dimensions is None:
        return (2,)
    return tuple(max(least, 2 if most is None else min(2, most)) for least, most in dimensions)


def _zeros(parameter: Layer, shape: tuple[int, ...]) -> Array:
    declared = parameter_type(parameter)
    dtype = np.dtype(np.float32) if declared is None else declared.dtype
    if dtype == STRING_DTYPE:
        return np.full(shape, "", STRING_DTYPE)
    if len(shape) > 64:
        return np.zeros((), dtype)
    return np.zeros(shape, dtype)


def _refused(error: StepperError, path: Path) -> Outcome:
    text = f"{type(error).__name__}: {error}"
    one_line = "\n" not in text or isinstance(error, UsageError)
    if not one_line or len(text) > LONGEST_MESSAGE or not text.replace("\n", "").isprintable():
        return Outcome("message", f"{len(text)} letters: {text[:3000]!r}")
    cause = error.__cause__
    if cause is not None and isinstance(cause, (AttributeError, LookupError, AssertionError, RuntimeError)):
        where = traceback.extract_tb(cause.__traceback__)[-1]
        return Outcome("unclear", f"{type(cause).__name__} at {where.filename}:{where.lineno}: {text}")
    return Outcome("refused", text)
