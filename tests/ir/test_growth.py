"""Which carried values grow, by graphs of which it is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.ir.model import Growth, growth_of
from stepper.ir.reader import read as read_model
from tests.debug.debugged import SAMPLES
from tests.models import Graph, Value, carried, invariant, last


def found(folder: Path, kind: str) -> Growth | None:
    """The growth of `state` in a loop whose body joins as `kind` says."""
    net, body = Graph(), Graph()
    net = Graph()
    body = net.body()
    state, piece = body.parameter("state", dims=(-1, 2)), body.parameter("piece", dims=(1, 2))
    others: dict[str, tuple[Value, ...]] = {
        "behind": (state, piece), "before": (piece, state), "around": (piece, state, piece), "twice": (state, state),
        "without": (piece, piece), "read": (state, piece),
    }  # fmt: skip
    if kind == "added":
        value = body.apply("Add", state, piece, name="next")
    else:
        value = body.apply("Concat", *others[kind], dims=(-1, 2), name="next", axis=0)
    out = body.result(value, "state_next")
    outputs = [last(out)]
    if kind == "read":
        outputs.append(last(body.result(body.apply("ReduceSum", state, body.constant([0], np.int64), dims=(2,)))))
    entries = [carried(net.constant([[0.0, 0.0]]), state, out), invariant(net.constant([[1.0, 2.0]]), piece)]
    for one in net.loop("loop", body, 3, True, entries, outputs):
        net.result(one)
    (loop,) = [layer for layer in net.read(folder).graph.layers if layer.is_loop]
    return growth_of(loop.bodies[0].graph, out.layer, state.layer)


@pytest.mark.parametrize(("kind", "pieces", "only_collects"), [
    ("behind", 1, True), ("before", 1, True), ("around", 2, True), ("read", 1, False),
])  # fmt: skip
def test_a_value_grows_where_a_concat_joins_to_it(kind: str, pieces: int, only_collects: bool, tmp_path: Path) -> None:
    growth = found(tmp_path, kind)
    assert growth is not None and len(growth.pieces) == pieces and growth.only_collects is only_collects
    assert (growth.piece is None) is (pieces > 1)


@pytest.mark.parametrize("kind", ["twice", "without", "added"])
def test_what_only_looks_so_does_not_grow(kind: str, tmp_path: Path) -> None:
    assert found(tmp_path, kind) is None


def test_the_sequence_of_the_sample_grows_and_is_read() -> None:
    model = read_model(SAMPLES / "growing_tensor" / "model.xml")
    (loop,) = [layer for layer in model.graph.layers if layer.is_loop]
    (body,) = loop.bodies
    grown = [growth_of(body.graph, edge.from_layer, edge.to_layer) for edge in body.back_edges]
    (growth,) = [one for one in grown if one is not None]
    assert body.graph.by_id[growth.parameter].name == "sequence" and not growth.only_collects
