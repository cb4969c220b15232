"""Tiny whole models: text and weights. What each computes follows from its docstring."""

from __future__ import annotations

from tests.ir.texts import Blob, binary, edges, graph, layer, net, parameter, port, result

Texts = tuple[str, bytes]


def plain() -> Texts:
    """sum = x + [1,2,3]."""
    blob = Blob()
    layers = [
        parameter(0, "x", "f32", (3,)),
        blob.floats(1, "three", [1, 2, 3]),
        binary(2, "sum", "Add", (3,)),
        result(3, "out", "FP32", (3,)),
    ]
    return net(layers, edges("0:0 2:0", "1:0 2:1", "2:2 3:0")), blob.content


def loop(trip_count: int = 3) -> Texts:
    """state = x, then state + iteration + 1 each iteration; outputs: the last state, all states as rows."""
    blob = Blob()
    outer = [
        blob.integer(0, "trip_count", trip_count),
        blob.boolean(1, "go", True),
        parameter(2, "x", "f32", (1,)),
    ]
    body = [
        parameter(0, "state", "f32", (1,)),
        parameter(1, "iteration", "i64"),
        layer(2, "number", "Convert", '<data destination_type="f32"/>', [port(0, "I64")], [port(1)]),
        blob.floats(3, "one", 1),
        binary(4, "step", "Add"),
        binary(5, "next", "Add", (1,)),
        blob.boolean(6, "true", True),
        result(7, "next_result", "FP32", (1,)),
        result(8, "true_result", "BOOL"),
    ]
    body_edges = edges("1:0 2:0", "2:1 4:0", "3:0 4:1", "0:0 5:0", "4:2 5:1", "5:2 7:0", "6:0 8:0")
    parts = [
        "<port_map>",
        '<input external_port_id="2" internal_layer_id="0"/>',
        '<input external_port_id="-1" internal_layer_id="1" purpose="current_iteration"/>',
        '<output external_port_id="3" internal_layer_id="7"/>',
        '<output external_port_id="4" internal_layer_id="7" axis="0" start="0" end="-1" stride="1" part_size="1"/>',
        '<output external_port_id="-1" internal_layer_id="8" purpose="execution_condition"/>',
        "</port_map>",
        "<back_edges>",
        '<edge from-layer="7" to-layer="0"/>',
        "</back_edges>",
        graph("body", body, body_edges),
    ]
    inputs = [port(0, "I64"), port(1, "BOOL"), port(2, "FP32", (1,))]
    outputs = [port(3, "FP32", (1,)), port(4, "FP32", (-1,))]
    layers = [
        *outer,
        layer(3, "the_loop", "Loop", "", inputs, outputs, parts, "opset5"),
        result(4, "last", "FP32", (1,)),
        result(5, "all", "FP32", (-1,)),
    ]
    return net(layers, edges("0:0 3:0", "1:0 3:1", "2:0 3:2", "3:3 4:0", "3:4 5:0")), blob.content


def iterator() -> Texts:
    """Rows of x[4,2], one an iteration, added up onto [[0,0]]; outputs: the sum, the running sums as rows."""
    blob = Blob()
    body = [
        parameter(0, "row", "f32", (1, 2)),
        parameter(1, "sum", "f32", (1, 2)),
        binary(2, "next", "Add", (1, 2)),
        result(3, "next_result", "FP32", (1, 2)),
    ]
    parts = [
        "<port_map>",
        '<input external_port_id="0" internal_layer_id="0" axis="0" start="0" end="-1" stride="1" part_size="1"/>',
        '<input external_port_id="1" internal_layer_id="1"/>',
        '<output external_port_id="2" internal_layer_id="3"/>',
        '<output external_port_id="3" internal_layer_id="3" axis="0" start="0" end="-1" stride="1" part_size="1"/>',
        "</port_map>",
        "<back_edges>",
        '<edge from-layer="3" to-layer="1"/>',
        "</back_edges>",
        graph("body", body, edges("0:0 2:0", "1:0 2:1", "2:2 3:0")),
    ]
    inputs = [port(0, "FP32", (4, 2)), port(1, "FP32", (1, 2))]
    outputs = [port(2, "FP32", (1, 2)), port(3, "FP32", (4, 2))]
    layers = [
        parameter(0, "x", "f32", (4, 2)),
        blob.floats(1, "zeros", [[0, 0]]),
        layer(2, "rows", "TensorIterator", "", inputs, outputs, parts),
        result(3, "sum", "FP32", (1, 2)),
        result(4, "sums", "FP32", (4, 2)),
    ]
    return net(layers, edges("0:0 2:0", "1:0 2:1", "2:2 3:0", "2:3 4:0")), blob.content


def branch() -> Texts:
    """x + 10 where the boolean `up` is true, else x * 10."""
    blob = Blob()

    def side(tag: str, type: str) -> list[str]:
        layers = [
            parameter(0, "x", "f32"),
            blob.floats(1, "ten", 10),
            binary(2, "changed", type),
            result(3, "changed_result"),
        ]
        port_map = [
            f"<{tag}_port_map>",
            '<input external_port_id="1" internal_layer_id="0"/>',
            '<output external_port_id="2" internal_layer_id="3"/>',
            f"</{tag}_port_map>",
        ]
        return [*port_map, graph(f"{tag}_body", layers, edges("0:0 2:0", "1:0 2:1", "2:2 3:0"))]

    layers = [
        parameter(0, "up", "boolean"),
        parameter(1, "x", "f32"),
        layer(
            2,
            "choice",
            "If",
            "",
            [port(0, "BOOL"), port(1)],
            [port(2)],
            [*side("then", "Add"), *side("else", "Multiply")],
            "opset8",
        ),
        result(3, "out"),
    ]
    return net(layers, edges("0:0 2:0", "1:0 2:1", "2:2 3:0")), blob.content


def nested(depth: int, loops_trip_count: int = 2) -> Texts:
    """Loops in loops, the innermost body adds 1; so the output is x + loops_trip_count ** depth."""
    blob = Blob()
    constants = [blob.integer(1, "trip_count", loops_trip_count), blob.boolean(2, "go", True)]
    one = blob.floats(1, "one", 1)
    inner_layers = [parameter(0, "x"), one, binary(3, "sum", "Add"), constants[1]]
    inner_edges = ["0:0 3:0", "1:0 3:1"]
    for level in range(depth):
        body = graph(
            "body",
            [*inner_layers, result(8, "x_result"), result(9, "go_result", "BOOL")],
            edges(*inner_edges, f"3:{2 if level == 0 else 3} 8:0", "2:0 9:0"),
        )
        parts = [
            "<port_map>",
            '<input external_port_id="2" internal_layer_id="0"/>',
            '<output external_port_id="3" internal_layer_id="8"/>',
            '<output external_port_id="-1" internal_layer_id="9" purpose="execution_condition"/>',
            "</port_map>",
            '<back_edges><edge from-layer="8" to-layer="0"/></back_edges>',
            body,
        ]
        inputs = [port(0, "I64"), port(1, "BOOL"), port(2)]
        inner_layers = [
            parameter(0, "x"),
            *constants,
            layer(3, f"loop_{depth - level}", "Loop", "", inputs, [port(3)], parts, "opset5"),
        ]
        inner_edges = ["1:0 3:0", "2:0 3:1", "0:0 3:2"]
    return net([*inner_layers, result(8, "out")], edges(*inner_edges, "3:3 8:0")), blob.content
