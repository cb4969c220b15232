"""The hunt's side of its process: it builds random models, and tries them as a reduction does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stepper.diagnosis.hunt.profiles import BUILDING, BuildModel, BuiltModel, HuntAct, Profile
from stepper.diagnosis.reduce.reduce_service import TrialService
from stepper.element_types import Array
from stepper.processes.server import Announce, serve


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
    from stepper.diagnosis.hunt.random_loops import build
    from stepper.diagnosis.hunt.random_operations import FREE, PORT_MAPS
    from stepper.diagnosis.hunt.single_operations import build_operation, build_quantised

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
