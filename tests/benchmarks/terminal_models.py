"""What the terminal benchmark looks at: a wide body, a long loop, and a loop with a large tensor in its scope."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import stepper
from stepper.debug.debugger import Debugger
from tests.benchmarks import models
from tests.models import Graph, carried, invariant, joined, last

SAMPLE = Path(__file__).parents[2] / "sample_models" / "date_normaliser"


def sample() -> Debugger:
    """The date normaliser in iteration 5 of its decoder."""
    debugger = Debugger(stepper.read_model(SAMPLE / "model.xml"), dict(np.load(SAMPLE / "inputs.npz")))
    debugger.run_to("`prim::Loop/Loop`@5")
    return debugger


def long_loop(iterations: int, at: int) -> Debugger:
    """Newton's root, as many iterations as one likes of six operations each; stopped at one of them."""
    with tempfile.TemporaryDirectory() as folder:
        model = stepper.read_model(models.newton_model(Path(folder), iterations))
    one = np.ones(1, np.float32)
    debugger = Debugger(model, {"number": 2 * one, "guess": one})
    loop = next(layer.name for layer in model.graph.layers if layer.is_loop)
    debugger.run_to(f"`{loop}`@{at}")
    return debugger


def large_tensor(elements: int, iterations: int = 100) -> Debugger:
    """Each iteration takes a row of a table of so many numbers and adds it to what is carried."""
    rows, width = max(elements // 1024, 1), 1024
    net = Graph()
    body = net.body()
    table, total = body.parameter("table", "f32", (rows, width)), body.parameter("total", "f32", (1, width))
    step = body.parameter("step", "i64", ())
    row = body.apply("Gather", table, step, body.constant(0, np.int64), dims=(width,), version="opset8", name="row")
    added = body.apply("Add", total, row, name="added")
    doubled = body.apply("Multiply", added, body.constant(2, np.float32), name="doubled")
    following = body.result(body.apply("Tanh", doubled, name="bounded"), "total_out")
    outer_table, outer_total = net.parameter("table", "f32", (rows, width)), net.parameter("start", "f32", (1, width))
    entries = [invariant(outer_table, table), carried(outer_total, total, following)]
    outputs = net.loop("loop", body, iterations, True, entries, [last(following), joined(following)], iteration=step)
    for index, output in enumerate(outputs):
        net.result(output, f"out_{index}")
    with tempfile.TemporaryDirectory() as folder:
        model = net.read(Path(folder))
    zeros = np.zeros((rows, width), np.float32)  # pages that nobody writes to take no memory
    debugger = Debugger(model, {"table": zeros, "start": np.ones((1, width), np.float32)})
    debugger.run_to("loop@5")
    return debugger


def middle_of(debugger: Debugger, iteration: int = 5) -> Debugger:
    """A loop called wide, some iterations on."""
    debugger.run_to(f"wide@{iteration}")
    return debugger
