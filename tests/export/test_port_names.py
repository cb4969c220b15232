"""A Parameter or Result of a body, and what reads an output, has one name in all views."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import stepper
from stepper.export.exporter import draw
from stepper.export.figures.loop_trace import loops_of
from stepper.ir.model import Model
from tests.export.runs import NAMES, SAMPLES, sample
from tests.models import Graph, carried, invariant, joined, last, sliced
from tests.tables import each_row


def told(text: str) -> str:
    return text.removesuffix(" +")


def assert_alike(model: Model, inputs: dict[str, np.ndarray]) -> None:
    """Rolled, unrolled and ports draw a box for each; an accumulator's ports are one box."""
    for loop in loops_of(model):
        if not loop.layer.is_loop:
            continue
        views = [draw(model, view=view, loop=loop.address).figure for view in ("rolled", "ports")]
        if not loop.around:
            views += [draw(model, view="model").figure, draw(model, inputs, view="unrolled", loop=loop.address).figure]
        for layer in (*loop.body.graph.parameters, *loop.body.graph.results):
            keys = {f"n{layer.id}", f"next{layer.id}", f"i0.n{layer.id}", f"{loop.layer.id}.n{layer.id}"}
            found = {told(node.label) for view in views for node in view.nodes if node.id in keys and node.cluster}
            found |= {node.label for node in views[1].nodes if node.id == f"next{layer.id}"}
            assert len(found) == 1, (loop.name, layer, found)
        for output in range(len(loop.layer.outputs)):
            boxes = [view.by_id[f"out{output}"] for view in views if f"out{output}" in view.by_id]
            first = next((box.label.partition(" → ")[2] for box in boxes if " → " in box.label), "")
            for box in boxes:
                assert first.strip("… ") in f"{box.label} {box.name}", (loop.name, output, box.label, first)


@each_row("name", NAMES)
def test_ports_of_samples_have_one_name_in_all_views(name: str) -> None:
    assert_alike(sample(name), dict(np.load(SAMPLES / name / "inputs.npz")))


def converted(folder: Path) -> Model:
    """A loop as a converter leaves it: a sliced and an invariant Parameter that it has numbered, inputs with names."""
    net = Graph()
    xs, rate, h0 = (
        net.parameter("xs", dims=(3, 1)),
        net.parameter("rate", dims=(1, 1)),
        net.parameter("h0", dims=(1, 1)),
    )
    body = net.body()
    x, r, h = (body.parameter(one, dims=(1, 1)) for one in ("Parameter_7000", "Parameter_59", "h.9"))
    out = body.result(body.apply("Add", body.apply("Multiply", x, r), h), "h_next")
    entries = [sliced(xs, x), invariant(rate, r), carried(h0, h, out)]
    for found in net.tensor_iterator("rows", body, entries, [joined(out), last(out)]):
        net.result(found, "steps")
    return stepper.read_model(net.write(folder))


def test_the_textbook_calls_ports_as_the_other_views_do_and_says_where_they_come_from(tmp_path: Path) -> None:
    model = converted(tmp_path)
    one = np.ones((1, 1), np.float32)
    inputs = {"xs": np.ones((3, 1), np.float32), "rate": one, "h0": one}
    assert_alike(model, inputs)
    wide, narrow = (draw(model, inputs, preset="paper", width=width).text("svg") for width in (642, None))
    assert ">the same in each iteration: Parameter_59 ← rate<" in wide
    assert ">Parameter_7000<" in wide and ">← xs, axis 0, 3<" in wide
    assert ">xs<" not in narrow and "rate<" not in narrow, "the narrow page has no room for both names"
    rolled = draw(model, view="rolled", preset="paper").text("svg")
    assert "Parameter_7000" in rolled and "Parameter_59" in rolled


def test_results_of_one_name_are_told_apart_in_all_views(tmp_path: Path) -> None:
    model = converted(tmp_path)
    first, second = (f"steps #{layer.id}" for layer in model.graph.results)
    rolled, ports = (draw(model, view=view).figure for view in ("rolled", "ports"))
    assert [rolled.by_id[f"out{k}"].label for k in (0, 1)] == [first, second]
    assert [ports.by_id[f"out{k}"].label for k in (0, 1)] == [f"output 0 → {first}", f"output 1 → {second}"]
    whole = draw(model, view="model").figure
    assert [whole.by_id[f"n{layer.id}"].label for layer in model.graph.results] == [first, second]


def test_an_output_has_the_name_of_the_result_that_it_becomes_or_of_its_tensor(tmp_path: Path) -> None:
    """What an operation computes from it is another value, whose name is not that of the output."""

    def said(model: Model, loop: str) -> list[str]:
        nodes = draw(model, view="rolled", loop=loop).figure.nodes
        return [line.partition(" → ")[2] for node in nodes for line in node.lines if " → output" in line]

    assert said(sample("nested_loop"), "passes::pairs_of_neighbours") == [
        "output 0 'order_next_result'",
        "output 1 'swaps_in_pass_result'",
    ]
    net = Graph()
    h0 = net.parameter("h0", "f32", (1,))
    body = net.body()
    h = body.parameter("h", "f32", (1,))
    result = body.result(body.apply("Relu", h, name="relu"), "relu_result")
    after = net.loop("loop", body, 2, True, [carried(h0, h, result)], [last(result)])[0]
    net.result(net.apply("Exp", after, name="exp_of_it"), "out")
    path = net.write(tmp_path)
    assert said(stepper.read_model(path), "loop") == ["output 0"]
    text = path.read_text(encoding="utf-8")
    at = text.index("<output>", text.index('type="Loop"'))
    path.write_text(
        text[:at] + text[at:].replace(" precision=", ' names="state_after" precision=', 1), encoding="utf-8"
    )
    assert said(stepper.read_model(path), "loop") == ["output 0 'state_after'"]
