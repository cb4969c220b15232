"""A loop in the words of the first text of Loop-5: operations, condition="True", trip count and condition optional."""

from __future__ import annotations

import re

from tests.ir.texts import Blob, binary, edges, graph, layer, net, parameter, port, result
from tests.ir.tiny_models import Texts


def first_draft(*, trip_count: int | None, condition: bool, condition_port: int = 1) -> Texts:
    """state = x, then state + 1 each iteration; the body's condition is: the new state < 3.

    The condition comes from the input `go` where there is one. Outputs: last (the state), all (the states), numbers
    (the iteration numbers).
    """
    blob = Blob()
    outer = [parameter(2, "x", "f32", (1,))]
    inputs, outer_edges = [port(2, "FP32", (1,))], ["2:0 3:2", "3:3 4:0", "3:4 5:0", "3:5 6:0"]
    if trip_count is not None:
        outer.append(blob.integer(0, "trip_count", trip_count))
        inputs.append(port(0, "I64"))
        outer_edges.append("0:0 3:0")
    if condition:
        outer.append(parameter(1, "go", "boolean"))
        inputs.append(port(condition_port, "BOOL"))
        outer_edges.append(f"1:0 3:{condition_port}")
    marked = f'<input external_port_id="{condition_port}" internal_layer_id="1" condition="True"/>' if condition else ""
    parts = [
        "<port_map>",
        marked,
        '<input external_port_id="2" internal_layer_id="0"/>',
        '<output external_port_id="3" internal_layer_id="6"/>',
        '<output external_port_id="4" internal_layer_id="6" axis="0"/>',
        '<output external_port_id="5" internal_layer_id="8" axis="0"/>',
        "</port_map>",
        "<back_edges>",
        '<edge from-layer="6" to-layer="0"/>',
        '<edge from-layer="7" to-layer="1"/>' if condition else "",
        "</back_edges>",
        _body(blob, condition=condition),
    ]
    outputs = [port(3, "FP32", (1,)), port(4, "FP32", (-1,)), port(5, "I64", (-1,))]
    results = [result(4, "last", dims=(1,)), result(5, "all", dims=(-1,)), result(6, "numbers", "I64", (-1,))]
    loop = layer(3, "the_loop", "Loop", "", inputs, outputs, parts, "opset5")
    text = net([*outer, loop, *results], edges(*outer_edges))
    return in_the_words_of_the_first_draft(text), blob.content


def _body(blob: Blob, *, condition: bool) -> str:
    # The iteration's Parameter has no <data>: type and shape stand on its port alone.
    iteration = layer(2, "iteration", "Parameter", outputs=[port(0, "I64")])
    layers = [
        parameter(0, "state", "f32", (1,)),
        *([parameter(1, "go", "boolean")] if condition else []),
        iteration,
        blob.floats(3, "one", 1),
        blob.floats(4, "three", [3]),
        binary(5, "next", "Add", (1,)),
        result(6, "next_result", dims=(1,)),
        result(7, "go_result", "BOOL", (1,)),
        result(8, "iteration_result", "I64"),
        binary(9, "less", "Less", (1,)),
    ]
    return graph("body", layers, edges("0:0 5:0", "3:0 5:1", "5:2 6:0", "5:2 9:0", "4:0 9:1", "9:2 7:0", "2:0 8:0"))


def in_the_words_of_the_first_draft(text: str) -> str:
    """The same file with that text's names; operations had no version."""
    text = re.sub(r"(</?)layer", r"\1operation", text)
    text = re.sub(r' version="opset\d+"', "", text)
    text = text.replace("internal_layer_id", "internal_operation_id")
    head, back_edges, rest = re.split(r"(<back_edges>.*?</back_edges>)", text, maxsplit=1, flags=re.DOTALL)
    return head + back_edges.replace("-layer", "-operation") + rest
