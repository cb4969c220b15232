"""ONNX's own evaluation of a model that came from ONNX: by its reference evaluator or onnxruntime, in a worker process.

    peer = OnnxPeer("model.onnx", "onnx")             # or "onnxruntime"
    values = peer.run(model, inputs)                  # by ONNX's names: every tensor of the main graph
    for name, (layer, output) in tensors_by_name(model.graph).items():
        ...                                           # the same tensor in our run: values[name], if it is there

OpenVINO keeps ONNX's names of tensors, so that a tensor is found by its name, in the body of a loop, too.
`onnx_service` evaluates.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from stepper.element_types import Array
from stepper.engine.inputs import input_names
from stepper.errors import ModelError, UsageError
from stepper.ir.model import Graph, Layer, Model
from stepper.processes.programs import WorkerProgram
from stepper.processes.worker import Limits, Worker
from stepper.wording import excerpt

REFERENCE: Final = "onnx"
RUNTIME: Final = "onnxruntime"
EVALUATORS: Final = (REFERENCE, RUNTIME)
_SERVICE: Final = "stepper.compare.references.onnx_service"
_PROGRAMS: Final = {
    REFERENCE: WorkerProgram("ONNX's reference evaluator", _SERVICE),
    RUNTIME: WorkerProgram("onnxruntime", _SERVICE),
}
_LARGEST_BODY: Final = 2**20
"""Declared bytes of an iteration; the tensors of a larger body are not kept."""
_OPEN_SIZE: Final = 16
"""Counts for a dimension that is open."""


class Evaluate(Struct, frozen=True, tag=True):
    """Run an ONNX file with an evaluator on the arrays of the message.

    `parameters` has the names of each array. `opened` are outputs of the loops that give out what their bodies compute.
    """

    path: str
    evaluator: str
    parameters: tuple[tuple[str, ...], ...]
    opened: frozenset[str]


class OpenedLoop(Struct, frozen=True):
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


class Evaluated(Struct, frozen=True):
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
                install = f"pip install 'stepper[{evaluator}]'"
                raise UsageError(f"comparing with {evaluator} needs the package {package}: {install}")
        self.output_names: tuple[str, ...] = ()
        """The names of the model's outputs, in ONNX's order; known after a run."""
        self.loops: tuple[OpenedLoop, ...] = ()
        """The loops of the main graph of which the last run gave what happened inside."""

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


def tensors_by_name(graph: Graph) -> dict[str, tuple[Layer, int]]:
    """Return the tensors of a graph by each of their names: the layer and the index of its output."""
    return {
        name: (layer, index)
        for layer in graph.layers
        for index, port in enumerate(layer.outputs)
        for name in port.names
    }
