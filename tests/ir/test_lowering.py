"""A new loop operation is one function: ONNX's Scan as an extension's operation, lowered here, then run as a loop."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.engine.run import outline
from stepper.errors import KernelError, ModelError
from stepper.ir import lowering
from stepper.ir.lowering import GraphBuilder, Tensor
from stepper.ir.model import BackEdge, Body, InputMapping, Layer, Model, OutputMapping, Slicing
from tests.debug.debugged import at_iteration
from tests.models import Graph

FORWARD, BACKWARD = Slicing(0, 0, -1, 1, 1), Slicing(0, -1, 0, -1, 1)


def lower_scan(builder: GraphBuilder, layer: Layer, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """N states are carried, M inputs sliced on axis 0, outputs behind the states joined; a body keeps that axis.

    Source: ONNX operators, Scan-9: num_scan_inputs, scan_input_directions, scan_output_directions (1: backward).
    """
    body, line = layer.bodies[0], layer.line
    count = int(layer.attributes["num_scan_inputs"])
    states = len(inputs) - count
    parameters, results = body.graph.parameters, body.graph.results
    if len(parameters) != len(inputs):
        raise KernelError(f"its body has {len(parameters)} Parameters for {len(inputs)} inputs")
    cuts = [None] * states + _directions(layer, "scan_input_directions", count)
    joins = [None] * states + _directions(layer, "scan_output_directions", len(results) - states)
    port_map = Body(
        role="body",
        graph=body.graph,
        inputs=tuple(
            InputMapping(k, one.id, cut, None, False, line)
            for k, (one, cut) in enumerate(zip(parameters, cuts, strict=True))
        ),
        outputs=tuple(
            OutputMapping(k, one.id, cut, None, line) for k, (one, cut) in enumerate(zip(results, joins, strict=True))
        ),
        back_edges=tuple(
            BackEdge(result.id, parameter.id, line)
            for result, parameter in zip(results[:states], parameters[:states], strict=True)
        ),
        first_draft=False,
        line=body.line,
    )
    declared = [(port.element_type, port.dims) for port in layer.outputs]
    return builder.add(
        "TensorIterator", 1, "", inputs, declared, identity=layer.id, bodies=(port_map,), opened_from="Scan"
    )


def _directions(layer: Layer, name: str, count: int) -> list[Slicing | None]:
    texts = layer.attributes.get(name, ",".join("0" * count)).split(",")
    return [BACKWARD if text == "1" else FORWARD for text in texts]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    lowering.find("Scan")  # the product's own are there
    monkeypatch.setattr(lowering, "_LOWERINGS", dict(lowering._LOWERINGS))
    lowering.lowering("Scan", has_body=True)(lower_scan)


def running_sums(*, with_state: bool = True) -> Graph:
    """total += a - b, a forward and b backward; the last total, and all totals backward."""
    net, body = Graph(), Graph()
    start, a, b = (net.parameter(name, dims=dims) for name, dims in (("start", (1, 2)), ("a", (4, 2)), ("b", (4, 2))))
    total, x, y = (body.parameter(name, dims=(1, 2)) for name in ("total", "x", "y"))
    if not with_state:
        body.parameter("more", dims=(1, 2))
    grown = body.apply("Add", total, body.apply("Subtract", x, y, name="gap"), name="grown")
    body.result(grown, "final")
    body.result(body.apply("Negative", grown, name="piece"), "pieces")
    attributes = {"num_scan_inputs": 2, "scan_input_directions": "0,1", "scan_output_directions": "1"}
    last, pieces = net.extension("Scan", "sums", body, [start, a, b], [("f32", (1, 2)), ("f32", (4, 2))], attributes)
    net.result(net.apply("Abs", last, name="after"), "last")
    net.result(pieces, "all")
    return net


START = np.array([[10, 20]], np.float32)
A, B = np.arange(8, dtype=np.float32).reshape(4, 2), np.arange(8, dtype=np.float32).reshape(4, 2) ** 2
INPUTS = {"start": START, "a": A, "b": B}
TOTALS = START + np.cumsum(A - B[::-1], axis=0)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return running_sums().read(tmp_path)


@pytest.mark.parametrize("rules", ["spec", "openvino"])
def test_a_registered_operation_runs_as_a_loop(model: Model, rules: str) -> None:
    outputs = stepper.run(model, INPUTS, rules)
    np.testing.assert_array_equal(outputs["last"], np.abs(TOTALS[-1:]))
    np.testing.assert_array_equal(outputs["all"], -TOTALS[::-1])
    (loop,) = outputs.loops
    assert (loop.kind, loop.name, loop.iterations) == ("TensorIterator", "sums", 4)


def test_a_run_stops_in_it_and_goes_back(model: Model) -> None:
    debugger = stepper.open_debugger(model, INPUTS)
    for iteration in (0, 3, 1):
        at_iteration(debugger, iteration)
        np.testing.assert_array_equal(debugger.value("grown"), TOTALS[iteration : iteration + 1])


def test_it_is_known_by_what_it_was_and_comes_back_in_another_process(model: Model) -> None:
    (loop,) = outline(model).loops
    assert (loop.opened_from, loop.layer.name) == ("Scan", "sums")
    assert not lowering.has_opened(model) and not lowering.unopened(model)
    assert pickle.loads(pickle.dumps(model)) is model


def test_what_cannot_be_lowered_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model.xml:\d+: layer 3 'sums' \(Scan\): its body has 4 Parameters for 3"):
        running_sums(with_state=False).read(tmp_path)


def test_without_a_lowering_the_operation_has_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(lowering._LOWERINGS, "Scan")
    model = running_sums().read(tmp_path)
    (missing,) = outline(model).without_kernel
    assert missing.layer.name == "sums" and not outline(model).loops


def test_two_lowerings_for_one_type_are_refused() -> None:
    with pytest.raises(AssertionError, match="two lowerings for Scan"):
        lowering.lowering("Scan")(lower_scan)
