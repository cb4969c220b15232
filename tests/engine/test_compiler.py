"""What a graph becomes before it runs: an order, slots, constants computed once, dead code left out."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.engine.compiler import compile_model
from stepper.engine.program import Function, Program
from stepper.engine.rules import Rules
from stepper.engine.run import outline
from stepper.errors import ModelError, UnsupportedOperation
from stepper.ir.model import Layer
from tests.engine.nested_models import multiplication_table
from tests.models import Graph, Side, carried, invariant, last


def names(program: Program) -> list[str]:
    return [operation.layer.name for operation in program.operations]


def test_what_no_result_needs_is_left_out(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x")
    net.parameter("unused")
    dead = net.apply("Exp", x, name="dead")
    net.apply("Mystery", dead, version="extension", name="dead too")
    net.result(net.apply("Abs", x, name="alive"))
    compiled = compile_model(net.read(tmp_path))
    assert names(compiled.main) == ["alive"]
    assert stepper.run(net.read(tmp_path), {"x": np.float32(-1), "unused": np.float32(0)})["result"] == 1


def loop_with_constants() -> Graph:
    """state += -(2 * 3) in a body where a part follows from constants alone."""
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    six = body.apply("Multiply", body.constant(2.0), body.constant(3.0), name="six")
    result = body.result(body.apply("Add", state, body.apply("Negative", six, name="minus six"), name="sum"))
    outer = net.apply("Multiply", net.constant(2.0), net.constant(5.0), name="ten")
    net.result(net.loop("l", body, 3, True, [carried(outer, state, result)], [last(result)])[0])
    return net


@pytest.mark.parametrize("rules", list(Rules))
def test_constants_are_folded_in_bodies_and_only_there(tmp_path: Path, rules: Rules) -> None:
    main, body = compile_model(loop_with_constants().read(tmp_path), rules).programs
    assert names(main) == ["ten", "l"] and not main.folded
    assert names(body) == ["sum"]
    assert [operation.layer.name for operation in body.folded] == ["six", "minus six"]
    assert body.template[body.folded[1].outputs[0]] == -6
    assert stepper.run(loop_with_constants().read(tmp_path), {}, rules=rules)["result"] == 10 - 3 * 6


def test_an_operation_on_constants_that_fails_waits_for_the_run(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(2,))
    bad = body.apply("Add", body.constant([1.0, 2.0]), body.constant([1.0, 2.0, 3.0]), name="bad")
    result = body.result(body.apply("Add", state, bad))
    count = net.parameter("n", "i64")
    net.result(net.loop("l", body, count, True, [carried(net.constant([0.0, 0.0]), state, result)], [last(result)])[0])
    model = net.read(tmp_path)
    assert stepper.run(model, {"n": np.int64(0)})["result"].tolist() == [0, 0]
    with pytest.raises(
        stepper.StepperError, match=r"^model > Loop 'l' #0 > Add 'bad': .*\(inputs: f32\[2\], f32\[3\]\)"
    ):
        stepper.run(model, {"n": np.int64(1)})


def test_operations_stand_in_the_order_of_the_file_as_far_as_their_inputs_allow(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x")
    values = [net.apply("Negative", x, name=name) for name in ("c", "a", "b")]
    total = net.apply("Add", net.apply("Add", values[2], values[0], name="late"), values[1], name="last")
    net.result(total)
    written = net.layers[1:6]
    for rotation in range(5):
        net.layers[1:6] = written[rotation:] + written[:rotation]
        order = names(compile_model(net.read(tmp_path)).main)
        assert order == names(compile_model(net.read(tmp_path)).main)
        in_file = [text.split('name="')[1].split('"')[0] for text in net.layers[1:6]]
        assert [name for name in order if name in "abc"] == [name for name in in_file if name in "abc"]
        assert order.index("late") > max(order.index("b"), order.index("c")) and order[-1] == "last"


def branches(*, unsupported_else: bool) -> Graph:
    net = Graph()
    go, x = net.parameter("go", "boolean"), net.parameter("x")
    sides = []
    for operation, version in (("Abs", "opset1"), ("Mystery", "extension") if unsupported_else else ("Exp", "opset1")):
        side = net.body()
        inside = side.parameter("inside")
        sides.append(Side(side, [(x, inside)], [side.result(side.apply(operation, inside, version=version))]))
    net.result(net.branch("choice", go, *sides)[0])
    return net


def test_an_operation_without_a_kernel_only_stops_the_run_that_reaches_it(tmp_path: Path) -> None:
    model = branches(unsupported_else=True).read(tmp_path)
    assert stepper.run(model, {"go": np.True_, "x": np.float32(-2)})["result"] == 2
    with pytest.raises(UnsupportedOperation, match=r"^model > If 'choice' > Mystery 'mystery': there is no kernel"):
        stepper.run(model, {"go": np.False_, "x": np.float32(-2)})
    (without,) = outline(model).without_kernel
    assert (without.operation, without.layer.name) == ("Mystery-extension", "mystery")
    assert without.path == "model > If 'choice'" and without.layer.line > 0


def test_an_operation_without_a_kernel_in_a_loop_that_never_runs_does_no_harm(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Mystery", state, version="extension"))
    x = net.parameter("x")
    net.result(net.loop("l", body, 0, True, [carried(x, state, result)], [last(result)])[0])
    assert stepper.run(net.read(tmp_path), {"x": np.float32(7)})["result"] == 7


@pytest.mark.parametrize(
    ("operation", "attributes", "message"),
    [
        ("Convert", {}, r"the attribute 'destination_type' is missing, which Convert demands"),
        ("Concat", {"axis": "first"}, r"the attribute 'axis' is 'first', expected an integer"),
    ],
)
def test_an_attribute_that_is_wrong_is_named_with_file_line_and_layer(
    tmp_path: Path, operation: str, attributes: dict[str, str], message: str
) -> None:
    net = Graph()
    body = net.body()
    inside = body.parameter("inside", dims=(1,))
    result = body.result(body.apply(operation, inside, name="joint", **attributes))
    net.result(net.loop("l", body, 1, True, [invariant(net.constant([1.0]), inside)], [last(result)])[0])
    model = net.read(tmp_path)
    line = next(n for n, text in enumerate((tmp_path / "model.xml").read_text().splitlines(), 1) if "joint" in text)
    place = rf"^.*model\.xml:{line}: Loop 'l' > layer 1 'joint' \({operation}\): "
    with pytest.raises(ModelError, match=place + message):
        compile_model(model)


def test_a_wrong_number_of_inputs_is_named(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Add", net.parameter("x"), name="lonely"))
    with pytest.raises(ModelError, match=r"layer 1 'lonely' \(Add\): has 1 inputs, expected 2"):
        compile_model(net.read(tmp_path))


def test_a_model_without_its_weights_says_which_file_is_missing(tmp_path: Path) -> None:
    net = loop_with_constants()
    path = net.write(tmp_path)
    path.with_suffix(".bin").unlink()
    model = stepper.read_model(path)
    with pytest.raises(ModelError, match=r"its value is in .*model\.bin, which does not exist"):
        compile_model(model)


def test_programs_know_where_they_are_and_find_slots_by_layer(tmp_path: Path) -> None:
    main, rows, columns = compile_model(multiplication_table().read(tmp_path)).programs
    assert [program.name for program in (main, rows, columns)] == [
        "model",
        "model > Loop 'rows'",
        "model > Loop 'rows' > Loop 'columns'",
    ]
    (product,) = columns.operations
    assert columns.slot(product.layer.id) == product.outputs[0]
    assert set(columns.parameters) == set(product.inputs)


def test_a_model_read_twice_compiles_to_the_same(tmp_path: Path) -> None:
    first, second = (compile_model(multiplication_table().read(tmp_path)) for _ in range(2))
    assert first is not second
    for one, other in zip(first.programs, second.programs, strict=True):
        assert one.slots == other.slots and names(one) == names(other) and one.dead_after == other.dead_after


class Nobody:
    """A partner that computes nothing."""

    description = "nobody"

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        return False

    def bind(self, layer: Layer, constants: Sequence[Any]) -> tuple[Function, str]:
        raise AssertionError("nothing is its own")


def test_a_model_keeps_its_last_forms_and_they_go_with_it(tmp_path: Path) -> None:
    model = multiplication_table().read(tmp_path)
    first = compile_model(model)
    assert compile_model(model, "spec") is first is not compile_model(model, Rules.OPENVINO)
    for partner in (Nobody() for _ in range(4)):
        assert compile_model(model, partner=partner) is compile_model(model, partner=partner)
    assert compile_model(model) is not first, "only so many are kept"
    gone = [weakref.ref(model), weakref.ref(compile_model(model))]
    del model, first
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_values_of_the_main_graph_go_after_their_last_use_where_nobody_keeps_them(tmp_path: Path) -> None:
    net = Graph()
    value = net.parameter("x")
    for _ in range(5):
        value = net.apply("Negative", value)
    net.result(value)
    model = net.read(tmp_path)
    for keep, alive, every in (
        (True, 6, stepper.Every.OPERATION),
        (False, 1, stepper.Every.OPERATION),
        (True, 6, stepper.Every.END),
        (False, 1, stepper.Every.END),
    ):
        machine = stepper.Machine(
            compile_model(model), stepper.bind_inputs(model, {"x": np.float32(1)}), keep_values=keep
        )
        frame = machine.stack[0]
        for event in machine.run(every):
            assert event.frame is frame
        assert sum(value is not None for value in frame.values) == alive
        assert machine.outputs is not None and machine.outputs[0] == -1


@pytest.mark.parametrize("rules", list(Rules))
def test_an_operation_with_constant_inputs_takes_the_first_alone_and_fails_as_ever(
    tmp_path: Path, rules: Rules
) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(-1,))
    table = body.apply("Reshape", state, body.constant([2, 3], np.int64), name="table", special_zero="false")
    turned = body.apply("Transpose", table, body.constant([1, 0], np.int64), name="turned")
    flat = body.apply("Reshape", turned, body.constant([-1], np.int64), name="flat", special_zero="false")
    result = body.result(flat)
    net.result(
        net.loop("l", body, 2, True, [carried(net.parameter("x", dims=(-1,)), state, result)], [last(result)])[0]
    )
    model = net.read(tmp_path)
    assert [step[2] for step in compile_model(model, rules).programs[1].code] == [None] * 3
    x = np.arange(6, dtype=np.float32)
    expected = x.reshape(2, 3).T.reshape(2, 3).T.reshape(-1)
    np.testing.assert_array_equal(stepper.run(model, {"x": x}, rules=rules)["result"], expected)
    place = r"Loop 'l' #0 > Reshape 'table': a tensor of shape \[7\] cannot take the shape \[2,3\]"
    with pytest.raises(stepper.StepperError, match=place + r" \(inputs: f32\[7\], i(64|32)\[2\]\)"):
        stepper.run(model, {"x": np.ones(7, np.float32)}, rules=rules)


def test_runs_of_one_model_compile_it_once(tmp_path: Path) -> None:
    net = Graph()
    net.result(net.apply("Abs", net.parameter("x", dims=(2,))))
    model = net.read(tmp_path)
    for _ in range(3):
        stepper.run(model, {"x": np.zeros(2, np.float32)})
        stepper.Debugger(model, {"x": np.zeros(2, np.float32)})
    assert len(model.compiled) == 1
