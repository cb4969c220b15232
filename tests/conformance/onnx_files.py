"""ONNX files with loops of each kind, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def _of(kind: int, *named: tuple[str, Sequence[int | str]]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, kind, list(shape)) for name, shape in named]


def _save(folder: Path, graph: onnx.GraphProto, constants: Mapping[str, Any], version: int = 9) -> Path:
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=version)
    path = folder / f"{graph.name}.onnx"
    onnx.save(model, path)
    return path


def nested(folder: Path, version: int = 9) -> Path:
    """Five rounds of: times 1.7 until 40 is reached, six times at most; then minus 1.5."""
    inner = helper.make_graph(
        [
            node("Mul", ["a", "k"], ["a2"]),
            node("ReduceMax", ["a2"], ["most"], keepdims=0),
            node("Less", ["most", "limit"], ["go"]),
        ],
        "inner",
        [*_of(INT, ("j", [])), *_of(BOOL, ("was", [])), *_of(FLOAT, ("a", [3]))],
        [*_of(BOOL, ("go", [])), *_of(FLOAT, ("a2", [3]))],
    )
    outer = helper.make_graph(
        [
            node("Loop", ["n", "yes", "v"], ["grown"], body=inner),
            node("Sub", ["grown", "less"], ["reduced"]),
            node("Identity", ["on"], ["goes_on"]),
            node("Identity", ["reduced"], ["piece"]),
        ],
        "outer",
        [*_of(INT, ("i", [])), *_of(BOOL, ("on", [])), *_of(FLOAT, ("v", [3]))],
        [*_of(BOOL, ("goes_on", [])), *_of(FLOAT, ("reduced", [3]), ("piece", [3]))],
    )
    nodes = [node("Loop", ["m", "yes", "x"], ["last", "pieces"], body=outer), node("Abs", ["last"], ["result"])]
    graph = helper.make_graph(
        nodes, "nested", _of(FLOAT, ("x", [3])), _of(FLOAT, ("result", [3]), ("pieces", ["t", 3]))
    )
    constants = {"n": 6, "m": 5, "yes": True, "k": np.float32(1.7), "limit": np.float32(40), "less": np.float32(1.5)}
    return _save(folder, graph, constants, version)


def scan(folder: Path) -> Path:
    """A recurrence over the rows of x."""
    body = helper.make_graph(
        [
            node("MatMul", ["h", "w"], ["turned"]),
            node("Add", ["turned", "row"], ["sum"]),
            node("Tanh", ["sum"], ["h_next"]),
            node("Identity", ["h_next"], ["y"]),
        ],
        "body",
        _of(FLOAT, ("h", [1, 4]), ("row", [1, 4])),
        _of(FLOAT, ("h_next", [1, 4]), ("y", [1, 4])),
    )
    loop = node("Scan", ["h0", "x"], ["h_last", "ys"], body=body, num_scan_inputs=1, scan_output_directions=[0])
    outputs = _of(FLOAT, ("h_last", [1, 4]), ("ys", [9, 1, 4]))
    graph = helper.make_graph([loop], "scan", _of(FLOAT, ("h0", [1, 4]), ("x", [9, 1, 4])), outputs)
    return _save(folder, graph, {"w": np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)})


def growing(folder: Path) -> Path:
    """A list that is longer by one after each iteration, which cannot be stacked."""
    body = helper.make_graph(
        [
            node("Mul", ["last", "k"], ["next"]),
            node("Concat", ["list", "next"], ["longer"], axis=0),
            node("Identity", ["on"], ["goes_on"]),
        ],
        "body",
        [*_of(INT, ("i", [])), *_of(BOOL, ("on", [])), *_of(FLOAT, ("last", [1]), ("list", ["n"]))],
        [*_of(BOOL, ("goes_on", [])), *_of(FLOAT, ("next", [1]), ("longer", ["m"]))],
    )
    loop = node("Loop", ["times", "yes", "x", "x"], ["end", "all"], body=body)
    graph = helper.make_graph([loop], "growing", _of(FLOAT, ("x", [1])), _of(FLOAT, ("all", ["n"])))
    return _save(folder, graph, {"times": 4, "yes": True, "k": np.float32(0.5)})


def loop_in_branch(folder: Path) -> Path:
    """x doubled four times where its sum is positive, else -x."""
    body = helper.make_graph(
        [node("Add", ["s", "s"], ["doubled"]), node("Identity", ["on"], ["goes_on"])],
        "body",
        [*_of(INT, ("i", [])), *_of(BOOL, ("on", [])), *_of(FLOAT, ("s", [2]))],
        [*_of(BOOL, ("goes_on", [])), *_of(FLOAT, ("doubled", [2]))],
    )
    then = helper.make_graph(
        [node("Loop", ["n", "yes", "x"], ["end"], body=body)], "then", [], _of(FLOAT, ("end", [2]))
    )
    otherwise = helper.make_graph([node("Neg", ["x"], ["minus"])], "else", [], _of(FLOAT, ("minus", [2])))
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["positive"]),
        node("If", ["positive"], ["chosen"], then_branch=then, else_branch=otherwise),
        node("Softmax", ["chosen"], ["shares"]),
    ]
    graph = helper.make_graph(nodes, "branch", _of(FLOAT, ("x", [2])), _of(FLOAT, ("shares", [2])))
    return _save(folder, graph, {"n": 4, "yes": True, "zero": np.float32(0)})


def recurrent(folder: Path) -> Path:
    """A GRU over a sequence."""
    rng = np.random.default_rng(1)
    shapes = {"W": (1, 15, 3), "R": (1, 15, 5), "B": (1, 30)}
    weights = {name: rng.normal(size=shape).astype(np.float32) / 3 for name, shape in shapes.items()}
    nodes = [node("GRU", ["x", "W", "R", "B"], ["Y", "last"], hidden_size=5), node("Relu", ["Y"], ["out"])]
    outputs = _of(FLOAT, ("out", [7, 1, 2, 5]), ("last", [1, 2, 5]))
    return _save(folder, helper.make_graph(nodes, "gru", _of(FLOAT, ("x", [7, 2, 3])), outputs), weights)


FILES: Mapping[str, Callable[[Path], Path]] = {
    made.__name__: made for made in (nested, scan, growing, loop_in_branch, recurrent)
}


def inputs_of(path: Path) -> Path:
    """An archive with values for the inputs of a file, beside it."""
    graph = onnx.load(path).graph
    constants = {constant.name for constant in graph.initializer}
    rng = np.random.default_rng(3)
    shapes = {
        given.name: [dim.dim_value for dim in given.type.tensor_type.shape.dim]
        for given in graph.input
        if given.name not in constants
    }
    archive = path.with_suffix(".npz")
    np.savez(archive, **{name: rng.uniform(0.5, 2, shape).astype(np.float32) for name, shape in shapes.items()})
    return archive
