"""What rounding leaves of sums that cancel is no difference; more than it can leave is one.

The truth is a sum in f64 beside one in f32, both of numpy's, in orders that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.compare.comparison import RunComparison, compare_with
from stepper.compare.references.recorded import ArchiveReference
from stepper.tensors.tolerances import Tolerances
from tests.models import Graph, Value
from tests.tables import each_row

ROWS, TERMS = 16, 256
DRAWN = np.random.default_rng(11)
HALF = DRAWN.uniform(-1000, 1000, (ROWS, TERMS))
X = np.concatenate([HALF, -HALF * (1 + 1e-7)], axis=1).astype(np.float32)
"""Rows that sum to nearly nothing."""

W = np.tile(DRAWN.uniform(0.5, 1, (TERMS, 1)), (2, 4)).astype(np.float32)
KERNEL = DRAWN.normal(size=(2, 3, 3, 3)).astype(np.float32)
DETECTORS = (KERNEL - KERNEL.mean(axis=(1, 2, 3), keepdims=True)).astype(np.float32)
"""Kernels whose weights sum to nothing, as edge detectors have them."""

IMAGE = np.full((1, 3, 8, 8), 4000, np.float32) + DRAWN.uniform(0, 1e-3, (1, 3, 8, 8)).astype(np.float32)


def product(graph: Graph, x: Value) -> Value:
    return graph.apply("MatMul", x, graph.constant(W, name="weights"), dims=(ROWS, 4), name="summed")


def einsum(graph: Graph, x: Value) -> Value:
    weights = graph.constant(W, name="weights")
    return graph.apply("Einsum", x, weights, dims=(ROWS, 4), version="opset7", name="summed", equation="ij,jk->ik")


def reduced(graph: Graph, x: Value) -> Value:
    axes = graph.constant([1], np.int64, "axes")
    return graph.apply("ReduceSum", x, axes, dims=(ROWS,), name="summed", keep_dims="false")


def running(graph: Graph, x: Value) -> Value:
    return graph.apply("CumSum", x, graph.constant(1, np.int64, "axis"), version="opset3", name="summed")


def convolved(graph: Graph, x: Value) -> Value:
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
    weights = graph.constant(DETECTORS, name="weights")
    return graph.apply("Convolution", x, weights, dims=(1, 2, 6, 6), name="summed", **window)


def windows_in_f64(x: Any) -> Any:
    seen = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
    return np.einsum("bchwij,ocij->bohw", seen, DETECTORS.astype(np.float64))


CASES: dict[str, tuple[Callable[[Graph, Value], Value], Any, Callable[[Any], Any]]] = {
    "MatMul": (product, X, lambda x: x.astype(np.float64) @ W.astype(np.float64)),
    "Einsum": (einsum, X, lambda x: x.astype(np.float64) @ W.astype(np.float64)),
    "ReduceSum": (reduced, X, lambda x: x.astype(np.float64).sum(1)),
    "CumSum": (running, X, lambda x: x.astype(np.float64).cumsum(1)),
    "Convolution": (convolved, IMAGE, windows_in_f64),
}


def compared(
    folder: Path, make: Callable[[Graph, Value], Value], x: Any, theirs: Any, tolerances: Tolerances | None = None
) -> RunComparison:
    """The operation beside values from elsewhere."""
    graph = Graph()
    graph.result(make(graph, graph.parameter("x", "f32", x.shape)), "y")
    np.savez(folder / "values.npz", summed=theirs.astype(np.float32), out_0=theirs.astype(np.float32))
    model = graph.read(folder)
    inputs = stepper.bind_inputs(model, {"x": x})
    compiled = stepper.compile_model(model)
    reference = ArchiveReference(folder / "values.npz", compiled)
    return compare_with(stepper.Machine(compiled, inputs), reference, tolerances)


@each_row("operation", CASES)
def test_what_rounding_leaves_of_a_sum_that_cancels_is_no_difference(operation: str, tmp_path: Path) -> None:
    make, x, truth = CASES[operation]
    theirs = truth(x).astype(np.float32)
    assert compared(tmp_path, make, x, theirs, Tolerances(False, 1e-4, 1e-5)).differs, "the case cancels"
    assert not compared(tmp_path, make, x, theirs).differs


@each_row("operation", CASES)
def test_more_than_rounding_can_leave_of_a_sum_is_a_difference(operation: str, tmp_path: Path) -> None:
    make, x, truth = CASES[operation]
    theirs = truth(x).astype(np.float32)
    largest = TERMS * 2 * 1000.0 if operation != "Convolution" else float(np.abs(DETECTORS).sum((1, 2, 3)).max() * 4001)
    theirs.reshape(-1)[3] += np.float32(1e-4 * largest)  # 1,700 units of roundoff of the largest sum of magnitudes
    verdict = compared(tmp_path, make, x, theirs).verdict
    assert verdict is not None and verdict.layer is not None and verdict.layer.name == "summed"


def test_a_cell_of_large_weights_may_be_off_by_what_their_sum_rounds_to(tmp_path: Path) -> None:
    size = 256
    weights = DRAWN.choice([-300.0, 300.0], (4 * size, size)).astype(np.float32)
    x = DRAWN.choice([-1.0, 1.0], (1, size)).astype(np.float32) + DRAWN.uniform(0, 1e-4, (1, size)).astype(np.float32)
    gates = np.clip(x.astype(np.float64) @ weights.T.astype(np.float64), -700, 700)  # where exp is finite
    _forget, enter, candidate, out = (gates[:, k * size : (k + 1) * size] for k in range(4))
    cell = np.tanh(candidate) / (1 + np.exp(-enter))
    theirs = (np.tanh(cell) / (1 + np.exp(-out))).astype(np.float32)

    def make(graph: Graph, value: Value) -> Value:
        zero = graph.constant(np.zeros((1, size), np.float32), name="zero")
        w, r = graph.constant(weights, name="w"), graph.constant(np.zeros((4 * size, size), np.float32), name="r")
        b = graph.constant(np.zeros(4 * size, np.float32), name="b")
        settings = {"hidden_size": size, "version": "opset4", "name": "summed", "outputs": 2, "dims": (1, size)}
        return graph.apply("LSTMCell", value, zero, zero, w, r, b, **settings)

    assert compared(tmp_path, make, x, theirs, Tolerances(False, 1e-5, 1e-6)).differs, "the sums are large"
    assert not compared(tmp_path, make, x, theirs).differs
    assert compared(tmp_path, make, x, theirs + np.float32(0.02)).differs


@each_row(("moved", "differs"), [(1, False), (2, True)])
def test_a_value_between_two_levels_may_become_either(moved: int, differs: bool, tmp_path: Path) -> None:
    x, step = np.linspace(-1, 1, 33).astype(np.float32), 2 / 16

    def make(graph: Graph, value: Value) -> Value:
        ends = [graph.constant(np.float32(end), name=f"end{k}") for k, end in enumerate((-1, 1, -1, 1))]
        return graph.apply("FakeQuantize", value, *ends, levels=17, name="summed")

    upper = np.floor((x.astype(np.float64) + 1) / step + 0.5) * step - 1  # every other value is a tie: half up here
    assert not compared(tmp_path, make, x, np.round((x + 1) / step) * step - 1).observations.findings
    found = compared(tmp_path, make, x, upper + (moved - 1) * step * (np.arange(33) == 5)).observations.findings
    assert bool(found) is differs


@each_row(("off", "differs"), [(0.0, False), (0.05, True)])
def test_an_output_may_be_off_by_what_the_arithmetic_before_it_rounds(
    off: float, differs: bool, tmp_path: Path
) -> None:
    """(x - a b) / s, where x is nearly a b: what the product rounds to is nearly all that is left."""
    a, b, spread = DRAWN.uniform(900, 1100, (3, 64)).astype(np.float32)
    spread = (spread / 4000).astype(np.float32)
    exact = a.astype(np.float64) * b.astype(np.float64)
    x = exact.astype(np.float32)
    graph = Graph()
    product = graph.apply("Multiply", graph.parameter("a", "f32", (64,)), graph.constant(b, name="b"), name="product")
    rest = graph.apply("Subtract", graph.constant(x, name="x"), product, name="rest")
    graph.result(graph.apply("Divide", rest, graph.constant(spread, name="spread"), name="y"), "out")
    np.savez(tmp_path / "values.npz", out_0=((x - exact) / spread + off * 100).astype(np.float32))
    model = graph.read(tmp_path)
    inputs = stepper.bind_inputs(model, {"a": a})
    compiled = stepper.compile_model(model)
    reference = ArchiveReference(tmp_path / "values.npz", compiled)
    found = compare_with(stepper.Machine(compiled, inputs), reference)
    assert found.observations.outputs[0].measure is not None and found.observations.outputs[0].measure.absolute > 0.05
    assert found.differs is differs
