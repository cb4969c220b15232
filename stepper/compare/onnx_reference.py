"""ONNX's own view as the reference: the model's outputs, and every value outside of loops that has the same name.

ONNX's evaluators tell nothing of what happens inside of a body, so a loop is compared by what comes out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepper.compare.onnx_nodes import OnnxPeer, tensors_by_name
from stepper.compare.reference import LoopKey, Moment
from stepper.element_types import Array
from stepper.ir.model import Layer, Model


@dataclass(frozen=True, slots=True)
class OnnxCounterpart:
    """Values of the model's own graph."""

    values: Mapping[tuple[int, int], Array]
    outcome: None = None
    branch: None = None

    def value(self, layer: Layer, output: int) -> Array | None:
        """By the tensor's name in ONNX; a Parameter is shared."""
        return None if layer.type == "Parameter" else self.values.get((layer.id, output))

    def earlier(self, _layer: Layer, _output: int) -> Array | None:
        """Nothing runs again outside of loops."""
        return None


class OnnxReference:
    """A run of the ONNX file from which the model came; made at once. `inputs` are those of our machine."""

    is_exact = False
    shares_inputs = False
    knows_all_iterations = False

    def __init__(self, peer: OnnxPeer, model: Model, inputs: Sequence[Array]) -> None:
        self.title = f"{peer.path.name} in {peer.evaluator}"
        found = peer.run(model, inputs)
        self._outputs = {index: found[name] for index, name in enumerate(peer.output_names) if name in found}
        places = tensors_by_name(model)
        self._main = OnnxCounterpart(
            {(layer.id, output): found[name] for name, (layer, output) in places.items() if name in found}
        )

    def at(self, moment: Moment) -> OnnxCounterpart | None:
        """Its values, where the moment is of the model's own graph."""
        return None if moment.path else self._main

    def totals(self) -> Mapping[LoopKey, int]:
        """Not known."""
        return {}

    def outputs(self) -> Mapping[int, Array]:
        """By position."""
        return self._outputs
