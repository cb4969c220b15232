"""Acts of the process in which candidates are tried, and the worker that runs it."""

from __future__ import annotations

import sys
from typing import Final

from msgspec import Struct

from stepper.diagnosis.reduce.conditions import FaultCondition, FoundFault
from stepper.processes.starting import WorkerProgram
from stepper.processes.worker import Worker
from stepper.tensors.tolerances import Tolerances

PROGRAM: Final = WorkerProgram("the trial", "stepper.diagnosis.reduce.service")
STEPPING: Final = "stepping through"
"""The stage in which our own engine runs."""


class RunSettings(Struct, frozen=True):
    """How a candidate is run: rule book, the most iterations and moves, device and precision of OpenVINO.

    `engine` and `choices` (pattern and engine) say who computes our run, `extensions` are libraries with operations for
    OpenVINO. `relative` and `absolute` are tolerances of floats, instead of those of the element type.
    """

    rules: str = "spec"
    max_iterations: int | None = None
    most_moves: int = sys.maxsize
    device: str = "CPU"
    precision: str = "f32"
    engine: str = "numpy"
    choices: tuple[tuple[str, str], ...] = ()
    extensions: tuple[str, ...] = ()
    relative: float | None = None
    absolute: float | None = None

    def tolerances(self, *, exact: bool) -> Tolerances:
        """Return the tolerances; `exact`: both sides compute with the same kernels."""
        return Tolerances(exact, self.relative, self.absolute)


class TryModel(Struct, frozen=True, tag=True):
    """Run the model of a file on the arrays of the message; `twin` is the reference's file, reduced alike (or empty).

    `wants_outputs`: the arrays of the answer are the outputs that were expected, and then those that were given.
    """

    path: str
    settings: RunSettings
    condition: FaultCondition
    twin: str = ""
    wants_outputs: bool = False


class ObserveValues(Struct, frozen=True, tag=True):
    """Run the model and send the first value of each operation, and the last where it is another one."""

    path: str
    settings: RunSettings


class NameKernels(Struct, frozen=True, tag=True):
    """Compile the model of a file in OpenVINO, and name the kernels that it chose."""

    path: str
    settings: RunSettings


class ChosenKernel(Struct, frozen=True):
    """A node of the compiled model: what it is there, its kernel, and the layers that it stands for."""

    type: str
    kernel: str
    layers: str


class KernelFacts(Struct, frozen=True):
    """The kernels of a compiled model, in the order in which they run."""

    kernels: tuple[ChosenKernel, ...]


TrialAct = TryModel | ObserveValues | NameKernels


class TrialFacts(Struct, frozen=True):
    """Result of a trial: the fault, None for none; how many of the arrays are expected outputs; moves of our run."""

    fault: FoundFault | None
    expected: int = 0
    moves: int = 0


class ObservedKey(Struct, frozen=True, array_like=True):
    """An array of the answer: an output of a layer, its value at the first or at the last time."""

    scope: tuple[tuple[int, str], ...]
    layer: int
    output: int
    is_last: bool


class ObservedFacts(Struct, frozen=True):
    """The keys of the arrays, in their order."""

    keys: tuple[ObservedKey, ...]


WITH_OPENVINO: Final = "STEPPER_TRIALS_WITH_OPENVINO"
"""A variable of the process: it loads OpenVINO at once."""


def trial_worker(memory: int, *, with_openvino: bool) -> Worker:
    """Return a process for trials that may use so many bytes."""
    return Worker(PROGRAM, {WITH_OPENVINO: "1"} if with_openvino else {}, memory)
