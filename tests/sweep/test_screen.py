"""The quick look: it never overlooks what a debugger finds, and its operations are what it takes them for."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import stepper
from stepper.debug.causes.cause import NonFiniteKind
from stepper.engine.frames import Every
from stepper.engine.machine import Machine
from stepper.ops import registry
from stepper.sweep.judges import KEEPS_NAN, KEEPS_NON_FINITE, Screen, ScreenedRun
from tests.models import Graph, carried, joined, last, sliced
from tests.tables import each_row

BINARY = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference")
UNARY = ("Tanh", "Sigmoid", "Exp", "Sqrt", "Abs", "Negative", "Log", "Relu")
HIDING = ("Select", "Less", "Clamp", "StridedSlice", "Split")
AXES = {"ReduceMean": [0], "ReduceSum": [0], "Unsqueeze": [0], "Squeeze": [0], "Transpose": [1, 0]}


def random_loop(seed: int) -> Graph:
    """A loop whose body makes and hides NaN and Inf in random ways."""
    random, graph = Random(seed), Graph()
    x, start = graph.parameter("x", dims=(6, 2)), graph.parameter("start", dims=(1, 2))
    body = graph.body()
    values = [body.parameter("piece", dims=(1, 2)), body.parameter("carried", dims=(1, 2))]
    entries = [sliced(x, values[0])]
    for number in range(random.randint(3, 9)):
        one, other = random.choice(values), random.choice(values)
        kind = random.choice((random.choice(BINARY), random.choice(UNARY), random.choice(HIDING)))
        name = f"op{number}"
        if kind in BINARY:
            values.append(body.apply(kind, one, other, name=name))
        elif kind in UNARY:
            values.append(body.apply(kind, one, name=name))
        elif kind == "Select" or kind == "Less":
            less = body.apply("Less", one, body.constant(0.5), type="boolean", name=f"{name}_less")
            values.append(body.apply("Select", less, values[0], other, name=name, type="f32"))
        elif kind == "Clamp":
            values.append(body.apply("Clamp", one, name=name, min="-3", max="3"))
        elif kind == "Split":
            half = body.apply("Split", one, body.constant(1, np.int64), num_splits=2, outputs=2, dims=(1, 1), name=name)
            values.append(body.apply("Add", half, other, name=f"{name}_add", dims=(1, 2)))
        else:
            ends = (body.constant(one, np.int64) for one in ([0, 0], [1, 1], [1, 1]))
            masks = {"begin_mask": "0,0", "end_mask": "0,0"}
            cut = body.apply("StridedSlice", one, *ends, dims=(1, 1), name=name, **masks)
            values.append(body.apply("Multiply", cut, other, name=f"{name}_mul", dims=(1, 2)))
    result, piece = body.result(values[-1], "next"), body.result(random.choice(values), "kept")
    entries.append(carried(start, values[1], result))
    outputs = [last(result)] if random.random() < 0.5 else [joined(piece)]
    for value in graph.loop("loop", body, 6, True, entries, outputs):
        ended = graph.apply("Tanh", value, name="squeezed") if random.random() < 0.5 else value
        graph.result(ended)
    return graph


@each_row("kinds", [("nan",), ("inf",), ("nan", "inf")])
def test_what_a_debugger_finds_is_suspect(kinds: tuple[str, ...], tmp_path: Path) -> None:
    stops = clean = 0
    for seed in range(60):
        compiled = stepper.compile_model(random_loop(seed).read(tmp_path))
        screen = Screen(compiled, [NonFiniteKind(kind) for kind in kinds])
        assert screen.is_possible
        for values in np.random.default_rng(seed).choice([0.0, 1.0, -2.0, 90.0, 0.5], (5, 14)).astype(np.float32):
            inputs = [values[:12].reshape(6, 2), values[12:].reshape(1, 2)]
            debugger = stepper.Debugger.of(Machine(compiled, inputs), inputs)
            for kind in kinds:
                debugger.break_when(kind)
            stopped = debugger.continue_().cause is not None
            machine = Machine(compiled, inputs, keep_values=screen.keeps_main)
            run = ScreenedRun(screen, machine)
            machine.observers = (run,)
            for _event in machine.run(Every.END):
                break
            is_suspect = run.is_suspect or run.ended()
            assert is_suspect or not stopped, (seed, inputs)
            stops, clean = stops + stopped, clean + (not is_suspect)
    assert min(stops, clean) > 20, "the models show both"


def test_a_loop_whose_values_all_show_is_looked_at_nowhere(tmp_path: Path) -> None:
    graph = Graph()
    x, start = graph.parameter("x", dims=(6, 2)), graph.parameter("start", dims=(1, 2))
    body = graph.body()
    piece, before = body.parameter("piece", dims=(1, 2)), body.parameter("before", dims=(1, 2))
    result = body.result(body.apply("Tanh", body.apply("Add", piece, before)))
    graph.result(
        graph.loop("loop", body, 6, True, [sliced(x, piece), carried(start, before, result)], [last(result)])[0]
    )
    compiled = stepper.compile_model(graph.read(tmp_path))
    assert Screen(compiled, [NonFiniteKind.NAN]).slots == {}
    assert len(Screen(compiled, [NonFiniteKind.INF]).slots) == 1  # tanh(Inf) is 1


# --- operations -----------------------------------------------------------------------------------------------------


def applied(type: str, operands: list[np.ndarray[Any, Any]]) -> list[bool]:
    """Of each definition of the type: whether a result is not finite."""
    attributes = {
        "Concat": {"axis": "0"},
        "Split": {"num_splits": "2"},
        "Softmax": {"axis": "1"},
        "ReduceMean": {"keep_dims": "true"},
        "ReduceSum": {"keep_dims": "true"},
        "Reshape": {"special_zero": "false"},
        "MatMul": {"transpose_a": "false", "transpose_b": "false"},
        **{name: {"hidden_size": "2"} for name in ("GRUCell", "LSTMCell", "RNNCell")},
    }.get(type, {})
    found = []
    for version in range(20):
        kernel = registry.find(type, version)
        if kernel is not None:
            results = kernel.bind(attributes)(*operands)
            several = results if isinstance(results, tuple) else (results,)
            found.append(not all(np.isfinite(one).all() for one in several))
    return found


def operands_of(type: str) -> tuple[list[np.ndarray[Any, Any]], int]:
    """Operands, of which the first few are the floats that count."""
    ones = np.ones((2, 2), np.float32)
    indices = {
        "Reshape": [4], "Squeeze": [0], "Unsqueeze": [0], "Transpose": [1, 0], "Broadcast": [2, 2],
        "ReduceMean": [1], "ReduceSum": [1],
    }  # fmt: skip
    if type in indices:
        data = ones[:1] if type == "Squeeze" else ones
        return [data.copy(), np.array(indices[type], np.int64)], 1
    if type == "Split":
        return [ones, np.array(0, np.int64)], 1
    if type == "VariadicSplit":
        return [ones, np.array(0, np.int64), np.array([1, -1], np.int64)], 1
    if type in ("GRUCell", "LSTMCell", "RNNCell"):
        gates = {"GRUCell": 3, "LSTMCell": 4, "RNNCell": 1}[type]
        states = [ones.copy()] * (2 if type == "LSTMCell" else 1)
        weights = [np.zeros((2 * gates, 2), np.float32) for _ in range(2)]
        return [ones, *states, *weights, np.zeros(2 * gates, np.float32)], 1 + len(states) + 3
    if type in ("Add", "Concat", "Divide", "MatMul", "Maximum", "Minimum", "Multiply", "SquaredDifference", "Subtract"):
        return [ones, np.zeros((2, 2), np.float32)], 2  # 0 * NaN is NaN
    return [ones], 1


@each_row("type", sorted(KEEPS_NAN))
def test_an_operation_that_is_said_to_keep_nan_keeps_it(type: str) -> None:
    numbers = [np.nan, np.inf, -np.inf] if type in KEEPS_NON_FINITE else [np.nan]
    operands, floats = operands_of(type)
    for number in numbers:
        for position in range(floats):
            for element in np.ndindex(operands[position].shape):
                given = [one.copy() for one in operands]
                given[position][element] = number
                with np.errstate(all="ignore"):
                    assert set(applied(type, given)) == {True}, (number, position, element)
