"""Blocks that repeat: found in graphs that were written with them, whatever the order of the file, and drawn once."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from stepper.errors import UsageError
from stepper.export.exporter import draw
from stepper.export.figures.figure import EdgeKind, NodeKind
from stepper.export.fold_blocks import block_name, repeats_of, shared_name
from stepper.ir.model import Model
from tests.export.nets import Net, experts, resnet, transformer
from tests.export.reading_back import geometry
from tests.export.reading_back.drawing import Drawing
from tests.models import Graph, Value, carried, joined, last, sliced
from tests.tables import each_row


def copies_by_name(net: Net) -> list[list[set[str]]]:
    """Of each block found the names of what its copies have, each checked to be wired as the others."""
    found = []
    for repeats in repeats_of(net.inputs, net.looks):
        for copy in repeats.copies:
            assert [net.looks[node] for node in copy] == [net.looks[node] for node in repeats.copies[0]]
        inner = [
            {
                (copy.index(source), at, output)
                for at, node in enumerate(copy)
                for source, output in net.inputs[node]
                if source in copy
            }
            for copy in repeats.copies
        ]
        assert all(one == inner[0] for one in inner)
        found.append([{net.names[node] for node in copy} for copy in repeats.copies])
    return found


@each_row("seed", [None, 1, 2, 3])
@each_row(
    ("net", "wanted"),
    [
        (transformer(24), [("layers.{}", range(24))]),
        (transformer(12, cached=True), [("layers.{}", range(12))]),
        (resnet([3, 4, 6, 3]), [(f"layer{at}.{{}}", range(1, size)) for at, size in ((1, 3), (2, 4), (3, 6), (4, 3))]),
        (experts(8, 5), [("experts.{}", range(8))]),
        (resnet([1, 1, 1]), []),
    ],
)  # fmt: skip
def test_the_blocks_are_those_that_it_was_written_with(
    net: Net, wanted: list[tuple[str, range]], seed: int | None
) -> None:
    found = copies_by_name(net if seed is None else net.shuffled(seed))
    expected = [[{name.format(number)} for number in numbers] for name, numbers in wanted]
    key = lambda block: sorted(map(sorted, block))  # noqa: E731
    assert sorted(map(key, found)) == sorted(map(key, expected))


def test_the_time_grows_with_the_size() -> None:
    seconds = []
    for layers in (100, 800):
        net = transformer(layers)
        begin = time.process_time()
        (repeats,) = repeats_of(net.inputs, net.looks)
        seconds.append(time.process_time() - begin)
        assert len(repeats.copies) == layers
    assert seconds[1] < 8 * 6 * seconds[0]  # linear is 8, quadratic 64


def test_a_block_with_one_other_operation_is_no_copy() -> None:
    net = transformer(9)
    odd = next(node for node, name in net.names.items() if name == "layers.4" and net.looks[node] == "Gelu")
    net.looks[odd] = "Relu"
    found = sorted([min(names) for names in block] for block in copies_by_name(net))
    assert found == [[f"layers.{number}" for number in part] for part in (range(4), range(5, 9))]


def test_names_say_in_what_they_differ() -> None:
    assert shared_name([f"layers.{at}.norm" for at in range(24)]) == "layers.{0..23}.norm"
    assert shared_name(["a.1.b_7", "a.2.b_9"]) == "a.{1..2}.b_{7,9}"
    assert shared_name(["Add_1", "Add_5", "Add_9", "Add_13", "Add_20"]) == "Add_{1,5..20}"
    assert shared_name(["top.x", "end.x"]) == "….x"
    assert block_name([[f"m.h.{at}.a", f"m.h.{at}/b", f"Add_{at * 7}"] for at in range(3)]) == "m.h.{0..2}"
    assert block_name([["Add", "Mul"], ["Add", "Mul"]]) == ""


def stacked(layers: int, folder: Path) -> Model:
    """Layers with a residual connection each, a loop, then layers that each have a loop inside."""
    net = Graph()
    x = net.parameter("x", dims=[4, 8])

    def layer(x: Value, name: str) -> Value:
        inner = net.apply("MatMul", x, net.constant(np.eye(8), name=f"{name}.weight"), name=f"{name}.project")
        for operation in ("Tanh", "Sigmoid", "Exp"):
            inner = net.apply(operation, inner, name=f"{name}.{operation.lower()}")
        return net.apply("Add", x, inner, name=f"{name}.sum")

    def rows(x: Value, name: str) -> Value:
        body = net.body()
        row = body.parameter("row", dims=[1, 8])
        done = body.result(body.apply("Tanh", body.apply("Relu", row), name="squashed"), "row_result")
        (found,) = net.tensor_iterator(name, body, [sliced(x, row)], [joined(done)])
        return found

    for at in range(layers):
        x = layer(x, f"encoder.{at}")
    x = rows(x, "between")
    for at in range(layers):
        x = layer(rows(x, f"decoder.{at}.rows"), f"decoder.{at}")
    net.result(x, "y")
    return net.read(folder)


def test_a_model_of_repeating_layers_is_drawn_with_each_once_and_its_loops_as_frames(tmp_path: Path) -> None:
    model = stacked(20, tmp_path)
    every, once = (draw(model, view="model", blocks=blocks).figure for blocks in ("all", "once"))
    assert len(every.nodes) > 240 and len(once.nodes) < 40
    assert draw(model, view="model").figure == once
    frames = {frame.label: frame for frame in once.clusters}
    assert {"encoder.{0..19}  × 20", "decoder.{0..19}  × 20", "TensorIterator 'between'"} <= set(frames)
    inner = next(frame for frame in once.clusters if "rows" in frame.label)
    assert inner.kind is NodeKind.LOOP and once.parent(inner.id) == frames["decoder.{0..19}  × 20"].id
    encoder = [node for node in once.nodes if node.cluster == frames["encoder.{0..19}  × 20"].id]
    assert {node.label for node in encoder} >= {"tanh", "sigmoid", "exp", "Add", "x"}
    entry = next(node for node in encoder if node.kind is NodeKind.INPUT)
    assert entry.lines == ("then sum of the one before",)
    read_by = {edge.target for edge in once.edges if edge.source == entry.id}
    assert {once.by_id[id].name or once.by_id[id].label for id in read_by} == {"project", "sum"}
    for edge in once.edges:
        for end in (edge.source, edge.target):
            assert end in once.by_id or end in once.clusters_by_id
    shown = f"{len(every.nodes)} boxes, drawn as {len(once.nodes) - 2}"
    assert once.notes == (f"{shown}: blocks that repeat are drawn once (--blocks all draws each)",)
    for name in ("svg", "pdf", "dot", "mermaid", "tikz"):
        assert draw(model, view="model").written(name) == draw(model, view="model").written(name)


def test_back_edges_of_a_body_with_repeating_layers_stay(tmp_path: Path) -> None:
    net = Graph()
    start, body = net.parameter("start", dims=[8]), net.body()
    state = here = body.parameter("state", dims=[8])
    for at in range(12):
        inner = body.apply("Exp", body.apply("Tanh", here, name=f"l.{at}.tanh"), name=f"l.{at}.exp")
        here = body.apply("Add", here, inner, name=f"l.{at}.sum")
    end = body.result(here, "state_next")
    (out,) = net.loop("steps", body, 3, True, [carried(start, state, end)], [last(end)])
    net.result(out, "y")
    figure = draw(net.read(tmp_path), view="rolled", blocks="once").figure
    (block,) = (frame for frame in figure.clusters if frame.kind is NodeKind.BLOCK)
    assert block.label == "l.{0..11}  × 12" and block.parent == figure.clusters[0].id
    (back,) = (edge for edge in figure.edges if edge.kind is EdgeKind.BACK)
    assert figure.by_id[back.source].kind is NodeKind.RESULT and figure.by_id[back.target].kind is NodeKind.PARAMETER
    with pytest.raises(UsageError, match="--blocks once is for --view model and --view rolled, not for --view ports"):
        draw(net.read(tmp_path), view="ports", blocks="once")


def test_wires_go_through_the_frame_of_a_block_to_its_boxes_and_from_them(tmp_path: Path) -> None:
    for layers in (12, 20):
        folder = tmp_path / str(layers)
        folder.mkdir()
        made = draw(stacked(layers, folder), view="model")
        loose = [one for one in geometry.faults(Drawing(made.text("svg"))) if "wire" in one]
        assert not loose
        for block in (one for one in made.figure.clusters if one.kind is NodeKind.BLOCK):
            ends = {end for port in block.ports for end in port.ends}
            assert all(made.figure.by_id[end].cluster == block.id for end in ends)
            into = [edge for edge in made.figure.edges if made.figure.parent(edge.target) == block.id]
            entered = {edge.target for edge in into if made.figure.parent(edge.source) != block.id}
            entered -= {edge.target for edge in into if made.figure.parent(edge.source) in made.figure.clusters_by_id}
            assert entered <= ends and ends
