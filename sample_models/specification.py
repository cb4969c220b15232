"""The full example of the TensorIterator-1 specification, as it is published, with only its `...` filled in."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from building import Body, constant, model, parameter, tensor_iterator
from sample import Array, IrFiles, Sample

PUBLISHED = Path(__file__).parent / "specification_lstm" / "as_published.txt"
STEPS, INPUT_SIZE, HIDDEN_SIZE = 25, 512, 256

# The layers of the body in the order of their ids, which are 0, 1, 2, ...
BODY_NAMES = (
    *("x_row", "x_shape", "x", "h", "c", "W_and_R", "B", "lstm_cell"),
    *("c_next", "h_next", "y_shape", "y_row", "y"),
)

PARAMETER = """\
<layer id="{id}" name="{name}" type="Parameter" version="opset1">
    <data element_type="f32" shape="{shape}"/>
    <output>
        <port id="0" precision="FP32" names="{name}">
{dims}
        </port>
    </output>
</layer>
"""

RESULT = """\
<layer id="4" name="Y" type="Result" version="opset1" output_names="Y">
    <input>
        <port id="0" precision="FP32">
{dims}
        </port>
    </input>
</layer>
"""

NET = """\
<?xml version="1.0"?>
<net name="specification_lstm" version="11">
    <layers>
{layers}
    </layers>
    <edges>
        <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
        <edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
        <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
        <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
    </edges>
</net>
"""


def lstm() -> Sample:
    """An LSTM over 25 steps whose cell has W and R in one tensor; OpenVINO computes it with the two apart."""
    weights, bias = weights_and_bias()
    inputs = {
        "X": multiples([1, STEPS, INPUT_SIZE], 101),
        "H": multiples([1, HIDDEN_SIZE], 37),
        "C": multiples([1, HIDDEN_SIZE], 53),
    }
    y_shape, x_shape = np.array([1, 1, HIDDEN_SIZE], np.int64), np.array([1, INPUT_SIZE], np.int64)
    blob = b"".join(value.tobytes() for value in (x_shape, weights, bias, y_shape))
    formula = {"Y": lstm_outputs(inputs["X"], inputs["H"], inputs["C"], weights, bias)}
    return Sample(runnable_model(weights, bias), inputs, formula, IrFiles(published_net(), blob))


def multiples(shape: list[int], period: int) -> Array:
    """Some multiples of 1/16 between -1 and 1; the squares modulo a prime look random and are the same everywhere."""
    places = np.arange(np.prod(shape))
    return ((places * places % period % 33 - 16) / 16).astype(np.float32).reshape(shape)


def weights_and_bias() -> tuple[Array, Array]:
    """Nine small multiples of 1/64 in a pattern that compresses well and still makes each row another."""
    row, column = np.arange(4 * HIDDEN_SIZE)[:, None], np.arange(INPUT_SIZE + HIDDEN_SIZE)
    weights = ((row * row + row * column + 3 * column * column) % 61 % 9 - 4) / 64
    bias = (row[:, 0] * 7 % 67 % 9 - 4) / 64
    return weights.astype(np.float32), bias.astype(np.float32)


def lstm_outputs(x: Array, h: Array, c: Array, weights: Array, bias: Array) -> Array:
    """The LSTM formula in double precision; the gates are stored in the order f, i, c, o."""
    rows = []
    for step in range(STEPS):
        gates = np.concatenate([x[:, step], h], axis=1, dtype=np.float64) @ weights.T + bias
        forget, into, candidate, out = np.split(gates, 4, axis=1)
        c = sigmoid(forget) * c + sigmoid(into) * np.tanh(candidate)
        h = sigmoid(out) * np.tanh(c)
        rows.append(h)
    return np.stack(rows, axis=1).astype(np.float32)


def sigmoid(value: Array) -> Array:
    """The logistic function."""
    return np.asarray(1 / (1 + np.exp(-value)))


def runnable_model(weights: Array, bias: Array) -> ov.Model:
    """The example with what OpenVINO asks for: W and R are split where the columns of the input end."""
    X, x_row = parameter("X", [1, STEPS, INPUT_SIZE]), parameter("x_row", [1, 1, INPUT_SIZE])
    H, C, h, c = (parameter(name, [1, HIDDEN_SIZE]) for name in ("H", "C", "h", "c"))
    x = ops.reshape(x_row, constant("x_shape", [1, INPUT_SIZE], np.int64), special_zero=False, name="x")
    W, R = constant("W", weights[:, :INPUT_SIZE]), constant("R", weights[:, INPUT_SIZE:])
    cell = ops.lstm_cell(x, h, c, W, R, constant("B", bias), HIDDEN_SIZE, name="lstm_cell")
    h_next, c_next = cell.outputs()
    h_next.set_names({"h_next"})
    c_next.set_names({"c_next"})
    y_shape = constant("y_shape", [1, 1, HIDDEN_SIZE], np.int64)
    y = ops.reshape(h_next, y_shape, special_zero=False, name="y_row")
    body = Body(carried=[(h, H, h_next), (c, C, c_next)], sliced=[(x_row, X)], concatenated=[y])
    (all_steps,) = tensor_iterator("lstm", body, axis=1)
    return model("specification_lstm", [X, H, C], {"Y": all_steps})


def published_net() -> str:
    """The published layer in a net of its own, with three Parameters before it and a Result behind it."""
    shapes = {"X": (1, STEPS, INPUT_SIZE), "H": (1, HIDDEN_SIZE), "C": (1, HIDDEN_SIZE)}
    layers = [
        PARAMETER.format(id=id, name=name, shape=",".join(map(str, shape)), dims=dims(shape))
        for id, (name, shape) in enumerate(shapes.items())
    ]
    layers += [filled_in(PUBLISHED.read_text(encoding="utf-8")), RESULT.format(dims=dims((1, STEPS, HIDDEN_SIZE)))]
    return NET.format(layers=textwrap.indent("".join(layers).rstrip("\n"), " " * 8))


def dims(shape: tuple[int, ...]) -> str:
    """The <dim> elements of a port, indented as in a layer."""
    return "\n".join(f"            <dim>{size}</dim>" for size in shape)


def filled_in(published: str) -> str:
    """The published text with names, versions and the type and shape of each Parameter in place of its `...`."""
    text = published.replace(
        '<layer type="TensorIterator" ...>', '<layer id="3" name="lstm" type="TensorIterator" ...>'
    )
    for id, name in enumerate(BODY_NAMES):
        text = text.replace(f'<layer id="{id}" type', f'<layer id="{id}" name="{name}" type')
    text = text.replace(" ...>", ' version="opset1">')
    return re.sub(r'( *)<layer .*type="Parameter".*>\n(?:.*\n)+?\1</layer>', with_parameter_data, text)


def with_parameter_data(layer: re.Match[str]) -> str:
    """A Parameter layer with its <data>, which the published text leaves out; the shape is the one of its port."""
    shape = ",".join(re.findall(r"<dim>(\d+)</dim>", layer[0]))
    data = f'{layer[1]}    <data element_type="f32" shape="{shape}"/>\n'
    first_line, rest = layer[0].split("\n", 1)
    return f"{first_line}\n{data}{rest}"
