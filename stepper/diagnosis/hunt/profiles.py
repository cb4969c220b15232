"""Profiles of a hunt, and the acts of its process: building the model of a seed, and trying it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from stepper.diagnosis.reduce.trials import ObserveValues, TryModel
from stepper.processes.programs import WorkerProgram
from stepper.processes.worker import Worker
from stepper.records import Record

PROGRAM: Final = WorkerProgram("the hunt", "stepper.diagnosis.hunt.hunt_service")
BUILDING: Final = "building"
"""The stage in which a random model is made."""


class Profile(StrEnum):
    """Part of the ground that random models cover.

    LOOPS: bodies, conditions, trip counts, nesting, If. PORT_MAPS: axis, stride, part_size, start and end, order, no
    iteration, many inputs and outputs. OPERATIONS: an operation in a body, on every element type; convolutions,
    pooling, recurrent layers. QUANTISED: FakeQuantize and products with weights of 8 and 4 bits in a body.
    """

    LOOPS = "loops"
    PORT_MAPS = "port-maps"
    OPERATIONS = "operations"
    QUANTISED = "quantised"


class BuildModel(Struct, frozen=True, tag=True):
    """Build the model of a seed, and write it to a file; the arrays of the answer are its inputs."""

    profile: Profile
    seed: int
    path: str


HuntAct = TryModel | ObserveValues | BuildModel


class BuiltModel(Record):
    """A random model, or that none could be built."""

    is_built: bool


def hunt_worker(memory: int) -> Worker:
    """Return a process for a hunt that may use so many bytes."""
    return Worker(PROGRAM, memory=memory)
