"""Loops whose bodies are as long as one likes, for tests of speed, of pausing and of what is too large to be drawn."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np

from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, joined, last


def wide_loop(operations: int, iterations: int, width: int = 16) -> Debugger:
    """A Loop of so many iterations, its body a random net of so many operations on f32[1,width]."""
    rng = random.Random(operations)
    net = Graph()
    body = net.body()
    h, x = (body.parameter(name, "f32", (1, width)) for name in ("h", "x"))
    pool = [h, x]
    for index in range(operations - 1):
        kind = rng.choice(["Add", "Multiply", "Tanh", "Sigmoid"])
        inputs = [rng.choice(pool[-6:]) for _ in range(2 if kind in ("Add", "Multiply") else 1)]
        pool.append(body.apply(kind, *inputs, name=f"block_{index // 10}/{kind.lower()}_{index}"))
    following = body.result(body.apply("Tanh", pool[-1], name="h_next"), "h_out")
    outer = [net.parameter(name, "f32", (1, width)) for name in ("h0", "x0")]
    entries = [carried(outer[0], h, following), carried(outer[1], x, following)]
    outputs = net.loop("wide", body, iterations, True, entries, [last(following), joined(following)])
    for index, output in enumerate(outputs):
        net.result(output, f"out_{index}")
    return _opened(net, width)


def chain_loop(operations: int, iterations: int = 20, width: int = 4) -> Debugger:
    """A Loop of one long chain, `link_N` after `link_N`, nothing of it dead: every tenth adds `hub`, the first one.

    `h` is carried from the end of the chain to its beginning, `turn` from an operation to itself.
    """
    net = Graph()
    body = net.body()
    h, turn = (body.parameter(name, "f32", (1, width)) for name in ("h", "turn"))
    turned = body.result(body.apply("Tanh", turn, name="turned"), "turn_out")
    link = hub = body.apply("Sigmoid", h, name="hub")
    for index in range(1, operations - 2):
        inputs = (link, hub) if index % 10 == 0 else (link,)
        link = body.apply("Add" if len(inputs) > 1 else "Tanh", *inputs, name=f"link_{index}")
    following = body.result(body.apply("Tanh", link, name="h_next"), "h_out")
    outer = [net.parameter(name, "f32", (1, width)) for name in ("h0", "turn0")]
    entries = [carried(outer[0], h, following), carried(outer[1], turn, turned)]
    outputs = net.loop("chain", body, iterations, True, entries, [last(following), last(turned)])
    for index, output in enumerate(outputs):
        net.result(output, f"out_{index}")
    return _opened(net, width)


def _opened(net: Graph, width: int) -> Debugger:
    with tempfile.TemporaryDirectory() as folder:
        model = net.read(Path(folder))
        values = np.linspace(-1, 1, width, dtype=np.float32).reshape(1, width)
        return Debugger(model, {0: values, 1: values * 0.5})
