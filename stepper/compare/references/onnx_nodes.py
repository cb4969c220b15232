"""ONNX's own view of a model that came from ONNX: its reference evaluator or onnxruntime, node by node.

    peer = OnnxPeer("model.onnx", "onnx")             # or "onnxruntime"
    values = peer.run(model, inputs)                  # by ONNX's names: every tensor of the main graph
    for name, (layer, output) in tensors_by_name(model.graph).items():
        ...                                           # the same tensor in our run: values[name], if it is there

OpenVINO keeps ONNX's names of tensors, so that a tensor is found by its name, in the body of a loop, too.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from stepper.compare.references.onnx_bodies import OpenedLoop, open_loops
from stepper.element_types import STRING_DTYPE, Array
from stepper.engine.feeds import input_names
from stepper.errors import ExecutionError, ModelError, UsageError
from stepper.ir.excerpts import excerpt
from stepper.ir.model import Graph, Layer, Model

if TYPE_CHECKING:
    import onnx

REFERENCE: Final = "onnx"
RUNTIME: Final = "onnxruntime"
EVALUATORS: Final = (REFERENCE, RUNTIME)
_LONGEST: Final = 300
_NEWEST_VERSION: Final = re.compile(r"max supported IR version: ([0-9]+)")


class OnnxPeer:
    """An ONNX file, run by ONNX's reference evaluator or by onnxruntime on the CPU.

    UsageError where what runs it is not installed, ModelError where the file is no ONNX model.
    """

    def __init__(self, path: str | Path, evaluator: str = REFERENCE) -> None:
        if evaluator not in EVALUATORS:
            raise UsageError(f"there is no evaluator '{evaluator}'; choose {' or '.join(EVALUATORS)}")
        self.path, self.evaluator = Path(path), evaluator
        if self.path.suffix.lower() != ".onnx":
            raise UsageError(f"--with {evaluator} compares a model that came from ONNX; {self.path.name} is no .onnx")
        for package in dict.fromkeys((REFERENCE, evaluator)):
            if importlib.util.find_spec(package) is None:
                install = f"pip install 'stepper[{evaluator}]'"
                raise UsageError(f"comparing with {evaluator} needs the package {package}: {install}")
        self.proto = self._loaded()
        self.loops: list[OpenedLoop] = []
        """Those of the main graph of which the last run told what happened inside."""

    def _loaded(self) -> onnx.ModelProto:
        import onnx

        try:
            return onnx.load(str(self.path))
        except Exception as error:  # protobuf's, onnx's and the system's: each says what is wrong in its own way
            raise ModelError(f"{self.path}: is no ONNX model: {excerpt(str(error), _LONGEST)}") from None

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the model's outputs, in ONNX's order."""
        return tuple(output.name for output in self.proto.graph.output)

    def run(self, model: Model, inputs: Sequence[Array]) -> dict[str, Array]:
        """Every tensor of the main graph by its name in ONNX, for inputs in the order of the model's Parameters.

        Those of loops are among them under the names that `loops` has. Sequences, optionals and sparse tensors are left
        out. ExecutionError where the evaluator fails.
        """
        feeds = self._feeds(model, inputs)
        try:
            found = self._reference(model, feeds) if self.evaluator == REFERENCE else self._runtime(model, feeds)
        except Exception as error:  # whatever a kernel written in Python raises, and onnxruntime's own
            said = excerpt(str(error) or type(error).__name__, _LONGEST)
            raise ExecutionError(f"{self.evaluator} fails at the model: {said}") from None
        return {name: _of_onnx(value) for name, value in found.items() if isinstance(value, (np.ndarray, np.generic))}

    def _feeds(self, model: Model, inputs: Sequence[Array]) -> dict[str, Any]:
        """The inputs by ONNX's names: those of our Parameters where they agree, else by position."""
        constants = {constant.name for constant in self.proto.graph.initializer}
        wanted = [given.name for given in self.proto.graph.input if given.name not in constants]
        parameters = model.graph.parameters
        by_name = {
            name: _to_onnx(array)
            for parameter, array in zip(parameters, inputs, strict=True)
            for name in input_names(parameter)
        }
        if all(name in by_name for name in wanted):
            return {name: by_name[name] for name in wanted}
        if len(wanted) != len(parameters):
            raise ModelError(f"{self.path}: has the inputs {', '.join(wanted)}, which are not those of the model")
        return {name: _to_onnx(array) for name, array in zip(wanted, inputs, strict=True)}

    def _tensor_names(self) -> list[str]:
        made = [name for node in self.proto.graph.node for name in node.output if name]
        return list(dict.fromkeys([*made, *self.output_names]))

    def _reference(self, model: Model, feeds: Mapping[str, Any]) -> dict[str, Any]:
        from onnx.reference import ReferenceEvaluator

        with np.errstate(all="ignore"):
            try:
                proto, names = self._telling_all(model)
                found = ReferenceEvaluator(proto).run(names, dict(feeds))
            except Exception:  # a tensor that cannot be stacked
                self.loops, names = [], self._tensor_names()
                found = ReferenceEvaluator(self.proto).run(names, dict(feeds))
        return dict(zip(names, found, strict=True))

    def _runtime(self, model: Model, feeds: Mapping[str, Any]) -> dict[str, Any]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        # What it may fuse is as the model says in the first run; in the second every tensor is kept to be looked at.
        providers = ["CPUExecutionProvider"]
        try:
            session = onnxruntime.InferenceSession(str(self.path), options, providers=providers)
        except Exception as error:
            self._lower_version(error)
            session = onnxruntime.InferenceSession(self.proto.SerializeToString(), options, providers=providers)
        outputs = session.run(None, dict(feeds))
        found = dict(zip(self.output_names, outputs, strict=True))
        for is_inside in (True, False):
            try:
                proto, names = self._telling_all(model, inside=is_inside)
                session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=providers)
                return dict(zip(names, session.run(names, dict(feeds)), strict=True)) | found
            except Exception:
                self.loops = []  # a tensor that cannot be an output, or a model too large for one message
        return found

    def _lower_version(self, error: Exception) -> None:
        """Of a file that is newer than onnxruntime in its version alone: what it holds is settled by its operators."""
        found = _NEWEST_VERSION.search(str(error))
        if found is None:
            raise error
        self.proto.ir_version = int(found[1])

    def _telling_all(self, model: Model, *, inside: bool = True) -> tuple[onnx.ModelProto, list[str]]:
        """The model with every tensor of its main graph (and, `inside`, of its loops) as an output, and their names."""
        import onnx

        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        self.loops = open_loops(proto, model) if inside else []
        names = [*self._tensor_names(), *(name for loop in self.loops for name in loop.inside.values())]
        present = set(self.output_names)
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in present)
        return proto, names


def tensors_by_name(graph: Graph) -> dict[str, tuple[Layer, int]]:
    """The tensors of a graph by each of their names: the layer and the index of its output."""
    return {
        name: (layer, index)
        for layer in graph.layers
        for index, port in enumerate(layer.outputs)
        for name in port.names
    }


def _to_onnx(array: Any) -> Any:
    return np.asarray(array).astype(object) if array.dtype == STRING_DTYPE else np.asarray(array)


def _of_onnx(value: Any) -> Array:
    array = np.asarray(value)
    return (
        np.array(array.astype(str).tolist(), STRING_DTYPE).reshape(array.shape) if array.dtype.kind in "OU" else array
    )
