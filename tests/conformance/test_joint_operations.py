"""Operations that OpenVINO computes together, each alone: how often it compiles, and that a fault keeps its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openvino")

import stepper
from stepper.compare.comparison import RunComparison, compare_with
from stepper.compare.references.openvino import OpenVINOReference
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.ir.model import Layer, Model, Source
from stepper.openvino.peer import OpenVINOPeer
from stepper.openvino.runtime import Runtime
from stepper.ops import registry
from stepper.processes.process_messages import Reply
from stepper.processes.worker import ActProgress
from stepper.tensors.tolerances import Tolerance
from tests.compare.twins import UNITS, X, nested, recurrence
from tests.engine.nested_models import alternating
from tests.models import Graph, Side, Value, carried, invariant, joined, last, sliced

SAMPLES = Path(__file__).parents[2] / "sample_models"
TABLE = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 1.0, 2.5, 0.1]], np.float32)


class Counted(Runtime):
    """OpenVINO in this process, which counts what it compiles."""

    is_remote = False

    @cached_property
    def requests(self) -> list[Any]:
        """The models for which a request was made."""
        return []

    @property
    def compiled(self) -> int:
        """How much was compiled."""
        return len(self.requests)

    def for_size(self, _size: int) -> Counted:
        return self

    def beside_another(self) -> Counted:
        return self

    def request(self, model: Any) -> Any:
        self.requests.append(model)
        return super().request(model)


class Faulty:
    """Computes one layer by our kernel, and from its nth call on adds 1 to what it gives."""

    description = ""

    def __init__(self, name: str, first: int = 0) -> None:
        self._name, self._left = name, first

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        assert has_kernel
        return layer.name == self._name

    def bind(self, layer: Layer, _constants: Sequence[Any]) -> tuple[Callable[..., tuple[Any, ...]], str]:
        kernel = registry.find(layer.type, layer.definition or 0)
        assert kernel is not None
        function = kernel.bind(layer.attributes)

        def compute(*inputs: Any) -> tuple[Any, ...]:
            self._left -= 1
            return (np.asarray(function(*inputs)) + np.float32(self._left < 0),)

        return compute, "a faulty kernel"

    def check(self, model: Model) -> None:
        pass


def compared(model: Model, values: Mapping[str | int, Any], **options: Any) -> tuple[RunComparison, int]:
    runtime, compiled = Counted(), stepper.compile_model(model, **options)
    inputs: Sequence[Array] = stepper.bind_inputs(model, values)
    found = compare_with(Machine(compiled, inputs), OpenVINOReference(OpenVINOPeer(model, runtime), inputs, "OpenVINO"))
    return found, runtime.compiled


def growing() -> Graph:
    """A state that becomes longer by one row in each iteration, declared with the one row that it begins with."""
    graph, row = Graph(), (1, 2)
    start = graph.parameter("start", "f32", row)
    body = graph.body()
    rows, new = body.parameter("rows", "f32", row), body.parameter("new", "f32", row)
    kept = body.result(body.apply("Concat", rows, new, name="longer", axis=0), "kept")
    graph.result(
        graph.loop("collect", body, 5, True, [carried(start, rows, kept), invariant(start, new)], [last(kept)])[0]
    )
    return graph


def swish() -> Graph:
    """A product with a bias and a swish, which OpenVINO computes as one operation where it may."""
    graph, row = Graph(), (1, UNITS)
    weights = np.random.default_rng(0).uniform(-1, 1, (UNITS, UNITS)).astype(np.float32)
    product = graph.apply("MatMul", graph.parameter("x", "f32", row), graph.constant(weights), name="product")
    biased = graph.apply("Add", product, graph.constant(np.full(row, 0.25, np.float32)), name="biased")
    gate = graph.apply("Sigmoid", biased, name="gate")
    graph.result(graph.apply("Multiply", biased, gate, name="swished"))
    return graph


def test_a_model_is_compiled_four_times_however_many_operations_its_body_has() -> None:
    model, inputs = stepper.read_model(SAMPLES / "for_loop" / "model.xml"), SAMPLES / "for_loop" / "inputs.npz"
    with np.load(inputs) as values:
        found, compiled = compared(model, dict(values))
    assert not found.differs and found.observations.compared == 80
    assert compiled == 4, "as it is, with iterations counted, the body, and all of the body's operations"


def pooled(*, indices: bool) -> Graph:
    """The largest of each window, and where it lies, which the model gives too or nobody reads."""
    graph = Graph()
    x = graph.parameter("x", "f32", (1, 2, 4, 4))
    attributes = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2"}
    attributes |= {"rounding_type": "floor", "auto_pad": "explicit", "index_element_type": "i32", "axis": "0"}
    largest = graph.apply("MaxPool", x, dims=(1, 2, 2, 2), version="opset8", name="largest", outputs=2, **attributes)
    graph.result(largest)
    if indices:
        graph.result(
            graph.apply("Convert", replace(largest, port=largest.port + 1), name="as_floats", destination_type="f32"),
            "places",
        )
    return graph


@pytest.mark.parametrize("indices", [False, True])
def test_outputs_that_nobody_reads_are_not_asked_for(tmp_path: Path, indices: bool) -> None:
    """OpenVINO would compute a MaxPool with its indices by a kernel that the model does not have."""
    model, x = pooled(indices=indices).read(tmp_path), np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4) % 7
    parameter, layer = model.graph.layers[:2]
    joint = OpenVINOPeer(model, Counted()).together(model.graph, [layer], {Source(parameter.id, 0): x})
    assert [source.output for source in joint.outputs] == [0, 1][: 1 + indices]
    assert np.array_equal(joint.begin(x)()[0], x.reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5)))
    found, _compiled = compared(model, {"x": x})
    assert not found.differs and found.observations.compared == (3 if indices else 1)


def over_all_axes(x: Value, graph: Graph) -> Value:
    """Reduce as a converter writes it where no axes are given: over as many as the input has."""
    shape = graph.apply("ShapeOf", x, dims=(2,), type="i64", version="opset3", output_type="i64")
    rank = graph.apply("ShapeOf", shape, dims=(1,), type="i64", version="opset3", output_type="i64")
    count = graph.apply("Squeeze", rank, dims=(), type="i64", name="rank")
    numbers = [graph.constant(np.array(number, np.int64)) for number in (0, 1)]
    axes = graph.apply("Range", numbers[0], count, numbers[1], dims=(-1,), type="i64", version="opset4",
                       name="axes", output_type="i64")  # fmt: skip
    return graph.apply("ReduceMax", x, axes, dims=(), name="largest", keep_dims="false")


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_reduction_over_all_axes_joins_the_others(tmp_path: Path, in_a_loop: bool) -> None:
    """The axes follow from the rank alone, without which OpenVINO refuses the operation, and all that came with it."""
    graph, dims = Graph(), (-1, 3)
    x = graph.parameter("x", "f32", dims)
    inner = graph.body() if in_a_loop else graph
    row = inner.parameter("row", "f32", dims) if in_a_loop else x
    lowered = inner.result(inner.apply("Subtract", row, over_all_axes(row, inner), dims=dims, name="lowered"), "low")
    if in_a_loop:
        graph.result(graph.loop("each", inner, len(X), True, [sliced(x, row)], [joined(lowered)])[0])
    found, compiled = compared(graph.read(tmp_path), {"x": X})
    assert not found.differs and found.observations.compared == (8 * len(X) if in_a_loop else 6)
    assert compiled == (4 if in_a_loop else 2), "the model, its operations, and the body as a whole and counted"


class Remote(OpenVINOPeer):
    """OpenVINO in its own process; notes the bytes that come from there."""

    def __init__(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(model)
        self.received = 0
        take = ActProgress.take

        def taken(progress: ActProgress, reply: Reply, arrays: list[Array]) -> None:
            self.received += sum(array.nbytes for array in arrays)
            take(progress, reply, arrays)

        monkeypatch.setattr(ActProgress, "take", taken)


CURVES: Mapping[str, Callable[[Array], Array]] = {"Sin": np.sin, "Cos": np.cos, "Tanh": np.tanh}


@pytest.mark.parametrize("most", [1, 2, 32])
@pytest.mark.parametrize("wrong", [(), ("Cos",), ("Sin", "Tanh")])
def test_only_what_differs_from_ours_comes_back(
    wrong: tuple[str, ...], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepper.openvino.peer._MOST_JOINED", most)
    graph = Graph()
    x = graph.parameter("x", "f32", X.shape)
    for name in CURVES:
        graph.result(graph.apply(name, x, name=name), f"of {name}")
    model = graph.read(tmp_path)
    layers = [layer for layer in model.graph.layers if layer.type in CURVES]
    ours = {Source(layer.id, 0): CURVES[layer.type](X) + np.float32(layer.type in wrong) for layer in layers}
    peer, judge = Remote(model, monkeypatch), dict.fromkeys(ours, Tolerance(1e-4, 1e-5))
    joint = peer.together(model.graph, layers, {Source(model.graph.parameters[0].id, 0): X}, judge=judge)
    assert set(joint.compared) == set(ours)
    for layer, value in zip(layers, joint.begin(X, *[ours[output] for output in joint.compared])(), strict=True):
        if layer.type in wrong:
            assert value is not None
            np.testing.assert_allclose(value, CURVES[layer.type](X), rtol=1e-5, atol=1e-6)
        else:
            assert value is None
    assert peer.received == len(CURVES) + len(wrong) * X.nbytes, "a boolean each, and these"


def test_a_growing_state_is_compiled_as_often_for_many_iterations_as_for_few() -> None:
    counts = []
    for iterations in (5, 30):
        model = stepper.read_model(SAMPLES / "growing_tensor" / "model.xml")
        found, compiled = compared(model, {"start": np.array([0, 1]), "count": np.array(iterations)})
        assert not found.differs and found.observations.compared == 10 * iterations
        counts.append(compiled)
    assert counts == [4, 4]


def test_a_size_that_changes_is_open_from_the_second_one_on(tmp_path: Path) -> None:
    model, runtime = growing().read(tmp_path), Counted()
    body = model.graph.layers[-2].bodies[0].graph
    function, new = OpenVINOPeer(model, runtime).body(body), np.array([[1, 2]], np.float32)
    for size in range(1, 20):
        rows = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
        found = function(rows, new)
        assert any(np.array_equal(value, np.concatenate([rows, new])) for value in found)
    assert runtime.compiled == 2


def from_nothing(declared: int) -> Graph:
    """Rows that are collected, of which there is none at first; and in each iteration what is made of them."""
    graph, row = Graph(), (1, 2)
    start, new = graph.parameter("start", "f32", (declared, 2)), graph.parameter("new", "f32", row)
    body = graph.body()
    rows, one = body.parameter("rows", "f32", (declared, 2)), body.parameter("one", "f32", row)
    axis = body.constant([0], np.int64, "axis")
    total = body.apply("ReduceSum", rows, axis, keep_dims="true", dims=row, name="total")
    largest = body.apply("ReduceMax", rows, axis, keep_dims="true", dims=row, name="largest")
    bent = body.apply("Tanh", rows, dims=(-1, 2), name="bent")
    product = body.apply("MatMul", bent, rows, transpose_a="true", dims=(2, 2), name="product")
    following = body.apply("Add", body.apply("MatMul", one, product, name="mixed"), total, dims=row, name="following")
    kept = body.result(body.apply("Concat", rows, following, name="longer", axis=0, dims=(-1, 2)), "kept")
    others = [body.result(value, f"out_{index}") for index, value in enumerate((largest, product))]
    outputs = [last(kept), *(last(other) for other in others)]
    for value in graph.loop("collect", body, 6, True, [carried(start, rows, kept), invariant(new, one)], outputs):
        graph.result(value)
    return graph


@pytest.mark.parametrize("declared", [-1, 0])
def test_what_begins_empty_is_computed_with_the_others_from_the_first_iteration_on(
    declared: int, tmp_path: Path
) -> None:
    model = from_nothing(declared).read(tmp_path)
    found, compiled = compared(model, {0: np.empty((0, 2), np.float32), 1: np.float32([[0.5, -0.25]])})
    assert not found.differs and compiled <= (4 if declared < 0 else 6)
    records = {record.layer.name: record.compared for record in found.observations.records.values()}
    names = ("total", "largest", "bent", "product", "mixed", "following", "longer")
    assert [records[name] for name in names] == [6] * len(names)


@pytest.mark.parametrize(
    ("graph", "value", "layer", "first", "iterations"),
    [
        (recurrence, X, "scaled", 3, [3]),
        (recurrence, X, "hU", 5, [5]),
        (nested, TABLE, "added", 6, [1, 2]),
        (nested, TABLE, "halved", 0, [1, 2]),
        (swish, X[:1], "gate", 0, []),
        (swish, X[:1], "biased", 0, []),
    ],
)
def test_a_fault_is_named_at_its_layer_and_iteration(
    graph: Callable[[], Graph], value: Array, layer: str, first: int, iterations: list[int], tmp_path: Path
) -> None:
    found, _compiled = compared(graph().read(tmp_path), {0: value}, partner=Faulty(layer, first))
    assert found.verdict is not None and found.verdict.layer is not None
    assert found.verdict.layer.name == layer
    assert [step.iteration for step in found.verdict.path if step.iteration is not None] == iterations
    records = found.observations.records.values()
    wrong = {record.layer.name for record in records if record.differing and record.layer.type != "Result"}
    assert wrong == {layer}, "nothing is carried from one operation to another"


def countdown_of(iterations: int) -> Graph:
    """A number of which a little is taken away in each iteration, and what a table says of each."""
    graph = Graph()
    start, table = graph.parameter("start", "f32", (1, 3)), graph.parameter("table", "f32", (iterations, 3))
    body = graph.body()
    state, row = body.parameter("state", "f32", (1, 3)), body.parameter("row", "f32", (1, 3))
    less = body.apply("Multiply", state, body.constant(np.float32([[0.999]])), name="less")
    kept = body.result(body.apply("Add", less, row, name="following"), "kept")
    ends = [carried(start, state, kept)], [last(kept), joined(kept)]
    graph.result(graph.loop("counted", body, iterations, True, [*ends[0], sliced(table, row)], ends[1])[0])
    return graph


TABLE_OF_MANY = np.random.default_rng(7).uniform(-1, 1, (10_000, 3)).astype(np.float32)


def test_many_iterations_cost_no_more_calls_than_blocks(tmp_path: Path) -> None:
    model = countdown_of(10_000).read(tmp_path)
    found, compiled = compared(model, {0: X[:1], 1: TABLE_OF_MANY})
    assert not found.differs and found.observations.compared == 4 * 10_000
    assert compiled == 4, "as it is, with iterations counted, the body, and its operations"
    (loop,) = found.observations.loops.values()
    ((ours, theirs, runs),) = loop.runs
    assert theirs is not None and runs == 1 and ours.iterations == theirs.iterations == 10_000


@pytest.mark.parametrize(("iterations", "first"), [(40, 0), (40, 1), (4200, 4095), (4200, 4096), (4200, 4199)])
def test_a_fault_in_a_block_is_named_at_its_iteration(iterations: int, first: int, tmp_path: Path) -> None:
    model = countdown_of(iterations).read(tmp_path)
    found, _ = compared(model, {0: X[:1], 1: TABLE_OF_MANY[:iterations]}, partner=Faulty("following", first))
    assert found.verdict is not None and found.verdict.layer is not None and found.verdict.layer.name == "following"
    assert found.verdict.iteration == first
    wrong = {record.layer.name: record.differing for record in found.observations.records.values() if record.differing}
    assert wrong["following"] == iterations - first, "each was compared, and those before agree"


@pytest.mark.parametrize("start", [6, 27, 871])
def test_iterations_with_branches_are_compiled_as_often_for_many_as_for_few(start: int, tmp_path: Path) -> None:
    found, compiled = compared(alternating().read(tmp_path), {0: np.array(start)})
    assert not found.differs and compiled == 6, "as for a loop without branches, and each branch"
    (loop,) = found.observations.loops.values()
    ((ours, theirs, _runs),) = loop.runs
    count = {6: 8, 27: 111, 871: 178}[start]
    assert theirs is not None and ours.iterations == theirs.iterations == count
    records = {record.layer.name: record.compared for record in found.observations.records.values()}
    assert records["even"] == records["not_one"] == records["half"] + records["upwards"] == count
    assert records["triple"] == records["upwards"]


def wandering() -> Graph:
    """The Collatz sequence after `start`; three floats get smaller where a number is even, and are bent where not."""
    graph, row = Graph(), (1, 3)
    start, floats = graph.parameter("start", "i64", ()), graph.parameter("floats", "f32", row)
    body = graph.body()
    number, state = body.parameter("number", "i64", ()), body.parameter("state", "f32", row)
    one, two = body.constant(1, np.int64), body.constant(2, np.int64)
    even = body.apply(
        "Equal", body.apply("FloorMod", number, two), body.constant(0, np.int64), type="boolean", name="even"
    )
    sides = []
    for is_even in (True, False):
        side = body.body()
        n, inner = side.parameter("n", "i64", ()), side.parameter("inner", "f32", row)
        if is_even:
            following = side.apply("Divide", n, side.constant(2, np.int64), name="half")
            value = side.apply("Multiply", inner, side.constant(np.float32([[0.9]])), name="smaller")
        else:
            triple = side.apply("Multiply", n, side.constant(3, np.int64), name="triple")
            following = side.apply("Add", triple, side.constant(1, np.int64), name="upwards")
            value = side.apply("Tanh", inner, name="bent")
        pairs = [(number, n), (state, inner)]
        sides.append(Side(side, pairs, [side.result(following, "n_out"), side.result(value, "v_out")]))
    chosen = body.branch("next", even, *sides)
    results = [body.result(value, f"out_{index}") for index, value in enumerate(chosen)]
    going = body.result(body.apply("NotEqual", chosen[0], one, type="boolean", name="not_one"), "going")
    entries = [carried(start, number, results[0]), carried(floats, state, results[1])]
    graph.result(graph.loop("until_one", body, -1, True, entries, [last(results[1])], going)[0])
    return graph


@pytest.mark.parametrize("first", [0, 7, 40])
def test_a_fault_in_a_branch_of_a_block_is_named_at_its_iteration(first: int, tmp_path: Path) -> None:
    numbers = [27]
    while numbers[-1] != 1:
        numbers.append(3 * numbers[-1] + 1 if numbers[-1] % 2 else numbers[-1] // 2)
    odd = [iteration for iteration, number in enumerate(numbers[:-1]) if number % 2]
    found, _compiled = compared(wandering().read(tmp_path), {0: np.array(27), 1: X[:1]}, partner=Faulty("bent", first))
    assert found.verdict is not None and found.verdict.layer is not None and found.verdict.layer.name == "bent"
    assert [(step.role, step.iteration) for step in found.verdict.path] == [("body", odd[first]), ("else_body", None)]
    records = {record.layer.name: record for record in found.observations.records.values()}
    assert (records["bent"].compared, records["bent"].differing) == (len(odd), len(odd) - first)
    assert records["smaller"].compared == len(numbers) - 1 - len(odd) and not records["smaller"].differing


def test_a_loop_that_never_begins_is_compared_too(tmp_path: Path) -> None:
    """Its count is a tensor without elements there."""
    graph = Graph()
    x, body = graph.parameter("x", "f32", (1, 3)), graph.body()
    state = body.parameter("state", "f32", (1, 3))
    result = body.result(body.apply("Negative", state, name="turned"), "out")
    graph.result(graph.loop("never", body, 5, False, [carried(x, state, result)], [last(result)])[0])
    found, _compiled = compared(graph.read(tmp_path), {0: X[:1]})
    ((ours, theirs, _runs),) = next(iter(found.observations.loops.values())).runs
    assert theirs is not None and ours.iterations == theirs.iterations == 0


def test_what_openvino_refuses_is_computed_alone_and_the_others_together(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (1, 3))
    numbers = graph.parameter("axes", "i64", (1,))
    for index in range(6):
        x = graph.apply("Tanh", x, name=f"bent_{index}")
    graph.result(graph.apply("ReduceMax", x, numbers, keep_dims="false", dims=(-1,), name="largest"))
    found, compiled = compared(graph.read(tmp_path), {0: X[:1], 1: np.array([1])})
    names = {record.layer.name for record in found.observations.records.values() if record.compared}
    assert {f"bent_{index}" for index in range(6)} <= names
    assert compiled <= 6, "one try for each division, and one for each operation that is refused"


@pytest.mark.parametrize("first", [None, 2])
def test_an_operation_in_a_branch_is_computed_with_those_around_it(first: int | None, tmp_path: Path) -> None:
    graph = Graph()
    x = graph.parameter("x", "f32", (1, 3))
    chosen = graph.apply(
        "Greater",
        graph.apply("ReduceSum", x, graph.constant([0, 1], np.int64), keep_dims="false", dims=(), name="sum"),
        graph.constant(np.float32(-100)),
        type="boolean",
        name="chosen",
    )
    sides = []
    for name in ("Tanh", "Abs"):
        side = graph.body()
        inner = side.parameter("inner", "f32", (1, 3))
        sides.append(Side(side, [(x, inner)], [side.result(side.apply(name, inner, name=name.lower()), "out")]))
    graph.result(graph.branch("choice", chosen, *sides)[0])
    options = {} if first is None else {"partner": Faulty("tanh")}
    found, compiled = compared(graph.read(tmp_path), {0: X[:1]}, **options)
    assert compiled == (3 if first is None else 4)
    assert found.differs is (first is not None)
    if found.verdict is not None:
        assert found.verdict.layer is not None and found.verdict.layer.name == "tanh"


@pytest.mark.parametrize(("count", "threads"), [(1, "1"), (2, "1"), (16, "8")])
def test_of_two_at_a_time_each_has_half_of_the_cores_but_small_ones_and_blocks_one_thread(
    count: int, threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepper.processes.starting.cores", lambda: count)
    x = np.zeros((600, 600), np.float32)
    graph = Graph()
    graph.result(graph.apply("Tanh", graph.parameter("x", "f32", x.shape), name="curve"), "y")
    model, runtimes = graph.read(tmp_path), list[Runtime]()
    function = OpenVINOPeer._function

    def noted(peer: OpenVINOPeer, text: Any, subject: str, seconds: Any, runtime: Runtime, *more: Any) -> Any:
        runtimes.append(runtime)
        return function(peer, text, subject, seconds, runtime, *more)

    monkeypatch.setattr(OpenVINOPeer, "_function", noted)
    layer, source, peer = model.graph.layers[1], Source(model.graph.parameters[0].id, 0), OpenVINOPeer(model)
    peer.together(model.graph, [layer], {source: x})
    peer.together(model.graph, [layer], {source: x[:1]})
    peer.together(model.graph, [layer], {source: x}, {source})
    large, small, block = (runtime.properties.get("INFERENCE_NUM_THREADS") for runtime in runtimes)
    assert (large, small, block) == (threads, "1", None), "a block chooses itself"
    assert runtimes[2].for_size(0).properties["INFERENCE_NUM_THREADS"] == "1"
