"""Boxes say which constants an operation reads, and where its operands are one and the same tensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.export.exporter import draw
from stepper.export.figures.figure import Figure, NodeKind
from stepper.ir.model import Model
from tests.models import Graph, carried, joined, last, sliced


def model(folder: Path) -> Model:
    net = Graph()
    x = net.parameter("x", "f32", (2, 3))
    half = net.apply("Divide", x, net.constant(np.float32(2)), name="half")
    square = net.apply("Multiply", half, half, name="square")
    both = net.apply("Add", square, half, name="both")
    shifted = net.apply("Add", both, net.constant(np.array([0.5, -np.inf, np.nan], np.float32)), name="shifted")
    weight = net.constant(np.ones((3, 4), np.float32), name="encoder/W")
    product = net.apply("MatMul", shifted, weight, dims=(2, 4), name="product", transpose_a="false")
    plain = net.constant(np.ones((2, 4), np.float32), name="Constant_12")
    net.result(net.apply("Add", product, plain, name="biased"), "out")
    return net.read(folder)


def texts(figure: Figure) -> dict[str, tuple[str, ...]]:
    return {node.texts[-1]: node.texts for node in figure.nodes if node.kind is NodeKind.OPERATION}


def test_small_constants_stand_in_the_box_and_weights_by_name(tmp_path: Path) -> None:
    found = texts(draw(model(tmp_path), view="model").figure)
    assert found == {
        "half": ("Divide(·, 2)", "half"),
        "square": ("Multiply(·, ·)", "square"),
        "both": ("Add", "both"),
        "shifted": ("Add(·, [0.5 -Inf NaN])", "shifted"),
        "product": ("MatMul(·, W f32[3,4])", "product"),
        "biased": ("Add(·, f32[2,4])", "biased"),
    }


def test_constants_are_boxes_or_hidden_where_asked(tmp_path: Path) -> None:
    built = model(tmp_path)
    boxes = draw(built, view="model", constants="box").figure
    assert [node.label for node in boxes.nodes if node.kind is NodeKind.CONSTANT] == [
        "2",
        "[0.5 -Inf NaN]",
        "W f32[3,4]",
        "f32[2,4]",
    ]
    hidden = draw(built, view="model", constants="hide").figure
    assert "(" not in "".join(node.label for node in hidden.nodes)
    assert not [node for node in hidden.nodes if node.kind is NodeKind.CONSTANT]


def test_without_weights_constants_are_forms(tmp_path: Path) -> None:
    built = model(tmp_path)
    built.path.with_suffix(".bin").unlink()
    from stepper.ir.reader import read

    found = texts(draw(read(built.path), view="model").figure)
    assert found["half"] == ("Divide(·, f32[])", "half")


@pytest.mark.parametrize("backward", [False, True])
def test_results_say_the_output_and_ports_say_how_they_cut(backward: bool, tmp_path: Path) -> None:
    net = Graph()
    x, h0 = net.parameter("x", "f32", (8, 2)), net.parameter("h0", "f32", (2, 2))
    body = net.body()
    part, h = body.parameter("part", "f32", (2, 2)), body.parameter("h", "f32", (2, 2))
    result = body.result(body.apply("Add", part, h, name="next"), "next_result")
    cut = {"start": -1, "end": 0, "stride": -2} if backward else {"start": 2, "end": -1, "stride": 2}
    entries = [sliced(x, part, 0, part_size=2, **cut), carried(h0, h, result)]
    outputs = net.tensor_iterator("rows", body, entries, [last(result), joined(result, 0, part_size=2, stride=2)])
    for name, value in zip(("final", "all"), outputs, strict=True):
        net.result(value, name)
    figure = draw(net.read(tmp_path), view="rolled").figure
    lines = {node.label: node.lines for node in figure.nodes}
    way = "reversed, stride -2" if backward else "2 to -1, stride 2"
    assert lines["part"] == (f"sliced, axis 0, {way}, part_size 2 ← x",)
    assert lines["next_result"] == (
        "last value → output 0 'final'",
        "concatenated, axis 0, stride 2, part_size 2 → output 1 'all'",
    )


def test_there_are_as_many_end_marks_as_ways_to_end() -> None:
    from tests.export.runs import picture

    marks = {
        name: sum(node.kind is NodeKind.END for node in picture(name, "rolled").figure.nodes)
        for name in ("while_loop", "for_loop", "nested_loop", "reverse")
    }
    assert marks == {"while_loop": 1, "for_loop": 1, "nested_loop": 3, "reverse": 1}
