"""Entries of the catalogue by example: what a body computes, and what the original computes instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from stepper.repair.fix_texts import edits_text
from stepper.repair.repairing import edit_facts, repaired
from stepper.repair.replay import Replayer
from stepper.repair.search import candidates, tried
from stepper.tensors.tolerances import Tolerances
from tests.models import Graph, Value, carried, joined, last, sliced
from tests.repair.faulty_networks import read, reference_of
from tests.tables import few

SIZE, STEPS = 4, 5
Compute = Callable[[Graph, Value, Value], Value]
"""Makes a value of the row and of its product with weights."""


def loop_of(compute: Compute, damage: Callable[[np.ndarray], object] = id) -> Graph:  # type: ignore[type-arg]
    net = Graph()
    body = net.body()
    x, begin = net.parameter("x", dims=(STEPS, SIZE, SIZE)), net.parameter("begin", dims=(SIZE, SIZE))
    piece, old = body.parameter("piece", dims=(1, SIZE, SIZE)), body.parameter("old", dims=(SIZE, SIZE))
    row = body.apply("Squeeze", piece, body.constant([0], np.int64), dims=(SIZE, SIZE), name="row")
    numbers = np.random.default_rng(1).normal(0, 0.6, (SIZE, SIZE)).astype(np.float32)
    damage(numbers)
    weights = body.constant(numbers, name="weights")
    product = of_two(body, "MatMul", row, weights, "product", transpose_a="false", transpose_b="true")
    state = body.apply("Tanh", of_two(body, "Add", compute(body, row, product), old, "sum"), name="state")
    out = body.apply("Unsqueeze", state, body.constant([0], np.int64), dims=(1, SIZE, SIZE), name="out")
    back, made = body.result(state, "next"), body.result(out, "pieces")
    entries = [sliced(x, piece), carried(begin, old, back)]
    outputs = net.loop("loop", body, STEPS, True, entries, [joined(made), last(back)])
    net.result(outputs[0], "all")
    net.result(outputs[1], "end")
    return net


def of_two(net: Graph, operation: str, a: Value, b: Value, name: str, **more: str) -> Value:
    attributes: dict[str, object] = dict(more or {"auto_broadcast": "numpy"})
    return net.apply(operation, a, b, dims=(SIZE, a.dims[1]), name=name, **attributes)  # type: ignore[arg-type]


def reduced(net: Graph, operation: str, value: Value, name: str) -> Value:
    axes = net.constant([1], np.int64)
    return net.apply(operation, value, axes, dims=(SIZE, 1), name=name, keep_dims="true")


def root_mean_square(net: Graph, row: Value, *, is_inside: bool) -> Value:
    mean, eps = (
        reduced(net, "ReduceMean", of_two(net, "Multiply", row, row, "square"), "mean"),
        net.constant(np.float32(0.1), name="eps"),
    )
    if is_inside:
        return net.apply("Sqrt", of_two(net, "Add", mean, eps, "bounded"), name="root")
    return of_two(net, "Add", net.apply("Sqrt", mean, name="root"), eps, "bounded")


def masked(net: Graph, scores: Value) -> Value:
    mask = np.where(np.tri(SIZE), 0, -np.inf).astype(np.float32)
    return of_two(net, "Add", scores, net.constant(mask), "masked")


BIAS = np.asarray([0.3, -0.2, 0.5, 0.1], np.float32)
KINDS: dict[str, tuple[Compute, Compute]] = {
    "comes before Add 'bounded' instead of after it": (
        lambda net, row, _product: of_two(net, "Divide", row, root_mean_square(net, row, is_inside=True), "normal"),
        lambda net, row, _product: of_two(net, "Divide", row, root_mean_square(net, row, is_inside=False), "normal"),
    ),
    "mask of later keys of 'product' inserted": (
        lambda net, _row, product: net.apply("Softmax", product, axis=1),
        lambda net, _row, product: net.apply("Softmax", masked(net, product), axis=1),
    ),
    "difference from the mean of the last axis of 'product' inserted": (
        lambda net, _row, product: net.apply("Tanh", product),
        lambda net, _row, product: net.apply(
            "Tanh", of_two(net, "Subtract", product, reduced(net, "ReduceMean", product, "mean"), "centred")
        ),
    ),
    "bias of 4 numbers inserted, [0.3, -0.2, 0.5, 0.1]": (
        lambda net, _row, product: net.apply("Tanh", product),
        lambda net, _row, product: net.apply("Tanh", of_two(net, "Add", product, net.constant(BIAS), "biased")),
    ),
    "bounds 0.6 on 'product'": (
        lambda net, row, product: of_two(net, "Multiply", product, row, "scaled"),
        lambda net, row, product: of_two(
            net, "Multiply", net.apply("Clamp", product, name="bounded", min=-0.6, max=0.6), row, "scaled"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", few(2, KINDS))
def test_an_entry_of_the_catalogue_names_its_mistake(words: str, tmp_path: Path) -> None:
    faulty, healthy = (read(loop_of(one), tmp_path, name) for one, name in zip(KINDS[words], "ab", strict=True))
    found = repaired(faulty, reference_of(healthy, faulty), Tolerances(exact=False), seconds=120)
    first = found.answer.repairs[0]
    texts = [edits_text(edits) for edits in (first.edits, *first.equivalents)]
    assert any(words in text for text in texts), texts


DAMAGES: dict[str, Callable[[np.ndarray], object]] = {  # type: ignore[type-arg]
    "number 6 is ": lambda numbers: numbers.put(6, 1.5),
    "4 numbers that are not finite": lambda numbers: numbers.put(range(4), np.nan),
    "2 numbers that are far larger than the others": lambda numbers: numbers.put((1, 7), (80.25, 80.5)),
    "factor 0.0166667": lambda numbers: np.multiply(numbers, 60, out=numbers),
}


@pytest.mark.parametrize("words", few(2, DAMAGES))
def test_a_damaged_constant_is_solved_for(words: str, tmp_path: Path) -> None:
    """Of the outputs only the last one is known, so that there are more weights than the reference decides."""
    faulty = read(loop_of(lambda _net, _row, product: product, DAMAGES[words]), tmp_path, "faulty")
    healthy = read(loop_of(lambda _net, _row, product: product), tmp_path, "healthy")
    whole = reference_of(healthy, faulty)
    examples = [replace(one, expected={1: one.expected[1]}) for one in whole.examples]
    replayer = Replayer(faulty, examples, Tolerances(exact=False))
    edits = [one for one in candidates(replayer) if one.unknowns is not None and one.layer.name == "weights"]
    found = [made for made, agreement in (tried(replayer, edit) for edit in edits) if agreement.agrees]
    assert any(words in edits_text([edit_facts(faulty, one)]) for one in found), found
