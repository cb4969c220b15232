"""The sample streams, and what OpenVINO computed in their calls one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stepper
from stepper.element_types import Array
from stepper.ir.model import Model

FOLDER = Path(__file__).parents[2] / "sample_models" / "calls"


class SampleCalls(NamedTuple):
    """A stream: its inputs beside those of calls, what is carried, the output that is told of all calls."""

    name: str
    same: dict[str, Any]
    carry: dict[str, str]
    output: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.xml"

    @property
    def calls(self) -> dict[str, Array]:
        with np.load(FOLDER / f"{self.name}_calls.npz") as arrays:
            return dict(arrays)

    @property
    def expected(self) -> Array:
        """What OpenVINO computed, a leading axis of calls."""
        with np.load(FOLDER / f"{self.name}_expected.npz") as arrays:
            return arrays[self.output]

    def over_calls(self) -> tuple[Model, dict[Any, Any]]:
        """Return the loop over the calls, and all its inputs."""
        model, inputs = stepper.over_calls(stepper.read_model(self.path), self.calls, self.carry)
        return model, {**inputs, **self.same}


_STATE = {"state": np.zeros((2, 1, 8), np.float32)}
_CACHE = {name: np.zeros((1, 0, 6), np.float32) for name in ("past_key", "past_value")}
VAD = SampleCalls("vad", {"sr": 16000, **_STATE}, {"stateN": "state"}, "output")
VAD_STATEFUL = SampleCalls("vad_stateful", {"sr": 16000}, {}, "output")
KV_CACHE = SampleCalls("kv_cache", _CACHE, {"present_key": "past_key", "present_value": "past_value"}, "mixed")
GRU = SampleCalls("gru", {}, {}, "states")
GRU_STATEFUL = SampleCalls("gru_stateful", {}, {}, "states")
ALL = (VAD, VAD_STATEFUL, KV_CACHE, GRU, GRU_STATEFUL)
