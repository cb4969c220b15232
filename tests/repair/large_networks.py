"""Large networks with one mistake: a body of 1,000 operations, and 3,000 operations around a loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tests.models import Graph, Value, carried, joined, last, sliced

BATCH, UNITS, STEPS = 2, 6, 6
OPERATIONS_OF_BLOCK: Final = 20
MISTAKES: Final[Mapping[str, Mapping[str, Any]]] = {
    "operation": {"residual": "Subtract"},
    "activation": {"gate": "Tanh"},
    "operands": {"is_exchanged": True},
    "transpose": {"transposes": False},
    "constant": {"share": 5.0},
    "axis": {"axis": 0},
    "operand": {"takes_gated": False},
    "missing": {"has_root": False},
}
"""What one block does otherwise."""


def body_of(blocks: int, mistake: str = "", at: int = 0) -> Graph:
    """A Loop over rows of x whose body has 20 operations a block and carries one state."""
    net = Graph()
    body = net.body()
    x = net.parameter("x", dims=(STEPS, BATCH, UNITS))
    zeros = net.constant(np.zeros((BATCH, UNITS), np.float32), name="zeros")
    piece, old = body.parameter("piece", dims=(1, BATCH, UNITS)), body.parameter("old", dims=(BATCH, UNITS))
    row = body.apply("Squeeze", piece, body.constant([0], np.int64), dims=(BATCH, UNITS), name="row")
    value = body.apply("Add", row, old, name="joined", auto_broadcast="numpy")
    value = _blocks(body, value, blocks, mistake, at)
    state = body.apply("Tanh", value, name="state")
    out = body.apply("Unsqueeze", state, body.constant([0], np.int64), dims=(1, BATCH, UNITS), name="out")
    back, made = body.result(state, "next"), body.result(out, "piece_out")
    outputs = net.loop(
        "rows", body, STEPS, True, [sliced(x, piece), carried(zeros, old, back)], [joined(made), last(back)]
    )
    net.result(outputs[0], "all")
    net.result(outputs[1], "end")
    return net


def network_of(blocks: int, mistake: str = "", at: int = 0) -> Graph:
    """A network of 20 operations a block whose last value goes into a small Loop."""
    net = Graph()
    x = net.parameter("x", dims=(BATCH, UNITS))
    value = _blocks(net, x, blocks, mistake, at)
    body = net.body()
    old = body.parameter("old", dims=(BATCH, UNITS))
    new = body.apply("Tanh", body.apply("Add", old, old, name="double", auto_broadcast="numpy"), name="new")
    back = body.result(new, "next")
    outputs = net.loop("clock", body, 3, True, [carried(value, old, back)], [last(back)])
    net.result(outputs[0], "end")
    return net


def _blocks(net: Graph, value: Value, count: int, mistake: str, at: int) -> Value:
    random = np.random.default_rng(3)
    for index in range(count):
        value = _block(net, value, f"b{index}", random, **(MISTAKES[mistake] if mistake and index == at else {}))
    return value


def _block(
    net: Graph,
    value: Value,
    name: str,
    random: np.random.Generator,
    residual: str = "Add",
    gate: str = "Sigmoid",
    is_exchanged: bool = False,
    transposes: bool = True,
    share: float = 0.5,
    axis: int = 1,
    takes_gated: bool = True,
    has_root: bool = True,
) -> Value:
    numpy = {"auto_broadcast": "numpy"}
    column = (BATCH, 1) if axis else (1, UNITS)
    axes = net.constant([axis], np.int64, name=f"{name}/axes")
    mean = net.apply("ReduceMean", value, axes, dims=column, name=f"{name}/mean", keep_dims="true")
    operands = (mean, value) if is_exchanged else (value, mean)
    centred = net.apply("Subtract", *operands, dims=(BATCH, UNITS), name=f"{name}/centred", **numpy)
    square = net.apply("Multiply", centred, centred, name=f"{name}/square", **numpy)
    last_axis = net.constant([1], np.int64, name=f"{name}/last_axis")
    variance = net.apply("ReduceMean", square, last_axis, dims=(BATCH, 1), name=f"{name}/variance", keep_dims="true")
    eps = net.constant(np.float32(1e-5), name=f"{name}/eps")
    bounded = net.apply("Add", variance, eps, name=f"{name}/bounded", **numpy)
    root = net.apply("Sqrt", bounded, name=f"{name}/root") if has_root else bounded
    normal = net.apply("Divide", centred, root, name=f"{name}/normal", **numpy)
    scaled = net.apply("Multiply", normal, _row(net, random, 1.0, f"{name}/gamma"), name=f"{name}/scaled", **numpy)
    shifted = net.apply("Add", scaled, _row(net, random, 0.0, f"{name}/beta"), name=f"{name}/shifted", **numpy)
    inner = _product(net, shifted, random, f"{name}/inner", transposes=transposes)
    biased = net.apply("Add", inner, _row(net, random, 0.0, f"{name}/bias"), name=f"{name}/biased", **numpy)
    active = net.apply("Tanh", biased, name=f"{name}/active")
    outer = _product(net, active, random, f"{name}/outer")
    opened = net.apply(gate, _product(net, shifted, random, f"{name}/gates"), name=f"{name}/gate")
    gated = net.apply("Multiply", outer, opened, name=f"{name}/gated", **numpy)
    kept = net.apply("Subtract", value, centred, name=f"{name}/kept", **numpy)
    part = net.constant(np.float32(share), name=f"{name}/share")
    taken = net.apply("Multiply", gated if takes_gated else outer, part, name=f"{name}/taken", **numpy)
    mixed = net.apply(residual, value, taken, name=f"{name}/mixed", **numpy)
    return net.apply("Subtract", mixed, kept, name=f"{name}/out", **numpy)


def _row(net: Graph, random: np.random.Generator, around: float, name: str) -> Value:
    return net.constant(random.normal(around, 0.2, UNITS).astype(np.float32), name=name)


def _product(net: Graph, value: Value, random: np.random.Generator, name: str, *, transposes: bool = True) -> Value:
    weights = net.constant(random.normal(0, 0.5, (UNITS, UNITS)).astype(np.float32), name=f"{name}/weights")
    flags = {"transpose_a": "false", "transpose_b": str(transposes).lower()}
    return net.apply("MatMul", value, weights, dims=(BATCH, UNITS), name=name, **flags)
