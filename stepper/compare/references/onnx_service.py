"""Evaluation of ONNX models, in a worker process: `main` performs the acts of `onnx_worker`.

A Loop and a Scan of the main graph may give any tensor of their body out, stacked over the iterations; that is how the
evaluators, which tell of nothing else, are made to tell. A tensor that changes its shape cannot be stacked: the
evaluator then refuses, and the loop is asked for what it says by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference

from stepper import element_types
from stepper.compare.references.onnx import REFERENCE, Evaluate, Evaluated, OpenedLoop
from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import ExecutionError, ModelError
from stepper.processes.process_messages import COMPILING, READING, RUNNING
from stepper.processes.server import Announce, Service, is_out_of_memory, serve
from stepper.wording import excerpt

_LONGEST = 300
_NEWEST_VERSION = re.compile(r"max supported IR version: ([0-9]+)")
_LOOPS = ("Loop", "Scan")
_PREFIX = "stepper_each_"
_PROVIDERS = ("CPUExecutionProvider",)


class OnnxService(Service):
    """Evaluates ONNX models."""

    acts = Evaluate

    def __init__(self, announce: Announce) -> None:
        self._announce = announce

    def perform(self, act: Evaluate, arrays: list[Array]) -> tuple[Evaluated, Sequence[Array]]:
        """Return every tensor of the main graph and of the loops that are opened, with their names."""
        self._announce(READING)
        try:
            proto = onnx.load(act.path)
        except Exception as error:  # protobuf's, onnx's and the system's: each says what is wrong in its own way
            raise ModelError(f"is not an ONNX model: {_said(error)}") from None
        evaluation = _Evaluation(act, proto, _feeds(proto, act.parameters, arrays), self._announce)
        try:
            found = evaluation.by_reference() if act.evaluator == REFERENCE else evaluation.by_runtime()
        except Exception as error:  # whatever a kernel written in Python raises, and onnxruntime's own
            raise ExecutionError(f"{act.evaluator} fails at the model: {_said(error)}") from None
        tensors = {name: value for name, value in found.items() if isinstance(value, np.ndarray | np.generic)}
        known = {name: _of_onnx(value) for name, value in tensors.items() if _has_element_type(value)}
        outputs = tuple(output.name for output in proto.graph.output)
        return Evaluated(tuple(known), outputs, tuple(evaluation.loops)), list(known.values())


def _said(error: Exception) -> str:
    """Return the words of an evaluator's exception. Raise MemoryError where memory did not suffice."""
    if is_out_of_memory(error):
        raise MemoryError from error
    return excerpt(str(error) or type(error).__name__, _LONGEST)


def _feeds(proto: onnx.ModelProto, names: Sequence[Sequence[str]], arrays: Sequence[Array]) -> dict[str, Any]:
    """Return the inputs by ONNX's names: those of our Parameters where they agree, else by position."""
    constants = {constant.name for constant in proto.graph.initializer}
    wanted = [given.name for given in proto.graph.input if given.name not in constants]
    values = [array.astype(object) if array.dtype == STRING_DTYPE else array for array in arrays]
    by_name = {name: value for known, value in zip(names, values, strict=True) for name in known}
    if all(name in by_name for name in wanted):
        return {name: by_name[name] for name in wanted}
    if len(wanted) != len(values):
        raise ModelError(f"has the inputs {', '.join(wanted)}, which differ from the inputs of the model")
    return dict(zip(wanted, values, strict=True))


class _Evaluation:
    def __init__(self, act: Evaluate, proto: onnx.ModelProto, feeds: Mapping[str, Any], announce: Announce) -> None:
        self._act, self._proto, self._feeds, self._announce = act, proto, dict(feeds), announce
        self.loops: list[OpenedLoop] = []

    def by_reference(self) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            try:
                proto, names = self._telling_all()
                found = self._by_reference(proto, names)
            except Exception:  # a tensor that cannot be stacked
                self.loops, names = [], self._tensor_names()
                found = self._by_reference(self._proto, names)
        return dict(zip(names, found, strict=True))

    def _by_reference(self, proto: onnx.ModelProto, names: Sequence[str]) -> Sequence[Any]:
        self._announce(COMPILING)
        evaluator = onnx.reference.ReferenceEvaluator(proto)
        self._announce(RUNNING)
        found: Sequence[Any] = evaluator.run(names, self._feeds)
        return found

    def by_runtime(self) -> dict[str, Any]:
        # What it may fuse is as the model says in the first run; in the second every tensor is kept to be looked at.
        outputs = [output.name for output in self._proto.graph.output]
        try:
            found = self._by_runtime(self._act.path, outputs)
        except Exception as error:
            version = _NEWEST_VERSION.search(str(error))
            if version is None:
                raise
            # A file that is newer than onnxruntime in its version alone: what it holds is settled by its operators.
            self._proto.ir_version = int(version[1])
            found = self._by_runtime(self._proto.SerializeToString(), outputs)
        for is_inside in (True, False):
            try:
                proto, names = self._telling_all(inside=is_inside)
                return self._by_runtime(proto.SerializeToString(), names) | found
            except Exception:
                self.loops = []  # a tensor that cannot be an output, or a model too large for one message
        return found

    def _by_runtime(self, model: str | bytes, names: Sequence[str]) -> dict[str, Any]:
        import onnxruntime  # the reference evaluator needs no such package

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self._announce(COMPILING)
        session = onnxruntime.InferenceSession(model, options, providers=list(_PROVIDERS))
        self._announce(RUNNING)
        return dict(zip(names, session.run(names, self._feeds), strict=True))

    def _telling_all(self, *, inside: bool = True) -> tuple[onnx.ModelProto, list[str]]:
        """Return the model with all tensors of its main graph (`inside`: of its loops, too) as outputs; their names."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self._proto)
        nodes = enumerate(proto.graph.node) if inside else ()
        self.loops = [
            _open(node, k)
            for k, node in nodes
            if node.op_type in _LOOPS and not self._act.opened.isdisjoint(node.output)
        ]
        names = [*self._tensor_names(), *(name for loop in self.loops for name in loop.inside.values())]
        present = {output.name for output in proto.graph.output}
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in present)
        return proto, names

    def _tensor_names(self) -> list[str]:
        graph = self._proto.graph
        computed = [name for node in graph.node for name in node.output if name]
        return list(dict.fromkeys([*computed, *(output.name for output in graph.output)]))


def _open(node: onnx.NodeProto, index: int) -> OpenedLoop:
    outputs = tuple(node.output)
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    inside = {}
    for place, (tensor, type) in enumerate(list(_tensors(body))):
        name, within = f"{_PREFIX}{index}_{place}", f"{_PREFIX}{index}_{place}_inside"
        body.node.add(op_type="Identity", input=[tensor], output=[within])
        given = body.output.add(name=within)
        if type is not None:
            given.type.CopyFrom(type)
        inside[tensor] = name
        node.output.append(name)
    for attribute in node.attribute:  # those of a Scan say something of each stacked output
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute.ints.extend([0] * len(inside))
    return OpenedLoop(outputs, inside)


def _tensors(body: onnx.GraphProto) -> Iterator[tuple[str, Any]]:
    """Yield the body's inputs and what its nodes give, each with its type where the file says one."""
    known = {info.name: info.type for info in (*body.value_info, *body.output) if info.HasField("type")}
    for given in body.input:
        yield given.name, _unshaped(given.type) if given.HasField("type") else None
    for node in body.node:
        for name in node.output:
            if name:
                yield name, _unshaped(known[name]) if name in known else None


def _unshaped(type: Any) -> Any:
    """Return the element type alone: declared shapes of bodies are often wrong."""
    copy = type.__class__()
    copy.CopyFrom(type)
    if copy.HasField("tensor_type"):
        copy.tensor_type.ClearField("shape")
    return copy


def _of_onnx(value: Any) -> Array:
    array = np.asarray(value)
    return (
        np.array(array.astype(str).tolist(), STRING_DTYPE).reshape(array.shape) if array.dtype.kind in "OU" else array
    )


def _has_element_type(value: Any) -> bool:
    try:
        element_types.of(value)
    except KeyError:
        return bool(value.dtype.kind == "O")  # texts
    return True


def main() -> None:
    """Serve until the other side is gone."""
    serve(OnnxService)
