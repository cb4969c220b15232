"""Models as numpy code: they run alone, give what OpenVINO and formulas give, read like handwriting."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepper
from stepper.engine.rules import Rules
from stepper.errors import UsageError
from stepper.export.numpy_code.code_file import numpy_code
from tests.export.generated import SAMPLES, called, run_alone
from tests.models import Graph, Side, Value, carried, invariant, joined, last, sliced
from tests.tables import each_row

NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/model.xml"))


@each_row("name", NAMES, quick=4)
def test_the_code_of_a_sample_gives_what_openvino_gives(name: str, tmp_path: Path) -> None:
    code = numpy_code(stepper.read_model(SAMPLES / name / "model.xml"))
    with np.load(SAMPLES / name / "inputs.npz") as inputs, np.load(SAMPLES / name / "expected.npz") as expected:
        found = run_alone(code, tmp_path, inputs)
        assert list(found) == list(expected)
        for key in expected:
            assert found[key].dtype == expected[key].dtype and found[key].shape == expected[key].shape
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-4, atol=1e-5)


@each_row("name", NAMES)
def test_the_text_is_the_same_each_time_and_names_no_place(name: str) -> None:
    texts = [numpy_code(stepper.read_model(SAMPLES / name / "model.xml")).text for _ in range(2)]
    assert texts[0] == texts[1]
    assert str(SAMPLES.parent) not in texts[0]
    ast.parse(texts[0])


def body(name: str, begins: str) -> list[str]:
    """The lines from the one that begins so up to an empty one."""
    lines = numpy_code(stepper.read_model(SAMPLES / name / "model.xml")).text.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith(begins))
    return lines[first : lines.index("", first)]


def test_an_lstm_reads_as_its_formula() -> None:
    assert body("specification_lstm", "    h, c = H, C") == [
        "    h, c = H, C",
        "    Y_pieces = []",
        "    for iteration in range(X.shape[1]):",
        "        x_row = X[:, iteration : iteration + 1]",
        "        x = x_row.reshape(1, 512)",
        "        gates = np.concatenate([x, h], axis=1) @ W_and_R.T + B  # LSTMCell 'lstm_cell' (id 7)",
        "        forget_gate, input_gate, candidate, output_gate = np.split(gates, 4, axis=1)",
        "        cell = sigmoid(forget_gate) * c + sigmoid(input_gate) * np.tanh(candidate)",
        "        hidden = sigmoid(output_gate) * np.tanh(cell)",
        "        y_row = hidden.reshape(1, 1, 256)",
        "        Y_pieces.append(y_row)",
        "        h, c = hidden, cell  # back edges",
        "    Y = np.concatenate(Y_pieces, axis=1)",
    ]


def test_a_while_loop_with_an_if_reads_as_one() -> None:
    assert body("while_loop", "    # Loop") == [
        "    # Loop 'until_one' (id 5): 3 carried, 1 concatenated",
        "    number, steps, peak = start, np.int64(0), start",
        "    keep_going = start_is_not_one",
        "    numbers_pieces = []",
        "    while keep_going:",
        "        remainder = number % 2",
        "        is_even = remainder == 0",
        "        if is_even:  # If 'number_next' (id 7)",
        "            number_next = number // 2  # Divide 'half' (id 2)",
        "        else:",
        "            triple = number * 3",
        "            number_next = triple + 1  # Add 'triple_plus_one' (id 4)",
        "        peak_next = np.maximum(peak, number_next)",
        "        steps_next = steps + 1",
        "        keep_going = number_next != 1",
        "        numbers_pieces.append(number_next)",
        "        number, steps, peak = number_next, steps_next, peak_next  # back edges",
        "    numbers = np.hstack(numbers_pieces or [np.zeros(0, np.int64)])",
    ]


def test_slices_from_the_end_are_counted_from_the_end() -> None:
    lines = body("reverse", "    # Tensor")
    assert "        reward = rewards[:, length - 1 - iteration : length - iteration]" in lines
    assert lines[-1] == "    returns = np.concatenate(returns_pieces[::-1], axis=1)"


# --- one loop --------------------------------------------------------------------------------------------------------


def test_one_loop_is_a_function_of_what_goes_into_it(tmp_path: Path) -> None:
    model = stepper.read_model(SAMPLES / "nested_loop" / "model.xml")
    code = numpy_code(model, loop="pairs_of_neighbours")
    assert "def pairs_of_neighbours(pairs_left, order):" in code.text
    found = run_alone(code, tmp_path, {"pairs_left": np.int64(3), "order": np.array([3, 1, 4, 2], np.float32)})
    assert found["values"].tolist() == [1, 3, 2, 4] and found["swaps"] == 2


@each_row(
    ("loop", "rules", "message"),
    [("no_such", Rules.SPEC, "no loop is called 'no_such'; there are 'passes', 'passes::pairs_of_neighbours'"),
     (None, Rules.OPENVINO, "rules of the specification")],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(loop: str | None, rules: Rules, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(").replace(")", r"\)")):
        numpy_code(stepper.read_model(SAMPLES / "nested_loop" / "model.xml"), rules=rules, loop=loop)


def test_loops_deeper_than_python_compiles_are_refused(tmp_path: Path) -> None:
    def nested(graph: Graph, value: Value, depth: int) -> Value:
        inner = graph.body()
        state = inner.parameter("state")
        following = nested(inner, state, depth - 1) if depth else inner.apply("Abs", state)
        result = inner.result(following)
        return graph.loop(f"level{depth}", inner, 1, True, [carried(value, state, result)], [last(result)])[0]

    net = Graph()
    net.result(nested(net, net.parameter("x"), 30))
    with pytest.raises(UsageError, match="nested deeper than Python compiles"):
        numpy_code(net.read(tmp_path))


def test_an_axis_that_no_tensor_has_is_refused_at_once(tmp_path: Path) -> None:
    net = Graph()
    x, inner = net.parameter("x", dims=(6, 2)), net.body()
    part = inner.parameter("part", dims=(1, 2))
    result = inner.result(part)
    net.result(net.tensor_iterator("loop", inner, [sliced(x, part, 2**40)], [joined(result)])[0])
    with pytest.raises(UsageError, match="there is no axis 1099511627776"):
        numpy_code(net.read(tmp_path))


# --- loops by the specification --------------------------------------------------------------------------------------

X = np.arange(12, dtype=np.float32).reshape(6, 2)


@each_row(
    ("cut", "pieces"),
    [
        ({}, [X[i : i + 1] for i in range(6)]),
        ({"stride": 2}, [X[0:2], X[2:4], X[4:6]]),
        ({"start": -1, "end": 0, "stride": -2}, [X[4:6], X[2:4], X[0:2]]),
        ({"start": 2}, [X[i : i + 1] for i in (2, 3, 4, 5)]),
        ({"start": 1, "end": -2, "stride": 2}, [X[1:3], X[3:5]]),
        ({"start": -3, "end": -7, "stride": -1}, [X[3:4], X[2:3], X[1:2], X[0:1]]),
        ({"start": -5, "end": 5}, [X[2:3], X[3:4], X[4:5]]),
    ],
)
def test_slices_and_pieces_lie_where_the_specification_says(
    cut: dict[str, int], pieces: list[np.ndarray], tmp_path: Path
) -> None:
    net = Graph()
    size = abs(cut.get("stride", 1))
    x, inner = net.parameter("x", dims=(6, 2)), net.body()
    part, state = inner.parameter("part", dims=(size, 2)), inner.parameter("state", dims=(size, 2))
    negated = inner.apply("Negative", part)
    added = inner.apply("Add", state, part)
    results = [inner.result(negated), inner.result(added), inner.result(inner.apply("Abs", part))]
    entries = [sliced(x, part, **cut), carried(net.constant(np.zeros((size, 2), np.float32)), state, results[1])]
    backward = {"start": -1, "end": 0, "stride": -size}
    outputs = [joined(results[0], **backward), last(results[1]), joined(results[2], stride=size)]
    for value in net.tensor_iterator("loop", inner, entries, outputs):
        net.result(value)
    found = called(net, tmp_path, X)
    np.testing.assert_array_equal(found[0], np.concatenate([-piece for piece in pieces[::-1]]))
    np.testing.assert_array_equal(found[1], sum(pieces))
    np.testing.assert_array_equal(found[2], np.concatenate(pieces))


def control(trips: int | None, starts: bool | None) -> Graph:
    """a, b = b, a + b while b < 20; the last b + 1, which nothing carries, and all b. None: an input says it."""
    net = Graph()
    limit = net.parameter("limit", "i64") if trips is None else net.constant(trips, np.int64)
    begins = net.parameter("begins", "boolean") if starts is None else net.constant(starts, np.bool_)
    inner = net.body()
    a, b = inner.parameter("a", "i64"), inner.parameter("b", "i64")
    total = inner.apply("Add", a, b, name="a_plus_b")
    after = inner.result(inner.apply("Add", total, inner.constant(1, np.int64)), "after")
    small = inner.apply("Less", total, inner.constant(20, np.int64), type="boolean", name="is_small")
    from_b, from_total = inner.result(b, "from_b"), inner.result(total, "from_total")
    number = inner.parameter("number", "i64", (1,))
    squared = inner.result(inner.apply("Multiply", number, number), "squared")
    entries = [carried(net.constant(0, np.int64), a, from_b), carried(net.constant(1, np.int64), b, from_total)]
    outputs = [last(from_b), last(from_total), last(after), joined(from_total), joined(squared)]
    values = net.loop("loop", inner, limit, begins, entries, outputs, inner.result(small), number)
    for value in values:
        net.result(value)
    return net


@each_row("trips", [5, 100, 0, -1, None])
@each_row("starts", [True, False, None])
@each_row("given", [(3, True), (-1, True), (0, True), (50, False)])
def test_trip_count_and_condition_end_a_loop_together(
    trips: int | None, starts: bool | None, given: tuple[int, bool], tmp_path: Path
) -> None:
    net = control(trips, starts)
    limit, begins = given[0] if trips is None else trips, given[1] if starts is None else starts
    inputs = [np.int64(given[0])] * (trips is None) + [np.bool_(given[1])] * (starts is None)
    a, b, after, totals, squares = 0, 1, 0, [], []  # no iteration: initial values, and zeros of what has none
    while begins and (limit < 0 or len(totals) < limit):
        a, b = b, a + b
        after, begins = b + 1, b < 20
        squares.append(len(totals) ** 2)
        totals.append(b)
    found = called(net, tmp_path, *inputs)
    assert [value.tolist() for value in found] == [a, b, after, totals, squares]
    assert all(value.dtype == np.int64 for value in found)


@each_row(("lengths", "given"), [((3, 1, 1), [[10]]), ((1, 1, 1), [[2], [4], [6]])])
def test_outputs_of_calls_are_joined_where_they_can_be(lengths: tuple[int, ...], given: Any, tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(1, -1))
    net.result(net.apply("Multiply", x, net.constant([2.0])), "y")
    numbers = np.split(np.arange(1, sum(lengths) + 1, dtype=np.float32), np.cumsum(lengths)[:-1])
    model, inputs = stepper.over_calls(net.read(tmp_path), {"x": [part[None] for part in numbers]})
    assert [value.tolist() for value in called(model, tmp_path, *inputs.values())] == [given]
    assert stepper.run(model, inputs)["y"].tolist() == given


def test_a_swap_of_carried_values_is_made_at_once(tmp_path: Path) -> None:
    net = Graph()
    inner = net.body()
    first, second = net.parameter("first"), net.parameter("second")
    left, right = inner.parameter("left"), inner.parameter("right")
    results = [inner.result(right, "to_left"), inner.result(left, "to_right")]
    entries = [carried(first, left, results[0]), carried(second, right, results[1])]
    for value in net.loop("swap", inner, 3, True, entries, [last(results[0]), last(results[1])]):
        net.result(value)
    assert [value.item() for value in called(net, tmp_path, np.float32(1), np.float32(2))] == [2, 1]


def test_an_invariant_input_and_an_if_in_a_loop_in_a_loop(tmp_path: Path) -> None:
    net = Graph()
    x, outer = net.parameter("x"), net.body()
    total, scale = outer.parameter("total"), outer.parameter("scale")
    inner = outer.body()
    state, factor = inner.parameter("state"), inner.parameter("factor")
    sides = []
    for operation in ("Add", "Subtract"):
        side = inner.body()
        value, other = side.parameter("value"), side.parameter("other")
        result = side.result(side.apply(operation, value, other))
        sides.append(Side(side, [(state, value), (factor, other)], [result]))
    small = inner.apply("Less", state, inner.constant(10.0), type="boolean")
    (chosen,) = inner.branch("chosen", small, *sides)
    out = inner.result(chosen)
    (sums,) = outer.loop("inner", inner, 4, True, [carried(total, state, out), invariant(scale, factor)], [last(out)])
    end = outer.result(sums)
    entries = [carried(x, total, end), invariant(net.constant(3.0), scale)]
    for value in net.loop("outer", outer, 2, True, entries, [last(end), joined(end)]):
        net.result(value)
    expected, state_now = [], 1.0
    for _ in range(2):
        for _ in range(4):
            state_now = state_now + 3 if state_now < 10 else state_now - 3
        expected.append(state_now)
    found = called(net, tmp_path, np.float32(1))
    assert found[0] == expected[-1] and found[1].tolist() == expected


# --- element types, kernels, constants -------------------------------------------------------------------------------


@each_row(
    ("type", "dtype", "a", "b"),
    [
        ("f16", np.float16, 2048.0, 1.0), ("bf16", ml_dtypes.bfloat16, 256.0, 1.0), ("f32", np.float32, 0.1, 0.2),
        ("f64", np.float64, 0.1, 0.2), ("u8", np.uint8, 200, 100), ("i8", np.int8, -100, 100),
        ("i32", np.int32, 2**31 - 1, 2), ("i64", np.int64, 2**40, 3),
    ],
)  # fmt: skip
def test_arithmetic_has_the_element_type_that_is_declared(
    type: str, dtype: type, a: float, b: float, tmp_path: Path
) -> None:
    net = Graph()
    x = net.parameter("x", type, (2,))
    constant = net.constant(np.array(b, dtype), dtype)
    net.result(net.apply("Add", x, constant))
    net.result(net.apply("Multiply", constant, net.apply("Add", x, constant)))
    net.result(net.apply("Convert", x, type="i32", destination_type="i32"))
    given = np.array([a, 1], dtype)
    with np.errstate(over="ignore"):
        total = given + np.array(b, dtype)
        expected = [total, np.array(b, dtype) * total, given.astype(np.int32)]
    for found, wanted in zip(called(net, tmp_path, given), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_an_operation_that_has_no_short_form_is_a_call_of_its_kernel(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Erf", net.parameter("x", dims=(2,))))
    code = numpy_code(net.read(tmp_path))
    assert "from stepper.ops import elementwise\n" in code.text and "elementwise.erf(x)" in code.text
    np.testing.assert_allclose(called(net, tmp_path, [0.5, -1.0])[0], [math.erf(0.5), math.erf(-1)], rtol=1e-6)


def test_variables_live_from_one_call_to_the_next(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(1,))
    ends = {"variable_id": "it's", "variable_type": "f32", "variable_shape": "1"}
    before = net.apply("ReadValue", net.constant([0.0]), version="opset6", **ends)
    total = net.apply("Add", before, x)
    net.result(net.apply("Assign", total, version="opset6", variable_id="it's"))
    code = numpy_code(net.read(tmp_path))
    space: dict[str, object] = {"__name__": "generated"}
    exec(code.text, space)
    state: dict[str, object] = {}
    assert [space["tiny"]([2.0], state)[0].tolist() for _ in range(3)] == [[2], [4], [6]]  # type: ignore[operator]


def test_kernels_of_families_that_were_loaded_later_are_found(tmp_path: Path) -> None:
    """In a process of its own: in this one all may be loaded."""
    script = """
import sys
from pathlib import Path
from stepper.export.numpy_code.code_file import numpy_code
from tests.models import Graph

for type in ("Roll", "Erf"):
    net = Graph()
    x = net.parameter("x", dims=(3,))
    more = (net.constant([1]), net.constant([0])) if type == "Roll" else ()
    net.result(net.apply(type, x, *more, version="opset9"))
    folder = Path(sys.argv[1]) / type
    folder.mkdir()
    print(numpy_code(net.read(folder)).text)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "movement.roll(" in done.stdout and "elementwise.erf(" in done.stdout


def test_large_and_packed_constants_are_in_the_file_beside(tmp_path: Path) -> None:
    net = Graph()
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(ml_dtypes.bfloat16)
    x = net.parameter("x", "bf16", (1, 8))
    net.result(net.apply("MatMul", x, net.constant(weights, name="weights"), transpose_b="true"))
    code = numpy_code(net.read(tmp_path))
    assert list(code.constants) == ["weights"] and '.with_suffix(".npz")' in code.text
    given = np.ones((1, 8), np.float32)
    (found,) = run_alone(code, tmp_path, {"x": given}).values()
    np.testing.assert_allclose(found, given @ weights.astype(np.float32).T, rtol=1e-2, atol=1e-2)
