"""The hunt's side of its process: it builds random models, and tries them as a reduction does.

Profiles of a hunt, and the acts of its process: building the model of a seed, and trying it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from stepper.diagnosis.reduce.reduce_service import TrialService
from stepper.diagnosis.reduce.trials import ObserveValues, TryModel
from stepper.element_types import Array
from stepper.processes.programs import WorkerProgram
from stepper.processes.server import Announce, serve
from stepper.records import Record

PROGRAM = WorkerProgram("the hunt", "stepper.diagnosis.hunt.hunt_service")
BUILDING = "building"
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


class HuntService(TrialService):
    """Builds and runs random models."""

    acts = HuntAct

    def __init__(self, announce: Announce) -> None:
        super().__init__(announce)
        self._begin = announce

    def perform(self, act: Any, arrays: list[Array]) -> tuple[Any, Sequence[Array]]:
        """Return a random model, or what a trial finds."""
        if not isinstance(act, BuildModel):
            return super().perform(act, arrays)
        import openvino

        self._begin(BUILDING)
        try:
            built = _built(act.profile, act.seed)
        except (RuntimeError, ValueError, TypeError, OverflowError):  # the runtime takes no such model
            return BuiltModel(is_built=False), ()
        path = Path(act.path)
        openvino.serialize(built.model, str(path), str(path.with_suffix(".bin")))
        return BuiltModel(is_built=True), built.inputs


def _built(profile: Profile, seed: int) -> Any:
    from stepper.diagnosis.hunt.random_loops import build, build_operation, build_quantised
    from stepper.diagnosis.hunt.random_operations import FREE, PORT_MAPS

    match profile:
        case Profile.LOOPS:
            return build(seed, FREE)
        case Profile.PORT_MAPS:
            return build(seed, PORT_MAPS)
        case Profile.OPERATIONS:
            return build_operation(seed)
        case Profile.QUANTISED:
            return build_quantised(seed)


def main() -> None:
    """Serve until the other side is gone."""
    serve(HuntService)
