"""A job in a process that works at it: the model, compiled once, and machines that run it within the limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepper.element_types import Array
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from stepper.ir.model import Model
from stepper.ir.reader import open_sequences, read
from stepper.sweep.job import SweepJob
from stepper.sweep.limits import limited, overdue


class Prepared:
    """A job with its model and that model compiled."""

    def __init__(self, job: SweepJob) -> None:
        model = read(job.model)
        self.job = job
        self.model: Model = open_sequences(model) if job.open_sequences else model
        self.compiled = compile_model(self.model, job.rules, job.engine.partner)

    def machine(self, inputs: Sequence[Array], states: dict[str, Any], *, keeps: bool = True) -> Machine:
        """Return a machine at its beginning, bounded by the limits of the job."""
        limit = self.job.max_iterations
        return Machine(self.compiled, inputs, max_iterations=limit, states=states, keep_values=keeps)

    def run(self, machine: Machine) -> None:
        """Run a machine to its end, or to a pause that its observers ask for. LimitReached where time is up."""
        with limited(machine, self.job.seconds) as watched:
            for _event in machine.run(Every.END):
                break
        if watched.is_overdue:
            raise overdue(self.job.seconds)
