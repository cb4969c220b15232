"""The first iteration that another runtime computes otherwise is found; here that runtime is our own, with a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.compare.rerun import LoopBisection, bisect, shared_constants, unused_slices
from stepper.element_types import Array
from stepper.engine.frames import Every
from stepper.openvino.runtime import NativeText
from stepper.tensors.tolerances import Tolerances
from tests.models import Graph, carried, joined, last, sliced
from tests.tables import each_row

STEPS = 20
ROWS = np.random.default_rng(1).uniform(0.5, 1, (STEPS, 2)).astype(np.float32)


def accumulating(kind: str) -> Graph:
    """A state that rows are added to (of a Loop: its own number), given out at the end."""
    graph = Graph()
    x = graph.parameter("x", "f32", (STEPS, 2))
    start = graph.constant(np.zeros((1, 2), np.float32), name="start")
    body = graph.body()
    row, state = body.parameter("row", "f32", (1, 2)), body.parameter("state", "f32", (1, 2))
    result = body.result(body.apply("Add", state, row, name="sum"), "sum_out")
    inputs, outputs = [sliced(x, row), carried(start, state, result)], [last(result)]
    if kind == "Loop":
        found = graph.loop("rounds", body, STEPS, True, inputs, outputs)
    else:
        found = graph.tensor_iterator("rounds", body, inputs, outputs)
    axes = graph.constant([0], np.int64, "axes")
    graph.result(graph.apply("Squeeze", found[0], axes, dims=(2,), name="behind"), "y")
    return graph


class Faulty:
    """A runtime whose loop adds `error(iterations)` to what it gives out."""

    def __init__(self, folder: Path, error: Any) -> None:
        self.folder, self.error, self.runs = folder, error, 0

    def begin_again(self, text: NativeText | None = None, properties: Mapping[str, str] | None = None) -> Any:
        raise NotImplementedError

    def run_changed(self, text: NativeText, inputs: Sequence[Array]) -> Sequence[Array]:
        self.runs += 1
        path = self.folder / f"run{self.runs}.xml"
        path.write_text(text.text)
        assert text.weights is not None
        path.with_suffix(".bin").write_bytes(text.weights.tobytes())
        model = stepper.read_model(path)
        run = stepper.Machine(stepper.compile_model(model), stepper.bind_inputs(model, dict(enumerate(inputs))))
        iterations = sum(event.kind.name == "ITERATION" for event in run.run(Every.ITERATION))
        assert run.outputs is not None
        return [output + np.float32(self.error(iterations)) for output in run.outputs]


def found_in(folder: Path, kind: str, error: Any) -> tuple[LoopBisection | None, Faulty]:
    model = accumulating(kind).read(folder)
    (loop,) = (layer for layer in model.graph.layers if layer.is_loop)
    reference = Faulty(folder, error)
    compiled = stepper.compile_model(model)
    return bisect(compiled, [ROWS], loop, STEPS, reference, Tolerances(exact=False)), reference


@each_row("kind", ["Loop", "TensorIterator"])
@each_row("wrong", [0, 6, 12, STEPS - 1])
def test_the_first_wrong_iteration_is_found_in_few_runs(kind: str, wrong: int, tmp_path: Path) -> None:
    found, reference = found_in(tmp_path, kind, lambda iterations: float(iterations > wrong))
    assert found is not None and (found.iteration, found.is_gradual) == (wrong, False)
    assert found.runs == reference.runs <= 6


@each_row("kind", ["Loop", "TensorIterator"])
def test_a_distance_that_grows_step_by_step_blames_no_iteration(kind: str, tmp_path: Path) -> None:
    found, _reference = found_in(tmp_path, kind, lambda iterations: 1e-6 * 2**iterations)
    assert found is not None and found.is_gradual and 0 < found.before < found.after


def test_what_agrees_in_all_iterations_has_none(tmp_path: Path) -> None:
    assert found_in(tmp_path, "Loop", lambda _iterations: 0.0)[0] is None


@each_row(("uses", "kind"), [(False, "TensorIterator"), (True, "TensorIterator"), (False, "Loop")])
def test_sliced_inputs_that_no_operation_reads_are_seen_in_the_file(uses: bool, kind: str, tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (STEPS, 2))
    body = graph.body()
    row, state = body.parameter("row", "f32", (1, 2)), body.parameter("state", "f32", (1, 2))
    result = body.result(body.apply("Add", state, row if uses else state, name="sum"), "sum_out")
    inputs = [sliced(x, row), carried(graph.constant(ROWS[:1], name="start"), state, result)]
    outputs = [joined(result)]
    loop = (
        graph.loop("l", body, STEPS, True, inputs, outputs)
        if kind == "Loop"
        else graph.tensor_iterator("l", body, inputs, outputs)
    )
    graph.result(loop[0], "y")
    model = graph.read(tmp_path)
    assert [layer.name for layer in unused_slices(model.graph)] == ([] if uses else ["l"])


@each_row(("shape", "transposed", "found"), [((4, 4), True, True), ((4, 4), False, False), ((4, 5), True, False)])
def test_products_that_share_a_square_constant_are_seen_in_the_file(
    shape: tuple[int, int], transposed: bool, found: bool, tmp_path: Path
) -> None:
    graph = Graph()
    weights = graph.constant(np.ones(shape, np.float32), name="weights")
    inner, outer = shape
    a = graph.parameter("a", "f32", (2, inner))
    b = graph.parameter("b", "f32", (2, outer if transposed else inner))
    graph.result(graph.apply("MatMul", a, weights, dims=(2, outer), name="one"), "y")
    flag = str(transposed).lower()
    other = graph.apply("MatMul", b, weights, dims=(2, inner if transposed else outer), name="other", transpose_b=flag)
    graph.result(other, "z")
    names = [[layer.name for layer in layers] for layers in shared_constants(graph.read(tmp_path).graph)]
    assert names == ([["one", "other", "weights"]] if found else [])
