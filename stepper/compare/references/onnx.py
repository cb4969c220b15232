"""ONNX's own view as the reference: the model's outputs, and every value of the same name, in its loops too.

Of a loop inside of another, or of a branch, the evaluators tell nothing: it is compared by what comes out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from stepper.compare.references.onnx_worker import OnnxPeer, OpenedLoop, tensors_by_name
from stepper.compare.references.openvino import ended_after
from stepper.compare.references.protocol import LoopOutcome, ReferenceRun, SyncKind, SyncPoint
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.ir.model import Graph, Layer, Model

Places = Mapping[tuple[int, int], str]
"""The names in ONNX of a graph's tensors, by layer and output."""


class OnnxFrame(Struct, frozen=True):
    """Values of the model's own graph, or of one iteration of a loop in it."""

    values: Mapping[str, Array]
    places: Places
    loop: OpenedLoop | None = None
    iteration: int = 0
    frame: Frame | None = None
    outcome: LoopOutcome | None = None
    branch: None = None

    def value(self, layer: Layer, output: int) -> Array | None:
        """Return the value by the tensor's name in ONNX; a Parameter of the model is shared."""
        name = self.places.get((layer.id, output), "")
        if self.loop is not None:
            return self._shaped(self.loop.value(self.values, name, self.iteration), layer, output)
        return None if layer.type == "Parameter" else self.values.get(name)

    def _shaped(self, found: Array | None, layer: Layer, output: int) -> Array | None:
        """Return it in our shape where only dimensions of 1 differ: a slice keeps its axis here, not in ONNX."""
        slot = self.frame.program.slots.get((layer.id, output), -1) if self.frame is not None else -1
        ours = self.frame.values[slot] if self.frame is not None and slot >= 0 else None
        if found is None or ours is None or _without_ones(found.shape) != _without_ones(ours.shape):
            return found
        return found.reshape(ours.shape)

    def earlier(self, layer: Layer, output: int) -> Array | None:
        """Return the value of the iteration before."""
        if self.loop is None or self.iteration == 0:
            return None
        return self.loop.value(self.values, self.places.get((layer.id, output), ""), self.iteration - 1)


class OnnxReference(ReferenceRun):
    """A run of the ONNX file from which the model came; made at once. `inputs` are those of our machine."""

    def __init__(self, peer: OnnxPeer, model: Model, inputs: Sequence[Array]) -> None:
        self.title = f"{peer.path.name} in {peer.evaluator}"
        self._values = peer.run(model, inputs)
        self._outputs = {
            index: self._values[name] for index, name in enumerate(peer.output_names) if name in self._values
        }
        self._main = OnnxFrame(self._values, _places(model.graph))
        by_output = {name: loop for loop in peer.loops for name in loop.outputs}
        self._loops: dict[int, tuple[OpenedLoop, Places]] = {}
        for layer in model.graph.layers:
            names = (name for port in layer.outputs for name in port.names)
            found = next((by_output[name] for name in names if name in by_output), None)
            if layer.is_loop and found is not None:
                self._loops[layer.id] = found, _places(layer.bodies[0].graph)

    def at(self, point: SyncPoint) -> OnnxFrame | None:
        """Return its values, where the point is of the model's own graph or of a loop in it."""
        if not point.path:
            return self._main
        step = point.path[0]
        if len(point.path) > 1 or step.layer.id not in self._loops:
            return None
        loop, places = self._loops[step.layer.id]
        iteration = step.iteration or 0
        return OnnxFrame(self._values, places, loop, iteration, point.frame, self._outcome(point, loop))

    def _outcome(self, point: SyncPoint, loop: OpenedLoop) -> LoopOutcome | None:
        count = loop.iterations(self._values)
        if point.kind is not SyncKind.LEFT or count is None or point.frame.activation is None:
            return None
        return LoopOutcome(count, ended_after(point.frame.activation, count))

    def outputs(self) -> Mapping[int, Array]:
        """Return the outputs by position."""
        return self._outputs


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _places(graph: Graph) -> Places:
    return {place: name for name, (layer, output) in tensors_by_name(graph).items() for place in [(layer.id, output)]}
