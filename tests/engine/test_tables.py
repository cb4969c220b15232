"""Tables in a narrow type that are converted: rows are taken first, products made by blocks; nobody sees it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepper
from stepper.element_types import ELEMENT_TYPES
from stepper.engine import program
from stepper.engine.frames import EventKind
from stepper.ir.model import Model
from tests.models import Graph
from tests.tables import each_row

ROWS, WIDTH = 4000, 64
TABLE = np.random.default_rng(3).standard_normal((ROWS, WIDTH)).astype(np.float16)
INDICES = np.array([[3, 0, ROWS - 1], [-1, 7, ROWS]], np.int64)
"""The last is outside: zeros."""


def embedding(folder: Path, table: np.ndarray = TABLE, *, is_read_twice: bool = False, axis: int = 0) -> Model:
    net = Graph()
    indices = net.parameter("indices", "i64", (2, 3))
    whole = net.apply("Convert", net.constant(table, table.dtype), type="f32", destination_type="f32", name="whole")
    rows = net.apply("Gather", whole, indices, net.constant(axis, np.int64), version="opset8", batch_dims=0)
    net.result(net.apply("Abs", rows))
    if is_read_twice:
        net.result(net.apply("Abs", whole))
    return net.read(folder)


def peak_of(call: Callable[[], object]) -> int:
    """Bytes that a call has allocated at most; numpy's are among them."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def expected(table: np.ndarray) -> np.ndarray:
    found = np.abs(table.astype(np.float32)[np.where(INDICES == ROWS, 0, INDICES)])
    found[INDICES == ROWS] = 0
    return found


@each_row("dtype", [np.float16, ml_dtypes.bfloat16, np.int8])
def test_the_rows_are_those_of_the_whole_table(tmp_path: Path, dtype: type) -> None:
    table = (TABLE * 20).astype(dtype)
    (output,) = stepper.run(embedding(tmp_path, table), {"indices": INDICES}).values()
    assert output.dtype == np.float32 and np.array_equal(output, expected(table))


def test_a_run_copies_no_table(tmp_path: Path) -> None:
    compiled = stepper.compile_model(embedding(tmp_path))
    stepper.run(compiled, {"indices": INDICES})  # what is compiled for the first run is no copy, either
    assert peak_of(lambda: stepper.run(compiled, {"indices": INDICES})) < TABLE.nbytes // 4
    twice = stepper.compile_model(embedding(tmp_path, is_read_twice=True))
    assert peak_of(lambda: stepper.run(twice, {"indices": INDICES})) > 2 * TABLE.nbytes


def test_who_looks_sees_the_whole_table(tmp_path: Path) -> None:
    compiled = stepper.compile_model(embedding(tmp_path))
    machine = stepper.Machine(compiled, [INDICES])
    frame = machine.stack[0]
    assert [event.kind for event in machine.run(stepper.Every.END)][-1] is EventKind.FINISHED
    (whole,) = (layer for layer in compiled.model.graph.layers if layer.name == "whole")
    assert np.array_equal(frame.values[frame.program.slot(whole.id)], TABLE.astype(np.float32))


def test_a_gather_that_fails_says_what_it_said(tmp_path: Path) -> None:
    model = embedding(tmp_path, axis=5)
    with pytest.raises(stepper.ExecutionError) as caught:
        stepper.run(model, {"indices": INDICES})
    machine = stepper.Machine(stepper.compile_model(model), [INDICES])
    with pytest.raises(stepper.ExecutionError) as seen:
        list(machine.run(stepper.Every.END))
    assert str(caught.value) == str(seen.value) and "Gather" in str(caught.value)


def test_what_is_zero_outside_stays_zero_in_nf4(tmp_path: Path) -> None:
    """The number 0 of nf4 is -1: there the whole table is converted."""
    table = np.zeros((2, 4), ELEMENT_TYPES["nf4"].dtype)
    (output,) = stepper.run(embedding(tmp_path, table), {"indices": np.array([[0, 1, 2], [0, 0, 7]])}).values()
    assert output[0].tolist() == [[1] * 4, [1] * 4, [0] * 4] and not output[1, 2].any()


TOKENS = np.array([[3, 0, 11], [1, 7, 2]], np.int64)


def tied(folder: Path, table: np.ndarray, *, transposed: bool = True, width: int = WIDTH) -> Model:
    """The rows of a table, and their products with all of it: a network that reads and writes words by one table."""
    net = Graph()
    indices = net.parameter("indices", "i64", (2, 3))
    whole = net.apply("Convert", net.constant(table, table.dtype), type="f32", destination_type="f32", name="whole")
    if transposed:
        rows = net.apply("Gather", whole, indices, net.constant(0, np.int64), version="opset8", batch_dims=0)
    else:
        rows = net.parameter("rows", "f32", (2, 3, width))
    net.result(net.apply("MatMul", rows, whole, transpose_b=str(transposed).lower(), name="words"))
    return net.read(folder)


def in_blocks(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    monkeypatch.setattr(program, "_LARGE", elements)
    monkeypatch.setattr(program, "_BLOCK", elements)


def tied_inputs(transposed: bool) -> dict[str, np.ndarray]:
    rows = {"rows": TABLE[TOKENS].astype(np.float32)}
    return {"indices": TOKENS} | ({} if transposed else rows)


@each_row("block", [100, 64 * 1000, 64 * 4000 - 1])
@each_row("transposed", [True, False])
def test_products_by_blocks_are_those_with_the_whole_table(
    tmp_path: Path, block: int, transposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_blocks(monkeypatch, block)
    model = tied(tmp_path, TABLE if transposed else np.ascontiguousarray(TABLE.T), transposed=transposed)
    compiled = stepper.compile_model(model)
    assert len(compiled.main.tables) == 1
    (output,) = stepper.run(compiled, tied_inputs(transposed)).values()
    wide = TABLE.astype(np.float64)
    np.testing.assert_allclose(output, wide[TOKENS] @ wide.T, rtol=1e-4, atol=1e-4)
    machine = stepper.Machine(compiled, stepper.bind_inputs(model, tied_inputs(transposed)))
    list(machine.run(stepper.Every.END))
    assert machine.outputs is not None and machine.outputs[0].tobytes() == output.tobytes()


def test_a_run_copies_no_table_that_is_read_and_multiplied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_blocks(monkeypatch, TABLE.size // 32)
    compiled = stepper.compile_model(tied(tmp_path, TABLE))
    stepper.run(compiled, tied_inputs(True))
    assert peak_of(lambda: stepper.run(compiled, tied_inputs(True))) < TABLE.nbytes


def test_a_product_by_blocks_that_fails_says_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for block in (2**24, 1000):
        in_blocks(monkeypatch, block)
        model = tied(tmp_path, TABLE, transposed=False)
        with pytest.raises(stepper.ExecutionError) as caught:
            stepper.run(model, tied_inputs(False))
        said.append(str(caught.value))
    assert said[0] == said[1] and "MatMul" in said[0]
