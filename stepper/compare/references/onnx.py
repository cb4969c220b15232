"""Use ONNX's own evaluators as the reference.

They give the model's outputs, and every value of the same name, in its loops too. The evaluators give no values of a
loop inside another loop, or of a branch. Only the outputs of that loop or branch are compared.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from stepper.compare.references.openvino import ended_after
from stepper.compare.references.protocol import LoopOutcome, ReferenceRun, SyncKind, SyncPoint
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.inputs import input_names
from stepper.errors import ModelError, UsageError
from stepper.ir.model import Graph, Layer, Model
from stepper.processes.programs import WorkerProgram
from stepper.processes.worker import Limits, Worker
from stepper.records import Record
from stepper.wording import excerpt, install_line

# ---------------------------------------------------------------------------------------------------------------------
# ONNX's own evaluation of a model that came from ONNX: by its reference evaluator or onnxruntime, in a worker process
#
#     peer = OnnxPeer("model.onnx", "onnx")             # or "onnxruntime"
#     values = peer.run(model, inputs)                  # by ONNX's names: every tensor of the main graph
#     tensor_names(model.graph)[layer.id, output]       # the name there of a tensor in our run
#
# OpenVINO keeps ONNX's names of tensors, so that a tensor is found by its name, in the body of a loop, too.
# `onnx_service` evaluates.


REFERENCE = "onnx"
RUNTIME = "onnxruntime"
EVALUATORS = (REFERENCE, RUNTIME)
_SERVICE = "stepper.compare.references.onnx_service"
_PROGRAMS = {
    REFERENCE: WorkerProgram("ONNX's reference evaluator", _SERVICE),
    RUNTIME: WorkerProgram("onnxruntime", _SERVICE),
}
_LARGEST_BODY = 2**20
"""Declared bytes of an iteration; the tensors of a larger body are not kept."""
_OPEN_SIZE = 16
"""Counts for a dimension that is open."""


class Evaluate(Struct, frozen=True, tag=True):
    """Run an ONNX file with an evaluator on the arrays of the message.

    `parameters` has the names of each array. `opened` are outputs of the loops that give out what their bodies compute.
    """

    path: str
    evaluator: str
    parameters: tuple[tuple[str, ...], ...]
    opened: frozenset[str]


class OpenedLoop(Record):
    """A loop: `outputs` are its tensors in the main graph, `inside` the names of stacked ones by those in the body."""

    outputs: tuple[str, ...]
    inside: Mapping[str, str]

    def iterations(self, values: Mapping[str, Array]) -> int | None:
        """Return how many it ran, by what a run gave; None where it gave nothing of this loop."""
        return next((len(values[name]) for name in self.inside.values() if name in values), None)

    def value(self, values: Mapping[str, Array], tensor: str, iteration: int) -> Array | None:
        """Return a tensor of the body in an iteration; None where it is not known."""
        stacked = values.get(self.inside.get(tensor, ""))
        return None if stacked is None or iteration >= len(stacked) else stacked[iteration]


class Evaluated(Record):
    """Results of an evaluation beside its arrays: their names, the model's outputs, and the loops that were opened."""

    names: tuple[str, ...]
    outputs: tuple[str, ...]
    loops: tuple[OpenedLoop, ...]


class OnnxPeer:
    """An ONNX file, run by ONNX's reference evaluator or by onnxruntime on the CPU. UsageError where it cannot be."""

    def __init__(self, path: str | Path, evaluator: str = REFERENCE, limits: Limits | None = None) -> None:
        if evaluator not in EVALUATORS:
            raise UsageError(f"there is no evaluator '{evaluator}'; choose {' or '.join(EVALUATORS)}")
        self.path, self.evaluator, self._limits = Path(path), evaluator, limits
        if self.path.suffix.lower() != ".onnx":
            raise UsageError(
                f"--with {evaluator} compares a model that came from ONNX; {self.path.name} is not an .onnx file"
            )
        for package in dict.fromkeys((REFERENCE, evaluator)):
            if importlib.util.find_spec(package) is None:
                install = install_line(str(evaluator))
                raise UsageError(f"comparing with {evaluator} needs the package {package}: {install}")
        self.output_names: tuple[str, ...] = ()
        """The names of the model's outputs, in ONNX's order; known after a run."""
        self.loops: tuple[OpenedLoop, ...] = ()
        """Loops of the main graph whose inner values the last run gave."""

    def run(self, model: Model, inputs: Sequence[Array]) -> dict[str, Array]:
        """Return every tensor of the main graph by its name in ONNX, for inputs in the order of the model's Parameters.

        Those of loops are among them under the names that `loops` has. Sequences, optionals and sparse tensors are left
        out. Raises ModelError if the file is not an ONNX model or has other inputs, ExecutionError where the evaluator
        fails, and WorkerEnded or WorkerLimit where it crashes or reaches a limit.
        """
        names = tuple(tuple(input_names(parameter)) for parameter in model.graph.parameters)
        act = Evaluate(str(self.path.resolve()), self.evaluator, names, _small_loops(model))
        subject = f"the model {excerpt(self.path.name)}"
        try:
            found, arrays = worker_of(self.evaluator).ask_for(
                Evaluated, act, inputs, subject=subject, limits=self._limits
            )
        except ModelError as error:
            raise ModelError(f"{self.path}: {error}") from None
        self.output_names, self.loops = found.outputs, found.loops
        return dict(zip(found.names, arrays, strict=True))


@functools.cache
def worker_of(evaluator: str) -> Worker:
    """Return the one worker of an evaluator."""
    return Worker(_PROGRAMS[evaluator])


def _small_loops(model: Model) -> frozenset[str]:
    """Return the outputs of the loops whose bodies are small enough to be kept of each iteration."""
    return frozenset(
        name
        for layer in model.graph.layers
        if layer.is_loop and _declared_bytes(layer.bodies[0].graph) <= _LARGEST_BODY
        for port in layer.outputs
        for name in port.names
    )


def _declared_bytes(body: Graph) -> int:
    """Return about how much one iteration computes."""
    shapes = (port.dims for layer in body.layers for port in layer.outputs)
    return 4 * sum(math.prod(_OPEN_SIZE if dim < 0 else dim for dim in dims) for dims in shapes)


# ---------------------------------------------------------------------------------------------------------------------


Places = Mapping[tuple[int, int], str]
"""The names in ONNX of a graph's tensors, by layer and output."""


class OnnxFrame(Record):
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
        self._main = OnnxFrame(self._values, tensor_names(model.graph))
        by_output = {name: loop for loop in peer.loops for name in loop.outputs}
        self._loops: dict[int, tuple[OpenedLoop, Places]] = {}
        for layer in model.graph.layers:
            names = (name for port in layer.outputs for name in port.names)
            found = next((by_output[name] for name in names if name in by_output), None)
            if layer.is_loop and found is not None:
                self._loops[layer.id] = found, tensor_names(layer.bodies[0].graph)

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


def tensor_names(graph: Graph) -> Places:
    """Return the names in ONNX of a graph's tensors; of several the last."""
    return {
        (layer.id, output): name
        for layer in graph.layers
        for output, port in enumerate(layer.outputs)
        for name in port.names
    }
