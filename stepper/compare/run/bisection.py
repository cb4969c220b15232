"""The first iteration that another runtime computes otherwise, found by running a loop less often.

Nothing is changed in the body, so that the runtime fuses what it fuses in the whole model; both sides run the model up
to the loop with the smaller count, and that number of iterations is halved in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper.compare.references.protocol import RepeatableRun
from stepper.compare.run.metrics import measure
from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.errors import KernelError, StepperError
from stepper.ir.model import Layer
from stepper.plain_values import storable
from stepper.tensors.tolerances import Tolerance, Tolerances

_JUMP: Final = 100.0
"""How many times further apart one iteration more takes the outputs where it is the one to blame."""

_MOST_RUNS: Final = 24


class LoopBisection(Struct, frozen=True):
    """A loop's outputs agree where it runs `iteration` iterations, and differ where it runs one more.

    `before` and `after` are the largest distances of an element then, relative to the largest element of its output;
    `runs` is how often each side was run.
    """

    loop: Layer
    iteration: int
    before: float
    after: float
    runs: int

    @property
    def is_gradual(self) -> bool:
        """True if the distance grows from iteration to iteration, so that no single one is to blame."""
        return self.before > 0 and self.after < _JUMP * self.before


def bisect(
    compiled: CompiledModel,
    inputs: Sequence[Array],
    loop: Layer,
    iterations: int,
    reference: RepeatableRun,
    tolerances: Tolerances,
    states: Mapping[str, Any] | None = None,
) -> LoopBisection | None:
    """Return the first iteration of a loop of the main graph that the reference computes otherwise.

    The loop ran `iterations`; `states` are what variables begin with, on both sides.
    None where all agree, where a side cannot run the loop less often, or where the first differs already in nothing
    that a loop gives out.
    """
    with tempfile.TemporaryDirectory(prefix="stepper-") as folder:
        trial = _Trial(compiled, inputs, loop, reference, tolerances, Path(folder), states)
        try:
            low, high, before = 0, iterations, 0.0
            after = trial.distance(high)
            if after is None:
                return None
            while high - low > 1 and trial.runs < _MOST_RUNS:
                middle = (low + high) // 2
                found = trial.distance(middle)
                if found is None:
                    low, before = middle, trial.last
                else:
                    high, after = middle, found
        except (StepperError, KernelError):
            return None
    return LoopBisection(loop, high - 1, before, after, trial.runs) if high - low == 1 else None


class _Trial:
    def __init__(
        self,
        compiled: CompiledModel,
        inputs: Sequence[Array],
        loop: Layer,
        reference: RepeatableRun,
        tolerances: Tolerances,
        folder: Path,
        states: Mapping[str, Any] | None,
    ) -> None:
        self._compiled, self._inputs, self._loop, self._reference = compiled, inputs, loop, reference
        self._tolerances, self._folder, self._states = tolerances, folder, states
        self.runs, self.last = 0, 0.0

    def distance(self, count: int) -> float | None:
        """Return the outputs' distance after so many iterations; None within the tolerance (then `last` has it)."""
        from stepper.openvino import native_text

        self.runs += 1
        model = native_text.shortened(self._compiled.model, self._loop, count, self._folder)
        given = list(self._inputs)
        if len(model.graph.parameters) > len(given):
            given.append(np.zeros(count, np.uint8))
        theirs = self._reference.run_changed(native_text.whole(model), given)
        machine = Machine(
            compile_model(model, self._compiled.rules),
            bind_inputs(model, dict(enumerate(given))),
            states=self._states,
            keep_values=False,
        )
        while not machine.finished:
            machine.advance(Every.END)
        differs, self.last = False, 0.0
        for ours, other in zip(machine.outputs or (), theirs, strict=True):
            is_off, apart = _apart(np.asarray(ours), other, self._tolerances.of(None, other.dtype))
            differs, self.last = differs or is_off, max(self.last, apart)
        return self.last if differs else None


def _apart(ours: Array, theirs: Array, tolerance: Tolerance) -> tuple[bool, float]:
    """Return True if two outputs differ, and how far they are apart relative to the largest element."""
    with np.errstate(all="ignore"):
        wide = np.abs(storable(theirs).astype(np.float64))
        largest = float(np.max(wide, initial=0.0, where=np.isfinite(wide)))
    found = measure(ours, theirs, tolerance, np.asarray(largest * tolerance.relative / 10))
    if found is None:
        return False, 0.0
    return found.differs, found.absolute / largest if largest else found.absolute
