"""Rules of operations against their kernels, run with every element of every input changed, one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stepper.debug.provenance.dependence_rules import dependences, extent_parts
from stepper.debug.provenance.operation_at import Method, OperationAt
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from tests.models import Graph
from tests.tables import each_row

RANDOM = np.random.default_rng(5)


def f32(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def zeros(*shape: int, at: tuple[int, ...]) -> Any:
    """Random numbers with a zero in these places of the flat tensor; none stands against another zero."""
    found = f32(*shape)
    found.reshape(-1)[list(at)] = 0
    return found


def i64(*numbers: Any) -> Any:
    return np.array(numbers, np.int64)


CASES: list[tuple[str, list[Any], tuple[int, ...], dict[str, Any]]] = [
    ("Multiply", [zeros(2, 3, at=(0, 4)), zeros(3, at=(2,))], (2, 3), {}),
    ("Divide", [zeros(2, 3, at=(0, 4)), f32(1, 3)], (2, 3), {}),
    ("SquaredDifference", [f32(2, 1), f32(1, 3)], (2, 3), {}),
    ("Select", [np.array([True, False, True]), f32(2, 3), f32(1)], (2, 3), {}),
    ("LogicalAnd", [np.array([True, False, True]), np.array([True, True, False])], (3,), {}),
    ("LogicalOr", [np.array([True, False, False]), np.array([False, True, False])], (3,), {}),
    ("MatMul", [zeros(2, 3, at=(0, 4)), zeros(3, 4, at=(8, 11))], (2, 4), {}),
    (
        "MatMul",
        [zeros(3, 2, at=(0, 3)), zeros(4, 3, at=(2, 5))],
        (2, 4),
        {"transpose_a": "true", "transpose_b": "true"},
    ),
    ("MatMul", [f32(3), zeros(2, 3, 4, at=(0, 5, 13))], (2, 4), {}),
    ("MatMul", [zeros(2, 2, 3, at=(1, 7)), f32(3)], (2, 2), {}),
    ("ReduceSum", [f32(2, 3, 2), i64(1)], (2, 2), {"keep_dims": "false"}),
    ("ReduceL2", [f32(2, 3), i64(0, 1)], (1, 1), {"version": "opset4", "keep_dims": "true"}),
    ("CumSum", [f32(2, 3), np.array(1, np.int64)], (2, 3), {"version": "opset3"}),
    (
        "CumSum",
        [f32(2, 3), np.array(1, np.int64)],
        (2, 3),
        {"version": "opset3", "exclusive": "true", "reverse": "true"},
    ),
    ("Softmax", [f32(2, 3)], (2, 3), {"axis": "1"}),
    (
        "MVN",
        [f32(2, 3), i64(1)],
        (2, 3),
        {"version": "opset6", "normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"},
    ),
    ("Transpose", [f32(2, 3), i64(1, 0)], (3, 2), {}),
    ("Gather", [f32(4, 3), i64(2, 0), np.array(0, np.int64)], (2, 3), {"version": "opset8", "batch_dims": "0"}),
    (
        "Gather",
        [f32(2, 4), i64([1, 3], [0, 2]), np.array(1, np.int64)],
        (2, 2),
        {"version": "opset8", "batch_dims": "1"},
    ),
    ("GatherElements", [f32(3, 2), i64([1, 1], [1, 1])], (2, 2), {"version": "opset6", "axis": "0"}),
    (
        "ScatterElementsUpdate",
        [f32(3, 2), i64([1, 2]), f32(1, 2), np.array(0, np.int64)],
        (3, 2),
        {"version": "opset3"},
    ),
    (
        "ScatterElementsUpdate",
        [f32(3, 2), i64([1, 2]), f32(1, 2), np.array(0, np.int64)],
        (3, 2),
        {"version": "opset12", "reduction": "sum", "use_init_val": "true"},
    ),
    ("Concat", [f32(2, 1), f32(2, 2)], (2, 3), {"axis": "1"}),
    ("Pad", [f32(2, 2), i64(1, 0), i64(0, 1), np.array(3, np.float32)], (3, 3), {"pad_mode": "constant"}),
    (
        "Convolution",
        [f32(1, 2, 4, 4), f32(3, 2, 2, 2)],
        (1, 3, 2, 3),
        {"strides": "2,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"},
    ),
    (
        "Convolution",
        [f32(1, 2, 5), f32(1, 2, 3)],
        (1, 1, 5),
        {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0", "auto_pad": "same_upper"},
    ),
    (
        "GroupConvolution",
        [f32(1, 4, 4), f32(2, 1, 2, 2)],
        (1, 2, 2),
        {"strides": "1", "dilations": "2", "pads_begin": "0", "pads_end": "0"},
    ),
    (
        "AvgPool",
        [f32(1, 2, 4)],
        (1, 2, 3),
        {
            "strides": "1",
            "kernel": "2",
            "pads_begin": "0",
            "pads_end": "0",
            "exclude-pad": "true",
            "rounding_type": "floor",
        },
    ),
    (
        "LSTMCell",
        [f32(2, 3), f32(2, 2), f32(2, 2), f32(8, 3), f32(8, 2), f32(8)],
        (2, 2),
        {"version": "opset4", "hidden_size": "2", "outputs": 2},
    ),
    (
        "LSTMCell",
        [f32(2, 3), f32(2, 2), f32(2, 2), f32(8, 5), f32(8)],
        (2, 2),
        {"version": "opset1", "hidden_size": "2", "outputs": 2},
    ),
    (
        "GRUCell",
        [f32(2, 3), f32(2, 2), f32(6, 3), f32(6, 2), f32(6)],
        (2, 2),
        {"version": "opset3", "hidden_size": "2"},
    ),
    (
        "TopK",
        [f32(2, 3), np.array(2, np.int64)],
        (2, 2),
        {"version": "opset3", "axis": "1", "mode": "max", "sort": "value", "outputs": 2},
    ),
    (
        "OneHot",
        [i64(0, 2), np.array(3, np.int64), np.array(1, np.float32), np.array(0, np.float32)],
        (2, 3),
        {"axis": "-1", "type": "f32"},
    ),
    (
        "BatchNormInference",
        [f32(1, 2, 2), f32(2), f32(2), f32(2), np.abs(f32(2)) + 1],
        (1, 2, 2),
        {"version": "opset5", "epsilon": "0.001"},
    ),
    ("Einsum", [f32(2, 3), f32(3, 2)], (2, 2), {"version": "opset7", "equation": "ij,jk->ik"}),
    (
        "GRUSequence",
        [f32(2, 3, 2), f32(2, 1, 2), i64(3, 2), f32(1, 6, 2), f32(1, 6, 2), f32(1, 6)],
        (2, 1, 3, 2),
        {"version": "opset5", "hidden_size": "2", "direction": "forward", "outputs": 2},
    ),
    (
        "LSTMSequence",
        [f32(2, 2, 2), f32(2, 2, 2), f32(2, 2, 2), i64(2, 2), f32(2, 8, 2), f32(2, 8, 2), f32(2, 8)],
        (2, 2, 2, 2),
        {"version": "opset5", "hidden_size": "2", "direction": "bidirectional", "outputs": 3},
    ),
    (
        "GroupNormalization",
        [f32(2, 4, 3), f32(4), f32(4)],
        (2, 4, 3),
        {"version": "opset12", "num_groups": "2", "epsilon": "1e-5"},
    ),
    (
        "ConvolutionBackpropData",
        [f32(1, 2, 3), f32(2, 3, 2)],
        (1, 3, 6),
        {"strides": "2", "dilations": "1", "pads_begin": "0", "pads_end": "0"},
    ),
    (
        "Interpolate",
        [f32(1, 1, 3), np.array([2.0], np.float32), i64(2)],
        (1, 1, 6),
        {
            "version": "opset11",
            "mode": "nearest",
            "shape_calculation_mode": "scales",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        },
    ),
    ("ShapeOf", [f32(2, 3)], (2,), {"version": "opset3", "type": "i64", "output_type": "i64"}),
]
INEXACT = {
    "GRUCell",
    "Pad",
    "TopK",
    "OneHot",
    "AvgPool",
    "Convolution",
    "GRUSequence",
    "LSTMSequence",
    "ConvolutionBackpropData",
}
"""Operations whose rule may name more than what matters: all weights, all of a line, filters over the padding."""


def truth(function: Any, values: list[Any], output: int, several: bool, index: tuple[int, ...], k: int) -> Any:
    """The elements of an input that change an element of the output, each changed alone in many ways."""
    base = np.asarray(function(*values)[output] if several else function(*values))[index]
    found = np.zeros(values[k].shape, bool)
    for place in np.ndindex(values[k].shape):
        old = values[k][place]
        numbers: list[Any] = (
            [old * 3 + 1, -old - 2, old * 0, old + 1000] if old.dtype.kind == "f" else [old + 1, old - 1]
        )
        for number in [~old] if old.dtype == bool else numbers:
            other = np.array(values[k])
            other[place] = number
            try:
                with np.errstate(all="ignore"):
                    result = function(*values[:k], other, *values[k + 1 :])
            except Exception:
                found[place] = True
                break
            got = np.asarray(result[output] if several else result)
            if any(at >= size for at, size in zip(index, got.shape, strict=True)) or got[index] != base:
                found[place] = True
                break
    return found


@each_row("case", CASES, ids=lambda case: f"{case[0]}{list(case[2])}")
def test_a_rule_names_what_the_kernel_depends_on(case: Any, tmp_path: Path) -> None:
    kind, inputs, dims, attributes = case
    net = Graph()
    names = [
        net.parameter(f"x{k}", {"f": "f32", "i": "i64", "b": "boolean"}[value.dtype.kind], value.shape)
        for k, value in enumerate(inputs)
    ]
    made = net.apply(kind, *names, dims=dims, name="made", **attributes)
    net.result(made)
    model = net.read(tmp_path)
    compiled = compile_model(model)
    machine = Machine(compiled, bind_inputs(model, dict(enumerate(inputs))))
    frame = machine.stack[0]
    for _ in machine.run(Every.OPERATION):
        pass
    operation = next(one for one in compiled.main.operations if one.layer.name == "made")
    at = OperationAt.in_frame(frame, operation, operation.outputs[0])
    values, results = [np.asarray(value) for value in at.values], at.results
    for index in list(np.ndindex(results[0].shape))[:: max(1, results[0].size // 4)]:
        mask = np.zeros(results[0].shape, bool)
        mask[index] = True
        found = dependences(at, mask)
        assert found.method is (Method.PERTURBED if kind == "Einsum" or "reduction" in attributes else Method.RULE)
        by_input = {one.input: one for one in found.found}
        for k, value in enumerate(values):
            expected = truth(operation.function, values, 0, operation.several_outputs, index, k)
            got = by_input[k].mask if k in by_input else np.zeros(value.shape, bool)
            assert not (expected & ~got).any(), (index, k)
            if kind not in INEXACT and not (k in by_input and by_input[k].is_index):
                assert np.array_equal(got, expected), (index, k)


@each_row("batch", (-2, -1, 0, 1))
def test_an_extent_of_gather_leads_to_one_as_long(batch: int, tmp_path: Path) -> None:
    """All extents of the inputs differ but those that go together."""
    data, indices = np.zeros((2, 5, 7), np.float32), np.zeros((2, 3), np.int64)
    together = batch % 2  # as many as -2 + 2, -1 + 2, 0, 1
    dims = (2, 3, 7) if together else (2, 2, 3, 7)
    net = Graph()
    names = [net.parameter("data", "f32", data.shape), net.parameter("indices", "i64", indices.shape)]
    axis = net.constant(np.array(1, np.int64))
    attributes = {"version": "opset8", "batch_dims": str(batch)}
    net.result(net.apply("Gather", *names, axis, dims=dims, name="made", **attributes))
    model = net.read(tmp_path)
    compiled = compile_model(model)
    machine = Machine(compiled, bind_inputs(model, {0: data, 1: indices}))
    frame = machine.stack[0]
    for _ in machine.run(Every.OPERATION):
        pass
    at = OperationAt.in_frame(frame, compiled.main.operations[-1], compiled.main.operations[-1].outputs[0])
    assert at.results[0].shape == dims
    for place, size in enumerate(dims):
        lengths = [at.values[one.input].shape[one.element[0]] for one in extent_parts(at, place).parts if one.is_shape]
        assert lengths == [size], place
