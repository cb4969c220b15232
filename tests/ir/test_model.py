"""The model that a reader gives: where each part stands in the file, what is nested in what, what cannot change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from msgspec import Struct

import stepper
from stepper.errors import ModelError
from stepper.ir.model import Graph, Layer, Model
from stepper.ir.weights import Weights
from tests.ir import tiny_models
from tests.ir.texts import line_of, write
from tests.tables import each_row


def read_loop(folder: Path, *, before: int = 0) -> tuple[str, Model, Layer]:
    """The text of the loop model with this many empty lines inside the net, the model, its Loop."""
    text, weights = tiny_models.loop()
    text = text.replace("<layers>", "\n" * before + "<layers>", 1)
    model = stepper.read_model(write(folder, text, weights))
    return text, model, model.graph.by_id[3]


@each_row("before", [0, 65_500, 65_535, 70_000, 1_000_000])
def test_layers_ports_edges_and_port_maps_know_their_lines(tmp_path: Path, before: int) -> None:
    text, model, loop = read_loop(tmp_path, before=before)
    (body,) = loop.bodies
    assert loop.line == line_of(text, 'name="the_loop"')
    assert model.graph.by_id[0].line == line_of(text, 'name="trip_count"')
    assert body.line == line_of(text, "<body>")
    assert body.graph.by_id[4].line == line_of(text, 'name="step"')
    assert loop.inputs[0].line == line_of(text, '<layer id="3" name="the_loop"') + 2
    assert loop.outputs[0].line == line_of(text, '<port id="3"')
    assert loop.outputs[1].line == line_of(text, '<port id="4"')
    assert model.graph.edges[0].line == line_of(text, 'to-layer="3" to-port="0"')
    assert body.graph.edges[0].line == line_of(text, 'from-layer="1" from-port="0" to-layer="2"')
    assert [entry.line for entry in body.inputs] == [line_of(text, "<input ext", index) for index in range(2)]
    assert [entry.line for entry in body.outputs] == [line_of(text, "<output ext", index) for index in range(3)]
    assert body.back_edges[0].line == line_of(text, '<edge from-layer="7"')


@each_row("before", [0, 70_000])
@each_row(
    "dims",
    [
        "<dim>3</dim><dim>4</dim>",
        "\n<dim>3</dim>\n<dim>4</dim>\n",
        "\n\n<dim>3</dim>\n<dim>4</dim>\n",
        "\n<dim>\n3</dim>\n<dim>4</dim>\n",
        "<dim>3\n</dim><dim>4</dim>\n",
        "\n<dim>3</dim>\n<dim>4</dim>\n<rt_info><attribute name='7'/></rt_info>\n",
        "\n<rt_info/>\n<dim>3</dim>\n<dim>4</dim>\n",
    ],
)
def test_a_port_knows_its_line_and_shape_however_it_is_laid_out(tmp_path: Path, dims: str, before: int) -> None:
    layers = (
        '<net name="m" version="11"><layers>'
        + "\n" * before
        + '<layer id="0" name="x" type="Parameter" version="opset1">'
        '<data shape="3,4" element_type="f32"/><output>\n<port id="0" precision="FP32">'
        + dims
        + "</port></output></layer>"
        '\n<layer id="1" name="r" type="Result" version="opset1"><input>\n<port id="0">'
        + dims
        + "</port></input></layer>"
    )
    text = layers + '</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
    model = stepper.read_model(write(tmp_path, text, b""))
    ports = [model.graph.by_id[0].outputs[0], model.graph.by_id[1].inputs[0]]
    assert [port.dims for port in ports] == [(3, 4), (3, 4)]
    assert [port.line for port in ports] == [line_of(text, '<port id="0"', index) for index in range(2)]


@each_row("before", [0, 70_000])
def test_a_message_names_the_line_even_far_down(tmp_path: Path, before: int) -> None:
    text, weights = tiny_models.loop()
    text = text.replace("<layers>", "\n" * before + "<layers>", 1)
    text = text.replace('internal_layer_id="7" axis="0"', 'internal_layer_id="77" axis="0"')
    line = line_of(text, 'internal_layer_id="77"')
    with pytest.raises(ModelError, match=rf"model\.xml:{line}: layer 3 'the_loop' \(Loop\)"):
        stepper.read_model(write(tmp_path, text, weights))


def test_bodies_in_bodies_in_bodies_are_read_outer_before_inner(tmp_path: Path) -> None:
    model = stepper.read_model(write(tmp_path, *tiny_models.nested(3)))
    paths = [[layer.name for layer in path] for path, _ in model.graphs()]
    assert paths == [[], ["loop_1"], ["loop_1", "loop_2"], ["loop_1", "loop_2", "loop_3"]]
    innermost = list(model.graphs())[-1][1]
    assert [layer.type for layer in innermost.layers] == [
        "Parameter",
        "Constant",
        "Add",
        "Constant",
        "Result",
        "Result",
    ]


def test_both_sides_of_an_if_are_bodies_with_port_maps_of_their_own(tmp_path: Path) -> None:
    model = stepper.read_model(write(tmp_path, *tiny_models.branch()))
    then, other = model.graph.by_id[2].bodies
    assert (then.role, other.role) == ("then_body", "else_body")
    assert [layer.type for body in (then, other) for layer in body.graph.layers if layer.id == 2] == ["Add", "Multiply"]
    assert [entry.input for body in (then, other) for entry in body.inputs] == [1, 1]
    assert [entry.output for body in (then, other) for entry in body.outputs] == [0, 0]


def test_parameters_and_results_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    text, weights = tiny_models.loop()
    first, second = (text[text.index(f'<layer id="{id}" name="{name}"') :] for id, name in ((4, "last"), (5, "all")))
    first = first[: first.index("</layer>") + 9]
    second = second[: second.index("</layer>") + 9]
    swapped = text.replace(first + second, second + first)
    model = stepper.read_model(write(tmp_path, swapped, weights))
    assert [layer.name for layer in model.graph.results] == ["all", "last"]


def test_ids_of_a_body_live_in_a_name_space_of_their_own(tmp_path: Path) -> None:
    _, model, loop = read_loop(tmp_path)
    assert model.graph.by_id[0].name == "trip_count"
    assert loop.bodies[0].graph.by_id[0].name == "state"


def test_sources_are_by_index_of_the_output_not_by_its_id(tmp_path: Path) -> None:
    _, model, _ = read_loop(tmp_path)
    assert model.graph.sources[4] == ((3, 0),)
    assert model.graph.sources[5] == ((3, 1),)


def test_nothing_of_a_model_can_be_changed(tmp_path: Path) -> None:
    _, model, _ = read_loop(tmp_path)
    pending: list[Any] = [model]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Struct):
            assert part.__struct_config__.frozen, type(part)
            pending += [getattr(part, name) for name in part.__struct_fields__]
        elif isinstance(part, tuple):
            pending += part
        elif isinstance(part, Mapping):
            with pytest.raises(TypeError):
                cast("dict[Any, Any]", part)["new"] = None
            pending += part.values()
        else:
            assert isinstance(part, (int, str, Path, Weights, np.dtype, type(None)))


def test_looking_a_graph_up_by_id_gives_the_same_answer_again(tmp_path: Path) -> None:
    _, model, _ = read_loop(tmp_path)
    graph: Graph = model.graph
    assert graph.by_id is graph.by_id
    assert graph.parameters is graph.parameters
    with pytest.raises(AttributeError):
        graph.layers = ()  # type: ignore[misc]
