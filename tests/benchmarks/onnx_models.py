"""The benchmarks' loops as ONNX models, for the interpreter that comes with ONNX."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.benchmarks.models import HALF, NEVER, LstmWeights

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def newton(iterations: int) -> onnx.ModelProto:
    """As models.newton_model."""
    nodes = [
        helper.make_node("Div", ["number", "guess"], ["quotient"]),
        helper.make_node("Add", ["guess", "quotient"], ["total"]),
        helper.make_node("Mul", ["total", "half"], ["better"]),
        helper.make_node("Sub", ["better", "guess"], ["change"]),
        helper.make_node("Abs", ["change"], ["size"]),
        helper.make_node("Greater", ["size", "never"], ["going_on"]),
        helper.make_node("Identity", ["better"], ["root_piece"]),
    ]
    inputs = [_value("i", INT64, []), _value("going", BOOL, []), _value("guess", FLOAT, [1])]
    outputs = [_value("going_on", BOOL, [1]), _value("better", FLOAT, [1]), _value("root_piece", FLOAT, [1])]
    constants = [numpy_helper.from_array(HALF, "half"), numpy_helper.from_array(NEVER, "never")]
    body = helper.make_graph(nodes, "body", inputs, outputs, constants)
    loop = helper.make_node("Loop", ["trips", "always", "start"], ["root", "roots"], body=body)
    trips, always = (
        numpy_helper.from_array(np.array(iterations), "trips"),
        numpy_helper.from_array(np.array(True), "always"),
    )
    given = [_value("number", FLOAT, [1]), _value("start", FLOAT, [1])]
    results = [_value("root", FLOAT, [1]), _value("roots", FLOAT, [iterations, 1])]
    return _model(helper.make_graph([loop], "newton", given, results, [trips, always]))


def lstm(weights: LstmWeights, iterations: int) -> onnx.ModelProto:
    """As models.lstm_model, with an LSTM of sequence length 1 for the cell and the gates in ONNX's order."""
    n, state = weights.hidden, [1, 1, weights.hidden]
    order = np.concatenate([np.arange(gate * n, (gate + 1) * n) for gate in (1, 3, 0, 2)])  # i, o, f, c
    bias = np.concatenate([weights.B[order], np.zeros(4 * n, np.float32)])
    arrays = {"W": weights.W[order][np.newaxis], "R": weights.R[order][np.newaxis], "B": bias[np.newaxis]}
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["slice"], axis=1),  # [1, inputs]
        helper.make_node("Unsqueeze", ["slice", "zero"], ["piece"]),
        helper.make_node("LSTM", ["piece", "W", "R", "B", "", "H", "C"], ["", "h", "c"], hidden_size=n),
        helper.make_node("Squeeze", ["h", "zero"], ["row"]),
        helper.make_node("Identity", ["going"], ["going_on"]),
    ]
    inputs = [_value("i", INT64, []), _value("going", BOOL, []), _value("H", FLOAT, state), _value("C", FLOAT, state)]
    outputs = [_value("going_on", BOOL, []), _value("h", FLOAT, state), _value("c", FLOAT, state)]
    outputs.append(_value("row", FLOAT, [1, n]))
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    constants.append(numpy_helper.from_array(np.array([0]), "zero"))
    body = helper.make_graph(nodes, "body", inputs, outputs, constants)
    loop = helper.make_node("Loop", ["trips", "always", "h0", "c0"], ["last_h", "last_c", "rows"], body=body)
    control = [
        numpy_helper.from_array(np.array(iterations), "trips"),
        numpy_helper.from_array(np.array(True), "always"),
    ]
    given = [_value("x", FLOAT, [1, iterations, weights.inputs])]
    given += [_value("h0", FLOAT, state), _value("c0", FLOAT, state)]
    results = [
        _value("rows", FLOAT, [iterations, 1, n]),
        _value("last_h", FLOAT, state),
        _value("last_c", FLOAT, state),
    ]
    return _model(helper.make_graph([loop], "lstm", given, results, control))


def _value(name: str, type: int, shape: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type, shape)


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
